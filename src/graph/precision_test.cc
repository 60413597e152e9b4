#include "graph/precision.h"

#include <cmath>

#include "graph/graph_test_files.h"

namespace msprobe {
namespace {

/// Two ops and what comparing them says.
class Pair {
 public:
  Pair(const std::string& npu, const std::string& bench, std::string_view node = "Torch.x.0.forward",
       GraphMode mode = GraphMode::kSummary) {
    EXPECT_TRUE(ParseJson(npu, "test", &npu_doc_).ok());
    EXPECT_TRUE(ParseJson(bench, "test", &bench_doc_).ok());
    npu_.Read(node, npu_doc_);
    bench_.Read(node, bench_doc_);
    CompareParams(mode, npu_, bench_, &rows_);
    level_ = JudgeNode(mode, node, &rows_);
  }
  Level level() const { return level_; }
  const Row& row(size_t i) const { return rows_[i]; }
  size_t size() const { return rows_.size(); }
  std::string messages(size_t i) const {
    std::string out;
    for (const char* m : rows_[i].messages) out += std::string(m) + ";";
    return out;
  }

 private:
  JsonDoc npu_doc_, bench_doc_;
  ParamList npu_, bench_;
  std::vector<Row> rows_;
  Level level_ = Level::kPass;
};

std::string Op(const std::string& in, const std::string& out) {
  return "{\"input_args\": [" + in + "], \"output\": [" + out + "]}";
}
std::string Norm(double norm) { return TensorJson(1, 0, 0.5, norm); }

// The input's and the output's norm are off by these percentages.
Level Growth(double in, double out, std::string_view node = "Torch.x.0.forward") {
  return Pair(Op(Norm(100 + in), Norm(100 + out)), Op(Norm(100), Norm(100)), node).level();
}

TEST(Verdict, RelativeErrorOfInputsAndOutputs) {
  EXPECT_EQ(Growth(5, 60), Level::kError);
  EXPECT_EQ(Growth(5, 49), Level::kPass);
  EXPECT_EQ(Growth(0, 11), Level::kWarning);
  EXPECT_EQ(Growth(0, 9), Level::kPass);
  EXPECT_EQ(Growth(3, 31), Level::kWarning);
  EXPECT_EQ(Growth(20, 90), Level::kPass);
  EXPECT_EQ(Growth(0, 99, "Tensor.to.0.forward"), Level::kPass);
  EXPECT_EQ(Growth(0, 99, "Distributed.all_to_all_single.0.forward"), Level::kPass);
}

TEST(Verdict, ErrorComesBeforeWarning) {
  const Pair p(Op(Norm(100), Norm(300)), Op(Norm(100), Norm(100)));
  EXPECT_EQ(p.messages(1),
            "error: The NormRelativeErr of output is greater than 0.5.;"
            "warning: The norm relative error of output is 10 times that of input.;");
}

TEST(Verdict, NanOnOneSideOnly) {
  const std::string nan =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": NaN, "Min": 0, "Mean": 0.5,
                              "Norm": 1.0, "requires_grad": true})";
  EXPECT_EQ(Pair(Op(Norm(1), nan), Op(Norm(1), Norm(1))).level(), Level::kError);
  EXPECT_EQ(Pair(Op(Norm(1), nan), Op(Norm(1), nan)).level(), Level::kPass);
  EXPECT_EQ(Pair(Op(Norm(1), Norm(1)), Op(Norm(1), nan)).level(), Level::kPass);
}

TEST(Verdict, DtypeShapeAndGradient) {
  const std::string base =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1, "Min": 1, "Mean": 1, "Norm": 1,
                               "requires_grad": true})";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = base;
    text.replace(text.find(from), from.size(), to);
    return Pair(Op(text, ""), Op(base, "")).messages(0);
  };
  EXPECT_EQ(with("float32", "bfloat16"), "error: The dtype of NPU and Bench are inconsistent.;");
  EXPECT_EQ(with("[2]", "[3]"), "error: The shape of NPU and Bench are inconsistent.;");
  EXPECT_EQ(with("true", "false"), "error: The Required_Grad of NPU and Bench are inconsistent;");
  EXPECT_EQ(with("[2]", "[2]"), "");
}

TEST(Verdict, DtypeOfFusedProjectionsIsLeftAlone) {
  const std::string a =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1, "Min": 1, "Mean": 1, "Norm": 1})";
  const std::string b =
      R"({"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [2], "Max": 1, "Min": 1, "Mean": 1, "Norm": 1})";
  EXPECT_EQ(Pair(Op(a, ""), Op(b, ""), "Module.attn.qkv.Linear.forward.0").level(), Level::kPass);
  EXPECT_EQ(Pair(Op(a, ""), Op(b, ""), "Module.attn.proj.Linear.forward.0").level(), Level::kError);
}

TEST(Verdict, ScalarArguments) {
  const auto scalar = [](const std::string& v) { return R"({"type": "int", "value": )" + v + "}"; };
  EXPECT_EQ(Pair(Op(scalar("3"), ""), Op(scalar("4"), "")).messages(0),
            "error: The scalar parameters of NPU and Bench are inconsistent.;");
  EXPECT_EQ(Pair(Op(scalar("3"), ""), Op(scalar("3"), "")).level(), Level::kPass);
  EXPECT_EQ(Pair(Op(scalar("NaN"), ""), Op(scalar("NaN"), "")).level(), Level::kPass);
  EXPECT_EQ(Pair(Op(scalar("\"a\""), ""), Op(scalar("\"b\""), "")).level(), Level::kError);
}

TEST(Verdict, ParameterWithoutPartnerIsShownAndJudged) {
  const Pair p(Op(Norm(1) + "," + Norm(2), ""), Op(Norm(1), ""));
  ASSERT_EQ(p.size(), 2u);
  EXPECT_EQ(p.row(1).bench, nullptr);
  EXPECT_EQ(p.row(1).max.value.text, " ");
  EXPECT_FALSE(p.row(1).same_requires_grad);
  EXPECT_EQ(p.messages(1),
            "error: The Required_Grad of NPU and Bench are inconsistent;"
            "error: The dtype of NPU and Bench are inconsistent.;error: The shape of NPU and Bench are inconsistent.;");
}

TEST(Verdict, Checksums) {
  const auto tensor = [](const std::string& md5) {
    return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1, "Min": 1, "md5": ")" + md5 +
           "\"}";
  };
  const auto judge = [&](const std::string& a, const std::string& b, const char* node = "Torch.x.0.forward") {
    return Pair(Op(tensor(a), ""), Op(tensor(b), ""), node, GraphMode::kMd5).level();
  };
  EXPECT_EQ(judge("aa", "aa"), Level::kPass);
  EXPECT_EQ(judge("aa", "bb"), Level::kError);
  EXPECT_EQ(judge("aa", "N/A"), Level::kWarning);
  EXPECT_EQ(Pair(Op(tensor("aa"), ""), Op("", ""), "Torch.x.0.forward", GraphMode::kMd5).level(), Level::kWarning);
  EXPECT_EQ(judge("aa", "bb", "Torch.empty.0.forward"), Level::kPass) << "uninitialised memory is never wrong";
}

TEST(Verdict, OutputModulesAreJudgedByTheirInputs) {
  // Of a module that is called "output" the weight counts as input: it is off as much as the output, so nothing grew.
  const auto op = [](double weight, double out) {
    return "{\"input_args\": [" + Norm(100) + "], \"output\": [" + Norm(out) +
           "], \"parameters\": {\"weight\": " + Norm(weight) + "}}";
  };
  EXPECT_EQ(Pair(op(160, 160), op(100, 100), "Module.bert.output.dense.Linear.forward.0").level(), Level::kPass);
}

TEST(Subtract, KeepsKindsApart) {
  const auto text = [](const Difference& d) {
    return (d.wide.empty() ? FieldText(d.value) : d.wide) + " " + FieldText(d.relative);
  };
  const auto num = [](double d) { return Value::Of(d); };
  const auto integer = [](int64_t i) { return Value::Of(i); };
  EXPECT_EQ(text(Subtract(integer(3), integer(4))), "-1 25.0");
  EXPECT_EQ(text(Subtract(integer(3), num(4))), "-1.0 25.0");
  EXPECT_EQ(text(Subtract(num(1), num(0))), "1.0 N/A");
  EXPECT_EQ(text(Subtract(num(NAN), num(0))), "Nan Nan");
  EXPECT_EQ(text(Subtract(num(INFINITY), num(INFINITY))), "Nan Nan");
  EXPECT_EQ(text(Subtract(num(INFINITY), num(2))), "inf\t inf");
  EXPECT_EQ(text(Subtract(num(2), num(INFINITY))), "-inf\t nan");
  EXPECT_EQ(text(Subtract(Value::Null(), num(2))), "N/A N/A");
  EXPECT_EQ(text(Subtract(integer(INT64_MIN), integer(INT64_MAX))), "-18446744073709551615 200.0");
}

}  // namespace
}  // namespace msprobe
