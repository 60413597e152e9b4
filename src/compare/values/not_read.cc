#include "compare/values/not_read.h"

#include <algorithm>

#include "base/text.h"
#include "ops/first_argument.h"
#include "ops/op_name.h"

namespace msprobe {

bool IsNotRead(std::string_view name, const std::vector<ItemView>& items, size_t count, size_t at) {
  if (items[at].suffix != ".input.0" || !items[at].tensor || !EndsWith(name, ".forward")) return false;
  const FirstArgument first = FirstArgumentOf(WithoutRankSuffix(ApiOf(name)));
  if (first != FirstArgument::kReadUnlessNoBeta) return first == FirstArgument::kReplaced;
  return std::any_of(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(count), [](const ItemView& item) {
    const StatValue& beta = item.stats[kMax];
    return item.suffix == ".input.beta" && !item.tensor && beta.IsNumber() && beta.AsDouble() == 0;
  });
}

}  // namespace msprobe
