#include "graph/build/graph_checks.h"

#include <fmt/format.h>

#include "base/message.h"
#include "match/dump_ops.h"

namespace msprobe {

StatusOr<CompareMode> ModeOf(const DumpFile& dump, const DumpFile& other) {
  if (dump.task() != other.task()) {
    return BadInput(Msg("{} was dumped with task {}, but {} with task {}: compare dumps of the same task", dump.path(),
                        dump.task(), other.path(), other.task()));
  }
  if (dump.task() == "tensor") return CompareMode::kTensor;
  if (dump.task() == "structure") return CompareMode::kStructure;
  if (dump.task() != "statistics") {
    return BadInput(
        Msg("{} was dumped with task \"{}\": graphs are compared for tasks statistics, tensor and structure",
            dump.path(), dump.task()));
  }
  MSP_ASSIGN_OR_RETURN(const Checksums sums, dump.FindChecksums());
  MSP_ASSIGN_OR_RETURN(const Checksums other_sums, other.FindChecksums());
  const bool here = sums == Checksums::kPresent;
  if (OneSided(sums, other_sums)) {
    return BadInput(Msg("only {} has checksums (md5), {} has none: compare two dumps with the same summary_mode",
                        here ? dump.path() : other.path(), here ? other.path() : dump.path()));
  }
  return here || other_sums == Checksums::kPresent ? CompareMode::kChecksum : CompareMode::kStatistics;
}

StatusOr<Kinship> KinshipOf(const DumpFile& a, const DumpFile& b, bool mapped, TensorPairs* tensors) {
  MSP_ASSIGN_OR_RETURN(const Framework target, FrameworkOf(a));
  MSP_ASSIGN_OR_RETURN(const Framework golden, FrameworkOf(b));
  Kinship out;
  out.implementations = AreImplementations(a, b, mapped);
  out.cross = target != golden || out.implementations;
  if (tensors && out.cross) tensors->CrossFrameworks(out.implementations);
  return out;
}

Status CheckMergeOptions(const GraphSettings& settings) {
  if (settings.golden.empty() ? settings.golden_layout.has_value()
                              : settings.target_layout.has_value() != settings.golden_layout.has_value()) {
    return UsageError(Msg("merging ranks to compare needs the sizes of both runs: give two values for --rank_size"));
  }
  if (settings.json_files && !settings.golden.empty())
    return UsageError(Msg("--file_type json writes the merged ranks of one run: leave out -gp"));
  return OkStatus();
}

}  // namespace msprobe
