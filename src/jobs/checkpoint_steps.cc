#include "jobs/checkpoint_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/message.h"
#include "base/text.h"
#include "optimizer/weight_values.h"
#include "weights/open_checkpoint.h"

namespace msprobe {
namespace {

/// Its elements in C order, in memory of the step.
FileTensor Gathered(const WeightTensor& t, RecordedStep* step) {
  FileTensor out;
  out.name = t.name;
  out.dtype = t.dtype;
  out.shape = t.shape;
  uint64_t bytes = 0;
  if (!SetContiguous(&out, t.bytes(), &bytes)) return out;
  step->buffers.emplace_back(std::max<uint64_t>(bytes, 1));
  GatherElements(t, 0, t.elements(), step->buffers.back().data());
  out.data = step->buffers.back().data();
  return out;
}

/// "optimizer.state.12.exp_avg": 12 and "exp_avg"; "exp_avg.layers.0.weight" has no number.
struct StateName {
  std::optional<size_t> number;
  std::string weight, key;  // a name of a weight, where it has no number
};

StateName SplitStateName(const std::string& name, const std::map<std::string, size_t>& weights) {
  StateName out;
  const size_t last = name.rfind('.');
  if (last == std::string::npos) return out;
  out.key = name.substr(last + 1);
  const std::string front = name.substr(0, last);
  const std::string_view middle = std::string_view(front).substr(front.rfind('.') + 1);
  size_t number = 0;
  if (IsDigits(middle) && std::from_chars(middle.data(), middle.data() + middle.size(), number).ec == std::errc()) {
    out.number = number;
  }
  if (weights.contains(front)) out.weight = front;
  const size_t first = name.find('.');
  const std::string behind = name.substr(first + 1);
  if (out.weight.empty() && weights.contains(behind)) {  // of MindSpore: "adam_m.layers.0.weight"
    out.weight = behind;
    out.key = name.substr(0, first);
    if (out.key == "adam_m" || out.key == "moment1") out.key = "exp_avg";
    if (out.key == "adam_v" || out.key == "moment2") out.key = "exp_avg_sq";
  }
  return out;
}

class StepOfCheckpoints {
 public:
  StepOfCheckpoints(const CheckpointStepPaths& paths, RecordedStep* step) : paths_(paths), step_(step) {}

  Status Read() {
    MSP_ASSIGN_OR_RETURN(const Checkpoint before, OpenCheckpoint(paths_.before));
    MSP_ASSIGN_OR_RETURN(const Checkpoint after, OpenCheckpoint(paths_.after));
    MSP_ASSIGN_OR_RETURN(const Checkpoint gradients, OpenCheckpoint(paths_.gradients));
    for (const WeightTensor& t : before.tensors) {
      places_.emplace(t.name, step_->weights.size());
      step_->weights.emplace_back();
      step_->weights.back().name = t.name;
      step_->weights.back().before = Gathered(t, step_);
    }
    for (const WeightTensor& t : after.tensors) {
      if (RecordedWeight* w = Find(t.name)) w->after = Gathered(t, step_);
    }
    for (const WeightTensor& t : gradients.tensors) {
      std::string name = t.name;
      for (const std::string_view prefix : {"grad/", "grad."}) {
        if (StartsWith(name, prefix)) name = name.substr(prefix.size());
      }
      if (RecordedWeight* w = Find(name)) w->grad = Gathered(t, step_);
    }
    std::erase_if(step_->weights, [](const RecordedWeight& w) {
      return !w.before.data || !w.after.data || !w.grad.data || w.before.shape != w.after.shape;
    });
    places_.clear();
    for (size_t i = 0; i < step_->weights.size(); ++i) places_.emplace(step_->weights[i].name, i);
    if (step_->weights.empty()) {
      return BadInput(Msg("{} has no gradient of a weight that {} and {} hold: name gradients as the weights",
                          OneLine(paths_.gradients), OneLine(paths_.before), OneLine(paths_.after)));
    }
    MSP_RETURN_IF_ERROR(TakeStates(before, false));
    return TakeStates(after, true);
  }

 private:
  RecordedWeight* Find(const std::string& name) {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : &step_->weights[found->second];
  }

  /// Numbers of states are places in the groups of the optimizer; they are those of the weights only where there are as
  /// many of them.
  Status CheckNumbers(const Checkpoint& checkpoint) const {
    std::set<size_t> numbers;
    for (const WeightTensor& t : checkpoint.optimizer) {
      const StateName name = SplitStateName(t.name, places_);
      if (name.weight.empty() && name.number) numbers.insert(*name.number);
    }
    if (numbers.empty() || (numbers.size() == step_->weights.size() && *numbers.rbegin() + 1 == numbers.size())) {
      return OkStatus();
    }
    return BadInput(
        Msg("{} has numbered states of {} weights, and {} weights have gradients: record the steps with "
            "msprobe.pytorch.OptimizerRecord",
            OneLine(checkpoint.path), numbers.size(), step_->weights.size()));
  }

  Status TakeStates(const Checkpoint& checkpoint, bool after) {
    MSP_RETURN_IF_ERROR(CheckNumbers(checkpoint));
    for (const WeightTensor& t : checkpoint.optimizer) {
      const StateName name = SplitStateName(t.name, places_);
      RecordedWeight* weight = Find(name.weight);
      if (!weight && name.number && *name.number < step_->weights.size()) weight = &step_->weights[*name.number];
      if (!weight) continue;
      FileTensor values = Gathered(t, step_);
      if (name.key == "step") {
        if (after && values.dtype == DType::kFloat32 && t.elements() == 1) {
          float count = 0;
          std::memcpy(&count, values.data, sizeof(count));
          weight->steps = count;
        }
        continue;
      }
      if (name.weight.empty() && name.key.starts_with("exp_") && values.shape != weight->before.shape) {
        return BadInput(
            Msg("{}: the shape of {} is not that of {}: the groups of the optimizer have another order than the "
                "weights, record the steps with msprobe.pytorch.OptimizerRecord",
                OneLine(checkpoint.path), OneLine(t.name), OneLine(weight->name)));
      }
      RecordedState& state = weight->states[name.key];
      (after ? state.after : state.before) = std::move(values);
    }
    return OkStatus();
  }

  const CheckpointStepPaths& paths_;
  RecordedStep* step_;
  std::map<std::string, size_t> places_;
};

}  // namespace

StatusOr<OptimizerRecord> ReadCheckpointStep(const CheckpointStepPaths& paths, const OptimizerOverrides& overrides) {
  if (overrides.rule.empty())
    return UsageError(Msg("checkpoints do not say which optimizer it was: name it with --rule"));
  OptimizerRecord out;
  out.path = paths.after;
  out.steps.emplace_back();
  RecordedStep& step = out.steps.back();
  step.optimizer = overrides.rule;
  MSP_ASSIGN_OR_RETURN(UpdateRule rule, RuleByName(overrides.rule));
  step.groups.push_back(std::move(rule));
  MSP_RETURN_IF_ERROR(ApplyOverrides(overrides, &step));
  MSP_RETURN_IF_ERROR(StepOfCheckpoints(paths, &step).Read());
  return out;
}

}  // namespace msprobe
