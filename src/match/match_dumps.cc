#include "match/match_dumps.h"

#include "base/message.h"
#include "base/text.h"
#include "match/cross_items.h"
#include "match/cross_match.h"
#include "match/implementations.h"
#include "match/layer_match.h"
#include "match/name_mapping.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

std::vector<std::string_view> Views(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

/// Op and position of a full item name: the longest prefix that is an op of `dump`. Files of tensors call the place of
/// keyword arguments "kwargs".
bool SplitItem(const DumpFile& dump, const std::string& item, uint32_t* op, std::string* suffix) {
  for (size_t dot = item.size(); dot != std::string::npos && dot > 0; dot = item.rfind('.', dot - 1)) {
    const auto found = dump.FindOp(std::string_view(item).substr(0, dot));
    if (!found) continue;
    *op = static_cast<uint32_t>(*found);
    *suffix = item.substr(dot);
    constexpr std::string_view kKwargs = ".kwargs.";
    if (StartsWith(*suffix, kKwargs)) *suffix = ".input." + suffix->substr(kKwargs.size());
    return true;
  }
  return false;
}

Status LinkItems(const DumpFile& target, const DumpFile& golden,
                 const std::vector<std::pair<std::string, std::string>>& items, MatchPlan* plan) {
  size_t unknown = 0, lost = 0;
  const std::string *first_unknown = nullptr, *first_lost = nullptr;
  for (const auto& [target_item, golden_item] : items) {
    uint32_t op = 0;
    ItemLink link;
    if (!SplitItem(target, target_item, &op, &link.target)) {
      if (unknown++ == 0) first_unknown = &target_item;
      continue;
    }
    if (!SplitItem(golden, golden_item, &link.golden_op, &link.golden)) {
      link.golden_op = kNoOp;
      if (lost++ == 0) first_lost = &golden_item;
    }
    const auto [it, fresh] = plan->links.try_emplace(op);
    if (fresh) it->second.others = plan->golden_of[op];
    if (link.golden_op != kNoOp && (it->second.links.empty() || plan->golden_of[op] == kNoOp)) {
      plan->golden_of[op] = link.golden_op;
    }
    it->second.links.push_back(std::move(link));
  }
  if (first_unknown != nullptr && unknown == items.size()) {
    return BadInput(
        Msg("the data mapping names no item of {}, its first is {}: lines are \"item of the target: item of the golden "
            "run\", with full names",
            target.path(), OneLine(*first_unknown)));
  }
  const auto warn = [&](size_t n, const std::string* first, const std::string& whose) {
    if (n == 0) return;
    plan->warnings.push_back(
        Msg("the data mapping names {} items that {} does not have, the first is {}", n, whose, OneLine(*first)));
  };
  warn(unknown, first_unknown, target.path());
  warn(lost, first_lost, golden.path());
  CountMatches(golden.ops().size(), plan);
  return OkStatus();
}

bool HasTorchNames(const DumpFile& dump) { return dump.framework() == "pytorch" || dump.framework() == "mindtorch"; }

/// Ops that names leave alone on both sides, by the structure of the models; of pairs that it finds as well, which
/// items belong together.
Status FillAcross(const DumpFile& target, const DumpFile& golden, MatchPlan* plan) {
  MSP_ASSIGN_OR_RETURN(MatchPlan across, MatchAcross(target, golden));
  std::vector<bool> free(golden.ops().size(), false);
  for (const uint32_t g : plan->golden_only) free[g] = true;
  for (uint32_t t = 0; t < plan->golden_of.size(); ++t) {
    const uint32_t g = across.golden_of[t];
    if (g == kNoOp || (plan->golden_of[t] != kNoOp ? plan->golden_of[t] != g : !free[g])) continue;
    plan->golden_of[t] = g;
    if (auto links = across.links.extract(t)) plan->links.insert(std::move(links));
  }
  CountMatches(golden.ops().size(), plan);
  return OkStatus();
}

/// Backward ops that are only a part of what the other side computes stay a pair, but only what they are given is
/// compared.
void LeavePartsAlone(const DumpFile& target, MatchPlan* plan) {
  for (uint32_t t = 0; t < plan->golden_of.size(); ++t) {
    const uint32_t g = plan->golden_of[t];
    if (g != kNoOp && IsBackwardOfPart(target.ops().NameAt(t))) plan->links.emplace(t, LinksOfPart(g));
  }
}

/// What a layer mapping pairs: its modules stand, functions inside them pair by the structure of the models first,
/// which looks at what they compute and not only at their order.
Status FillLayersAcross(const DumpFile& target, const DumpFile& golden, const std::vector<LayerRule>& rules,
                        MatchPlan* plan) {
  MSP_ASSIGN_OR_RETURN(MatchPlan across, MatchAcross(target, golden, rules));
  const BigArray<uint32_t> named = plan->golden_of;
  for (uint32_t t = 0; t < named.size(); ++t) {
    if (!IsModuleName(target.ops().NameAt(t))) plan->golden_of[t] = kNoOp;
  }
  // Several ops of one side may stand against one of the other, but not by two ways of pairing.
  for (const BigArray<uint32_t>* found : std::initializer_list<const BigArray<uint32_t>*>{&across.golden_of, &named}) {
    std::vector<bool> taken(golden.ops().size(), false);
    for (const uint32_t g : plan->golden_of) {
      if (g != kNoOp) taken[g] = true;
    }
    for (uint32_t t = 0; t < named.size(); ++t) {
      const uint32_t g = (*found)[t];
      if (plan->golden_of[t] == kNoOp && g != kNoOp && !taken[g]) plan->golden_of[t] = g;
    }
  }
  for (uint32_t t = 0; t < named.size(); ++t) {
    if (plan->golden_of[t] == kNoOp || plan->golden_of[t] != across.golden_of[t]) continue;
    if (auto links = across.links.extract(t)) plan->links.insert(std::move(links));
  }
  LeavePartsAlone(target, plan);
  CountMatches(golden.ops().size(), plan);
  return OkStatus();
}

/// The structure of both models completes what the mapping says, which is written for one way in which they may be
/// wrapped and may name one part of a fused layer only. Functions have no partner.
Status FillImplementations(const DumpFile& target, const DumpFile& golden, const std::vector<LayerRule>& rules,
                           MatchPlan* plan) {
  MSP_ASSIGN_OR_RETURN(MatchPlan across, MatchImplementations(target, golden, rules));
  across.how = plan->how;
  across.warnings = std::move(plan->warnings);
  across.rules = plan->rules;
  across.unknown_classes = std::move(plan->unknown_classes);
  if (across.matched > 0) across.rules = MatchPlan::RuleUse::kUsed;
  *plan = std::move(across);
  return OkStatus();
}

/// Backward ops of functions go with their forward calls: two frameworks call a function differently often, so the
/// order in which they appear says nothing. Of functions where no number leads to a partner (activation checkpointing
/// counts on) the order stands.
void FollowForward(const DumpFile& target, const DumpFile& golden, MatchPlan* plan) {
  const std::vector<std::string_view> names = OpNames(target), golden_names = OpNames(golden);
  const auto call = [](const NameParts& of, std::string_view direction) {
    return std::string(of.base) + "." + std::string(of.number) + std::string(direction);
  };
  struct Found {
    std::vector<std::pair<size_t, uint32_t>> ops;
    bool any = false;
  };
  std::unordered_map<std::string_view, Found> functions;
  for (size_t t = 0; t < names.size(); ++t) {
    const NameParts parts = ParseOpName(names[t]);
    if (parts.direction != OpDirection::kBackward || parts.number.empty() || parts.number_last) continue;
    const auto forward = target.FindOp(call(parts, ".forward"));
    if (!forward || plan->golden_of[*forward] == kNoOp) continue;
    const auto backward = golden.FindOp(call(ParseOpName(golden_names[plan->golden_of[*forward]]), ".backward"));
    Found& found = functions[parts.base];
    found.ops.emplace_back(t, backward ? static_cast<uint32_t>(*backward) : kNoOp);
    found.any = found.any || backward;
  }
  for (const auto& [function, found] : functions) {
    if (!found.any) continue;
    for (const auto& [t, g] : found.ops) plan->golden_of[t] = g;
  }
  CountMatches(golden.ops().size(), plan);
}

/// Plans in which the target's ops match under other names.
StatusOr<MatchPlan> MatchRenamed(const DumpFile& target, const DumpFile& golden, const Mapping& mapping,
                                 const MatchOptions& options) {
  MSP_ASSIGN_OR_RETURN(const Framework target_framework, FrameworkOf(target));
  MSP_ASSIGN_OR_RETURN(const Framework golden_framework, FrameworkOf(golden));
  const bool cross = target_framework != golden_framework;
  const bool named = mapping.api || mapping.cell;
  // MSAdapter runs PyTorch's programs on MindSpore: its names are PyTorch's.
  if (cross && !named && HasTorchNames(target) && HasTorchNames(golden)) {
    MatchPlan plan = MatchOps(target.ops(), golden.ops(), options);
    plan.cross = true;
    return plan;
  }
  if (cross && !named && !options.exact) return MatchAcross(target, golden);
  if (cross && mapping.api && target_framework == Framework::kPyTorch) {
    // Its rules say which side is which framework's; names of modules are those of the target and the golden run.
    Mapping swapped = mapping;
    for (auto& [mine, theirs] : swapped.cells) std::swap(mine, theirs);
    MSP_ASSIGN_OR_RETURN(const MatchPlan plan, MatchRenamed(golden, target, swapped, options));
    return Inverted(plan, target.ops().size());
  }
  if (!cross && !named && !options.exact && !options.fuzzy && AreImplementations(target, golden, false)) {
    MSP_ASSIGN_OR_RETURN(MatchPlan plan, MatchImplementations(target, golden, {}));
    if (plan.matched > 0) return plan;
  }
  if (mapping.api && !(target_framework == Framework::kMindSpore && golden_framework == Framework::kPyTorch)) {
    return UsageError(
        Msg("-am/--api_mapping pairs functions of MindSpore with those of PyTorch, but {} is of {} and {} of {}: leave "
            "it out, or map items by -dm",
            target.path(), FrameworkName(target_framework), golden.path(), FrameworkName(golden_framework)));
  }
  std::vector<std::string> renamed;  // names are copied only where some change
  const bool cells = !mapping.cells.empty();
  if (cross || cells) renamed = MapCells(OpNames(target), mapping.cells);
  if (cross)
    renamed = MapModules(Views(renamed), OpNames(golden), golden_framework == Framework::kPyTorch ? "Module" : "Cell");
  if (cross && target_framework == Framework::kMindSpore)
    renamed = MapApis(Views(renamed), OpNames(golden), mapping.apis);
  if (!cross && !cells && !options.exact) {
    renamed = NamesWithoutChunk(target, golden);
    if (renamed.empty() && !mapping.by_name) renamed = NamesOfWrapped(target, golden);
  }
  const bool other_names = cross || cells || !renamed.empty();
  MatchPlan plan = MatchOps(other_names ? NameSequence(renamed) : NameSequence(target.ops()), golden.ops(), options);
  plan.cross = cross;
  if (cross && !options.fuzzy && !options.exact) FollowForward(target, golden, &plan);
  if (!mapping.apis.empty()) LinkApiItems(OpNames(target), mapping.apis, &plan);
  if (cross && !options.exact) {
    MSP_RETURN_IF_ERROR(FillAcross(target, golden, &plan));
    LeavePartsAlone(target, &plan);
  }
  plan.how = mapping.cell && mapping.api ? "cell and api mapping"
             : mapping.cell              ? "cell mapping"
             : mapping.api               ? "api mapping"
             : cross                     ? "names of both frameworks"
                                         : plan.how;
  if (options.fuzzy && plan.how != "fuzzy") plan.how += ", fuzzy";
  return plan;
}

StatusOr<MatchPlan> MatchFused(const DumpFile& target, const DumpFile& golden, const Mapping& mapping) {
  MatchPlan plan;
  plan.how = "training against inference";
  plan.fused = PlanFused(OpNames(target), OpNames(golden), mapping.fused);
  if (mapping.name_a_line) plan.fused->joint = ";\n";
  plan.golden_of.assign(target.ops().size(), kNoOp);
  for (const FusedGroup& group : plan.fused->groups) {
    for (const uint32_t t : group.targets) plan.golden_of[t] = group.goldens.front();
  }
  CountMatches(golden.ops().size(), &plan);
  if (plan.matched > 0) return plan;
  return BadInput(
      Msg("no module of {} has a partner in {}: --consistent_check compares L0 dumps of a training (-tp) and of an "
          "inference engine (-gp)",
          target.path(), golden.path()));
}

}  // namespace

StatusOr<MatchPlan> MatchDumps(const DumpFile& target, const DumpFile& golden, const Mapping& mapping) {
  MatchOptions options;
  options.exact = target.level() == "debug";
  options.fuzzy = mapping.fuzzy && !options.exact;
  if (mapping.fused != Mapping::Fused::kNone) return MatchFused(target, golden, mapping);
  if (mapping.layer) {
    MSP_ASSIGN_OR_RETURN(const Framework target_framework, FrameworkOf(target));
    MSP_ASSIGN_OR_RETURN(const Framework golden_framework, FrameworkOf(golden));
    MSP_ASSIGN_OR_RETURN(MatchPlan plan, MatchLayers(target, golden, mapping.layers));
    plan.cross = target_framework != golden_framework;
    if (AreImplementations(target, golden, true))
      MSP_RETURN_IF_ERROR(FillImplementations(target, golden, mapping.layers, &plan));
    if (plan.cross && !plan.implementations)
      MSP_RETURN_IF_ERROR(FillLayersAcross(target, golden, mapping.layers, &plan));
    if (Message text = UnusedRulesWarning(plan, mapping); !text.empty()) plan.warnings.push_back(std::move(text));
    return plan;
  }
  MSP_ASSIGN_OR_RETURN(MatchPlan plan, MatchRenamed(target, golden, mapping, options));
  if (!mapping.data) return plan;
  plan.how = "data mapping";
  MSP_RETURN_IF_ERROR(LinkItems(target, golden, mapping.items, &plan));
  return plan;
}

}  // namespace msprobe
