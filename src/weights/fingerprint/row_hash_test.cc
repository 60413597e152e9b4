#include "weights/fingerprint/row_hash.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "weights/fingerprint/row_hash_kernels.h"

namespace msprobe {
namespace {

std::string RandomBytes(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::string out(count, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

uint64_t HashOf(const std::string& row, uint64_t first_word = 0) {
  uint64_t out = 0;
  AddRowHashes(row.data(), 1, 0, row.size(), first_word, &out);
  return out;
}

TEST(RowHash, KernelsAgree) {
  std::vector<uint64_t> keys(row_hash::kKeys + row_hash::kShift);
  std::mt19937_64 random(3);
  for (uint64_t& key : keys) key = random();
  for (const size_t bytes : {0, 1, 7, 8, 63, 64, 65, 127, 128, 1000, 4096, 8192}) {
    const std::string row = RandomBytes(bytes, static_cast<unsigned>(bytes));
    for (const uint64_t salt : {uint64_t{0}, ~uint64_t{5}}) {
      uint64_t plain = 1;
      row_hash::Plain()({row.data(), 1, 0, bytes, keys.data(), salt, &plain});
      for (const row_hash::Kernel kernel : {row_hash::Avx2(), row_hash::Avx512()}) {
        uint64_t own = 1;
        if (!kernel) continue;
        kernel({row.data(), 1, 0, bytes, keys.data(), salt, &own});
        EXPECT_EQ(own, plain) << bytes;
      }
    }
  }
}

TEST(RowHash, ValuesStay) {
  // Files of other machines and releases hold these.
  EXPECT_EQ(HashOf(std::string(100, 'x')), uint64_t{15626104938710702342u});
  EXPECT_EQ(HashOf(std::string(100000, 'y')), uint64_t{4938108954453130245u});
}

TEST(RowHash, PiecesAddUp) {
  const std::string row = RandomBytes(200003, 1);
  for (const size_t cut : {8, 64, 1000, 8192, 65536, 200000}) {
    EXPECT_EQ(HashOf(row.substr(0, cut)) + HashOf(row.substr(cut), cut / kHashWord), HashOf(row)) << cut;
  }
}

TEST(RowHash, RowsOfAStridedMatrix) {
  const std::string memory = RandomBytes(1024, 2);
  std::vector<uint64_t> out(8);
  AddRowHashes(memory.data(), 8, 128, 80, 0, out.data());
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], HashOf(memory.substr(128 * i, 80)));
}

TEST(RowHash, EveryBitAndEveryPlaceCounts) {
  std::string row = RandomBytes(512, 4);
  std::unordered_set<uint64_t> seen{HashOf(row)};
  for (size_t i = 0; i < row.size() * 8; ++i) {
    row[i / 8] = static_cast<char>(row[i / 8] ^ (1 << i % 8));
    EXPECT_TRUE(seen.insert(HashOf(row)).second) << "bit " << i;
    row[i / 8] = static_cast<char>(row[i / 8] ^ (1 << i % 8));
  }
  for (size_t i = 0; i + 2 < row.size(); i += 2) {  // two neighbours exchanged
    std::string other = row;
    std::swap(other[i], other[i + 2]);
    std::swap(other[i + 1], other[i + 3]);
    EXPECT_TRUE(seen.insert(HashOf(other)).second) << i;
  }
  EXPECT_NE(HashOf(row, 0), HashOf(row, 1));
  EXPECT_NE(HashOf(row, 0), HashOf(row, row_hash::kKeys));
}

}  // namespace
}  // namespace msprobe
