#include "base/temp_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr char kLock[] = "in_use";
constexpr size_t kMostDigits = 9;      // of a process id
constexpr int kOfOthers = 10'000'000;  // beyond all process ids
constexpr int kMostOthers = 90;

/// As a part of a file's name.
std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "host";
  std::string out(name.data());
  for (char& c : out) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    if (!plain) c = '-';
  }
  return out;
}

std::string Beginning(std::string_view kind) { return "." + std::string(kind) + "_" + HostName() + "_"; }

/// The lock of a directory; -1 when it cannot be had, with *in_use where that is because somebody has it.
int TakeLock(const std::string& directory, int flags, bool* in_use = nullptr) {
  const int fd = open(JoinPath(directory, kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, kFileMode);
  if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  if (in_use) *in_use = errno == EWOULDBLOCK;
  close(fd);
  return -1;
}

/// What a killed process of the same id has left.
void Clear(const std::string& directory) {
  const StatusOr<std::vector<std::string>> names = ListDirectory(directory);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    std::error_code ignored;
    if (name != kLock) std::filesystem::remove_all(JoinPath(directory, name), ignored);
  }
}

/// Process ids are told apart within one host only, and containers on it may share its name: the lock says it as well.
void RemoveStale(const std::string& parent, std::string_view kind) {
  const StatusOr<std::vector<std::string>> names = ListDirectory(parent);
  if (!names.ok()) return;
  const std::string beginning = Beginning(kind);
  for (const std::string& name : *names) {
    if (!StartsWith(name, beginning)) continue;
    const std::string digits = name.substr(beginning.size());
    const std::string path = JoinPath(parent, name);
    std::error_code ignored;
    if (!IsDigits(digits) || digits.size() > kMostDigits || !std::filesystem::is_directory(path, ignored) ||
        std::filesystem::is_symlink(path, ignored)) {
      continue;
    }
    const pid_t pid = std::atoi(digits.c_str());
    if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH) continue;
    const int lock = TakeLock(path, 0);
    if (lock < 0) continue;
    std::filesystem::remove_all(path, ignored);
    close(lock);
  }
}

}  // namespace

StatusOr<TempDirectory> TempDirectory::Create(const std::string& parent, std::string_view kind) {
  MSP_RETURN_IF_ERROR(MakeOutputDir(parent));
  RemoveStale(parent, kind);
  TempDirectory out;
  // Somebody else has the directory of this id: a container of the same host name, or another object of this process.
  for (int others = 0; others < kMostOthers; ++others) {
    const int id = getpid() + others * kOfOthers;
    const std::string path = JoinPath(parent, Beginning(kind) + std::to_string(id));
    MSP_RETURN_IF_ERROR(MakeOutputDir(path));
    bool in_use = false;
    // Without a lock (a file system that has none) the directory stays when the command is killed.
    out.lock_ = TakeLock(path, O_CREAT, &in_use);
    if (in_use) continue;
    if (out.lock_ >= 0) Clear(path);
    out.path_ = path;
    return out;
  }
  return InternalError(Msg("{} holds too many directories of commands that run: wait until some have ended", parent));
}

TempDirectory::TempDirectory(TempDirectory&& other) noexcept
    : path_(std::exchange(other.path_, std::string())), lock_(std::exchange(other.lock_, -1)) {}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace msprobe
