// A script of plain torch for one call of a dump.
#pragma once

#include <string>

#include "base/status.h"
#include "dump/reader.h"
#include "lab/scripts/op_script_settings.h"

namespace msprobe {

/// The text of the script `file`. kBadInput for a call that plain torch cannot make.
StatusOr<std::string> TorchScript(const OpScriptSettings& settings, const DumpFile& dump, const std::string& file);

}  // namespace msprobe
