// Numbers for names: each distinct text is kept once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

/// Numbers count up from 0 in the order of adding. Blocks of text and a table of 8 bytes a slot, so a million names
/// cost little more than their letters.
class NameTable {
 public:
  NameTable();
  /// The number of `name`; `*fresh` says whether it is new.
  uint32_t Add(std::string_view name, bool* fresh);
  /// Room for so many names in all.
  void Reserve(size_t names);
  size_t size() const { return names_.size(); }
  std::string_view operator[](uint32_t number) const { return names_[number]; }

 private:
  std::string_view Keep(std::string_view name);
  void Resize(size_t slots);
  std::vector<std::unique_ptr<char[]>> blocks_;  // one that grows would be there twice while it does
  char* next_ = nullptr;
  size_t left_ = 0;  // behind next_
  std::vector<std::string_view> names_;
  std::vector<uint64_t> slots_;  // hash in the upper half, number + 1 in the lower
};

/// Numbers for names that belong to someone else. The first number of a name stays.
class NameIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  NameIndex() : slots_(64) {}
  void Reserve(size_t names);
  /// kNone when it is not there.
  uint32_t Find(std::string_view name) const {
    return slots_[SlotOf(name, std::hash<std::string_view>()(name))].number;
  }
  void Add(std::string_view name, uint32_t number);

 private:
  struct Slot {
    const char* name = nullptr;
    uint32_t size = 0, number = kNone;
  };
  size_t SlotOf(std::string_view name, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t i = hash & mask;
    while (slots_[i].number != kNone &&
           (slots_[i].size != name.size() || std::string_view(slots_[i].name, slots_[i].size) != name)) {
      i = (i + 1) & mask;
    }
    return i;
  }
  void Resize(size_t slots);
  std::vector<Slot> slots_;  // a power of two, at most half of them taken
  size_t count_ = 0;
};

}  // namespace msprobe
