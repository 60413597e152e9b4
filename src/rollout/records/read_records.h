// The records of rollouts that programs write: jsonl, json, and dicts in files of torch.save().
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "rollout/evidence.h"

namespace msprobe {

inline constexpr size_t kMostRequests = size_t{1} << 20;

/// Adds the requests of a file; nothing where it holds none. kBadInput for what cannot be read or is too large.
/// `numbers` is what the side may still hold.
Status ReadRecordFile(const std::string& path, RolloutSide side, size_t* numbers, RolloutRecords* out);

/// The same of a text; `path` is for messages.
Status ReadRecordText(std::string_view text, const std::string& path, RolloutSide side, size_t* numbers,
                      RolloutRecords* out);

}  // namespace msprobe
