#include "lab/known_kernels.h"

namespace msprobe {
namespace {

struct KnownFault {
  std::string_view function, direction;
  bool halves;
  std::string_view what;
};

constexpr KnownFault kKnown[] = {
#define MSP_KERNEL(function, direction, halves, what) {function, direction, halves, what},
#include "lab/known_kernels.def"
#undef MSP_KERNEL
};

}  // namespace

std::string_view KnownKernel(std::string_view api, std::string_view direction, std::string_view dtype) {
  const std::string_view function = api.substr(api.rfind('.') + 1);
  const bool half = dtype == "torch.float16" || dtype == "torch.bfloat16";
  for (const KnownFault& k : kKnown) {
    if (k.function == function && k.direction == direction && (half || !k.halves)) return k.what;
  }
  return {};
}

}  // namespace msprobe
