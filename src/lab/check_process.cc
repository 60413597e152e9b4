#include "lab/check_process.h"

#include <algorithm>
#include <limits>

#include "base/embed.h"
#include "base/file.h"
#include "base/message.h"
#include "base/python_program.h"
#include "base/text.h"
#include "diagnose/replay/replay_program.h"
#include "json/parser.h"
#include "json/writer.h"
#include "lab/programs/check_programs.h"

MSPROBE_EMBED(lab, MSPROBE_PROGRAM_FILE);

namespace msprobe {

ProgramModules CallModules() {
  return {{"_channel", ChannelProgram()},   {"_compat", CompatProgram()},
          {"_replay", ReplayProgram()},     {"_calls", CallsProgram()},
          {"_element", ElementProgram()},   {"_steps", StepsProgram()},
          {"_extended", ExtendedProgram()}, {"_draws", DrawsProgram()},
          {"_recorded", RecordedProgram()}, {"_collectives", CollectivesProgram()},
          {"_choices", ChoicesProgram()},   {"_near", NearProgram()}};
}

namespace {

constexpr char kName[] = "acc_check";
constexpr int kLongestCall = 600;  // seconds
constexpr int kMostEnds = 1000;    // of the process, each by a call
constexpr int64_t kMostResultBytes = int64_t{1} << 31;

/// All programs of a framework as one: what they share are modules.
std::string CheckProgram(LabFramework framework) {
  if (framework == LabFramework::kMindSpore)
    return JoinPrograms({{"_channel", ChannelProgram()}, {"_numpy_truth", NumpyTruthProgram()}}, MindSporeProgram());
  return JoinPrograms(CallModules(), MSPROBE_EMBEDDED(lab));
}

std::string TextOf(const JsonValue& object, const char* key) { return std::string(object[key].Text()); }

/// What is no number is "inf" or "nan": a result of another kind.
double FigureOf(const JsonValue& v) { return v.IsNumber() ? v.Number() : std::numeric_limits<double>::infinity(); }

ResultItem::Kind KindOf(std::string_view text) {
  if (text == "tensor") return ResultItem::Kind::kTensor;
  if (text == "value") return ResultItem::Kind::kValue;
  return text == "none" ? ResultItem::Kind::kNone : ResultItem::Kind::kApart;
}

Float64Verdict VerdictNamed(std::string_view text) {
  if (text == "right") return Float64Verdict::kRight;
  return text == "suspicious" ? Float64Verdict::kSuspicious : Float64Verdict::kWrong;
}

std::vector<int64_t> SizesOf(const JsonValue& v) {
  std::vector<int64_t> out;
  for (const JsonValue& size : v.Items()) out.push_back(size.Int());
  return out;
}

/// The request, and into which part its results go.
std::string WithPart(std::string request, int part) {
  request.resize(request.rfind('}'));
  return std::move(request) + ",\"part\":" + std::to_string(part) + "}\n";
}

}  // namespace

/// The bytes behind an answer, one tensor after the other: from the shared memory, or else from the socket.
class AnswerBytes {
 public:
  AnswerBytes(PythonProcess* process, std::string_view shared, std::deque<std::string>* received)
      : process_(process), shared_(shared), received_(received) {}

  StatusOr<std::string_view> Next(int64_t size) {
    if (size < 0 || size > kMostResultBytes) return process_->Ended();
    const auto bytes = static_cast<size_t>(size);
    if (received_) {
      MSP_ASSIGN_OR_RETURN(std::string read, process_->ReadBytes(bytes, kLongestCall));
      received_->push_back(std::move(read));
      return std::string_view(received_->back());
    }
    if (bytes > shared_.size()) return process_->Ended();
    const std::string_view out = shared_.substr(0, bytes);
    shared_.remove_prefix(std::min(shared_.size(), AlignUp(bytes)));
    return out;
  }

 private:
  static size_t AlignUp(size_t bytes) {
    return (bytes + SharedBytes::kAligned - 1) / SharedBytes::kAligned * SharedBytes::kAligned;
  }

  PythonProcess* process_;
  std::string_view shared_;
  std::deque<std::string>* received_;  // null: they are in the shared memory
};

StatusOr<std::unique_ptr<CheckProcess>> CheckProcess::Start(const std::string& device, LabFramework framework) {
  std::unique_ptr<CheckProcess> out(new CheckProcess(device, framework));
  MSP_RETURN_IF_ERROR(out->Begin());
  return out;
}

Status CheckProcess::Begin() {
  if (!shared_) shared_ = SharedBytes::Open();
  MSP_ASSIGN_OR_RETURN(
      process_, PythonProcess::Start(kName, CheckProgram(framework_), {device_}, shared_ ? shared_->descriptor() : -1));
  const StatusOr<std::string> line = process_->ReadLine();
  if (!line.ok() && line.status().code() != Code::kBadInput) return line.status();
  JsonDoc doc;
  const bool read = line.ok() && ParseJson(*line, "the answer of acc_check", &doc).ok();
  if (const JsonValue* error = read ? doc.Find("error") : nullptr; error && error->IsString())
    return UsageError(Msg("acc_check: {}: set MSPROBE_PYTHON to a Python that has it, or choose the device with -d",
                          OneLine(error->Text())));
  if (!read || !doc.Find("device"))
    return UsageError(
        Msg("acc_check: its process did not start: see its output above, or set MSPROBE_PYTHON to a different Python"));
  name_ = TextOf(doc, "device");
  return OkStatus();
}

Status CheckProcess::ReadItems(const JsonValue* items, AnswerBytes* bytes, std::vector<ResultItem>* out) {
  if (!items) return OkStatus();
  for (const JsonValue& v : items->Items()) {
    ResultItem& item = out->emplace_back();
    item.kind = KindOf(v["kind"].Text());
    item.dtype = TextOf(v, item.kind == ResultItem::Kind::kTensor ? "dtype" : "type");
    item.same = v["same"].Bool();
    if (const JsonValue* error = v.Find("error"), *limit = v.Find("limit"); error && limit)
      item.error = FigureOf(*error), item.limit = FigureOf(*limit);
    if (const JsonValue* rule = v.Find("rule")) item.rule = rule->Text();
    if (const JsonValue* unknown = v.Find("unknown")) item.unknown = unknown->Text();
    if (const JsonValue* known = v.Find("known")) item.known = known->Text();
    if (const JsonValue* ulps = v.Find("ulps"))
      item.ulps = FigureOf(*ulps), item.terms = FigureOf(v["terms"]), item.condition = FigureOf(v["condition"]);
    if (item.kind != ResultItem::Kind::kTensor) continue;
    item.shape = SizesOf(v["shape"]), item.truth_shape = SizesOf(v["truth_shape"]);
    for (const auto& [key, part] : {std::pair{"bytes", &item.ours}, std::pair{"truth_bytes", &item.truth},
                                    std::pair{"low_bytes", &item.low}, std::pair{"bound_bytes", &item.bound}}) {
      const JsonValue* count = v.Find(key);
      if (!count) continue;
      MSP_ASSIGN_OR_RETURN(*part, bytes->Next(count->Int()));
    }
  }
  return OkStatus();
}

StatusOr<CallAnswer> CheckProcess::Read(const std::string& line, std::unique_ptr<SharedBytes::Part> part) {
  JsonDoc doc;
  CallAnswer out;
  MSP_RETURN_IF_ERROR(ParseJson(line, "the answer of acc_check", &doc));
  out.why = TextOf(doc, "why");
  out.note = TextOf(doc, "note");
  if (const JsonValue* drawn = doc.Find("draws"); drawn && drawn->IsObject()) {
    out.draws = DrawnResult{VerdictNamed((*drawn)["verdict"].Text()), FigureOf((*drawn)["distance"]),
                            FigureOf((*drawn)["limit"]), (*drawn)["values"].Int()};
  }
  std::string_view shared;
  if (const JsonValue* size = doc.Find("shared"); size && part) {
    shared = part->Read(static_cast<uint64_t>(size->Int()));
    if (static_cast<int64_t>(shared.size()) != size->Int()) return process_->Ended();
    out.shared = std::move(part);
  }
  AnswerBytes bytes(process_.get(), shared, out.shared ? nullptr : &out.received);
  MSP_RETURN_IF_ERROR(ReadItems(doc.Find("forward"), &bytes, &out.forward));
  MSP_RETURN_IF_ERROR(ReadItems(doc.Find("backward"), &bytes, &out.backward));
  return out;
}

StatusOr<CallAnswer> CheckProcess::Call(const std::string& request) {
  if (!process_) {
    if (++restarts_ > kMostEnds)
      return InternalError(Msg("the process of acc_check ended again and again: see what it wrote above"));
    MSP_RETURN_IF_ERROR(Begin());
  }
  std::unique_ptr<SharedBytes::Part> part = SharedBytes::Take(shared_);
  const std::string line_out = part ? WithPart(request, part->number()) : request;
  Status status = process_->Send(line_out.data(), line_out.size());
  if (status.ok()) {
    StatusOr<std::string> line = process_->ReadLine(kLongestCall);
    status = line.status();
    if (line.ok()) {
      StatusOr<CallAnswer> answer = Read(*line, std::move(part));
      if (answer.ok()) return answer;
      status = answer.status();
    }
  }
  if (status.code() != Code::kBadInput) return status;
  process_->Kill();
  process_.reset();
  CallAnswer out;
  out.why = "the call ended its process or did not come to its end: see what it wrote";
  return out;
}

Status CheckProcess::Save(const std::string& folder, const std::string& full) {
  if (!process_) return OkStatus();
  JsonWriter json;
  json.BeginObject();
  json.ObjectMember("save", [&] {
    for (const char* part : {"forward.input", "forward.output.bench", "forward.output.device", "backward.input",
                             "backward.output.bench", "backward.output.device"}) {
      json.Member(JoinPath(folder, full + "." + part), part);
    }
  });
  json.EndObject();
  const std::string request = json.Take() + "\n";
  MSP_RETURN_IF_ERROR(process_->Send(request.data(), request.size()));
  MSP_ASSIGN_OR_RETURN(const std::string line, process_->ReadLine(kLongestCall));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(line, "the answer of acc_check", &doc));
  if (doc.Find("saved")) return OkStatus();
  return InternalError(Msg("cannot save the data of {}: {}", full, TextOf(doc, "why")));
}

}  // namespace msprobe
