// Hash tables of positions in lists that others keep: eight bytes a slot, no copy of the keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/big_array.h"
#include "base/name_hash.h"

namespace msprobe {

class SlotTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// The position that was entered under this key, or kNone; `same(position)` tells whether that is its key.
  template <typename Same>
  uint32_t Find(uint32_t hash, const Same& same) const {
    if (slots_.empty()) return kNone;
    return static_cast<uint32_t>(slots_[SlotOf(hash, same)]) - 1;
  }

  /// The position that was entered under this key before, or `position`, which is entered now; it is not kNone.
  template <typename Same>
  uint32_t Enter(uint32_t hash, uint32_t position, const Same& same) {
    if ((count_ + 1) * 8 > slots_.size() * 5) Resize(std::max(kFewest, slots_.size() * 2));
    uint64_t& entry = slots_[SlotOf(hash, same)];
    if (entry == 0) {
      entry = uint64_t{hash} << 32 | (position + 1);
      ++count_;
    }
    return static_cast<uint32_t>(entry) - 1;
  }

  /// Room for so many positions in all.
  void Reserve(size_t count) {
    size_t slots = std::max(kFewest, slots_.size());
    while (count * 8 > slots * 5) slots *= 2;
    if (slots > slots_.size()) Resize(slots);
  }

  /// What follows soon asks for this key.
  void Prefetch(uint32_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & (slots_.size() - 1)], 1);
  }

  void clear() {
    slots_ = {};
    count_ = 0;
  }

 private:
  template <typename Same>
  size_t SlotOf(uint32_t hash, const Same& same) const {
    const size_t mask = slots_.size() - 1;
    for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
      const uint64_t entry = slots_[slot];
      if (entry == 0 || (entry >> 32 == hash && same(static_cast<uint32_t>(entry) - 1))) return slot;
    }
  }

  static constexpr size_t kFewest = 1024;

  void Resize(size_t slots) {
    BigArray<uint64_t> grown(slots, 0);
    const size_t mask = grown.size() - 1;
    for (const uint64_t entry : slots_) {
      if (entry == 0) continue;
      size_t slot = (entry >> 32) & mask;
      while (grown[slot] != 0) slot = (slot + 1) & mask;
      grown[slot] = entry;
    }
    slots_ = std::move(grown);
  }

  BigArray<uint64_t> slots_;  // hash, and position + 1; a power of two, at most five eighths taken
  size_t count_ = 0;
};

/// Texts that stay where they are, numbered in the order in which they come first.
class TextIds {
 public:
  uint32_t Find(std::string_view text) const {
    return slots_.Find(HashName(text), [&](uint32_t i) { return texts_[i] == text; });
  }
  bool Has(std::string_view text) const { return Find(text) != SlotTable::kNone; }
  /// True when it is new.
  bool Insert(std::string_view text) {
    const size_t before = texts_.size();
    return Enter(text) == before;
  }
  uint32_t Enter(std::string_view text) {
    const auto next = static_cast<uint32_t>(texts_.size());
    const uint32_t id = slots_.Enter(HashName(text), next, [&](uint32_t i) { return texts_[i] == text; });
    if (id == next) texts_.push_back(text);
    return id;
  }
  size_t size() const { return texts_.size(); }
  std::string_view operator[](uint32_t id) const { return texts_[id]; }

 private:
  BigArray<std::string_view> texts_;
  SlotTable slots_;
};

/// The same of numbers.
class NumberIds {
 public:
  uint32_t Enter(uint64_t number) {
    const auto next = static_cast<uint32_t>(numbers_.size());
    const uint32_t id = slots_.Enter(Hash(number), next, [&](uint32_t i) { return numbers_[i] == number; });
    if (id == next) numbers_.push_back(number);
    return id;
  }
  size_t size() const { return numbers_.size(); }

 private:
  static uint32_t Hash(uint64_t n) {
    n *= 0x9E3779B97F4A7C15;
    return static_cast<uint32_t>(n ^ (n >> 32));
  }
  BigArray<uint64_t> numbers_;
  SlotTable slots_;
};

}  // namespace msprobe
