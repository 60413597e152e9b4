#include "graph/links.h"

#include <gtest/gtest.h>

#include <map>

namespace msprobe {
namespace {

LinkedCall Call(int64_t row, const std::string& node, const std::string& api, const std::string& peer = "") {
  LinkedCall c;
  c.node = node;
  c.api = api;
  c.peer = peer;
  c.has_peer = !peer.empty();
  c.row_id = row;
  return c;
}

LinkedCall GroupCall(int64_t row, const std::string& node, const std::string& api, std::vector<int64_t> ranks,
                     const std::string& peer = "") {
  LinkedCall c = Call(row, node, api, peer);
  c.group = std::move(ranks);
  c.group_id = "g";
  return c;
}

std::map<int64_t, std::string> Link(const std::vector<LinkedRank>& ranks) {
  std::map<int64_t, std::string> out;
  for (auto& [row, json] : LinkCalls(ranks)) out[row] = json;
  return out;
}

TEST(Links, SendFindsItsReceive) {
  const auto links =
      Link({{0, {Call(1, "s0", "isend", "1"), Call(2, "s1", "isend", "1")}},
            {1, {Call(3, "r0", "irecv", "0"), Call(4, "r1", "irecv", "0"), Call(5, "r2", "irecv", "0")}}});
  EXPECT_EQ(links.at(1), R"({"communications_type": "send", "nodes_info": {"1": ["Nan", "r0"]}})");
  EXPECT_EQ(links.at(4), R"({"communications_type": "receive", "nodes_info": {"0": ["Nan", "s1"]}})");
  EXPECT_EQ(links.count(5), 0u);
}

TEST(Links, PartnerMustPointBack) {
  EXPECT_TRUE(Link({{0, {Call(1, "s", "send", "1")}}, {1, {Call(2, "r", "recv", "2")}}}).empty());
}

TEST(Links, RootOfAOneToManyCallLinksForEverybody) {
  const auto links = Link({{0, {GroupCall(1, "b", "broadcast", {0, 1, 2}, "0")}},
                           {1, {GroupCall(2, "b", "broadcast", {0, 1, 2}, "0")}},
                           {2, {GroupCall(3, "b", "broadcast", {0, 1, 2}, "0")}}});
  EXPECT_EQ(links.at(1), R"({"communications_type": "send", "nodes_info": {"1": ["Nan", "b"], "2": ["Nan", "b"]}})");
  EXPECT_EQ(links.at(3), R"({"communications_type": "receive", "nodes_info": {"0": ["Nan", "b"]}})");
}

TEST(Links, CollectivesLinkByOccurrence) {
  const auto links = Link({{0, {GroupCall(1, "a.0", "all_reduce", {0, 1}), GroupCall(2, "a.1", "all_reduce", {0, 1})}},
                           {1, {GroupCall(3, "a.7", "all_reduce", {0, 1})}}});
  EXPECT_EQ(links.at(1), R"({"communications_type": "send_receive", "nodes_info": {"1": ["Nan", "a.7"]}})");
  EXPECT_EQ(links.count(2), 0u);
}

TEST(Links, BatchesLinkLikeACollective) {
  LinkedCall a = Call(1, "batch.0", "batch_isend_irecv"), b = Call(2, "batch.0", "batch_isend_irecv");
  LinkedCall c = Call(3, "batch.0", "batch_isend_irecv");
  a.batch = {{"isend", "1", "g"}, {"irecv", "2", "g"}};
  b.batch = {{"irecv", "0", "g"}};
  c.batch = {{"isend", "0", "g"}};
  const auto links = Link({{0, {a}}, {1, {b}}, {2, {c}}});
  EXPECT_EQ(
      links.at(1),
      R"({"communications_type": "send_receive", "nodes_info": {"1": ["Nan", "batch.0"], "2": ["Nan", "batch.0"]}})");
  EXPECT_EQ(links.at(2), R"({"communications_type": "receive", "nodes_info": {"0": ["Nan", "batch.0"]}})");
}

TEST(ReadLinkedCall, TakesPeerGroupAndBatch) {
  JsonDoc doc;
  ASSERT_TRUE(ParseJson(R"({"input_args": [[]], "input_kwargs": {"dst": {"type": "int", "value": 1},
      "group": {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "g"}},
      "output": [[{"class_type": "torch.distributed.P2POp", "op": "isend", "peer": 1, "group_id": "g", "tensor": null}]]})",
                        "test", &doc)
                  .ok());
  ParamList params;
  params.Read("Distributed.isend.0.forward", doc);
  const LinkedCall call = ReadLinkedCall("Distributed.isend.0.forward", params, doc);
  EXPECT_EQ(call.peer, "1");
  EXPECT_EQ(call.group, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(call.group_id, "g");
  EXPECT_TRUE(call.batch.empty());
  params.Clear();
  params.Read("Distributed.batch_isend_irecv.0.forward", doc);
  const LinkedCall batch = ReadLinkedCall("Distributed.batch_isend_irecv.0.forward", params, doc);
  ASSERT_EQ(batch.batch.size(), 1u);
  EXPECT_EQ(batch.batch[0].peer, "1");
}

}  // namespace
}  // namespace msprobe
