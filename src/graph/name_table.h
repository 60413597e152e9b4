// Numbers for names: each distinct text is kept once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

/// Numbers count up from 0 in the order of adding. One block of text and a table of 8 bytes a slot, so a million names
/// cost little more than their letters.
class NameTable {
 public:
  NameTable();
  /// The number of `name`; `*fresh` says whether it is new.
  uint32_t Add(std::string_view name, bool* fresh);
  size_t size() const { return ends_.size(); }
  std::string_view operator[](uint32_t number) const {
    const uint64_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(text_).substr(begin, ends_[number] - begin);
  }

 private:
  void Grow();
  std::string text_;
  std::vector<uint64_t> ends_;
  std::vector<uint64_t> slots_;  // hash in the upper half, number + 1 in the lower
};

}  // namespace msprobe
