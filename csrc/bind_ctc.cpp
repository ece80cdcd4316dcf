#include <pybind11/pybind11.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "oasr/ctc_search.h"

namespace py = pybind11;
using namespace oasr::ctc;

namespace {

using Address = std::uintptr_t;  // what a tensor's data_ptr() gives

[[noreturn]] void refuse(const std::string& name, const std::string& expected, const std::string& found) {
  throw std::invalid_argument(name + ": expected " + expected + ", got " + found);
}

void between(const char* name, Index value, Index least, Index most) {
  if (value < least || value > most) {
    refuse(name, std::to_string(least) + " to " + std::to_string(most), std::to_string(value));
  }
}

void py_decode(Address log_probs, const std::tuple<Index, Index, Index>& shape, const std::tuple<Index, Index>& strides,
               Address lengths, const Search& search, Address out) {
  const auto [rows, frames, vocab] = shape;
  const auto [row_stride, frame_stride] = strides;
  between("rows", rows, 0, INT32_MAX);
  between("vocab", vocab, 1, INT32_MAX);
  between("beam_size", search.beam_size, 1, 0xffffffffll / vocab);
  // Prefixes are numbered by int: at most beam_size new ones a frame.
  between("frames", frames, 0, INT32_MAX / search.beam_size);
  between("nbest", search.nbest, 1, search.beam_size);
  between("blank_id", search.blank_id, 0, vocab - 1);
  if (rows == 0) return;
  const auto* const row_lengths = reinterpret_cast<const std::int64_t*>(lengths);
  for (Index r = 0; r < rows; ++r) between("lengths", row_lengths[r], 0, frames);
  const Posteriors posteriors{reinterpret_cast<const float*>(log_probs), rows, frames, vocab, row_stride, frame_stride,
                              row_lengths};
  auto* const results = reinterpret_cast<std::int32_t*>(out);
  const py::gil_scoped_release release;
  decode(posteriors, search, results);
}

}  // namespace

void bind_ctc(py::module_& m) {
  auto sub = m.def_submodule("ctc", "CTC decoding (include/oasr/ctc_search.h). Arrays are passed by address.");
  py::class_<Search>(sub, "Search", "What is searched for; see include/oasr/ctc_search.h.")
      .def(py::init<int, int, float, int>(), py::arg("beam_size"), py::arg("blank_id"), py::arg("skip_from"),
           py::arg("nbest"));
  sub.def("decode", &py_decode, py::arg("log_probs"), py::arg("shape"), py::arg("strides"), py::arg("lengths"),
          py::arg("search"), py::arg("out"),
          "float32 (rows, frames, vocab) with strides (row, frame) and int64 lengths -> the n best of each row.");
}
