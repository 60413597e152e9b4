#include "dump/same_content.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "dump/test_files.h"

namespace msprobe {
namespace {

TEST(ContentNumbersTest, EqualFilesHaveOneNumber) {
  TempDir dir;
  const std::string a = dir.Write("a", "0123"), b = dir.Write("b", "0123"), c = dir.Write("c", "0124"),
                    d = dir.Write("d", "01234"), linked = dir.path() + "/linked";
  std::filesystem::create_hard_link(d, linked);
  const auto numbers = ContentNumbers({a, b, c, d, linked, dir.path() + "/none", dir.path()});
  ASSERT_TRUE(numbers.ok());
  const std::vector<uint32_t>& n = *numbers;
  EXPECT_EQ(n[0], n[1]);
  EXPECT_NE(n[0], n[2]);
  EXPECT_NE(n[0], n[3]);
  EXPECT_EQ(n[3], n[4]);
  EXPECT_EQ(n[5], 0u);
  EXPECT_EQ(n[6], 0u) << "a directory";
}

}  // namespace
}  // namespace msprobe
