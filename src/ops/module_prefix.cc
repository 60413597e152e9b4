#include "ops/module_prefix.h"

#include "base/text.h"

namespace msprobe {
namespace {

struct Prefix {
  std::string_view module, first_chunk;
};
constexpr Prefix kPrefixes[] = {{"Module.", "Module.0."}, {"Cell.", "Cell.0."}};

}  // namespace

std::string_view ModulePrefix(size_t count, const std::function<std::string_view(size_t)>& name_at) {
  std::string_view found;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = name_at(i);
    for (const Prefix& prefix : kPrefixes) {
      if (!StartsWith(name, prefix.module)) continue;
      if (!StartsWith(name, prefix.first_chunk)) return prefix.module;
      found = prefix.first_chunk;
    }
  }
  return found;
}

std::string WithPrefix(std::string_view name, std::string_view from, std::string_view to) {
  return StartsWith(name, from) ? std::string(to).append(name.substr(from.size())) : std::string(name);
}

}  // namespace msprobe
