#if defined(__x86_64__)

#include "fixed16_gemm.h"
#include "fixed16_rows.h"
#include "oasr/thread_pool.h"
#include "scratch.h"

namespace oasr::fixed16 {
namespace {

constexpr Index kBlockRows = 48;   // rows that are quantised and multiplied at a time: they stay in the L2 cache
constexpr Index kFewRows = 64;     // up to here threads share the columns, beyond it the rows
constexpr Index kMaxPanels = 32;   // panels of one item when threads share the columns
constexpr Index kSmallWork = Index{1} << 21;  // multiply-adds that are done before another thread would wake up

struct LinearScratch {
  Scratch integers, scales, normalised, hidden;
};

LinearScratch& scratch() {
  static thread_local LinearScratch instance;
  return instance;
}

Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }

struct QuantisedRows {
  Left left;
  const float* scales;
};

QuantisedRows quantise(const Rows& x, const LayerNorm& norm, Index k) {
  auto& memory = scratch();
  auto* q = memory.integers.at_least<std::int16_t>(ceil_div(x.count, kTileRows) * kTileRows * k);
  auto* scales = memory.scales.at_least<float>(x.count);
  auto* normalised = norm.gain != nullptr ? memory.normalised.at_least<float>(k) : nullptr;
  for (Index r = 0; r < x.count; ++r) {
    const float* row = x.data + r * x.stride;
    if (normalised != nullptr) {
      normalise_row(row, k, norm, normalised);
      row = normalised;
    }
    scales[r] = quantise_row(row, k, q + r * k, kActivationMax);
  }
  return {{q, x.count, k}, scales};
}

// Sums of one row and one panel -> floats. The two scales are multiplied first: a large row scale times a large sum
// could overflow where the product of all three does not.
struct Dequantise {
  const float* row_scales;
  const PackedWeight& weight;

  OASR_AVX2_INLINE __m256 operator()(Index row, Index column, __m256i sums) const {
    const __m256 scale = _mm256_mul_ps(_mm256_set1_ps(row_scales[row]), _mm256_loadu_ps(weight.scales + column));
    const __m256 bias = weight.bias != nullptr ? _mm256_loadu_ps(weight.bias + column) : _mm256_setzero_ps();
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), scale, bias);
  }
};

template <bool kAddTo>
struct StoreFloats {
  Dequantise dequantise;
  Output out;

  OASR_AVX2_INLINE void operator()(Index row, Index panel, __m256i low, __m256i high) const {
    const Index column = panel * kPanelColumns;
    float* to = out.data + row * out.stride + column;
    __m256 a = dequantise(row, column, low), b = dequantise(row, column + 8, high);
    if (kAddTo) {
      a = _mm256_add_ps(a, _mm256_loadu_ps(to));
      b = _mm256_add_ps(b, _mm256_loadu_ps(to + 8));
    }
    _mm256_storeu_ps(to, a);
    _mm256_storeu_ps(to + 8, b);
  }
};

// Panels 0-3 are the first head's keys, and so on; after the last head's keys come the values.
struct StoreWindow {
  Dequantise dequantise;
  AttentionShape shape;
  std::uint16_t *keys, *values;
  Index first;  // the block's first row among batch * frames

  OASR_AVX2_INLINE void operator()(Index row, Index panel, __m256i low, __m256i high) const {
    const Index column = panel * kPanelColumns, width = shape.heads * kHeadSize;
    const Index head = column % width / kHeadSize, b = (first + row) / shape.frames, frame = (first + row) % shape.frames;
    std::uint16_t* to = (column < width ? keys : values) +
                        ((b * shape.heads + head) * shape.frames + frame) * kHeadSize + column % kHeadSize;
    const __m128i first_half = _mm256_cvtps_ph(dequantise(row, column, low), _MM_FROUND_TO_NEAREST_INT);
    const __m128i second_half = _mm256_cvtps_ph(dequantise(row, column + 8, high), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), first_half);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 8), second_half);
  }
};

OASR_AVX2 void product(const QuantisedRows& x, const PackedWeight& weight, const Output& out, Epilogue epilogue) {
  const Dequantise dequantise{x.scales, weight};
  const Index panels = weight.n / kPanelColumns;
  if (epilogue == Epilogue::kAdd) {
    multiply(x.left, weight.panels, panels, StoreFloats<true>{dequantise, out});
    return;
  }
  multiply(x.left, weight.panels, panels, StoreFloats<false>{dequantise, out});
  if (epilogue != Epilogue::kGelu) return;
  for (Index r = 0; r < x.left.rows; ++r) gelu_row(out.data + r * out.stride, weight.n);
}

OASR_AVX2 void window_product(const QuantisedRows& x, const PackedWeight& weight, const StoreWindow& store) {
  multiply(x.left, weight.panels, weight.n / kPanelColumns, store);
}

// Rows [first, first + count) of a block of work, for every block.
template <class Work>
void by_rows(Index m, const Work& work) {
  // As many blocks as a multiple of the threads, so that none of them waits for a last, lonely block.
  const Index rounds = ceil_div(m, kBlockRows * threads());
  const Index even = ceil_div(ceil_div(m, rounds * threads()), kTileRows) * kTileRows;
  const Index rows = std::min(kBlockRows, even);
  parallel_for(ceil_div(m, rows), [&](Index item) { work(item * rows, std::min(rows, m - item * rows)); });
}

void linear_by_columns(const Rows& x, const LayerNorm& norm, const PackedWeight& weight, const Output& out,
                       Epilogue epilogue) {
  const QuantisedRows quantised = quantise(x, norm, weight.k);
  const Index panels = weight.n / kPanelColumns;
  // An even number of panels for the kernel that takes two; several items a thread, so that uneven threads balance.
  const Index share = ceil_div(panels, 4 * threads()) + 1;
  const bool small = threads() == 1 || x.count * weight.n * weight.k < kSmallWork;
  const Index step = small ? panels : std::min(kMaxPanels, share / 2 * 2);
  parallel_for(ceil_div(panels, step), [&](Index item) {
    const Index p = item * step, column = p * kPanelColumns;
    const PackedWeight part{std::min(step, panels - p) * kPanelColumns, weight.k, weight.panels + column * weight.k,
                            weight.scales + column, weight.bias != nullptr ? weight.bias + column : nullptr};
    product(quantised, part, {out.data + column, out.stride}, epilogue);
  });
}

}  // namespace

void linear(const Rows& x, const LayerNorm& norm, const PackedWeight& weight, const Output& out, Epilogue epilogue) {
  if (x.count <= kFewRows) return linear_by_columns(x, norm, weight, out, epilogue);
  by_rows(x.count, [&](Index first, Index count) {
    const auto rows = quantise({x.data + first * x.stride, x.stride, count}, norm, weight.k);
    product(rows, weight, {out.data + first * out.stride, out.stride}, epilogue);
  });
}

void feed_forward(float* x, Index m, const LayerNorm& norm, const PackedWeight& up, const PackedWeight& down) {
  const LayerNorm none{nullptr, nullptr};
  if (m <= kFewRows) {
    const Output hidden{scratch().hidden.at_least<float>(m * up.n), up.n};
    linear({x, up.k, m}, norm, up, hidden, Epilogue::kGelu);
    linear({hidden.data, up.n, m}, none, down, {x, down.n}, Epilogue::kAdd);
    return;
  }
  by_rows(m, [&](Index first, Index count) {  // a block's hidden activations never leave the cache
    float* rows = x + first * up.k;
    const Output hidden{scratch().hidden.at_least<float>(kBlockRows * up.n), up.n};
    product(quantise({rows, up.k, count}, norm, up.k), up, hidden, Epilogue::kGelu);
    product(quantise({hidden.data, up.n, count}, none, down.k), down, {rows, down.n}, Epilogue::kAdd);
  });
}

void window_project(const float* hidden, const AttentionShape& shape, const PackedWeight& weight, std::uint16_t* keys,
                    std::uint16_t* values) {
  by_rows(shape.batch * shape.frames, [&](Index first, Index count) {
    const auto rows = quantise({hidden + first * weight.k, weight.k, count}, {nullptr, nullptr}, weight.k);
    window_product(rows, weight, {{rows.scales, weight}, shape, keys, values, first});
  });
}

}  // namespace oasr::fixed16

#endif
