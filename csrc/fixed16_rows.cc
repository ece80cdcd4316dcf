#if defined(__x86_64__)

#include "fixed16_rows.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "simd_avx2.h"

namespace oasr::fixed16 {
namespace {

constexpr float kNothing = 1e-25f;  // scales under this would leave the normal floats when multiplied together
constexpr float kEpsilon = 1e-5f;
constexpr float kMaxProbabilitySum = 1048000;

OASR_AVX2 float largest_magnitude(const float* x, Index k) {
  __m256i a = _mm256_setzero_si256(), b = a;
  for (Index i = 0; i < k; i += 16) {
    a = _mm256_max_epi32(a, magnitude_bits(x + i));
    b = _mm256_max_epi32(b, magnitude_bits(x + i + 8));
  }
  alignas(32) std::int32_t bits[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(bits), _mm256_max_epi32(a, b));
  std::int32_t top = bits[0];
  for (int i = 1; i < 8; ++i) top = bits[i] > top ? bits[i] : top;
  float value;
  std::memcpy(&value, &top, sizeof value);
  return value;
}

// Divides a row of probabilities by 2^shift, rounding, and returns their new sum.
OASR_AVX2 float shift_down(std::int16_t* p, Index n, int shift) {
  const __m256i factor = _mm256_set1_epi16(static_cast<std::int16_t>(1 << (15 - shift)));
  const __m256i one = _mm256_set1_epi16(1);
  __m256i total = _mm256_setzero_si256();
  for (Index j = 0; j < n; j += 16) {
    auto* at = reinterpret_cast<__m256i*>(p + j);
    const __m256i x = _mm256_mulhrs_epi16(_mm256_load_si256(at), factor);
    total = _mm256_add_epi32(total, _mm256_madd_epi16(x, one));
    _mm256_store_si256(at, x);
  }
  return sum_of(_mm256_cvtepi32_ps(total));
}

}  // namespace

OASR_AVX2 float quantise_row(const float* x, Index k, std::int16_t* q, float limit) {
  const float largest = largest_magnitude(x, k);
  // NaN, which the integer maximum has kept, fails the comparison as well.
  const bool finite = largest <= std::numeric_limits<float>::max();
  if (!finite || largest < kNothing) {
    std::memset(q, 0, static_cast<std::size_t>(k) * sizeof *q);
    return finite ? 0.f : std::numeric_limits<float>::quiet_NaN();
  }
  const __m256 scale = _mm256_set1_ps(limit / largest);
  for (Index i = 0; i < k; i += 16) {
    const __m256 low = _mm256_mul_ps(_mm256_loadu_ps(x + i), scale);
    const __m256 high = _mm256_mul_ps(_mm256_loadu_ps(x + i + 8), scale);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + i), to_int16(low, high));
  }
  return largest / limit;
}

OASR_AVX2 void normalise_row(const float* x, Index k, const LayerNorm& norm, float* y) {
  const float count = static_cast<float>(k);
  __m256 a = _mm256_setzero_ps(), b = a;
  for (Index i = 0; i < k; i += 16) {
    a = _mm256_add_ps(a, _mm256_loadu_ps(x + i));
    b = _mm256_add_ps(b, _mm256_loadu_ps(x + i + 8));
  }
  const __m256 mean = _mm256_set1_ps(sum_of(_mm256_add_ps(a, b)) / count);
  // A second pass over the row: a variance from sums of squares would cancel.
  a = b = _mm256_setzero_ps();
  for (Index i = 0; i < k; i += 16) {
    const __m256 d = _mm256_sub_ps(_mm256_loadu_ps(x + i), mean), e = _mm256_sub_ps(_mm256_loadu_ps(x + i + 8), mean);
    a = _mm256_fmadd_ps(d, d, a);
    b = _mm256_fmadd_ps(e, e, b);
  }
  const __m256 inverse = _mm256_set1_ps(1.f / std::sqrt(sum_of(_mm256_add_ps(a, b)) / count + kEpsilon));
  for (Index i = 0; i < k; i += 8) {
    const __m256 z = _mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(x + i), mean), inverse);
    _mm256_storeu_ps(y + i, _mm256_fmadd_ps(z, _mm256_loadu_ps(norm.gain + i), _mm256_loadu_ps(norm.bias + i)));
  }
}

OASR_AVX2 void gelu_row(float* x, Index k) {
  for (Index i = 0; i < k; i += 8) _mm256_storeu_ps(x + i, gelu(_mm256_loadu_ps(x + i)));
}

OASR_AVX2 float softmax_row(const float* scores, Index n, std::int16_t* p) {
  __m256 a = _mm256_load_ps(scores), b = a;
  for (Index j = 0; j < n; j += 16) {
    a = _mm256_max_ps(a, _mm256_load_ps(scores + j));
    b = _mm256_max_ps(b, _mm256_load_ps(scores + j + 8));
  }
  const __m256 offset = _mm256_set1_ps(max_of(_mm256_max_ps(a, b)) - 14.f);
  const __m256i one = _mm256_set1_epi16(1);
  __m256i total = _mm256_setzero_si256();
  for (Index j = 0; j < n; j += 16) {
    const __m256 low = exp2_coarse(_mm256_sub_ps(_mm256_load_ps(scores + j), offset));
    const __m256 high = exp2_coarse(_mm256_sub_ps(_mm256_load_ps(scores + j + 8), offset));
    const __m256i x = _mm256_packs_epi32(_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high));
    // What is added up is what was rounded, so that the weights of the values sum to 1.
    total = _mm256_add_epi32(total, _mm256_madd_epi16(x, one));
    _mm256_store_si256(reinterpret_cast<__m256i*>(p + j), x);
  }
  // Only a flat row over many frames exceeds the bound on the sum. Rounding may add half a unit a frame.
  float sum = sum_of(_mm256_cvtepi32_ps(total));
  if (sum > kMaxProbabilitySum) {
    int shift = 1;
    while (sum > (kMaxProbabilitySum - 0.5f * static_cast<float>(n)) * static_cast<float>(1 << shift)) ++shift;
    sum = shift_down(p, n, shift);
  }
  return sum;
}

}  // namespace oasr::fixed16

#endif
