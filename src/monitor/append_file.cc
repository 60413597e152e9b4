#include "monitor/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/message.h"

namespace msprobe {

StatusOr<int> OpenAppend(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, kFileMode);
  if (fd < 0)
    return BadInput(Msg("{} cannot be written: {}; choose another directory", path, KnownText(std::strerror(errno))));
  return fd;
}

Status AppendWhole(int fd, const std::string& path, std::string_view bytes) {
  size_t done = 0;
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const Message why = KnownText(written < 0 ? std::strerror(errno) : "nothing was taken");
      struct stat now {};
      if (done > 0 && fstat(fd, &now) == 0) (void)!ftruncate(fd, now.st_size - static_cast<off_t>(done));
      return InternalError(Msg("{} cannot be continued: {}; free space or choose another directory", path, why));
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    done += static_cast<size_t>(written);
  }
  return OkStatus();
}

}  // namespace msprobe
