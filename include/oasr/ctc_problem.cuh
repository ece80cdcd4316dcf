// The arguments of the CTC kernel and what its warps tell each other.
#pragma once

#include "oasr/ctc_common.h"
#include "oasr/ctc_warp.cuh"

namespace oasr::ctc {

constexpr int kMostBeams = 32;                // a lane each
constexpr int kMostTokens = 2 * kMostBeams;   // of a frame that a beam can need

// A token at the end of a prefix. Node t * beam + slot is made in frame t.
struct alignas(8) TreeNode {
  int parent, token;
};

// One of the best tokens of a frame: its log-probability there, and in the frame after.
struct Candidate {
  int id;
  float value, following;
};

struct Problem {
  // Input: (rows, frames, vocab) floats, see Posteriors in ctc_search.h.
  const float* log_probs;
  long long row_stride, frame_stride;
  const int* lengths;
  int rows, frames, vocab;
  // The search, see Search in ctc_search.h.
  int blank_id, nbest;
  float skip_from;
  // What is found in each frame, written by one warp and read by another. `ready` and `tickets` start at 0.
  unsigned* tickets;   // frames handed out so far
  unsigned* ready;     // (rows, frames): 1 + the number of tokens, once they are there
  float* blanks;       // (rows, frames): log-probability of blank
  Candidate* tokens;   // (rows, frames, 2 * beam): the best tokens, best first
  TreeNode* nodes;     // (rows, frames, beam)
  int* out;            // results as ctc_common.h describes them

  OASR_CTC_DEVICE long long place(int row, int t) const { return static_cast<long long>(row) * frames + t; }
  OASR_CTC_DEVICE const float* frame(int row, int t) const { return log_probs + row * row_stride + t * frame_stride; }
};

// The log-probability of a token in a frame.
template <class W>
OASR_CTC_DEVICE float posterior(const Problem& p, int row, int t, int token) {
  return log_prob(W::read(p.frame(row, t) + token));
}

}  // namespace oasr::ctc
