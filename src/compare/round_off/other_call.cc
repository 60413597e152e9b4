#include "compare/round_off/other_call.h"

#include <vector>

#include "compare/round_off/no_value.h"
#include "compare/values/other_shape.h"
#include "json/value.h"
#include "ops/op_name.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {
namespace {

std::vector<int64_t> DimensionsOf(const ItemView& item) {
  std::vector<int64_t> out;
  if (!item.dims || !item.dims->IsArray()) return out;
  for (const JsonValue& n : item.dims->Items()) out.push_back(n.IsInt() ? n.Int() : -1);
  return out;
}

bool IsNull(const ItemView& item) { return item.dtype == "N/A" || item.dtype == "<class 'NoneType'>"; }

/// Whether two items at one place are no two versions of one argument.
bool AreOthers(const ItemView& a, const ItemView& b) {
  const bool tensor = IsTensorItem(a);
  if (tensor != IsTensorItem(b)) return !IsNull(a) && !IsNull(b);
  return tensor && (!ShapesFit(a, b) || IsFloating(ParseDType(a.dtype)) != IsFloating(ParseDType(b.dtype)));
}

const ItemView* AtPlace(const OpDiff& op, const ItemView& item) {
  for (size_t g = 0; g < op.golden_used; ++g) {
    if (op.golden[g].suffix == item.suffix) return &op.golden[g];
  }
  return nullptr;
}

}  // namespace

bool IsArgumentOfCall(std::string_view op, ItemState state) {
  if (ParseOpName(op).direction == OpDirection::kBackward) return state == ItemState::kOutput;
  return state == ItemState::kInput || state == ItemState::kKwarg;
}

bool ShapesFit(const ItemView& a, const ItemView& b) {
  return CompareShapes(DimensionsOf(a), DimensionsOf(b), false) != OtherShape::kNone;
}

bool IsOtherCall(const OpDiff& op) {
  if (op.cross || !op.matched || op.golden_op.empty() || !IsModuleName(op.op)) return false;
  if (ApiOrClassOf(op.op) == ApiOrClassOf(op.golden_op)) return false;
  bool others = false, own = false, given = false;
  for (size_t i = 0; i < op.rows_used; ++i) {
    const ItemView& item = op.target[i];
    const bool argument = IsArgumentOfCall(op.op, item.state);
    if (!argument && item.state != ItemState::kOutput && item.state != ItemState::kInput) continue;
    const ItemView* partner = AtPlace(op, item);
    if (argument) {
      others = others || (partner && AreOthers(item, *partner));
      own = own || (!partner && IsTensorItem(item));
    } else if (partner && IsTensorItem(item)) {
      // Of another batch all that it gives is of other shapes, too.
      if (!IsTensorItem(*partner) || !ShapesFit(item, *partner)) return false;
      given = true;
    }
  }
  bool theirs = false;  // a tensor of the golden run alone
  for (size_t g = 0; g < op.golden_used && own && !theirs; ++g)
    theirs = !op.golden_taken[g] && IsArgumentOfCall(op.op, op.golden[g].state) && IsTensorItem(op.golden[g]);
  return given && (others || (own && theirs));
}

}  // namespace msprobe
