#include "diagnose/anatomy/by_others.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/text.h"
#include "compare/values/item_views.h"
#include "diagnose/anatomy/by_statistics.h"
#include "dump/reader.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

std::string Bare(std::string_view suffix) { return std::string(suffix.substr(suffix.starts_with('.') ? 1 : 0)); }

/// The op `name` of another dump.
std::unique_ptr<OpItems> OpOf(const std::string& path, std::string_view name) {
  const StatusOr<DumpFile> dump = DumpFile::Open(path);
  if (!dump.ok()) return nullptr;
  const auto op = dump->FindOp(name);
  if (!op) return nullptr;
  const OpSpan span = dump->ops()[*op];
  return OpItems::Read({std::string(name), std::string(dump->file().text().substr(span.offset, span.length))});
}

std::string StepName(const FilePair& step) {
  return step.step >= 0 ? "step " + std::to_string(step.step) : "an earlier step";
}

class Stale {
 public:
  explicit Stale(const ItemAtHand& at) : at_(at) {}

  Anatomy Explain() {
    for (const FilePair& step : at_.context.earlier) {
      const std::string name = StepName(step);
      const std::pair<const std::string&, const OpText&> sides[] = {{step.target, at_.evidence.target},
                                                                    {step.golden, at_.evidence.golden}};
      for (const auto& [path, op] : sides) {
        const std::unique_ptr<OpItems> items = OpOf(path, op.name);
        const ItemView* item = items ? items->Find(at_.target.suffix) : nullptr;
        if (item && Is(*item, path)) return Told(name);
      }
    }
    // Behind an op of one run the calls are counted otherwise: one with these statistics may be the very same.
    if (!at_.values && !at_.evidence.lone.name.empty()) return {};
    for (const OpText& call : at_.evidence.calls) {
      if (call.name == at_.evidence.target.name) continue;  // the runs count their calls otherwise: it is the same one
      const std::unique_ptr<OpItems> items = OpItems::Read(call);
      const ItemView* item = items ? items->Find(at_.golden.suffix) : nullptr;
      if (item && Is(*item, at_.evidence.files.golden)) return Told(call.name);
    }
    return {};
  }

 private:
  Anatomy Told(const std::string& source) {
    out_.kind = AnatomyKind::kStale;
    out_.source = source;
    out_.statistics = at_.values == nullptr;
    return out_;
  }

  /// Whether the target's item is that one, and that one is not the golden item.
  bool Is(const ItemView& other, const std::string& dump) {
    if (!other.tensor || other.shape != at_.target.shape) return false;
    if (!at_.values) {
      return TellingStatistics(other) && SameStatistics(at_.target, other) && !SameStatistics(at_.golden, other);
    }
    if (!other.HasData()) return false;
    const ItemValues values = ValuesOf(TensorFolder(dump), other.data_name, other.dtype, false);
    if (!values.elements || values.elements->shape() != at_.values->shape()) return false;
    Residual left(*at_.values);
    const ElementsOf& elements = *values.elements;
    for (const int64_t i : at_.values->differing()) {
      if (!left.Add(at_.values->t(i), elements[i])) return false;
    }
    // Small integers are alike everywhere.
    const bool enough = left.Tells() && (at_.values->rounding().unit > 0 || left.count() >= 8);
    for (int64_t k = 0; enough && k < at_.values->looked(); ++k) {
      const int64_t i = at_.values->Place(k);
      if (!left.Add(at_.values->t(i), elements[i])) return false;
    }
    out_.residual = left.units();
    return enough;
  }

  const ItemAtHand& at_;
  Anatomy out_;
};

/// The sum of the target's values over all ranks, at the places that are looked at; empty when one is missing.
std::vector<double> SumOverRanks(const ItemAtHand& at) {
  std::vector<double> sum(static_cast<size_t>(at.values->looked()), 0);
  for (const FilePair& rank : at.context.ranks) {
    const ItemValues values = ValuesOf(TensorFolder(rank.target), at.target.data_name, at.target.dtype, false);
    if (!values.elements || values.elements->shape() != at.values->shape()) return {};
    for (size_t k = 0; k < sum.size(); ++k) sum[k] += (*values.elements)[at.values->Place(static_cast<int64_t>(k))];
  }
  return sum;
}

Anatomy MissingOfRanks(const ItemAtHand& at) {
  Anatomy out;
  constexpr size_t kMostRanks = 64;
  const size_t ranks = at.context.ranks.size();
  if (ranks < 2 || ranks > kMostRanks || at.values->rounding().unit == 0) return out;
  const std::vector<double> sum = SumOverRanks(at);
  if (sum.empty()) return out;
  for (const bool mean : {false, true}) {
    Residual left(*at.values);
    bool agrees = true;
    for (size_t k = 0; k < sum.size() && agrees; ++k) {
      const int64_t i = at.values->Place(static_cast<int64_t>(k));
      agrees = left.Add(mean ? sum[k] / static_cast<double>(ranks) : sum[k], at.values->g(i));
    }
    if (!agrees || !left.Tells()) continue;
    out.kind = AnatomyKind::kPartial;
    out.source = std::string(mean ? "mean" : "sum") + " over " + std::to_string(ranks) + " ranks";
    out.residual = left.units();
    return out;
  }
  return out;
}

/// `added` of some item makes the golden value of the target's, or the other way round.
Anatomy MissingItem(const ItemAtHand& at, const OpItems& op, const OpText& text, bool in_golden) {
  const TensorFolder folder(in_golden ? at.evidence.files.golden : at.evidence.files.target);
  for (const ItemView& item : op.items()) {
    if (!item.tensor || !item.HasData() || item.shape == "[]") continue;
    const ItemValues values = ValuesOf(folder, item.data_name, item.dtype, false);
    if (!values.elements) continue;
    const ElementsOf& x = *values.elements;
    const std::vector<int64_t>& shape = at.values->shape();
    const bool fits =
        x.shape().size() <= shape.size() && std::equal(x.shape().rbegin(), x.shape().rend(), shape.rbegin());
    if (!fits || RoundingOfDType(x.dtype()).unit == 0) continue;
    Residual left(*at.values);
    double size = 0;
    bool agrees = true;
    for (int64_t k = 0; k < at.values->looked() && agrees; ++k) {
      const int64_t i = at.values->Place(k);
      const double added = x[i % x.size()];
      size = std::max(size, std::fabs(added));
      agrees = left.Add(at.values->t(i) + added, at.values->g(i), std::fabs(added));
    }
    if (!agrees || !left.Tells() || size < 100 * at.values->rounding().tolerance * at.values->rms()) continue;
    Anatomy out;
    out.kind = AnatomyKind::kPartial;
    out.source = Bare(item.suffix) + " of " + text.name;
    out.residual = left.units();
    return out;
  }
  return {};
}

/// Places of tokens that are padding: 0 in a mask; a run at an end that repeats one id.
std::vector<bool> PaddingOf(const ElementsOf& tokens, bool mask) {
  const int64_t rows = tokens.shape()[0], length = tokens.shape()[1];
  std::vector<bool> out(static_cast<size_t>(rows * length), false);
  for (int64_t r = 0; r < rows; ++r) {
    const auto at = [&](int64_t k) { return tokens[r * length + k]; };
    const auto mark = [&](int64_t k) { out[static_cast<size_t>(r * length + k)] = true; };
    if (mask) {
      for (int64_t k = 0; k < length; ++k) {
        if (at(k) == 0) mark(k);
      }
      continue;
    }
    int64_t first = length - 1, last = 0;
    while (first > 0 && at(first - 1) == at(length - 1)) --first;
    while (last + 1 < length && at(last + 1) == at(0)) ++last;
    for (int64_t k = first; first < length - 1 && k < length; ++k) mark(k);
    for (int64_t k = 0; last > 0 && k <= last; ++k) mark(k);
  }
  return out;
}

bool IsMask(const ElementsOf& tokens) {
  bool zero = false, one = false;
  for (int64_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] != 0 && tokens[i] != 1) return false;
    (tokens[i] == 0 ? zero : one) = true;
  }
  return zero && one;
}

/// The token that an element belongs to; nothing where the shape holds none.
std::function<int64_t(int64_t)> TokenOf(const std::vector<int64_t>& shape, int64_t rows, int64_t length) {
  int64_t all = 1;
  for (const int64_t n : shape) all *= n;
  if (shape.size() >= 2 && shape[0] == rows && shape[1] == length) {
    return [inner = all / (rows * length)](int64_t i) { return i / inner; };
  }
  if (shape.size() == 4 && shape[0] == rows && shape[2] == length) {
    return [=, heads = shape[1], width = shape[3]](int64_t i) {
      return i / (heads * length * width) * length + i / width % length;
    };
  }
  if (shape.size() >= 2 && shape[0] == length && shape[1] == rows && rows != length) {
    return [=, inner = all / (rows * length)](int64_t i) { return i / inner % rows * length + i / (inner * rows); };
  }
  if (!shape.empty() && shape[0] == rows * length) {
    return [inner = all / (rows * length)](int64_t i) { return i / inner; };
  }
  return nullptr;
}

/// Of the gradient of a parameter the last in the step, which is what stays; of all else the op itself.
std::string LastOf(const DumpFile& step, const std::string& op) {
  constexpr int kMostCalls = 4096;
  std::string last = op;
  if (ParseOpName(op).direction != OpDirection::kParameterGrad) return last;
  const std::string base = op.substr(0, op.rfind('.') + 1);
  for (int n = 0; n < kMostCalls; ++n) {
    std::string next = base + std::to_string(n);
    if (!step.FindOp(next)) break;
    last = std::move(next);
  }
  return last;
}

/// But for what rounding leaves.
bool IsSame(const ItemView& a, const ItemView& b) {
  constexpr double kRounds = 1e-5;
  const double norm = b.stats[kNorm].AsDouble();
  const double means = std::fabs(a.stats[kMean].AsDouble() - b.stats[kMean].AsDouble());
  return std::fabs(a.stats[kNorm].AsDouble() - norm) <= kRounds * norm && means <= kRounds * norm;
}

/// Whether it may be the factor of clipping.
bool MayClip(double factor) {
  constexpr double kLeast = 1e-4, kMost = 0.999;
  return factor > kLeast && factor < kMost;
}

/// By which the earlier value adds up to what the target has more; 0 where that is no factor of clipping.
double FactorOf(const ItemView& target, const ItemView& golden, const ItemView& earlier) {
  if (MeansAddUp(target, golden, earlier)) return 1;
  const auto mean = [](const ItemView& item) { return item.stats[kMean].AsDouble(); };
  const double factor = (mean(target) - mean(golden)) / mean(earlier);
  return MayClip(factor) ? factor : 0;
}

/// The factor by which the same item of the other calls of the function, or all gradients of parameters, add up with
/// those of the earlier step; 0 where they do not. The mean of one may be zero, and then tells nothing.
double OthersAddUp(const ItemAtHand& at, const FilePair& step) {
  constexpr size_t kMostCalls = 256, kEnough = 3;
  double factor = 0;
  const StatusOr<DumpFile> target = DumpFile::Open(at.evidence.files.target);
  const StatusOr<DumpFile> golden = DumpFile::Open(at.evidence.files.golden);
  const StatusOr<DumpFile> earlier = DumpFile::Open(step.target);
  if (!target.ok() || !golden.ok() || !earlier.ok()) return 0;
  const NameParts own = ParseOpName(at.evidence.target.name);
  const bool gradients = own.direction == OpDirection::kParameterGrad;
  // Of a list its other tensors are the likes.
  constexpr std::string_view kList = ".input.0.";
  const bool list = at.target.suffix.starts_with(kList);
  ItemViews t(*target, CompareMode::kStatistics), g(*golden, CompareMode::kStatistics),
      e(*earlier, CompareMode::kStatistics);
  size_t seen = 0, telling = 0;
  bool left = false;  // the backward pass: what follows it may be of another loss
  const size_t begin = gradients ? target->FindOp(at.evidence.target.name).value_or(0) : 0;
  for (size_t i = begin; i < target->ops().size() && seen < kMostCalls; ++i) {
    const std::string_view name = target->ops().NameAt(i);
    const NameParts parts = ParseOpName(name);
    left = left || (gradients && parts.direction == OpDirection::kForward);
    if (parts.direction != own.direction || (!gradients && parts.base != own.base)) continue;
    const auto in_golden = golden->FindOp(name), before = earlier->FindOp(LastOf(*earlier, std::string(name)));
    if (!in_golden || !before || !t.Read(i).ok() || !g.Read(*in_golden).ok() || !e.Read(*before).ok()) continue;
    ++seen;
    for (const ItemView& a : t.items()) {
      const bool like = gradients || a.suffix == at.target.suffix || (list && a.suffix.starts_with(kList));
      if (!a.tensor || !like) continue;
      const auto b = std::ranges::find(g.items(), a.suffix, &ItemView::suffix);
      const auto c = std::ranges::find(e.items(), a.suffix, &ItemView::suffix);
      if (b == g.items().end() || c == e.items().end() || a.shape != c->shape || !MeanTells(a, *b, *c)) continue;
      if (IsSame(a, *b)) continue;  // of another optimizer, which clears its own
      if (factor == 0) {
        factor = FactorOf(a, *b, *c);
        if (factor == 0) return 0;
        telling += factor == 1 ? 1 : 0;  // the factor of one tensor proves nothing by itself
      } else if (MeansAddUp(a, *b, *c, factor)) {
        ++telling;
      } else {
        return left && telling >= kEnough ? factor : 0;
      }
    }
  }
  return telling >= kEnough ? factor : 0;
}

/// What leaves least of the earlier values when so many times them are taken off.
double FactorOfEarlier(const ValuePair& values, const ElementsOf& earlier) {
  double with = 0, of = 0;
  for (int64_t k = 0; k < values.looked(); ++k) {
    const int64_t i = values.Place(k);
    with += (values.t(i) - values.g(i)) * earlier[i];
    of += earlier[i] * earlier[i];
  }
  return of > 0 ? with / of : 0;
}

}  // namespace

Anatomy ExplainStale(const ItemAtHand& at) { return Stale(at).Explain(); }

Anatomy ExplainAccumulated(const ItemAtHand& at) {
  for (const FilePair& step : at.context.earlier) {
    const StatusOr<DumpFile> earlier = DumpFile::Open(step.target);
    if (!earlier.ok()) continue;
    const std::unique_ptr<OpItems> items = OpOf(step.target, LastOf(*earlier, at.evidence.target.name));
    const ItemView* item = items ? items->Find(at.target.suffix) : nullptr;
    if (!item || !item->tensor || item->shape != at.target.shape) continue;
    Anatomy out;
    out.kind = AnatomyKind::kAccumulated;
    out.source = StepName(step);
    out.statistics = at.values == nullptr;
    if (out.statistics) {
      out.number = OthersAddUp(at, step);
      if (out.number > 0) return out;
      continue;
    }
    const ItemValues values = ValuesOf(TensorFolder(step.target), item->data_name, item->dtype, false);
    if (!values.elements || values.elements->shape() != at.values->shape()) continue;
    for (const double factor : {1.0, FactorOfEarlier(*at.values, *values.elements)}) {
      if (factor != 1 && !MayClip(factor)) continue;
      Residual left(*at.values);
      bool agrees = true;
      for (int64_t k = 0; k < at.values->looked() && agrees; ++k) {
        const int64_t i = at.values->Place(k);
        const double added = factor * (*values.elements)[i];
        agrees = left.Add(at.values->t(i), at.values->g(i) + added, std::fabs(added));
      }
      out.residual = left.units();
      out.number = factor;
      if (agrees && left.Tells()) return out;
    }
  }
  return {};
}

Anatomy ExplainPartial(const ItemAtHand& at, const OpItems& target, const OpItems& golden) {
  if (Anatomy out = MissingOfRanks(at); out.found()) return out;
  const OriginEvidence& e = at.evidence;
  if (const std::unique_ptr<OpItems> lone = OpItems::Read(e.lone)) {
    if (Anatomy out = MissingItem(at, *lone, e.lone, e.lone_in_golden); out.found()) return out;
  }
  if (Anatomy out = MissingItem(at, golden, e.golden, true); out.found()) return out;
  return MissingItem(at, target, e.target, false);
}

Anatomy ExplainPadding(const ItemAtHand& at) {
  const TensorFolder folder(at.evidence.files.target);
  for (const TokenItem& token : at.evidence.tokens) {
    const int64_t rows = token.shape[0], length = token.shape[1];
    if (rows < 1 || length < 2 || rows > ElementsOf::kMostHeld / length) continue;
    const std::function<int64_t(int64_t)> token_of = TokenOf(at.values->shape(), rows, length);
    if (!token_of) continue;
    const ItemValues values = ValuesOf(folder, token.data_name, token.dtype);
    if (!values.elements || values.elements->shape() != token.shape) continue;
    const std::vector<bool> padding = PaddingOf(*values.elements, IsMask(*values.elements));
    const auto in_padding = [&](int64_t i) { return padding[static_cast<size_t>(token_of(i))]; };
    const auto& differing = at.values->differing();
    const bool some = std::find(padding.begin(), padding.end(), false) != padding.end();
    if (!some || !std::all_of(differing.begin(), differing.end(), in_padding)) continue;
    Anatomy out;
    out.kind = AnatomyKind::kPadding;
    out.differing = static_cast<int64_t>(differing.size());
    return out;
  }
  return {};
}

}  // namespace msprobe
