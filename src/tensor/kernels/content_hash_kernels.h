// XXH3 of the library xxHash, compiled once for each instruction set: the package that distributions build is for the
// oldest machines only, and its choice at run time is in the shared library, which a wheel cannot carry.
#pragma once

#include <cstddef>
#include <cstdint>

namespace msprobe {

/// 128 bits that stand for the elements of a tensor. Never stored.
struct ContentHash {
  uint64_t low = 0, high = 0;
  bool operator==(const ContentHash&) const = default;
};

}  // namespace msprobe

namespace msprobe::content_hash {

/// Memory for the state of a hash that is made of pieces.
struct alignas(64) State {
  unsigned char bytes[576];
};

struct Kernel {
  ContentHash (*whole)(const void* data, size_t bytes);
  void (*begin)(State* state);
  void (*add)(State* state, const void* data, size_t bytes);
  ContentHash (*end)(const State& state);
};

/// All give the same values; null where the compiler or this machine does not know the instructions.
const Kernel* Avx2();
const Kernel* Avx512();
/// For any machine.
const Kernel* Plain();

}  // namespace msprobe::content_hash
