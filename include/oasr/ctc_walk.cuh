// Prefix beam search over one row by one warp, a lane a prefix; the same search as csrc/ctc/prefix_beam.cc.
#pragma once

#include "oasr/ctc_choose.cuh"
#include "oasr/ctc_common.h"
#include "oasr/ctc_frames.cuh"
#include "oasr/ctc_problem.cuh"
#include "oasr/ctc_results.cuh"
#include "oasr/ctc_warp.cuh"

namespace oasr::ctc {

template <class W>
class Walk {
 public:
  OASR_CTC_DEVICE Walk(const W& warp, const Problem& p, WalkMemory& memory, int row, int beam)
      : warp_(warp), p_(p), m_(memory), row_(row), beam_(beam), chooser_(warp, p, memory, beam),
        now_(&memory.slots[0]), next_(&memory.slots[1]) {}

  OASR_CTC_DEVICE void run() {
    Frames<W> frames(warp_, p_, m_.frames, row_);
    Frame now = frames.next(0);
    if (now.t < 0) return write(false);
    Frame after = frames.next(now.t + 1);
    start(now, after);
    while (after.t >= 0) {
      if (after.t != now.t + 1) fold_blank();
      now = after;
      after = frames.next(now.t + 1);
      step(now, after);
    }
    write(true);
  }

 private:
  struct Fetched {
    int id[2];
    float value[2], following[2];
  };

  OASR_CTC_DEVICE Fetched fetch(const Frame& frame, int lane) const {
    Fetched found = {{-1, -1}, {nothing(), nothing()}, {nothing(), nothing()}};
    const Candidate* const first = p_.tokens + p_.place(row_, frame.t) * 2 * beam_ + lane;
#pragma unroll
    for (int h = 0; h < 2 && h * kLanes < 2 * beam_; ++h) {
      if (lane + h * kLanes >= frame.count) continue;
      found.id[h] = W::fresh(&first[h * kLanes].id);
      found.value[h] = W::fresh(&first[h * kLanes].value);
      found.following[h] = W::fresh(&first[h * kLanes].following);
    }
    return found;
  }

  OASR_CTC_DEVICE void keep_tokens(const Fetched& found, int lane) {
#pragma unroll
    for (int h = 0; h < 2 && h * kLanes < 2 * beam_; ++h) {
      m_.tokens.id[lane + h * kLanes] = found.id[h];
      m_.tokens.value[lane + h * kLanes] = found.value[h];
      m_.tokens.following[lane + h * kLanes] = found.following[h];
    }
  }

  // The first frame fills the beam with the best tokens and keeps the last slot for the empty prefix.
  OASR_CTC_DEVICE void start(const Frame& now, const Frame& after) {
    warp_.each([&](int lane) { keep_tokens(fetch(now, lane), lane); });
    const float best = m_.tokens.value[0], higher = best > now.blank ? best : now.blank;
    const float top = higher > nothing() ? higher : 0.0f;
    warp_.each([&](int lane) {
      if (lane >= beam_) return;
      clear(*now_, lane);
      m_.merged[lane][0] = m_.merged[lane][1] = 0;
      if (lane == beam_ - 1) {
        now_->total[lane] = now_->blank[lane] = now.blank - top;
        if (now.blank > nothing()) now_->hash[lane] = kEmptyPrefix;
      } else if (m_.tokens.id[lane] >= 0) {
        extend(*now_, lane, nullptr, 0, lane, now.t, after.t);
        now_->total[lane] = now_->nonblank[lane] = m_.tokens.value[lane] - top;
      }
    });
    offset_ = static_cast<double>(top);
    warp_.each([&](int lane) {
      keep_tokens(fetch(after, lane), lane);
      if (lane >= beam_) return;
      find_parent(*now_, lane);
      int rank = 0;
#pragma unroll 1
      for (int i = 0; i < beam_; ++i) {
        rank += now_->total[i] > now_->total[lane] || (now_->total[i] == now_->total[lane] && i < lane);
      }
      m_.order[rank] = lane;
    });
    chooser_.list_pairs();
    sorted_ = false;
  }

  // Frames were left out, which counts as blank.
  OASR_CTC_DEVICE void fold_blank() {
    warp_.each([&](int lane) {
      if (lane >= beam_) return;
      now_->blank[lane] = now_->total[lane];
      now_->nonblank[lane] = nothing();
    });
  }

  // One frame. What the next one needs from memory is asked for first and used last.
  OASR_CTC_DEVICE void step(const Frame& now, const Frame& after) {
    typename W::template Lane<Fetched> fetched;
    typename W::template Lane<float> later;
    warp_.each([&](int lane) {
      fetched[lane] = fetch(after, lane);
      if (lane >= beam_) return;
      const int last = now_->last[lane];
      later[lane] = after.t >= 0 && last >= 0 ? W::read(p_.frame(row_, after.t) + last) : nothing();
      stay_in(lane, now.blank);
    });
    const int live = chooser_.choose(*now_);
    const float top = live > 0 ? m_.scores[0] : 0.0f;
    warp_.each([&](int lane) {
      if (lane < beam_) m_.later[lane] = log_prob(later[lane]);
    });
    warp_.each([&](int lane) {
      if (lane >= beam_) return;
      m_.merged[lane][0] = m_.merged[lane][1] = 0;
      if (lane < live) {
        take(lane, m_.scores[lane], top, now.t, after.t);
      } else {
        clear(*next_, lane);
      }
    });
    warp_.each([&](int lane) {
      keep_tokens(fetched[lane], lane);
      if (lane >= beam_) return;
      find_parent(*next_, lane);
      m_.order[lane] = lane;
    });
    if (!sorted_) chooser_.list_pairs();  // scores fall along the beam from here on
    sorted_ = true;
    offset_ += static_cast<double>(top);
    // Two sets of slots: the next beam is made while all lanes still read the present one.
    Slots* const old = now_;
    now_ = next_;
    next_ = old;
  }

  // What the prefix is worth without a new token, the extension of its parent that leads to the same prefix included.
  OASR_CTC_DEVICE void stay_in(int slot, float blank) {
    const float last_log_prob = now_->last_log_prob[slot];
    const int last = now_->last[slot], parent = now_->parent[slot], from = parent >= 0 ? parent : 0;
    const float extended = now_->last[from] == last ? now_->blank[from] : now_->total[from];
    const float merged = parent >= 0 ? extended + last_log_prob : nothing();
    m_.stays[slot] = stay(now_->total[slot], now_->nonblank[slot], last_log_prob, blank, merged);
    int rank = -1;  // an empty prefix may find an empty place, which does no harm
#pragma unroll 16
    for (int r = 0; r < 2 * beam_; ++r) rank = m_.tokens.id[r] == last ? r : rank;
    m_.rank_of_last[slot] = rank;
    // Atomically, since several prefixes may have one parent.
    if (parent >= 0 && rank >= 0) W::mark(&m_.merged[parent][rank / 32], 1u << (rank % 32));
  }

  // Makes the next beam's `slot` of the candidate chosen for it.
  OASR_CTC_DEVICE void take(int slot, float score, float top, int t, int after) {
    const int n = m_.chosen[slot];
    if (Chooser<W>::is_pair(n)) {
      next_->blank[slot] = nothing();
      next_->total[slot] = next_->nonblank[slot] = score - top;
      extend(*next_, slot, now_, chooser_.slot(n), chooser_.token_rank(n), t, after);
      return;
    }
    next_->total[slot] = score - top;
    next_->blank[slot] = m_.stays[n].blank - top;
    next_->nonblank[slot] = m_.stays[n].nonblank - top;
    next_->last[slot] = now_->last[n];
    next_->node[slot] = now_->node[n];
    next_->length[slot] = now_->length[n];
    next_->hash[slot] = now_->hash[n];
    next_->parent_hash[slot] = now_->parent_hash[n];
    next_->last_log_prob[slot] = m_.later[n];
    // Most of it comes from its parent in this frame: here its last token was emitted. The node it had is left to
    // what grew from it.
    if (m_.stays[n].moved) next_->node[slot] = add_node(slot, now_->node[now_->parent[n]], now_->last[n], t);
  }

  // The prefix `from` of `beams` (null: the empty prefix) and the frame's r-th token.
  OASR_CTC_DEVICE void extend(Slots& to, int slot, const Slots* beams, int from, int r, int t, int after) {
    const int token = m_.tokens.id[r];
    const Hash before = beams != nullptr ? beams->hash[from] : kEmptyPrefix;
    to.last[slot] = token;
    to.node[slot] = add_node(slot, beams != nullptr ? beams->node[from] : -1, token, t);
    to.length[slot] = (beams != nullptr ? beams->length[from] : 0) + 1;
    to.hash[slot] = extended(before, token);
    to.parent_hash[slot] = before;
    to.last_log_prob[slot] = after == t + 1 ? m_.tokens.following[r]
                             : after >= 0   ? posterior<W>(p_, row_, after, token)
                                            : nothing();
  }

  OASR_CTC_DEVICE int add_node(int slot, int parent, int token, int t) {
    p_.nodes[p_.place(row_, t) * beam_ + slot] = {parent, token};
    return t * beam_ + slot;
  }

  OASR_CTC_DEVICE static void clear(Slots& slots, int slot) {
    slots.total[slot] = slots.blank[slot] = slots.nonblank[slot] = slots.last_log_prob[slot] = nothing();
    slots.last[slot] = slots.node[slot] = slots.parent[slot] = -1;
    slots.length[slot] = 0;
    // Two values that differ, or an empty slot would be taken for its own parent.
    slots.hash[slot] = kNoPrefix;
    slots.parent_hash[slot] = kNoParent;
  }

  OASR_CTC_DEVICE void find_parent(Slots& slots, int slot) const {
    const Hash wanted = slots.parent_hash[slot];
    int parent = -1;
#pragma unroll 8
    for (int i = 0; i < beam_; ++i) parent = slots.hash[i] == wanted ? i : parent;
    slots.parent[slot] = parent;
  }

  // The n best: tokens by walking up the tree, a lane a hypothesis.
  OASR_CTC_DEVICE void write(bool any) {
    const Problem& p = p_;
    warp_.each([&](int lane) {
      if (lane >= p.nbest) return;
      int* const out = hypothesis(p, row_, lane);
      const int slot = any ? m_.order[lane] : 0;
      if (!any || !(now_->total[slot] > nothing())) {
        // Nothing was heard, or nothing is possible: one empty hypothesis.
        return write_header(out, lane == 0 ? 0 : -1, any ? static_cast<double>(nothing()) : 0.0);
      }
      write_header(out, now_->length[slot], offset_ + static_cast<double>(now_->total[slot]));
      int* const tokens = out + kHeader;
      int node = now_->node[slot];
      for (int i = now_->length[slot] - 1; i >= 0; --i) {
        const TreeNode at = p.nodes[p.place(row_, 0) * beam_ + node];
        tokens[i] = at.token;
        tokens[i + p.frames] = node / beam_;
        node = at.parent;
      }
    });
    for (int n = 0; any && n < p.nbest; ++n) {
      const int slot = m_.order[n];
      if (now_->total[slot] > nothing()) write_posteriors(warp_, p, row_, n, now_->length[slot]);
    }
  }

  const W& warp_;
  const Problem& p_;
  WalkMemory& m_;
  const int row_, beam_;
  Chooser<W> chooser_;
  Slots* now_;
  Slots* next_;
  bool sorted_ = true;
  double offset_ = 0;  // what has been subtracted from the scores
};

}  // namespace oasr::ctc
