// The CTC kernel of include/oasr/ctc_beam.cuh on a CPU: its warps are loops, run one after another.
//
// Built by the tests with the compiler alone. `order` turns the lanes around: a phase in which one lane reads what
// another one writes in it gives another result then.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "oasr/ctc_beam.cuh"

namespace {

using namespace oasr::ctc;

struct HostWarp {
  int order = 0;

  template <class T>
  struct Lane {
    T values[kLanes];
    T& operator[](int lane) { return values[lane]; }
  };

  class Counter {
   public:
    int claim(bool wanted) { return wanted ? count_++ : count_; }
    int count() const { return count_; }

   private:
    int count_ = 0;
  };

  template <class F>
  void each(F f) const {
    for (int i = 0; i < kLanes; ++i) f(lane(i));
  }
  template <class F>
  unsigned vote(F f) const {
    unsigned votes = 0;
    for (int i = 0; i < kLanes; ++i) votes |= f(lane(i)) ? 1u << lane(i) : 0u;
    return votes;
  }
  int lane(int i) const { return order == 0 ? i : order == 1 ? kLanes - 1 - i : (i * 13 + 7) % kLanes; }

  static float read(const float* from) { return *from; }
  template <class T>
  static T fresh(const T* from) {
    return *from;
  }
  static void mark(unsigned* word, unsigned bits) { *word |= bits; }
  unsigned ticket(unsigned* counter) const { return (*counter)++; }
  void publish(unsigned* flag, unsigned value) const { *flag = value; }
  static unsigned await(const unsigned* flag) {
    if (*flag == 0) std::abort();  // a walker asked for a frame that nobody prepares
    return *flag;
  }
};

// Memory as a GPU hands it out: full of something.
template <class T>
std::vector<T> garbage(long long count) {
  std::vector<T> memory(static_cast<std::size_t>(count));
  auto* const bytes = reinterpret_cast<unsigned char*>(memory.data());
  for (std::size_t i = 0; i < memory.size() * sizeof(T); ++i) bytes[i] = static_cast<unsigned char>(0x91 + 37 * i);
  return memory;
}

}  // namespace

extern "C" void emulate(const float* log_probs, const long long* strides, const int* lengths, const int* sizes,
                        float skip_from, int order, int* out) {
  const int rows = sizes[0], frames = sizes[1], vocab = sizes[2], blank_id = sizes[3], beam = sizes[4], nbest = sizes[5];
  const long long all = static_cast<long long>(rows) * frames;
  std::vector<unsigned> flags(static_cast<std::size_t>(all) + 1, 0u);
  auto blanks = garbage<float>(all);
  auto tokens = garbage<Candidate>(all * 2 * beam);
  auto nodes = garbage<TreeNode>(all * beam);
  const Problem p = {log_probs, strides[0], strides[1], lengths, rows, frames, vocab, blank_id, nbest, skip_from,
                     flags.data(), flags.data() + 1, blanks.data(), tokens.data(), nodes.data(), out};
  const HostWarp warp{order};
  auto finder = garbage<FinderMemory>(1);
  prepare_frames(warp, p, finder[0], beam);
  for (int row = 0; row < rows; ++row) {
    auto memory = garbage<WalkerMemory>(1);
    decode_row(warp, p, memory[0], row, beam);
  }
}
