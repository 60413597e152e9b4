#include "diagnose/divergence.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compare/pair/compare.h"
#include "dump/test_files.h"

namespace msprobe {
namespace {

std::string TensorOf(double v) {
  const std::string s = std::to_string(v);
  return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": )" + s + R"(, "Min": )" + s +
         R"(, "Mean": )" + s + R"(, "Norm": )" + s + "}";
}
std::string Entry(const std::string& name, const std::string& inputs, double out, const std::string& kwargs = "") {
  return "\"" + name + R"(": {"input_args": [)" + inputs + R"(], "input_kwargs": {)" + kwargs + R"(}, "output": [)" +
         TensorOf(out) + "]}";
}
std::string OpOfValues(const std::string& name, double in, double out) { return Entry(name, TensorOf(in), out); }
std::string Peer(const std::string& key, int rank) {
  return "\"" + key + R"(": {"type": "int", "value": )" + std::to_string(rank) + "}";
}
const std::string kReduce = "Distributed.all_reduce.0.forward";

class NoFormat : public RowFormat {
 public:
  void AppendOp(const OpDiff&, int, OpBlock*) const override {}
};

class DivergenceTest : public testing::Test {
 protected:
  using Kind = FirstDifference::Kind;

  void Rank(int rank, const std::vector<std::string>& target, const std::vector<std::string>& golden) {
    FilePair files;
    files.rank = rank;
    files.step = 4;
    files.target = Write("t", rank, target);
    files.golden = Write("g", rank, golden);
    files_.push_back(files);
  }
  std::string Write(const std::string& side, int rank, const std::vector<std::string>& ops) {
    std::string data;
    for (const std::string& op : ops) data += (data.empty() ? "" : ", ") + op;
    return dir_.Write(side + "/rank" + std::to_string(rank) + "/dump.json",
                      R"({"task": "statistics", "level": "mix", "framework": "pytorch", "data": {)" + data + "}}");
  }
  Divergence Find() {
    std::vector<RankFindings> ranks;
    for (const FilePair& files : files_) {
      auto pair = OpenDumpPair(files, Mapping());
      EXPECT_TRUE(pair.ok()) << pair.status().message();
      const auto outcome = ComparePair(
          *pair, NoFormat(), [](OpBlock&&) { return OkStatus(); }, nullptr);
      auto findings = FindOnRank(*pair, files, outcome->distances);
      EXPECT_TRUE(findings.ok()) << findings.status().message();
      ranks.push_back(std::move(*findings));
    }
    auto found = FindDivergence(4, std::move(ranks));
    EXPECT_TRUE(found.ok());
    return *found;
  }
  TempDir dir_;
  std::vector<FilePair> files_;
};

TEST_F(DivergenceTest, NothingDiffers) {
  for (int r = 0; r < 2; ++r) Rank(r, {OpOfValues("F.a.0.forward", 1, 2)}, {OpOfValues("F.a.0.forward", 1, 2)});
  const Divergence d = Find();
  EXPECT_FALSE(d.found);
}

TEST_F(DivergenceTest, ARankInheritsFromTheOneThatMadeIt) {
  const std::vector<std::string> golden{OpOfValues("F.a.0.forward", 1, 2), OpOfValues(kReduce, 2, 4),
                                        OpOfValues("F.b.0.forward", 4, 5)};
  Rank(0, {OpOfValues("F.a.0.forward", 1, 2), OpOfValues(kReduce, 2, 4.5), OpOfValues("F.b.0.forward", 4.5, 6)},
       golden);
  Rank(1, {OpOfValues("F.a.0.forward", 1, 2.5), OpOfValues(kReduce, 2.5, 4.5), OpOfValues("F.b.0.forward", 4.5, 6)},
       golden);
  for (int order = 0; order < 2; ++order) {
    const Divergence d = Find();
    ASSERT_TRUE(d.found);
    EXPECT_EQ(d.step, 4);
    EXPECT_EQ(d.creator.rank, 1);
    EXPECT_EQ(d.creator.ranks, std::vector<int>{1});
    EXPECT_EQ(d.creator.difference.name, "F.a.0.forward");
    EXPECT_TRUE(d.others.empty());
    ASSERT_EQ(d.handovers.size(), 1u);
    EXPECT_EQ(d.handovers[0].rank, 0);
    EXPECT_EQ(d.handovers[0].from, std::vector<int>{1});
    EXPECT_EQ(d.handovers[0].op, kReduce);
    ASSERT_EQ(d.carriers.size(), 1u);  // to rank 0 the call seems to begin it
    EXPECT_EQ(d.carriers[0].target_dump, files_[order == 0 ? 0 : 1].target);
    EXPECT_EQ(d.carriers[0].op.op, 1u);
    EXPECT_EQ(d.infected_ops, 4u);
    std::reverse(files_.begin(), files_.end());
  }
}

TEST_F(DivergenceTest, ACollectiveWhoseInputsAgreeMakesItItself) {
  for (int r = 0; r < 2; ++r) {
    Rank(r, {OpOfValues("F.a.0.forward", 1, 2), OpOfValues(kReduce, 2, 8), OpOfValues("F.b.0.forward", 8, 9)},
         {OpOfValues("F.a.0.forward", 1, 2), OpOfValues(kReduce, 2, 4), OpOfValues("F.b.0.forward", 4, 5)});
  }
  const Divergence d = Find();
  EXPECT_TRUE(d.creator.collective);
  EXPECT_EQ(d.creator.ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(d.creator.difference.name, kReduce);
  ASSERT_GE(d.evidence.size(), 2u);
  EXPECT_EQ(d.evidence[0], "what ranks 0, 1 put into the call agrees with the golden run");
  EXPECT_EQ(d.evidence[1], "what comes out differs on ranks 0, 1");
}

TEST_F(DivergenceTest, WhatNobodyWroteArrivesAndNobodyReadsIt) {
  const auto padded = [](double in, double out) {
    std::string input = TensorOf(in);
    input.insert(input.rfind('}'), R"(, "partly_unwritten": true)");
    return Entry(kReduce, input, out);
  };
  for (const bool read : {false, true}) {
    files_.clear();
    std::vector<std::string> target{OpOfValues(kReduce, 2, 8)}, golden{OpOfValues(kReduce, 2, 4)};
    if (read) target.push_back(OpOfValues("F.b.0.forward", 8, 9)), golden.push_back(OpOfValues("F.b.0.forward", 4, 5));
    Rank(0, {padded(2, 8)}, {padded(3, 4)});
    Rank(1, target, golden);
    const Divergence d = Find();
    EXPECT_EQ(d.found, read);
    EXPECT_EQ(d.unread.size(), read ? 0u : 1u);
  }
}

TEST_F(DivergenceTest, PipelinesAreFollowedByWhoWaitsForWhom) {
  // Rank 0's fault comes after rank 1's in time, though its dump is shorter: it needs what rank 1 sent.
  const std::string send = "Distributed.send.0.forward", recv = "Distributed.recv.0.forward";
  const std::vector<std::string> r1{OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.b.0.forward", 2, 3),
                                    OpOfValues("F.c.0.forward", 3, 4)};
  std::vector<std::string> t1 = r1, g1 = r1;
  t1.push_back(OpOfValues("F.d.0.forward", 4, 6));
  t1.push_back(Entry(send, TensorOf(6), 6, Peer("dst", 0)));
  g1.push_back(OpOfValues("F.d.0.forward", 4, 5));
  g1.push_back(Entry(send, TensorOf(5), 5, Peer("dst", 0)));
  Rank(1, t1, g1);
  Rank(0, {Entry(recv, "null", 6, Peer("src", 1)), OpOfValues("F.e.0.forward", 6, 9)},
       {Entry(recv, "null", 5, Peer("src", 1)), OpOfValues("F.e.0.forward", 5, 7)});
  const Divergence d = Find();
  EXPECT_EQ(d.creator.rank, 1);
  EXPECT_EQ(d.creator.difference.name, "F.d.0.forward");
  ASSERT_EQ(d.handovers.size(), 1u);
  EXPECT_EQ(d.handovers[0].op, recv);
}

/// A call of a module by tensors of more than one value.
std::string ModuleOf(const std::string& name, double in, double out) {
  const auto tensor = [](double v) {
    return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 2], "Max": )" + std::to_string(v) +
           R"(, "Min": 0, "Mean": 0.1, "Norm": )" + std::to_string(2 * v) + "}";
  };
  return "\"" + name + R"(": {"input_args": [)" + tensor(in) + R"(], "input_kwargs": {}, "output": [)" + tensor(out) +
         "]}";
}

TEST_F(DivergenceTest, WhatARankReceivedIsNoOriginWhereOnlyModulesWereRecorded) {
  const auto first = [](double v) {
    return std::vector<std::string>{ModuleOf("Module.stem.Linear.forward.0", 1, 2),
                                    ModuleOf("Module.layers.0.norm.Norm.forward.0", 2 * v, 3 * v),
                                    ModuleOf("Module.layers.0.Layer.forward.0", 1, 5 * v)};
  };
  const auto second = [](double v) {
    return std::vector<std::string>{ModuleOf("Module.layers.1.norm.Norm.forward.0", 5 * v, 6 * v),
                                    ModuleOf("Module.layers.1.Layer.forward.0", 5 * v, 7 * v)};
  };
  // The stage that comes later has the lower number.
  Rank(1, first(1.5), first(1));
  Rank(0, second(1.5), second(1));
  const Divergence d = Find();
  EXPECT_EQ(d.creator.ranks, std::vector<int>{1});
  EXPECT_EQ(d.creator.difference.name, "Module.layers.0.norm.Norm.forward.0");
  EXPECT_TRUE(d.others.empty());
  ASSERT_EQ(d.handovers.size(), 1u);
  EXPECT_EQ(d.handovers[0].from, std::vector<int>{1});
  EXPECT_EQ(d.handovers[0].op, "Module.layers.1.norm.Norm.forward.0");
  EXPECT_EQ(d.carriers.size(), 1u);
}

TEST_F(DivergenceTest, CopiesOfARankDidNotReceiveFromEachOther) {
  const auto run = [](double v) {
    return std::vector<std::string>{ModuleOf("Module.stem.Linear.forward.0", 1, 2),
                                    ModuleOf("Module.layers.0.same.Identity.forward.0", 2 * v, 2 * v),
                                    ModuleOf("Module.layers.0.Layer.forward.0", 2 * v, 5 * v)};
  };
  for (const int rank : {0, 1}) Rank(rank, run(1.5), run(1));
  const Divergence d = Find();
  EXPECT_EQ(d.creator.ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(d.creator.difference.name, "Module.layers.0.same.Identity.forward.0");
}

TEST_F(DivergenceTest, TheSameFaultOnAllRanksIsOne) {
  for (int r = 0; r < 3; ++r)
    Rank(r, {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.b.0.forward", 2, 9)},
         {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.b.0.forward", 2, 3)});
  const Divergence d = Find();
  EXPECT_EQ(d.creator.ranks, (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(d.handovers.empty());
  EXPECT_EQ(d.creator.difference.name, "F.b.0.forward");
}

TEST_F(DivergenceTest, ADumpOfModulesLeadsWithTheRankWhoseParameterDiffers) {
  // Both ranks add up what they make of their part of the weight, by a call that only the level with functions records.
  const std::string name = "Module.fc.RowParallelLinear.forward.0";
  const auto call = [&](double weight, double out) {
    const std::string op = OpOfValues(name, 1, out);
    return op.substr(0, op.size() - 1) + R"(, "parameters": {"weight": )" + TensorOf(weight) + "}}";
  };
  Rank(0, {call(3, 4.5)}, {call(3, 4)});
  Rank(1, {call(5.5, 4.5)}, {call(5, 4)});
  const Divergence d = Find();
  ASSERT_TRUE(d.found);
  EXPECT_EQ(d.creator.ranks, (std::vector<int>{1}));
  EXPECT_EQ(d.creator.difference.kind, Kind::kParameter);
  EXPECT_TRUE(d.others.empty());
}

TEST_F(DivergenceTest, IndependentFaultsAreToldApart) {
  Rank(0, {OpOfValues("F.a.0.forward", 1, 7), OpOfValues("F.b.0.forward", 7, 3)},
       {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.b.0.forward", 2, 3)});
  Rank(1, {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.b.0.forward", 2, 9)},
       {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.b.0.forward", 2, 3)});
  const Divergence d = Find();
  EXPECT_EQ(d.creator.rank, 0);
  ASSERT_EQ(d.others.size(), 1u);
  EXPECT_EQ(d.others[0].rank, 1);
  EXPECT_EQ(d.others[0].difference.name, "F.b.0.forward");
}

TEST_F(DivergenceTest, WhatBeginsLaterIsToldOfAllRanks) {
  const std::string send = "Distributed.send.0.forward", recv = "Distributed.recv.0.forward";
  const auto extra = [](bool more, std::vector<std::string> ops) {
    if (more) ops.push_back(OpOfValues("Tensor.exp.0.forward", 7, 8));
    return ops;
  };
  Rank(1, extra(true, {OpOfValues("F.a.0.forward", 1, 3), Entry(send, TensorOf(3), 3, Peer("dst", 0))}),
       extra(false, {OpOfValues("F.a.0.forward", 1, 2), Entry(send, TensorOf(2), 2, Peer("dst", 0))}));
  Rank(0, extra(true, {Entry(recv, "null", 3, Peer("src", 1)), OpOfValues("F.e.0.forward", 3, 9)}),
       extra(false, {Entry(recv, "null", 2, Peer("src", 1)), OpOfValues("F.e.0.forward", 2, 7)}));
  const Divergence d = Find();
  EXPECT_EQ(d.creator.rank, 1);
  ASSERT_EQ(d.others.size(), 1u);
  EXPECT_EQ(d.others[0].difference.name, "Tensor.exp.0.forward");
  EXPECT_EQ(d.others[0].ranks, (std::vector<int>{1, 0}));
}

TEST_F(DivergenceTest, MemoryThatACallWillFillIsNoDifference) {
  // Before a broadcast every rank but the source holds what it likes, and gather_list is not written yet.
  const std::string broadcast = "Distributed.broadcast.0.forward", gather = "Distributed.gather.0.forward";
  const auto ops = [&](double garbage) {
    return std::vector<std::string>{
        Entry(broadcast, TensorOf(garbage), 3, Peer("src", 0)),
        Entry(gather, TensorOf(1), 3, "\"gather_list\": [" + TensorOf(garbage) + "], " + Peer("dst", 1))};
  };
  Rank(1, ops(17), ops(99));
  EXPECT_FALSE(Find().found);
}

TEST_F(DivergenceTest, APartnerWithoutADumpIsNamed) {
  Rank(0, {Entry("Distributed.recv.0.forward", "null", 6, Peer("src", 3)), OpOfValues("F.e.0.forward", 6, 9)},
       {Entry("Distributed.recv.0.forward", "null", 5, Peer("src", 3)), OpOfValues("F.e.0.forward", 5, 7)});
  const Divergence d = Find();
  ASSERT_TRUE(d.found);
  ASSERT_FALSE(d.evidence.empty());
  EXPECT_EQ(d.evidence[0], "no dump of rank 3, which may have given something else");
}

TEST(ModulePathTest, LeavesKindClassAndCallOut) {
  EXPECT_EQ(ModulePath("Module.layers.1.mlp.Linear.forward.0"), "layers.1.mlp");
  EXPECT_EQ(ModulePath("Module.fc.Linear.backward.3"), "fc");
  EXPECT_EQ(ModulePath("Cell.a.b.Dense.forward.0"), "a.b");
}

}  // namespace
}  // namespace msprobe
