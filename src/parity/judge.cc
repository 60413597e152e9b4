#include "parity/judge.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "parity/all_gradients.h"
#include "parity/apart.h"
#include "parity/carried.h"
#include "parity/doubt.h"
#include "parity/losses.h"
#include "parity/own_means.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

bool IsConstant(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
}

/// Behind '#': the call of a module, which is the micro batch.
std::string CallOf(const std::string& name) {
  const size_t at = name.rfind('#');
  return at == std::string::npos ? "" : name.substr(at);
}

class StepJudge {
 public:
  StepJudge(const ParityRuns& runs, int step, CarriedDoubt* carried, ParityResult* result)
      : runs_(runs), reference_(runs.reference.front()), step_(step), carried_(*carried), result_(*result), own_(step) {
    carried_.Next();
  }

  void Run() {
    Parameters();
    if (result_.cannot_say) return;
    Inputs();
    if (result_.cannot_say) return;
    Flow("forward");
    Losses();
    Flow("backward");
    Gradients();
    JudgeNorm(runs_, step_, &result_);
    Updates();
  }

 private:
  WholeValues Recorded(const std::string& phase, const ParityEntry& entry) const {
    return WholeOf(entry, runs_.rounded.empty() ? nullptr : runs_.rounded.front().phase(step_, phase).Find(entry.name));
  }

  WholeValues Whole(const std::string& phase, const ParityEntry& entry) const {
    WholeValues whole = Recorded(phase, entry);
    // What is computed from parameters that are farther away is so, too.
    const double stretch = carried_.stretch();
    for (size_t e = 0; stretch > 1 && e < whole.rounded.size(); ++e) {
      whole.rounded[e] = whole.values[e] + stretch * (whole.rounded[e] - whole.values[e]);
    }
    return whole;
  }

  void NotCompared(const std::string& why, const std::string& what) { result_.not_compared[why].push_back(what); }

  void Row(const std::string& phase, const std::string& name, const PartsComparison& found) {
    result_.rows.push_back({step_, phase, name, found.mapping.Text(), found.kind, found.worst(), found.bound()});
  }

  void Find(const std::string& phase, const std::string& name, ParityCause cause, const PartsComparison& found) {
    result_.findings.push_back({step_, phase, name, std::move(cause), found.worst(), found.bound(), false});
  }

  FactorSizes Sizes(bool gradient) const {
    FactorSizes sizes;
    const size_t golden = reference_.phase(step_, "loss").entries.size();
    sizes.micro_batches = static_cast<int>(std::max({size_t{1}, golden, LossesOf(runs_.ranks, step_)}));
    sizes.gradient = gradient;
    return sizes;
  }

  /// Calls `judge` with each tensor of the reference in a phase that the ranks have, too.
  template <typename F>
  void Each(const std::string& phase, F judge) {
    for (const ParityEntry& entry : reference_.phase(step_, phase).entries) {
      const RankParts parts = PartsOf(runs_.ranks, step_, phase, entry.name);
      if (parts.size() == 0) {
        NotCompared("only the reference has it", phase + " " + entry.name);
        continue;
      }
      judge(entry, parts);
    }
    std::set<std::string> told;
    for (const ParityRank& rank : runs_.ranks) {
      for (const ParityEntry& entry : rank.phase(step_, phase).entries) {
        if (reference_.phase(step_, phase).Find(entry.name) != nullptr || !told.insert(entry.name).second) continue;
        if (!IsCopy(phase, entry.name)) NotCompared("only the ranks have it", phase + " " + entry.name);
      }
    }
  }

  /// A second name of a weight that the reference has once: it stays what the other stage has.
  bool IsCopy(const std::string& phase, const std::string& name) {
    if (phase != "parameter" && phase != "updated") return false;
    const std::string of = CopyOf(runs_.ranks, step_, name);
    if (of.empty() || reference_.phase(step_, phase).Find(of) == nullptr) return false;
    const std::vector<int> wrong = NotAsOn(runs_.ranks, step_, phase, name, of);
    result_.rows.push_back(
        {step_, phase, name, "copy of " + of, wrong.empty() ? PartsKind::kBitEqual : PartsKind::kDiffers, 0, 0});
    if (wrong.empty()) return true;
    result_.findings.push_back({step_,
                                phase,
                                name,
                                {CauseKind::kReplicaDrift,
                                 Msg("a copy of {} that is no longer equal to it, on ranks {}", of, RanksText(wrong)),
                                 wrong,
                                 "pp",
                                 {}},
                                0,
                                0,
                                true});
    return true;
  }

  void Parameters() {
    struct Stage {
      size_t same = 0, all = 0;
      std::string first;  // that is not the same
    };
    std::map<int, Stage> stages;
    size_t all = 0;
    std::vector<ParityFinding> found_here;
    FactorSizes sizes = Sizes(false);
    sizes.reduced = false;
    Each("parameter", [&](const ParityEntry& entry, const RankParts& parts) {
      const WholeValues whole = WholeOf(entry, nullptr);
      PartsComparison found = CompareParts(parts, whole);
      if (found.kind == PartsKind::kNotCompared)
        return NotCompared("no mapping fits its sizes", "parameter " + entry.name);
      carried_.Allow(entry.name, parts, &found);
      Row("parameter", entry.name, found);
      mappings_[entry.name] = found.mapping;
      const bool same = found.kind != PartsKind::kDiffers && found.kind != PartsKind::kSum;
      ++all;
      if (!same || !IsConstant(whole.values)) {  // every start makes biases of zero alike
        Stage& stage = stages[StageOf(parts)];
        ++stage.all, stage.same += same;
        if (!same && stage.first.empty()) stage.first = entry.name;
      }
      if (found.kind == PartsKind::kDiffers || found.kind == PartsKind::kSum) {
        found_here.push_back(
            {step_, "parameter", entry.name, ExplainParts(parts, found, sizes), found.worst(), found.bound(), false});
      }
    });
    for (const auto& [number, stage] : stages) {
      if (step_ > 0 || stage.same * 2 >= stage.all) continue;
      const Message why =
          Msg("{} of {} parameters are not those of the reference before the step, the first is {}: give both the same "
              "weights, such as by one seed or one checkpoint",
              stage.all - stage.same, stage.all, stage.first);
      result_.cannot_say =
          stages.size() > 1 ? Msg("weights could not be made equal on stage {}: {}", number, why) : why;
      return;
    }
    if (all == 0) result_.cannot_say = Msg("no parameter has the same name in both runs");
    result_.findings.insert(result_.findings.end(), found_here.begin(), found_here.end());
  }

  void Inputs() {
    Each("input", [&](const ParityEntry& entry, const RankParts& parts) {
      const PartsComparison found = CompareParts(parts, WholeOf(entry, nullptr));
      if (found.kind == PartsKind::kNotCompared) return NotCompared("no mapping fits its sizes", "input " + entry.name);
      Row("input", entry.name, found);
      if (found.kind != PartsKind::kDiffers || result_.cannot_say) return;
      result_.cannot_say = Msg(
          "the batch of the ranks is not that of the reference, {} differs: let batches come by a DataLoader, or give "
          "--batches-from model",
          entry.name);
    });
  }

  /// Modules forward or backward. What is a summand is no fault as long as what is computed from it is right.
  void Flow(const std::string& phase) {
    struct Pending {
      std::string name, axis;
      std::vector<int> ranks;
      PartsComparison found;
    };
    std::optional<Pending> pending;
    Each(phase, [&](const ParityEntry& entry, const RankParts& all) {
      const RankParts parts = OfLastStage(all);
      const WholeValues whole = Whole(phase, entry);
      PartsComparison found = phase == "forward" ? CompareParts(parts, whole) : Backward(entry.name, parts, whole);
      if (phase == "forward" && found.kind == PartsKind::kDiffers && own_.Take(entry.name, parts, whole, &found)) {
        return Row(phase, entry.name, found);
      }
      if (phase == "backward" && own_.Has(entry.name)) return;  // of each rank's own number
      if (found.kind == PartsKind::kNotCompared) {
        return NotCompared("no mapping fits its sizes", phase + " " + entry.name);
      }
      // A dispatcher gives an expert its tokens by the rank that they come from.
      if (found.kind == PartsKind::kDiffers && entry.name.find("experts") != std::string::npos) {
        return NotCompared("tokens of an expert come in another order", phase + " " + entry.name);
      }
      Row(phase, entry.name, found);
      if (found.kind == PartsKind::kSum) {
        const std::vector<std::string> sums = found.mapping.Sums();
        // The gradient of what all rows share is a sum over the rows by its nature.
        const auto first = phase == "backward" ? std::find_if_not(sums.begin(), sums.end(), IsDataAxis) : sums.begin();
        if (first == sums.end()) return;
        const std::string axis = *first;
        const std::vector<int> ranks = parts.ranks.front()->axes.at(axis);
        if (!pending) pending = Pending{entry.name, axis, ranks, found};
        return;
      }
      if (found.kind != PartsKind::kDiffers) return pending.reset();
      if (pending) {
        Find(phase, pending->name,
             {CauseKind::kPartialSum,
              Msg("a partial sum of each rank, never reduced over {} {}: {} is computed from it", pending->axis,
                  RanksText(pending->ranks), entry.name),
              pending->ranks, pending->axis, std::nullopt},
             pending->found);
        pending.reset();
      }
      Find(phase, entry.name, ExplainParts(parts, found, Sizes(false)), found);
    });
  }

  /// The gradient of the loss on each rank has the factor by which that rank's loss counts.
  PartsComparison Backward(const std::string& name, const RankParts& parts, const WholeValues& whole) {
    std::map<std::string, double>& known = scales_[CallOf(name)];
    if (own_.Has(name)) {
      own_.Learn(name, parts, whole, &known);
      return {};
    }
    std::vector<double> scales;
    for (const ParityRank* rank : parts.ranks) {
      const auto found = known.find(DataPlaceOf(*rank));
      if (found != known.end()) scales.push_back(found->second);
    }
    if (scales.size() == parts.size()) return ComparePartsWith(parts, whole, scales);
    PartsComparison found = ComparePartsWith(parts, whole, std::nullopt);
    if (found.kind != PartsKind::kBitEqual && found.kind != PartsKind::kEqual) return found;
    for (size_t i = 0; i < parts.size(); ++i) known.emplace(DataPlaceOf(*parts.ranks[i]), found.scales[i]);
    return found;
  }

  void Losses() {
    const size_t number = LossesOf(runs_.ranks, step_), golden = reference_.phase(step_, "loss").entries.size();
    if (number > 0 && golden > 0 && number != golden) {
      const MicroBatches all = CompareMicroBatches(runs_.ranks, runs_.reference, runs_.rounded, step_);
      const std::string name = "mean of " + std::to_string(number);
      return all.found.kind == PartsKind::kNotCompared
                 ? NotCompared("the reference has another number of micro batches", "loss " + name)
                 : Row("loss", name, all.found);
    }
    Each("loss", [&](const ParityEntry& entry, const RankParts& parts) {
      const WholeValues whole = Whole("loss", entry);
      PartsComparison found = CompareParts(parts, whole);
      if (found.kind == PartsKind::kDiffers) AllowOwnRows(parts, whole, &found);
      Row("loss", entry.name, found);
      if (found.kind != PartsKind::kDiffers) return;
      double mean = 0;
      for (const auto& values : parts.values) mean += values.front() / static_cast<double>(parts.size());
      const double factor = mean / whole.values.front();
      const int micro = Sizes(false).micro_batches;
      const bool known = micro > 1 && std::abs(factor / micro - 1) < 1e-3;  // each rank's is a mean of its own
      Find("loss", entry.name,
           known ? ExplainFactor(micro, parts, found.bad(), found.mapping, Sizes(false))
                 : ExplainParts(parts, found, Sizes(false)),
           found);
    });
  }

  /// In the order in which backward gives them, where that is known.
  std::vector<const ParityEntry*> GradientOrder() const {
    std::vector<const ParityEntry*> out;
    std::set<std::string> known;
    const ParityPhase& phase = reference_.phase(step_, "gradient");
    for (const ParityEntry& local : reference_.phase(step_, "local").entries) {
      const ParityEntry* entry = phase.Find(local.name);
      if (entry != nullptr && known.insert(local.name).second) out.push_back(entry);
    }
    for (auto entry = phase.entries.rbegin(); entry != phase.entries.rend(); ++entry) {
      if (known.insert(entry->name).second) out.push_back(&*entry);
    }
    return out;
  }

  void Gradients() {
    std::vector<WrongGradient> wrong;
    size_t all = 0;
    for (const ParityEntry* entry : GradientOrder()) {
      RankParts parts = PartsOf(runs_.ranks, step_, "gradient", entry->name);
      if (parts.size() == 0) {
        Missing(entry->name);
        continue;
      }
      PartsComparison found = CompareGradient(parts, Whole("gradient", *entry), entry->name);
      if (found.kind == PartsKind::kNotCompared) {
        NotCompared("no mapping fits its sizes", "gradient " + entry->name);
        continue;
      }
      Row("gradient", entry->name, found);
      ++all;
      if (found.kind == PartsKind::kDiffers) wrong.push_back({entry->name, std::move(parts), std::move(found)});
    }
    const std::optional<double> of_all = FactorOfAll(wrong, all);
    if (of_all && result_.findings.empty() && !IsNumber(*of_all, wrong.front())) {
      if (auto cause = ExplainClip(*of_all, wrong, runs_.reference, step_)) {
        Find("norm", "", *cause, wrong.front().found);
      }
    }
    ExplainGradients(wrong, wrong.size() * 10 >= all * 9, of_all.has_value());
  }

  /// Whether a factor is the size of an axis, or the number of micro batches.
  bool IsNumber(double factor, const WrongGradient& one) const {
    const double micro = Sizes(true).micro_batches;
    return !ExplainFactor(factor, one.parts, one.found.bad(), one.found.mapping, Sizes(true)).axis.empty() ||
           std::abs(factor / micro - 1) < 1e-3 || std::abs(factor * micro - 1) < 1e-3;
  }

  void ExplainGradients(const std::vector<WrongGradient>& wrong, bool nearly_all, bool one_factor) {
    FactorSizes sizes = Sizes(true);
    sizes.for_all = nearly_all;
    std::optional<double> usual;
    for (const WrongGradient& one : wrong) {
      const RankParts before = PartsOf(runs_.ranks, step_, "local", one.name);
      sizes.alike = AxesAlike(before);
      std::optional<ParityCause> cause = ExplainReduction(one.parts, one.found, before, sizes);
      if (!cause) cause = Tied(one);
      bool apart = false;
      if (!cause) {
        if (!usual) usual = UsualReduction(runs_.ranks, reference_, step_);
        FactorSizes own = sizes;
        own.for_all = false;
        cause = ExplainApart(one.parts, one.found, before, *usual, own);
        apart = cause.has_value() && !result_.findings.empty();
        if (!cause) cause = ExplainParts(one.parts, one.found, sizes);
      }
      if (one_factor && &one == &wrong.front())
        cause->text = Msg("{}; all {} gradients have this factor", cause->text, wrong.size());
      Find("gradient", one.name, *cause, one.found);
      result_.findings.back().apart = apart;
    }
  }

  /// A weight of two stages has a second name on the last one, which the reference does not have.
  std::optional<ParityCause> Tied(const WrongGradient& one) const {
    std::set<std::string> told;
    for (const ParityRank& rank : runs_.ranks) {
      for (const ParityEntry& entry : rank.phase(step_, "gradient").entries) {
        if (reference_.phase(step_, "gradient").Find(entry.name) != nullptr || !told.insert(entry.name).second)
          continue;
        const RankParts copy = PartsOf(runs_.ranks, step_, "gradient", entry.name);
        if (auto cause = ExplainTied(one.parts, one.found, entry.name, copy)) return cause;
      }
    }
    return std::nullopt;
  }

  void Missing(const std::string& name) {
    if (PartsOf(runs_.ranks, step_, "parameter", name).size() == 0) {
      return NotCompared("only the reference has it", "gradient " + name);
    }
    Find("gradient", name, {CauseKind::kMissing, Msg("no rank has a gradient of it, the reference has"), {}, "", {}},
         {});
  }

  /// A gradient lies as its parameter does; after its reduction it is no summand.
  PartsComparison CompareGradient(const RankParts& parts, const WholeValues& whole, const std::string& name) const {
    PartsComparison found = CompareParts(parts, whole);
    if (found.kind != PartsKind::kSum) return found;
    // The same parts as replicas: the best of the mappings without a sum.
    const auto mapping = mappings_.find(name);
    for (const RankMapping& other : MappingsOf(parts, whole.shape)) {
      if (other.IsSum()) continue;
      if (mapping != mappings_.end() && other.places != mapping->second.places) continue;
      found.mapping = other;
      break;
    }
    found.kind = PartsKind::kDiffers;
    for (size_t i = 0; i < parts.size(); ++i) {
      found.expected[i] = Taken(whole.values, whole.shape, found.mapping.places[i]);
      found.errors[i] = RelativeError(parts.values[i], found.expected[i]);
    }
    return found;
  }

  /// What the optimizer has added.
  void Updates() {
    Each("updated", [&](const ParityEntry& entry, const RankParts& after) {
      const RankParts before = PartsOf(runs_.ranks, step_, "parameter", entry.name);
      const ParityEntry* was = reference_.phase(step_, "parameter").Find(entry.name);
      if (was == nullptr || before.size() != after.size() || was->shape != entry.shape) {
        return NotCompared("it was not there before the step", "updated " + entry.name);
      }
      WholeValues whole = Whole("updated", entry);
      const std::vector<double> first = ElementsOf(*was);
      const double size = std::sqrt(SumOfSquares(first));
      RankParts change = after;
      for (size_t e = 0; e < whole.values.size(); ++e) {
        whole.values[e] -= first[e];
        if (!whole.rounded.empty()) whole.rounded[e] -= first[e];
      }
      for (size_t i = 0; i < change.size(); ++i) {
        if (before.values[i].size() != change.values[i].size()) return;
        for (size_t e = 0; e < change.values[i].size(); ++e) change.values[i][e] -= before.values[i][e];
      }
      PartsComparison found = CompareParts(change, whole);
      if (found.kind == PartsKind::kNotCompared)
        return NotCompared("no mapping fits its sizes", "updated " + entry.name);
      // A change is stored as the difference of two numbers of the parameter's size.
      const double moved = std::sqrt(SumOfSquares(whole.values));
      if (moved == 0) BySize(change, size, entry.dtype, &found);
      const double least = moved > 0 ? 2 * InfoOf(entry.dtype).eps() * size / moved : 0;
      for (double& bound : found.bounds) bound = std::max(bound, least);
      if (found.kind == PartsKind::kDiffers) AllowForGradient(change, whole, entry.name, &found);
      if (found.kind == PartsKind::kDiffers && found.bad().empty()) found.kind = PartsKind::kEqual;
      Row("updated", entry.name, found);
      if (found.kind != PartsKind::kSum) carried_.Keep(entry.name, after, Recorded("updated", entry), found.mapping);
      if (found.kind == PartsKind::kDiffers || found.kind == PartsKind::kSum) {
        Find("updated", entry.name, ExplainUpdate(entry.name, change, found), found);
      }
    });
  }

  /// What the optimizer makes of a gradient that is wrong is wrong where that is.
  ParityCause ExplainUpdate(const std::string& name, const RankParts& change, const PartsComparison& found) const {
    const auto source = std::find_if(result_.findings.begin(), result_.findings.end(), [&](const ParityFinding& f) {
      return f.step == step_ && f.phase == "gradient" && f.name == name;
    });
    if (source == result_.findings.end() || !std::isfinite(found.worst())) {
      return ExplainParts(change, found, Sizes(false));
    }
    const std::vector<int>& ranks = source->cause.ranks;
    return {CauseKind::kUnexplained,
            Msg("it differs by {:.3g} of its norm, as its gradient does on ranks {}", found.worst(), RanksText(ranks)),
            ranks, "", std::nullopt};
  }

  /// What the reference leaves as it is may move by a rounding of the parameter.
  static void BySize(const RankParts& change, double size, DType dtype, PartsComparison* found) {
    for (size_t i = 0; i < change.size(); ++i) {
      found->errors[i] = size > 0 ? std::sqrt(SumOfSquares(change.values[i])) / size : found->errors[i];
      found->bounds[i] = 2 * InfoOf(dtype).eps();
    }
  }

  void AllowForGradient(const RankParts& change, const WholeValues& whole, const std::string& name,
                        PartsComparison* found) const {
    const ParityEntry* golden = reference_.phase(step_, "gradient").Find(name);
    const RankParts parts = PartsOf(runs_.ranks, step_, "gradient", name);
    if (golden == nullptr || golden->shape != whole.shape || parts.size() == 0) return;
    const WholeValues gradient = Whole("gradient", *golden);
    const PartsComparison equal = CompareGradient(parts, gradient, name);
    if (equal.kind != PartsKind::kEqual && equal.kind != PartsKind::kBitEqual) return;
    AllowForDoubt(DoubtOf(parts, gradient, equal), change, whole, found);
  }

  const ParityRuns& runs_;
  const ParityRank& reference_;
  int step_;
  CarriedDoubt& carried_;
  ParityResult& result_;
  std::map<std::string, RankMapping> mappings_;                  // of parameters
  std::map<std::string, std::map<std::string, double>> scales_;  // call -> ranks with the same data -> factor
  OwnMeans own_;
};

}  // namespace

ParityResult JudgeParity(const ParityRuns& runs) {
  ParityResult result;
  CarriedDoubt carried;
  int steps = 0;
  for (const ParityRank& rank : runs.ranks) steps = std::max(steps, rank.steps);
  for (int step = 0; step < steps && !result.cannot_say; ++step) {
    const size_t before = result.findings.size();
    if (!runs.reference.empty()) StepJudge(runs, step, &carried, &result).Run();
    JudgeLaws(runs, step, &result);
    if (result.findings.size() > before) break;  // what follows is computed from it
  }
  TakeNotes(runs.ranks, &result);
  TakeNotes(runs.reference, &result);
  MarkApart(&result);
  for (size_t i = 1; i < result.findings.size(); ++i) result.inherited += !result.findings[i].apart;
  return result;
}

}  // namespace msprobe
