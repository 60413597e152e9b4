#include "match/dump_ops.h"

#include <algorithm>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {

std::string_view FrameworkName(Framework framework) {
  return framework == Framework::kPyTorch ? "PyTorch" : "MindSpore";
}

StatusOr<Framework> FrameworkOf(const DumpFile& dump) {
  const std::string_view name = dump.framework();
  if (name == "pytorch") return Framework::kPyTorch;
  if (name == "mindspore" || name == "mindtorch") return Framework::kMindSpore;
  if (!name.empty()) {
    return BadInput(Msg("{} is of the framework \"{}\": dumps of pytorch, mindspore and mindtorch are compared",
                        dump.path(), OneLine(name)));
  }
  constexpr size_t kLookedAt = 64;
  const std::string_view text = dump.file().text();
  for (size_t i = 0; i < std::min(kLookedAt, dump.ops().size()); ++i) {
    const OpSpan op = dump.ops()[i];
    if (StartsWith(op.name, "Cell.") || StartsWith(op.name, "Mint")) return Framework::kMindSpore;
    if (Contains(text.substr(op.offset, op.length), "\"mindspore.Tensor\"")) return Framework::kMindSpore;
  }
  return Framework::kPyTorch;
}

std::vector<std::string_view> OpNames(const DumpFile& dump) {
  std::vector<std::string_view> names;
  names.reserve(dump.ops().size());
  for (size_t i = 0; i < dump.ops().size(); ++i) names.push_back(dump.ops().NameAt(i));
  return names;
}

}  // namespace msprobe
