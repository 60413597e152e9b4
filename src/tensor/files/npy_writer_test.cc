#include "tensor/files/npy_writer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tensor/files/tensor_file.h"

namespace msprobe {
namespace {

TEST(NpyWriter, HeaderIsThatOfNumpy) {
  const std::vector<int64_t> shape = {2, 3}, one = {7};
  const std::string header = NpyHeader(DType::kFloat32, shape);
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_NE(header.find("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"), std::string::npos);
  EXPECT_NE(NpyHeader(DType::kBool, one).find("'|b1', 'fortran_order': False, 'shape': (7,), }"), std::string::npos);
  EXPECT_NE(NpyHeader(DType::kInt64, {}).find("'shape': (), }"), std::string::npos);
  EXPECT_EQ(NpyHeader(DType::kBFloat16, {}), "");
}

TEST(NpyWriter, StridedAndWidened) {
  const std::string path = ::testing::TempDir() + "npy_writer_test.npy";
  const uint16_t bfloats[] = {0x3F80, 0xC000, 0x4040, 0x7F80};  // 1, -2, 3, inf
  const int64_t shape[] = {2, 2}, strides[] = {1, 2};
  uint64_t bytes = 0;
  ASSERT_TRUE(WriteNpyFile(path, {bfloats, DType::kBFloat16, 2, shape, strides}, &bytes).ok());
  EXPECT_EQ(bytes, std::filesystem::file_size(path));
  const auto file = TensorFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(file->tensor());
  EXPECT_EQ(file->tensor()->dtype, DType::kFloat32);
  const auto* floats = static_cast<const float*>(file->tensor()->data);
  EXPECT_EQ(std::vector<float>(floats, floats + 3), (std::vector<float>{1, 3, -2}));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace msprobe
