// The HTTP server behind `msprobe serve`: loopback only, a token in every query, POST only where something is changed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "view/query/viewer.h"

namespace msprobe::serve {

struct ServerOptions {
  uint16_t port = 0;  ///< 0: a free one
  std::string token;  ///< "": a new one
  int threads = 4;    ///< answers that are worked on at the same time
  int max_connections = 128;
  std::chrono::milliseconds request_timeout{15000};  ///< for a whole request, and for a whole answer to be taken
  std::string converter;  ///< the msprobe command that converts dumps; "": nothing can be converted
};

class Server {
 public:
  /// Binds 127.0.0.1. kBadInput when the port is taken.
  static StatusOr<std::unique_ptr<Server>> Start(std::unique_ptr<view::Viewer> viewer, const ServerOptions& options);
  ~Server();
  uint16_t port() const;
  const std::string& token() const;
  /// http://127.0.0.1:PORT/?token=T
  std::string url() const;
  /// Answers requests until Stop() or Ctrl-C.
  Status Run();
  /// From any thread.
  void Stop();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe::serve
