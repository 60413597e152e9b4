// The target of a request: `/api/children?file=a%2Fb.vis.db&step=0`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace msprobe::serve {

struct RequestTarget {
  std::string path;
  std::map<std::string, std::string, std::less<>> parameters;

  /// "" when absent.
  std::string_view Get(std::string_view name) const;
  bool Has(std::string_view name) const { return parameters.find(name) != parameters.end(); }
  /// kUsage when the parameter is not an integer, or is absent and there is no `fallback`.
  StatusOr<int64_t> Int(std::string_view name, const int64_t* fallback = nullptr) const;
};

/// kUsage for a malformed escape, a parameter given twice, or a target that is not a path.
StatusOr<RequestTarget> ParseTarget(std::string_view target);

}  // namespace msprobe::serve
