#include "rollout/stages/weight_kinds.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "weights/role_words.h"

namespace msprobe {

bool IsLora(std::string_view name) { return Contains(name, "lora_") || Contains(name, ".lora."); }

bool IsScale(std::string_view name) {
  constexpr std::array<std::string_view, 12> kEndings{"_scale",       "_scale_inv", "scales",  "qzeros",
                                                      "g_idx",        "qweight",    "_packed", "zero_point",
                                                      "weight_shape", "_zp",        "_absmax", "quant_state"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view e) { return EndsWith(name, e); });
}

bool IsComputed(std::string_view name) {
  return IsCacheScale(name) || Contains(name, "rotary") || EndsWith(name, "inv_freq") ||
         EndsWith(name, "cos_sin_cache") || EndsWith(name, ".attn.bias") || EndsWith(name, "masked_bias") ||
         EndsWith(name, "position_ids");
}

bool IsPackedWeight(std::string_view name) { return EndsWith(name, "qweight") || EndsWith(name, "_packed"); }

bool IsFewBits(DType t) {
  return t == DType::kInt8 || t == DType::kUInt8 || t == DType::kInt32 || (IsFloating(t) && ElementSize(t) == 1);
}

bool IsShard(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return false;
  size_t other = 0;
  for (size_t d = 0; d < a.size(); ++d) {
    const int64_t more = std::max(a[d], b[d]), less = std::min(a[d], b[d]);
    if (more == less) continue;
    if (less <= 0 || more % less != 0) return false;
    ++other;
  }
  return other == 1;
}

}  // namespace msprobe
