#include "report/divergence_file.h"

#include "base/file.h"
#include "base/json_object.h"

namespace msprobe {

StatusOr<std::string> WriteDivergence(const CompareSettings& settings, const CompareReport& report) {
  JsonObject out;
  out.String("target", settings.target);
  out.String("golden", settings.golden);
  std::vector<std::string> results;
  for (const PairReport& pair : report.pairs) results.insert(results.end(), pair.paths.begin(), pair.paths.end());
  out.Strings("results", results);
  out.Number("pairs_compared", report.pairs.size());
  out.Number("pairs_failed", report.failures.size());
  std::string text = out.Done();
  text.back() = ',';
  text += " " + DivergenceJson(report.divergence).substr(1);
  if (report.replayed) {
    text.back() = ',';
    text += " \"replays\": " + ReplaysJson(report.replays) + "}";
  }
  text += "\n";
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(JoinPath(settings.output, kDivergenceFile)));
  MSP_RETURN_IF_ERROR(file.Write(text));
  MSP_RETURN_IF_ERROR(file.Commit());
  return file.path();
}

}  // namespace msprobe
