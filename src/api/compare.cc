#include <msprobe/compare.h>

#include "jobs/run_compare.h"

namespace msprobe {

StatusOr<Comparison> CompareDumps(const CompareSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const CompareReport report, RunCompare(settings));
  Comparison out;
  for (const PairReport& pair : report.pairs) {
    const CompareCounts& n = pair.counts;
    out.pairs.push_back(
        {pair.files.target, pair.files.golden, pair.paths, n.rows, n.pass, n.warning, n.error, n.ops, n.matched_ops});
  }
  out.failures = report.failures;
  out.html = report.html;
  out.text = SummaryText(report);
  out.json = SummaryJson(report);
  return out;
}

}  // namespace msprobe
