#include "lab/relations/relation_matrix.h"

#include <algorithm>

#include "base/interrupt.h"
#include "base/message.h"
#include "base/text.h"
#include "diagnose/replay/op_call.h"
#include "dump/reader.h"
#include "json/writer.h"
#include "lab/call_plan.h"
#include "lab/call_request.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

std::vector<int64_t> ShapeOf(const JsonValue& leaf) {
  std::vector<int64_t> out;
  for (const JsonValue& size : leaf.Find("shape")->Items()) out.push_back(size.Int());
  return out;
}

/// The sizes that the first call of a model shows: those of token numbers, of embedded positions, or of pictures.
struct RunSizes {
  int64_t batch = 0, sequence = 0;

  bool Take(const JsonValue& leaf) {
    const std::vector<int64_t> shape = ShapeOf(leaf);
    const bool floating = IsFloating(ParseDType(leaf.Find("dtype")->Text()));
    if (shape.size() < 2 || (!floating && shape.size() != 2)) return false;
    batch = shape[0];
    sequence = (!floating || shape.size() == 3) ? shape[1] : 0;
    return true;
  }
};

StatusOr<RunSizes> SizesOfRun(const DumpFile& dump, const std::vector<PlannedCall>& plan) {
  RunSizes first;
  bool found = false;
  JsonDoc doc;
  for (const PlannedCall& call : plan) {
    const bool embedding = call.api == "embedding";
    if (found && !embedding) continue;
    MSP_RETURN_IF_ERROR(dump.ParseOp(call.forward, &doc));
    CallTensors tensors;
    if (const JsonValue* args = doc.Find("input_args")) CollectTensors(*args, "input", &tensors);
    if (tensors.empty()) continue;
    RunSizes sizes;
    const bool taken = sizes.Take(*tensors.front().second);
    if (taken && embedding) return sizes;
    if (taken && !found) first = sizes, found = true;
  }
  return first;
}

StatusOr<std::vector<size_t>> RelationsOf(const std::vector<std::string>& names) {
  std::vector<size_t> out;
  for (const std::string& name : names) {
    const auto found = FindRelation(name);
    if (!found && name != "all") {
      std::string known;
      for (const Relation& relation : kRelations) known += (known.empty() ? "" : ", ") + std::string(relation.name);
      return UsageError(Msg("lab: there is no relation {}: use all, {}", OneLine(name), known));
    }
    for (size_t i = 0; i < kRelations.size(); ++i) {
      if ((name == "all" || i == found) && std::find(out.begin(), out.end(), i) == out.end()) out.push_back(i);
    }
  }
  for (size_t i = 0; names.empty() && i < kRelations.size(); ++i) {
    if (kRelations[i].usual) out.push_back(i);
  }
  return out;
}

StatusOr<std::string> FileOf(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const DumpPath found, ResolveDumpPath(path));
  if (found.kind == PathKind::kFile) return found.path;
  for (const StepDir& step : found.steps) {
    if (!step.ranks.empty()) return step.ranks.front().path + "/dump.json";
  }
  return BadInput(Msg("{} holds no dump.json: give the directory that a capture wrote", path));
}

class Matrix {
 public:
  Matrix(const MatrixSettings& settings, const DumpFile& dump, MatrixReport* report)
      : settings_(settings), dump_(dump), report_(report) {
    JsonWriter json;
    json.BeginObject();
    json.ArrayMember("relations", report->relations, [&](size_t i) { json.String(kRelations[i].name); });
    json.Member("batch", report->batch);
    json.Member("sequence", report->sequence);
    json.Member("rows", settings.rows);
    json.Member("chunk", settings.chunk);
    json.Member("pad", settings.pad);
    json.EndObject();
    settings_text_ = json.Take().substr(1);
  }

  Status Run(const std::vector<PlannedCall>& plan, RelationProcess* process) {
    for (const PlannedCall& call : plan) {
      if (InterruptRequested()) return Interrupted();
      const auto& ops = settings_.ops;
      if (!ops.empty() && std::find(ops.begin(), ops.end(), call.api) == ops.end()) continue;
      if (ArithmeticOf(dump_.ops()[call.forward].name) == Arithmetic::kCopy) {
        ++report_->copies;
        continue;
      }
      MatrixRow row{call.full, call.api, {}};
      row.answer.why = call.skip;
      if (call.skip.empty()) {
        MSP_ASSIGN_OR_RETURN(row.answer, Ask(call, process));
      }
      report_->rows.push_back(std::move(row));
    }
    for (const size_t relation : report_->relations) report_->origins.push_back(OriginOf(relation));
    return OkStatus();
  }

 private:
  StatusOr<RelationAnswer> Ask(const PlannedCall& call, RelationProcess* process) const {
    StatusOr<std::string> request = CallRequest(dump_, call);
    if (!request.ok()) {
      if (request.status().code() != Code::kBadInput) return request.status();
      RelationAnswer out;
      out.why = request.status().message();
      return out;
    }
    request->resize(request->rfind('}'));
    return process->Ask(*request + "," + settings_text_ + "\n");
  }

  RelationOrigin OriginOf(size_t relation) const {
    RelationOrigin out;
    out.relation = relation;
    for (size_t i = 0; i < report_->rows.size(); ++i) {
      const std::vector<RelationCell>& cells = report_->rows[i].answer.cells;
      const auto cell =
          std::find_if(cells.begin(), cells.end(), [&](const RelationCell& c) { return c.relation == relation; });
      const bool known = cell != cells.end() && cell->why.empty();
      const bool apart = cell != cells.end() && cell->apart;
      out.unknown += !known && !apart && !out.row;
      if (!known || cell->distance.differ == 0) continue;
      ++out.differ;
      if (!out.row) out.row = i;
    }
    return out;
  }

  const MatrixSettings& settings_;
  const DumpFile& dump_;
  MatrixReport* report_;
  std::string settings_text_;  // members and the end of an object
};

}  // namespace

StatusOr<MatrixReport> MakeRelationMatrix(const MatrixSettings& settings) {
  MatrixReport report;
  MSP_ASSIGN_OR_RETURN(report.relations, RelationsOf(settings.relations));
  MSP_ASSIGN_OR_RETURN(report.dump, FileOf(settings.dump));
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(report.dump));
  if (!dump.framework().empty() && dump.framework() != "pytorch")
    return BadInput(Msg("{} is a dump of {}: lab calls functions of PyTorch", report.dump, dump.framework()));
  report.truncated = dump.truncated();
  MSP_ASSIGN_OR_RETURN(const std::vector<PlannedCall> plan, PlanCalls(dump, {}));
  MSP_ASSIGN_OR_RETURN(const RunSizes sizes, SizesOfRun(dump, plan));
  report.batch = settings.batch > 0 ? settings.batch : sizes.batch;
  report.sequence = settings.sequence > 0 ? settings.sequence : sizes.sequence;
  MSP_ASSIGN_OR_RETURN(const std::unique_ptr<RelationProcess> process, RelationProcess::Start(settings.device));
  report.device = process->device(), report.torch = process->torch(), report.threads = process->threads();
  Matrix matrix(settings, dump, &report);
  MSP_RETURN_IF_ERROR(matrix.Run(plan, process.get()));
  return report;
}

}  // namespace msprobe
