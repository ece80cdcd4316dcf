#include <algorithm>

#include "oasr/alignment.h"

namespace oasr::alignment {
namespace {

enum Step : std::uint8_t { kBoth, kToken, kFrame };

// How the best path reaches each cell, row by row.
std::vector<Step> best_steps(const float* scores, std::size_t tokens, std::size_t frames) {
  std::vector<Step> steps(tokens * frames);
  // Sums of two rows are enough to go on; the way back needs a byte of every cell.
  std::vector<double> above(frames), row(frames);
  for (std::size_t i = 0; i < tokens; ++i) {
    for (std::size_t j = 0; j < frames; ++j) {
      auto& step = steps[i * frames + j];
      double best = 0;
      if (i == 0) {
        step = kFrame;
        if (j > 0) best = row[j - 1];
      } else if (j == 0) {
        step = kToken;
        best = above[0];
      } else {
        const double both = above[j - 1], token = above[j], frame = row[j - 1];
        // Comparisons with NaN are false, so that a poisoned matrix still gives a path.
        step = both <= token && both <= frame ? kBoth : token <= frame ? kToken : kFrame;
        best = step == kBoth ? both : step == kToken ? token : frame;
      }
      row[j] = best - static_cast<double>(scores[i * frames + j]);
    }
    above.swap(row);
  }
  return steps;
}

}  // namespace

std::vector<Span> warp(const float* scores, std::int64_t tokens, std::int64_t frames) {
  const auto rows = static_cast<std::size_t>(tokens), columns = static_cast<std::size_t>(frames);
  const auto steps = best_steps(scores, rows, columns);
  std::vector<Span> spans(rows);
  auto i = rows - 1, j = columns - 1;
  spans[i].end = frames;
  // Backwards: a step to another token fixes the start of this one, and the end of the one before it.
  while (i > 0 || j > 0) {
    const auto step = steps[i * columns + j];
    if (step != kFrame) {
      spans[i].start = static_cast<std::int64_t>(j);
      --i;
    }
    if (step != kToken) --j;
    if (step != kFrame) spans[i].end = static_cast<std::int64_t>(j) + 1;
  }
  spans[0].start = 0;
  return spans;
}

}  // namespace oasr::alignment
