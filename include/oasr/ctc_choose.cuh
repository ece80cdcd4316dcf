// The state of a beam, and which of its candidates make the next one.
#pragma once

#include "oasr/ctc_common.h"
#include "oasr/ctc_frames.cuh"
#include "oasr/ctc_problem.cuh"
#include "oasr/ctc_warp.cuh"

namespace oasr::ctc {

constexpr int kMostPairs = 274;  // the sum of tokens_taken(rank, 32) over the ranks
constexpr int kMostKeys = kLanes + (kMostPairs + kLanes - 1) / kLanes * kLanes;

// The prefixes of the beam, an array for each member. An empty slot has a total of minus infinity and kNoPrefix for its
// hash. A score from elsewhere (a language model, hot words) would be one more array, added where a key is made
// of `total`.
struct Slots {
  float total[kLanes], blank[kLanes], nonblank[kLanes];
  int last[kLanes], node[kLanes], length[kLanes], parent[kLanes];
  Hash hash[kLanes], parent_hash[kLanes];
  float last_log_prob[kLanes];  // of `last` in the frame that comes next
};

// The best tokens of a frame, best first; places that are empty hold -1 and minus infinity.
struct Tokens {
  alignas(16) int id[kMostTokens];
  float value[kMostTokens], following[kMostTokens];
};

struct WalkMemory {
  Slots slots[2];
  Tokens tokens;
  FrameMemory frames;
  Stay stays[kLanes];
  float later[kLanes];             // log-probability of `last` in the next frame
  int rank_of_last[kLanes];        // of `last` among the frame's tokens, -1
  unsigned merged[kLanes][2];      // bit r: the extension by token r is a prefix of the beam already
  int order[kLanes];               // slots from best to worst
  unsigned short pairs[kMostPairs];  // candidates: slot * 256 + rank of the token
  Key keys[kMostKeys];             // of the slots as they are, a lane each; then of the pairs
  Key survivors[kMostKeys];
  unsigned short sources[kMostKeys];  // survivors' places in `keys`
  Key bound;
  int chosen[kLanes];              // places in `keys` of those that make the next beam, best first
  float scores[kLanes];
};

template <class W>
class Chooser {
 public:
  OASR_CTC_DEVICE Chooser(const W& warp, const Problem& p, WalkMemory& memory, int beam)
      : warp_(warp), p_(p), m_(memory), beam_(beam) {
    for (int r = 0; r < 2 * beam_; ++r) pairs_ += beams_taking(r, beam_);
    keys_ = kLanes + pairs_;
  }

  // Lists the pairs for slots in `order`: by rank of the token, then of the slot, so that the first `beam` of them are
  // the best token of every slot.
  OASR_CTC_DEVICE void list_pairs() {
    warp_.each([&](int lane) {
      int place = lane;
      for (int r = 0; lane < beam_ && r < tokens_taken(lane, beam_); ++r) {
        m_.pairs[place] = static_cast<unsigned short>(m_.order[lane] << 8 | r);
        place += beams_taking(r, beam_);
      }
    });
  }

  // Fills `chosen` and `scores` and returns how many there are. Needs the members before `keys`.
  OASR_CTC_DEVICE int choose(const Slots& slots) {
    warp_.each([&](int lane) {
      m_.keys[lane] = lane < beam_ ? key_of(m_.stays[lane].total, flat(lane, p_.blank_id)) : 0;
#pragma unroll 4
      for (int n = lane; n < pairs_; n += kLanes) m_.keys[kLanes + n] = pair_key(slots, n);
      if (lane == 0) m_.bound = 0;
    });
    // Most candidates are far behind. Of the slots as they are and with their best token, the beam-th best bounds
    // what can be chosen; only what reaches it is ranked.
    warp_.each([&](int lane) {
      if (lane >= beam_) return;
      for (int n = lane; n <= lane + kLanes; n += kLanes) {
        const Key mine = m_.keys[n];
        const int place = rank(m_.keys, beam_, mine) + rank(m_.keys + kLanes, beam_, mine);
        // Keys are all different, so at most one lane writes.
        if (place == beam_ - 1 && mine != 0) m_.bound = mine;
      }
    });
    typename W::Counter survivors;
    warp_.each([&](int lane) {
      const Key bound = m_.bound;
      for (int first = 0; first < keys_; first += kLanes) {
        const int n = first + lane;
        const Key key = n < keys_ ? m_.keys[n] : 0;
        const bool survives = key != 0 && key >= bound;
        const int place = survivors.claim(survives);
        if (!survives) continue;
        m_.survivors[place] = key;
        m_.sources[place] = static_cast<unsigned short>(n);
      }
    });
    const int count = survivors.count();
    warp_.each([&](int lane) {
      for (int i = lane; i < count; i += kLanes) {
        const int place = rank(m_.survivors, count, m_.survivors[i]);
        if (place >= beam_) continue;
        m_.chosen[place] = m_.sources[i];
        m_.scores[place] = score_of(m_.survivors[i]);
      }
    });
    return count < beam_ ? count : beam_;
  }

  // What the place `n` in `keys` stands for: a slot and, unless that is a slot as it is, a token's rank.
  OASR_CTC_DEVICE static bool is_pair(int n) { return n >= kLanes; }
  OASR_CTC_DEVICE int slot(int n) const { return is_pair(n) ? m_.pairs[n - kLanes] >> 8 : n; }
  OASR_CTC_DEVICE int token_rank(int n) const { return m_.pairs[n - kLanes] & 255; }

 private:
  // How many keys are above `mine`: independent comparisons, so that no lane waits for another.
  OASR_CTC_DEVICE static int rank(const Key* keys, int count, Key mine) {
    int above = 0;
#pragma unroll 8
    for (int j = 0; j < count; ++j) above += keys[j] > mine;
    return above;
  }

  OASR_CTC_DEVICE unsigned flat(int slot, int token) const {
    return static_cast<unsigned>(slot) * static_cast<unsigned>(p_.vocab) + static_cast<unsigned>(token);
  }

  // Everything is read before anything is decided: a warp waits for memory once.
  OASR_CTC_DEVICE Key pair_key(const Slots& slots, int n) const {
    const int slot = m_.pairs[n] >> 8, r = m_.pairs[n] & 255;
    const unsigned merged = m_.merged[slot][r / 32];
    const int rank_of_last = m_.rank_of_last[slot], token = m_.tokens.id[r];
    const float blank = slots.blank[slot], total = slots.total[slot], value = m_.tokens.value[r];
    // The same label again is a new one only after a blank.
    const Key key = key_of((rank_of_last == r ? blank : total) + value, flat(slot, token));
    return (merged >> (r % 32) & 1) != 0 ? 0 : key;
  }

  const W& warp_;
  const Problem& p_;
  WalkMemory& m_;
  const int beam_;
  int pairs_ = 0, keys_;
};

}  // namespace oasr::ctc
