// How two models differ as structures: call by call, and as a list of what exists on one side only, moved, is named or
// made otherwise.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/big_array.h"
#include "base/status.h"
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

/// The lines packed, for there may be as many as calls; by value.
class ChangeList {
 public:
  class Iterator {
   public:
    Iterator(const ChangeList* list, size_t at) : list_(list), at_(at) {}
    StructureChange operator*() const { return (*list_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& o) const { return at_ == o.at_; }

   private:
    const ChangeList* list_;
    size_t at_;
  };

  void Add(const StructureChange& change);
  size_t size() const { return begins_.size(); }
  bool empty() const { return begins_.empty(); }
  StructureChange operator[](size_t i) const;
  StructureKind KindAt(size_t i) const { return static_cast<StructureKind>(bytes_[begins_[i]]); }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  BigArray<uint64_t> begins_;
  BigArray<char> bytes_;
};

struct StructureDiff {
  ModulePairs modules;
  BigArray<uint32_t> golden_call;     // for each call of the target, or kNoCall
  BigArray<StructureKind> call_kind;  // of each call of the target
  BigArray<uint32_t> golden_only;     // calls, in order
  ChangeList changes;                 // in the order of the target; those of the golden run alone at the end
  std::array<uint64_t, kStructureKinds> counts{};  // of `changes`
  uint64_t matched = 0;                            // calls of the target with a partner
};

StructureDiff DiffStructures(const Structure& target, const Structure& golden, const std::vector<LayerRule>& rules);

/// {"matched": .., "target_only": [{..}], "golden_only": [..], "renamed": [..], "moved": [..], "class": [..], "calls":
/// [..]}
std::string StructureDiffJson(const StructureDiff& diff);
/// The same piece by piece.
Status WriteStructureDiff(const StructureDiff& diff, const std::function<Status(std::string_view)>& write);

}  // namespace msprobe
