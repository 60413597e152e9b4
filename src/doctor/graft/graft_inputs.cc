// The inputs that A gave modules of B, as files that B's framework reads.
#include <algorithm>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "compare/values/tensor_folder.h"
#include "doctor/graft/graft.h"
#include "doctor/graft/graft_calls.h"
#include "json/writer.h"
#include "tensor/files/npy_writer.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {
namespace {

constexpr size_t kMostModules = 200;
constexpr uint64_t kMostBytes = uint64_t{20} << 30;

/// A tensor that a call got: "input.0", "kwargs.mask".
struct CallInput {
  std::string place, data_name;
  std::vector<int64_t> shape;
  bool whole = false;
  DType dtype = DType::kUnknown;
  bool taken = false;
};

void AddInput(const std::string& place, const JsonValue& item, std::vector<CallInput>* out) {
  if (item["data_name"].Text().empty()) return;
  CallInput input;
  input.place = place;
  input.data_name = item["data_name"].Text();
  for (const JsonValue& size : item["shape"].Items()) input.shape.push_back(size.Int());
  const std::string_view dtype = item["dtype"].Text();
  input.whole = Contains(dtype, "int") || Contains(dtype, "Int") || Contains(dtype, "bool") || Contains(dtype, "Bool");
  input.dtype = ParseDType(dtype);
  out->push_back(std::move(input));
}

StatusOr<std::vector<CallInput>> InputsOf(const DumpFile& dump, const std::string& call) {
  std::vector<CallInput> out;
  const auto at = dump.FindOp(call);
  if (!at) return out;
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(dump.ParseOp(*at, &doc));
  const JsonValue& op = doc;
  const JsonValue* args = op.Find("input_args");
  if (!args) args = op.Find("input");
  size_t number = 0;
  for (const JsonValue& item : args ? args->Items() : std::span<const JsonValue>()) {
    AddInput("input." + std::to_string(number++), item, &out);
  }
  for (const JsonMember& member : op["input_kwargs"].Members()) {
    AddInput("kwargs." + std::string(member.name), member.value, &out);
  }
  return out;
}

/// A's input for one of B: of the same place, else the next of its shape.
CallInput* PartnerOf(const CallInput& b, std::vector<CallInput>* of_a, bool by_place) {
  for (CallInput& a : *of_a) {
    const bool fits = !a.taken && a.shape == b.shape && a.whole == b.whole;
    if (fits && (!by_place || a.place == b.place)) return &a;
  }
  return nullptr;
}

class GraftWriter {
 public:
  GraftWriter(const DumpFile& a, const DumpFile& b, std::string directory)
      : a_(a), b_(b), folder_(a.path()), directory_(std::move(directory)) {}

  /// Whether any input was written.
  StatusOr<bool> Write(const std::string& call_a, const std::string& call_b) {
    MSP_ASSIGN_OR_RETURN(std::vector<CallInput> of_a, InputsOf(a_, call_a));
    MSP_ASSIGN_OR_RETURN(std::vector<CallInput> of_b, InputsOf(b_, call_b));
    size_t written = 0;
    for (const bool by_place : {true, false}) {
      for (CallInput& input : of_b) {
        if (input.taken) continue;
        CallInput* partner = PartnerOf(input, &of_a, by_place);
        if (partner == nullptr) continue;
        partner->taken = input.taken = true;
        MSP_RETURN_IF_ERROR(WriteOne(*partner, call_b + "." + input.place));
        ++written;
      }
    }
    return written > 0;
  }

 private:
  Status WriteOne(const CallInput& input, const std::string& name) {
    MSP_ASSIGN_OR_RETURN(const std::string path, folder_.Find(input.data_name));
    MSP_ASSIGN_OR_RETURN(const TensorFile file, TensorFile::Open(path, input.dtype));
    if (file.tensor() == nullptr)
      return BadInput(Msg("{} holds more than one tensor: it is no input of a module", path));
    if (bytes_ > kMostBytes) {
      return BadInput(Msg("the inputs of these modules are more than 20 GB: name one module with --graft"));
    }
    return WriteNpyFile(JoinPath(directory_, name + ".npy"), file.tensor()->view(), &bytes_);
  }

  const DumpFile& a_;
  const DumpFile& b_;
  TensorFolder folder_;
  std::string directory_;
  uint64_t bytes_ = 0;
};

/// The calls of B that are to be grafted.
StatusOr<std::set<std::string>> WantedCalls(const DumpFile& a, const DumpFile& b, const std::string& module) {
  if (module.empty()) return SeparateCalls(b, kMostModules);
  if (std::string call = CallOfModule(b, module); !call.empty()) return std::set<std::string>{std::move(call)};
  const std::string golden = CallOfModule(a, module);
  std::set<std::string> all;
  for (size_t i = 0; i < b.ops().size() && !golden.empty(); ++i) all.emplace(b.ops().NameAt(i));
  MSP_ASSIGN_OR_RETURN(const CallPairs pairs, PairCalls(a, b, all));
  for (const auto& [call, partner] : pairs) {
    if (partner == golden) return std::set<std::string>{call};
  }
  return BadInput(
      Msg("--graft: neither run recorded a module {} that the other has, too: give its path, such as layers.1.mlp, or "
          "the name of a call in dump.json",
          OneLine(module)));
}

Status WriteGraftConfig(const std::string& path, const std::string& inputs, const std::vector<std::string>& calls,
                        int step) {
  JsonWriter json(kJsonIndented);
  json.BeginObject();
  json.Member("task", "tensor");  // as A was recorded, so that both are compared alike
  json.Member("level", "mix");
  json.ObjectMember("load", [&] {
    json.Member("path", inputs);
    json.Member("modules", calls);
    json.Member("step", std::vector<int>{step});
    json.Member("dump_after_load", true);
  });
  json.EndObject();
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(json.Take() + "\n"));
  return file.Commit();
}

}  // namespace

std::optional<int> FirstCommonStep(const RunFiles& a, const RunFiles& b) {
  std::set<int> steps, out;
  for (const RunDump& dump : a.dumps) steps.insert(dump.steps.begin(), dump.steps.end());
  for (const RunDump& dump : b.dumps) {
    for (const int step : dump.steps) {
      if (step >= 0 && steps.contains(step)) out.insert(step);
    }
  }
  return out.empty() ? std::nullopt : std::optional<int>(*out.begin());
}

StatusOr<PreparedGraft> PrepareGraft(const RunFiles& a, const RunFiles& b, int step, const std::string& module,
                                     const std::string& output) {
  const auto dumps_a = RankDumps(StepDirectory(a.dumps, step)), dumps_b = RankDumps(StepDirectory(b.dumps, step));
  PreparedGraft out;
  std::set<std::string> calls;
  const std::string root = JoinPath(output, "graft_inputs");
  auto other = dumps_a.begin();
  for (const auto& [rank, path] : dumps_b) {
    // Ranks of one name belong together; of a single process each run may call its own otherwise.
    const auto same = dumps_a.find(rank);
    if (same != dumps_a.end()) other = same;
    if (other == dumps_a.end() || (same == dumps_a.end() && dumps_a.size() != dumps_b.size())) continue;
    MSP_ASSIGN_OR_RETURN(const DumpFile dump_a, DumpFile::Open(other->second));
    MSP_ASSIGN_OR_RETURN(const DumpFile dump_b, DumpFile::Open(path));
    ++other;
    MSP_ASSIGN_OR_RETURN(const std::set<std::string> wanted, WantedCalls(dump_a, dump_b, module));
    MSP_ASSIGN_OR_RETURN(const CallPairs pairs, PairCalls(dump_a, dump_b, wanted));
    std::string directory = JoinPath(root, "step" + std::to_string(step));
    directory = JoinPath(JoinPath(directory, rank.empty() ? "rank" : rank), "dump_tensor_data");
    MSP_RETURN_IF_ERROR(MakeOutputDir(directory));
    GraftWriter writer(dump_a, dump_b, directory);
    for (const auto& [call_b, call_a] : pairs) {
      MSP_ASSIGN_OR_RETURN(const bool any, writer.Write(call_a, call_b));
      if (any) calls.insert(call_b);
    }
  }
  if (calls.empty()) {
    return BadInput(
        Msg("no input of a module can be taken from A: record the step in both with task tensor and level mix"));
  }
  out.config = JoinPath(output, "graft.json");
  out.modules.assign(calls.begin(), calls.end());
  MSP_RETURN_IF_ERROR(WriteGraftConfig(out.config, root, out.modules, step));
  return out;
}

}  // namespace msprobe
