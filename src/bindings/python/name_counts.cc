#include "bindings/python/name_counts.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "bindings/python/runtime.h"

namespace msprobe {

int32_t Counter::Next() {
  if (std::exchange(generation, rt().generation) != rt().generation) last = -1;
  return ++last;
}

int32_t NameCounts::NumberOfBackward(int32_t call, bool first) {
  if (std::exchange(generation_, rt().generation) != rt().generation) further_.clear();
  if (first && !further_.contains(call)) return call;
  const int32_t calls = forwards.generation == rt().generation ? forwards.last : -1;
  const int32_t number = std::max(calls, further_.empty() ? -1 : *further_.rbegin()) + 1;
  further_.insert(number);
  return number;
}

NameCounts* CountsOf(const std::string* base) {
  static auto* all = new std::unordered_map<const std::string*, std::unique_ptr<NameCounts>>;
  auto& counts = (*all)[base];
  if (counts == nullptr) counts = std::make_unique<NameCounts>();
  return counts.get();
}

}  // namespace msprobe
