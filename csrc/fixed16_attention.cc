#if defined(__x86_64__)

#include <cstring>
#include <limits>

#include "fixed16_gemm.h"
#include "fixed16_rows.h"
#include "oasr/thread_pool.h"
#include "scratch.h"

// One head at a time: keys and values become packed operands once, then blocks of twelve queries go through scores,
// softmax (exact, over the whole row) and the weighted sum of values while everything stays in the cache.
//
// Bounds: 4095 (queries) * 8191 (keys) * 64 < 2^31, and 2^20 (a row's probabilities, see softmax_row) * 2047 (values)
// < 2^31.
namespace oasr::fixed16 {
namespace {

constexpr float kKeyMax = 8191, kValueMax = 2047;
constexpr float kScoreScale = 0.125f * 1.44269504f;  // 1 / sqrt(64), and from powers of e to powers of 2
constexpr Index kQueryRows = 12;                     // of one block, a multiple of both micro-kernels' rows
constexpr Index kHeadPanels = kHeadSize / kPanelColumns;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Memory {
  Scratch keys, key_scales, values, scores, probabilities, queries;
};

Memory& scratch() {
  static thread_local Memory instance;
  return instance;
}

struct Head {
  const float *q, *k, *v;
  Index stride;          // between frames
  Index frames, padded;  // that are attended to, and their number in whole panels
};

struct Operands {
  const std::int16_t* keys;  // `padded` columns
  const float* key_scales;
  float largest_key_scale;   // NaN as soon as a key is not finite
  const std::int16_t* values;  // `padded` x 64
  float value_scales[kHeadSize];
};

OASR_AVX2 void pack_keys(const Head& head, Operands& to) {
  auto* packed = scratch().keys.at_least<std::int16_t>(head.padded * kHeadSize);
  auto* scales = scratch().key_scales.at_least<float>(head.padded);
  alignas(64) std::int16_t row[kHeadSize];
  to.largest_key_scale = 0.f;
  float zero_or_nan = 0.f;
  for (Index j = 0; j < head.padded; ++j) {
    scales[j] = 0.f;
    if (j < head.frames) {
      scales[j] = quantise_row(head.k + j * head.stride, kHeadSize, row, kKeyMax);
    } else {
      std::memset(row, 0, sizeof row);
    }
    to.largest_key_scale = std::max(to.largest_key_scale, scales[j]);
    zero_or_nan += scales[j] - scales[j];
    std::int16_t* column = packed + j / kPanelColumns * kPanelColumns * kHeadSize + j % kPanelColumns * 2;
    for (Index i = 0; i < kHeadSize; i += 2) std::memcpy(column + i * kPanelColumns, row + i, 4);
  }
  to.largest_key_scale += zero_or_nan;
  to.keys = packed;
  to.key_scales = scales;
}

// Each channel of the values has one scale for all frames: the sum over frames is what stays in integers.
OASR_AVX2 void scale_values(const Head& head, Operands& to, __m256* factors) {
  __m256i top[8];
  OASR_UNROLL(8)
  for (int i = 0; i < 8; ++i) top[i] = _mm256_castps_si256(_mm256_set1_ps(1e-25f));
  for (Index j = 0; j < head.frames; ++j) {
    OASR_UNROLL(8)
    for (int i = 0; i < 8; ++i) top[i] = _mm256_max_epi32(top[i], magnitude_bits(head.v + j * head.stride + 8 * i));
  }
  const __m256 largest_float = _mm256_set1_ps(std::numeric_limits<float>::max());
  for (int i = 0; i < 8; ++i) {
    const __m256 largest = _mm256_castsi256_ps(top[i]);
    const __m256 finite = _mm256_cmp_ps(largest, largest_float, _CMP_LE_OQ);
    const __m256 scale = _mm256_mul_ps(largest, _mm256_set1_ps(1.f / kValueMax));
    _mm256_storeu_ps(to.value_scales + 8 * i, _mm256_blendv_ps(_mm256_set1_ps(kNaN), scale, finite));
    factors[i] = _mm256_and_ps(finite, _mm256_div_ps(_mm256_set1_ps(kValueMax), largest));
  }
}

OASR_AVX2_INLINE void quantise_value(const Head& head, Index frame, const __m256* factors, std::int16_t* row) {
  if (frame >= head.frames) {
    std::memset(row, 0, kHeadSize * sizeof *row);
    return;
  }
  const float* x = head.v + frame * head.stride;
  OASR_UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    const __m256 low = _mm256_mul_ps(_mm256_loadu_ps(x + 16 * i), factors[2 * i]);
    const __m256 high = _mm256_mul_ps(_mm256_loadu_ps(x + 16 * i + 8), factors[2 * i + 1]);
    _mm256_store_si256(reinterpret_cast<__m256i*>(row + 16 * i), to_int16(low, high));
  }
}

// Frames 4-7 and 8-11 of each sixteen trade places: packing eight and eight probabilities to 16 bits leaves them
// in that order, and it is cheaper to move the values once than each row of probabilities.
OASR_AVX2 void pack_values(const Head& head, Operands& to) {
  auto* packed = scratch().values.at_least<std::int16_t>(head.padded * kHeadSize);
  __m256 factors[8];
  scale_values(head, to, factors);
  alignas(64) std::int16_t even[kHeadSize], odd[kHeadSize];
  for (Index slot = 0; slot < head.padded; slot += 2) {
    const Index quad = slot / 4 % 4;
    const Index frame = quad == 1 || quad == 2 ? slot ^ 12 : slot;
    quantise_value(head, frame, factors, even);
    quantise_value(head, frame + 1, factors, odd);
    for (Index p = 0; p < kHeadPanels; ++p) {
      const __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(even + 16 * p));
      const __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i*>(odd + 16 * p));
      const __m256i low = _mm256_unpacklo_epi16(a, b), high = _mm256_unpackhi_epi16(a, b);
      auto* pairs = reinterpret_cast<__m256i*>(packed + (p * head.padded + slot) * kPanelColumns);
      _mm256_store_si256(pairs, _mm256_permute2x128_si256(low, high, 0x20));
      _mm256_store_si256(pairs + 1, _mm256_permute2x128_si256(low, high, 0x31));
    }
  }
  to.values = packed;
}

struct StoreScores {
  const float *query_scales, *key_scales;
  float* scores;
  Index stride;

  OASR_AVX2_INLINE void operator()(Index row, Index panel, __m256i low, __m256i high) const {
    const __m256 scale = _mm256_set1_ps(query_scales[row]);
    const float* key_scale = key_scales + panel * kPanelColumns;
    float* to = scores + row * stride + panel * kPanelColumns;
    const __m256 a = _mm256_mul_ps(scale, _mm256_loadu_ps(key_scale));
    const __m256 b = _mm256_mul_ps(scale, _mm256_loadu_ps(key_scale + 8));
    _mm256_store_ps(to, _mm256_mul_ps(_mm256_cvtepi32_ps(low), a));
    _mm256_store_ps(to + 8, _mm256_mul_ps(_mm256_cvtepi32_ps(high), b));
  }
};

struct StoreValues {
  const float *inverse_sums, *value_scales;
  Output out;

  OASR_AVX2_INLINE void operator()(Index row, Index panel, __m256i low, __m256i high) const {
    const __m256 scale = _mm256_set1_ps(inverse_sums[row]);
    const float* value_scale = value_scales + panel * kPanelColumns;
    float* to = out.data + row * out.stride + panel * kPanelColumns;
    // The sum first: it is at most 2047 after the division, and a value scale may be as large as a float can be.
    const __m256 a = _mm256_mul_ps(_mm256_cvtepi32_ps(low), scale), b = _mm256_mul_ps(_mm256_cvtepi32_ps(high), scale);
    _mm256_storeu_ps(to, _mm256_mul_ps(a, _mm256_loadu_ps(value_scale)));
    _mm256_storeu_ps(to + 8, _mm256_mul_ps(b, _mm256_loadu_ps(value_scale + 8)));
  }
};

OASR_AVX2 void attend_block(const Head& head, const Operands& operands, Index first, Index rows, const Output& out) {
  auto* scores = scratch().scores.at_least<float>(kQueryRows * head.padded);
  auto* p = scratch().probabilities.at_least<std::int16_t>(kQueryRows * head.padded);
  auto* queries = scratch().queries.at_least<std::int16_t>(kQueryRows * kHeadSize);
  float query_scales[kQueryRows], inverse_sums[kQueryRows];
  for (Index r = 0; r < rows; ++r) {
    const float* q = head.q + (first + r) * head.stride;
    query_scales[r] = quantise_row(q, kHeadSize, queries + r * kHeadSize, kActivationMax) * kScoreScale;
  }
  multiply({queries, rows, kHeadSize}, operands.keys, head.padded / kPanelColumns,
           StoreScores{query_scales, operands.key_scales, scores, head.padded});
  for (Index r = 0; r < rows; ++r) {
    float* row = scores + r * head.padded;
    for (Index j = head.frames; j < head.padded; ++j) row[j] = -std::numeric_limits<float>::infinity();
    const float sum = softmax_row(row, head.padded, p + r * head.padded);
    // No score exceeds this product. Where it is NaN or float32 could not hold it, the row has no meaningful softmax.
    const float bound = query_scales[r] * operands.largest_key_scale * (kActivationMax * kKeyMax * kHeadSize);
    inverse_sums[r] = bound < std::numeric_limits<float>::max() ? 1.f / sum : kNaN;
  }
  multiply({p, rows, head.padded}, operands.values, kHeadPanels,
           StoreValues{inverse_sums, operands.value_scales, {out.data + first * out.stride, out.stride}});
}

void attend(const Head& head, Index first, Index last, const Output& out) {
  if (head.frames == 0) {
    for (Index r = first; r < last; ++r) std::memset(out.data + r * out.stride, 0, kHeadSize * sizeof(float));
    return;
  }
  Operands operands;
  pack_keys(head, operands);
  pack_values(head, operands);
  for (Index r = first; r < last; r += kQueryRows) attend_block(head, operands, r, std::min(kQueryRows, last - r), out);
}

}  // namespace

void self_attention(const float* qkv, const AttentionShape& shape, const std::int64_t* lens, float* out) {
  const Index width = shape.heads * kHeadSize, heads = shape.batch * shape.heads;
  // A head is one item, unless there are too few for the threads; then it is cut, and its keys are packed again in each.
  const Index wanted = threads() == 1 ? 1 : (2 * threads() + heads - 1) / heads;
  const Index cuts = heads % threads() == 0 ? 1 : std::min(wanted, (shape.frames + 383) / 384);
  const Index step = ((shape.frames + cuts - 1) / cuts + kQueryRows - 1) / kQueryRows * kQueryRows;
  parallel_for(heads * cuts, [&](Index item) {
    const Index b = item / cuts / shape.heads, h = item / cuts % shape.heads;
    const Index first = item % cuts * step, last = std::min(first + step, shape.frames);
    const Index frames = lens != nullptr ? lens[b] : shape.frames;
    const float* q = qkv + b * shape.frames * 3 * width + h * kHeadSize;
    const Head head{q, q + width, q + 2 * width, 3 * width, frames,
                    (frames + kPanelColumns - 1) / kPanelColumns * kPanelColumns};
    attend(head, first, last, {out + b * shape.frames * width + h * kHeadSize, width});
  });
}

}  // namespace oasr::fixed16

#endif
