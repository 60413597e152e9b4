#include "view/query/viewer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "view/query/view_json.h"
#include "view/test_db.h"

namespace msprobe::view {
namespace {

const GraphAddress kGraphKey{"c.vis.db", 0, 0};

struct ViewerTest : testing::Test {
  void SetUp() override {
    MakeCompareDb(dir / "c.vis.db");
    auto opened = Viewer::Open(dir.path());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    viewer = *std::move(opened);
  }
  TestDir dir;
  std::unique_ptr<Viewer> viewer;
};

TEST_F(ViewerTest, Config) {
  auto config = viewer->Config("c.vis.db");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(
      ToJson(*config),
      R"({"graph_type":"compare","task":"summary","micro_steps":2,"overflow_check":true,"verdicts":false,"colors":{"#FF704D":)"
      R"({"value":[0.6,1],"description":"d","accuracy_level":"error"}},"tool_tip":{"Max diff":"difference of the )"
      R"(maxima"},"ranks":[0,1],"steps":[0],"target":"","golden":""})");
}

TEST_F(ViewerTest, Summary) {
  auto summary = viewer->Summary(kGraphKey);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->target.nodes, 7u);
  EXPECT_EQ(summary->target.pass, 1u) << "a collection of calls is no op";
  EXPECT_EQ(summary->target.warning, 1u);
  EXPECT_EQ(summary->target.error, 1u);
  EXPECT_EQ(summary->target.unmatched, 1u);
  EXPECT_EQ(summary->target.none, 2u);
  ASSERT_TRUE(summary->golden.has_value());
  EXPECT_EQ(summary->golden->nodes, 6u);
  EXPECT_EQ(summary->golden->none, 5u);
  EXPECT_EQ(summary->rulings, std::nullopt);
  ASSERT_TRUE(summary->first_error.has_value());
  EXPECT_EQ(summary->first_error->name, "Functional.linear.0.forward");
  EXPECT_EQ(summary->first_warning->name, "Functional.relu.0.forward");
  EXPECT_EQ(summary->first_overflow->name, "Functional.linear.0.forward");
  EXPECT_EQ(summary->critical, 1u);
  EXPECT_EQ(summary->high, 1u);
}

TEST_F(ViewerTest, ChildrenOfTheRootWithCounts) {
  auto list = viewer->Children(kGraphKey, Side::kTarget, "", 0, 1000);
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->node.name, "DefaultModel");
  EXPECT_EQ(list->node.counts.error, 1u);
  EXPECT_EQ(list->node.counts.warning, 1u);
  EXPECT_EQ(list->node.counts.unmatched, 1u);
  EXPECT_EQ(list->node.counts.overflow, 2u);
  ASSERT_EQ(list->children.size(), 3u);
  EXPECT_EQ(list->children[0].name, "Module.blocks.0.fc1.Linear.forward.0");
  EXPECT_EQ(list->children[0].label, list->children[0].name);
  EXPECT_EQ(list->children[0].matched, list->children[0].name);
  EXPECT_EQ(list->children[0].counts.error, 1u);
  EXPECT_EQ(list->children[1].matched, std::nullopt);
  EXPECT_EQ(list->children[2].type, 9);
  auto page = viewer->Children(kGraphKey, Side::kTarget, "", 1, 1);
  ASSERT_EQ(page->children.size(), 1u);
  EXPECT_NE(
      ToJson(*page, /*rows=*/true)
          .find(
              R"("total":3,"children":[["Module.head.Linear.forward.0",5,0,0,3,null,null,null,0,0,0,1,0,null,0,0]]})"),
      std::string::npos)
      << ToJson(*page, true);
  page = viewer->Children(kGraphKey, Side::kTarget, "Module.blocks.0.fc1.Linear.forward.0", 0, 1);
  EXPECT_NE(ToJson(*page, /*rows=*/true)
                .find(R"([["Functional.linear.0.forward",3,1,0,0,1,"critical",true,0,1,0,0,1,null,0,0]])"),
            std::string::npos)
      << ToJson(*page, true);
  page = viewer->Children(kGraphKey, Side::kTarget, "", 1, 1);
  EXPECT_EQ(page->total, 3u);
  EXPECT_EQ(page->children[0].name, "Module.head.Linear.forward.0");
}

TEST_F(ViewerTest, NodeJson) {
  auto node = viewer->Node(kGraphKey, Side::kTarget, "Functional.linear.0.forward");
  ASSERT_TRUE(node.ok()) << node.status().message();
  EXPECT_EQ(
      ToJson(*node),
      R"({"node":{"name":"Functional.linear.0.forward","label":"linear.0.forward","type":1,"children":0,"order":0,)"
      R"("precision":1,"overflow":"critical","verdict":null,"matched":"Functional.linear.0.forward","micro_step":0,)"
      R"("counts":{"error":1,"warning":0,"unmatched":0,"overflow":1,"suspicious":0,"bug":0}},"inputs":[{"name":"Functional.linear.0.forward.)"
      R"(input.0","values":{"type":"torch.Tensor","Max":"0.25","Min":"1.0000000000000001","flag":"True","none":"null",)"
      R"("bad":"NaN","list":"[\"1\",\"2\"]"}}],"outputs":[{"name":"out.0","values":{"Result":"error"}}],)"
      R"("stack":["File a.py, line 1, in f"],"merge_info":[],"communication":null,"partner":{"side":"Bench","node":)"
      R"({"name":"Functional.linear.0.forward","label":"linear.0.forward","type":1,"children":0,"order":0,)"
      R"("precision":null,"overflow":null,"verdict":null,"matched":"Functional.linear.0.forward","micro_step":0,)"
      R"("counts":{"error":0,"warning":0,"unmatched":0,"overflow":0,"suspicious":0,"bug":0}},"inputs":[{"name":"Functional.linear.0.forward.)"
      R"(input.0","values":{"type":"torch.Tensor","Max":"0.25","Min":"1.0000000000000001","flag":"True","none":"null",)"
      R"("bad":"NaN","list":"[\"1\",\"2\"]"}}],"outputs":[],"stack":["File b.py, line 2, in g"],"merge_info":[]}})");
}

TEST_F(ViewerTest, PathAndUnknownNames) {
  auto path = viewer->Path(kGraphKey, Side::kGolden, "Functional.relu.0.forward");
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(PathToJson(*path),
            R"({"path":["DefaultModel","Module.blocks.0.fc1.Linear.forward.0","Functional.relu.0.forward"]})");
  EXPECT_EQ(viewer->Path(kGraphKey, Side::kTarget, "nope").status().code(), Code::kBadInput);
  EXPECT_EQ(viewer->Node(kGraphKey, Side::kGolden, "Module.head.Linear.forward.0").status().code(), Code::kBadInput);
  EXPECT_EQ(viewer->Summary({"c.vis.db", 7, 0}).status().code(), Code::kBadInput);
  EXPECT_EQ(viewer->Summary({"d.vis.db", 0, 0}).status().code(), Code::kBadInput);
}

TEST_F(ViewerTest, Search) {
  SearchQuery query;
  query.text = "LINEAR";
  auto hits = viewer->Search(kGraphKey, Side::kTarget, query);
  ASSERT_TRUE(hits.ok());
  EXPECT_EQ(hits->total, 3u);
  EXPECT_EQ(hits->hits[0].node.name, "Functional.linear.0.forward");
  EXPECT_EQ(hits->hits[0].module, "Module.blocks.0.fc1.Linear.forward.0");
  query.limit = 1;
  query.offset = 1;
  hits = viewer->Search(kGraphKey, Side::kTarget, query);
  EXPECT_EQ(hits->total, 3u);
  ASSERT_EQ(hits->hits.size(), 1u);
  EXPECT_EQ(hits->hits[0].node.name, "Module.blocks.0.fc1.Linear.forward.0");
  EXPECT_EQ(hits->hits[0].module, "") << "it is a module itself";
  SearchQuery leaves;
  leaves.leaves_only = true;
  EXPECT_EQ(viewer->Search(kGraphKey, Side::kTarget, leaves)->total, 4u);
  const std::pair<const char*, uint64_t> levels[] = {{"", 7},
                                                     {"pass", 1},
                                                     {"warning", 1},
                                                     {"error", 1},
                                                     {"unmatched", 1},
                                                     {"none", 2},
                                                     {"medium", 0},
                                                     {"high", 1},
                                                     {"critical", 1},
                                                     {"overflow", 2},
                                                     {"pass,error", 2},
                                                     {"error,pass,error", 2},
                                                     {"unmatched,none", 3},
                                                     {"warning,critical,unmatched", 3},
                                                     {"unjudged", 5},
                                                     {"bug,suspicious,inherited,round-off,bit-equal", 0},
                                                     {"pass,warning,error,unmatched,none", 6}};
  for (const auto& [level, total] : levels) {
    SearchQuery by_level;
    by_level.filter = *ParseNodeFilter(level);
    EXPECT_EQ(viewer->Search(kGraphKey, Side::kTarget, by_level)->total, total) << level;
  }
  for (const char* bad : {"bad", "error,", ",error", "error,,pass", "error, pass", ","}) {
    EXPECT_EQ(ParseNodeFilter(bad), std::nullopt) << bad;
  }
}

TEST_F(ViewerTest, SearchForWordsAndFieldsOnTheSideThatItNames) {
  SearchQuery query;
  query.text = "linear -module";
  auto hits = viewer->Search(kGraphKey, Side::kTarget, query);
  ASSERT_TRUE(hits.ok());
  EXPECT_EQ(hits->total, 1u);
  EXPECT_EQ(hits->words, (std::vector<std::string>{"linear"}));
  EXPECT_EQ(hits->side, Side::kTarget);
  query.text = "verdict:missing";
  EXPECT_EQ(viewer->Search(kGraphKey, Side::kTarget, query)->total, 1u);
  query.text = "type:module side:golden";
  hits = viewer->Search(kGraphKey, Side::kTarget, query);
  EXPECT_EQ(hits->side, Side::kGolden);
  EXPECT_EQ(hits->total, 2u);
  const std::string json = ToJson(*hits);
  EXPECT_EQ(json.find(R"({"side":"Bench","rank":0,"total":2,"hits":[{"name":"Module.blocks.0.fc1.Linear.forward.0",)"),
            0u);
  const auto next = viewer->Seek(kGraphKey, Side::kTarget, query, "", true);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->side, Side::kGolden);
  EXPECT_EQ(next->node->name, "Module.blocks.0.fc1.Linear.forward.0");
  query.text = "colour:red";
  EXPECT_EQ(viewer->Search(kGraphKey, Side::kTarget, query).status().code(), Code::kUsage);
  EXPECT_EQ(viewer->Seek(kGraphKey, Side::kTarget, query, "", true).status().code(), Code::kUsage);
}

TEST_F(ViewerTest, NothingIsWrittenAndTheFileMayChange) {
  // A file in WAL mode, as some tools leave it, in a directory that cannot be written to.
  RunSql(dir / "w.vis.db",
         "PRAGMA journal_mode=WAL;" + SchemaSql() + ConfigSql("build", "") + NodeSql({0, "DefaultModel", "0", ""}));
  chmod(dir.path().c_str(), 0550);
  EXPECT_EQ(viewer->Summary({"w.vis.db", 0, 0})->target.nodes, 1u);
  chmod(dir.path().c_str(), 0750);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 2);
  RunSql(dir / "w.vis.db", NodeSql({1, "Torch.add.0.forward", "1", "DefaultModel"}));
  EXPECT_EQ(viewer->Summary({"w.vis.db", 0, 0})->target.nodes, 2u);
  EXPECT_EQ(viewer->Summary({"w.vis.db", 0, 0})->target.unmatched, 0u) << "a single graph has no partners to miss";
  EXPECT_EQ(viewer->Children({"w.vis.db", 0, 0}, Side::kGolden, "", 0, 9).status().code(), Code::kBadInput);
}

TEST_F(ViewerTest, ManyThreadsManyGraphsSmallCache) {
  RunSql(dir / "c.vis.db",
         NodeSql({0, "DefaultModel", "0", ""}, "NPU", 0, 1) + NodeSql({0, "DefaultModel", "0", ""}, "NPU", 1, 1));
  auto small = Viewer::Open(dir.path(), 1);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const GraphAddress keys[] = {{"c.vis.db", 0, 0}, {"c.vis.db", 0, 1}, {"c.vis.db", 1, 1}};
        const auto summary = (*small)->Summary(keys[(t + i) % 3]);
        good += summary.ok() && summary->target.nodes == ((t + i) % 3 == 0 ? 7u : 1u);
        const auto node = (*small)->Node(kGraphKey, Side::kTarget, "Functional.linear.0.forward");
        good += node.ok() && node->record.inputs.size() == 1;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(good, 8 * 50 * 2);
}

TEST_F(ViewerTest, FilesListsWhatItCanReadAndSaysWhyNot) {
  dir.Write("sub/text.vis.db",
            "this is text, and long enough to be looked at as a database header by anyone who asks for it");
  dir.Write("sub/empty.vis.db", "");
  dir.Write("other.db", "");
  RunSql(dir / "sub/tables.vis.db",
         "CREATE TABLE tb_nodes(id TEXT); CREATE TABLE tb_stack(id TEXT); CREATE TABLE tb_config(id TEXT);");
  RunSql(dir / "sub/view.vis.db",
         "CREATE VIEW tb_nodes AS SELECT 1 AS id; CREATE TABLE tb_stack(id TEXT); CREATE TABLE tb_config(id TEXT);");
  RunSql(dir / "sub/noconfig.vis.db", SchemaSql());
  TestDir outside;
  MakeCompareDb(outside / "secret.vis.db");
  std::filesystem::create_symlink(outside / "secret.vis.db", dir / "link.vis.db");
  std::filesystem::create_directory_symlink(outside.path(), dir / "linked");
  std::filesystem::create_symlink("c.vis.db", dir / "inner.vis.db");
  auto list = viewer->Files();
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->root, dir.path());
  ASSERT_EQ(list->files.size(), 2u);
  EXPECT_EQ(list->files[0].file, "c.vis.db");
  EXPECT_EQ(list->files[1].file, "inner.vis.db");
  std::map<std::string, std::string> reasons;
  for (const auto& s : list->skipped) reasons[s.file] = s.reason.English();
  EXPECT_EQ(reasons.size(), 6u) << ToJson(*list);
  EXPECT_NE(reasons["sub/text.vis.db"].find("not a SQLite database"), std::string::npos) << reasons["sub/text.vis.db"];
  EXPECT_NE(reasons["sub/empty.vis.db"].find("not a graph database"), std::string::npos);
  EXPECT_NE(reasons["sub/tables.vis.db"].find("no such column"), std::string::npos) << reasons["sub/tables.vis.db"];
  EXPECT_NE(reasons["sub/view.vis.db"].find("not a graph database"), std::string::npos);
  EXPECT_NE(reasons["sub/noconfig.vis.db"].find("interrupted"), std::string::npos);
  EXPECT_NE(reasons["link.vis.db"].find("link out of the directory"), std::string::npos);
  EXPECT_EQ(viewer->Config("link.vis.db").status().code(), Code::kUsage);
  EXPECT_EQ(viewer->Config("linked/secret.vis.db").status().code(), Code::kUsage);
}

TEST_F(ViewerTest, FileThatEndsWithinItsLastPage) {
  std::filesystem::copy_file(dir / "c.vis.db", dir / "cut.vis.db");
  std::filesystem::resize_file(dir / "cut.vis.db", std::filesystem::file_size(dir / "c.vis.db") - 100);
  auto list = viewer->Files();
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->skipped.size(), 1u) << ToJson(*list);
  EXPECT_NE(list->skipped[0].reason.English().find("is damaged or still being written (it ends early)"),
            std::string::npos);
}

TEST_F(ViewerTest, NamesThatPointOutside) {
  for (const char* name : {"../x.vis.db", "/etc/passwd", "sub/../../x.vis.db", "..", ""}) {
    EXPECT_EQ(viewer->Config(name).status().code(), Code::kUsage) << name;
  }
  EXPECT_EQ(viewer->Config(std::string("c.vis.db\0.vis.db", 16)).status().code(), Code::kUsage);
  EXPECT_EQ(viewer->Config(std::string(5000, 'a') + ".vis.db").status().code(), Code::kUsage);
  EXPECT_EQ(viewer->Config("sub").status().code(), Code::kBadInput);
}

TEST_F(ViewerTest, OneFile) {
  MakeCompareDb(dir / "d e%?#.vis.db");
  auto one = Viewer::Open(dir / "d e%?#.vis.db");
  ASSERT_TRUE(one.ok());
  auto list = (*one)->Files();
  ASSERT_EQ(list->files.size(), 1u);
  EXPECT_EQ(list->files[0].file, "d e%?#.vis.db");
  EXPECT_TRUE((*one)->Summary({"d e%?#.vis.db", 0, 0}).ok());
  EXPECT_EQ((*one)->Config("c.vis.db").status().code(), Code::kBadInput);
  EXPECT_EQ(Viewer::Open(dir / "absent").status().code(), Code::kBadInput);
  dir.Write("x.txt", "x");
  EXPECT_EQ(Viewer::Open(dir / "x.txt").status().code(), Code::kBadInput);
}

TEST(Viewer, FilesOfEarlierToolsAndOddColumns) {
  TestDir dir;
  // Before the is_distributed column: md5 stored 1 for equal; other values were anything between 0 and 1.
  const std::string drop = "DROP INDEX index3; ALTER TABLE tb_nodes DROP COLUMN is_distributed;";
  RunSql(dir / "md5.vis.db", SchemaSql() + ConfigSql("compare", "md5") +
                                 NodeSql({0, "good", "1", "DefaultModel", "1", "good"}) +
                                 NodeSql({0, "good", "1", ""}, "Bench") +
                                 NodeSql({1, "DefaultModel", "0", "", "'text'", "DefaultModel"}) + drop);
  RunSql(dir / "sum.vis.db",
         SchemaSql() + ConfigSql() +
             "UPDATE tb_config SET rank_list='bad', step_list='', node_colors='{', tool_tip=x'ff00';" +
             NodeSql({0, "a", "1", "DefaultModel", "0.27", "b"}, "NPU", 4, 2) +
             NodeSql({1, "c", "1", "DefaultModel", "0.31", "b"}, "NPU", 4, 2) +
             NodeSql({2, "DefaultModel", "0", "", "NULL", ""}, "NPU", 4, 2) +
             NodeSql({0, "b", "1", "", "NULL", "a", "NULL", "{{{", "\x01"}, "Bench", 4, 2) + drop);
  auto viewer = *Viewer::Open(dir.path());
  auto md5 = viewer->Summary({"md5.vis.db", 0, 0});
  ASSERT_TRUE(md5.ok()) << md5.status().message();
  EXPECT_EQ(md5->target.pass, 1u);
  EXPECT_EQ(md5->target.error, 0u);
  auto config = viewer->Config("sum.vis.db");
  EXPECT_EQ(config->ranks, std::vector<int64_t>{2});
  EXPECT_EQ(config->steps, std::vector<int64_t>{4});
  EXPECT_EQ(config->colors_json + config->tool_tip_json, "");
  auto sum = viewer->Summary({"sum.vis.db", 4, 2});
  EXPECT_EQ(sum->target.pass, 1u);
  EXPECT_EQ(sum->target.warning, 1u);
  auto bad = viewer->Node({"sum.vis.db", 4, 2}, Side::kGolden, "b");
  ASSERT_TRUE(bad.ok());
  EXPECT_TRUE(bad->record.inputs.empty());
}

TEST(Viewer, DamagedFileIsAnErrorNotACrash) {
  TestDir dir;
  MakeCompareDb(dir / "ok.vis.db");
  std::ifstream in(dir / "ok.vis.db", std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  const auto look = [&](const std::string& text) {
    dir.Write("bad.vis.db", text);
    auto viewer = *Viewer::Open(dir.path());
    EXPECT_TRUE(viewer->Files().ok());
    const GraphAddress key{"bad.vis.db", 0, 0};
    for (const Status& status :
         {viewer->Summary(key).status(), viewer->Children(key, Side::kTarget, "", 0, 100).status(),
          viewer->Node(key, Side::kTarget, "Functional.linear.0.forward").status()}) {
      EXPECT_TRUE(status.ok() || !status.message().empty());
    }
  };
  for (size_t cut = 512; cut < good.size(); cut += 4096) look(good.substr(0, cut));
  for (unsigned seed = 1; seed < 60; ++seed) {
    std::string bad = good;
    for (unsigned k = 0, x = seed * 2654435761u; k < 40; ++k, x = x * 1664525u + 1013904223u) {
      bad[100 + x % (bad.size() - 100)] = static_cast<char>(x >> 24);
    }
    look(bad);
  }
}

}  // namespace
}  // namespace msprobe::view
