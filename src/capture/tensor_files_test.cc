#include "capture/tensor_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/file.h"
#include "tensor/files/pt_reader.h"
#include "tensor/files/pt_writer.h"

namespace msprobe {
namespace {

class TensorFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/tensor_files_XXXXXX";
    root_ = mkdtemp(pattern);
    dir_ = root_ + "/step0/dump_tensor_data";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string Bytes(const std::string& file) {
    std::ifstream in(dir_ + "/" + file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  ino_t Inode(const std::string& file) {
    struct stat st {};
    return stat((dir_ + "/" + file).c_str(), &st) == 0 ? st.st_ino : 0;
  }
  static bool Save(TensorFiles* files, const std::string& name, const std::vector<float>& values) {
    const int64_t shape[] = {static_cast<int64_t>(values.size())};
    return files->Save(name, {values.data(), DType::kFloat32, 1, shape, nullptr});
  }
  std::string root_, dir_;
};

class TensorFilesAgain : public TensorFilesTest, public testing::WithParamInterface<size_t> {};
INSTANTIATE_TEST_SUITE_P(QueueBytes, TensorFilesAgain, testing::Values(0, 12, 1 << 20));

TEST_P(TensorFilesAgain, ANameWrittenAgainIsNoSourceOfLinks) {
  TensorFiles::Options options;
  options.queue_bytes = GetParam();
  TensorFiles files(options);
  ASSERT_TRUE(files.Open(dir_).ok());
  EXPECT_TRUE(Save(&files, "a.pt", {1, 2}));
  EXPECT_TRUE(Save(&files, "b.pt", {3, 4}));
  EXPECT_TRUE(Save(&files, "a.pt", {3, 4}));  // a link to b
  EXPECT_TRUE(Save(&files, "c.pt", {1, 2}));
  EXPECT_TRUE(Save(&files, "b.pt", {5, 6}));
  EXPECT_TRUE(Save(&files, "d.pt", {3, 4}));
  EXPECT_TRUE(Save(&files, "d.pt", {3, 4}));
  ASSERT_TRUE(files.Close().ok());
  const auto first = [&](const std::string& name) {
    const auto file = PtFile::Open(dir_ + "/" + name);
    return file.ok() && file->tensor() != nullptr ? *static_cast<const float*>(file->tensor()->data) : -1.0f;
  };
  EXPECT_EQ(first("a.pt"), 3);
  EXPECT_EQ(first("b.pt"), 5);
  EXPECT_EQ(first("c.pt"), 1);
  EXPECT_EQ(first("d.pt"), 3);
}

TEST_F(TensorFilesTest, EqualContentBecomesALink) {
  TensorFiles files;
  ASSERT_TRUE(files.Open(dir_).ok());
  std::vector<float> values = {1, 2, 3};
  EXPECT_TRUE(Save(&files, "a.pt", values));
  EXPECT_TRUE(Save(&files, "b.pt", values));
  const int64_t column[] = {3, 1};
  EXPECT_TRUE(files.Save("shape.pt", {values.data(), DType::kFloat32, 2, column, nullptr}));
  const int64_t three[] = {3};
  EXPECT_TRUE(files.Save("dtype.pt", {values.data(), DType::kInt32, 1, three, nullptr}));
  values[1] = 5;  // the copy was taken
  EXPECT_TRUE(Save(&files, "c.pt", values));
  ASSERT_TRUE(files.Finish().ok());
  EXPECT_EQ(Inode("a.pt"), Inode("b.pt"));
  EXPECT_NE(Inode("a.pt"), Inode("c.pt"));
  EXPECT_NE(Inode("a.pt"), Inode("shape.pt"));
  EXPECT_NE(Inode("a.pt"), Inode("dtype.pt"));
  const TensorFileCounts counts = files.counts();
  EXPECT_EQ(counts.saved, 5u);
  EXPECT_EQ(counts.linked, 1u);
  EXPECT_EQ(counts.dropped, 0u);
  EXPECT_EQ(counts.bytes,
            Bytes("a.pt").size() + Bytes("c.pt").size() + Bytes("shape.pt").size() + Bytes("dtype.pt").size());
  struct stat st {};
  ASSERT_EQ(stat((dir_ + "/a.pt").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777u, 0640u);
  ASSERT_EQ(stat(dir_.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777u, 0750u);
}

TEST_F(TensorFilesTest, FilesOfAnEarlierRunAreReplaced) {
  const std::vector<float> old = {9}, values = {1};
  {
    TensorFiles files;
    ASSERT_TRUE(files.Open(dir_).ok());
    Save(&files, "a.pt", old), Save(&files, "b.pt", old);
    ASSERT_TRUE(files.Close().ok());
  }
  TensorFiles files;
  ASSERT_TRUE(files.Open(dir_).ok());
  Save(&files, "b.pt", values);
  Save(&files, "a.pt", values);
  ASSERT_TRUE(files.Finish().ok());
  EXPECT_EQ(Inode("a.pt"), Inode("b.pt"));
  EXPECT_EQ(Bytes("a.pt").find(std::string(reinterpret_cast<const char*>(old.data()), 4)), std::string::npos);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 2);
}

TEST_F(TensorFilesTest, AFullQueueIsWrittenByTheCaller) {
  TensorFiles::Options options;
  options.queue_bytes = 64;  // most of these are larger
  options.known_contents = 4;
  TensorFiles small(options), large;
  ASSERT_TRUE(small.Open(dir_).ok());
  const std::string other = root_ + "/other";
  ASSERT_TRUE(large.Open(other).ok());
  for (int i = 0; i < 40; ++i) {
    std::vector<float> values(static_cast<size_t>(i % 10) * 3, static_cast<float>(i % 7));
    const std::string name = "t" + std::to_string(i) + ".pt";
    EXPECT_TRUE(Save(&small, name, values));
    EXPECT_TRUE(Save(&large, name, values));
  }
  ASSERT_TRUE(small.Finish().ok());
  ASSERT_TRUE(large.Finish().ok());
  EXPECT_EQ(small.counts().saved, 40u);
  EXPECT_LT(small.counts().linked, large.counts().linked);
  for (int i = 0; i < 40; ++i) {
    // Linked files carry the name of the first inside; what follows the names is the tensor.
    const std::string name = "t" + std::to_string(i) + ".pt";
    std::ifstream in(other + "/" + name, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(bytes.substr(704, 4), Bytes(name).substr(704, 4)) << i;
  }
}

TEST_F(TensorFilesTest, AnErrorTurnsSavingOffUntilTheNextStep) {
  TensorFiles files;
  ASSERT_TRUE(files.Open(dir_).ok());
  EXPECT_TRUE(Save(&files, "a.pt", {1}));
  ASSERT_TRUE(files.Finish().ok());
  std::filesystem::remove_all(root_ + "/step0");
  Save(&files, "b.pt", {2});
  EXPECT_FALSE(files.Finish().ok());
  EXPECT_FALSE(files.working());
  EXPECT_FALSE(Save(&files, "c.pt", {3}));
  EXPECT_NE(files.status().message().find("b.pt could not be written"), std::string::npos);
  EXPECT_FALSE(files.TakeStatus().ok());
  EXPECT_TRUE(files.TakeStatus().ok());
  ASSERT_FALSE(files.Close().ok());
  const TensorFileCounts counts = files.TakeCounts();
  EXPECT_EQ(counts.dropped, 2u);
  EXPECT_EQ(counts.saved, 1u);
  EXPECT_EQ(files.counts().dropped + files.counts().saved, 0u);
  ASSERT_TRUE(files.Open(dir_).ok());
  EXPECT_TRUE(Save(&files, "d.pt", {4}));
  EXPECT_TRUE(files.Finish().ok());
}

TEST_F(TensorFilesTest, ThreadsSaveTogether) {
  TensorFiles::Options options;
  options.queue_bytes = 4096;
  TensorFiles files(options);
  ASSERT_TRUE(files.Open(dir_).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&files, t] {
      for (int i = 0; i < 100; ++i) {
        Save(&files, std::to_string(t) + "_" + std::to_string(i) + ".pt",
             std::vector<float>(static_cast<size_t>(i), static_cast<float>(i)));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(files.Finish().ok());
  EXPECT_EQ(files.counts().saved, 400u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 400);
}

}  // namespace
}  // namespace msprobe
