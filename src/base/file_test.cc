#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/temp_names.h"

namespace msprobe {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/msprobe_file_test.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
  }
  void TearDown() override {
    for (const std::string& name : Names()) unlink(Path(name).c_str());
    rmdir(dir_.c_str());
  }
  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  std::vector<std::string> Names() const { return *ListDirectory(dir_); }
  std::string Text(const std::string& name) const {
    std::ifstream in(Path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void Result(const std::string& name, const std::string& text, std::string* path) {
    auto file = OutputFile::Create(Path(name));
    ASSERT_TRUE(file.ok() && file->Write(text).ok());
    ASSERT_TRUE(file->CommitResult().ok());
    *path = file->path();
  }
  std::string dir_;
};

TEST_F(FileTest, ResultsDoNotReplaceEachOther) {
  std::string a, b, c;
  Result("r.csv", "1", &a);
  Result("r.csv", "2", &b);
  Result("r.csv", "3", &c);
  EXPECT_EQ(Names(), (std::vector<std::string>{"r.csv", "r_2.csv", "r_3.csv"}));
  EXPECT_EQ(c, Path("r_3.csv"));
  EXPECT_EQ(Text("r.csv"), "1");
  EXPECT_EQ(Text("r_3.csv"), "3");
}

TEST_F(FileTest, NumbersStandBeforeTheWholeEnding) {
  for (int i = 0; i < 2; ++i) {
    TempPath temp(Path("x.y.vis.db"));
    std::ofstream(temp.path()) << i;
    ASSERT_TRUE(temp.CommitResult().ok());
    EXPECT_EQ(temp.final_path(), Path(i ? "x.y_2.vis.db" : "x.y.vis.db"));
  }
}

TEST_F(FileTest, CommitReplaces) {
  for (const char* text : {"1", "2"}) {
    auto file = OutputFile::Create(Path("r"));
    ASSERT_TRUE(file.ok() && file->Write(text).ok() && file->Commit().ok());
  }
  EXPECT_EQ(Names(), std::vector<std::string>{"r"});
  EXPECT_EQ(Text("r"), "2");
}

TEST_F(FileTest, WithoutCommitNothingIsLeft) {
  {
    auto file = OutputFile::Create(Path("r"));
    ASSERT_TRUE(file.ok() && file->Write("half").ok());
    EXPECT_EQ(Names().size(), 1u);
  }
  EXPECT_TRUE(Names().empty());
}

TEST_F(FileTest, TemporaryFilesCanBeRemovedAllAtOnce) {
  auto file = OutputFile::Create(Path("a"));
  TempPath temp(Path("b"));
  std::ofstream(temp.path()) << "half";
  std::ofstream(Path("mine")) << "whole";
  ASSERT_EQ(Names().size(), 3u);
  RemoveTempFiles();
  EXPECT_EQ(Names(), std::vector<std::string>{"mine"});
}

TEST_F(FileTest, WhatIsNoFileIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  for (const std::string& path : {Path("pipe"), dir_, std::string()}) {
    const auto file = MappedFile::Open(path);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.status().code(), Code::kBadInput);
  }
}

TEST_F(FileTest, SmallFilesAreCopiesAndLargeOnesMaps) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{64} << 10, (size_t{64} << 10) + 1}) {
    const std::string path = Path("file"), text(size, 'x');
    std::ofstream(path, std::ios::trunc) << text;
    auto file = MappedFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    const char* const data = file->text().data();
    MappedFile moved = *std::move(file);
    EXPECT_EQ(moved.text().data(), data) << "what refers to the text stays valid";
    moved.Release(0, size);
    EXPECT_EQ(moved.text(), text) << "what is released can be read again";
    if (size != 1) continue;
    std::ofstream(path, std::ios::trunc) << "";
    EXPECT_EQ(moved.text(), text) << "nobody takes it away";
  }
}

}  // namespace
}  // namespace msprobe
