// The items of ops of one dump, one op after the other, as tables show them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compare/values/item_view.h"
#include "dump/reader.h"

namespace msprobe {

class ItemViews {
 public:
  ItemViews(const DumpFile& dump, CompareMode mode) : dump_(dump), mode_(mode) {}

  Status Read(size_t op) {
    count_ = 0;
    MSP_RETURN_IF_ERROR(dump_.ParseOp(op, &doc_));
    DescribeOp(dump_.ops().NameAt(op), doc_, mode_, &scratch_, &items_, &count_);
    return OkStatus();
  }
  /// Of the op that was read last.
  std::span<const ItemView> items() const { return {items_.data(), count_}; }

 private:
  const DumpFile& dump_;
  const CompareMode mode_;
  JsonDoc doc_;
  std::vector<Item> scratch_;
  std::vector<ItemView> items_;
  size_t count_ = 0;
};

/// A tensor by its shape and statistics: what is known of it in each op that it goes through.
inline std::string PrintOf(const ItemView& item) {
  std::string out = item.shape;
  for (const StatValue& stat : item.stats) stat.AppendText(&(out += ' '));
  return out;
}

}  // namespace msprobe
