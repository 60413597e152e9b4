// What B recorded with inputs of A, held against A: the grafted modules alone.
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "compare/values/tensor_folder.h"
#include "doctor/graft/graft.h"
#include "doctor/graft/graft_calls.h"
#include "jobs/run_compare.h"
#include "json/parser.h"
#include "json/writer.h"

namespace msprobe {
namespace {

/// Calls that got inputs, as the capture notes beside the dump.
StatusOr<std::set<std::string>> LoadedCalls(const std::string& rank) {
  const std::string path = JoinPath(rank, std::string(kLoadedFile));
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(file.text(), path, &doc));
  std::set<std::string> out;
  const JsonValue& note = doc;
  for (const JsonMember& member : note["calls"].Members()) out.emplace(member.name);
  return out;
}

/// The names of all files of tensors of an op.
void AddDataNames(const JsonValue& value, int depth, std::vector<std::string>* out) {
  if (depth > 20) return;
  if (const std::string_view name = value["data_name"].Text(); !name.empty()) out->emplace_back(name);
  for (const JsonValue& item : value.Items()) AddDataNames(item, depth + 1, out);
  for (const JsonMember& member : value.Members()) AddDataNames(member.value, depth + 1, out);
}

/// A dump of nothing but some calls and what ran in them. Tensors are links to those of the whole dump where the file
/// system has such, else copies.
class PartOfDump {
 public:
  PartOfDump(const DumpFile& dump, const std::set<std::string>& roots, std::string directory)
      : dump_(dump), roots_(roots), folder_(dump.path()), directory_(std::move(directory)) {}

  Status Write() {
    const std::string tensors = JoinPath(directory_, "dump_tensor_data");
    MSP_RETURN_IF_ERROR(MakeOutputDir(tensors));
    MSP_ASSIGN_OR_RETURN(const auto parents, dump_.Parents());
    JsonWriter data(kJsonIndented), construct(kJsonIndented);
    construct.BeginObject();
    data.BeginObject();
    data.Member("task", dump_.task());
    data.Member("level", dump_.level());
    if (!dump_.framework().empty()) data.Member("framework", dump_.framework());
    data.Member("dump_data_dir", tensors);
    data.Key("data");
    data.BeginObject();
    for (size_t i = 0; i < dump_.ops().size(); ++i) {
      const OpSpan op = dump_.ops()[i];
      const std::string name(op.name);
      const bool inside = parents ? !RootOf(*parents, roots_, name).empty() : roots_.contains(name);
      if (IsBackwardOp(name) || !inside) continue;
      data.RawMember(name, dump_.file().text().substr(op.offset, op.length));
      const bool root = roots_.contains(name) || !parents;
      construct.Member(name, root ? std::string_view() : parents->ParentOf(name));
      MSP_RETURN_IF_ERROR(LinkTensors(i, tensors));
    }
    data.EndObject();
    data.EndObject();
    construct.EndObject();
    MSP_RETURN_IF_ERROR(WriteText("dump.json", data.Take()));
    MSP_RETURN_IF_ERROR(WriteText("construct.json", construct.Take()));
    return LinkStacks();
  }

 private:
  Status WriteText(const std::string& name, const std::string& text) {
    MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(JoinPath(directory_, name)));
    MSP_RETURN_IF_ERROR(file.Write(text + "\n"));
    return file.Commit();
  }

  static Status LinkOrCopy(const std::string& from, const std::string& to) {
    std::error_code error;
    std::filesystem::remove(to, error);
    std::filesystem::create_hard_link(from, to, error);
    if (!error) return OkStatus();
    std::filesystem::copy_file(from, to, error);
    if (error) return {Code::kInternal, Msg("{} cannot be written: {}", to, KnownText(error.message()))};
    return OkStatus();
  }

  Status LinkTensors(size_t op, const std::string& tensors) {
    JsonDoc doc;
    MSP_RETURN_IF_ERROR(dump_.ParseOp(op, &doc));
    std::vector<std::string> names;
    AddDataNames(doc, 0, &names);
    for (const std::string& name : names) {
      const auto path = folder_.Find(name);
      if (path.ok()) MSP_RETURN_IF_ERROR(LinkOrCopy(*path, JoinPath(tensors, name)));
    }
    return OkStatus();
  }

  Status LinkStacks() {
    const std::string stacks = JoinPath(std::string(DirName(dump_.path())), "stack.json");
    return IsRegularFile(stacks) ? LinkOrCopy(stacks, JoinPath(directory_, "stack.json")) : OkStatus();
  }

  const DumpFile& dump_;
  const std::set<std::string>& roots_;
  TensorFolder folder_;
  std::string directory_;
};

class GraftComparison {
 public:
  GraftComparison(const std::string& a, const std::string& b, int step, const std::string& output)
      : a_(a), b_(b), parts_(JoinPath(output, "graft_step" + std::to_string(step))) {
    out_.step = step;
  }

  StatusOr<GraftEvidence> Run() {
    for (const char* side : {"A", "B"}) {  // of an earlier look
      std::error_code error;
      std::filesystem::remove_all(JoinPath(parts_, side), error);
    }
    const auto ranks_a = RankDumps(a_), ranks_b = RankDumps(b_);
    for (const auto& [rank, path] : ranks_b) {
      auto other = ranks_a.find(rank);
      if (other == ranks_a.end() && ranks_a.size() == 1 && ranks_b.size() == 1) other = ranks_a.begin();
      if (other == ranks_a.end()) continue;
      MSP_RETURN_IF_ERROR(AddRank(rank.empty() ? "rank" : rank, other->second, path));
    }
    if (out_.modules.empty()) return Unknown(Msg("no module of B got an input of A"));
    CompareSettings settings;
    settings.golden = JoinPath(parts_, "A");
    settings.target = JoinPath(parts_, "B");
    settings.output = JoinPath(parts_, "compare");
    MSP_ASSIGN_OR_RETURN(const CompareReport report, RunCompare(settings));
    Judge(report.story);
    return std::move(out_);
  }

 private:
  GraftEvidence Unknown(const Message& why) {
    out_.outcome = GraftEvidence::Outcome::kUnknown;
    out_.why = why;
    return out_;
  }

  Status AddRank(const std::string& rank, const std::string& path_a, const std::string& path_b) {
    MSP_ASSIGN_OR_RETURN(const DumpFile a, DumpFile::Open(path_a));
    MSP_ASSIGN_OR_RETURN(const DumpFile b, DumpFile::Open(path_b));
    MSP_ASSIGN_OR_RETURN(const std::set<std::string> loaded, LoadedCalls(std::string(DirName(path_b))));
    MSP_ASSIGN_OR_RETURN(const CallPairs pairs, PairCalls(a, b, loaded));
    std::set<std::string> roots_a, roots_b;
    for (const auto& [call_b, call_a] : pairs) {
      roots_a.insert(call_a);
      roots_b.insert(call_b);
      const std::string module = PathOfCall(call_b);
      if (std::find(out_.modules.begin(), out_.modules.end(), module) == out_.modules.end())
        out_.modules.push_back(module);
      roots_.insert(call_b);
    }
    MSP_ASSIGN_OR_RETURN(const auto parents, b.Parents());
    for (size_t i = 0; parents && i < b.ops().size(); ++i) {
      const std::string_view name = b.ops().NameAt(i);
      if (const std::string_view root = RootOf(*parents, roots_b, name); !root.empty()) root_of_.emplace(name, root);
    }
    MSP_RETURN_IF_ERROR(PartOfDump(a, roots_a, JoinPath(JoinPath(parts_, "A"), rank)).Write());
    return PartOfDump(b, roots_b, JoinPath(JoinPath(parts_, "B"), rank)).Write();
  }

  void Judge(const Story& story) {
    out_.story = story;
    using Outcome = Story::Outcome;
    if (story.outcome == Outcome::kEqual || story.outcome == Outcome::kRoundOff) {
      out_.outcome = GraftEvidence::Outcome::kSame;
      return;
    }
    if (story.outcome != Outcome::kOrigin || story.origins.empty()) {
      Unknown(Msg("ops of the modules cannot be held against each other"));
      return;
    }
    const StoryOrigin& origin = story.origins.front();
    const auto root = root_of_.find(origin.op);
    const std::string call = root == root_of_.end() ? std::string() : root->second;
    if (origin.cause == Cause::kInput && (call.empty() || call == origin.op)) {
      Unknown(Msg("an input of {} could not be loaded and differs", call.empty() ? origin.op : PathOfCall(call)));
      return;
    }
    out_.module = call.empty() ? origin.module : PathOfCall(call);
    if (origin.cause == Cause::kGrows) {  // kernels of two frameworks do that, too
      Unknown(Msg("small differences add up in {}, and no op of it stands out", out_.module));
      return;
    }
    out_.outcome = GraftEvidence::Outcome::kModule;
  }

  std::string a_, b_, parts_;
  std::set<std::string> roots_;
  std::map<std::string, std::string> root_of_;  // op of B -> its grafted call
  GraftEvidence out_;
};

}  // namespace

GraftEvidence CompareGrafts(const RunFiles& a, const RunFiles& b, const std::string& output) {
  GraftEvidence none;
  if (b.grafts.empty() || b.grafts.back().steps.empty()) return none;
  const RunDump& graft = b.grafts.back();
  const int step = graft.steps.front();
  const std::string golden = StepDirectory(a.dumps, step);
  StatusOr<GraftEvidence> found = BadInput(Msg("A has no recorded step {}", step + 1));
  if (!golden.empty()) found = GraftComparison(golden, StepDirectory(b.grafts, step), step, output).Run();
  if (found.ok()) return *std::move(found);
  none.outcome = GraftEvidence::Outcome::kUnknown;
  none.step = step;
  none.why = found.status().text();
  return none;
}

}  // namespace msprobe
