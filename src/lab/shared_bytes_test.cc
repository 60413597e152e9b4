#include "lab/shared_bytes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace msprobe {
namespace {

void Write(const SharedBytes& shared, int part, const std::string& text) {
  ASSERT_EQ(pwrite(shared.descriptor(), text.data(), text.size(), static_cast<off_t>(SharedBytes::kPartSize) * part),
            static_cast<ssize_t>(text.size()));
}

TEST(SharedBytesTest, PartsAreReadWhereTheyLie) {
  const std::shared_ptr<SharedBytes> shared = SharedBytes::Open();
  ASSERT_TRUE(shared);
  auto first = SharedBytes::Take(shared), second = SharedBytes::Take(shared);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(SharedBytes::Take(shared));
  const std::string large(3 << 20, 'x');
  Write(*shared, first->number(), "results");
  Write(*shared, second->number(), large);
  EXPECT_EQ(first->Read(7), "results");
  EXPECT_EQ(second->Read(large.size()), large);
  // What is written next is larger, and the part grows.
  Write(*shared, first->number(), large);
  EXPECT_EQ(first->Read(large.size()), large);
  first.reset();
  EXPECT_TRUE(SharedBytes::Take(shared));
}

TEST(SharedBytesTest, FewerBytesThanWereSaidAreNone) {
  const std::shared_ptr<SharedBytes> shared = SharedBytes::Open();
  ASSERT_TRUE(shared);
  const auto part = SharedBytes::Take(shared);
  EXPECT_EQ(part->Read(1), "");
  Write(*shared, part->number(), "abc");
  EXPECT_EQ(part->Read(4), "");
  EXPECT_EQ(part->Read(UINT64_MAX), "");
  EXPECT_EQ(part->Read(3), "abc");
  // A process that ends in the middle cannot take away what is being read.
  EXPECT_NE(ftruncate(shared->descriptor(), 0), 0);
}

TEST(SharedBytesTest, LargeResultsAreGivenBack) {
  const std::shared_ptr<SharedBytes> shared = SharedBytes::Open();
  ASSERT_TRUE(shared);
  const std::string large(20 << 20, 'x');
  auto part = SharedBytes::Take(shared);
  const int number = part->number();
  Write(*shared, number, large);
  EXPECT_EQ(part->Read(large.size()).size(), large.size());
  part.reset();
  char first = 'y';
  EXPECT_EQ(pread(shared->descriptor(), &first, 1, static_cast<off_t>(SharedBytes::kPartSize) * number), 1);
  EXPECT_EQ(first, 0);
}

}  // namespace
}  // namespace msprobe
