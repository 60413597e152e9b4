// What tests of differences write: dumps of few ops, and what is found in two of them.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compare/first_difference/first_difference.h"
#include "compare/pair/compare.h"
#include "dump/test_files.h"

namespace msprobe {

/// A tensor of which Max and Norm are told apart.
inline std::string TensorOf(const std::string& shape, double max, double norm) {
  return fmt::format(
      R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [{}], "Max": {}, "Min": {}, "Mean": {},
                     "Norm": {}}})",
      shape, max, -max / 2, max / 4, norm);
}

inline std::string Wide(double norm) { return TensorOf("4, 8", norm / 3, norm); }

inline std::string Number(double v) { return fmt::format(R"({{"type": "float", "value": {}}})", v); }

inline std::string Call(const std::string& name, const std::string& inputs, const std::string& output,
                        const std::string& kwargs = "", const std::string& parameters = "") {
  const bool backward = name.find("backward") != std::string::npos;
  return fmt::format(R"("{}": {{"{}": [{}], {} "output": [{}]{}}})", name, backward ? "input" : "input_args", inputs,
                     backward ? "" : R"("input_kwargs": {)" + kwargs + "},", output,
                     parameters.empty() ? "" : R"(, "parameters": {)" + parameters + "}");
}

class NoRowsFormat : public RowFormat {
 public:
  void AppendOp(const OpDiff&, int, OpBlock*) const override {}
};

/// Finds the differences of t/dump.json against g/dump.json in a directory of its own.
class DifferencesTest : public testing::Test {
 protected:
  Differences Find(const BigArray<float>* calibrated = nullptr) {
    FilePair files;
    files.target = dir_.path() + "/t/dump.json";
    files.golden = dir_.path() + "/g/dump.json";
    auto pair = OpenDumpPair(files, Mapping());
    EXPECT_TRUE(pair.ok()) << pair.status().message();
    const auto outcome = ComparePair(
        *pair, NoRowsFormat(), [](OpBlock&&) { return OkStatus(); }, nullptr);
    EXPECT_TRUE(outcome.ok());
    auto found = FindDifferences(*pair, outcome->distances, calibrated);
    EXPECT_TRUE(found.ok());
    return *found;
  }
  TempDir dir_;
  using Kind = FirstDifference::Kind;
};

class FindingsTest : public DifferencesTest {
 protected:
  void Write(const std::string& side, const std::vector<std::string>& ops, const std::string& parents = "") {
    dir_.Write(side + "/dump.json", R"({"task": "statistics", "level": "mix", "framework": "pytorch", "data": {)" +
                                        fmt::format("{}", fmt::join(ops, ", ")) + "}}");
    if (!parents.empty()) dir_.Write(side + "/construct.json", "{" + parents + "}");
  }
};

}  // namespace msprobe
