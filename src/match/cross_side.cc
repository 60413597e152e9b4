#include "match/cross_side.h"

#include <algorithm>

#include "base/parallel.h"
#include "base/text.h"
#include "dump/flatten.h"
#include "ops/framework_names.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kCallsPerTask = 256;

}  // namespace

bool IsProduct(std::string_view common) {
  return common == "matmul" || common == "linear" || StartsWith(common, "conv");
}

std::string_view CrossSide::Function(uint32_t id) const {
  const auto found = as_functions.find(id);
  return found == as_functions.end() ? Call(id).function : std::string_view(found->second);
}

uint32_t CrossSide::Backward(uint32_t call) const {
  const NameParts parts = ParseOpName(Call(call).name);
  const std::string base(parts.base), number(parts.number);
  const bool module = Call(call).function.empty();
  const auto found = dump->FindOp(module ? base + ".backward." + number : base + "." + number + ".backward");
  return found ? static_cast<uint32_t>(*found) : UINT32_MAX;
}

/// A layer that multiplies by its own weight, and in which there is no other.
bool CrossSide::IsPlainProduct(uint32_t module) const {
  const ModuleNode& node = structure.modules()[module];
  return node.layer && IsProduct(node.kind) && std::all_of(node.children.begin(), node.children.end(), [&](uint32_t c) {
           const ModuleNode& child = structure.modules()[c];
           return child.parameters.empty() && child.children.empty();
         });
}

bool CrossSide::HasActivation(uint32_t module, const std::vector<uint32_t>& partner) const {
  const std::vector<uint32_t>& children = structure.modules()[module].children;
  return IsPlainProduct(module) &&
         std::any_of(children.begin(), children.end(), [&](uint32_t c) { return partner[c] == kNoModule; });
}

/// A module in which nothing was recorded and that has no weights (nn.SiLU) is what the other side may call as a
/// function.
bool CrossSide::CountsAsFunction(uint32_t id, const std::vector<uint32_t>& partner) {
  const ModuleNode& node = structure.modules()[Call(id).module];
  if (!Call(id).function.empty() || partner[Call(id).module] != kNoModule || !node.children.empty() ||
      !node.functions.empty() || !node.parameters.empty()) {
    return false;
  }
  const CommonFunction common = CommonFunctionOf(node.kind);
  if (common.name.empty() || common.moves) return false;
  as_functions.emplace(id, common.name);
  return true;
}

void CrossSide::Collect(const std::vector<uint32_t>& partner, const std::unordered_set<uint32_t>& joined) {
  for (uint32_t id = 0; id < structure.calls().size(); ++id) {
    const StructureCall& call = Call(id);
    if (call.direction == OpDirection::kBackward && call.op != UINT32_MAX) {
      last_backward = last_backward == UINT32_MAX ? call.op : std::max(last_backward, call.op);
    }
    if (call.direction != OpDirection::kForward || call.op == UINT32_MAX) continue;
    if (call.function.empty() && (joined.count(call.module) || !CountsAsFunction(id, partner))) continue;
    uint32_t module = call.module;
    // An activation in a layer stands behind the layer.
    const auto passes = [&](uint32_t m) { return partner[m] == kNoModule || (m != call.module && IsPlainProduct(m)); };
    while (module != 0 && passes(module) && !joined.count(module)) module = structure.modules()[module].parent;
    if (!joined.count(module)) functions[module].push_back(id);
  }
}

Status CrossSide::ReadSizes() {
  const size_t calls = structure.calls().size();
  sizes.assign(calls, 0);
  return ParallelFor((calls + kCallsPerTask - 1) / kCallsPerTask, [&](size_t task) -> Status {
    JsonDoc doc;
    std::vector<Item> items;
    const size_t end = std::min(calls, (task + 1) * kCallsPerTask);
    for (size_t id = task * kCallsPerTask; id < end; ++id) {
      const StructureCall& call = structure.calls()[id];
      if (call.direction != OpDirection::kForward || call.op == UINT32_MAX || call.moves) continue;
      if (call.function.empty() && !as_functions.count(static_cast<uint32_t>(id))) continue;
      MSP_RETURN_IF_ERROR(dump->ParseOp(call.op, &doc));
      items.clear();
      FlattenOp(call.name, doc, &items);
      const auto result = std::find_if(items.begin(), items.end(), [](const Item& item) {
        return item.state == ItemState::kOutput && item.leaf && item.leaf->IsObject();
      });
      if (result != items.end()) sizes[id] = ElementsOf(*result->leaf);
    }
    return OkStatus();
  });
}

std::optional<Scale> ScaleOf(const CrossSide& side, uint32_t call) {
  const std::string_view function = side.Function(call);
  Scale out;
  out.divides = function == "div";
  JsonDoc doc;
  if ((function != "mul" && !out.divides) || side.Call(call).op == UINT32_MAX) return std::nullopt;
  if (!side.dump->ParseOp(side.Call(call).op, &doc).ok()) return std::nullopt;
  std::vector<Item> items;
  FlattenOp(side.Call(call).name, doc, &items);
  for (const Item& item : items) {
    if (item.state != ItemState::kInput && item.state != ItemState::kKwarg) continue;
    const JsonValue* value = item.leaf && item.leaf->IsObject() ? item.leaf->Find("value") : nullptr;
    if (item.leaf && item.leaf->IsObject() && item.leaf->Find("dtype") && out.tensor.empty()) {
      // A number that is divided is no scale.
      if (out.divides && !out.number.empty()) return std::nullopt;
      out.tensor = item.suffix;
    } else if (value && value->IsNumber() && out.number.empty()) {
      out.number = item.suffix;
      out.factor = value->Number();
    } else {
      return std::nullopt;
    }
  }
  if (out.tensor.empty() || out.number.empty() || out.factor == 0) return std::nullopt;
  if (out.divides) out.factor = 1 / out.factor;
  return out;
}

}  // namespace msprobe
