// The best path of one row by one warp: the most probable token of every frame, repeats and blanks taken out.
#pragma once

#include "oasr/ctc_problem.cuh"
#include "oasr/ctc_results.cuh"
#include "oasr/ctc_warp.cuh"

namespace oasr::ctc {

struct PathMemory {
  int token[kLanes];  // of each frame of a window: a token, kBlankHere, or kLeftOut
  float value[kLanes];
  int length;
};

constexpr int kBlankHere = -1, kLeftOut = -2;

template <class W>
class BestPath {
 public:
  OASR_CTC_DEVICE BestPath(const W& warp, const Problem& p, PathMemory& memory, int row)
      : warp_(warp), p_(p), m_(memory), row_(row) {}

  OASR_CTC_DEVICE void run() {
    const int frames = p_.lengths[row_];
    int length = 0, before = kBlankHere;
    double score = 0;
    for (int first = 0; first < frames; first += kLanes) {
      warp_.each([&](int lane) { look(first + lane, lane, frames); });
      // In the order of the frames, so that the sum has the same bits everywhere.
      for (int i = 0; i < kLanes && first + i < frames; ++i) {
        const int token = m_.token[i];
        if (token >= 0 && token != before) emit(length++, token, first + i);
        if (token != kLeftOut) score += static_cast<double>(m_.value[i]);
        before = token;
      }
      // A barrier alone: the next window overwrites what has just been read.
      warp_.each([](int) {});
    }
    warp_.each([&](int lane) {
      if (lane == 0) write_header(hypothesis(p_, row_, 0), length, score);
    });
    write_posteriors(warp_, p_, row_, 0, length);
  }

 private:
  OASR_CTC_DEVICE void look(int t, int lane, int frames) {
    if (t >= frames) return;
    const long long place = p_.place(row_, t);
    const unsigned count = W::await(p_.ready + place) - 1;
    const float blank = W::fresh(p_.blanks + place);
    int token = blank < p_.skip_from ? kBlankHere : kLeftOut;
    float value = blank;
    if (count > 0) {
      // At a beam of 1 two tokens are prepared.
      const int best = W::fresh(&p_.tokens[place * 2].id);
      const float best_value = W::fresh(&p_.tokens[place * 2].value);
      if (best_value > blank || (best_value == blank && best < p_.blank_id)) {
        token = best;
        value = best_value;
      }
    }
    m_.token[lane] = token;
    m_.value[lane] = value;
  }

  // Every lane writes the same.
  OASR_CTC_DEVICE void emit(int place, int token, int t) {
    int* const tokens = hypothesis(p_, row_, 0) + kHeader;
    tokens[place] = token;
    tokens[place + p_.frames] = t;
  }

  const W& warp_;
  const Problem& p_;
  PathMemory& m_;
  const int row_;
};

}  // namespace oasr::ctc
