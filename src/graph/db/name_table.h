// Numbers for names: each distinct text is kept once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/slot_table.h"

namespace msprobe {

/// Numbers count up from 0 in the order of adding. Blocks of text and a table of 8 bytes a slot, so a million names
/// cost little more than their letters.
class NameTable {
 public:
  /// The number of `name`; `*fresh` says whether it is new.
  uint32_t Add(std::string_view name, bool* fresh) { return Add(name, HashName(name), fresh); }
  /// Same, with its HashName().
  uint32_t Add(std::string_view name, uint32_t hash, bool* fresh);
  /// A name of this hash is added soon.
  void Prefetch(uint32_t hash) const { slots_.Prefetch(hash); }
  /// Room for so many names in all.
  void Reserve(size_t names) { slots_.Reserve(names); }
  size_t size() const { return names_.size(); }
  std::string_view operator[](uint32_t number) const { return names_[number]; }

 private:
  std::string_view Keep(std::string_view name);
  std::vector<std::unique_ptr<char[]>> blocks_;  // one that grows would be there twice while it does
  char* next_ = nullptr;
  size_t left_ = 0;  // behind next_
  std::vector<std::string_view> names_;
  SlotTable slots_;
};

}  // namespace msprobe
