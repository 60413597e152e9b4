// The rules of the checklist about quantities that say the same in several ways.
#include <algorithm>

#include "base/text.h"
#include "checks/rule_tests.h"

namespace msprobe::rule_tests {

using Verdict = CheckVerdict;

/// GELU and its form by tanh are two functions; which of them Megatron takes depends on what it fuses.
Verdict EqualActivation(const CheckInput& input) {
  const Verdict out = Equal(input);
  if (out != Verdict::kFail) return out;
  const auto gelu = [](const EffectiveRun& run) { return run.Word("activation").starts_with("gelu"); };
  const auto open = [](const EffectiveRun& run) { return run.Find("activation")->by_default; };
  const bool of_gelu = gelu(*input.target) && gelu(*input.golden);
  return of_gelu && (open(*input.target) || open(*input.golden)) ? Verdict::kAsk : out;
}

/// With decay Adam and AdamW part; what a program of its own calls Adam may be either.
Verdict EqualOptimizer(const CheckInput& input) {
  const Verdict out = Equal(input);
  if (out != Verdict::kFail && out != Verdict::kWarn) return out;
  const std::string a = input.target->Word("optimizer_kind"), b = input.golden->Word("optimizer_kind");
  const bool of_adam = (a == "adam" && b == "adamw") || (a == "adamw" && b == "adam");
  if (!of_adam) return out;
  const bool decays = input.target->Number("weight_decay") != 0.0 || input.golden->Number("weight_decay") != 0.0;
  if (!decays) return Verdict::kPass;
  const EffectiveRun& plain = a == "adam" ? *input.target : *input.golden;
  const std::string& origin = plain.Find("optimizer_kind")->origin;
  return plain.Has(ConfigDialect::kOwn) && !Contains(origin, ".py") ? Verdict::kAsk : out;
}

namespace {

/// The numbers of samples of a step that a configuration may mean.
std::vector<double> BatchReadings(const EffectiveRun& run) {
  if (const auto all = run.Number("global_batch")) return {*all};
  const auto micro = run.Number("micro_batch");
  const double steps = run.Number("accumulation").value_or(1);
  const auto data_parallel = run.Number("data_parallel");
  if (!micro || !data_parallel || !run.Find("plain_batch")) return {};
  return {*micro, *micro * steps, *micro * *data_parallel, *micro * steps * *data_parallel};
}

}  // namespace

/// Where the number of processes is not known, the batch of one of them tells within a stack.
Verdict EqualBatch(const CheckInput& input) {
  const Verdict out = Equal(input);
  if (out != Verdict::kAsk) return out;
  const EffectiveRun &target = *input.target, &golden = *input.golden;
  const auto show = [&](const EffectiveRun& run, std::optional<CheckShown>* shown) {
    const Fact *micro = run.Find("micro_batch"), *all = run.Find("global_batch"), *steps = run.Find("accumulation");
    if (all || !micro) return;
    *shown = CheckShown{micro->value.Shown() + (steps ? " in " + steps->value.Shown() + " micro batches" : ""),
                        micro->origin};
  };
  for (const std::string_view part : {"accumulation", "micro_batch", "global_batch"}) {
    if (target.LeftOpen(part) || golden.LeftOpen(part)) return Verdict::kAsk;
  }
  const auto a = BatchReadings(target), b = BatchReadings(golden);
  const auto micro_a = target.Number("micro_batch"), micro_b = golden.Number("micro_batch");
  bool differs = false;
  if (target.dialects() == golden.dialects() && micro_a && micro_b && !target.Find("global_batch") &&
      !golden.Find("global_batch") && target.Number("world_size") == golden.Number("world_size")) {
    differs =
        *micro_a * target.Number("accumulation").value_or(1) != *micro_b * golden.Number("accumulation").value_or(1);
  } else if (!a.empty() && !b.empty()) {
    differs = std::none_of(a.begin(), a.end(), [&](double x) { return std::find(b.begin(), b.end(), x) != b.end(); });
  }
  if (!differs) return Verdict::kAsk;
  show(target, &input.shown[0]);
  show(golden, &input.shown[1]);
  return Verdict::kFail;
}

}  // namespace msprobe::rule_tests
