#include "rollout/op/explain_op.h"

#include <array>

namespace msprobe {
namespace {

using Point = LinePoint;

OpHow Found(std::string_view kind, Message words, double left) { return {std::string(kind), std::move(words), left}; }

/// "0.01", "1e-06": as people write such settings.
std::string Setting(double value) { return fmt::format("{:.2g}", value); }

/// The trainer's own is lost in rounding where it is small.
Message EpsWords(const NormFit& other, const NormFit& own) {
  constexpr double kClear = 3;
  if (own.eps > 0 && own.relative > kClear * own.spread) {
    return Msg("its eps is {} in place of {}", Setting(other.eps), Setting(own.eps));
  }
  return Msg("its eps is {}, the trainer's is smaller", Setting(other.eps));
}

OpHow ExplainNorm(const OpCase& one) {
  const OpReplay& r = *one.replay;
  const std::vector<PointPlace> inputs = InputsOf(one.place, r.layers());
  const std::vector<double> w = r.WeightOf(one.place);
  const RowMatrix x = AsHeads(r.rollout().Read(inputs[0]), w.size()), tx = AsHeads(r.train().Read(inputs[0]), w.size()),
                  ty = AsHeads(r.train().Read(one.place), w.size()), seen = AsHeads(one.seen, w.size());
  if (x.empty() || seen.rows != x.rows || tx.empty() || ty.rows != tx.rows) return {};
  NormFit own = FitNorm(tx, w, ty, false);
  if (own.error > one.tolerance) own = FitNorm(tx, w, ty, true);
  if (own.error > one.tolerance) return {};
  const NormFit same = FitNorm(x, w, seen, own.plus_one), other = FitNorm(x, w, seen, !own.plus_one);
  if (other.error <= one.tolerance && same.error > one.tolerance) {
    const double left = ErrorsOf(seen, Normed(x, w, {own.eps, !own.plus_one, 0})).largest;
    Message words = own.plus_one ? Msg("it multiplies by its weight in place of 1 + weight")
                                 : Msg("it multiplies by 1 + weight in place of its weight");
    return Found("norm_plus_one", std::move(words), left);
  }
  if (same.error > one.tolerance || same.eps <= 0) return {};
  const double left = ErrorsOf(seen, Normed(x, w, same)).largest;
  if (left > one.tolerance) return {};
  return Found("norm_eps", EpsWords(same, own), left);
}

/// The base whose angles turn the engine's queries into what it recorded.
OpHow ExplainRotary(const OpCase& one, const std::vector<int64_t>& positions) {
  const OpReplay& r = *one.replay;
  const RowMatrix x = r.rollout().Read(TurnedFrom(*r.rollout().line, one.place));
  const auto size = static_cast<size_t>(r.train().line->HeadSize());
  if (x.empty() || x.width != one.seen.width || size < 4 || x.width % size != 0) return {};
  if (ErrorsOf(one.seen, x).largest <= one.tolerance) {
    return Found("rotary_missing", Msg("positions are not put in"), ErrorsOf(one.seen, x).largest);
  }
  std::vector<float> cos(size), sin(size);
  const auto turned = [&](double base) {
    RowMatrix out = x;
    for (size_t i = 0; i < out.rows; ++i) {
      for (size_t j = 0; j < size; ++j) {
        const double power = static_cast<double>(j % (size / 2)) * 2 / static_cast<double>(size);
        const double angle = static_cast<double>(positions[i]) / std::pow(base, power);
        cos[j] = static_cast<float>(std::cos(angle)), sin[j] = static_cast<float>(std::sin(angle));
      }
      TurnHalves(cos.data(), sin.data(), size, out.row(i), out.width);
    }
    return ErrorsOf(one.seen, out).largest;
  };
  double best = 0, least = HUGE_VAL;
  for (double power = 2; power <= 9; power += 0.02) {
    if (const double error = turned(std::pow(10, power)); error < least) least = error, best = power;
  }
  for (double step = 0.01; step > 1e-6;) {
    const double down = turned(std::pow(10, best - step)), up = turned(std::pow(10, best + step));
    if (std::min(down, up) >= least) {
      step /= 2;
      continue;
    }
    best += down < up ? -step : step;
    least = std::min(down, up);
  }
  // A round number is what somebody wrote, where it explains as much.
  double base = std::pow(10, best);
  const double magnitude = std::pow(10, std::floor(best));
  if (const double round = std::round(base / magnitude * 10) / 10 * magnitude;
      turned(round) <= std::max(least * 1.5, one.tolerance))
    base = round;
  if (least > one.tolerance) return {};
  return Found("rotary_base", Msg("its rotary base is {:g}", base), turned(base));
}

/// The trainer's own angles, of a position some places further on.
OpHow ExplainPositions(const OpCase& one, const std::function<std::vector<TokenRow>(int64_t by)>& shifted) {
  constexpr int64_t kFar = 4;
  const OpReplay& r = *one.replay;
  const RowMatrix x = r.rollout().Read(TurnedFrom(*r.rollout().line, one.place));
  if (x.empty() || x.width != one.seen.width) return {};
  const RowErrors own = ErrorsOf(one.seen, one.expected);
  for (int64_t by = -kFar; by <= kFar; ++by) {
    const std::vector<TokenRow> rows = by == 0 ? std::vector<TokenRow>() : shifted(by);
    if (rows.size() != x.rows) continue;
    const auto [cos, sin] = r.train().line->Angles(one.place.layer, rows);
    if (cos.rows != x.rows || sin.rows != x.rows || x.width % cos.width != 0) continue;
    RowMatrix made = x;
    for (size_t i = 0; i < made.rows; ++i) TurnHalves(cos.row(i), sin.row(i), cos.width, made.row(i), made.width);
    const RowErrors errors = ErrorsOf(one.seen, made);
    double left = 0;
    size_t count = 0;
    for (size_t i = 0; i < rows.size(); ++i) {  // those without such a row in the trainer say nothing
      if (own.rows[i] <= one.tolerance || rows[i].rows == 0 || rows[i].row == r.train().rows[i].row) continue;
      left = std::max(left, errors.rows[i]), ++count;
    }
    if (count > 1 && left <= one.tolerance) {
      return Found("positions", Msg("its positions are {:+} for {} of {} tokens", by, count, rows.size()), left);
    }
  }
  return {};
}

OpHow ExplainActivation(const OpCase& one) {
  const OpReplay& r = *one.replay;
  const PointPlace gate{one.place.layer, Point::kGate}, up{one.place.layer, Point::kUp};
  const RowMatrix g = r.rollout().Read(gate), u = r.rollout().Read(up);
  const RowMatrix tg = r.train().Read(gate), tu = r.train().Read(up), made = r.train().Read(one.place);
  if (g.empty() || g.values.size() != one.seen.values.size() || tg.values.size() != made.values.size()) return {};
  constexpr std::array kForms{GateForm::kSilu, GateForm::kGelu, GateForm::kGeluTanh, GateForm::kRelu};
  for (const GateForm own : kForms) {
    if (ErrorsOf(made, Gated(tg, tu, own)).largest > one.tolerance) continue;
    const double exchanged = ErrorsOf(one.seen, Gated(u, g, own)).largest;
    if (exchanged <= one.tolerance) return Found("gate_up", Msg("gate and up are exchanged"), exchanged);
    for (const GateForm form : kForms) {
      const double left = ErrorsOf(one.seen, Gated(g, u, form)).largest;
      if (form != own && left <= one.tolerance) {
        return Found("activation", Msg("its activation is {} in place of {}", NameOf(form), NameOf(own)), left);
      }
    }
  }
  return {};
}

OpHow ExplainResidual(const OpCase& one) {
  const OpReplay& r = *one.replay;
  const std::vector<PointPlace> inputs = InputsOf(one.place, r.layers());
  if (inputs.size() != 2) return {};
  const RowMatrix residual = r.rollout().Read(inputs[0]), branch = r.rollout().Read(inputs[1]);
  if (residual.values.size() != one.seen.values.size() || branch.values.size() != one.seen.values.size()) return {};
  if (const double left = ErrorsOf(one.seen, branch).largest; left <= one.tolerance) {
    return Found("residual", Msg("the residual is not added"), left);
  }
  if (const double left = ErrorsOf(one.seen, residual).largest; left <= one.tolerance) {
    return Found("branch", Msg("only the residual is there, the branch is not added"), left);
  }
  double across = 0, own = 0;
  for (size_t i = 0; i < branch.values.size(); ++i) {
    across += static_cast<double>(one.seen.values[i] - residual.values[i]) * branch.values[i];
    own += static_cast<double>(branch.values[i]) * branch.values[i];
  }
  const double factor = own > 0 ? across / own : 1;
  RowMatrix made = residual;
  for (size_t i = 0; i < made.values.size(); ++i) made.values[i] += static_cast<float>(factor * branch.values[i]);
  const double left = ErrorsOf(one.seen, made).largest;
  if (left > one.tolerance) return {};
  return Found("branch_factor", Msg("the branch is added {:.4g} times", factor), left);
}

/// The same vector in every row.
OpHow ExplainConstant(const OpCase& one) {
  const RowMatrix &seen = one.seen, &expected = one.expected;
  if (seen.rows < 4) return {};
  std::vector<double> constant(seen.width);
  for (size_t i = 0; i < seen.rows; ++i) {
    for (size_t j = 0; j < seen.width; ++j) {
      constant[j] += (static_cast<double>(seen.row(i)[j]) - expected.row(i)[j]) / static_cast<double>(seen.rows);
    }
  }
  RowMatrix made = expected;
  for (size_t i = 0; i < made.rows; ++i) {
    for (size_t j = 0; j < made.width; ++j) made.row(i)[j] += static_cast<float>(constant[j]);
  }
  const double left = ErrorsOf(seen, made).largest;
  if (left > std::max(one.tolerance, one.error / 50)) return {};
  const std::vector<double> bias = one.replay->BiasOf(one.place);
  double apart = 0, size = 0;
  for (size_t j = 0; bias.size() == constant.size() && j < bias.size(); ++j) {
    apart += (constant[j] + bias[j]) * (constant[j] + bias[j]);
    size += bias[j] * bias[j];
  }
  if (size > 0 && apart <= 0.01 * size) return Found("bias", Msg("its bias is not added"), left);
  return Found("constant", Msg("the same vector is added to every token"), left);
}

RowMatrix WithoutBias(RowMatrix values, const std::vector<double>& bias) {
  for (size_t i = 0; i < values.rows && bias.size() == values.width; ++i) {
    for (size_t j = 0; j < values.width; ++j) values.row(i)[j] -= static_cast<float>(bias[j]);
  }
  return values;
}

/// Columns that stand in the place of others. `bias` is added behind that.
OpHow OrderOf(const OpCase& one, const std::vector<double>& bias) {
  constexpr size_t kFewRows = 4, kMostColumns = 512;
  const RowMatrix seen = WithoutBias(one.seen, bias), expected = WithoutBias(one.expected, bias);
  if (seen.rows < kFewRows) return {};
  const auto apart = [&](size_t a, size_t b) {
    double difference = 0, whole = 0;
    for (size_t i = 0; i < seen.rows; ++i) {
      const double d = static_cast<double>(seen.row(i)[a]) - expected.row(i)[b];
      difference += d * d;
      whole += static_cast<double>(expected.row(i)[b]) * expected.row(i)[b];
    }
    return whole > 0 ? std::sqrt(difference / whole) : difference > 0 ? 1 : 0;
  };
  const double close = std::min(0.3, 4 * one.tolerance);
  std::vector<size_t> moved, sources;
  for (size_t j = 0; j < seen.width; ++j) {
    if (apart(j, j) > close) moved.push_back(j);
  }
  if (moved.size() < 2 || moved.size() > kMostColumns) return {};
  RowMatrix made = expected;
  for (const size_t j : moved) {
    const auto best =
        std::min_element(moved.begin(), moved.end(), [&](size_t a, size_t b) { return apart(j, a) < apart(j, b); });
    if (*best == j || apart(j, *best) > close) return {};
    sources.push_back(*best);
    for (size_t i = 0; i < made.rows; ++i) made.row(i)[j] = expected.row(i)[*best];
  }
  const double left = ErrorsOf(seen, made).largest;
  if (left > std::max(one.tolerance, one.error / 20)) return {};
  return Found("order",
               Msg("rows of its weight stand in another order: {} of {}, the first is {} with what belongs to {}",
                   moved.size(), seen.width, moved[0], sources[0]),
               left);
}

OpHow ExplainOrder(const OpCase& one) {
  OpHow how = OrderOf(one, {});
  return how.found() ? how : OrderOf(one, one.replay->BiasOf(one.place));
}

OpHow ExplainFactor(const OpCase& one) {
  double across = 0, own = 0;
  for (size_t i = 0; i < one.seen.values.size(); ++i) {
    across += static_cast<double>(one.seen.values[i]) * one.expected.values[i];
    own += static_cast<double>(one.expected.values[i]) * one.expected.values[i];
  }
  if (own == 0) return {};
  const double factor = across / own;
  RowMatrix made = one.expected;
  for (float& v : made.values) v = static_cast<float>(v * factor);
  const double left = ErrorsOf(one.seen, made).largest;
  if (left > one.tolerance || left > one.error / 4) return {};
  return Found("factor", Msg("it is {:.4g} times what it should be", factor), left);
}

/// The shares of experts, which one side makes add up to 1 and the other does not.
OpHow ExplainShares(const OpCase& one) {
  RowMatrix made = one.expected;
  double least = HUGE_VAL, most = 0;
  for (size_t i = 0; i < made.rows; ++i) {
    double across = 0, own = 0;
    for (size_t j = 0; j < made.width; ++j) {
      across += static_cast<double>(one.seen.row(i)[j]) * made.row(i)[j];
      own += static_cast<double>(made.row(i)[j]) * made.row(i)[j];
    }
    const double factor = own > 0 ? across / own : 1;
    least = std::min(least, factor), most = std::max(most, factor);
    for (size_t j = 0; j < made.width; ++j) made.row(i)[j] *= static_cast<float>(factor);
  }
  const double left = ErrorsOf(one.seen, made).largest;
  if (left > std::max(one.tolerance, one.error / 20) || least <= 0) return {};
  return Found("expert_shares",
               Msg("each token is scaled by a factor of its own, {:.3g} to {:.3g}: shares of experts", least, most),
               left);
}

OpHow ExplainGrid(const OpCase& one) {
  const DType grid = GridOf(one.seen);
  if (grid == DType::kUnknown || GridOf(one.expected) == grid) return {};
  if (one.error > RoundingFloor(grid, grid)) return {};
  return Found("precision", Msg("it is rounded to {}", DTypeName(grid)), 0);
}

}  // namespace

OpHow ExplainValues(const OpCase& one) {
  if (one.seen.values.size() != one.expected.values.size() || one.seen.empty()) return {};
  for (const auto explain : {ExplainGrid, ExplainFactor, ExplainConstant, ExplainOrder}) {
    if (OpHow how = explain(one); how.found()) return how;
  }
  return {};
}

OpHow ExplainSmallEps(const OpCase& one, double unit) {
  constexpr size_t kFewRows = 8;
  const OpReplay& r = *one.replay;
  const PointPlace input = InputsOf(one.place, r.layers())[0];
  const std::vector<double> w = r.WeightOf(one.place);
  const RowMatrix x = AsHeads(r.rollout().Read(input), w.size()), tx = AsHeads(r.train().Read(input), w.size()),
                  ty = AsHeads(r.train().Read(one.place), w.size()), seen = AsHeads(one.seen, w.size());
  if (x.rows < kFewRows || seen.rows != x.rows || tx.rows != x.rows || ty.rows != x.rows) return {};
  NormFit own = FitNorm(tx, w, ty, false);
  if (own.error > one.tolerance) own = FitNorm(tx, w, ty, true);
  const NormFit other = FitNorm(x, w, seen, own.plus_one);
  if (own.error > one.tolerance || other.error > one.tolerance) return {};
  constexpr double kClear = 6;
  const double noise = kClear * (own.spread + other.spread) / std::sqrt(static_cast<double>(x.rows));
  const double apart = std::fabs(other.relative - own.relative);
  if (apart <= std::max(noise, (tx.dtype == DType::kFloat32 ? 8 : 1) * unit)) return {};
  // Rows of another size must say the same eps, else it is some factor.
  if (std::fabs(other.eps) < std::fabs(own.eps) / 1000 || other.eps <= 0) return {};
  const NormFit made{other.eps, own.plus_one, 0, 0, 0};
  const NormFit again = FitNorm(x, w, Normed(x, w, made), own.plus_one);
  if (std::fabs(again.relative - other.relative) > apart / 4) return {};
  // The middle of all rows is known better than that of one.
  const double unsure = other.spread / std::sqrt(static_cast<double>(x.rows)) / apart;
  return Found("norm_eps", EpsWords(other, own), one.error * std::min(1.0, unsure));
}

OpHow ExplainOp(const OpCase& one) {
  OpHow how;
  switch (one.place.point) {
    case Point::kInputNorm:
    case Point::kMlpNorm:
    case Point::kQNorm:
    case Point::kKNorm:
    case Point::kFinalNorm: how = ExplainNorm(one); break;
    case Point::kActivation: how = ExplainActivation(one); break;
    case Point::kInputResidual:
    case Point::kMlpResidual:
    case Point::kFinalResidual: how = ExplainResidual(one); break;
    default: break;
  }
  if (!how.found()) how = ExplainValues(one);
  return how.found() || one.place.point != Point::kMlp ? how : ExplainShares(one);
}

OpHow ExplainRotaryOp(const OpCase& one, const std::vector<int64_t>& positions,
                      const std::function<std::vector<TokenRow>(int64_t by)>& shifted) {
  OpHow how = ExplainRotary(one, positions);
  if (!how.found()) how = ExplainPositions(one, shifted);
  return how.found() ? how : ExplainValues(one);
}

}  // namespace msprobe
