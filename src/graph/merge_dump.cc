// A merged graph as the dump that a single rank would have written.
#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/text.h"
#include "graph/merge.h"
#include "graph/node_rows.h"

namespace msprobe {
namespace {

constexpr size_t kBlock = 64;

// Depth is bounded by the parser.
void AppendJson(std::string& out, const JsonValue& v) {
  const char* comma = "";
  if (v.IsNull()) {
    out += "null";
  } else if (v.IsBool()) {
    out += v.GetBool() ? "true" : "false";
  } else if (v.IsInt64()) {
    AppendInt(out, v.GetInt64());
  } else if (v.IsUint64()) {
    out += std::to_string(v.GetUint64());
  } else if (v.IsNumber()) {
    AppendJsonNumber(out, v.GetDouble());
  } else if (v.IsString()) {
    AppendJsonString(out, Text(v));
  } else if (v.IsArray()) {
    out += '[';
    for (const JsonValue& e : v.GetArray()) {
      out += comma;
      AppendJson(out, e);
      comma = ", ";
    }
    out += ']';
  } else {
    out += '{';
    for (const auto& m : v.GetObject()) {
      out += comma;
      AppendJsonString(out, Text(m.name));
      out += ": ";
      AppendJson(out, m.value);
      comma = ", ";
    }
    out += '}';
  }
}

void AppendEntry(std::string& out, std::string_view name, const JsonValue& op, const MergeNotes& notes) {
  AppendJsonString(out, name);
  out += ": ";
  AppendJson(out, op);
  if (notes.info.empty()) return;
  out.pop_back();
  out += op.ObjectEmpty() ? "\"parallel_merge_info\": [" : ", \"parallel_merge_info\": [";
  for (size_t i = 0; i < notes.info.size(); ++i) {
    if (i) out += ", ";
    AppendJsonString(out, notes.info[i]);
  }
  out += "]}";
}

Status WriteConstruct(const RankGraph& graph, const std::string& path) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  const std::optional<int> steps = graph.files.construct.megatron_micro_steps;
  std::string out = "{\n";
  if (steps) out += fmt::format("  \"megatron_micro_step_number\": {},\n", *steps);
  const char* comma = "";
  for (uint32_t id : graph.graph.order) {
    const Node& node = graph.graph.nodes[id];
    if (node.parent == kNoIndex) continue;
    out += comma;
    out += "  ";
    AppendJsonString(out, node.name);
    out += steps ? ": [" : ": ";
    AppendJsonString(out, graph.graph.nodes[node.parent].name);
    if (steps) out += fmt::format(", {}]", std::max(node.micro_step, 0));
    comma = ",\n";
    if (out.size() < (1 << 16)) continue;
    MSP_RETURN_IF_ERROR(file.Write(out));
    out.clear();
  }
  MSP_RETURN_IF_ERROR(file.Write(out + "\n}\n"));
  return file.Commit();
}

Status WriteDump(const RankGraph& graph, bool matched_only, const std::string& path) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  std::string head = "{\n  \"task\": ";
  AppendJsonString(head, graph.files.dump.task());
  head += ",\n  \"level\": ";
  AppendJsonString(head, graph.files.dump.level());
  head += ",\n  \"framework\": ";
  AppendJsonString(head, graph.files.dump.framework());
  MSP_RETURN_IF_ERROR(file.Write(head + ",\n  \"dump_data_dir\": null,\n  \"is_merged\": true,\n  \"data\": {"));
  const std::vector<uint32_t>& order = graph.graph.order;
  bool first = true;
  const auto make = [&](size_t block) -> StatusOr<std::string> {
    std::string out;
    JsonDoc doc;
    MergeNotes notes;
    for (size_t i = block * kBlock; i < std::min((block + 1) * kBlock, order.size()); ++i) {
      if (matched_only && graph.graph.nodes[order[i]].match == kNoIndex) continue;
      MSP_RETURN_IF_ERROR(graph.merged->Read(graph, order[i], &doc, &notes));
      if (!doc.IsObject()) continue;
      out += ",\n    ";
      AppendEntry(out, graph.graph.nodes[order[i]].name, doc, notes);
    }
    return out;
  };
  const auto take = [&](size_t, std::string&& text) -> Status {
    if (text.empty()) return OkStatus();
    const Status status = file.Write(std::string_view(text).substr(first ? 1 : 0));
    first = false;
    return status;
  };
  MSP_RETURN_IF_ERROR(ParallelOrdered<std::string>((order.size() + kBlock - 1) / kBlock, 16, make, take));
  MSP_RETURN_IF_ERROR(file.Write("\n  }\n}\n"));
  return file.Commit();
}

Status WriteStack(const RankGraph& graph, const std::string& path) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  std::vector<std::vector<uint32_t>> nodes(graph.merged->stacks.size());
  std::vector<uint32_t> used;
  std::vector<uint32_t> lost;
  for (uint32_t id : graph.graph.order) {
    const uint32_t stack = graph.graph.nodes[id].stack;
    if (stack == kLostStack) lost.push_back(id);
    if (stack >= nodes.size()) continue;
    if (nodes[stack].empty()) used.push_back(stack);
    nodes[stack].push_back(id);
  }
  std::string out = "{";
  size_t number = 0;
  const auto add = [&](const std::vector<uint32_t>& ids, uint32_t stack) {
    out += fmt::format("{}\n  \"{}\": [[", number ? "," : "", number);
    ++number;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i) out += ", ";
      AppendJsonString(out, graph.graph.nodes[ids[i]].name);
    }
    out += "], " + StackJson(graph, stack) + "]";
  };
  for (uint32_t stack : used) add(nodes[stack], stack);
  if (!lost.empty()) add(lost, kLostStack);
  MSP_RETURN_IF_ERROR(file.Write(out + "\n}\n"));
  return file.Commit();
}

}  // namespace

Status WriteMergedDump(const RankGraph& graph, const std::string& dir) {
  MSP_RETURN_IF_ERROR(MakeOutputDir(dir));
  MSP_RETURN_IF_ERROR(WriteDump(graph, false, JoinPath(dir, "dump.json")));
  if (InterruptRequested()) return Interrupted();
  MSP_RETURN_IF_ERROR(WriteStack(graph, JoinPath(dir, "stack.json")));
  return WriteConstruct(graph, JoinPath(dir, "construct.json"));
}

Status WriteMatchedDump(const RankGraph& graph, const std::string& dir) {
  MSP_RETURN_IF_ERROR(MakeOutputDir(dir));
  MSP_RETURN_IF_ERROR(WriteDump(graph, true, JoinPath(dir, "dump.json")));
  if (InterruptRequested()) return Interrupted();
  return WriteConstruct(graph, JoinPath(dir, "construct.json"));
}

}  // namespace msprobe
