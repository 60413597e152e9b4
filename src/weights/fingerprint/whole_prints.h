// The fingerprints of all ranks of one side, put together to the whole weights.
#pragma once

#include <map>
#include <optional>

#include "weights/fingerprint/fingerprint.h"

namespace msprobe {

/// A row of which two ranks hold different copies.
struct CopyDifference {
  int64_t row = 0, rank_a = 0, rank_b = 0;
};

struct WholePrint {
  WeightPrint head;  // without pieces: name, role, dtype, shape
  RowsAndColumns size;
  std::vector<uint64_t> hashes;  // of each row, as far as ranks hold any
  std::vector<bool> seen;        // rows of which all columns are there
  std::vector<PrintPiece> pieces;
  std::optional<CopyDifference> copies;
  bool unlike = false;  // ranks say different things of its shape or type

  int64_t seen_rows() const;
  bool complete() const { return seen_rows() == size.rows; }
  /// Columns [column, column + columns) of a row, where a rank holds just these.
  const uint64_t* PieceAt(int64_t row, int64_t column, int64_t columns) const;
};

struct WholeModel {
  std::string path, name, kind;
  int64_t step = -1;
  size_t ranks = 0;  // that are there
  int64_t world = 1;
  ModelFacts facts;
  std::vector<WholePrint> weights;  // in the order of the files
  /// Some weights may be missing, because ranks are, or it is a bucket.
  bool partial() const { return kind == "bucket" || static_cast<int64_t>(ranks) < world; }
};

WholeModel WholeOf(const std::string& path, std::vector<Fingerprint> files);

/// Rows [begin, end) of a fused weight as one of its own.
WholePrint RowsOfWhole(const WholePrint& from, int64_t begin, int64_t end, const std::string& part,
                       const std::string& role);

}  // namespace msprobe
