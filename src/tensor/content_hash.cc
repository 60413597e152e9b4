#include "tensor/content_hash.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tensor/layout.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace msprobe {
namespace {

constexpr uint64_t Mix(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Each stripe of a block has keys of its own, so that equal stripes in another order give another sum.
constexpr size_t kKeys = ContentHasher::kBlockStripes + 8;
constexpr auto kKey = [] {
  std::array<uint64_t, kKeys> keys{};
  for (size_t i = 0; i < kKeys; ++i) keys[i] = Mix(0x6d7370726f6265ull + i);
  return keys;
}();

constexpr uint64_t kPrime = 0x9e3779b1u;

}  // namespace

namespace internal {

void ScalarStripes(const unsigned char* data, size_t stripes, size_t first, uint64_t* lanes) {
  for (size_t s = 0; s < stripes; ++s, data += ContentHasher::kStripe) {
    for (size_t i = 0; i < 8; ++i) {
      uint64_t v;
      std::memcpy(&v, data + 8 * i, 8);
      const uint64_t k = v ^ kKey[first + s + i];
      lanes[i ^ 1] += v;
      lanes[i] += (k & 0xffffffffu) * (k >> 32);
    }
  }
}

#if defined(__x86_64__)
namespace {
__attribute__((target("avx2"))) void Avx2Stripes(const unsigned char* data, size_t stripes, size_t first,
                                                 uint64_t* lanes) {
  auto* at = reinterpret_cast<__m256i*>(lanes);
  __m256i a = _mm256_loadu_si256(at), b = _mm256_loadu_si256(at + 1);
  for (size_t s = 0; s < stripes; ++s, data += ContentHasher::kStripe) {
    const auto* in = reinterpret_cast<const __m256i*>(data);
    const auto* keys = reinterpret_cast<const __m256i*>(kKey.data() + first + s);
    const __m256i va = _mm256_loadu_si256(in), vb = _mm256_loadu_si256(in + 1);
    const __m256i ka = _mm256_xor_si256(va, _mm256_loadu_si256(keys));
    const __m256i kb = _mm256_xor_si256(vb, _mm256_loadu_si256(keys + 1));
    a = _mm256_add_epi64(a, _mm256_shuffle_epi32(va, 0x4e));
    b = _mm256_add_epi64(b, _mm256_shuffle_epi32(vb, 0x4e));
    a = _mm256_add_epi64(a, _mm256_mul_epu32(ka, _mm256_srli_epi64(ka, 32)));
    b = _mm256_add_epi64(b, _mm256_mul_epu32(kb, _mm256_srli_epi64(kb, 32)));
  }
  _mm256_storeu_si256(at, a);
  _mm256_storeu_si256(at + 1, b);
}
}  // namespace

StripeKernel VectorStripes() { return __builtin_cpu_supports("avx2") ? Avx2Stripes : nullptr; }
#else
StripeKernel VectorStripes() { return nullptr; }
#endif

}  // namespace internal

ContentHasher::ContentHasher() {
  for (size_t i = 0; i < 8; ++i) lanes_[i] = Mix(i);
}

void ContentHasher::AddStripes(const unsigned char* data, size_t stripes) {
  static const internal::StripeKernel kernel =
      internal::VectorStripes() != nullptr ? internal::VectorStripes() : internal::ScalarStripes;
  while (stripes > 0) {
    const size_t n = std::min(stripes, kBlockStripes - stripe_);
    kernel(data, n, stripe_, lanes_);
    data += n * kStripe;
    stripes -= n;
    stripe_ += n;
    if (stripe_ < kBlockStripes) continue;
    stripe_ = 0;
    for (size_t i = 0; i < 8; ++i) {
      lanes_[i] ^= lanes_[i] >> 47;
      lanes_[i] = (lanes_[i] ^ kKey[kBlockStripes + i]) * kPrime;
    }
  }
}

void ContentHasher::Add(const void* data, size_t bytes) {
  auto* p = static_cast<const unsigned char*>(data);
  total_ += bytes;
  if (filled_ > 0) {
    const size_t n = std::min(bytes, kStripe - filled_);
    std::memcpy(rest_ + filled_, p, n);
    filled_ += n;
    p += n;
    bytes -= n;
    if (filled_ < kStripe) return;
    AddStripes(rest_, 1);
    filled_ = 0;
  }
  AddStripes(p, bytes / kStripe);
  p += bytes / kStripe * kStripe;
  filled_ = bytes % kStripe;
  if (filled_ > 0) std::memcpy(rest_, p, filled_);
}

ContentHash ContentHasher::Finish() {
  if (filled_ > 0) {
    std::memset(rest_ + filled_, 0, kStripe - filled_);
    AddStripes(rest_, 1);
  }
  ContentHash hash{Mix(total_), Mix(~total_)};
  for (size_t i = 0; i < 8; ++i) {
    hash.low = Mix(hash.low ^ lanes_[i]);
    hash.high = Mix(hash.high + lanes_[7 - i]) ^ hash.low;
  }
  return hash;
}

ContentHash HashContent(const TensorView& t) {
  ContentHasher hasher;
  Layout layout;
  if (!MakeLayout(t, Order::kLogical, &layout) || layout.count == 0) return hasher.Finish();
  LayoutWalker(layout).Walk(0, layout.count, [&](const char* p, size_t n) { hasher.Add(p, n * layout.element); });
  return hasher.Finish();
}

}  // namespace msprobe
