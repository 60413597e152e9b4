#include "jobs/ckpt_similarity.h"

#include <map>
#include <unordered_map>

#include "base/file.h"
#include "base/message.h"
#include "json/writer.h"
#include "weights/open_checkpoint.h"
#include "weights/weight_diff.h"

namespace msprobe {
namespace {

void WriteParameter(const WeightPair& pair, const WeightDiff& diff, JsonWriter* json) {
  json->ObjectMember(pair.a.name, [&] {
    if (!pair.same_shape) {
      json->Member("l2", nullptr);
      json->Member("cos", nullptr);
      const int64_t a = pair.a.elements(), b = pair.b.elements();
      a == b ? json->Member("numel", a) : json->Member("numel", std::vector<int64_t>{a, b});
      json->ArrayMember("shape", std::vector{&pair.a, &pair.b}, [&](const WeightTensor* t) { json->Value(t->shape); });
      return;
    }
    json->Member("l2", diff.l2);
    json->Member("cos", diff.cosine);
    json->Member("numel", pair.a.elements());
    json->Member("shape", pair.a.shape);
  });
}

}  // namespace

StatusOr<SimilarityReport> WriteCheckpointSimilarity(const std::string& a, const std::string& b,
                                                     const std::string& output) {
  if (PathExists(output)) return BadInput(Msg("{} exists: choose another file with -o", output));
  MSP_ASSIGN_OR_RETURN(const Checkpoint left, OpenCheckpoint(a));
  MSP_ASSIGN_OR_RETURN(const Checkpoint right, OpenCheckpoint(b));
  std::unordered_map<std::string_view, size_t> in_right;
  for (size_t i = 0; i < right.tensors.size(); ++i) in_right.emplace(right.tensors[i].name, i);
  SimilarityReport report;
  std::vector<WeightPair> pairs;
  std::vector<bool> met(right.tensors.size());
  for (size_t i = 0; i < left.tensors.size(); ++i) {
    const auto found = in_right.find(left.tensors[i].name);
    if (found == in_right.end()) {
      report.only_a.push_back(left.tensors[i].name);
      continue;
    }
    met[found->second] = true;
    const WeightTensor& other = right.tensors[found->second];
    pairs.push_back(
        {left.tensors[i], other, MatchedBy::kName, left.tensors[i].shape == other.shape, "", i, found->second});
  }
  for (size_t i = 0; i < met.size(); ++i) {
    if (!met[i]) report.only_b.push_back(right.tensors[i].name);
  }
  MSP_ASSIGN_OR_RETURN(const std::vector<WeightDiff> diffs, CompareWeights(left, right, pairs));
  std::string text;
  JsonWriter json(&text, JsonStyle{.indent = 4, .comma = ","});
  json.BeginObject();
  for (size_t i = 0; i < pairs.size(); ++i) WriteParameter(pairs[i], diffs[i], &json);
  json.EndObject();
  report.compared = pairs.size();
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(output));
  MSP_RETURN_IF_ERROR(file.Write(text));
  MSP_RETURN_IF_ERROR(file.Commit());
  return report;
}

}  // namespace msprobe
