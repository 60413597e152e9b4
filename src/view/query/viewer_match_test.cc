// Matching by hand: what it does to the graph, what is refused, what is kept on disk.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "graph/build/visualize.h"
#include "graph/graph_test_files.h"
#include "view/query/recompare.h"
#include "view/query/view_json.h"
#include "view/query/viewer.h"
#include "view/test_db.h"

namespace msprobe::view {
namespace {

const GraphAddress kComparedKey{"c.vis.db", 0, 0};
constexpr char kA[] = "Module.a.Linear.forward.0", kB[] = "Module.b.Linear.forward.0";

std::string Tensor(const std::string& name, double norm) {
  return "\"" + name +
         "\": {\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": \"[2, 3]\", \"Max\": \"1.5\", " +
         "\"Min\": \"-2.0\", \"Mean\": \"0.25\", \"Norm\": \"" + std::to_string(norm) +
         "\", \"requires_grad\": \"True\"}";
}
std::string Input(const std::string& node) { return "{" + Tensor(node + ".input.0", 3) + "}"; }
std::string NormOutput(const std::string& node, double norm) { return "{" + Tensor(node + ".output.0", norm) + "}"; }

TestNode Node(int order, const std::string& name, const std::string& type, const std::string& up, double norm,
              const std::string& partner = "", const std::string& precision = "NULL") {
  return {order, name, type, up, precision, partner, "NULL", Input(name), NormOutput(name, norm)};
}

// On each side a layer of its own name with a call in it, both directions, and one call that is matched in the file.
void MakeDb(const std::string& path, const std::string& type = "compare", const std::string& task = "summary") {
  std::string sql = SchemaSql() + ConfigSql(type, task);
  const auto side = [&](const std::string& source, const std::string& layer, const std::string& call, double norm,
                        const std::string& precision) {
    const std::string fwd = "Module." + layer + ".Linear.forward.0", bwd = "Module." + layer + ".Linear.backward.0";
    for (const TestNode& n :
         {Node(0, "Functional.linear." + call + ".forward", "1", fwd, norm), Node(1, fwd, "0", "DefaultModel", norm),
          Node(2, "Torch.add.0.forward", "1", "DefaultModel", norm, "Torch.add.0.forward", precision),
          Node(3, "Functional.linear." + call + ".backward", "1", bwd, 4), Node(4, bwd, "0", "DefaultModel", 4),
          TestNode{5, "DefaultModel", "0", "", "NULL", "DefaultModel"}}) {
      sql += NodeSql(n, source);
    }
  };
  side("NPU", "a", "0", 9, "1");
  side("Bench", "b", "7", 4, "NULL");
  RunSql(path, "BEGIN;" + sql + "COMMIT;");
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string Field(const ViewRow& row, const std::string& key) {
  for (const auto& [name, value] : row.values)
    if (name == key) return value;
  return "-";
}

struct MatchTest : testing::Test {
  void SetUp() override {
    MakeDb(dir / "c.vis.db");
    Reopen();
  }
  void Reopen() {
    auto opened = Viewer::Open(dir.path());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    viewer = *std::move(opened);
  }
  MatchChange Change(MatchAction action, const MatchRequest& request) {
    auto change = viewer->ChangeMatches(kComparedKey, action, request);
    EXPECT_TRUE(change.ok()) << change.status().message();
    return change.ok() ? *std::move(change) : MatchChange();
  }
  static MatchRequest Pair(const std::string& target, const std::string& golden, bool descendants = false) {
    MatchRequest request;
    request.target = target;
    request.golden = golden;
    request.descendants = descendants;
    return request;
  }
  static MatchRequest Config(const std::string& name) {
    MatchRequest request;
    request.config = name;
    return request;
  }
  SideSummary Counts() { return viewer->Summary(kComparedKey)->target; }
  TestDir dir;
  std::unique_ptr<Viewer> viewer;
};

TEST_F(MatchTest, APairIsComparedAndCounted) {
  const std::string before = ReadAll(dir / "c.vis.db");
  EXPECT_EQ(Counts().unmatched, 4u);
  EXPECT_EQ(Counts().error, 1u);
  const MatchChange change = Change(MatchAction::kAdd, Pair(kA, kB));
  EXPECT_EQ(change.refusal, MatchRefusal::kNone) << change.text;
  EXPECT_EQ(change.changed, 2u) << "the backward twins go with them";
  EXPECT_EQ(Counts().unmatched, 2u);
  EXPECT_EQ(Counts().error, 2u) << "the output is 1.25 times off, the input agrees";
  EXPECT_EQ(Counts().pass, 1u);
  const auto node = viewer->Node(kComparedKey, Side::kTarget, kA);
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->node.matched, kB);
  EXPECT_EQ(node->node.level, Verdict::kError);
  const ViewRow& row = node->record.outputs[0];
  EXPECT_EQ(Field(row, "Norm"), "9.000000");
  EXPECT_EQ(Field(row, "L2norm diff"), "5.0");
  EXPECT_EQ(Field(row, "NormRelativeErr"), "125.0%");
  EXPECT_EQ(Field(row, "Result"), "error");
  EXPECT_NE(Field(row, "Err_message").find("NormRelativeErr"), std::string::npos);
  EXPECT_EQ(Field(node->record.inputs[0], "Result"), "pass");
  EXPECT_EQ(viewer->Node(kComparedKey, Side::kGolden, kB)->partner->record.outputs[0].values, row.values);
  EXPECT_EQ(viewer->Children(kComparedKey, Side::kTarget, "", 0, 1)->node.counts.error, 2u);
  EXPECT_EQ((*viewer->Matrix("c.vis.db"))[0].error, 2u);

  EXPECT_EQ(ReadAll(dir / "c.vis.db"), before) << "the file itself is not written";
  struct stat st {};
  ASSERT_EQ(stat((dir / "c.vis.match.json").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777u, 0640u);
  Reopen();
  EXPECT_EQ(Counts().error, 2u) << "and is there the next time";
  EXPECT_EQ(viewer->Matches(kComparedKey)->made.size(), 2u);
}

TEST_F(MatchTest, ChangesAreTakenBackAndMadeAgain) {
  const auto depth = [&] {
    const auto state = viewer->Matches(kComparedKey);
    return std::pair(state->undo, state->redo);
  };
  EXPECT_EQ(Change(MatchAction::kUndo, {}).refusal, MatchRefusal::kNoChange);
  Change(MatchAction::kAdd, Pair(kA, kB, true));
  Change(MatchAction::kRemove, Pair("Torch.add.0.forward", ""));
  EXPECT_EQ(depth(), std::pair(size_t{2}, size_t{0}));
  EXPECT_EQ(Counts().unmatched, 1u);
  EXPECT_EQ(Change(MatchAction::kUndo, {}).changed, 1u);
  EXPECT_EQ(Counts().unmatched, 0u);
  EXPECT_EQ(Change(MatchAction::kUndo, {}).changed, 4u);
  EXPECT_EQ(Counts().unmatched, 4u);
  EXPECT_EQ(Change(MatchAction::kUndo, {}).refusal, MatchRefusal::kNoChange);
  EXPECT_EQ(depth(), std::pair(size_t{0}, size_t{2}));
  EXPECT_EQ(Change(MatchAction::kRedo, {}).changed, 4u);
  EXPECT_EQ(Counts().error, 3u) << "and compared again";
  // A new change: what was taken back before it is gone.
  Change(MatchAction::kRemove, Pair(kA, ""));
  EXPECT_EQ(depth(), std::pair(size_t{2}, size_t{0}));
  EXPECT_EQ(Change(MatchAction::kRedo, {}).refusal, MatchRefusal::kNoChange);
  MatchRequest stale;
  stale.revision = "of yesterday";
  EXPECT_EQ(Change(MatchAction::kUndo, stale).refusal, MatchRefusal::kStale);
  EXPECT_EQ(viewer->Matches(kComparedKey)->undo, 2u);
}

TEST_F(MatchTest, NothingIsTakenBackOfWhatSomebodyElseChanged) {
  Change(MatchAction::kAdd, Pair(kA, kB));
  const auto other = *Viewer::Open(dir.path());
  ASSERT_TRUE(other->ChangeMatches(kComparedKey, MatchAction::kRemove, Pair("Torch.add.0.forward", "")).ok());
  EXPECT_EQ(viewer->Matches(kComparedKey)->undo, 0u);
  EXPECT_EQ(Change(MatchAction::kUndo, {}).refusal, MatchRefusal::kNoChange);
  EXPECT_EQ(viewer->Matches(kComparedKey)->made.size(), 2u) << "nothing was changed";
}

TEST_F(MatchTest, PartnersAreSuggestedByNameAndShape) {
  const auto of = [&](Side side, const std::string& name) {
    const auto found = viewer->SuggestPartners(kComparedKey, side, name);
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found.ok() ? *found : PartnerSuggestions();
  };
  const PartnerSuggestions layer = of(Side::kTarget, kA);
  ASSERT_EQ(layer.list.size(), 1u) << "modules of the same direction without a partner";
  EXPECT_EQ(layer.list[0].node.name, kB);
  EXPECT_EQ(layer.list[0].guess.same_shapes, true);
  EXPECT_NE(ToJson(layer).find(R"("name_likeness":)"), std::string::npos);
  const PartnerSuggestions call = of(Side::kGolden, "Functional.linear.7.backward");
  ASSERT_FALSE(call.list.empty());
  EXPECT_EQ(call.list[0].node.name, "Functional.linear.0.backward");
  EXPECT_EQ(call.list[0].guess.name, 1);
  EXPECT_TRUE(of(Side::kTarget, "Torch.add.0.forward").list.empty()) << "it has a partner";
  Change(MatchAction::kAdd, Pair(kA, kB));
  EXPECT_TRUE(of(Side::kTarget, "Functional.linear.0.forward").list.at(0).guess.same_place);
  EXPECT_EQ(viewer->SuggestPartners(kComparedKey, Side::kTarget, "nope").status().code(), Code::kBadInput);
}

TEST(NameLikeness, GoesByWordsInTheirOrder) {
  const std::string name = "Module.model.layers.1.mlp.up_proj.Linear.forward.0";
  EXPECT_EQ(NameLikeness(name, name), 1);
  EXPECT_EQ(NameLikeness(name, "Module.model.layers.1.mlp.up_proj.Linear.forward.3"), 1) << "calls are counted anyhow";
  const double renamed = NameLikeness(name, "Module.model.layers.1.mlp.up_proj_new.Linear.forward.0");
  const double other_layer = NameLikeness(name, "Module.model.layers.2.mlp.up_proj.Linear.forward.0");
  EXPECT_GT(renamed, other_layer);
  EXPECT_GT(other_layer, NameLikeness(name, "Module.model.embed.Embedding.forward.0"));
  EXPECT_EQ(NameLikeness(name, ""), 0);
  EXPECT_LT(NameLikeness(name, "Functional.silu.3.forward"), 0.2);
}

TEST_F(MatchTest, DescendantsGoWithIt) {
  EXPECT_EQ(Change(MatchAction::kAdd, Pair(kA, kB, true)).changed, 4u);
  EXPECT_EQ(Counts().unmatched, 0u);
  EXPECT_EQ(viewer->Node(kComparedKey, Side::kTarget, "Functional.linear.0.backward")->node.matched,
            "Functional.linear.7.backward");
  EXPECT_EQ(Change(MatchAction::kRemove, Pair(kA, "", true)).changed, 4u);
  EXPECT_EQ(Counts().unmatched, 4u);
  EXPECT_EQ(Field(viewer->Node(kComparedKey, Side::kTarget, kA)->record.outputs[0], "Result"), "-");
  EXPECT_TRUE(viewer->Matches(kComparedKey)->cancelled.empty()) << "what was made by hand leaves no trace";
}

TEST_F(MatchTest, WhatDoesNotGoIsRefused) {
  const auto refused = [&](MatchAction action, const MatchRequest& request) {
    const MatchChange change = Change(action, request);
    EXPECT_NE(change.text, "");
    return change.refusal;
  };
  EXPECT_EQ(refused(MatchAction::kAdd, Pair("Torch.add.0.forward", "Functional.linear.7.forward")),
            MatchRefusal::kTaken);
  EXPECT_EQ(refused(MatchAction::kAdd, Pair("Functional.linear.0.forward", "Torch.add.0.forward")),
            MatchRefusal::kTaken);
  EXPECT_EQ(refused(MatchAction::kAdd, Pair(kA, "Functional.linear.7.forward")), MatchRefusal::kTypes);
  EXPECT_EQ(refused(MatchAction::kRemove, Pair(kA, "")), MatchRefusal::kNotMatched);
  EXPECT_EQ(refused(MatchAction::kSave, {}), MatchRefusal::kNothing);
  MatchRequest stale = Pair(kA, kB);
  stale.revision = "1-2-3-4";
  EXPECT_EQ(refused(MatchAction::kAdd, stale), MatchRefusal::kStale);
  stale.revision = viewer->Matches(kComparedKey)->revision;
  EXPECT_EQ(Change(MatchAction::kAdd, stale).changed, 2u);
  EXPECT_EQ(refused(MatchAction::kRemove, stale), MatchRefusal::kStale);
  for (const MatchRequest& request : {Pair("absent", kB), Pair(kA, "absent")})
    EXPECT_EQ(viewer->ChangeMatches(kComparedKey, MatchAction::kAdd, request).status().code(), Code::kBadInput);
  EXPECT_EQ(viewer->ChangeMatches(kComparedKey, MatchAction::kAdd, Pair(kA, "")).status().code(), Code::kUsage);
  EXPECT_EQ(viewer->ChangeMatches({"c.vis.db", 5, 0}, MatchAction::kAdd, Pair(kA, kB)).status().code(),
            Code::kBadInput);

  MakeDb(dir / "tensor.vis.db", "compare", "unknown");
  MakeDb(dir / "single.vis.db", "build", "");
  EXPECT_EQ(viewer->ChangeMatches({"tensor.vis.db", 0, 0}, MatchAction::kAdd, Pair(kA, kB))->refusal,
            MatchRefusal::kTensor);
  EXPECT_EQ(viewer->ChangeMatches({"single.vis.db", 0, 0}, MatchAction::kAdd, Pair(kA, kB))->refusal,
            MatchRefusal::kSingle);
  EXPECT_EQ(viewer->Matches({"tensor.vis.db", 0, 0})->refusal, MatchRefusal::kTensor);
}

TEST_F(MatchTest, AMatchOfTheFileIsCancelledAndTakenBack) {
  const std::string before = ToJson(*viewer->Node(kComparedKey, Side::kTarget, "Torch.add.0.forward"));
  EXPECT_EQ(Change(MatchAction::kRemove, Pair("Torch.add.0.forward", "")).changed, 1u);
  EXPECT_EQ(Counts().error, 0u);
  EXPECT_EQ(Counts().unmatched, 5u);
  EXPECT_FALSE(viewer->Summary(kComparedKey)->first_error.has_value());
  EXPECT_EQ(viewer->Matches(kComparedKey)->cancelled.size(), 1u);
  EXPECT_EQ(Change(MatchAction::kAdd, Pair("Torch.add.0.forward", "Torch.add.0.forward")).changed, 1u);
  EXPECT_EQ(ToJson(*viewer->Node(kComparedKey, Side::kTarget, "Torch.add.0.forward")), before);
  EXPECT_TRUE(viewer->Matches(kComparedKey)->cancelled.empty());
  Change(MatchAction::kRemove, Pair("Torch.add.0.forward", ""));
  EXPECT_EQ(Change(MatchAction::kAdd, Pair("Torch.add.0.forward", "Functional.linear.7.forward")).changed, 1u);
  EXPECT_EQ(viewer->Node(kComparedKey, Side::kTarget, "Torch.add.0.forward")->node.matched,
            "Functional.linear.7.forward");
}

TEST_F(MatchTest, ConfigurationFiles) {
  Change(MatchAction::kAdd, Pair(kA, kB));
  EXPECT_EQ(Change(MatchAction::kSave, {}).config, "c_0_0.vis.config");
  EXPECT_EQ(ReadAll(dir / "c_0_0.vis.config"),
            "{\n    \"Module.a.Linear.backward.0\": \"Module.b.Linear.backward.0\",\n"
            "    \"Module.a.Linear.forward.0\": \"Module.b.Linear.forward.0\"\n}");
  Change(MatchAction::kRemove, Pair(kA, ""));
  EXPECT_EQ(viewer->Matches(kComparedKey)->configs, std::vector<std::string>{"c_0_0.vis.config"});
  EXPECT_EQ(Change(MatchAction::kApply, Config("c_0_0.vis.config")).changed, 2u);
  Change(MatchAction::kRemove, Pair(kA, ""));

  // As the earlier tool writes it, with a pair that does not fit, one of other kinds and one that is not there.
  dir.Write("old.vis.config", std::string("{\"") + kA + "\": \"" + kB + "\", \"" + kB + "\": \"" + kA +
                                  "\", \"Torch.add.0.forward\": \"Functional.linear.7.forward\", "
                                  "\"Functional.linear.0.forward\": \"Module.b.Linear.backward.0\", \"x\": \"y\"}");
  const MatchChange change = Change(MatchAction::kApply, Config("old.vis.config"));
  EXPECT_EQ(change.changed, 1u);
  ASSERT_EQ(change.skipped.size(), 3u);
  EXPECT_EQ(change.skipped[0].refusal, MatchRefusal::kTaken);
  EXPECT_EQ(change.skipped[1].refusal, MatchRefusal::kTypes);
  EXPECT_EQ(change.skipped[2].refusal, MatchRefusal::kAbsent);
  EXPECT_EQ(viewer->Node(kComparedKey, Side::kTarget, kA)->node.matched, kB);

  // The other way round first, and both names are on both sides: what is wanted is made all the same.
  Change(MatchAction::kRemove, Pair("Torch.add.0.forward", ""));
  const std::string linear = "Functional.linear.7.forward";
  dir.Write("turned.vis.config",
            "{\"" + linear + "\": \"Torch.add.0.forward\", \"Torch.add.0.forward\": \"" + linear + "\"}");
  EXPECT_EQ(Change(MatchAction::kApply, Config("turned.vis.config")).skipped_total, 0u);
  EXPECT_EQ(viewer->Node(kComparedKey, Side::kTarget, "Torch.add.0.forward")->node.matched, linear);

  dir.Write("bad.vis.config", "[1]");
  dir.Write("sub/other.vis.config", "{}");
  for (const char* name : {"", "absent.vis.config", "../c.vis.config", "sub/other.vis.config", "c.vis.db",
                           ".vis.config", "bad.vis.config", "/etc/passwd"}) {
    EXPECT_FALSE(viewer->ChangeMatches(kComparedKey, MatchAction::kApply, Config(name)).ok()) << name;
  }
}

TEST_F(MatchTest, AFileThatIsNotOursIsLeftAlone) {
  dir.Write("c.vis.match.json", "{\"somebody\": \"else\"}");
  EXPECT_EQ(Counts().unmatched, 4u) << "looking still works";
  EXPECT_NE(viewer->Matches(kComparedKey)->problem, "");
  EXPECT_EQ(viewer->ChangeMatches(kComparedKey, MatchAction::kAdd, Pair(kA, kB)).status().code(), Code::kBadInput);
  EXPECT_EQ(ReadAll(dir / "c.vis.match.json"), "{\"somebody\": \"else\"}");

  std::filesystem::remove(dir / "c.vis.match.json");
  dir.Write("elsewhere", R"({"msprobe_matches": 1, "graphs": [{"step": 0, "rank": 0, "made": {"a": "b"}}]})");
  std::filesystem::create_symlink(dir / "elsewhere", dir / "c.vis.match.json");
  EXPECT_NE(viewer->Matches(kComparedKey)->problem, "") << "links are not followed";

  std::filesystem::remove(dir / "c.vis.match.json");
  dir.Write("c.vis.match.json",
            R"({"msprobe_matches": 1, "graphs": [{"step": 0, "rank": 0, "made": {"a": "b", "DefaultModel": "x",)"
            R"( "Torch.add.0.forward": "Module.b.Linear.forward.0"}, "cancelled": ["nothing"]}]})");
  EXPECT_EQ(Counts().unmatched, 4u) << "what does not fit the graph is left out";
}

// The same figures and verdicts as graph_visualize gives, to the last digit.
void ExpectTheFigures(const GraphSettings& settings, const GraphAddress& where, size_t at_least) {
  const auto made = VisualizeGraph(settings);
  ASSERT_TRUE(made.ok()) << made.status().message();
  auto viewer = *Viewer::Open(settings.output);
  const GraphAddress key{viewer->Files()->files[0].file, where.step, where.rank};
  const auto mode = MatchingMode(*viewer->Config(key.file));
  ASSERT_TRUE(mode);
  size_t compared = 0;
  const auto found = viewer->Search(key, Side::kTarget, {"", NodeFilter::kAny, false, 0, 5000});
  ASSERT_TRUE(found.ok());
  for (const SearchHit& hit : found->hits) {
    const NodeSummary& n = hit.node;
    const auto node = viewer->Node(key, Side::kTarget, n.name);
    if (!node->partner || n.level == Verdict::kNone) continue;
    // Of an item without a maximum the file keeps nothing, its dtype and shape neither.
    const NodeRecord& other = node->partner->record;
    const auto lost = [](const ViewRow& row) {
      const auto has = [&](std::string_view field_name) {
        return std::any_of(row.values.begin(), row.values.end(),
                           [&](const auto& field) { return field.first == field_name; });
      };
      return !has("dtype") || !has("shape");
    };
    if (std::any_of(other.inputs.begin(), other.inputs.end(), lost) ||
        std::any_of(other.outputs.begin(), other.outputs.end(), lost)) {
      continue;
    }
    ++compared;
    NodeRecord again = node->record;
    EXPECT_EQ(Recompare(*mode, n.name, &again, node->partner->record), n.level) << n.name;
    for (const auto& [target, golden] :
         {std::pair{&again.inputs, &node->record.inputs}, std::pair{&again.outputs, &node->record.outputs}}) {
      ASSERT_EQ(target->size(), golden->size());
      for (size_t i = 0; i < target->size(); ++i) EXPECT_EQ((*target)[i].values, (*golden)[i].values) << n.name << i;
    }
  }
  EXPECT_GE(compared, at_least);
}

TEST(Recompare, AgreesWithStatisticsOfOddValues) {
  DumpDir dir;
  const std::string construct =
      R"("Torch.a.0.forward": "Module.m.M.forward.0", "Module.m.M.forward.0": null, "Torch.b.0.forward": null)";
  const auto data = [](double norm, double max) {
    return OpJson("Torch.a.0.forward", TensorJson(1, -0.1, 1.0 / 3, 2), TensorJson(max, 1e-9, 0.5, norm)) + "," +
           OpJson("Torch.b.0.forward", "{\"type\": \"int\", \"value\": " + std::to_string(static_cast<int>(norm)) + "}",
                  TensorJson(1, 0, 0.5, 2)) +
           "," +
           OpJson("Module.m.M.forward.0", TensorJson(1e30, 0, 0.5, 2) + ", null", TensorJson(1, 0, 0.1 + norm, 0));
  };
  GraphSettings settings;
  settings.target = dir.Rank("a", construct, data(9.1, 3));
  settings.golden = dir.Rank("b", construct, data(2.7, 3));
  settings.output = dir.Path("out");
  ExpectTheFigures(settings, {"", 0, 0}, 2);
}

TEST(Recompare, AgreesWithRecordedRuns) {
  for (const char* name : {"checksums", "micro_steps"}) {
    TestDir dir;
    const std::string golden = std::string(MSPROBE_SOURCE_DIR) + "/tests/golden/graph/" + name;
    GraphSettings settings;
    settings.target = golden + "/target";
    settings.golden = golden + "/golden";
    settings.output = dir / "out";
    ExpectTheFigures(settings, {"", 0, 0}, 5);
  }
}

}  // namespace
}  // namespace msprobe::view
