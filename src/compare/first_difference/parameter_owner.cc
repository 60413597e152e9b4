#include "compare/first_difference/parameter_owner.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

constexpr size_t kMostOpsRead = 200000;
constexpr size_t kMostListed = 4;
constexpr std::string_view kParameterItem = ".parameters.";

/// "layers.0.mlp" of "Module.layers.0.mlp.FeedForward.forward.0".
std::string PathOfModule(std::string_view name) {
  std::string_view base = ParseOpName(name).base;
  base.remove_prefix(std::min(base.size(), base.find('.') + 1));
  const size_t dot = base.rfind('.');
  return std::string(dot == std::string_view::npos ? std::string_view() : base.substr(0, dot));
}

class OwnerFinder {
 public:
  explicit OwnerFinder(const DumpFile& dump) : dump_(dump) {}

  StatusOr<std::string> Find(size_t op) {
    const OpList& ops = dump_.ops();
    const size_t begin = Begin();
    if (begin == 0 || op < begin || IsModuleName(ops.NameAt(op)) || ops.size() > kMostOpsRead) return std::string();
    MSP_RETURN_IF_ERROR(ReadParameters(begin));
    if (names_.empty()) return std::string();
    MSP_RETURN_IF_ERROR(FindAnchors(begin));
    if (anchors_.empty()) return std::string();
    // Each parameter's ops end as far behind the one that takes it in as those of the last parameter do.
    const size_t tail = ops.size() - 1 - anchors_.back().op;
    const size_t gap = anchors_.size() < 2 ? 1 + tail : anchors_[1].op - anchors_[0].op;
    // What comes before the ops of the first one (reductions, clipping) is of no parameter.
    if (op + gap <= anchors_.front().op + tail) return std::string();
    for (const Anchor& anchor : anchors_) {
      if (anchor.op + tail >= op) return NameAt(anchor);
    }
    return std::string();
  }

  StatusOr<std::unordered_set<std::string>> Prints() {
    std::unordered_set<std::string> out;
    if (dump_.ops().size() > kMostOpsRead) return out;
    MSP_RETURN_IF_ERROR(ReadParameters(Begin()));
    for (const auto& [print, names] : names_) out.insert(print);
    return out;
  }

  StatusOr<std::vector<TrainedParameter>> Trained() {
    std::vector<TrainedParameter> out;
    const OpList& ops = dump_.ops();
    const size_t begin = Begin();
    if (begin == 0 || ops.size() > kMostOpsRead) return out;
    MSP_RETURN_IF_ERROR(ReadParameters(begin));
    for (const auto& [print, names] : names_) out.push_back({Listed(names), names.size()});
    for (size_t i = begin; i < ops.size() && !names_.empty(); ++i) {
      const std::string_view name = ops.NameAt(i);
      const Decays how = DecaysBy(name);
      if (!ChangesInput(name) && how == Decays::kNot) continue;
      MSP_RETURN_IF_ERROR(dump_.ParseOp(i, &doc_));
      const std::span<const ItemView> items = Items(name);
      const double decay = DecayOf(how, items);
      for (const ItemView& item : items) {
        const bool first = item.suffix == ".input.0" || item.suffix.starts_with(".input.0.");
        const bool second = item.suffix == ".input.1" || item.suffix.starts_with(".input.1.");
        const auto found = (first || second) && item.tensor ? names_.find(PrintOf(item)) : names_.end();
        if (found == names_.end()) continue;
        const auto known = std::ranges::find(out, Listed(found->second), &TrainedParameter::names);
        known->telling = known->telling || Amplitude(item) > 0;
        // Behind its step a weight may be averaged.
        const bool decays = decay > 0 && (how == Decays::kWeight ? first : second) && known->count < known->size;
        if (decays && known->decays++ == 0) known->decay_op = i, known->decay = decay;
        if (first && ChangesInput(name)) ++known->count, known->op = i;
      }
    }
    return out;
  }

 private:
  struct Anchor {
    size_t op = 0;
    std::string print;
    size_t number = 0;  // among those that look the same
  };

  static bool IsBackward(std::string_view name) {
    const OpDirection direction = ParseOpName(name).direction;
    return direction == OpDirection::kBackward || direction == OpDirection::kParameterGrad;
  }

  /// The first op behind the backward pass.
  size_t Begin() const {
    size_t begin = dump_.ops().size();
    while (begin > 0 && !IsBackward(dump_.ops().NameAt(begin - 1))) --begin;
    return begin;
  }

  /// "mul_", "_foreach_add_", "_fused_adamw_".
  static bool ChangesInput(std::string_view name) {
    const std::string_view api = ApiOf(name);
    return !IsModuleName(name) && api.ends_with("_") && !api.ends_with("__");
  }

  enum class Decays : uint8_t { kNot, kWeight, kGradient };

  /// Whether an op may be the decay of a weight: its product, or its sum with the gradient.
  static Decays DecaysBy(std::string_view name) {
    std::string_view api = IsModuleName(name) ? std::string_view() : ApiOf(name);
    if (api.starts_with("_foreach_")) api.remove_prefix(std::string_view("_foreach_").size());
    if (api == "mul_") return Decays::kWeight;
    return api == "add" || api == "add_" ? Decays::kGradient : Decays::kNot;
  }

  /// What it takes off, by the number that it is given; 0: nothing, or too much for a decay.
  static double DecayOf(Decays how, std::span<const ItemView> items) {
    constexpr double kMost = 0.5;
    for (const ItemView& item : items) {
      if (item.state == ItemState::kOutput || item.dtype != "<class 'float'>" || !item.stats[kMax].IsNumber()) continue;
      const double v = item.stats[kMax].AsDouble();
      const double decay = how == Decays::kWeight ? 1 - v : how == Decays::kGradient ? v : 0;
      return decay > 0 && decay <= kMost ? decay : 0;
    }
    return 0;
  }

  static std::string Listed(const std::vector<std::string>& names) {
    std::string out;
    for (size_t i = 0; i < names.size() && i <= kMostListed; ++i)
      out += (i > 0 ? " or " : "") + (i < kMostListed ? names[i] : "...");
    return out;
  }

  std::span<const ItemView> Items(std::string_view name) {
    size_t count = 0;
    DescribeOp(name, doc_, CompareMode::kStatistics, &scratch_, &items_, &count);
    return {items_.data(), count};
  }

  /// Of the first call of each module.
  Status ReadParameters(size_t end) {
    std::unordered_map<std::string, bool> seen;
    for (size_t i = 0; i < end; ++i) {
      const std::string_view name = dump_.ops().NameAt(i);
      const NameParts parts = ParseOpName(name);
      if (!IsModuleName(name) || parts.direction != OpDirection::kForward) continue;
      if (!seen.emplace(parts.base, true).second) continue;
      MSP_RETURN_IF_ERROR(dump_.ParseOp(i, &doc_));
      for (const ItemView& item : Items(name)) {
        if (item.state != ItemState::kParameter) continue;
        names_[PrintOf(item)].push_back(PathOfModule(name) + "." + item.suffix.substr(kParameterItem.size()));
      }
    }
    return OkStatus();
  }

  /// Ops of one kind that take a parameter in: the kind that comes first.
  Status FindAnchors(size_t begin) {
    std::unordered_map<std::string, size_t> numbers;
    std::string_view api;
    for (size_t i = begin; i < dump_.ops().size(); ++i) {
      const std::string_view name = dump_.ops().NameAt(i);
      if (IsModuleName(name) || (!api.empty() && ApiOf(name) != api)) continue;
      MSP_RETURN_IF_ERROR(dump_.ParseOp(i, &doc_));
      for (const ItemView& item : Items(name)) {
        if (item.suffix != ".input.0") continue;
        std::string print = PrintOf(item);
        if (!names_.contains(print)) continue;
        api = ApiOf(name);
        const size_t number = numbers[print]++;
        anchors_.push_back({i, std::move(print), number});
        break;
      }
    }
    numbers_ = std::move(numbers);
    return OkStatus();
  }

  std::string NameAt(const Anchor& anchor) const {
    const std::vector<std::string>& names = names_.at(anchor.print);
    if (names.size() == 1) return names.front();
    // Several look the same: their order tells them apart, if each of them is there.
    return names.size() == numbers_.at(anchor.print) ? names[anchor.number] : std::string();
  }

  const DumpFile& dump_;
  JsonDoc doc_;
  std::vector<Item> scratch_;
  std::vector<ItemView> items_;
  std::unordered_map<std::string, std::vector<std::string>> names_;
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<Anchor> anchors_;
};

}  // namespace

size_t BehindBackward(const OpList& ops) {
  for (size_t i = ops.size(); i-- > 0;) {
    const OpDirection direction = ParseOpName(ops.NameAt(i)).direction;
    if (direction == OpDirection::kBackward || direction == OpDirection::kParameterGrad) return i + 1;
  }
  return ops.size();
}

std::string_view StepOf(std::string_view name) {
  constexpr std::string_view kForeach = "_foreach_";
  std::string_view api = ApiOf(name);
  if (StartsWith(api, kForeach)) api.remove_prefix(kForeach.size());
  while (!api.empty() && api.back() == '_') api.remove_suffix(1);
  return api;
}

bool Descends(std::span<const ItemView> items) {
  return std::ranges::any_of(items, [](const ItemView& item) {
    return item.suffix.ends_with(".alpha") && item.stats[kMax].IsNumber() && item.stats[kMax].AsDouble() < 0;
  });
}

StatusOr<std::string> ParameterOwner(const DumpFile& dump, size_t op) { return OwnerFinder(dump).Find(op); }

bool IsState(const OpList& ops, const ModuleTree& tree, size_t op) {
  const std::string_view name = ops.NameAt(op);
  if (IsModuleName(name) || !ChangesArguments(ApiOf(name)) || IsModuleName(tree.ParentOf(name))) return false;
  for (size_t k = op; k-- > 0;) {
    const OpDirection direction = ParseOpName(ops.NameAt(k)).direction;
    if (direction == OpDirection::kBackward || direction == OpDirection::kParameterGrad) return true;
  }
  return false;
}

StatusOr<bool> IsStepped(const DumpFile& dump, const ItemView& item) {
  constexpr size_t kMostSteps = 20000;
  const OpList& ops = dump.ops();
  const std::string print = PrintOf(item);
  ItemViews items(dump, CompareMode::kStatistics);
  for (size_t i = BehindBackward(ops), seen = 0; i < ops.size() && seen < kMostSteps; ++i, ++seen) {
    const std::string_view name = ops.NameAt(i);
    if (IsModuleName(name) || !ApiOf(name).ends_with('_')) continue;
    MSP_RETURN_IF_ERROR(items.Read(i));
    const bool changed = std::ranges::any_of(items.items(), [&](const ItemView& one) {
      const bool first = one.suffix == ".input.0" || one.suffix.starts_with(".input.0.");
      return first && one.state == ItemState::kInput && one.tensor && PrintOf(one) == print;
    });
    if (changed) return true;
  }
  return false;
}

StatusOr<std::unordered_set<std::string>> ParameterPrints(const DumpFile& dump) { return OwnerFinder(dump).Prints(); }

StatusOr<std::vector<TrainedParameter>> TrainedParameters(const DumpFile& dump) { return OwnerFinder(dump).Trained(); }

std::optional<TrainedParameter> LeftOut(const std::vector<TrainedParameter>& more,
                                        const std::vector<TrainedParameter>& less) {
  std::optional<TrainedParameter> out;
  size_t same = 0, all = 0;
  for (const TrainedParameter& p : more) {
    const auto other = std::ranges::find(less, p.names, &TrainedParameter::names);
    // More ops than parameters do something else to them: a copy that is averaged, a step that runs twice.
    if (other == less.end() || p.count == 0 || p.count > p.size) continue;
    all += p.count;
    same += std::min(other->count, p.count);
    if (other->count < p.count && (!out || p.op < out->op)) out = p;
  }
  return 2 * same > all ? out : std::nullopt;
}

}  // namespace msprobe
