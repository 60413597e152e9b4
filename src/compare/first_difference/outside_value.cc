#include "compare/first_difference/outside_value.h"

#include <algorithm>
#include <iterator>

#include "compare/first_difference/parameter_owner.h"
#include "compare/round_off/norm_mode.h"
#include "compare/round_off/ruler.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

int64_t DimensionsOf(const ItemView& item) { return item.shape == "[]" ? 0 : std::ranges::count(item.shape, ',') + 1; }

/// Whether a Primitive that a Cell of MindSpore holds takes a weight there, by its class: the attribute may have any
/// name.
bool IsPlaceOfWeightOfCell(std::string_view base, const ItemView& item) {
  const std::string_view kind = base.substr(base.rfind('.') + 1);
  if (kind == "Gather") return item.suffix == ".input.0" && DimensionsOf(item) == 2;
  if (item.suffix == ".input.0") return false;
  if (kind == "MatMul") return item.suffix == ".input.1" && DimensionsOf(item) == 2;
  return kind == "BiasAdd" || kind.starts_with("Conv") || kind.ends_with("Norm");
}

/// Dumps of MindSpore do not tell: there the place alone does.
bool Trains(const ItemView& item) {
  const bool told = item.requires_grad != ItemView::Grad::kNA || item.dtype.starts_with("torch.");
  return told ? item.requires_grad == ItemView::Grad::kTrue : item.tensor;
}

}  // namespace

bool IsPlaceOfWeight(std::string_view op, const ItemView& item) {
  const NameParts name = ParseOpName(op);
  if (name.direction != OpDirection::kForward || item.state != ItemState::kInput) return false;
  if (op.starts_with("Primitive.")) return IsPlaceOfWeightOfCell(name.base, item);
  const std::string_view api = ApiOf(op);
  if (api == "addmm") return item.suffix != ".input.1";
  if (item.suffix == ".input.0") return false;
  constexpr std::string_view kTakers[] = {"linear", "dense",    "embedding", "embedding_bag", "lstm",
                                          "gru",    "rnn_tanh", "rnn_relu",  "prelu",         "bilinear"};
  return std::ranges::find(kTakers, api) != std::end(kTakers) || api.starts_with("conv") ||
         ArithmeticOf(op) == Arithmetic::kNormalise;
}

Status OutsideValue::Fill(const ItemView& item, const ItemView* partner, FirstDifference* out) const {
  MSP_ASSIGN_OR_RETURN(const std::optional<std::string> parameter, ParameterOf(item, tree_.ParentOf(out->name)));
  // Of two frameworks one may say by which name its module keeps the tensor, and the other not.
  const std::string_view theirs = partner ? partner->Buffer() : std::string_view();
  if (!parameter && !theirs.empty()) {
    out->buffer = true;
    out->kind = FirstDifference::Kind::kParameter;
    out->parameter = theirs;
    return OkStatus();
  }
  if (parameter) {
    out->buffer = !item.Buffer().empty();
    out->kind = FirstDifference::FirstDifference::Kind::kParameter;
    out->parameter = *parameter;
    return OkStatus();
  }
  if (TakesRunningStatistic(out->name, item.suffix) && out->kind == FirstDifference::Kind::kInput) {
    out->buffer = true;
    out->kind = FirstDifference::Kind::kParameter;
    out->parameter = item.suffix == ".input.1" ? "running_mean" : "running_var";
    return OkStatus();
  }
  const bool module = IsModuleName(tree_.ParentOf(out->name));
  if (!module && out->kind == FirstDifference::Kind::kInput && Trains(item) && partner && Trains(*partner)) {
    bool weight = IsPlaceOfWeight(out->name, item);
    if (!weight && ParseOpName(out->name).direction == OpDirection::kForward) {
      MSP_ASSIGN_OR_RETURN(weight, IsStepped(*pair_.target, item));
    }
    if (weight) {
      out->kind = FirstDifference::Kind::kParameter;
      return OkStatus();
    }
  }
  Status status = OkStatus();
  tree_.ForEachAround(out->name, [&](std::string_view name) {
    const auto at = pair_.target->FindOp(name);
    if (!at || !distances_[*at].matched) return true;
    const OpDistance& d = distances_[*at];
    if (d.input > 1 || d.argument || d.shapes || !(d.has_input || IsGivenNoTensor(*at, &status))) return status.ok();
    out->inside = name;
    out->after = LastAgreeingIn(name, out->op);
    return false;
  });
  return status;
}

/// Whether a module was called with numbers alone: then no tensor in it came from outside.
bool OutsideValue::IsGivenNoTensor(size_t module, Status* status) const {
  ItemViews items(*pair_.target, pair_.options.mode);
  if (*status = items.Read(module); !status->ok()) return false;
  bool given = false;
  for (const ItemView& item : items.items()) {
    if (item.state == ItemState::kInput && item.tensor) return false;
    given = given || (item.state == ItemState::kInput && item.HasDType());
  }
  return given;
}

/// The name of the parameter that the item is; none when it is none. A function is given the parameters of the module
/// that calls it among its other arguments: it is the one of them that has the same values.
StatusOr<std::optional<std::string>> OutsideValue::ParameterOf(const ItemView& item, std::string_view module) const {
  constexpr std::string_view kParameters = ".parameters.";
  const auto name_of = [&](const ItemView& parameter) {
    return parameter.suffix.starts_with(kParameters) ? parameter.suffix.substr(kParameters.size()) : std::string();
  };
  if (item.state == ItemState::kParameter) return std::optional(name_of(item));
  if (const std::string_view buffer = item.Buffer(); !buffer.empty()) return std::optional(std::string(buffer));
  const auto at = pair_.target->FindOp(module);
  if (!at || item.shape == "[]") return std::optional<std::string>();
  ItemViews items(*pair_.target, pair_.options.mode);
  MSP_RETURN_IF_ERROR(items.Read(*at));
  for (const ItemView& other : items.items()) {
    const bool same = other.state == ItemState::kParameter && other.shape == item.shape && other.dtype == item.dtype &&
                      SameValues(other, item);
    if (same) return std::optional(name_of(other));
  }
  return std::optional<std::string>();
}

bool OutsideValue::SameValues(const ItemView& a, const ItemView& b) const {
  if (pair_.options.mode == CompareMode::kChecksum) return a.checksum == b.checksum;
  for (const Stat k : {kMax, kMin, kMean, kNorm}) {
    std::string x, y;
    a.stats[k].AppendText(&x);
    b.stats[k].AppendText(&y);
    if (x != y) return false;
  }
  return true;
}

/// The last op in front of `end` that `module` calls and that agrees.
std::string OutsideValue::LastAgreeingIn(std::string_view module, size_t end) const {
  constexpr size_t kFar = 4096;
  for (size_t i = end; i-- > 0 && end - i < kFar;) {
    const OpDistance& d = distances_[i];
    const std::string_view name = pair_.target->ops().NameAt(i);
    if (d.matched && d.output <= 1 && tree_.ParentOf(name) == module) return std::string(name);
  }
  return {};
}

}  // namespace msprobe
