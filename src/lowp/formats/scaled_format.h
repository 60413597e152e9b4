// Formats whose numbers share scales: how a matrix looks after it was stored in one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lowp/formats/number_format.h"

namespace msprobe {

/// Which numbers share a scale. The direction is that of the sum in which they are used.
enum class ScaleGroup : uint8_t {
  kNone,     // no scale: a plain cast
  kTensor,   // all of a tensor
  kDelayed,  // all of a tensor, by the largest magnitude that earlier steps had
  kRow,      // those of one sum
  kBlock,    // so many neighbours of one sum
  kTile,     // a square of so many sums by so many neighbours
};

enum class ScaleKind : uint8_t {
  kFloat,       // float32: the largest magnitude becomes the largest number
  kPowerOfTwo,  // E8M0 of the OCP MX specification: the largest magnitude has the largest number's power of two
  kTwoLevels,   // NVFP4: E4M3 for each block, times one float32 for the tensor
};

struct ScaledFormat {
  std::string name;
  const NumberFormat* element = nullptr;
  ScaleGroup group = ScaleGroup::kTensor;
  int block = 0;  // of kBlock and kTile
  ScaleKind scale = ScaleKind::kFloat;

  /// The relative error, root mean square, that a result of such operands has at least: each is off by about its
  /// rounding over sqrt(3). Of numbers in equal steps it is that of a normal distribution cut at four deviations.
  double Floor() const;
};

/// "e4m3", "e4m3:row", "e5m2:delayed", "e4m3:1x128", "e4m3:128x128", "int8:32", "mxfp8", "mxfp6", "mxfp4", "nvfp4",
/// "bf16". kUsage for another text, with those that there are.
StatusOr<ScaledFormat> ParseScaledFormat(std::string_view text);

/// In rows of neighbours, one behind the other.
struct DenseMatrix {
  int64_t rows = 0, cols = 0;
  std::vector<float> values;

  DenseMatrix() = default;
  DenseMatrix(int64_t r, int64_t c) : rows(r), cols(c), values(static_cast<size_t>(r * c)) {}
  const float* Row(int64_t r) const { return values.data() + r * cols; }
  float* Row(int64_t r) { return values.data() + r * cols; }
  DenseMatrix Transposed() const;
};

/// The largest finite magnitude.
float LargestMagnitude(const float* values, int64_t n);

struct StoredCounts {
  CastCounts casts;
  uint64_t elements = 0;
  double error2 = 0, value2 = 0;  // sums of squares of what changed and of what was there, finite numbers only
  /// Relative, root mean square; 0 of nothing.
  double Error() const;
};

/// What is read back after `in` was stored. `largest` is the largest magnitude of the whole tensor, of which `in` may
/// be a part; of kDelayed the one of earlier steps.
StoredCounts StoreAndRead(const ScaledFormat& format, const CastRules& rules, float largest, const DenseMatrix& in,
                          DenseMatrix* out);

}  // namespace msprobe
