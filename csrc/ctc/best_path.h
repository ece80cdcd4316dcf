// The best path of one row: the most probable token of every frame, repeats and blanks taken out.
#pragma once

#include <vector>

#include "candidates.h"
#include "oasr/ctc_search.h"

namespace oasr::ctc {

struct Emission {
  int token, frame;
};

class BestPath {
 public:
  explicit BestPath(int blank_id) : blank_id_(blank_id), before_(blank_id) {}

  // Consumes the log-probabilities of a frame, as PrefixBeam::step does.
  void step(int frame, const float* log_probs, Index vocab, bool after_gap);

  const std::vector<Emission>& emissions() const { return emissions_; }
  double score() const { return score_; }

 private:
  int blank_id_, before_;
  double score_ = 0;
  std::vector<Emission> emissions_;
  TokenFinder finder_;
};

}  // namespace oasr::ctc
