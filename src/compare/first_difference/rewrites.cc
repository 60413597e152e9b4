#include "compare/first_difference/rewrites.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "compare/pair/lasting_writes.h"
#include "compare/pair/op_at.h"
#include "compare/values/item_views.h"
#include "ops/collective.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

constexpr int kEndOps = 2;  // ops with values that must agree at the end of a pass

std::string_view WithoutLast(std::string_view s) {
  const size_t dot = s.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : s.substr(0, dot);
}

/// The tolerance of halves is some units wide; two results of the same code are neighbours.
float LimitOf(const OpDistance& d, const Thresholds& t) {
  return static_cast<double>(d.tolerance) > t.tolerance_float32 ? 0.25f : 1.0f;
}

}  // namespace

bool Rewrites::Agrees(size_t op, bool without_output) const {
  const OpDistance& d = distances_[op];
  const float limit = LimitOf(d, *pair_.options.thresholds);
  const bool compared = IsMatched(op) && d.values && (d.has_output || without_output);
  const bool otherwise = d.argument || d.shapes || d.chosen || d.choices || d.dtypes || d.parameter;
  return compared && !otherwise && d.input <= limit && d.output <= limit;
}

bool Rewrites::Parts(size_t op) const {
  const OpDistance& d = distances_[op];
  // Far less than what it makes of it: only rounding came in.
  const bool near = d.input * pair_.options.thresholds->stands_out <= 1;
  const bool same = near && !d.argument && !d.shapes && !d.chosen && !d.dtypes;
  return directions_[op] == OpDirection::kForward && same && d.has_output && d.values && d.output > 1;
}

bool Rewrites::IsBackward(std::string_view op) const { return IsBackward(ParseOpName(op).direction); }

void Rewrites::Read() {
  read_ = true;
  const OpList& ops = pair_.target->ops();
  directions_.assign(ops.size(), OpDirection::kNone);
  for (size_t i = 0; i < ops.size(); ++i) directions_[i] = ParseOpName(ops.NameAt(i)).direction;
  FindAmplitudes();
  if (other_dtype_) return;
  FindWrongGradients();
  FindModules();
  FindOtherExchanges();
  FindPasses();
}

void Rewrites::FindWrongGradients() {
  const OpList& ops = pair_.target->ops();
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpDistance& d = distances_[i];
    if (directions_[i] != OpDirection::kParameterGrad || !IsMatched(i) || !d.has_output || !d.values) continue;
    const NameParts name = ParseOpName(ops.NameAt(i));
    const bool wrong = d.output > LimitOf(d, *pair_.options.thresholds);
    for (std::string_view path = WithoutLast(name.base); !path.empty(); path = WithoutLast(path)) {
      const bool fresh = graded_.Insert(path);
      if (wrong ? !wrong_gradient_.Insert(path) : !fresh) break;
    }
  }
}

void Rewrites::FindModules() {
  const OpList& ops = pair_.target->ops();
  for (size_t i = 0; i < ops.size(); ++i) {
    if (directions_[i] == OpDirection::kParameterGrad || !IsMatched(i)) continue;
    const std::string_view name = ops.NameAt(i);
    if (!IsModuleName(name)) continue;
    const NameParts parts = ParseOpName(name);
    const bool backward = parts.direction == OpDirection::kBackward;
    if (Parts(i)) {
      parting_[0].Insert(name);
      if (!distances_[i].has_input) numbers_only_.Insert(name);
      parting_[1].Insert(pair_.golden->ops().NameAt(plan_.golden_of[i]));
    }
    const std::string_view path = WithoutLast(parts.base);
    // The first layer gives no gradient of its input, only those of its parameters.
    const bool ends_here = backward && !distances_[i].has_output && graded_.Has(path);
    if (!Agrees(i, ends_here) || (backward && wrong_gradient_.Has(path))) continue;
    agreeing_[0].Insert(name);
    agreeing_[1].Insert(pair_.golden->ops().NameAt(plan_.golden_of[i]));
  }
}

void Rewrites::FindOtherExchanges() {
  const OpList* ops[2] = {&pair_.target->ops(), &pair_.golden->ops()};
  TextIds own[2];
  const auto add = [&](size_t op, bool golden) {
    const std::string_view name = ops[golden]->NameAt(op);
    if (!IsCommunication(name)) return;
    trees_[golden]->ForEachAround(name, [&](std::string_view module) { return own[golden].Insert(module); });
  };
  for (size_t i = 0; i < ops[0]->size(); ++i) {
    if (plan_.golden_of[i] == kNoOp && !plan_.NotSeen(i)) add(i, false);
  }
  for (const uint32_t g : plan_.golden_only) add(g, true);
  for (size_t i = 0; i < ops[0]->size(); ++i) {
    const std::string_view name = ops[0]->NameAt(i);
    if (!IsMatched(i) || !agreeing_[0].Has(name) || !own[0].Has(name)) continue;
    const std::string_view partner = ops[1]->NameAt(plan_.golden_of[i]);
    if (!own[1].Has(partner)) continue;
    exchanging_[0].Insert(name);
    exchanging_[1].Insert(partner);
  }
}

void Rewrites::FindAmplitudes() {
  const OpList& ops = pair_.target->ops();
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string_view name = ops.NameAt(i);
    if (!IsMatched(i) || !std::isfinite(distances_[i].amplitude) || IsModuleName(name)) continue;
    const uint32_t api = apis_.Enter(ApiOf(name));
    if (api == amplitudes_.size()) amplitudes_.push_back(0);
    amplitudes_[api] = std::max(amplitudes_[api], distances_[i].amplitude);
  }
}

bool Rewrites::InParting(std::string_view op, bool rounded) {
  if (!read_) Read();
  return (rounded ? numbers_only_ : parting_[0]).Has(trees_[0]->ParentOf(op));
}

void Rewrites::FindOwnFunctions() {
  sought_own_ = true;
  const OpList* ops[2] = {&pair_.target->ops(), &pair_.golden->ops()};
  const auto add = [&](size_t op, bool golden) {
    const std::string_view name = ops[golden]->NameAt(op);
    if (IsModuleName(name) || OnlyMovesOrCasts(name) || ParseOpName(name).direction != OpDirection::kForward) return;
    const std::string_view parent = trees_[golden]->ParentOf(name);
    if (IsModuleName(parent)) own_functions_[golden].Insert(parent);
  };
  for (size_t i = 0; i < ops[0]->size(); ++i) {
    if (plan_.golden_of[i] == kNoOp && !plan_.NotSeen(i)) add(i, false);
  }
  for (const uint32_t g : plan_.golden_only) add(g, true);
}

bool Rewrites::IsOtherFormula(size_t op) {
  if (!sought_own_) FindOwnFunctions();
  const uint32_t g = plan_.golden_of[op];
  return g != kNoOp && own_functions_[0].Has(trees_[0]->ParentOf(pair_.target->ops().NameAt(op))) &&
         own_functions_[1].Has(trees_[1]->ParentOf(pair_.golden->ops().NameAt(g)));
}

bool Rewrites::IsUndone(size_t op) {
  const OpDistance& d = distances_[op];
  const bool plain = d.has_output && static_cast<double>(d.output) > pair_.options.thresholds->stands_out;
  return plain && IsOtherFormula(op) && LossAgrees();
}

bool Rewrites::IsRoundedZero(size_t op) {
  if (!read_) Read();
  const std::string_view name = pair_.target->ops().NameAt(op);
  const OpDistance& d = distances_[op];
  if (IsModuleName(name) || IsBackward(name) || IsCommunication(name) || IsModuleName(trees_[0]->ParentOf(name)))
    return false;
  if (ApiOf(name).starts_with("_foreach_")) return OnlyZerosDiffer(op);
  const uint32_t api = apis_.Find(ApiOf(name));
  // Single numbers have no likes: they are not among the amplitudes.
  return api < amplitudes_.size() && d.amplitude > 0 && d.amplitude <= d.tolerance * amplitudes_[api];
}

bool Rewrites::OnlyZerosDiffer(size_t op) {
  if (!IsMatched(op) || distances_[op].shapes) return false;
  JsonDoc target, golden;
  OpDiff diff;
  if (Status read = DiffOpWith(pair_, op, plan_.golden_of[op], &target, &golden, &diff); !read.ok()) {
    status_ = std::move(read);
    return false;
  }
  const double tolerance = OpTolerance(diff);
  double largest = 0, apart = 0;
  for (size_t row = 0; row < diff.rows_used; ++row) {
    const int partner = diff.rows[row].golden;
    if (partner == kNoItem || !diff.target[row].tensor) continue;
    const double size = std::max(Amplitude(diff.target[row]), Amplitude(diff.golden[static_cast<size_t>(partner)]));
    largest = std::max(largest, size);
    if (RowDistance(diff, row, pair_.options.mode, tolerance) > 1) apart = std::max(apart, size);
  }
  return apart > 0 && apart <= tolerance * largest;
}

uint64_t Rewrites::KindOf(std::string_view op, bool golden) const {
  const std::hash<std::string_view> hash;
  const uint64_t api = hash(IsModuleName(op) ? ApiOrClassOf(op) : ParseOpName(op).base);
  const uint64_t place = hash(ApiOrClassOf(trees_[golden]->ParentOf(op)));
  return (api * 31 + place) * 4 + (IsBackward(op) ? 2 : 0) + (golden ? 1 : 0);
}

size_t Rewrites::EndOf(size_t pass) const {
  return pass + 1 < passes_.size() ? passes_[pass + 1].begin : pair_.target->ops().size();
}

/// The last ops of a pass, and all its communications. Single numbers, as a loss is, hide much: the last op of more is
/// among them.
bool Rewrites::EndAgrees(size_t begin, size_t end) const {
  const OpList& ops = pair_.target->ops();
  int seen = 0;
  bool many = false;
  for (size_t i = end; i-- > begin;) {
    const OpDistance& d = distances_[i];
    if (!IsMatched(i)) continue;
    const bool call = IsCommunication(ops.NameAt(i)), telling = d.has_output && d.values;
    const bool last = seen < kEndOps || (!many && !d.few);
    if (!call && (!telling || !last)) continue;
    if (!Agrees(i)) return false;
    seen += !call;
    many = many || (!call && !d.few);
  }
  return seen >= kEndOps;
}

/// What clipping and the optimizer take in behind the pass.
bool Rewrites::GradientsAgree(size_t pass) {
  const float stands_out = static_cast<float>(pair_.options.thresholds->stands_out);
  size_t seen = 0, zero = 0;
  for (size_t i = EndOf(pass); i < distances_.size(); ++i) {
    const OpDistance& d = distances_[i];
    if (!IsMatched(i) || !d.has_input || IsBackward(directions_[i])) continue;
    ++seen;
    if (d.input <= LimitOf(d, *pair_.options.thresholds) * stands_out) continue;
    const bool is_zero = IsRoundedZero(i);
    if (!is_zero && i != zero + 1) return false;  // the step made of such a gradient follows it
    if (is_zero) zero = i;
  }
  return seen > 0;
}

bool Rewrites::LossAgrees() {
  if (!read_) Read();
  if (loss_agrees_ >= 0) return loss_agrees_ > 0;
  // The passes are not there where the runs are of different precision.
  loss_agrees_ = 0;
  for (size_t p = 0; p < passes_.size(); ++p) {
    if (passes_[p].backward) continue;
    loss_agrees_ = LastResultAgrees(passes_[p].begin, EndOf(p));
    break;
  }
  return loss_agrees_ > 0;
}

bool Rewrites::StepAgrees() {
  if (!LossAgrees()) return false;
  const auto backward = std::ranges::find(passes_, true, &Pass::backward);
  return backward != passes_.end() && backward->agrees;
}

bool Rewrites::GradientsOfParametersAgree() {
  if (!LossAgrees()) return false;
  const float stands_out = static_cast<float>(pair_.options.thresholds->stands_out);
  size_t seen = 0;
  for (size_t i = 0; i < distances_.size(); ++i) {
    const OpDistance& d = distances_[i];
    if (directions_[i] != OpDirection::kParameterGrad || !IsMatched(i) || !d.has_output || !d.values) continue;
    if (d.output > LimitOf(d, *pair_.options.thresholds) * stands_out) return false;
    ++seen;
  }
  return seen > 0;
}

/// Of the last op that has one, whatever it is made of.
bool Rewrites::LastResultAgrees(size_t begin, size_t end) const {
  for (size_t i = end; i-- > begin;) {
    const OpDistance& d = distances_[i];
    if (IsMatched(i) && d.has_output && d.values) return d.output <= LimitOf(d, *pair_.options.thresholds);
  }
  return false;
}

void Rewrites::FindPasses() {
  for (size_t i = 0; i < directions_.size(); ++i) {
    const bool backward = IsBackward(directions_[i]);
    if (passes_.empty() || passes_.back().backward != backward) passes_.push_back({i, backward, false});
  }
  for (size_t p = 0; p < passes_.size(); ++p) {
    Pass& pass = passes_[p];
    if (p + 1 == passes_.size() || !EndAgrees(pass.begin, EndOf(p))) continue;
    pass.agrees = !pass.backward || GradientsAgree(p);
  }
  // The same functions compute the same gradients in another way, too: a loss alone may hide what differs.
  const bool same = plan_.golden_only.empty() && plan_.target_only() == 0;
  for (size_t p = 0; same && p + 2 < passes_.size(); ++p)
    passes_[p].agrees = passes_[p].agrees && (passes_[p].backward || passes_[p + 1].agrees);
}

StatusOr<bool> Rewrites::AddsTheSame(size_t at) const {
  ItemViews ours(*pair_.target, pair_.options.mode), theirs(*pair_.golden, pair_.options.mode);
  MSP_RETURN_IF_ERROR(ours.Read(at));
  MSP_RETURN_IF_ERROR(theirs.Read(plan_.golden_of[at]));
  const auto added = [](const ItemViews& call) {
    std::string out;
    for (const ItemView& item : call.items()) {
      if (item.suffix != ".input.1" || !item.tensor) continue;
      out = item.shape + item.checksum;
      for (const StatValue& stat : item.stats) stat.AppendText(&(out += ' '));
    }
    return out;
  };
  const std::string gradient = added(ours);
  return !gradient.empty() && gradient == added(theirs);
}

bool Rewrites::WritesInHook(std::string_view op, bool golden, size_t at) {
  if (golden || IsModuleName(op) || !ChangesArguments(ApiOf(op)) || !IsBackward(trees_[golden]->ParentOf(op)))
    return false;
  if (at >= plan_.golden_of.size() || plan_.golden_of[at] == kNoOp) return false;
  const StatusOr<bool> same = AddsTheSame(at);
  if (!same.ok() && status_.ok()) status_ = same.status();
  return same.ok() && *same;
}

bool Rewrites::PartsForLater(std::string_view op, bool golden, size_t at) {
  if (golden || at >= distances_.size() || !IsMatched(at) || IsModuleName(op) || pair_.plan.cross) return false;
  const OpDistance& d = distances_[at];
  if (!d.has_output || !d.values || d.output <= LimitOf(d, *pair_.options.thresholds)) return false;
  const auto keep = [&](const Status& status) {
    if (status_.ok()) status_ = status;
    return false;
  };
  if (!sought_lasting_) {
    sought_lasting_ = true;
    StatusOr<std::vector<bool>> found = OpsOfLastingWrites(*pair_.target, pair_.options.mode);
    if (!found.ok()) return keep(found.status());
    lasting_ = *std::move(found);
  }
  if (at >= lasting_.size() || !lasting_[at]) return false;
  const StatusOr<bool> same = AreGivenTheSame(pair_, at, plan_.golden_of[at]);
  return same.ok() ? *same : keep(same.status());
}

bool Rewrites::Cover(std::string_view op, bool golden, size_t at) {
  if (WritesInHook(op, golden, at) || PartsForLater(op, golden, at)) return false;
  if (!read_) Read();
  const bool exchange = IsCommunication(op);
  const TextIds& agreeing = exchange ? exchanging_[golden] : agreeing_[golden];
  bool covered = false, called = false;
  trees_[golden]->ForEachAround(op, [&](std::string_view module) {
    called = called || IsModuleName(module);
    covered = agreeing.Has(module);
    // What it made of the same otherwise is hidden in the sums around it.
    return !covered && !parting_[golden].Has(module);
  });
  if (called || exchange || passes_.empty()) return covered;
  const auto behind = std::ranges::upper_bound(passes_, at, {}, &Pass::begin);
  size_t pass = static_cast<size_t>(behind - passes_.begin()) - 1;
  // An op that only the golden run has may stand at the end of the pass before.
  if (golden && pass > 0 && passes_[pass].backward != IsBackward(op)) --pass;
  return passes_[pass].agrees && passes_[pass].backward == IsBackward(op);
}

}  // namespace msprobe
