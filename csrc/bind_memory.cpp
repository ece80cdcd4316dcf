#include <pybind11/pybind11.h>

#include "oasr/memory.h"

namespace py = pybind11;

void bind_memory(py::module_& m) {
  auto sub = m.def_submodule("memory", "What the process asks of its memory allocator.");
  sub.def("keep_large_blocks", &oasr::keep_large_blocks,
          "Keep large freed blocks for reuse instead of returning them; whether that could be arranged.");
}
