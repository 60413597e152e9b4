#include "jobs/table_size.h"

#include "base/file.h"
#include "dump/flatten.h"
#include "dump/output_bound.h"
#include "dump/reader.h"
#include "json/value.h"
#include "sheet/table.h"

namespace msprobe {
namespace {

// A row beside its names, and what a workbook makes of it.
constexpr uint64_t kFigures = 310, kItemName = 10;
constexpr double kPacked = 0.45;

/// Of the rows of an op: two names each, and the stack once.
StatusOr<uint64_t> OpRows(const DumpFile& dump, const StackFile* stacks, size_t i, JsonDoc* doc) {
  MSP_RETURN_IF_ERROR(dump.ParseOp(i, doc));
  std::vector<Item> items;
  const std::string_view name = dump.ops().NameAt(i);
  FlattenOp(name, *doc, &items);
  uint64_t bytes = items.size() * (2 * (name.size() + kItemName) + kFigures);
  const auto stack = stacks ? stacks->StackOf(name) : std::nullopt;
  if (stack && !items.empty()) bytes += StackCell(stacks->Frames(*stack)).size();
  return bytes;
}

/// Bytes of table for each byte of the dump.
StatusOr<double> RatioOf(const CompareSettings& request, const std::string& path) {
  constexpr size_t kLookedAt = 200;  // ops
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(path));
  std::optional<StackFile> stacks;
  const std::string stack_path = JoinPath(DirName(path), "stack.json");
  if (request.stacks && IsRegularFile(stack_path)) {
    MSP_ASSIGN_OR_RETURN(stacks, StackFile::Open(stack_path));
  }
  const size_t ops = dump.ops().size(), each = std::max<size_t>(1, ops / kLookedAt);
  uint64_t text = 0, rows = 0;
  JsonDoc doc;
  for (size_t i = 0; i < ops; i += each) {
    MSP_ASSIGN_OR_RETURN(const uint64_t bytes, OpRows(dump, stacks ? &*stacks : nullptr, i, &doc));
    rows += bytes;
    text += dump.ops().LengthAt(i);
  }
  return text == 0 ? 0 : static_cast<double>(rows) / static_cast<double>(text);
}

}  // namespace

StatusOr<uint64_t> EstimateTables(const CompareSettings& request, const PathPlan& plan) {
  uint64_t bytes = 0;
  for (const FilePair& pair : plan.pairs) bytes += FileBytes(pair.target);
  for (const FilePair& pair : plan.pairs) {
    // What cannot be read is told when it is compared.
    const StatusOr<double> ratio = RatioOf(request, pair.target);
    if (ratio.ok()) return static_cast<uint64_t>(static_cast<double>(bytes) * *ratio * (request.xlsx ? kPacked : 1));
  }
  return bytes;
}

}  // namespace msprobe
