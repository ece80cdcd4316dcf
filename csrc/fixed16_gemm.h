// Products of 16-bit integers, tile by tile. Include only where __x86_64__ is defined; needs AVX2.
#pragma once

#include <algorithm>

#include "oasr/fixed16.h"
#include "simd_avx2.h"

namespace oasr::fixed16 {

// Left operand: rows of k integers without gaps. Memory up to a multiple of kTileRows rows must be readable.
struct Left {
  const std::int16_t* q;
  Index rows, k;
};

constexpr Index kTileRows = 12;           // rows of the larger micro-kernel, a multiple of the smaller one's
constexpr Index kRowsAvx2 = 6;
constexpr Index kTileElements = 12 * 32;  // of the largest tile

bool has_vnni();

// Micro-kernels: rows a, a + k, ... times one panel of 16 columns (or two neighbouring ones) into a tile, row after row.
// In a file of their own and never inlined: within a larger body GCC keeps some of the sums in memory, which costs a
// quarter of the speed.
void multiply_6x16_avx2(const std::int16_t* a, Index k, const std::int16_t* panel, std::int32_t* tile);
void multiply_12x16_vnni(const std::int16_t* a, Index k, const std::int16_t* panel, std::int32_t* tile);
void multiply_12x32_vnni(const std::int16_t* a, Index k, const std::int16_t* panels, std::int32_t* tile);

template <class Sink>
OASR_AVX2_INLINE void multiply_avx2(const Left& left, const std::int16_t* panels, Index count, const Sink& sink) {
  alignas(64) std::int32_t tile[kTileElements];
  for (Index p = 0; p < count; ++p) {
    for (Index r = 0; r < left.rows; r += kRowsAvx2) {
      multiply_6x16_avx2(left.q + r * left.k, left.k, panels + p * left.k * kPanelColumns, tile);
      const Index rows = std::min(kRowsAvx2, left.rows - r);
      for (Index i = 0; i < rows; ++i) {
        const auto* sums = reinterpret_cast<const __m256i*>(tile + kPanelColumns * i);
        sink(r + i, p, sums[0], sums[1]);
      }
    }
  }
}

template <class Sink>
OASR_AVX2_INLINE void multiply_vnni(const Left& left, const std::int16_t* panels, Index count, const Sink& sink) {
  alignas(64) std::int32_t tile[kTileElements];
  for (Index p = 0; p < count; p += 2) {
    const Index pair = std::min<Index>(2, count - p);
    const auto kernel = pair == 2 ? multiply_12x32_vnni : multiply_12x16_vnni;
    for (Index r = 0; r < left.rows; r += kTileRows) {
      kernel(left.q + r * left.k, left.k, panels + p * left.k * kPanelColumns, tile);
      const Index rows = std::min(kTileRows, left.rows - r);
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < pair; ++j) {
          const auto* sums = reinterpret_cast<const __m256i*>(tile + kPanelColumns * (i * pair + j));
          sink(r + i, p + j, sums[0], sums[1]);
        }
      }
    }
  }
}

// Calls sink(row, panel, low, high) once for each row and each of `count` panels, with the 16 sums of that row there.
template <class Sink>
OASR_AVX2_INLINE void multiply(const Left& left, const std::int16_t* panels, Index count, const Sink& sink) {
  if (has_vnni()) {
    multiply_vnni(left, panels, count, sink);
  } else {
    multiply_avx2(left, panels, count, sink);
  }
}

}  // namespace oasr::fixed16
