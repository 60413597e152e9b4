// Records as JSON text.
#pragma once

#include <string>

#include "capture/framework_names.h"
#include "capture/record.h"
#include "json/writer.h"

namespace msprobe {

/// Writes `"name": {members}`, or `"name": value`, to a stream that stands inside the "data" object.
void FormatRecord(const Record& record, const FrameworkNames& names, JsonWriter* out);

/// Writes the value of a bare record alone, to a stream at the beginning of a text.
void FormatValue(const Record& record, const FrameworkNames& names, JsonWriter* out);

/// `json` is text of json.dumps(indent=1); appends it as it stands `depth` levels deep.
void AppendIndented(std::string* out, std::string_view json, int depth);

}  // namespace msprobe
