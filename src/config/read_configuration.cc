#include "config/read_configuration.h"

#include <algorithm>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "base/yaml.h"
#include "config/launch_command.h"
#include "config/log_settings.h"
#include "config/shell_script.h"
#include "json/parser.h"

namespace msprobe {
namespace {

constexpr size_t kMaxConfigJson = 16 << 20;

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

StatusOr<ConfigSource> ReadYamlSettings(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const YamlNode root, ReadYamlFile(path, {.aliases = true}));
  ConfigSource source;
  source.path = path;
  FlattenYaml(root, "", path, &source.settings);
  ResolveReferences(&source.settings);
  source.dialect = GuessDialect(source.settings);
  return source;
}

StatusOr<ConfigSource> ReadJsonSettings(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.text().size() > kMaxConfigJson) {
    return BadInput(Msg("{} has {} bytes, more than the {} MiB that are read of a configuration", path,
                        file.text().size(), kMaxConfigJson >> 20));
  }
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(file.text(), path, &doc));
  if (!doc.IsObject()) return BadInput(Msg("{} is not a JSON object: give a configuration", path));
  ConfigSource source;
  source.path = path;
  Flatten(ConfigValue::Of(static_cast<const JsonValue&>(doc)), path, 0, &source.settings);
  source.dialect = GuessDialect(source.settings);
  return source;
}

/// The file that an argument names, beside the script or where the command is run; "" if it is not here.
std::string NamedFile(const Setting& setting) {
  if (!setting.value.IsText()) return {};
  const std::string& name = setting.value.text;
  if (!EndsWith(name, ".yaml") && !EndsWith(name, ".yml") && !EndsWith(name, ".json")) return {};
  for (const std::string& path : {JoinPath(DirName(setting.file), name), name}) {
    if (IsRegularFile(path)) return path;
  }
  return {};
}

Status AddCommand(const LaunchCommand& command, const std::string& path, Configuration* out) {
  for (const Setting& setting : command.arguments) {
    const bool names_file = setting.key == "yaml_cfg" || setting.key == "config" || setting.key == "deepspeed" ||
                            setting.key == "deepspeed_config" || setting.key == "config_path";
    if (!names_file || !setting.value.IsText()) continue;
    const std::string named = NamedFile(setting);
    if (named.empty()) {
      out->notes.push_back(
          Msg("{}: {} is not here; what it sets is not known", setting.Origin(), OneLine(setting.value.text)));
      continue;
    }
    auto source = EndsWith(named, ".json") ? ReadJsonSettings(named) : ReadYamlSettings(named);
    if (!source.ok()) return source.status();
    if (setting.key == "yaml_cfg") source->dialect = ConfigDialect::kMegatron;
    out->sources.push_back(std::move(*source));
  }
  ConfigSource source;
  source.path = path;
  source.settings = command.arguments;
  source.dialect = GuessDialect(source.settings);
  if (source.dialect == ConfigDialect::kUnknown && Contains(command.program, "verl"))
    source.dialect = ConfigDialect::kVerl;
  if (source.dialect == ConfigDialect::kUnknown && Contains(command.program, "mindformer")) {
    source.dialect = ConfigDialect::kMindFormers;
  }
  if (source.dialect == ConfigDialect::kUnknown && Contains(command.program, "pretrain_"))
    source.dialect = ConfigDialect::kMegatron;
  ResolveReferences(&source.settings);
  out->sources.push_back(std::move(source));
  out->launcher.insert(out->launcher.end(), command.launcher.begin(), command.launcher.end());
  return OkStatus();
}

Status AddScript(const std::string& path, Configuration* out) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  MSP_ASSIGN_OR_RETURN(const ShellReading reading, ReadShell(file.text(), path));
  size_t found = 0;
  LaunchCommand last;
  for (const std::vector<ShellField>& words : reading.commands) {
    LaunchCommand command;
    if (!ReadLaunchCommand(words, &command)) continue;
    // A script that prepares data first starts the training with its longest command.
    if (found++ == 0 || command.arguments.size() >= last.arguments.size()) last = std::move(command);
  }
  out->notes.insert(out->notes.end(), reading.notes.begin(), reading.notes.end());
  out->environment.insert(out->environment.end(), reading.environment.begin(), reading.environment.end());
  if (found == 0) {
    out->notes.push_back(Msg("{}: no command of it starts a Python program; only its variables are read", path));
    return OkStatus();
  }
  if (found > 1) {
    out->notes.push_back(Msg("{}: several commands start Python; the one with the most arguments is read ({})", path,
                             OneLine(last.program)));
  }
  return AddCommand(last, path, out);
}

}  // namespace

Status AddFile(const std::string& path, Configuration* out) {
  if (IsDirectory(path)) {
    const std::string config = JoinPath(path, "config.json");
    if (!IsRegularFile(config)) {
      return BadInput(Msg("{} holds no config.json: give a file, or the directory of a model", path));
    }
    return AddFile(config, out);
  }
  if (EndsWith(path, ".sh") || EndsWith(path, ".bash")) return AddScript(path, out);
  if (EndsWith(path, ".yaml") || EndsWith(path, ".yml")) {
    MSP_ASSIGN_OR_RETURN(ConfigSource source, ReadYamlSettings(path));
    out->sources.push_back(std::move(source));
    return OkStatus();
  }
  if (EndsWith(path, ".json")) {
    MSP_ASSIGN_OR_RETURN(ConfigSource source, ReadJsonSettings(path));
    out->sources.push_back(std::move(source));
    return OkStatus();
  }
  if (EndsWith(path, ".log") || EndsWith(path, ".txt") || EndsWith(path, ".out")) {
    MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    MSP_ASSIGN_OR_RETURN(std::vector<ConfigSource> sources, ReadLogSettings(file.text(), path));
    for (ConfigSource& source : sources) out->sources.push_back(std::move(source));
    return OkStatus();
  }
  if (!PathExists(path)) return Missing(path, "check the path");
  return BadInput(Msg("{} has no known ending: give a script (.sh), .yaml, .json, or a log (.log, .txt, .out)", path));
}

StatusOr<Configuration> ReadConfiguration(const std::vector<std::string>& paths) {
  Configuration out;
  for (const std::string& path : paths) MSP_RETURN_IF_ERROR(AddFile(path, &out));
  return out;
}

}  // namespace msprobe
