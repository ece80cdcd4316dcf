#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "oasr/alignment.h"

namespace py = pybind11;
using namespace oasr::alignment;

namespace {

template <class T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

[[noreturn]] void refuse(const std::string& name, const std::string& expected, const std::string& found) {
  throw std::invalid_argument(name + ": expected " + expected + ", got " + found);
}

std::string shape_of(const py::array& array) {
  std::string text = "shape (";
  for (py::ssize_t i = 0; i < array.ndim(); ++i) text += std::to_string(array.shape(i)) + ",";
  return text + ")";
}

// Code points as CPython stores them: lone surrogates included, which no UTF conversion lets through.
Transcript read(const py::list& pieces) {
  Transcript transcript;
  transcript.piece_ends.reserve(pieces.size());
  for (const auto& piece : pieces) {
    if (!PyUnicode_Check(piece.ptr())) refuse("pieces", "strings", Py_TYPE(piece.ptr())->tp_name);
    const auto kind = PyUnicode_KIND(piece.ptr());
    const void* const data = PyUnicode_DATA(piece.ptr());
    const auto length = PyUnicode_GET_LENGTH(piece.ptr());
    for (Py_ssize_t i = 0; i < length; ++i) transcript.text.push_back(PyUnicode_READ(kind, data, i));
    transcript.piece_ends.push_back(transcript.text.size());
  }
  return transcript;
}

std::vector<double> read(const Array<double>& log_probs, std::size_t tokens) {
  if (log_probs.ndim() != 1 || static_cast<std::size_t>(log_probs.shape(0)) != tokens) {
    refuse("log_probs", "one a piece: (" + std::to_string(tokens) + ",)", shape_of(log_probs));
  }
  return {log_probs.data(), log_probs.data() + tokens};
}

Clock clock_of(double seconds_per_frame, double offset_s, double duration_s) {
  const auto positive = [](const char* name, double value) {
    if (!(std::isfinite(value) && value > 0)) refuse(name, "seconds > 0", std::to_string(value));
  };
  positive("seconds_per_frame", seconds_per_frame);
  positive("duration_s", duration_s);
  if (!std::isfinite(offset_s)) refuse("offset_s", "a finite number", std::to_string(offset_s));
  return {seconds_per_frame, offset_s, duration_s};
}

// (words, times, confidence) with words cut out of the joined pieces.
py::tuple results(const py::list& pieces, const Timings& timings) {
  const auto text = py::reinterpret_steal<py::object>(PyUnicode_Join(py::str("").ptr(), pieces.ptr()));
  if (!text) throw py::error_already_set();
  py::list words;
  for (const auto& word : timings.words) {
    const auto first = static_cast<Py_ssize_t>(word.first), last = static_cast<Py_ssize_t>(word.last);
    auto part = py::reinterpret_steal<py::object>(PyUnicode_Substring(text.ptr(), first, last));
    if (!part) throw py::error_already_set();
    words.append(py::make_tuple(std::move(part), word.time.start_s, word.time.end_s, word.confidence));
  }
  py::list times;
  for (const auto& token : timings.tokens) times.append(py::make_tuple(token.start_s, token.end_s));
  return py::make_tuple(std::move(words), std::move(times), timings.confidence);
}

py::tuple timed(const py::list& pieces, std::vector<Span> spans, const Array<double>& log_probs, const Clock& clock) {
  const auto transcript = read(pieces);
  const auto scores = read(log_probs, transcript.piece_ends.size());
  Timings timings;
  {
    const py::gil_scoped_release release;
    timings = time_words(transcript, std::move(spans), scores, clock);
  }
  return results(pieces, timings);
}

py::tuple time_emissions(const py::list& pieces, const Array<std::int64_t>& frames, const Array<double>& log_probs,
                         double seconds_per_frame, double offset_s, double duration_s) {
  const auto clock = clock_of(seconds_per_frame, offset_s, duration_s);
  const auto tokens = static_cast<py::ssize_t>(pieces.size());
  if (frames.ndim() != 1 || frames.shape(0) != tokens) {
    refuse("frames", "one a piece: (" + std::to_string(tokens) + ",)", shape_of(frames));
  }
  return timed(pieces, spans_of_emissions({frames.data(), frames.data() + tokens}), log_probs, clock);
}

py::tuple time_spans(const py::list& pieces, const Array<std::int64_t>& spans, const Array<double>& log_probs,
                     double seconds_per_frame, double offset_s, double duration_s) {
  const auto clock = clock_of(seconds_per_frame, offset_s, duration_s);
  const auto tokens = static_cast<py::ssize_t>(pieces.size());
  if (spans.ndim() != 2 || spans.shape(0) != tokens || spans.shape(1) != 2) {
    refuse("spans", "a start and an end a piece: (" + std::to_string(tokens) + ", 2)", shape_of(spans));
  }
  std::vector<Span> chosen;
  for (py::ssize_t i = 0; i < tokens; ++i) chosen.push_back({spans.at(i, 0), spans.at(i, 1)});
  return timed(pieces, std::move(chosen), log_probs, clock);
}

Array<std::int64_t> warp_matrix(const Array<float>& scores) {
  if (scores.ndim() != 2 || scores.shape(0) < 1 || scores.shape(1) < 1) {
    refuse("scores", "(tokens, frames), both at least 1", shape_of(scores));
  }
  const float* const data = scores.data();
  const auto tokens = scores.shape(0), frames = scores.shape(1);
  std::vector<Span> spans;
  {
    const py::gil_scoped_release release;
    spans = warp(data, tokens, frames);
  }
  Array<std::int64_t> out({tokens, py::ssize_t{2}});
  auto cells = out.mutable_unchecked<2>();
  for (py::ssize_t i = 0; i < tokens; ++i) {
    const auto& span = spans[static_cast<std::size_t>(i)];
    cells(i, 0) = span.start;
    cells(i, 1) = span.end;
  }
  return out;
}

}  // namespace

void bind_alignment(py::module_& m) {
  auto sub = m.def_submodule("alignment", "Words and their times (include/oasr/alignment.h).");
  sub.def("time_emissions", &time_emissions, py::arg("pieces"), py::arg("frames"), py::arg("log_probs"),
          py::arg("seconds_per_frame"), py::arg("offset_s"), py::arg("duration_s"),
          "Words, token times and confidence of tokens that were emitted at `frames`.");
  sub.def("time_spans", &time_spans, py::arg("pieces"), py::arg("spans"), py::arg("log_probs"),
          py::arg("seconds_per_frame"), py::arg("offset_s"), py::arg("duration_s"),
          "Words, token times and confidence of tokens that last from spans[i, 0] up to spans[i, 1].");
  sub.def("warp", &warp_matrix, py::arg("scores"),
          "Frames (tokens, 2) that each token visits on the best path through (tokens, frames) scores.");
}
