#include "checks/rule_tests.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/text.h"

namespace msprobe::rule_tests {
namespace {

constexpr double kSameNumber = 1e-9;  // in units of the larger
constexpr double kLargeAuxLoss = 0.05;
constexpr double kFewLayers = 2;

using Verdict = CheckVerdict;

std::string Plain(std::string_view text) {
  std::string out;
  for (const char c : text) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  for (const auto& [from, to] : {std::pair("bfloat16", "bf16"), {"float16", "fp16"}, {"float32", "fp32"}}) {
    if (out == from || out == "mstype." + std::string(from) || out == "torch." + std::string(from)) return to;
  }
  return out;
}

}  // namespace

bool Same(const ConfigValue& a, const ConfigValue& b) {
  const std::optional<double> x = a.AsNumber(), y = b.AsNumber();
  if (x && y) return *x == *y || std::fabs(*x - *y) <= kSameNumber * std::max(std::fabs(*x), std::fabs(*y));
  const std::optional<bool> p = a.AsBool(), q = b.AsBool();
  if (p && q) return *p == *q;
  return Plain(a.Shown()) == Plain(b.Shown());
}

Verdict CompareFacts(const Fact* a, const Fact* b, Verdict different) {
  if (!a || !b) return Verdict::kAsk;
  if (Same(a->value, b->value)) return Verdict::kPass;
  const auto also = [](const Fact& one, const Fact& other) {
    return std::any_of(one.also.begin(), one.also.end(),
                       [&](double value) { return Same(ConfigValue::Of(value), other.value); });
  };
  if (also(*a, *b) || also(*b, *a)) return Verdict::kAsk;
  // What a file of no known stack means by a name is not sure enough to accuse a default that nobody wrote; a flag
  // means one thing only.
  const auto by_name = [](const Fact& one) { return one.by_name && one.value.kind != ConfigValue::Kind::kBool; };
  const bool guessed = (by_name(*a) && b->by_default) || (by_name(*b) && a->by_default);
  return guessed ? std::min(different, Verdict::kWarn) : different;
}

Verdict Compare(const CheckInput& input, std::string_view quantity, Verdict different) {
  if (!input.golden) return Verdict::kSkip;
  return CompareFacts(input.target->Find(quantity), input.golden->Find(quantity), different);
}

Verdict Each(const CheckInput& input, const std::function<Verdict(const EffectiveRun&)>& test) {
  Verdict out = test(*input.target);
  if (input.golden) out = std::max(out, test(*input.golden));
  return out;
}

namespace {

bool AnyMoe(const CheckInput& input) { return input.target->IsMoe() || (input.golden && input.golden->IsMoe()); }

bool AnyMindSpore(const CheckInput& input) {
  return input.target->Has(ConfigDialect::kMindFormers) ||
         (input.golden && input.golden->Has(ConfigDialect::kMindFormers));
}

Verdict Usual(const CheckInput& input, double usual) {
  return Each(input, [&](const EffectiveRun& run) {
    const auto value = run.Number(input.quantity);
    if (!value) return Verdict::kSkip;
    return std::fabs(*value - usual) <= kSameNumber * usual ? Verdict::kPass : Verdict::kWarn;
  });
}

/// What is unusual of one side alone is a fault; of both alike it is worth a look.
Verdict UnlessAlike(const CheckInput& input, Verdict verdict) {
  if (verdict != Verdict::kFail || !input.golden) return verdict;
  return Compare(input, input.quantity, Verdict::kFail) == Verdict::kPass ? Verdict::kWarn : verdict;
}

bool OnNpu(const EffectiveRun& run) {
  if (run.Has(ConfigDialect::kMindFormers) || run.Has(ConfigDialect::kMindSpeedMm)) return true;
  const auto& all = run.configuration().environment;
  return !run.Package("torch-npu").empty() || !run.Package("torch_npu").empty() ||
         std::any_of(all.begin(), all.end(), [](const Setting& variable) {
           return StartsWith(variable.key, "ASCEND") || StartsWith(variable.key, "HCCL");
         });
}

bool Fp32(const std::string& word) { return Plain(word) == "fp32" || word == "true"; }

}  // namespace

Verdict Equal(const CheckInput& input) { return Compare(input, input.quantity, Verdict::kFail); }
Verdict EqualOrWarn(const CheckInput& input) { return Compare(input, input.quantity, Verdict::kWarn); }

Verdict AskAlways(const CheckInput&) { return Verdict::kAsk; }

Verdict AskUnlessEqual(const CheckInput& input) {
  const Verdict out = Compare(input, input.quantity, Verdict::kFail);
  return out == Verdict::kSkip ? Verdict::kAsk : out;
}

Verdict AskDecay(const CheckInput& input) {
  const auto decays = [](const EffectiveRun* run) { return run && run->Number("weight_decay").value_or(1) != 0; };
  if (!decays(input.target) && !decays(input.golden)) return Verdict::kPass;
  // Groups that a log shows decide; defaults of frameworks may have been changed in the source.
  const Fact *a = input.target->Find("undecayed"), *b = input.golden ? input.golden->Find("undecayed") : nullptr;
  if (!a || !b || (a->by_default && b->by_default)) return Verdict::kAsk;
  if (!Same(a->value, b->value)) return Verdict::kFail;
  return a->by_default || b->by_default ? Verdict::kAsk : Verdict::kPass;
}

Verdict EqualAttention(const CheckInput& input) { return Compare(input, "kv_heads", Verdict::kFail); }

Verdict EqualWindow(const CheckInput& input) {
  if (!input.golden) return Verdict::kSkip;
  const Fact *a = input.target->Find("sliding_window"), *b = input.golden->Find("sliding_window");
  if (!input.target->KnowsModel() || !input.golden->KnowsModel()) return Verdict::kAsk;
  if (!a && !b) return Verdict::kPass;
  if (a && b && Same(a->value, b->value)) return Verdict::kPass;
  if ((a && !b && a->by_name) || (b && !a && b->by_name)) return Verdict::kAsk;
  // A window as long as the sequences hides nothing of them.
  const double longest =
      std::max(input.target->Number("seq_length").value_or(0), input.golden->Number("seq_length").value_or(0));
  const auto acts = [&](const Fact* window) {
    return window && (longest <= 0 || window->value.AsNumber().value_or(0) < longest);
  };
  return acts(a) || acts(b) ? Verdict::kFail : Verdict::kWarn;
}

Verdict NoDropout(const CheckInput& input) {
  const Verdict each = Each(input, [](const EffectiveRun& run) {
    const auto a = run.Number("attention_dropout"), b = run.Number("hidden_dropout");
    if (!a && !b) return Verdict::kAsk;
    return a.value_or(0) > 0 || b.value_or(0) > 0 ? Verdict::kWarn : Verdict::kPass;
  });
  const Verdict attention = Compare(input, "attention_dropout", Verdict::kFail),
                hidden = Compare(input, "hidden_dropout", Verdict::kFail);
  for (const size_t side : {0, 1}) {  // that of the hidden states, where it is the one that differs
    const Fact* fact = (side == 0 ? input.target : input.golden)
                           ? (side == 0 ? *input.target : *input.golden).Find("hidden_dropout")
                           : nullptr;
    const bool alone = hidden == Verdict::kPass && attention == Verdict::kAsk;
    if (((hidden == Verdict::kFail && attention != Verdict::kFail) || alone) && fact) {
      input.shown[side] = CheckShown{"hidden " + fact->value.Shown(), fact->origin};
    }
  }
  return attention == Verdict::kFail || hidden == Verdict::kFail ? Verdict::kFail : each;
}

/// Rows that only fill the vocabulary up are worth a look, unless they were asked for.
Verdict EqualVocabulary(const CheckInput& input) {
  const bool told = input.target->Find("vocab_divisor") || (input.golden && input.golden->Find("vocab_divisor"));
  const bool filled = !told && Compare(input, "vocab_size", Verdict::kFail) == Verdict::kPass;
  return Compare(input, "padded_vocab", filled ? Verdict::kWarn : Verdict::kFail);
}

Verdict VocabularyMultiple(const CheckInput& input) {
  const bool npu = OnNpu(*input.target) || (input.golden && OnNpu(*input.golden));
  const Verdict out = Each(input, [&](const EffectiveRun& run) {
    const auto vocab = run.Number("padded_vocab");
    if (!vocab) return Verdict::kAsk;
    if (std::fmod(*vocab, 2) != 0) return npu ? Verdict::kFail : Verdict::kWarn;
    return std::fmod(*vocab, 16) == 0 ? Verdict::kPass : Verdict::kWarn;
  });
  return UnlessAlike(input, out);
}

Verdict EqualExperts(const CheckInput& input) {
  if (!input.golden || !AnyMoe(input)) return Verdict::kSkip;
  if (input.target->IsMoe() != input.golden->IsMoe()) return Verdict::kFail;
  return Compare(input, "expert_num", Verdict::kFail);
}

Verdict MoeEqual(const CheckInput& input) {
  return AnyMoe(input) ? Compare(input, input.quantity, Verdict::kFail) : Verdict::kSkip;
}

Verdict CapacityRange(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    if (!run.IsMoe()) return Verdict::kSkip;
    const auto factor = run.Number("capacity_factor");
    if (!factor || *factor < 0) return Verdict::kPass;  // nothing is dropped
    const double most = run.Number("expert_num").value_or(0) / std::max(1.0, run.Number("experts_chosen").value_or(1));
    return *factor >= 1 && *factor <= most ? Verdict::kPass : Verdict::kFail;
  });
}

Verdict SmallAuxLoss(const CheckInput& input) {
  return UnlessAlike(input, Each(input, [](const EffectiveRun& run) {
                       if (!run.IsMoe()) return Verdict::kSkip;
                       const auto factor = run.Number("aux_loss");
                       if (!factor) return Verdict::kAsk;
                       if (*factor >= kLargeAuxLoss) return Verdict::kFail;
                       return *factor > 0 ? Verdict::kWarn : Verdict::kPass;
                     }));
}

Verdict RouterV2(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    if (!run.IsMoe() || !run.Has(ConfigDialect::kMindFormers)) return Verdict::kSkip;
    return run.Word("routing_policy") == "topkrouterv2" ? Verdict::kPass : Verdict::kWarn;
  });
}

Verdict SameDropping(const CheckInput& input) {
  if (!AnyMoe(input)) return Verdict::kSkip;
  const auto dropless = [](const EffectiveRun& run) { return run.Number("capacity_factor").value_or(-1) < 0; };
  if (input.golden && dropless(*input.target) && dropless(*input.golden)) return Verdict::kPass;
  return Compare(input, "enable_sdrop", Verdict::kFail);
}

Verdict RouterFp32(const CheckInput& input) {
  const Verdict out = Each(input, [](const EffectiveRun& run) {
    if (!run.IsMoe()) return Verdict::kSkip;
    const Fact* type = run.Find("router_dtype");
    if (type)
      return Fp32(run.Word("router_dtype")) || run.Word("router_dtype") == "fp64" ? Verdict::kPass : Verdict::kFail;
    if (!run.Has(ConfigDialect::kMegatron)) return Verdict::kAsk;
    return run.Word("precision") == "fp32" ? Verdict::kPass : Verdict::kFail;  // it takes the type of the model
  });
  // Of a pair the other one may compute it so, too.
  const bool other =
      !input.golden || Compare(input, "router_dtype", Verdict::kFail) == Verdict::kFail || AnyMindSpore(input);
  return out == Verdict::kFail && !other ? Verdict::kWarn : out;
}

Verdict FusedRouter(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    if (!run.IsMoe() || !run.Has(ConfigDialect::kMindFormers) || !run.Truth("enable_sdrop").value_or(false)) {
      return Verdict::kSkip;
    }
    return run.Truth("fused_router").value_or(false) ? Verdict::kPass : Verdict::kWarn;
  });
}

Verdict SharedGating(const CheckInput& input) {
  const bool shared = input.target->Number("shared_expert_num").value_or(0) > 0 ||
                      (input.golden && input.golden->Number("shared_expert_num").value_or(0) > 0);
  if (!AnyMoe(input) || !shared) return Verdict::kSkip;
  return Compare(input, "shared_gating", Verdict::kFail);
}

Verdict UsualEps(const CheckInput& input) { return Usual(input, 1e-8); }
Verdict UsualBeta1(const CheckInput& input) { return Usual(input, 0.9); }
Verdict UsualBeta2(const CheckInput& input) { return Usual(input, 0.95); }
Verdict UsualClip(const CheckInput& input) { return Usual(input, 1.0); }

/// By steps, or where the length of a run is not known by shares of it.
Verdict EqualWarmup(const CheckInput& input) {
  const Verdict steps = Compare(input, "warmup", Verdict::kFail);
  // A ratio is rounded to steps up, down or to the nearest, as the stack has it.
  const auto of_ratio = [](const EffectiveRun& run) { return run.Number("warmup_ratio").value_or(0) > 0; };
  if (steps == Verdict::kFail && (of_ratio(*input.target) || of_ratio(*input.golden)) &&
      std::fabs(input.target->Number("warmup").value_or(0) - input.golden->Number("warmup").value_or(0)) <= 1) {
    return Verdict::kPass;
  }
  const bool counted = input.golden && input.target->Find("warmup") && input.golden->Find("warmup");
  if (steps != Verdict::kAsk || counted) return steps;
  if (!input.golden) return steps;
  const Verdict shares = Compare(input, "warmup_share", Verdict::kFail);
  const bool neither = !input.target->Find("warmup") && !input.golden->Find("warmup");
  for (const size_t side : {0, 1}) {
    const EffectiveRun& run = side == 0 ? *input.target : *input.golden;
    const Fact* share = run.Find("warmup_share");
    if ((shares == Verdict::kFail || (shares == Verdict::kPass && neither)) && share) {
      input.shown[side] = CheckShown{share->value.Shown() + " of all steps", share->origin};
    }
  }
  return shares;
}

Verdict EqualMinLr(const CheckInput& input) {
  const bool constant =
      input.golden && input.target->Word("schedule") == "constant" && input.golden->Word("schedule") == "constant";
  return constant ? Verdict::kSkip : Compare(input, "min_lr", Verdict::kFail);
}

/// Of two scales that adapt.
static Verdict SameInitialScale(const CheckInput& input) {
  const Fact* facts[] = {input.target->Find("initial_loss_scale"), input.golden->Find("initial_loss_scale")};
  const bool known = facts[0] && facts[1];
  const Verdict out = known                  ? Compare(input, "initial_loss_scale", Verdict::kFail)
                      : facts[0] || facts[1] ? Verdict::kAsk
                                             : Verdict::kPass;
  for (const size_t side : {0, 1}) {
    if (facts[side]) input.shown[side] = CheckShown{"dynamic from " + facts[side]->value.Shown(), facts[side]->origin};
  }
  return out;
}

Verdict SameLossScale(const CheckInput& input) {
  if (!input.golden) return Verdict::kSkip;
  const auto scale = [](const EffectiveRun& run) -> std::string {
    const Fact* fact = run.Find("loss_scale");
    if (fact && fact->value.Shown() == "dynamic") return "dynamic";
    const double value = fact ? fact->value.AsNumber().value_or(0) : 0;
    if (value > 0) return PyRepr(value);
    return run.Word("precision") == "fp16" ? "dynamic" : "1.0";
  };
  if (!input.target->Find("precision") || !input.golden->Find("precision")) return Verdict::kAsk;
  const std::string a = scale(*input.target), b = scale(*input.golden);
  const bool adapt = a == "dynamic" && b == "dynamic";
  if (adapt && input.target->Word("precision") == "fp16" && input.golden->Word("precision") == "fp16") {
    return SameInitialScale(input);
  }
  if (a == b) {
    input.shown[0] = CheckShown{a, input.target->Find("precision")->origin};
    input.shown[1] = CheckShown{b, input.golden->Find("precision")->origin};
    return Verdict::kPass;
  }
  const auto told = [](const EffectiveRun& run) {
    const Fact* fact = run.Find("loss_scale");
    return fact && !fact->by_default;
  };
  // What follows from another precision is that rule's.
  const bool follows = !told(*input.target) && !told(*input.golden);
  if (follows && input.target->Word("precision") != input.golden->Word("precision")) return Verdict::kAsk;
  // A scale that adapts is divided out again, and in bf16 nothing underflows without one.
  const bool fp16 = input.target->Word("precision") == "fp16" || input.golden->Word("precision") == "fp16";
  return !fp16 && (a == "dynamic" || b == "dynamic") ? Verdict::kWarn : Verdict::kFail;
}

Verdict InitFp32(const CheckInput& input) {
  return UnlessAlike(input, Each(input, [](const EffectiveRun& run) {
                       const Fact* type = run.Find("param_init_type");
                       if (!type || !run.Has(ConfigDialect::kMindFormers)) return Verdict::kPass;
                       return Fp32(run.Word("param_init_type")) ? Verdict::kPass : Verdict::kFail;
                     }));
}

Verdict GradsFp32(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    if (!run.Has(ConfigDialect::kMegatron)) return Verdict::kSkip;
    return run.Word("precision") == "fp16" && !run.Truth("grads_in_fp32").value_or(false) ? Verdict::kWarn
                                                                                          : Verdict::kPass;
  });
}

Verdict RotaryType(const CheckInput& input) {
  if (!AnyMindSpore(input)) return Verdict::kAsk;
  return Each(input, [](const EffectiveRun& run) {
    if (!run.Has(ConfigDialect::kMindFormers)) return Verdict::kPass;
    return Plain(run.Word("rotary_dtype")) == run.Word("precision") ? Verdict::kPass : Verdict::kWarn;
  });
}

Verdict BiasAdd(const CheckInput& input) {
  const Verdict same = Compare(input, "linear_bias", Verdict::kFail);
  const auto has = [](const EffectiveRun* run) { return run && run->Truth("linear_bias").value_or(false); };
  return same == Verdict::kPass && (has(input.target) || has(input.golden)) ? Verdict::kAsk : same;
}

Verdict ResidualAdd(const CheckInput& input) {
  const Verdict same = Compare(input, "residual_fp32", Verdict::kFail);
  return same == Verdict::kFail ? Verdict::kFail : Verdict::kAsk;
}

Verdict HighPrecision(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    if (!run.Has(ConfigDialect::kMindFormers)) return Verdict::kSkip;
    return Contains(run.Word("high_precision"), "high_precision") ? Verdict::kPass : Verdict::kAsk;
  });
}

Verdict NoParallelOptimizer(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    return run.Truth("parallel_optimizer").value_or(false) ? Verdict::kWarn : Verdict::kPass;
  });
}

Verdict NoInterleave(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    return run.Number("micro_batch_interleave").value_or(1) > 1 ? Verdict::kWarn : Verdict::kPass;
  });
}

Verdict TokensInRange(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    const auto range = run.TokenRange();
    const auto vocab = run.Number("vocab_size");
    if (!range || !vocab) return Verdict::kAsk;
    return range->first >= 0 && range->second < *vocab ? Verdict::kPass : Verdict::kFail;
  });
}

Verdict SpecialInRange(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    const auto vocab = run.Number("padded_vocab");
    bool known = false;
    for (const std::string_view token : {"bos_token", "eos_token", "pad_token"}) {
      const auto id = run.Number(token);
      if (!id || !vocab) continue;
      known = true;
      if (*id >= *vocab) return Verdict::kFail;
    }
    return known ? Verdict::kPass : Verdict::kAsk;
  });
}

/// Ids that the configuration has for a special token, of which some models have several.
bool HasId(const Fact& fact, double id) {
  if (!fact.value.IsList()) return fact.value.AsNumber() == id;
  return std::any_of(fact.value.items.begin(), fact.value.items.end(),
                     [&](const ConfigValue& item) { return item.AsNumber() == id; });
}

Verdict TokenizerIds(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    if (!run.Find("tokenizer_vocabulary")) return Verdict::kSkip;
    if (run.Number("tokenizer_ids_given_twice").value_or(0) > 0) return Verdict::kFail;
    for (const std::string token : {"bos_token", "eos_token", "pad_token"}) {
      const Fact* told = run.Find(token);
      const auto id = run.Number("tokenizer_" + token);
      // What a framework would take without being told is no statement about this model.
      if (told && !told->by_default && id && !HasId(*told, *id)) return Verdict::kFail;
    }
    return Verdict::kPass;
  });
}

Verdict SameSpecialTokens(const CheckInput& input) {
  if (!input.golden) return Verdict::kSkip;
  bool known = false;
  for (const std::string_view token : {"tokenizer_bos_token", "tokenizer_eos_token", "tokenizer_pad_token"}) {
    const auto a = input.target->Number(token), b = input.golden->Number(token);
    if (!a || !b) continue;
    known = true;
    if (*a != *b) return Verdict::kFail;
  }
  return known ? Verdict::kPass : Verdict::kSkip;
}

Verdict RoundTrip(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    constexpr double kOthers = 0.5, kMost = 0.95;  // texts that were cut come back a little different at their ends
    if (!run.Find("tokenizer_vocabulary") || !run.TokenRange()) return Verdict::kSkip;
    if (run.Number("tokenizer_ids_without_a_token").value_or(0) > 0) return Verdict::kFail;
    const auto share = run.Number("tokenizer_share_that_comes_back");
    if (!share) return Verdict::kAsk;
    return *share < kOthers ? Verdict::kFail : *share < kMost ? Verdict::kWarn : Verdict::kPass;
  });
}

Verdict TokenizerFits(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    const auto largest = run.Number("tokenizer_largest_id"), vocab = run.Number("padded_vocab");
    if (!largest || !vocab) return Verdict::kSkip;
    return *largest >= *vocab ? Verdict::kFail : Verdict::kPass;
  });
}

Verdict NoGraphKernel(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    return run.Truth("graph_kernel").value_or(false) ? Verdict::kWarn : Verdict::kPass;
  });
}

Verdict FewLayers(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    const auto layers = run.Number("num_layers");
    return layers && *layers > kFewLayers ? Verdict::kWarn : Verdict::kPass;
  });
}

Verdict ConstantRate(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    const std::string kind = run.Word("schedule");
    return kind.empty() ? Verdict::kAsk : kind == "constant" ? Verdict::kPass : Verdict::kWarn;
  });
}

Verdict NoWarmup(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    const auto steps = run.Number("warmup");
    return !steps ? Verdict::kAsk : *steps == 0 ? Verdict::kPass : Verdict::kWarn;
  });
}

Verdict Deterministic(const CheckInput& input) {
  return Each(input, [](const EffectiveRun& run) {
    return run.Truth("deterministic").value_or(false) ? Verdict::kPass : Verdict::kWarn;
  });
}

}  // namespace msprobe::rule_tests
