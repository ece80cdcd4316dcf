// Prefix beam search over one row, frame by frame.
#pragma once

#include <cstdint>
#include <vector>

#include "candidates.h"
#include "oasr/ctc_common.h"
#include "oasr/ctc_search.h"

namespace oasr::ctc {

// A prefix of the beam. Scores are relative to the best prefix of the frame, so that float32 is enough at any length.
// A score from elsewhere (a language model, hot words) would be one more member, added where `total` is ranked.
struct Beam {
  float total, blank, nonblank;  // log-probability of all alignments; of those that end in blank; in `last`
  int last;                      // last token, -1 for the empty prefix
  int node;                      // its end in the tree of tokens, -1 for the empty prefix
  int length;
  Hash hash, parent_hash;        // of the prefix, and of the one without `last`
  int parent;                    // where in the beam the one without `last` is, -1 if it is not there
};

struct Node {
  int parent, token, frame;
};

struct Result {
  double score;
  int length, node;
};

class PrefixBeam {
 public:
  PrefixBeam(int beam_size, int blank_id, Index vocab);

  // Consumes the log-probabilities of a frame. `after_gap`: frames between this one and the one before were left out,
  // which counts as blank.
  void step(int frame, const float* log_probs, bool after_gap);

  // The prefixes by score, best first; never none.
  std::vector<Result> results() const;
  const Node& node(int index) const { return nodes_[static_cast<std::size_t>(index)]; }

 private:
  void start(int frame, const float* log_probs);
  void rank_beams();
  void stay_all(const float* log_probs);
  void extend_all();
  void keep_best(int frame);
  void find_parents();
  void set_ranks(bool present);
  Beam extension(const Beam& from, int token, float score, int frame);
  Beam kept(std::size_t slot, float score, int frame);

  int beam_size_, blank_id_;
  Index vocab_;
  bool started_ = false, sorted_ = false;
  double offset_ = 0;  // what has been subtracted from the scores
  std::vector<Beam> beams_, next_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> order_;  // beams from best to worst
  std::vector<Stay> stays_;
  TokenFinder finder_;
  std::vector<Key> tokens_, keys_;
  std::vector<int> rank_of_;        // token -> rank among the frame's best, -1
  std::vector<char> merged_;        // (beam, rank): that extension is a prefix of the beam already
};

}  // namespace oasr::ctc
