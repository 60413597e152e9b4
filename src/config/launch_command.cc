#include "config/launch_command.h"

#include <algorithm>
#include <cctype>

#include "base/file.h"
#include "base/text.h"
#include "config/shell_lexer.h"
#include "config/stack/stacks.h"
#include "json/parser.h"

namespace msprobe {
namespace {

bool IsPython(std::string_view word) {
  word = BaseName(word);
  return StartsWith(word, "python") &&
         std::all_of(word.begin() + 6, word.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

bool IsLauncher(std::string_view word) {
  word = BaseName(word);
  return word == "torchrun" || word == "msrun" || word == "deepspeed" || word == "accelerate" || word == "colossalai" ||
         word == "composer" || word == "mpirun" || word == "horovodrun";
}

/// -1, -1e-5 and -.5 are values, -x and --x are not.
bool IsOption(std::string_view word) {
  if (!StartsWith(word, "-") || word.size() < 2) return false;
  const char c = word[1];
  return !(std::isdigit(static_cast<unsigned char>(c)) || c == '.');
}

std::string KeyOf(std::string_view name) {
  while (StartsWith(name, "-")) name.remove_prefix(1);
  std::string out(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

std::string WrittenName(std::string_view name) {
  while (StartsWith(name, "-")) name.remove_prefix(1);
  return std::string(name);
}

/// The words of a text, of several commands those of the one that starts a program.
std::vector<ShellField> WordsOfText(const ShellField& text) {
  const auto tokens = ShellTokens(text.text, text.file, text.line);
  if (!tokens.ok()) return {text};
  std::vector<ShellField> out, command;
  const auto starts = [](const ShellField& word) {
    return IsPython(word.text) || IsLauncher(word.text) || EndsWith(word.text, ".py") ||
           DialectOfCommand(word.text) != ConfigDialect::kUnknown;
  };
  const auto take = [&] {
    if (out.empty() || std::any_of(command.begin(), command.end(), starts)) out = command;
    command.clear();
  };
  for (const ShellToken& token : *tokens) {
    std::string word(token.text);
    std::erase_if(word, [](char c) { return c == '"' || c == '\''; });
    if (token.kind == ShellToken::Kind::kWord) {
      command.push_back({word, text.file, token.line});
    } else {
      take();
    }
  }
  take();
  return out;
}

/// A script that gets a whole command as one argument: its words as arguments of their own.
std::vector<ShellField> Unpacked(const std::vector<ShellField>& words) {
  std::vector<ShellField> out;
  for (size_t i = 0; i < words.size(); ++i) {
    const ShellField& word = words[i];
    const size_t space = word.text.find(' ');
    if (IsShellText(words, i)) {
      const std::vector<ShellField> inner = WordsOfText(word);
      out.insert(out.end(), inner.begin(), inner.end());
      continue;
    }
    if (space == std::string::npos || !EndsWith(std::string_view(word.text).substr(0, space), ".py")) {
      out.push_back(word);
      continue;
    }
    const std::vector<ShellField> inner = WordsOfText(word);
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

/// name=value, +name=value and ~name of hydra.
bool ReadOverride(const ShellField& word, std::vector<Setting>* out) {
  std::string_view text = word.text;
  while (StartsWith(text, "+")) text.remove_prefix(1);
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  const std::string_view key = text.substr(0, equals);
  if (!std::all_of(key.begin(), key.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/';
      })) {
    return false;
  }
  out->push_back({std::string(key), PythonScalar(text.substr(equals + 1)), word.file, word.line});
  return true;
}

/// An option as the stacks read it: one whose value is a JSON object has its members, as a file would.
void AddOption(Setting setting, std::vector<Setting>* out) {
  const std::string& text = setting.value.text;
  JsonDoc doc;
  const bool object = setting.value.IsText() && StartsWith(text, "{") && EndsWith(text, "}");
  if (!object || !ParseJson(text, setting.key, &doc).ok() || !doc.IsObject()) {
    out->push_back(std::move(setting));
    return;
  }
  ConfigValue option, value = ConfigValue::Of(static_cast<const JsonValue&>(doc));
  if (value.members.empty()) return out->push_back(std::move(setting));
  option.kind = ConfigValue::Kind::kMap;
  option.members.push_back({setting.key, std::move(value)});
  Flatten(option, setting.file, setting.line, out);
}

/// Options whose values are settings: --cfg-options a.b=1 c=2, --opts A.B 1 C 2.
bool IsListOfSettings(std::string_view key) {
  return key == "cfg_options" || key == "opts" || key == "options" || key == "override" || key == "overrides" ||
         key == "set";
}

bool AddListed(const std::vector<ShellField>& words, size_t at, size_t* next, std::vector<Setting>* out) {
  size_t end = at;
  while (end < words.size() && !IsOption(words[end].text)) ++end;
  if (end == at) return false;
  const bool pairs = !Contains(words[at].text, "=");
  if (pairs && (end - at) % 2 != 0) return false;
  for (size_t i = at; i < end; i += pairs ? 2 : 1) {
    if (pairs) {
      out->push_back({words[i].text, PythonScalar(words[i + 1].text), words[i].file, words[i].line});
    } else {
      ReadOverride(words[i], out);
    }
  }
  *next = end;
  return true;
}

bool IsUpperKey(std::string_view word) {
  return !word.empty() && std::isupper(static_cast<unsigned char>(word[0])) &&
         std::all_of(word.begin(), word.end(), [](char c) {
           return std::isupper(static_cast<unsigned char>(c)) || std::isdigit(static_cast<unsigned char>(c)) ||
                  c == '_' || c == '.';
         });
}

/// A.B_C of yacs, which a value follows; a file has small letters.
bool IsYacsKey(std::string_view word) { return Contains(word, ".") && IsUpperKey(word); }

/// KEY VALUE pairs behind all options, as programs with a remainder of arguments take them; true if these are some.
bool ReadPairs(const std::vector<ShellField>& words, size_t at, std::vector<Setting>* out) {
  bool begins = at + 1 < words.size(), nested = false;  // A.B among them
  for (size_t i = at; i < words.size(); i += 2) {
    begins = begins && IsUpperKey(words[i].text);
    nested = nested || IsYacsKey(words[i].text);
  }
  const auto option = [](const ShellField& word) { return IsOption(word.text); };
  if (!begins || !nested || (words.size() - at) % 2 != 0 ||
      std::any_of(words.begin() + static_cast<int64_t>(at), words.end(), option)) {
    return false;
  }
  for (size_t i = at; i + 1 < words.size(); i += 2) {
    out->push_back({words[i].text, PythonScalar(words[i + 1].text), words[i + 1].file, words[i + 1].line});
  }
  return true;
}

/// Options from `at` on; stops before the program if `launcher`.
size_t ReadOptions(const std::vector<ShellField>& words, size_t at, bool launcher, std::vector<Setting>* out,
                   std::vector<ShellField>* files = nullptr) {
  while (at < words.size()) {
    const ShellField& word = words[at];
    if (!launcher && ReadPairs(words, at, out)) return words.size();
    if (!IsOption(word.text)) {
      if (launcher && (EndsWith(word.text, ".py") || IsPython(word.text))) return at;
      const bool file = IsSettingsFile(word.text) || EndsWith(word.text, ".py");
      if (!launcher && !ReadOverride(word, out) && files && file) files->push_back(word);
      ++at;
      continue;
    }
    if (launcher && (word.text == "-m" || word.text == "--module")) return at;
    const size_t equals = word.text.find('=');
    if (equals != std::string::npos) {
      const std::string_view text = word.text;
      AddOption({KeyOf(text.substr(0, equals)), ConfigValue::Of(text.substr(equals + 1)), word.file, word.line,
                 WrittenName(text.substr(0, equals))},
                out);
      ++at;
      continue;
    }
    std::vector<ConfigValue> values;
    size_t next = at + 1;
    while (next < words.size() && !IsOption(words[next].text)) {
      if (launcher && (!values.empty() || EndsWith(words[next].text, ".py"))) break;
      if (!values.empty() && words[next].text.find('=') != std::string::npos) break;
      if (!values.empty() && IsYacsKey(words[next].text)) break;
      if (values.size() == 1 && IsSettingsFile(values[0].text) && IsUpperKey(words[next].text)) break;
      values.push_back(ConfigValue::Of(words[next++].text));
    }
    Setting setting{KeyOf(word.text), ConfigValue::Of(true), word.file, word.line, WrittenName(word.text)};
    if (values.size() == 1) {
      setting.value = values[0];
    } else if (values.size() > 1) {
      setting.value = {};
      setting.value.kind = ConfigValue::Kind::kList;
      setting.value.items = std::move(values);
    }
    // The place of the value, which may be that of a variable, says more than that of the option.
    if (at + 1 < next && words[at + 1].line > 0) {
      setting.file = words[at + 1].file;
      setting.line = words[at + 1].line;
    }
    if (IsListOfSettings(setting.key) && AddListed(words, at + 1, &next, out)) {
      at = next;
      continue;
    }
    AddOption(std::move(setting), out);
    at = next;
  }
  return at;
}

/// Options of a launcher that the command of a stack takes among its own.
void MoveLauncherOptions(LaunchCommand* out) {
  const auto of_launcher = [](const Setting& s) {
    return s.key == "nproc_per_node" || s.key == "nnodes" || s.key == "num_processes" || s.key == "num_machines";
  };
  for (const Setting& setting : out->arguments) {
    if (!of_launcher(setting)) continue;
    out->launcher.push_back(setting);
    // The name of a recipe may follow: "tune run --nproc_per_node 8 full_finetune".
    if (setting.value.IsList() && !setting.value.items.empty()) out->launcher.back().value = setting.value.items[0];
  }
  std::erase_if(out->arguments, of_launcher);
}

}  // namespace

bool IsShellText(const std::vector<ShellField>& words, size_t at) {
  if (at < 2) return false;
  const std::string_view option = words[at - 1].text, shell = BaseName(words[at - 2].text);
  return StartsWith(option, "-") && EndsWith(option, "c") && !StartsWith(option, "--") &&
         (shell == "bash" || shell == "sh" || shell == "zsh");
}

bool IsSettingsFile(std::string_view name) {
  return EndsWith(name, ".yaml") || EndsWith(name, ".yml") || EndsWith(name, ".json") || EndsWith(name, ".toml");
}

bool ReadConsoleCommand(const std::vector<ShellField>& words, LaunchCommand* out) {
  constexpr size_t kFewest = 2;
  const auto option = [](const ShellField& word) { return StartsWith(word.text, "--"); };
  if (words.empty() || std::count_if(words.begin(), words.end(), option) < static_cast<int64_t>(kFewest)) return false;
  out->program = words[0].text;
  ReadOptions(words, 1, false, &out->arguments, &out->files);
  return true;
}

bool ReadLaunchCommand(const std::vector<ShellField>& packed, LaunchCommand* out) {
  const std::vector<ShellField> words = Unpacked(packed);
  size_t at = 0;
  const auto starts = [&](const ShellField& word) {
    return IsPython(word.text) || IsLauncher(word.text) || EndsWith(word.text, ".py") ||
           DialectOfCommand(word.text) != ConfigDialect::kUnknown;
  };
  while (at < words.size() && !starts(words[at])) ++at;
  if (at == words.size()) return false;
  // Behind "echo" or "grep" it is a text.
  const std::string_view first = BaseName(words[0].text);
  for (const std::string_view name :
       {"echo", "printf", "grep", "pkill", "kill", "cp", "rm", "ls", "cat", "tee", "which"}) {
    if (first == name) return false;
  }
  const bool alone = at == 0 || first == "nohup" || first == "exec" || first == "env" || first == "time";
  out->by_slurm = first == "srun";
  const ShellField begins = words[at];
  bool module_next = false;
  while (at < words.size()) {
    const std::string& word = words[at].text;
    if (EndsWith(word, ".py")) {
      out->program = word;
      ++at;
      break;
    }
    if (word == "-m" || word == "--module") {
      module_next = true;
      ++at;
      continue;
    }
    if (module_next) {
      module_next = false;
      ++at;
      if (Contains(word, "distributed.launch") || Contains(word, "distributed.run") || Contains(word, "torchrun")) {
        at = ReadOptions(words, at, true, &out->launcher);
        continue;
      }
      out->program = word;
      break;
    }
    if (const ConfigDialect dialect = DialectOfCommand(word);
        dialect != ConfigDialect::kUnknown && at + 1 < words.size()) {
      // What it is to do, if that is a word of its own: "tune run", "fairseq-hydra-train --config-dir conf".
      const bool bare = IsOption(words[at + 1].text);
      out->program = std::string(BaseName(word)) + (bare ? "" : " " + words[at + 1].text);
      out->dialect = dialect;
      at += bare ? 1 : 2;
      break;
    }
    if (IsLauncher(word)) {
      at = ReadOptions(words, at + 1, true, &out->launcher);
      continue;
    }
    ++at;
  }
  if (out->program.empty()) return false;
  if (alone && out->launcher.empty() && IsPython(begins.text)) {
    out->launcher.push_back({"alone", ConfigValue::Of(true), begins.file, begins.line});
  }
  ReadOptions(words, at, false, &out->arguments, &out->files);
  if (out->dialect != ConfigDialect::kUnknown)
    MoveLauncherOptions(out);
  else
    out->dialect = DialectOfProgram(out->program);
  return true;
}

}  // namespace msprobe
