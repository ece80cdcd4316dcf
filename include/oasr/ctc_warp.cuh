// What the CTC kernel asks of the warp that runs it.
//
// The kernel is written in phases: `each` runs a function once for every lane and puts a barrier behind it, so that
// what lanes write to shared memory in one phase the others may read in the next. A variable that is kept between
// phases is one for the warp (every lane computes the same value) or a Lane<T>, one for each lane. On a host,
// tests/kernels/ctc_emulation.cc implements the same interface with loops.
#pragma once

#include "oasr/ctc_common.h"

#ifdef __CUDACC__
#define OASR_CTC_DEVICE __device__ __forceinline__
#else
#define OASR_CTC_DEVICE inline
#endif

namespace oasr::ctc {

constexpr int kLanes = 32;

#ifdef __CUDACC__

struct Warp {
  static constexpr unsigned kAll = 0xffffffffu;
  int lane = static_cast<int>(threadIdx.x % kLanes);

  template <class T>
  struct Lane {
    T value;
    OASR_CTC_DEVICE T& operator[](int) { return value; }
  };

  // Numbers the lanes that want a place; all lanes ask together.
  class Counter {
   public:
    OASR_CTC_DEVICE int claim(bool wanted) {
      const unsigned all = __ballot_sync(kAll, wanted), before = (1u << (threadIdx.x % kLanes)) - 1;
      const int place = count_ + __popc(all & before);
      count_ += __popc(all);
      return place;
    }
    OASR_CTC_DEVICE int count() const { return count_; }

   private:
    int count_ = 0;
  };

  template <class F>
  OASR_CTC_DEVICE void each(F f) const {
    f(lane);
    __syncwarp();
  }
  template <class F>
  OASR_CTC_DEVICE unsigned vote(F f) const {
    return __ballot_sync(kAll, f(lane));
  }

  // Memory. `read` is for what nobody writes during the launch, `fresh` for what other blocks have published.
  OASR_CTC_DEVICE static float read(const float* from) { return __ldg(from); }
  template <class T>
  OASR_CTC_DEVICE static T fresh(const T* from) {
    return __ldcg(from);
  }
  OASR_CTC_DEVICE static void mark(unsigned* word, unsigned bits) { atomicOr(word, bits); }

  // The next number, the same for all lanes.
  OASR_CTC_DEVICE unsigned ticket(unsigned* counter) const {
    const unsigned mine = lane == 0 ? atomicAdd(counter, 1u) : 0;
    return __shfl_sync(kAll, mine, 0);
  }

  // Makes everything that the warp has written visible to whoever sees `value` (not 0) in the flag.
  OASR_CTC_DEVICE void publish(unsigned* flag, unsigned value) const {
    __syncwarp();
    if (lane == 0) {
      __threadfence();
      asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
    }
  }
  // Waits for a flag of one's own and returns its value; the warp's next barrier passes on what it stands for.
  OASR_CTC_DEVICE static unsigned await(const unsigned* flag) {
    unsigned value;
    while (true) {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
      if (value != 0) return value;
      __nanosleep(100);
    }
  }
};

#endif

}  // namespace oasr::ctc
