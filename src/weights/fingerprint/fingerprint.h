// The fingerprint of a model's weights: a hash for each row of each part, so that what is fused, sharded or copied can
// be compared without being gathered.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/kernels/dtype.h"
#include "weights/checkpoint.h"

namespace msprobe {

/// Rows [row, row + hashes.size()) in columns [column, column + columns).
struct PrintPiece {
  int64_t row = 0, column = 0, columns = 0;
  std::vector<uint64_t> hashes;
  int64_t rows() const { return static_cast<int64_t>(hashes.size()); }
};

/// Why a piece has no hash.
enum class NoPrint : uint8_t {
  kNone,
  kCutInWord,  ///< its shard begins or ends inside of 8 bytes
  kScattered,  ///< its shard is no rectangle of rows and columns
  kNoValues,   ///< its values are not there: a sum that is still to be made, a device without memory
  kNoHeads     ///< one of several shards of fused q, k and v, whose heads are not known
};
inline constexpr std::array<std::string_view, 5> kNoPrintNames{"", "cut_in_word", "scattered", "no_values", "no_heads"};

/// A weight, or the part of one: "q" of a fused weight, an expert.
struct WeightPrint {
  std::string role;        // what it is in the model: "layer 0 attention.q weight"
  std::string name, part;  // where it lies here
  DType dtype = DType::kUnknown;
  DType stored = DType::kUnknown;  // its type before it was rounded to `dtype`; kUnknown where it was not
  std::vector<int64_t> shape;      // of the whole, whatever this rank holds of it
  bool buffer = false, table = false;
  NoPrint none = NoPrint::kNone;
  std::vector<PrintPiece> pieces;

  std::string label() const { return part.empty() ? name : name + "[" + part + "]"; }
};

/// As many rows and columns as the shape has: rows are as long as they must be to be worth a hash.
struct RowsAndColumns {
  int64_t rows = 1, columns = 1;
  size_t row_dims = 0;
};
RowsAndColumns RowsOf(const std::vector<int64_t>& shape);

struct Fingerprint {
  std::string name;   // "before"
  std::string kind;   // "model", "bucket" (some of the weights), "checkpoint"
  std::string path;   // where it was read
  int64_t step = -1;  // -1: not known
  int64_t rank = 0, world = 1;
  ModelFacts facts;
  std::vector<WeightPrint> weights;
  std::vector<Message> notes;
};

}  // namespace msprobe
