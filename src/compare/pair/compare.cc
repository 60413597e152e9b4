#include "compare/pair/compare.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compare/pair/op_at.h"
#include "compare/pair/read_ahead.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

constexpr size_t kOpsPerBlock = 256;
constexpr uint64_t kBytesPerBlock = 1 << 20;  // of one dump's text
constexpr size_t kBlocksAlive = 8;
// Tensors take far longer than text, and one may be a thousand times longer than the next.
constexpr size_t kOpsPerTensorBlock = 2, kTensorBlocksAlive = 64;
constexpr uint64_t kReleaseBytes = 8 << 20;  // pages are given back in pieces of this size

/// What a thread needs to compare an op; kept from block to block.
struct Workspace {
  JsonDoc target, golden;
  OpDiff diff;
};

/// Workspaces that no block uses at the moment.
class WorkspacePool {
 public:
  std::unique_ptr<Workspace> Get() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Workspace>();
    auto out = std::move(free_.back());
    free_.pop_back();
    return out;
  }
  void Put(std::unique_ptr<Workspace> workspace) {
    std::lock_guard lock(mutex_);
    free_.push_back(std::move(workspace));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> free_;
};

struct Block {
  OpBlock rows;
  CompareCounts counts;
  std::vector<OpDistance> distances;
  uint64_t target_end = 0, golden_end = 0;  // bytes of the files that were read
  uint64_t unread = 0, custom_failed = 0;
  std::string first_unread, first_custom_failed;
};

void Count(const OpDiff& diff, CompareCounts* counts) {
  if (diff.skipped) return;
  counts->ops += 1;
  counts->matched_ops += diff.matched;
  counts->rows += diff.rows_used;
  for (size_t i = 0; i < diff.rows_used; ++i) {
    const Verdict v = diff.rows[i].verdict;
    ++(v == Verdict::kError ? counts->error : v == Verdict::kWarning ? counts->warning : counts->pass);
  }
}

/// First op of each block, and the number of ops at the end.
std::vector<size_t> PlanBlocks(const DumpFile& target, const DumpFile* golden, const MatchPlan* plan,
                               size_t ops_per_block) {
  const OpList& ops = target.ops();
  std::vector<size_t> starts{0};
  uint64_t target_bytes = 0, golden_bytes = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const bool full =
        target_bytes >= kBytesPerBlock || golden_bytes >= kBytesPerBlock || i - starts.back() == ops_per_block;
    if (full) {
      starts.push_back(i);
      target_bytes = golden_bytes = 0;
    }
    target_bytes += ops.LengthAt(i);
    if (golden && plan->golden_of[i] != kNoOp) golden_bytes += golden->ops().LengthAt(plan->golden_of[i]);
  }
  starts.push_back(ops.size());
  return starts;
}

void NoteTensors(const OpDiff& diff, bool log, Block* block) {
  for (size_t i = 0; i < diff.rows_used; ++i) {
    const TensorDiff& tensor = diff.tensors[i];
    if (tensor.outcome == TensorOutcome::kUnreadable) {
      if (block->unread++ == 0) block->first_unread = tensor.note;
    }
    if (!tensor.custom_error.empty() && block->custom_failed++ == 0) block->first_custom_failed = tensor.custom_error;
    if (log) block->rows.log += TensorLogLine(diff.target[i].name, tensor);
  }
}

StatusOr<Block> MakeBlock(const DumpPair& pair, const RowFormat& format, size_t first, size_t end, bool log,
                          WorkspacePool* pool) {
  Block block;
  std::unique_ptr<Workspace> space = pool->Get();
  for (size_t i = first; i < end; ++i) {
    const OpSpan op = pair.target->ops()[i];
    if (!pair.chosen.empty() && !pair.chosen[i]) {
      block.distances.emplace_back();
      continue;
    }
    MSP_RETURN_IF_ERROR(DiffOpAt(pair, i, &space->target, &space->golden, &space->diff));
    int stack = -1;
    if (pair.stacks) {
      if (const auto id = pair.stacks->StackOf(op.name)) stack = static_cast<int>(*id);
    }
    const bool ignored = HasArbitraryValues(op.name);
    const OpDistance distance = ignored ? OpDistance() : DistanceOf(space->diff, pair.options.mode);
    if (pair.options.contexts) MeasureRows(pair.options.mode, distance, (*pair.options.contexts)[i], &space->diff);
    format.AppendOp(space->diff, stack, &block.rows);
    Count(space->diff, &block.counts);
    if (pair.tensors) NoteTensors(space->diff, log, &block);
    block.distances.push_back(distance);
    block.target_end = std::max(block.target_end, op.offset + op.length);
    if (const uint32_t g = pair.plan.golden_of[i]; g != kNoOp) {
      const OpSpan partner = pair.golden->ops()[g];
      block.golden_end = std::max(block.golden_end, partner.offset + partner.length);
    }
  }
  pool->Put(std::move(space));
  return block;
}

/// Gives back the pages of a file that the comparison has passed, so that a dump larger than memory does not push
/// others out.
class PageReleaser {
 public:
  explicit PageReleaser(const MappedFile& file) : file_(file) {}
  void PassedTo(uint64_t end) {
    if (end < done_ + kReleaseBytes) return;
    file_.Release(done_, end);
    done_ = end;
  }

 private:
  const MappedFile& file_;
  uint64_t done_ = 0;
};

}  // namespace

StatusOr<CompareOutcome> ComparePair(const DumpPair& pair, const RowFormat& format,
                                     const std::function<Status(OpBlock&&)>& take, const Progress& progress,
                                     const SeenSoFar& seen, bool log) {
  CompareOutcome outcome;
  WorkspacePool pool;
  ReadAhead read_ahead(pair);
  PageReleaser target_pages(pair.target->file()), golden_pages(pair.golden->file());
  const size_t ops = pair.target->ops().size();
  const std::vector<size_t> starts =
      PlanBlocks(*pair.target, pair.golden.get(), &pair.plan, pair.tensors ? kOpsPerTensorBlock : kOpsPerBlock);
  const size_t blocks = starts.size() - 1;
  outcome.distances.reserve(ops);
  MSP_RETURN_IF_ERROR(ParallelOrdered<Block>(
      blocks, pair.tensors ? kTensorBlocksAlive : kBlocksAlive,
      [&](size_t i) { return MakeBlock(pair, format, starts[i], starts[i + 1], log, &pool); },
      [&](size_t i, Block&& block) -> Status {
        if (InterruptRequested()) return Interrupted();  // also when the last blocks are already made
        CompareCounts& c = outcome.counts;
        c.rows += block.counts.rows;
        c.pass += block.counts.pass;
        c.warning += block.counts.warning;
        c.error += block.counts.error;
        c.ops += block.counts.ops;
        c.matched_ops += block.counts.matched_ops;
        if (outcome.unread == 0) outcome.first_unread = std::move(block.first_unread);
        outcome.unread += block.unread;
        if (outcome.custom_failed == 0) outcome.first_custom_failed = std::move(block.first_custom_failed);
        outcome.custom_failed += block.custom_failed;
        outcome.distances.append(block.distances.data(), block.distances.size());
        if (seen) seen(outcome.distances);
        read_ahead.Passed(starts[i + 1]);
        target_pages.PassedTo(block.target_end);
        golden_pages.PassedTo(block.golden_end);
        if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(blocks));
        return take(std::move(block.rows));
      }));
  return outcome;
}

StatusOr<uint64_t> CountRows(const DumpFile& target) {
  std::atomic<uint64_t> rows = 0;
  const std::vector<size_t> starts = PlanBlocks(target, nullptr, nullptr, kOpsPerBlock);
  const auto count = [&](size_t block) -> Status {
    JsonDoc doc;
    std::vector<Item> items;
    for (size_t i = starts[block]; i < starts[block + 1]; ++i) {
      MSP_RETURN_IF_ERROR(target.ParseOp(i, &doc));
      items.clear();
      FlattenOp(target.ops().NameAt(i), doc, &items);
      rows += items.size();
    }
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(ParallelFor(starts.size() - 1, count));
  return rows.load();
}

}  // namespace msprobe
