// What stacks that train on pictures say in a way of their own, and means of weights.
#include <algorithm>

#include "base/text.h"
#include "checks/effective.h"

namespace msprobe {

/// The decay of a mean of the weights, where a stack says by a flag or a hook whether it keeps one.
void EffectiveRun::DeriveMeans() {
  const Setting *flag = nullptr, *decay = nullptr;
  bool hooks = false;
  for (const ConfigSource& source : configuration_.sources) {
    if (source.dialect == ConfigDialect::kMmengine) hooks = DeriveMeanOfHooks(source) || hooks;
    if (source.dialect != ConfigDialect::kTimm) continue;
    if (const Setting* one = source.Find("model_ema")) flag = one;
    if (const Setting* one = source.Find("model_ema_decay")) decay = one;
  }
  const bool on = flag && flag->value.AsBool().value_or(false);
  if (Has(ConfigDialect::kTimm)) {
    if (flag) used_.insert_or_assign(flag->key, "ema_decay");
    facts_.erase("ema_decay");
    if (on && decay) Set("ema_decay", decay->value, decay->Origin());
    if (on && !decay) Set("ema_decay", PythonScalar("0.9998"), "default of timm", true);
    if (!on) Set("ema_decay", ConfigValue::Of(int64_t{0}), flag ? flag->Origin() : "default of timm", !flag);
  }
  if (Has(ConfigDialect::kMmengine) && !hooks && configuration_.unread.empty()) {
    Set("ema_decay", ConfigValue::Of(int64_t{0}), "default of mmengine", true);
  }
}

/// EMAHook takes what is new by its momentum. False: no hook keeps a mean.
bool EffectiveRun::DeriveMeanOfHooks(const ConfigSource& source) {
  constexpr int kMostHooks = 32;
  constexpr double kMomentum = 0.0002;
  for (int i = 0; i < kMostHooks; ++i) {
    const std::string at = "custom_hooks." + std::to_string(i) + ".";
    const Setting *type = source.Find(at + "type"), *momentum = source.Find(at + "momentum");
    if (!type || !Contains(type->value.Shown(), "EMA")) continue;
    for (const Setting* one : {type, momentum}) {
      if (one) used_.insert_or_assign(one->key, "ema_decay");
    }
    const Setting* kind = source.Find(at + "ema_type");
    if (kind && !Contains(kind->value.Shown(), "ExponentialMovingAverage")) return true;  // by a rule of its own
    const auto share = momentum ? momentum->value.AsNumber() : kMomentum;
    if (share) {
      Set("ema_decay", ConfigValue::Of(1 - *share), momentum ? momentum->Origin() : "default of mmengine", !momentum);
    }
    return true;
  }
  return std::any_of(source.settings.begin(), source.settings.end(), [](const Setting& setting) {
    return StartsWith(setting.key, "custom_hooks") && Contains(setting.value.Shown(), "EMA");
  });
}

/// It clips by a section of its own, and counts processes by options of its program.
void EffectiveRun::DeriveOfDetectron() {
  for (const ConfigSource& source : configuration_.sources) {
    if (source.dialect != ConfigDialect::kDetectron2) continue;
    const Setting *on = source.Find("SOLVER.CLIP_GRADIENTS.ENABLED"),
                  *most = source.Find("SOLVER.CLIP_GRADIENTS.CLIP_VALUE");
    for (const Setting* one : {on, most}) {
      if (one) used_.insert_or_assign(one->key, "clip_grad");
    }
    const bool clips = on && on->value.AsBool().value_or(false);
    if (on && !clips) Set("clip_grad", ConfigValue::Of(0.0), on->Origin());
    if (clips && most) Set("clip_grad", most->value, most->Origin());
    if (clips && !most) Set("clip_grad", ConfigValue::Of(1.0), "default of detectron2", true);
    if (clips && Word("clip_kind").empty()) Set("clip_kind", ConfigValue::Of("value"), "default of detectron2", true);
  }
  if (!Has(ConfigDialect::kDetectron2)) return;
  const auto seed = Number("seed");
  if (seed && *seed < 0) facts_.erase("seed");  // another one each time
}

/// (60000, 80000) as a text is that list.
void EffectiveRun::DeriveMilestones() {
  const Fact* steps = Find("lr_milestones");
  if (!steps || !steps->value.IsText()) return;
  ConfigValue list;
  list.kind = ConfigValue::Kind::kList;
  for (std::string_view part : Split(steps->value.text, ',')) {
    while (!part.empty() && (part.front() == '(' || part.front() == '[' || part.front() == ' ')) part.remove_prefix(1);
    while (!part.empty() && (part.back() == ')' || part.back() == ']' || part.back() == ' ')) part.remove_suffix(1);
    if (!part.empty()) list.items.push_back(PythonScalar(part));
  }
  From("lr_milestones", "lr_milestones", std::move(list));
}

}  // namespace msprobe
