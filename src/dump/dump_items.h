// The items of ops of one dump, one op after the other.
#pragma once

#include <vector>

#include "dump/flatten.h"
#include "dump/reader.h"

namespace msprobe {

class DumpItems {
 public:
  explicit DumpItems(const DumpFile& dump) : dump_(dump) {}

  /// Those of one op; they and what they point at hold until the next call.
  StatusOr<std::vector<Item>*> Read(uint32_t op) {
    MSP_RETURN_IF_ERROR(dump_.ParseOp(op, &doc_));
    items_.clear();
    FlattenOp(dump_.ops().NameAt(op), doc_, &items_);
    return &items_;
  }

 private:
  const DumpFile& dump_;
  JsonDoc doc_;
  std::vector<Item> items_;
};

}  // namespace msprobe
