#include "graph/comm/links.h"

#include <gtest/gtest.h>

#include <map>

#include "graph/comm/comm_findings.h"
#include "json/parser.h"

namespace msprobe {
namespace {

std::string Tensor(const std::string& shape = "[2]", const std::string& dtype = "torch.float32") {
  return R"({"type": "torch.Tensor", "dtype": ")" + dtype + R"(", "shape": )" + shape + "}";
}
std::string Int(int v) { return R"({"type": "int", "value": )" + std::to_string(v) + "}"; }
std::string Group(const std::string& ranks) {
  return R"({"type": "torch.ProcessGroup", "group_ranks": [)" + ranks + R"(], "group_id": "g"})";
}
std::string P2p(const std::string& op, int peer, const std::string& shape = "[2]") {
  return R"({"class_type": "torch.distributed.P2POp", "tensor": )" + Tensor(shape) + R"(, "op": ")" + op +
         R"(", "peer": )" + std::to_string(peer) + R"(, "tag": 0, "group_id": "x"})";
}

/// Calls of a step, rank by rank; each gets a row id of its own, counted from 1.
class LinksTest : public testing::Test {
 protected:
  void Call(int rank, const std::string& node, const std::string& args, const std::string& kwargs = "",
            const std::string& output = "") {
    JsonDoc doc;
    ASSERT_TRUE(ParseJson(R"({"input_args": [)" + args + R"(], "input_kwargs": {)" + kwargs + R"(}, "output": [)" +
                              output + "]}",
                          "test", &doc)
                    .ok());
    while (ranks_.size() <= static_cast<size_t>(rank)) ranks_.push_back({static_cast<int>(ranks_.size()), false, {}});
    NodeCall call = ReadNodeCall(node, doc, rank);
    call.line = static_cast<uint32_t>(++rows_);
    call.row_id = rows_;
    ranks_[static_cast<size_t>(rank)].calls.push_back(std::move(call));
  }
  std::map<int64_t, std::string> Links() {
    SortCalls(&ranks_);
    std::map<int64_t, std::string> out;
    for (auto& [row, json] : LinkCalls(ranks_, JoinNodeCalls(ranks_))) out[row] = json;
    return out;
  }
  /// "kind node: text" of each.
  std::vector<std::string> Findings() {
    SortCalls(&ranks_);
    std::vector<std::string> out;
    for (const GraphFinding& f : CheckCommunication(ranks_, JoinNodeCalls(ranks_)))
      out.push_back(std::string(FindingKindText(f.kind)) + ": " + f.text.English());
    return out;
  }
  std::vector<RankNodeCalls> ranks_;
  int64_t rows_ = 0;
};

using Texts = std::vector<std::string>;

TEST_F(LinksTest, GroupsThatOnlyHaveANameAreThoseWhoCallWithIt) {
  const auto call = [&](int rank, const std::string& number, const std::string& group) {
    Call(rank, "MintDistributed.all_reduce." + number + ".forward", Tensor(),
         group.empty() ? "" : R"("group": {"type": "str", "value": ")" + group + R"("})");
  };
  for (const int rank : {0, 1, 2, 3}) {
    call(rank, "0", rank < 2 ? "tp-0-1" : "tp-2-3");
    call(rank, "1", "hccl_world_group");
  }
  const auto links = Links();
  ASSERT_EQ(links.size(), 8u);
  EXPECT_NE(links.at(1).find("\"1\""), std::string::npos);
  EXPECT_EQ(links.at(1).find("\"2\""), std::string::npos) << "of the other group";
  EXPECT_NE(links.at(2).find("\"3\""), std::string::npos) << "of all ranks";
  EXPECT_TRUE(CheckCommunication(ranks_, JoinNodeCalls(ranks_)).empty());
}

TEST_F(LinksTest, SendFindsItsReceive) {
  Call(0, "Distributed.isend.0.forward", Tensor(), R"("dst": )" + Int(1));
  Call(0, "Distributed.isend.1.forward", Tensor() + ", " + Int(1));  // at its position
  Call(1, "Distributed.irecv.0.forward", "null", R"("src": )" + Int(0));
  Call(1, "Distributed.recv.0.forward", "null, " + Int(0));
  const auto links = Links();
  EXPECT_EQ(links.at(1),
            R"({"communications_type": "send", "nodes_info": {"1": ["Nan", "Distributed.irecv.0.forward"]}})");
  EXPECT_EQ(links.at(4),
            R"({"communications_type": "receive", "nodes_info": {"0": ["Nan", "Distributed.isend.1.forward"]}})");
  EXPECT_EQ(Findings(), Texts());
}

TEST_F(LinksTest, PartnerMustPointBack) {
  Call(0, "Distributed.send.0.forward", Tensor(), R"("dst": )" + Int(1));
  Call(1, "Distributed.recv.0.forward", "null", R"("src": )" + Int(2));
  Call(2, "Torch.add.0.forward", "");
  EXPECT_TRUE(Links().empty());
  EXPECT_EQ(Findings(), (Texts{"no_partner: rank 0 sends 1 times to rank 1 (tag 0), which receives 0 times: "
                               "Distributed.send.0.forward of rank 0 has no partner",
                               "no_partner: rank 2 sends 0 times to rank 1 (tag 0), which receives 1 times: "
                               "Distributed.recv.0.forward of rank 1 has no partner"}));
}

TEST_F(LinksTest, TagsTellExchangesApart) {
  const std::string args = Tensor() + ", " + Int(1) + ", null, ";
  Call(0, "Distributed.send.0.forward", args + Int(5));
  Call(0, "Distributed.send.1.forward", args + Int(6));
  Call(1, "Distributed.recv.0.forward", "null", R"("src": )" + Int(0) + R"(, "tag": )" + Int(6));
  Call(1, "Distributed.recv.1.forward", "null", R"("src": )" + Int(0) + R"(, "tag": )" + Int(5));
  EXPECT_NE(Links().at(1).find("recv.1"), std::string::npos);
}

TEST_F(LinksTest, ReceivesFromAnybodyTakeWhatIsLeft) {
  Call(0, "Distributed.send.0.forward", Tensor(), R"("dst": )" + Int(1));
  Call(1, "Distributed.recv.0.forward", Tensor());
  EXPECT_EQ(Findings(), Texts());
}

TEST_F(LinksTest, RootOfAOneToManyCallLinksForEverybody) {
  for (int r = 0; r < 3; ++r) Call(r, "Distributed.broadcast.0.forward", Tensor() + ", " + Int(0));
  const auto links = Links();
  const std::string name = R"(["Nan", "Distributed.broadcast.0.forward"])";
  EXPECT_EQ(links.at(1), R"({"communications_type": "send", "nodes_info": {"1": )" + name + R"(, "2": )" + name + "}}");
  EXPECT_EQ(links.at(3), R"({"communications_type": "receive", "nodes_info": {"0": )" + name + "}}");
}

TEST_F(LinksTest, CollectivesLinkByOccurrence) {
  const std::string group = R"("group": )" + Group("0, 1");
  Call(0, "Distributed.all_reduce.0.forward", Tensor(), group);
  Call(0, "Distributed.all_reduce.1.forward", Tensor(), group);
  Call(1, "Distributed.all_reduce.7.forward", Tensor() + ", " + Group("0, 1"));
  const auto links = Links();
  EXPECT_EQ(links.at(1), R"({"communications_type": "send_receive", "nodes_info": {"1": ["Nan", )"
                         R"("Distributed.all_reduce.7.forward"]}})");
  EXPECT_EQ(links.count(2), 0u);
  EXPECT_EQ(Findings(), (Texts{"missing_call: rank 1 stops after 1 collective calls in the group of ranks 0, 1, rank 0 "
                               "goes on with Distributed.all_reduce.1.forward: the others wait for it and hang"}));
  ranks_[1].truncated = true;
  EXPECT_NE(Findings().at(0).find("its dump is cut"), std::string::npos);
}

TEST_F(LinksTest, TheDefaultGroupIsAllRanks) {
  Call(0, "Distributed.all_gather.0.forward", "[], " + Tensor());
  Call(1, "Distributed.all_gather.0.forward", "[], " + Tensor(), R"("group": )" + Group("0, 1"));
  EXPECT_EQ(Links().size(), 2u);
}

TEST_F(LinksTest, BatchesLinkLikeACollective) {
  Call(0, "Distributed.batch_isend_irecv.0.forward", "[" + P2p("isend", 1) + ", " + P2p("irecv", 2) + "]");
  Call(1, "Distributed.batch_isend_irecv.0.forward", "[" + P2p("irecv", 0) + "]");
  Call(2, "Distributed.isend.0.forward", Tensor() + ", " + Int(0));
  const auto links = Links();
  EXPECT_EQ(links.at(1),
            R"({"communications_type": "send_receive", "nodes_info": {"1": ["Nan", )"
            R"("Distributed.batch_isend_irecv.0.forward"], "2": ["Nan", "Distributed.isend.0.forward"]}})");
  EXPECT_EQ(links.at(2), R"({"communications_type": "receive", "nodes_info": {"0": ["Nan", )"
                         R"("Distributed.batch_isend_irecv.0.forward"]}})");
}

TEST_F(LinksTest, BarriersLinkAndMayBeMissing) {
  for (int r = 0; r < 2; ++r) Call(r, "Distributed.barrier.0.forward", "");
  Call(0, "Distributed.barrier.1.forward", "");
  EXPECT_EQ(Links().size(), 2u);
  EXPECT_EQ(Findings().size(), 1u);
}

TEST_F(LinksTest, ACallThatOneRankSkipsIsNamed) {
  const auto both = [&](const std::string& name) {
    for (int r = 0; r < 2; ++r) Call(r, name, Tensor());
  };
  both("Distributed.all_reduce.0.forward");
  Call(0, "Distributed.all_reduce.1.forward", Tensor());
  both("Distributed.all_to_all_single.0.forward");
  EXPECT_EQ(Findings(),
            (Texts{"missing_call: rank 1 calls all_reduce 1 times in the group of ranks 0, 1 and not 2 times: "
                   "the first call without a counterpart is Distributed.all_reduce.1.forward of rank 0"}));
}

TEST_F(LinksTest, AnotherOrderIsAFinding) {
  Call(0, "Distributed.all_reduce.0.forward", Tensor());
  Call(0, "Distributed.broadcast.0.forward", Tensor());
  Call(1, "Distributed.broadcast.0.forward", Tensor());
  Call(1, "Distributed.all_reduce.0.forward", Tensor());
  EXPECT_EQ(
      Findings(),
      (Texts{"call_order: collective call 0 in the group of ranks 0, 1 is Distributed.all_reduce.0.forward of rank "
             "0 but Distributed.broadcast.0.forward of rank 1: the ranks make their calls in a different order"}));
}

TEST_F(LinksTest, ShapesTypesAndRootsMustAgree) {
  Call(0, "Distributed.all_reduce.0.forward", Tensor("[2, 3]"));
  Call(1, "Distributed.all_reduce.0.forward", Tensor("[2, 4]"));
  Call(0, "Distributed.broadcast.0.forward", Tensor(), R"("src": )" + Int(0));
  Call(1, "Distributed.broadcast.0.forward", Tensor(), R"("src": )" + Int(1));
  Call(0, "Distributed.send.0.forward", Tensor("[4]") + ", " + Int(1));
  Call(1, "Distributed.recv.0.forward", "null, " + Int(0), "", Tensor("[4]", "torch.float16"));
  const Texts found = Findings();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].substr(0, 9), "call_data");
  EXPECT_NE(found[0].find("shapes are [2, 3] and [2, 4]"), std::string::npos);
  EXPECT_EQ(found[1].substr(0, 9), "call_root");
  EXPECT_NE(found[2].find("dtypes are torch.float32 and torch.float16"), std::string::npos);
}

TEST_F(LinksTest, RanksWithoutADumpAreNoFinding) {
  Call(0, "Distributed.all_reduce.0.forward", Tensor(), R"("group": )" + Group("0, 1, 2, 3"));
  Call(0, "Distributed.send.0.forward", Tensor(), R"("dst": )" + Int(3));
  EXPECT_EQ(Findings(), Texts());
}

TEST_F(LinksTest, UnevenSplitsAreAllowed) {
  Call(0, "Distributed.all_to_all_single.0.forward", "null, " + Tensor("[2]"));
  Call(1, "Distributed.all_to_all_single.0.forward", "null, " + Tensor("[6]"));
  EXPECT_EQ(Findings(), Texts());
}

}  // namespace
}  // namespace msprobe
