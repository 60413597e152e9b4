#include "graph/tree/flat_structure.h"

#include "base/text.h"
#include "ops/collective.h"

namespace msprobe {

void PutCallsInOneModule(const DumpFile& dump, ConstructLines* lines) {
  const auto add = [&](std::string_view name, std::string_view parent) {
    const auto next = static_cast<uint32_t>(lines->entries.size());
    lines->entries.push_back({name, parent, 0});
    lines->index.Enter(HashName(name), next, [&](uint32_t i) { return lines->entries[i].name == name; });
  };
  lines->entries.reserve(dump.ops().size() + 2);
  add(kAllCallsForward, "");
  add(kAllCallsBackward, "");
  const auto is_backward = [&](size_t i) {
    const std::string_view name = dump.ops().NameAt(i);
    return EndsWith(name, ".backward") || Contains(name, ".backward.");
  };
  bool trains = false;
  size_t model = 0;  // how many calls there are up to the last of the backward pass, or that gives a stage its gradient
  for (size_t i = 0; i < dump.ops().size(); ++i) {
    trains = trains || is_backward(i);
    if (is_backward(i) || IsTransfer(dump.ops().NameAt(i))) model = i + 1;
  }
  if (!trains) model = dump.ops().size();
  for (size_t i = 0; i < dump.ops().size(); ++i) {
    const std::string_view parent = is_backward(i) ? kAllCallsBackward : kAllCallsForward;
    add(dump.ops().NameAt(i), i < model ? parent : std::string_view());
  }
}

bool IsOneModuleOfCalls(const ConstructLines& lines) {
  return !lines.entries.empty() && lines.entries[0].name == kAllCallsForward;
}

}  // namespace msprobe
