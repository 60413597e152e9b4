// A 128-bit hash of a tensor's elements, to find tensors of equal content. Fast, and no protection against an attacker:
// whoever can choose the values of a training owns its dump.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/stats.h"

namespace msprobe {

struct ContentHash {
  uint64_t low = 0, high = 0;
  bool operator==(const ContentHash&) const = default;
};

/// Takes bytes in pieces of any size; the pieces do not show in the result.
class ContentHasher {
 public:
  ContentHasher();
  void Add(const void* data, size_t bytes);
  ContentHash Finish();

  static constexpr size_t kStripe = 64, kBlockStripes = 16;

 private:
  void AddStripes(const unsigned char* data, size_t stripes);

  alignas(64) uint64_t lanes_[8];
  unsigned char rest_[kStripe];
  size_t filled_ = 0, stripe_ = 0;  // in the block
  uint64_t total_ = 0;
};

/// Of the elements in C order; strided tensors give the value of their contiguous copy. Shape and dtype are not in it.
ContentHash HashContent(const TensorView& t);

namespace internal {
/// Both give the same lanes; the second is null where the machine cannot run it.
using StripeKernel = void (*)(const unsigned char* data, size_t stripes, size_t first, uint64_t* lanes);
void ScalarStripes(const unsigned char* data, size_t stripes, size_t first, uint64_t* lanes);
StripeKernel VectorStripes();
}  // namespace internal

}  // namespace msprobe
