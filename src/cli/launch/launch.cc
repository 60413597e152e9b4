#include "cli/launch/launch.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "base/text.h"
#include "base/words/shell_word.h"
#include "cli/launch/python_choice.h"
#include "json/writer.h"

extern char** environ;

namespace msprobe {
namespace {

constexpr const char* kVariable = "MSPROBE_ATTACH";
constexpr const char* kPackageVariable = "MSPROBE_PACKAGE";  // set by `python -m msprobe`

std::string Absolute(const std::string& path) {
  if (path.empty() || path[0] == '/') return path;
  char cwd[PATH_MAX];
  std::string_view below = path;
  // Each step's line of the log shows it.
  while (below.size() > 2 && below.substr(0, 2) == "./") below.remove_prefix(2);
  return getcwd(cwd, sizeof cwd) != nullptr ? JoinPath(cwd, below) : path;
}

/// Directories that may hold the Python package of this installation.
std::vector<std::string> PackagePlaces() {
  std::vector<std::string> places;
  if (const char* given = std::getenv(kPackageVariable)) places.emplace_back(given);
  char exe[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", exe, sizeof exe);
  if (length <= 0) return places;
  const std::string up(DirName(DirName(std::string_view(exe, static_cast<size_t>(length)))));
  for (const char* lib : {"lib", "lib64"}) {
    auto names = ListDirectory(JoinPath(up, lib));
    for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
      if (!StartsWith(name, "python")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        places.push_back(fmt::format("{}/{}/{}/{}/msprobe", up, lib, name, packages));
      }
    }
  }
  places.push_back(JoinPath(up, "msprobe"));                               // pip install --target
  places.push_back(JoinPath(std::string(DirName(up)), "python/msprobe"));  // build/PRESET/msprobe of a checkout
  return places;
}

StatusOr<std::string> FindSite() {
  for (const std::string& place : PackagePlaces()) {
    const std::string site = JoinPath(place, "_attach/site");
    if (IsRegularFile(JoinPath(site, "sitecustomize.py"))) return site;
  }
  return InternalError(Msg("cannot find the Python package of this installation: run 'python -m msprobe' instead"));
}

void MemberIfAny(JsonWriter* json, std::string_view key, std::string_view value) {
  if (!value.empty()) json->Member(key, value);
}

void WriteSteps(JsonWriter* json, const std::string& step) {
  json->BeginArray();
  for (const std::string_view item : Split(step, ',')) {
    IsDigits(item) ? json->UInt(std::strtoul(std::string(item).c_str(), nullptr, 10)) : json->String(item);
  }
  json->EndArray();
}

std::string RequestJson(const AttachRequest& request, const std::vector<std::string>& program) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  JsonWriter json;
  json.BeginObject();
  MemberIfAny(&json, "mode", request.mode);
  MemberIfAny(&json, "config", request.config);
  MemberIfAny(&json, "task", request.task);
  MemberIfAny(&json, "level", request.level);
  MemberIfAny(&json, "dump_path", request.dump_path);
  MemberIfAny(&json, "step_by", request.step_by);
  MemberIfAny(&json, "role", request.role);
  MemberIfAny(&json, "out", request.out);
  MemberIfAny(&json, "save_batches", request.save_batches);
  MemberIfAny(&json, "save_grads", request.save_grads);
  MemberIfAny(&json, "save_optimizer", request.save_optimizer);
  MemberIfAny(&json, "replay_batches", request.replay_batches);
  MemberIfAny(&json, "replay_grads", request.replay_grads);
  MemberIfAny(&json, "batches_from", request.batches_from);
  MemberIfAny(&json, "names", request.names);
  MemberIfAny(&json, "layouts", request.layouts);
  MemberIfAny(&json, "weights_from", request.weights_from);
  if (!request.join_ranks.empty()) json.Key("join_ranks"), WriteSteps(&json, request.join_ranks);
  if (request.loss_scale != 1) json.Member("loss_scale", request.loss_scale);
  if (!request.step.empty()) json.Key("step"), WriteSteps(&json, request.step);
  json.Member("steps", request.steps);
  if (request.save_at > 0) json.Member("save_at", request.save_at);
  if (request.csv) json.Member("csv", true);
  if (request.mode == "monitor") json.Member("command", ShellText(program));
  json.RawMember("began", fmt::format("{:.3f}", std::chrono::duration<double>(now).count()));
  json.EndObject();
  return json.Take();
}

std::vector<std::string> Environment(const AttachRequest& request, const std::vector<std::string>& program,
                                     const std::string& site) {
  std::vector<std::string> result;
  const char* old = std::getenv("PYTHONPATH");
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!StartsWith(text, "PYTHONPATH=") && !StartsWith(text, std::string(kVariable) + "=")) result.emplace_back(text);
  }
  result.push_back("PYTHONPATH=" + site + (old != nullptr && *old != '\0' ? ":" + std::string(old) : ""));
  result.push_back(std::string(kVariable) + "=" + RequestJson(request, program));
  return result;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// The option of a Python command line that keeps us out, "" if there is none. -I and -E ignore PYTHONPATH, -S leaves
/// out the module that reads sitecustomize.
std::string IsolatingOption(const std::vector<std::string>& program) {
  const std::string name(BaseName(program[0]));
  if (!StartsWith(name, "python")) return {};
  for (size_t i = 1; i < program.size(); ++i) {
    const std::string& arg = program[i];
    if (arg.size() < 2 || arg[0] != '-' || arg[1] == '-') return {};
    for (size_t c = 1; c < arg.size(); ++c) {
      if (std::strchr("ISE", arg[c]) != nullptr) return std::string("-") + arg[c];
      if (arg[c] == 'c' || arg[c] == 'm') return {};
      if (arg[c] == 'W' || arg[c] == 'X') {
        if (c + 1 == arg.size()) ++i;  // the value is the next argument
        break;
      }
    }
  }
  return {};
}

Status NotStarted(const std::string& name, int error) {
  return BadInput(Msg("{} cannot be started ({}): after '--' give the command as you run it without msprobe", name,
                      KnownText(std::strerror(error))));
}

Status CheckSteps(const std::string& step) {
  for (const char c : step) {
    if (std::strchr("0123456789,-", c) == nullptr)
      return UsageError(Msg("--step is '{}'; expected steps such as 0,3-5", step));
  }
  return OkStatus();
}

}  // namespace

void AddAttachOptions(CLI::App* command, AttachRequest* request) {
  command->add_option("-c,--config", request->config, "config.json; without it the task's defaults");
  command->add_option("--task", request->task, "task instead of the configuration's");
  command->add_option("--level", request->level, "level instead of the configuration's");
  command->add_option("--dump-path", request->dump_path, "directory of the dump instead of the configuration's");
  command
      ->add_option("--step-by", request->step_by,
                   "what ends a step: the optimizers' steps, each forward of the model, the data loader; auto: the "
                   "optimizers where there are any, else the forwards")
      ->check(CLI::IsMember({"auto", "optimizer", "forward", "dataloader"}))
      ->capture_default_str();
}

Status CheckLaunch(AttachRequest* request, const std::vector<std::string>& program) {
  if (program.empty() || program[0].empty()) {
    return UsageError(
        Msg("{0} needs your command after '--': msprobe {0} --config config.json -- python train.py", request->mode));
  }
  if (program[0].ends_with(".py") && access(program[0].c_str(), X_OK) != 0) {
    return UsageError(Msg("{0} is a Python script that cannot be started by itself: after '--' give python {0}",
                          OneLine(program[0])));
  }
  if (const std::string option = IsolatingOption(program); !option.empty()) {
    return UsageError(
        Msg("python {0} keeps msprobe out (it does not read PYTHONPATH and sitecustomize): leave {0} out, or use "
            "PrecisionDebugger in the script",
            option));
  }
  if (request->config.empty() && request->dump_path.empty() && !request->exchanges()) {
    return UsageError(
        Msg("{0} needs to know where to write: --config config.json, or --dump-path DIR and the defaults, such as "
            "msprobe {0} --dump-path dump -- python train.py",
            request->mode));
  }
  MSP_RETURN_IF_ERROR(CheckSteps(request->step));
  if (!request->config.empty()) {
    request->config = Absolute(request->config);
    MSP_RETURN_IF_ERROR(MappedFile::Open(request->config).status());
  }
  for (std::string* path : {&request->save_batches, &request->save_grads, &request->save_optimizer,
                            &request->replay_batches, &request->replay_grads, &request->names}) {
    *path = Absolute(*path);
  }
  request->dump_path = Absolute(request->dump_path);
  request->out = Absolute(request->out);
  return OkStatus();
}

Status BecomeProgram(const AttachRequest& request, const std::vector<std::string>& given) {
  MSP_ASSIGN_OR_RETURN(const std::string site, FindSite());
  const std::vector<std::string> program = WithPackage(given);
  const std::vector<std::string> environment = Environment(request, given, site);
  execvpe(program[0].c_str(), Pointers(program).data(), Pointers(environment).data());
  return NotStarted(program[0], errno);
}

StatusOr<int> RunProgram(const AttachRequest& request, const std::vector<std::string>& given) {
  MSP_ASSIGN_OR_RETURN(const std::string site, FindSite());
  const std::vector<std::string> program = WithPackage(given);
  const std::vector<std::string> environment = Environment(request, given, site);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t as_usual;
  sigemptyset(&as_usual);
  sigaddset(&as_usual, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &as_usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (request.prints_to_stderr) posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  const int error = posix_spawnp(&pid, program[0].c_str(), &files, &attributes, Pointers(program).data(),
                                 Pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return NotStarted(program[0], error);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR)
      return InternalError(Msg("waiting for the program failed: {}", KnownText(std::strerror(errno))));
    if (InterruptRequested()) kill(pid, SIGTERM);
  }
  if (InterruptRequested()) return Interrupted();
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

StatusOr<std::unique_ptr<WorkDir>> WorkDir::Create(const std::string& parent) {
  std::string path = JoinPath(parent, ".msprobe_XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return BadInput(Msg("cannot create a directory at {} ({})", parent, KnownText(std::strerror(errno))));
  }
  return std::unique_ptr<WorkDir>(new WorkDir(std::move(path)));
}

WorkDir::~WorkDir() { RemoveTree(path_); }

StatusOr<std::vector<std::string>> WorkDir::Results(const std::string& prefix) const {
  MSP_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(path_));
  std::erase_if(names, [&](const std::string& name) { return !StartsWith(name, prefix) || !EndsWith(name, ".json"); });
  for (std::string& name : names) name = name.substr(prefix.size(), name.size() - prefix.size() - 5);
  return names;
}

void RemoveTree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::string ShellText(const std::vector<std::string>& program) {
  std::string text;
  for (const std::string& arg : program) text += (text.empty() ? "" : " ") + ShellWord(arg);
  return text;
}

}  // namespace msprobe
