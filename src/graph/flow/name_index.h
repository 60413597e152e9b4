// An index of node names that is much smaller than the names: names that differ in numbers only are one pattern
// ("Module.layers.#.mlp.MLP.forward.#"), and a model has few of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace msprobe {

/// The name with every segment that is a number as "#".
std::string NamePattern(std::string_view name);
/// Equal for names with equal patterns.
uint64_t NamePatternHash(std::string_view name);
/// False when no name of this pattern contains `text`; letters A-Z count as a-z. Some names of a pattern for which it
/// is true may still not contain it.
bool PatternMayContain(std::string_view pattern, std::string_view text);

class PatternIndex {
 public:
  struct Pattern {
    std::string text;
    uint32_t nodes = 0;
    std::string packed;  // varints: node, then the distance to each next one
    uint32_t last = 0;
  };
  /// Nodes come in ascending order.
  void Add(uint32_t node, std::string_view name, uint64_t hash);
  /// In the order of their first node.
  const std::vector<Pattern>& patterns() const { return patterns_; }

 private:
  std::vector<Pattern> patterns_;
  std::unordered_map<uint64_t, uint32_t> known_;
};

/// False when the bytes are not a list of nodes.
bool UnpackNodes(std::string_view packed, std::vector<uint32_t>* nodes);

}  // namespace msprobe
