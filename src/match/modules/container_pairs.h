// Which containers of two implementations are one, by the layers in them that are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace msprobe {

/// A module that holds layers: those numbered from `first` up to `last`.
struct LayerSpan {
  uint32_t id = 0;
  bool called = true;  // else it only holds others, as a list does
  size_t first = 0, last = 0;
};

/// Pairs of containers that share most of their layers, those with most in common first; of containers one inside the
/// other with the same layers the outer ones go together, and what is called with what is called. `links`: layers of
/// both sides that are one, or of which one is a part of the other. Containers are listed from the outside in.
std::vector<std::pair<uint32_t, uint32_t>> PairByShare(const std::vector<LayerSpan>& target,
                                                       const std::vector<LayerSpan>& golden,
                                                       const std::vector<std::pair<size_t, size_t>>& links);

}  // namespace msprobe
