#if defined(__x86_64__)

#include "fixed16_gemm.h"

#include <cstring>

#define OASR_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"), noinline))

namespace oasr::fixed16 {
namespace {

// Two neighbouring integers of a row, to be repeated over a vector.
inline std::int32_t pair_at(const std::int16_t* a) {
  std::int32_t pair;
  std::memcpy(&pair, a, sizeof pair);
  return pair;
}

OASR_AVX2_INLINE void multiply_add(const std::int16_t* a, __m256i b0, __m256i b1, __m256i& c0, __m256i& c1) {
  const __m256i pair = _mm256_set1_epi32(pair_at(a));
  c0 = _mm256_add_epi32(c0, _mm256_madd_epi16(pair, b0));
  c1 = _mm256_add_epi32(c1, _mm256_madd_epi16(pair, b1));
}

}  // namespace

__attribute__((noinline)) OASR_AVX2 void multiply_6x16_avx2(const std::int16_t* a, Index k, const std::int16_t* panel,
                                                            std::int32_t* tile) {
  // Twelve named sums: an array of them would tempt the compiler to keep it in memory.
  __m256i c0 = _mm256_setzero_si256(), c1 = c0, c2 = c0, c3 = c0, c4 = c0, c5 = c0;
  __m256i d0 = c0, d1 = c0, d2 = c0, d3 = c0, d4 = c0, d5 = c0;
  const std::int16_t* a3 = a + 3 * k;
  const std::int16_t* end = panel + k * kPanelColumns;
  for (; panel < end; panel += 2 * kPanelColumns, a += 2, a3 += 2) {
    const __m256i b0 = _mm256_load_si256(reinterpret_cast<const __m256i*>(panel));
    const __m256i b1 = _mm256_load_si256(reinterpret_cast<const __m256i*>(panel + 16));
    multiply_add(a, b0, b1, c0, d0);
    multiply_add(a + k, b0, b1, c1, d1);
    multiply_add(a + 2 * k, b0, b1, c2, d2);
    multiply_add(a3, b0, b1, c3, d3);
    multiply_add(a3 + k, b0, b1, c4, d4);
    multiply_add(a3 + 2 * k, b0, b1, c5, d5);
    asm volatile("" ::: "memory");  // keeps the next step's loads out of this one, where registers are short
  }
  const __m256i sums[12] = {c0, d0, c1, d1, c2, d2, c3, d3, c4, d4, c5, d5};
  std::memcpy(tile, sums, sizeof sums);
}

OASR_VNNI void multiply_12x16_vnni(const std::int16_t* a, Index k, const std::int16_t* panel, std::int32_t* tile) {
  __m512i c[kTileRows];
  OASR_UNROLL(12)
  for (int i = 0; i < kTileRows; ++i) c[i] = _mm512_setzero_si512();
  for (Index j = 0; j < k; j += 2, a += 2, panel += 2 * kPanelColumns) {
    const __m512i b = _mm512_load_si512(panel);
    OASR_UNROLL(12)
    for (int i = 0; i < kTileRows; ++i) {
      c[i] = _mm512_dpwssd_epi32(c[i], b, _mm512_set1_epi32(pair_at(a + i * k)));
    }
  }
  OASR_UNROLL(12)
  for (int i = 0; i < kTileRows; ++i) _mm512_store_si512(tile + 16 * i, c[i]);
}

OASR_VNNI void multiply_12x32_vnni(const std::int16_t* a, Index k, const std::int16_t* panels, std::int32_t* tile) {
  __m512i c[kTileRows], d[kTileRows];
  OASR_UNROLL(12)
  for (int i = 0; i < kTileRows; ++i) c[i] = d[i] = _mm512_setzero_si512();
  const std::int16_t* second = panels + k * kPanelColumns;
  for (Index j = 0; j < k; j += 2, a += 2, panels += 2 * kPanelColumns, second += 2 * kPanelColumns) {
    const __m512i b0 = _mm512_load_si512(panels), b1 = _mm512_load_si512(second);
    OASR_UNROLL(12)
    for (int i = 0; i < kTileRows; ++i) {
      const __m512i repeated = _mm512_set1_epi32(pair_at(a + i * k));
      c[i] = _mm512_dpwssd_epi32(c[i], b0, repeated);
      d[i] = _mm512_dpwssd_epi32(d[i], b1, repeated);
    }
  }
  OASR_UNROLL(12)
  for (int i = 0; i < kTileRows; ++i) {
    _mm512_store_si512(tile + 32 * i, c[i]);
    _mm512_store_si512(tile + 32 * i + 16, d[i]);
  }
}

}  // namespace oasr::fixed16

#endif
