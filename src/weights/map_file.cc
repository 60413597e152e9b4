#include "weights/map_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/message.h"
#include "base/text.h"
#include "base/yaml.h"

namespace msprobe {
namespace {

std::string MapQuoted(const std::string& text) {
  std::string out;
  AppendJsonString(out, text, false);
  return out;
}

Status ReadLabels(const YamlNode& root, std::string_view key, const std::string& path, std::vector<std::string>* out) {
  const YamlNode* list = root.Find(key);
  if (!list || list->IsNull()) return OkStatus();
  if (!list->IsList()) return BadInput(Msg("{}: {} is not a list of names: see --map", path, key));
  for (const YamlNode& item : list->items) {
    if (!item.IsText()) return BadInput(Msg("{} line {}: a name is expected", path, item.line));
    out->push_back(item.text);
  }
  return OkStatus();
}

}  // namespace

StatusOr<MapFile> ReadMapFile(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const YamlNode root, ReadYamlFile(path));
  MapFile out;
  const YamlNode* pairs = root.Find("pairs");
  if (!pairs || !pairs->IsList()) {
    return BadInput(
        Msg("{} has no list of pairs: start from what 'msprobe ckpt compare A B --map-out FILE' writes", path));
  }
  for (const YamlNode& pair : pairs->items) {
    const YamlNode *a = pair.Find("a"), *b = pair.Find("b");
    if (!a || !b || !a->IsText() || !b->IsText()) {
      return BadInput(Msg("{} line {}: a pair has the names a and b", path, pair.line));
    }
    out.pairs.emplace_back(a->text, b->text);
  }
  MSP_RETURN_IF_ERROR(ReadLabels(root, "only_a", path, &out.only_a));
  MSP_RETURN_IF_ERROR(ReadLabels(root, "only_b", path, &out.only_b));
  return out;
}

std::string MapText(const NameMap& map) {
  std::string out =
      "# Which weight of A is which of B. Edit it and give it back with --map; 'by' is only for reading.\n"
      "# A part of a tensor is named behind it: \"linear_qkv.weight[q]\".\npairs:\n";
  for (const WeightPair& pair : map.pairs) {
    out += fmt::format("  - a: {}\n    b: {}\n    by: {}\n", MapQuoted(pair.a.label()), MapQuoted(pair.b.label()),
                       MatchedByText(pair.by));
    if (!pair.note.empty()) out += fmt::format("    note: {}\n", MapQuoted(pair.note));
  }
  if (map.pairs.empty()) out += "  []\n";
  for (const auto& [key, tensors] : {std::pair{"only_a", &map.only_a}, {"only_b", &map.only_b}}) {
    if (tensors->empty()) continue;
    out += fmt::format("{}:\n", key);
    for (const WeightTensor& t : *tensors) out += fmt::format("  - {}\n", MapQuoted(t.label()));
  }
  return out;
}

}  // namespace msprobe
