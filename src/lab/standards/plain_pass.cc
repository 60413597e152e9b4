#include "lab/standards/plain_pass.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "lab/standards/lanes.h"
#include "tensor/kernels/isa.h"

namespace msprobe {
namespace {

using namespace lanes;

constexpr double kLargest = std::numeric_limits<double>::max();

#define MSPROBE_SIZES(v) reinterpret_cast<Doubles>(reinterpret_cast<Bits>(v) & ~kSign)
#define MSPROBE_SINGLES(v) __builtin_convertvector(__builtin_convertvector(v, Floats), Doubles)
#define MSPROBE_ROUNDED(v) (kSingle ? MSPROBE_SINGLES(v) : (v))

/// The elements of PairwiseSum that are added up at once. Where there are fewer than a vector has, the last one is
/// there again.
struct PlainPart {
  size_t begin, count;
  std::array<double, kMostAtOnce> squares, relative;
  std::array<int64_t, kMostAtOnce> counts;  // -1 of those that are not small
};

/// Measures the part; false where an element is not finite.
template <bool kSingle>
[[gnu::always_inline]] inline bool MeasurePart(const PlainInput& in, PlainPart* part, PlainFigures* out) {
  Bits finite = Bits{} - 1, larger{}, smaller{}, small{}, bad{};
  Doubles most_relative{}, most_absolute{}, most_device{}, most_bench{};
  for (size_t i = 0; i < part->count; i += kLanes) {
    Doubles a, b;
    Bits there = Bits{} - 1;
    if (i + kLanes <= part->count) {
      std::memcpy(&a, in.device + part->begin + i, sizeof a), std::memcpy(&b, in.bench + part->begin + i, sizeof b);
    } else {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const size_t place = part->begin + std::min(i + lane, part->count - 1);
        a[lane] = in.device[place], b[lane] = in.bench[place], there[lane] = i + lane < part->count ? -1 : 0;
      }
    }
    const Doubles rounded = MSPROBE_SINGLES(b), device = MSPROBE_SIZES(a), bench = MSPROBE_SIZES(b);
    const Doubles apart = a - b, absolute = MSPROBE_SIZES(MSPROBE_ROUNDED(apart));
    const Doubles magnitude = bench + in.epsilon, quotient = absolute / MSPROBE_ROUNDED(magnitude);
    const Doubles share = MSPROBE_ROUNDED(quotient), product = absolute * absolute;
    finite &= (device <= kLargest) & (MSPROBE_SIZES(rounded) <= kLargest);
    const Bits counts = bench > in.small;
    const auto square = reinterpret_cast<Doubles>(reinterpret_cast<Bits>(MSPROBE_ROUNDED(product)) & counts);
    const auto counted = reinterpret_cast<Doubles>(reinterpret_cast<Bits>(share) & counts);
    std::memcpy(&part->relative[i], &share, sizeof share), std::memcpy(&part->squares[i], &square, sizeof square);
    std::memcpy(&part->counts[i], &counts, sizeof counts);
    small -= ~counts & there, bad -= ~counts & there & (absolute > in.small_error);  // what is true is -1
    larger -= (a > rounded) & there, smaller -= (a < rounded) & there;
    most_relative = counted > most_relative ? counted : most_relative;
    most_absolute = absolute > most_absolute ? absolute : most_absolute;
    most_device = device > most_device ? device : most_device;
    most_bench = bench > most_bench ? bench : most_bench;
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    if (!finite[lane]) return false;
    out->small += static_cast<uint64_t>(small[lane]), out->small_bad += static_cast<uint64_t>(bad[lane]);
    out->larger += larger[lane], out->smaller += smaller[lane];
    out->largest_relative = std::max(out->largest_relative, double{most_relative[lane]});
    out->largest_absolute = std::max(out->largest_absolute, double{most_absolute[lane]});
    out->largest_device = std::max(out->largest_device, double{most_device[lane]});
    out->largest_bench = std::max(out->largest_bench, double{most_bench[lane]});
  }
  return true;
}

using PartFunction = bool (*)(const PlainInput&, PlainPart*, PlainFigures*);
template <bool kSingle>
bool MeasureByAny(const PlainInput& in, PlainPart* part, PlainFigures* out) {
  return MeasurePart<kSingle>(in, part, out);
}
#if MSPROBE_X86
template <bool kSingle>
__attribute__((target("avx2"))) bool MeasureByAvx2(const PlainInput& in, PlainPart* part, PlainFigures* out) {
  return MeasurePart<kSingle>(in, part, out);
}
#endif

/// Takes the parts as numpy adds them up.
class PlainPass {
 public:
  PlainPass(const PlainInput& in, PartFunction measure, PlainFigures* out, double* relative)
      : in_(in), measure_(measure), out_(out), relative_(relative) {}

  template <typename Round>
  bool Add(size_t begin, size_t count, const Round& round, double* sum) {
    if (count <= kMostAtOnce) return AddPart(begin, count, round, sum);
    const size_t half = HalfOfSum(count);
    double left = 0, right = 0;
    if (!Add(begin, half, round, &left) || !Add(begin + half, count - half, round, &right)) return false;
    *sum = round(left + right);
    return true;
  }

 private:
  template <typename Round>
  bool AddPart(size_t begin, size_t count, const Round& round, double* sum) {
    part_.begin = begin, part_.count = count;
    const uint64_t small = out_->small;
    if (!measure_(in_, &part_, out_)) return false;
    *sum = SumAtOnce(part_.squares.data(), count, round);
    if (out_->small == small) {
      relative_ = std::copy_n(part_.relative.begin(), count, relative_);
    } else {
      for (size_t i = 0; i < count; ++i) {
        if (part_.counts[i]) *relative_++ = part_.relative[i];
      }
    }
    return true;
  }

  const PlainInput& in_;
  PartFunction measure_;
  PlainFigures* out_;
  double* relative_;
  PlainPart part_;
};

/// Products some at a time; only the sums wait for each other.
[[gnu::always_inline]] inline CosineSums Cosine(const double* device, const double* bench, size_t count,
                                                double device_size, double bench_size) {
  CosineSums out;
  std::array<double, kMostAtOnce> product, ours, theirs;
  for (size_t begin = 0; begin < count; begin += kMostAtOnce) {
    const size_t some = std::min(kMostAtOnce, count - begin);
    for (size_t i = 0; i < some; ++i) {
      const double x = device[begin + i] / device_size, y = bench[begin + i] / bench_size;
      product[i] = x * y, ours[i] = x * x, theirs[i] = y * y;
    }
    for (size_t i = 0; i < some; ++i) out.product += product[i], out.device += ours[i], out.bench += theirs[i];
  }
  return out;
}
#if MSPROBE_X86
__attribute__((target("avx2"))) CosineSums CosineByAvx2(const double* device, const double* bench, size_t count,
                                                        double device_size, double bench_size) {
  return Cosine(device, bench, count, device_size, bench_size);
}
#endif

bool Measure(const PlainInput& in, PartFunction single, PartFunction wide, PlainFigures* out, double* relative) {
  PlainPass pass(in, in.width == Width::kDouble ? wide : single, out, relative);
  return WithRounding(in.width, [&](auto round) { return pass.Add(0, in.count, round, &out->squares); });
}

}  // namespace

bool MeasurePlain(const PlainInput& in, PlainFigures* out, double* relative) {
#if MSPROBE_X86
  static const bool avx2 = isa::HasAvx2();
  if (avx2) return Measure(in, MeasureByAvx2<true>, MeasureByAvx2<false>, out, relative);
#endif
  return MeasurePlainly(in, out, relative);
}

CosineSums SumsOfCosine(const double* device, const double* bench, size_t count, double device_size,
                        double bench_size) {
#if MSPROBE_X86
  static const bool avx2 = isa::HasAvx2();
  if (avx2) return CosineByAvx2(device, bench, count, device_size, bench_size);
#endif
  return Cosine(device, bench, count, device_size, bench_size);
}

bool MeasurePlainly(const PlainInput& in, PlainFigures* out, double* relative) {
  return Measure(in, MeasureByAny<true>, MeasureByAny<false>, out, relative);
}

}  // namespace msprobe
