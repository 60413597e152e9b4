#include "config/settings_file.h"

#include <algorithm>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "base/yaml.h"
#include "config/toml_settings.h"
#include "json/parser.h"

namespace msprobe {
namespace {

constexpr size_t kMaxSettings = 16 << 20;

void FlattenYaml(const YamlNode& node, const std::string& prefix,  // NOLINT(misc-no-recursion): kMaxYamlDepth
                 const std::string& file, std::vector<Setting>* out) {
  const auto plain = [](const YamlNode& value) { return !value.IsMap(); };
  if (node.IsMap()) {
    for (const YamlMember& member : node.members) {
      FlattenYaml(member.second, prefix.empty() ? member.first : prefix + "." + member.first, file, out);
    }
  } else if (node.IsList() && std::all_of(node.items.begin(), node.items.end(), plain)) {
    Setting setting{prefix, {}, file, node.line};
    setting.value.kind = ConfigValue::Kind::kList;
    for (const YamlNode& item : node.items) {
      if (item.IsList()) {
        std::vector<Setting> inner;
        FlattenYaml(item, "x", file, &inner);
        setting.value.items.push_back(inner.empty() ? ConfigValue() : inner[0].value);
      } else {
        setting.value.items.push_back(item.IsNull() ? ConfigValue() : YamlScalar(item.text));
      }
    }
    out->push_back(std::move(setting));
  } else if (node.IsList()) {
    for (size_t i = 0; i < node.items.size(); ++i) {
      FlattenYaml(node.items[i], prefix + "." + std::to_string(i), file, out);
    }
  } else if (!prefix.empty()) {
    out->push_back({prefix, node.IsNull() ? ConfigValue() : YamlScalar(node.text), file, node.line});
  }
}

/// The config.yaml of a run of wandb has a "value" below each name.
void UnwrapWandb(std::vector<Setting>* settings) {
  constexpr std::string_view kValue = ".value";
  const auto of_wandb = [](const Setting& s) { return s.key == "wandb_version" || StartsWith(s.key, "_wandb."); };
  if (std::none_of(settings->begin(), settings->end(), of_wandb)) return;
  std::erase_if(*settings, of_wandb);
  for (Setting& setting : *settings) {
    const size_t at = setting.key.find('.');
    if (at != std::string::npos && StartsWith(std::string_view(setting.key).substr(at), kValue)) {
      setting.key.erase(at, kValue.size());
    }
  }
}

StatusOr<ConfigSource> ReadYamlSettings(std::string_view text, const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, path, {.aliases = true}));
  ConfigSource source;
  source.path = path;
  FlattenYaml(root, "", path, &source.settings);
  UnwrapWandb(&source.settings);
  ResolveReferences(&source.settings);
  source.dialect = GuessDialect(source.settings);
  return source;
}

/// JSON without comments and without commas before closing brackets, as many a configuration has them.
std::string PlainJson(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      out += c;
      if (c == '\\' && at + 1 < text.size()) out += text[++at];
      if (c == '"') quoted = false;
      continue;
    }
    const std::string_view here = text.substr(at, 2);
    if (here == "//") {
      while (at + 1 < text.size() && text[at + 1] != '\n') ++at;
    } else if (here == "/*") {
      const size_t end = text.find("*/", at + 2);
      for (const char lost : text.substr(at, end - at)) {
        if (lost == '\n') out += '\n';
      }
      at = end == std::string_view::npos ? text.size() : end + 1;
    } else {
      if (c == ']' || c == '}') {
        const size_t last = out.find_last_not_of(" \t\r\n");
        if (last != std::string::npos && out[last] == ',') out[last] = ' ';
      }
      quoted = c == '"';
      out += c;
    }
  }
  return out;
}

StatusOr<ConfigSource> ReadJsonSettings(std::string_view text, const std::string& path) {
  JsonDoc doc;
  std::string plain;
  Status read = ParseJson(text, path, &doc);
  if (!read.ok()) {
    plain = PlainJson(text);
    if (ParseJson(plain, path, &doc).ok()) read = OkStatus();
  }
  MSP_RETURN_IF_ERROR(read);
  if (!doc.IsObject()) return BadInput(Msg("{} is not a JSON object: give a configuration", path));
  ConfigSource source;
  source.path = path;
  Flatten(ConfigValue::Of(static_cast<const JsonValue&>(doc)), path, 0, &source.settings);
  source.dialect = GuessDialect(source.settings);
  return source;
}

StatusOr<ConfigSource> ReadTomlFile(std::string_view text, const std::string& path) {
  ConfigSource source;
  source.path = path;
  MSP_ASSIGN_OR_RETURN(source.settings, ReadTomlSettings(text, path));
  source.dialect = GuessDialect(source.settings);
  return source;
}

}  // namespace

StatusOr<ConfigSource> ReadSettingsText(std::string_view text, const std::string& path) {
  if (text.size() > kMaxSettings) {
    return BadInput(Msg("{} has {} bytes, more than the {} MiB that are read of a configuration", path, text.size(),
                        kMaxSettings >> 20));
  }
  return EndsWith(path, ".json")   ? ReadJsonSettings(text, path)
         : EndsWith(path, ".toml") ? ReadTomlFile(text, path)
                                   : ReadYamlSettings(text, path);
}

StatusOr<ConfigSource> ReadSettingsFile(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ReadSettingsText(file.text(), path);
}

}  // namespace msprobe
