// The best tokens of a frame.
#pragma once

#include <vector>

#include "oasr/ctc_common.h"
#include "oasr/ctc_search.h"

namespace oasr::ctc {

class TokenFinder {
 public:
  // Keys of the `count` best tokens other than blank, best first; those of probability 0 are left out. They stay valid
  // until the next call. A `blank_id` of -1 leaves nothing out.
  const std::vector<Key>& best(const float* frame, Index vocab, int blank_id, std::size_t count);

 private:
  void find_maxima(const float* frame, std::size_t vocab, int blank_id);

  std::vector<float> maxima_, sorted_;
  std::vector<Key> keys_;
};

}  // namespace oasr::ctc
