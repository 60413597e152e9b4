// Where the rows of a comparison go: each sink formats them as RowColumns gives them, and takes blocks in order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compare/pair/compare.h"
#include "report/rows/row_columns.h"

namespace msprobe {

/// As ResultTable, of ops.
class RowSink : public RowFormat {
 public:
  virtual Status Take(OpBlock&& block) = 0;
  virtual Status Commit() = 0;
  virtual const std::vector<std::string>& paths() const = 0;
};

/// A table at `path`, csv or workbook; of a workbook `total_rows` must be known before.
StatusOr<std::unique_ptr<RowSink>> CreateTableSink(const RowSettings& options, const std::string& path,
                                                   uint64_t total_rows);

/// For a comparison that writes nothing.
class NoRows : public RowSink {
 public:
  void AppendOp(const OpDiff&, int, OpBlock*) const override {}
  Status Take(OpBlock&&) override { return OkStatus(); }
  Status Commit() override { return OkStatus(); }
  const std::vector<std::string>& paths() const override { return paths_; }

 private:
  std::vector<std::string> paths_;
};

}  // namespace msprobe
