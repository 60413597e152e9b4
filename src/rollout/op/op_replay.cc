#include "rollout/op/op_replay.h"

#include <array>

namespace msprobe {
namespace {

using Point = LinePoint;
constexpr std::array kGateForms{GateForm::kSilu, GateForm::kGelu, GateForm::kGeluTanh, GateForm::kRelu};
// What the trainer's own rounding leaves of an operation tells what rounding is there.
constexpr double kRounding = 3;
constexpr double kMostProducts = 6e7;  // of one replay

double Activated(double x, GateForm form) {
  switch (form) {
    case GateForm::kSilu: return x / (1 + std::exp(-x));
    case GateForm::kGelu: return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
    case GateForm::kGeluTanh: return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case GateForm::kRelu: return std::max(x, 0.0);
  }
  return x;
}

double MeanSquare(const RowMatrix& x, size_t row) {
  double sum = 0;
  for (size_t j = 0; j < x.width; ++j) sum += static_cast<double>(x.row(row)[j]) * x.row(row)[j];
  return sum / static_cast<double>(x.width);
}

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::string_view NameOf(GateForm form) {
  constexpr std::array<std::string_view, 4> kNames{"silu", "gelu", "gelu_tanh", "relu"};
  return kNames[static_cast<size_t>(form)];
}

std::vector<PointPlace> InputsOf(PointPlace place, int64_t layers) {
  const int64_t l = place.layer;
  switch (place.point) {
    case Point::kEmbed: return {};
    case Point::kInputResidual:
      if (l == 0) return {{-1, Point::kEmbed}};
      return {{l - 1, Point::kMlpResidual}, {l - 1, Point::kMlp}};
    case Point::kInputNorm: return {{l, Point::kInputResidual}};
    case Point::kQ:
    case Point::kK:
    case Point::kV: return {{l, Point::kInputNorm}};
    case Point::kQNorm: return {{l, Point::kQ}};
    case Point::kKNorm: return {{l, Point::kK}};
    case Point::kQRotary: return {{l, Point::kQNorm}, {l, Point::kQ}};
    case Point::kKRotary: return {{l, Point::kKNorm}, {l, Point::kK}};
    case Point::kCore:
      return {{l, Point::kQRotary}, {l, Point::kKRotary}, {l, Point::kQ}, {l, Point::kK}, {l, Point::kV}};
    case Point::kO: return {{l, Point::kCore}};
    case Point::kMlpResidual: return {{l, Point::kInputResidual}, {l, Point::kO}};
    case Point::kMlpNorm: return {{l, Point::kMlpResidual}};
    case Point::kRouter:
    case Point::kGate:
    case Point::kUp: return {{l, Point::kMlpNorm}};
    case Point::kActivation: return {{l, Point::kGate}, {l, Point::kUp}};
    case Point::kMlp: return {{l, Point::kActivation}, {l, Point::kRouter}, {l, Point::kMlpNorm}};
    case Point::kFinalResidual:
      if (layers == 0) return {};
      return {{layers - 1, Point::kMlpResidual}, {layers - 1, Point::kMlp}};
    case Point::kFinalNorm: return {{-1, Point::kFinalResidual}};
    case Point::kLogits: return {{-1, Point::kFinalNorm}};
  }
  return {};
}

PointPlace TurnedFrom(const ModelLine& line, PointPlace place) {
  const bool keys = place.point == Point::kKRotary;
  const ModuleRole norm{place.layer, keys ? ModulePart::kKNorm : ModulePart::kQNorm};
  if (line.side().Calls(norm) != nullptr) return {place.layer, keys ? Point::kKNorm : Point::kQNorm};
  return {place.layer, keys ? Point::kK : Point::kQ};
}

RowMatrix AsHeads(RowMatrix values, size_t size) {
  if (size == 0 || values.width % size != 0) return {};
  values.rows *= values.width / size;
  values.width = size;
  return values;
}

NormFit FitNorm(const RowMatrix& x, const std::vector<double>& w, const RowMatrix& y, bool plus_one) {
  NormFit fit{0, plus_one, 0};
  std::vector<double> eps, relative;
  RowMatrix made = y;
  for (size_t i = 0; i < x.rows; ++i) {
    double across = 0, own = 0;
    for (size_t j = 0; j < x.width; ++j) {
      const double u = x.row(i)[j] * (w[j] + (plus_one ? 1 : 0));
      across += u * y.row(i)[j];
      own += u * u;
    }
    const double r = own > 0 ? across / own : 0;
    const double square = MeanSquare(x, i);
    if (r > 0 && square > 0) {
      eps.push_back(1 / (r * r) - square);
      relative.push_back(eps.back() / square);
    }
    for (size_t j = 0; j < x.width; ++j) {
      made.row(i)[j] = static_cast<float>(r * x.row(i)[j] * (w[j] + (plus_one ? 1 : 0)));
    }
  }
  fit.error = ErrorsOf(y, made).largest;
  fit.eps = MedianOf(std::move(eps));
  fit.relative = MedianOf(relative);
  for (double& one : relative) one = std::fabs(one - fit.relative);
  fit.spread = MedianOf(std::move(relative));
  return fit;
}

RowMatrix Normed(const RowMatrix& x, const std::vector<double>& w, const NormFit& form) {
  RowMatrix out = x;
  for (size_t i = 0; i < x.rows; ++i) {
    const double r = 1 / std::sqrt(std::max(MeanSquare(x, i) + form.eps, 1e-300));
    for (size_t j = 0; j < x.width; ++j) {
      out.row(i)[j] = static_cast<float>(r * x.row(i)[j] * (w[j] + (form.plus_one ? 1 : 0)));
    }
  }
  return out;
}

RowMatrix Gated(const RowMatrix& gate, const RowMatrix& up, GateForm form) {
  RowMatrix out = up;
  for (size_t i = 0; i < out.values.size(); ++i) {
    out.values[i] = static_cast<float>(Activated(gate.values[i], form) * up.values[i]);
  }
  return out;
}

std::vector<double> OpReplay::WeightOf(PointPlace place) const {
  std::vector<double> weight = train_.line->Parameter(place, "weight").values;
  return weight.empty() ? rollout_.line->Parameter(place, "weight").values : weight;
}

RowMatrix OpReplay::Linear(const SideRows& side, PointPlace place, PointPlace input) const {
  const RowMatrix x = side.Read(input);
  const std::vector<double> w = WeightOf(place), bias = BiasOf(place);
  if (x.empty() || w.empty() || w.size() % x.width != 0) return {};
  const size_t width = w.size() / x.width;
  if (static_cast<double>(w.size()) * static_cast<double>(x.rows) > kMostProducts) return {};
  RowMatrix out{x.rows, width, std::vector<float>(x.rows * width), x.dtype};
  for (size_t i = 0; i < x.rows; ++i) {
    for (size_t o = 0; o < width; ++o) {
      double sum = bias.size() == width ? bias[o] : 0;
      const double* row = w.data() + o * x.width;
      for (size_t j = 0; j < x.width; ++j) sum += row[j] * x.row(i)[j];
      out.row(i)[o] = static_cast<float>(sum);
    }
  }
  return out;
}

RowMatrix OpReplay::Sum(const SideRows& side, PointPlace place) const {
  const std::vector<PointPlace> inputs = InputsOf(place, layers_);
  if (inputs.size() != 2) return {};
  RowMatrix a = side.Read(inputs[0]);
  const RowMatrix b = side.Read(inputs[1]);
  if (a.empty() || a.rows != b.rows || a.width != b.width) return {};
  for (size_t i = 0; i < a.values.size(); ++i) a.values[i] += b.values[i];
  return a;
}

RowMatrix OpReplay::Turned(const SideRows& side, PointPlace place) const {
  const auto [cos, sin] = train_.line->Angles(place.layer, train_.rows);
  RowMatrix x = side.Read(TurnedFrom(*side.line, place));
  if (x.empty() || cos.rows != x.rows || sin.rows != x.rows || x.width % cos.width != 0) return {};
  for (size_t i = 0; i < x.rows; ++i) TurnHalves(cos.row(i), sin.row(i), cos.width, x.row(i), x.width);
  return x;
}

RowMatrix OpReplay::Act(const SideRows& side, PointPlace place) const {
  const PointPlace gate{place.layer, Point::kGate}, up{place.layer, Point::kUp};
  const RowMatrix tg = train_.Read(gate), tu = train_.Read(up), made = train_.Read(place);
  if (tg.empty() || tg.values.size() != tu.values.size() || tg.values.size() != made.values.size()) return {};
  for (const GateForm form : kGateForms) {
    if (ErrorsOf(made, Gated(tg, tu, form)).largest > RoundingFloor(made.dtype, made.dtype)) continue;
    const RowMatrix g = side.Read(gate), u = side.Read(up);
    return g.empty() || g.values.size() != u.values.size() ? RowMatrix() : Gated(g, u, form);
  }
  return {};
}

RowMatrix OpReplay::Expected(const SideRows& side, PointPlace place) const {
  switch (place.point) {
    case Point::kInputNorm:
    case Point::kMlpNorm:
    case Point::kQNorm:
    case Point::kKNorm:
    case Point::kFinalNorm: {
      const PointPlace input = InputsOf(place, layers_)[0];
      const std::vector<double> w = WeightOf(place);
      const RowMatrix x = AsHeads(train_.Read(input), w.size()), y = AsHeads(train_.Read(place), w.size()),
                      own = AsHeads(side.Read(input), w.size());
      if (x.empty() || y.rows != x.rows || y.width != x.width || w.size() != x.width || own.width != x.width) return {};
      NormFit form = FitNorm(x, w, y, false);
      if (form.error > RoundingFloor(x.dtype, y.dtype)) form = FitNorm(x, w, y, true);
      RowMatrix out = Normed(own, w, form);
      out.width *= out.rows / std::max<size_t>(side.rows.size(), 1);
      out.rows = side.rows.size();
      return out;
    }
    case Point::kInputResidual:
    case Point::kMlpResidual:
    case Point::kFinalResidual: return Sum(side, place);
    case Point::kQRotary:
    case Point::kKRotary: return Turned(side, place);
    case Point::kActivation: return Act(side, place);
    case Point::kQ:
    case Point::kK:
    case Point::kV:
    case Point::kO:
    case Point::kRouter:
    case Point::kGate:
    case Point::kUp:
    case Point::kMlp:
    case Point::kLogits: {
      const std::vector<PointPlace> inputs = InputsOf(place, layers_);
      return inputs.empty() ? RowMatrix() : Linear(side, place, inputs[0]);
    }
    default: return {};
  }
}

std::optional<Replayed> OpReplay::OfRollout(PointPlace place, double tolerance) const {
  const RowMatrix known = train_.Read(place), made = Expected(train_, place);
  if (known.empty() || made.rows != known.rows || made.width != known.width) return std::nullopt;
  const double own = ErrorsOf(known, made).largest;
  if (own > tolerance) return std::nullopt;
  Replayed out{Expected(rollout_, place), 0, std::max(tolerance, kRounding * own)};
  RowMatrix seen = rollout_.Read(place);
  if (seen.empty() || out.expected.rows != seen.rows) return std::nullopt;
  CutToCommon(&seen, &out.expected);
  out.error = ErrorsOf(seen, out.expected).largest;
  return out;
}

}  // namespace msprobe
