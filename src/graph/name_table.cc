#include "graph/name_table.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace msprobe {
namespace {
constexpr uint64_t kLow = 0xFFFFFFFF;
constexpr size_t kBlockBytes = size_t{1} << 20;
}  // namespace

NameTable::NameTable() : slots_(1024, 0) {}

uint32_t NameTable::Add(std::string_view name, bool* fresh) {
  const uint64_t hash = std::hash<std::string_view>()(name), high = hash & ~kLow;
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const uint64_t slot = slots_[i];
    if (slot == 0) {
      const uint32_t number = static_cast<uint32_t>(names_.size());
      names_.push_back(Keep(name));
      slots_[i] = high | (number + 1);
      if (names_.size() * 2 > slots_.size()) Resize(slots_.size() * 2);
      *fresh = true;
      return number;
    }
    if ((slot & ~kLow) != high) continue;
    const uint32_t number = static_cast<uint32_t>(slot & kLow) - 1;
    if ((*this)[number] != name) continue;
    *fresh = false;
    return number;
  }
}

std::string_view NameTable::Keep(std::string_view name) {
  if (name.size() > left_) {
    left_ = std::max(kBlockBytes, name.size());
    blocks_.emplace_back(new char[left_]);
    next_ = blocks_.back().get();
  }
  char* const at = next_;
  std::copy(name.begin(), name.end(), at);
  next_ += name.size();
  left_ -= name.size();
  return {at, name.size()};
}

void NameTable::Reserve(size_t names) {
  if (names * 2 > slots_.size()) Resize(std::bit_ceil(names * 2));
}

void NameTable::Resize(size_t slots) {
  slots_.assign(slots, 0);
  const size_t mask = slots_.size() - 1;
  for (uint32_t number = 0; number < names_.size(); ++number) {
    const uint64_t hash = std::hash<std::string_view>()((*this)[number]);
    size_t i = hash & mask;
    while (slots_[i] != 0) i = (i + 1) & mask;
    slots_[i] = (hash & ~kLow) | (number + 1);
  }
}

void NameIndex::Reserve(size_t names) {
  if (names * 2 > slots_.size()) Resize(std::bit_ceil(names * 2));
}

void NameIndex::Resize(size_t slots) {
  std::vector<Slot> old(slots);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.number == kNone) continue;
    const std::string_view name(slot.name, slot.size);
    slots_[SlotOf(name, std::hash<std::string_view>()(name))] = slot;
  }
}

void NameIndex::Add(std::string_view name, uint32_t number) {
  Slot& slot = slots_[SlotOf(name, std::hash<std::string_view>()(name))];
  if (slot.number != kNone) return;
  slot = {name.data(), static_cast<uint32_t>(name.size()), number};
  if (++count_ * 2 > slots_.size()) Resize(slots_.size() * 2);
}

}  // namespace msprobe
