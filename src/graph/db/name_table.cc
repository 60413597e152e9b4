#include "graph/db/name_table.h"

#include <algorithm>

namespace msprobe {
namespace {
constexpr size_t kBlockBytes = size_t{1} << 20;
}  // namespace

uint32_t NameTable::Add(std::string_view name, uint32_t hash, bool* fresh) {
  const auto next = static_cast<uint32_t>(names_.size());
  const uint32_t number = slots_.Enter(hash, next, [&](uint32_t i) { return names_[i] == name; });
  *fresh = number == next;
  if (*fresh) names_.push_back(Keep(name));
  return number;
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

}  // namespace msprobe
