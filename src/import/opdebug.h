// What Ascend records when a kernel overflows: the payload of files "Opdebug.Node_OpDebug...", in two forms.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace msprobe {

/// As the JSON that the earlier tool and MindSpore write of it, with an indent of four blanks and without a line end.
/// kBadInput for bytes of neither form; `path` names them.
StatusOr<std::string> OpdebugJson(std::string_view bytes, const std::string& path);

/// "Opdebug.Node_OpDebug.65535.65535.1735704000008000".
bool IsOpdebugName(std::string_view file_name);

}  // namespace msprobe
