#include "lowp/formats/scaled_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr float kLeastLargest = 1e-12F;  // of torchao and Transformer Engine: a tensor of zeros has a finite scale
constexpr int kMxBlock = 32, kNvBlock = 16, kTileSide = 128;

struct NamedFormat {
  std::string_view name, element;
  ScaleGroup group;
  int block;
  ScaleKind scale;
};

// Named by their specifications. MXFP6 has two element types; the one with more digits is what trainings use.
constexpr NamedFormat kNamed[] = {
    {"mxfp8", "e4m3", ScaleGroup::kBlock, kMxBlock, ScaleKind::kPowerOfTwo},
    {"mxfp8_e5m2", "e5m2", ScaleGroup::kBlock, kMxBlock, ScaleKind::kPowerOfTwo},
    {"mxfp6", "e2m3", ScaleGroup::kBlock, kMxBlock, ScaleKind::kPowerOfTwo},
    {"mxfp6_e3m2", "e3m2", ScaleGroup::kBlock, kMxBlock, ScaleKind::kPowerOfTwo},
    {"mxfp4", "e2m1", ScaleGroup::kBlock, kMxBlock, ScaleKind::kPowerOfTwo},
    {"nvfp4", "e2m1", ScaleGroup::kBlock, kNvBlock, ScaleKind::kTwoLevels},
    {"bf16", "bf16", ScaleGroup::kNone, 0, ScaleKind::kFloat},
};

struct NamedGroup {
  std::string_view name;
  ScaleGroup group;
  int block;
};
constexpr NamedGroup kGroups[] = {
    {"tensor", ScaleGroup::kTensor, 0}, {"delayed", ScaleGroup::kDelayed, 0},
    {"row", ScaleGroup::kRow, 0},       {"cast", ScaleGroup::kNone, 0},
    {"16", ScaleGroup::kBlock, 16},     {"32", ScaleGroup::kBlock, kMxBlock},
    {"1x128", ScaleGroup::kBlock, 128}, {"128x128", ScaleGroup::kTile, kTileSide},
};

Status UnknownFormat(std::string_view text) {
  return UsageError(
      Msg("{} is not a format: mxfp8, mxfp8_e5m2, mxfp6, mxfp6_e3m2, mxfp4, nvfp4, bf16, or e4m3, e5m2, e3m2, "
          "e2m3, e2m1 or int8, with :tensor, :row, :16, :32, :1x128, :128x128, :delayed or :cast behind it",
          OneLine(text)));
}

/// Of a block, as a power of two: E8M0 keeps the exponent and cuts the rest.
float PowerOfTwoScale(const NumberFormat& element, float largest) {
  const int largest_power = std::ilogb(element.largest);
  const int power = static_cast<int>(std::bit_cast<uint32_t>(largest) >> 23) - 127 - largest_power;
  return std::ldexp(1.0F, std::clamp(power, -126, 127));
}

/// One run of neighbours that share a scale.
class RunStore {
 public:
  RunStore(const ScaledFormat& format, const CastRules& rules, float largest)
      : format_(format), rules_(rules), tensor_largest_(largest) {
    if (format.scale == ScaleKind::kTwoLevels)
      tensor_scale_ = tensor_largest_ / (block_scales_.largest * format.element->largest);
  }

  /// `largest` is that of those which share the scale; `first` the place of the first one.
  void Store(const float* in, int64_t n, float largest, int64_t first, float* out) {
    float up = 1, down = 1;
    bool divides = false;
    if (format_.group != ScaleGroup::kNone) Scales(largest, &up, &down, &divides);
    CastRules rules = rules_;
    rules.first += static_cast<uint64_t>(first);
    CastNumbers(*format_.element, rules, in, n, up, out, &counts_.casts);
    if (divides) {
      for (int64_t i = 0; i < n; ++i) out[i] /= down;
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] *= down;
    }
    AddSquares(in, out, n);
    counts_.elements += static_cast<uint64_t>(n);
  }
  StoredCounts counts() const {
    StoredCounts out = counts_;
    for (const double e : errors_) out.error2 += e;
    for (const double v : values_) out.value2 += v;
    return out;
  }

 private:
  /// In float64, several sums side by side. NaN and infinities count as 0, whatever they were stored as. In two loops,
  /// which compilers turn into vectors.
  void AddSquares(const float* in, const float* out, int64_t n) {
    std::array<float, kPart> values, errors;
    for (int64_t begin = 0; begin < n; begin += kPart) {
      const int64_t some = std::min(kPart, n - begin);
      const float *x = in + begin, *y = out + begin;
      for (int64_t i = 0; i < some; ++i) {
        const int32_t finite = -static_cast<int32_t>((std::bit_cast<int32_t>(x[i]) & 0x7FFFFFFF) < 0x7F800000);
        values[static_cast<size_t>(i)] = std::bit_cast<float>(std::bit_cast<int32_t>(x[i]) & finite);
        errors[static_cast<size_t>(i)] = std::bit_cast<float>(std::bit_cast<int32_t>(y[i] - x[i]) & finite);
      }
      AddTo(values.data(), some, &values_), AddTo(errors.data(), some, &errors_);
    }
  }
  static void AddTo(const float* v, int64_t n, std::array<double, 8>* sums) {
    std::array<double, 8> own = *sums;
    int64_t i = 0;
    for (; i + kSums <= n; i += kSums) {
      for (int64_t lane = 0; lane < kSums; ++lane)
        own[static_cast<size_t>(lane)] += double{v[i + lane]} * double{v[i + lane]};
    }
    for (; i < n; ++i) own[0] += double{v[i]} * double{v[i]};
    *sums = own;
  }
  void Scales(float largest, float* up, float* down, bool* divides) const {
    const NumberFormat& element = *format_.element;
    switch (format_.scale) {
      case ScaleKind::kFloat:
        *up = static_cast<float>(double{element.largest} / double{std::max(largest, kLeastLargest)});
        *down = *up, *divides = true;
        break;
      case ScaleKind::kPowerOfTwo: *down = PowerOfTwoScale(element, largest), *up = 1 / *down; break;
      case ScaleKind::kTwoLevels:
        if (tensor_scale_ > 0) {
          const float block = BlockScale(largest);
          *up = (1.0F / tensor_scale_) / block, *down = tensor_scale_ * block;
        }
        break;
    }
  }
  /// NVFP4's scale of a block, a number of E4M3 that is at least its smallest normal one.
  float BlockScale(float largest) const {
    const float wanted = largest / format_.element->largest / tensor_scale_;
    const float clamped = std::clamp(wanted, least_scale_, block_scales_.largest);
    float scale;
    CastCounts ignored;
    CastNumbers(block_scales_, {}, &clamped, 1, 1, &scale, &ignored);
    return scale;
  }

  const ScaledFormat& format_;
  const CastRules& rules_;
  const float tensor_largest_;
  const NumberFormat& block_scales_ = *FindNumberFormat("e4m3");  // of kTwoLevels
  const float least_scale_ = std::ldexp(1.0F, block_scales_.least_power);
  float tensor_scale_ = 0;
  static constexpr int64_t kSums = 8, kPart = 256;
  std::array<double, kSums> errors_{}, values_{};
  StoredCounts counts_;  // without the sums
};

float LargestOfTile(const DenseMatrix& in, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  float largest = 0;
  for (int64_t r = row; r < row + rows; ++r) largest = std::max(largest, LargestMagnitude(in.Row(r) + col, cols));
  return largest;
}

}  // namespace

double ScaledFormat::Floor() const {
  if (element->least_power > 0)  // equal steps: largest / 4 is one deviation, a step's error is 1 / sqrt(12)
    return 4 / (element->largest * std::sqrt(12.0));
  return element->unit() / std::sqrt(3.0);
}

StatusOr<ScaledFormat> ParseScaledFormat(std::string_view text) {
  for (const NamedFormat& f : kNamed) {
    if (f.name == text) return ScaledFormat{std::string(text), FindNumberFormat(f.element), f.group, f.block, f.scale};
  }
  const size_t colon = text.find(':');
  const NumberFormat* element = FindNumberFormat(text.substr(0, colon));
  if (element == nullptr || element->name == "bf16") return UnknownFormat(text);
  if (colon == std::string_view::npos)
    return ScaledFormat{std::string(text), element, ScaleGroup::kTensor, 0, ScaleKind::kFloat};
  for (const NamedGroup& g : kGroups) {
    if (g.name == text.substr(colon + 1))
      return ScaledFormat{std::string(text), element, g.group, g.block, ScaleKind::kFloat};
  }
  return UnknownFormat(text);
}

DenseMatrix DenseMatrix::Transposed() const {
  constexpr int64_t kSide = 32;  // rows and columns at a time, so that lines of the cache are used whole
  DenseMatrix out(cols, rows);
  for (int64_t r0 = 0; r0 < rows; r0 += kSide) {
    for (int64_t c0 = 0; c0 < cols; c0 += kSide) {
      for (int64_t r = r0; r < std::min(rows, r0 + kSide); ++r) {
        for (int64_t c = c0; c < std::min(cols, c0 + kSide); ++c) out.Row(c)[r] = Row(r)[c];
      }
    }
  }
  return out;
}

float LargestMagnitude(const float* values, int64_t n) {
  int32_t largest = 0;  // magnitudes are in the order of their bits
  for (int64_t i = 0; i < n; ++i) {
    const int32_t magnitude = std::bit_cast<int32_t>(values[i]) & 0x7FFFFFFF;
    const int32_t finite = magnitude < 0x7F800000 ? magnitude : 0;
    largest = finite > largest ? finite : largest;
  }
  return std::bit_cast<float>(largest);
}

double StoredCounts::Error() const { return value2 > 0 ? std::sqrt(error2 / value2) : 0; }

StoredCounts StoreAndRead(const ScaledFormat& format, const CastRules& rules, float largest, const DenseMatrix& in,
                          DenseMatrix* out) {
  out->rows = in.rows, out->cols = in.cols;
  out->values.resize(in.values.size());
  RunStore store(format, rules, largest);
  const int64_t side = format.group == ScaleGroup::kTile ? format.block : 1;
  const bool blocks = format.group == ScaleGroup::kBlock || format.group == ScaleGroup::kTile;
  const int64_t run = blocks ? format.block : std::max<int64_t>(in.cols, 1);
  for (int64_t row = 0; row < in.rows; row += side) {
    const int64_t rows = std::min(side, in.rows - row);
    for (int64_t col = 0; col < in.cols; col += run) {
      const int64_t cols = std::min(run, in.cols - col);
      const bool own = blocks || format.group == ScaleGroup::kRow;
      const float shared = own ? LargestOfTile(in, row, rows, col, cols) : largest;
      for (int64_t r = row; r < row + rows; ++r)
        store.Store(in.Row(r) + col, cols, shared, r * in.cols + col, out->Row(r) + col);
    }
  }
  return store.counts();
}

}  // namespace msprobe
