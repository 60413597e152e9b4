#include "config/python_sources.h"

#include <algorithm>
#include <cctype>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "config/python_program.h"

namespace msprobe {
namespace {

constexpr size_t kMostFiles = 64;             // of one program with what it begins with
constexpr size_t kMaxProgramBytes = 4 << 20;  // of one of them

/// The part of a key before the number of an item; "" if it has none.
std::string_view ListOfKey(std::string_view key) {
  size_t begin = 0;
  for (const std::string_view part : Split(key, '.')) {
    if (IsDigits(part)) return key.substr(0, begin == 0 ? 0 : begin - 1);
    begin += part.size() + 1;
  }
  return {};
}

void EraseBelow(std::string_view section, std::vector<Setting>* settings) {
  std::erase_if(*settings, [&](const Setting& setting) {
    const std::string_view key = setting.key;
    return StartsWith(key, section) && (key.size() == section.size() || key[section.size()] == '.');
  });
}

/// What a file sets over those that it begins with: dicts are merged, lists and what says `_delete_` replaced.
void Merge(std::vector<Setting> own, std::vector<Setting>* out) {
  constexpr std::string_view kDelete = "._delete_";
  std::vector<std::string> replaced;
  for (const Setting& setting : own) {
    const std::string_view key = setting.key;
    if (EndsWith(key, kDelete)) replaced.emplace_back(key.substr(0, key.size() - kDelete.size()));
    if (const std::string_view list = ListOfKey(key); !list.empty()) replaced.emplace_back(list);
  }
  for (const std::string& section : replaced) EraseBelow(section, out);
  for (Setting& setting : own) {
    if (!EndsWith(setting.key, kDelete)) out->push_back(std::move(setting));
  }
}

struct Gathered {
  std::vector<Setting> settings;
  PythonProgram program;
};

/// `read`: the files so far.
Status Gather(const std::string& path, const std::vector<Setting>& given, std::vector<std::string>* read, Gathered* out,
              Configuration* notes) {  // NOLINT(misc-no-recursion): kMostFiles
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.text().size() > kMaxProgramBytes) {
    return BadInput(Msg("{} has {} bytes, more than the {} MiB that are read of a configuration", path,
                        file.text().size(), kMaxProgramBytes >> 20));
  }
  read->push_back(path);
  MSP_ASSIGN_OR_RETURN(PythonProgram program, ReadPythonProgram(file.text(), path, given));
  for (const std::string& base : program.bases) {
    const std::string named = JoinPath(std::string(DirName(path)), base);
    const bool again = std::find(read->begin(), read->end(), named) != read->end();
    if (again || read->size() >= kMostFiles) {
      notes->notes.push_back(
          Msg("{}: {} is not read: it was read before, or too many files were", path, OneLine(base)));
      continue;
    }
    if (!IsRegularFile(named)) {
      notes->notes.push_back(Msg("{}: {} is not here; what it sets is not known", path, OneLine(base)));
      continue;
    }
    Gathered below;
    MSP_RETURN_IF_ERROR(Gather(named, given, read, &below, notes));
    for (Setting& setting : below.settings) out->settings.push_back(std::move(setting));
  }
  Merge(std::move(program.settings), &out->settings);
  program.settings.clear();
  out->program = std::move(program);
  return OkStatus();
}

}  // namespace

Status AddPythonFile(const std::string& path, ConfigDialect dialect, std::vector<Setting>* given, Configuration* out) {
  Gathered read;
  std::vector<std::string> files;
  MSP_RETURN_IF_ERROR(Gather(path, *given, &files, &read, out));
  ConfigSource source;
  source.path = path;
  source.settings = std::move(read.settings);
  source.dialect = Refined(GuessDialect(source.settings), dialect);
  if (!source.settings.empty()) out->sources.push_back(std::move(source));
  for (ConfigSource& call : read.program.calls) out->sources.push_back(std::move(call));
  out->environment.insert(out->environment.end(), read.program.environment.begin(), read.program.environment.end());
  NameByOptions(read.program, given);
  return OkStatus();
}

}  // namespace msprobe
