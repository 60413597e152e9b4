// A merged graph as the dump that a single rank would have written.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/text.h"
#include "graph/build/node_rows.h"
#include "graph/node/item_fields.h"
#include "json/writer.h"
#include "parallel/merge.h"
#include "parallel/merge_fit.h"

namespace msprobe {
namespace {

constexpr size_t kBlock = 64;

constexpr JsonStyle kStyle{.indent = 2, .comma = ","};

/// Without the shapes of the tensors in it. Depth is bounded by the parser.
void WriteWithoutShapes(JsonWriter* json, const JsonValue& value) {
  if (value.IsArray()) {
    json->BeginArray();
    for (const JsonValue& item : value.Items()) WriteWithoutShapes(json, item);
    json->EndArray();
  } else if (value.IsObject()) {
    json->BeginObject();
    for (const JsonMember& m : value.Members()) {
      if (m.name == "shape") continue;
      json->Key(m.name);
      WriteWithoutShapes(json, m.value);
    }
    json->EndObject();
  } else {
    json->Value(value);
  }
}

/// On one line.
std::string EntryJson(const JsonValue& op, const MergeNotes& notes, bool of_parts, std::string_view name) {
  JsonWriter json;
  json.BeginObject();
  const bool gradient = Contains(name, ".parameters_grad");
  for (const JsonMember& m : op.Members()) {
    json.Key(m.name);
    if (of_parts && (gradient || m.name == "parameters")) {
      WriteWithoutShapes(&json, m.value);
    } else {
      json.Value(m.value);
    }
  }
  if (!notes.info.empty()) json.Member("parallel_merge_info", notes.info);
  json.EndObject();
  return json.Take();
}

Status WriteConstruct(const RankGraph& graph, const std::string& path) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  const std::optional<int> steps = graph.files.construct.megatron_micro_steps;
  std::string out;
  JsonWriter json(&out, kStyle);
  json.BeginObject();
  if (steps) json.Member("megatron_micro_step_number", *steps);
  for (uint32_t id : graph.graph.order) {
    const Node& node = graph.graph.nodes[id];
    if (node.parent == kNoIndex) continue;
    const std::string_view parent = graph.graph.nodes[node.parent].name;
    json.Key(node.name);
    if (steps) {
      std::string place;
      JsonWriter list(&place);
      list.BeginArray();
      list.String(parent);
      list.Int(std::max(node.micro_step, 0));
      list.EndArray();
      json.Raw(place);
    } else {
      json.String(parent);
    }
    if (out.size() < (1 << 16)) continue;
    MSP_RETURN_IF_ERROR(file.Write(out));
    out.clear();
  }
  json.EndObject();
  MSP_RETURN_IF_ERROR(file.Write(out + "\n"));
  return file.Commit();
}

/// Gives the entries of one side the values that are compared with those of the other.
class PairFitter {
 public:
  PairFitter(const MergedPair& pair, const RankGraph& own) : pair_(pair), own_(own) {}

  /// `doc` and `notes` are those of the node, as MergedData::Read gives them.
  Status Fit(uint32_t node, JsonDoc* doc, MergeNotes* notes) {
    const bool golden = &own_ == &pair_.golden;
    const RankGraph& other = golden ? pair_.target : pair_.golden;
    const uint32_t partner = own_.graph.nodes[node].match;
    MSP_RETURN_IF_ERROR(other.merged->Read(other, partner, &doc_, &notes_));
    if (!doc->IsObject() || !doc_.IsObject()) return OkStatus();
    const auto describe = [&](const RankGraph& rank, uint32_t id, const JsonDoc& entry, bool is_golden) {
      DescribeNode(rank.graph.nodes[id].name, entry, CompareMode::kStatistics, &diff_.scratch,
                   is_golden ? &diff_.golden : &diff_.target, is_golden ? &diff_.golden_used : &diff_.rows_used);
    };
    describe(own_, node, *doc, golden);
    describe(other, partner, doc_, !golden);
    const RankGraph& target = golden ? other : own_;
    diff_.op = target.graph.nodes[golden ? partner : node].name;
    diff_.thresholds = pair_.thresholds;
    FitParts(pair_.layouts, golden ? &notes_ : notes, golden ? notes : &notes_, &diff_);
    const std::vector<ItemView>& items = golden ? diff_.golden : diff_.target;
    for (size_t i = 0; i < (golden ? diff_.golden_used : diff_.rows_used); ++i) {
      if (items[i].tensor && items[i].leaf) SetStats(StatsOf(items[i]), const_cast<JsonValue*>(items[i].leaf));
    }
    return OkStatus();
  }

 private:
  const MergedPair& pair_;
  const RankGraph& own_;
  JsonDoc doc_;
  MergeNotes notes_;
  OpDiff diff_;
};

Status WriteDump(const RankGraph& graph, std::optional<ModelDump> which, const MergedPair* pair,
                 const std::string& path) {
  const bool matched_only = which == ModelDump::kMatched;
  const bool of_parts = which == ModelDump::kWhole && graph.merged->ranks.size() > 1;
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  std::string head;
  JsonWriter json(&head, kStyle);
  json.BeginObject();
  json.Member("task", graph.files.dump.task());
  json.Member("level", graph.files.dump.level());
  json.Member("framework", graph.files.dump.framework());
  json.Member("dump_data_dir", nullptr);
  json.Member("is_merged", true);
  json.Key("data");
  MSP_RETURN_IF_ERROR(file.Write(head + "{"));
  const std::vector<uint32_t>& order = graph.graph.order;
  bool first = true;
  const auto make = [&](size_t block) -> StatusOr<std::string> {
    std::string out;
    JsonWriter entries(&out, kStyle, 2);
    JsonDoc doc;
    MergeNotes notes;
    std::optional<PairFitter> fitter;
    if (pair && pair->layouts.divided) fitter.emplace(*pair, graph);
    for (size_t i = block * kBlock; i < std::min((block + 1) * kBlock, order.size()); ++i) {
      if (matched_only && graph.graph.nodes[order[i]].match == kNoIndex) continue;
      MSP_RETURN_IF_ERROR(graph.merged->Read(graph, order[i], &doc, &notes));
      if (fitter) MSP_RETURN_IF_ERROR(fitter->Fit(order[i], &doc, &notes));
      if (!doc.IsObject()) continue;
      entries.RawMember(graph.graph.nodes[order[i]].name,
                        EntryJson(doc, notes, of_parts, graph.graph.nodes[order[i]].name));
    }
    return out;
  };
  const auto take = [&](size_t, std::string&& text) -> Status {
    if (text.empty()) return OkStatus();
    if (!std::exchange(first, false)) MSP_RETURN_IF_ERROR(file.Write(","));
    return file.Write(text);
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
  std::string out;
  JsonWriter json(&out, kStyle);
  json.BeginObject();
  size_t number = 0;
  const auto add = [&](const std::vector<uint32_t>& ids, uint32_t stack) {
    JsonWriter group;
    group.BeginArray();
    group.Array(ids, [&](uint32_t id) { group.String(graph.graph.nodes[id].name); });
    group.Raw(StackJson(graph, stack));
    group.EndArray();
    json.RawMember(std::to_string(number++), group.Take());
  };
  for (uint32_t stack : used) add(nodes[stack], stack);
  if (!lost.empty()) add(lost, kLostStack);
  json.EndObject();
  MSP_RETURN_IF_ERROR(file.Write(out + "\n"));
  return file.Commit();
}

}  // namespace

Status WriteMergedDump(const RankGraph& graph, const std::string& dir) {
  MSP_RETURN_IF_ERROR(MakeOutputDir(dir));
  MSP_RETURN_IF_ERROR(WriteDump(graph, std::nullopt, nullptr, JoinPath(dir, "dump.json")));
  if (InterruptRequested()) return Interrupted();
  MSP_RETURN_IF_ERROR(WriteStack(graph, JoinPath(dir, "stack.json")));
  return WriteConstruct(graph, JoinPath(dir, "construct.json"));
}

namespace {

Status WriteModel(const RankGraph& graph, ModelDump which, const MergedPair* pair, const std::string& dir) {
  MSP_RETURN_IF_ERROR(MakeOutputDir(dir));
  MSP_RETURN_IF_ERROR(WriteDump(graph, which, pair, JoinPath(dir, "dump.json")));
  if (InterruptRequested()) return Interrupted();
  return WriteConstruct(graph, JoinPath(dir, "construct.json"));
}

}  // namespace

Status WriteModelDump(const RankGraph& graph, ModelDump which, const std::string& dir) {
  return WriteModel(graph, which, nullptr, dir);
}

Status WriteFittedDumps(const MergedPair& pair, const std::string& dir) {
  MSP_RETURN_IF_ERROR(WriteModel(pair.target, ModelDump::kMatched, &pair, JoinPath(dir, "target")));
  return WriteModel(pair.golden, ModelDump::kMatched, &pair, JoinPath(dir, "golden"));
}

}  // namespace msprobe
