// Memory that a thread keeps between calls.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace oasr {

// A 64-byte aligned buffer that only grows. New memory is zero: kernels read rows past the last to fill a tile.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::free(memory_); }

  // Room for `count` elements; what it held is lost where it must grow.
  template <class T>
  T* at_least(std::ptrdiff_t count) {
    const std::size_t bytes = (static_cast<std::size_t>(count) * sizeof(T) + 127) & ~std::size_t{63};
    if (bytes > size_) {
      std::free(memory_);
      size_ = 0;
      memory_ = std::aligned_alloc(64, bytes);
      if (memory_ == nullptr) throw std::bad_alloc();
      std::memset(memory_, 0, bytes);
      size_ = bytes;
    }
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace oasr
