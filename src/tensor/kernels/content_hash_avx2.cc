#include <climits>
#include <cstdlib>
#include <cstring>

#include "tensor/kernels/content_hash_kernels.h"
#include "tensor/kernels/isa.h"

#if MSPROBE_X86
#define XXH_VECTOR XXH_AVX2
MSPROBE_TARGET_BEGIN(MSPROBE_AVX2)
#include "tensor/kernels/content_hash_kernel-inl.h"
MSPROBE_TARGET_END

namespace msprobe::content_hash {
const Kernel* Avx2() { return isa::HasAvx2() ? &kKernel : nullptr; }
}  // namespace msprobe::content_hash

#else
namespace msprobe::content_hash {
const Kernel* Avx2() { return nullptr; }
}  // namespace msprobe::content_hash
#endif
