#include "serve/guest_page.h"

#include <utility>

#include "serve/request_target.h"
#include "serve/token.h"

namespace msprobe::serve {

StatusOr<std::unique_ptr<GuestPage>> GuestPage::Make(std::string directory, std::string command) {
  MSP_ASSIGN_OR_RETURN(std::string token, MakeToken());
  return std::unique_ptr<GuestPage>(new GuestPage(std::move(directory), std::move(command), std::move(token)));
}

Status GuestPage::OpenDirectory() {
  const std::lock_guard lock(opening_);
  if (handler_) return OkStatus();
  MSP_ASSIGN_OR_RETURN(viewer_, view::Viewer::Open(directory_));
  if (!command_.empty() && !viewer_->root().empty()) converter_.emplace(command_, viewer_->root());
  handler_ = std::make_unique<Handler>(viewer_.get(), token_, Guest{}, converter_ ? &*converter_ : nullptr);
  return OkStatus();
}

Response GuestPage::Answer(const Request& request) {
  const Status opened = OpenDirectory();
  if (opened.ok()) return handler_->Answer(request);
  // The page itself is there without a directory, and shows this.
  const auto target = ParseTarget(request.target);
  if (target.ok() && (target->path == "/" || target->path == "/index.html")) {
    return Handler(nullptr, token_, Guest{}).Answer(request);
  }
  return Handler::Refusal(404, opened.message());
}

}  // namespace msprobe::serve
