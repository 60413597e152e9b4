#include "compare/pair/unseen.h"

#include <algorithm>

#include "dump/reader.h"

namespace msprobe {
namespace {

enum class Loss : uint8_t { kNone, kEnd, kAnywhere };

Loss LossOf(const std::vector<RecordingGap>& gaps, DumpSide side) {
  Loss out = Loss::kNone;
  for (const RecordingGap& gap : gaps) {
    if (gap.side == side && gap.what.LacksOps()) out = std::max(out, gap.what.ops_end ? Loss::kEnd : Loss::kAnywhere);
  }
  return out;
}

/// Behind the partner of the last golden op that has one.
size_t BehindLastGolden(const MatchPlan& plan) {
  size_t out = 0;
  uint32_t last = 0;
  for (size_t i = 0; i < plan.golden_of.size(); ++i) {
    const uint32_t golden = plan.golden_of[i];
    if (golden == kNoOp || golden < last) continue;
    last = golden;
    out = i + 1;
  }
  return out;
}

/// Behind the golden partner of the last op of the target that has one.
uint32_t BehindLastTarget(const MatchPlan& plan) {
  for (size_t i = plan.golden_of.size(); i-- > 0;) {
    if (plan.golden_of[i] != kNoOp) return plan.golden_of[i] + 1;
  }
  return 0;
}

}  // namespace

void LeaveOutUnseen(const std::vector<RecordingGap>& gaps, const DumpFile& target, const DumpFile& golden,
                    MatchPlan* plan) {
  const bool other_ops = plan->matched == 0 && !target.ops().empty() && !golden.ops().empty();
  if (other_ops) return;  // nothing says where the one ends in the other
  if (const Loss loss = LossOf(gaps, DumpSide::kTarget); loss != Loss::kNone) {
    const uint32_t from = loss == Loss::kEnd ? BehindLastTarget(*plan) : 0;
    const auto first = std::lower_bound(plan->golden_only.begin(), plan->golden_only.end(), from);
    const auto seen = static_cast<size_t>(first - plan->golden_only.begin());
    plan->golden_unseen = plan->golden_only.size() - seen;
    plan->golden_only.resize(seen);
  }
  if (const Loss loss = LossOf(gaps, DumpSide::kGolden); loss != Loss::kNone) {
    plan->seen_target = loss == Loss::kEnd ? BehindLastGolden(*plan) : 0;
    for (size_t i = plan->seen_target; i < plan->golden_of.size(); ++i) plan->target_unseen += plan->NotSeen(i);
  }
}

}  // namespace msprobe
