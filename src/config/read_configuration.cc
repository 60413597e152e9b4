#include "config/read_configuration.h"

#include <algorithm>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "config/embedded_scripts.h"
#include "config/launch_command.h"
#include "config/log_settings.h"
#include "config/python_sources.h"
#include "config/settings_file.h"
#include "config/shell_script.h"
#include "config/stack/stacks.h"

namespace msprobe {
namespace {

constexpr size_t kMaxPackageList = 1 << 20;
constexpr size_t kLongestFirstLine = 256;

/// The file that a word of a script names: beside the script, where the command is run, or given under another folder;
/// "" if it is not here.
std::string NamedFile(const std::string& name, const std::string& script, const Configuration& known) {
  if (!IsSettingsFile(name) && !EndsWith(name, ".py")) return {};
  for (const std::string& path : {JoinPath(DirName(script), name), name}) {
    if (IsRegularFile(path)) return path;
  }
  for (const std::string& given : known.given) {
    if (BaseName(given) == BaseName(name) && IsRegularFile(given)) return given;
  }
  return {};
}

/// The text that a script writes into a file of this name before it starts the training; null.
const WrittenFile* WrittenBy(const std::vector<WrittenFile>& written, const std::string& name) {
  for (auto file = written.rbegin(); file != written.rend(); ++file) {
    if (file->name == name || BaseName(file->name) == BaseName(name)) return &*file;
  }
  return nullptr;
}

/// Options that name a file, whatever its ending; others may have a name there: --deepspeed zero3.
bool Explicit(std::string_view key) {
  return key != "deepspeed" && key != "model_config" && key != "c" && key != "config";
}

/// Files of a command, in the order in which what they set is overridden.
std::vector<ShellField> FilesOf(const LaunchCommand& command, const Configuration& known) {
  std::vector<ShellField> out;
  std::string folder;
  std::vector<Setting> options = command.launcher;
  options.insert(options.end(), command.arguments.begin(), command.arguments.end());
  for (const Setting& setting : options) {
    if (!setting.value.IsText()) continue;
    const bool names_file =
        setting.key == "deepspeed_config_file" || setting.key == "model_config" || setting.key == "config_yaml" ||
        setting.key == "c" || setting.key == "yaml_cfg" || setting.key == "config" || setting.key == "deepspeed" ||
        setting.key == "deepspeed_config" || setting.key == "config_path" || setting.key == "job.config_file" ||
        setting.key == "config_file" || setting.key == "mm_model" || setting.key == "mm_data" || setting.key == "cfg";
    const std::string& text = setting.value.text;
    // Of a name that is not known, where the file is here.
    const bool named = (Contains(setting.key, "conf") || Contains(setting.key, "cfg") ||
                        Contains(setting.key, "hparam") || Contains(setting.key, "recipe")) &&
                       !Contains(setting.key, "token") && IsSettingsFile(text) && !EndsWith(text, ".json") &&
                       !NamedFile(text, setting.file, known).empty();
    if ((setting.key == "config_path" || setting.key == "config_dir") && !IsSettingsFile(text)) {
      folder = text;
    } else if (const std::string model = JoinPath(text, "config.json");
               setting.key == "config_name" && !NamedFile(model, setting.file, known).empty()) {
      out.push_back({model, setting.file, setting.line});
    } else if (setting.key == "config_name" && Contains(setting.written, "_")) {
      continue;                                 // of transformers: a model that is elsewhere
    } else if (setting.key == "config_name") {  // of hydra, without its ending
      out.push_back({JoinPath(folder, IsSettingsFile(text) ? text : text + ".yaml"), setting.file, setting.line});
    } else if (named || (names_file && (IsSettingsFile(text) || EndsWith(text, ".py") || Explicit(setting.key)))) {
      out.push_back({text, setting.file, setting.line});
    }
  }
  out.insert(out.end(), command.files.begin(), command.files.end());
  return out;
}

std::vector<std::string_view> KeysOf(const std::vector<Setting>& settings) {
  std::vector<std::string_view> out;
  for (const Setting& setting : settings) out.push_back(setting.key);
  return out;
}

/// The file of a program: train.py, or package/train.py of `-m package.train`.
std::string ProgramFile(const LaunchCommand& command, const std::string& script, const Configuration& known) {
  std::string name = command.program;
  if (!EndsWith(name, ".py")) {
    if (Contains(name, "/") || Contains(name, " ")) return {};
    std::replace(name.begin(), name.end(), '.', '/');
    name += ".py";
  }
  return NamedFile(name, script, known);
}

/// Whether it is of a stack that trains, whose options the arguments of a program are then.
bool Trains(ConfigDialect dialect) {
  return FindStack(dialect) && dialect != ConfigDialect::kAccelerate && dialect != ConfigDialect::kPeft;
}

/// What a command overrides of a program that runs a configurator: the settings of the files that it names, then its
/// arguments. Nothing for another program.
StatusOr<std::vector<Setting>> OverridesOf(const std::string& program, const LaunchCommand& command,
                                           const Configuration& known) {
  std::vector<Setting> out;
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(program));
  if (!Contains(file.text(), "exec(open(")) return out;
  for (const ShellField& word : command.files) {
    const std::string named = EndsWith(word.text, ".py") ? NamedFile(word.text, word.file, known) : std::string();
    if (named.empty()) continue;
    Configuration read;
    std::vector<Setting> arguments = command.arguments;
    MSP_RETURN_IF_ERROR(AddPythonFile(named, ConfigDialect::kUnknown, &arguments, &read));
    if (!read.sources.empty()) {
      const std::vector<Setting>& settings = read.sources.front().settings;
      out.insert(out.end(), settings.begin(), settings.end());
    }
  }
  out.insert(out.end(), command.arguments.begin(), command.arguments.end());
  return out;
}

/// The program that a command starts, if it is here; what it is of and whether the command's files are of it, too.
Status AddProgram(const std::string& program, LaunchCommand* command, ConfigDialect* dialect, bool* configures,
                  Configuration* out) {
  MSP_ASSIGN_OR_RETURN(std::vector<Setting> given, OverridesOf(program, *command, *out));
  *configures = !given.empty();
  const size_t first = out->sources.size();
  if (*configures) {
    MSP_RETURN_IF_ERROR(AddPythonFile(program, command->dialect, &given, out));
  } else {
    MSP_RETURN_IF_ERROR(AddPythonFile(program, command->dialect, &command->arguments, out));
  }
  if (first < out->sources.size()) *dialect = out->sources[first].dialect;
  return OkStatus();
}

/// A program that is here is of the stack that its name tells only where it imports it. Of one that is, what its own
/// calls give a stack counts beside the arguments.
Status AddNamedProgram(const std::string& program, LaunchCommand* command, Configuration* out) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(program));
  if (!ImportsStack(file.text(), command->dialect)) {
    command->dialect = ConfigDialect::kUnknown;
    return OkStatus();
  }
  const size_t first = out->sources.size();
  MSP_RETURN_IF_ERROR(AddPythonFile(program, ConfigDialect::kUnknown, &command->arguments, out));
  const StackKind* stack = FindStack(command->dialect);
  if (stack && stack->base == ConfigDialect::kHfTrainer) return OkStatus();
  const auto own = [](const ConfigSource& source) {
    return source.dialect == ConfigDialect::kUnknown || source.dialect == ConfigDialect::kOwn;
  };
  out->sources.erase(std::remove_if(out->sources.begin() + static_cast<int64_t>(first), out->sources.end(), own),
                     out->sources.end());
  return OkStatus();
}

Status AddCommand(LaunchCommand command, const std::string& path, const std::vector<WrittenFile>& written,
                  Configuration* out) {
  std::vector<ConfigSource> later;
  ConfigDialect of_files = ConfigDialect::kUnknown;
  const std::string program = ProgramFile(command, path, *out);
  out->programs.push_back(std::string(BaseName(command.program)));
  ConfigDialect of_program = ConfigDialect::kUnknown;
  bool configures = false;
  if (!program.empty() && command.dialect != ConfigDialect::kUnknown) {
    MSP_RETURN_IF_ERROR(AddNamedProgram(program, &command, out));
  }
  if (command.arguments.empty() && command.files.empty() && program.empty()) {
    // Whatever it sets stands in it.
    out->notes.push_back(Msg("{}: {} is not here; what it sets is not known", path, OneLine(command.program)));
    out->Miss(OneLine(command.program));
    command.dialect = ConfigDialect::kUnknown;
  }
  if (!program.empty() && command.dialect == ConfigDialect::kUnknown) {
    MSP_RETURN_IF_ERROR(AddProgram(program, &command, &of_program, &configures, out));
  } else if (command.dialect == ConfigDialect::kUnknown) {
    command.dialect = DialectOfOptions(command.program, KeysOf(command.arguments));
  }
  for (const ShellField& file : FilesOf(command, *out)) {
    const std::string named = NamedFile(file.text, file.file, *out);
    const WrittenFile* text = WrittenBy(written, file.text);
    if (named.empty() && !text) {
      const std::string at = file.line > 0 ? file.file + ":" + std::to_string(file.line) : file.file;
      out->notes.push_back(Msg("{}: {} is not here; what it sets is not known", at, OneLine(file.text)));
      const auto names = [&](const Setting& setting) {
        return setting.value.IsText() && setting.value.text == file.text;
      };
      const auto of_part = [&](const Setting& setting) {
        return names(setting) && StartsWith(setting.key, "deepspeed");
      };
      const bool part = std::any_of(command.launcher.begin(), command.launcher.end(), names) ||
                        std::any_of(command.arguments.begin(), command.arguments.end(), of_part);
      const bool alone = EndsWith(file.text, ".py") && FilesOf(command, *out).size() == 1;
      if (IsSettingsFile(file.text) || alone) out->Miss(OneLine(file.text), !part);
      continue;
    }
    if (!text && EndsWith(named, ".py")) {
      const size_t first = out->sources.size();
      MSP_RETURN_IF_ERROR(AddPythonFile(named, configures ? of_program : command.dialect, &command.arguments, out));
      if (first < out->sources.size()) of_files = out->sources[first].dialect;
      out->named.push_back(named);
      continue;
    }
    const auto loaded = [&](const std::string& one) { return SameFile(one, named); };
    if (!text && std::any_of(out->named.begin(), out->named.end(), loaded)) continue;  // by the program
    MSP_ASSIGN_OR_RETURN(ConfigSource source, text ? ReadSettingsText(text->text, text->name)
                                                   : ReadWithBases(named, &command.arguments, out));
    const auto yaml = std::find_if(command.arguments.begin(), command.arguments.end(), [&](const Setting& s) {
      return s.key == "yaml_cfg" && s.value.IsText() && s.value.text == file.text;
    });
    source.dialect =
        yaml != command.arguments.end() ? ConfigDialect::kMegatron : Refined(source.dialect, command.dialect);
    of_files = source.dialect;
    if (!named.empty()) out->named.push_back(named);
    // What a file of DeepSpeed sets, it does not leave to the arguments.
    (source.dialect == ConfigDialect::kDeepSpeed ? later : out->sources).push_back(std::move(source));
  }
  ConfigSource source;
  source.path = path;
  source.settings = command.arguments;
  // A command of a stack says whose arguments these are; other programs may have names that only look so.
  source.dialect =
      FindStack(command.dialect) ? command.dialect : Refined(GuessDialect(source.settings), command.dialect);
  // Arguments of a program that reads a file of a stack are of that stack.
  for (const ConfigDialect dialect : {of_files, of_program}) {
    if (source.dialect == ConfigDialect::kUnknown && Trains(dialect)) source.dialect = dialect;
  }
  ResolveReferences(&source.settings);
  out->sources.push_back(std::move(source));
  std::move(later.begin(), later.end(), std::back_inserter(out->sources));
  out->launcher.insert(out->launcher.end(), command.launcher.begin(), command.launcher.end());
  return OkStatus();
}

/// Processes of a job of Slurm that no other launcher makes more of.
void AddTasks(const SlurmJob& job, const std::string& path, LaunchCommand* command) {
  const bool starts = command->by_slurm || command->dialect == ConfigDialect::kNeox;  // whose launcher asks Slurm
  const bool counted = std::any_of(command->launcher.begin(), command->launcher.end(), [](const Setting& option) {
    return option.key == "nproc_per_node" || option.key == "num_processes" || option.key == "num_gpus";
  });
  if (!starts || counted || job.tasks_per_node <= 0) return;
  std::erase_if(command->launcher, [](const Setting& option) { return option.key == "alone"; });
  command->launcher.push_back({"nproc_per_node", ConfigValue::Of(int64_t{job.tasks_per_node}), path});
  command->launcher.push_back({"nnodes", ConfigValue::Of(int64_t{std::max(1, job.nodes)}), path});
}

/// A script that is a file, or inside of one; `found`: whether a command of it starts a training.
Status AddScriptText(std::string_view script, const std::string& path, bool* starts, Configuration* out) {
  MSP_ASSIGN_OR_RETURN(const ShellReading reading, ReadShell(script, path));
  size_t found = 0;
  LaunchCommand last;
  for (const bool python : {true, false}) {  // only without one the command of another kind that has options
    for (const std::vector<ShellField>& words : reading.commands) {
      LaunchCommand command;
      if (!(python ? ReadLaunchCommand(words, &command) : ReadConsoleCommand(words, &command))) continue;
      // A script that prepares data first starts the training with its longest command.
      if (found++ == 0 || command.arguments.size() >= last.arguments.size()) last = std::move(command);
    }
    if (found > 0 || starts) break;
  }
  if (starts) *starts = found > 0;
  if (starts && found == 0) return OkStatus();
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
  AddTasks(reading.job, path, &last);
  return AddCommand(std::move(last), path, reading.written, out);
}

Status AddScript(const std::string& path, Configuration* out) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return AddScriptText(file.text(), path, nullptr, out);
}

enum class FileKind : uint8_t { kScript, kPython, kSettings, kText, kUnknown };

/// By the ending, else by the first line: "#!/usr/bin/env bash".
StatusOr<FileKind> KindOf(const std::string& path) {
  for (const char* ending : {".sh", ".bash", ".zsh", ".ksh", ".sbatch", ".slurm", ".pbs", ".lsf", ".qsub", ".job"}) {
    if (EndsWith(path, ending)) return FileKind::kScript;
  }
  if (EndsWith(path, ".py")) return FileKind::kPython;
  if (IsSettingsFile(path)) return FileKind::kSettings;
  if (!IsRegularFile(path)) return FileKind::kUnknown;
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string_view first = file.text().substr(0, std::min<size_t>(file.text().find('\n'), kLongestFirstLine));
  if (StartsWith(first, "#!") && Contains(first, "python")) return FileKind::kPython;
  if (StartsWith(first, "#!") && Contains(first, "sh")) return FileKind::kScript;
  const bool text = EndsWith(path, ".log") || EndsWith(path, ".txt") || EndsWith(path, ".out");
  return text ? FileKind::kText : FileKind::kUnknown;
}

/// A file of settings, and of one that describes a job what it runs.
Status AddSettings(const std::string& path, Configuration* out) {
  MSP_ASSIGN_OR_RETURN(ConfigSource source, ReadWithBases(path, nullptr, out));
  bool starts = false;
  if (const std::string script = EmbeddedScript(source); !script.empty()) {
    MSP_RETURN_IF_ERROR(AddScriptText(script, path, &starts, out));
  }
  // Where it runs a training, the rest of it is about machines.
  if (!starts || source.dialect != ConfigDialect::kUnknown) out->sources.push_back(std::move(source));
  return OkStatus();
}

/// What the directory of a run holds of its configuration: files of settings that a stack names, lists of packages,
/// logs, and scripts last, as their commands count more. False if there is nothing.
StatusOr<bool> AddRunDirectory(const std::string& path,  // NOLINT(misc-no-recursion): its files are none
                               Configuration* out) {
  MSP_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(path));
  for (const char* name : {".hydra/config.yaml", "files/config.yaml"}) names.emplace_back(name);  // of hydra, of wandb
  const size_t sources = out->sources.size(), packages = out->packages.size();
  std::vector<std::string> scripts, jobs, programs, unknown;
  for (const std::string& name : names) {
    const std::string file = JoinPath(path, name);
    if (!IsRegularFile(file)) continue;
    MSP_ASSIGN_OR_RETURN(const FileKind kind, KindOf(file));
    if (kind == FileKind::kScript) {
      scripts.push_back(file);
    } else if (kind == FileKind::kSettings) {
      out->given.push_back(file);
      auto source = ReadSettingsFile(file);
      if (!source.ok()) continue;
      if (!EmbeddedScript(*source).empty()) {
        jobs.push_back(file);
      } else if (source->dialect == ConfigDialect::kUnknown) {
        unknown.push_back(file);
      } else {
        out->sources.push_back(std::move(*source));
      }
    } else if (kind == FileKind::kPython) {
      programs.push_back(file);
    } else if (kind == FileKind::kText) {
      Configuration log;  // many logs hold none
      if (!AddFile(file, &log).ok()) continue;
      std::move(log.sources.begin(), log.sources.end(), std::back_inserter(out->sources));
      out->packages.insert(out->packages.end(), log.packages.begin(), log.packages.end());
    }
  }
  for (const std::string& job : jobs) MSP_RETURN_IF_ERROR(AddSettings(job, out));
  for (const std::string& script : scripts) MSP_RETURN_IF_ERROR(AddScript(script, out));
  // Nothing starts it: what is alone there is meant.
  if (scripts.empty() && jobs.empty() && programs.size() == 1) MSP_RETURN_IF_ERROR(AddFile(programs[0], out));
  if (out->sources.size() == sources && unknown.size() == 1) MSP_RETURN_IF_ERROR(AddFile(unknown[0], out));
  return out->sources.size() > sources || out->packages.size() > packages;
}

bool HoldsScript(const std::string& path) {
  const auto names = ListDirectory(path);
  return names.ok() && std::ranges::any_of(*names, [&](const std::string& name) {
           const StatusOr<FileKind> kind = KindOf(JoinPath(path, name));
           return kind.ok() && *kind == FileKind::kScript;
         });
}

}  // namespace

Status AddFile(const std::string& path, Configuration* out) {  // NOLINT(misc-no-recursion): of a directory its files
  if (IsDirectory(path)) {
    const std::string config = JoinPath(path, "config.json");
    // A model beside the script that trains it is one of its files.
    if (!IsRegularFile(config) || HoldsScript(path)) {
      MSP_ASSIGN_OR_RETURN(const bool found, AddRunDirectory(path, out));
      if (found) return OkStatus();
      return BadInput(Msg("{} holds no configuration: give a file, or the directory of a model or of a run", path));
    }
    return AddFile(config, out);
  }
  MSP_ASSIGN_OR_RETURN(const FileKind kind, KindOf(path));
  if (kind == FileKind::kScript) return AddScript(path, out);
  const auto was_read = [&](const ConfigSource& source) { return SameFile(path, source.path); };
  if (kind == FileKind::kPython) {
    // What a command that starts it sets counts more.
    if (std::any_of(out->sources.begin(), out->sources.end(), was_read)) return OkStatus();
    std::vector<Setting> none;
    out->programs.push_back(std::string(BaseName(path)));
    return AddPythonFile(path, ConfigDialect::kUnknown, &none, out);
  }
  if (kind == FileKind::kSettings) {
    const auto read = [&](const std::string& named) { return SameFile(path, named); };
    // What a command sets beside it counts more.
    if (std::any_of(out->named.begin(), out->named.end(), read)) return OkStatus();
    return AddSettings(path, out);
  }
  if (kind == FileKind::kText) {
    MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    // A list of packages is short.
    const bool may_list = file.text().size() <= kMaxPackageList;
    if (auto packages = ReadPackageList(may_list ? file.text() : ""); !packages.empty()) {
      out->packages.insert(out->packages.end(), packages.begin(), packages.end());
      return OkStatus();
    }
    MSP_ASSIGN_OR_RETURN(std::vector<ConfigSource> sources, ReadLogSettings(file.text(), path));
    for (ConfigSource& source : sources) out->sources.push_back(std::move(source));
    return OkStatus();
  }
  if (!PathExists(path)) return Missing(path, "check the path");
  return BadInput(Msg(
      "{} has no known ending: give a script (.sh, .sbatch, .py, or one that begins with #!), .yaml, .json, .toml, or "
      "a log (.log, .txt, .out)",
      path));
}

StatusOr<Configuration> ReadConfiguration(const std::vector<std::string>& paths) {
  Configuration out;
  out.given = paths;
  for (const std::string& path : paths) MSP_RETURN_IF_ERROR(AddFile(path, &out));
  return out;
}

}  // namespace msprobe
