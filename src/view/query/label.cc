#include "view/query/label.h"

#include "base/text.h"

namespace msprobe::view {
namespace {

// Start of the last `count` segments, 0 when there are not more.
size_t TailStart(std::string_view name, int count) {
  size_t at = name.size();
  for (int i = 0; i < count; ++i) {
    if (at == 0) return 0;
    const size_t dot = name.rfind('.', at - 1);
    if (dot == std::string_view::npos) return 0;
    at = dot;
  }
  return at + 1;
}

}  // namespace

std::string_view ShortLabel(std::string_view name, bool is_module, bool child_of_root) {
  if (child_of_root) return name;
  const int keep = is_module ? 4 : 2;
  std::string_view tail = name.substr(TailStart(name, keep));
  if (tail.size() < name.size() && IsDigits(tail.substr(0, tail.find('.'))))
    tail = name.substr(TailStart(name, keep + 1));
  return tail;
}

}  // namespace msprobe::view
