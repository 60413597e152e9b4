#include "compare/pair/lasting_writes.h"

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/page_trim.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

bool IsInput(const ItemView& item) { return item.state == ItemState::kInput || item.state == ItemState::kKwarg; }

/// Of a dump of checksums its statistics alone say too little.
std::string PrintOf(const ItemView& item, CompareMode mode) {
  return mode == CompareMode::kChecksum ? PrintOf(item).append(" ").append(item.checksum) : PrintOf(item);
}

/// The tensors of one op, as numbers that are equal for equal ones.
struct Flow {
  std::vector<size_t> inputs, outputs;
  bool writes = false;  // into what is the first of `inputs`
  bool module = false;
};

class LastingWrites {
 public:
  LastingWrites(const DumpFile& dump, CompareMode mode) : dump_(dump), mode_(mode) {}

  StatusOr<std::vector<bool>> Find() {
    std::vector<bool> out(dump_.ops().size());
    if (!HasWrites()) return out;
    MSP_RETURN_IF_ERROR(Read());
    FindWrites(&out);
    enum Taken : uint8_t { kLasts = 1, kElsewhere = 2 };
    std::unordered_map<size_t, uint8_t> taken;
    for (size_t i = flows_.size(); i-- > 0;) {
      const Flow& flow = flows_[i];
      uint8_t results = 0;
      for (const size_t made : flow.outputs) results |= taken.contains(made) ? taken[made] : 0;
      if (!out[i]) out[i] = results == kLasts && !flow.module;
      // A module hands on what is made in it.
      for (const size_t value : flow.module ? flow.outputs : flow.inputs) taken[value] |= out[i] ? kLasts : kElsewhere;
    }
    return out;
  }

 private:
  static bool IsWrite(std::string_view name) {
    return !IsModuleName(name) && ParseOpName(name).direction == OpDirection::kForward && ChangesArguments(ApiOf(name));
  }
  bool HasWrites() const {
    for (size_t i = 0; i < dump_.ops().size(); ++i) {
      if (IsWrite(dump_.ops().NameAt(i))) return true;
    }
    return false;
  }

  Status Read() {
    ItemViews items(dump_, mode_);
    flows_.resize(dump_.ops().size());
    const std::hash<std::string> hash;
    for (size_t i = 0; i < flows_.size(); ++i) {
      if (i % kStepsBetweenTrims == 0) TrimMaps();
      const std::string_view name = dump_.ops().NameAt(i);
      MSP_RETURN_IF_ERROR(items.Read(i));
      flows_[i].module = IsModuleName(name);
      for (const ItemView& item : items.items()) {
        if (!item.tensor || (!IsInput(item) && item.state != ItemState::kOutput)) continue;
        flows_[i].writes = flows_[i].writes || (item.suffix == ".input.0" && IsWrite(name));
        (IsInput(item) ? flows_[i].inputs : flows_[i].outputs).push_back(hash(PrintOf(item, mode_)));
      }
    }
    return OkStatus();
  }

  /// Those into what was there before the step.
  void FindWrites(std::vector<bool>* out) const {
    std::unordered_set<size_t> made;
    std::unordered_map<size_t, size_t> open;  // what a write gave, and its op
    for (size_t i = 0; i < flows_.size(); ++i) {
      const Flow& flow = flows_[i];
      for (const size_t value : flow.inputs) {
        const auto found = open.find(value);
        if (found == open.end()) continue;
        (*out)[found->second] = false;
        open.erase(found);
      }
      const bool lasts = flow.writes && !flow.outputs.empty() && !made.contains(flow.inputs.front());
      if (!flow.module) made.insert(flow.outputs.begin(), flow.outputs.end());
      if (!lasts) continue;
      (*out)[i] = true;
      open[flow.outputs.front()] = i;
    }
  }

  const DumpFile& dump_;
  const CompareMode mode_;
  std::vector<Flow> flows_;
};

StatusOr<std::vector<std::string>> InputsOf(const DumpFile& dump, size_t op, CompareMode mode) {
  std::vector<std::string> out;
  ItemViews items(dump, mode);
  MSP_RETURN_IF_ERROR(items.Read(op));
  for (const ItemView& item : items.items()) {
    if (IsInput(item)) out.push_back(PrintOf(item, mode));
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace

StatusOr<std::vector<bool>> OpsOfLastingWrites(const DumpFile& dump, CompareMode mode) {
  return LastingWrites(dump, mode).Find();
}

StatusOr<bool> AreGivenTheSame(const DumpPair& pair, size_t op, uint32_t partner) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> ours, InputsOf(*pair.target, op, pair.options.mode));
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> theirs, InputsOf(*pair.golden, partner, pair.options.mode));
  return !ours.empty() && ours == theirs;
}

}  // namespace msprobe
