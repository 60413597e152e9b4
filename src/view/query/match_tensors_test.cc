// Matching by hand in graphs of tensor dumps: the values are read from the dumps.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "graph/build/visualize.h"
#include "view/query/recompare.h"
#include "view/query/view_json.h"
#include "view/query/viewer.h"
#include "view/test_db.h"

namespace msprobe::view {
namespace {

namespace fs = std::filesystem;

std::string Npy(const std::vector<float>& values, const std::string& shape) {
  std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  head.resize((head.size() + 10 + 64) / 64 * 64 - 11, ' ');
  head += '\n';
  std::string out = "\x93NUMPY\x01";
  out += '\0';
  out += static_cast<char>(head.size() & 255);
  out += static_cast<char>(head.size() >> 8);
  out += head;
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return out;
}

struct MatchTensorsTest : testing::Test {
  /// A dump of one rank with an op of this name below root/SIDE: values of its input and its output, four each.
  void Dump(const std::string& side, const std::vector<std::string>& ops, const std::vector<float>& output) const {
    const std::string rank = "root/" + side + "/step0/rank0/";
    const auto item = [&](const std::string& op, const std::string& name, const std::vector<float>& values) {
      const std::string file = op + "." + name + ".npy";
      dir.Write(rank + "dump_tensor_data/" + file, Npy(values, "(2, 2)"));
      return fmt::format(
          R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 2], "Max": {}, "Min": {}, "Mean": 0.5,)"
          R"( "Norm": 1.5, "requires_grad": false, "data_name": "{}"}})",
          values[0], values[1], file);
    };
    std::string data, construct;
    for (const std::string& op : ops) {
      data +=
          fmt::format(R"({}"{}": {{"input_args": [{}], "input_kwargs": {{}}, "output": [{}]}})",
                      data.empty() ? "" : ",", op, item(op, "input.0", {4, -1, 2, 3}), item(op, "output.0", output));
      construct += fmt::format(R"({}"{}": null)", construct.empty() ? "" : ",", op);
    }
    dir.Write(rank + "stack.json", "{}");
    dir.Write(rank + "construct.json", "{" + construct + "}");
    dir.Write(rank + "dump.json", R"({"task": "tensor", "level": "mix", "framework": "pytorch", "dump_data_dir": ")" +
                                      fs::canonical(dir / "root").string() + rank.substr(4) +
                                      R"(dump_tensor_data", "data": {)" + data + "}}");
  }
  /// A graph of the two dumps in root/graph.
  std::string Graph() const {
    GraphSettings settings;
    settings.target = dir / "root/target";
    settings.golden = dir / "root/golden";
    settings.output = dir / "root/graph";
    fs::remove_all(settings.output);
    const auto made = VisualizeGraph(settings);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return "graph/" + (*Viewer::Open(settings.output))->Files()->files[0].file;
  }
  static MatchRequest Pair(const std::string& target, const std::string& golden) {
    MatchRequest request;
    request.target = target;
    request.golden = golden;
    return request;
  }
  static std::string Values(const NodeRecord& record) {
    std::string out;
    for (const auto* rows : {&record.inputs, &record.outputs}) {
      for (const ViewRow& row : *rows) {
        for (const auto& [key, value] : row.values) {
          if (key != "data_name") out += key + "=" + value + "\n";
        }
      }
    }
    return out;
  }

  const std::string same = "Functional.add.0.forward", renamed = "Functional.plus.0.forward";
  const std::vector<float> sound{8, -2, 4, 6}, off{8, -2, 4, 7}, nan{8, -2, std::nanf(""), 6};
  TestDir dir;
};

TEST_F(MatchTensorsTest, APairByHandHasTheFiguresThatGraphVisualizeGives) {
  for (const auto& output : {off, nan, sound}) {
    // One name on both sides is matched by graph_visualize, the other by hand.
    Dump("target", {same}, output);
    Dump("golden", {same}, sound);
    const GraphAddress made{Graph(), 0, 0};
    auto viewer = *Viewer::Open(dir / "root");
    const NodeDetail wanted = *viewer->Node(made, Side::kTarget, same);
    ASSERT_NE(Values(wanted.record).find("Cosine="), std::string::npos);

    Dump("golden", {renamed}, sound);
    const GraphAddress key{Graph(), 0, 0};
    viewer = *Viewer::Open(dir / "root");
    ASSERT_FALSE(viewer->Node(key, Side::kTarget, same)->partner);
    EXPECT_EQ(viewer->Matches(key)->refusal, MatchRefusal::kNone);
    const auto change = viewer->ChangeMatches(key, MatchAction::kAdd, Pair(same, renamed));
    ASSERT_TRUE(change.ok()) << change.status().message();
    EXPECT_EQ(change->refusal, MatchRefusal::kNone) << change->text;
    for (int i = 0; i < 2; ++i) {
      const NodeDetail node = *viewer->Node(key, Side::kTarget, same);
      ASSERT_TRUE(node.partner);
      EXPECT_EQ(node.partner->node.name, renamed);
      EXPECT_EQ(node.node.level, wanted.node.level);
      EXPECT_EQ(Values(node.record), Values(wanted.record));
      viewer = *Viewer::Open(dir / "root");  // as the file beside the graph keeps it
    }
    // For a page without a server, wherever the dumps lie.
    auto trusted = *Viewer::OpenTrusted(dir / "root/" + key.file);
    EXPECT_EQ(Values(trusted->Node({key.file.substr(6), 0, 0}, Side::kTarget, same)->record), Values(wanted.record));
  }
}

TEST_F(MatchTensorsTest, WhatCannotBeReadIsRefusedOrMarked) {
  Dump("target", {same}, off);
  Dump("golden", {renamed}, sound);
  const GraphAddress key{Graph(), 0, 0};
  const auto refusal = [](Viewer* viewer, const GraphAddress& where, const MatchRequest& request) {
    const auto change = viewer->ChangeMatches(where, MatchAction::kAdd, request);
    EXPECT_TRUE(change.ok()) << change.status().message();
    EXPECT_EQ(change->refusal, MatchRefusal::kTensor);
    return change->text;
  };
  // The dumps are not below what is served, or only the graph is.
  const GraphAddress inside{key.file.substr(6), 0, 0};
  auto narrow = *Viewer::Open(dir / "root/graph");
  EXPECT_NE(refusal(narrow.get(), inside, Pair(same, renamed)).find("not below the served directory"),
            std::string::npos);
  auto single = *Viewer::Open(dir / "root/" + key.file);
  EXPECT_EQ(single->Matches(inside)->refusal, MatchRefusal::kTensor);
  EXPECT_NE(refusal(single.get(), inside, Pair(same, renamed)), "");
  EXPECT_FALSE(fs::exists(dir / "root/" + key.file.substr(0, key.file.size() - 7) + ".vis.match.json"));

  // Of a pair that is matched one tensor goes away.
  auto viewer = *Viewer::Open(dir / "root");
  ASSERT_EQ(viewer->ChangeMatches(key, MatchAction::kAdd, Pair(same, renamed))->changed, 1u);
  const std::string data = "root/target/step0/rank0/dump_tensor_data/";
  fs::remove(dir / data + same + ".output.0.npy");
  viewer = *Viewer::Open(dir / "root");
  const NodeDetail node = *viewer->Node(key, Side::kTarget, same);
  EXPECT_EQ(node.node.level, Verdict::kWarning);
  EXPECT_NE(Values(node.record).find("does not exist"), std::string::npos) << Values(node.record);
  EXPECT_NE(Values(node.record).find("Cosine=1.0"), std::string::npos) << "the input is there still";

  // A link out of the dump is not followed.
  dir.Write("outside.npy", Npy(off, "(2, 2)"));
  fs::create_symlink(dir / "outside.npy", dir / data + same + ".output.0.npy");
  viewer = *Viewer::Open(dir / "root");
  EXPECT_NE(Values(viewer->Node(key, Side::kTarget, same)->record).find("link"), std::string::npos);
}

}  // namespace
}  // namespace msprobe::view
