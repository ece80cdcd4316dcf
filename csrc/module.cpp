// The whole extension on one screen: one bind_<stem> call for each idea in csrc/.

#include <pybind11/pybind11.h>

namespace py = pybind11;

void bind_alignment(py::module_& m);
void bind_ctc(py::module_& m);
void bind_fixed16(py::module_& m);
void bind_segmentation(py::module_& m);

PYBIND11_MODULE(_C, m) {
  m.doc() = "Native parts of oasr: CPU work that Python is too slow for. Calls release the GIL.";
  bind_alignment(m);
  bind_ctc(m);
  bind_fixed16(m);
  bind_segmentation(m);
}
