// An argument that its op does not read.
#pragma once

#include <string_view>
#include <vector>

#include "compare/values/item_view.h"

namespace msprobe {

/// Whether the op `name`, which has the first `count` of `items`, reads nothing of the one in `at`: what copy_() writes
/// over, what baddbmm() is given with beta=0.
bool IsNotRead(std::string_view name, const std::vector<ItemView>& items, size_t count, size_t at);

}  // namespace msprobe
