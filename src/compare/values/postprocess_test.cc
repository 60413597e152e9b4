#include "compare/values/postprocess.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace msprobe {
namespace {

class PostprocessTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = testing::TempDir() + "postprocess_" + test->name();
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  /// A file of numpy with 1, 2, 3, ...
  std::string Matrix(const std::string& shape, int count, const char* type = "<f8") {
    std::string head = std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
    while ((head.size() + 11) % 64 != 0) head += ' ';
    head += '\n';
    const std::string path = root_ + "/" + std::to_string(files_++) + ".npy";
    std::ofstream out(path, std::ios::binary);
    const uint16_t size = static_cast<uint16_t>(head.size());
    out.write("\x93NUMPY\x01\x00", 8);
    out.write(reinterpret_cast<const char*>(&size), 2);
    out << head;
    for (int i = 1; i <= count; ++i) {
      const double v = i;
      const float f = static_cast<float>(i);
      out.write(std::strcmp(type, "<f8") == 0 ? reinterpret_cast<const char*>(&v) : reinterpret_cast<const char*>(&f),
                std::strcmp(type, "<f8") == 0 ? 8 : 4);
    }
    return path;
  }

  static FileTensor Tensor(const std::vector<float>& values, std::vector<int64_t> shape) {
    FileTensor out;
    out.dtype = DType::kFloat32;
    out.shape = std::move(shape);
    uint64_t bytes = 0;
    EXPECT_TRUE(SetContiguous(&out, UINT64_MAX, &bytes));
    EXPECT_EQ(bytes, values.size() * sizeof(float));
    out.data = values.data();
    return out;
  }

  static std::vector<double> Values(const FileTensor& t) {
    std::vector<double> out;
    int64_t count = 1;
    for (const int64_t n : t.shape) count *= n;
    for (int64_t i = 0; i < count; ++i) {
      out.push_back(t.dtype == DType::kFloat32 ? static_cast<const float*>(t.data)[i]
                                               : static_cast<const double*>(t.data)[i]);
    }
    return out;
  }

  std::string root_;
  int files_ = 0;
};

TEST_F(PostprocessTest, ProductsAreThoseOfNumpy) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const FileTensor t = Tensor(values, {1, 2, 3});
  auto out = OwnTensor::Product(t, {{false, Matrix("3, 2", 6)}});
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(out->tensor().dtype, DType::kFloat64);
  EXPECT_EQ(out->tensor().shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(Values(out->tensor()), (std::vector<double>{22, 28, 49, 64}));
  out = OwnTensor::Product(t, {{true, Matrix("2,", 2, "<f4")}});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->tensor().dtype, DType::kFloat32);
  EXPECT_EQ(out->tensor().shape, (std::vector<int64_t>{3}));
  EXPECT_EQ(Values(out->tensor()), (std::vector<double>{9, 12, 15}));
  out = OwnTensor::Product(t, {{false, Matrix("2, 3, 1", 6)}});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->tensor().shape, (std::vector<int64_t>{2, 2, 1}));
  EXPECT_EQ(Values(out->tensor()), (std::vector<double>{14, 32, 32, 77}));
  out = OwnTensor::Product(t, {{true, Matrix("1, 2", 2)}, {false, Matrix("3, 1", 3)}});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(Values(out->tensor()), (std::vector<double>{9 + 24 + 45}));
}

TEST_F(PostprocessTest, LongSumsAndOddSizes) {
  std::vector<float> values(7 * 33);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  const auto out = OwnTensor::Product(Tensor(values, {7, 33}), {{false, Matrix("33, 19", 33 * 19)}});
  ASSERT_TRUE(out.ok());
  const std::vector<double> got = Values(out->tensor());
  for (size_t i = 0; i < 7; ++i) {
    for (size_t j = 0; j < 19; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 33; ++k)
        sum += static_cast<double>(values[i * 33 + k]) * static_cast<double>(k * 19 + j + 1);
      EXPECT_EQ(got[i * 19 + j], sum);
    }
  }
}

TEST_F(PostprocessTest, ProductsThatDoNotExist) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  for (const char* shape : {"2, 3", "1, 1", "6,"}) {
    const int count = std::strcmp(shape, "1, 1") == 0 ? 1 : 6;
    const auto out = OwnTensor::Product(Tensor(values, {2, 3}), {{false, Matrix(shape, count)}});
    ASSERT_FALSE(out.ok());
    EXPECT_NE(out.status().message().find("have no product"), std::string::npos) << out.status().message();
  }
  EXPECT_FALSE(OwnTensor::Product(Tensor({1}, {}), {{false, Matrix("1,", 1)}}).ok());
  EXPECT_FALSE(OwnTensor::Product(Tensor(values, {2, 3}), {{false, root_ + "/none.npy"}}).ok());
  FileTensor huge = Tensor(values, {2, 3});
  huge.shape = {int64_t{1} << 40, 3};
  EXPECT_FALSE(OwnTensor::Product(huge, {{false, Matrix("3, 1", 3)}}).ok());
}

TEST_F(PostprocessTest, ValidPart) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  auto cut = OwnTensor::ValidPart(Tensor(values, {3, 1, 2}), 2);
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(Values(cut->tensor()), (std::vector<double>{1, 2, 3, 4, 0, 0}));
  cut = OwnTensor::ValidPart(Tensor(values, {6}), 100);
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(Values(cut->tensor()), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  const int64_t groups[] = {1, 2, 4};
  FileTensor list;
  list.dtype = DType::kInt64;
  list.shape = {3};
  list.strides = {1};
  list.data = groups;
  EXPECT_EQ(ValidLength(list), 7);
  EXPECT_EQ(ValidLength(Tensor(values, {6})), -1);
  EXPECT_EQ(ValidLengthKey("NPU.npu_grouped_matmul.0.forward"), "group_list");
  EXPECT_EQ(ValidLengthKey("Torch.matmul.0.forward"), "");
}

}  // namespace
}  // namespace msprobe
