#include "base/process_gone.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

namespace msprobe {

std::optional<ProcessStat> StatOfProcess(int64_t pid) {
  const int fd = open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::array<char, 1024> text{};
  const ssize_t n = read(fd, text.data(), text.size() - 1);
  close(fd);
  // The name in field 2 may hold spaces and brackets; field 3 is the state, field 22 the start.
  std::string_view rest(text.data(), n > 0 ? static_cast<size_t>(n) : 0);
  const size_t name_end = rest.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= rest.size()) return std::nullopt;
  ProcessStat out;
  out.state = rest[name_end + 2];
  rest.remove_prefix(name_end + 1);
  for (int field = 2; field < 22; ++field) {
    const size_t space = rest.find(' ');
    if (space == std::string_view::npos) return out;
    rest.remove_prefix(space + 1);
  }
  for (const char c : rest) {
    if (c < '0' || c > '9') break;
    out.start = out.start * 10 + static_cast<uint64_t>(c - '0');
  }
  return out;
}

bool ProcessGone(int64_t pid) {
  if (pid <= 0 || pid > INT32_MAX) return true;
  if (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return true;
  const std::optional<ProcessStat> stat = StatOfProcess(pid);
  return stat && (stat->state == 'Z' || stat->state == 'X');
}

}  // namespace msprobe
