#include "bindings/bind_regions.h"

#include "bindings/python/api_site.h"
#include "bindings/python/hook_object.h"
#include "bindings/torch/regions.h"

namespace nb = nanobind;

namespace msprobe {

void BindRegions(nb::module_& m) {
  m.def("hide_from_compiler", &HideFromCompiler, nb::arg("hide"),
        "While a compiler traces, it finds functions and modules as they are without hooks.");
  m.def(
      "set_region_callbacks",
      [](nb::handle set_eval_frame, nb::handle enter, nb::handle pause, nb::handle hide) {
        SetRegionCallbacks(set_eval_frame.ptr(), enter.ptr(), pause.ptr(), hide.ptr());
      },
      nb::arg("set_eval_frame"), nb::arg("enter"), nb::arg("pause"), nb::arg("hide"),
      "What compiled code is entered by, and functions of regions.py: callback -> name of the region or None; () -> is "
      "it the compiler's; what to hide.");
  m.def(
      "watch_regions",
      [](bool on) {
        WatchRegions(on);
        ApisInstalled() ? InstallApis() : RemoveApis();
      },
      nb::arg("on"), "Whether regions are watched also while nothing is recorded.");
  m.def(
      "callback",
      [](nb::handle function) {
        PyObject* made = NewCallback(function.ptr());
        if (made == nullptr) throw nb::python_error();
        return nb::steal(made);
      },
      nb::arg("function"), "An object that calls this function, unseen by a compiler; its copies do nothing.");
}

}  // namespace msprobe
