#include "match/mapping.h"

#include "base/message.h"
#include "base/text.h"
#include "base/yaml.h"
#include "match/layer_templates.h"

namespace msprobe {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Status BadEntry(const std::string& path, const YamlNode& node, const Message& why) {
  return BadInput(Msg("{}, line {}: {}", path, node.line, why));
}

/// {target: golden} of texts.
StatusOr<Pairs> ReadPairs(const std::string& path, const YamlNode& map, const std::string& what) {
  if (map.IsNull()) return Pairs();
  if (!map.IsMap()) return BadEntry(path, map, Msg("expected lines \"{}\"", KnownText(what)));
  Pairs out;
  out.reserve(map.members.size());
  for (const auto& [key, value] : map.members) {
    if (!value.IsText() || key.empty()) {
      return BadEntry(path, value, Msg("\"{}\" must have one text as its value: {}", OneLine(key), KnownText(what)));
    }
    out.emplace_back(key, value.text);
  }
  return out;
}

/// A list of texts, or one text.
StatusOr<std::vector<std::string>> ReadTexts(const std::string& path, const YamlNode& entry, std::string_view key) {
  std::vector<std::string> out;
  const YamlNode* list = entry.Find(key);
  // The plural is documented, the singular is what releases up to 26.2 read.
  if (!list && EndsWith(key, "s")) list = entry.Find(key.substr(0, key.size() - 1));
  if (!list || list->IsNull()) return out;
  if (list->IsText()) return std::vector<std::string>{list->text};
  if (!list->IsList()) return BadEntry(path, *list, Msg("\"{}\" must be a list of positions", key));
  for (const YamlNode& item : list->items) {
    if (!item.IsText()) return BadEntry(path, item, Msg("\"{}\" must hold numbers and names", key));
    out.push_back(item.text);
  }
  return out;
}

StatusOr<ApiRule> ReadApiRule(const std::string& path, const YamlNode& entry) {
  if (!entry.IsMap()) return BadEntry(path, entry, Msg("each entry must be a map with ms_api and pt_api"));
  ApiRule rule;
  const auto name = [&](const char* key, std::string* out) -> Status {
    const YamlNode* node = entry.Find(key);
    if (!node || !node->IsText()) {
      return BadEntry(path, entry, Msg("an entry has no \"{}\": the name of the API, as dumps have it", key));
    }
    *out = node->text;
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(name("ms_api", &rule.target));
  MSP_RETURN_IF_ERROR(name("pt_api", &rule.golden));
  const auto lists = [&](const std::string& key, Pairs* out) -> Status {
    MSP_ASSIGN_OR_RETURN(const std::vector<std::string> target, ReadTexts(path, entry, "ms_" + key));
    MSP_ASSIGN_OR_RETURN(const std::vector<std::string> golden, ReadTexts(path, entry, "pt_" + key));
    if (target.size() != golden.size()) {
      return BadEntry(path, entry,
                      Msg("{}: ms_{} has {} entries and pt_{} {}: list each with its partner", OneLine(rule.target),
                          key, target.size(), key, golden.size()));
    }
    for (size_t i = 0; i < target.size(); ++i) out->emplace_back(target[i], golden[i]);
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(lists("args", &rule.inputs));
  MSP_RETURN_IF_ERROR(lists("outputs", &rule.outputs));
  MSP_RETURN_IF_ERROR(lists("parameters", &rule.parameters));
  MSP_RETURN_IF_ERROR(lists("parameters_grad", &rule.gradients));
  return rule;
}

Status ReadApis(const std::string& path, Mapping* out) {
  MSP_ASSIGN_OR_RETURN(const YamlNode root, ReadYamlFile(path));
  if (root.IsNull()) return OkStatus();
  if (!root.IsList()) return BadEntry(path, root, Msg("an api mapping is a list of entries with ms_api and pt_api"));
  for (const YamlNode& entry : root.items) {
    MSP_ASSIGN_OR_RETURN(ApiRule rule, ReadApiRule(path, entry));
    out->apis.push_back(std::move(rule));
  }
  return OkStatus();
}

/// A class or a child that stands twice would lose what the first place says of it.
Status CheckOnce(const std::string& path, const std::string& key, const YamlNode& value) {
  if (value.replaced == 0) return OkStatus();
  return BadEntry(
      path, value,
      Msg("\"{}\" stands in line {} already: put what belongs to it in one place", OneLine(key), value.replaced));
}

Status ReadLayers(const YamlNode& root, const std::string& path, Mapping* out) {
  out->layer_file = path;
  if (root.IsNull()) return OkStatus();
  if (!root.IsMap())
    return BadEntry(path, root, Msg("a layer mapping is a map from classes to maps of their children"));
  for (const auto& [type, children] : root.members) {
    LayerRule rule;
    rule.type = type == "Cell" ? "TopLayer" : type;  // the name that older files use
    rule.line = children.line;
    MSP_RETURN_IF_ERROR(CheckOnce(path, type, children));
    for (const YamlMember& child : children.members) MSP_RETURN_IF_ERROR(CheckOnce(path, child.first, child.second));
    MSP_ASSIGN_OR_RETURN(rule.children, ReadPairs(path, children, "child of the target: child of the golden run"));
    for (auto& [target, golden] : rule.children) golden = golden.substr(0, golden.find('('));
    out->layers.push_back(std::move(rule));
  }
  return OkStatus();
}

Status CheckSettings(const MappingSettings& s) {
  std::string first;
  const std::pair<bool, const char*> options[] = {
      {s.cell.has_value(), "-cm/--cell_mapping"}, {s.api.has_value(), "-am/--api_mapping"},
      {s.data.has_value(), "-dm/--data_mapping"}, {s.layer.has_value(), "-lm/--layer_mapping"},
      {!s.layer_template.empty(), "--template"},  {s.consistent_check, "--consistent_check"}};
  for (const auto& [given, name] : options) {
    if (!given) continue;
    if (&given == &options[1].first && s.cell) continue;  // modules and functions
    if (!first.empty()) return UsageError(Msg("{} and {} exclude each other: give one of them", first, name));
    first = name;
  }
  if (s.fuzzy && (s.data || s.layer || !s.layer_template.empty() || s.consistent_check)) {
    return UsageError(
        Msg("{} says which ops belong together, -fm/--fuzzy_match goes by order: give one of them", first));
  }
  if (s.data && s.data->empty()) return UsageError(Msg("-dm/--data_mapping needs its YAML file"));
  if (!s.consistent_check && !s.backend.empty()) {
    return UsageError(Msg("--backend says what trained the target of --consistent_check: give both or neither"));
  }
  if (s.consistent_check && s.backend != "fsdp" && s.backend != "megatron") {
    return UsageError(
        Msg("--consistent_check needs to know what trained the target: add --backend fsdp or --backend megatron"));
  }
  return OkStatus();
}

}  // namespace

StatusOr<Mapping> LoadMapping(const MappingSettings& settings) {
  MSP_RETURN_IF_ERROR(CheckSettings(settings));
  Mapping out;
  out.fuzzy = settings.fuzzy;
  out.cell = settings.cell.has_value();
  out.api = settings.api.has_value();
  out.data = settings.data.has_value();
  out.layer = settings.layer.has_value() || !settings.layer_template.empty();
  if (settings.consistent_check)
    out.fused = settings.backend == "fsdp" ? Mapping::Fused::kFsdp : Mapping::Fused::kMegatron;
  const auto pairs = [](const std::string& path, const std::string& what, Pairs* to) -> Status {
    MSP_ASSIGN_OR_RETURN(const YamlNode root, ReadYamlFile(path));
    MSP_ASSIGN_OR_RETURN(*to, ReadPairs(path, root, what));
    return OkStatus();
  };
  if (out.cell && !settings.cell->empty()) {
    MSP_RETURN_IF_ERROR(pairs(*settings.cell, "module of the target: module of the golden run", &out.cells));
  }
  if (out.data) MSP_RETURN_IF_ERROR(pairs(*settings.data, "item of the target: item of the golden run", &out.items));
  if (out.api && !settings.api->empty()) MSP_RETURN_IF_ERROR(ReadApis(*settings.api, &out));
  if (!settings.layer_template.empty()) {
    MSP_ASSIGN_OR_RETURN(const LayerTemplate* found, FindLayerTemplate(settings.layer_template));
    const std::string name = "template " + settings.layer_template;
    MSP_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(found->yaml, name));
    MSP_RETURN_IF_ERROR(ReadLayers(root, name, &out));
  } else if (out.layer && !settings.layer->empty()) {
    MSP_ASSIGN_OR_RETURN(const YamlNode root, ReadYamlFile(*settings.layer));
    MSP_RETURN_IF_ERROR(ReadLayers(root, *settings.layer, &out));
  }
  return out;
}

}  // namespace msprobe
