#include "compare/values/tensor_pairs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dump/test_files.h"

namespace msprobe {
namespace {

/// A file of numpy with one dimension of float32.
std::string Npy(const std::vector<float>& values) {
  std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(values.size()) + ",), }";
  head.resize(117, ' ');
  head += '\n';
  std::string out("\x93NUMPY\x01\x00\x76\x00", 10);
  out += head;
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return out;
}

class TensorDiffTest : public testing::Test {
 protected:
  ItemView View(const std::string& side, const std::vector<float>& values) {
    dir_.Write(side + "/dump_tensor_data/x.npy", Npy(values));
    ItemView item;
    item.tensor = true;
    item.dtype = "Float32";
    item.shape = "[" + std::to_string(values.size()) + "]";
    item.data_name = "x.npy";
    return item;
  }
  TensorDiff Diff(const std::vector<float>& target, const std::vector<float>& golden) {
    const ItemView a = View("a", target), b = View("b", golden);
    TensorDiff out;
    Pairs().Diff(a, &b, &out);
    return out;
  }
  TensorPairs Pairs() { return {dir_.path() + "/a/dump.json", dir_.path() + "/b/dump.json", nullptr}; }
  static std::string Text(const MetricCell& cell) {
    std::string out;
    cell.AppendText(&out);
    return out;
  }
  TempDir dir_;
};

TEST_F(TensorDiffTest, CellsAsTheTableShowsThem) {
  const TensorDiff d = Diff({1, 2, 3}, {0, 2, 3});
  EXPECT_EQ(d.outcome, TensorOutcome::kCompared);
  EXPECT_EQ(Text(d.cells[kCosine]), "0.963624111659");
  EXPECT_EQ(Text(d.cells[kEucDist]), "1.0");
  EXPECT_EQ(Text(d.cells[kMaxRelativeErr]), "8388608.0");
  EXPECT_EQ(Text(d.cells[kOneThousandthRatio]), "0.666666666667");
  EXPECT_EQ(Text(Diff({1, 2}, {1.001f, 2}).cells[kCosine]), "1.0") << "six decimals above 0.9999";
}

TEST_F(TensorDiffTest, OutcomesInTheirOrder) {
  const float nan = std::nanf("");
  EXPECT_EQ(Diff({}, {}).outcome, TensorOutcome::kEmpty);
  EXPECT_EQ(Diff({1, 2}, {1, 2, 3}).outcome, TensorOutcome::kShape);
  EXPECT_EQ(Text(Diff({1, 2}, {1, 2, 3}).cells[kEucDist]), "shape unmatched");
  EXPECT_EQ(Diff({nan, 2}, {2, nan}).outcome, TensorOutcome::kNanInf);
  EXPECT_EQ(Diff({nan, 2}, {nan, 2}).outcome, TensorOutcome::kCompared);
  EXPECT_EQ(Text(Diff({5}, {2}).cells[kCosine]), "unsupported");
  EXPECT_EQ(Text(Diff({5}, {2}).cells[kMaxAbsErr]), "3.0");
  EXPECT_EQ(Text(Diff({nan}, {2}).cells[kMaxAbsErr]), "Nan");
  ItemView a = View("a", {1}), b = View("b", {1});
  TensorDiff d;
  Pairs().Diff(a, nullptr, &d);
  EXPECT_EQ(d.outcome, TensorOutcome::kUnmatched);
  b.data_name = "gone.npy";
  Pairs().Diff(a, &b, &d);
  EXPECT_EQ(d.outcome, TensorOutcome::kUnreadable);
  EXPECT_LT(d.error, 0) << "nothing is known of the values";
  b.data_name = kNoDataName;
  Pairs().Diff(a, &b, &d);
  EXPECT_EQ(d.outcome, TensorOutcome::kNoGoldenData);
  a.data_name = kNoDataName;
  Pairs().Diff(a, &b, &d);
  EXPECT_EQ(d.outcome, TensorOutcome::kNoData);
}

TEST_F(TensorDiffTest, ErrorIsThatOfTheValues) {
  EXPECT_EQ(Diff({1, 2, 3}, {1, 2, 3}).error, 0);
  EXPECT_NEAR(Diff({3, 4}, {3, 4.5}).error, 0.5 / std::sqrt(29.25), 1e-7);
  EXPECT_TRUE(std::isinf(Diff({1, 2}, {1, std::nanf("")}).error));
  EXPECT_TRUE(std::isinf(Diff({1, 2}, {1, 2, 3}).error));
  // Two rows of a matrix exchanged: every statistic is the same.
  EXPECT_GT(Diff({1, 2, 3, 4}, {3, 4, 1, 2}).error, 0.5);
}

}  // namespace
}  // namespace msprobe
