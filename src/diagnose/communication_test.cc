#include "diagnose/communication.h"

#include <gtest/gtest.h>

#include <memory>

#include "dump/test_files.h"
#include "ops/collective.h"

namespace msprobe {
namespace {

using OpNames = std::vector<std::string>;

std::string CollectiveOp(const std::string& name, const std::string& args, const std::string& kwargs) {
  return "\"" + name + R"(": {"input_args": [)" + args + R"(], "input_kwargs": {)" + kwargs + R"(}, "output": []})";
}
std::string Group(const std::string& ranks) {
  return R"({"type": "torch.ProcessGroup", "group_ranks": [)" + ranks + R"(], "group_id": "x"})";
}
std::string IntArgument(int v) { return R"({"type": "int", "value": )" + std::to_string(v) + "}"; }
const std::string kPlainTensor = R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2]})";
std::string P2p(const std::string& op, int peer) {
  return R"({"class_type": "torch.distributed.P2POp", "tensor": )" + kPlainTensor + R"(, "op": ")" + op +
         R"(", "peer": )" + std::to_string(peer) + R"(, "tag": 0, "group_id": "x"})";
}
std::string Compute(const std::string& name) { return CollectiveOp(name, kPlainTensor, ""); }

class CommunicationTest : public testing::Test {
 protected:
  void Rank(int rank, const OpNames& ops) {
    std::string data;
    for (const std::string& op : ops) data += (data.empty() ? "" : ", ") + op;
    const std::string path =
        dir_.Write("rank" + std::to_string(rank) + "/dump.json",
                   R"({"task": "statistics", "level": "L1", "framework": "pytorch", "data": {)" + data + "}}");
    auto dump = DumpFile::Open(path);
    ASSERT_TRUE(dump.ok()) << dump.status().message();
    files_.push_back(std::make_unique<DumpFile>(std::move(*dump)));
    ranks_.push_back({rank, files_.back().get()});
  }
  CommGraph Read() {
    auto graph = ReadCommunication(ranks_);
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return *graph;
  }
  TempDir dir_;
  std::vector<std::unique_ptr<DumpFile>> files_;
  std::vector<RankDump> ranks_;
};

TEST_F(CommunicationTest, NamesOfCalls) {
  EXPECT_EQ(CommApi("Distributed.all_reduce.3.forward"), "all_reduce");
  EXPECT_EQ(CommApi("MintDistributed.send.0.forward"), "send");
  EXPECT_EQ(CommApi("communication.comm_func.all_gather_into_tensor.0.forward"), "all_gather_into_tensor");
  EXPECT_EQ(CommApi("Distributed.barrier.0.forward"), "");
  EXPECT_EQ(CommApi("Distributed.monitored_barrier.0.forward"), "");
  EXPECT_EQ(CommApi("Distributed.all_reduce.3.backward"), "");
  EXPECT_EQ(CommApi("Torch.scatter.0.forward"), "");
  EXPECT_EQ(CommApi("Primitive.sum.AllReduce.2.forward"), "all_reduce");
  EXPECT_EQ(CommApi("Primitive.sum.AllReduce.2.backward"), "");
  EXPECT_EQ(CommFunction("Primitive.sum.AllReduce.2.backward"), "all_reduce");
  EXPECT_EQ(CommFunction("Primitive.wait.Barrier.0.forward"), "barrier");
  EXPECT_FALSE(IsCommunication("Primitive.gather.Gather.0.forward"));
}

TEST_F(CommunicationTest, ACopyOfARankHasItsOwnPartInCallsWithARoot) {
  const OpNames ops{CollectiveOp("Distributed.all_reduce.0.forward", kPlainTensor + ", " + Group("0, 1, 2"), ""),
                    CollectiveOp("Distributed.broadcast.0.forward", kPlainTensor,
                                 R"("src": )" + IntArgument(1) + R"(, "group": )" + Group("0, 1, 2")),
                    CollectiveOp("Distributed.reduce.0.forward", kPlainTensor,
                                 R"("dst": )" + IntArgument(1) + R"(, "group": )" + Group("0, 1, 2"))};
  for (const int rank : {0, 1, 2}) Rank(rank, ops);
  for (const RankDump& from : ranks_) {
    const auto calls = ReadCalls(from.rank, *from.dump);
    ASSERT_TRUE(calls.ok());
    for (const RankDump& to : ranks_) {
      const auto expected = ReadCalls(to.rank, *to.dump);
      const RankCalls copy = SameCallsOf(*calls, to.rank);
      EXPECT_EQ(copy.rank.rank, to.rank);
      ASSERT_EQ(copy.transfers.size(), 3u);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(copy.transfers[i][0].gives, expected->transfers[i][0].gives) << from.rank << to.rank << i;
        EXPECT_EQ(copy.transfers[i][0].takes, expected->transfers[i][0].takes) << from.rank << to.rank << i;
      }
    }
  }
}

TEST_F(CommunicationTest, ObjectsOfMindSporeSayTheirGroupAndRanks) {
  const auto primitive = [](const std::string& name, const std::string& attributes) {
    return "\"Primitive." + name + R"(.0.forward": {"input_args": [)" + kPlainTensor +
           R"(], "input_kwargs": {}, "attributes": {)" + attributes + R"(}, "output": [)" + kPlainTensor + "]}";
  };
  const auto group = [](const std::string& name) { return R"("group": {"type": "str", "value": ")" + name + "\"}"; };
  const std::string to = R"("sr_tag": )" + IntArgument(3) + R"(, "dest_rank": )" + IntArgument(2);
  Rank(0, {primitive("sum.AllReduce", group("tp-0")), primitive("out.Send", to + ", " + group("hccl_world_group"))});
  Rank(1, {primitive("sum.AllReduce", group("tp-0"))});
  Rank(2, {primitive("sum.AllReduce", group("tp-1")),
           primitive("in.Receive", R"("sr_tag": )" + IntArgument(3) + R"(, "src_rank": )" + IntArgument(0))});
  Rank(3, {primitive("sum.AllReduce", group("tp-1"))});
  const CommGraph g = Read();
  ASSERT_EQ(g.ranks.size(), 4u);
  ASSERT_EQ(g.TakersOf(0, 0).size(), 1u) << "the other rank of its group";
  EXPECT_EQ(g.TakersOf(0, 0)[0].rank, 1u);
  ASSERT_EQ(g.TakersOf(0, 1).size(), 1u);
  EXPECT_EQ(g.TakersOf(0, 1)[0].rank, 2u);
  ASSERT_EQ(g.GiversOf(2, 1).size(), 1u);
  EXPECT_EQ(g.GiversOf(2, 1)[0].call, 1u);
}

TEST_F(CommunicationTest, PipelineAtPositionsAndByName) {
  Rank(1, {CollectiveOp("Distributed.recv.0.forward", "null, " + IntArgument(0), ""), Compute("Torch.a.0.forward"),
           CollectiveOp("Distributed.isend.0.forward", kPlainTensor, R"("dst": )" + IntArgument(0))});
  Rank(0, {Compute("Torch.a.0.forward"),
           CollectiveOp("Distributed.send.0.forward", kPlainTensor, R"("dst": )" + IntArgument(1)),
           Compute("Torch.b.0.forward"),
           CollectiveOp("Distributed.irecv.0.forward", "null", R"("src": )" + IntArgument(1))});
  const CommGraph g = Read();
  ASSERT_EQ(g.ranks.size(), 2u);
  EXPECT_EQ(g.ranks[0].rank, 0);
  ASSERT_EQ(g.events.size(), 2u);
  ASSERT_EQ(g.TakersOf(0, 0).size(), 1u);
  EXPECT_EQ(g.TakersOf(0, 0)[0].rank, 1u);
  EXPECT_EQ(g.TakersOf(0, 0)[0].call, 0u);
  EXPECT_TRUE(g.GiversOf(0, 0).empty());
  ASSERT_EQ(g.GiversOf(0, 1).size(), 1u);
  EXPECT_EQ(g.GiversOf(0, 1)[0].call, 1u);
  // send 1, recv 2, the other's isend 3, irecv 4
  EXPECT_EQ(g.ranks[0].calls[0].layer, 1u);
  EXPECT_EQ(g.ranks[1].calls[0].layer, 2u);
  EXPECT_EQ(g.ranks[1].calls[1].layer, 3u);
  EXPECT_EQ(g.ranks[0].calls[1].layer, 4u);
  EXPECT_EQ(g.ReachedFrom(0, 0), (std::vector<size_t>{1, 0}));
  EXPECT_EQ(g.ReachedFrom(0, 2), (std::vector<size_t>{3, 3}));  // behind the send
  EXPECT_EQ(g.ReachedFrom(1, 1), (std::vector<size_t>{3, 2}));
  EXPECT_LT(g.TimeOf(0, 0), g.TimeOf(0, 1));
  EXPECT_LT(g.TimeOf(0, 1), g.TimeOf(1, 1));
}

TEST_F(CommunicationTest, GroupsOfTheirOwnAndTheDefaultGroup) {
  const std::string a = R"("group": )" + Group("0, 1"), b = R"("group": )" + Group("2, 3");
  for (int r = 0; r < 4; ++r) {
    Rank(r,
         {CollectiveOp("Distributed.all_reduce.0.forward", kPlainTensor, r < 2 ? a : b), Compute("Torch.a.0.forward"),
          CollectiveOp("Distributed.all_reduce.1.forward", kPlainTensor, ""),
          CollectiveOp("Distributed.all_reduce.2.forward", kPlainTensor + ", " + Group(r < 2 ? "0, 1" : "2, 3"), "")});
  }
  const CommGraph g = Read();
  EXPECT_EQ(g.events.size(), 5u);
  ASSERT_EQ(g.GiversOf(0, 0).size(), 1u);
  EXPECT_EQ(g.GiversOf(3, 2)[0].rank, 2u);
  EXPECT_EQ(g.TakersOf(0, 1).size(), 3u);
  for (uint32_t r = 0; r < 4; ++r) {
    for (uint32_t c = 0; c < 3; ++c) EXPECT_EQ(g.ranks[r].calls[c].layer, c + 1);
  }
  EXPECT_EQ(g.ReachedFrom(0, 0), (std::vector<size_t>{1, 0, 2, 2}));
  EXPECT_EQ(g.ReachedFrom(0, 1), (std::vector<size_t>{2, 2, 2, 2}));
  EXPECT_EQ(g.ReachedFrom(0, 3), (std::vector<size_t>{4, 3, 4, 4}));
}

TEST_F(CommunicationTest, RootsGiveOrTake) {
  for (int r = 0; r < 3; ++r) {
    Rank(r, {CollectiveOp("Distributed.broadcast.0.forward", kPlainTensor + ", " + IntArgument(1), ""),
             CollectiveOp("Distributed.reduce.0.forward", kPlainTensor,
                          R"("group_dst": )" + IntArgument(0) + R"(, "group": )" + Group("2, 0, 1"))});
  }
  const CommGraph g = Read();
  EXPECT_EQ(g.TakersOf(1, 0).size(), 2u);
  EXPECT_TRUE(g.TakersOf(0, 0).empty());
  EXPECT_EQ(g.GiversOf(2, 1).size(), 2u);  // rank 2 is the first of its group
  EXPECT_TRUE(g.GiversOf(0, 1).empty());
  EXPECT_EQ(g.ReachedFrom(0, 0), (std::vector<size_t>{1, 2, 1}));
}

TEST_F(CommunicationTest, BatchesTalkToSeveral) {
  Rank(0, {CollectiveOp("Distributed.batch_isend_irecv.0.forward", "[" + P2p("isend", 1) + "]", "")});
  Rank(1, {CollectiveOp("Distributed.batch_isend_irecv.0.forward", "",
                        R"("p2p_op_list": [)" + P2p("irecv", 0) + ", " + P2p("isend", 2) + "]")});
  Rank(2, {CollectiveOp("Distributed.batch_isend_irecv.0.forward", "[" + P2p("irecv", 1) + "]", "")});
  const CommGraph g = Read();
  EXPECT_EQ(g.events.size(), 2u);
  EXPECT_EQ(g.GiversOf(1, 0)[0].rank, 0u);
  EXPECT_EQ(g.TakersOf(1, 0)[0].rank, 2u);
  EXPECT_EQ(g.ReachedFrom(0, 0), (std::vector<size_t>{1, 0, 0}));
}

TEST_F(CommunicationTest, ARingIsOneMoment) {
  for (int r = 0; r < 3; ++r) {
    Rank(r, {CollectiveOp("Distributed.batch_isend_irecv.0.forward",
                          "[" + P2p("isend", (r + 1) % 3) + ", " + P2p("irecv", (r + 2) % 3) + "]", "")});
  }
  const CommGraph g = Read();
  for (const CommRank& r : g.ranks) EXPECT_EQ(r.calls[0].layer, 1u);
}

TEST_F(CommunicationTest, WhoIsMissingIsSaid) {
  Rank(0, {CollectiveOp("Distributed.all_reduce.0.forward", kPlainTensor, ""),
           CollectiveOp("Distributed.send.0.forward", kPlainTensor + ", " + IntArgument(7), "")});
  Rank(3, {Compute("Torch.a.0.forward")});
  const CommGraph g = Read();
  ASSERT_EQ(g.events.size(), 2u);
  EXPECT_EQ(g.events[0].missing, std::vector<int>{3});
  EXPECT_EQ(g.events[1].missing, std::vector<int>{7});
  EXPECT_EQ(g.IndexOf(3), 1u);
  EXPECT_EQ(g.IndexOf(2), CommGraph::kNoRank);
}

TEST_F(CommunicationTest, HostileRanksAreNoRanks) {
  Rank(
      0,
      {CollectiveOp("Distributed.send.0.forward", kPlainTensor, R"("dst": {"type": "int", "value": -5})"),
       CollectiveOp("Distributed.send.1.forward", kPlainTensor,
                    R"("dst": {"type": "int", "value": 99999999999999999999})"),
       CollectiveOp("Distributed.all_reduce.0.forward", "1, \"x\", {}", R"("group": {"group_ranks": [-1, "a", null]})"),
       CollectiveOp("Distributed.batch_isend_irecv.0.forward", R"([[{"op": "isend"}, {"op": 3, "peer": 1}]])", "")});
  const CommGraph g = Read();
  EXPECT_EQ(g.ranks[0].calls.size(), 4u);
  EXPECT_EQ(g.events.size(), 1u);  // the all_reduce, of this rank alone
}

}  // namespace
}  // namespace msprobe
