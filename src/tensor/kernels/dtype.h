// Element types of tensors, as the frameworks name them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace msprobe {

enum class DType : uint8_t {
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kFloat8E4M3FN,
  kFloat8E5M2,
  kFloat8E4M3FNUZ,
  kFloat8E5M2FNUZ,
  kFloat8E8M0FNU,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
  kComplex32,
  kComplex64,
  kComplex128,
  kUnknown,
};

/// Bytes of one element; 0 for kUnknown.
size_t ElementSize(DType t);
bool IsFloating(DType t);
bool IsInteger(DType t);  // without bool
bool IsComplex(DType t);
/// "float32", "bfloat16", "bool", ... (torch's spelling without "torch."); "" for kUnknown.
std::string_view DTypeName(DType t);
/// From "torch.float32", "mindspore.float32", "Float32" or "float32"; kUnknown if it is none.
DType ParseDType(std::string_view name);

}  // namespace msprobe
