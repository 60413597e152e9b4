// A figure of a result table as mindstudio-probe writes it: how many digits depends on the type that numpy gave it.
#pragma once

#include <cstdint>
#include <string>

namespace msprobe {

/// In what precision numpy would have computed a value.
enum class Width : uint8_t { kHalf, kSingle, kDouble };

struct LabFigure {
  enum class Kind : uint8_t { kBlank, kWhole, kHalf, kSingle, kDouble };
  Kind kind = Kind::kBlank;
  double value = 0;

  static LabFigure Whole(double v) { return {Kind::kWhole, v}; }
  static LabFigure Double(double v) { return {Kind::kDouble, v}; }
  static LabFigure Of(double v, Width width) {
    return {width == Width::kHalf ? Kind::kHalf : width == Width::kSingle ? Kind::kSingle : Kind::kDouble, v};
  }
  bool blank() const { return kind == Kind::kBlank; }
  /// " " of a blank; float64 with 14 digits behind the point; float32 and float16 with the fewest digits that tell
  /// them.
  std::string Text() const;
};

/// The nearest float16; ties to even, infinity beyond its range.
double RoundToHalf(double v);
/// The nearest value of this width.
inline double RoundTo(Width width, double v) {
  return width == Width::kDouble   ? v
         : width == Width::kSingle ? static_cast<double>(static_cast<float>(v))
                                   : RoundToHalf(v);
}

/// Calls work(round), where round(v) is RoundTo(width, v): the width is decided once for a whole loop.
template <typename Work>
auto WithRounding(Width width, Work&& work) {
  if (width == Width::kDouble) return work([](double v) { return v; });
  if (width == Width::kSingle) return work([](double v) { return static_cast<double>(static_cast<float>(v)); });
  return work([](double v) { return RoundToHalf(v); });
}

}  // namespace msprobe
