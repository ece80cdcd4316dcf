// Matrix products and attention on 16-bit integers with exact 32-bit sums.
//
// A float32 row becomes 12-bit integers (|q| <= 4095) with a scale of its own, an output channel of a weight integers of
// up to 16 bits with a scale of its own, chosen so that no sum can leave 32 bits. Integer sums do not depend on
// their order, so a row's result has the same bits whatever stands beside it, however the work is split and
// whichever instruction set runs it. Against double precision the relative rms error of a product is about 3e-4 for
// rows of 384 and 9e-4 for rows of 2048 (a longer sum leaves the weights fewer bits), that of attention 7e-4.
//
// A row that holds NaN or infinity, or scores that float32 cannot hold, comes out as NaN: that row alone (in
// attention: the rows that look at it). A row whose largest magnitude is under 1e-25 counts as zeros.
//
// Nothing here checks its arguments; the binding does. Sizes are in elements. Where supported() is false every
// other function but set-up throws std::runtime_error.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oasr::fixed16 {

using Index = std::ptrdiff_t;

constexpr Index kHeadSize = 64;     // the only size of an attention head
constexpr Index kPanelColumns = 16;  // output channels of a weight come in multiples of this
constexpr Index kDepthStep = 16;     // and its inputs in multiples of this

// "avx2", "avx512_vnni" or "none". The environment variable OASR_INSTRUCTION_SET may name a lesser one than the
// CPU has (read once); the results are the same.
const char* instruction_set();
bool supported();

// A weight of n rows (output channels) and k columns as pack() leaves it: panels of 16 channels; in a panel, for each pair
// of inputs, 16 x 2 integers. Those 64 bytes are one AVX-512 or two AVX2 operands of a multiply-add of pairs.
struct PackedWeight {
  Index n, k;
  const std::int16_t* panels;  // n * k, 64-byte aligned
  const float* scales;         // n: weight = integer * scale
  const float* bias;           // n, or null
};

struct LayerNorm {  // over a whole row, epsilon 1e-5; gain null: none
  const float* gain;
  const float* bias;
};

struct Rows {  // row r starts at data + r * stride; rows may overlap, which makes a strided product a convolution
  const float* data;
  Index stride, count;
};

struct Output {
  float* data;
  Index stride;
};

enum class Epilogue { kPlain, kGelu, kAdd };

void pack(const float* weight, Index n, Index k, std::int16_t* panels, float* scales);

// out = x W^T + bias, or its exact (erf) GELU, or out += x W^T + bias, with x normalised first where norm.gain is set.
void linear(const Rows& x, const LayerNorm& norm, const PackedWeight& weight, const Output& out, Epilogue epilogue);

// x (m rows of up.k) += down(gelu(up(norm(x)))), in place.
void feed_forward(float* x, Index m, const LayerNorm& norm, const PackedWeight& up, const PackedWeight& down);

struct AttentionShape {
  Index batch, frames, heads;
};

// Every frame attends to the first lens[b] frames of its row (lens null: all of them; 0: the output is zero).
// qkv: (batch, frames, 3 * heads * 64), queries | keys | values; out: (batch, frames, heads * 64).
void self_attention(const float* qkv, const AttentionShape& shape, const std::int64_t* lens, float* out);

// hidden (batch, frames, weight.k) times a weight of 2 * heads * 64 channels, keys | values, into two arrays of IEEE
// half floats (batch, heads, frames, 64). Magnitudes over 65504 become infinite.
void window_project(const float* hidden, const AttentionShape& shape, const PackedWeight& weight, std::uint16_t* keys,
                    std::uint16_t* values);

// One query a row: q and out (rows, heads * 64), over keys and values (rows, heads, capacity, 64) of float32, frames
// starts[r] <= j < ends[r] (starts null: from 0). A row with none gives zeros. Sums are float32.
struct StepShape {
  Index rows, heads, capacity;
  const std::int64_t *starts, *ends;
};
void step_attention(const float* q, const float* keys, const float* values, const StepShape& shape, float* out);

// One query a row over the row's own window, wherever it lies: keys[r] and values[r] point at half floats
// (heads, frames[r], 64), of which the first lens[r] frames are seen. Rows may come and go without moving a window.
struct WindowRows {
  Index rows, heads;
  const std::uint16_t *const *keys, *const *values;
  const std::int64_t *frames, *lens;
};
void window_attention(const float* q, const WindowRows& windows, float* out);

}  // namespace oasr::fixed16
