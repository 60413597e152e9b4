#include "match/implementations.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "base/text.h"
#include "match/dump_ops.h"
#include "match/module_pairs.h"
#include "ops/framework_names.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kLookedAt = 4096;  // modules; the first layers of a model say what it is made of
constexpr double kHardlyOne = 0.1, kOtherClasses = 0.3, kMostLayers = 0.8;
constexpr size_t kFewestClasses = 3;  // a toy of two modules is no model of another program

/// Classes of the modules that a run called first, without layers of the framework, and how many of these modules the
/// other run called under the same name.
struct Program {
  std::unordered_set<std::string_view> classes;
  size_t modules = 0, shared = 0;
  bool decided = false;  // so many are shared that no more need to be looked at
};

Program Look(const DumpFile& dump, const DumpFile& other, bool mapped) {
  constexpr size_t kEnough = 64;
  Program out;
  std::unordered_set<std::string_view> layers;
  const OpList& ops = dump.ops();
  for (size_t i = 0; i < ops.size() && out.modules < kLookedAt; ++i) {
    const std::string_view name = ops.NameAt(i);
    if (!IsModuleName(name) || ParseOpName(name).direction != OpDirection::kForward) continue;
    ++out.modules;
    out.shared += other.FindOp(name).has_value();
    if (!mapped && out.modules == kEnough && out.shared * 2 > kEnough) {
      out.decided = true;
      return out;
    }
    const std::string_view type = ApiOrClassOf(name);
    if (out.classes.count(type) || layers.count(type)) continue;
    (CommonClassOf(type).layer ? layers : out.classes).insert(type);
  }
  return out;
}

/// Of the layers with parameters of the run that has fewer.
bool MostPair(const DumpFile& target, const DumpFile& golden) {
  const StatusOr<Structure> a = Structure::Read(target, Vocabulary::kImplementations),
                            b = Structure::Read(golden, Vocabulary::kImplementations);
  if (!a.ok() || !b.ok()) return false;
  const ModulePairs pairs = PairModules(*a, *b, {});
  std::unordered_set<uint32_t> joined[2];
  for (const JoinedLayers& layers : pairs.joined) {
    joined[0].insert(layers.targets.begin(), layers.targets.end());
    joined[1].insert(layers.goldens.begin(), layers.goldens.end());
  }
  double most = 0;
  for (const bool of_golden : {false, true}) {
    const std::vector<ModuleNode>& modules = (of_golden ? *b : *a).modules();
    const std::vector<uint32_t>& partner = of_golden ? pairs.target_of : pairs.golden_of;
    size_t layers = 0, paired = 0;
    for (uint32_t m = 0; m < modules.size(); ++m) {
      if (modules[m].parameters.empty()) continue;
      ++layers;
      paired += partner[m] != kNoModule || joined[of_golden].count(m) > 0;
    }
    if (layers > 0) most = std::max(most, static_cast<double>(paired) / static_cast<double>(layers));
  }
  return most >= kMostLayers;
}

}  // namespace

bool AreImplementations(const DumpFile& target, const DumpFile& golden, bool mapped) {
  const auto a = FrameworkOf(target), b = FrameworkOf(golden);
  if (!a.ok() || !b.ok() || *a != *b) return false;
  const Program mine = Look(target, golden, mapped);
  if (mine.decided || mine.classes.size() < kFewestClasses) return false;
  const Program theirs = Look(golden, target, mapped);
  if (theirs.classes.size() < kFewestClasses) return false;
  const auto few = static_cast<double>(std::min(mine.modules, theirs.modules));
  if (!mapped && static_cast<double>(std::min(mine.shared, theirs.shared)) > kHardlyOne * few) return false;
  const auto common = std::count_if(mine.classes.begin(), mine.classes.end(),
                                    [&](std::string_view type) { return theirs.classes.count(type) > 0; });
  const auto fewest = static_cast<double>(std::min(mine.classes.size(), theirs.classes.size()));
  if (static_cast<double>(common) > kOtherClasses * fewest) return false;
  return mapped || MostPair(target, golden);
}

Vocabulary VocabularyOf(const DumpFile& target, const DumpFile& golden, bool mapped) {
  const StatusOr<Framework> a = FrameworkOf(target), b = FrameworkOf(golden);
  if (a.ok() && b.ok() && *a != *b) return Vocabulary::kCommon;
  return AreImplementations(target, golden, mapped) ? Vocabulary::kImplementations : Vocabulary::kOwn;
}

bool IsEngineDump(const DumpFile& dump) {
  if (!dump.schedule().empty()) return true;
  const OpList& ops = dump.ops();
  for (size_t i = ops.size(); i-- > 0;) {  // it is among the last
    const std::string_view name = ops.NameAt(i);
    if (IsModuleName(name) && ApiOrClassOf(name) == "LogitsProcessor") return true;
  }
  return false;
}

}  // namespace msprobe
