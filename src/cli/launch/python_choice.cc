#include "cli/launch/python_choice.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "base/words/translate.h"

extern char** environ;

namespace msprobe {
namespace {

// Exits with kLacks where the package is another one, or none.
constexpr int kLacks = 7;
constexpr char kLook[] =
    "import importlib.util, os, sys\n"
    "sys.path[:1] = [p for p in sys.path[:1] if p]\n"
    "found = importlib.util.find_spec('msprobe')\n"
    "places = found.submodule_search_locations if found else []\n"
    "sys.exit(0 if any(os.path.isdir(os.path.join(p, '_attach')) for p in places) else 7)\n";

std::string OnPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const std::string_view place : Split(path == nullptr ? "" : path, ':')) {
    std::string file = JoinPath(place.empty() ? "." : place, name);
    if (IsRegularFile(file) && access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

std::string Beside(const std::string& name) {
  char exe[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", exe, sizeof exe);
  if (length <= 0) return {};
  const std::string_view folder = DirName(std::string_view(exe, static_cast<size_t>(length)));
  for (const std::string& each : {name, std::string("python3")}) {
    std::string file = JoinPath(folder, each);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

bool Lacks(const std::string& python) {
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  for (const int stream : {0, 1, 2}) posix_spawn_file_actions_addopen(&quiet, stream, "/dev/null", O_RDWR, 0);
  std::vector<std::string> texts = {python, "-c", kLook};
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, python.c_str(), &quiet, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&quiet);
  if (error != 0) return false;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == kLacks;
}

}  // namespace

std::vector<std::string> WithPackage(std::vector<std::string> program) {
  const std::string& name = program[0];
  const bool is_python = StartsWith(name, "python") && name.find_first_not_of("python0123456789.") == std::string::npos;
  if (!is_python) return program;
  const std::string given = OnPath(name), own = Beside(name);
  if (given.empty() || own.empty() || DirName(given) == DirName(own) || !Lacks(given) || Lacks(own)) return program;
  const Message said = Msg("{} is {}, which has no msprobe: {} is used", name, given, own);
  std::fputs(("[msprobe] " + InLanguage(said, LocaleLanguage()) + "\n").c_str(), stderr);
  program[0] = own;
  return program;
}

}  // namespace msprobe
