#include "base/name_hash.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>

namespace msprobe {
namespace {

uint64_t ChooseSeed() {
  if (const char* given = std::getenv("MSPROBE_HASH_SEED"); given && *given) return std::strtoull(given, nullptr, 10);
  uint64_t seed = 0;
  // A kernel without entropy leaves the clock, which is better than nothing.
  if (getentropy(&seed, sizeof seed) != 0) {
    seed = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  return seed;
}

}  // namespace

const uint64_t kNameSeed = ChooseSeed();

}  // namespace msprobe
