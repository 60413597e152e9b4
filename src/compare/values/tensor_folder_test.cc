#include "compare/values/tensor_folder.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "dump/test_files.h"

namespace msprobe {
namespace {

class TensorFolderTest : public testing::Test {
 protected:
  std::string Error(const TensorFolder& folder, std::string_view name) {
    const auto path = folder.Find(name);
    if (path.ok()) return "found";
    EXPECT_EQ(path.status().code(), Code::kBadInput);
    EXPECT_EQ(path.status().message().find('\n'), std::string::npos);
    return path.status().message();
  }
  TempDir dir_;
};

TEST_F(TensorFolderTest, FindsWhatLiesBesideTheDump) {
  const std::string dump = dir_.Write("a/dump.json", "{}");
  const std::string file = dir_.Write("a/dump_tensor_data/x.0.pt", "x");
  dir_.Write("a/dump_tensor_data/graph/y.npy", "y");
  const TensorFolder folder(dump);
  EXPECT_EQ(*folder.Find("x.0.pt"), file);
  EXPECT_TRUE(folder.Find("graph/y.npy").ok()) << "MindSpore has folders there";
  EXPECT_TRUE(Contains(Error(folder, "x.1.pt"), "does not exist"));
  EXPECT_TRUE(Contains(Error(folder, "graph"), "not a regular file"));
}

TEST_F(TensorFolderTest, NamesThatLeadElsewhereAreRefused) {
  const std::string dump = dir_.Write("a/dump.json", "{}");
  dir_.Write("a/dump_tensor_data/x.pt", "x");
  dir_.Write("secret.pt", "x");
  const TensorFolder folder(dump);
  EXPECT_TRUE(Contains(Error(folder, "../../secret.pt"), "\"..\""));
  EXPECT_TRUE(Contains(Error(folder, "a/../../../secret.pt"), "\"..\""));
  EXPECT_TRUE(Contains(Error(folder, dir_.path() + "/secret.pt"), "absolute"));
  EXPECT_TRUE(Contains(Error(folder, ""), "not a file name"));
  EXPECT_TRUE(Contains(Error(folder, std::string(5000, 'x')), "not a file name"));
  EXPECT_TRUE(Contains(Error(folder, std::string_view("x.pt\0y", 6)), "not a file name"));
  EXPECT_EQ(Error(folder, "./x.pt"), "found");
  EXPECT_TRUE(Contains(Error(folder, "..x.pt"), "does not exist")) << "two dots alone lead nowhere";
}

TEST_F(TensorFolderTest, LinksMustStayInside) {
  namespace fs = std::filesystem;
  const std::string dump = dir_.Write("a/dump.json", "{}");
  dir_.Write("a/dump_tensor_data/x.pt", "x");
  dir_.Write("outside/secret.pt", "x");
  fs::create_symlink(dir_.path() + "/outside/secret.pt", dir_.path() + "/a/dump_tensor_data/out.pt");
  fs::create_symlink("../../outside", dir_.path() + "/a/dump_tensor_data/folder");
  fs::create_symlink("x.pt", dir_.path() + "/a/dump_tensor_data/in.pt");
  const TensorFolder folder(dump);
  EXPECT_TRUE(Contains(Error(folder, "out.pt"), "leads out"));
  EXPECT_TRUE(Contains(Error(folder, "folder/secret.pt"), "leads out"));
  EXPECT_EQ(Error(folder, "in.pt"), "found");

  // The whole folder may be a link as well.
  const std::string other = dir_.Write("b/dump.json", "{}");
  fs::create_directory_symlink(dir_.path() + "/outside", dir_.path() + "/b/dump_tensor_data");
  EXPECT_TRUE(Contains(Error(TensorFolder(other), "secret.pt"), "leads out"));

  // A dump that is itself reached through a link is one like others.
  fs::create_directory_symlink(dir_.path() + "/a", dir_.path() + "/c");
  EXPECT_EQ(Error(TensorFolder(dir_.path() + "/c/dump.json"), "x.pt"), "found");
}

}  // namespace
}  // namespace msprobe
