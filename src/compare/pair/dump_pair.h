// Two dumps opened for comparison: their kind is checked, their ops are matched.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/message.h"
#include "compare/values/op_diff.h"
#include "compare/values/tensor_pairs.h"
#include "dump/gaps.h"
#include "dump/reader.h"
#include "match/match_dumps.h"
#include "match/path_plan.h"

namespace msprobe {

class PairTrees;

struct DumpPair {
  std::unique_ptr<DumpFile> target, golden;
  std::shared_ptr<PairTrees> trees;
  std::optional<StackFile> stacks;  // of the target, when there is a stack.json beside it
  DiffOptions options;
  std::unique_ptr<TensorPairs> tensors;  // of tensor mode; options.tensors points to it
  MatchPlan plan;
  BigArray<uint8_t> chosen;        // of the target's ops: others are passed over; empty for all
  std::vector<Message> warnings;   // truncated files
  std::vector<RecordingGap> gaps;  // of both sides
};

/// Notes in `pair` what of its two files is not whole.
void NoteGaps(DumpPair* pair);
/// The files only: neither their tasks are compared nor are ops matched.
StatusOr<DumpPair> OpenPairFiles(const FilePair& files);
/// True when both were dumped with task "structure": they hold no values.
bool BothAreStructures(const DumpPair& pair);
/// The second half of OpenDumpPair(). `postprocess` changes tensors; it may be null.
Status MatchDumpPair(const FilePair& files, const Mapping& mapping, CustomMetrics* custom, DumpPair* pair,
                     const Postprocess* postprocess = nullptr);

/// Opens and matches; kBadInput when the two cannot be compared (task, checksums on one side only, frameworks, levels
/// that share no op), kUsage for tasks that `compare` does not read.
/// `custom`, the user's own metrics of tensor mode, may be null.
StatusOr<DumpPair> OpenDumpPair(const FilePair& files, const Mapping& mapping, CustomMetrics* custom = nullptr);

}  // namespace msprobe
