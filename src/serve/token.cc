#include "serve/token.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

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

bool SameToken(std::string_view a, std::string_view b) {
  unsigned difference = static_cast<unsigned>(a.size() ^ b.size());
  for (size_t i = 0; i < b.size(); ++i) {
    const char x = i < a.size() ? a[i] : '\0';
    difference |= static_cast<unsigned char>(x ^ b[i]);
  }
  return difference == 0 && !b.empty();
}

}  // namespace msprobe::serve
