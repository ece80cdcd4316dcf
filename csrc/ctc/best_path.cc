#include "best_path.h"

namespace oasr::ctc {

void BestPath::step(int frame, const float* log_probs, Index vocab, bool after_gap) {
  // Here blank competes like any other token.
  constexpr int kNone = -1;
  const std::vector<Key>& best = finder_.best(log_probs, vocab, kNone, 1);
  score_ += static_cast<double>(best.empty() ? nothing() : score_of(best.front()));
  const int token = best.empty() ? blank_id_ : static_cast<int>(index_of(best.front()));
  if (token != blank_id_ && (after_gap || token != before_)) emissions_.push_back({token, frame});
  before_ = token;
}

}  // namespace oasr::ctc
