#include "base/python_process.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"

extern char** environ;

namespace msprobe {
namespace {

constexpr size_t kLongestLine = 1 << 20;
constexpr int kInherited = 3;  // a descriptor
// With -c Python looks for modules in the current directory first, which may be a dump of somebody else, or the sources
// of torch.
constexpr char kNotFromHere[] = "import sys\nif sys.path[:1] == ['']: del sys.path[0]\n";

std::string PythonCommand() {
  if (const char* given = std::getenv("MSPROBE_PYTHON"); given && *given) return given;
  char exe[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", exe, sizeof exe);
  if (length > 0) {
    const std::string beside = JoinPath(DirName(std::string_view(exe, static_cast<size_t>(length))), "python3");
    if (access(beside.c_str(), X_OK) == 0) return beside;
  }
  return "python3";
}

constexpr size_t kLongestArgument = 100'000;  // Linux takes 131,071 bytes

/// Reads the program from the socket, where it is too long to be an argument.
constexpr char kBootstrap[] = R"(import os, socket
stream = socket.socket(fileno=os.dup(0))
size, parts = b"", []
while not size.endswith(b"\n"):
    size += stream.recv(1) or b"0\n"
left = int(size)
while left > 0:
    parts.append(stream.recv(min(left, 65536)) or left * b"\n")
    left -= len(parts[-1])
stream.close()
exec(compile(b"".join(parts), "msprobe", "exec"))
)";

}  // namespace

StatusOr<std::unique_ptr<PythonProcess>> PythonProcess::Start(std::string_view option, std::string_view program,
                                                              const std::vector<std::string>& arguments,
                                                              int inherited) {
  std::unique_ptr<PythonProcess> out(new PythonProcess(option));
  if (program.size() <= kLongestArgument) {
    MSP_RETURN_IF_ERROR(out->Spawn(program, arguments, inherited));
    return out;
  }
  MSP_RETURN_IF_ERROR(out->Spawn(kBootstrap, arguments, inherited));
  const std::string size = std::to_string(program.size()) + "\n";
  Status sent = out->Send(size.data(), size.size());
  if (sent.ok()) sent = out->Send(program.data(), program.size());
  // A process that has ended already is found when it is read from.
  if (!sent.ok() && sent.code() != Code::kBadInput) return sent;
  return out;
}

Status PythonProcess::Spawn(std::string_view program, const std::vector<std::string>& arguments, int inherited) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return InternalError(Msg("cannot make a socket for {}: {}", option_, KnownText(std::strerror(errno))));
  }
  socket_ = pair[0];
  const std::string python = PythonCommand();
  std::vector<std::string> words = {python, "-c", kNotFromHere + std::string(program)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pair[1], 0);
  posix_spawn_file_actions_adddup2(&actions, 2, 1);
  if (inherited >= 0) posix_spawn_file_actions_adddup2(&actions, inherited, kInherited);
  const int error = posix_spawnp(&pid_, python.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pair[1]);
  if (error == 0) return OkStatus();
  pid_ = -1;
  return UsageError(Msg("{}: {} does not start ({}): set MSPROBE_PYTHON to the Python that is to run it", option_,
                        python, KnownText(std::strerror(error))));
}

PythonProcess::~PythonProcess() {
  if (socket_ >= 0) close(socket_);  // the process reads the end and leaves
  if (pid_ < 0) return;
  int state = 0;
  // A function that hangs does not keep the command.
  for (int i = 0; i < 100; ++i) {
    if (waitpid(pid_, &state, WNOHANG) != 0) return;
    usleep(20000);
  }
  Kill();
}

void PythonProcess::Kill() {
  if (pid_ < 0) return;
  int state = 0;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, &state, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
}

Status PythonProcess::Ended() const {
  if (InterruptRequested()) return Interrupted();
  return BadInput(Msg("the process of {} ended: see what it wrote above, or compare without it", option_));
}

Status PythonProcess::Send(const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket_, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR && !InterruptRequested()) continue;
    if (sent <= 0) return Ended();
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return OkStatus();
}

Status PythonProcess::Receive(std::chrono::steady_clock::time_point end_of_time, int seconds) {
  for (;;) {
    if (InterruptRequested()) return Interrupted();
    if (seconds > 0 && std::chrono::steady_clock::now() > end_of_time)
      return BadInput(Msg("the process of {} did not answer within {} s", option_, seconds));
    pollfd ready{socket_, POLLIN, 0};
    if (poll(&ready, 1, 200) <= 0) continue;  // looks for Ctrl-C now and then
    char piece[65536];
    const ssize_t got = recv(socket_, piece, sizeof piece, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Ended();
    buffer_.append(piece, static_cast<size_t>(got));
    return OkStatus();
  }
}

StatusOr<std::string> PythonProcess::ReadLine(int seconds) {
  const auto end_of_time = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (;;) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (buffer_.size() > kLongestLine) return Ended();
    MSP_RETURN_IF_ERROR(Receive(end_of_time, seconds));
  }
}

StatusOr<std::string> PythonProcess::ReadBytes(size_t bytes, int seconds) {
  const auto end_of_time = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (buffer_.size() < bytes) MSP_RETURN_IF_ERROR(Receive(end_of_time, seconds));
  std::string out = buffer_.substr(0, bytes);
  buffer_.erase(0, bytes);
  return out;
}

}  // namespace msprobe
