// Curves out of the event files of TensorBoard: records of TFRecord, each a protobuf message.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "curves/curve.h"

namespace msprobe {

/// The bytes of event files of one run, in the order of their names. A file that breaks off gives what is before, which
/// is noted. kBadInput for damaged records, and where no tag is a loss.
StatusOr<RunCurves> ReadEventCurves(const std::vector<std::string_view>& files, const std::string& path,
                                    const CurveNames& names);

/// "events.out.tfevents.1700000000.host"
bool IsEventFile(std::string_view name);

}  // namespace msprobe
