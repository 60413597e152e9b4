#include "compare/first_difference/one_sided.h"

#include <algorithm>

#include "base/slot_table.h"
#include "base/text.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kMostModules = 200;  // that are told

/// "Module.layers.0.mlp" of "Module.layers.0.mlp.FeedForward": a module of another class at this place is there, too.
std::string_view PathOf(std::string_view base) { return base.substr(0, std::min(base.size(), base.rfind('.'))); }

bool IsForwardModule(std::string_view name) {
  return IsModuleName(name) && ParseOpName(name).direction == OpDirection::kForward;
}

TextIds PathsOf(const OpList& ops) {
  TextIds out;
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string_view name = ops.NameAt(i);
    if (IsModuleName(name)) out.Insert(PathOf(ParseOpName(name).base));
  }
  return out;
}

StatusOr<bool> HasParameters(const DumpFile& dump, uint32_t op) {
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(dump.ParseOp(op, &doc));
  const JsonValue* parameters = doc.Find("parameters");
  return parameters && parameters->IsObject() && parameters->size() > 0;
}

/// Of the run that `ops` are of; `lone` are those without a partner.
class Side {
 public:
  Side(bool golden, const DumpFile& dump, const ModuleTree& tree, const std::vector<uint32_t>& lone)
      : golden_(golden), dump_(dump), tree_(tree), lone_(lone) {}

  StatusOr<std::vector<OneSidedModule>> Find(const TextIds& others) const {
    std::vector<OneSidedModule> out;
    TextIds told;
    for (const uint32_t op : lone_) {
      const std::string_view name = dump_.ops().NameAt(op);
      if (!IsForwardModule(name) || others.Has(PathOf(ParseOpName(name).base))) continue;
      MSP_ASSIGN_OR_RETURN(const bool parameters, HasParameters(dump_, op));
      if (!parameters) continue;
      const uint32_t outermost = Outermost(op, others);
      const std::string_view outer = dump_.ops().NameAt(outermost);
      if (!told.Insert(PathOf(ParseOpName(outer).base))) continue;
      out.push_back({golden_, outermost, outer});
      if (out.size() == kMostModules) break;
    }
    std::ranges::sort(out, {}, &OneSidedModule::op);
    return out;
  }

 private:
  uint32_t Outermost(uint32_t op, const TextIds& others) const {
    uint32_t out = op;
    tree_.ForEachAround(dump_.ops().NameAt(op), [&](std::string_view name) {
      if (!IsForwardModule(name) || others.Has(PathOf(ParseOpName(name).base))) return false;
      if (const auto at = dump_.FindOp(name)) out = static_cast<uint32_t>(*at);
      return true;
    });
    return out;
  }

  const bool golden_;
  const DumpFile& dump_;
  const ModuleTree& tree_;
  const std::vector<uint32_t>& lone_;
};

bool AnyModule(const OpList& ops, const std::vector<uint32_t>& lone) {
  return std::ranges::any_of(lone, [&](uint32_t op) { return IsForwardModule(ops.NameAt(op)); });
}

/// Whether the runs share most modules: others are of other models, or named otherwise.
bool ShareModules(const OpList& ops, const MatchPlan& plan) {
  size_t shared = 0, lone = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (IsForwardModule(ops.NameAt(i)) && !plan.NotSeen(i)) ++(plan.golden_of[i] == kNoOp ? lone : shared);
  }
  return shared > 0 && shared >= lone;
}

}  // namespace

StatusOr<std::vector<OneSidedModule>> OneSidedModules(const DumpPair& pair, const MatchPlan& plan,
                                                      const ModuleTree& target, const ModuleTree& golden) {
  const OpList &target_ops = pair.target->ops(), &golden_ops = pair.golden->ops();
  std::vector<uint32_t> target_lone;
  for (size_t i = 0; i < plan.golden_of.size(); ++i) {
    if (plan.golden_of[i] == kNoOp && !plan.NotSeen(i)) target_lone.push_back(static_cast<uint32_t>(i));
  }
  const std::vector<uint32_t> golden_lone(plan.golden_only.begin(), plan.golden_only.end());
  const bool any = AnyModule(target_ops, target_lone) || AnyModule(golden_ops, golden_lone);
  if (!any || plan.fused || !ShareModules(target_ops, plan)) return std::vector<OneSidedModule>();
  // What is paired under another name is there on both sides, too.
  TextIds target_paths = PathsOf(target_ops), golden_paths = PathsOf(golden_ops);
  for (size_t i = 0; i < plan.golden_of.size(); ++i) {
    if (plan.golden_of[i] == kNoOp || !IsForwardModule(target_ops.NameAt(i))) continue;
    golden_paths.Insert(PathOf(ParseOpName(target_ops.NameAt(i)).base));
    target_paths.Insert(PathOf(ParseOpName(golden_ops.NameAt(plan.golden_of[i])).base));
  }
  MSP_ASSIGN_OR_RETURN(std::vector<OneSidedModule> out,
                       Side(false, *pair.target, target, target_lone).Find(golden_paths));
  MSP_ASSIGN_OR_RETURN(const std::vector<OneSidedModule> more,
                       Side(true, *pair.golden, golden, golden_lone).Find(target_paths));
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

}  // namespace msprobe
