#include "report/rows/unmatched_table.h"

#include <memory>

#include "sheet/table.h"

namespace msprobe {
namespace {

constexpr size_t kRowsPerBlock = 4096;

struct LoneOp {
  bool target;
  uint32_t op;
};

BigArray<LoneOp> LoneOps(const DumpPair& pair) {
  BigArray<LoneOp> out;
  for (uint32_t i = 0; i < pair.plan.golden_of.size(); ++i) {
    if (pair.plan.golden_of[i] == kNoOp && !pair.plan.Skips(i) && !pair.plan.NotSeen(i)) out.push_back({true, i});
  }
  for (const uint32_t g : pair.plan.golden_only) out.push_back({false, g});
  return out;
}

/// Null when there is none or it cannot be read: the comparison itself says so.
std::shared_ptr<const ParentIndex> ParentsOf(const DumpFile& dump) {
  StatusOr<std::shared_ptr<const ParentIndex>> parents = dump.Parents();
  return parents.ok() ? std::move(*parents) : nullptr;
}

}  // namespace

StatusOr<std::vector<std::string>> WriteUnmatched(const DumpPair& pair, const std::string& path) {
  const BigArray<LoneOp> ops = LoneOps(pair);
  TableSpec spec;
  spec.path = path;
  spec.columns = {"Side", "Name", "Position", "Module", "Stack_Info"};
  MSP_ASSIGN_OR_RETURN(const std::unique_ptr<ResultTable> table, CreateTable(spec, ops.size()));
  const std::shared_ptr<const ParentIndex> target = ParentsOf(*pair.target), golden = ParentsOf(*pair.golden);
  RowBlock block;
  std::string position, stack;
  for (const LoneOp& lone : ops) {
    const std::string_view name = (lone.target ? pair.target : pair.golden)->ops().NameAt(lone.op);
    const ParentIndex* parents = (lone.target ? target : golden).get();
    const std::string_view module = parents ? parents->ParentOf(name) : std::string_view();
    const auto id = lone.target && pair.stacks ? pair.stacks->StackOf(name) : std::nullopt;
    stack = id ? StackCell(pair.stacks->Frames(*id)) : std::string(kNotAvailableCell);
    position = std::to_string(lone.op);
    AppendTextRow(*table,
                  {lone.target ? "NPU" : "Bench", name, position, module.empty() ? kNotAvailableCell : module, stack},
                  &block);
    if (block.row_ends.size() < kRowsPerBlock) continue;
    MSP_RETURN_IF_ERROR(table->Take(std::move(block)));
    block = RowBlock();
  }
  MSP_RETURN_IF_ERROR(table->Take(std::move(block)));
  MSP_RETURN_IF_ERROR(table->Commit());
  return table->paths();
}

}  // namespace msprobe
