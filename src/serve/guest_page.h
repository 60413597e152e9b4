// The page and its queries for a program that has a server already: TensorBoard, through python/msprobe/tensorboard.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "serve/converter.h"
#include "serve/handler.h"
#include "view/query/viewer.h"

namespace msprobe::serve {

/// Thread-safe. Nothing of a request is kept: what a user looks at is known to the tab alone.
class GuestPage {
 public:
  /// `directory` need not be there yet: until then the queries say that it is not. `command` is the msprobe that
  /// converts dumps below it; "": nothing can be converted.
  static StatusOr<std::unique_ptr<GuestPage>> Make(std::string directory, std::string command = {});
  /// `request.target` is the path below the host's place for us, with its query.
  Response Answer(const Request& request);

 private:
  GuestPage(std::string directory, std::string command, std::string token)
      : directory_(std::move(directory)), command_(std::move(command)), token_(std::move(token)) {}
  Status OpenDirectory();

  const std::string directory_, command_, token_;
  std::mutex opening_;
  std::unique_ptr<view::Viewer> viewer_;
  std::optional<Converter> converter_;
  std::unique_ptr<Handler> handler_;
};

}  // namespace msprobe::serve
