#include "bindings/bind_formats.h"

#include <nanobind/stl/string.h>

#include <cstring>

#include "bindings/python/raise.h"
#include "lowp/formats/scaled_format.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

/// Rows of float32, read back into the same memory after they were stored.
void FakeQuantize(uintptr_t address, int64_t rows, int64_t cols, const std::string& format, bool saturate,
                  bool stochastic, uint64_t seed) {
  const StatusOr<ScaledFormat> parsed = ParseScaledFormat(format);
  if (!parsed.ok()) Raise(parsed.status());
  DenseMatrix in(rows, cols), out;
  std::memcpy(in.values.data(), reinterpret_cast<const void*>(address), in.values.size() * sizeof(float));
  const float largest = LargestMagnitude(in.values.data(), rows * cols);
  StoreAndRead(*parsed, CastRules{saturate, stochastic, seed, 0}, largest, in, &out);
  std::memcpy(reinterpret_cast<void*>(address), out.values.data(), out.values.size() * sizeof(float));
}

}  // namespace

void BindFormats(nb::module_& m) {
  m.def("fake_quantize", &FakeQuantize, nb::arg("address"), nb::arg("rows"), nb::arg("cols"), nb::arg("format"),
        nb::arg("saturate") = true, nb::arg("stochastic") = false, nb::arg("seed") = 0,
        "Stores float32 memory that the caller keeps in a format of few bits, and reads it back in place.");
}

}  // namespace msprobe
