// Elementary functions on eight floats. Include only where __x86_64__ is defined.
//
// The build has no -march: each function that holds AVX2 code says so itself, and the inline ones are forced into
// such functions (a call would pass vectors through memory).
#pragma once

#include <immintrin.h>

#define OASR_AVX2 __attribute__((target("avx2,fma,f16c")))
#define OASR_AVX2_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) inline

#define OASR_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define OASR_UNROLL(n) OASR_PRAGMA(unroll n)
#else
#define OASR_UNROLL(n) OASR_PRAGMA(GCC unroll n)
#endif

namespace oasr::fixed16 {

OASR_AVX2_INLINE __m256 absolute(__m256 x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.f), x); }

OASR_AVX2_INLINE float sum_of(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

OASR_AVX2_INLINE float max_of(__m256 v) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
}

// Bits of |x|: as integers they have the order of the magnitudes, with infinity above all numbers and NaN above it.
// A running maximum of floats would lose a NaN, this one keeps it.
OASR_AVX2_INLINE __m256i magnitude_bits(const float* x) {
  return _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)), _mm256_set1_epi32(0x7fffffff));
}

// 2^x for x <= 0, 6e-8 relative; under 2^-126 it stays there. NaN gives NaN (the operand order of max matters).
OASR_AVX2_INLINE __m256 exp2_exact(__m256 x) {
  x = _mm256_max_ps(_mm256_set1_ps(-126.f), x);
  const __m256 n = _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m256 r = _mm256_sub_ps(x, n);
  __m256 p = _mm256_set1_ps(1.5403530e-4f);  // Taylor series of 2^r, |r| <= 1/2
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3333558e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(9.6181291e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.5504109e-2f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(2.4022651e-1f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(6.9314718e-1f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.f));
  const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
}

// 2^x for x < 126, 4e-6 relative, which 15-bit probabilities cannot tell from exact; under 2^-100, and for NaN, 2^-100.
OASR_AVX2_INLINE __m256 exp2_coarse(__m256 x) {
  const __m256 magic = _mm256_set1_ps(12582912.f);  // 1.5 * 2^23: adding it leaves round(x) in the low bits
  x = _mm256_max_ps(x, _mm256_set1_ps(-100.f));
  const __m256 t = _mm256_add_ps(x, magic);
  const __m256 r = _mm256_sub_ps(x, _mm256_sub_ps(t, magic));
  __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(9.6723016e-3f), r, _mm256_set1_ps(5.5887058e-2f));  // minimax
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(2.4022210e-1f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(6.9312102e-1f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.f));
  const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
}

// max(x, 0) - |x| / 2 * erfc(|x| / sqrt 2), which is x * Phi(x). erfc by formula 7.1.26 of Abramowitz and Stegun,
// "Handbook of Mathematical Functions": absolute error 1.5e-7.
OASR_AVX2_INLINE __m256 gelu(__m256 x) {
  const __m256 one = _mm256_set1_ps(1.f);
  const __m256 a = absolute(x);
  const __m256 t = _mm256_div_ps(one, _mm256_fmadd_ps(a, _mm256_set1_ps(0.3275911f * 0.70710678f), one));
  __m256 p = _mm256_set1_ps(1.061405429f);
  p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(-1.453152027f));
  p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(1.421413741f));
  p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(-0.284496736f));
  p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(0.254829592f));
  p = _mm256_mul_ps(p, t);
  const __m256 e = exp2_exact(_mm256_mul_ps(_mm256_mul_ps(x, x), _mm256_set1_ps(-0.72134752f)));  // e^(-x^2 / 2)
  const __m256 half_erfc = _mm256_mul_ps(_mm256_mul_ps(a, _mm256_set1_ps(0.5f)), _mm256_mul_ps(p, e));
  return _mm256_sub_ps(_mm256_max_ps(_mm256_setzero_ps(), x), half_erfc);
}

// Sixteen floats, rounded to the nearest integer. NaN and what 32 bits cannot hold saturate to -32768.
OASR_AVX2_INLINE __m256i to_int16(__m256 low, __m256 high) {
  const __m256i packed = _mm256_packs_epi32(_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high));
  return _mm256_permute4x64_epi64(packed, 0xD8);  // the pack works in each half of 128 bits
}

}  // namespace oasr::fixed16
