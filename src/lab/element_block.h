// Some elements of a result at a time, with vectors: those that are plain numbers on both sides, as nearly all are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace msprobe {

/// Upper ends of the classes of errors, in ulp; the last class is open.
inline constexpr std::array<double, 6> kUlpClasses = {0.5, 1, 2, 4, 16, 256};

/// What all elements of a result have in common.
struct ElementRuler {
  int digits;             // of the format of the device
  double smallest, high;  // its smallest normal number; numbers above `high` are near infinity
  double eps;
  double ulps;  // of the bound
};

/// The element that is furthest beyond its limit, and what the others need; as in ElementFigures.
struct ElementExtremes {
  double rtol = 0, atol = 0, error = 0, limit = 0;

  void TakeError(double found, double of) {
    // Of those within it, too, so that the table shows how near it is.
    if (found * (limit > 1e-300 ? limit : 1e-300) > error * of || limit == 0) error = found, limit = of;
  }
};

struct ElementBlock {
  static constexpr size_t kSize = 128;
  /// The errors of an element go into bin ((exponent of the truth as float64 has it) + kShift) / 4, those of zeros into
  /// the one behind.
  static constexpr size_t kShift = 57, kZeroBin = (2047 + kShift) / 4 + 1, kClasses = 8;

  std::array<double, kSize> errors, limits;  // in ulp; limits without any bound mean nothing
  std::array<uint64_t, kSize> places;        // kClasses * bin + class
  bool further;                              // an element is further beyond its limit than the one found before
};

/// Measures kSize elements of float32 and narrower types, and takes what they need; false, and nothing taken, where one
/// of them is not a plain number. `bounds` may be null.
bool MeasureBlock(const ElementRuler& ruler, const double* ours, const double* truth, const float* bounds,
                  ElementExtremes* found, ElementBlock* out);
/// The same without the instructions that only some machines have.
bool MeasureBlockPlainly(const ElementRuler& ruler, const double* ours, const double* truth, const float* bounds,
                         ElementExtremes* found, ElementBlock* out);

}  // namespace msprobe
