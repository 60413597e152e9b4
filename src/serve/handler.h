// One request in, one answer out; no sockets here, so that it can be tested and fuzzed by itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "view/viewer.h"

namespace msprobe::serve {

struct Request {
  std::string_view method, target, host, token;  ///< `token`: of the X-Msprobe-Token header
  bool has_body = false;
};

struct Response {
  int status = 200;
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;  ///< security headers and the like
  std::string body;
  bool close = false;  ///< the connection is of no further use
};

class Handler {
 public:
  Handler(view::Viewer* viewer, std::string token, uint16_t port);
  Response Answer(const Request& request) const;
  /// For what never became a request: 400, 408, 431, 503.
  static Response Refusal(int status, std::string_view text);

 private:
  bool KnownHost(std::string_view host) const;
  Response Page() const;

  view::Viewer* viewer_;
  std::string token_, port_;
};

}  // namespace msprobe::serve
