#include "view/file/match_edits.h"

#include <gtest/gtest.h>

namespace msprobe::view {
namespace {

TEST(MatchEdits, ComeBackAsTheyWere) {
  FileEdits edits;
  edits[{0, 1}].made = {{"Module.a.forward.0", "Module.\"b\".forward.0"}, {"模块", "é"}};
  edits[{0, 1}].cancelled = {"C", "D\n"};
  edits[{7, 0}].cancelled = {"E"};
  const auto again = ParseFileEdits(FileEditsJson(edits), "m.json");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(*again, edits);
  EXPECT_EQ(*ParseFileEdits(FileEditsJson({}), "m.json"), FileEdits());
}

TEST(MatchEdits, OtherFilesAreRefusedByName) {
  for (const char* text :
       {"", "[]", "{}", "null", "{\"msprobe_matches\": 2, \"graphs\": []}",
        "{\"msprobe_matches\": \"1\", \"graphs\": []}", "{\"msprobe_matches\": 1}",
        "{\"msprobe_matches\": 1, \"graphs\": {}}", "{\"msprobe_matches\": 1, \"graphs\": [1]}",
        "{\"msprobe_matches\": 1, \"graphs\": [{\"step\": 0}]}",
        "{\"msprobe_matches\": 1, \"graphs\": [{\"step\": 0.5, \"rank\": 0}]}",
        "{\"msprobe_matches\": 1, \"graphs\": [{\"step\": 0, \"rank\": 0, \"made\": [\"a\"]}]}",
        "{\"msprobe_matches\": 1, \"graphs\": [{\"step\": 0, \"rank\": 0, \"made\": {\"a\": 1}}]}",
        "{\"msprobe_matches\": 1, \"graphs\": [{\"step\": 0, \"rank\": 0, \"made\": {\"a\": \"\"}}]}",
        "{\"msprobe_matches\": 1, \"graphs\": [{\"step\": 0, \"rank\": 0, \"cancelled\": \"a\"}]}",
        "{\"msprobe_matches\": 1, \"graphs\": [{\"step\": 0, \"rank\": 0, \"cancelled\": [null]}]}"}) {
    const auto edits = ParseFileEdits(text, "m.json");
    EXPECT_EQ(edits.status().code(), Code::kBadInput) << text;
    EXPECT_NE(edits.status().message().find("m.json"), std::string::npos) << edits.status().message();
  }
}

TEST(MatchEdits, ConfigurationIsThatOfTheEarlierTool) {
  MatchEdits edits;
  edits.made = {{"Module.a.forward.0", "Module.b.forward.0"}, {"Torch.x.0.forward", "模块"}};
  const std::string text = MatchConfigJson(edits);
  EXPECT_EQ(text, "{\n    \"Module.a.forward.0\": \"Module.b.forward.0\",\n    \"Torch.x.0.forward\": \"模块\"\n}");
  const auto pairs = ParseMatchConfig(text, "x.vis.config");
  ASSERT_TRUE(pairs.ok());
  EXPECT_EQ(pairs->size(), 2u);
  EXPECT_EQ((*pairs)[1].second, "模块");
  EXPECT_EQ(MatchConfigJson({}), "{}");
  for (const char* wrong : {"", "[]", "{\"a\": 1}", "{\"a\": null}", "{\"a\": [\"b\"]}", "{\"\": \"b\"}", "{\"a\""}) {
    EXPECT_EQ(ParseMatchConfig(wrong, "x.vis.config").status().code(), Code::kBadInput) << wrong;
  }
}

TEST(MatchEdits, Requests) {
  const auto request = ParseMatchRequest(R"({"npu": "a", "bench": "b", "descendants": true, "revision": "0"})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->target + request->golden + request->revision, "ab0");
  EXPECT_TRUE(request->descendants);
  for (const char* wrong :
       {"", "a", "[]", "null", "{\"npu\": 1}", "{\"descendants\": \"true\"}", "{\"file\": \"x\"}", "{\"npu\": \"a\""}) {
    EXPECT_EQ(ParseMatchRequest(wrong).status().code(), Code::kUsage) << wrong;
  }
  EXPECT_FALSE(ParseMatchRequest("{\"npu\": \"" + std::string(70000, 'a') + "\"}").ok());
  EXPECT_FALSE(ParseMatchRequest(std::string(100000, '[')).ok());
}

}  // namespace
}  // namespace msprobe::view
