#include "report/divergence_file.h"

#include "base/file.h"
#include "diagnose/story/divergence_json.h"
#include "json/writer.h"

namespace msprobe {

StatusOr<std::string> WriteDivergence(const CompareSettings& settings, const CompareReport& report) {
  std::vector<std::string> results;
  for (const PairReport& pair : report.pairs) results.insert(results.end(), pair.paths.begin(), pair.paths.end());
  JsonWriter json;
  json.BeginObject();
  json.Member("target", settings.target);
  json.Member("golden", settings.golden);
  json.Member("results", results);
  json.Member("pairs_compared", report.pairs.size());
  json.Member("pairs_failed", report.failures.size());
  json.Member("whole", report.story.whole());
  json.Key("not_whole"), WriteGaps(&json, report.story.gaps);
  json.Member("rows_without_tensor", report.story.unread);
  DivergenceMembers(&json, report.divergence);
  if (report.replayed) json.Key("replays"), WriteReplays(&json, report.replays);
  json.EndObject();
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(JoinPath(settings.output, kDivergenceFile)));
  MSP_RETURN_IF_ERROR(file.Write(json.Take() + "\n"));
  MSP_RETURN_IF_ERROR(file.Commit());
  return file.path();
}

}  // namespace msprobe
