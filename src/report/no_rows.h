// The table of a comparison that writes nothing.
#pragma once

#include <string>
#include <vector>

#include "report/table.h"

namespace msprobe {

class NoRows : public RowFormat, public ResultTable {
 public:
  void AppendOp(const OpDiff&, int, RowBlock*) const override {}
  const RowFormat& format() const override { return *this; }
  Status Take(RowBlock&&) override { return OkStatus(); }
  Status Commit() override { return OkStatus(); }
  const std::vector<std::string>& paths() const override { return paths_; }

 private:
  std::vector<std::string> paths_;
};

}  // namespace msprobe
