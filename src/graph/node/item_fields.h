// The items of a node as its row shows them: all fields that the dump has, and those that readers count on.
#pragma once

#include <string_view>
#include <vector>

#include "compare/values/item_view.h"

namespace msprobe {

struct ItemField {
  std::string_view key;
  StatValue value;
};

/// Describes the items of `op` like DescribeOp; of two of one name the later one stands in the place of the first.
void DescribeNode(std::string_view node, const JsonValue& op, CompareMode mode, std::vector<Item>* scratch,
                  std::vector<ItemView>* items, size_t* count);

/// The fields of an item in the order of the dump, then those that it lacks. `checksums`: also the checksum.
void ListFields(const ItemView& item, bool checksums, std::vector<ItemField>* out);

/// An item without a value, which a row shows as a single null.
bool IsShownAsNull(const ItemView& item);

}  // namespace msprobe
