// The files of -da: every op with its rows as JSON, and the analysis made from them.
#pragma once

#include "base/file.h"
#include "diagnose/diff_analyze.h"
#include "report/rows/row_sink.h"

namespace msprobe {

/// A table of ops as the older tool writes them: {op: {"is_same": .., "op_items": [{column: value, ..}]}}.
class OpsJson : public RowSink {
 public:
  static StatusOr<std::unique_ptr<OpsJson>> Create(RowSettings options, const std::string& path);
  /// For each op of the target, in order.
  const std::vector<bool>& same() const { return same_; }

  void AppendOp(const OpDiff& op, int stack, OpBlock* block) const override;
  Status Take(OpBlock&& block) override;
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
