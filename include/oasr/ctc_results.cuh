// From the tree of tokens to the results of a row.
#pragma once

#include "oasr/ctc_problem.cuh"
#include "oasr/ctc_warp.cuh"

namespace oasr::ctc {

OASR_CTC_DEVICE int* hypothesis(const Problem& p, int row, int n) {
  return p.out + (static_cast<long long>(row) * p.nbest + n) * (kHeader + 3ll * p.frames);
}

OASR_CTC_DEVICE void write_header(int* out, int length, double score) {
  union {
    double value;
    int halves[2];
  } bits;
  bits.value = score;
  out[0] = length;
  out[1] = 0;
  out[2] = bits.halves[0];
  out[3] = bits.halves[1];
}

// Fills in the log-probabilities of a hypothesis whose tokens and frames have been written. The posterior may peak a
// frame after the emission (never before): the larger of the two counts.
template <class W>
OASR_CTC_DEVICE void write_posteriors(const W& warp, const Problem& p, int row, int n, int length) {
  int* const tokens = hypothesis(p, row, n) + kHeader;
  const int* const frames = tokens + p.frames;
  warp.each([&](int lane) {
    for (int i = lane; i < length; i += kLanes) {
      const int t = frames[i];
      float value = posterior<W>(p, row, t, tokens[i]);
      if (t + 1 < p.lengths[row]) {
        const float later = posterior<W>(p, row, t + 1, tokens[i]);
        value = later > value ? later : value;
      }
      tokens[i + 2ll * p.frames] = static_cast<int>(bits_of(value));
    }
  });
}

}  // namespace oasr::ctc
