#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <stdexcept>

#include "oasr/segmentation.h"

namespace py = pybind11;

namespace {

using Samples = py::array_t<float, py::array::c_style | py::array::forcecast>;

void check(const Samples& samples, std::int64_t sample_rate, std::int64_t limit) {
  if (samples.ndim() != 1) throw std::invalid_argument("samples: expected one dimension, got " + std::to_string(samples.ndim()));
  if (sample_rate < 1) throw std::invalid_argument("sample_rate: expected >= 1, got " + std::to_string(sample_rate));
  if (limit < 1) throw std::invalid_argument("limit: expected >= 1 sample, got " + std::to_string(limit));
}

oasr::Windows plan_windows(const Samples& samples, std::int64_t sample_rate, std::int64_t limit) {
  check(samples, sample_rate, limit);
  // Asked for before the GIL goes: without it no Python object may be touched.
  const float* data = samples.data();
  const std::int64_t n = samples.shape(0);
  const py::gil_scoped_release release;
  return oasr::plan_windows(data, n, sample_rate, limit);
}

std::pair<std::int64_t, bool> next_cut(const Samples& samples, std::int64_t start, std::int64_t sample_rate,
                                       std::int64_t limit) {
  check(samples, sample_rate, limit);
  const float* data = samples.data();
  const std::int64_t n = samples.shape(0);
  if (start < 0 || n - start <= limit) {
    throw std::invalid_argument("start: expected more than the limit of " + std::to_string(limit) + " behind it, got " +
                                std::to_string(start) + " of " + std::to_string(n));
  }
  const py::gil_scoped_release release;
  const auto cut = oasr::next_cut(data, n, start, sample_rate, limit);
  return {cut.position, cut.in_pause};
}

}  // namespace

void bind_segmentation(py::module_& m) {
  auto sub = m.def_submodule("segmentation", "Where to cut audio that is longer than a model's window.");
  sub.def("plan_windows", &plan_windows, py::arg("samples"), py::arg("sample_rate"), py::arg("limit"),
          "Sample ranges that cover `samples` once, each at most `limit` long, cut in the longest pauses.");
  sub.def("next_cut", &next_cut, py::arg("samples"), py::arg("start"), py::arg("sample_rate"), py::arg("limit"),
          "Where the window that begins at `start` ends, and whether the speaker pauses there.");
}
