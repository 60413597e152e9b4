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

}  // namespace msprobe
