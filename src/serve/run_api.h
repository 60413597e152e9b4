// /api/run...: what the page asks of monitored runs.
#pragma once

#include <string>

#include "base/status.h"
#include "serve/request_target.h"
#include "view/query/viewer.h"

namespace msprobe::serve {

StatusOr<std::string> RunOverview(view::Viewer* viewer, const RequestTarget& t);
StatusOr<std::string> RunRows(view::Viewer* viewer, const RequestTarget& t);
StatusOr<std::string> RunTile(view::Viewer* viewer, const RequestTarget& t);
StatusOr<std::string> RunEvents(view::Viewer* viewer, const RequestTarget& t);

}  // namespace msprobe::serve
