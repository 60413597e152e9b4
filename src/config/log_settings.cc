#include "config/log_settings.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/message.h"
#include "base/text.h"
#include "config/python_literal.h"

namespace msprobe {
namespace {

constexpr std::string_view kListBegin = " arguments ---", kListEnd = " end of arguments ---";
constexpr size_t kMaxPrinted = 16 << 20;  // of one configuration

int LineOf(std::string_view text, size_t at) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'));
}

/// True, False and what is written as a number; nan and inf are texts here.
ConfigValue ArgumentScalar(std::string_view text) {
  if (text == "True" || text == "False") return ConfigValue::Of(text == "True");
  const size_t digit = text.find_first_not_of("+-.");
  const bool number =
      digit != std::string_view::npos && digit < 3 && std::isdigit(static_cast<unsigned char>(text[digit]));
  return number ? PythonScalar(text) : ConfigValue::Of(text);
}

/// "  name ......... value"; whatever stands before the name is the log's.
bool ReadArgumentLine(std::string_view line, ConfigMember* out) {
  const size_t dots = line.find(" .");
  if (dots == std::string_view::npos) return false;
  size_t end = dots + 1;
  while (end < line.size() && line[end] == '.') ++end;
  if (end < line.size() && line[end] != ' ') return false;
  std::string_view name = Trimmed(line.substr(0, dots));
  if (const size_t space = name.find_last_of(" \t"); space != std::string_view::npos) name.remove_prefix(space + 1);
  if (name.empty()) return false;
  out->first = name;
  out->second = ArgumentScalar(Trimmed(line.substr(end)));  // None stays a text, as the tables of slime show it
  return true;
}

/// Without what colours a terminal.
std::string WithoutColours(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      while (i < text.size() && !std::isalpha(static_cast<unsigned char>(text[i]))) ++i;
      continue;
    }
    out += text[i];
  }
  return out;
}

/// A line that can be part of a printed dict.
bool LooksLikeDict(std::string_view line) {
  line = Trimmed(line);
  if (line.empty()) return false;
  if (Contains(line, "':") || Contains(line, "\":")) return true;
  const char first = line.front(), last = line.back();
  const bool begins = first == '\'' || first == '"' || first == '[' || first == ']' || first == '{' || first == '}' ||
                      first == '-' || std::isdigit(static_cast<unsigned char>(first)) || StartsWith(line, "None") ||
                      StartsWith(line, "True") || StartsWith(line, "False");
  return begins && (last == ',' || last == ']' || last == '}' || last == '\'' || last == '"');
}

/// The lines from `begin` on that have the prefix of the first, without it.
std::string LinesOfPrefix(std::string_view log, size_t begin, bool only_dict) {
  const size_t line_begin = log.rfind('\n', begin) == std::string_view::npos ? 0 : log.rfind('\n', begin) + 1;
  const std::string_view prefix = log.substr(line_begin, begin - line_begin);
  std::string out;
  size_t at = line_begin;
  while (at < log.size() && out.size() < kMaxPrinted) {
    const size_t end = std::min(log.find('\n', at), log.size());
    std::string_view line = log.substr(at, end - at);
    at = end + 1;
    if (prefix.empty()) {
      if (!only_dict || LooksLikeDict(line)) out.append(line).push_back('\n');
      continue;
    }
    // Several prints may share a line.
    for (size_t next = line.find(prefix); next != std::string_view::npos;) {
      line.remove_prefix(next + prefix.size());
      next = line.find(prefix);
      const std::string_view part = line.substr(0, next);
      if (!only_dict || LooksLikeDict(part)) out.append(part).push_back('\n');
    }
  }
  return out;
}

StatusOr<ConfigValue> DictAt(std::string_view log, size_t begin, const std::string& what) {
  size_t end = 0;
  auto whole = ParsePythonLiteral(LinesOfPrefix(log, begin, false), what, &end);
  if (whole.ok()) return whole;
  auto filtered = ParsePythonLiteral(LinesOfPrefix(log, begin, true), what, &end);
  return filtered.ok() ? std::move(filtered) : std::move(whole);
}

size_t LastDict(std::string_view log) {
  const size_t single = log.rfind("{'actor_rollout_ref':"), twofold = log.rfind("{\"actor_rollout_ref\":");
  if (single == std::string_view::npos) return twofold;
  if (twofold == std::string_view::npos) return single;
  return std::max(single, twofold);
}

Status CheckLog(std::string_view log, const std::string& path) {
  if (log.size() <= kMaxLogBytes) return OkStatus();
  return BadInput(
      Msg("{} has {} bytes, more than the {} MiB that are read of a log: give the part with the configuration", path,
          log.size(), kMaxLogBytes >> 20));
}

void AddSource(ConfigValue value, ConfigDialect dialect, const std::string& path, int line,
               std::vector<ConfigSource>* out) {
  ConfigSource source;
  source.path = path;
  Flatten(value, path, line, &source.settings);
  source.dialect = dialect == ConfigDialect::kUnknown ? GuessDialect(source.settings) : dialect;
  out->push_back(std::move(source));
}

/// "Parameter Group 0" and the lines "name: value" below it, for each group; the line before may name the optimizer.
void AddOptimizer(std::string_view log, const std::string& path, std::vector<ConfigSource>* out) {
  constexpr std::string_view kGroup = "Parameter Group ";
  size_t at = log.find(kGroup);
  if (at == std::string_view::npos) return;
  ConfigSource source;
  source.dialect = ConfigDialect::kTorchLog;
  source.path = path;
  int line = LineOf(log, at);
  const size_t before = log.rfind('(', at);
  if (before != std::string_view::npos && at - before < 8) {
    const size_t begin = log.find_last_of(" \n\t", before == 0 ? 0 : before - 2);
    const std::string_view name = Trimmed(log.substr(begin == std::string_view::npos ? 0 : begin,
                                                     before - (begin == std::string_view::npos ? 0 : begin)));
    if (!name.empty() && name.size() < 64) source.settings.push_back({"type", ConfigValue::Of(name), path, line});
  }
  int group = -1;
  while (at < log.size() && source.settings.size() < 10'000) {
    const size_t end = std::min(log.find('\n', at), log.size());
    std::string_view row = log.substr(at, end - at);
    at = end + 1;
    const size_t begins = row.find(kGroup);
    const size_t colon = row.find(": ");
    if (begins != std::string_view::npos) {
      ++group;
    } else if (colon != std::string_view::npos) {
      std::string_view name = Trimmed(row.substr(0, colon));
      if (const size_t space = name.find_last_of(" \t"); space != std::string_view::npos) name.remove_prefix(space + 1);
      size_t stop = 0;
      const std::string_view text = Trimmed(row.substr(colon + 2));
      auto value = ParsePythonLiteral(text, path, &stop);
      if (name.empty() || !value.ok()) break;
      source.settings.push_back(
          {"groups." + std::to_string(group) + "." + std::string(name), *std::move(value), path, line});
    } else if (!Trimmed(row).empty()) {
      break;
    }
    ++line;
  }
  out->push_back(std::move(source));
}

/// The whole number behind `words`.
std::optional<int64_t> NumberBehind(std::string_view log, std::string_view words) {
  const size_t at = log.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = log.substr(at + words.size(), 12);
  const size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const ConfigValue value = PythonScalar(rest.substr(0, end));
  return value.kind == ConfigValue::Kind::kInt ? std::optional(value.integer) : std::nullopt;
}

void AddWorldSize(std::string_view log, const std::string& path, std::vector<ConfigSource>* out) {
  constexpr std::string_view kWorld = "using world size: ";
  const auto world = NumberBehind(log, kWorld), replicas = NumberBehind(log, "data-parallel size: ");
  if (!world) return;
  ConfigSource source;
  source.dialect = ConfigDialect::kMegatron;
  source.path = path;
  const int line = LineOf(log, log.find(kWorld));
  source.settings.push_back({"world_size", ConfigValue::Of(*world), path, line});
  if (replicas) source.settings.push_back({"data_parallel_size", ConfigValue::Of(*replicas), path, line});
  out->push_back(std::move(source));
}

bool IsPackageName(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace

StatusOr<ConfigValue> ReadArgumentList(std::string_view log, const std::string& path) {
  MSP_RETURN_IF_ERROR(CheckLog(log, path));
  size_t begin = log.find(kListBegin);
  while (begin != std::string_view::npos && begin >= 7 && log.substr(begin - 7, 7) == " end of") {
    begin = log.find(kListBegin, begin + 1);
  }
  if (begin == std::string_view::npos) {
    return BadInput(
        Msg("{} holds no list of arguments (--- arguments ---): give the log of rank 0 from its beginning", path));
  }
  const size_t end = log.find(kListEnd, begin);
  if (end == std::string_view::npos) {
    return BadInput(Msg("{}: the list of arguments has no end (--- end of arguments ---): give the whole log", path));
  }
  ConfigValue out;
  out.kind = ConfigValue::Kind::kMap;
  for (const std::string_view line : Split(log.substr(begin, end - begin), '\n')) {
    ConfigMember member;
    if (!ReadArgumentLine(line, &member)) continue;
    const auto same = std::find_if(out.members.begin(), out.members.end(),
                                   [&](const ConfigMember& other) { return other.first == member.first; });
    if (same == out.members.end())
      out.members.push_back(std::move(member));
    else
      same->second = std::move(member.second);
    if (out.members.size() > 5'000)
      return BadInput(Msg("{}: the list of arguments is longer than any framework's", path));
  }
  if (out.members.empty())
    return BadInput(Msg("{}: the list of arguments is empty: give the log of another run", path));
  return out;
}

StatusOr<ConfigValue> ReadVerlConfig(std::string_view log, const std::string& path) {
  MSP_RETURN_IF_ERROR(CheckLog(log, path));
  const size_t begin = LastDict(log);
  if (begin == std::string_view::npos) {
    return BadInput(Msg(
        "{} holds no configuration of verl (a dict with actor_rollout_ref): give the log from its beginning", path));
  }
  const std::string what = path + ", line " + std::to_string(LineOf(log, begin));
  MSP_ASSIGN_OR_RETURN(ConfigValue out, DictAt(log, begin, what));
  return out;
}

StatusOr<std::vector<ConfigSource>> ReadLogSettings(std::string_view log_bytes, const std::string& path) {
  MSP_RETURN_IF_ERROR(CheckLog(log_bytes, path));
  const std::string plain = Contains(log_bytes, "\x1b[") ? WithoutColours(log_bytes) : std::string();
  const std::string_view log = plain.empty() ? log_bytes : plain;
  std::vector<ConfigSource> out;
  if (Contains(log, kListBegin)) {
    MSP_ASSIGN_OR_RETURN(ConfigValue list, ReadArgumentList(log, path));
    for (ConfigMember& member : list.members) {
      if (member.second.IsText() && member.second.text == "None") member.second = {};
    }
    AddSource(std::move(list), ConfigDialect::kMegatron, path, LineOf(log, log.find(kListBegin)), &out);
  }
  if (const size_t dict = LastDict(log); dict != std::string_view::npos) {
    MSP_ASSIGN_OR_RETURN(ConfigValue config, ReadVerlConfig(log, path));
    AddSource(std::move(config), ConfigDialect::kVerl, path, LineOf(log, dict), &out);
  }
  for (const std::string_view name : {"TrainingArguments(", "Namespace("}) {
    const size_t at = log.find(name);
    if (at == std::string_view::npos) continue;
    size_t end = 0;
    MSP_ASSIGN_OR_RETURN(ConfigValue arguments,
                         ParsePythonArguments(log.substr(at + name.size(), kMaxPrinted),
                                              path + ", line " + std::to_string(LineOf(log, at)), &end));
    AddSource(std::move(arguments), name[0] == 'T' ? ConfigDialect::kHfTrainer : ConfigDialect::kUnknown, path,
              LineOf(log, at), &out);
  }
  if (const size_t at = log.find("json = {"); at != std::string_view::npos) {
    MSP_ASSIGN_OR_RETURN(ConfigValue config, DictAt(log, at + 7, path + ", line " + std::to_string(LineOf(log, at))));
    AddSource(std::move(config), ConfigDialect::kDeepSpeed, path, LineOf(log, at), &out);
  }
  AddOptimizer(log, path, &out);
  AddWorldSize(log, path, &out);
  if (out.empty()) {
    return BadInput(
        Msg("{} holds no configuration that is known (arguments of Megatron, a dict of verl, TrainingArguments): give "
            "the log of rank 0 from its beginning",
            path));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> ReadPackageList(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  size_t others = 0;
  bool table = false;  // pip list: "Package Version", a rule, and columns
  for (std::string_view line : Split(text, '\n')) {
    line = Trimmed(line);
    if (line.empty() || StartsWith(line, "#") || StartsWith(line, "-")) continue;
    if (StartsWith(line, "Package ") && Contains(line, "Version")) {
      table = true;
      continue;
    }
    const size_t equals = line.find("=="), blank = line.find(' ');
    const size_t end = table ? blank : equals;
    const std::string_view name = line.substr(0, end);
    const bool found = end != std::string_view::npos && IsPackageName(name);
    if (!found) {
      others += !Contains(line, " @ ");  // installed from a file or a repository: no version
      continue;
    }
    std::string_view version = Trimmed(line.substr(table ? end : end + 2));
    version = version.substr(0, version.find_first_of(" ;"));
    if (!version.empty()) out.emplace_back(name, version);
  }
  if (others > out.size()) out.clear();
  return out;
}

}  // namespace msprobe
