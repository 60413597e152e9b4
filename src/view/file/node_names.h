// Names of nodes, each once, numbered in the order in which they came. Both sides of a graph, and all graphs of a file,
// can share one list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe::view {

class NodeNames {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  void Reserve(size_t names);
  /// At the end, whether or not an equal one is there. kBadInput for what no graph tool writes.
  Status Append(std::string_view name);
  /// The number of an equal name, or of the new one.
  StatusOr<uint32_t> Intern(std::string_view name);
  /// After the last Append: lets Find know the appended names; of equal ones it finds the first.
  void Index();

  uint32_t size() const { return static_cast<uint32_t>(sizes_.size()); }
  std::string_view operator[](uint32_t i) const {
    return {chunks_[places_[i] >> kChunkBits].text.get() + (places_[i] & kChunkMask), sizes_[i]};
  }
  /// kNone when there is no such name.
  uint32_t Find(std::string_view name) const;
  /// For each name whether `needle`, which has no capital letters A-Z, stands in it, letters A-Z in either case.
  std::vector<uint8_t> Containing(std::string_view needle) const;
  size_t bytes() const;

 private:
  // Names stand in pieces of memory that never move, so that a long list is not copied while it grows.
  static constexpr unsigned kChunkBits = 20;
  static constexpr uint32_t kChunkMask = (1u << kChunkBits) - 1;
  struct Chunk {
    std::unique_ptr<char[]> text;
    uint32_t used = 0;
  };
  size_t SlotOf(std::string_view name) const;
  void MarkContaining(size_t chunk, std::string_view needle, std::vector<uint8_t>* found) const;
  void Grow();

  std::vector<Chunk> chunks_;
  std::vector<uint32_t> places_;  // number of the chunk, place in it
  std::vector<uint16_t> sizes_;
  std::vector<uint32_t> slots_;  // open addressing
};

/// First place at or behind `from` where `needle` stands in `text`, letters A-Z in either case; `needle` has no capital
/// ones and is not empty.
size_t FindNoCase(std::string_view text, std::string_view needle, size_t from);

}  // namespace msprobe::view
