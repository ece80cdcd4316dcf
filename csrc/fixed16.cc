#include "oasr/fixed16.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>

#if defined(__x86_64__)
#include "fixed16_gemm.h"
#include "fixed16_rows.h"
#endif

namespace oasr::fixed16 {

#if defined(__x86_64__)

namespace {

constexpr double kWeightMax = 32000;
constexpr double kSumMax = 2147483647;

const char* best_instruction_set() {
  const char* wish = std::getenv("OASR_INSTRUCTION_SET");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (!avx2 || (wish != nullptr && std::strcmp(wish, "none") == 0)) return "none";
  const bool vnni = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  return vnni && (wish == nullptr || std::strcmp(wish, "avx2") != 0) ? "avx512_vnni" : "avx2";
}

// Integers per unit of weight: as many as fit 16 bits and keep kActivationMax * sum |q| inside 32, where rounding may add
// half to each q (k is twice what is needed). NaN when the row is not finite.
double resolution(const float* row, Index k) {
  // Not 0, which a row of zeros would divide by.
  double sum = 1e-30, largest = 1e-30;
  for (Index i = 0; i < k; ++i) {
    const double magnitude = std::fabs(static_cast<double>(row[i]));
    sum += magnitude;
    largest = std::max(largest, magnitude);
  }
  if (!std::isfinite(sum)) return std::numeric_limits<double>::quiet_NaN();
  return std::min(kWeightMax / largest, (kSumMax / static_cast<double>(kActivationMax) - static_cast<double>(k)) / sum);
}

}  // namespace

const char* instruction_set() {
  static const char* const name = best_instruction_set();
  return name;
}

bool has_vnni() {
  static const bool value = std::strcmp(instruction_set(), "avx512_vnni") == 0;
  return value;
}

void pack(const float* weight, Index n, Index k, std::int16_t* panels, float* scales) {
  for (Index j = 0; j < n; ++j) {
    const float* row = weight + j * k;
    const double factor = resolution(row, k);
    scales[j] = static_cast<float>(1.0 / factor);
    // The layout of PackedWeight: panel, pair of inputs, column, the pair itself.
    std::int16_t* to = panels + j / kPanelColumns * kPanelColumns * k + j % kPanelColumns * 2;
    for (Index i = 0; i < k; ++i) {
      const double q = std::isfinite(factor) ? static_cast<double>(row[i]) * factor : 0.0;
      to[i / 2 * 2 * kPanelColumns + i % 2] = static_cast<std::int16_t>(std::lrint(q));
    }
  }
}

#else

namespace {

[[noreturn]] void unavailable() { throw std::runtime_error("fixed16: this processor's architecture has no kernels"); }

}  // namespace

const char* instruction_set() { return "none"; }
void pack(const float*, Index, Index, std::int16_t*, float*) { unavailable(); }
void linear(const Rows&, const LayerNorm&, const PackedWeight&, const Output&, Epilogue) { unavailable(); }
void feed_forward(float*, Index, const LayerNorm&, const PackedWeight&, const PackedWeight&) { unavailable(); }
void self_attention(const float*, const AttentionShape&, const std::int64_t*, float*) { unavailable(); }
void window_project(const float*, const AttentionShape&, const PackedWeight&, std::uint16_t*, std::uint16_t*) {
  unavailable();
}
void window_attention(const float*, const WindowRows&, float*) { unavailable(); }
void step_attention(const float*, const float*, const float*, const StepShape&, float*) { unavailable(); }

#endif

bool supported() { return std::strcmp(instruction_set(), "none") != 0; }

}  // namespace oasr::fixed16
