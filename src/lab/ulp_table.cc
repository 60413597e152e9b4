#include "lab/ulp_table.h"

#include <algorithm>

namespace msprobe {
namespace {

constexpr MeasuredFunction kMeasured[] = {
#define MSP_ULP(name, single, single_share, half, half_share, bfloat, bfloat_share) \
  {name, false, {single, single_share}, {half, half_share}, {bfloat, bfloat_share}},
#define MSP_ULP_BACKWARD(name, single, single_share, half, half_share, bfloat, bfloat_share) \
  {name, true, {single, single_share}, {half, half_share}, {bfloat, bfloat_share}},
#include "lab/ulp_table.def"
#undef MSP_ULP
#undef MSP_ULP_BACKWARD
};

}  // namespace

std::span<const MeasuredFunction> MeasuredFunctions() { return kMeasured; }

std::optional<FunctionBound> MeasuredBound(std::string_view api, bool backward, DType dtype) {
  std::string_view name = api.substr(api.rfind('.') + 1);
  while (!name.empty() && name.front() == '_') name.remove_prefix(1);
  while (!name.empty() && name.back() == '_') name.remove_suffix(1);
  const auto* found = std::find_if(std::begin(kMeasured), std::end(kMeasured),
                                   [&](const MeasuredFunction& f) { return f.name == name && f.backward == backward; });
  if (found == std::end(kMeasured)) return std::nullopt;
  const FunctionBound bound = dtype == DType::kFloat32    ? found->single
                              : dtype == DType::kFloat16  ? found->half
                              : dtype == DType::kBFloat16 ? found->bfloat
                                                          : FunctionBound();
  return bound.ulps > 0 ? std::optional(bound) : std::nullopt;
}

}  // namespace msprobe
