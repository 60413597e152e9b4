#include "doctor/tensor_evidence.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string_view>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "base/words/translate.h"
#include "doctor/step_tensor.h"
#include "jobs/optimizer_replay.h"
#include "weights/name_map.h"
#include "weights/open_checkpoint.h"
#include "weights/weight_diff.h"

namespace msprobe {
namespace {

/// Files by their name without what formats add: "rank_0/tokens.npy" is "rank_0/tokens".
std::map<std::string, std::string> ByStem(const StepFiles& files) {
  std::map<std::string, std::string> out;
  for (const auto& [name, path] : files) out[name.substr(0, name.find_last_of('.'))] = path;
  return out;
}

/// A tensor that both saved, and the files of it.
struct SavedPair {
  std::string name;
  StepTensor a, b;
  std::string file_a, file_b;
};

/// Those of one step; files that cannot be read are noted.
std::vector<SavedPair> PairSaved(const StepFiles& a, const StepFiles& b, std::vector<Message>* notes) {
  std::vector<SavedPair> out;
  const auto right = ByStem(b);
  for (const auto& [stem, path] : ByStem(a)) {
    const auto found = right.find(stem);
    if (found == right.end()) continue;
    auto x = ReadStepTensors(path), y = ReadStepTensors(found->second);
    if (!x.ok() || !y.ok()) {
      if (notes->size() < 20) notes->push_back((x.ok() ? y : x).status().text());
      continue;
    }
    for (auto& [name, tensor] : *x) {
      const auto other = y->find(name);
      if (other == y->end()) continue;
      out.push_back(
          {name.empty() ? stem : stem + "/" + name, std::move(tensor), std::move(other->second), path, found->second});
    }
  }
  return out;
}

size_t CountUnequal(const StepTensor& x, const StepTensor& y) {
  size_t unequal = 0;
  for (size_t i = 0; i < x.values.size(); ++i) {
    if (!(x.values[i] == y.values[i]) && !(std::isnan(x.values[i]) && std::isnan(y.values[i]))) ++unequal;
  }
  return unequal;
}

bool IsSame(const SavedPair& pair) { return pair.a.shape == pair.b.shape && CountUnequal(pair.a, pair.b) == 0; }

/// Whether the rows of one are those of the other in another order.
bool SameRows(const StepTensor& x, const StepTensor& y) {
  if (x.shape.size() < 2 || x.shape != y.shape || x.shape[0] < 2) return false;
  const size_t rows = static_cast<size_t>(x.shape[0]), width = x.values.size() / rows;
  const auto sorted = [&](const StepTensor& t) {
    std::vector<std::vector<double>> out;
    for (size_t i = 0; i < rows; ++i) {
      out.emplace_back(t.values.begin() + static_cast<ptrdiff_t>(i * width),
                       t.values.begin() + static_cast<ptrdiff_t>((i + 1) * width));
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  return sorted(x) == sorted(y);
}

/// Whether b[.., i] is a[.., i + by] along the last dimension, wherever both are.
bool IsShifted(const StepTensor& x, const StepTensor& y, int by) {
  if (x.shape.empty() || x.shape != y.shape || x.shape.back() < 4) return false;
  const size_t width = static_cast<size_t>(x.shape.back()), offset = static_cast<size_t>(std::abs(by));
  for (size_t row = 0; row + width <= x.values.size(); row += width) {
    for (size_t i = 0; i + offset < width; ++i) {
      const size_t at = by > 0 ? row + i + offset : row + i, other = by > 0 ? row + i : row + i + offset;
      if (x.values[at] != y.values[other]) return false;
    }
  }
  return true;
}

/// b - a where that is one number everywhere.
bool IsOffset(const StepTensor& x, const StepTensor& y, double* by) {
  if (x.values.empty() || x.shape != y.shape) return false;
  *by = y.values[0] - x.values[0];
  for (size_t i = 0; i < x.values.size(); ++i) {
    if (y.values[i] - x.values[i] != *by) return false;
  }
  return *by != 0;
}

BothWords HowBatchDiffers(const std::string& name, const StepTensor& x, const StepTensor& y) {
  if (x.shape != y.shape) {
    return Both("{} has the shape {} in A and {} in B", "{} 在 A 中形状为 {}，在 B 中为 {}", name, ShapeText(x.shape),
                ShapeText(y.shape));
  }
  double by = 0;
  if (SameRows(x, y)) return Both("{} holds the same samples in another order", "{} 的样本相同但顺序不同", name);
  for (const int shift : {1, -1}) {
    if (IsShifted(x, y, shift)) {
      return Both("{} of B is that of A shifted by {} position", "B 的 {} 相对 A 平移了 {} 个位置", name, shift);
    }
  }
  if (IsOffset(x, y, &by)) {
    return Both("each element of {} is {} more in B than in A", "B 的 {} 每个元素比 A 大 {}", name, by);
  }
  const size_t unequal = CountUnequal(x, y);
  size_t first = 0;
  while (first < x.values.size() && x.values[first] == y.values[first]) ++first;
  return Both("{} of {} elements of {} differ; the first, number {}, is {} in A and {} in B",
              "{2} 的 {1} 个元素中有 {0} 个不同；第一个（第 {3} 个）在 A 中为 {4}，在 B 中为 {5}", unequal,
              x.values.size(), name, first, PyRepr(x.values[first]), PyRepr(y.values[first]));
}

/// Where else B has the batch that A takes at `step`.
BothWords WhereElse(const RunFiles& a, const RunFiles& b, int step) {
  const StepFiles& own = a.batches.at(step);
  int looked = 0;
  std::vector<Message> unread;
  for (const auto& [other, files] : b.batches) {
    if (++looked > 200) break;
    if (other == step) continue;
    const std::vector<SavedPair> pairs = PairSaved(own, files, &unread);
    if (pairs.empty() || !std::all_of(pairs.begin(), pairs.end(), IsSame)) continue;
    return Both("; B takes this batch of A at step {}: the order differs", "；A 的这一批数据在 B 的第 {} 步：顺序不同",
                other + 1);
  }
  return {};
}

double MaxOf(const std::vector<double>& values) {
  double out = 0;
  for (const double v : values) out = std::max(out, std::abs(v));
  return out;
}

BothWords FoundWords(const std::string& en, const std::string& zh, const Message& text) {
  return {en + text.English(), zh + InLanguage(text, Language::kChinese)};
}

/// A term that only one side has wrong; what both do is how this optimizer is.
const TermFinding* FindOwnTerm(const OptimizerReplay& here, const OptimizerReplay& there) {
  const auto own = std::ranges::find_if(here.findings, [&](const TermFinding& finding) {
    return std::ranges::none_of(there.findings, [&](const TermFinding& other) { return other.term == finding.term; });
  });
  return own == here.findings.end() ? nullptr : &*own;
}

/// Whether what an optimizer did follows from its settings but for a term that is known. Where it does not, as in one
/// that is written by hand and keeps its numbers elsewhere, its settings say nothing.
bool FollowsSettings(const OptimizerReplay& here) {
  return std::ranges::none_of(here.findings, [](const TermFinding& finding) { return finding.term.empty(); });
}

/// What both were given comes from the steps before, not from how they were set.
bool IsGiven(const RecordDifference& d) {
  for (const std::string_view given : {"weight_before", "state_before", "gradient", "weight_after"}) {
    if (d.what == given) return true;
  }
  return false;
}

void TakeCautions(std::string_view side, const OptimizerReplay& one, OptimizerEvidence* out) {
  for (const Message& caution : one.cautions) {
    out->cautions.push_back({fmt::format("the optimizer of {}: {}", side, caution.English()),
                             fmt::format("{} 的优化器：{}", side, InLanguage(caution, Language::kChinese))});
  }
}

/// The gradients of one side are a multiple of the other's, before any step has moved the weights apart.
void TakeFactor(const ReplayedPair& pair, OptimizerEvidence* out) {
  const auto found = std::ranges::find_if(pair.differences, [](const auto& d) { return d.what == "gradient"; });
  if (found == pair.differences.end() || found->factor == 1 || out->factor != 1 || pair.a.steps.empty()) return;
  out->factor = found->factor;
  out->step = static_cast<int>(pair.a.steps.front().step);
}

/// What is set or computed otherwise in one optimizer; false without that.
bool TakeDifference(const ReplayedPair& pair, OptimizerEvidence* out) {
  const auto told = std::ranges::find_if(pair.differences, [](const RecordDifference& d) { return !IsGiven(d); });
  if (told != pair.differences.end() && FollowsSettings(pair.a) && FollowsSettings(*pair.b)) {
    out->term = told->what;
    out->how = FoundWords(fmt::format("the optimizers are set differently: {}: ", told->what),
                          fmt::format("两侧优化器的设置不同：{}：", told->what), told->text);
    return true;
  }
  const TermFinding* in_b = FindOwnTerm(*pair.b, pair.a);
  const TermFinding* in_a = in_b ? nullptr : FindOwnTerm(pair.a, *pair.b);
  const TermFinding* found = in_b ? in_b : in_a;
  if (!found) return false;
  out->term = found->term.empty() ? "unknown" : found->term;
  out->how = in_b ? FoundWords("the optimizer of B: ", "B 的优化器：", found->text)
                  : FoundWords("the optimizer of A: ", "A 的优化器：", found->text);
  return true;
}

}  // namespace

BatchEvidence CompareBatches(const RunFiles& a, const RunFiles& b) {
  BatchEvidence out;
  for (const auto& [step, files] : a.batches) {
    const auto found = b.batches.find(step);
    if (found == b.batches.end()) continue;
    const std::vector<SavedPair> pairs = PairSaved(files, found->second, &out.notes);
    if (pairs.empty()) continue;
    ++out.compared;
    for (const SavedPair& pair : pairs) {
      if (IsSame(pair)) continue;
      out.first = step;
      out.how = HowBatchDiffers(pair.name, pair.a, pair.b);
      const BothWords elsewhere = WhereElse(a, b, step);
      out.how.en += elsewhere.en;
      out.how.zh += elsewhere.zh;
      out.file_a = pair.file_a;
      out.file_b = pair.file_b;
      return out;
    }
  }
  return out;
}

StatusOr<WeightEvidence> CompareCheckpoints(const RunFiles& a, const RunFiles& b) {
  WeightEvidence out;
  for (const RunCheckpoint& left : a.checkpoints) {
    const auto right = std::find_if(b.checkpoints.begin(), b.checkpoints.end(), [&](const RunCheckpoint& other) {
      return left.step >= 0 ? other.step == left.step : other.step < 0 && BaseName(other.path) == BaseName(left.path);
    });
    const bool lone = a.checkpoints.size() == 1 && b.checkpoints.size() == 1;
    if (right == b.checkpoints.end() && !lone) continue;
    const RunCheckpoint& partner = right == b.checkpoints.end() ? b.checkpoints.front() : *right;
    if (lone && left.step != partner.step && left.step >= 0 && partner.step >= 0) {
      out.notes.push_back(Msg("{} and {} are of different steps and were not compared", left.path, partner.path));
      continue;
    }
    MSP_ASSIGN_OR_RETURN(Checkpoint x, OpenCheckpoint(left.path));
    MSP_ASSIGN_OR_RETURN(Checkpoint y, OpenCheckpoint(partner.path));
    MSP_ASSIGN_OR_RETURN(NameMap map, MatchWeights(&x, &y, nullptr));
    LeaveOutCounts(x, y, &map);
    MSP_ASSIGN_OR_RETURN(const std::vector<WeightDiff> diffs, CompareWeights(x, y, map.pairs));
    WeightEvidence::Pair pair{left.path,         partner.path,      left.step, diffs.size(), 0, 0,
                              map.only_a.size(), map.only_b.size(), {},        {},           {}};
    for (size_t i = 0; i < diffs.size(); ++i) {
      const WeightDiff& diff = diffs[i];
      if (diff.verdict == WeightVerdict::kRounded || diff.verdict == WeightVerdict::kRoundOff) ++pair.rounded;
      if (!IsDifferent(diff.verdict) || pair.different++ > 0) continue;
      pair.first = map.pairs[i].a.label();
      pair.first_b = map.pairs[i].b.label();
      pair.how = diff.verdict == WeightVerdict::kShape
                     ? Both("shapes {} and {}", "形状 {} 与 {}", ShapeText(map.pairs[i].a.shape),
                            ShapeText(map.pairs[i].b.shape))
                     : Both("norm {:.6g} in A, {:.6g} in B, largest difference {:.6g}, {} of {} elements equal",
                            "A 的范数 {:.6g}，B 的 {:.6g}，最大差 {:.6g}，{} / {} 个元素相同", diff.norm_a, diff.norm_b,
                            diff.max_abs, diff.equal, diff.count);
    }
    if (pair.first.empty() && !map.only_a.empty()) pair.first = map.only_a.front().label();
    if (pair.first_b.empty() && !map.only_b.empty()) pair.first_b = map.only_b.front().label();
    out.pairs.push_back(std::move(pair));
    if (out.pairs.size() >= 20) break;
  }
  std::stable_sort(out.pairs.begin(), out.pairs.end(), [](const auto& x, const auto& y) { return x.step < y.step; });
  return out;
}

GradientEvidence CompareGradients(const RunFiles& a, const RunFiles& b, bool half) {
  GradientEvidence out;
  const double bound = half ? 2e-2 : 1e-4;
  std::vector<Message> unread;
  for (const auto& [step, files] : a.gradients) {
    const auto found = b.gradients.find(step);
    if (found == b.gradients.end()) continue;
    const std::vector<SavedPair> pairs = PairSaved(files, found->second, &unread);
    if (pairs.empty()) continue;
    ++out.compared;
    double worst = bound;
    for (const SavedPair& pair : pairs) {
      const StepTensor &x = pair.a, &y = pair.b;
      if (x.shape != y.shape || x.values.empty()) continue;
      double square_a = 0, square_b = 0, apart = 0;
      for (size_t i = 0; i < x.values.size(); ++i) {
        square_a += x.values[i] * x.values[i];
        square_b += y.values[i] * y.values[i];
        apart = std::max(apart, std::abs(x.values[i] - y.values[i]));
      }
      const double size = std::max(MaxOf(x.values), MaxOf(y.values));
      if (size == 0 || apart / size <= worst) continue;
      worst = apart / size;
      out.first = step;
      out.file = pair.name;
      out.how = Both("{}: local norm {:.6g} in A, {:.6g} in B (largest difference {:.3g} of the largest gradient)",
                     "{}：local norm 在 A 中为 {:.6g}，在 B 中为 {:.6g}（最大差为最大梯度的 {:.3g}）", pair.name,
                     std::sqrt(square_a), std::sqrt(square_b), worst);
    }
    if (out.first >= 0) return out;
  }
  return out;
}

OptimizerEvidence CompareOptimizerRecords(const RunFiles& a, const RunFiles& b) {
  OptimizerEvidence out;
  if (a.optimizer_records.empty() || b.optimizer_records.empty()) return out;
  OptimizerReplayRequest request;
  request.a = a.optimizer_records.front();
  request.b = b.optimizer_records.front();
  const auto replay = ReplayOptimizerRecords(request);
  if (!replay.ok()) {
    out.notes.push_back(replay.status().text());
    return out;
  }
  out.seen = true;
  out.notes = replay->unread;
  out.follows = true;
  for (const ReplayedPair& pair : replay->pairs) {
    TakeCautions("A", pair.a, &out);
    TakeCautions("B", *pair.b, &out);
    TakeFactor(pair, &out);
    out.follows = out.follows && pair.a.clean() && pair.b->clean();
  }
  for (const ReplayedPair& pair : replay->pairs) {
    if (TakeDifference(pair, &out)) break;
  }
  return out;
}

}  // namespace msprobe
