#include "weights/fingerprint/print_compare.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>

#include "base/message.h"
#include "weights/fingerprint/print_pairs.h"
#include "weights/role_words.h"

namespace msprobe {
namespace {

constexpr size_t kMostRanges = 64;

void AddRow(int64_t row, std::vector<PrintRange>* out) {
  if (!out->empty() && out->back().end == row) {
    ++out->back().end;
  } else if (out->size() < kMostRanges) {
    out->push_back({row, row + 1});
  }
}

/// Whether a row is the same: unknown where a side does not have it as the other has.
std::optional<bool> RowIsEqual(const WholePrint& a, const WholePrint& b, int64_t row) {
  const auto r = static_cast<size_t>(row);
  const bool in_a = r < a.seen.size() && a.seen[r], in_b = r < b.seen.size() && b.seen[r];
  if (in_a && in_b) return a.hashes[r] == b.hashes[r];
  std::optional<bool> equal;
  for (const PrintPiece& piece : a.pieces) {
    if (row < piece.row || row >= piece.row + piece.rows()) continue;
    const uint64_t* other = b.PieceAt(row, piece.column, piece.columns);
    if (!other) continue;
    if (*other != piece.hashes[static_cast<size_t>(row - piece.row)]) return false;
    equal = equal.value_or(true);
  }
  // What is there is equal; the rest of the row is not there.
  return equal && *equal ? std::nullopt : equal;
}

class PrintJudge {
 public:
  PrintJudge(const WholeModel& a, const WholeModel& b, const std::vector<WholeModel>& history,
             const std::vector<PrintPair>& pairs)
      : a_(a), b_(b), history_(history) {
    for (const PrintPair& pair : pairs) {
      if (pair.a && pair.b) continue;
      const WeightPrint& own = pair.a ? pair.a->head : pair.b->head;
      if (own.none == NoPrint::kNoValues) absent_[pair.a ? 0 : 1].insert(BlockOf(ParseWeightName(own.name)));
    }
  }

  PrintDiff Judge(const PrintPair& pair) {
    PrintDiff out;
    Describe(pair, &out);
    if (!pair.a || !pair.b) {
      const WholeModel& other = pair.a ? b_ : a_;
      const WeightPrint& own = pair.a ? pair.a->head : pair.b->head;
      if (own.none == NoPrint::kNoValues || IsIn(absent_[pair.a ? 1 : 0], own)) {
        Refuse(PrintVerdict::kCannot, NoPrint::kNoValues, {}, &out);
        return out;
      }
      out.verdict = other.partial() ? PrintVerdict::kNotSeen : pair.a ? PrintVerdict::kOnlyA : PrintVerdict::kOnlyB;
      return out;
    }
    const WholePrint &a = *pair.a, &b = *pair.b;
    if (!Comparable(a, b, &out)) return out;
    out.rows = std::min(a.size.rows, b.size.rows);
    const int64_t words = std::max(a_.facts.vocab, b_.facts.vocab);
    if (a.head.table && words > 0) out.rows = std::min(out.rows, words);
    const auto differ = [&](const WholePrint& w) { return w.copies && w.copies->row < out.rows; };
    if (differ(a) || differ(b)) {
      out.verdict = PrintVerdict::kCopies;
      out.copies = differ(a) ? a.copies : b.copies;
      out.notes.push_back(differ(a) ? Msg("in A") : Msg("in B"));
      return out;
    }
    Rows(a, b, &out);
    return out;
  }

 private:
  static bool IsIn(const std::set<std::string>& blocks, const WeightPrint& print) {
    const std::string block = BlockOf(ParseWeightName(print.name));
    return !block.empty() && blocks.contains(block);
  }

  void Describe(const PrintPair& pair, PrintDiff* out) const {
    if (pair.a) {
      out->role = pair.a->head.role;
      out->a = pair.a->head.label();
      out->dtype_a = pair.a->head.dtype;
      out->shape_a = pair.a->head.shape;
      out->rows = pair.a->size.rows;
    }
    if (pair.b) {
      if (!pair.a || pair.tied) out->role = pair.b->head.role;
      out->b = pair.b->head.label();
      out->dtype_b = pair.b->head.dtype;
      out->shape_b = pair.b->head.shape;
      out->rows = pair.b->size.rows;
    }
    if (pair.tied) out->notes.push_back(Msg("tied: one side has no head of its own"));
    const ModelFacts& facts = a_.facts.heads > 0 ? a_.facts : b_.facts;
    const bool heads = out->role.find("attention.q ") != std::string::npos ||
                       out->role.find("attention.k ") != std::string::npos ||
                       out->role.find("attention.v ") != std::string::npos;
    if (heads && facts.heads > 0) out->head_rows = facts.head_dim > 0 ? facts.head_dim : facts.hidden / facts.heads;
  }

  static bool Refuse(PrintVerdict verdict, NoPrint none, std::vector<Message> notes, PrintDiff* out) {
    out->verdict = verdict;
    out->none = none;
    for (Message& note : notes) out->notes.push_back(std::move(note));
    return false;
  }

  /// What keeps hashes from saying anything.
  bool Comparable(const WholePrint& a, const WholePrint& b, PrintDiff* out) const {
    if (a.head.none == NoPrint::kNoValues || b.head.none == NoPrint::kNoValues)
      return Refuse(PrintVerdict::kCannot, NoPrint::kNoValues, {}, out);
    if (a.unlike || b.unlike) {
      return Refuse(PrintVerdict::kCannot, NoPrint::kNone,
                    {Msg("the ranks of a side have it in different shapes or types")}, out);
    }
    if (a.head.dtype != b.head.dtype) return Refuse(PrintVerdict::kOtherPrecision, NoPrint::kNone, {}, out);
    const std::vector<int64_t>&x = a.head.shape, &y = b.head.shape;
    const bool same_rest = x.size() == y.size() && !x.empty() && std::equal(x.begin() + 1, x.end(), y.begin() + 1);
    if (x != y && !(a.head.table && same_rest)) {
      const bool turned = x.size() == 2 && y.size() == 2 && x[0] == y[1] && x[1] == y[0];
      if (!turned) return Refuse(PrintVerdict::kShape, NoPrint::kNone, {}, out);
      return Refuse(PrintVerdict::kCannot, NoPrint::kNone, {Msg("stored the other way round on one side")}, out);
    }
    const bool norm = a.head.role.find("norm") != std::string::npos;
    const auto centred = [](const WholeModel& m) { return m.facts.zero_centred; };
    if (norm && centred(a_) && centred(b_) && *centred(a_) != *centred(b_)) {
      return Refuse(PrintVerdict::kCannot, NoPrint::kNone, {Msg("the norms of one side are centred on zero")}, out);
    }
    const NoPrint none = a.head.none != NoPrint::kNone ? a.head.none : b.head.none;
    if (none != NoPrint::kNone) return Refuse(PrintVerdict::kCannot, none, {}, out);
    return true;
  }

  void Rows(const WholePrint& a, const WholePrint& b, PrintDiff* out) {
    if (out->rows < std::max(a.size.rows, b.size.rows)) {
      out->notes.push_back(Msg("padded: rows from {} on are left out", out->rows));
    }
    std::vector<int64_t> differ;
    for (int64_t row = 0; row < out->rows; ++row) {
      const std::optional<bool> equal = RowIsEqual(a, b, row);
      if (!equal) continue;
      ++out->seen;
      if (*equal) continue;
      differ.push_back(row);
      AddRow(row, &out->ranges);
    }
    out->differ = static_cast<int64_t>(differ.size());
    if (differ.empty()) {
      if (out->seen < out->rows) out->verdict = PrintVerdict::kNotSeen;
      return;
    }
    out->verdict = PrintVerdict::kDiffers;
    Explain(a, b, differ, out);
  }

  void Explain(const WholePrint& a, const WholePrint& b, const std::vector<int64_t>& differ, PrintDiff* out) {
    for (const WholeModel& earlier : history_) {
      for (const WholePrint& w : earlier.weights) {
        if (w.head.role != a.head.role && w.head.role != b.head.role) continue;
        const bool all = std::all_of(differ.begin(), differ.end(),
                                     [&](int64_t row) { return RowIsEqual(w, b, row).value_or(false); });
        if (all && w.head.dtype == b.head.dtype) {
          out->earlier = earlier.step >= 0 ? fmt::format("{} (step {})", earlier.path, earlier.step) : earlier.path;
          return;
        }
      }
    }
    if (b.hashes.empty()) return;
    if (!index_) index_ = std::make_unique<RowIndex>(a_);
    out->moved = index_->Find(b, &a, differ);
  }

  const WholeModel &a_, &b_;
  const std::vector<WholeModel>& history_;
  /// Blocks of layers of which a side has a weight alone, without values: fused, it is parts that the other has.
  std::array<std::set<std::string>, 2> absent_;
  std::unique_ptr<RowIndex> index_;
};

}  // namespace

std::string_view PrintVerdictText(PrintVerdict v) {
  switch (v) {
    case PrintVerdict::kEqual: return "bit-equal";
    case PrintVerdict::kOtherPrecision: return "other precision";
    case PrintVerdict::kCannot: return "cannot say";
    case PrintVerdict::kNotSeen: return "not seen";
    case PrintVerdict::kOnlyA: return "only in A";
    case PrintVerdict::kOnlyB: return "only in B";
    case PrintVerdict::kShape: return "shape";
    case PrintVerdict::kCopies: return "copies differ";
    case PrintVerdict::kDiffers: return "differs";
  }
  return "";
}

size_t PrintComparison::Count(PrintVerdict v) const {
  return static_cast<size_t>(
      std::count_if(weights.begin(), weights.end(), [&](const PrintDiff& d) { return d.verdict == v; }));
}

PrintComparison ComparePrints(WholeModel* a, WholeModel* b, const std::vector<WholeModel>& history) {
  PrintComparison out;
  const std::vector<PrintPair> pairs = PairPrints(a, b);
  PrintJudge judge(*a, *b, history, pairs);
  for (const PrintPair& pair : pairs) {
    const WholePrint* alone = !pair.a ? pair.b : !pair.b ? pair.a : nullptr;
    if (alone && alone->head.buffer) {
      out.left_out.push_back(alone->head.label());
    } else {
      out.weights.push_back(judge.Judge(pair));
    }
  }
  return out;
}

}  // namespace msprobe
