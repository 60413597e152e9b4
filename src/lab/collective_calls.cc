#include "lab/collective_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "compare/values/tensor_folder.h"
#include "diagnose/replay/op_call.h"
#include "dump/step_summary.h"
#include "json/writer.h"
#include "ops/collective.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {
namespace {

constexpr size_t kMostRanks = 64;

/// {data_name: path} of tensors that are all there.
Status WriteFiles(const DumpFile& dump, const std::vector<const JsonValue*>& values, JsonWriter* json) {
  const TensorFolder folder(dump.path());
  for (const JsonValue* value : values) {
    if (!value) continue;
    CallTensors tensors;
    CollectTensors(*value, "tensor", &tensors);
    for (const auto& [key, leaf] : tensors) {
      const JsonValue* name = leaf->Find("data_name");
      if (!name || !name->IsString())
        return BadInput(
            Msg("the dump of a rank has no values of it: communications are checked with task tensor on all ranks"));
      MSP_ASSIGN_OR_RETURN(const std::string path, folder.Find(name->Text()));
      if (!EndsWith(path, ".pt") && !EndsWith(path, ".safetensors"))
        return BadInput(Msg("{} is not a file of PyTorch", OneLine(path)));
      // Our own reader looks first: sizes that do not fit are found before anything is allocated.
      MSP_RETURN_IF_ERROR(TensorFile::Open(path, ParseDType(leaf->Find("dtype")->Text())).status());
      json->Member(name->Text(), path);
    }
  }
  return OkStatus();
}

bool HasGroup(const JsonValue& value) {
  if (value.IsArray()) return std::any_of(value.Items().begin(), value.Items().end(), HasGroup);
  if (!value.IsObject()) return false;
  if (value.Find("group_ranks")) return true;
  for (const auto& m : value.Members()) {
    if (HasGroup(m.value)) return true;
  }
  return false;
}

bool NamesItsGroup(const JsonValue& op) {
  for (const char* key : {"input_args", "input_kwargs"}) {
    if (const JsonValue* v = op.Find(key); v && HasGroup(*v)) return true;
  }
  return false;
}

int64_t ElementsOf(const JsonValue& tensor) {
  if (!IsTensorLeaf(tensor)) return 0;
  int64_t out = 1;
  for (const JsonValue& size : tensor.Find("shape")->Items()) out *= size.Int();
  return out;
}

/// How many ranks the call of a gathering function shows; 0: nothing.
uint64_t ShownRanks(std::string_view api, const JsonValue& op) {
  const JsonValue *args = op.Find("input_args"), *output = op.Find("output");
  if (!args || !args->IsArray() || args->size() < 2 || !output || !output->IsArray() || output->empty()) return 0;
  const JsonValue &given = (*args)[1], &filled = (*output)[0];
  if (api == "all_gather" || api == "all_to_all") return filled.IsArray() ? filled.size() : 0;
  if (api == "reduce_scatter") return given.IsArray() ? given.size() : 0;
  int64_t many = ElementsOf(filled), one = ElementsOf(given);
  if (api == "reduce_scatter_tensor" || api == "reduce_scatter_single" || api == "_reduce_scatter_base") {
    std::swap(many, one);
  } else if (api != "all_gather_into_tensor" && api != "all_gather_single" && api != "_all_gather_base") {
    return 0;
  }
  return one > 0 && many > 0 && many % one == 0 ? static_cast<uint64_t>(many / one) : 0;
}

/// A dump does not name the default group: the summary of the step says how many ranks it has, or one of its calls.
StatusOr<uint64_t> RanksOf(const DumpFile& dump, const CommRank& calls, const std::string& folder) {
  const StatusOr<StepSummary> summary = StepSummary::Read(JoinPath(folder, kSummaryName));
  if (summary.ok() && summary->ranks > 0) return summary->ranks;
  JsonDoc op;
  for (const CommCall& call : calls.calls) {
    if (!Contains(call.api, "all_gather") && !Contains(call.api, "reduce_scatter") && call.api != "all_to_all")
      continue;
    MSP_RETURN_IF_ERROR(dump.ParseOp(call.op, &op));
    if (NamesItsGroup(op)) continue;
    if (const uint64_t shown = ShownRanks(call.api, op); shown > 0) return shown;
  }
  return uint64_t{0};
}

}  // namespace

Status CollectiveCalls::Open(const DumpFile& dump) {
  own_ = &dump;
  std::error_code error;
  const std::string path = std::filesystem::absolute(dump.path(), error).lexically_normal().string();
  if (error) return BadInput(Msg("cannot find {}: {}", dump.path(), KnownText(error.message())));
  const std::string folder(DirName(path));
  std::vector<RankDump> dumps;
  const StatusOr<DumpPath> step = ResolveDumpPath(std::string(DirName(folder)));
  for (const RankDir& rank :
       step.ok() && step->kind == PathKind::kStep ? step->steps.front().ranks : std::vector<RankDir>()) {
    if (!rank.rank) continue;
    if (rank.name == BaseName(folder)) {
      own_rank_ = *rank.rank;
      continue;
    }
    StatusOr<DumpFile> other = DumpFile::Open(JoinPath(rank.path, "dump.json"));
    if (other.ok()) {
      others_.emplace(*rank.rank, *std::move(other));
    } else {
      broken_.emplace(*rank.rank, other.status().message());
    }
  }
  dumps.push_back({own_rank_, own_});
  for (const auto& [rank, other] : others_) dumps.push_back({rank, &other});
  MSP_ASSIGN_OR_RETURN(graph_, ReadCommunication(std::move(dumps)));
  MSP_ASSIGN_OR_RETURN(ranks_, RanksOf(dump, graph_.ranks[graph_.IndexOf(own_rank_)], folder));
  return OkStatus();
}

const DumpFile& CollectiveCalls::DumpOf(size_t rank) const {
  const auto found = others_.find(graph_.ranks[rank].rank);
  return found == others_.end() ? *own_ : found->second;
}

Status CollectiveCalls::CheckEvent(const CommCall& call, const CommEvent& event) const {
  for (const int rank : event.missing) {
    const auto broken = broken_.find(rank);
    if (broken != broken_.end()) return BadInput(broken->second);
    return BadInput(
        Msg("it needs the dumps of all ranks of its group side by side, and rank {} has no such call there", rank));
  }
  if (event.members.size() < 2)
    return BadInput(Msg("it needs the dumps of all ranks of its group side by side, and there is only this one"));
  if (event.members.size() > kMostRanks)
    return BadInput(Msg("its group has {} ranks, and at most {} are started", event.members.size(), kMostRanks));
  const bool pair = FlowOf(call.api) == CommFlow::kSend || FlowOf(call.api) == CommFlow::kReceive;
  for (const CommMember& member : event.members) {
    const std::string& other = graph_.ranks[member.rank].calls[member.call].api;
    if (!pair && other != call.api) return BadInput(Msg("other ranks make another call: {}", OneLine(other)));
  }
  return OkStatus();
}

StatusOr<std::string> CollectiveCalls::Request(const PlannedCall& call) const {
  const size_t own = graph_.IndexOf(own_rank_);
  const CommRank& rank = graph_.ranks[own];
  const size_t at = rank.CallFrom(call.forward);
  if (at == rank.calls.size() || rank.calls[at].op != call.forward || rank.calls[at].parts.size() != 1)
    return BadInput(Msg("API {} not support for acc_check. SKIP.", call.full));
  const CommCall& found = rank.calls[at];
  const CommPart& part = found.parts.front();
  if (!part.takes) return BadInput(Msg("nothing arrives at this rank: the results of the others are judged"));
  const CommEvent& event = graph_.events[part.event];
  MSP_RETURN_IF_ERROR(CheckEvent(found, event));
  JsonWriter json;
  JsonDoc op;
  bool known = false;
  json.BeginObject();
  json.Key("collective"), json.BeginObject();
  json.Key("members"), json.BeginArray();
  for (const CommMember& member : event.members) {
    const DumpFile& dump = DumpOf(member.rank);
    const CommCall& other = graph_.ranks[member.rank].calls[member.call];
    MSP_RETURN_IF_ERROR(dump.ParseOp(other.op, &op));
    const bool is_own = member.rank == own;
    json.BeginObject();
    json.Key("rank"), json.Int(graph_.ranks[member.rank].rank);
    json.Member("api", other.api);
    json.Member("own", is_own);
    json.Key("op"), json.Value(op);
    json.Key("files"), json.BeginObject();
    MSP_RETURN_IF_ERROR(WriteFiles(
        dump, {op.Find("input_args"), op.Find("input_kwargs"), is_own ? op.Find("output") : nullptr}, &json));
    json.EndObject();
    json.EndObject();
    known = known || NamesItsGroup(op);
  }
  json.EndArray();
  const bool pair = FlowOf(found.api) == CommFlow::kReceive;
  if (!pair && !known && ranks_ > 0 && ranks_ != event.members.size())
    return BadInput(Msg("it needs the dumps of all {} ranks of the training side by side", ranks_));
  json.Member("known", known || ranks_ > 0);
  json.EndObject();
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace msprobe
