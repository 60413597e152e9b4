#include "lab/overflow_replay.h"

#include <cmath>
#include <limits>
#include <memory>

#include "diagnose/replay/op_call.h"
#include "lab/call_plan.h"
#include "lab/call_request.h"
#include "lab/check_process.h"
#include "lab/result_values.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

bool IsBeyond(const JsonValue& leaf) {
  for (const char* key : {"Max", "Min"}) {
    const JsonValue* v = leaf.Find(key);
    if (!v) continue;
    if (v->IsNumber() && !std::isfinite(v->Number())) return true;
    if (v->IsString() &&
        (v->Text().find("nan") != std::string_view::npos || v->Text().find("inf") != std::string_view::npos))
      return true;
  }
  return false;
}

/// Whether a recorded result has NaN or infinities.
bool HasOverflowed(const JsonValue& op) {
  CallTensors outputs;
  if (const JsonValue* v = op.Find("output")) CollectTensors(*v, "output", &outputs);
  for (const auto& [key, leaf] : outputs) {
    if (IsBeyond(*leaf)) return true;
  }
  return false;
}

bool AnyBeyond(const std::vector<double>& values, double largest) {
  for (const double v : values) {
    if (!(std::abs(v) <= largest)) return true;
  }
  return false;
}

OverflowCause CauseOf(const CallAnswer& answer) {
  OverflowCause out = OverflowCause::kGone;
  for (const ResultItem& item : answer.forward) {
    const DType dtype = ParseDType(item.dtype);
    if (item.kind != ResultItem::Kind::kTensor || !(IsFloating(dtype) || IsComplex(dtype))) continue;
    const double largest = InfoOf(dtype).largest;
    if (AnyBeyond(FloatsOf(item.truth, DType::kFloat64), largest)) return OverflowCause::kExpected;
    if (AnyBeyond(FloatsOf(item.ours, dtype), largest)) out = OverflowCause::kUnexpected;
  }
  return out;
}

}  // namespace

std::string_view OverflowCauseText(OverflowCause cause) {
  switch (cause) {
    case OverflowCause::kExpected: return "expected";
    case OverflowCause::kUnexpected: return "not expected";
    case OverflowCause::kGone: return "does not come again";
    case OverflowCause::kUnknown: break;
  }
  return "not known";
}

StatusOr<OverflowReplay> ReplayOverflows(const std::string& dump_path, const std::string& device) {
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(dump_path));
  MSP_ASSIGN_OR_RETURN(const std::vector<PlannedCall> plan, PlanCalls(dump, CallFilter()));
  const LabFramework framework = dump.framework() == "mindspore" ? LabFramework::kMindSpore : LabFramework::kTorch;
  MSP_ASSIGN_OR_RETURN(std::unique_ptr<CheckProcess> process, CheckProcess::Start(device, framework));
  OverflowReplay out;
  out.device = process->device();
  for (const PlannedCall& call : plan) {
    ++out.calls;
    JsonDoc doc;
    MSP_RETURN_IF_ERROR(dump.ParseOp(call.forward, &doc));
    if (!HasOverflowed(doc)) continue;
    OverflowedCall& found = out.overflowed.emplace_back();
    found.full = call.full, found.why = call.skip;
    if (!call.skip.empty()) continue;
    const StatusOr<std::string> request = CallRequest(dump, call);
    if (!request.ok()) {
      if (request.status().code() != Code::kBadInput) return request.status();
      found.why = request.status().message();
      continue;
    }
    MSP_ASSIGN_OR_RETURN(const CallAnswer answer, process->Call(*request));
    found.why = answer.draws ? "it draws random numbers" : answer.why;
    if (found.why.empty()) found.cause = CauseOf(answer);
  }
  return out;
}

}  // namespace msprobe
