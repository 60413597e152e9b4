#include "config/embedded_scripts.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace msprobe {
namespace {

std::string_view LastPart(std::string_view key) { return key.substr(key.rfind('.') + 1); }
std::string_view ParentOf(std::string_view key) {
  const size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
}

bool IsOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool IsName(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// Whether `section` is the parent of a key or one above it.
bool Encloses(std::string_view section, std::string_view parent) {
  return section.empty() || section == parent || (StartsWith(parent, section) && parent[section.size()] == '.');
}

struct Part {
  int line = 0;
  std::string parent;
  std::vector<std::string> command, args;  // words; of one text its only one
  bool text = false;
};

/// As it is written in most files.
std::string TextOf(const ConfigValue& value) {
  if (value.kind != ConfigValue::Kind::kBool) return value.Shown();
  return value.AsBool().value_or(false) ? "true" : "false";
}

std::vector<std::string> WordsOf(const ConfigValue& value) {
  std::vector<std::string> out;
  if (!value.IsList()) return {value.Shown()};
  for (const ConfigValue& item : value.items) out.push_back(item.Shown());
  return out;
}

/// The script of one command: of "bash -c SCRIPT" the script.
std::string ScriptOf(const Part& part) {
  std::vector<std::string> words = part.command;
  words.insert(words.end(), part.args.begin(), part.args.end());
  if (words.size() == 1) return words[0];
  for (size_t i = 0; i + 1 < words.size() && i < 4; ++i) {
    if (StartsWith(words[i], "-") && EndsWith(words[i], "c") && !StartsWith(words[i], "--")) return words[i + 1];
  }
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + Quoted(word);
  return out;
}

/// NAME=VALUE of the sections of the environment that enclose a command.
std::vector<std::pair<std::string, std::string>> VariablesOf(const ConfigSource& source, std::string_view parent) {
  std::vector<std::pair<std::string, std::string>> out;
  std::map<std::string, std::string> names;
  for (const Setting& setting : source.settings) {
    const std::string_view last = LastPart(setting.key), section = ParentOf(setting.key);
    const auto is_environment = [](std::string_view name) {
      return IsOneOf(name, {"env", "envs", "environment", "env_vars", "environment_variables", "envVars"});
    };
    if (is_environment(last) && setting.value.IsList() && Encloses(section, parent)) {  // "A=B"
      for (const std::string& word : WordsOf(setting.value)) {
        const size_t equals = word.find('=');
        if (equals != std::string::npos) out.emplace_back(word.substr(0, equals), word.substr(equals + 1));
      }
    } else if (is_environment(LastPart(section)) && Encloses(ParentOf(section), parent)) {  // A: B
      out.emplace_back(last, TextOf(setting.value));
    } else if (is_environment(LastPart(ParentOf(section))) && Encloses(ParentOf(ParentOf(section)), parent)) {
      if (last == "name") names[std::string(section)] = setting.value.Shown();  // of Kubernetes
      if (last == "value") out.emplace_back(names[std::string(section)], TextOf(setting.value));
    }
  }
  return out;
}

/// What SkyPilot sets: "accelerators: H100:8".
std::string SkyPilotVariables(const ConfigSource& source) {
  std::string out;
  const Setting *cards = source.Find("resources.accelerators"), *nodes = source.Find("num_nodes");
  if (!cards) return out;
  const std::string text = cards->value.Shown();
  const size_t colon = text.rfind(':');
  out += "SKYPILOT_NUM_GPUS_PER_NODE=" + (colon == std::string::npos ? "1" : text.substr(colon + 1)) + "; ";
  out += "SKYPILOT_NUM_NODES=" + (nodes ? nodes->value.Shown() : std::string("1")) + "; ";
  return out;
}

}  // namespace

std::string EmbeddedScript(const ConfigSource& source) {
  std::vector<Part> parts;
  for (const Setting& setting : source.settings) {
    const std::string_view last = LastPart(setting.key);
    const bool command = IsOneOf(last, {"command", "cmd", "entrypoint"});
    const bool text = IsOneOf(last, {"run", "script", "commands"});
    if ((!command && !text && last != "args") || !(setting.value.IsText() || setting.value.IsList())) continue;
    const std::string parent(ParentOf(setting.key));
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.parent == parent && !p.text; });
    if (text || part == parts.end()) part = parts.insert(parts.end(), Part{setting.line, parent, {}, {}, text});
    std::vector<std::string> words = WordsOf(setting.value);
    if (text && setting.value.IsList()) {  // a command on each line
      std::string lines;
      for (const std::string& word : words) lines += word + "\n";
      words = {lines};
    }
    (last == "args" ? part->args : part->command) = std::move(words);
  }
  if (parts.empty()) return {};
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.line < b.line; });
  std::string out = SkyPilotVariables(source);
  for (const Part& part : parts) {
    for (const auto& [name, value] : VariablesOf(source, part.parent)) {
      if (IsName(name)) out += "export " + name + "=" + Quoted(value) + "; ";
    }
  }
  int line = 1 + static_cast<int>(std::count(out.begin(), out.end(), '\n'));
  for (const Part& part : parts) {
    const std::string script = ScriptOf(part);
    const bool block = script.find('\n') != std::string::npos;  // it begins below its key
    do {
      out += '\n';
      ++line;
    } while (line < part.line + (block ? 1 : 0));
    out += script;
    line += static_cast<int>(std::count(script.begin(), script.end(), '\n'));
  }
  return out + "\n";
}

}  // namespace msprobe
