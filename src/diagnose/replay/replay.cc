#include "diagnose/replay/replay.h"

#include <cmath>
#include <limits>

#include "base/interrupt.h"
#include "base/message.h"
#include "base/python_program.h"
#include "base/text.h"
#include "diagnose/replay/op_call.h"
#include "diagnose/replay/replay_program.h"
#include "diagnose/replay/replay_request.h"
#include "json/parser.h"
#include "json/writer.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

constexpr std::string_view kOption = "--replay";
constexpr int kLongestSeconds = 300;  // of an op
constexpr int kMostRestarts = 5;      // a call that ends the process is the dump's fault, many are the machine's

double NumberOf(const JsonValue& object, const char* key) {
  const JsonValue* v = object.Find(key);
  if (v && v->IsNumber()) return v->Number();
  return std::numeric_limits<double>::infinity();  // "inf", or something that no number tells
}

ReplayFigures FiguresOf(const JsonValue& v) {
  ReplayFigures out;
  if (const JsonValue* dtype = v.Find("dtype"); dtype && dtype->IsString()) out.dtype = dtype->Text();
  out.error = NumberOf(v, "error");
  out.ulp = NumberOf(v, "ulp");
  out.limit = NumberOf(v, "limit");
  return out;
}

/// The [key, figures] pairs of one side, or null and why there are none.
const JsonValue* ItemsOf(const JsonValue& answer, const char* side, Message* why) {
  const JsonValue* sides = answer.Find("sides");
  const JsonValue* own = sides ? sides->Find(side) : nullptr;
  const JsonValue* items = own ? own->Find("items") : nullptr;
  if (items && items->IsArray()) return items;
  const JsonValue* text = own ? own->Find("why") : nullptr;
  if (why->empty()) *why = text && text->IsString() ? Message(std::string(text->Text())) : Msg("it gave no answer");
  return nullptr;
}

bool IsEntry(const JsonValue& v) { return v.IsArray() && v.size() == 2 && v[0].IsString() && v[1].IsObject(); }

void ReadAnswer(const JsonValue& answer, ReplayedOp* out) {
  const JsonValue* target = ItemsOf(answer, "target", &out->why);
  const JsonValue* golden = ItemsOf(answer, "golden", &out->why);
  if (!target || !golden) return;
  const JsonValue* truths = answer.Find("truths");
  for (const JsonValue& target_entry : target->Items()) {
    for (const JsonValue& golden_entry : golden->Items()) {
      if (!IsEntry(target_entry) || !IsEntry(golden_entry) || target_entry[0].Text() != golden_entry[0].Text())
        continue;
      ReplayedItem& item = out->items.emplace_back();
      item.item = target_entry[0].Text();
      item.target = FiguresOf(target_entry[1]);
      item.golden = FiguresOf(golden_entry[1]);
      if (truths && truths->IsObject() && truths->Find(item.item)) item.inputs = NumberOf(*truths, item.item.c_str());
    }
  }
  if (out->items.empty()) out->why = Msg("the two sides have no result in common");
  JudgeReplay(out);
}

/// Both sides as a request; "" when `why` says why not.
StatusOr<std::string> RequestOf(const DumpPair& pair, size_t op, ReplayedOp* out) {
  const uint32_t partner = pair.plan.golden_of[op];
  if (partner == kNoOp) {
    out->why = Msg("it has no partner in the golden run");
    return std::string();
  }
  out->golden_name = pair.golden->ops()[partner].name;
  if (TraitsOf(ApiOrClassOf(out->name)).Has(op_trait::kUndefined)) {
    out->why = Msg("it returns uninitialized memory");
    return std::string();
  }
  JsonWriter sides;
  sides.BeginObject();
  bool backward = false;
  const std::pair<const char*, std::pair<const DumpFile*, size_t>> both[] = {{"target", {pair.target.get(), op}},
                                                                             {"golden", {pair.golden.get(), partner}}};
  for (const auto& [name, place] : both) {
    const DumpFile& dump = *place.first;
    OpSide side;
    Status status = OkStatus();
    if (!dump.framework().empty() && dump.framework() != "pytorch")
      status = BadInput(Msg("it is not an op of PyTorch"));
    if (status.ok()) status = LoadOpSide(dump, place.second, &side);
    std::string json;
    if (status.ok()) {
      StatusOr<std::string> text = ReplaySideJson(dump, side);
      status = text.status();
      if (text.ok()) json = std::move(*text);
    }
    if (status.code() == Code::kBadInput) {
      out->why = status.text();
      return std::string();
    }
    MSP_RETURN_IF_ERROR(status);
    backward = side.backward;
    out->notes = side.call.notes;
    sides.RawMember(name, json);
  }
  sides.EndObject();
  JsonWriter request;
  request.BeginObject();
  request.Member("arithmetic", ArithmeticText(ArithmeticOf(out->name)));
  request.Member("backward", backward);
  request.RawMember("sides", sides.Take());
  request.EndObject();
  return request.Take() + "\n";
}

}  // namespace

StatusOr<std::unique_ptr<Replayer>> Replayer::Start() {
  std::unique_ptr<Replayer> out(new Replayer);
  MSP_RETURN_IF_ERROR(out->Begin());
  return out;
}

Status Replayer::Begin() {
  MSP_ASSIGN_OR_RETURN(
      process_, PythonProcess::Start(kOption, JoinPrograms({{"_channel", ChannelProgram()}}, ReplayProgram()), {}));
  const StatusOr<std::string> line = process_->ReadLine();
  if (!line.ok() && line.status().code() != Code::kBadInput) return line.status();
  JsonDoc doc;
  const bool read = line.ok() && ParseJson(*line, "the answer of --replay", &doc).ok();
  if (const JsonValue* error = read ? doc.Find("error") : nullptr; error && error->IsString())
    return UsageError(Msg("--replay: {}: set MSPROBE_PYTHON to a Python that has it", OneLine(error->Text())));
  if (read && doc.Find("torch")) return OkStatus();
  return UsageError(
      Msg("--replay: its process did not start: see its output above, or set MSPROBE_PYTHON to a different Python"));
}

StatusOr<std::string> Replayer::Ask(const std::string& question, Message* why) {
  if (!process_) {
    if (restarts_ == kMostRestarts) {
      *why = Msg("the process of --replay ended again and again");
      return std::string();
    }
    ++restarts_;
    MSP_RETURN_IF_ERROR(Begin());
  }
  Status status = process_->Send(question.data(), question.size());
  if (status.ok()) {
    StatusOr<std::string> line = process_->ReadLine(kLongestSeconds);
    if (line.ok()) return line;
    status = line.status();
  }
  if (status.code() != Code::kBadInput) return status;
  process_->Kill();
  process_.reset();
  *why = Msg("the replay of this op did not come to its end: {}", status.text());
  return std::string();
}

StatusOr<ReplayedOp> Replayer::Replay(const DumpPair& pair, size_t op) {
  ReplayedOp out;
  out.name = pair.target->ops()[op].name;
  MSP_ASSIGN_OR_RETURN(const std::string question, RequestOf(pair, op, &out));
  if (question.empty()) return out;
  MSP_ASSIGN_OR_RETURN(const std::string line, Ask(question, &out.why));
  if (line.empty()) return out;
  JsonDoc answer;
  MSP_RETURN_IF_ERROR(ParseJson(line, "the answer of --replay", &answer));
  ReadAnswer(answer, &out);
  return out;
}

StatusOr<std::vector<ReplayedOp>> ReplayOps(const ReplayPlan& plan, const Mapping& mapping, Replayer* replayer,
                                            const ReplayProgress& progress) {
  std::vector<ReplayedOp> out;
  const std::vector<ReplayPlan::Entry> entries = plan.Entries();
  std::optional<DumpPair> pair;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (InterruptRequested()) return Interrupted();
    const FilePair& files = plan.files()[entries[i].files];
    if (i == 0 || entries[i].files != entries[i - 1].files) {
      pair.reset();
      MSP_ASSIGN_OR_RETURN(pair, OpenDumpPair(files, mapping));
    }
    if (entries[i].op >= pair->target->ops().size()) return InternalError(Msg("--replay: an op is not where it was"));
    MSP_ASSIGN_OR_RETURN(ReplayedOp op, replayer->Replay(*pair, entries[i].op));
    op.label = files.label;
    op.target_dump = files.target;
    out.push_back(std::move(op));
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(entries.size()));
  }
  return out;
}

}  // namespace msprobe
