// Logs, csv, event files and states of trainers: curves rise in their steps, refusals are one line.
#include <string_view>

#include "curves/event_curves.h"
#include "curves/line_pattern.h"
#include "curves/log_curves.h"
#include "curves/table_curves.h"
#include "fuzz_file.h"

namespace {

using namespace msprobe;

void CheckRead(const StatusOr<RunCurves>& read) {
  if (!read.ok()) {
    fuzz::CheckRefusal(read.status());
    fuzz::Check(read.status().message().find('\n') == std::string::npos, "a refusal is one line");
    return;
  }
  for (const Curve& curve : read->curves) {
    fuzz::Check(curve.steps.size() == curve.values.size() && curve.steps.size() == curve.units.size(), "as long");
    for (size_t i = 1; i < curve.size(); ++i) fuzz::Check(curve.steps[i - 1] < curve.steps[i], "steps rise");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  CheckRead(ReadLogCurves(text, "in", {}));
  CheckRead(ReadCsvCurves(text, "in", {}));
  CheckRead(ReadTrainerState(text, "in", {}));
  CheckRead(ReadEventCurves({text}, "in", {}));
  const size_t line = text.find('\n');
  if (line == std::string_view::npos || line > 200) return 0;
  if (const auto pattern = LinePattern::Parse(text.substr(0, line)); pattern.ok()) {
    (void)pattern->Find(text.substr(line + 1, 2000));
  } else {
    fuzz::Check(pattern.status().code() == Code::kUsage, "a bad pattern is a usage error");
  }
  return 0;
}
