#include "tensor/kernels/content_hash.h"

#include "tensor/kernels/content_hash_kernel-inl.h"
#include "tensor/kernels/content_hash_kernels.h"
#include "tensor/kernels/layout.h"

namespace msprobe {
namespace content_hash {

const Kernel* Plain() { return &kKernel; }

namespace {
const Kernel& Fastest() {
  if (const Kernel* kernel = Avx512()) return *kernel;
  if (const Kernel* kernel = Avx2()) return *kernel;
  return *Plain();
}
}  // namespace

}  // namespace content_hash

ContentHash HashContent(const TensorView& t) {
  static const content_hash::Kernel& kernel = content_hash::Fastest();
  Layout layout;
  if (!MakeLayout(t, Order::kLogical, &layout) || layout.count == 0) return kernel.whole("", 0);
  if (layout.contiguous()) return kernel.whole(layout.data, static_cast<size_t>(layout.count) * layout.element);
  content_hash::State state;
  kernel.begin(&state);
  LayoutWalker(layout).Walk(0, layout.count,
                            [&](const char* p, size_t n) { kernel.add(&state, p, n * layout.element); });
  return kernel.end(state);
}

}  // namespace msprobe
