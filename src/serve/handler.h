// One request in, one answer out; no sockets here, so that it can be tested and fuzzed by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/api.h"
#include "serve/converter.h"
#include "view/query/viewer.h"

namespace msprobe::serve {

struct Request {
  std::string_view method, target, host, token;  ///< `token`: of the X-Msprobe-Token header
  std::string_view origin, content_type;
  bool has_body = false;
  std::optional<uint64_t> body_bytes;  ///< as announced
  std::string_view body;
};

struct Response {
  int status = 200;
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;  ///< security headers and the like
  std::string body;
  bool close = false;  ///< the connection is of no further use
};

/// A handler inside another program's server, which decides who reaches it (TensorBoard).
struct Guest {};

class Handler {
 public:
  static constexpr uint64_t kMaxBodyBytes = 64 << 10;
  /// Without a converter dumps are not converted.
  Handler(view::Viewer* viewer, std::string token, uint16_t port, Converter* converter = nullptr);
  /// The page is given to whom the host lets in, with the token inside, and may stand in a frame of the host's.
  Handler(view::Viewer* viewer, std::string token, Guest, Converter* converter = nullptr);
  Response Answer(const Request& request) const;
  /// Whether the request shows the token, whatever is answered to it.
  bool ShowsToken(const Request& request) const;
  /// Whatever is answered with more than an error.
  static std::vector<ServedRoute> Routes();
  /// Nothing when the request, of which only the head is known, is one whose body should be read.
  std::optional<Response> RefuseBody(const Request& request) const;
  /// For what never became a request: 400, 408, 431, 503.
  static Response Refusal(int status, std::string_view text);

 private:
  bool KnownHost(std::string_view host) const;
  bool OwnOrigin(const Request& request) const;
  std::optional<Response> RefuseHead(const Request& request) const;
  Response Change(const Request& request) const;
  Response Page() const;
  Response CheckTablePage(std::string_view file) const;
  Response ReportPageOf(std::string_view file) const;
  static Response WithNonce(std::string_view html);
  Response GuestPage() const;

  view::Viewer* viewer_;
  Converter* converter_ = nullptr;
  std::string token_, port_;
  bool guest_ = false;
};

}  // namespace msprobe::serve
