#include "diagnose/overflow/overflow.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "diagnose/overflow/overflow_describe.h"
#include "dump/test_files.h"
#include "json/parser.h"

namespace msprobe {
namespace {

using Kind = OverflowSource::Kind;
using Names = std::vector<std::string>;

std::string Tensor(const std::string& max, const std::string& min, const std::string& shape = "2, 3") {
  return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [)" + shape + R"(], "Max": )" + max +
         R"(, "Min": )" + min + R"(, "Mean": 0.5, "Norm": 1.5, "requires_grad": false})";
}
const std::string kClean = Tensor("1.5", "-1.5");
const std::string kNaN = Tensor("NaN", "NaN");
const std::string kInfinite = Tensor("Infinity", "0.25");
const std::string kMask = Tensor("0.0", "-Infinity");

std::string Op(const std::string& name, const std::string& args, const std::string& output,
               const std::string& kwargs = "") {
  return "\"" + name + R"(": {"input_args": [)" + args + R"(], "input_kwargs": {)" + kwargs + R"(}, "output": [)" +
         output + "]}";
}
std::string Backward(const std::string& name, const std::string& input, const std::string& output) {
  return "\"" + name + R"(": {"input": [)" + input + R"(], "output": [)" + output + "]}";
}
std::string Int(int v) { return R"({"type": "int", "value": )" + std::to_string(v) + "}"; }

JsonDoc Parse(const std::string& text) {
  JsonDoc doc;
  EXPECT_TRUE(ParseJson(text, "test", &doc).ok());
  return doc;
}

class OverflowTest : public testing::Test {
 protected:
  void Rank(int rank, const Names& ops, int step = 0) {
    std::string data;
    for (const std::string& op : ops) data += (data.empty() ? "" : ", ") + op;
    dir_.Write("step" + std::to_string(step) + "/rank" + std::to_string(rank) + "/dump.json",
               R"({"task": "statistics", "level": "mix", "framework": "pytorch", "data": {)" + data + "}}");
  }
  OverflowReport Find() {
    auto report = FindOverflow(dir_.path());
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *report : OverflowReport();
  }
  /// "rank: op" of everything that is named.
  Names Named() {
    Names out;
    for (const OverflowFinding& f : Find().first) {
      for (const OverflowOp& op : f.ops) out.push_back(std::to_string(op.rank) + ": " + op.name);
    }
    return out;
  }
  Kind KindOfFirst() {
    const OverflowReport report = Find();
    return report.first.empty() ? Kind::kMask : report.first[0].kind;
  }
  TempDir dir_;
};

TEST(BadKinds, ExtremesCountsAndMean) {
  EXPECT_EQ(BadKindsOf(Parse(kClean)), 0);
  EXPECT_EQ(BadKindsOf(Parse(kNaN)), kBadNaN);
  EXPECT_EQ(BadKindsOf(Parse(kInfinite)), kBadPosInf);
  EXPECT_EQ(BadKindsOf(Parse(kMask)), kBadNegInf);
  EXPECT_EQ(BadKindsOf(Parse(R"({"Max": 1, "Min": 0, "nan_count": 2})")), kBadNaN);
  EXPECT_EQ(BadKindsOf(Parse(R"({"Max": 1, "Min": 0, "inf_count": 2})")), kBadInfinities);
  EXPECT_EQ(BadKindsOf(Parse(R"({"Max": "nan", "Min": "-inf"})")), kBadNaN | kBadNegInf);
  EXPECT_EQ(BadKindsOf(Parse(R"({"Max": null, "Min": null, "Mean": null, "Norm": null})")), 0);
  EXPECT_EQ(BadKindsOf(Parse(R"({"Max": true, "Min": false})")), 0);
}

TEST(BadKinds, SumsThatOverflowAreNoFinding) {
  const std::string shape = R"("dtype": "torch.float32", "shape": [64], )";
  EXPECT_EQ(BadKindsOf(Parse("{" + shape + R"("Max": 3e38, "Min": 3e38, "Mean": Infinity, "Norm": Infinity})")), 0);
  EXPECT_EQ(BadKindsOf(Parse("{" + shape + R"("Max": 0, "Min": -3.4e38, "Mean": -Infinity, "Norm": Infinity})")), 0);
  EXPECT_EQ(BadKindsOf(Parse("{" + shape + R"("Max": 1, "Min": 0, "Mean": NaN, "Norm": 1})")), kBadNaN);
  EXPECT_EQ(BadKindsOf(Parse("{" + shape + R"("Max": 1e20, "Min": 0, "Mean": 1, "Norm": Infinity})")), 0);
  EXPECT_EQ(BadKindsOf(Parse("{" + shape + R"("Norm": NaN})")), kBadNaN) << "all that is there";
}

TEST(OverflowMargin, OfTheDumpOrOfTheDtype) {
  EXPECT_EQ(OverflowMarginOf(Parse(R"({"dtype": "torch.float16", "Max": 1, "overflow_margin": 2.5})")), 2.5);
  EXPECT_DOUBLE_EQ(OverflowMarginOf(Parse(R"({"dtype": "torch.float16", "Max": 3, "Min": -32752})")), 2);
  EXPECT_EQ(OverflowMarginOf(Parse(R"({"dtype": "Float16", "Max": 65504, "Min": 0})")), 1);
  EXPECT_EQ(OverflowMarginOf(Parse(R"({"dtype": "torch.int64", "Max": 65504, "Min": 0})")), 0);
}

TEST_F(OverflowTest, ProducerCarrierAbsorber) {
  Rank(0, {Op("Torch.mul.0.forward", kClean, kClean), Op("Torch.exp.0.forward", kClean, kInfinite),
           Op("Torch.relu.0.forward", kInfinite, Tensor("Infinity", "0.5")),
           Op("Torch.nan_to_num.0.forward", Tensor("Infinity", "0.5"), kClean)});
  const OverflowReport report = Find();
  ASSERT_EQ(report.first.size(), 1u);
  const OverflowFinding& f = report.first[0];
  EXPECT_EQ(f.ops[0].name, "Torch.exp.0.forward");
  EXPECT_EQ(f.carriers, 1u);
  EXPECT_EQ(f.absorbers, 1u);
  EXPECT_TRUE(f.absorbed);
  EXPECT_EQ(f.absorbed_at[0].name, "Torch.nan_to_num.0.forward");
  EXPECT_EQ(f.by_identity, 2u);
  EXPECT_EQ(
      f.inputs,
      (std::vector<std::pair<std::string, std::string>>{{".input.0", "float32 [2, 3], max 1.5, min -1.5, mean 0.5"}}));
}

TEST_F(OverflowTest, WhatLastsComesBeforeWhatIsAbsorbed) {
  Rank(0,
       {Op("Torch.log.0.forward", kClean, Tensor("1.0", "-Infinity")),
        Op("Torch.clamp.0.forward", Tensor("1.0", "-Infinity"), kClean), Op("Torch.exp.0.forward", kClean, kInfinite),
        Op("Torch.sum.0.forward", kInfinite, Tensor("Infinity", "Infinity", ""))});
  const OverflowReport report = Find();
  EXPECT_EQ(Named(), Names{"0: Torch.exp.0.forward"});
  ASSERT_EQ(report.absorbed.size(), 1u);
  EXPECT_EQ(report.absorbed[0].ops[0].name, "Torch.log.0.forward");
}

TEST_F(OverflowTest, MasksAreNoFindingAndNaNMadeOfThemIs) {
  const std::string scores = Tensor("4.5", "-Infinity");
  const Names ops{Op("Tensor.masked_fill.0.forward", kClean + R"(, {"type": "float", "value": -Infinity})", scores),
                  Op("Functional.softmax.0.forward", scores, kClean)};
  Rank(0, ops);
  EXPECT_EQ(Named(), Names{});
  EXPECT_EQ(Find().masks, 1u);
  Names bad = ops;
  bad.push_back(Op("Tensor.__add__.0.forward", scores, scores));
  bad.push_back(Op("Functional.softmax.1.forward", scores, kNaN));
  Rank(0, bad);
  EXPECT_EQ(Named(), Names{"0: Functional.softmax.1.forward"});
  EXPECT_EQ(Find().first[0].mask, "Tensor.masked_fill.0.forward");
}

TEST_F(OverflowTest, InfinitySetByHandIsNoMask) {
  const std::string set = Tensor("1.5", "-Infinity");
  Rank(0, {Op("Tensor.__setitem__.0.forward", kClean + R"(, {"type": "float", "value": -Infinity})", set),
           Op("Functional.layer_norm.0.forward", set, kNaN)});
  EXPECT_EQ(Named(), Names{"0: Tensor.__setitem__.0.forward"});
}

TEST_F(OverflowTest, MemoryThatIsWrittenFirstIsNoFinding) {
  const std::string half =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": Infinity, "Min": -0.5})";
  Rank(0, {Op("Torch.empty.0.forward", "", half), Op("Tensor.copy_.0.forward", half + ", " + kClean, kClean)});
  EXPECT_EQ(Named(), Names{});
  Rank(0, {Op("Torch.empty.0.forward", "", half), Op("Tensor.add.0.forward", kClean + ", " + half, kInfinite)});
  EXPECT_EQ(Named(), Names{"0: Tensor.add.0.forward"});
  EXPECT_EQ(KindOfFirst(), Kind::kUninitialised);
  EXPECT_EQ(Find().first[0].reader, "Torch.empty.0.forward");
}

TEST_F(OverflowTest, MemoryThatNobodyWroteIsNoFindingUntilItIsComputedWith) {
  std::string unwritten = kNaN;
  unwritten.insert(unwritten.rfind('}'), R"(, "unwritten": true)");
  const Names moved{Op("Tensor.narrow.0.forward", unwritten, unwritten),
                    Op("Tensor.narrow.1.forward", unwritten, kNaN)};
  Rank(0, moved);
  EXPECT_EQ(Named(), Names{});
  Names read = moved;
  read.push_back(Op("Tensor.add.0.forward", kClean + ", " + unwritten, kNaN));
  Rank(0, read);
  EXPECT_EQ(Named(), Names{"0: Tensor.add.0.forward"});
  EXPECT_EQ(KindOfFirst(), Kind::kUninitialised);
}

TEST_F(OverflowTest, ACauseWithCleanInputsIsNoneOfAnotherUnlessThatWasAbsorbed) {
  const Names two{Op("Torch.exp.0.forward", kClean, kInfinite), Op("Tensor.sum.0.forward", kInfinite, kInfinite),
                  Op("Torch.log.0.forward", kClean, kNaN), Op("Tensor.sum.1.forward", kNaN, kNaN)};
  Rank(0, two);
  EXPECT_EQ(Named(), (Names{"0: Torch.exp.0.forward", "0: Torch.log.0.forward"}));
  Names absorbed = two;
  absorbed.insert(absorbed.begin() + 1, Op("Torch.sigmoid.0.forward", kInfinite, kClean));
  Rank(0, absorbed);
  EXPECT_EQ(Named(), Names{"0: Torch.exp.0.forward"});
}

TEST_F(OverflowTest, WhatIsBadFromEndToEndIsNoSignOfItsSource) {
  std::string all = kInfinite;
  all.insert(all.rfind('}'), R"(, "inf_count": 6)");
  Rank(0, {Op("Torch.exp.0.forward", kClean, all), Op("Tensor.sum.0.forward", all, kInfinite),
           Op("Torch.log.0.forward", kClean, all), Op("Tensor.sum.1.forward", all, kInfinite)});
  EXPECT_EQ(Named(), (Names{"0: Torch.exp.0.forward", "0: Torch.log.0.forward"}));
}

TEST_F(OverflowTest, WhatACommunicationFillsIsNoInput) {
  for (const std::string api : {"all_gather_single", "reduce_scatter_single", "all_gather_coalesced"}) {
    const std::string keyword = api == "all_gather_coalesced" ? "output_tensor_lists"
                                : api == "all_gather_single"  ? "output_tensor"
                                                              : "output";
    const std::string name = "Distributed." + api + ".0.forward";
    for (const std::string& call : {Op(name, kNaN + ", " + kClean, kClean),
                                    Op(name, "", kClean, "\"" + keyword + "\": " + kNaN + ", \"input\": " + kClean)}) {
      Rank(0, {Op("Torch.empty.0.forward", "", kNaN), call});
      EXPECT_EQ(Named(), Names{}) << call;
    }
  }
}

TEST_F(OverflowTest, ParameterOfTheModuleAroundTheFunction) {
  const std::string module = R"("Module.fc.Linear.forward.0": {"input_args": [)" + kClean +
                             R"(], "input_kwargs": {}, "parameters": {"weight": )" + kInfinite + R"(}, "output": [)" +
                             kNaN + "]}";
  Rank(0, {Op("Functional.linear.0.forward", kClean + ", " + kInfinite, kNaN), module});
  EXPECT_EQ(Named(), Names{"0: Module.fc.Linear.forward.0"});
  EXPECT_EQ(KindOfFirst(), Kind::kParameter);
  EXPECT_EQ(Find().first[0].item, ".parameters.weight");
  EXPECT_EQ(BadSinceText(Find().first[0].since, Language::kEnglish), "it was already bad when step0 began");
  EXPECT_EQ(BadSinceText(Find().first[0].since, Language::kChinese), "在 step0 开始之前就已异常");
}

TEST_F(OverflowTest, ABackwardOpBelongsToItsForwardOp) {
  Rank(0, {Op("Torch.log.0.forward", kClean, kMask), Op("Torch.where.0.forward", kMask, kClean),
           Backward("Torch.where.0.backward", kClean, kClean), Backward("Torch.log.0.backward", kClean, kNaN)});
  EXPECT_EQ(Named(), Names{"0: Torch.log.0.forward"});
  EXPECT_FALSE(Find().first[0].absorbed);
}

/// The buckets of relative positions take the logarithm of zero and make integers of it.
TEST_F(OverflowTest, WhatACastMakesIntegersOfIsAbsorbed) {
  const std::string log = Tensor("1.5", "-Infinity");
  const std::string scaled = Tensor("3.0", "-Infinity");
  const auto whole = [](const std::string& max, const std::string& min) {
    return R"({"type": "torch.Tensor", "dtype": "torch.int64", "shape": [2, 3], "Max": )" + max + R"(, "Min": )" + min +
           R"(, "Mean": 1.5, "Norm": 2.5, "requires_grad": false})";
  };
  const std::string cut = whole("9", "-9223372036854775808"), other = whole("17", "-9223372036854775800");
  const Names begin{Op("Torch.log.0.forward", kClean, log), Op("Tensor.__mul__.0.forward", log, scaled)};
  const Names end{Op("Tensor.__radd__.0.forward", cut, other),
                  Op("Torch.where.0.forward", other + ", " + whole("15", "0"), whole("15", "0"))};
  const Names cast{Op("Tensor.to.0.forward", scaled, cut)};
  for (const bool recorded : {false, true}) {
    Names ops = begin;
    if (recorded) ops.insert(ops.end(), cast.begin(), cast.end());
    ops.insert(ops.end(), end.begin(), end.end());
    Rank(0, ops);
    OverflowReport report = Find();
    ASSERT_EQ(report.first.size(), 1u);
    EXPECT_TRUE(report.first[0].unused);
    EXPECT_EQ(report.first[0].absorbers, 1u);
    EXPECT_EQ(report.first[0].absorbed_at[0].name, recorded ? "Tensor.to.0.forward" : "Tensor.__radd__.0.forward");
    // A second micro batch makes the same values.
    Names twice = ops;
    for (std::string op : ops) twice.push_back(op.replace(op.find(".0.forward"), 10, ".1.forward"));
    Rank(0, twice);
    EXPECT_TRUE(Find().first.at(0).unused);
    // Wrong values behind it are not its doing, wherever they begin.
    ops.push_back(Backward("Torch.sqrt.0.backward", kClean, kInfinite));
    ops.push_back(Backward("Tensor.sum.0.backward", kInfinite, kNaN));
    Rank(0, ops);
    report = Find();
    ASSERT_EQ(Named(), Names{"0: Torch.sqrt.0.backward"});
    EXPECT_EQ(report.first[0].carriers, 1u);
    ASSERT_EQ(report.absorbed.size(), 1u);
    EXPECT_EQ(report.absorbed[0].carriers, 1u);
  }
}

TEST_F(OverflowTest, AStepWhoseInfinityNothingUsesDoesNotEndTheSearch) {
  const Names healthy{
      Op("Torch.log.0.forward", kClean, kMask),
      Op("Tensor.__lt__.0.forward", kMask,
         R"({"type": "torch.Tensor", "dtype": "torch.bool", "shape": [2, 3], "Max": true, "Min": false})")};
  for (const int step : {1, 2}) {
    for (const int rank : {0, 1}) Rank(rank, healthy, step);
  }
  OverflowReport report = Find();
  EXPECT_EQ(report.step, "step1");
  EXPECT_EQ(report.steps, 2u);
  ASSERT_EQ(report.first.size(), 1u);
  EXPECT_TRUE(report.first[0].unused);
  Names bad = healthy;
  const std::string module = R"("Module.fc.Linear.forward.0": {"input_args": [)" + kClean +
                             R"(], "input_kwargs": {}, "parameters": {"weight": )" + kInfinite + R"(}, "output": [)" +
                             kNaN + "]}";
  bad.push_back(Op("Functional.linear.0.forward", kClean + ", " + kInfinite, kNaN));
  bad.push_back(module);
  Rank(1, bad, 3);
  report = Find();
  EXPECT_EQ(report.step, "step3");
  EXPECT_EQ(Named(), Names{"1: Module.fc.Linear.forward.0"});
}

/// One value that is compared decides what the program does; it is still there.
TEST_F(OverflowTest, AComparisonOfOneValueAbsorbsNothing) {
  const std::string loss = Tensor("Infinity", "Infinity", "");
  Rank(0, {Op("Torch.exp.0.forward", kClean, kInfinite), Op("Tensor.sum.0.forward", kInfinite, loss),
           Op("Tensor.__gt__.0.forward", loss,
              R"({"type": "torch.Tensor", "dtype": "torch.bool", "shape": [], "Max": true, "Min": true})")});
  ASSERT_EQ(Named(), Names{"0: Torch.exp.0.forward"});
  EXPECT_FALSE(Find().first[0].absorbed);
}

/// What wants no gradient has no part in a backward pass, although nobody was seen to read it.
TEST_F(OverflowTest, WhatWantsNoGradientDoesNotSpoilTheBackwardPass) {
  Rank(0, {Op("Torch.log.0.forward", kClean, kMask), Op("Torch.mul.0.forward", kMask, Tensor("0.5", "-Infinity")),
           Backward("Functional.linear.3.backward", kNaN, kNaN)});
  const OverflowReport report = Find();
  ASSERT_FALSE(report.first.empty());
  EXPECT_EQ(report.first[0].carriers, 1u);
  EXPECT_EQ(report.first[0].by_order, 0u);
}

TEST_F(OverflowTest, SentValuesAreFollowedToTheirSource) {
  const std::string wrong = Tensor("Infinity", "-3.0");
  Rank(0, {Op("Torch.exp.0.forward", kClean, wrong), Op("Distributed.send.0.forward", wrong + ", " + Int(1), wrong)});
  Rank(1, {Op("Distributed.recv.0.forward", "null, " + Int(0), wrong), Op("Torch.mul.0.forward", wrong, kNaN)});
  EXPECT_EQ(Named(), Names{"0: Torch.exp.0.forward"});
  const OverflowReport report = Find();
  ASSERT_EQ(report.first[0].reached.size(), 1u);
  EXPECT_EQ(report.first[0].reached[0].name, "Distributed.recv.0.forward");
  EXPECT_EQ(report.phase, OverflowReport::Phase::kBefore);
}

TEST_F(OverflowTest, ARankThatIsNotThere) {
  Rank(1, {Op("Distributed.recv.0.forward", "null, " + Int(0), kNaN), Op("Torch.mul.0.forward", kNaN, kNaN)});
  EXPECT_EQ(Named(), Names{"1: Distributed.recv.0.forward"});
  EXPECT_EQ(KindOfFirst(), Kind::kMissingRank);
}

TEST_F(OverflowTest, AllRanksOfAReductionThatOverflows) {
  const std::string large = Tensor("3e38", "3e38");
  for (const int rank : {0, 1, 2}) Rank(rank, {Op("Distributed.all_reduce.0.forward", large, kInfinite)});
  EXPECT_EQ(Named(), (Names{"0: Distributed.all_reduce.0.forward", "1: Distributed.all_reduce.0.forward",
                            "2: Distributed.all_reduce.0.forward"}));
  EXPECT_EQ(KindOfFirst(), Kind::kCommunication);
  const std::string nodes = Find().nodes;
  JsonDoc doc = Parse(nodes);
  EXPECT_EQ(doc.size(), 3u);
  EXPECT_EQ(doc["rank_1"][0]["op_name"].Text(), "Distributed.all_reduce.0.forward");
}

TEST_F(OverflowTest, IndependentSourcesAreAllNamedAndLaterOnesAreNot) {
  Rank(0, {Op("Torch.exp.0.forward", kClean, kInfinite), Op("Distributed.all_reduce.0.forward", kInfinite, kNaN),
           Op("Torch.sqrt.0.forward", kClean, kNaN)});
  Rank(1, {Op("Torch.div.0.forward", kClean, Tensor("9.0", "-Infinity")),
           Op("Distributed.all_reduce.0.forward", Tensor("9.0", "-Infinity"), kNaN)});
  Rank(2, {Op("Torch.mul.0.forward", kClean, kClean), Op("Distributed.all_reduce.0.forward", kClean, kNaN),
           Op("Torch.sqrt.0.forward", kClean, kNaN)});
  EXPECT_EQ(Named(), (Names{"0: Torch.exp.0.forward", "1: Torch.div.0.forward"}));
}

TEST_F(OverflowTest, TheFirstStepThatGoesWrong) {
  Rank(0, {Op("Torch.mul.0.forward", kClean, kClean)}, 1);
  Rank(0, {Op("Torch.exp.0.forward", kClean, kInfinite), Op("Torch.mul.0.forward", kInfinite, kInfinite)}, 2);
  Rank(0, {Op("Torch.mul.0.forward", kNaN, kNaN)}, 10);
  const OverflowReport report = Find();
  EXPECT_EQ(report.step, "step2");
  EXPECT_EQ(report.steps, 2u);
  EXPECT_EQ(Named(), Names{"0: Torch.exp.0.forward"});
}

TEST_F(OverflowTest, SameReportForAnyNumberOfThreads) {
  Names ops;
  for (int i = 0; i < 3000; ++i) ops.push_back(Op("Torch.mul." + std::to_string(i) + ".forward", kClean, kClean));
  ops[2000] = Op("Torch.exp.0.forward", kClean, kInfinite);
  for (int i = 2001; i < 3000; ++i)
    ops[static_cast<size_t>(i)] = Op("Torch.add." + std::to_string(i) + ".forward", kInfinite, kInfinite);
  Rank(0, ops);
  const int before = ThreadCount();
  std::string first;
  for (const int threads : {1, 2, 7}) {
    SetThreadCount(threads);
    const OverflowReport report = Find();
    const std::string text = OverflowJson(report, "", {}, "x") + OverflowText(report, "", "x").English() + report.nodes;
    if (first.empty()) first = text;
    EXPECT_EQ(text, first);
  }
  SetThreadCount(before);
  EXPECT_TRUE(first.find("Torch.exp.0.forward") != std::string::npos);
}

TEST_F(OverflowTest, ReplicasThatFailAlikeAreOneFinding) {
  for (const int rank : {0, 1, 2}) Rank(rank, {Op("Torch.exp.0.forward", kClean, rank == 1 ? kClean : kInfinite)});
  EXPECT_EQ(Named(), (Names{"0: Torch.exp.0.forward", "2: Torch.exp.0.forward"}));
  EXPECT_EQ(Find().first.size(), 1u);
}

TEST_F(OverflowTest, CleanDumpsTellWhatIsNearOverflow) {
  const std::string near =
      R"({"type": "torch.Tensor", "dtype": "torch.float16", "shape": [2], "Max": 30000, "Min": 0, "overflow_margin": 2.18})";
  Rank(0, {Op("Torch.mul.0.forward", kClean, kClean), Op("Functional.linear.0.forward", kClean, near)});
  const OverflowReport report = Find();
  EXPECT_TRUE(report.first.empty());
  ASSERT_EQ(report.near.size(), 1u);
  EXPECT_EQ(report.near[0].op.name, "Functional.linear.0.forward");
  EXPECT_EQ(report.near[0].margin, 2.18);
  EXPECT_NE(OverflowText(report, "", "")
                .English()
                .find("Functional.linear.0.forward.output.0 on rank 0 is within a factor 2.18"),
            std::string::npos);
}

TEST_F(OverflowTest, ARankThatCannotBeReadIsLeftOut) {
  dir_.Write("step0/rank0/dump.json", "no dump");
  dir_.Dir("step0/rank2");
  Rank(1, {Op("Torch.exp.0.forward", kClean, kInfinite)});
  EXPECT_EQ(Named(), Names{"1: Torch.exp.0.forward"});
  const OverflowReport report = Find();
  ASSERT_EQ(report.warnings.size(), 4u) << "with those for construct.json and stack.json";
  EXPECT_EQ(report.warnings[0].English().substr(0, 18), "rank0 is left out:");
  EXPECT_EQ(report.warnings[1].English().substr(0, 18), "rank2 is left out:");
}

TEST_F(OverflowTest, DumpsThatCannotBeJudged) {
  dir_.Write("step0/rank0/dump.json", R"({"task": "structure", "data": {}})");
  EXPECT_EQ(FindOverflow(dir_.path()).status().code(), Code::kBadInput);
  dir_.Write(
      "step0/rank0/dump.json",
      R"({"task": "statistics", "data": {"Torch.add.0.forward": {"output": [{"type": "torch.Tensor", "md5": "0x1"}]}}})");
  EXPECT_EQ(FindOverflow(dir_.path()).status().code(), Code::kBadInput);
  EXPECT_EQ(FindOverflow(dir_.path() + "/none").status().code(), Code::kBadInput);
}

TEST_F(OverflowTest, NodesAreWrittenAsTheyAre) {
  Rank(0, {Op("Torch.exp.0.forward", kClean, kInfinite)});
  dir_.Write("step0/rank0/construct.json",
             R"({"Torch.exp.0.forward": "Module.a.A.forward.0", "Module.a.A.forward.0": "Torch.exp.0.forward"})");
  dir_.Write("step0/rank0/stack.json",
             R"({"0": [["Torch.exp.0.forward"], ["File /home/u/a.py, line 3, in f, \n x"]]})");
  const OverflowReport report = Find();
  EXPECT_TRUE(report.warnings.empty());
  JsonDoc doc = Parse(report.nodes);
  const JsonValue& node = doc["rank_0"][0];
  ASSERT_EQ(node["construct_info"].size(), 2u) << "a cycle ends";
  EXPECT_EQ(node["construct_info"][0].Text(), "Module.a.A.forward.0");
  EXPECT_EQ(node["stack_info"].size(), 1u);
  EXPECT_EQ(report.first[0].ops[0].frame, "a.py:3");
  std::string path;
  ASSERT_TRUE(WriteOverflowNodes(dir_.path() + "/out", report.nodes, &path).ok());
  EXPECT_EQ(ReadAll(path), report.nodes);
}

}  // namespace
}  // namespace msprobe
