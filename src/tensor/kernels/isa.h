// Parts of a file that are compiled for an instruction set which not every machine has:
//   #if MSPROBE_X86
//   MSPROBE_TARGET_BEGIN(MSPROBE_AVX2)
//   ...
//   MSPROBE_TARGET_END
//   #endif
// What is in there runs only where the function of this header for that set answers true.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

#define MSPROBE_X86 1
#define MSPROBE_AVX2 "avx2,fma,f16c"
#define MSPROBE_PRAGMA(text) _Pragma(#text)

#if defined(__clang__)
#define MSPROBE_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"
#define MSPROBE_TARGET_BEGIN(isa) \
  MSPROBE_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define MSPROBE_TARGET_END MSPROBE_PRAGMA(clang attribute pop)
#else
#define MSPROBE_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,prefer-vector-width=512"
// GCC 12 warns about the deliberately undefined registers of its own intrinsics for AVX-512.
#define MSPROBE_TARGET_BEGIN(isa)                                \
  MSPROBE_PRAGMA(GCC diagnostic ignored "-Wmaybe-uninitialized") \
  MSPROBE_PRAGMA(GCC diagnostic ignored "-Wuninitialized")       \
  MSPROBE_PRAGMA(GCC push_options)                               \
  MSPROBE_PRAGMA(GCC target(isa))
#define MSPROBE_TARGET_END MSPROBE_PRAGMA(GCC pop_options)
#endif

namespace msprobe::isa {

/// Every machine with AVX2 has F16C, which compilers cannot all be asked for.
inline bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

inline bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

inline bool HasVpclmul() {
  return HasAvx512() && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul");
}

}  // namespace msprobe::isa
#else
#define MSPROBE_X86 0
#endif
