#include "compare/pair/ruler_pass.h"

#include <cmath>

namespace msprobe {
namespace {

class NoRows : public RowFormat {
 public:
  void AppendOp(const OpDiff&, int, OpBlock*) const override {}
};

}  // namespace

StatusOr<OpDistances> MeasureStatistics(DumpPair* pair) {
  if (pair->options.mode == CompareMode::kTensor) {
    pair->options.mode = CompareMode::kStatistics;
    pair->options.tensors = nullptr;
    pair->tensors = nullptr;
  }
  MSP_ASSIGN_OR_RETURN(CompareOutcome outcome, ComparePair(
                                                   *pair, NoRows(), [](OpBlock&&) { return OkStatus(); }, nullptr));
  return std::move(outcome.distances);
}

StatusOr<BigArray<float>> Calibrate(const FilePair& golden_pair, const Mapping& mapping) {
  MSP_ASSIGN_OR_RETURN(DumpPair pair, OpenDumpPair(golden_pair, mapping));
  MSP_ASSIGN_OR_RETURN(const OpDistances distances, MeasureStatistics(&pair));
  BigArray<float> out;
  out.reserve(distances.size());
  for (const OpDistance& d : distances) out.push_back(std::isfinite(d.output_error) ? d.output_error : 0);
  return out;
}

}  // namespace msprobe
