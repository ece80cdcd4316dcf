#include "oasr/segmentation.h"

#include <algorithm>
#include <cmath>

namespace oasr {
namespace {

constexpr std::int64_t kSide = 20;                  // blocks under the weight on either side of a point
constexpr std::int64_t kWeight = kSide * (kSide + 1);  // sum of the triangular weights
constexpr std::int64_t kSilence = 2 * 2;            // mean square of "silence" in 16-bit steps
constexpr std::int64_t kPauseShare = 10;            // a pause has at most 1 / 10 of the mean energy: -10 dB

struct Range {
  std::int64_t first, last;  // closed
};

// Energy of samples [begin, end) in squared 16-bit steps; what lies outside [0, n) is silent.
std::int64_t block_energy(const float* samples, std::int64_t n, std::int64_t begin, std::int64_t end) {
  begin = std::max<std::int64_t>(begin, 0);
  end = std::min(end, n);
  std::int64_t sum = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    // This order of arguments also turns NaN into -1 instead of an undefined conversion.
    const float x = std::min(std::max(-1.0f, samples[i]), 1.0f);
    const auto q = static_cast<std::int32_t>(std::lrint(x * 32768.0f));
    sum += q * q;
  }
  return sum;
}

// Weighted energy around each point search.first + j * block <= search.last.
std::vector<std::int64_t> levels(const float* samples, std::int64_t n, Range search, std::int64_t block) {
  const auto points = (search.last - search.first) / block + 1;
  std::vector<std::int64_t> energy(static_cast<std::size_t>(points + 2 * kSide - 1));
  for (std::size_t b = 0; b < energy.size(); ++b) {
    const auto begin = search.first + (static_cast<std::int64_t>(b) - kSide) * block;
    energy[b] = block_energy(samples, n, begin, begin + block);
  }
  std::vector<std::int64_t> level(static_cast<std::size_t>(points), 0);
  for (std::size_t j = 0; j < level.size(); ++j) {
    for (std::int64_t k = 0; k < kSide; ++k) {
      const auto before = j + static_cast<std::size_t>(kSide - 1 - k);
      const auto after = j + static_cast<std::size_t>(kSide + k);
      if (before < energy.size()) level[j] += (kSide - k) * energy[before];
      if (after < energy.size()) level[j] += (kSide - k) * energy[after];
    }
  }
  return level;
}

// Index of the middle of the longest run of points that are as good as the quietest one.
std::int64_t middle_of_pause(const std::vector<std::int64_t>& level, std::int64_t block) {
  const auto lowest = *std::min_element(level.begin(), level.end());
  const auto quiet = std::max(2 * lowest, kSilence * kWeight * block);
  std::size_t best = 0, best_length = 0, length = 0;
  for (std::size_t j = 0; j < level.size(); ++j) {
    length = level[j] <= quiet ? length + 1 : 0;
    if (length > best_length) {
      best_length = length;
      best = j + 1 - length;
    }
  }
  return static_cast<std::int64_t>(best + (best_length - 1) / 2);
}

// Where a cut may fall, counted from the window's start, when `left` > limit samples are left.
Range search_range(std::int64_t left, std::int64_t limit) {
  if (3 * left <= 5 * limit) {
    const auto shortest = std::max<std::int64_t>(1, limit / 4);
    return {std::max(left - limit, shortest), std::min(limit, left - shortest)};
  }
  return {std::max<std::int64_t>(1, (2 * limit + 2) / 3), limit};
}

}  // namespace

Cut next_cut(const float* samples, std::int64_t n, std::int64_t start, std::int64_t sample_rate,
             std::int64_t limit) {
  const auto block = std::max<std::int64_t>(1, sample_rate / 100);
  const auto range = search_range(n - start, limit);
  const Range search{start + range.first, start + range.last};
  const auto level = levels(samples, n, search, block);
  const auto point = middle_of_pause(level, block);
  // Per sample and rounded down, so that neither side of the comparison can overflow.
  const auto here = level[static_cast<std::size_t>(point)] / (kWeight * block);
  const auto mean = block_energy(samples, n, start, start + limit) / limit;
  return {search.first + block * point, here <= std::max(kSilence, mean / kPauseShare)};
}

Windows plan_windows(const float* samples, std::int64_t n, std::int64_t sample_rate, std::int64_t limit) {
  Windows windows;
  std::int64_t start = 0;
  while (n - start > limit) {
    const auto cut = next_cut(samples, n, start, sample_rate, limit).position;
    windows.emplace_back(start, cut);
    start = cut;
  }
  if (start < n) windows.emplace_back(start, n);
  return windows;
}

}  // namespace oasr
