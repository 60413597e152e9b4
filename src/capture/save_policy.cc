#include "capture/save_policy.h"

#include <algorithm>
#include <iterator>

namespace msprobe {

SaveMode SavePolicy::For(const OpName& name) const {
  if (all == SaveMode::kNow || tensor_list.empty()) return all;
  const std::string text = name.str();
  const bool listed = std::any_of(tensor_list.begin(), tensor_list.end(),
                                  [&](const std::string& part) { return text.find(part) != std::string::npos; });
  return listed ? SaveMode::kNow : all;
}

bool ChangesArguments(std::string_view api) {
  api.remove_prefix(api.rfind('.') + 1);  // npos + 1 is 0
  if (!api.ends_with("__")) return api.ends_with('_');
  static constexpr std::string_view kOperators[] = {
      "__iadd__", "__isub__", "__imul__", "__imatmul__", "__itruediv__", "__ifloordiv__", "__idiv__",   "__imod__",
      "__ipow__", "__iand__", "__ior__",  "__ixor__",    "__ilshift__",  "__irshift__",   "__setitem__"};
  return std::find(std::begin(kOperators), std::end(kOperators), api) != std::end(kOperators);
}

}  // namespace msprobe
