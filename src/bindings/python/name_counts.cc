#include "bindings/python/name_counts.h"

#include <memory>
#include <unordered_map>
#include <utility>

#include "bindings/python/runtime.h"

namespace msprobe {

int32_t Counter::Next() {
  if (std::exchange(generation, rt().generation) != rt().generation) last = -1;
  return ++last;
}

NameCounts* CountsOf(const std::string* base) {
  static auto* all = new std::unordered_map<const std::string*, std::unique_ptr<NameCounts>>;
  auto& counts = (*all)[base];
  if (counts == nullptr) counts = std::make_unique<NameCounts>();
  return counts.get();
}

}  // namespace msprobe
