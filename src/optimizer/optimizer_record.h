// What was recorded of an optimizer: weights, gradients and states before and after each of some steps.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "json/parser.h"
#include "optimizer/update_rule.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {

/// A state of a weight, where the file holds it; without data it was not there.
struct RecordedState {
  FileTensor before, after;
};

struct RecordedWeight {
  std::string name;
  size_t group = 0;
  FileTensor before, after, grad;
  std::map<std::string, RecordedState> states;  // "exp_avg", ...
  std::optional<double> steps;                  // count of steps after this one, where the optimizer keeps one
};

struct RecordedStep {
  int64_t step = 0;
  std::string optimizer;           // name of its class
  std::vector<UpdateRule> groups;  // as its groups say, at this step
  std::string foreign;  // hyperparameters that say of a formula which is not known here, one behind the other
  std::optional<double> clip_grad, loss_scale;
  bool skipped = false;  // the gradients were not finite, and the loss scaler left the step out
  std::vector<RecordedWeight> weights;
  std::vector<TensorFile> files;
  std::vector<std::vector<char>> buffers;  // tensors that lie in no file as they are
  std::vector<Message> notes;
};

struct OptimizerRecord {
  std::string path;
  std::vector<RecordedStep> steps;
  std::vector<Message> notes;
};

/// What a user says where the record does not: "adamw", "lr=1e-3,eps=1e-8".
struct OptimizerOverrides {
  std::string rule;
  std::vector<std::string> hyperparameters;  // NAME=VALUE
  std::optional<double> clip_grad;
};

/// Puts a step together from what describes it and its tensors, which have to outlive it.
class StepBuilder {
 public:
  explicit StepBuilder(RecordedStep* out) : out_(out) {}

  /// `doc`: what is in optimizer.json; `place`: what errors call it; `rule`: a name instead of the optimizer's, or "".
  Status Describe(const JsonDoc& doc, const std::string& place, const std::string& rule);
  /// By its name: "weight/W", "grad/W", "state/W/exp_avg".
  void Take(const FileTensor& tensor, bool after);
  /// Leaves out weights that are not there before and after the step.
  void Finish();

 private:
  static void TakeCount(const FileTensor& tensor, RecordedWeight* to);

  RecordedStep* out_;
  std::unordered_map<std::string, size_t> places_;
};

/// The directories rank0/optimizer0, ... of a directory of msprobe.pytorch.OptimizerRecord, under their names in it;
/// "" stands for `path` itself where it has none.
StatusOr<std::vector<std::string>> OptimizersOfRecord(const std::string& path);

/// `path`: one of the directories rank0/optimizer0 of a record. kBadInput with what is missing and what to do.
StatusOr<OptimizerRecord> ReadOptimizerRecord(const std::string& path, const OptimizerOverrides& overrides);

/// The rule of an optimizer with its usual hyperparameters; kUsage for one that is not known.
StatusOr<UpdateRule> RuleByName(const std::string& name);
/// What the user says, in all groups of the step.
Status ApplyOverrides(const OptimizerOverrides& overrides, RecordedStep* step);

/// One hyperparameter by the name that frameworks give it; kUsage for a name or a value that is none.
Status SetHyperparameter(const std::string& name, const std::string& value, UpdateRule* rule);

}  // namespace msprobe
