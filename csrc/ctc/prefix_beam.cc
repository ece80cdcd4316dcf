#include "prefix_beam.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace oasr::ctc {
namespace {

Beam empty_prefix(float blank) { return {blank, blank, nothing(), -1, -1, 0, kEmptyPrefix, kNoParent, -1}; }

}  // namespace

PrefixBeam::PrefixBeam(int beam_size, int blank_id, Index vocab)
    : beam_size_(beam_size), blank_id_(blank_id), vocab_(vocab), rank_of_(static_cast<std::size_t>(vocab), -1) {}

void PrefixBeam::step(int frame, const float* log_probs, bool after_gap) {
  tokens_ = finder_.best(log_probs, vocab_, blank_id_, 2 * static_cast<std::size_t>(beam_size_));
  if (!started_) return start(frame, log_probs);
  for (Beam& beam : beams_) {
    if (!after_gap) break;
    beam.blank = beam.total;
    beam.nonblank = nothing();
  }
  rank_beams();
  set_ranks(true);
  stay_all(log_probs);
  extend_all();
  keep_best(frame);
  // Only what was set is taken back: the table is as long as the vocabulary.
  set_ranks(false);
  find_parents();
}

// The first frame fills the beam with the best tokens and keeps the last place for the empty prefix.
void PrefixBeam::start(int frame, const float* log_probs) {
  started_ = true;
  const float blank = log_prob(log_probs[blank_id_]);
  const float top = std::max(blank, tokens_.empty() ? nothing() : score_of(tokens_.front()));
  // No prefix is possible, and none will be: the beam stays empty, which results() reports.
  if (!(top > nothing())) return;
  offset_ = top;
  const Beam root = empty_prefix(0);
  const auto count = std::min(tokens_.size(), static_cast<std::size_t>(beam_size_ - 1));
  for (std::size_t r = 0; r < count; ++r) {
    beams_.push_back(extension(root, static_cast<int>(index_of(tokens_[r])), score_of(tokens_[r]) - top, frame));
  }
  if (blank > nothing()) beams_.push_back(empty_prefix(blank - top));
  find_parents();
}

// Scores fall along the beam except after the first frame, where the empty prefix is last whatever its score.
void PrefixBeam::rank_beams() {
  order_.resize(beams_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  if (sorted_) return;
  const auto better = [this](std::size_t a, std::size_t b) { return beams_[a].total > beams_[b].total; };
  std::stable_sort(order_.begin(), order_.end(), better);
}

void PrefixBeam::set_ranks(bool present) {
  for (std::size_t r = 0; r < tokens_.size(); ++r) rank_of_[index_of(tokens_[r])] = present ? static_cast<int>(r) : -1;
}

// What every prefix is worth without a new token, extensions of its parent that lead to the same prefix included.
void PrefixBeam::stay_all(const float* log_probs) {
  const float blank = log_prob(log_probs[blank_id_]);
  stays_.clear();
  merged_.assign(beams_.size() * tokens_.size(), 0);
  for (const Beam& beam : beams_) {
    const float last = beam.last < 0 ? nothing() : log_prob(log_probs[beam.last]);
    float merged = nothing();
    if (beam.parent >= 0) {
      const auto slot = static_cast<std::size_t>(beam.parent);
      const Beam& parent = beams_[slot];
      merged = (parent.last == beam.last ? parent.blank : parent.total) + last;
      const int rank = rank_of_[static_cast<std::size_t>(beam.last)];
      if (rank >= 0) merged_[slot * tokens_.size() + static_cast<std::size_t>(rank)] = 1;
    }
    stays_.push_back(stay(beam.total, beam.nonblank, last, blank, merged));
  }
}

// The keys of all candidates: every prefix as it is, and with one more token.
void PrefixBeam::extend_all() {
  keys_.clear();
  for (std::size_t rank = 0; rank < order_.size(); ++rank) {
    const std::size_t slot = order_[rank];
    const Beam& beam = beams_[slot];
    const auto base = static_cast<unsigned>(slot) * static_cast<unsigned>(vocab_);
    if (const Key key = key_of(stays_[slot].total, base + static_cast<unsigned>(blank_id_))) keys_.push_back(key);
    const auto taken = static_cast<std::size_t>(tokens_taken(static_cast<int>(rank), beam_size_));
    for (std::size_t r = 0; r < std::min(taken, tokens_.size()); ++r) {
      if (merged_[slot * tokens_.size() + r] != 0) continue;
      const unsigned token = index_of(tokens_[r]);
      // The same label again is a new one only after a blank.
      const float before = static_cast<int>(token) == beam.last ? beam.blank : beam.total;
      if (const Key key = key_of(before + score_of(tokens_[r]), base + token)) keys_.push_back(key);
    }
  }
}

void PrefixBeam::keep_best(int frame) {
  const auto count = std::min(keys_.size(), static_cast<std::size_t>(beam_size_));
  std::partial_sort(keys_.begin(), keys_.begin() + static_cast<Index>(count), keys_.end(), std::greater<>());
  const float top = keys_.empty() ? 0 : score_of(keys_.front());
  next_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const auto slot = index_of(keys_[i]) / static_cast<unsigned>(vocab_);
    const auto token = static_cast<int>(index_of(keys_[i]) % static_cast<unsigned>(vocab_));
    const float score = score_of(keys_[i]) - top;
    if (token == blank_id_) {
      Beam beam = kept(slot, score, frame);
      beam.blank = stays_[slot].blank - top;
      beam.nonblank = stays_[slot].nonblank - top;
      next_.push_back(beam);
    } else {
      next_.push_back(extension(beams_[slot], token, score, frame));
    }
  }
  beams_.swap(next_);
  offset_ += top;
  sorted_ = true;
}

// A prefix that gained nothing but time. When most of it now comes from its parent in this frame, this is where its
// last token was emitted: the node it had, from frames with little probability, is left to what grew from it.
Beam PrefixBeam::kept(std::size_t slot, float score, int frame) {
  Beam beam = beams_[slot];
  beam.total = score;
  if (stays_[slot].moved) {
    nodes_.push_back({beams_[static_cast<std::size_t>(beam.parent)].node, beam.last, frame});
    beam.node = static_cast<int>(nodes_.size()) - 1;
  }
  return beam;
}

Beam PrefixBeam::extension(const Beam& from, int token, float score, int frame) {
  nodes_.push_back({from.node, token, frame});
  const int node = static_cast<int>(nodes_.size()) - 1;
  return {score, nothing(), score, token, node, from.length + 1, extended(from.hash, token), from.hash, -1};
}

void PrefixBeam::find_parents() {
  for (Beam& beam : beams_) {
    beam.parent = -1;
    for (std::size_t i = 0; i < beams_.size(); ++i) {
      if (beams_[i].hash == beam.parent_hash) beam.parent = static_cast<int>(i);
    }
  }
}

std::vector<Result> PrefixBeam::results() const {
  std::vector<Result> found;
  for (const Beam& beam : beams_) found.push_back({offset_ + static_cast<double>(beam.total), beam.length, beam.node});
  const auto better = [](const Result& a, const Result& b) { return a.score > b.score; };
  if (!sorted_) std::stable_sort(found.begin(), found.end(), better);
  if (found.empty()) found.push_back({started_ ? static_cast<double>(nothing()) : 0.0, 0, -1});
  return found;
}

}  // namespace oasr::ctc
