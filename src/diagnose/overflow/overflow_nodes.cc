// The result file: its layout is the old tool's, which other programs read.
#include <algorithm>
#include <chrono>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "diagnose/overflow/overflow_describe.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr JsonStyle kStyle{.indent = 2, .comma = ","};

Status WriteNode(OverflowFiles* files, uint32_t op, JsonWriter* json) {
  const std::string_view name = files->dump().ops()[op].name;
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(files->dump().ParseOp(op, &doc));
  json->BeginObject();
  json->Member("op_name", name);
  json->Key("data_info");
  json->BeginObject();
  using Member = std::pair<const char*, const char*>;  // and what stands for an absent one
  const std::vector<Member> members =
      Contains(name, "forward") ? std::vector<Member>{{"input_args", "[]"}, {"input_kwargs", "{}"}, {"output", "{}"}}
                                : std::vector<Member>{{"input", "[]"}, {"output", "{}"}};
  for (const auto& [key, absent] : members) {
    json->Key(key);
    if (const JsonValue* v = doc.Find(key)) {
      json->Value(*v);
    } else {
      json->Raw(absent);
    }
  }
  json->EndObject();
  json->Member("construct_info", files->ChainOf(name));
  json->Key("stack_info");
  if (const std::vector<std::string>* frames = files->FramesOf(name)) {
    json->Value(*frames);
  } else {
    json->Raw("{}");
  }
  json->EndObject();
  return OkStatus();
}

}  // namespace

StatusOr<std::string> OverflowNodes(const OverflowStepView& step, const std::vector<const OverflowSource*>& sources) {
  std::map<uint32_t, std::vector<uint32_t>> ops;
  for (const OverflowSource* s : sources) {
    std::vector<OpPlace> places = s->places;
    if (s->kind == OverflowSource::Kind::kUninitialised) places = {s->reader};
    for (const OpPlace& p : places) ops[p.rank].push_back(p.op);
  }
  JsonWriter json(kStyle);
  json.BeginObject();
  for (auto& [rank, list] : ops) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    OverflowFiles& files = (*step.files)[rank];
    json.Key("rank_" + std::to_string(files.rank()));
    json.BeginArray();
    for (const uint32_t op : list) MSP_RETURN_IF_ERROR(WriteNode(&files, op, &json));
    json.EndArray();
  }
  json.EndObject();
  return json.Take();
}

Status WriteOverflowNodes(const std::string& directory, const std::string& nodes, std::string* path) {
  MSP_RETURN_IF_ERROR(MakeOutputDir(directory));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  MSP_ASSIGN_OR_RETURN(OutputFile file,
                       OutputFile::Create(JoinPath(directory, "anomaly_analyze_" + std::to_string(ns) + ".json")));
  MSP_RETURN_IF_ERROR(file.Write(nodes));
  MSP_RETURN_IF_ERROR(file.CommitResult());
  *path = file.path();
  return OkStatus();
}

}  // namespace msprobe
