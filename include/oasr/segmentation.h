// Where to cut audio that is longer than a model's window.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace oasr {

// Half-open ranges of samples, in order, that cover [0, n) exactly once, each at most `limit` long.
using Windows = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Cuts `samples` (n floats, full scale = 1, mono) where the speaker pauses.
//
// A cut is searched in the last third of a window; the last two windows share what is left, so that no
// window is shorter than limit / 4 (n > limit >= 4). In the search range the level around each 10 ms point is
// the energy under a triangular weight of 0.2 s on either side; the longest run of points within 3 dB of the
// lowest level (or under a level of two 16-bit steps, which counts as silence) is the pause, and the cut
// is its middle. Ties go to the earlier pause. Energies are integers, so every machine cuts at the same sample.
//
// Requires limit >= 1, sample_rate >= 1, n >= 0. n == 0 gives no window.
Windows plan_windows(const float* samples, std::int64_t n, std::int64_t sample_rate, std::int64_t limit);

struct Cut {
  std::int64_t position;  // start < position <= start + limit
  bool in_pause;          // whether the speaker pauses there
};

// The first cut that `plan_windows` would make behind `start` in samples[0, n), where n - start > limit.
//
// It depends on nothing before start - 0.2 s, and on nothing behind the larger of start + limit + 0.2 s and
// start + 5 / 3 limit: so a recording can be cut while it is still being read. A cut is in a pause when the
// level there is 10 dB or more below the mean level of samples[start, start + limit), or counts as silence.
Cut next_cut(const float* samples, std::int64_t n, std::int64_t start, std::int64_t sample_rate,
             std::int64_t limit);

}  // namespace oasr
