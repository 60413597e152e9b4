#include "optimizer/compare_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/message.h"
#include "base/text.h"
#include "optimizer/name_term.h"
#include "optimizer/state_digits.h"
#include "optimizer/weight_values.h"

namespace msprobe {
namespace {

constexpr int64_t kStretch = 1 << 16;

struct RuleNumber {
  std::string_view name;
  double UpdateRule::*value;
};
constexpr RuleNumber kRuleNumbers[] = {{"lr", &UpdateRule::lr},
                                       {"weight_decay", &UpdateRule::weight_decay},
                                       {"beta1", &UpdateRule::beta1},
                                       {"beta2", &UpdateRule::beta2},
                                       {"eps", &UpdateRule::eps},
                                       {"momentum", &UpdateRule::momentum},
                                       {"dampening", &UpdateRule::dampening}};

struct RuleSwitch {
  std::string_view name;
  bool UpdateRule::*value;
};
constexpr RuleSwitch kRuleSwitches[] = {{"nesterov", &UpdateRule::nesterov},
                                        {"amsgrad", &UpdateRule::amsgrad},
                                        {"maximize", &UpdateRule::maximize},
                                        {"bias_correction", &UpdateRule::correction1}};

/// The first text of each kind and how often it comes.
class DifferenceList {
 public:
  /// A `factor` counts more than what is apart by rounding.
  void Add(std::string_view what, const Message& text, double factor = 1) {
    auto [at, added] = counts_.emplace(what, 0);
    if (++at->second == 1) {
      out_.push_back({std::string(what), text, factor});
      return;
    }
    const auto found = std::find_if(out_.begin(), out_.end(), [&](const auto& d) { return d.what == what; });
    if (factor != 1 && found->factor == 1) *found = {std::string(what), text, factor};
  }
  std::vector<RecordDifference> Take() {
    for (RecordDifference& d : out_) {
      const size_t count = counts_[d.what];
      if (count > 1) d.text = Msg("{}, and {} more", d.text, count - 1);
    }
    return std::move(out_);
  }

 private:
  std::map<std::string, size_t, std::less<>> counts_;
  std::vector<RecordDifference> out_;
};

/// Optimizers of MindSpore keep their numbers in float32, those of PyTorch in double.
bool IsSameNumber(double a, double b) { return a == b || static_cast<float>(a) == static_cast<float>(b); }

void CompareRules(const UpdateRule& a, const UpdateRule& b, const std::string& where, DifferenceList* out) {
  if (a.kind != b.kind) {
    out->Add("optimizer", Msg("{}: A has {}, B has {}", where, OptimizerKindName(a.kind), OptimizerKindName(b.kind)));
  }
  for (const RuleNumber& n : kRuleNumbers) {
    if (IsSameNumber(a.*n.value, b.*n.value)) continue;
    out->Add(n.name, Msg("{}: A has {:.6g}, B has {:.6g}", where, a.*n.value, b.*n.value));
  }
  for (const RuleSwitch& s : kRuleSwitches) {
    if (a.*s.value == b.*s.value) continue;
    out->Add(s.name, Msg("{}: A has {}, B has {}", where, a.*s.value, b.*s.value));
  }
}

struct ElementSums {
  double aa = 0, ab = 0, bb = 0, worst_ulp = 0;
  bool equal = true;
  void Add(const std::vector<double>& a, const std::vector<double>& b, DType dtype) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      aa += a[i] * a[i];
      ab += a[i] * b[i];
      bb += b[i] * b[i];
      if (a[i] == b[i]) continue;
      equal = false;
      worst_ulp =
          std::max(worst_ulp, std::fabs(a[i] - b[i]) / UlpAt(std::max(std::fabs(a[i]), std::fabs(b[i])), dtype));
    }
  }
};

/// The norms of all gradients of one step on both sides, and whether those of one are the other's times a number.
struct GradientPair {
  int64_t step = 0;
  double aa = 0, ab = 0, bb = 0;
  double norm_a() const { return std::sqrt(aa); }
  double norm_b() const { return std::sqrt(bb); }
  bool scaled() const {
    const double ratio = aa > 0 && bb > 0 ? norm_b() / norm_a() : 1;
    return ab > 0 && std::fabs(ab * ab - aa * bb) < 1e-6 * aa * bb && std::fabs(ratio - 1) > 1e-3;
  }
};

/// One side has the same norm at each step, as clipping makes it, and the gradients of the other, larger ones, are the
/// same but for that.
void CompareClipping(const std::vector<GradientPair>& steps, DifferenceList* out) {
  constexpr double kSameNorm = 1e-4;
  const auto scaled = std::find_if(steps.begin(), steps.end(), [](const GradientPair& s) { return s.scaled(); });
  if (steps.size() < 2 || scaled == steps.end()) return;
  const bool b_clips = scaled->bb < scaled->aa;
  const auto clipped = [&](const GradientPair& s) { return b_clips ? s.norm_b() : s.norm_a(); };
  const auto other = [&](const GradientPair& s) { return b_clips ? s.norm_a() : s.norm_b(); };
  const double norm = clipped(*scaled);
  if (std::any_of(steps.begin(), steps.end(), [&](auto& s) { return std::fabs(clipped(s) - norm) > kSameNorm * norm; }))
    return;
  out->Add("clip_grad",
           Msg("step {}: {} clips its gradients to the norm {:.6g} before the step, those of {} have the norm {:.6g} "
               "and are not clipped, or after it",
               scaled->step, b_clips ? "B" : "A", norm, b_clips ? "A" : "B", other(*scaled)));
}

void CompareStateTypes(const std::string& where, const RecordedWeight& a, const RecordedWeight& b,
                       DifferenceList* out) {
  for (const auto& [name, state] : a.states) {
    const auto found = b.states.find(name);
    if (found == b.states.end()) continue;
    const DType of_a = HeldIn(state), of_b = HeldIn(found->second);
    if (of_a == of_b || of_a == DType::kUnknown || of_b == DType::kUnknown) continue;
    out->Add("state_dtype", Msg("{}: the values of {} are kept in {} by A and in {} by B", where, OneLine(name),
                                DTypeName(of_a), DTypeName(of_b)));
  }
}

void CompareWeight(const RecordedStep& sa, const RecordedWeight& a, const RecordedStep& sb, const RecordedWeight& b,
                   GradientPair* gradients, DifferenceList* out) {
  const std::string where = fmt::format("step {}, {}", sa.step, OneLine(a.name));
  CompareRules(sa.groups[a.group], sb.groups[b.group], where, out);
  if (a.before.shape != b.before.shape) {
    out->Add("shape", Msg("{}: the shapes differ", where));
    return;
  }
  CompareStateTypes(where, a, b, out);
  ElementSums before, grad, after, first;
  const int64_t count = ElementsOf(a);
  for (int64_t begin = 0; begin < count; begin += kStretch) {
    const int64_t end = std::min(count, begin + kStretch);
    const WeightValues va = LoadValues(a, begin, end, 1), vb = LoadValues(b, begin, end, 1);
    before.Add(va.before, vb.before, va.dtype);
    grad.Add(va.grad, vb.grad, va.coarsest);
    after.Add(va.after, vb.after, va.dtype);
    first.Add(va.of(StateRole::kFirst).before, vb.of(StateRole::kFirst).before, va.coarsest);
  }
  gradients->aa += grad.aa;
  gradients->ab += grad.ab;
  gradients->bb += grad.bb;
  if (!before.equal) out->Add("weight_before", Msg("{}: apart by {:.4g} ulp before the step", where, before.worst_ulp));
  if (!first.equal) out->Add("state_before", Msg("{}: the first moment differs before the step", where));
  if (!grad.equal) {
    const double ratio = grad.aa > 0 ? grad.ab / grad.aa : 0;
    const bool scaled = grad.bb > 0 && std::fabs(grad.ab * grad.ab - grad.aa * grad.bb) < 1e-6 * grad.aa * grad.bb;
    if (scaled && std::fabs(ratio - 1) > 1e-3) {
      out->Add("gradient", Msg("{}: the gradient of B is that of A times {:.6g}", where, ratio), ratio);
    } else {
      out->Add("gradient", Msg("{}: apart by {:.4g} ulp", where, grad.worst_ulp));
    }
  }
  if (!after.equal) out->Add("weight_after", Msg("{}: apart by {:.4g} ulp after the step", where, after.worst_ulp));
}

}  // namespace

StatusOr<std::vector<RecordDifference>> CompareRecords(const OptimizerRecord& a, const OptimizerRecord& b) {
  DifferenceList out;
  size_t paired = 0;
  std::vector<GradientPair> gradients;
  for (const RecordedStep& sa : a.steps) {
    const auto sb =
        std::find_if(b.steps.begin(), b.steps.end(), [&](const RecordedStep& s) { return s.step == sa.step; });
    if (sb == b.steps.end()) continue;
    if (sa.clip_grad && sb->clip_grad && !IsSameNumber(*sa.clip_grad, *sb->clip_grad)) {
      out.Add("clip_grad", Msg("A clips gradients to {:.6g}, B to {:.6g}", *sa.clip_grad, *sb->clip_grad));
    }
    gradients.push_back({sa.step});
    for (size_t i = 0; i < sa.weights.size(); ++i) {
      const RecordedWeight* other = FindWeight(*sb, sa.weights[i].name, i);
      if (!other) continue;
      ++paired;
      CompareWeight(sa, sa.weights[i], *sb, *other, &gradients.back(), &out);
    }
  }
  if (paired == 0) {
    return BadInput(Msg("{} and {} have no weight of one name at one step: give records of the same model and steps",
                        OneLine(a.path), OneLine(b.path)));
  }
  CompareClipping(gradients, &out);
  std::vector<RecordDifference> found = out.Take();
  // It is the cause of what differs in gradients and weights.
  std::stable_partition(found.begin(), found.end(), [](const auto& d) { return d.what == "clip_grad"; });
  return found;
}

}  // namespace msprobe
