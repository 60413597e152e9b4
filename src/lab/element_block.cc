#include "lab/element_block.h"

#include <cstring>

#include "lab/standards/lanes.h"
#include "tensor/kernels/isa.h"

namespace msprobe {
namespace {

using namespace lanes;

constexpr int kBias = 1023, kFraction = 52;
constexpr int64_t kPower = int64_t{2047} << kFraction;

[[gnu::always_inline]] inline bool Measure(const ElementRuler& ruler, const double* ours, const double* truth,
                                           const float* bounds, ElementExtremes* found, ElementBlock* out) {
  // 1 / 2^(power of the last place) of a number of this power: what is left of the sum of both is the power of one.
  const int64_t inverse = int64_t{2 * kBias + ruler.digits - 1} << kFraction;
  const int64_t shift = int64_t{ElementBlock::kShift} << kFraction;
  const double before = found->limit > 1e-300 ? found->limit : 1e-300, error_before = found->error;
  Bits plain = Bits{} - 1, further{}, infinite{};
  Doubles rtol{}, atol{};
  for (size_t i = 0; i < ElementBlock::kSize; i += kLanes) {
    Doubles a, b;
    std::memcpy(&a, ours + i, sizeof a), std::memcpy(&b, truth + i, sizeof b);
    const auto size = reinterpret_cast<Doubles>(reinterpret_cast<Bits>(b) & ~kSign);
    const auto ours_size = reinterpret_cast<Doubles>(reinterpret_cast<Bits>(a) & ~kSign);
    const auto apart = reinterpret_cast<Doubles>(reinterpret_cast<Bits>(a - b) & ~kSign);
    const Bits zero = size == 0.0;
    plain &= (ours_size <= ruler.high) & (size <= ruler.high) & ((size >= ruler.smallest) | zero);
    const Doubles least = Doubles{} + ruler.smallest;
    const auto above =
        reinterpret_cast<Doubles>((reinterpret_cast<Bits>(size) & ~zero) | (reinterpret_cast<Bits>(least) & zero));
    const Bits power = reinterpret_cast<Bits>(above) & kPower;
    const auto scale = reinterpret_cast<Doubles>(inverse - power);
    const Doubles errors = apart * scale;
    Bits classes = (errors > kUlpClasses[0]) + (errors > kUlpClasses[1]) + (errors > kUlpClasses[2]) +
                   (errors > kUlpClasses[3]) + (errors > kUlpClasses[4]) + (errors > kUlpClasses[5]);
    const Words bins = reinterpret_cast<Words>(power + shift) >> (kFraction + 2);
    const Bits rows = (reinterpret_cast<Bits>(bins) & ~zero) | (static_cast<int64_t>(ElementBlock::kZeroBin) & zero);
    const Bits places = rows * static_cast<int64_t>(ElementBlock::kClasses) - classes;  // what is true is -1
    std::memcpy(&out->places[i], &places, sizeof places);
    std::memcpy(&out->errors[i], &errors, sizeof errors);
    const Doubles share = apart / above, over = apart - ruler.eps * size;
    infinite |= zero & (apart > 0.0);
    const auto counted = reinterpret_cast<Doubles>(reinterpret_cast<Bits>(share) & ~zero);
    rtol = counted > rtol ? counted : rtol;
    atol = over > atol ? over : atol;
    Doubles limits = Doubles{} + ruler.ulps;
    if (bounds) {
      Floats bound;
      std::memcpy(&bound, bounds + i, sizeof bound);
      limits += __builtin_convertvector(bound, Doubles) * scale;
    }
    std::memcpy(&out->limits[i], &limits, sizeof limits);
    further |= errors * before > error_before * limits;
  }
  bool any = false, all = true, without = false;
  for (size_t i = 0; i < kLanes; ++i) all = all && plain[i], any = any || further[i], without = without || infinite[i];
  if (!all) return false;
  for (size_t i = 0; i < kLanes; ++i) {
    found->rtol = rtol[i] > found->rtol ? rtol[i] : found->rtol;
    found->atol = atol[i] > found->atol ? atol[i] : found->atol;
  }
  if (without) found->rtol = std::numeric_limits<double>::infinity();
  out->further = any || found->limit == 0;
  return true;
}

#if MSPROBE_X86
__attribute__((target("avx2"))) bool MeasureBlockAvx2(const ElementRuler& ruler, const double* ours,
                                                      const double* truth, const float* bounds, ElementExtremes* found,
                                                      ElementBlock* out) {
  return Measure(ruler, ours, truth, bounds, found, out);
}
#endif

}  // namespace

bool MeasureBlockPlainly(const ElementRuler& ruler, const double* ours, const double* truth, const float* bounds,
                         ElementExtremes* found, ElementBlock* out) {
  return Measure(ruler, ours, truth, bounds, found, out);
}

bool MeasureBlock(const ElementRuler& ruler, const double* ours, const double* truth, const float* bounds,
                  ElementExtremes* found, ElementBlock* out) {
#if MSPROBE_X86
  static const bool avx2 = isa::HasAvx2();
  if (avx2) return MeasureBlockAvx2(ruler, ours, truth, bounds, found, out);
#endif
  return MeasureBlockPlainly(ruler, ours, truth, bounds, found, out);
}

}  // namespace msprobe
