// What the comparing kernels of the instruction sets share. A kernel reads one run of elements of both tensors and adds
// what it finds to a PairPartial; metrics.cc cuts tensors into runs and folds the partials in a fixed order.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tensor/kernels/dtype.h"
#include "tensor/kernels/pair_metrics.h"

namespace msprobe::metrics {

struct PairPartial {
  double target_squares = 0, golden_squares = 0, products = 0, diff_squares = 0;
  double max_abs = 0, max_relative = 0;
  int64_t below1 = 0, below5 = 0, equal = 0, differ = 0;
  NonFinite target, golden;
};

/// Elements of a run at most; converted runs live in buffers of this length.
inline constexpr size_t kRun = 2048;

/// `n` elements, at most kRun.
using PairKernel = void (*)(const void* target, const void* golden, size_t n, PairPartial* acc);
/// The sums, counts and kinds of a run that is the same to the bit on both sides.
using SameKernel = void (*)(const void* both, size_t n, PairPartial* acc);

/// The type whose units in the last place are counted.
struct UlpFormat {
  double smallest;  // its smallest normal number
  double steps;     // from 1/2 to 1
};
/// Of finite doubles. Sums: the products, the most units in the last place, the least t with |a - b| <= t + t * |b|
/// everywhere, the largest absolute value.
using UlpKernel = void (*)(const double* target, const double* golden, size_t n, const UlpFormat& format, double* sums);

enum Floats { kFloat, kBFloat, kHalf, kFloatKinds };

struct PairTable {
  const char* name;
  PairKernel floats[kFloatKinds][kFloatKinds];  // by the types of target and golden
  PairKernel doubles;
  SameKernel same_floats[kFloatKinds];
  SameKernel same_doubles;
  UlpKernel ulps;
};

// Null when the compiler's target does not know the instruction set, or this machine cannot run it.
const PairTable* ScalarPairs();
const PairTable* Avx2Pairs();
const PairTable* Avx512Pairs();
const PairTable* NeonPairs();

/// Runs of types that have no kernel of their own.
void ComparePairsOfInts(const int64_t* target, const int64_t* golden, size_t n, PairPartial* acc);
void ComparePairsOfInts(const uint64_t* target, const uint64_t* golden, size_t n, PairPartial* acc);
void ComparePairsOfInts(const int64_t* target, const uint64_t* golden, size_t n, PairPartial* acc);
void ComparePairsOfInts(const uint64_t* target, const int64_t* golden, size_t n, PairPartial* acc);
/// Parts beside each other, so 2 * n doubles each.
void ComparePairsOfComplex(const double* target, const double* golden, size_t n, PairPartial* acc);

/// Errors of one pair of finite elements, as the kernels find them.
struct ElementErrors {
  double diff = 0, relative = 0;
};

template <typename T>  // float or double
inline ElementErrors ErrorsOfFloats(T target, T golden) {
  constexpr T kEpsilon = sizeof(T) == 4 ? static_cast<T>(0x1p-23) : static_cast<T>(0x1p-52);
  const T num = golden == 0 ? target + kEpsilon : target, den = golden == 0 ? kEpsilon : golden;
  const T relative = (num - den) / den;
  return {std::fabs(static_cast<double>(target) - static_cast<double>(golden)), std::fabs(relative)};
}

template <typename T, typename G>  // integers of 64 bits
inline ElementErrors ErrorsOfInts(T target, G golden) {
  const __int128 exact = static_cast<__int128>(target) - static_cast<__int128>(golden);
  const double diff = static_cast<double>(exact < 0 ? -exact : exact);
  if (golden != 0) return {diff, diff / std::fabs(static_cast<double>(golden))};
  return {diff, ErrorsOfFloats(static_cast<double>(target), 0.0).relative};
}

inline double AbsoluteOf(double re, double im) {
  const double square = re * re + im * im;
  return square > 1e-290 && square < 1e300 ? std::sqrt(square) : std::hypot(re, im);
}

inline ElementErrors ErrorsOfComplex(const double* target, const double* golden) {
  constexpr double kEpsilon = 0x1p-52;
  const double diff = AbsoluteOf(target[0] - golden[0], target[1] - golden[1]);
  const double size = AbsoluteOf(golden[0], golden[1]);
  if (size != 0) return {diff, diff / size};
  return {diff, AbsoluteOf((target[0] + kEpsilon) - kEpsilon, target[1]) / kEpsilon};
}

/// Notes the kinds of two elements of which one is not finite.
template <typename T>
inline void NoteNonFinite(T target, T golden, PairPartial* acc) {
  constexpr T kInfinity = static_cast<T>(__builtin_huge_val());
  const auto note = [&](T v, NonFinite* to) {
    to->nan += v != v;
    to->plus_inf += v == kInfinity;
    to->minus_inf += v == -kInfinity;
  };
  note(target, &acc->target);
  note(golden, &acc->golden);
  const bool same = (target != target && golden != golden) || target == golden;
  acc->differ += !same;
}

}  // namespace msprobe::metrics
