// What matching asks of a dump as a whole: the names of its ops, and the framework they are of.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "dump/reader.h"

namespace msprobe {

enum class Framework : uint8_t { kPyTorch, kMindSpore };

/// By the member "framework" of the dump; dumps of older releases have none and tell it by the types and prefixes of
/// their first ops.
StatusOr<Framework> FrameworkOf(const DumpFile& dump);
std::string_view FrameworkName(Framework framework);

std::vector<std::string_view> OpNames(const DumpFile& dump);

}  // namespace msprobe
