#include "report/advisor.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "json/writer.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

std::string Lower(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

std::string_view KindText(AdviceKind kind) {
  switch (kind) {
    case AdviceKind::kNone: return "none";
    case AdviceKind::kForwardInput: return "forward_input";
    case AdviceKind::kForwardOutput: return "forward_output";
    case AdviceKind::kBackwardInput: return "backward_input";
    case AdviceKind::kBackwardOutput: return "backward_output";
    case AdviceKind::kBatchNorm: return "batch_norm";
    case AdviceKind::kDeterministic: return "deterministic";
  }
  return "";
}

std::string_view Words(AdviceKind kind) {
  switch (kind) {
    case AdviceKind::kNone: return "NA (every row passed)";
    case AdviceKind::kForwardInput:
      return "Its input was different already. Look for where the input comes from (data, a parameter, an op that was "
             "not captured); for an op that changes the tensor in place between the two; for memory that was freed or "
             "never filled.";
    case AdviceKind::kForwardOutput:
      return "Its inputs agree and its output does not: look at how the forward of this op is implemented, its "
             "arguments and its dtype.";
    case AdviceKind::kBackwardInput:
      return "The gradient that comes in is different: compare the forward results first, the loss among them; then "
             "the backward ops before this one.";
    case AdviceKind::kBackwardOutput:
      return "The gradient that comes in agrees and the one that leaves does not: look at how the backward of this op "
             "is implemented, and at what its forward kept for it.";
    case AdviceKind::kBatchNorm:
      return "Batch normalisation follows its batch. Where inputs are not fixed, compare in evaluation mode "
             "(training=False), or with affine=False, or fix every random source with seed_all(mode=True).";
    case AdviceKind::kDeterministic:
      return "This op has algorithms that add in a different order each time. Capture both runs with "
             "seed_all(mode=True), which turns deterministic ones on, before looking further.";
  }
  return "";
}

}  // namespace

Advice Advise(std::string_view op, bool result, uint64_t row) {
  const NameParts name = ParseOpName(op);
  const bool backward = name.direction == OpDirection::kBackward || name.direction == OpDirection::kParameterGrad;
  Advice out{result ? AdviceKind::kForwardOutput : AdviceKind::kForwardInput, op, row};
  if (backward) out.kind = result ? AdviceKind::kBackwardOutput : AdviceKind::kBackwardInput;
  const std::string_view api_or_class = ApiOrClassOf(op);
  const std::string api = Lower(api_or_class);
  if (StartsWith(api, "batch_norm") || StartsWith(api, "batchnorm")) {
    out.kind = AdviceKind::kBatchNorm;
  } else if (result && TraitsOf(api_or_class).Has(op_trait::kVaries)) {
    out.kind = AdviceKind::kDeterministic;
  }
  return out;
}

void WriteAdvice(JsonWriter* json, const Advice& advice) {
  json->BeginObject();
  json->Member("kind", KindText(advice.kind));
  json->Member("op", advice.op);
  json->Member("row", advice.row);
  json->EndObject();
}

std::string AdvisorText(const Advice& advice) {
  std::string out = "Line: ";
  out += advice.found() ? std::to_string(advice.row) : "NA";
  out += "\nSuspect Nodes: ";
  out += advice.found() ? OneLine(advice.op) : "NA";
  out += "\nExpert Advice: ";
  return out.append(Words(advice.kind)) + "\n";
}

StatusOr<std::string> WriteAdvisor(const std::string& path, const Advice& advice) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(AdvisorText(advice)));
  MSP_RETURN_IF_ERROR(file.CommitResult());
  return file.path();
}

}  // namespace msprobe
