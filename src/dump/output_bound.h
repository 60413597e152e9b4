// How much a command may write without being told to: what nobody reads should not fill a disk.
#pragma once

#include <cstdint>
#include <string>

#include "base/message.h"
#include "base/status.h"

namespace msprobe {

inline constexpr uint64_t kDefaultOutLimit = uint64_t{10} << 30;

/// Of so many steps and ranks together a command says what it will write.
inline constexpr size_t kManyRanks = 16;

/// Of a file; 0 for one that is not there.
uint64_t FileBytes(const std::string& path);

/// "1.9 GB".
std::string BytesText(double bytes);

/// kUsage where about `bytes` in `files` files would be more than `limit`; 0 is no limit. `ways` says what writes less.
Status CheckOutput(uint64_t bytes, uint64_t files, uint64_t limit, const Message& ways);

}  // namespace msprobe
