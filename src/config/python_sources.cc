#include "config/python_sources.h"

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "config/launch_command.h"
#include "config/python_program.h"
#include "config/settings_file.h"

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

/// Files of settings that a program reads: what they set is a source of its own, too, unless a command names them.
class ProgramFiles {
 public:
  ProgramFiles(const std::string& path, std::vector<Setting>* given, Configuration* out)
      : folder_(DirName(path)), given_(given), out_(out) {}

  PythonFiles Readers() {
    return {[this](const std::string& name) { return Load(name); },
            [this](const std::string& folder, const std::string& name) { return Compose(folder, name); }};
  }
  std::vector<ConfigSource> Take() { return std::move(sources_); }
  const Status& failed() const { return failed_; }

 private:
  ConfigValue Load(const std::string& name) {
    if (const auto known = loaded_.find(name); known != loaded_.end()) return known->second;
    ConfigValue& value = loaded_[name];
    const std::string beside = JoinPath(folder_, name);
    const std::string path = IsRegularFile(beside) ? beside : IsRegularFile(name) ? name : std::string();
    if (path.empty() || !IsSettingsFile(path)) {
      if (IsSettingsFile(name)) {
        out_->notes.push_back(Msg("{}: {} is not here; what it sets is not known", folder_, OneLine(name)));
        out_->Miss(OneLine(name));
      }
      return value;
    }
    const bool told = std::any_of(given_->begin(), given_->end(), [&](const Setting& setting) {
      return setting.value.IsText() && BaseName(setting.value.text) == BaseName(name);
    });
    return value = Read(path, !told);
  }

  ConfigValue Compose(std::string folder, std::string name) {
    for (const Setting& setting : *given_) {
      if (!setting.value.IsText()) continue;
      if (setting.key == "config_path" || setting.key == "config_dir") folder = setting.value.text;
      if (setting.key == "config_name") name = setting.value.text;
    }
    std::erase_if(*given_, [](const Setting& setting) {
      return setting.key == "config_path" || setting.key == "config_dir" || setting.key == "config_name";
    });
    if (name.empty()) return {};
    const std::string file = JoinPath(folder, IsSettingsFile(name) ? name : name + ".yaml");
    const std::string beside = JoinPath(folder_, file);
    if (IsRegularFile(beside)) return Read(beside, true);
    if (IsRegularFile(file)) return Read(file, true);
    for (const std::string& given : out_->given) {
      if (BaseName(given) == BaseName(file) && IsRegularFile(given)) return Read(given, true);
    }
    out_->notes.push_back(Msg("{}: {} is not here; what it sets is not known", folder_, OneLine(file)));
    out_->Miss(OneLine(file));
    return {};
  }

  ConfigValue Read(const std::string& path, bool add) {
    auto source = ReadWithBases(path, given_, out_);
    if (!source.ok()) {
      failed_ = source.status();
      return {};
    }
    std::vector<Setting> all = source->settings;
    // What the command sets over it.
    for (const Setting& setting : *given_) {
      if (setting.written.empty()) all.push_back(setting);
    }
    if (add) {
      out_->named.push_back(path);
      sources_.push_back(std::move(*source));
    }
    return Nested(all);
  }

  std::string folder_;
  std::vector<Setting>* given_;
  Configuration* out_;
  std::map<std::string, ConfigValue> loaded_;
  std::vector<ConfigSource> sources_;
  Status failed_ = OkStatus();
};

struct Gathered {
  std::vector<Setting> settings;
  PythonProgram program;
};

/// `read`: the files so far.
Status Gather(const std::string& path, const std::vector<Setting>& given, const PythonFiles& files,
              std::vector<std::string>* read, Gathered* out,
              Configuration* notes) {  // NOLINT(misc-no-recursion): kMostFiles
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.text().size() > kMaxProgramBytes) {
    return BadInput(Msg("{} has {} bytes, more than the {} MiB that are read of a configuration", path,
                        file.text().size(), kMaxProgramBytes >> 20));
  }
  read->push_back(path);
  MSP_ASSIGN_OR_RETURN(PythonProgram program, ReadPythonProgram(file.text(), path, given, files));
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
      notes->Miss(OneLine(base));
      continue;
    }
    Gathered below;
    MSP_RETURN_IF_ERROR(Gather(named, given, files, read, &below, notes));
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
  std::vector<std::string> begun;
  ProgramFiles files(path, given, out);
  // As the command gives them: files may take some away that choose others.
  const std::vector<Setting> arguments = *given;
  MSP_RETURN_IF_ERROR(Gather(path, arguments, files.Readers(), &begun, &read, out));
  MSP_RETURN_IF_ERROR(files.failed());
  ConfigSource source;
  source.path = path;
  source.settings = std::move(read.settings);
  source.dialect = Refined(GuessDialect(source.settings), dialect);
  if (!source.settings.empty()) out->sources.push_back(std::move(source));
  for (ConfigSource& loaded : files.Take()) out->sources.push_back(std::move(loaded));
  for (ConfigSource& call : read.program.calls) out->sources.push_back(std::move(call));
  out->environment.insert(out->environment.end(), read.program.environment.begin(), read.program.environment.end());
  NameByOptions(read.program, given);
  return OkStatus();
}

}  // namespace msprobe
