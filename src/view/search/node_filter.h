// What is wrong with a node, as a set of levels that a search keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "view/file/tree.h"

namespace msprobe::view {

/// What a search keeps: a set of levels as bits, of which one must be the node's; the empty set keeps every node.
enum class NodeFilter : uint16_t {
  kAny = 0,
  kPass = 1,
  kWarning = 2,
  kError = 4,
  kUnmatched = 8,
  kNone = 16,
  kMedium = 32,
  kHigh = 64,
  kCritical = 128,
  kOverflow = kMedium | kHigh | kCritical,
  kUnjudged = 256,
  kBitEqual = 512,
  kRoundOff = 1024,
  kInherited = 2048,
  kSuspicious = 4096,
  kBug = 8192,
  kRewritten = 16384
};

/// Of words with commas between them; "" is kAny; nullopt where one is not a level.
std::optional<NodeFilter> ParseNodeFilter(std::string_view words);

/// The levels of a node, as the bits of a filter. A collection of calls is no op and has none.
unsigned LevelBits(bool compared, const Tree& tree, uint32_t node);

inline bool FilterKeeps(NodeFilter filter, bool compared, const Tree& tree, uint32_t node) {
  return filter == NodeFilter::kAny || (static_cast<unsigned>(filter) & LevelBits(compared, tree, node)) != 0;
}

}  // namespace msprobe::view
