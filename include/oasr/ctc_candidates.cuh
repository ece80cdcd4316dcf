// The best tokens of a frame, found by one warp in one pass over the vocabulary.
#pragma once

#include "oasr/ctc_common.h"
#include "oasr/ctc_problem.cuh"
#include "oasr/ctc_warp.cuh"

namespace oasr::ctc {

constexpr int kUnroll = 8;                       // loads that a lane has in flight
constexpr int kChunk = kUnroll * kLanes;
constexpr int kWaiting = kChunk + kLanes;        // a chunk on top of what may be left from those before

struct FinderMemory {
  Key best[2][kMostTokens];
  Key waiting[kWaiting];
  float maxima[2 * kLanes];
  float bound;
};

// Tokens that are above the worst of the best so far wait in a queue; a full queue is merged into the best. Ids only
// grow, so a later token of an equal value has lost already. In random order a handful of tokens wait after the first
// chunk, whose own bound comes from the maxima of 64 groups: the n-th largest maximum has n values at or above it.
template <class W>
class Finder {
 public:
  OASR_CTC_DEVICE Finder(const W& warp, FinderMemory& memory, int wanted)
      : warp_(warp), memory_(memory), wanted_(wanted) {}

  // The keys of the best tokens other than blank, best first; `count` says how many.
  OASR_CTC_DEVICE const Key* find(const float* frame, int vocab, int blank_id, int& count) {
    for (int start = 0; start < vocab; start += kChunk) scan(frame, start, vocab, blank_id);
    if (waiting_.count() > 0) merge();
    count = held_;
    return memory_.best[side_];
  }

 private:
  struct Values {
    float of[kUnroll], most;
  };

  OASR_CTC_DEVICE void scan(const float* frame, int start, int vocab, int blank_id) {
    typename W::template Lane<Values> values;
    warp_.each([&](int lane) {
      float most[2] = {nothing(), nothing()};
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int id = start + u * kLanes + lane;
        const float value = id < vocab && id != blank_id ? log_prob(W::read(frame + id)) : nothing();
        values[lane].of[u] = value;
        most[u % 2] = value > most[u % 2] ? value : most[u % 2];
      }
      values[lane].most = most[0] > most[1] ? most[0] : most[1];
      if (start == 0) {
        memory_.maxima[lane] = most[0];
        memory_.maxima[lane + kLanes] = most[1];
      }
    });
    if (start == 0) bound_from_maxima();
    if (warp_.vote([&](int lane) { return values[lane].most > bound_; }) == 0) return;
    warp_.each([&](int lane) {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const float value = values[lane].of[u];
        const int place = waiting_.claim(value > bound_);
        if (value > bound_) memory_.waiting[place] = key_of(value, static_cast<unsigned>(start + u * kLanes + lane));
      }
    });
    if (start == 0 || waiting_.count() > kLanes) merge();
  }

  OASR_CTC_DEVICE void bound_from_maxima() {
    warp_.each([&](int lane) {
      for (int i = lane; i < 2 * kLanes; i += kLanes) {
        const float mine = memory_.maxima[i];
        int rank = 0;
#pragma unroll 4
        for (int j = 0; j < 2 * kLanes; ++j) {
          const float other = memory_.maxima[j];
          rank += other > mine || (other == mine && j < i);
        }
        // Equal maxima are ranked by place, so exactly one lane writes.
        if (rank == wanted_ - 1) memory_.bound = mine;
      }
    });
    // The bound itself has to pass `value > bound_`: two steps down, because -0 lies between 0 and what is below it.
    const unsigned order = order_bits(memory_.bound);
    bound_ = order > order_bits(nothing()) + 2 ? from_order_bits(order - 2) : nothing();
  }

  // Sorts what waits into the best: a key's place is the number of keys above it.
  OASR_CTC_DEVICE void merge() {
    const Key* const best = memory_.best[side_];
    Key* const merged = memory_.best[1 - side_];
    const int waiting = waiting_.count(), all = held_ + waiting;
    warp_.each([&](int lane) {
      for (int i = lane; i < all; i += kLanes) {
        const Key mine = i < held_ ? best[i] : memory_.waiting[i - held_];
        int rank = 0;
        for (int j = 0; j < held_; ++j) rank += best[j] > mine;
        for (int j = 0; j < waiting; ++j) rank += memory_.waiting[j] > mine;
        if (rank < wanted_) merged[rank] = mine;
      }
    });
    side_ = 1 - side_;
    held_ = all < wanted_ ? all : wanted_;
    waiting_ = {};
    if (held_ == wanted_) bound_ = score_of(merged[wanted_ - 1]);
  }

  const W& warp_;
  FinderMemory& memory_;
  const int wanted_;
  int held_ = 0, side_ = 0;
  float bound_ = nothing();
  typename W::Counter waiting_;
};

// Finds and publishes what the beams need of one frame.
template <class W>
OASR_CTC_DEVICE void prepare_frame(const W& warp, const Problem& p, FinderMemory& memory, int row, int t, int beam) {
  const float blank = posterior<W>(p, row, t, p.blank_id);
  const long long place = p.place(row, t);
  int count = 0;
  if (blank < p.skip_from) {
    Finder<W> finder(warp, memory, 2 * beam);
    const Key* const best = finder.find(p.frame(row, t), p.vocab, p.blank_id, count);
    warp.each([&](int lane) {
      for (int r = lane; r < count; r += kLanes) {
        const int id = static_cast<int>(index_of(best[r]));
        const float following = t + 1 < p.lengths[row] ? posterior<W>(p, row, t + 1, id) : nothing();
        p.tokens[place * 2 * beam + r] = {id, score_of(best[r]), following};
      }
    });
  }
  warp.each([&](int lane) {
    if (lane == 0) p.blanks[place] = blank;
  });
  warp.publish(p.ready + place, static_cast<unsigned>(count) + 1);
}

}  // namespace oasr::ctc
