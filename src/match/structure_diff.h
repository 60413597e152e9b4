// How two models differ as structures: call by call, and as a list of what exists on one side only, moved, is named or
// made otherwise.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "match/module_pairs.h"

namespace msprobe {

enum class StructureKind : uint8_t { kSame, kTargetOnly, kGoldenOnly, kRenamed, kMoved, kClass, kCalls };
inline constexpr size_t kStructureKinds = 7;
/// "same", "target only", "golden only", "renamed", "moved", "class", "calls"
std::string_view StructureKindText(StructureKind kind);

/// One line of the list. A module that one side lacks stands for all that is in it.
struct StructureChange {
  StructureKind kind = StructureKind::kSame;
  bool module = true;                      // else a function in one
  std::string target, golden;              // paths of modules, names of calls of functions; "" on the side without
  std::string target_class, golden_class;  // of modules
  std::string detail;                      // "2 calls, 1 in the golden run"
  uint64_t calls = 0;                      // calls of it and below
};

struct StructureDiff {
  ModulePairs modules;
  std::vector<uint32_t> golden_call;     // for each call of the target, or kNoCall
  std::vector<StructureKind> call_kind;  // of each call of the target
  std::vector<uint32_t> golden_only;     // calls, in order
  std::vector<StructureChange> changes;  // in the order of the target; those of the golden run alone at the end
  std::array<uint64_t, kStructureKinds> counts{};  // of `changes`
  uint64_t matched = 0;                            // calls of the target with a partner
};

StructureDiff DiffStructures(const Structure& target, const Structure& golden, const std::vector<LayerRule>& rules);

/// {"matched": .., "target_only": [{..}], "golden_only": [..], "renamed": [..], "moved": [..], "class": [..], "calls":
/// [..]}
std::string StructureDiffJson(const StructureDiff& diff);

}  // namespace msprobe
