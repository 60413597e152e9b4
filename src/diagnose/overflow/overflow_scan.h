// NaN and infinities in the dump of one rank: which ops read or give them, without keeping anything about the others.
#pragma once

#include <cstdint>
#include <vector>

#include "dump/flatten.h"
#include "dump/reader.h"

namespace msprobe {

/// What a tensor holds that a healthy one does not; a set of bits.
enum BadKind : uint8_t { kBadNaN = 1, kBadPosInf = 2, kBadNegInf = 4 };
constexpr uint8_t kBadInfinities = kBadPosInf | kBadNegInf;

/// Which of them the description of a tensor tells of. An infinite Mean or Norm of finite values is the statistic's own
/// overflow (older dumps sum in single precision) and no finding; a NaN Mean is one.
uint8_t BadKindsOf(const JsonValue& leaf);

/// How far the largest magnitude is from the greatest number of the dtype, as a factor; 0 where it cannot be told.
double OverflowMarginOf(const JsonValue& leaf);

struct BadItem {
  uint64_t key = 0;    // of dtype, shape and all statistics or the checksum: equal for equal tensors
  uint64_t loose = 0;  // without dtype and shape, but with the number of elements: equal for views
  uint64_t elements = 1;
  uint32_t index = 0;  // among the items that FlattenOp gives
  ItemState state = ItemState::kInput;
  uint8_t kinds = 0;
  bool distinctive = false;  // a statistic is finite, so that the keys say something
  bool scalar = false;       // no dimensions
  bool leaf_grad = false;    // an input with requires_grad
  bool no_grad = false;      // requires_grad is false
  bool unwritten = false;    // memory that nobody had written
};

/// An integer tensor that holds the least or the greatest number of its dtype: what a cast makes of NaN and infinities.
struct CutItem {
  uint64_t key = 0, elements = 1;  // as of BadItem
  bool output = false;
};

struct BadOp {
  uint32_t op = 0;
  uint32_t begin = 0, end = 0;            // in OverflowScan::items
  uint32_t cuts_begin = 0, cuts_end = 0;  // in OverflowScan::cuts
  uint8_t constants = 0;                  // kinds of plain numbers among the arguments
  bool plain = true;              // none of its tensors is of a class of its own, which may communicate (DTensor)
  bool has_float_output = true;   // false: it only looks (isnan, argmax), or makes integers of what it is given
  bool has_whole_output = false;  // a tensor of integers or of true and false
};

struct NearOverflow {
  uint32_t op = 0;
  float margin = 0;
};

struct OverflowScan {
  std::vector<BadOp> ops;  // in the order of the dump
  std::vector<BadItem> items;
  std::vector<CutItem> cuts;
  std::vector<NearOverflow> near;  // the first kMostNear ops whose dumps say so themselves
  static constexpr size_t kMostNear = 4096;
};

/// With `parallel` the blocks of the dump are read by all threads; the result is the same.
StatusOr<OverflowScan> ScanForOverflow(const DumpFile& dump, bool parallel);

/// The tensor that an item describes: the leaf itself, or the one inside a P2POp. Null when it is neither.
const JsonValue* TensorOf(const JsonValue* leaf);

}  // namespace msprobe
