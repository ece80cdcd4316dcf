// CTC decoding on a GPU: prefix beam search of a batch in one launch.
//
// The first warp of block r walks through row r, frame by frame, with the beam in shared memory; a step is a few hundred
// instructions of one warp and waits for nothing but that warp. All other warps run ahead of the walkers: they take
// frames, earliest first whatever the row, find the best 2 * beam tokens of each and publish them. Frames are handed
// out by a counter and nobody but walkers waits, so whichever blocks are resident, the work gets done.
//
// Needs one row of results, tree nodes and candidates in global memory for each frame (Problem); log-probabilities are
// read once, and again where a beam's own token, a frame ahead or an emission is looked up.
#pragma once

#include "oasr/ctc_best_path.cuh"
#include "oasr/ctc_candidates.cuh"
#include "oasr/ctc_common.h"
#include "oasr/ctc_problem.cuh"
#include "oasr/ctc_walk.cuh"
#include "oasr/ctc_warp.cuh"

namespace oasr::ctc {

union WalkerMemory {
  WalkMemory walk;
  PathMemory path;
};

// Prepares frames until none is left. Frames behind a row's end need no preparation.
template <class W>
OASR_CTC_DEVICE void prepare_frames(const W& warp, const Problem& p, FinderMemory& memory, int beam) {
  const unsigned rows = static_cast<unsigned>(p.rows), frames = static_cast<unsigned>(p.frames);
  for (unsigned ticket = warp.ticket(p.tickets); ticket < rows * frames; ticket = warp.ticket(p.tickets)) {
    const int t = static_cast<int>(ticket / rows), row = static_cast<int>(ticket % rows);
    if (t < p.lengths[row]) prepare_frame(warp, p, memory, row, t, beam);
  }
}

template <class W>
OASR_CTC_DEVICE void decode_row(const W& warp, const Problem& p, WalkerMemory& memory, int row, int beam) {
  if (beam == 1) {
    BestPath<W>(warp, p, memory.path, row).run();
  } else {
    Walk<W>(warp, p, memory.walk, row, beam).run();
  }
}

#ifdef __CUDACC__

constexpr int kWarps = 8;  // of a block

// Launched with kWarps * 32 threads and at least `rows` blocks. OASR_CTC_BEAM is the beam, 1 to 32.
extern "C" __global__ void __launch_bounds__(kWarps* kLanes, 4)
    oasr_ctc_beam(const float* log_probs, long long row_stride, long long frame_stride, const int* lengths,
                  long long rows, long long frames, long long vocab, long long blank_id, float skip_from,
                  long long nbest, unsigned* flags, char* work, int* out) {
  __shared__ WalkerMemory walker;
  __shared__ FinderMemory finders[kWarps];
  const long long all = rows * frames;
  // What needs the largest alignment comes first, so that all three are aligned.
  TreeNode* const nodes = reinterpret_cast<TreeNode*>(work);
  Candidate* const tokens = reinterpret_cast<Candidate*>(nodes + all * OASR_CTC_BEAM);
  float* const blanks = reinterpret_cast<float*>(tokens + all * 2 * OASR_CTC_BEAM);
  const Problem p = {log_probs,
                     row_stride,
                     frame_stride,
                     lengths,
                     static_cast<int>(rows),
                     static_cast<int>(frames),
                     static_cast<int>(vocab),
                     static_cast<int>(blank_id),
                     static_cast<int>(nbest),
                     skip_from,
                     flags,
                     flags + 1,
                     blanks,
                     tokens,
                     nodes,
                     out};
  const Warp warp;
  const int mine = static_cast<int>(threadIdx.x) / kLanes;
  if (mine == 0 && blockIdx.x < rows) decode_row(warp, p, walker, static_cast<int>(blockIdx.x), OASR_CTC_BEAM);
  // A walker that is done helps with what is left of other rows.
  prepare_frames(warp, p, finders[mine], OASR_CTC_BEAM);
}

#endif

}  // namespace oasr::ctc
