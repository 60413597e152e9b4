#include "optimizer/optimizer_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr size_t kMaxRecordedSteps = 1000, kMaxDescription = 64 << 20;

void SetFromJson(const JsonValue& group, std::string_view key, double* out) {
  if (group[key].IsNumber()) *out = group[key].Number();
}
void SetFromJson(const JsonValue& group, std::string_view key, bool* out) {
  if (group[key].IsBool()) *out = group[key].Bool();
}

/// Hyperparameters of published rules, and what schedulers and frameworks keep beside them.
bool IsKnownSetting(std::string_view key) {
  constexpr std::string_view kKnown[] = {"lr",
                                         "weights",
                                         "weight_decay",
                                         "momentum",
                                         "dampening",
                                         "nesterov",
                                         "amsgrad",
                                         "maximize",
                                         "capturable",
                                         "bias_correction",
                                         "eps_place",
                                         "betas",
                                         "eps",
                                         "beta2_decay",
                                         "d",
                                         "ns_steps",
                                         "ns_coefficients",
                                         "adjust_lr_fn",
                                         "decoupled_weight_decay",
                                         "adam_w_mode",
                                         "foreach",
                                         "fused",
                                         "differentiable",
                                         "clip_threshold",
                                         "decay_rate",
                                         "beta1",
                                         "scale_parameter",
                                         "relative_step",
                                         "warmup_init",
                                         "name",
                                         "step"};
  if (std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown)) return true;
  for (const std::string_view part : {"lr", "wd_mult", "momentum", "is_", "beta", "param"}) {
    if (key.find(part) != std::string_view::npos) return true;  // max_lr, lr_mult, is_expert_parallel
  }
  return false;
}

bool IsOff(const JsonValue& v) { return v.IsNull() || (v.IsBool() && !v.Bool()) || (v.IsNumber() && v.Number() == 0); }

UpdateRule RuleOfGroup(const JsonValue& group, std::string_view optimizer) {
  UpdateRule rule;
  rule.kind = ParseOptimizerKind(optimizer);
  if (rule.kind == OptimizerKind::kLion) rule.beta2 = 0.99;
  SetFromJson(group, "lr", &rule.lr);
  SetFromJson(group, "weight_decay", &rule.weight_decay);
  SetFromJson(group, "momentum", &rule.momentum);
  SetFromJson(group, "dampening", &rule.dampening);
  SetFromJson(group, "nesterov", &rule.nesterov);
  SetFromJson(group, "amsgrad", &rule.amsgrad);
  SetFromJson(group, "maximize", &rule.maximize);
  SetFromJson(group, "capturable", &rule.in_float);
  SetFromJson(group, "bias_correction", &rule.correction1);
  if (group["eps_place"].Text() == "before_correction") rule.eps_place = EpsPlace::kBeforeCorrection;
  rule.correction2 = rule.correction1;
  if (group["betas"].size() >= 2) {
    rule.beta1 = group["betas"][0].Number();
    rule.beta2 = group["betas"][1].Number();
  }
  const JsonValue& eps = group["eps"];
  if (eps.IsNumber()) rule.eps = eps.Number();
  if (eps.IsArray() && eps.size() == 2) {
    if (eps[0].IsNumber()) rule.eps1 = eps[0].Number();
    if (eps[1].IsNumber()) rule.eps2 = eps[1].Number();
  }
  SetFromJson(group, "beta2_decay", &rule.beta2_decay);
  SetFromJson(group, "d", &rule.d);
  // Adafactor of transformers.
  SetFromJson(group, "clip_threshold", &rule.d);
  SetFromJson(group, "decay_rate", &rule.beta2_decay);
  SetFromJson(group, "scale_parameter", &rule.scales_by_weight);
  SetFromJson(group, "relative_step", &rule.relative_step);
  SetFromJson(group, "warmup_init", &rule.warms_up);
  if (rule.kind == OptimizerKind::kAdafactor) SetFromJson(group, "beta1", &rule.beta1);
  rule.of_transformers = group["scale_parameter"].IsBool();
  if (rule.of_transformers && rule.relative_step) rule.lr = 1e-2;  // what its relative steps begin with
  if (group["ns_steps"].IsInt()) rule.newton_steps = std::clamp<int64_t>(group["ns_steps"].Int(), 0, 99);
  for (size_t i = 0; i < 3 && group["ns_coefficients"].size() == 3; ++i) {
    rule.newton[i] = group["ns_coefficients"][i].Number();
  }
  rule.adjust_lr = group["adjust_lr_fn"].Text();
  bool decoupled = rule.kind != OptimizerKind::kAdam;
  SetFromJson(group, "decoupled_weight_decay", &decoupled);
  SetFromJson(group, "adam_w_mode", &decoupled);
  if (rule.kind == OptimizerKind::kAdam || rule.kind == OptimizerKind::kAdamW) {
    rule.kind = decoupled ? OptimizerKind::kAdamW : OptimizerKind::kAdam;
    rule.decay = decoupled ? DecayPlace::kDecoupled : DecayPlace::kCoupled;
  }
  if (rule.kind == OptimizerKind::kSgd) rule.decay = DecayPlace::kCoupled;
  return rule;
}

/// Its elements lie one behind the other, as a record has them; files of other formats may hold anything.
bool IsContiguous(const FileTensor& t) {
  FileTensor whole = t;
  uint64_t bytes = 0;
  return t.data && SetContiguous(&whole, UINT64_MAX / 2, &bytes) && whole.strides == t.strides;
}

class StepReader {
 public:
  StepReader(const std::string& directory, RecordedStep* out) : directory_(directory), out_(out), builder_(out) {}

  Status Read(const OptimizerOverrides& overrides) {
    MSP_RETURN_IF_ERROR(ReadDescription(overrides.rule));
    MSP_RETURN_IF_ERROR(ApplyOverrides(overrides, out_));
    MSP_RETURN_IF_ERROR(ReadTensors("before.safetensors", false));
    MSP_RETURN_IF_ERROR(ReadTensors("after.safetensors", true));
    builder_.Finish();
    if (out_->weights.empty()) {
      return BadInput(
          Msg("{} holds no weight before and after the step: record the training again", OneLine(directory_)));
    }
    return OkStatus();
  }

 private:
  Status ReadDescription(const std::string& rule) {
    const std::string path = JoinPath(directory_, "optimizer.json");
    if (!PathExists(path)) {
      return BadInput(
          Msg("{} holds no optimizer.json: record the optimizer with 'msprobe run --save-optimizer DIR -- python "
              "train.py'",
              OneLine(directory_)));
    }
    MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    if (file.text().size() > kMaxDescription)
      return BadInput(Msg("{} is too large: record the training again", OneLine(path)));
    JsonDoc doc;
    MSP_RETURN_IF_ERROR(ParseJson(file.text(), path, &doc));
    return builder_.Describe(doc, path, rule);
  }

  Status ReadTensors(const std::string& name, bool after) {
    const std::string path = JoinPath(directory_, name);
    MSP_ASSIGN_OR_RETURN(TensorFile file, TensorFile::Open(path));
    for (const FileTensor& tensor : file.tensors()) builder_.Take(tensor, after);
    out_->files.push_back(std::move(file));
    return OkStatus();
  }

  const std::string& directory_;
  RecordedStep* out_;
  StepBuilder builder_;
};

/// The directories in `path` whose names are `word` and a number, in the order of the numbers; "" without one.
StatusOr<std::vector<std::string>> Numbered(const std::string& path, std::string_view word) {
  MSP_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(path));
  std::erase_if(names, [&](const std::string& name) {
    return !StartsWith(name, word) || !IsDigits(std::string_view(name).substr(word.size()));
  });
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  if (names.empty()) names.emplace_back();
  return names;
}

std::string Below(const std::string& path, const std::string& name) {
  return path.empty() ? name : name.empty() ? path : JoinPath(path, name);
}

}  // namespace

Status StepBuilder::Describe(const JsonDoc& doc, const std::string& place, const std::string& rule) {
  if (!doc["groups"].IsArray() || doc["groups"].empty()) {
    return BadInput(Msg("{} has no \"groups\": give what msprobe.pytorch.OptimizerRecord wrote", OneLine(place)));
  }
  out_->step = doc["step"].Int();
  out_->optimizer = doc["optimizer"].Text();
  if (doc["clip_grad"].IsNumber()) out_->clip_grad = doc["clip_grad"].Number();
  if (doc["loss_scale"].IsNumber()) out_->loss_scale = doc["loss_scale"].Number();
  out_->skipped = doc["found_inf"].Number() > 0;
  for (const JsonValue& group : doc["groups"].Items()) {
    out_->groups.push_back(RuleOfGroup(group, rule.empty() ? out_->optimizer : rule));
    for (const JsonMember& member : group.Members()) {
      const std::string name(member.name);
      if (IsKnownSetting(name) || IsOff(member.value) || out_->foreign.find(name) != std::string::npos) continue;
      out_->foreign += (out_->foreign.empty() ? "" : ", ") + name;
    }
    for (const JsonValue& name : group["weights"].Items()) {
      const std::string text(name.Text());
      if (!places_.emplace(text, out_->weights.size()).second) continue;
      out_->weights.emplace_back();
      out_->weights.back().name = text;
      out_->weights.back().group = out_->groups.size() - 1;
      const JsonValue& step = doc["states"][text]["step"];
      if (step.IsNumber()) out_->weights.back().steps = step.Number() + 1;
    }
  }
  if (out_->groups[0].kind == OptimizerKind::kUnknown) {
    return BadInput(Msg("{}: '{}' is none of SGD, Adam, AdamW, Lion, Adafactor and Muon: name the nearest with --rule",
                        OneLine(place), OneLine(out_->optimizer)));
  }
  return OkStatus();
}

void StepBuilder::Take(const FileTensor& tensor, bool after) {
  if (!IsContiguous(tensor)) return;
  const std::string_view name = tensor.name;
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return;
  const std::string_view part = name.substr(0, slash);
  std::string_view weight = name.substr(slash + 1), key;
  if (part == "state") {
    const size_t last = weight.rfind('/');
    if (last == std::string_view::npos) return;
    key = weight.substr(last + 1);
    weight = weight.substr(0, last);
  }
  const auto found = places_.find(std::string(weight));
  if (found == places_.end()) return;
  RecordedWeight& to = out_->weights[found->second];
  if (part == "weight") {
    (after ? to.after : to.before) = tensor;
  } else if (part == "grad") {
    to.grad = tensor;
  } else if (key == "step") {
    if (after) TakeCount(tensor, &to);
  } else if (part == "state") {
    RecordedState& state = to.states[std::string(key)];
    (after ? state.after : state.before) = tensor;
  }
}

void StepBuilder::TakeCount(const FileTensor& tensor, RecordedWeight* to) {
  if (!tensor.shape.empty() && !(tensor.shape.size() == 1 && tensor.shape[0] == 1)) return;
  if (tensor.dtype == DType::kFloat32) {
    float v = 0;
    std::memcpy(&v, tensor.data, sizeof(v));
    to->steps = v;
  } else if (tensor.dtype == DType::kInt64) {
    int64_t v = 0;
    std::memcpy(&v, tensor.data, sizeof(v));
    to->steps = static_cast<double>(v);
  }
}

void StepBuilder::Finish() {
  std::erase_if(out_->weights, [&](const RecordedWeight& w) {
    const bool whole = w.before.data && w.after.data && w.before.shape == w.after.shape;
    if (!whole) out_->notes.push_back(Msg("{} is not there before and after the step: left out", OneLine(w.name)));
    return !whole;
  });
}

StatusOr<std::vector<std::string>> OptimizersOfRecord(const std::string& path) {
  std::vector<std::string> out;
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> ranks, Numbered(path, "rank"));
  for (const std::string& rank : ranks) {
    MSP_ASSIGN_OR_RETURN(const std::vector<std::string> optimizers, Numbered(Below(path, rank), "optimizer"));
    for (const std::string& optimizer : optimizers) out.push_back(Below(rank, optimizer));
  }
  return out;
}

StatusOr<OptimizerRecord> ReadOptimizerRecord(const std::string& path, const OptimizerOverrides& overrides) {
  OptimizerRecord out;
  out.path = path;
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  std::vector<std::string> steps;
  for (const std::string& name : names) {
    if (StartsWith(name, "step") && IsDigits(std::string_view(name).substr(4)) && name.size() < 20)
      steps.push_back(name);
  }
  std::sort(steps.begin(), steps.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  if (steps.empty()) {
    return BadInput(
        Msg("{} holds no step0, step1, ... of an optimizer: record some with msprobe.pytorch.OptimizerRecord",
            OneLine(path)));
  }
  if (steps.size() > kMaxRecordedSteps) steps.resize(kMaxRecordedSteps);
  for (const std::string& name : steps) {
    out.steps.emplace_back();
    const std::string directory = JoinPath(path, name);
    MSP_RETURN_IF_ERROR(StepReader(directory, &out.steps.back()).Read(overrides));
    for (const Message& note : out.steps.back().notes) out.notes.push_back(Msg("{}: {}", name, note));
  }
  return out;
}

}  // namespace msprobe
