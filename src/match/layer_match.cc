#include "match/layer_match.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "match/dump_ops.h"
#include "match/name_mapping.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

using Path = std::vector<std::string_view>;

Path SplitDots(std::string_view text) {
  Path out;
  while (!text.empty()) {
    const size_t dot = text.find('.');
    out.push_back(text.substr(0, dot));
    text = dot == std::string_view::npos ? std::string_view() : text.substr(dot + 1);
  }
  return out;
}

/// A module, and the ops of one run that are in it. The tree owns all layers: a name may nest them by the thousand.
struct Layer {
  std::string_view type;  // class of the module; "" while only its children were seen
  std::map<std::string, Layer*, std::less<>> children;
  /// Ops by direction and, of functions, name: "forward", "backward linear".
  std::unordered_map<std::string, std::vector<uint32_t>> ops;

  const Layer* Child(std::string_view name) const {
    const auto it = children.find(name);
    return it == children.end() ? nullptr : it->second;
  }
};

/// Where an op is: the path of its module, and its key among the ops there.
struct Place {
  Path path;
  std::string_view function;  // "" of modules
  std::string_view type;      // class of a module's op
  std::string_view direction;
  uint32_t order = 0;  // of the ops with one key in one place
};

std::string KeyOf(std::string_view direction, std::string_view function) {
  std::string key(direction);
  if (!function.empty()) key.append(" ").append(function);
  return key;
}

std::string_view DirectionText(OpDirection direction) {
  switch (direction) {
    case OpDirection::kForward: return "forward";
    case OpDirection::kBackward: return "backward";
    case OpDirection::kParameterGrad: return "parameters_grad";
    case OpDirection::kNone: break;
  }
  return "";
}

/// Path and class of a module op's base: "Module.a.b.Linear".
void SetModule(std::string_view base, Place* out) {
  out->path = SplitDots(base);
  out->path.erase(out->path.begin());
  if (out->path.empty()) return;
  out->type = out->path.back();
  out->path.pop_back();
}

/// One run's ops by place.
class LayerTree {
 public:
  explicit LayerTree(const LayerSide& side) : side_(side) {
    for (size_t i = 0; i < side.ops.size(); ++i) places_.push_back(PlaceOf(i));
    Renumber();
    for (uint32_t i = 0; i < places_.size(); ++i) Insert(i);
  }

  const std::vector<Place>& places() const { return places_; }
  bool HasClass(std::string_view type) const {
    return std::any_of(layers_.begin(), layers_.end(), [&](const Layer& layer) { return layer.type == type; });
  }
  const Layer* root() const { return &layers_.front(); }

 private:
  Place PlaceOf(size_t i) {
    const std::string_view name = side_.ops[i];
    const NameParts parts = ParseOpName(name);
    Place out;
    out.direction = DirectionText(parts.direction);
    if (IsModuleName(name) || parts.direction == OpDirection::kParameterGrad) {
      SetModule(parts.base, &out);
      return out;
    }
    const std::string_view api = ApiOfOp(parts.base);
    out.function = WithoutRankSuffix(api.substr(std::min(api.size(), api.find('.') + 1)));
    const std::string_view parent = ModuleOf(i, parts);
    if (!IsModuleName(parent)) return out;
    Place module;
    SetModule(ParseOpName(parent).base, &module);
    out.path = std::move(module.path);
    return out;
  }

  std::string_view ModuleOf(size_t i, const NameParts& parts) const {
    if (!side_.modules.empty()) return side_.modules[i];
    if (!side_.parents) return {};
    // A gradient is computed where the forward is.
    std::string forward;
    if (parts.direction == OpDirection::kBackward) {
      forward = std::string(parts.base) + "." + std::string(parts.number) + ".forward";
    }
    return side_.parents->ParentOf(!forward.empty() && side_.parents->Has(forward) ? forward : side_.ops[i]);
  }

  /// With pipeline parallelism MindSpore counts the layers of a ParallelTransformer through all stages, PyTorch anew in
  /// each: both count from the first that is there.
  void Renumber() {
    std::map<Path, uint64_t> first;  // lowest number below "<path>.layers"
    for (const Place& place : places_) {
      if (place.function.empty() && place.type == "ParallelTransformer") first.emplace(place.path, UINT64_MAX);
    }
    if (first.empty()) return;
    const auto visit = [&](Place& place, auto&& act) {
      for (size_t n = 0; n + 1 < place.path.size(); ++n) {
        if (place.path[n] != "layers" || !IsDigits(place.path[n + 1]) || place.path[n + 1].size() > 9) continue;
        const auto it = first.find(Path(place.path.begin(), place.path.begin() + static_cast<std::ptrdiff_t>(n)));
        if (it != first.end()) return act(it->second, place.path[n + 1]);
      }
    };
    for (Place& place : places_) {
      visit(place,
            [](uint64_t& low, std::string_view n) { low = std::min<uint64_t>(low, std::stoul(std::string(n))); });
    }
    for (Place& place : places_) {
      visit(place, [this](uint64_t low, std::string_view& n) {
        if (low == 0) return;
        n = *numbers_.emplace_back(std::make_unique<std::string>(std::to_string(std::stoul(std::string(n)) - low)));
      });
    }
  }

  Layer* MakeChild(Layer* parent, std::string_view name) {
    const auto it = parent->children.find(name);
    if (it != parent->children.end()) return it->second;
    return parent->children.emplace(std::string(name), &layers_.emplace_back()).first->second;
  }

  void Insert(uint32_t op) {
    Place& place = places_[op];
    Layer* layer = &layers_.front();
    for (const std::string_view name : place.path) layer = MakeChild(layer, name);
    if (!place.type.empty()) layer->type = place.type;
    std::vector<uint32_t>& ops = layer->ops[KeyOf(place.direction, place.function)];
    place.order = static_cast<uint32_t>(ops.size());
    ops.push_back(op);
  }

  const LayerSide& side_;  // views point into its texts
  std::vector<Place> places_;
  std::vector<std::unique_ptr<std::string>> numbers_;  // made by Renumber()
  std::deque<Layer> layers_{1};                        // the first is the root
};

/// The rules of one class, longest first.
struct Rename {
  Path from, to;
};
using Renames = std::unordered_map<std::string_view, std::vector<Rename>>;

Renames ReadRules(const std::vector<LayerRule>& rules) {
  Renames out;
  for (const LayerRule& rule : rules) {
    std::vector<Rename>& list = out[rule.type];
    for (const auto& [target, golden] : rule.children) list.push_back({SplitDots(target), SplitDots(golden)});
    std::stable_sort(list.begin(), list.end(),
                     [](const Rename& a, const Rename& b) { return a.from.size() > b.from.size(); });
  }
  return out;
}

const Rename* FindRule(const Renames& rules, const Layer* at, bool top, const Path& path, size_t from) {
  const auto list = rules.find(top ? std::string_view("TopLayer") : at ? at->type : std::string_view());
  if (list == rules.end()) return nullptr;
  for (const Rename& r : list->second) {
    const auto begin = path.begin() + static_cast<std::ptrdiff_t>(from);
    if (r.from.size() > 0 && r.from.size() <= path.size() - from && std::equal(r.from.begin(), r.from.end(), begin)) {
      return &r;
    }
  }
  return nullptr;
}

/// Where the golden run has what is at `place` in the target; a function is the last name of the path.
Path MapPath(const Place& place, const LayerTree& target, const Renames& rules, bool* renamed) {
  Path path = place.path, mapped;
  if (!place.function.empty()) path.push_back(place.function);
  const Layer* at = target.root();
  for (size_t i = 0; i < path.size();) {
    const Rename* rule = FindRule(rules, at, at == target.root(), path, i);
    const size_t steps = rule ? rule->from.size() : 1;
    if (rule) {
      *renamed = true;
      mapped.insert(mapped.end(), rule->to.begin(), rule->to.end());
    } else {
      mapped.push_back(path[i]);
    }
    for (const size_t end = i + steps; i < end; ++i) at = at && i < place.path.size() ? at->Child(path[i]) : nullptr;
  }
  return mapped;
}

uint32_t OpAt(const Layer& layer, const Place& place, std::string_view function) {
  const auto it = layer.ops.find(KeyOf(place.direction, function));
  return it == layer.ops.end() || place.order >= it->second.size() ? kNoOp : it->second[place.order];
}

uint32_t FindPartner(const Place& place, const LayerTree& target, const LayerTree& golden, const Renames& rules,
                     bool* renamed) {
  Path path = MapPath(place, target, rules, renamed);
  std::string_view function;
  if (!place.function.empty()) {
    if (path.empty()) return kNoOp;
    function = path.back();
    path.pop_back();
  }
  const Layer* layer = golden.root();
  for (size_t i = 0; i < path.size() && layer; ++i) layer = layer->Child(path[i]);
  if (!layer) return kNoOp;
  uint32_t op = OpAt(*layer, place, function);
  if (op != kNoOp || function.empty()) return op;
  for (const std::string_view alias : FunctionAliases(function)) {
    if (op == kNoOp) op = OpAt(*layer, place, alias);
  }
  return op;
}

/// The tree as YAML, in pieces.
class TreeText {
 public:
  TreeText(const LayerSide& side, const TakeText& take) : side_(side), take_(take) {}

  Status Write(const Layer& root) {
    MSP_RETURN_IF_ERROR(WriteLayer("TopLayer", root, 0));
    return take_(text_);
  }

 private:
  using States = std::map<std::string_view, const std::vector<uint32_t>*>;

  /// The ops of a layer itself, and of each function that it calls.
  static std::map<std::string_view, States> ByFunction(const Layer& layer) {
    std::map<std::string_view, States> out;
    out.try_emplace(std::string_view());
    for (const auto& [key, ops] : layer.ops) {
      const std::string_view text = key;
      const size_t space = std::min(text.find(' '), text.size());
      out[text.substr(std::min(space + 1, text.size()))].emplace(text.substr(0, space), &ops);
    }
    return out;
  }

  Status WriteLayer(std::string_view name, const Layer& layer, size_t depth) {
    const auto functions = ByFunction(layer);
    MSP_RETURN_IF_ERROR(WriteHead(name, layer.type.empty() ? name : layer.type, functions.begin()->second, depth));
    for (const auto& [function, states] : functions) {
      if (!function.empty()) MSP_RETURN_IF_ERROR(WriteHead(function, function, states, depth + 1));
    }
    if (depth >= kMostDepth) return OkStatus();
    for (const auto& [child, below] : layer.children) MSP_RETURN_IF_ERROR(WriteLayer(child, *below, depth + 1));
    return OkStatus();
  }

  Status WriteHead(std::string_view name, std::string_view type, const States& states, size_t depth) {
    std::string title = std::string(name) + " @ Layer(type_name=" + std::string(type) + ", data_number=[";
    for (const auto& [state, ops] : states) {
      if (title.back() != '[') title += ", ";
      title += "{'" + std::string(state) + "': " + std::to_string(ops->size()) + "}";
    }
    Line(depth, title + "])", ":");
    text_.append(2 * (depth + 1), ' ').append(states.empty() ? "data_item: {}\n" : "data_item:\n");
    for (const auto& [state, ops] : states) {
      Line(depth + 2, state, ":");
      for (const uint32_t op : *ops) Line(depth + 2, side_.ops[op], "", "- ");
    }
    if (text_.size() < kPiece) return OkStatus();
    MSP_RETURN_IF_ERROR(take_(text_));
    text_.clear();
    return OkStatus();
  }

  /// Quoted as JSON, which is YAML.
  void Line(size_t depth, std::string_view text, const char* end, const char* begin = "") {
    text_.append(2 * depth, ' ').append(begin);
    AppendJsonString(text_, text, false);
    text_.append(end).append("\n");
  }

  static constexpr size_t kMostDepth = 100, kPiece = 1 << 16;
  const LayerSide& side_;
  const TakeText& take_;
  std::string text_;
};

}  // namespace

Status WriteLayerTree(const DumpFile& dump, const TakeText& take) {
  LayerSide side;
  side.ops = OpNames(dump);
  MSP_ASSIGN_OR_RETURN(side.parents, dump.Parents());
  const LayerTree tree(side);
  return TreeText(side, take).Write(*tree.root());
}

MatchPlan MatchLayers(const LayerSide& target, const LayerSide& golden, const std::vector<LayerRule>& rules) {
  MatchPlan plan;
  plan.how = "layer mapping";
  const LayerTree target_tree(target), golden_tree(golden);
  const Renames renames = ReadRules(rules);
  plan.golden_of.reserve(target.ops.size());
  plan.rules = MatchPlan::RuleUse::kNoTarget;
  for (const Place& place : target_tree.places()) {
    bool renamed = false;
    plan.golden_of.push_back(FindPartner(place, target_tree, golden_tree, renames, &renamed));
    if (!renamed) continue;
    plan.rules = std::max(plan.rules,
                          plan.golden_of.back() == kNoOp ? MatchPlan::RuleUse::kNoGolden : MatchPlan::RuleUse::kUsed);
  }
  for (size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].type != "TopLayer" && !rules[i].children.empty() && !target_tree.HasClass(rules[i].type)) {
      plan.unknown_classes.push_back(i);
    }
  }
  CountMatches(golden.ops.size(), &plan);
  return plan;
}

Message UnusedRulesWarning(const MatchPlan& plan, const Mapping& mapping) {
  const std::string file = OneLine(mapping.layer_file);
  if (plan.rules == MatchPlan::RuleUse::kUsed) {
    if (plan.unknown_classes.empty()) return {};
    std::string lines;
    for (const size_t rule : plan.unknown_classes) {
      const LayerRule& unknown = mapping.layers[rule];
      lines += (lines.empty() ? "line " : ", line ") + std::to_string(unknown.line) + ": " + OneLine(unknown.type);
    }
    return Msg("{} names classes of which the target has no module ({}): correct them, or leave them out", file, lines);
  }
  for (const LayerRule& rule : mapping.layers) {
    if (rule.children.empty()) continue;
    const auto& [target_child, golden_child] = rule.children.front();
    const std::string first = OneLine(rule.type + ": {" + target_child + ": " + golden_child + "}");
    return plan.rules == MatchPlan::RuleUse::kNoTarget
               ? Msg("{} matches nothing: the target has nothing that it names, first in line {}, {}; "
                     "--suggest_mapping FILE writes one that fits",
                     file, rule.line, first)
               : Msg("{} matches nothing: the golden run has nothing that it names, first in line {}, {}; "
                     "--suggest_mapping FILE writes one that fits",
                     file, rule.line, first);
  }
  return {};
}

StatusOr<MatchPlan> MatchLayers(const DumpFile& target, const DumpFile& golden, const std::vector<LayerRule>& rules) {
  std::vector<Message> warnings;
  LayerSide sides[2];
  for (const bool of_target : {true, false}) {
    const DumpFile& dump = of_target ? target : golden;
    LayerSide& side = sides[of_target ? 0 : 1];
    side.ops = OpNames(dump);
    MSP_ASSIGN_OR_RETURN(side.parents, dump.Parents());
    if (side.parents) continue;
    warnings.push_back(Msg("there is no {}: functions count as outside of all modules",
                           JoinPath(DirName(dump.path()), "construct.json")));
  }
  MatchPlan plan = MatchLayers(sides[0], sides[1], rules);
  plan.warnings = std::move(warnings);
  return plan;
}

}  // namespace msprobe
