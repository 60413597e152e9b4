// What stands beside the nodes: overview, layers, flow, exchanges; on files of ours and on those of the earlier tool.
#include <gtest/gtest.h>

#include <memory>

#include "graph/build/visualize.h"
#include "graph/graph_test_files.h"
#include "view/query/view_json.h"
#include "view/query/viewer.h"
#include "view/test_db.h"

namespace msprobe::view {
namespace {

const GraphAddress kKey{"c.vis.db", 0, 0};
constexpr std::string_view kM1 = "Module.blocks.0.fc1.Linear.forward.0";

struct PlainFile : testing::Test {
  void SetUp() override {
    MakeCompareDb(dir / "c.vis.db");
    viewer = *Viewer::Open(dir.path());
  }
  TestDir dir;
  std::unique_ptr<Viewer> viewer;
};

TEST_F(PlainFile, MatrixComesFromTheNodes) {
  const auto cells = viewer->Matrix("c.vis.db");
  ASSERT_TRUE(cells.ok()) << cells.status().message();
  EXPECT_EQ(ToJson(*cells),
            R"({"cells":[{"step":0,"rank":0,"nodes":7,"error":1,"warning":1,"unmatched":1,"medium":0,"high":1,)"
            R"("critical":1,"inherited":0,"suspicious":0,"bug":0}]})");
}

TEST_F(PlainFile, HasNoFindingsAndNoFlow) {
  const auto findings = viewer->FindingsOf(kKey);
  ASSERT_TRUE(findings.ok());
  EXPECT_EQ(ToJson(*findings), R"({"known":false,"total":0,"inherited":0,"findings":[]})");
  const auto links = viewer->Links(kKey, Side::kTarget, "Functional.relu.0.forward");
  ASSERT_TRUE(links.ok()) << links.status().message();
  EXPECT_FALSE(links->flow_known);
  EXPECT_EQ(links->previous->name, "Functional.linear.0.forward");
  EXPECT_EQ(links->next->name, "Module.head.Linear.forward.0") << "modules with calls inside are passed over";
  EXPECT_EQ(viewer->Links(kKey, Side::kTarget, "nope").status().code(), Code::kBadInput);
}

TEST_F(PlainFile, LayersAreThoseOfTheNames) {
  const auto layers = viewer->Layers(kKey);
  ASSERT_TRUE(layers.ok());
  ASSERT_EQ(layers->size(), 3u);
  const LayerSummary& block = (*layers)[0];
  EXPECT_EQ(block.column.label, "blocks.0");
  EXPECT_EQ(block.column.forward.nodes, 3u);
  EXPECT_EQ(block.column.forward.errors, 1u);
  EXPECT_EQ(block.forward_node, "Functional.linear.0.forward");
  EXPECT_EQ(block.column.backward.nodes, 0u);
  EXPECT_EQ((*layers)[1].column.label, "head");
  EXPECT_EQ((*layers)[1].column.forward.unmatched, 1u);
}

TEST_F(PlainFile, ANodeIsFoundInEveryGraphThatHasIt) {
  RunSql(dir / "c.vis.db", NodeSql({0, "Functional.linear.0.forward", "1", "DefaultModel", "0.5"}, "NPU", 0, 1));
  const auto history = viewer->History("c.vis.db", Side::kTarget, "Functional.linear.0.forward");
  ASSERT_TRUE(history.ok()) << history.status().message();
  EXPECT_EQ(ToJson(*history),
            R"({"name":"Functional.linear.0.forward","side":"NPU","cells":[{"step":0,"rank":0,"matched":true,)"
            R"("precision":1,"overflow":"critical","verdict":null,"error":null,"units":null},{"step":0,"rank":1,)"
            R"("matched":false,"precision":null,"overflow":null,"verdict":null,"error":null,"units":null}]})");
  EXPECT_EQ(viewer->History("c.vis.db", Side::kGolden, "Functional.linear.0.forward")->cells.size(), 1u);
  EXPECT_EQ(viewer->History("c.vis.db", Side::kTarget, "nope").status().code(), Code::kBadInput);
}

// A gradient is summed over ranks by a call whose name says forward.
TEST_F(PlainFile, WhatAModuleCallsInItsBackwardPassCountsThere) {
  const std::string layer = "Module.blocks.0.fc1.Linear.backward.0", again = "Module.blocks.0.fc1.Linear.forward.1";
  std::string sql;
  for (const TestNode& n :
       {TestNode{7, "Distributed.all_reduce.0.forward", "1", layer, "1", "x"}, TestNode{8, layer, "0", "DefaultModel"},
        TestNode{9, "Torch.mul.0.forward", "1", again}, TestNode{10, again, "0", layer}}) {
    sql += NodeSql(n);
  }
  RunSql(dir / "c.vis.db", sql);
  const auto layers = viewer->Layers(kKey);
  ASSERT_TRUE(layers.ok()) << layers.status().message();
  const LayerColumn& block = (*layers)[0].column;
  EXPECT_EQ(block.label, "blocks.0");
  EXPECT_EQ(block.backward.nodes, 2u) << "the layer and its all_reduce";
  EXPECT_EQ((*layers)[0].backward_node, "Distributed.all_reduce.0.forward");
  EXPECT_EQ(block.forward.nodes, 5u) << "what is computed again runs forward";
}

TEST_F(PlainFile, SeekWalksWhatAFilterKeepsAndStartsAgain) {
  SearchQuery query;
  query.text = "linear";
  const auto seek = [&](std::string_view from, bool forward) {
    const auto hit = viewer->Seek(kKey, Side::kTarget, query, from, forward);
    return hit.ok() && hit->node ? hit->node->name + " " + std::to_string(hit->index) + "/" + std::to_string(hit->total)
                                 : std::string("none");
  };
  const std::string op = "Functional.linear.0.forward", m1(kM1), m2 = "Module.head.Linear.forward.0";
  EXPECT_EQ(seek("", true), op + " 0/3");
  EXPECT_EQ(seek(op, true), m1 + " 1/3");
  EXPECT_EQ(seek("Functional.relu.0.forward", true), m1 + " 1/3");
  EXPECT_EQ(seek(m2, true), op + " 0/3");
  EXPECT_EQ(seek("", false), m2 + " 2/3");
  EXPECT_EQ(seek(op, false), m2 + " 2/3");
  EXPECT_EQ(seek(m2, false), m1 + " 1/3");
  query.filter = NodeFilter::kHigh;
  EXPECT_EQ(seek("", true), "none");
  EXPECT_EQ(viewer->Seek(kKey, Side::kTarget, query, "nope", true).status().code(), Code::kBadInput);
}

// Two calls in a module; the first is off, the second takes what it gives.
struct OwnFile : testing::Test {
  void SetUp() override {
    const std::string first = "Torch.a.0.forward", second = "Torch.b.0.forward";
    const std::string construct =
        R"("Torch.a.0.forward": "Module.layers.0.m.M.forward.0", "Torch.b.0.forward": )"
        R"("Module.layers.0.m.M.forward.0", "Module.layers.0.m.M.forward.0": "Module.layers.0.L.forward.0", )"
        R"("Module.layers.0.L.forward.0": null)";
    const auto data = [&](double norm) {
      return OpJson(first, TensorJson(1, 0, 0.5, 2), TensorJson(3, 1, 1.5, norm)) + ", " +
             OpJson(second, TensorJson(3, 1, 1.5, norm), TensorJson(7, 2, 2.5, norm + 1));
    };
    GraphSettings settings;
    settings.target = dir.Rank("a", construct, data(9), "");
    settings.golden = dir.Rank("b", construct, data(2), "");
    settings.output = dir.Path("out");
    ASSERT_TRUE(VisualizeGraph(settings).ok());
    viewer = *Viewer::Open(dir.Path("out"));
    key.file = viewer->Files()->files[0].file;
  }
  DumpDir dir;
  std::unique_ptr<Viewer> viewer;
  GraphAddress key;
};

TEST_F(OwnFile, FlowLeadsToBothEnds) {
  const auto giver = viewer->Links(key, Side::kTarget, "Torch.a.0.forward");
  ASSERT_TRUE(giver.ok()) << giver.status().message();
  EXPECT_TRUE(giver->flow_known);
  ASSERT_EQ(giver->consumers.size(), 1u);
  EXPECT_EQ(giver->consumers[0].node.name, "Torch.b.0.forward");
  EXPECT_EQ(giver->consumers[0].confidence, 95);
  EXPECT_EQ(giver->consumers[0].path,
            (std::vector<std::string>{"Module.layers.0.L.forward.0", "Module.layers.0.m.M.forward.0"}));
  EXPECT_EQ(giver->next->name, "Torch.b.0.forward");
  EXPECT_EQ(giver->previous, std::nullopt);
  ASSERT_TRUE(giver->precision.has_value());
  EXPECT_GT(giver->precision->error.value_or(0), 0.5);
  const auto taker = viewer->Links(key, Side::kTarget, "Torch.b.0.forward");
  ASSERT_EQ(taker->producers.size(), 1u);
  EXPECT_EQ(taker->producers[0].node.name, "Torch.a.0.forward");
  EXPECT_FALSE(viewer->Links(key, Side::kGolden, "Torch.b.0.forward")->flow_known);
}

TEST_F(OwnFile, FindingsBeginWithTheNodeToBlame) {
  const auto findings = viewer->FindingsOf(key);
  ASSERT_TRUE(findings.ok()) << findings.status().message();
  EXPECT_TRUE(findings->known);
  ASSERT_FALSE(findings->list.empty());
  EXPECT_EQ(findings->list[0].kind, "origin");
  EXPECT_EQ(findings->list[0].name, "Torch.a.0.forward");
  ASSERT_TRUE(findings->list[0].precision.has_value());
  EXPECT_GT(findings->list[0].precision->units.value_or(0), 0.5);
  EXPECT_EQ(findings->total, findings->list.size());
}

TEST_F(OwnFile, TheRulersVerdictIsKnownOfEveryNode) {
  EXPECT_TRUE(viewer->Config(key.file)->verdicts);
  const auto list = viewer->Children(key, Side::kTarget, "Module.layers.0.m.M.forward.0", 0, 9);
  ASSERT_TRUE(list.ok()) << list.status().message();
  ASSERT_EQ(list->children.size(), 2u);
  EXPECT_EQ(list->children[0].ruling, RulerVerdict::kBug);
  EXPECT_EQ(list->children[1].ruling, RulerVerdict::kInherited);
  EXPECT_EQ(list->node.counts.bug, 1u) << "a module shows what begins in it";
  EXPECT_NE(ToJson(*list, /*rows=*/true).find(R"(,"bug",0,1],["Torch.b.0.forward")"), std::string::npos)
      << ToJson(*list, true);
  EXPECT_NE(ToJson(*list).find(R"("verdict":"inherited")"), std::string::npos);
  const auto golden = viewer->Node(key, Side::kGolden, "Torch.a.0.forward");
  EXPECT_EQ(golden->node.ruling, RulerVerdict::kNone);
  EXPECT_EQ(golden->partner->node.ruling, RulerVerdict::kBug);
  SearchQuery query;
  query.filter = *ParseNodeFilter("bug,suspicious");
  EXPECT_EQ(viewer->Seek(key, Side::kTarget, query, "", true)->node->name, "Torch.a.0.forward");
  const auto layers = viewer->Layers(key);
  EXPECT_EQ((*layers)[0].column.forward.ruling, RulerVerdict::kBug);
  EXPECT_EQ((*layers)[0].column.forward.begins, 1u);
  EXPECT_NE(viewer->Export(key.file, {{}, {}, 1})->json.find(R"(["Torch.a.0.forward",)"), std::string::npos);
}

TEST_F(OwnFile, ANodeOverAllGraphsAgreesWithTheNodeItself) {
  const auto history = viewer->History(key.file, Side::kTarget, "Torch.a.0.forward");
  ASSERT_TRUE(history.ok()) << history.status().message();
  ASSERT_EQ(history->cells.size(), 1u);
  const HistoryCell& cell = history->cells[0];
  const auto links = viewer->Links(key, Side::kTarget, "Torch.a.0.forward");
  EXPECT_EQ(cell.ruling, RulerVerdict::kBug);
  EXPECT_TRUE(cell.matched);
  EXPECT_EQ(cell.level, viewer->Node(key, Side::kTarget, "Torch.a.0.forward")->node.level);
  EXPECT_EQ(cell.error, links->precision->error);
  EXPECT_EQ(cell.units, links->precision->units);
  const auto golden = viewer->History(key.file, Side::kGolden, "Torch.a.0.forward");
  EXPECT_EQ(golden->cells.at(0).error, std::nullopt) << "figures are the target's";
}

TEST_F(OwnFile, APairThatWasTakenApartHasNoVerdict) {
  MatchRequest request;
  request.target = "Torch.a.0.forward";
  request.golden = "Torch.a.0.forward";
  const auto change = viewer->ChangeMatches(key, MatchAction::kRemove, request);
  ASSERT_TRUE(change.ok()) << change.status().message();
  ASSERT_EQ(change->changed, 1u);
  const auto history = viewer->History(key.file, Side::kTarget, "Torch.a.0.forward");
  EXPECT_FALSE(history->cells.at(0).matched);
  EXPECT_EQ(history->cells.at(0).error, std::nullopt);
  EXPECT_EQ(history->cells.at(0).ruling, RulerVerdict::kNone);
  EXPECT_EQ(viewer->Node(key, Side::kTarget, "Torch.a.0.forward")->node.ruling, RulerVerdict::kNone);
  EXPECT_EQ(viewer->Summary(key)->rulings->bug, 0u);
  EXPECT_EQ(viewer->Matrix(key.file)->at(0).bug, 0u);
}

TEST_F(OwnFile, MatrixComesFromTheSubtreesAndAgreesWithTheNodes) {
  const auto cells = viewer->Matrix(key.file);
  ASSERT_EQ(cells->size(), 1u);
  const auto summary = viewer->Summary(key);
  EXPECT_EQ((*cells)[0].nodes, summary->target.nodes);
  EXPECT_EQ((*cells)[0].error, summary->target.error);
  EXPECT_EQ((*cells)[0].unmatched, summary->target.unmatched);
  ASSERT_TRUE(summary->rulings.has_value());
  EXPECT_EQ(summary->rulings->bug, 1u);
  EXPECT_EQ((*cells)[0].bug, summary->rulings->bug);
  EXPECT_EQ((*cells)[0].suspicious, summary->rulings->suspicious);
  EXPECT_EQ((*cells)[0].inherited, summary->rulings->inherited);
}

// Calls outside of modules stand in a collection, which is as red as the worst of them.
TEST(Counts, AreTheSameInHeaderMatrixListAndCommand) {
  DumpDir dir;
  const std::string construct = R"("Torch.a.0.forward": null, "Torch.b.0.forward": null)";
  const auto data = [&](double norm) {
    return OpJson("Torch.a.0.forward", TensorJson(1, 0, 0.5, 2), TensorJson(3, 1, 1.5, norm)) + ", " +
           OpJson("Torch.b.0.forward", TensorJson(1, 0, 0.5, 2), TensorJson(7, 2, 2.5, 3));
  };
  GraphSettings settings;
  settings.target = dir.Rank("a", construct, data(9), "");
  settings.golden = dir.Rank("b", construct, data(2), "");
  settings.output = dir.Path("out");
  const auto report = VisualizeGraph(settings);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto viewer = *Viewer::Open(dir.Path("out"));
  const GraphAddress key{viewer->Files()->files[0].file, 0, 0};
  const auto list = viewer->Children(key, Side::kTarget, "", 0, 9);
  ASSERT_EQ(list->children.size(), 1u);
  ASSERT_EQ(list->children[0].type, kCollection);
  ASSERT_EQ(list->children[0].level, Verdict::kError);
  SearchQuery errors;
  errors.filter = NodeFilter::kError;
  EXPECT_EQ(viewer->Summary(key)->target.error, 1u);
  EXPECT_EQ(viewer->Summary(key)->first_error->name, "Torch.a.0.forward");
  EXPECT_EQ((*viewer->Matrix(key.file))[0].error, 1u);
  EXPECT_EQ(viewer->Search(key, Side::kTarget, errors)->total, 1u);
  EXPECT_EQ(viewer->Seek(key, Side::kTarget, errors, "", true)->total, 1u);
  EXPECT_EQ(list->node.counts.error, 1u);
  EXPECT_EQ(list->children[0].counts.error, 1u);
  EXPECT_EQ(report->levels[static_cast<size_t>(Verdict::kError) - 1], 1u);
}

TEST_F(OwnFile, LayersHoldTheLargestError) {
  const auto layers = viewer->Layers(key);
  ASSERT_EQ(layers->size(), 1u);
  const LayerSummary& layer = (*layers)[0];
  EXPECT_EQ(layer.column.label, "layers.0");
  EXPECT_EQ(layer.column.forward.nodes, 4u) << "calls deep inside are of the layer, too";
  EXPECT_GT(layer.column.forward.error.value_or(0), 0.5);
  EXPECT_EQ(layer.forward_node, "Torch.a.0.forward");
}

TEST_F(OwnFile, ErrorsAreSearchedAndSortedByOnBothSides) {
  const std::string a = "Torch.a.0.forward", b = "Torch.b.0.forward";
  SearchQuery query;
  const auto names = [&](std::string_view text, Side side) {
    query.text = text;
    const auto hits = viewer->Search(key, side, query);
    EXPECT_TRUE(hits.ok()) << hits.status().message();
    std::vector<std::string> out;
    for (const SearchHit& hit : hits->hits) out.push_back(hit.node.name);
    return out;
  };
  const double error = *viewer->Links(key, Side::kTarget, a)->precision->error;
  const std::string least = "error>=" + std::to_string(static_cast<int>(error * 100) - 1) + "% type:op";
  for (const Side side : {Side::kTarget, Side::kGolden}) {
    EXPECT_EQ(names(least, side).at(0), a);
    EXPECT_EQ(names("type:op -error>=0", side), std::vector<std::string>());
    EXPECT_EQ(names("op:a", side), std::vector<std::string>{a});
  }
  query.sort = HitSort::kError;
  query.offset = 1;
  query.limit = 1;
  const auto second = names("type:op", Side::kTarget);
  query.offset = 0;
  const auto first = names("type:op", Side::kTarget);
  const auto error_of = [&](const std::string& name) {
    return *viewer->Links(key, Side::kTarget, name)->precision->error;
  };
  ASSERT_EQ(first.size() + second.size(), 2u);
  EXPECT_GE(error_of(first[0]), error_of(second[0]));
  EXPECT_EQ(viewer->Seek(key, Side::kTarget, query, first[0], true)->node->name, second[0]);
  EXPECT_EQ(viewer->Seek(key, Side::kTarget, query, second[0], true)->node->name, first[0]);
  EXPECT_EQ(viewer->Seek(key, Side::kTarget, query, second[0], false)->index, 0u);
  MatchRequest request;
  request.target = request.golden = a;
  ASSERT_TRUE(viewer->ChangeMatches(key, MatchAction::kRemove, request).ok());
  EXPECT_EQ(names("type:op -error>=0", Side::kTarget), std::vector<std::string>{a}) << "that was another pair's";
}

TEST_F(PlainFile, AFileWithoutErrorsSaysSo) {
  SearchQuery query;
  query.text = "error>0.1";
  const auto hits = viewer->Search(kKey, Side::kTarget, query);
  EXPECT_EQ(hits.status().code(), Code::kUsage);
  EXPECT_EQ(hits.status().message(),
            "error: no errors are known in this graph: compare two runs with msprobe graph_visualize");
  EXPECT_EQ(viewer->Seek(kKey, Side::kTarget, query, "", true).status().code(), Code::kUsage);
  query.text = "";
  const auto executed = ToJson(*viewer->Search(kKey, Side::kTarget, query));
  query.sort = HitSort::kError;
  EXPECT_EQ(ToJson(*viewer->Search(kKey, Side::kTarget, query)), executed);
}

TEST_F(OwnFile, ExportHoldsAsMuchAsItMay) {
  const auto all = viewer->Export(key.file, {{}, {}, 1 << 20});
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->graphs, 1u);
  EXPECT_EQ(all->nodes, 10u);
  EXPECT_EQ(all->details, 10u);
  const auto some = viewer->Export(key.file, {{}, {}, 1});
  EXPECT_EQ(some->details, 2u) << "the worst node and its partner";
  EXPECT_NE(some->json.find(R"("flow":[[1,0,0,0,95]])"), std::string::npos) << some->json;
  EXPECT_EQ(viewer->Export(key.file, {{}, {7}, 1}).status().code(), Code::kBadInput);
}

TEST_F(OwnFile, DamagedTablesAreErrorsOrPassedOver) {
  const std::string path = dir.Path("out") + "/" + key.file;
  RunSql(path,
         "UPDATE msprobe_flow SET edges = x'ffffff', count = 99; UPDATE msprobe_execution SET nodes = -5;"
         "UPDATE msprobe_precision SET error = 'text', units = x'00'; DELETE FROM msprobe_subtrees;"
         "UPDATE msprobe_findings SET node = 1 << 60, kind = 'unheard of';");
  const auto links = viewer->Links(key, Side::kTarget, "Torch.b.0.forward");
  ASSERT_TRUE(links.ok()) << links.status().message();
  EXPECT_TRUE(links->producers.empty());
  EXPECT_EQ(links->precision->error, std::nullopt);
  EXPECT_TRUE(viewer->Matrix(key.file)->empty());
  EXPECT_TRUE(viewer->FindingsOf(key).ok());
  EXPECT_TRUE(viewer->Layers(key).ok());
  RunSql(path, "DROP TABLE msprobe_flow; CREATE TABLE msprobe_flow (other);");
  EXPECT_FALSE(viewer->Links(key, Side::kTarget, "Torch.b.0.forward").ok());
  EXPECT_TRUE(viewer->Node(key, Side::kTarget, "Torch.b.0.forward").ok());
}

}  // namespace
}  // namespace msprobe::view
