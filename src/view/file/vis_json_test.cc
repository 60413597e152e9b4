// Graphs of release 8.1.1: what is written and read as JSON is what the database says.
#include "view/file/vis_json.h"

#include <gtest/gtest.h>

#include "view/query/view_json.h"
#include "view/query/viewer.h"
#include "view/test_db.h"

namespace msprobe::view {
namespace {

const char kOfRelease[] = R"({
 "NPU": {"root": "DefaultModel", "dump_data_dir": null, "node": {
  "DefaultModel": {"id": "DefaultModel", "node_type": 0, "output_data": {}, "input_data": {}, "upnode": "None",
   "subnodes": ["Cell.a.A.forward.0", "Apis_Between_Modules.0"], "matched_node_link": ["DefaultModel"], "suggestions": {},
   "stack_info": [], "data": {}},
  "Apis_Between_Modules.0": {"node_type": 9, "upnode": "DefaultModel", "subnodes": [], "matched_node_link": [],
   "micro_step_id": 1, "data": {}},
  "Cell.a.A.forward.0": {"node_type": 0, "upnode": "DefaultModel", "subnodes": ["Mint.b.0.forward", "Mint.a.0.forward"],
   "matched_node_link": ["DefaultModel", "Cell.a.A.forward.0"], "micro_step_id": 1, "data": {"precision_index": 0.1}},
  "Mint.a.0.forward": {"node_type": 1, "upnode": "Cell.a.A.forward.0", "subnodes": [],
   "matched_node_link": ["B___DefaultModel", "B___Mint.a.0.forward"], "stack_info": ["File a.py"],
   "input_data": {"Mint.a.0.forward.input.0": {"Max": "1.5", "MaxRelativeErr": "90.0%"}},
   "data": {"precision_index": 0.9, "overflow_level": "high"}},
  "Mint.b.0.forward": {"node_type": 1, "upnode": "Cell.a.A.forward.0", "subnodes": [],
   "matched_node_link": ["DefaultModel", "Mint.b.0.forward"], "data": {"precision_index": 0.25}}}},
 "Bench": {"root": "DefaultModel", "node": {
  "DefaultModel": {"node_type": 0, "upnode": "None", "subnodes": ["Cell.a.A.forward.0"], "matched_node_link": ["DefaultModel"]},
  "Cell.a.A.forward.0": {"node_type": 0, "upnode": "DefaultModel", "subnodes": ["Mint.a.0.forward", "Mint.b.0.forward"]},
  "Mint.a.0.forward": {"node_type": 1, "upnode": "Cell.a.A.forward.0"},
  "Mint.b.0.forward": {"node_type": 1, "upnode": "Cell.a.A.forward.0"}}},
 "ToolTip": "{\"Max diff\": \"tip\"}",
 "Colors": {"#FFFCF3": {"value": [0, 0.2]}, "#FFEDBE": {"value": [0.2, 0.4]}, "#FFDC7F": {"value": [0.4, 0.6]},
  "#FFC62E": {"value": [0.6, 0.8]}, "#FF704D": {"value": [0.8, 1]}, "#C7C7C7": {"value": []}},
 "MicroSteps": 2, "task": "summary", "OverflowCheck": true})";

struct VisJsonTest : testing::Test {
  void Serve() {
    auto opened = Viewer::Open(dir.path());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    viewer = *std::move(opened);
  }
  std::string Replaced(const std::string& from, const std::string& to) {
    std::string text = kOfRelease;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  }
  TestDir dir;
  std::unique_ptr<Viewer> viewer;
};

TEST_F(VisJsonTest, SaysWhatItsDatabaseSays) {
  MakeCompareDb(dir / "c.vis.db");
  ASSERT_TRUE(WriteVisJson(dir / "c.vis.db", dir / "c.vis").ok());
  Serve();
  const auto all = [&](const std::string& file) {
    const GraphAddress key{file, 0, 0};
    std::vector<std::string> said{ToJson(*viewer->Summary(key)), ToJson(*viewer->Matrix(file)),
                                  ToJson(*viewer->FindingsOf(key)), *viewer->Verdict(file)};
    for (const char* parent : {"", "Module.blocks.0.fc1.Linear.forward.0", "Apis_Between_Modules.0"}) {
      said.push_back(ToJson(*viewer->Children(key, Side::kTarget, parent, 0, 100), true));
    }
    for (const Side side : {Side::kTarget, Side::kGolden}) {
      said.push_back(ToJson(*viewer->Node(key, side, "Functional.relu.0.forward")));
      said.push_back(ToJson(*viewer->History(file, side, "Functional.relu.0.forward")));
      said.push_back(ToJson(*viewer->Search(key, side, {.text = "lin", .limit = 10})));
    }
    return said;
  };
  EXPECT_EQ(all("c.vis"), all("c.vis.db"));
}

TEST_F(VisJsonTest, OfThatRelease) {
  const std::string name = "sub/compare_step3_rank12_20250101000000.vis";
  dir.Write(name, kOfRelease);
  Serve();
  EXPECT_EQ(viewer->Files()->files[0].file, name);
  const VisSettings config = *viewer->Config(name);
  EXPECT_TRUE(config.compared && config.overflow_check);
  EXPECT_EQ(std::pair(config.steps, config.ranks), std::pair(std::vector<int64_t>{3}, std::vector<int64_t>{12}));
  EXPECT_EQ(std::pair(config.task, config.micro_steps), std::pair(std::string("summary"), int64_t{2}));
  EXPECT_EQ(config.tool_tip_json, R"({"Max diff": "tip"})");
  const GraphAddress key{name, 3, 12};
  const GraphCounts counts = *viewer->Summary(key);
  EXPECT_EQ(counts.target.nodes, 5u);
  EXPECT_EQ(std::tuple(counts.target.pass, counts.target.warning, counts.target.error), std::tuple(1u, 1u, 1u))
      << "0.1, 0.25 and 0.9 of five colours";
  EXPECT_EQ(std::pair(counts.high, counts.first_error->name), std::pair(uint64_t{1}, std::string("Mint.a.0.forward")));
  const ChildList below = *viewer->Children(key, Side::kTarget, "Cell.a.A.forward.0", 0, 10);
  EXPECT_EQ(below.children[0].name, "Mint.b.0.forward") << "the order of the list of children";
  EXPECT_EQ(below.children[0].micro_step, 1) << "what is known of the uppermost";
  EXPECT_EQ(below.children[1].matched, "Mint.a.0.forward");
  const NodeDetail node = *viewer->Node(key, Side::kTarget, "Mint.a.0.forward");
  EXPECT_EQ(node.record.inputs[0].values[1], std::pair(std::string("MaxRelativeErr"), std::string("90.0%")));
  EXPECT_EQ(node.record.stack, std::vector<std::string>{"File a.py"});
  EXPECT_FALSE(viewer->Summary({name, 0, 0}).ok()) << "another step";
}

TEST_F(VisJsonTest, EqualChecksumsAreOneThere) {
  std::string text = kOfRelease;
  const size_t at = text.find("{\"#FFFCF3\"");
  text.replace(at, text.find("}}", at) + 2 - at,
               R"({"#FFFCF3": {"value": [1, 1]}, "#FF704D": {"value": [0, 0]}, "#C7C7C7": {"value": []}})");
  text.replace(text.find("0.9"), 3, "0  ");
  text.replace(text.find("0.25"), 4, "1   ");
  dir.Write("m.vis", text);
  Serve();
  const GraphCounts counts = *viewer->Summary({"m.vis", 0, 0});
  EXPECT_EQ(counts.target.error, 1u);
  EXPECT_EQ(counts.first_error->name, "Mint.a.0.forward");
}

TEST_F(VisJsonTest, OneRun) {
  dir.Write("build_rank3_20250101000000.vis", R"({"root": "DefaultModel", "dump_data_dir": "/d", "node":
    {"DefaultModel": {"subnodes": ["a"], "upnode": "None"}, "a": {"node_type": 1, "upnode": "DefaultModel"},
     "stray": {"node_type": 1, "upnode": "gone"}, "x": {"upnode": "y", "subnodes": ["y"]},
     "y": {"upnode": "x", "subnodes": ["x"]}}, "MicroSteps": 1, "OverflowCheck": false})");
  Serve();
  const std::string file = viewer->Files()->files[0].file;
  EXPECT_FALSE(viewer->Config(file)->compared);
  EXPECT_EQ(viewer->Summary({file, 0, 3})->target.nodes, 5u);
  const ChildList top = *viewer->Children({file, 0, 3}, Side::kTarget, "", 0, 10);
  EXPECT_EQ(top.total, 3u) << "what hangs nowhere hangs under the root, one node of the circle too";
}

TEST_F(VisJsonTest, WhatIsNoGraphIsRefusedInOneLine) {
  const std::string whole = kOfRelease;
  const std::pair<std::string, std::string> refused[] = {
      {"", "no JSON object"},
      {"[1]", "no JSON object"},
      {"{}", "no member \"node\""},
      {R"({"NPU": {"node": {}}})", "no member \"node\""},
      {R"({"NPU": {"node": {}}, "Bench": 1})", "no member \"node\""},
      {whole.substr(0, whole.size() / 2), "in the middle of its text"},
      {Replaced("\"task\": ", "\"task\" "), "expected ':'"},
  };
  for (const auto& [text, why] : refused) {
    dir.Write("r.vis", text);
    Serve();
    const auto list = viewer->Files();
    ASSERT_EQ(list->skipped.size(), 1u) << text;
    EXPECT_NE(list->skipped[0].reason.English().find(why), std::string::npos) << list->skipped[0].reason.English();
    EXPECT_EQ(list->skipped[0].reason.English().find('\n'), std::string::npos);
  }
  dir.Write("r.vis", Replaced("\"Mint.b.0.forward\": {", "\"Mint.b.0.forward\": [{}, {"));
  Serve();
  EXPECT_EQ(viewer->Summary({"r.vis", 0, 0}).status().code(), Code::kBadInput);
}

}  // namespace
}  // namespace msprobe::view
