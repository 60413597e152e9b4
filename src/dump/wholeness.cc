#include "dump/wholeness.h"

#include <algorithm>

#include "base/file.h"
#include "dump/step_summary.h"

namespace msprobe {
namespace {

using State = Wholeness::State;

State StateOf(const StepSummary& summary) {
  if (summary.state == "complete") return State::kWhole;
  if (summary.state == "incomplete") return State::kIncomplete;
  if (summary.state == "recovered") return State::kKilled;
  if (summary.state != "recording") return State::kUnknown;
  switch (WriterOf(summary)) {
    case Writer::kAlive: return State::kRecording;
    case Writer::kElsewhere: return State::kElsewhere;
    case Writer::kGone: break;
  }
  return State::kKilled;
}

}  // namespace

std::string_view WholenessName(State state) {
  switch (state) {
    case State::kWhole: return "whole";
    case State::kKilled: return "killed";
    case State::kRecording: return "recording";
    case State::kElsewhere: return "elsewhere";
    case State::kIncomplete: return "incomplete";
    case State::kCut: return "cut";
    case State::kUnknown: return "unknown";
  }
  return "";
}

Wholeness WholenessOf(const std::string& directory, uint64_t ops, bool truncated) {
  Wholeness out;
  out.ops = ops;
  out.ops_end = true;
  const std::string path = JoinPath(directory, kSummaryName);
  if (!PathExists(path)) {  // not written by this recorder
    if (truncated) out.state = State::kCut;
    return out;
  }
  const StatusOr<StepSummary> summary = StepSummary::Read(path);
  if (!summary.ok()) {
    out.state = truncated ? State::kCut : State::kUnknown;
    return out;
  }
  out.state = StateOf(*summary);
  out.ops_lost = summary->ops_not_written + (summary->ops - std::min(summary->ops, ops));
  if (out.state == State::kIncomplete) {
    out.tensors_lost = summary->tensors_not_written;
    out.why = !summary->ops_stopped.empty() ? summary->ops_stopped : summary->tensors_stopped;
    out.ops_end = !summary->ops_stopped.empty();
  }
  // A run that is killed while it writes leaves a part of an op; a step that was closed does not.
  const bool closed = out.state == State::kWhole || out.state == State::kIncomplete;
  if (closed && (truncated || summary->ops > ops)) {
    out.state = State::kCut;
    out.ops_end = truncated;
  }
  return out;
}

}  // namespace msprobe
