// Functions of one instruction set, which the including file chooses by XXH_VECTOR and its target pragma. That file has
// included whatever else xxhash.h does, so that nothing of others is compiled for the target.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tensor/kernels/content_hash_kernels.h"

namespace msprobe::content_hash {
namespace {

static_assert(sizeof(XXH3_state_t) <= sizeof(State) && alignof(XXH3_state_t) <= alignof(State));

ContentHash Whole(const void* data, size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return {hash.low64, hash.high64};
}

void Begin(State* state) { XXH3_128bits_reset(reinterpret_cast<XXH3_state_t*>(state->bytes)); }

void Add(State* state, const void* data, size_t bytes) {
  XXH3_128bits_update(reinterpret_cast<XXH3_state_t*>(state->bytes), data, bytes);
}

ContentHash End(const State& state) {
  const XXH128_hash_t hash = XXH3_128bits_digest(reinterpret_cast<const XXH3_state_t*>(state.bytes));
  return {hash.low64, hash.high64};
}

constexpr Kernel kKernel{Whole, Begin, Add, End};

}  // namespace
}  // namespace msprobe::content_hash
