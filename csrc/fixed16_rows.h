// Work on one row of floats. Include only where __x86_64__ is defined; needs AVX2.
#pragma once

#include "oasr/fixed16.h"

namespace oasr::fixed16 {

constexpr float kActivationMax = 4095;  // largest magnitude of a quantised activation

// x (k floats, k % 16 == 0) ~ q * scale, |q| <= limit; returns the scale. A row with a NaN or an infinity gives q = 0 and
// the scale NaN, which makes NaN of whatever it is multiplied with; a row of zeros gives 0.
float quantise_row(const float* x, Index k, std::int16_t* q, float limit);

// y = (x - mean) / sqrt(variance + 1e-5) * gain + bias, k % 16 == 0.
void normalise_row(const float* x, Index k, const LayerNorm& norm, float* y);

// The exact GELU in place, k % 8 == 0.
void gelu_row(float* x, Index k);

// n scores in powers of 2 (n % 16 == 0, 64-byte aligned, none NaN) -> probabilities in units of 2^-14 of the largest one,
// with places 4-7 and 8-11 of each sixteen exchanged; returns their sum, which is at most 2^20.
float softmax_row(const float* scores, Index n, std::int16_t* p);

}  // namespace oasr::fixed16
