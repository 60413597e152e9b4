#include "tensor/files/npy_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/file.h"
#include "base/message.h"
#include "tensor/kernels/layout.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

struct NamedType {
  DType dtype;
  std::string_view name;
};
constexpr NamedType kTypes[] = {
    {DType::kFloat32, "<f4"},   {DType::kFloat64, "<f8"},     {DType::kFloat16, "<f2"}, {DType::kInt8, "|i1"},
    {DType::kInt16, "<i2"},     {DType::kInt32, "<i4"},       {DType::kInt64, "<i8"},   {DType::kUInt8, "|u1"},
    {DType::kUInt16, "<u2"},    {DType::kUInt32, "<u4"},      {DType::kUInt64, "<u8"},  {DType::kBool, "|b1"},
    {DType::kComplex64, "<c8"}, {DType::kComplex128, "<c16"},
};

std::string_view NumpyName(DType dtype) {
  const auto* const found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.dtype == dtype; });
  return found == std::end(kTypes) ? std::string_view() : found->name;
}

}  // namespace

std::string NpyHeader(DType dtype, std::span<const int64_t> shape) {
  const std::string_view name = NumpyName(dtype);
  if (name.empty()) return {};
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", name,
                                 fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr size_t kBefore = 10, kAlign = 64;  // magic, version and length
  dict.append((kAlign - (kBefore + dict.size() + 1) % kAlign) % kAlign, ' ');
  dict += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(dict.size() & 0xFF);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict;
}

bool IsWidenedInNpy(DType dtype) { return IsFloating(dtype) && NumpyName(dtype).empty(); }

Status WriteNpyFile(const std::string& path, const TensorView& t, uint64_t* bytes) {
  const bool widen = NumpyName(t.dtype).empty();
  const DType dtype = widen ? DType::kFloat32 : t.dtype;
  Layout layout;
  if (t.dtype == DType::kUnknown || t.dtype == DType::kComplex32 || !MakeLayout(t, Order::kLogical, &layout)) {
    return InternalError(Msg("{} cannot be written: numpy has no type for its tensor", path));
  }
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  const std::string header = NpyHeader(dtype, {t.shape, static_cast<size_t>(t.ndim)});
  MSP_RETURN_IF_ERROR(file.Write(header));
  Status status;
  std::vector<double> wide;
  std::vector<float> floats;
  const auto take = [&](const char* from, size_t n) {
    if (!status.ok()) return;
    if (!widen) {
      status = file.Write({from, n * layout.element});
      return;
    }
    constexpr size_t kRun = 4096;
    for (size_t at = 0; at < n && status.ok(); at += kRun) {
      const size_t run = std::min(kRun, n - at);
      wide.resize(run);
      if (!metrics::ToDoubles(t.dtype, from + at * layout.element, run, wide.data())) {
        status = InternalError(Msg("{} cannot be written: its type is unknown", path));
        return;
      }
      floats.assign(wide.begin(), wide.end());
      status = file.Write({reinterpret_cast<const char*>(floats.data()), run * sizeof(float)});
    }
  };
  if (layout.count > 0) LayoutWalker(layout).Walk(0, layout.count, take);
  MSP_RETURN_IF_ERROR(status);
  *bytes += header.size() + static_cast<uint64_t>(layout.count) * ElementSize(dtype);
  return file.Commit();
}

}  // namespace msprobe
