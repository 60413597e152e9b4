#include "view/search/op_name.h"

#include "base/text.h"

namespace msprobe::view {

std::string_view OpNameOf(std::string_view node_name) {
  constexpr size_t kNone = std::string_view::npos;
  size_t end = kNone;
  for (const std::string_view pass : {".forward", ".backward", ".parameters_grad"}) {
    for (size_t at = node_name.rfind(pass); at != kNone && at > 0; at = node_name.rfind(pass, at - 1)) {
      const std::string_view behind = node_name.substr(at + pass.size());
      if (!behind.empty() && behind[0] != '.') continue;
      if (end == kNone || at > end) end = at;
      break;
    }
  }
  if (end == kNone) return {};
  std::string_view name = node_name.substr(0, end);
  const size_t first = name.find('.');
  if (first == kNone) return {};
  const std::string_view kind = name.substr(0, first);
  if (kind == "Module" || kind == "Cell") return name.substr(name.rfind('.') + 1);
  name.remove_prefix(first + 1);
  const size_t call = name.rfind('.');
  return call != kNone && IsDigits(name.substr(call + 1)) ? name.substr(0, call) : name;
}

}  // namespace msprobe::view
