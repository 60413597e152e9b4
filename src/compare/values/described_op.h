// The items of an op, to be looked up by their suffixes.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "compare/values/item_view.h"

namespace msprobe {

struct DescribedOp {
  std::vector<ItemView> items;
  std::unordered_map<std::string_view, size_t> at;  // by suffix, the first of each

  const ItemView* Find(std::string_view suffix) const {
    const auto it = at.find(suffix);
    return it == at.end() ? nullptr : &items[it->second];
  }
};

}  // namespace msprobe
