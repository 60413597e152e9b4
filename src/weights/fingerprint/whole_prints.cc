#include "weights/fingerprint/whole_prints.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace msprobe {
namespace {

struct RankPiece {
  PrintPiece piece;
  int64_t rank;
};

/// The rows between two neighbouring ends of pieces, which the same pieces hold.
class RowJoiner {
 public:
  RowJoiner(WholePrint* out, const std::vector<RankPiece>& pieces) : out_(out), pieces_(pieces) {}

  void Run() {
    std::set<int64_t> ends;
    for (const RankPiece& p : pieces_) ends.insert({p.piece.row, p.piece.row + p.piece.rows()});
    int64_t begin = -1;
    for (const int64_t end : ends) {
      if (begin >= 0) Join(begin, end);
      begin = end;
    }
  }

 private:
  void Join(int64_t begin, int64_t end) {
    std::vector<const RankPiece*> here;
    for (const RankPiece& p : pieces_) {
      if (p.piece.row <= begin && p.piece.row + p.piece.rows() >= end) here.push_back(&p);
    }
    std::stable_sort(here.begin(), here.end(), [](const RankPiece* a, const RankPiece* b) {
      return std::pair(a->piece.column, a->piece.columns) < std::pair(b->piece.column, b->piece.columns);
    });
    std::vector<const RankPiece*> row;  // side by side
    int64_t column = 0;
    bool tiled = true;
    for (const RankPiece* p : here) {
      const RankPiece* last = row.empty() ? nullptr : row.back();
      if (last && last->piece.column == p->piece.column && last->piece.columns == p->piece.columns) {
        CompareCopies(*last, *p, begin, end);
        continue;
      }
      tiled = tiled && p->piece.column == column;
      column = p->piece.column + p->piece.columns;
      row.push_back(p);
    }
    if (!tiled || column != out_->size.columns) return;
    for (int64_t r = begin; r < end; ++r) {
      uint64_t sum = 0;
      for (const RankPiece* p : row) sum += p->piece.hashes[static_cast<size_t>(r - p->piece.row)];
      out_->hashes[static_cast<size_t>(r)] = sum;
      out_->seen[static_cast<size_t>(r)] = true;
    }
  }

  void CompareCopies(const RankPiece& a, const RankPiece& b, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end && !out_->copies; ++r) {
      const uint64_t own = a.piece.hashes[static_cast<size_t>(r - a.piece.row)];
      if (own != b.piece.hashes[static_cast<size_t>(r - b.piece.row)]) out_->copies = CopyDifference{r, a.rank, b.rank};
    }
  }

  WholePrint* out_;
  const std::vector<RankPiece>& pieces_;
};

}  // namespace

int64_t WholePrint::seen_rows() const { return std::count(seen.begin(), seen.end(), true); }

const uint64_t* WholePrint::PieceAt(int64_t row, int64_t column, int64_t columns) const {
  for (const PrintPiece& piece : pieces) {
    const bool here =
        piece.column == column && piece.columns == columns && piece.row <= row && row < piece.row + piece.rows();
    if (here) return &piece.hashes[static_cast<size_t>(row - piece.row)];
  }
  return nullptr;
}

WholeModel WholeOf(const std::string& path, std::vector<Fingerprint> files) {
  WholeModel out;
  out.path = path;
  std::unordered_map<std::string, size_t> places;
  std::vector<std::vector<RankPiece>> pieces;
  std::set<int64_t> ranks;
  for (Fingerprint& file : files) {
    if (out.kind.empty() || out.kind == "bucket") out.kind = file.kind;
    if (out.name.empty()) out.name = file.name;
    out.step = std::max(out.step, file.step);
    out.world = std::max(out.world, file.world);
    if (out.facts.heads == 0) out.facts = file.facts;
    ranks.insert(file.rank);
    for (WeightPrint& weight : file.weights) {
      const auto [found, fresh] = places.emplace(weight.role + '\n' + weight.label(), out.weights.size());
      if (fresh) {
        WholePrint& whole = out.weights.emplace_back();
        whole.head = weight;
        whole.head.pieces.clear();
        whole.size = RowsOf(weight.shape);
        pieces.emplace_back();
      }
      WholePrint& whole = out.weights[found->second];
      whole.unlike = whole.unlike || whole.head.shape != weight.shape || whole.head.dtype != weight.dtype;
      if (weight.none != NoPrint::kNone) whole.head.none = weight.none;
      if (whole.unlike) continue;
      for (PrintPiece& piece : weight.pieces) pieces[found->second].push_back({std::move(piece), file.rank});
    }
  }
  out.ranks = ranks.size();
  for (size_t i = 0; i < out.weights.size(); ++i) {
    WholePrint& whole = out.weights[i];
    if (whole.unlike || pieces[i].empty()) continue;
    int64_t reach = 0;
    for (const RankPiece& p : pieces[i]) reach = std::max(reach, p.piece.row + p.piece.rows());
    whole.hashes.resize(static_cast<size_t>(reach));
    whole.seen.resize(static_cast<size_t>(reach));
    RowJoiner(&whole, pieces[i]).Run();
    if (whole.complete()) continue;
    for (RankPiece& p : pieces[i]) whole.pieces.push_back(std::move(p.piece));
  }
  return out;
}

WholePrint RowsOfWhole(const WholePrint& from, int64_t begin, int64_t end, const std::string& part,
                       const std::string& role) {
  WholePrint out;
  out.head = from.head;
  out.head.part = part;
  out.head.role = role;
  out.head.shape[0] = end - begin;
  out.size = from.size;
  out.size.rows = end - begin;
  out.unlike = from.unlike;
  out.copies = from.copies;
  const auto reach = static_cast<int64_t>(from.hashes.size());
  begin = std::min(begin, reach);
  end = std::min(end, reach);
  out.hashes.assign(from.hashes.begin() + begin, from.hashes.begin() + end);
  out.seen.assign(from.seen.begin() + begin, from.seen.begin() + end);
  return out;
}

}  // namespace msprobe
