#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "best_path.h"
#include "oasr/ctc_search.h"
#include "oasr/thread_pool.h"
#include "prefix_beam.h"

namespace oasr::ctc {
namespace {

// One row of the posteriors and where its results go.
struct Row {
  const float* data;
  Index frames, vocab, stride;
  std::int32_t* out;
  Index places;  // of one hypothesis for its tokens

  const float* frame(Index t) const { return data + t * stride; }
};

// Calls step(t, values, after_gap) for every frame that is not left out.
template <class Step>
void each_frame(const Row& row, const Search& search, Step step) {
  Index before = -1;
  for (Index t = 0; t < row.frames; ++t) {
    if (!(log_prob(row.frame(t)[search.blank_id]) < search.skip_from)) continue;
    step(static_cast<int>(t), row.frame(t), t != before + 1 && before >= 0);
    before = t;
  }
}

// Writes hypothesis `n`, whose last token comes first in `emissions`.
void write(const Row& row, int n, double score, const std::vector<Emission>& emissions) {
  std::int32_t* const header = row.out + n * (kHeader + 3 * row.places);
  std::int32_t* const tokens = header + kHeader;
  header[0] = static_cast<std::int32_t>(emissions.size());
  std::memcpy(header + 2, &score, sizeof score);
  for (std::size_t i = 0; i < emissions.size(); ++i) {
    const auto [token, frame] = emissions[emissions.size() - 1 - i];
    // The posterior may peak a frame after the emission (never before): the larger of the two counts.
    float value = log_prob(row.frame(frame)[token]);
    if (frame + 1 < row.frames) value = std::max(value, log_prob(row.frame(frame + 1)[token]));
    tokens[i] = token;
    tokens[static_cast<Index>(i) + row.places] = frame;
    std::memcpy(&tokens[static_cast<Index>(i) + 2 * row.places], &value, sizeof value);
  }
}

void decode_best_path(const Row& row, const Search& search) {
  BestPath path(search.blank_id);
  each_frame(row, search, [&](int t, const float* x, bool gap) { path.step(t, x, row.vocab, gap); });
  std::vector<Emission> emissions = path.emissions();
  std::reverse(emissions.begin(), emissions.end());
  write(row, 0, path.score(), emissions);
}

void decode_beam(const Row& row, const Search& search) {
  PrefixBeam beam(search.beam_size, search.blank_id, row.vocab);
  each_frame(row, search, [&](int t, const float* x, bool gap) { beam.step(t, x, gap); });
  const std::vector<Result> results = beam.results();
  std::vector<Emission> emissions;
  for (int n = 0; n < std::min(search.nbest, static_cast<int>(results.size())); ++n) {
    emissions.clear();
    for (int at = results[static_cast<std::size_t>(n)].node; at >= 0; at = beam.node(at).parent) {
      emissions.push_back({beam.node(at).token, beam.node(at).frame});
    }
    write(row, n, results[static_cast<std::size_t>(n)].score, emissions);
  }
}

}  // namespace

void decode(const Posteriors& posteriors, const Search& search, std::int32_t* out) {
  const Index hypothesis = kHeader + 3 * posteriors.frames, each = hypothesis * search.nbest;
  parallel_for(posteriors.rows, [&](std::ptrdiff_t r) {
    const Row row{posteriors.data + r * posteriors.row_stride, posteriors.lengths[r], posteriors.vocab,
                  posteriors.frame_stride, out + r * each, posteriors.frames};
    std::fill(row.out, row.out + each, 0);
    for (int n = 0; n < search.nbest; ++n) row.out[n * hypothesis] = -1;
    if (search.beam_size == 1) return decode_best_path(row, search);
    decode_beam(row, search);
  });
}

}  // namespace oasr::ctc
