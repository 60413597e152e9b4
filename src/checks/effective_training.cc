// Quantities of a training that are computed from what its configuration says.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "checks/effective.h"
#include "config/stack/stacks.h"

namespace msprobe {

bool EffectiveRun::HasSchedulesOfTransformers() const {
  return std::any_of(dialects_.begin(), dialects_.end(), [](ConfigDialect dialect) {
    const StackKind* stack = FindStack(dialect);
    return dialect == ConfigDialect::kHfTrainer || dialect == ConfigDialect::kOpenRlhf ||
           (stack && stack->base == ConfigDialect::kHfTrainer);
  });
}

bool EffectiveRun::CountsDevices() const {
  bool read = false, counts = false;
  for (const ConfigSource& source : configuration_.sources) {
    read = read || EndsWith(source.path, ".py");
    counts = counts || std::any_of(source.settings.begin(), source.settings.end(),
                                   [](const Setting& setting) { return Contains(setting.key, "per_device"); });
  }
  return counts && !read && !HasSchedulesOfTransformers();
}

void EffectiveRun::DeriveWorld() {
  double per_node = 0, nodes = 1;
  std::string origin, alone;
  for (const Setting& option : configuration_.launcher) {
    if (option.key == "alone") alone = option.Origin();  // python without a launcher
    const double value = option.value.AsNumber().value_or(0);
    if (option.key == "nproc_per_node" || option.key == "num_gpus" || option.key == "num_processes" ||
        option.key == "nproc" || option.key == "n" || option.key == "np")
      per_node = value;
    else if (option.key == "nnodes" || option.key == "num_nodes")
      nodes = value > 0 ? value : 1;
    else if (option.key == "worker_num")
      per_node = value, nodes = 1;
    else
      continue;
    origin = option.Origin();
  }
  struct Place {
    std::string_view per_node, nodes;
  };
  for (const Place& place : {Place{"trainer.devices", "trainer.num_nodes"},
                             {"trainer.n_gpus_per_node", "trainer.nnodes"},
                             {"actor_num_gpus_per_node", "actor_num_nodes"},
                             {"actor.num_gpus_per_node", "actor.num_nodes"}}) {
    for (const ConfigSource& source : configuration_.sources) {
      const Setting *cards = source.Find(place.per_node), *hosts = source.Find(place.nodes);
      if (per_node > 0 || !cards) continue;
      per_node = std::max(0.0, cards->value.AsNumber().value_or(0));
      nodes = std::max(1.0, hosts ? hosts->value.AsNumber().value_or(1) : 1);
      origin = cards->Origin();
    }
  }
  const Setting *cards = Variable("NPROC_PER_NODE"), *hosts = Variable("NNODES");
  if (per_node <= 0 && cards && (Has(ConfigDialect::kSwift) || Has(ConfigDialect::kLlamaFactory))) {
    per_node = cards->value.AsNumber().value_or(0);
    nodes = std::max(1.0, hosts ? hosts->value.AsNumber().value_or(1) : 1);
    origin = cards->Origin();
  }
  if (Find("world_size")) return;
  if (per_node > 0) {
    Set("world_size", ConfigValue::Of(static_cast<int64_t>(per_node * nodes)), origin);
  } else if (!alone.empty() && HasOwnProgram() && !CountsDevices()) {
    Set("world_size", ConfigValue::Of(int64_t{1}), alone, true);
  }
}

void EffectiveRun::DeriveBatch() {
  DeriveWorld();
  const std::optional<double> world = Number("world_size");
  double shards = 1;
  for (const std::string_view size : {"model_parallel", "pipeline", "context_parallel"}) {
    shards *= std::max(1.0, Number(size).value_or(1));
  }
  if (world && !Has(ConfigDialect::kMindFormers)) {
    From("world_size", "data_parallel", ConfigValue::Of(static_cast<int64_t>(*world / shards)));
  }
  if (Number("global_batch").value_or(1) <= 0) facts_.erase("global_batch");  // -1: what the others make of it
  if (const auto samples = Number("policy_samples"), mini = Number("mini_batch"); samples && mini) {
    From("mini_batch", "update_samples", ConfigValue::Of(static_cast<int64_t>(*samples * *mini)));
  }
  for (const ConfigSource& source : configuration_.sources) {
    const Setting *rollout = source.Find("rollout_batch_size"), *train = source.Find("train_batch_size");
    if (!rollout) rollout = source.Find("rollout.batch_size");
    if (!train) train = source.Find("train.batch_size");
    if (source.dialect != ConfigDialect::kOpenRlhf || !rollout || !train) continue;
    Set("update_samples", train->value, train->Origin());
    used_.try_emplace(train->key);
  }
  const auto micro = Number("micro_batch"), dp = Number("data_parallel");
  if (Find("global_batch") || !micro || !dp || open_.contains("accumulation") || open_.contains("global_batch")) return;
  if (Find("plain_batch") && *dp > 1) return;  // of one process or of all
  if (!Find("accumulation") && AccumulatesByOtherName()) return;
  double batch = *micro * *dp * Number("accumulation").value_or(1);
  if (Has(ConfigDialect::kMindFormers)) {
    if (Number("pipeline").value_or(1) > 1) batch *= Number("micro_batch_num").value_or(1);
    batch *= Number("micro_batch_interleave").value_or(1);
  }
  From("micro_batch", "global_batch", ConfigValue::Of(static_cast<int64_t>(batch)));
  DeriveCompletions();
}

void EffectiveRun::DeriveOptimizer() {
  const std::string name = Word("optimizer");
  // What these load as Adam is PyTorch's, which adds the decay to the gradient; others mean AdamW by it.
  const bool plain =
      Has(ConfigDialect::kTorchtitan) || Has(ConfigDialect::kTorchtune) || Has(ConfigDialect::kLightning);
  const bool open = Has(ConfigDialect::kOwn) || Has(ConfigDialect::kTimm) || Has(ConfigDialect::kMmengine);
  const bool fused = Contains(name, "fused") || Contains(name, "distributed");
  if (Contains(name, "adamw") || Contains(name, "adamweightdecay") || (name == "adam" && !plain && !open) ||
      (Contains(name, "adam") && fused)) {
    From("optimizer", "optimizer_kind", ConfigValue::Of("adamw"));
  } else if (!name.empty()) {
    From("optimizer", "optimizer_kind", ConfigValue::Of(std::string_view(name).substr(name.rfind('.') + 1)));
  }
  if (!name.empty()) {
    const char* states = "full precision";
    for (const char* bits : {"8bit", "4bit", "fp8"}) {
      if (Contains(name, bits)) states = bits;
    }
    From("optimizer", "optimizer_states", ConfigValue::Of(states));
  }
  const bool moves = Contains(name, "sgd") || Contains(name, "rms") || Contains(name, "lars") ||
                     Contains(name, "muon") || Contains(name, "momentum") || Contains(name, "nesterov");
  if (!name.empty() && !moves) {  // others have no such setting
    facts_.erase("momentum");
    facts_.erase("nesterov");
  }
  // What torch takes where the file names the class alone.
  if (plain && Contains(name, "adam")) {
    const char* decay = Contains(name, "adamw") ? "0.01" : "0";
    for (const auto& [quantity, value] :
         {std::pair("beta1", "0.9"), {"beta2", "0.999"}, {"eps", "1e-08"}, {"weight_decay", decay}}) {
      if (!Find(quantity)) Set(quantity, PythonScalar(value), "default of PyTorch", true);
    }
  }
  DeriveSchedule();
  DeriveWarmup();
  DeriveClipping();
}

void EffectiveRun::DeriveClipping() {
  if (Has(ConfigDialect::kMindFormers) && !Truth("use_clip_grad").value_or(false)) {
    From("use_clip_grad", "clip_grad", ConfigValue::Of(0.0));
  }
  if (const Fact* most = Find("clip_grad"); most && Word("clip_kind") == "value") {  // each element, not their norm
    From("clip_kind", "clip_grad", ConfigValue::Of(most->value.Shown() + " by value"));
  }
}

/// Kind, length and end of the schedule.
void EffectiveRun::DeriveSchedule() {
  std::string schedule = Word("lr_schedule");
  if (schedule == "const" || schedule == "fixed" || schedule == "get_constant_schedule") schedule = "constant";
  if (schedule == "cos") schedule = "cosine";
  if (schedule == "poly" || schedule == "polylr") schedule = "polynomial";
  if (Contains(schedule, "cosann")) schedule = "cosine";
  const bool deepspeed = Has(ConfigDialect::kDeepSpeed);
  if (schedule == "warmuplr" && deepspeed) schedule = "constant";  // others decay after it
  if ((schedule == "warmupdecaylr" && deepspeed) || Contains(schedule, "warmupannealing")) schedule = "linear";
  if (Contains(schedule, "cooldown") || Contains(schedule, "stable_decay")) schedule = "wsd";
  for (const std::string_view kind : {"cosine", "linear", "constant", "polynomial", "inverse", "wsd", "onecycle",
                                      "multistep", "step", "exponential"}) {
    if (!Contains(schedule, kind)) continue;
    From("lr_schedule", "schedule", ConfigValue::Of(kind));
    break;
  }
  if (const Fact* power = Find("lr_power")) {  // of another kind it is none, and a line needs none
    const bool polynomial = Word("schedule") == "polynomial", line = power->value.AsNumber() == 1;
    if (polynomial && line) From("lr_schedule", "schedule", ConfigValue::Of("linear"));
    if ((polynomial && line) || (!polynomial && power->by_default)) facts_.erase("lr_power");
  }
  const double batch = Number("global_batch").value_or(0);
  if (!Find("train_steps") && Number("epoch_steps").value_or(0) > 0) {
    From("epoch_steps", "train_steps", ConfigValue::Of(*Number("epoch_steps") * Number("train_epochs").value_or(1)));
  }
  if (!Find("train_steps") && Find("train_samples") && batch > 0) {
    From("train_samples", "train_steps", ConfigValue::Of(std::floor(*Number("train_samples") / batch)));
  }
  const double decay = Number("decay_steps").value_or(0), all = Number("train_steps").value_or(0);
  if (const auto share = Number("lr_decay_fraction"); share && all > 0 && decay <= 0) {
    From("lr_decay_fraction", "decay_end", ConfigValue::Of(std::floor(*share * all)));
  } else if (decay > 0) {
    From("decay_steps", "decay_end", ConfigValue::Of(decay));
  } else if (Number("decay_samples").value_or(0) > 0 && batch > 0) {
    From("decay_samples", "decay_end", ConfigValue::Of(std::floor(*Number("decay_samples") / batch)));
  } else if (all > 0) {
    From("train_steps", "decay_end", ConfigValue::Of(all));
  }
  const double held = Number("lr_constant_steps").value_or(0);
  const bool nemo = Has(ConfigDialect::kNemo) || Has(ConfigDialect::kNemo2);
  if (nemo && held > 0 && held < all && Contains(schedule, "cosine")) {  // it holds them at the end
    From("lr_constant_steps", "decay_end", ConfigValue::Of(all - held));
  }
  if (const auto share = Number("lr_decay_share"); share && all > 0) {
    From("lr_decay_share", "lr_constant_steps",
         ConfigValue::Of(all - std::round(all * *share) - Number("warmup_steps").value_or(0)));
  }
  const Fact *ratio = Find("min_lr_ratio"), *least = Find("min_lr");
  const auto rate = Number("lr");
  const bool ends = !Has(ConfigDialect::kOpenRlhf) || Contains(schedule, "min_lr");  // it is for that schedule only
  // Where it ends is in members that are not here.
  if (Contains(schedule, "min_lr") && least && least->by_default && !ratio) {
    facts_.erase("min_lr");
    least = nullptr;
  }
  if (ratio && rate && ends && (!least || (least->by_default && !ratio->by_default))) {
    From("min_lr_ratio", "min_lr", ConfigValue::Of(ratio->value.AsNumber().value_or(0) * *rate));
  }
}

/// Warm-up in steps, and as a share where the number of all steps is not known.
void EffectiveRun::DeriveWarmup() {
  if (Word("lr_schedule") == "constant" && HasSchedulesOfTransformers()) {  // it leaves the warm-up out
    return From("lr_schedule", "warmup", ConfigValue::Of(int64_t{0}));
  }
  const double batch = Number("global_batch").value_or(0);
  const auto end = Number("decay_end");
  // Over what counts it, not over what decays.
  const auto total = HasSchedulesOfTransformers() && Find("train_steps") ? Number("train_steps") : end;
  const Fact* steps = Find("warmup_steps");
  const double counted = Number("warmup_steps").value_or(0);
  double ratio = Number("warmup_ratio").value_or(0);
  if (counted > 0 && counted < 1) {
    // transformers 5: below 1 it is a share of the steps.
    ratio = counted;
    From("warmup_steps", "warmup_ratio", ConfigValue::Of(ratio));
    if (total && *total > 0) From("warmup_steps", "warmup", ConfigValue::Of(std::ceil(ratio * *total)));
  } else if (counted > 0 && !(steps->by_default && ratio > 0)) {
    ratio = 0;
    From("warmup_steps", "warmup", steps->value);
  } else if (ratio > 0 && total && *total > 0) {
    From("warmup_ratio", "warmup", ConfigValue::Of(std::round(ratio * *total)));
  } else if (Number("warmup_samples").value_or(0) > 0 && batch > 0) {
    From("warmup_samples", "warmup", ConfigValue::Of(std::floor(*Number("warmup_samples") / batch)));
  } else if (ratio == 0 && steps && !Find("warmup_samples")) {
    From("warmup_steps", "warmup", ConfigValue::Of(int64_t{0}));
  }
  if (ratio > 0) {
    From("warmup_ratio", "warmup_share", ConfigValue::Of(ratio));
  } else if (const auto known = Number("warmup"); known && total && *total > 0) {
    From("warmup", "warmup_share", ConfigValue::Of(*known / *total));
  }
}

void EffectiveRun::DerivePrecision() {
  for (const Setting& option : configuration_.launcher) {  // of accelerate, for a program that leaves it to that
    const Fact* told = Find("compute_dtype");
    const bool open = !told || told->by_default;
    if (option.key == "mixed_precision" && HasOwnProgram() && open) {
      Set("compute_dtype", option.value, option.Origin());
    }
  }
  std::string kind = Word("compute_dtype");
  if (const Fact* fact = Find("compute_dtype")) {
    const bool half = Contains(kind, "16") || Contains(kind, "half") || kind == "amp" || kind == "mixed";
    const char* plain = Contains(kind, "bf") ? "bf16" : Contains(kind, "fp8") ? "fp8" : half ? "fp16" : "fp32";
    Set("precision", ConfigValue::Of(plain), fact->origin, fact->by_default);
  }
  for (const ConfigSource& source : configuration_.sources) {
    if (source.dialect == ConfigDialect::kMindFormers || source.dialect == ConfigDialect::kHfModel) continue;
    for (const auto& [key, value] : {std::pair("fp16", "fp16"),
                                     {"fp16.enabled", "fp16"},
                                     {"bf16", "bf16"},
                                     {"bf16.enabled", "bf16"},
                                     {"pure_bf16", "bf16"},
                                     {"model_parallel.bf16", "bf16"},
                                     {"model_parallel.fp16", "fp16"}}) {
      const Setting* flag = source.Find(key);
      if (flag) used_.try_emplace(key);
      if (flag && flag->value.AsBool().value_or(false)) Set("precision", ConfigValue::Of(value), flag->Origin());
    }
    if (source.dialect == ConfigDialect::kMegatron && !Find("precision")) {
      Set("precision", ConfigValue::Of("fp32"), "default of Megatron", true);
    }
  }
  for (const auto& [flag, value] : {std::pair("use_fp16", "fp16"), {"use_bf16", "bf16"}}) {
    if (Truth(flag).value_or(false)) From(flag, "precision", ConfigValue::Of(value));
  }
  if (Has(ConfigDialect::kMegatron)) {
    if (!Find("param_init_type")) {
      Set("param_init_type", ConfigValue::Of("float32"),
          "Megatron keeps fp32 weights beside those that it computes with", true);
    }
    // With bf16 Megatron adds gradients up in fp32 whatever is set.
    if (Word("precision") == "bf16") Set("grads_in_fp32", ConfigValue::Of(true), "Megatron with bf16", true);
  }
  if (const auto fp32 = Truth("softmax_fp32"); fp32 && !Find("softmax_dtype")) {
    From("softmax_fp32", "softmax_dtype", ConfigValue::Of(*fp32 ? "float32" : Word("precision")));
  }
  for (const ConfigSource& source : configuration_.sources) {
    const Setting* scale = source.Find("runner_wrapper.scale_sense.type");
    const bool adapts = scale && Contains(scale->value.Shown(), "Dynamic");
    if (adapts) Set("loss_scale", ConfigValue::Of("dynamic"), scale->Origin());
  }
  const Fact* stage = Find("parallel_optimizer");
  if (stage && stage->value.kind == ConfigValue::Kind::kInt) {
    From("parallel_optimizer", "parallel_optimizer", ConfigValue::Of(stage->value.integer > 0));
  }
  if (const Fact* fact = Find("residual_dtype"); fact && !Find("residual_fp32")) {
    Set("residual_fp32", ConfigValue::Of(Contains(fact->value.Shown(), "32")), fact->origin, fact->by_default);
  }
  const std::string deterministic = Word("deterministic");
  if (!deterministic.empty()) {
    From("deterministic", "deterministic", ConfigValue::Of(deterministic == "on" || deterministic == "true"));
  }
}

/// Where a scale that adapts begins: from a larger one more steps are left out before it fits.
void EffectiveRun::DeriveLossScale() {
  if (Word("precision") != "fp16") return;
  for (const ConfigSource& source : configuration_.sources) {
    const bool reads = source.dialect == ConfigDialect::kDeepSpeed || source.dialect == ConfigDialect::kNeox;
    const Setting *on = source.Find("fp16.enabled"), *power = source.Find("fp16.initial_scale_power");
    if (!reads || !on || !on->value.AsBool().value_or(true)) continue;  // "auto" is what the trainer says
    if (power) used_.try_emplace(power->key);
    const auto bits = static_cast<int>(power ? power->value.AsNumber().value_or(16) : 16);
    return Set("initial_loss_scale", ConfigValue::Of(std::ldexp(1.0, bits)),
               power ? power->Origin() : "default of DeepSpeed", !power);
  }
  if (Find("initial_loss_scale")) return;
  const bool trainer = std::any_of(dialects_.begin(), dialects_.end(), [](ConfigDialect dialect) {
    const StackKind* stack = FindStack(dialect);
    return dialect == ConfigDialect::kHfTrainer || (stack && stack->base == ConfigDialect::kHfTrainer);
  });
  if (Has(ConfigDialect::kMegatron)) {
    Set("initial_loss_scale", ConfigValue::Of(std::ldexp(1.0, 32)), "default of Megatron", true);
  } else if (trainer) {
    Set("initial_loss_scale", ConfigValue::Of(std::ldexp(1.0, 16)), "default of PyTorch", true);
  }
}

}  // namespace msprobe
