#include "doctor/dump_values.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "base/temp_directory.h"

namespace msprobe {
namespace {

std::string Tensor(const std::string& dtype, const std::string& shape, double most, double least, double norm) {
  return fmt::format(
      R"({{"type": "torch.Tensor", "dtype": "{}", "shape": {}, "Max": {}, "Min": {}, "Mean": 0, "Norm": {},
      "requires_grad": false}})",
      dtype, shape, most, least, norm);
}

std::string Call(const std::string& name, const std::string& inputs, const std::string& outputs) {
  return fmt::format(R"("{}": {{"input_args": [{}], "input_kwargs": {{}}, "output": [{}]}})", name, inputs, outputs);
}

class DumpValues : public testing::Test {
 protected:
  DumpValues() : directory_(TempDirectory::Create(testing::TempDir(), "values")) {}
  std::string Write(const std::string& name, const std::string& calls) {
    const std::string path = JoinPath(directory_->path(), name);
    std::ofstream(path)
        << R"({"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": {)" << calls
        << "}}";
    return path;
  }
  StatusOr<TempDirectory> directory_;
};

const std::string kScores = Tensor("torch.float32", "[30, 9]", 2, -2, 40);

std::string Loss(double least, double loss) {
  return Call("Functional.nll_loss.0.forward", kScores + ", " + Tensor("torch.int64", "[30]", 8, least, 31 + least),
              Tensor("torch.float32", "[]", loss, loss, loss));
}

TEST_F(DumpValues, LabelsThatDifferAreDataUnlessAnOpMadeThemOrNothingFollows) {
  const std::string a = Write("a.json", Loss(-1, 2.5)), b = Write("b.json", Loss(0, 2.7));
  const auto given = FindGivenData(a, b);
  ASSERT_TRUE(given);
  EXPECT_EQ(given->op, "Functional.nll_loss.0.forward");
  EXPECT_EQ(given->item, "input.1");
  EXPECT_NE(given->a.find("Min -1"), std::string::npos);
  EXPECT_FALSE(FindGivenData(a, a));
  EXPECT_FALSE(FindGivenData(a, Write("masked.json", Loss(0, 2.5))));  // what is masked otherwise gives the same loss
  const std::string best = Call("Torch.argmax.0.forward", kScores, Tensor("torch.int64", "[30]", 8, 0, 31));
  EXPECT_FALSE(FindGivenData(a, Write("made.json", best + ", " + Loss(0, 2.7))));
}

/// The norm of a mask is NaN at both sides; a value without any figure is not known to be the same.
TEST_F(DumpValues, AMaskWithoutANormIsTheSame) {
  const auto calls = [](const char* most, double loss) {
    const std::string mask = fmt::format(
        R"({{"type": "torch.Tensor", "dtype": "torch.bool", "shape": [30], "Max": {}, "Min": false, "Mean": null,
        "Norm": null, "requires_grad": false}})",
        most);
    return Call("Functional.masked_loss.0.forward", kScores + ", " + mask,
                Tensor("torch.float32", "[]", loss, loss, loss));
  };
  const std::string a = Write("a.json", calls("true", 2.5));
  EXPECT_FALSE(FindGivenData(a, Write("b.json", calls("true", 2.7))));
  EXPECT_TRUE(FindGivenData(a, Write("c.json", calls("false", 2.7))));
}

TEST_F(DumpValues, WhatAnOpGivesIsFoundUnderAnotherName) {
  const std::string clipped = Tensor("torch.float32", "[4, 7]", 3, 0, 9);
  const std::string a = Write("a.json", Call("Functional.relu.2.forward", kScores, clipped));
  const std::string rounded = Tensor("Float32", "[4, 7]", 3.0000004, 0, 9.000001);
  EXPECT_TRUE(HoldsOutputs(a, "Functional.relu.2.forward",
                           Write("b.json", Call("Primitive.relu.ReLU.1.forward", kScores, rounded))));
  EXPECT_FALSE(HoldsOutputs(a, "Functional.relu.2.forward",
                            Write("c.json", Call("Primitive.relu.ReLU.1.forward", kScores, kScores))));
}

}  // namespace
}  // namespace msprobe
