#include "compare/values/other_shape.h"

#include <algorithm>

#include "ops/framework_names.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

std::vector<int64_t> WithoutOnes(std::span<const int64_t> shape) {
  std::vector<int64_t> out;
  for (const int64_t n : shape) {
    if (n != 1) out.push_back(n);
  }
  return out;
}

/// Whether one shape is the other with neighbours multiplied.
bool Regrouped(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const std::vector<int64_t>&longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  size_t i = 0;
  for (const int64_t n : shorter) {
    int64_t product = 1;
    while (i < longer.size() && product < n) {
      if (__builtin_mul_overflow(product, longer[i++], &product)) return false;
      if (product == 0) return false;
    }
    if (product != n) return false;
  }
  return i == longer.size();
}

}  // namespace

OtherShape CompareShapes(std::span<const int64_t> a, std::span<const int64_t> b, bool transposes) {
  const std::vector<int64_t> x = WithoutOnes(a), y = WithoutOnes(b);
  if (x == y) return OtherShape::kSame;
  if (transposes) {
    const size_t n = a.size();
    const bool matrices = n >= 2 && b.size() == n && a[n - 2] == b[n - 1] && a[n - 1] == b[n - 2];
    if (matrices && std::equal(a.begin(), a.end() - 2, b.begin())) return OtherShape::kTransposed;
  }
  return Regrouped(x, y) ? OtherShape::kRegrouped : OtherShape::kNone;
}

bool MayBeTransposed(const ItemView& item) {
  if (item.state == ItemState::kParameter || item.state == ItemState::kParameterGrad) return true;
  const NameParts parts = ParseOpName(
      std::string_view(item.name).substr(0, item.name.size() - std::min(item.name.size(), item.suffix.size())));
  if (IsModuleName(parts.base)) return false;
  if (item.state == ItemState::kOutput) return parts.direction == OpDirection::kBackward;
  return parts.direction == OpDirection::kForward && item.suffix == ".input.1" &&
         CommonFunctionOf(ApiOrClassOf(parts.full)).name == "matmul";
}

}  // namespace msprobe
