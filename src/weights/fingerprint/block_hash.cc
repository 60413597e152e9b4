// The hashes of one box of a weight, wherever its elements lie.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/parallel.h"
#include "weights/fingerprint/fingerprint_maker.h"
#include "weights/fingerprint/row_hash.h"

namespace msprobe {
namespace {

constexpr int64_t kUnitBytes = int64_t{4} << 20;  // what one thread takes at a time

int64_t ProductOf(const std::vector<int64_t>& sizes, size_t first, size_t last) {
  int64_t out = 1;
  for (size_t d = first; d < last; ++d) out *= sizes[d];
  return out;
}

/// Dimensions [first, last) of a box, counted in C order of the whole: one run, or -1 where there are several.
struct RunOf {
  int64_t begin = 0, length = 1;
  bool one = true;
  RunOf(const WeightBlock& block, const std::vector<int64_t>& whole, size_t first, size_t last) {
    int64_t step = 1;
    bool full = true;  // all dimensions behind this one are there
    for (size_t d = last; d-- > first; step *= whole[d]) {
      begin += block.begin[d] * step;
      if (block.size[d] == 1 && whole[d] != 1) {
        full = false;
        continue;
      }
      one = one && (full || block.size[d] == 1);
      full = full && block.size[d] == whole[d];
      length *= block.size[d];
    }
  }
};

/// The dimensions lie one behind the other, as in a contiguous tensor: the step between elements of the last one is
/// `step`.
bool LiesInOrder(const WeightBlock& block, size_t first, size_t last, int64_t step) {
  for (size_t d = last; d-- > first; step *= block.size[d]) {
    if (block.size[d] != 1 && block.strides[d] != step) return false;
  }
  return true;
}

/// Elements of rows [first, first + rows) that lie scattered, one behind the other.
void GatherRows(const WeightBlock& block, int64_t first, int64_t rows, int64_t columns, char* out) {
  const size_t element = ElementSize(block.dtype);
  const auto gather = [&]<typename T>(T) {
    const auto* from = static_cast<const T*>(block.data);
    auto* to = reinterpret_cast<T*>(out);
    for (int64_t c = 0; c < columns; ++c) {
      const T* at = from + first * block.strides[0] + c * block.strides[1];
      for (int64_t r = 0; r < rows; ++r) to[r * columns + c] = at[r * block.strides[0]];
    }
  };
  if (block.size.size() == 2 && element == 2) return gather(uint16_t{});
  if (block.size.size() == 2 && element == 4) return gather(uint32_t{});
  WeightTensor whole;
  whole.dtype = block.dtype;
  whole.shape = block.size;
  whole.blocks = {block};
  whole.blocks[0].begin.assign(block.size.size(), 0);
  GatherElements(whole, first * columns, (first + rows) * columns, out);
}

struct BoxHash {
  const WeightBlock& block;
  int64_t columns;     // of the block
  bool dense;          // columns lie one behind the other
  int64_t row_stride;  // bytes, where they do
  uint64_t first_word;

  void Rows(int64_t first, int64_t count, uint64_t* out) const {
    const size_t bytes = static_cast<size_t>(columns) * ElementSize(block.dtype);
    if (dense) {
      const char* at = static_cast<const char*>(block.data) + first * row_stride;
      return AddRowHashes(at, static_cast<size_t>(count), row_stride, bytes, first_word, out);
    }
    const int64_t most = std::max<int64_t>(1, (int64_t{256} << 10) / static_cast<int64_t>(bytes));
    std::vector<uint64_t> memory((static_cast<size_t>(std::min(most, count)) * bytes + 7) / 8);
    auto* gathered = reinterpret_cast<char*>(memory.data());
    for (int64_t at = 0; at < count; at += most) {
      const int64_t some = std::min(most, count - at);
      GatherRows(block, first + at, some, columns, gathered);
      AddRowHashes(gathered, static_cast<size_t>(some), static_cast<int64_t>(bytes), bytes, first_word, out + at);
    }
  }
};

/// The indices of the first dimension one by one.
void AddEachOfFirst(const WeightBlock& block, size_t dim, WeightPrint* out) {
  for (int64_t i = 0; i < block.size[dim]; ++i) {
    BoxView box{block.begin, block.size};
    box.begin[dim] += i;
    box.size[dim] = 1;
    AddBlock(CutBlock(block, box), out);
  }
}

}  // namespace

RowsAndColumns RowsOf(const std::vector<int64_t>& shape) {
  constexpr int64_t kLeastColumns = 128, kLongVector = int64_t{1} << 20;
  RowsAndColumns out;
  if (shape.empty()) return out;
  if (shape.size() == 1 && shape[0] > kLongVector) {  // flat memory, no vector of a layer
    out.columns = shape[0];
    return out;
  }
  out.row_dims = std::max<size_t>(1, shape.size() - 1);
  while (out.row_dims > 1 && ProductOf(shape, out.row_dims, shape.size()) < kLeastColumns) --out.row_dims;
  out.rows = ProductOf(shape, 0, out.row_dims);
  out.columns = ProductOf(shape, out.row_dims, shape.size());
  return out;
}

void AddBlock(const WeightBlock& block, WeightPrint* out) {  // NOLINT(misc-no-recursion): one level a dimension
  const size_t dims = block.size.size();
  const auto element = static_cast<int64_t>(ElementSize(block.dtype));
  if (element == 0 || ProductOf(block.size, 0, dims) == 0) return;
  const RowsAndColumns whole = RowsOf(out->shape);
  const RunOf rows(block, out->shape, 0, whole.row_dims), columns(block, out->shape, whole.row_dims, dims);
  size_t first = 0, last = whole.row_dims;  // dimensions of more than one row
  while (first < last && block.size[first] == 1) ++first;
  while (last > first && block.size[last - 1] == 1) --last;
  const int64_t row_step = last > first ? block.strides[last - 1] : 0;
  const bool rows_in_order = LiesInOrder(block, first, last, row_step);
  if (!rows.one || !rows_in_order) return AddEachOfFirst(block, first, out);
  if (!columns.one) {
    out->none = NoPrint::kScattered;
    return;
  }
  const int64_t begin = columns.begin * element, end = begin + columns.length * element;
  constexpr auto kWord = static_cast<int64_t>(kHashWord);
  if (begin % kWord != 0 || (end % kWord != 0 && columns.begin + columns.length != whole.columns)) {
    out->none = NoPrint::kCutInWord;
    return;
  }
  const bool dense = LiesInOrder(block, whole.row_dims, dims, 1);
  const BoxHash box{block, columns.length, dense, row_step * element, static_cast<uint64_t>(begin / kWord)};
  PrintPiece piece{rows.begin, columns.begin, columns.length, {}};
  piece.hashes.resize(static_cast<size_t>(rows.length));
  const int64_t unit = std::max<int64_t>(1, kUnitBytes / (columns.length * element));
  const int64_t units = (rows.length + unit - 1) / unit;
  const auto one = [&](size_t i) {
    const int64_t at = static_cast<int64_t>(i) * unit;
    box.Rows(at, std::min(unit, rows.length - at), piece.hashes.data() + at);
    return OkStatus();
  };
  if (units == 1) {
    (void)one(0);
  } else {
    (void)ParallelFor(static_cast<size_t>(units), one);
  }
  out->pieces.push_back(std::move(piece));
}

void JoinPieces(WeightPrint* print) {
  std::vector<PrintPiece>& pieces = print->pieces;
  std::stable_sort(pieces.begin(), pieces.end(), [](const PrintPiece& a, const PrintPiece& b) {
    return std::tuple(a.row, a.rows(), a.column) < std::tuple(b.row, b.rows(), b.column);
  });
  std::vector<PrintPiece> wide;
  for (PrintPiece& piece : pieces) {  // side by side
    PrintPiece* last = wide.empty() ? nullptr : &wide.back();
    if (last && last->row == piece.row && last->rows() == piece.rows() &&
        last->column + last->columns == piece.column) {
      last->columns += piece.columns;
      for (size_t i = 0; i < piece.hashes.size(); ++i) last->hashes[i] += piece.hashes[i];
    } else {
      wide.push_back(std::move(piece));
    }
  }
  std::stable_sort(wide.begin(), wide.end(), [](const PrintPiece& a, const PrintPiece& b) {
    return std::tuple(a.column, a.columns, a.row) < std::tuple(b.column, b.columns, b.row);
  });
  pieces.clear();
  for (PrintPiece& piece : wide) {  // one below the other
    PrintPiece* last = pieces.empty() ? nullptr : &pieces.back();
    if (last && last->column == piece.column && last->columns == piece.columns &&
        last->row + last->rows() == piece.row) {
      last->hashes.insert(last->hashes.end(), piece.hashes.begin(), piece.hashes.end());
    } else {
      pieces.push_back(std::move(piece));
    }
  }
}

}  // namespace msprobe
