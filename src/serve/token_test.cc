#include "serve/token.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace msprobe::serve {
namespace {

class TokenFileTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  void Write(const std::string& text, mode_t mode) {
    std::filesystem::remove(path_);
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }
  const std::string path_ = ::testing::TempDir() + "msprobe_token_test";
};

TEST_F(TokenFileTest, IsMadeOnceForItsOwnerAlone) {
  const auto first = TokenOfFile(path_);
  ASSERT_TRUE(first.ok());
  struct stat st {};
  ASSERT_EQ(stat(path_.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600U);
  const auto again = TokenOfFile(path_);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*first, *again);
}

TEST_F(TokenFileTest, IsRefusedWhereOthersCanReadItOrItIsNoToken) {
  const std::string token(32, 'a');
  Write(token + "\n", 0600);
  ASSERT_TRUE(TokenOfFile(path_).ok());
  Write(token + "\n", 0644);
  EXPECT_FALSE(TokenOfFile(path_).ok());
  for (const char* text : {"", "short\n", "with a space in it, and long enough\n"}) {
    Write(text, 0600);
    EXPECT_FALSE(TokenOfFile(path_).ok()) << text;
  }
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("/etc/hostname", path_);
  EXPECT_FALSE(TokenOfFile(path_).ok());
}

}  // namespace
}  // namespace msprobe::serve
