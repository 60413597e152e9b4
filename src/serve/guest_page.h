// The page and its queries for a program that has a server already: TensorBoard, through python/msprobe/tensorboard.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/status.h"
#include "serve/handler.h"
#include "view/viewer.h"

namespace msprobe::serve {

/// Thread-safe. Nothing of a request is kept: what a user looks at is known to the tab alone.
class GuestPage {
 public:
  /// `directory` need not be there yet: until then the queries say that it is not.
  static StatusOr<std::unique_ptr<GuestPage>> Make(std::string directory);
  /// `request.target` is the path below the host's place for us, with its query.
  Response Answer(const Request& request);

 private:
  GuestPage(std::string directory, std::string token) : directory_(std::move(directory)), token_(std::move(token)) {}
  Status OpenDirectory();

  std::string directory_, token_;
  std::mutex opening_;
  std::unique_ptr<view::Viewer> viewer_;
  std::unique_ptr<Handler> handler_;
};

}  // namespace msprobe::serve
