#include "tensor/kernels/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "tensor/kernels/metrics_kernels.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

using metrics::PairPartial;
using metrics::PairReader;
using metrics::PairTable;
using metrics::Run;
using metrics::Work;

// Elements of a part: parts are summed apart and folded in order, so the result does not depend on the threads.
constexpr int64_t kPart = int64_t{1} << 18;
// So that the sums of parts take little memory, those of huge tensors are larger.
constexpr int64_t kMostParts = int64_t{1} << 16;
// Below this many elements a second thread costs more than it brings.
constexpr int64_t kThreadsFrom = int64_t{1} << 20;
// Norms up to this are zero for a cosine.
constexpr double kZeroNorm = 0x1p-52;

struct Part {
  PairPartial sums;
  bool identical = true;
};

void AddCounts(const NonFinite& from, NonFinite* to) {
  to->nan += from.nan;
  to->plus_inf += from.plus_inf;
  to->minus_inf += from.minus_inf;
}

void Fold(const Part& from, Part* to) {
  PairPartial& t = to->sums;
  const PairPartial& f = from.sums;
  t.target_squares += f.target_squares;
  t.golden_squares += f.golden_squares;
  t.products += f.products;
  t.diff_squares += f.diff_squares;
  t.max_abs = std::max(t.max_abs, f.max_abs);
  t.max_relative = std::max(t.max_relative, f.max_relative);
  t.below1 += f.below1;
  t.below5 += f.below5;
  t.equal += f.equal;
  t.differ += f.differ;
  AddCounts(f.target, &t.target);
  AddCounts(f.golden, &t.golden);
  to->identical &= from.identical;
}

/// Of the elements of a run, which may have been converted.
DType RunTypeOf(Work work, const metrics::SideLayout& side) {
  switch (work) {
    case Work::kFloats:
      return side.floats == metrics::kBFloat ? DType::kBFloat16
             : side.floats == metrics::kHalf ? DType::kFloat16
                                             : DType::kFloat32;
    case Work::kDoubles: return DType::kFloat64;
    case Work::kInts: return side.is_unsigned ? DType::kUInt64 : DType::kInt64;
    case Work::kComplex: break;
  }
  return DType::kComplex128;
}

/// Adds a run to the sums of each loop: these know doubles only.
void AddRun(const PairReader& pair, const Run& run, std::span<const PairLoop* const> loops, LoopSums* sums) {
  double target[metrics::kRun], golden[metrics::kRun];
  // A run is of a type that can be converted.
  (void)metrics::ToDoubles(RunTypeOf(pair.work(), pair.target()), run.target, run.elements, target);
  (void)metrics::ToDoubles(RunTypeOf(pair.work(), pair.golden()), run.golden, run.elements, golden);
  for (size_t i = 0; i < run.elements; ++i) {
    const bool finite = std::isfinite(target[i]) && std::isfinite(golden[i]);
    target[i] = finite ? target[i] : 0;
    golden[i] = finite ? golden[i] : 0;
  }
  for (size_t k = 0; k < loops.size(); ++k) loops[k]->add(target, golden, run.elements, &sums[k]);
}

using Loops = std::span<const PairLoop* const>;

/// `sums`: those of the loops of the first part, of the second, ...
__attribute__((noinline)) std::vector<LoopSums> FoldLoops(Loops loops, const std::vector<LoopSums>& sums,
                                                          int64_t repeats) {
  std::vector<LoopSums> out(loops.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const size_t loop = i % loops.size();
    loops[loop]->merge(sums[i], static_cast<double>(repeats), &out[loop]);
  }
  return out;
}

void Repeat(int64_t times, PairPartial* p) {
  if (times == 1) return;
  for (double* sum : {&p->target_squares, &p->golden_squares, &p->products, &p->diff_squares})
    *sum *= static_cast<double>(times);
  for (int64_t* n : {&p->below1, &p->below5, &p->equal, &p->differ}) *n *= times;
  for (NonFinite* side : {&p->target, &p->golden}) {
    for (int64_t* n : {&side->nan, &side->plus_inf, &side->minus_inf}) *n *= times;
  }
}

void RunKernel(const PairTable& table, const PairReader& pair, const Run& run, PairPartial* acc) {
  switch (pair.work()) {
    case Work::kFloats:
      if (run.same) return table.same_floats[pair.target().floats](run.target, run.elements, acc);
      return table.floats[pair.target().floats][pair.golden().floats](run.target, run.golden, run.elements, acc);
    case Work::kDoubles:
      if (run.same) return table.same_doubles(run.target, run.elements, acc);
      return table.doubles(run.target, run.golden, run.elements, acc);
    case Work::kInts: return metrics::CompareInts(table, pair, run, acc);
    case Work::kComplex:
      return metrics::ComparePairsOfComplex(static_cast<const double*>(run.target),
                                            static_cast<const double*>(run.golden), run.elements, acc);
  }
}

Part ComparePart(const PairTable& table, const PairReader& pair, int64_t begin, int64_t end) {
  Part part;
  pair.ForEachRun(begin, end, [&](const Run& run) {
    part.identical &= run.same;
    RunKernel(table, pair, run, &part.sums);
  });
  return part;
}

/// The same with loops, whose sums go to `sums`. Most comparisons have none and are not to pay for its buffers.
__attribute__((noinline)) Part ComparePart(const PairTable& table, const PairReader& pair, int64_t begin, int64_t end,
                                           Loops loops, LoopSums* sums) {
  Part part;
  pair.ForEachRun(begin, end, [&](const Run& run) {
    part.identical &= run.same;
    RunKernel(table, pair, run, &part.sums);
    AddRun(pair, run, loops, sums);
  });
  return part;
}

int64_t PartOf(int64_t count) {
  int64_t part = kPart;
  while (count / part >= kMostParts) part *= 2;
  return part;
}

/// All parts, in order; none after an interrupt. `sums` as FoldLoops() takes them.
std::vector<Part> CompareParts(const PairReader& pair, int64_t part, const MetricsOptions& options,
                               std::vector<LoopSums>* sums) {
  const PairTable& table = metrics::ActivePairs();
  const int64_t count = pair.count();
  std::vector<Part> parts(static_cast<size_t>((count + part - 1) / part));
  std::vector<char> done(parts.size(), 0);
  const Loops loops = options.loops;
  if (!loops.empty()) sums->resize(parts.size() * loops.size());
  const auto make = [&](size_t i) {
    const int64_t begin = static_cast<int64_t>(i) * part, end = std::min(begin + part, count);
    if (loops.empty()) {
      parts[i] = ComparePart(table, pair, begin, end);
    } else {
      parts[i] = ComparePart(table, pair, begin, end, loops, &(*sums)[i * loops.size()]);
    }
    done[i] = 1;
    if (options.release) pair.Release(begin, end, options.release);
    return OkStatus();
  };
  // Whatever stops the loop early but an interrupt, what it left is done below: a metric is all or nothing.
  if (options.threads && count >= kThreadsFrom) (void)ParallelFor(parts.size(), make);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (InterruptRequested()) return {};
    if (!done[i]) (void)make(i);
  }
  return parts;
}

bool Before(const WorstElement& a, const WorstElement& b) {
  return a.abs_err != b.abs_err ? a.abs_err > b.abs_err : a.index < b.index;
}

/// The worst elements are in the parts with the largest errors: as many parts as elements are wanted.
std::vector<WorstElement> FindWorst(const PairReader& pair, int64_t part, const std::vector<Part>& parts,
                                    size_t wanted) {
  struct Candidate {
    double most;
    size_t part;
  };
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < parts.size(); ++i) {
    const PairPartial& p = parts[i].sums;
    const double most = p.differ > 0 ? std::numeric_limits<double>::infinity() : p.max_abs;
    if (most > 0) candidates.push_back({most, i});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.most > b.most; });
  if (candidates.size() > wanted) candidates.resize(wanted);
  std::vector<WorstElement> worst;
  for (const Candidate& c : candidates) {
    int64_t at = static_cast<int64_t>(c.part) * part;
    const int64_t end = std::min(at + part, pair.count());
    pair.ForEachRun(at, end, [&](const Run& run) {
      for (size_t i = 0; !run.same && i < run.elements; ++i) {
        WorstElement e = metrics::ElementOf(pair, run, i);
        if (!(e.abs_err > 0)) continue;
        e.index = at + static_cast<int64_t>(i);
        if (worst.size() == wanted && !Before(e, worst.back())) continue;
        worst.insert(std::upper_bound(worst.begin(), worst.end(), e, Before), e);
        if (worst.size() > wanted) worst.pop_back();
      }
      at += static_cast<int64_t>(run.elements);
    });
  }
  for (WorstElement& e : worst) e.index = pair.LogicalIndex(e.index);
  return worst;
}

/// Roots of the sums of squares, and the cosine where there is one.
struct Norms {
  double target = 0, golden = 0, diff = 0, cosine = 0;
};

/// Where sums left the range of double, the elements are summed again in a type that has room for them.
Norms WideNorms(const PairReader& pair) {
  const size_t parts = pair.work() == Work::kComplex ? 2 : 1;
  long double target = 0, golden = 0, products = 0, diffs = 0;
  pair.ForEachRun(0, pair.count(), [&](const Run& run) {
    const auto *t = static_cast<const double*>(run.target), *g = static_cast<const double*>(run.golden);
    for (size_t i = 0; i < run.elements * parts; i += parts) {
      bool finite = true;
      for (size_t k = i; k < i + parts; ++k) finite = finite && std::isfinite(t[k]) && std::isfinite(g[k]);
      for (size_t k = i; finite && k < i + parts; ++k) {
        const long double x = t[k], y = g[k];
        target += x * x;
        golden += y * y;
        products += x * y;
        diffs += (x - y) * (x - y);
      }
    }
  });
  const long double t = sqrtl(target), g = sqrtl(golden), times = sqrtl(static_cast<long double>(pair.repeats()));
  return {static_cast<double>(t * times), static_cast<double>(g * times), static_cast<double>(sqrtl(diffs) * times),
          static_cast<double>(products / t / g)};
}

Norms NormsOf(const PairReader& pair, const PairPartial& p) {
  const bool doubles = pair.work() == Work::kDoubles || pair.work() == Work::kComplex;
  const double total = p.target_squares + p.golden_squares + p.diff_squares + std::fabs(p.products);
  constexpr double kLeastSquares = 1e-280;  // below, squares may have become zero
  const bool lost = !std::isfinite(total) || (p.max_abs > 0 && p.diff_squares < kLeastSquares);
  if (doubles && lost) return WideNorms(pair);
  const double t = std::sqrt(p.target_squares), g = std::sqrt(p.golden_squares);
  return {t, g, std::sqrt(p.diff_squares), p.products / (t * g)};
}

void SetCosine(const Norms& norms, TensorMetrics* out) {
  const bool target = norms.target > kZeroNorm, golden = norms.golden > kZeroNorm;
  out->cosine_state = CosineState::kNumber;
  if (out->count == 1) {
    out->cosine_state = CosineState::kLengthOne;
  } else if (!target && !golden) {
    out->cosine_state = CosineState::kBothZero;
    out->cosine = 1;
  } else if (!target || !golden) {
    out->cosine_state = target ? CosineState::kGoldenZero : CosineState::kTargetZero;
  } else {
    out->cosine = out->identical ? 1 : norms.cosine;
    if (std::isnan(out->cosine)) out->cosine_state = CosineState::kNan;
  }
}

void Finish(const PairReader& pair, const Part& total, TensorMetrics* out) {
  const PairPartial& p = total.sums;
  const double n = static_cast<double>(out->count);
  const Norms norms = NormsOf(pair, p);
  out->identical = total.identical;
  SetCosine(norms, out);
  out->euc_dist = norms.diff;
  out->max_abs_err = p.max_abs;
  out->max_relative_err = p.max_relative;
  out->below_thousandth = p.below1;
  out->below_five_thousandths = p.below5;
  out->equal = p.equal;
  out->differ = p.differ;
  out->target = p.target;
  out->golden = p.golden;
  out->rms_diff = norms.diff / std::sqrt(n);
  out->rms_target = norms.target / std::sqrt(n);
  out->rms_golden = norms.golden / std::sqrt(n);
}

}  // namespace

TensorMetrics CompareTensors(const TensorView& target, const TensorView& golden, const MetricsOptions& options) {
  TensorMetrics out;
  PairReader pair;
  out.state = pair.Init(target, golden);
  if (out.state != PairState::kCompared) return out;
  out.count = pair.count() * pair.repeats();
  out.scalar = out.count == 1;
  const int64_t part = PartOf(pair.count());
  std::vector<LoopSums> sums;
  const std::vector<Part> parts = CompareParts(pair, part, options, &sums);
  if (parts.empty()) {
    out.state = PairState::kNoNumbers;
    return out;
  }
  Part total;
  for (const Part& p : parts) Fold(p, &total);
  Repeat(pair.repeats(), &total.sums);
  if (!sums.empty()) out.loops = FoldLoops(options.loops, sums, pair.repeats());
  Finish(pair, total, &out);
  if (out.scalar) out.max_abs_err = metrics::RoundedDifference(pair, out.max_abs_err);
  const int wanted = std::clamp(options.worst, 0, kMostWorst);
  if (wanted > 0 && !out.identical) out.worst = FindWorst(pair, part, parts, static_cast<size_t>(wanted));
  return out;
}

std::vector<int64_t> MultiIndex(const TensorView& t, int64_t index) {
  std::vector<int64_t> place(static_cast<size_t>(std::max(t.ndim, 0)));
  for (size_t d = place.size(); d-- > 0;) {
    const int64_t length = std::max<int64_t>(t.shape[d], 1);
    place[d] = index % length;
    index /= length;
  }
  return place;
}

const char* MetricsIsa() { return metrics::ActivePairs().name; }

bool SetMetricsIsa(const char* name) { return metrics::UsePairs(name); }

}  // namespace msprobe
