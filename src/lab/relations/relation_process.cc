#include "lab/relations/relation_process.h"

#include "base/embed.h"
#include "base/message.h"
#include "base/python_program.h"
#include "base/text.h"
#include "diagnose/replay/replay_program.h"
#include "json/parser.h"
#include "lab/check_process.h"
#include "lab/programs/check_programs.h"
#include "lab/relations/lab_program.h"
#include "lab/relations/relation.h"

MSPROBE_EMBED(relations, MSPROBE_PROGRAM_FILE);

namespace msprobe {
namespace {

constexpr char kLabName[] = "lab";
constexpr int kLongestAnswer = 600;  // seconds
constexpr int kMostRestarts = 100;   // of the process, each after a call that ended it
constexpr int64_t kMostPairBytes = int64_t{1} << 31;

std::string RelationProgram() {
  ProgramModules modules = CallModules();
  modules.emplace_back("_lab", LabProgram());
  modules.emplace_back("_changes", ChangesProgram());
  return JoinPrograms(modules, MSPROBE_EMBEDDED(relations));
}

std::string MemberText(const JsonValue& object, const char* key) { return std::string(object[key].Text()); }

}  // namespace

StatusOr<std::unique_ptr<RelationProcess>> RelationProcess::Start(const std::string& device) {
  std::unique_ptr<RelationProcess> out(new RelationProcess(device));
  MSP_RETURN_IF_ERROR(out->Begin());
  return out;
}

Status RelationProcess::Begin() {
  MSP_ASSIGN_OR_RETURN(process_, PythonProcess::Start(kLabName, RelationProgram(), {device_}));
  const StatusOr<std::string> line = process_->ReadLine();
  if (!line.ok() && line.status().code() != Code::kBadInput) return line.status();
  JsonDoc doc;
  const bool read = line.ok() && ParseJson(*line, "the answer of the laboratory", &doc).ok();
  if (const JsonValue* error = read ? doc.Find("error") : nullptr; error && error->IsString())
    return UsageError(Msg("lab: {}: set MSPROBE_PYTHON to a Python that has it, or choose the device with -d",
                          OneLine(error->Text())));
  if (!read || !doc.Find("torch"))
    return UsageError(
        Msg("lab: its process did not start: see its output above, or set MSPROBE_PYTHON to a different Python"));
  name_ = MemberText(doc, "device"), torch_ = MemberText(doc, "torch"), threads_ = doc["threads"].Int();
  return OkStatus();
}

Status RelationProcess::ReadPairs(const JsonValue& pairs, RelationCell* cell) {
  for (const JsonValue& v : pairs.Items()) {
    std::string got, want;
    for (const auto& [key, bytes] : {std::pair{"got_bytes", &got}, std::pair{"want_bytes", &want}}) {
      const int64_t size = v[key].Int();
      if (size < 0 || size > kMostPairBytes) return process_->Ended();
      MSP_ASSIGN_OR_RETURN(*bytes, process_->ReadBytes(static_cast<size_t>(size), kLongestAnswer));
    }
    UlpDistance distance;
    if (MeasureUlp(ParseDType(v["got"].Text()), got, ParseDType(v["want"].Text()), want, &distance,
                   ParseDType(v["as"].Text()))) {
      cell->distance.Add(distance);
    } else {
      cell->why = "no distance is known for results of " + OneLine(v["got"].Text());
    }
  }
  return OkStatus();
}

StatusOr<RelationAnswer> RelationProcess::Read(const std::string& line) {
  JsonDoc doc;
  RelationAnswer out;
  MSP_RETURN_IF_ERROR(ParseJson(line, "the answer of the laboratory", &doc));
  out.why = MemberText(doc, "why"), out.dtype = MemberText(doc, "dtype");
  if (const JsonValue* shape = doc.Find("shape")) {
    for (const JsonValue& size : shape->Items()) out.shape.push_back(size.Int());
  }
  const JsonValue* cells = doc.Find("cells");
  if (!cells) return out;
  for (const JsonValue& v : cells->Items()) {
    const auto relation = FindRelation(v["relation"].Text());
    if (!relation) return process_->Ended();
    RelationCell& cell = out.cells.emplace_back();
    cell.relation = *relation;
    cell.why = MemberText(v, "why"), cell.detail = MemberText(v, "detail");
    cell.apart = v["apart"].Bool();
    if (const JsonValue* pairs = v.Find("pairs")) MSP_RETURN_IF_ERROR(ReadPairs(*pairs, &cell));
  }
  return out;
}

StatusOr<RelationAnswer> RelationProcess::Ask(const std::string& request) {
  if (!process_) {
    if (++restarts_ > kMostRestarts)
      return InternalError(Msg("the process of the laboratory ended again and again: see what it wrote above"));
    MSP_RETURN_IF_ERROR(Begin());
  }
  Status status = process_->Send(request.data(), request.size());
  if (status.ok()) {
    StatusOr<std::string> line = process_->ReadLine(kLongestAnswer);
    status = line.status();
    if (line.ok()) {
      StatusOr<RelationAnswer> answer = Read(*line);
      if (answer.ok()) return answer;
      status = answer.status();
    }
  }
  if (status.code() != Code::kBadInput) return status;
  process_->Kill();
  process_.reset();
  RelationAnswer out;
  out.why = "the call ended its process or did not come to its end: see what it wrote";
  return out;
}

}  // namespace msprobe
