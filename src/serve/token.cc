#include "serve/token.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/message.h"

namespace msprobe::serve {

StatusOr<std::string> MakeToken() {
  static constexpr char kHex[] = "0123456789abcdef";
  unsigned char bytes[16];
  for (size_t have = 0; have < sizeof bytes;) {
    const ssize_t got = getrandom(bytes + have, sizeof bytes - have, 0);
    if (got < 0 && errno != EINTR) {
      return InternalError(Msg("the kernel gives no random numbers ({}): the page needs a secret, try again",
                               KnownText(std::strerror(errno))));
    }
    if (got > 0) have += static_cast<size_t>(got);
  }
  std::string token;
  for (const unsigned char b : bytes) {
    token += kHex[b >> 4];
    token += kHex[b & 15];
  }
  return token;
}

StatusOr<std::string> TokenOfFile(const std::string& path) {
  constexpr size_t kLeastToken = 16, kMostToken = 128;
  struct stat st {};
  if (lstat(path.c_str(), &st) != 0) {
    if (errno != ENOENT) return BadInput(Msg("{} cannot be read ({})", path, KnownText(std::strerror(errno))));
    MSP_ASSIGN_OR_RETURN(std::string token, MakeToken());
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const std::string line = token + "\n";
    const bool written = fd >= 0 && write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    const int error = errno;
    if (fd >= 0) close(fd);
    if (!written) return BadInput(Msg("{} cannot be written ({})", path, KnownText(std::strerror(error))));
    return token;
  }
  if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
    return BadInput(Msg("{} is to be a file that only you can read: chmod 600 {}", path, path));
  }
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string token(file.text().substr(0, file.text().find_first_of("\r\n")));
  const bool plain = std::all_of(token.begin(), token.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
  if (!plain || token.size() < kLeastToken || token.size() > kMostToken) {
    return BadInput(
        Msg("the first line of {} is no token: {} to {} letters and digits, or remove it and a new one is made", path,
            kLeastToken, kMostToken));
  }
  return token;
}

bool SameToken(std::string_view a, std::string_view b) {
  unsigned difference = static_cast<unsigned>(a.size() ^ b.size());
  for (size_t i = 0; i < b.size(); ++i) {
    const char x = i < a.size() ? a[i] : '\0';
    difference |= static_cast<unsigned char>(x ^ b[i]);
  }
  return difference == 0 && !b.empty();
}

}  // namespace msprobe::serve
