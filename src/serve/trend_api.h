// /api/trend...: the queries about .trend.db files.
#pragma once

#include <string>

#include "serve/request_target.h"
#include "view/query/viewer.h"

namespace msprobe::serve {

StatusOr<std::string> TrendInfo(view::Viewer* viewer, const RequestTarget& target);
StatusOr<std::string> TrendGrid(view::Viewer* viewer, const RequestTarget& target);
StatusOr<std::string> TrendLine(view::Viewer* viewer, const RequestTarget& target);

}  // namespace msprobe::serve
