#include "match/structure_diff.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/text.h"
#include "json/writer.h"
#include "match/match_plan.h"

namespace msprobe {
namespace {

constexpr std::array<std::string_view, kStructureKinds> kKindTexts{"same",  "target only", "golden only", "renamed",
                                                                   "moved", "class",       "calls"};
constexpr size_t kDirections = 4;

/// The functions that one call of a module runs, or that run outside of all.
using Group = BigArray<uint32_t>;

class Differ {
 public:
  Differ(const Structure& target, const Structure& golden, const std::vector<LayerRule>& rules)
      : t_(target), g_(golden), cross_(HasCells(target) != HasCells(golden)) {
    out_.modules = PairModules(target, golden, rules);
    out_.golden_call.assign(target.calls().size(), kNoCall);
    out_.call_kind.assign(target.calls().size(), StructureKind::kTargetOnly);
    taken_.assign(golden.calls().size(), false);
  }

  StructureDiff Run() {
    for (uint32_t m = 0; m < t_.modules().size(); ++m) {
      if (const uint32_t g = out_.modules.golden_of[m]; g != kNoModule) PairInside(m, g);
    }
    PairElsewhere();
    for (uint32_t g = 0; g < taken_.size(); ++g) {
      if (!taken_[g]) out_.golden_only.push_back(g);
    }
    ListModules();
    ListFunctions();
    for (size_t i = 0; i < out_.changes.size(); ++i) ++out_.counts[static_cast<size_t>(out_.changes.KindAt(i))];
    return std::move(out_);
  }

 private:
  void Pair(uint32_t t, uint32_t g, StructureKind kind) {
    out_.golden_call[t] = g;
    out_.call_kind[t] = kind;
    taken_[g] = true;
    ++out_.matched;
  }

  static bool HasCells(const Structure& side) {
    return std::any_of(side.calls().begin(), side.calls().end(),
                       [](const StructureCall& call) { return StartsWith(call.name, "Cell."); });
  }

  /// Two frameworks have other names for their classes.
  bool OtherClass(const ModuleNode& a, const ModuleNode& b) const { return !cross_ && a.type != b.type; }

  /// How a module and its partner differ by themselves, that is, not because of what is above them.
  StructureKind KindOf(uint32_t m, uint32_t g) const {
    const ModuleNode &a = t_.modules()[m], &b = g_.modules()[g];
    if (m == 0) return StructureKind::kSame;
    if (b.parent == kNoModule || out_.modules.golden_of[a.parent] != b.parent) return StructureKind::kMoved;
    if (a.name != b.name) return StructureKind::kRenamed;
    return OtherClass(a, b) ? StructureKind::kClass : StructureKind::kSame;
  }

  void PairInside(uint32_t m, uint32_t g) {
    const StructureKind kind = KindOf(m, g);
    const ModuleNode &a = t_.modules()[m], &b = g_.modules()[g];
    std::array<Group, kDirections> target, golden;
    const auto sort = [](const Structure& side, const ModuleNode& module, std::array<Group, kDirections>* to) {
      side.ForEachCall(module.calls, [&](uint32_t c) {
        (*to)[static_cast<size_t>(side.calls()[c].direction)].push_back(c);
        return true;
      });
    };
    sort(t_, a, &target);
    sort(g_, b, &golden);
    for (size_t d = 0; d < kDirections; ++d) {
      for (size_t i = 0; i < std::min(target[d].size(), golden[d].size()); ++i) Pair(target[d][i], golden[d][i], kind);
    }
    const std::vector<Group> x = GroupsOf(t_, a), y = GroupsOf(g_, b);
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) Align(x[i], y[i]);
  }

  /// Forward calls of functions by the module's call that they are in, then backward calls.
  static std::vector<Group> GroupsOf(const Structure& side, const ModuleNode& module) {
    std::vector<Group> out;
    std::unordered_map<std::string_view, size_t> groups;
    Group backward;
    side.ForEachCall(module.functions, [&](uint32_t f) {
      const StructureCall& call = side.calls()[f];
      if (call.direction == OpDirection::kBackward) {
        backward.push_back(f);
        return true;
      }
      const auto [it, fresh] = groups.try_emplace(call.caller, out.size());
      if (fresh) out.emplace_back();
      out[it->second].push_back(f);
      return true;
    });
    out.insert(out.begin(), std::move(backward));
    return out;
  }

  void Align(const Group& target, const Group& golden) {
    std::unordered_map<std::string_view, uint32_t> ids;
    const auto intern = [&](const Structure& side, const Group& group) {
      BigArray<uint32_t> out;
      out.reserve(group.size());
      for (const uint32_t c : group) {
        out.push_back(ids.try_emplace(side.calls()[c].function, static_cast<uint32_t>(ids.size())).first->second);
      }
      return out;
    };
    const BigArray<uint32_t> a = intern(t_, target), b = intern(g_, golden);
    for (const auto& [i, j] : AlignSequences(a, b)) {
      const std::string_view x = ParseOpName(t_.calls()[target[i]].name).base;
      const std::string_view y = ParseOpName(g_.calls()[golden[j]].name).base;
      Pair(target[i], golden[j], x == y ? StructureKind::kSame : StructureKind::kRenamed);
    }
    // What is left of one name runs at another place in the order.
    std::unordered_map<uint32_t, std::vector<uint32_t>> left;
    for (size_t j = b.size(); j-- > 0;) {
      if (!taken_[golden[j]]) left[b[j]].push_back(golden[j]);
    }
    for (size_t i = 0; i < a.size(); ++i) {
      if (out_.golden_call[target[i]] != kNoCall) continue;
      const auto it = left.find(a[i]);
      if (it == left.end() || it->second.empty()) continue;
      Pair(target[i], it->second.back(), StructureKind::kMoved);
      it->second.pop_back();
    }
  }

  /// The nearest module with a partner, as the target's id.
  uint32_t Around(bool target, uint32_t m) const {
    const auto& partner = target ? out_.modules.golden_of : out_.modules.target_of;
    while (partner[m] == kNoModule) m = (target ? t_ : g_).modules()[m].parent;
    return target ? m : partner[m];
  }

  /// Functions that moved into, or out of, a module that only one side has.
  void PairElsewhere() {
    const auto key = [&](bool target, uint32_t c) {
      const StructureCall& call = (target ? t_ : g_).calls()[c];
      return std::string(call.function) + " " + std::to_string(static_cast<int>(call.direction)) + " " +
             std::to_string(Around(target, call.module));
    };
    std::unordered_map<std::string, std::pair<Group, size_t>> left;
    for (uint32_t c = 0; c < taken_.size(); ++c) {
      if (!taken_[c] && !g_.calls()[c].function.empty()) left[key(false, c)].first.push_back(c);
    }
    if (left.empty()) return;
    for (uint32_t c = 0; c < out_.golden_call.size(); ++c) {
      if (out_.golden_call[c] != kNoCall || t_.calls()[c].function.empty()) continue;
      const auto it = left.find(key(true, c));
      if (it == left.end() || it->second.second == it->second.first.size()) continue;
      const uint32_t g = it->second.first[it->second.second];
      // In one pair of modules it would be another call of the same function: one of them is too many.
      if (out_.modules.golden_of[t_.calls()[c].module] == g_.calls()[g].module) continue;
      ++it->second.second;
      Pair(c, g, StructureKind::kMoved);
    }
  }

  static size_t Forwards(const Structure& side, const ModuleNode& module) {
    size_t forwards = 0;
    side.ForEachCall(module.calls, [&](uint32_t c) {
      forwards += side.calls()[c].direction == OpDirection::kForward;
      return true;
    });
    return forwards;
  }

  void AddModule(StructureKind kind, uint32_t m, uint32_t g, std::string detail = {}) {
    StructureChange change;
    change.kind = kind;
    if (m != kNoModule) {
      change.target = t_.PathOf(m);
      change.target_class = t_.modules()[m].type;
      change.calls = t_.modules()[m].below;
    }
    if (g != kNoModule) {
      change.golden = g_.PathOf(g);
      change.golden_class = g_.modules()[g].type;
      if (m == kNoModule) change.calls = g_.modules()[g].below;
    }
    change.detail = std::move(detail);
    out_.changes.Add(change);
  }

  /// True when it stands for all that is in it: nothing below has a partner, and the module above has one, or has parts
  /// that do.
  static std::vector<bool> Lone(const Structure& side, const std::vector<uint32_t>& partner) {
    std::vector<bool> none(partner.size());
    for (uint32_t m = static_cast<uint32_t>(partner.size()); m-- > 0;) {
      const auto& children = side.modules()[m].children;
      none[m] =
          partner[m] == kNoModule && std::all_of(children.begin(), children.end(), [&](uint32_t c) { return none[c]; });
    }
    std::vector<bool> out(partner.size());
    for (uint32_t m = 1; m < partner.size(); ++m) {
      out[m] = none[m] ? !none[side.modules()[m].parent] : partner[m] == kNoModule && !side.modules()[m].type.empty();
    }
    return out;
  }

  void ListModules() {
    const std::vector<bool> target = Lone(t_, out_.modules.golden_of), golden = Lone(g_, out_.modules.target_of);
    for (uint32_t m = 1; m < t_.modules().size(); ++m) {
      const uint32_t g = out_.modules.golden_of[m];
      if (g == kNoModule) {
        if (target[m]) AddModule(StructureKind::kTargetOnly, m, kNoModule);
        continue;
      }
      const ModuleNode &a = t_.modules()[m], &b = g_.modules()[g];
      const StructureKind kind = KindOf(m, g);
      if (kind != StructureKind::kSame) AddModule(kind, m, g);
      if (kind != StructureKind::kClass && OtherClass(a, b)) AddModule(StructureKind::kClass, m, g);
      const size_t x = Forwards(t_, a), y = Forwards(g_, b);
      if (x == y) continue;
      AddModule(StructureKind::kCalls, m, g, std::to_string(x) + " calls, " + std::to_string(y) + " in the golden run");
    }
    for (uint32_t g = 1; g < g_.modules().size(); ++g) {
      if (golden[g]) AddModule(StructureKind::kGoldenOnly, kNoModule, g);
    }
  }

  void AddFunction(StructureKind kind, uint32_t c, uint32_t g) {
    StructureChange change;
    change.kind = kind;
    change.module = false;
    change.calls = 1;
    const uint32_t in = c != kNoCall ? t_.calls()[c].module : g_.calls()[g].module;
    if (c != kNoCall) change.target = t_.calls()[c].name;
    if (g != kNoCall) change.golden = g_.calls()[g].name;
    change.detail = (c != kNoCall ? t_ : g_).PathOf(in);
    change.detail = change.detail.empty() ? "outside of all modules" : "in " + change.detail;
    out_.changes.Add(change);
  }

  /// Of modules that both sides have; what only one side has stands for its functions.
  void ListFunctions() {
    for (uint32_t c = 0; c < out_.golden_call.size(); ++c) {
      const StructureCall& call = t_.calls()[c];
      if (call.function.empty() || out_.call_kind[c] == StructureKind::kSame) continue;
      if (out_.golden_call[c] == kNoCall && out_.modules.golden_of[call.module] == kNoModule) continue;
      AddFunction(out_.call_kind[c], c, out_.golden_call[c]);
    }
    for (const uint32_t g : out_.golden_only) {
      const StructureCall& call = g_.calls()[g];
      if (call.function.empty() || out_.modules.target_of[call.module] == kNoModule) continue;
      AddFunction(StructureKind::kGoldenOnly, kNoCall, g);
    }
  }

  const Structure &t_, &g_;
  const bool cross_;  // of two frameworks
  StructureDiff out_;
  std::vector<bool> taken_;
};

std::string ChangeJson(const StructureChange& change) {
  JsonWriter json;
  json.BeginObject();
  json.Member("what", change.module ? "module" : "function");
  json.Member("target", change.target);
  json.Member("golden", change.golden);
  if (change.module) {
    json.Member("target_class", change.target_class);
    json.Member("golden_class", change.golden_class);
  }
  json.Member("detail", change.detail);
  json.Member("calls", change.calls);
  json.EndObject();
  return json.Take();
}

}  // namespace

std::string_view StructureKindText(StructureKind kind) { return kKindTexts[static_cast<size_t>(kind)]; }

StructureDiff DiffStructures(const Structure& target, const Structure& golden, const std::vector<LayerRule>& rules) {
  return Differ(target, golden, rules).Run();
}

void ChangeList::Add(const StructureChange& change) {
  begins_.push_back(bytes_.size());
  const char head[] = {static_cast<char>(change.kind), static_cast<char>(change.module)};
  bytes_.append(head, sizeof head);
  bytes_.append(reinterpret_cast<const char*>(&change.calls), sizeof change.calls);
  for (const std::string* text :
       {&change.target, &change.golden, &change.target_class, &change.golden_class, &change.detail}) {
    const uint64_t size = text->size();
    bytes_.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes_.append(text->data(), text->size());
  }
}

StructureChange ChangeList::operator[](size_t i) const {
  const char* at = bytes_.data() + begins_[i];
  StructureChange out;
  out.kind = static_cast<StructureKind>(*at++);
  out.module = *at++ != 0;
  std::memcpy(&out.calls, at, sizeof out.calls);
  at += sizeof out.calls;
  for (std::string* text : {&out.target, &out.golden, &out.target_class, &out.golden_class, &out.detail}) {
    uint64_t size = 0;
    std::memcpy(&size, at, sizeof size);
    text->assign(at + sizeof size, size);
    at += sizeof size + size;
  }
  return out;
}

// In pieces, each change on a line of its own.
Status WriteStructureDiff(const StructureDiff& diff, const std::function<Status(std::string_view)>& write) {
  MSP_RETURN_IF_ERROR(write("{\"matched\": " + std::to_string(diff.matched)));
  for (size_t k = 1; k < kStructureKinds; ++k) {
    std::string key(kKindTexts[k]);
    std::replace(key.begin(), key.end(), ' ', '_');
    MSP_RETURN_IF_ERROR(write(", \"" + key + "\": ["));
    const char* separator = "\n  ";
    for (size_t i = 0; i < diff.changes.size(); ++i) {
      if (diff.changes.KindAt(i) != static_cast<StructureKind>(k)) continue;
      MSP_RETURN_IF_ERROR(write(separator + ChangeJson(diff.changes[i])));
      separator = ",\n  ";
    }
    MSP_RETURN_IF_ERROR(write("]"));
  }
  return write("}");
}

std::string StructureDiffJson(const StructureDiff& diff) {
  std::string out;
  (void)WriteStructureDiff(diff, [&](std::string_view text) -> Status {
    out += text;
    return OkStatus();
  });
  return out;
}

}  // namespace msprobe
