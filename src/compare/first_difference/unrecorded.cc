#include "compare/first_difference/unrecorded.h"

#include <algorithm>
#include <vector>

#include "base/page_trim.h"
#include "base/slot_table.h"
#include "compare/values/item_view.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

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

}  // namespace

Status CountUnrecorded(const DumpFile& dump, const ModuleTree& tree, Differences* out) {
  const OpList& ops = dump.ops();
  TextIds called;  // names of modules that call something
  bool functions = false;
  std::vector<size_t> modules;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (i % kStepsBetweenTrims == 0) TrimMaps();
    const std::string_view name = ops.NameAt(i);
    const bool module = IsModuleName(name);
    if (const std::string_view parent = tree.ParentOf(name); !parent.empty()) called.Insert(parent);
    if (module && ParseOpName(name).direction == OpDirection::kForward) modules.push_back(i);
    functions = functions || !module;
  }
  const auto is_empty = [&](size_t i) { return !called.Has(ops.NameAt(i)); };
  const size_t empty = static_cast<size_t>(std::ranges::count_if(modules, is_empty));
  if (!functions || 2 * empty > modules.size()) return OkStatus();
  for (const size_t i : modules) {
    if (!is_empty(i)) continue;
    MSP_ASSIGN_OR_RETURN(const bool changes, ChangesValues(dump, i));
    if (changes && out->unrecorded++ == 0) out->first_unrecorded = ops.NameAt(i);
  }
  return OkStatus();
}

}  // namespace msprobe
