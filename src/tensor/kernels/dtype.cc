#include "tensor/kernels/dtype.h"

#include <array>

namespace msprobe {
namespace {

enum class Kind : uint8_t { kFloat, kInt, kBool, kComplex };

struct Info {
  std::string_view name;
  uint8_t size;
  Kind kind;
};

// In the order of DType.
constexpr std::array<Info, static_cast<size_t>(DType::kUnknown)> kInfos = {{
    {"float32", 4, Kind::kFloat},
    {"float64", 8, Kind::kFloat},
    {"float16", 2, Kind::kFloat},
    {"bfloat16", 2, Kind::kFloat},
    {"float8_e4m3fn", 1, Kind::kFloat},
    {"float8_e5m2", 1, Kind::kFloat},
    {"float8_e4m3fnuz", 1, Kind::kFloat},
    {"float8_e5m2fnuz", 1, Kind::kFloat},
    {"float8_e8m0fnu", 1, Kind::kFloat},
    {"int8", 1, Kind::kInt},
    {"int16", 2, Kind::kInt},
    {"int32", 4, Kind::kInt},
    {"int64", 8, Kind::kInt},
    {"uint8", 1, Kind::kInt},
    {"uint16", 2, Kind::kInt},
    {"uint32", 4, Kind::kInt},
    {"uint64", 8, Kind::kInt},
    {"bool", 1, Kind::kBool},
    {"complex32", 4, Kind::kComplex},
    {"complex64", 8, Kind::kComplex},
    {"complex128", 16, Kind::kComplex},
}};

struct Alias {
  std::string_view name;
  DType type;
};

// torch's short names, and numpy's for bool.
constexpr Alias kAliases[] = {
    {"float", DType::kFloat32},      {"double", DType::kFloat64},  {"half", DType::kFloat16},
    {"long", DType::kInt64},         {"int", DType::kInt32},       {"short", DType::kInt16},
    {"bool_", DType::kBool},         {"chalf", DType::kComplex32}, {"cfloat", DType::kComplex64},
    {"cdouble", DType::kComplex128},
};

bool EqualIgnoringCase(std::string_view lower, std::string_view s) {
  if (lower.size() != s.size()) return false;
  for (size_t i = 0; i < s.size(); ++i) {
    const char c = s[i] >= 'A' && s[i] <= 'Z' ? static_cast<char>(s[i] + 32) : s[i];
    if (c != lower[i]) return false;
  }
  return true;
}

bool Is(DType t, Kind kind) { return t < DType::kUnknown && kInfos[static_cast<size_t>(t)].kind == kind; }

}  // namespace

size_t ElementSize(DType t) { return t < DType::kUnknown ? kInfos[static_cast<size_t>(t)].size : 0; }
bool IsFloating(DType t) { return Is(t, Kind::kFloat); }
bool IsInteger(DType t) { return Is(t, Kind::kInt); }
bool IsComplex(DType t) { return Is(t, Kind::kComplex); }

std::string_view DTypeName(DType t) {
  return t < DType::kUnknown ? kInfos[static_cast<size_t>(t)].name : std::string_view();
}

DType ParseDType(std::string_view name) {
  if (const size_t dot = name.rfind('.'); dot != std::string_view::npos) {
    const std::string_view framework = name.substr(0, dot);
    if (framework != "torch" && framework != "mindspore" && framework != "numpy") return DType::kUnknown;
    name.remove_prefix(dot + 1);
  }
  for (size_t i = 0; i < kInfos.size(); ++i) {
    if (EqualIgnoringCase(kInfos[i].name, name)) return static_cast<DType>(i);
  }
  for (const Alias& alias : kAliases) {
    if (EqualIgnoringCase(alias.name, name)) return alias.type;
  }
  return DType::kUnknown;
}

}  // namespace msprobe
