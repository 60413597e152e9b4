#include "tensor/files/npy_writer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "tensor/kernels/layout.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

constexpr size_t kChunk = 2048;  // elements that are widened at a time

// NumPy's name of the elements in the file; empty: there is none.
std::string_view DescriptionOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return "<f8";
    case DType::kFloat16: return "<f2";
    case DType::kInt8: return "|i1";
    case DType::kInt16: return "<i2";
    case DType::kInt32: return "<i4";
    case DType::kInt64: return "<i8";
    case DType::kUInt8: return "|u1";
    case DType::kUInt16: return "<u2";
    case DType::kUInt32: return "<u4";
    case DType::kUInt64: return "<u8";
    case DType::kBool: return "|b1";
    case DType::kComplex64: return "<c8";
    case DType::kComplex128: return "<c16";
    case DType::kFloat32: return "<f4";
    default: return IsWidenedInNpy(dtype) ? "<f4" : "";
  }
}

std::string HeaderOf(std::string_view description, const TensorView& t) {
  std::string text = "{'descr': '" + std::string(description) + "', 'fortran_order': False, 'shape': (";
  for (int d = 0; d < t.ndim; ++d) text += std::to_string(t.shape[d]) + (d + 1 < t.ndim ? ", " : "");
  text += t.ndim == 1 ? ",), }" : "), }";
  text.append((64 - (10 + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(text.size() & 0xff);
  head += static_cast<char>(text.size() >> 8);
  return head + text;
}

Status WriteWidened(const char* from, size_t n, const TensorView& t, OutputFile* file) {
  double wide[kChunk];
  float narrow[kChunk];
  for (size_t at = 0; at < n; at += kChunk) {
    const size_t count = std::min(kChunk, n - at);
    if (!metrics::ToDoubles(t.dtype, from + at * ElementSize(t.dtype), count, wide)) {
      return InternalError(file->path() +
                           " cannot be written: the elements of its tensor are of a type without values");
    }
    std::transform(wide, wide + count, narrow, [](double value) { return static_cast<float>(value); });
    MSP_RETURN_IF_ERROR(file->Write({reinterpret_cast<const char*>(narrow), count * sizeof(float)}));
  }
  return OkStatus();
}

}  // namespace

bool IsWidenedInNpy(DType dtype) {
  return IsFloating(dtype) && dtype != DType::kFloat64 && dtype != DType::kFloat32 && dtype != DType::kFloat16;
}

Status WriteNpyFile(const std::string& path, const TensorView& t, uint64_t* bytes) {
  Layout layout;
  const std::string_view description = DescriptionOf(t.dtype);
  if (description.empty() || !MakeLayout(t, Order::kLogical, &layout)) {
    return InternalError(path + " cannot be written: NumPy has no such type, or its tensor has too many dimensions");
  }
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(HeaderOf(description, t)));
  Status written;
  if (layout.count > 0) {
    LayoutWalker(layout).Walk(0, layout.count, [&](const char* p, size_t n) {
      if (!written.ok()) return;
      written = IsWidenedInNpy(t.dtype) ? WriteWidened(p, n, t, &file) : file.Write({p, n * layout.element});
    });
  }
  MSP_RETURN_IF_ERROR(written);
  MSP_RETURN_IF_ERROR(file.Commit());
  *bytes += file.bytes_written();
  return OkStatus();
}

}  // namespace msprobe
