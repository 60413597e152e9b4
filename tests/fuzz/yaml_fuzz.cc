// YAML files: mappings and thresholds.
#include <string_view>

#include "base/yaml.h"
#include "fuzz_file.h"

namespace {

size_t CountNodes(const msprobe::YamlNode& node, int depth) {
  msprobe::fuzz::Check(depth <= msprobe::kMaxYamlDepth, "the tree is no deeper than its limit");
  size_t n = 1;
  for (const auto& item : node.items) n += CountNodes(item, depth + 1);
  for (const auto& [key, value] : node.members) n += CountNodes(value, depth + 1);
  return n;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  for (const bool aliases : {false, true}) {
    const auto root = ParseYaml({reinterpret_cast<const char*>(data), size}, "in.yaml", {.aliases = aliases});
    if (!root.ok()) {
      fuzz::CheckRefusal(root.status());
      continue;
    }
    fuzz::Check(CountNodes(*root, 0) <= kMaxYamlNodes + 1, "the tree is no larger than its limit");
  }
  return 0;
}
