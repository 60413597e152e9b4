#include "lab/standards/standard.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr double Power(int exponent) {
  double out = 1;
  for (; exponent < 0; ++exponent) out /= 2;
  return out;
}

constexpr StandardLimits kHalfLimits{Power(-10), Power(-16), 1e-16, Power(-10), Power(-8), Power(-20), Power(-11)};
constexpr StandardLimits kBFloat16Limits{Power(-10), 1e-16, 1e-16, Power(-8), Power(-7), Power(-7), Power(-8)};
constexpr StandardLimits kOtherLimits{Power(-20), Power(-30), Power(-30), Power(-20),
                                      Power(-11), Power(-14), Power(-14)};

constexpr RatioLimits kLevel0{2, 2, 10, 2, 2}, kLevel1{2, 1.5, 5, 1.5, 2}, kLevel2{2, 1.2, 2, 1.2, 2};
constexpr auto kLevel1Names = std::to_array<std::string_view>(
    {"embedding", "npu_fusion_attention", "npu_fusion_attention_grad", "scatter_", "scatter_add_"});
constexpr auto kLevel2Names = std::to_array<std::string_view>(
    {"GELU", "addmm", "index", "layer_norm", "matmul", "mm", "nonzero", "npu_cross_entropy_loss",
     "npu_cross_entropy_loss_backward", "npu_rms_norm", "npu_rms_norm_backward", "one_hot", "sum"});

// What 8.1 chooses by name. A trailing '_' stands for the function and the one that works in place.
struct Family {
  Standard standard;
  std::string_view names;
};
constexpr Family kFamilies[] = {
    {Standard::kAbsolute,
     "mul_ add_ div_ divide_ sub_ square_ rsqrt_ reciprocal_ leaky_relu_ prelu rsub "
     "__mul__ __imul__ __rmul__ __add__ __iadd__ __radd__ __div__ __idiv__ __sub__ __isub__"},
    {Standard::kBinary,
     "abs_ absolute_ ceil_ floor_ neg_ round_ sign_ relu "
     "bitwise_and_ logical_and_ logical_not_ logical_or_ "
     "greater_ greater_equal_ less_ less_equal_ not_equal_ equal isfinite isnan "
     "maximum minimum argmin max_pool3d histc nonzero one_hot sort topk "
     "broadcast_to fill_ flatten gather masked_fill_ pad reshape select tile transpose_ tril_ triu_ type_as"},
    {Standard::kUlp,
     "addbmm_ addmm_ baddbmm_ bilinear bmm chain_matmul hspmm linear matmul __matmul__ mm mv smm sspaddmm"},
    {Standard::kThousandth, "conv1d conv2d"},
};
// Names that exist in place only.
constexpr std::string_view kOnlyInPlace = "fill_";

bool IsMember(std::string_view api, std::string_view name) {
  if (api == name) return true;
  const bool both = EndsWith(name, "_") && !EndsWith(name, "__") && name != kOnlyInPlace;
  return both && api == name.substr(0, name.size() - 1);
}

template <size_t N>
bool Has(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsJudgedAsFloat(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16 || t == DType::kFloat32 || t == DType::kFloat64;
}

}  // namespace

const StandardLimits& LimitsOf(DType dtype) {
  if (dtype == DType::kFloat16) return kHalfLimits;
  return dtype == DType::kBFloat16 ? kBFloat16Limits : kOtherLimits;
}

const RatioLimits& RatioLimitsOf(std::string_view api, StandardRelease release) {
  if (release == StandardRelease::k8) return kLevel0;
  if (Has(kLevel2Names, api)) return kLevel2;
  return Has(kLevel1Names, api) ? kLevel1 : kLevel0;
}

Standard StandardOf(std::string_view api, DType output, bool float8_input, StandardRelease release) {
  if (release == StandardRelease::k26) {
    if (IsFloat8(output)) return Standard::kUlp;
    if (float8_input) return Standard::kAbsolute;
    return IsJudgedAsFloat(output) || IsComplex(output) ? Standard::kBenchmark : Standard::kBinary;
  }
  if (!IsJudgedAsFloat(output) && !IsComplex(output)) return Standard::kBinary;
  for (const Family& family : kFamilies) {
    for (const std::string_view name : Split(family.names, ' ')) {
      if (IsMember(api, name)) return family.standard;
    }
  }
  return Standard::kBenchmark;
}

}  // namespace msprobe
