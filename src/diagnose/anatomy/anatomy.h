// How a value is wrong: the one simple change of the golden value that gives the target's. docs/en/compare/anatomy.md
// has the kinds and their bounds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/language.h"

namespace msprobe {

class JsonWriter;

enum class AnatomyKind : uint8_t {
  kUnexplained,
  kFactor,       // number times the golden value
  kSign,         // the golden value with the other sign
  kOffset,       // number more than the golden value
  kAxes,         // the golden values with axes exchanged, or in the memory order of that
  kOrder,        // entries of an axis (heads, rows, experts) stand in another order
  kShift,        // entries of an axis stand `shift` places later
  kRope,         // halves of a head against neighbouring pairs
  kStale,        // the golden value of another step or call
  kAccumulated,  // the golden value, and that of an earlier step added to it
  kPartial,      // a summand of the golden value
  kPadding,      // differs where the tokens are padding, and nowhere else
  kGrid,         // the golden values rounded to a coarser dtype
  kZeroed,       // zero, everywhere or in some entries of an axis
  kDropped,      // some values are zero, the others larger by what they would need: a dropout
  kDuplicated,   // some entries of an axis repeat others
  kTruncated,    // only the first entries of an axis
  kClipped,      // the golden values between two bounds
  kNotFinite,    // NaN or infinities; the finite values agree
};
/// "factor", as JSON has it.
std::string_view AnatomyKindName(AnatomyKind kind);

/// Entries of an axis.
struct AxisPart {
  int axis = -1;  // -1: everything
  int64_t size = 0;
  int64_t count = 0;             // of the entries that are meant
  std::vector<int64_t> entries;  // the first of them
};

struct Anatomy {
  AnatomyKind kind = AnatomyKind::kUnexplained;
  std::string item;                   // "output.0"; "Torch.mul.0.forward.input.0" of another op than the origin
  double number = 0;                  // kFactor, kOffset; kDropped, kAccumulated: the factor of what is left
  double low = 0, high = 0;           // kClipped; infinite where there is no bound
  std::string name;                   // kFactor: "1/8", "sqrt(8)", "2^16"; kGrid: the dtype; "" if it has none
  std::vector<std::string> meanings;  // kFactor: "world_size", "sqrt_of_dimension", "loss_scale", "size_of_dimension"
  AxisPart part;                      // where; of kOrder, kShift, kRope, kDuplicated, kTruncated which axis
  std::vector<int64_t> sources;       // kOrder, kDuplicated: where the golden run has what stands in `part.entries`
  std::vector<int> axes;              // kAxes: the two
  int64_t shift = 0;                  // kShift
  int64_t block = 0;                  // kOrder: entries that move together; kAxes: the split of an axis; kRope: a head
  bool wraps = false;                 // kShift: what leaves at one end comes in at the other
  std::string source;                 // kStale, kAccumulated: which; kPartial: what is missing
  int64_t differing = 0;              // kPadding, kClipped, kDropped, kNotFinite: elements
  double residual = 0;                // what is left when it is undone, in rounding units of the dtype
  int64_t compared = 0, elements = 0;
  bool statistics = false;  // found in statistics, without the values
  bool ambiguous = false;   // statistics: something else gives the same ones
  bool found() const { return kind != AnatomyKind::kUnexplained; }
};

/// One sentence: "it is 8 times the golden value (the number of ranks); undone, 0.6 rounding units are left". "" for
/// what is not explained.
std::string AnatomyText(const Anatomy& anatomy, Language language);
/// {"kind": "factor", "item": .., "parameter": {"factor": 8, ..}, "residual": .., .., "text": {"en": .., "zh": ..}}
void WriteAnatomy(JsonWriter* json, const Anatomy& anatomy);

}  // namespace msprobe
