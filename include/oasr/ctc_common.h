// What the CTC decoders of all devices share: their arithmetic, the order of candidates, the layout of results.
//
// The same input gives the same bits on a CPU and on a GPU: scores come from IEEE additions and multiplications in a fixed
// order, compiled without contraction (-ffp-contract=off, NVRTC's fmad=false), so that two hypotheses that are close are
// ranked alike on every device. No standard header is needed where NVRTC compiles this.
#pragma once

#ifdef __CUDACC__
#define OASR_CTC_FN __host__ __device__ __forceinline__
#else
#define OASR_CTC_FN inline
#endif

#ifndef __CUDACC_RTC__
#include <cstring>
#include <limits>
#endif

namespace oasr::ctc {

// What sorts first is the larger key: a score's order_bits above the inverted index. 0 stands for nothing.
using Key = unsigned long long;
using Hash = unsigned long long;

#ifdef __CUDACC_RTC__
OASR_CTC_FN float float_of(unsigned bits) { return __uint_as_float(bits); }
OASR_CTC_FN unsigned bits_of(float value) { return __float_as_uint(value); }
#else
OASR_CTC_FN float float_of(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
OASR_CTC_FN unsigned bits_of(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
static_assert(std::numeric_limits<float>::is_iec559 && sizeof(unsigned) == 4, "scores are IEEE floats of 32 bits");
#endif

OASR_CTC_FN float infinity() { return float_of(0x7f800000u); }
OASR_CTC_FN float nothing() { return float_of(0xff800000u); }  // the log of probability 0

// A log-probability as the search uses it: NaN and plus infinity are no probability and count as 0; -0 becomes +0, so
// that equal values have equal bits.
OASR_CTC_FN float log_prob(float value) { return (value < infinity() ? value : nothing()) + 0.0f; }

// Unsigned integers in the order of the floats (no NaN).
OASR_CTC_FN unsigned order_bits(float value) {
  const unsigned bits = bits_of(value);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
OASR_CTC_FN float from_order_bits(unsigned order) {
  return float_of((order & 0x80000000u) != 0 ? order & 0x7fffffffu : ~order);
}

// Of two scores the larger comes first, of equal ones the lower index. A score of minus infinity is no candidate.
OASR_CTC_FN Key key_of(float score, unsigned index) {
  return score > nothing() ? Key{order_bits(score)} << 32 | (0xffffffffu - index) : Key{0};
}
OASR_CTC_FN float score_of(Key key) { return from_order_bits(static_cast<unsigned>(key >> 32)); }
OASR_CTC_FN unsigned index_of(Key key) { return 0xffffffffu - static_cast<unsigned>(key); }

// exp(x) for x in [-24, 0] to 1e-7 of itself: 2^n times a minimax polynomial on [-ln2/2, ln2/2].
OASR_CTC_FN float exp_of(float x) {
  const int n = static_cast<int>(x * 1.44269504f - 0.5f);
  const float scale = static_cast<float>(n);
  const float r = (x - scale * 0.693359375f) - scale * -2.12194440e-4f;  // ln 2 in two parts, the first of 9 bits
  const float r2 = r * r;
  const float low = (1.0f + r) + (0.4999999f + 0.1666642f * r) * r2;
  const float high = (0.041668233f + 0.008374899f * r) + 0.0013836742f * r2;
  return (low + high * (r2 * r2)) * float_of(static_cast<unsigned>(n + 127) << 23);
}

// log(1 + x) for x in [0, 1] to 1e-7 of itself; a minimax polynomial, never negative.
OASR_CTC_FN float log1p_of(float x) {
  const float x2 = x * x, x4 = x2 * x2;
  const float a = 1.0f - 0.49999914f * x, b = 0.33330277f - 0.24957348f * x;
  const float c = 0.19692463f - 0.153533f * x, d = 0.10684575f - 0.057759523f * x;
  const float e = 0.020277973f - 0.0033387765f * x;
  return x * (((a + b * x2) + (c + d * x2) * x4) + e * (x4 * x4));
}

// log(exp(a) + exp(b)), at least the larger of the two.
OASR_CTC_FN float log_add(float a, float b) {
  const float high = a > b ? a : b, low = a > b ? b : a;
  const float gap = low - high;  // NaN when both are minus infinity
  const bool counts = gap > -24.0f;
  const float sum = high + log1p_of(exp_of(counts ? gap : -24.0f));  // without a branch, which a warp would wait for
  return counts ? sum : high;
}

// The hash of a prefix and one more token (the finaliser of MurmurHash3, by Austin Appleby, public domain). Two prefixes
// of a beam are taken for the same when their 64 bits agree.
constexpr Hash kEmptyPrefix = 0, kNoParent = 1, kNoPrefix = 2;
OASR_CTC_FN Hash extended(Hash prefix, int token) {
  Hash h = (prefix + static_cast<unsigned>(token) + 1) * 0x9e3779b97f4a7c15ull;
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdull;
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return h ^ (h >> 33);
}

// Which (beam, token) pairs a frame has to consider: the beam that is `beam_rank`-th best takes so many of the frame's
// best tokens. With (beam_rank + 1) * r >= 2 * beam, a token of rank r has at least (beam_rank + 1) * r + beam_rank
// pairs before it, at most one a beam is a repeated label and fewer than `beam` in all are merged: `beam` others
// win. The best beam takes 2 * beam tokens, and no beam ever needs more.
OASR_CTC_FN int tokens_taken(int beam_rank, int beam) { return (2 * beam + beam_rank) / (beam_rank + 1); }

// The same seen from the token: how many beams take the token of that rank.
OASR_CTC_FN int beams_taking(int token_rank, int beam) {
  const int beams = token_rank == 0 ? beam : (2 * beam - 1) / token_rank;
  return beams < beam ? beams : beam;
}

// What a prefix is worth after a frame that adds no token to it.
struct Stay {
  float blank, nonblank;  // log-probability of its alignments that end in blank, and in its last token
  float total;            // of all of them
  bool moved;             // most of it was emitted in this frame
};

// `merged` is the score of the same prefix as an extension of its parent in this frame, minus infinity without one.
OASR_CTC_FN Stay stay(float total, float nonblank, float last_log_prob, float blank_log_prob, float merged) {
  const float blank = total + blank_log_prob, repeated = nonblank + last_log_prob;
  const float own = log_add(blank, repeated);
  return {blank, log_add(repeated, merged), log_add(own, merged), merged > own};
}

// Results: for each row, for each of its n best hypotheses, kHeader + 3 * frames integers of 32 bits:
//   length (-1: there is no such hypothesis), 0, the score as the low and high half of a double,
//   then `frames` places each for the tokens, their emission frames, and their log-probabilities (float bits).
constexpr int kHeader = 4;

}  // namespace oasr::ctc
