#include "compare/values/joined_tensor.h"

#include <gtest/gtest.h>

#include <cstring>

#include "dump/test_files.h"

namespace msprobe {
namespace {

/// A file of numpy with 1, 2, 3 ... times `scale` in it.
std::string ScaledNpy(const std::string& shape, size_t count, float scale = 1) {
  std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
  head.resize((head.size() + 11) / 64 * 64 + 53, ' ');
  head += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(head.size() & 255);
  out += static_cast<char>(head.size() >> 8);
  out += head;
  for (size_t i = 0; i < count; ++i) {
    const float v = static_cast<float>(i + 1) * scale;
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  return out;
}

class JoinedTensorTest : public testing::Test {
 protected:
  void SetUp() override { dir_.Write("dump.json", "{}"); }
  void Write(const std::string& name, const std::string& bytes) { dir_.Write("dump_tensor_data/" + name, bytes); }
  StatusOr<JoinedTensor> Open(const std::vector<std::string_view>& names, JoinAxis axis) {
    return JoinedTensor::Open(TensorFolder(dir_.path() + "/dump.json"), names, axis, DType::kFloat32);
  }
  static std::vector<float> Values(const JoinedTensor& joined) {
    size_t count = 1;
    for (const int64_t n : joined.tensor().shape) count *= static_cast<size_t>(n);
    std::vector<float> out(count);
    std::memcpy(out.data(), joined.tensor().data, count * sizeof(float));
    return out;
  }
  TempDir dir_;
};

TEST_F(JoinedTensorTest, JoinsBelowAndBesideEachOther) {
  Write("a.npy", ScaledNpy("2, 1, 2", 4));
  Write("b.npy", ScaledNpy("2, 2", 4, 10));
  const auto below = Open({"a.npy", "b.npy"}, JoinAxis::kFirst);
  ASSERT_TRUE(below.ok()) << below.status().message();
  EXPECT_EQ(below->tensor().shape, (std::vector<int64_t>{4, 2})) << "dimensions of 1 do not count";
  EXPECT_EQ(Values(*below), (std::vector<float>{1, 2, 3, 4, 10, 20, 30, 40}));
  const auto beside = Open({"a.npy", "b.npy"}, JoinAxis::kLast);
  ASSERT_TRUE(beside.ok()) << beside.status().message();
  EXPECT_EQ(beside->tensor().shape, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(Values(*beside), (std::vector<float>{1, 2, 10, 20, 3, 4, 30, 40}));
  const auto first = Open({"a.npy", "b.npy"}, JoinAxis::kFirstOnly);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Values(*first), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(JoinedTensorTest, OtherShapesAreRefused) {
  Write("a.npy", ScaledNpy("2, 2", 4));
  Write("b.npy", ScaledNpy("3, 2", 6));
  Write("c.npy", ScaledNpy("4,", 4));
  EXPECT_TRUE(Open({"a.npy", "b.npy"}, JoinAxis::kFirst).ok());
  EXPECT_EQ(Open({"a.npy", "b.npy"}, JoinAxis::kLast).status().code(), Code::kBadInput);
  EXPECT_EQ(Open({"a.npy", "c.npy"}, JoinAxis::kFirst).status().code(), Code::kBadInput);
  EXPECT_EQ(Open({"a.npy", "absent.npy"}, JoinAxis::kFirst).status().code(), Code::kBadInput);
}

/// Their sizes say nothing about the bytes that are there.
TEST_F(JoinedTensorTest, EmptyTensorsOfHugeShapesCostNothing) {
  Write("rows.npy", ScaledNpy("1073741824, 0", 0));
  const auto rows = Open({"rows.npy", "rows.npy"}, JoinAxis::kLast);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ(rows->tensor().shape, (std::vector<int64_t>{1073741824, 0}));
  Write("long.npy", ScaledNpy("0, 4611686018427387904", 0));
  const auto sum = Open({"long.npy", "long.npy"}, JoinAxis::kLast);
  EXPECT_EQ(sum.status().code(), Code::kBadInput);
}

}  // namespace
}  // namespace msprobe
