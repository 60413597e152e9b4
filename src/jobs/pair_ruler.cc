#include "jobs/pair_ruler.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/message.h"
#include "base/parallel.h"
#include "compare/pair/ruler_pass.h"
#include "diagnose/story/story_finder.h"

namespace msprobe {
namespace {

/// One pair, and its findings until those of its step are joined.
struct Measured {
  std::optional<PairRuler> ruler;
  RankFindings found;
};

bool CannotBeCompared(const Status& status) {
  return status.code() == Code::kBadInput || status.code() == Code::kUsage;
}

}  // namespace

StatusOr<Judging> LoadJudging(const CompareSettings& request) {
  Judging out;
  if (!request.thresholds.empty()) {
    MSP_ASSIGN_OR_RETURN(out.thresholds, ReadThresholds(request.thresholds));
  }
  if (!request.calibrate.empty()) {
    MSP_ASSIGN_OR_RETURN(PathPlan plan, PlanPaths(request.golden, request.calibrate));
    out.golden_pairs = std::move(plan.pairs);
  }
  return out;
}

StatusOr<BigArray<float>> CalibrationOf(const CompareSettings& request, const Judging& judging, const FilePair& files) {
  BigArray<float> out;
  for (const FilePair& golden : judging.golden_pairs) {
    if (golden.target != files.golden) continue;
    MSP_ASSIGN_OR_RETURN(out, Calibrate(golden, Mapping()));
  }
  if (out.empty() && !request.calibrate.empty()) {
    return BadInput(Msg("{} has no partner of {}: --calibrate takes the same steps and ranks as -gp", request.calibrate,
                        files.golden));
  }
  return out;
}

StatusOr<PairRuler> MeasurePair(const CompareSettings& request, const Mapping& mapping, const Judging& judging,
                                const FilePair& files, RankFindings* found) {
  PairRuler out;
  MSP_ASSIGN_OR_RETURN(out.calibrated, CalibrationOf(request, judging, files));
  MSP_ASSIGN_OR_RETURN(DumpPair pair, OpenDumpPair(files, mapping));
  pair.options.thresholds = &judging.thresholds;
  MSP_ASSIGN_OR_RETURN(OpDistances distances, MeasureStatistics(&pair));
  Differences per_op;
  const BigArray<float>* calibrated = out.calibrated.empty() ? nullptr : &out.calibrated;
  MSP_ASSIGN_OR_RETURN(*found, FindOnRank(pair, files, std::move(distances), calibrated, &per_op));
  out.contexts = std::move(per_op.contexts);
  return out;
}

StatusOr<std::vector<PairRuler>> MeasurePairs(const CompareSettings& request, const Mapping& mapping,
                                              const Judging& judging, const PathPlan& plan, size_t side_by_side) {
  const size_t pairs = plan.pairs.size();
  std::vector<PairRuler> out(pairs);
  StoryFinder finder;
  ThreadBudget budget(pairs, side_by_side);
  const auto make = [&](size_t i) -> StatusOr<Measured> {
    const ThreadBudget::Task task(&budget);
    Measured measured;
    StatusOr<PairRuler> ruler = MeasurePair(request, mapping, judging, plan.pairs[i], &measured.found);
    if (ruler.ok()) {
      measured.ruler = std::move(*ruler);
    } else if (!CannotBeCompared(ruler.status())) {
      return ruler.status();
    }
    return measured;
  };
  const auto take = [&](size_t i, Measured&& measured) -> Status {
    if (!measured.ruler) return OkStatus();
    out[i] = std::move(*measured.ruler);
    return finder.Add(std::move(measured.found));
  };
  MSP_RETURN_IF_ERROR(ParallelOrdered<Measured>(pairs, 4 * side_by_side, make, take, side_by_side));
  MSP_RETURN_IF_ERROR(finder.End());
  for (const Carrier& carrier : finder.divergence().carriers) {
    const auto at =
        std::ranges::find_if(plan.pairs, [&](const FilePair& p) { return p.target == carrier.target_dump; });
    if (at == plan.pairs.end()) continue;
    RulerContext& context = out[static_cast<size_t>(at - plan.pairs.begin())].contexts[carrier.op.op];
    context.inherits = true;
    context.verdict = RulerVerdict::kInherited;
  }
  return out;
}

}  // namespace msprobe
