#include "dump/group_name.h"

#include <gtest/gtest.h>

#include "json/parser.h"

namespace msprobe {
namespace {

std::string NameIn(const std::string& text) {
  JsonDoc doc;
  EXPECT_TRUE(ParseJson(text, "test", &doc).ok()) << text;
  return GroupNameOf(doc);
}

TEST(GroupName, IsByKeywordOrPosition) {
  EXPECT_EQ(NameIn(R"({"input_args": [], "input_kwargs": {"group": {"type": "str", "value": "tp-0-1"}}})"), "tp-0-1");
  EXPECT_EQ(NameIn(R"({"input_args": [null, {"type": "str", "value": "sum"}, {"type": "str", "value": "dp"}]})"), "dp");
}

TEST(GroupName, IsAnAttributeOfMindSporesObjects) {
  EXPECT_EQ(NameIn(R"({"input_args": [], "attributes": {"op": {"type": "str", "value": "sum"},
                       "group": {"type": "str", "value": "tp-0-1"}}})"),
            "tp-0-1");
  EXPECT_EQ(NameIn(R"({"input_args": [], "attributes": {"group": {"type": "str", "value": "mccl_world_group"}}})"), "");
  EXPECT_EQ(NameIn(R"({"input_args": [], "attributes": [3]})"), "");
}

TEST(GroupName, ReductionsAndTheGroupOfAllRanksAreNone) {
  EXPECT_EQ(NameIn(R"({"input_args": [{"type": "str", "value": "max"}]})"), "");
  EXPECT_EQ(NameIn(R"({"input_kwargs": {"group": {"type": "str", "value": "hccl_world_group"}}})"), "");
  EXPECT_EQ(NameIn(R"({"input_kwargs": {"group": {"type": "torch.ProcessGroup", "group_ranks": [0, 1]}}})"), "");
  EXPECT_EQ(NameIn(R"({"input_args": 3, "input_kwargs": []})"), "");
}

}  // namespace
}  // namespace msprobe
