// How a walker sees the frames of its row: those that are not left out, as soon as they are prepared.
#pragma once

#include "oasr/ctc_problem.cuh"
#include "oasr/ctc_warp.cuh"

namespace oasr::ctc {

// What is known of the frames of the present window and the one before.
struct FrameMemory {
  int count[2 * kLanes];     // prepared tokens
  float blank[2 * kLanes];
};

// A frame of the walk.
struct Frame {
  int t, count;
  float blank;
};

template <class W>
class Frames {
 public:
  OASR_CTC_DEVICE Frames(const W& warp, const Problem& p, FrameMemory& memory, int row)
      : warp_(warp), p_(p), memory_(memory), row_(row), length_(p.lengths[row]) {}

  // The first kept frame at or behind `t`; its `t` is -1 behind the last.
  OASR_CTC_DEVICE Frame next(int t) {
    while (t < length_) {
      if (t / kLanes != window_) load(t / kLanes);
      const unsigned left = kept_ >> (t % kLanes);
      if (left != 0) {
        while ((kept_ >> (t % kLanes) & 1) == 0) ++t;
        return {t, memory_.count[t % (2 * kLanes)], memory_.blank[t % (2 * kLanes)]};
      }
      t = (window_ + 1) * kLanes;
    }
    return {-1, 0, 0};
  }

 private:
  // Every lane waits for one frame, so that the cost of a look is shared by as many frames as there are lanes.
  OASR_CTC_DEVICE void load(int window) {
    window_ = window;
    kept_ = warp_.vote([&](int lane) {
      const int t = window * kLanes + lane;
      if (t >= length_) return false;
      const long long place = p_.place(row_, t);
      memory_.count[t % (2 * kLanes)] = static_cast<int>(W::await(p_.ready + place)) - 1;
      const float blank = W::fresh(p_.blanks + place);
      memory_.blank[t % (2 * kLanes)] = blank;
      return blank < p_.skip_from;
    });
    // A barrier alone: a vote does not order what the lanes have written to shared memory.
    warp_.each([](int) {});
  }

  const W& warp_;
  const Problem& p_;
  FrameMemory& memory_;
  const int row_, length_;
  int window_ = -1;
  unsigned kept_ = 0;
};

}  // namespace oasr::ctc
