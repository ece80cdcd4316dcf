#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>

#include "oasr/fixed16.h"
#include "oasr/thread_pool.h"

namespace py = pybind11;
using namespace oasr::fixed16;

namespace {

using Address = std::uintptr_t;  // what a tensor's data_ptr() gives; 0 is null

[[noreturn]] void refuse(const std::string& name, const std::string& expected, const std::string& found) {
  throw std::invalid_argument(name + ": expected " + expected + ", got " + found);
}

template <class T>
T* pointer(Address address, const char* name, bool optional = false) {
  if (address == 0 && !optional) refuse(name, "the address of an array", "0");
  if (address % alignof(T) != 0) refuse(name, "an aligned address", std::to_string(address));
  return reinterpret_cast<T*>(address);
}

void at_least(const char* name, Index value, Index least) {
  if (value < least) refuse(name, ">= " + std::to_string(least), std::to_string(value));
}

void multiple_of(const char* name, Index value, Index step) {
  if (value < 1 || value % step != 0) refuse(name, "a positive multiple of " + std::to_string(step), std::to_string(value));
}

void usable() {
  if (!supported()) throw std::runtime_error("fixed16: needs an x86-64 CPU with AVX2, FMA and F16C; check supported()");
}

PackedWeight packed_weight(Index n, Index k, Address packed, Address scales, Address bias) {
  multiple_of("n", n, kPanelColumns);
  multiple_of("k", k, kDepthStep);
  if (k > 1 << 18) refuse("k", "at most 262144", std::to_string(k));  // or weights would have too few bits
  if (packed % 64 != 0) refuse("packed", "an address that is a multiple of 64", std::to_string(packed));
  return {n, k, pointer<const std::int16_t>(packed, "packed"), pointer<const float>(scales, "scales"),
          pointer<const float>(bias, "bias", true)};
}

LayerNorm layer_norm(Address gain, Address bias) {
  if ((gain == 0) != (bias == 0)) refuse("ln_gain, ln_bias", "both or neither", "one of them");
  return {pointer<const float>(gain, "ln_gain", true), pointer<const float>(bias, "ln_bias", true)};
}

const std::int64_t* bounds(Address address, const char* name, Index rows, Index limit, bool optional) {
  const auto* values = pointer<const std::int64_t>(address, name, optional);
  for (Index r = 0; values != nullptr && r < rows; ++r) {
    if (values[r] < 0 || values[r] > limit) refuse(name, "0 to " + std::to_string(limit), std::to_string(values[r]));
  }
  return values;
}

void py_pack(Address weight, Index n, Index k, Address packed, Address scales) {
  usable();
  const PackedWeight to = packed_weight(n, k, packed, scales, 0);
  const auto* from = pointer<const float>(weight, "weight");
  const py::gil_scoped_release release;
  // Everybody else only reads a packed weight; here it is made.
  pack(from, n, k, const_cast<std::int16_t*>(to.panels), const_cast<float*>(to.scales));
}

void py_linear(Address x, Index ldx, Index m, Address ln_gain, Address ln_bias, Index n, Index k, Address packed,
               Address scales, Address bias, Address out, Index ldo, int mode) {
  usable();
  if (mode < 0 || mode > 2) refuse("mode", "0 (plain), 1 (gelu) or 2 (add)", std::to_string(mode));
  const PackedWeight weight = packed_weight(n, k, packed, scales, bias);
  const LayerNorm norm = layer_norm(ln_gain, ln_bias);
  at_least("m", m, 0);
  at_least("ldx", ldx, 1);
  at_least("ldo", ldo, n);
  if (m == 0) return;
  const Rows rows{pointer<const float>(x, "x"), ldx, m};
  const Output to{pointer<float>(out, "out"), ldo};
  const py::gil_scoped_release release;
  linear(rows, norm, weight, to, static_cast<Epilogue>(mode));
}

void py_feed_forward(Address x, Index m, Index d, Index ff, Address ln_gain, Address ln_bias, Address w1, Address s1,
                     Address b1, Address w2, Address s2, Address b2) {
  usable();
  const PackedWeight up = packed_weight(ff, d, w1, s1, b1), down = packed_weight(d, ff, w2, s2, b2);
  const LayerNorm norm = layer_norm(ln_gain, ln_bias);
  at_least("m", m, 0);
  if (m == 0) return;
  auto* rows = pointer<float>(x, "x");
  const py::gil_scoped_release release;
  feed_forward(rows, m, norm, up, down);
}

AttentionShape attention_shape(Index batch, Index t, Index heads) {
  at_least("batch", batch, 0);
  at_least("t", t, 0);
  at_least("heads", heads, 1);
  if (t > 1 << 16) refuse("t", "at most 65536", std::to_string(t));
  return {batch, t, heads};
}

void py_self_attention(Address qkv, Index batch, Index t, Index heads, Address lens, Address out) {
  usable();
  const AttentionShape shape = attention_shape(batch, t, heads);
  if (batch == 0 || t == 0) return;
  const auto* limits = bounds(lens, "lens", batch, t, true);
  const auto* from = pointer<const float>(qkv, "qkv");
  auto* to = pointer<float>(out, "out");
  const py::gil_scoped_release release;
  self_attention(from, shape, limits, to);
}

void py_window_project(Address hidden, Index batch, Index t, Index k_dim, Index heads, Address packed, Address scales,
                       Address bias, Address keys, Address values) {
  usable();
  const AttentionShape shape = attention_shape(batch, t, heads);
  const PackedWeight weight = packed_weight(2 * heads * kHeadSize, k_dim, packed, scales, bias);
  if (batch == 0 || t == 0) return;
  const auto* from = pointer<const float>(hidden, "hidden");
  auto* k = pointer<std::uint16_t>(keys, "keys");
  auto* v = pointer<std::uint16_t>(values, "values");
  const py::gil_scoped_release release;
  window_project(from, shape, weight, k, v);
}

const std::uint16_t* const* addresses(Address address, const char* name, Index rows) {
  const auto* values = pointer<const Address>(address, name, rows == 0);
  // Only the addresses can be checked; that the memory behind them lives is the caller's part.
  for (Index r = 0; r < rows; ++r) pointer<const std::uint16_t>(values[r], name);
  return reinterpret_cast<const std::uint16_t* const*>(values);
}

void py_window_attention(Address q, Address keys, Address values, Address frames, Address lens, Index rows,
                         Index heads, Address out) {
  usable();
  at_least("rows", rows, 0);
  at_least("heads", heads, 1);
  if (rows == 0) return;
  const auto* sizes = bounds(frames, "frames", rows, 1 << 16, false);
  const auto* seen = bounds(lens, "lens", rows, 1 << 16, false);
  for (Index r = 0; r < rows; ++r) {
    if (seen[r] > sizes[r]) refuse("lens", "at most the row's " + std::to_string(sizes[r]), std::to_string(seen[r]));
  }
  const WindowRows windows{rows, heads, addresses(keys, "keys", rows), addresses(values, "values", rows), sizes, seen};
  const auto* query = pointer<const float>(q, "q");
  auto* to = pointer<float>(out, "out");
  const py::gil_scoped_release release;
  window_attention(query, windows, to);
}

void py_step_attention(Address q, Address keys, Address values, Address starts, Address lens, Index rows, Index heads,
                       Index capacity, Address out) {
  usable();
  attention_shape(rows, capacity, heads);
  const auto* from = bounds(starts, "starts", rows, capacity, true);
  const StepShape shape{rows, heads, capacity, from, bounds(lens, "lens", rows, capacity, rows == 0)};
  if (rows == 0) return;
  const auto* query = pointer<const float>(q, "q");
  // An empty tensor may have no memory at all.
  const auto* k = pointer<const float>(keys, "keys", capacity == 0);
  const auto* v = pointer<const float>(values, "values", capacity == 0);
  auto* to = pointer<float>(out, "out");
  const py::gil_scoped_release release;
  step_attention(query, k, v, shape, to);
}

}  // namespace

void bind_fixed16(py::module_& m) {
  auto sub = m.def_submodule("fixed16", "Products and attention on 16-bit integers. Arrays are passed by address.");
  using py::arg;
  sub.def("supported", &supported, "Whether this CPU has the instructions.");
  sub.def("instruction_set", &instruction_set, "'avx2', 'avx512_vnni' or 'none'.");
  sub.def("set_threads", &oasr::set_threads, arg("n"), py::call_guard<py::gil_scoped_release>(),
          "Threads that share one call, its caller included.");
  sub.def("threads", &oasr::threads, "What set_threads set.");
  sub.def("pack", &py_pack, arg("weight"), arg("n"), arg("k"), arg("packed"), arg("scales"),
          "Quantise a float32 weight (n, k) for the other functions.");
  sub.def("linear", &py_linear, arg("x"), arg("ldx"), arg("m"), arg("ln_gain"), arg("ln_bias"), arg("n"), arg("k"),
          arg("packed"), arg("scales"), arg("bias"), arg("out"), arg("ldo"), arg("mode"),
          "out = [layer norm of] x times the weight, plus bias; mode 1: its GELU; mode 2: added to out.");
  sub.def("feed_forward", &py_feed_forward, arg("x"), arg("m"), arg("d"), arg("ff"), arg("ln_gain"), arg("ln_bias"),
          arg("w1"), arg("s1"), arg("b1"), arg("w2"), arg("s2"), arg("b2"), "x += W2 gelu(W1 norm(x) + b1) + b2.");
  sub.def("self_attention", &py_self_attention, arg("qkv"), arg("batch"), arg("t"), arg("heads"), arg("lens"),
          arg("out"), "Attention within each row of (batch, t, 3 * heads * 64), over its first lens frames.");
  sub.def("window_project", &py_window_project, arg("hidden"), arg("batch"), arg("t"), arg("k_dim"), arg("heads"),
          arg("packed"), arg("scales"), arg("bias"), arg("keys"), arg("values"),
          "Keys and values of a window, half floats (batch, heads, t, 64).");
  sub.def("window_attention", &py_window_attention, arg("q"), arg("keys"), arg("values"), arg("frames"), arg("lens"),
          arg("rows"), arg("heads"), arg("out"),
          "One query a row over half floats (heads, frames, 64) at the row's own addresses keys[r], values[r].");
  sub.def("step_attention", &py_step_attention, arg("q"), arg("keys"), arg("values"), arg("starts"), arg("lens"),
          arg("rows"), arg("heads"), arg("capacity"), arg("out"),
          "One query a row over float32 (rows, heads, capacity, 64), frames starts to lens.");
}
