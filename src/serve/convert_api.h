// /api/dirs, /api/conversion, /api/convert...: conversions of dumps. docs/page_api.md is the contract.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "serve/api.h"
#include "serve/converter.h"

namespace msprobe::serve {

/// All of this file; docs/openapi.yaml has the same.
std::vector<ServedRoute> ConvertRoutes();

/// Null when `target` is not a question about conversions. Without a converter dumps are not converted.
std::optional<ApiReply> AnswerConvertQuery(Converter* converter, const RequestTarget& target);
/// True for what is asked by POST.
bool IsConvertChange(std::string_view path);
/// `body` is the JSON that came with it.
ApiReply AnswerConvert(Converter* converter, const RequestTarget& target, std::string_view body);

}  // namespace msprobe::serve
