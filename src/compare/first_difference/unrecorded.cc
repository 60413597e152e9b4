#include "compare/first_difference/unrecorded.h"

#include <algorithm>
#include <vector>

#include "base/page_trim.h"
#include "base/text.h"
#include "compare/values/item_view.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kModulesAlone = 1000;  // in a row: a dump of modules only

/// Whether one of its results is none of its inputs.
StatusOr<bool> ChangesValues(const DumpFile& dump, size_t op) {
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(dump.ParseOp(op, &doc));
  std::vector<Item> scratch;
  std::vector<ItemView> items;
  size_t count = 0;
  DescribeOp(dump.ops().NameAt(op), doc, CompareMode::kStatistics, &scratch, &items, &count);
  const auto numbers = [](const ItemView& item) {
    std::string out;
    for (const StatValue& stat : item.stats) stat.AppendText(&(out += ' '));
    return out;
  };
  std::vector<std::string> inputs;
  for (size_t i = 0; i < count; ++i) {
    if (items[i].state != ItemState::kOutput) inputs.push_back(numbers(items[i]));
  }
  for (size_t i = 0; i < count; ++i) {
    const bool result = items[i].state == ItemState::kOutput && items[i].tensor;
    if (result && std::ranges::find(inputs, numbers(items[i])) == inputs.end()) return true;
  }
  return false;
}

/// A module stands behind what it calls.
bool CallsNothing(const OpList& ops, const ModuleTree& tree, size_t module) {
  constexpr size_t kNear = 64;
  const std::string_view name = ops.NameAt(module);
  for (size_t i = module; i-- > 0 && module - i <= kNear;) {
    if (tree.ParentOf(ops.NameAt(i)) == name) return false;
  }
  return true;
}

}  // namespace

Status CountUnrecorded(const DumpFile& dump, const ModuleTree& tree, Unrecorded* out) {
  const OpList& ops = dump.ops();
  bool functions = false;
  size_t modules = 0;
  std::vector<size_t> empty;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (i % kStepsBetweenTrims == 0) TrimMaps();
    const std::string_view name = ops.NameAt(i);
    if (!IsModuleName(name)) {
      functions = true;
    } else if (Contains(name, ".forward.")) {
      ++modules;
      if (CallsNothing(ops, tree, i)) empty.push_back(i);
    }
    // Without functions every module is such a one.
    if (!functions && modules > kModulesAlone) return OkStatus();
  }
  if (!functions || 2 * empty.size() > modules) return OkStatus();
  for (const size_t i : empty) {
    MSP_ASSIGN_OR_RETURN(const bool changes, ChangesValues(dump, i));
    if (changes && out->modules++ == 0) out->first = ops.NameAt(i);
  }
  return OkStatus();
}

}  // namespace msprobe
