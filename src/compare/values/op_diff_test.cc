#include "compare/values/op_diff.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "base/text.h"
#include "compare/round_off/ruler.h"
#include "json/parser.h"

namespace msprobe {
namespace {

/// A comparison of two op texts, with the documents that it points into.
struct Compared {
  JsonDoc target, golden;
  OpDiff diff;

  Compared(const std::string& a, const std::string& b, const std::string& name = "Functional.f.0.forward",
           DiffOptions options = {}) {
    EXPECT_TRUE(ParseJson(a, "target", &target).ok());
    if (!b.empty()) {
      EXPECT_TRUE(ParseJson(b, "golden", &golden).ok());
    }
    DiffOps(name, target, name, b.empty() ? nullptr : &golden, options, &diff);
  }
  std::string Rel(size_t row, int stat) const {
    std::string out;
    diff.rows[row].diff[static_cast<size_t>(stat)].AppendRel(&out);
    return out;
  }
};

std::string Tensor(const std::string& value, const std::string& norm = "", const std::string& dtype = "torch.float32",
                   const std::string& shape = "[2]", const std::string& grad = "false") {
  return R"({"type": "torch.Tensor", "dtype": ")" + dtype + R"(", "shape": )" + shape + R"(, "Max": )" + value +
         R"(, "Min": )" + value + R"(, "Mean": )" + value + R"(, "Norm": )" + (norm.empty() ? value : norm) +
         R"(, "requires_grad": )" + grad + "}";
}

std::string Op(const std::string& inputs, const std::string& outputs) {
  return R"({"input_args": [)" + inputs + R"(], "input_kwargs": {}, "output": [)" + outputs + "]}";
}

TEST(OpDiffTest, EqualTensorsPass) {
  const Compared c(Op(Tensor("1.0"), Tensor("1.0")), Op(Tensor("1.0"), Tensor("1.0")));
  ASSERT_EQ(c.diff.rows_used, 2u);
  EXPECT_EQ(c.diff.target[0].name, "Functional.f.0.forward.input.0");
  EXPECT_EQ(c.diff.rows[1].verdict, Verdict::kPass);
  EXPECT_TRUE(c.diff.rows[0].grad_consistent);
  EXPECT_EQ(c.Rel(0, kMax), "0");
  EXPECT_EQ(FindingsJson(c.diff, 0), "[]");
}

TEST(OpDiffTest, ScalarArgumentsMustBeEqual) {
  const Compared c(Op(R"({"type": "int", "value": 3}, {"type": "float", "value": -0.0})", ""),
                   Op(R"({"type": "int", "value": 4}, {"type": "float", "value": 0.0})", ""));
  EXPECT_EQ(c.diff.target[0].dtype, "<class 'int'>");
  EXPECT_EQ(c.diff.rows[0].findings, kScalarParameter);
  EXPECT_EQ(c.diff.rows[0].verdict, Verdict::kError);
  EXPECT_EQ(c.Rel(0, kMax), "25.0%");
  EXPECT_EQ(c.diff.rows[1].findings, 0) << "-0.0 equals 0.0";
}

TEST(OpDiffTest, NanOnlyInTheTargetIsAnError) {
  const Compared c(Op("", Tensor("NaN") + "," + Tensor("Infinity")), Op("", Tensor("1.0") + "," + Tensor("-Infinity")));
  EXPECT_EQ(c.diff.rows[0].findings, kNanInf);
  EXPECT_EQ(c.diff.rows[1].findings & kNanInf, 0) << "the golden side has one too";
}

TEST(OpDiffTest, WrongOutputOfAgreeingInputsGetsTwoMessages) {
  const Compared c(Op(Tensor("1.0"), Tensor("2.0", "3.0")), Op(Tensor("1.0"), Tensor("1.0", "1.0")));
  EXPECT_EQ(c.Rel(1, kNorm), "200.0%");
  EXPECT_EQ(c.diff.rows[1].verdict, Verdict::kError);
  EXPECT_EQ(FindingsJson(c.diff, 1), R"(["error: The NormRelativeErr of output is greater than 0.5.", )"
                                     R"("warning: The norm relative error of output is 10 times that of input."])");
}

TEST(OpDiffTest, MessagesNameTheNumbersThatJudged) {
  Thresholds thresholds;
  thresholds.output_wrong = 0.9;
  DiffOptions options;
  options.thresholds = &thresholds;
  const Compared c(Op("", Tensor("2.0")), Op("", Tensor("1.0")), "Functional.f.0.forward", options);
  EXPECT_TRUE(Contains(FindingsJson(c.diff, 0), "greater than 0.9.")) << FindingsJson(c.diff, 0);
}

TEST(OpDiffTest, AnUnmatchedInputDoesNotHideAWrongOutput) {
  const Compared c(Op(Tensor("1.0") + "," + Tensor("1.0"), Tensor("1.0", "1.99")),
                   Op(Tensor("1.0"), Tensor("1.0", "1.0")));
  EXPECT_EQ(c.diff.rows[1].golden, kNoItem);
  EXPECT_EQ(c.diff.rows[1].findings, 0);
  EXPECT_EQ(c.diff.rows[2].findings, kOutputRelativeError | kRelativeErrorGrows);
}

TEST(OpDiffTest, InputsOfAModuleNamedOutputAreInputs) {
  // The name ".output." stands in the path; only the item's place in the op decides.
  const std::string name = "Module.layer.output.dense.Linear.forward.0";
  const Compared c(Op(Tensor("3.0"), Tensor("1.0")), Op(Tensor("1.0"), Tensor("1.0")), name);
  EXPECT_EQ(c.diff.rows[0].findings, 0);
  EXPECT_EQ(c.diff.rows[1].findings, 0);
}

TEST(OpDiffTest, ShapeDtypeAndGradientFlag) {
  const Compared shape(Op("", Tensor("1.0", "", "torch.float32", "[3]")), Op("", Tensor("1.0")));
  EXPECT_EQ(shape.diff.rows[0].findings, kShape);
  const Compared dtype(Op(Tensor("1.0", "", "torch.float16"), ""), Op(Tensor("1.0"), ""));
  EXPECT_EQ(dtype.diff.rows[0].findings, kDType);
  const Compared apart(Op("", Tensor("1", "", "torch.int64")), Op("", Tensor("1.0")));
  EXPECT_EQ(apart.diff.rows[0].golden, kNoItem) << "integers are not matched with floats";
  EXPECT_EQ(apart.diff.rows[0].verdict, Verdict::kPass);
  EXPECT_FALSE(apart.diff.rows[0].grad_consistent);
  const Compared grad(Op(Tensor("1.0", "", "torch.float32", "[2]", "true"), ""), Op(Tensor("1.0"), ""));
  EXPECT_EQ(grad.diff.rows[0].findings, kRequiresGrad);
  EXPECT_FALSE(grad.diff.rows[0].grad_consistent);
}

TEST(OpDiffTest, OpWithoutPartner) {
  const Compared c(Op(Tensor("1.0") + R"(, {"type": "int", "value": 1})", Tensor("NaN")), "");
  EXPECT_FALSE(c.diff.matched);
  EXPECT_EQ(c.diff.rows[0].verdict, Verdict::kPass);
  EXPECT_FALSE(c.diff.rows[0].grad_consistent);
  EXPECT_TRUE(c.diff.rows[1].grad_consistent) << "N/A on both sides";
  EXPECT_EQ(c.diff.rows[2].findings, kNanInf);
  EXPECT_EQ(c.Rel(0, kMax), "N/A");
}

TEST(OpDiffTest, KindsOfValues) {
  const std::string inputs =
      R"(null, {"type": "slice", "value": [null, 3, null]}, {"type": "torch.Size", "value": [1, 2]},
         {"type": "ellipsis", "value": "..."}, {"type": "torch.memory_format", "format": "contiguous_format"},
         {"type": "torch.ProcessGroup", "group_ranks": [0, 1]},
         {"class_type": "torch.distributed.P2POp", "tensor": )" +
      Tensor("2.0") + "}";
  const Compared c(Op(inputs, ""), Op(inputs, ""));
  const auto max = [&](size_t i) {
    std::string out;
    c.diff.target[i].stats[kMax].AppendText(&out);
    return out;
  };
  ASSERT_EQ(c.diff.rows_used, 7u);
  EXPECT_EQ(c.diff.target[0].dtype, "N/A");
  EXPECT_EQ(max(0), "None");
  EXPECT_EQ(c.diff.target[1].dtype, "slice");
  EXPECT_EQ(c.diff.target[1].shape, "(3,)");
  EXPECT_EQ(c.diff.target[2].shape, "[1, 2]");
  EXPECT_EQ(max(3), "...");
  EXPECT_EQ(c.diff.target[4].dtype, "<class 'NoneType'>");
  EXPECT_EQ(max(5), "[0, 1]");
  EXPECT_EQ(max(6), "2.0");
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(c.diff.rows[i].verdict, Verdict::kPass) << i;
}

TEST(OpDiffTest, IgnoredApisAndUnwrittenBuffers) {
  for (const char* name :
       {"Tensor.to.0.forward", "Torch.empty.1.forward", "Tensor.__setitem__.0.forward", "Tensor.setitem.0.forward"}) {
    const Compared c(Op(Tensor("1.0"), Tensor("NaN")), Op(Tensor("2.0"), Tensor("1.0")), name);
    EXPECT_EQ(c.diff.rows[1].findings, 0) << name;
  }
  const Compared gather(Op(Tensor("NaN"), Tensor("NaN")), Op(Tensor("1.0"), Tensor("1.0")),
                        "Distributed._all_gather_base.0.forward");
  EXPECT_EQ(gather.diff.rows[0].findings, 0);
  EXPECT_EQ(gather.diff.rows[1].findings, kNanInf);
}

TEST(OpDiffTest, Checksums) {
  DiffOptions options;
  options.mode = CompareMode::kChecksum;
  const auto item = [](const char* md5) {
    return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "md5": ")" + std::string(md5) + R"("})";
  };
  const Compared c(Op(item("0a") + "," + item("0b") + R"(, {"type": "int", "value": 3}, null)", item("0c")),
                   Op(item("0a") + "," + item("0d") + R"(, {"type": "int", "value": 4}, null)", ""), "F.f.0.forward",
                   options);
  EXPECT_EQ(c.diff.rows[0].findings, 0);
  EXPECT_EQ(c.diff.rows[1].findings, kChecksumDiffers);
  EXPECT_EQ(c.diff.target[2].checksum, "6dd28e9b") << "CRC-32 of the text 3";
  EXPECT_EQ(c.diff.rows[2].findings, kChecksumDiffers);
  EXPECT_EQ(c.diff.rows[3].findings, 0);
  EXPECT_EQ(c.diff.rows[4].findings, kChecksumUnmatched);
  EXPECT_EQ(c.diff.rows[4].verdict, Verdict::kWarning);
}

TEST(OpDiffTest, DataNamesNameTheRow) {
  std::string leaf = Tensor("1.0");
  leaf.insert(leaf.size() - 1, R"(, "data_name": "Functional.f.0.forward.kwargs.mask.pt")");
  const std::string op = R"({"input_args": [], "input_kwargs": {"mask": )" + leaf + R"(}, "output": []})";
  const Compared c(op, R"({"input_kwargs": {"mask": )" + Tensor("1.0") + "}}");
  EXPECT_EQ(c.diff.target[0].name, "Functional.f.0.forward.kwargs.mask");
  EXPECT_EQ(c.diff.rows[0].golden, 0) << "matched by its place";
}

TEST(OpDiffTest, ManyItemsMatchInAnyOrder) {
  std::string a, b;
  for (int i = 0; i < 200; ++i) {
    const auto member = [&](int k) { return "\"k" + std::to_string(k) + "\": " + Tensor(std::to_string(k) + ".5"); };
    a += (i ? ", " : "") + member(i);
    b += (i ? ", " : "") + member(199 - i);
  }
  const Compared c(R"({"input_kwargs": {)" + a + "}}", R"({"input_kwargs": {)" + b + "}}");
  for (size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(c.diff.rows[i].golden, static_cast<int>(199 - i));
    EXPECT_EQ(c.Rel(i, kMax), "0");
  }
}

TEST(OpDiffTest, DistanceIsInUnitsOfRoundOff) {
  const auto distance = [](const std::string& a, const std::string& b) {
    const Compared c(Op("", a), Op("", b));
    return RowDistance(c.diff, 0, CompareMode::kStatistics, OpTolerance(c.diff));
  };
  EXPECT_EQ(distance(Tensor("1.0"), Tensor("1.0")), 0);
  EXPECT_NEAR(distance(Tensor("1.00001"), Tensor("1.0")), 1, 1e-3);
  EXPECT_LT(distance(Tensor("1.01", "", "torch.bfloat16"), Tensor("1.0")), 1) << "bfloat16 has 8 bits";
  EXPECT_TRUE(std::isinf(distance(Tensor("2", "", "torch.int64"), Tensor("1", "", "torch.int64"))));
  EXPECT_TRUE(std::isinf(distance(Tensor("NaN"), Tensor("1.0"))));
  EXPECT_EQ(distance(Tensor("1.0", "null"), Tensor("1.0", "1.0")), 0) << "a statistic that one version leaves out";
  // A mean near zero is judged against the amplitude.
  const std::string near_zero =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": -1.0, "Mean": )";
  EXPECT_LT(distance(near_zero + R"(1e-9, "Norm": 1.0})", near_zero + R"(-1e-9, "Norm": 1.0})"), 1e-3);
}

TEST(DTypesMatchTest, FloatsMatchWithinAFramework) {
  EXPECT_TRUE(DTypesMatch("torch.float16", "torch.bfloat16"));
  EXPECT_TRUE(DTypesMatch("torch.float64", "torch.float32"));
  EXPECT_TRUE(DTypesMatch("Float16", "BFloat16"));
  EXPECT_TRUE(DTypesMatch("torch.int64", "torch.int64"));
  EXPECT_FALSE(DTypesMatch("torch.int64", "torch.int32"));
  EXPECT_TRUE(DTypesMatch("torch.float32", "Float32")) << "two frameworks";
  EXPECT_TRUE(DTypesMatch("Float16", "torch.bfloat16"));
  EXPECT_TRUE(DTypesMatch("Int32", "torch.int64")) << "their default integers differ";
  EXPECT_FALSE(DTypesMatch("Int64", "torch.float32"));
  EXPECT_FALSE(DTypesMatch("Int64", "Int32"));
  EXPECT_TRUE(SameDType("BFloat16", "torch.bfloat16"));
  EXPECT_FALSE(SameDType("Float16", "torch.bfloat16"));
  EXPECT_FALSE(SameDType("<class 'int'>", "torch.int64"));
  EXPECT_FALSE(DTypesMatch("N/A", "torch.float32"));
  EXPECT_FALSE(DTypesMatch("float", "torch.float32")) << "a number is not a tensor";
}

}  // namespace
}  // namespace msprobe
