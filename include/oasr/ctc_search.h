// CTC decoding on a CPU: prefix beam search, and the best path.
//
// The prefix beam search of Hannun et al. 2014 ("First-Pass Large Vocabulary Continuous Speech Recognition using
// Bi-Directional Recurrent DNNs") without a language model. include/oasr/ctc_beam.cuh is the same search on a GPU and
// gives the same bits.
#pragma once

#include <cstdint>

namespace oasr::ctc {

using Index = std::ptrdiff_t;

// (rows, frames, vocab) float32 log-probabilities; the tokens of a frame lie side by side. NaN counts as minus infinity.
struct Posteriors {
  const float* data;
  Index rows, frames, vocab;
  Index row_stride, frame_stride;  // in elements
  const std::int64_t* lengths;     // (rows,), 0 to frames: what lies behind is never read
};

struct Search {
  int beam_size;      // >= 1; 1 is the best path, collapsed
  int blank_id;       // 0 to vocab - 1
  float skip_from;    // frames whose blank log-probability is not below this are left out, score and all
  int nbest;          // 1 to beam_size
};

// Writes rows * nbest * (kHeader + 3 * frames) integers (ctc_common.h says which); places behind a length are 0.
//
// Hypotheses come best first. Of a beam, the score is the log-probability of all alignments that were kept; of the
// best path, its own. Equal scores are ordered by the lower flat index (beam * vocab + token), equal tokens of a frame by
// the lower id. Frames count from the row's start, left-out ones included. A row without frames, or without a
// prefix of probability > 0, gives one empty hypothesis, in the second case with a score of minus infinity.
//
// Rows are shared among the threads of thread_pool.h; a row's result does not depend on the others. Requires
// beam_size * vocab < 2^32.
void decode(const Posteriors& posteriors, const Search& search, std::int32_t* out);

}  // namespace oasr::ctc
