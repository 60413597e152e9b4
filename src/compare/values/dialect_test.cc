#include "compare/values/dialect.h"

#include <gtest/gtest.h>

#include "compare/values/op_diff.h"

namespace msprobe {
namespace {

std::string OpOf(const std::string& inputs, const std::string& outputs = "") {
  return R"({"input_args": [)" + inputs + R"(], "output": [)" + outputs + "]}";
}

std::string FactsOf(const std::string& norm, const std::string& dtype = "torch.float32",
                    const std::string& shape = "[2]", const std::string& grad = "true") {
  return R"({"type": "torch.Tensor", "dtype": ")" + dtype + R"(", "shape": )" + shape +
         R"(, "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": )" + norm + R"(, "requires_grad": )" + grad + "}";
}

std::string Scalar(const std::string& type, const std::string& value) {
  return R"({"type": ")" + type + R"(", "value": )" + value + "}";
}

/// The findings of all rows by one dialect, e.g. "0 8 16".
std::string Findings(const std::string& target, const std::string& golden, const Dialect& dialect,
                     const char* name = "Torch.x.0.forward", CompareMode mode = CompareMode::kStatistics) {
  JsonDoc a, b;
  EXPECT_TRUE(ParseJson(target, "target", &a).ok());
  EXPECT_TRUE(ParseJson(golden, "golden", &b).ok());
  DiffOptions options;
  options.mode = mode;
  options.dialect = dialect;
  options.check_dtype = !dialect.by_place;
  OpDiff op;
  DiffOps(name, a, name, &b, options, &op);
  std::string out;
  for (size_t i = 0; i < op.rows_used; ++i) out += (i ? " " : "") + std::to_string(op.rows[i].findings);
  return out;
}

struct Case {
  const char* what;
  std::string target, golden;
  std::string table, graph;
};

std::string Bits(int findings) { return std::to_string(findings); }

// What both judge alike, and the few things that readers of the one expect and those of the other do not.
TEST(Dialect, RulesOfARow) {
  const std::string nan = R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": NaN, "Min": 0.0,
                             "Mean": 0.5, "Norm": 1.0, "requires_grad": true})";
  const std::string lone = Bits(kRequiresGrad | kDType | kShape);
  const Case cases[] = {
      {"equal", OpOf(FactsOf("1.0")), OpOf(FactsOf("1.0")), "0", "0"},
      {"another dtype", OpOf(FactsOf("1.0", "torch.bfloat16")), OpOf(FactsOf("1.0")), Bits(kDType), Bits(kDType)},
      {"one dtype by two names", OpOf(FactsOf("1.0", "Float32")), OpOf(FactsOf("1.0")), "0", "0"},
      {"another shape", OpOf(FactsOf("1.0", "torch.float32", "[3]")), OpOf(FactsOf("1.0")), Bits(kShape), Bits(kShape)},
      {"another requires_grad", OpOf(FactsOf("1.0", "torch.float32", "[2]", "false")), OpOf(FactsOf("1.0")),
       Bits(kRequiresGrad), Bits(kRequiresGrad)},
      {"requires_grad of one side", OpOf(FactsOf("1.0", "torch.float32", "[2]", "null")), OpOf(FactsOf("1.0")),
       Bits(kRequiresGrad), "0"},
      {"NaN in the target", OpOf("", nan), OpOf("", FactsOf("1.0")), Bits(kNanInf), Bits(kNanInf)},
      {"NaN in both", OpOf("", nan), OpOf("", nan), "0", "0"},
      {"NaN without a partner", OpOf(nan), OpOf(""), Bits(kNanInf), lone},
      {"no partner", OpOf(FactsOf("1.0") + "," + FactsOf("2.0")), OpOf(FactsOf("1.0")), "0 0", "0 " + lone},
      {"another scalar", OpOf(Scalar("int", "3")), OpOf(Scalar("int", "4")), Bits(kScalarParameter),
       Bits(kScalarParameter)},
      {"0.0 and -0.0", OpOf(Scalar("float", "0.0")), OpOf(Scalar("float", "-0.0")), "0", "0"},
      {"integers that one double stands for", OpOf(Scalar("int", "9007199254740993")),
       OpOf(Scalar("int", "9007199254740992")), Bits(kScalarParameter), Bits(kScalarParameter)},
      {"NaN as an argument", OpOf(Scalar("float", "NaN")), OpOf(Scalar("float", "NaN")), "0", "0"},
      {"a tensor of no dimensions and a number", OpOf(FactsOf("1.0", "torch.float32", "[]", "null")),
       OpOf(Scalar("float", "1.0")), "0", Bits(kDType | kShape)},
      {"the output is wrong", OpOf(FactsOf("1.05"), FactsOf("1.6")), OpOf(FactsOf("1.0"), FactsOf("1.0")),
       "0 " + Bits(kOutputRelativeError | kRelativeErrorGrows),
       "0 " + Bits(kOutputRelativeError | kRelativeErrorGrows)},
      {"the error is the input's", OpOf(FactsOf("1.2"), FactsOf("1.9")), OpOf(FactsOf("1.0"), FactsOf("1.0")), "0 0",
       "0 0"},
      {"a golden norm of zero", OpOf("", FactsOf("1.0")), OpOf("", FactsOf("0.0")), Bits(kOutputRelativeError), "0"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Findings(c.target, c.golden, kTableDialect), c.table) << c.what;
    EXPECT_EQ(Findings(c.target, c.golden, kGraphDialect), c.graph) << c.what;
  }
}

TEST(Dialect, ErrorOfTheOutputAgainstThatOfTheInput) {
  struct Growth {
    double in, out;
    int findings;
  };
  const Growth cases[] = {{5, 60, kOutputRelativeError | kRelativeErrorGrows},
                          {5, 49, 0},
                          {0, 11, kRelativeErrorGrows},
                          {0, 9, 0},
                          {3, 31, kRelativeErrorGrows},
                          {20, 90, 0}};
  const auto norm = [](double percent) { return FactsOf(std::to_string(100 + percent)); };
  for (const Growth& c : cases) {
    const std::string a = OpOf(norm(c.in), norm(c.out)), b = OpOf(norm(0), norm(0));
    for (const Dialect& dialect : {kTableDialect, kGraphDialect}) {
      EXPECT_EQ(Findings(a, b, dialect), "0 " + Bits(c.findings)) << c.in << " " << c.out;
      EXPECT_EQ(Findings(a, b, dialect, "Tensor.to.0.forward"), "0 0");
      EXPECT_EQ(Findings(a, b, dialect, "Distributed.all_to_all_single.0.forward"), "0 0");
    }
  }
}

TEST(Dialect, Checksums) {
  const auto sum = [](const std::string& md5) {
    return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1, "Min": 1, "md5": ")" + md5 +
           "\"}";
  };
  const auto both = [&](const std::string& a, const std::string& b, const std::string& findings,
                        const char* name = "Torch.x.0.forward") {
    for (const Dialect& dialect : {kTableDialect, kGraphDialect}) {
      EXPECT_EQ(Findings(OpOf(a), OpOf(b), dialect, name, CompareMode::kChecksum), findings) << a << " " << b;
    }
  };
  both(sum("aa"), sum("aa"), "0");
  both(sum("aa"), sum("bb"), Bits(kChecksumDiffers));
  both(sum("aa"), sum("N/A"), Bits(kChecksumUnmatched));
  both(sum("aa"), "", Bits(kChecksumUnmatched));
  both("null", "null", "0");
  const auto null = [&](const std::string& a, const std::string& b, const Dialect& dialect) {
    return Findings(OpOf(a), OpOf(b), dialect, "Torch.x.0.forward", CompareMode::kChecksum);
  };
  EXPECT_EQ(null(sum("aa"), "null", kTableDialect), Bits(kChecksumUnmatched));
  EXPECT_EQ(null(sum("aa"), "null", kGraphDialect), Bits(kChecksumDiffers));
  EXPECT_EQ(null("null", sum("aa"), kGraphDialect), Bits(kChecksumDiffers));
  both(sum("aa"), sum("bb"), "0", "Torch.empty.0.forward");
}

TEST(Dialect, DTypeOfFusedProjectionsIsLeftAlone) {
  const std::string a = OpOf(FactsOf("1.0", "torch.bfloat16")), b = OpOf(FactsOf("1.0"));
  for (const Dialect& dialect : {kTableDialect, kGraphDialect}) {
    EXPECT_EQ(Findings(a, b, dialect, "Module.attn.qkv.Linear.forward.0"), "0");
    EXPECT_EQ(Findings(a, b, dialect, "Module.attn.proj.Linear.forward.0"), Bits(kDType));
  }
}

// Of a module that is called "output" the weight counts as input: it is off as much as the output, so nothing grew.
TEST(Dialect, OutputModulesAreJudgedByTheirInputs) {
  const auto op = [](const char* weight, const char* out) {
    return R"({"input_args": [)" + FactsOf("100.0") + R"(], "output": [)" + FactsOf(out) +
           R"(], "parameters": {"weight": )" + FactsOf(weight) + "}}";
  };
  for (const Dialect& dialect : {kTableDialect, kGraphDialect}) {
    EXPECT_EQ(
        Findings(op("160.0", "160.0"), op("100.0", "100.0"), dialect, "Module.bert.output.dense.Linear.forward.0"),
        "0 0 0");
  }
}

// Items of another number of the same kind: by suffix or in their order.
TEST(Dialect, Partners) {
  const std::string a = R"({"input_kwargs": {"x": )" + FactsOf("1.0") + "}}";
  const std::string b = R"({"input_kwargs": {"y": )" + FactsOf("1.0") + "}}";
  JsonDoc target, golden;
  ASSERT_TRUE(ParseJson(a, "target", &target).ok());
  ASSERT_TRUE(ParseJson(b, "golden", &golden).ok());
  OpDiff op;
  DiffOptions options;
  DiffOps("Torch.x.0.forward", target, "Torch.x.0.forward", &golden, options, &op);
  EXPECT_EQ(op.rows[0].golden, kNoItem);
  options.dialect = kGraphDialect;
  DiffOps("Torch.x.0.forward", target, "Torch.x.0.forward", &golden, options, &op);
  EXPECT_EQ(op.rows[0].golden, 0);
}

TEST(Dialect, RanksInTheNamesOfMergedCalls) {
  const std::string a = OpOf(FactsOf("1.0"), FactsOf("2.0")), b = OpOf(FactsOf("1.0"), FactsOf("1.0"));
  JsonDoc target, golden;
  ASSERT_TRUE(ParseJson(a, "target", &target).ok());
  ASSERT_TRUE(ParseJson(b, "golden", &golden).ok());
  OpDiff op;
  DiffOptions options;
  options.dialect = kGraphDialect;
  for (const bool merged : {false, true}) {
    options.check_shape = !merged;
    DiffOps("Torch.empty_rank3.0.forward", target, "Torch.empty_rank3.0.forward", &golden, options, &op);
    EXPECT_EQ(VerdictOf(op), merged ? Verdict::kPass : Verdict::kError);
  }
}

}  // namespace
}  // namespace msprobe
