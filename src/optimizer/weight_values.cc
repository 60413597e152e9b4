#include "optimizer/weight_values.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

constexpr std::array<std::pair<std::string_view, StateRole>, 15> kRoleNames{{{"exp_avg", StateRole::kFirst},
                                                                             {"momentum_buffer", StateRole::kFirst},
                                                                             {"moment1", StateRole::kFirst},
                                                                             {"moments", StateRole::kFirst},
                                                                             {"m", StateRole::kFirst},
                                                                             {"exp_avg_sq", StateRole::kSecond},
                                                                             {"moment2", StateRole::kSecond},
                                                                             {"v", StateRole::kSecond},
                                                                             {"variance", StateRole::kSecond},
                                                                             {"max_exp_avg_sq", StateRole::kMaximum},
                                                                             {"vhat", StateRole::kMaximum},
                                                                             {"row_var", StateRole::kRow},
                                                                             {"col_var", StateRole::kColumn},
                                                                             {"exp_avg_sq_row", StateRole::kRow},
                                                                             {"exp_avg_sq_col", StateRole::kColumn}}};

std::optional<StateRole> RoleOf(std::string_view name) {
  for (const auto& [known, role] : kRoleNames) {
    if (known == name) return role;
  }
  return std::nullopt;
}

int64_t Count(const FileTensor& t) {
  int64_t out = 1;
  for (const int64_t n : t.shape) out *= n;
  return out;
}

std::vector<double> Load(const FileTensor& t, int64_t begin, int64_t end) {
  std::vector<double> out(static_cast<size_t>(end - begin));
  const char* from = static_cast<const char*>(t.data) + static_cast<size_t>(begin) * ElementSize(t.dtype);
  if (!metrics::ToDoubles(t.dtype, from, out.size(), out.data())) std::fill(out.begin(), out.end(), NAN);
  return out;
}

/// Integers, as counts and quantised states are, round nothing.
DType Coarser(DType a, DType b) { return IsFloating(b) && FractionBits(b) < FractionBits(a) ? b : a; }

/// A state of no known role that has the weight's shape and more digits, and that the step left as it was.
void TakeCopy(const RecordedState& state, int64_t begin, int64_t end, WeightValues* out) {
  const FileTensor& t = state.after;
  if (!t.data || t.shape != out->shape || !IsFloating(t.dtype) || FractionBits(t.dtype) <= FractionBits(out->dtype))
    return;
  std::vector<double> after = Load(t, begin, end);
  const bool had = state.before.data && state.before.shape == t.shape;
  if (!had || Load(state.before, begin, end) == after) out->copy = std::move(after);
}

}  // namespace

int FractionBits(DType dtype) { return InfoOf(dtype).fraction_bits(); }

int64_t ElementsOf(const RecordedWeight& weight) { return Count(weight.before); }

WeightValues LoadValues(const RecordedWeight& weight, int64_t begin, int64_t end, double steps) {
  WeightValues out;
  out.dtype = out.coarsest = weight.before.dtype;
  out.shape = weight.before.shape;
  out.steps = weight.steps.value_or(steps);
  out.before = Load(weight.before, begin, end);
  out.after = Load(weight.after, begin, end);
  if (weight.grad.data && weight.grad.shape == weight.before.shape) {
    out.grad = Load(weight.grad, begin, end);
    out.coarsest = Coarser(out.coarsest, weight.grad.dtype);
  }
  for (const auto& [name, state] : weight.states) {
    const auto role = RoleOf(name);
    if (!role) TakeCopy(state, begin, end, &out);
    if (!role || !state.after.data || !IsFloating(state.after.dtype)) continue;
    const bool same = state.after.shape == weight.before.shape;
    const bool factor = *role == StateRole::kRow || *role == StateRole::kColumn;
    if (!same && !factor) continue;
    StateValues& to = out.states[static_cast<size_t>(*role)];
    to.recorded = true;
    to.dtype = state.after.dtype;
    out.coarsest = Coarser(out.coarsest, to.dtype);
    const int64_t from = factor ? 0 : begin, until = factor ? Count(state.after) : end;
    to.after = Load(state.after, from, until);
    to.had_before = state.before.data && state.before.shape == state.after.shape;
    to.before = to.had_before ? Load(state.before, from, until) : std::vector<double>(to.after.size(), 0.0);
  }
  return out;
}

}  // namespace msprobe
