#include "base/big_array.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>

#include "base/slot_table.h"

namespace msprobe {
namespace {

constexpr size_t kMany = size_t{1} << 20;  // values of eight bytes: beyond what is the heap's

class BigArrayTest : public testing::Test {
 protected:
  BigArrayTest() {
    SetSpillDirectory(testing::TempDir());
    before_ = SetBigArrayMemory(size_t{64} << 20);
  }
  ~BigArrayTest() override {
    EXPECT_EQ(UseOfBigArrays().memory, 0u);
    EXPECT_EQ(UseOfBigArrays().files, 0u);
    SetBigArrayMemory(before_);
    SetSpillDirectory("");
  }
  static BigArray<uint64_t> Numbers(size_t n) {
    BigArray<uint64_t> out;
    for (size_t i = 0; i < n; ++i) out.push_back(i * 7);
    return out;
  }
  static void ExpectNumbers(const BigArray<uint64_t>& numbers, size_t n) {
    ASSERT_EQ(numbers.size(), n);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(numbers[i], i * 7);
  }
  size_t before_ = 0;
};

TEST_F(BigArrayTest, HoldsWhatAVectorHolds) {
  BigArray<int> a = {3, 1, 2};
  a.push_back(a[0]);
  EXPECT_EQ(a, (std::vector<int>{3, 1, 2, 3}));
  const BigArray<int> copy = a;
  a.resize(6, 9);
  EXPECT_EQ(a, (std::vector<int>{3, 1, 2, 3, 9, 9}));
  EXPECT_EQ(copy.size(), 4u);
  a = copy;
  EXPECT_EQ(a, copy);
  a = {};
  EXPECT_TRUE(a.empty());
  EXPECT_EQ(a.begin(), a.end());
  EXPECT_EQ(std::accumulate(copy.begin(), copy.end(), 0), 9);
}

TEST_F(BigArrayTest, StaysInMemoryBelowTheBound) {
  const BigArray<uint64_t> numbers = Numbers(kMany);
  EXPECT_FALSE(numbers.InFile());
  EXPECT_GE(UseOfBigArrays().memory, kMany * 8);
  ExpectNumbers(numbers, kMany);
}

TEST_F(BigArrayTest, MovesToAFileBeyondTheBoundAndGrowsThere) {
  SetBigArrayMemory(size_t{3} << 20);
  BigArray<uint64_t> numbers = Numbers(kMany);
  EXPECT_TRUE(numbers.InFile());
  EXPECT_LE(UseOfBigArrays().memory, size_t{3} << 20);
  EXPECT_GE(UseOfBigArrays().files, kMany * 8);
  ExpectNumbers(numbers, kMany);
  const BigArray<uint64_t> copy = numbers, moved = std::move(numbers);
  ExpectNumbers(copy, kMany);
  ExpectNumbers(moved, kMany);
}

TEST_F(BigArrayTest, WithoutADiskMemoryMustDo) {
  const char* const tmp = std::getenv("TMPDIR");
  const std::string kept = tmp ? tmp : "";
  setenv("TMPDIR", "/nowhere/at/all", 1);
  SetSpillDirectory("/nowhere/either");
  SetBigArrayMemory(0);
  {
    const BigArray<uint64_t> numbers = Numbers(kMany);
    EXPECT_FALSE(numbers.InFile());
    ExpectNumbers(numbers, kMany);
  }
  tmp ? setenv("TMPDIR", kept.c_str(), 1) : unsetenv("TMPDIR");
}

TEST_F(BigArrayTest, IdsAreNumberedByFirstAppearance) {
  TextIds ids;
  EXPECT_FALSE(ids.Has("a"));
  EXPECT_EQ(ids.Enter("a"), 0u);
  EXPECT_EQ(ids.Enter(""), 1u);
  EXPECT_EQ(ids.Enter("a"), 0u);
  EXPECT_TRUE(ids.Insert("b"));
  EXPECT_FALSE(ids.Insert("b"));
  EXPECT_EQ(ids.Find("c"), SlotTable::kNone);
  EXPECT_EQ(ids[1], "");
  EXPECT_EQ(ids.size(), 3u);
}

TEST_F(BigArrayTest, TablesInFilesFindWhatTablesInMemoryFind) {
  for (const size_t bound : {size_t{0}, size_t{64} << 20}) {
    SetBigArrayMemory(bound);
    NumberIds ids;
    for (uint64_t i = 0; i < 300'000; ++i) ASSERT_EQ(ids.Enter(i << 32 | i), i);
    for (uint64_t i = 0; i < 300'000; ++i) ASSERT_EQ(ids.Enter(i << 32 | i), i);
    EXPECT_EQ(ids.size(), 300'000u);
  }
}

TEST_F(BigArrayTest, KeysOfOneHashStayApart) {
  SlotTable table;
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(table.Enter(7, i, [&](uint32_t at) { return at == i; }), i);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(table.Find(7, [&](uint32_t at) { return at == i; }), i);
  EXPECT_EQ(table.Find(7, [](uint32_t) { return false; }), SlotTable::kNone);
}

}  // namespace
}  // namespace msprobe
