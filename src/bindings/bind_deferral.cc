#include "bindings/bind_deferral.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "bindings/device/device_values.h"
#include "bindings/python/deferred.h"
#include "bindings/python/runtime.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

void SetDeferral(nb::object defer, nb::object fetch, bool all, bool kernel, bool kernel_of_host) {
  interpreter().defer_tensor = defer.release().ptr();
  interpreter().fetch_deferred = fetch.release().ptr();
  interpreter().defer_all = all;
  interpreter().device_kernel = kernel;
  interpreter().kernel_of_host = kernel_of_host;
}

void Deliver(uintptr_t first, bool wide, const std::vector<std::tuple<int32_t, int64_t, int64_t>>& slots) {
  for (const auto& [slot, cell, parts] : slots) {
    DeliverCells(slot, {reinterpret_cast<const char*>(first) + cell * kCellBytes, parts, wide});
  }
  ResolveDeferred();
}

}  // namespace

void BindDeferral(nb::module_& m) {
  m.def("set_deferral", &SetDeferral, nb::arg("defer"), nb::arg("fetch"), nb::arg("all"), nb::arg("kernel") = false,
        nb::arg("kernel_of_host") = false,
        "Functions of device_stats.py that start and fetch reductions; all: of host memory, too. Whether the kernel of "
        "devices may do it instead, and of host memory, too.");
  m.def("take_kernel_fault", &TakeKernelFault, "Why the kernel of a device is no longer used; once, else empty.");
  m.def("deliver_cells", &Deliver, nb::arg("first"), nb::arg("wide"), nb::arg("slots"),
        "Reductions have arrived: the address of the first cell, and (slot, cell, parts) for each tensor.");
  m.def(
      "deliver_bytes", [](int32_t slot, uintptr_t data) { DeliverBytes(slot, reinterpret_cast<const void*>(data)); },
      nb::arg("slot"), nb::arg("data"), "The elements of a tensor have arrived at this address.");
  m.def("deliver_nothing", &DeliverNothing, nb::arg("slot"), "The values of this tensor will not come.");
  m.def("resolve_deferred", &ResolveDeferred, "Finishes the records whose values have all arrived.");
}

}  // namespace msprobe
