#include "tensor/files/pt_writer.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace msprobe {
namespace {

template <typename T>
T At(const std::string& s, size_t offset) {
  T v;
  std::memcpy(&v, s.data() + offset, sizeof v);
  return v;
}

TEST(PtFrame, ElementsStartAt64Bytes) {
  const std::vector<int64_t> shape = {3, 4};
  PtFrame frame;
  for (const char* stem : {"a", "archive", "Module.layers.0.self_attn.Attention.forward.0.input.0"}) {
    ASSERT_TRUE(MakePtFrame(DType::kFloat32, shape, stem, 1, &frame));
    EXPECT_EQ(frame.head.size() % 64, 0u);
    EXPECT_EQ(At<uint32_t>(frame.head, 0), 0x04034b50u);
  }
}

TEST(PtFrame, RefusesWhatIsNoTensor) {
  PtFrame frame;
  const std::vector<int64_t> negative = {-1}, huge = {int64_t{1} << 62, 4}, many(65, 1);
  EXPECT_FALSE(MakePtFrame(DType::kUnknown, {}, "x", 0, &frame));
  EXPECT_FALSE(MakePtFrame(DType::kFloat32, negative, "x", 0, &frame));
  EXPECT_FALSE(MakePtFrame(DType::kFloat32, huge, "x", 0, &frame));
  EXPECT_FALSE(MakePtFrame(DType::kFloat32, many, "x", 0, &frame));
}

TEST(PtFrame, LargeMembersAndOffsetsAreWrittenIn64Bits) {
  const std::vector<int64_t> shape = {int64_t{5} << 30};
  PtFrame frame;
  ASSERT_TRUE(MakePtFrame(DType::kUInt8, shape, "x", 7, &frame));
  EXPECT_EQ(frame.head.size() % 64, 0u);
  const size_t end = frame.tail.size() - 22, locator = end - 20, end64 = locator - 56;
  EXPECT_EQ(At<uint32_t>(frame.tail, end), 0x06054b50u);
  EXPECT_EQ(At<uint32_t>(frame.tail, end + 16), 0xffffffffu);
  EXPECT_EQ(At<uint32_t>(frame.tail, locator), 0x07064b50u);
  EXPECT_EQ(At<uint32_t>(frame.tail, end64), 0x06064b50u);
  const uint64_t base = frame.head.size() + (uint64_t{5} << 30);
  EXPECT_EQ(At<uint64_t>(frame.tail, locator + 8), base + end64);
  const uint64_t directory = At<uint64_t>(frame.tail, end64 + 48);
  EXPECT_EQ(At<uint32_t>(frame.tail, directory - base), 0x02014b50u);
}

TEST(WritePtFile, StridedTensorsAreWrittenAsTheirContiguousCopy) {
  char pattern[] = "/tmp/pt_writer_XXXXXX";
  const std::string root = mkdtemp(pattern);
  const auto read = [&](const char* name) {
    std::ifstream in(root + "/" + name + "/t.pt", std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  std::vector<float> memory(1000 * 600), transposed(memory.size());
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
  for (size_t i = 0; i < 600; ++i) {
    for (size_t k = 0; k < 1000; ++k) transposed[i * 1000 + k] = memory[k * 600 + i];
  }
  const int64_t shape[] = {600, 1000}, strides[] = {1, 600};
  std::filesystem::create_directories(root + "/a");
  std::filesystem::create_directories(root + "/b");
  uint64_t bytes = 0;
  ASSERT_TRUE(WritePtFile(root + "/a/t.pt", {memory.data(), DType::kFloat32, 2, shape, strides}, &bytes).ok());
  ASSERT_TRUE(WritePtFile(root + "/b/t.pt", {transposed.data(), DType::kFloat32, 2, shape, nullptr}, &bytes).ok());
  EXPECT_EQ(read("a"), read("b"));
  EXPECT_EQ(bytes, 2 * read("a").size());
  // Backwards and repeated rows.
  const std::vector<int16_t> few = {1, 2, 3};
  const std::vector<int16_t> expected = {3, 2, 1, 3, 2, 1};
  const int64_t two_rows[] = {2, 3}, back[] = {0, -1};
  ASSERT_TRUE(WritePtFile(root + "/a/t.pt", {&few[2], DType::kInt16, 2, two_rows, back}, &bytes).ok());
  ASSERT_TRUE(WritePtFile(root + "/b/t.pt", {expected.data(), DType::kInt16, 2, two_rows, nullptr}, &bytes).ok());
  EXPECT_EQ(read("a"), read("b"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root + "/a"), {}), 1);  // no temporary file is left
  struct stat st {};
  ASSERT_EQ(stat((root + "/a/t.pt").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777u, 0640u);
  const Status missing = WritePtFile(root + "/none/t.pt", {&few[2], DType::kInt16, 2, two_rows, back}, &bytes);
  EXPECT_NE(missing.message().find("/none/t.pt could not be written (No such file"), std::string::npos);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace msprobe
