// /api/...: parameters in, the viewer's answer out. docs/page_api.md is the contract.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/request_target.h"
#include "view/query/viewer.h"

namespace msprobe::serve {

struct ApiReply {
  int status = 200;
  std::string json;
};

/// A path that is answered, and to which method.
struct ServedRoute {
  std::string_view method, path;
};

/// All of this file; docs/openapi.yaml has the same.
std::vector<ServedRoute> ApiRoutes();

ApiReply AnswerApi(view::Viewer* viewer, const RequestTarget& target);
/// True for what is asked by POST.
bool IsChange(std::string_view path);
/// `body` is the JSON that came with it.
ApiReply AnswerChange(view::Viewer* viewer, const RequestTarget& target, std::string_view body);
ApiReply ErrorReply(int status, std::string_view text);

}  // namespace msprobe::serve
