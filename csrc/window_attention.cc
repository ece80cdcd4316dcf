#if defined(__x86_64__)

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "oasr/fixed16.h"
#include "oasr/thread_pool.h"
#include "scratch.h"
#include "simd_avx2.h"

// Attention of a decoder step: one query a row. Every key and value is read once, so memory sets the pace; keys and
// values of half floats halve the traffic, the sums stay in float32.
namespace oasr::fixed16 {
namespace {

constexpr float kScoreScale = 0.125f * 1.44269504f;  // 1 / sqrt(64), and from powers of e to powers of 2
constexpr Index kAhead = 16 * kHeadSize;             // elements that are fetched ahead

OASR_AVX2_INLINE __m256 load(const float* x) { return _mm256_loadu_ps(x); }

OASR_AVX2_INLINE __m256 load(const std::uint16_t* x) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
}

template <class T>
OASR_AVX2_INLINE void fetch_ahead(const T* row) {
  constexpr Index line = 64 / sizeof(T);
  for (Index i = 0; i < kHeadSize; i += line) _mm_prefetch(reinterpret_cast<const char*>(row + kAhead + i), _MM_HINT_T0);
}

// Scores of `frames` keys, in powers of 2; returns the largest one that is a number.
template <class T>
OASR_AVX2 float score(const float* q, const T* keys, Index frames, float* scores) {
  __m256 query[8];
  OASR_UNROLL(8)
  for (int i = 0; i < 8; ++i) query[i] = _mm256_mul_ps(_mm256_loadu_ps(q + 8 * i), _mm256_set1_ps(kScoreScale));
  float largest = -std::numeric_limits<float>::infinity();
  for (Index j = 0; j < frames; ++j) {
    const T* key = keys + j * kHeadSize;
    fetch_ahead(key);
    __m256 a = _mm256_setzero_ps(), b = a;
    OASR_UNROLL(4)
    for (int i = 0; i < 8; i += 2) {
      a = _mm256_fmadd_ps(load(key + 8 * i), query[i], a);
      b = _mm256_fmadd_ps(load(key + 8 * i + 8), query[i + 1], b);
    }
    scores[j] = sum_of(_mm256_add_ps(a, b));
    largest = std::max(largest, scores[j]);
  }
  return largest;
}

// Scores -> unnormalised probabilities, in place; returns their sum. A NaN, or an infinite largest score, makes it NaN.
OASR_AVX2 float exponentiate(float* scores, Index frames, float largest) {
  const Index padded = (frames + 7) / 8 * 8;
  for (Index j = frames; j < padded; ++j) scores[j] = -std::numeric_limits<float>::infinity();
  const __m256 offset = _mm256_set1_ps(largest);
  __m256 sum = _mm256_setzero_ps();
  for (Index j = 0; j < padded; j += 8) {
    const __m256 e = exp2_exact(_mm256_sub_ps(_mm256_load_ps(scores + j), offset));
    sum = _mm256_add_ps(sum, e);  // the padding adds 2^-126 to a sum of at least 1: nothing
    _mm256_store_ps(scores + j, e);
  }
  return sum_of(sum);
}

template <class T>
OASR_AVX2 void weigh(const float* weights, const T* values, Index frames, float inverse_sum, float* out) {
  __m256 sums[8];
  OASR_UNROLL(8)
  for (int i = 0; i < 8; ++i) sums[i] = _mm256_setzero_ps();
  for (Index j = 0; j < frames; ++j) {
    const T* value = values + j * kHeadSize;
    fetch_ahead(value);
    const __m256 weight = _mm256_set1_ps(weights[j]);
    OASR_UNROLL(8)
    for (int i = 0; i < 8; ++i) sums[i] = _mm256_fmadd_ps(load(value + 8 * i), weight, sums[i]);
  }
  const __m256 scale = _mm256_set1_ps(inverse_sum);
  OASR_UNROLL(8)
  for (int i = 0; i < 8; ++i) _mm256_storeu_ps(out + 8 * i, _mm256_mul_ps(sums[i], scale));
}

// What one head of one row looks at.
template <class T>
struct View {
  const T *keys, *values;
  Index frames;
};

// `view(row, head)` finds the View of an item; `work` counts frames over all rows.
template <class Find>
void attend(const float* q, Index rows, Index heads, Index work, Find view, float* out) {
  const auto one = [&](Index item) {
    static thread_local Scratch memory;
    const auto seen = view(item / heads, item % heads);
    float* to = out + item * kHeadSize;
    if (seen.frames <= 0) {
      std::memset(to, 0, kHeadSize * sizeof *to);
      return;
    }
    auto* scores = memory.at_least<float>(seen.frames + 8);
    const float largest = score(q + item * kHeadSize, seen.keys, seen.frames, scores);
    const float sum = exponentiate(scores, seen.frames, largest);
    weigh(scores, seen.values, seen.frames, 1.f / sum, to);
  };
  const Index items = rows * heads;
  // Under some 10 microseconds of work another thread would come too late.
  if (work * heads > 1000) return parallel_for(items, one);
  for (Index item = 0; item < items; ++item) one(item);
}

}  // namespace

void step_attention(const float* q, const float* keys, const float* values, const StepShape& shape, float* out) {
  const auto start_of = [&](Index row) { return shape.starts != nullptr ? Index(shape.starts[row]) : 0; };
  Index work = 0;
  for (Index r = 0; r < shape.rows; ++r) work += std::max<Index>(0, shape.ends[r] - start_of(r));
  const auto view = [&](Index row, Index head) {
    const Index first = ((row * shape.heads + head) * shape.capacity + start_of(row)) * kHeadSize;
    return View<float>{keys + first, values + first, shape.ends[row] - start_of(row)};
  };
  attend(q, shape.rows, shape.heads, work, view, out);
}

void window_attention(const float* q, const WindowRows& windows, float* out) {
  Index work = 0;
  for (Index r = 0; r < windows.rows; ++r) work += windows.lens[r];
  const auto view = [&](Index row, Index head) {
    const Index first = head * windows.frames[row] * kHeadSize;
    return View<std::uint16_t>{windows.keys[row] + first, windows.values[row] + first, windows.lens[row]};
  };
  attend(q, windows.rows, windows.heads, work, view, out);
}

}  // namespace oasr::fixed16

#endif
