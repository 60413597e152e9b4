#include "tensor/files/npy_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "tensor/files/npy_reader.h"
#include "tensor/kernels/layout.h"

namespace msprobe {
namespace {

std::string ScratchFile() { return (std::filesystem::path(testing::TempDir()) / "npy_writer_test.npy").string(); }

std::string Written(const TensorView& view, FileTensor* read, DType expected) {
  uint64_t bytes = 0;
  const std::string path = ScratchFile();
  EXPECT_TRUE(WriteNpyFile(path, view, &bytes).ok());
  const auto file = MappedFile::Open(path);
  EXPECT_TRUE(file.ok());
  std::string content(file->text());
  EXPECT_EQ(content.size(), bytes);
  EXPECT_EQ(content.find('\n') % 64, 63u);  // elements begin at a multiple of 64
  auto tensor = ReadNpy(content, path, expected);
  EXPECT_TRUE(tensor.ok()) << tensor.status().message();
  if (tensor.ok()) *read = *std::move(tensor);
  return content;
}

TEST(NpyWriter, StridedElementsStandInCOrder) {
  const std::vector<int32_t> data = {0, 1, 2, 3, 4, 5};
  const int64_t shape[] = {3, 2}, strides[] = {1, 3};
  FileTensor read;
  const std::string file = Written({data.data(), DType::kInt32, 2, shape, strides}, &read, DType::kInt32);
  std::vector<int32_t> elements(6);
  std::memcpy(elements.data(), file.data() + file.find('\n') + 1, 24);
  EXPECT_EQ(elements, (std::vector<int32_t>{0, 3, 1, 4, 2, 5}));
}

TEST(NpyWriter, WidensBfloat16) {
  const std::vector<uint16_t> data = {0x3f80, 0xc000, 0x7f80};
  const int64_t shape[] = {3};
  FileTensor read;
  const std::string file = Written({data.data(), DType::kBFloat16, 1, shape, nullptr}, &read, DType::kFloat32);
  std::vector<float> elements(3);
  std::memcpy(elements.data(), file.data() + file.find('\n') + 1, 12);
  EXPECT_EQ(elements[0], 1.0f);
  EXPECT_EQ(elements[1], -2.0f);
  EXPECT_GT(elements[2], 1e38f);
}

TEST(NpyWriter, ScalarsAndEmptyTensors) {
  const double one = 1.5;
  FileTensor read;
  const std::string scalar = Written({&one, DType::kFloat64, 0, nullptr, nullptr}, &read, DType::kFloat64);
  EXPECT_NE(scalar.find("'shape': ()"), std::string::npos);
  const int64_t shape[] = {0, 3};
  const std::string empty = Written({nullptr, DType::kFloat16, 2, shape, nullptr}, &read, DType::kFloat16);
  EXPECT_EQ(empty.back(), '\n');
}

TEST(NpyWriter, RefusesWhatNumpyHasNot) {
  const int64_t shape[] = {1};
  const uint32_t data = 0;
  uint64_t bytes = 0;
  const Status refused = WriteNpyFile(ScratchFile(), {&data, DType::kComplex32, 1, shape, nullptr}, &bytes);
  EXPECT_FALSE(refused.ok());
}

}  // namespace
}  // namespace msprobe
