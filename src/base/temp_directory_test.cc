#include "base/temp_directory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "base/file.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;

class TempDirectoryTest : public ::testing::Test {
 protected:
  TempDirectoryTest() : root_(fs::path(::testing::TempDir()) / ("temp_directory_" + std::to_string(getpid()))) {
    fs::create_directory(root_);
  }
  ~TempDirectoryTest() override { fs::remove_all(root_); }
  std::vector<std::string> Names() const { return *ListDirectory(root_.string()); }
  const fs::path root_;
};

TEST_F(TempDirectoryTest, GoneWithTheObject) {
  std::optional<TempDirectory> kept;
  {
    auto made = TempDirectory::Create(root_.string(), "parts");
    ASSERT_TRUE(made.ok());
    EXPECT_TRUE(IsDirectory(made->path()));
    ASSERT_TRUE(OutputFile::Create(made->path() + "/x")->Commit().ok());
    kept.emplace(std::move(*made));
  }
  EXPECT_EQ(Names().size(), 1u);
  kept.reset();
  EXPECT_TRUE(Names().empty());
}

TEST_F(TempDirectoryTest, ThatOfAKilledProcessIsRemovedByTheNext) {
  const pid_t child = fork();
  if (child == 0) {
    const auto made = TempDirectory::Create(root_.string(), "parts");
    _exit(made.ok() ? 0 : 1);  // nothing is destroyed
  }
  int status = 1;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(Names().size(), 1u);
  const fs::path stale = root_ / Names()[0];
  // What only looks like one stays: of another host or kind, a file, a link.
  const std::string pid = std::to_string(child);
  const std::string name = stale.filename().string();
  fs::create_directory(root_ / (".parts_elsewhere.example_" + pid));
  fs::create_directory(root_ / (name + "x"));
  fs::create_directory_symlink(root_, root_ / (name.substr(0, name.rfind('_') + 1) + "999999999"));
  ASSERT_TRUE(TempDirectory::Create(root_.string(), "merged").ok());
  EXPECT_TRUE(fs::exists(stale)) << "it is of another kind";
  ASSERT_TRUE(TempDirectory::Create(root_.string(), "parts").ok());
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_EQ(Names().size(), 3u);
}

TEST_F(TempDirectoryTest, TwoOfOneProcessIdHaveOneEach) {
  const auto first = TempDirectory::Create(root_.string(), "parts");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(OutputFile::Create(first->path() + "/x")->Commit().ok());
  {
    const auto second = TempDirectory::Create(root_.string(), "parts");
    ASSERT_TRUE(second.ok());
    EXPECT_NE(second->path(), first->path());
    EXPECT_TRUE(IsRegularFile(first->path() + "/x")) << "the living one is not cleared";
  }
  EXPECT_TRUE(IsRegularFile(first->path() + "/x")) << "nor does it go with the other";
  EXPECT_EQ(Names().size(), 1u);
}

TEST_F(TempDirectoryTest, WhatAKilledProcessOfThisIdLeftIsGone) {
  std::string path;
  {
    const auto made = TempDirectory::Create(root_.string(), "parts");
    ASSERT_TRUE(made.ok());
    path = made->path();
  }
  fs::create_directory(path);
  ASSERT_TRUE(OutputFile::Create(path + "/stale")->Commit().ok());
  const auto again = TempDirectory::Create(root_.string(), "parts");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->path(), path);
  EXPECT_FALSE(IsRegularFile(path + "/stale"));
}

TEST_F(TempDirectoryTest, ThatOfALivingProcessStays) {
  const auto own = TempDirectory::Create(root_.string(), "parts");
  ASSERT_TRUE(own.ok());
  const pid_t child = fork();
  if (child == 0) {
    const bool made = TempDirectory::Create(root_.string(), "parts").ok();
    _exit(made && IsDirectory(own->path()) ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(IsDirectory(own->path()));
}

}  // namespace
}  // namespace msprobe
