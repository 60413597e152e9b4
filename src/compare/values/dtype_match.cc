#include "compare/values/dtype_match.h"

#include <array>

#include "base/text.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {
namespace {

bool IsFloatName(std::string_view s) { return s == "float16" || s == "float32" || s == "float64" || s == "bfloat16"; }

/// The dtype of a number given as `src` or `dst` is the bare name of its class.
bool IsPythonClass(std::string_view s) { return s == "int" || s == "float" || s == "bool" || s == "complex"; }

bool IsMindSporeFloat(std::string_view s) {
  return s == "Float16" || s == "Float32" || s == "Float64" || s == "BFloat16";
}

}  // namespace

bool SameDType(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const DType known = ParseDType(a);
  return known != DType::kUnknown && known == ParseDType(b);
}

bool DTypesMatch(std::string_view a, std::string_view b) {
  if (a == b) return true;
  constexpr std::string_view kTorch = "torch.";
  if (StartsWith(a, kTorch) && StartsWith(b, kTorch)) {
    return IsFloatName(a.substr(kTorch.size())) && IsFloatName(b.substr(kTorch.size()));
  }
  if (IsMindSporeFloat(a) && IsMindSporeFloat(b)) return true;
  // Two frameworks have their own names, and their own default integers.
  if (StartsWith(a, kTorch) == StartsWith(b, kTorch) || IsPythonClass(a) || IsPythonClass(b)) return false;
  const DType x = ParseDType(a), y = ParseDType(b);
  if (x == DType::kUnknown || y == DType::kUnknown) return false;
  return x == y || (IsFloating(x) && IsFloating(y)) || (IsInteger(x) && IsInteger(y)) || (IsComplex(x) && IsComplex(y));
}

}  // namespace msprobe
