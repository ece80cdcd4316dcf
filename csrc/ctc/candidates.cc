#include "candidates.h"

#include <algorithm>
#include <functional>

namespace oasr::ctc {
namespace {

constexpr std::size_t kLeastGroups = 64, kGroupsForEach = 6;

// The larger of each pair; NaN never wins. Written so that compilers vectorise it.
void keep_larger(float* most, const float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) most[i] = values[i] > most[i] ? values[i] : most[i];
}

}  // namespace

// The largest log-probability other than blank's in each group: token `id` is in group id % groups.
void TokenFinder::find_maxima(const float* frame, std::size_t vocab, int blank_id) {
  const std::size_t groups = maxima_.size();
  std::fill(maxima_.begin(), maxima_.end(), nothing());
  for (std::size_t begin = 0; begin < vocab; begin += groups) {
    keep_larger(maxima_.data(), frame + begin, std::min(groups, vocab - begin));
  }
  const auto blank_group = static_cast<std::size_t>(std::max(blank_id, 0)) % groups;
  for (std::size_t group = 0; group < groups; ++group) {
    // Plus infinity is no log-probability; whatever stands beside it has to be looked at again.
    if (maxima_[group] < infinity() && (group != blank_group || blank_id < 0)) continue;
    maxima_[group] = nothing();
    for (std::size_t id = group; id < vocab; id += groups) {
      if (static_cast<int>(id) != blank_id) maxima_[group] = std::max(maxima_[group], log_prob(frame[id]));
    }
  }
}

const std::vector<Key>& TokenFinder::best(const float* frame, Index vocab, int blank_id, std::size_t count) {
  const auto size = static_cast<std::size_t>(vocab);
  maxima_.resize(std::min(size, std::max(kLeastGroups, kGroupsForEach * count)));
  find_maxima(frame, size, blank_id);
  // At least `count` tokens reach the count-th largest maximum.
  float least = nothing();
  if (maxima_.size() >= count) {
    sorted_ = maxima_;
    const auto place = sorted_.begin() + static_cast<Index>(count) - 1;
    std::nth_element(sorted_.begin(), place, sorted_.end(), std::greater<>());
    least = *place;
  }
  keys_.clear();
  for (std::size_t group = 0; group < maxima_.size(); ++group) {
    if (!(maxima_[group] >= least)) continue;
    for (std::size_t id = group; id < size; id += maxima_.size()) {
      if (!(frame[id] >= least) || static_cast<int>(id) == blank_id) continue;
      if (const Key key = key_of(log_prob(frame[id]), static_cast<unsigned>(id))) keys_.push_back(key);
    }
  }
  const auto kept = std::min(keys_.size(), count);
  std::partial_sort(keys_.begin(), keys_.begin() + static_cast<Index>(kept), keys_.end(), std::greater<>());
  keys_.resize(kept);
  return keys_;
}

}  // namespace oasr::ctc
