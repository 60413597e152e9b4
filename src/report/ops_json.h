// The files of -da: every op with its rows as JSON, and the analysis made from them.
#pragma once

#include "diagnose/diff_analyze.h"
#include "report/table.h"

namespace msprobe {

/// A table of ops as the older tool writes them: {op: {"is_same": .., "op_items": [{column: value, ..}]}}.
class OpsJson : public ResultTable {
 public:
  static StatusOr<std::unique_ptr<OpsJson>> Create(const TableSpec& spec);
  /// For each op of the target, in order.
  const std::vector<bool>& same() const { return same_; }

  const RowFormat& format() const override { return *format_; }
  Status Take(RowBlock&& block) override;
  Status Commit() override;
  const std::vector<std::string>& paths() const override { return paths_; }

 private:
  OpsJson(OutputFile file, std::unique_ptr<RowFormat> format) : file_(std::move(file)), format_(std::move(format)) {}
  OutputFile file_;
  std::unique_ptr<RowFormat> format_;
  std::vector<bool> same_;
  std::vector<std::string> paths_;
};

/// The thresholds of -da are about statistics, which dumps of tensors hold, too.
void UseStatistics(DumpPair* pair);

/// {"rank_0": [{"op_name": .., "data_info": {"input": .., "output": ..}, "stack_info": [..]}], ..}
StatusOr<std::string> SuspectsJson(const std::vector<Suspect>& suspects, const Mapping& mapping);

}  // namespace msprobe
