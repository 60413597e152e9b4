// The result file: its layout is the old tool's, which other programs read.
#include <algorithm>
#include <chrono>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "diagnose/overflow_describe.h"

namespace msprobe {
namespace {

void Newline(std::string* out, int depth) {
  *out += '\n';
  out->append(static_cast<size_t>(depth) * 2, ' ');
}

/// As json.dumps(indent=2). Depth is bounded by the parser.
void AppendValue(std::string* out, const JsonValue& v, int depth) {
  if (v.IsArray() || v.IsObject()) {
    const bool array = v.IsArray();
    *out += array ? '[' : '{';
    const char* comma = "";
    const auto next = [&] {
      *out += comma;
      comma = ",";
      Newline(out, depth + 1);
    };
    if (array) {
      for (const JsonValue& e : v.GetArray()) next(), AppendValue(out, e, depth + 1);
    } else {
      for (const auto& m : v.GetObject()) {
        next();
        AppendJsonString(*out, Text(m.name));
        *out += ": ";
        AppendValue(out, m.value, depth + 1);
      }
    }
    if (*comma) Newline(out, depth);
    *out += array ? ']' : '}';
  } else if (v.IsString()) {
    AppendJsonString(*out, Text(v));
  } else if (v.IsInt64()) {
    AppendInt(*out, v.GetInt64());
  } else if (v.IsUint64()) {
    *out += std::to_string(v.GetUint64());
  } else if (v.IsNumber()) {
    AppendJsonNumber(*out, v.GetDouble());
  } else {
    *out += v.IsBool() ? (v.GetBool() ? "true" : "false") : "null";
  }
}

void AppendStrings(std::string* out, const std::vector<std::string>& list, int depth) {
  if (list.empty()) {
    *out += "[]";
    return;
  }
  *out += '[';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) *out += ',';
    Newline(out, depth + 1);
    AppendJsonString(*out, list[i]);
  }
  Newline(out, depth);
  *out += ']';
}

Status AppendNode(OverflowFiles* files, uint32_t op, std::string* out) {
  constexpr int kDepth = 3;  // of the members
  const std::string_view name = files->dump().ops()[op].name;
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(files->dump().ParseOp(op, &doc));
  Newline(out, kDepth - 1);
  *out += '{';
  Newline(out, kDepth);
  *out += "\"op_name\": ";
  AppendJsonString(*out, name);
  *out += ',';
  Newline(out, kDepth);
  *out += "\"data_info\": {";
  using Member = std::pair<const char*, const char*>;  // and what stands for an absent one
  const std::vector<Member> members =
      Contains(name, "forward") ? std::vector<Member>{{"input_args", "[]"}, {"input_kwargs", "{}"}, {"output", "{}"}}
                                : std::vector<Member>{{"input", "[]"}, {"output", "{}"}};
  for (size_t i = 0; i < members.size(); ++i) {
    if (i) *out += ',';
    Newline(out, kDepth + 1);
    AppendJsonString(*out, members[i].first);
    *out += ": ";
    if (const JsonValue* v = Find(doc, members[i].first)) {
      AppendValue(out, *v, kDepth + 1);
    } else {
      *out += members[i].second;
    }
  }
  Newline(out, kDepth);
  *out += "},";
  Newline(out, kDepth);
  *out += "\"construct_info\": ";
  AppendStrings(out, files->ChainOf(name), kDepth);
  *out += ',';
  Newline(out, kDepth);
  *out += "\"stack_info\": ";
  const std::vector<std::string>* frames = files->FramesOf(name);
  if (frames) {
    AppendStrings(out, *frames, kDepth);
  } else {
    *out += "{}";
  }
  Newline(out, kDepth - 1);
  *out += '}';
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
  std::string out = "{";
  const char* comma = "";
  for (auto& [rank, list] : ops) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    OverflowFiles& files = (*step.files)[rank];
    out += comma;
    comma = ",";
    Newline(&out, 1);
    out += "\"rank_" + std::to_string(files.rank()) + "\": [";
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out += ',';
      MSP_RETURN_IF_ERROR(AppendNode(&files, list[i], &out));
    }
    Newline(&out, 1);
    out += ']';
  }
  Newline(&out, 0);
  return out + "}";
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
