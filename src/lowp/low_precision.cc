#include "lowp/low_precision.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "base/parallel.h"
#include "base/text.h"
#include "dump/reader.h"

namespace msprobe {
namespace {

struct NamedRecipe {
  std::string_view name, input, weight, gradient;
};
constexpr NamedRecipe kRecipes[] = {
#define MSP_RECIPE(name, input, weight, gradient) {name, input, weight, gradient},
#include "lowp/recipes.def"
#undef MSP_RECIPE
};

StatusOr<MatrixPlan> PlanOf(std::string_view name, std::string_view input, std::string_view weight,
                            std::string_view gradient, const CastRules& rules) {
  MatrixPlan plan;
  plan.name = name, plan.rules = rules;
  MSP_ASSIGN_OR_RETURN(plan.input, ParseScaledFormat(input));
  MSP_ASSIGN_OR_RETURN(plan.weight, ParseScaledFormat(weight));
  MSP_ASSIGN_OR_RETURN(plan.gradient, ParseScaledFormat(gradient));
  return plan;
}

StatusOr<std::vector<MatrixPlan>> PlansOf(const LowPrecisionRequest& request) {
  CastRules rules;
  rules.stochastic = request.stochastic, rules.seed = request.seed;
  std::vector<MatrixPlan> plans;
  const auto add = [&](StatusOr<MatrixPlan> plan) -> Status {
    if (!plan.ok()) return plan.status();
    const bool known = std::any_of(plans.begin(), plans.end(), [&](const auto& p) { return p.name == plan->name; });
    if (!known) plans.push_back(std::move(*plan));
    return OkStatus();
  };
  for (const std::string& format : request.formats)
    MSP_RETURN_IF_ERROR(add(PlanOf(format, format, format, format, rules)));
  for (const std::string& recipe : request.recipes) {
    const auto* found =
        std::find_if(std::begin(kRecipes), std::end(kRecipes), [&](const auto& r) { return r.name == recipe; });
    if (found == std::end(kRecipes)) {
      // One format where inputs, weights and gradients have the same, else three.
      const std::vector<std::string_view> parts = Split(recipe, '/');
      if (parts.size() != 3) {
        std::string names;
        for (const NamedRecipe& r : kRecipes) names.append(names.empty() ? "" : ", ").append(r.name);
        return UsageError(
            Msg("{} is not a recipe: {}, or INPUTS/WEIGHTS/GRADIENTS as e4m3/e4m3:row/e5m2", OneLine(recipe), names));
      }
      MSP_RETURN_IF_ERROR(add(PlanOf(recipe, parts[0], parts[1], parts[2], rules)));
      continue;
    }
    MSP_RETURN_IF_ERROR(add(PlanOf(recipe, found->input, found->weight, found->gradient, rules)));
  }
  return plans;
}

/// The step that is measured, and those before it.
struct ChosenStep {
  StepDir step;
  std::vector<StepDir> earlier;
};

StatusOr<ChosenStep> ChooseStep(const LowPrecisionRequest& request) {
  MSP_ASSIGN_OR_RETURN(DumpPath path, ResolveDumpPath(request.dump));
  if (path.kind == PathKind::kFile) {
    RankDir rank;
    rank.path = std::string(DirName(request.dump));
    if (rank.path.empty()) rank.path = ".";
    ChosenStep out;
    out.step.ranks = {rank}, out.step.step = -1;
    return out;
  }
  ChosenStep out;
  for (StepDir& step : path.steps) {
    if (request.step && step.step > *request.step) break;
    if (!out.step.ranks.empty()) out.earlier.push_back(std::move(out.step));
    out.step = std::move(step);
  }
  if (out.step.ranks.empty() || (request.step && out.step.step != *request.step && path.kind == PathKind::kDump))
    return BadInput(Msg("{} has no step {}", request.dump, request.step.value_or(0)));
  if (path.kind != PathKind::kDump && out.step.name.empty()) out.step.step = -1;
  return out;
}

Status MeasureRank(const RankDir& rank, const ChosenStep& chosen, LowPrecisionReport* report) {
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(JoinPath(rank.path, "dump.json")));
  NoteGap(DumpSide::kOnly, dump, &report->gaps);
  std::vector<std::unique_ptr<DumpFile>> earlier;
  std::vector<const DumpFile*> histories;
  for (const StepDir& step : chosen.earlier) {
    for (const RankDir& same : step.ranks) {
      if (same.name != rank.name) continue;
      MSP_ASSIGN_OR_RETURN(DumpFile file, DumpFile::Open(JoinPath(same.path, "dump.json")));
      earlier.push_back(std::make_unique<DumpFile>(std::move(file)));
      histories.push_back(earlier.back().get());
    }
  }
  MSP_ASSIGN_OR_RETURN(MatrixOps found, FindMatrixOps(dump, histories));
  report->not_read.insert(report->not_read.end(), found.not_read.begin(), found.not_read.end());
  report->no_values.insert(report->no_values.end(), found.no_values.begin(), found.no_values.end());
  for (const MatrixPlan& plan : report->plans) {
    const bool delayed = plan.input.group == ScaleGroup::kDelayed || plan.weight.group == ScaleGroup::kDelayed ||
                         plan.gradient.group == ScaleGroup::kDelayed;
    const bool history =
        std::any_of(found.ops.begin(), found.ops.end(), [](const MatrixOp& op) { return op.a.history > 0; });
    if (delayed && !history) report->delayed_without_history = true;
  }
  return ParallelOrdered<LowPrecisionLayer>(
      found.ops.size(), 4,
      [&](size_t i) -> StatusOr<LowPrecisionLayer> {
        LowPrecisionLayer layer{rank.rank.value_or(0), found.ops[i].layer, found.ops[i].name, {}};
        MSP_ASSIGN_OR_RETURN(layer.losses, LossesOf(found.ops[i], report->plans));
        return layer;
      },
      [&](size_t, LowPrecisionLayer&& layer) {
        report->layers.push_back(std::move(layer));
        return OkStatus();
      });
}

Status NothingMeasured(const LowPrecisionReport& report) {
  if (!report.no_values.empty())
    return BadInput(
        Msg("{} holds {} matrix products without their values: record with task \"tensor\", level \"mix\" (or \"L1\"; "
            "\"L0\" for modules only)",
            report.input, report.no_values.size()));
  return BadInput(
      Msg("{} holds no matrix product that is known here: record a forward and a backward pass with task \"tensor\", "
          "level \"mix\"",
          report.input));
}

double FigureOf(const LowPrecisionReport& report, const LowPrecisionLayer& layer, size_t plan) {
  const ResultLoss& result = layer.losses.by_plan[plan].result;
  return HasGradients(report, plan) ? std::sqrt(result.loss2) : result.Error();
}

double TimesFloor(const ResultLoss& loss) { return loss.seen() && loss.floor > 0 ? loss.Error() / loss.floor : 0; }

}  // namespace

StatusOr<LowPrecisionReport> MeasureLowPrecision(const LowPrecisionRequest& request) {
  LowPrecisionReport report;
  report.input = request.dump;
  MSP_ASSIGN_OR_RETURN(report.plans, PlansOf(request));
  MSP_ASSIGN_OR_RETURN(const ChosenStep chosen, ChooseStep(request));
  report.step = chosen.step.step;
  for (const RankDir& rank : chosen.step.ranks) MSP_RETURN_IF_ERROR(MeasureRank(rank, chosen, &report));
  if (report.layers.empty()) return NothingMeasured(report);
  return report;
}

double WorstTimesFloor(const OpLoss& loss) {
  return std::max({TimesFloor(loss.result), TimesFloor(loss.input_gradient), TimesFloor(loss.weight_gradient)});
}

LayerVerdict VerdictOf(const LowPrecisionLayer& layer, size_t plan) {
  const OpLoss& loss = layer.losses.by_plan[plan];
  if (!loss.result.seen()) return LayerVerdict::kNotMeasured;
  return WorstTimesFloor(loss) > kMostTimesFloor ? LayerVerdict::kLoses : LayerVerdict::kKeeps;
}

bool HasGradients(const LowPrecisionReport& report, size_t plan) {
  return std::any_of(report.layers.begin(), report.layers.end(),
                     [&](const auto& layer) { return layer.losses.by_plan[plan].result.loss2 > 0; });
}

std::vector<size_t> RankLayers(const LowPrecisionReport& report, size_t plan) {
  std::vector<size_t> order(report.layers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return FigureOf(report, report.layers[a], plan) > FigureOf(report, report.layers[b], plan);
  });
  return order;
}

std::vector<KeptPoint> CurveOf(const LowPrecisionReport& report, size_t plan) {
  double work = 0, squares = 0;
  for (const LowPrecisionLayer& layer : report.layers) {
    const double figure = FigureOf(report, layer, plan);
    work += layer.losses.work, squares += figure * figure;
  }
  std::vector<KeptPoint> curve{{0, std::sqrt(squares), 0}};
  double kept = 0;
  for (const size_t i : RankLayers(report, plan)) {
    const double figure = FigureOf(report, report.layers[i], plan);
    squares = std::max(0.0, squares - figure * figure), kept += report.layers[i].losses.work;
    curve.push_back({curve.size(), std::sqrt(squares), work > 0 ? kept / work : 0});
  }
  curve.back().loss = 0;  // of no layer, whatever the subtractions left
  return curve;
}

}  // namespace msprobe
