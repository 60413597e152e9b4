// By what the rows of a pair are judged: known before its table is written, from the statistics of all ranks.
#pragma once

#include <vector>

#include "base/big_array.h"
#include "compare/round_off/ruler.h"
#include "diagnose/divergence.h"
#include "match/path_plan.h"
#include "report/step_watch.h"

namespace msprobe {

/// By what rows are judged beside the two runs.
struct Judging {
  Thresholds thresholds;
  std::vector<FilePair> golden_pairs;  // the golden run against a second one
};
StatusOr<Judging> LoadJudging(const CompareSettings& request);

struct PairRuler {
  BigArray<float> calibrated;  // how far two golden runs are apart; empty without --calibrate
  RulerContexts contexts;      // empty where the table does not show what they give
};

/// How far the golden run of the pair is from the second one.
StatusOr<BigArray<float>> CalibrationOf(const CompareSettings& request, const Judging& judging, const FilePair& files);

/// Measures one pair by itself, as `found` says it.
StatusOr<PairRuler> MeasurePair(const CompareSettings& request, const Mapping& mapping, const Judging& judging,
                                const FilePair& files, RankFindings* found);

/// Measures all pairs, by index. Where a rank only passes on what another one made, its context says so. That of a pair
/// that cannot be compared is empty: its job says why.
StatusOr<std::vector<PairRuler>> MeasurePairs(const CompareSettings& request, const Mapping& mapping,
                                              const Judging& judging, const PathPlan& plan, size_t side_by_side);

}  // namespace msprobe
