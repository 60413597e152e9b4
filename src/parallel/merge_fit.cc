#include "parallel/merge_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "compare/round_off/no_value.h"
#include "compare/round_off/ruler.h"
#include "ops/collective.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"
#include "parallel/parts_of_whole.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {
namespace {

constexpr double kAboutAll = 1.1;  // the last token may have no place in a list
constexpr double kRoom = 1e-3;     // of a mean of zeros and ones, against one element

StatNumber NumberOf(const StatValue& v) {
  StatNumber out;
  if (v.IsNumber()) out.kind = StatNumber::Kind::kDouble, out.d = v.AsDouble();
  return out;
}

double ElementsOf(const ItemView& item) {
  if (!item.dims || !item.dims->IsArray()) return -1;
  double out = 1;
  for (const JsonValue& size : item.dims->Items()) out *= size.IsNumber() ? size.Number() : 1;
  return out;
}

void Set(const TensorStats& s, ItemView* item) {
  const StatNumber* numbers[] = {&s.max, &s.min, &s.mean, &s.norm};
  for (size_t k = 0; k < kStatCount; ++k) {
    const StatNumber& n = *numbers[k];
    if (!n.given() || !item->stats[k].IsNumber()) continue;
    item->stats[k] = n.kind == StatNumber::Kind::kInt ? StatValue::Of(n.i) : StatValue::Of(n.d);
  }
}

TensorStats Divided(TensorStats s, double by) {
  for (StatNumber* n : {&s.max, &s.min, &s.mean, &s.norm}) {
    if (!n->given()) continue;
    const double value = n->value() / by;
    n->kind = StatNumber::Kind::kDouble, n->d = value;
  }
  return s;
}

/// Sums in float32 of what halves gave carry the rounding of halves; parameters and integers do not.
double ToleranceOf(const OpDiff& op, const ItemView& item) {
  const double own = DTypeTolerance(*op.thresholds, item.dtype);
  return own == 0 || item.state == ItemState::kParameter ? own : OpTolerance(op);
}

/// What a module gives has been summed over ranks. Gradients of its parameters may be summed later, also of one that it
/// returned (a bias that the caller adds), which is a vector; what experts give is, when their tokens go back.
bool IsSummedLater(const OpDiff& op, const ItemView& item) {
  const bool vector = item.shape.size() > 2 && !Contains(item.shape, ",");
  return !IsModuleName(op.op) || Contains(op.op, ".experts.") || item.state == ItemState::kParameterGrad ||
         (vector && ParseOpName(op.op).direction == OpDirection::kBackward);
}

/// One item of the node against its partner; `other` is not merged or its ranks agree.
class Fitter {
 public:
  /// `of_pieces`: the node was given pieces of a tensor.
  Fitter(const OpDiff& op, bool of_pieces, const TensorStats& whole, ItemView* item, MergedLeaf* leaf,
         MergeNotes* notes)
      : module_(IsModuleName(op.op)),
        summed_later_(IsSummedLater(op, *item)),
        of_pieces_(of_pieces),
        tolerance_(ToleranceOf(op, *item)),
        whole_(whole),
        item_(*item),
        leaf_(*leaf),
        notes_(*notes) {}

  void Run() {
    const std::vector<TensorStats> parts = OneOfEachGroup();
    double sum = 0;
    bool even = true;  // each part is as large as the whole
    for (const TensorStats& p : parts) {
      if (p.elements < 0) return;
      sum += p.elements;
      even = even && p.elements == whole_.elements;
    }
    if (leaf_.alone && FindAmongRanks()) return;
    if (parts.size() < 2) return OtherSize();
    if (AreCountedApart(parts)) return Own("each rank counts its own tokens");
    if (sum == whole_.elements && !even) return Pieces(parts);
    if (even) return SameSize(parts);
    Clusters(parts);
  }

 private:
  /// The parts; one for several where each tensor parallel group has copies.
  std::vector<TensorStats> OneOfEachGroup() const {
    const auto cells = leaf_.parts.begin() + static_cast<long>(leaf_.cells);
    std::vector<TensorStats> parts(leaf_.parts.begin(), cells), firsts;
    for (size_t i = 0; i < parts.size(); i += leaf_.group) {
      firsts.push_back(parts[i]);
      for (size_t k = i; k < std::min(i + leaf_.group, parts.size()); ++k) {
        if (!SameStats(parts[k], parts[i])) return parts;
      }
    }
    const bool sums = firsts.size() > 1 && std::all_of(firsts.begin(), firsts.end(), [&](const TensorStats& p) {
                        return p.elements == whole_.elements;
                      });
    return sums ? firsts : parts;
  }

  /// Calls between modules belong to their rank; which rank's the partner is, is not known.
  bool FindAmongRanks() {
    if (leaf_.parts[0].elements == whole_.elements && NearStats(leaf_.parts[0], whole_, tolerance_)) return true;
    for (const TensorStats& p : leaf_.parts) {
      if (p.elements != whole_.elements || !NearStats(p, whole_, tolerance_)) continue;
      item_.other_part = true;
      return true;
    }
    return false;
  }

  void OtherSize() {
    if (!leaf_.parts.empty() && leaf_.parts[0].elements != whole_.elements) item_.other_part = true;
  }

  void PutTogether(const std::vector<TensorStats>& parts) {
    const TensorStats merged = MergeParts(parts, item_.dtype, leaf_.suffix, nullptr);
    // Integers have no tolerance, but roots of sums are rounded.
    Set(tolerance_ == 0 && SameStats(merged, whole_) ? whole_ : merged, &item_);
  }

  void Pieces(const std::vector<TensorStats>& parts) {
    if (!leaf_.alone) PutTogether(parts);
    if (!leaf_.alone && !leaf_.split) Note("pieces of one tensor, as the size on the other side tells");
    leaf_.split = true;
  }

  void SameSize(const std::vector<TensorStats>& parts) {
    const bool copies = std::all_of(parts.begin(), parts.end(), [&](const auto& p) { return SameStats(parts[0], p); });
    leaf_.split = false;
    if (!module_ && AreSharesOfOnes(parts)) {
      Set(parts[0], &item_);
      return Own("zeros and ones, which say what is of this rank");
    }
    const bool any =
        std::any_of(parts.begin(), parts.end(), [&](const auto& p) { return NearStats(p, whole_, tolerance_); });
    // Sums of pieces that are alike, as of masks, are equal.
    const bool of_like_pieces = of_pieces_ && IsResult(item_.state) && !any && tolerance_ > 0;
    if (copies && of_like_pieces && summed_later_ && AddUpTo(parts, whole_, tolerance_))
      return Own("sums of pieces, which add up to the other side's mean");
    if (copies) return leaf_.alone ? void() : Set(parts[0], &item_);
    if (tolerance_ == 0 && (!module_ || item_.state == ItemState::kOutput)) return Own("each rank has its own");
    if (!any && summed_later_ && tolerance_ > 0 && AddUpTo(parts, whole_, tolerance_))
      return Own("summands, which add up to the other side's mean");
    if (!any && summed_later_ && tolerance_ > 0 && AreMeansOfRanks(parts))
      return Own("means over the tokens of each rank");
    if (leaf_.alone) return;
    if (of_pieces_ && !module_ && IsResult(item_.state)) return Own("made of a piece on each rank");
    // Copies that are none: the one that is furthest away counts.
    const auto error = [&](const TensorStats& p) {
      const double e = std::fabs(p.norm.value() - whole_.norm.value()) + std::fabs(p.max.value() - whole_.max.value()) +
                       std::fabs(p.min.value() - whole_.min.value());
      return std::isnan(e) ? HUGE_VAL : e;
    };
    Set(*std::max_element(parts.begin(), parts.end(),
                          [&](const auto& a, const auto& b) { return error(a) < error(b); }),
        &item_);
    Note("copies, as the size on the other side tells, which differ");
  }

  /// Places of tokens, where each rank has a piece of them and counts from 0: none is higher than its share of the
  /// whole allows.
  bool AreCountedApart(const std::vector<TensorStats>& parts) const {
    if (tolerance_ > 0 || module_ || !IsComplete(whole_)) return false;
    double highest = 0, pieces = HUGE_VAL;
    for (const TensorStats& p : parts) {
      if (!IsComplete(p) || p.elements <= 0) return false;
      highest = std::max(highest, p.max.value());
      pieces = std::min(pieces, std::round(whole_.elements / p.elements));
    }
    return pieces >= 2 && (highest + 1) * pieces <= (whole_.max.value() + 1) * kAboutAll;
  }

  /// The loss is one number, of the tokens of each rank or of all.
  bool AreMeansOfRanks(const std::vector<TensorStats>& parts) const {
    if (whole_.elements != 1) return false;
    double sum = 0;
    for (const TensorStats& p : parts) sum += p.mean.value();
    const double mean = sum / static_cast<double>(parts.size());
    return std::fabs(mean - whole_.mean.value()) <= SumTolerance(tolerance_) * std::fabs(mean);
  }

  /// Each element is of one rank, as tokens are of its part of the vocabulary: it is 1 there alone, or everywhere else.
  bool AreSharesOfOnes(const std::vector<TensorStats>& parts) const {
    if (!IsZerosAndOnes(whole_) || !std::all_of(parts.begin(), parts.end(), IsZerosAndOnes)) return false;
    const auto has_both = [](const TensorStats& s) { return s.min.value() < s.max.value(); };
    // Weights of a norm are all 1; of what is outside of each rank's part one rank has nothing.
    if (!has_both(whole_) && !std::any_of(parts.begin(), parts.end(), has_both)) return false;
    double sum = 0;
    for (const TensorStats& p : parts) sum += p.mean.value();
    const double others = sum - static_cast<double>(parts.size()) + 1;
    const auto is_whole = [&](double mean) { return std::fabs(mean - whole_.mean.value()) <= kRoom / whole_.elements; };
    return is_whole(sum) || is_whole(others);
  }

  /// Pieces of which several ranks have the same.
  void Clusters(const std::vector<TensorStats>& parts) {
    std::vector<TensorStats> pieces;
    double sum = 0;
    for (const TensorStats& p : parts) {
      if (std::any_of(pieces.begin(), pieces.end(), [&](const auto& q) { return SameStats(p, q); })) continue;
      pieces.push_back(p);
      sum += p.elements;
    }
    if (sum != whole_.elements) return Own("not of the size of the other side");
    if (!leaf_.alone) PutTogether(pieces);
  }

  void Own(std::string_view why) {
    item_.other_part = true;
    Note(why);
  }

  void Note(std::string_view what) {
    if (!leaf_.alone) notes_.info.push_back(fmt::format("{}: {}", std::string_view(leaf_.suffix).substr(1), what));
  }

  const bool module_, summed_later_, of_pieces_;
  const double tolerance_;
  const TensorStats whole_;
  ItemView& item_;
  MergedLeaf& leaf_;
  MergeNotes& notes_;
};

/// Whether the parts of ranks, divided, make up the whole and otherwise do not: as pieces or as summands.
bool MakeUpDivided(const MergedLeaf& leaf, double scale, const ItemView& item, const TensorStats& whole,
                   double tolerance) {
  if (leaf.alone || leaf.cells < 2) return false;
  const std::vector<TensorStats> parts(leaf.parts.begin(), leaf.parts.begin() + static_cast<long>(leaf.cells));
  double elements = 0;
  for (const TensorStats& p : parts) elements += p.elements;
  if (elements == whole.elements) {
    const TensorStats merged = MergeParts(parts, item.dtype, leaf.suffix, nullptr);
    return NearStats(Divided(merged, scale), whole, tolerance) && !NearStats(merged, whole, tolerance);
  }
  std::vector<TensorStats> divided;
  for (const TensorStats& p : parts) {
    if (NearStats(p, whole, tolerance)) return false;  // a copy: copies, divided, add up to one
    divided.push_back(Divided(p, scale));
  }
  return parts[0].elements == whole.elements && AddUpTo(divided, whole, tolerance) && !AddUpTo(parts, whole, tolerance);
}

/// Divides what is a gradient before it is averaged: all floats of a backward call, and of other calls what has the
/// golden run's values then.
void AverageGradients(double scale, MergeNotes* notes, OpDiff* op) {
  const OpDirection direction = ParseOpName(op->op).direction;
  const bool backward = direction == OpDirection::kBackward || direction == OpDirection::kParameterGrad;
  bool any = false;
  for (size_t i = 0; i < op->rows_used; ++i) {
    ItemView& a = op->target[i];
    const double tolerance = DTypeTolerance(*op->thresholds, a.dtype);
    if (!a.tensor || tolerance == 0) continue;
    const TensorStats averaged = Divided(StatsOf(a), scale);
    MergedLeaf* leaf = notes->Leaf(a.suffix);
    const auto is_average = [&](const ItemView& g) {
      if (g.suffix != a.suffix || !g.tensor) return false;
      const TensorStats whole = StatsOf(g);
      const auto near = [&](const TensorStats& p) {
        return NearStats(Divided(p, scale), whole, tolerance) && !NearStats(p, whole, tolerance);
      };
      if (near(StatsOf(a)) || (leaf && std::any_of(leaf->parts.begin(), leaf->parts.end(), near))) return true;
      return leaf && MakeUpDivided(*leaf, scale, a, whole, tolerance);
    };
    const auto end = op->golden.begin() + static_cast<long>(op->golden_used);
    const bool single = averaged.elements == 1;  // what the loss is made of
    if ((!backward || single) && std::none_of(op->golden.begin(), end, is_average)) continue;
    Set(averaged, &a);
    for (size_t k = 0; leaf && k < leaf->parts.size(); ++k) leaf->parts[k] = Divided(leaf->parts[k], scale);
    any = true;
  }
  if (any) notes->info.push_back(fmt::format("divided by {:g}: a mean over the tokens of one of as many ranks", scale));
}

/// Whether what several ranks of the finer side have is not what one rank of the other has, by design, of each of its
/// ranks: summands, or what each rank has for itself.
bool AreApartOfParts(const OpDiff& op, bool of_pieces, const ItemView& item, const MergedLeaf& finer,
                     const MergedLeaf& coarser) {
  const size_t each = coarser.cells > 0 ? finer.cells / coarser.cells : 0;
  if (finer.alone || coarser.alone || each < 2 || each * coarser.cells != finer.cells) return false;
  for (size_t i = 0; i < coarser.cells; ++i) {
    const auto first = finer.parts.begin() + static_cast<long>(i * each);
    MergedLeaf leaf{finer.suffix, false, {}, {first, first + static_cast<long>(each)}, each, false, 1};
    const TensorStats& whole = coarser.parts[i];
    if (std::ranges::any_of(leaf.parts, [&](const TensorStats& p) { return p.elements != whole.elements; }))
      return false;
    ItemView one = item;
    MergeNotes notes;
    Fitter(op, of_pieces, whole, &one, &leaf, &notes).Run();
    if (!one.other_part) return false;
  }
  return true;
}

/// Whether a call of a rank's experts has a piece or a summand of what one rank with all experts has: what it does with
/// all tokens, of which other ranks have the rest.
bool IsOfShare(const OpDiff& op, const ItemView& item, const MergedLeaf* share, const ItemView& other) {
  const TensorStats whole = StatsOf(other);
  const double tolerance = ToleranceOf(op, item);
  if (!share || share->parts.size() < 2 || tolerance == 0) return false;
  std::vector<TensorStats> parts = share->parts;
  parts[0] = StatsOf(item);
  for (const TensorStats& p : parts) {
    if (p.elements != whole.elements || NearStats(p, whole, tolerance)) return false;
  }
  return AddUpTo(parts, whole, tolerance);
}

/// Whether the ranks of this side show what one rank would.
bool IsWhole(const MergedLeaf* leaf) {
  return !leaf || std::all_of(leaf->parts.begin(), leaf->parts.end(),
                              [&](const TensorStats& p) { return SameStats(p, leaf->parts[0]); });
}

bool IsMask(const ItemView& item) { return ParseDType(item.dtype) == DType::kBool; }

/// The value that a mask puts in is infinite on one side only: that does not depend on which part of the mask a rank
/// has.
bool IsFilledOtherwise(const OpDiff& op, const ItemView& a) {
  if (!IsResult(a.state) || !TraitsOf(ApiOrClassOf(op.op)).Has(op_trait::kPutsConstant)) return false;
  const auto end = op.golden.begin() + static_cast<long>(op.golden_used);
  const auto b = std::find_if(op.golden.begin(), end, [&](const ItemView& g) { return g.suffix == a.suffix; });
  return b != end && std::isfinite(Amplitude(StatsOf(a))) != std::isfinite(Amplitude(StatsOf(*b)));
}

/// Whether the item is of zeros and ones, on all ranks that have a part of it.
bool AreMarks(const ItemView& item, const MergedLeaf* leaf) {
  return leaf ? std::ranges::all_of(leaf->parts, IsZerosAndOnes) : IsZerosAndOnes(StatsOf(item));
}

/// What a call was given. Of calls that stand against each other by their order alone, and of those that take what is
/// different on each rank by design, the results say nothing where the arguments are not the same.
class Given {
 public:
  explicit Given(const Thresholds& thresholds) : thresholds_(thresholds) {}
  /// `marks`: zeros and ones on all ranks.
  void Add(const ItemView& a, const ItemView& b, bool pieces, bool marks) {
    if (IsResult(a.state)) return;
    const double tolerance = DTypeTolerance(thresholds_, a.dtype);
    const bool own = a.other_part || b.other_part;
    pieces_ = pieces_ || (pieces && a.state != ItemState::kParameter);
    own_ = own_ || (own && (tolerance == 0 || marks));
    other_ = other_ || own || !NearStats(StatsOf(a), StatsOf(b), tolerance);
  }
  void AddUnwritten() { own_ = true; }
  void AddSetting(const ItemView& a, const ItemView& b) {
    const bool group = a.IsProcessGroup();
    if (group || IsResult(a.state) || SameValue(a.stats[kMax], b.stats[kMax])) return;
    other_ = true;
    sized_ = sized_ || a.stats[kMax].IsInteger();
  }
  bool pieces() const { return pieces_; }
  bool DecidesResults(bool alone) const { return own_ || sized_ || (alone && (other_ || pieces_)); }
  void LeaveOut(bool alone, OpDiff* op) const {
    for (size_t i = 0; i < op->rows_used; ++i) {
      // What is counted with the size of a rank's part is its own, and so is all that its own indices point to.
      const bool counted = IsResult(op->target[i].state) && DTypeTolerance(thresholds_, op->target[i].dtype) == 0;
      if (!alone && IsFilledOtherwise(*op, op->target[i])) continue;
      if (alone || own_ || counted) op->target[i].other_part = true;
    }
  }

 private:
  const Thresholds& thresholds_;
  bool pieces_ = false, own_ = false, other_ = false, sized_ = false;
};

}  // namespace

TensorStats StatsOf(const ItemView& item) {
  return {NumberOf(item.stats[kMax]), NumberOf(item.stats[kMin]), NumberOf(item.stats[kMean]),
          NumberOf(item.stats[kNorm]), ElementsOf(item)};
}

void LeaveOutIndices(const OpDiff& op, OpDistance* distance) {
  const ItemView* data = op.rows_used > 0 && IsModuleName(op.op) ? &op.target[0] : nullptr;
  const ItemView* partner = data ? PartnerOf(op, 0) : nullptr;
  const bool given = partner && data->suffix == ".input.0" && data->shape == partner->shape && !data->other_part;
  distance->chosen =
      distance->chosen && given && IsInteger(ParseDType(data->dtype)) && RowError(op, 0, CompareMode::kStatistics) > 0;
  distance->argument = distance->shapes = false;
  distance->input = distance->rounded;
}

bool AreSummands(const OpDiff& op, const ItemView& one, const ItemView& other, const ItemView& whole) {
  const double tolerance = DTypeTolerance(*op.thresholds, one.dtype);
  const TensorStats sum = StatsOf(whole);
  return tolerance > 0 && !NearStats(StatsOf(one), sum, tolerance) &&
         AddUpTo({StatsOf(one), StatsOf(other)}, sum, tolerance);
}

void FitParts(const LayoutDifference& layouts, MergeNotes* target, MergeNotes* golden, OpDiff* op) {
  if (layouts.stages && IsTransfer(op->op)) {
    for (size_t i = 0; i < op->rows_used; ++i) op->target[i].other_part = true;
    return;
  }
  if (layouts.gradients != 1) AverageGradients(layouts.gradients, target, op);
  Given given(*op->thresholds);
  const auto is_alone = [](const MergeNotes* notes) { return !notes->leaves.empty() && notes->leaves[0].alone; };
  const bool alone = is_alone(target) || is_alone(golden);
  bool apart = false;  // a call between modules, of which each rank makes its piece
  for (size_t i = 0; i < op->rows_used; ++i) {
    ItemView& a = op->target[i];
    if (a.IsProcessGroup()) a.other_part = true;
    const auto end = op->golden.begin() + static_cast<long>(op->golden_used);
    const auto b = std::find_if(op->golden.begin(), end, [&](const ItemView& g) { return g.suffix == a.suffix; });
    if (b == end) continue;
    if (!a.tensor || !b->tensor) {
      given.AddSetting(a, *b);
      continue;
    }
    if (layouts.stages && (a.unwritten || b->unwritten)) {
      a.other_part = true;  // a stage frees what it has sent
      given.AddUnwritten();
      continue;
    }
    MergedLeaf *left = target->Leaf(a.suffix), *right = golden->Leaf(b->suffix);
    const double own = ElementsOf(a), other = ElementsOf(*b);
    if (own < 0 || other < 0) continue;
    const auto share_of = [&](MergeNotes* notes, std::string_view suffix) -> const MergedLeaf* {
      const auto it = std::ranges::find(notes->shares, suffix, &MergedLeaf::suffix);
      return it == notes->shares.end() ? nullptr : &*it;
    };
    if (IsOfShare(*op, a, share_of(target, a.suffix), *b) || IsOfShare(*op, *b, share_of(golden, b->suffix), a)) {
      a.other_part = true;
      continue;
    }
    const bool finer = left && right && left->cells > right->cells,
               coarser = left && right && left->cells < right->cells;
    if ((finer && AreApartOfParts(*op, given.pieces(), a, *left, *right)) ||
        (coarser && AreApartOfParts(*op, given.pieces(), a, *right, *left))) {
      a.other_part = true;
    } else if (left && IsWhole(right)) {
      Fitter(*op, given.pieces(), StatsOf(*b), &a, left, target).Run();
    } else if (right && IsWhole(left)) {
      Fitter(*op, given.pieces(), StatsOf(a), &*b, right, golden).Run();
    } else if (!left && !right && (own != other || (IsMask(a) && !IsModuleName(op->op)))) {
      a.other_part = true;  // masks have no statistics that tell their parts
    }
    a.other_part = a.other_part || b->other_part;
    const bool pieces = (left && left->split) || (right && right->split);
    apart = apart || (alone && pieces && IsResult(a.state));
    given.Add(a, *b, pieces, AreMarks(a, left) && AreMarks(*b, right));
  }
  if (apart || given.DecidesResults(alone)) given.LeaveOut(alone, op);
}

}  // namespace msprobe
