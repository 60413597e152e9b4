#include "base/name_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace msprobe {
namespace {

/// Text of one word with one bit of its last byte changed or not.
std::string Word(uint64_t bits) { return {reinterpret_cast<const char*>(&bits), sizeof bits}; }

TEST(NameHash, DependsOnTheSeed) {
  const std::string name = "Module.model.layers.3.mlp.Linear.forward.0";
  std::set<uint32_t> hashes;
  for (uint64_t seed = 0; seed < 1000; ++seed) hashes.insert(HashName(name, seed));
  EXPECT_GT(hashes.size(), 990u);
  EXPECT_EQ(HashName(name), HashName(name, kNameSeed));
}

TEST(NameHash, NamesThatCollideDoSoForOneSeedOnly) {
  // A flipped top bit passes an odd factor as it is; without the upper half of the product these two would collide for
  // every seed.
  constexpr uint64_t kTop = uint64_t{1} << 63;
  const std::string a = Word(0x6162636465666768) + Word(0x6162636465666768);
  for (const uint64_t follow : {kTop, kTop | kTop >> 32, uint64_t{0}}) {
    const std::string b = Word(0x6162636465666768 ^ kTop) + Word(0x6162636465666768 ^ follow);
    size_t same = 0;
    for (uint64_t seed = 1; seed <= 1000; ++seed)
      same += HashName(a, seed * 0xD1342543DE82EF95) == HashName(b, seed * 0xD1342543DE82EF95);
    EXPECT_LT(same, 3u);
  }
}

TEST(NameHash, SpreadsNamesThatDifferInDigits) {
  constexpr size_t kNames = 1 << 14;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, kNameSeed}) {
    std::set<uint32_t> low, high;
    for (size_t i = 0; i < kNames; ++i) {
      const uint32_t hash = HashName("Functional.linear." + std::to_string(i) + ".forward", seed);
      low.insert(hash % kNames);
      high.insert(hash >> 18);
    }
    // So many slots of a full table are taken by chance: 1 - 1/e.
    EXPECT_GT(low.size(), kNames * 60 / 100) << seed;
    EXPECT_GT(high.size(), kNames * 60 / 100) << seed;
  }
}

}  // namespace
}  // namespace msprobe
