// The benchmark standard of float32 and bfloat16 in one pass over the elements, with vectors: where all of them are
// finite, as of nearly all results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lab/standards/figure.h"

namespace msprobe {

struct PlainInput {
  const double *device, *bench;
  size_t count;
  Width width;                // of the bench; that of the device is kSingle
  double small, small_error;  // elements up to `small` are judged by absolute errors
  double epsilon;             // is added to magnitudes of the bench
};

struct PlainFigures {
  double squares = 0;  // the sum, in numpy's order
  uint64_t small = 0, small_bad = 0;
  double largest_relative = 0;  // of those that are not small
  // Of all:
  double largest_absolute = 0, largest_device = 0, largest_bench = 0;
  int64_t larger = 0, smaller = 0;  // beside the bench in float32
};

/// False where an element is not finite. The relative errors of those that are not small go to `relative`, which has
/// room for all.
bool MeasurePlain(const PlainInput& in, PlainFigures* out, double* relative);
/// The same without the instructions that only some machines have.
bool MeasurePlainly(const PlainInput& in, PlainFigures* out, double* relative);

/// Sums over x = device / device_size and y = bench / bench_size, in the order of the elements.
struct CosineSums {
  double product = 0, device = 0, bench = 0;  // of x * y, x * x and y * y
};
CosineSums SumsOfCosine(const double* device, const double* bench, size_t count, double device_size, double bench_size);

/// numpy's sum: eight partial sums of up to kMostAtOnce values, halves of what is longer.
inline constexpr size_t kMostAtOnce = 128;
inline size_t HalfOfSum(size_t n) { return n / 2 - n / 2 % 8; }

template <typename Round>
double SumAtOnce(const double* v, size_t n, const Round& round) {
  double sum = 0;
  size_t i = 0;
  if (n >= 8) {
    double r[8];
    for (; i < 8; ++i) r[i] = v[i];
    for (; i + 8 <= n; i += 8) {
      for (size_t j = 0; j < 8; ++j) r[j] = round(r[j] + v[i + j]);
    }
    const double left = round(round(r[0] + r[1]) + round(r[2] + r[3]));
    sum = round(left + round(round(r[4] + r[5]) + round(r[6] + r[7])));
  }
  for (; i < n; ++i) sum = round(sum + v[i]);
  return sum;
}

template <typename Round>
double PairwiseSum(const double* v, size_t n, const Round& round) {
  if (n <= kMostAtOnce) return SumAtOnce(v, n, round);
  const size_t half = HalfOfSum(n);
  const double left = PairwiseSum(v, half, round);
  return round(left + PairwiseSum(v + half, n - half, round));
}

}  // namespace msprobe
