#include "compare/ruler_pass.h"

#include <cmath>

namespace msprobe {
namespace {

class NoRows : public RowFormat {
 public:
  void AppendOp(const OpDiff&, int, RowBlock*) const override {}
};

/// The distances of all ops, from statistics.
StatusOr<OpDistances> Measure(DumpPair* pair) {
  if (pair->options.mode == CompareMode::kTensor) {
    pair->options.mode = CompareMode::kStatistics;
    pair->options.tensors = nullptr;
    pair->tensors = nullptr;
  }
  MSP_ASSIGN_OR_RETURN(CompareOutcome outcome, ComparePair(
                                                   *pair, NoRows(), [](RowBlock&&) { return OkStatus(); }, nullptr));
  return std::move(outcome.distances);
}

}  // namespace

StatusOr<BigArray<float>> Calibrate(const FilePair& golden_pair, const Mapping& mapping) {
  MSP_ASSIGN_OR_RETURN(DumpPair pair, OpenDumpPair(golden_pair, mapping));
  MSP_ASSIGN_OR_RETURN(const OpDistances distances, Measure(&pair));
  BigArray<float> out;
  out.reserve(distances.size());
  for (const OpDistance& d : distances) out.push_back(std::isfinite(d.output_error) ? d.output_error : 0);
  return out;
}

StatusOr<RulerContexts> ContextsOf(const FilePair& files, const Mapping& mapping, const Thresholds& thresholds,
                                   const BigArray<float>* calibrated) {
  MSP_ASSIGN_OR_RETURN(DumpPair pair, OpenDumpPair(files, mapping));
  pair.options.thresholds = &thresholds;
  MSP_ASSIGN_OR_RETURN(OpDistances distances, Measure(&pair));
  MSP_ASSIGN_OR_RETURN(Differences found, FindDifferences(pair, std::move(distances), calibrated));
  return std::move(found.contexts);
}

}  // namespace msprobe
