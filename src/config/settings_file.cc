#include "config/settings_file.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "base/yaml.h"
#include "config/launch_command.h"
#include "config/toml_settings.h"
#include "json/parser.h"

namespace msprobe {
namespace {

constexpr size_t kMaxSettings = 16 << 20;
constexpr size_t kMostBases = 16;  // nested ones
constexpr size_t kMostNamed = 1'000;

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
  MSP_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, path, {.aliases = true, .types = true}));
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

namespace {

/// An item of the `defaults` of hydra: - /model@encoder: large.
struct HydraDefault {
  std::string group, package;        // "" of a file beside this one
  std::vector<std::string> options;  // names of files, without their ending
  bool self = false, overrides = false, optional = false, from_root = false;
};

bool TakeFront(std::string_view front, std::string_view* text) {
  if (!StartsWith(*text, front)) return false;
  text->remove_prefix(front.size());
  return true;
}

HydraDefault HydraDefaultOf(std::string_view key, const ConfigValue& value) {
  HydraDefault out;
  for (bool more = true; more;) {
    more = false;
    if (TakeFront("override ", &key)) more = out.overrides = true;
    if (TakeFront("optional ", &key)) more = out.optional = true;
  }
  out.from_root = TakeFront("/", &key);
  const size_t at = key.find('@');
  out.group = std::string(key.substr(0, at));
  if (at != std::string_view::npos) out.package = std::string(key.substr(at + 1));
  for (const ConfigValue& item : value.IsList() ? value.items : std::vector<ConfigValue>{value}) {
    if (!item.IsNull()) out.options.push_back(item.Shown());
  }
  return out;
}

HydraDefault HydraFileOf(std::string_view name) {
  HydraDefault out;
  out.self = name == "_self_";
  out.from_root = TakeFront("/", &name);
  if (const size_t slash = name.rfind('/'); out.from_root && slash != std::string_view::npos) {
    out.group = std::string(name.substr(0, slash));
    name.remove_prefix(slash + 1);
  }
  out.options.emplace_back(name);
  return out;
}

constexpr std::string_view kDefaultsKey = "defaults";

std::vector<HydraDefault> HydraDefaultsOf(const ConfigSource& source) {
  std::vector<HydraDefault> out;
  const std::string below = std::string(kDefaultsKey) + ".";
  for (const Setting& setting : source.settings) {
    if (setting.key == kDefaultsKey && setting.value.IsList()) {
      for (const ConfigValue& item : setting.value.items) {
        if (item.IsText()) out.push_back(HydraFileOf(item.text));
      }
    }
    std::string_view key = setting.key;
    if (!TakeFront(below, &key)) continue;
    size_t digits = 0;
    while (digits < key.size() && std::isdigit(static_cast<unsigned char>(key[digits]))) ++digits;
    if (digits == 0) continue;
    if (digits == key.size()) {
      if (setting.value.IsText()) out.push_back(HydraFileOf(setting.value.text));
    } else {
      out.push_back(HydraDefaultOf(key.substr(digits + 1), setting.value));
    }
  }
  const bool self = std::any_of(out.begin(), out.end(), [](const HydraDefault& one) { return one.self; });
  if (!out.empty() && !self) out.push_back(HydraFileOf("_self_"));  // what a file sets itself counts more
  return out;
}

/// "# @package _global_" of the first lines of a file; "" if it does not say.
StatusOr<std::string> PackageOf(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  constexpr std::string_view kSign = "@package ";
  std::string_view text = file.text();
  while (StartsWith(text, "#") || StartsWith(text, "\n")) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (const size_t at = line.find(kSign); at != std::string_view::npos)
      return std::string(Trimmed(line.substr(at + kSign.size())));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return std::string();
}

std::string Joined(std::string_view a, std::string_view b, char between) {
  return a.empty() ? std::string(b) : b.empty() ? std::string(a) : std::string(a) + between + std::string(b);
}

/// Files of settings with those that they begin with.
class BaseReader {
 public:
  BaseReader(std::vector<Setting>* overrides, Configuration* out) : overrides_(overrides), out_(out) {}

  StatusOr<ConfigSource> Read(const std::string& path) {
    root_ = std::string(DirName(path));
    MSP_ASSIGN_OR_RETURN(ConfigSource source, ReadOne(path, "", ""));
    if (composes_) MSP_RETURN_IF_ERROR(AddChosen(&source));
    if (!read_more_) return source;
    ResolveReferences(&source.settings);
    source.dialect = GuessDialect(source.settings);
    return source;
  }

 private:
  // NOLINTNEXTLINE(misc-no-recursion): kMostBases
  StatusOr<ConfigSource> ReadOne(const std::string& path, const std::string& group, const std::string& package) {
    MSP_ASSIGN_OR_RETURN(ConfigSource source, ReadSettingsFile(path));
    const std::vector<HydraDefault> defaults = HydraDefaultsOf(source);
    const std::vector<std::string> bases = BasesOf(source);
    if (defaults.empty() && bases.empty() && package.empty()) return source;
    above_.push_back(path);
    std::vector<Setting> all, own;
    for (Setting& setting : source.settings) {
      if (!defaults.empty() && (setting.key == kDefaultsKey || StartsWith(setting.key, "defaults."))) continue;
      if (!package.empty()) setting.key = package + "." + setting.key;
      own.push_back(std::move(setting));
    }
    for (const std::string& base : bases) MSP_RETURN_IF_ERROR(AddBelow(path, base, "", "", false, &all));
    for (const HydraDefault& one : defaults) {
      if (one.overrides && !one.options.empty()) {
        choices_.try_emplace(one.from_root ? one.group : Joined(group, one.group, '/'), one.options[0]);
      }
    }
    bool added = false;
    for (const HydraDefault& one : defaults) {
      composes_ = true;
      if (one.self) {
        for (const Setting& setting : own) all.push_back(setting);
        added = true;
      } else if (!one.overrides) {
        MSP_RETURN_IF_ERROR(AddDefault(path, one, group, package, &all));
      }
    }
    if (!added) std::move(own.begin(), own.end(), std::back_inserter(all));
    above_.pop_back();
    source.settings = std::move(all);
    return source;
  }

  // NOLINTNEXTLINE(misc-no-recursion): kMostBases
  Status AddDefault(const std::string& path, const HydraDefault& one, const std::string& group,
                    const std::string& package, std::vector<Setting>* all) {
    const std::string inside = one.from_root ? one.group : Joined(group, one.group, '/');
    if (StartsWith(inside, "hydra")) return OkStatus();  // of hydra itself
    std::vector<std::string> options = one.options;
    if (const Setting* told = one.group.empty() ? nullptr : Chosen(inside))
      options = {told->value.Shown()};
    else if (const auto chosen = choices_.find(inside); !one.group.empty() && chosen != choices_.end())
      options = {chosen->second};
    taken_.push_back(inside);
    for (const std::string& option : options) {
      std::string dots = one.from_root ? one.group : one.group;
      std::replace(dots.begin(), dots.end(), '/', '.');
      std::string below = one.from_root ? dots : Joined(package, dots, '.');
      if (!one.package.empty()) below = one.package == "_global_" ? "" : Joined(package, one.package, '.');
      const std::string name = IsSettingsFile(option) ? option : option + ".yaml";
      MSP_RETURN_IF_ERROR(AddBelow(path, JoinPath(JoinPath(root_, inside), name), inside, below, one.optional, all));
    }
    return OkStatus();
  }

  /// What a command adds or chooses that no file names: +experiment=long.
  Status AddChosen(ConfigSource* source) {
    for (size_t i = 0; overrides_ && i < overrides_->size(); ++i) {
      const Setting& told = (*overrides_)[i];
      if (!told.value.IsText() || std::find(taken_.begin(), taken_.end(), told.key) != taken_.end()) continue;
      const std::string file = JoinPath(JoinPath(root_, told.key), told.value.text + ".yaml");
      if (!IsRegularFile(file)) continue;
      std::string package = told.key;
      std::replace(package.begin(), package.end(), '/', '.');
      taken_.push_back(told.key);
      MSP_RETURN_IF_ERROR(AddBelow(source->path, file, told.key, package, false, &source->settings));
    }
    if (!overrides_) return OkStatus();
    std::erase_if(*overrides_, [&](const Setting& setting) {
      return setting.written.empty() && std::find(taken_.begin(), taken_.end(), setting.key) != taken_.end();
    });
    return OkStatus();
  }

  // NOLINTNEXTLINE(misc-no-recursion): kMostBases
  Status AddBelow(const std::string& path, const std::string& base, const std::string& group, std::string package,
                  bool optional, std::vector<Setting>* all) {
    const std::string beside = JoinPath(std::string(DirName(path)), base);
    std::string named = IsRegularFile(beside) ? beside : IsRegularFile(base) ? base : std::string();
    for (const std::string& given : out_->given) {
      if (named.empty() && BaseName(given) == BaseName(base) && IsRegularFile(given)) named = given;
    }
    const bool begun =
        std::any_of(above_.begin(), above_.end(), [&](const std::string& one) { return SameFile(one, named); });
    if (named.empty() || begun || above_.size() > kMostBases || out_->named.size() > kMostNamed) {
      if (optional) return OkStatus();
      out_->notes.push_back(Msg("{}: {} is not here; what it sets is not known", path, OneLine(base)));
      out_->Miss(OneLine(base));
      return OkStatus();
    }
    read_more_ = true;
    if (!group.empty()) {
      MSP_ASSIGN_OR_RETURN(const std::string told, PackageOf(named));
      if (told == "_global_")
        package.clear();
      else if (!told.empty() && told != "_group_")
        package = told;
    }
    MSP_ASSIGN_OR_RETURN(ConfigSource below, ReadOne(named, group, package));
    out_->named.push_back(named);
    std::move(below.settings.begin(), below.settings.end(), std::back_inserter(*all));
    return OkStatus();
  }

  const Setting* Chosen(std::string_view group) const {
    for (size_t i = 0; overrides_ && i < overrides_->size(); ++i) {
      if ((*overrides_)[i].key == group) return &(*overrides_)[i];
    }
    return nullptr;
  }

  /// `_base_: ../base.yaml`.
  static std::vector<std::string> BasesOf(const ConfigSource& source) {
    std::vector<std::string> out;
    const auto add = [&](const ConfigValue& value) {
      if (value.IsText() && IsSettingsFile(value.text)) out.push_back(value.text);
    };
    for (const Setting& setting : source.settings) {
      const bool base = setting.key == "_BASE_" || setting.key == "_base_" || setting.key == "__base__" ||
                        setting.key == "base_config" || setting.key == "inherit_from" || setting.key == "_base";
      if (base && setting.value.IsList()) std::for_each(setting.value.items.begin(), setting.value.items.end(), add);
      if (base) add(setting.value);
    }
    return out;
  }

  std::vector<Setting>* overrides_;
  Configuration* out_;
  std::string root_;
  std::vector<std::string> above_, taken_;      // files, groups
  std::map<std::string, std::string> choices_;  // by group
  bool composes_ = false, read_more_ = false;
};

}  // namespace

bool SameFile(const std::string& a, const std::string& b) {
  std::error_code failed;
  return a == b || std::filesystem::equivalent(a, b, failed);
}

StatusOr<ConfigSource> ReadWithBases(const std::string& path, std::vector<Setting>* overrides, Configuration* out) {
  return BaseReader(overrides, out).Read(path);
}

}  // namespace msprobe
