// Adafactor and Muon: updates of whole matrices.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "optimizer/weight_update.h"

namespace msprobe {
namespace {

double Rms(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(values.size(), 1)));
}

/// Of squares, the means of the rows (along the last dimension) or of the columns (along the one before).
std::vector<double> MeanSquares(const std::vector<double>& g, size_t rows, size_t columns, bool of_rows) {
  const size_t matrices = g.size() / (rows * columns), kept = of_rows ? rows : columns;
  std::vector<double> out(matrices * kept, 0.0);
  for (size_t i = 0; i < g.size(); ++i) {
    const size_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
    out[matrix * kept + (of_rows ? row : column)] += g[i] * g[i] / static_cast<double>(of_rows ? columns : rows);
  }
  return out;
}

std::vector<double> Raise(std::vector<double> values, double by) {
  for (double& v : values) v += by;
  return values;
}

/// share * before + (1 - share) * mean, with what rounding is relative to.
void MixState(StateRole role, const StateValues& state, double share, const std::vector<double>& mean,
              UpdatedWeight* out) {
  auto& values = out->states[static_cast<size_t>(role)];
  auto& magnitudes = out->magnitudes[static_cast<size_t>(role)];
  for (size_t i = 0; i < mean.size(); ++i) {
    values.push_back(share * state.before[i] + (1 - share) * mean[i]);
    magnitudes.push_back(std::fabs(share * state.before[i]) + std::fabs((1 - share) * mean[i]));
  }
}

void MixOne(double share, double before, double now, UpdatedWeight* out) {
  const auto role = static_cast<size_t>(StateRole::kFirst);
  out->states[role].push_back(share * before + (1 - share) * now);
  // The update is a quotient of sums, which round in another order.
  out->magnitudes[role].push_back(16 * (std::fabs(share * before) + std::fabs((1 - share) * now)));
}

/// The estimate of the second moment of each element from what was recorded after the step.
std::vector<double> Estimate(const WeightValues& in, double eps1, size_t rows, size_t columns) {
  if (in.of(StateRole::kSecond).recorded) return in.of(StateRole::kSecond).after;
  const std::vector<double>&row = in.of(StateRole::kRow).after, &column = in.of(StateRole::kColumn).after;
  std::vector<double> out(in.before.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t matrix = i / (rows * columns), r = i / columns % rows, c = i % columns;
    const auto begin = row.begin() + static_cast<std::ptrdiff_t>(matrix * rows);
    const double mean =
        std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(rows), 0.0) / static_cast<double>(rows);
    out[i] = row[matrix * rows + r] * column[matrix * columns + c] / std::max(mean, eps1);
  }
  return out;
}

struct Matrix {
  size_t rows = 0, columns = 0;
  std::vector<double> v;
};

Matrix TransposedOf(const Matrix& m) {
  Matrix out{m.columns, m.rows, std::vector<double>(m.v.size())};
  for (size_t r = 0; r < m.rows; ++r) {
    for (size_t c = 0; c < m.columns; ++c) out.v[c * m.rows + r] = m.v[r * m.columns + c];
  }
  return out;
}

/// beta * base + alpha * a b
Matrix MultiplyAdd(const Matrix& a, const Matrix& b, double alpha, const Matrix* base, double beta) {
  Matrix out{a.rows, b.columns, std::vector<double>(a.rows * b.columns, 0.0)};
  for (size_t r = 0; r < a.rows; ++r) {
    double* to = out.v.data() + r * out.columns;
    for (size_t k = 0; k < a.columns; ++k) {
      const double factor = alpha * a.v[r * a.columns + k];
      const double* from = b.v.data() + k * b.columns;
      for (size_t c = 0; c < out.columns; ++c) to[c] += factor * from[c];
    }
    for (size_t c = 0; base && c < out.columns; ++c) to[c] += beta * base->v[r * out.columns + c];
  }
  return out;
}

/// The rule itself computes in bfloat16, and small singular values grow by 3.4 in each round: without rounding where it
/// rounds, the float64 result is another one.
void RoundToBFloat16(Matrix* m) {
  for (double& v : m->v) {
    if (!std::isfinite(v) || v == 0) continue;
    const double unit = std::ldexp(1.0, std::max(std::ilogb(v), -126) - 7);
    v = std::nearbyint(v / unit) * unit;
  }
}

/// The nearest matrix with singular values near one, by the iteration of Newton and Schulz.
Matrix Orthogonal(Matrix m, const UpdateRule& rule) {
  const bool tall = m.rows > m.columns;
  if (tall) m = TransposedOf(m);
  RoundToBFloat16(&m);
  Matrix norm{1, 1, {0.0}};
  for (const double v : m.v) norm.v[0] += v * v;
  norm.v[0] = std::sqrt(norm.v[0]);
  RoundToBFloat16(&norm);
  for (double& v : m.v) v /= std::max(norm.v[0], rule.eps);
  RoundToBFloat16(&m);
  for (int64_t i = 0; i < rule.newton_steps; ++i) {
    Matrix gram = MultiplyAdd(m, TransposedOf(m), 1, nullptr, 0);
    RoundToBFloat16(&gram);
    Matrix polynomial = MultiplyAdd(gram, gram, rule.newton[2], &gram, rule.newton[1]);
    RoundToBFloat16(&polynomial);
    m = MultiplyAdd(polynomial, m, 1, &m, rule.newton[0]);
    RoundToBFloat16(&m);
  }
  return tall ? TransposedOf(m) : m;
}

}  // namespace

void ApplyAdafactor(const UpdateRule& rule, const WeightValues& in, UpdatedWeight* out) {
  const size_t n = in.before.size(), dims = in.shape.size();
  const bool factored = in.of(StateRole::kRow).recorded && in.of(StateRole::kColumn).recorded && dims >= 2;
  if (!factored && !in.of(StateRole::kSecond).recorded) return;
  const size_t columns = dims >= 1 ? static_cast<size_t>(in.shape[dims - 1]) : 1;
  const size_t rows = dims >= 2 ? static_cast<size_t>(in.shape[dims - 2]) : 1;
  if (rows == 0 || columns == 0 || in.steps < 1) return;
  if (factored &&
      (in.of(StateRole::kRow).after.size() != n / columns || in.of(StateRole::kColumn).after.size() != n / rows)) {
    return;
  }
  const double share = 1 - std::pow(in.steps + static_cast<double>(rule.step_offset), rule.beta2_decay);
  std::vector<double> g(n);
  for (size_t i = 0; i < n; ++i) g[i] = (rule.maximize ? -1 : 1) * in.grad[i] * rule.gradient_scale;
  const double eps1 = std::isfinite(rule.eps1) ? rule.eps1 : std::ldexp(1.0, -FractionBits(in.dtype));
  const double added = rule.of_transformers ? eps1 : 0;
  if (factored) {
    MixState(StateRole::kRow, in.of(StateRole::kRow), share, Raise(MeanSquares(g, rows, columns, true), added), out);
    MixState(StateRole::kColumn, in.of(StateRole::kColumn), share, Raise(MeanSquares(g, rows, columns, false), added),
             out);
  } else {
    std::vector<double> squares(n);
    for (size_t i = 0; i < n; ++i) squares[i] = g[i] * g[i] + added;
    MixState(StateRole::kSecond, in.of(StateRole::kSecond), share, squares, out);
  }
  std::vector<double> update = Estimate(in, eps1, rows, columns);
  for (size_t i = 0; i < n; ++i) update[i] = g[i] / std::sqrt(std::max(update[i], eps1 * eps1));
  const double divisor = rule.clips_update ? std::max(1.0, Rms(update) / rule.d) : 1;
  const double most = rule.warms_up ? 1e-6 * in.steps : rule.lr;
  const double rate = rule.relative_step ? std::min(most, 1 / std::sqrt(in.steps)) : rule.lr;
  const StateValues& first = in.of(StateRole::kFirst);  // transformers: of updates, not of gradients
  const double alpha = (rule.scales_by_weight ? std::max(rule.eps2, Rms(in.before)) : 1) * rate;
  const double decay = rule.of_transformers ? alpha : rule.lr;
  for (size_t i = 0; i < n; ++i) {
    out->change[i] = alpha / divisor * update[i];
    if (first.recorded) {
      MixOne(rule.beta1, first.before[i], out->change[i], out);
      out->change[i] = first.after[i];
    }
    out->sizes[i] = std::fabs(out->change[i]);
    out->weight[i] = in.before[i] * (1 - decay * rule.weight_decay) - out->change[i];
  }
  out->noise = std::ldexp(4.0, -FractionBits(in.coarsest));  // of sums and of the outer product
  out->computed = true;
}

void ApplyMuon(const UpdateRule& rule, const WeightValues& in, UpdatedWeight* out) {
  const size_t n = in.before.size();
  const StateValues& buffer = in.of(StateRole::kFirst);
  if (!buffer.recorded || in.shape.size() != 2) return;
  auto& state = out->states[static_cast<size_t>(StateRole::kFirst)];
  auto& magnitude = out->magnitudes[static_cast<size_t>(StateRole::kFirst)];
  Matrix direction{static_cast<size_t>(in.shape[0]), static_cast<size_t>(in.shape[1]), std::vector<double>(n)};
  for (size_t i = 0; i < n; ++i) {
    const double g = (rule.maximize ? -1 : 1) * in.grad[i] * rule.gradient_scale;
    state.push_back(rule.momentum * buffer.before[i] + (1 - rule.momentum) * g);
    magnitude.push_back(std::fabs(rule.momentum * buffer.before[i]) + std::fabs((1 - rule.momentum) * g));
    direction.v[i] = rule.nesterov ? g + rule.momentum * (buffer.after[i] - g) : buffer.after[i];
  }
  const double rows = static_cast<double>(direction.rows), columns = static_cast<double>(direction.columns);
  const Matrix update = Orthogonal(std::move(direction), rule);
  double ratio = 1;
  if (rule.adjust_lr.empty() || rule.adjust_lr == "original") ratio = std::sqrt(std::max(1.0, rows / columns));
  if (rule.adjust_lr == "match_rms_adamw") ratio = 0.2 * std::sqrt(std::max(rows, columns));
  for (size_t i = 0; i < n; ++i) {
    out->change[i] = rule.lr * ratio * update.v[i];
    out->sizes[i] = std::fabs(out->change[i]);
    out->weight[i] = in.before[i] * (1 - rule.lr * rule.weight_decay) - out->change[i];
  }
  // Sums in another order, rounded to bfloat16, which the iteration magnifies by hundreds where a gradient has few
  // directions; of bfloat16 weights all that can be held to it is the size of the update.
  out->noise = FractionBits(in.coarsest) < 11 ? 1.5 : 0.25;
  out->computed = true;
}

}  // namespace msprobe
