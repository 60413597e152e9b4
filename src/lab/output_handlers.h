// Functions of the user that change outputs before they are judged, such as of ops that leave a part of their memory as
// it was.
#pragma once

#include <map>
#include <string>

#include "base/status.h"

namespace msprobe {

/// A Python file and a function in it, called with (api_name, output, args, kwargs).
struct OutputHandler {
  std::string file, function;
};

/// By the name of the op, as "matmul" or "linalg.inv".
struct OutputHandlers {
  std::map<std::string, OutputHandler, std::less<>> target, golden;
};

/// Of a YAML file in the form of mindstudio-probe's api_output_postprocess.yaml: acc_check_handlers with maps `target`
/// and `golden` of "file.py:function". Files are beside it, unless their paths are absolute.
StatusOr<OutputHandlers> ReadOutputHandlers(const std::string& path);

}  // namespace msprobe
