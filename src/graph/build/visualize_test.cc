#include "graph/build/visualize.h"

#include <sys/stat.h>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "graph/graph_test_files.h"
#include "graph/test_query.h"
#include "graph/tree/graph_plan.h"

namespace msprobe {
namespace {

size_t FileCount(const std::string& dir) {
  size_t n = 0;
  if (std::filesystem::exists(dir)) {
    for (const auto& e : std::filesystem::directory_iterator(dir)) n += e.exists();
  }
  return n;
}

constexpr char kConstruct[] =
    R"("Torch.a.0.forward": "Module.m.M.forward.0", "Module.m.M.forward.0": null, "Torch.b.0.forward": null, "Torch.c.0.forward": null)";

std::string Data(double norm) {
  return OpJson("Torch.a.0.forward", TensorJson(1, 0, 0.5, 2), TensorJson(1, 0, 0.5, norm)) + "," +
         OpJson("Torch.b.0.forward", TensorJson(1, 0, 0.5, 2), TensorJson(1, 0, 0.5, 2 + norm / 5)) + "," +
         OpJson("Module.m.M.forward.0", TensorJson(1, 0, 0.5, 2), TensorJson(1, 0, 0.5, 2));
}

class VisualizeTest : public ::testing::Test {
 protected:
  StatusOr<GraphSummary> Run(const std::string& target, const std::string& golden, bool fuzzy = false) {
    GraphSettings options;
    options.target = target;
    options.golden = golden;
    options.output = dir_.Path("out");
    options.fuzzy = fuzzy;
    options.warning = [this](const Message& text) { warnings_.push_back(text); };
    return VisualizeGraph(options);
  }
  void TearDown() override { SetInterruptRequested(false); }
  DumpDir dir_;
  std::vector<Message> warnings_;
};

TEST_F(VisualizeTest, WritesBothGraphsAndTheVerdicts) {
  const std::string a = dir_.Rank("a", kConstruct, Data(9)), b = dir_.Rank("b", kConstruct, Data(2));
  const auto summary = Run(a, b);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->levels, (std::array<size_t, 3>{1, 0, 2}));
  EXPECT_EQ(summary->first_error->node, "Torch.a.0.forward");
  EXPECT_EQ(
      Query(summary->file,
            "SELECT node_order, node_name, node_type, up_node, sub_nodes, precision_index, matched_node_link "
            "FROM tb_nodes WHERE data_source='NPU' ORDER BY node_order"),
      (std::vector<std::string>{
          R"(0|Torch.a.0.forward|1|Module.m.M.forward.0||1|["DefaultModel", "Module.m.M.forward.0", "Torch.a.0.forward"])",
          R"(1|Module.m.M.forward.0|0|DefaultModel|["Torch.a.0.forward"]|0|["DefaultModel", "Module.m.M.forward.0"])",
          R"(2|Torch.b.0.forward|1|Apis_Between_Modules.0||1|["DefaultModel", "Apis_Between_Modules.0", "Torch.b.0.forward"])",
          R"(3|Torch.c.0.forward|1|Apis_Between_Modules.0||NULL|["DefaultModel", "Apis_Between_Modules.0", "Torch.c.0.forward"])",
          R"(4|Apis_Between_Modules.0|9|DefaultModel|["Torch.b.0.forward", "Torch.c.0.forward"]|1|["DefaultModel", "Apis_Between_Modules.0"])",
          R"(5|DefaultModel|0||["Module.m.M.forward.0", "Apis_Between_Modules.0"]|NULL|["DefaultModel"])"}));
  EXPECT_EQ(Query(summary->file, "SELECT count(*), count(precision_index) FROM tb_nodes WHERE data_source='Bench'")[0],
            "6|0");
  EXPECT_EQ(Query(summary->file,
                  "SELECT id, graph_type, task, micro_steps, overflow_check, rank_list, step_list FROM tb_config")[0],
            "1|compare|summary|1|0|[0]|[0]");
  EXPECT_EQ(
      Query(summary->file,
            "SELECT name FROM sqlite_master WHERE type='index' AND sql IS NOT NULL AND tbl_name IN ('msprobe_name', "
            "'msprobe_node') ORDER BY 1")
          .size(),
      4u);
  EXPECT_EQ(Query(summary->file, "PRAGMA integrity_check")[0], "ok");
  struct stat st {};
  ASSERT_EQ(stat(summary->file.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0640u);
  EXPECT_EQ(FileCount(dir_.Path("out")), 1u);
}

TEST_F(VisualizeTest, RoundsPercentagesAndSpellsMessages) {
  const auto summary = Run(dir_.Rank("a", kConstruct, Data(9)), dir_.Rank("b", kConstruct, Data(7)));
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(
      Query(summary->file, "SELECT output_data FROM tb_nodes WHERE id='NPU_0_0_Torch.a.0.forward'")[0],
      R"({"Torch.a.0.forward.output.0": {"type": "torch.Tensor", "dtype": "torch.float32", "shape": "[2, 3]", "Max": "1", )"
      R"("Min": "0", "Mean": "0.5", "Norm": "9", "requires_grad": "True", "data_name": "-1", "Max diff": "0", "Min diff": "0", )"
      R"("Mean diff": "0.0", "L2norm diff": "2", "MaxRelativeErr": "0.0%", "MinRelativeErr": "N/A", "MeanRelativeErr": "0.0%", )"
      R"("NormRelativeErr": "28.571429%", "Requires_grad Consistent": "True", "Result": "warning", )"
      R"("Err_message": "[\"warning: The norm relative error of output is 10 times that of input.\"]"}})");
}

TEST_F(VisualizeTest, OutputDoesNotDependOnTheThreads) {
  std::string construct, data;
  for (int i = 0; i < 500; ++i) {
    const std::string name = "Torch.x." + std::to_string(i) + ".forward";
    construct += (i ? ", \"" : "\"") + name + "\": null";
    data += (i ? "," : "") + OpJson(name, TensorJson(1, 0, 0.5, i), TensorJson(1, 0, 0.5, 2 * i));
  }
  const std::string a = dir_.Rank("a", construct, data), b = dir_.Rank("b", construct, data);
  std::vector<std::string> rows[2];
  for (int threads : {1, 4}) {
    SetThreadCount(threads);
    const auto summary = Run(a, b);
    ASSERT_TRUE(summary.ok());
    rows[threads == 4] = Query(summary->file, "SELECT * FROM tb_nodes ORDER BY graph_id, node_order");
    std::filesystem::remove(summary->file);
  }
  SetThreadCount(0);
  EXPECT_EQ(rows[0].size(), 2u * 502);
  EXPECT_EQ(rows[0], rows[1]);
}

TEST_F(VisualizeTest, AnInterruptLeavesNothing) {
  SetInterruptRequested(true);
  const auto summary = Run(dir_.Rank("a", kConstruct, Data(9)), "");
  ASSERT_FALSE(summary.ok());
  EXPECT_EQ(summary.status().code(), Code::kInterrupted);
  EXPECT_EQ(FileCount(dir_.Path("out")), 0u);
}

TEST_F(VisualizeTest, RefusesWhatCannotBeCompared) {
  const std::string stats = dir_.Rank("a", kConstruct, Data(1));
  const std::string structure = dir_.Rank("s", kConstruct, "", "", "structure");
  const std::string tensor = dir_.Rank("t", kConstruct, "", "", "tensor");
  const std::string sums =
      dir_.Rank("m", kConstruct, OpJson("Torch.a.0.forward", TensorJson(1, 0, 0.5, 2, ", \"md5\": \"aa\""), ""));
  for (const auto& [golden, part] :
       std::vector<std::pair<std::string, std::string>>{{structure, "same task"}, {sums, "checksums"}}) {
    const auto r = Run(stats, golden);
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.status().code(), Code::kBadInput);
    EXPECT_NE(r.status().message().find(part), std::string::npos) << r.status().message();
  }
  EXPECT_TRUE(Run(tensor, tensor).ok());
  EXPECT_TRUE(Run(tensor, "").ok()) << "building needs no tensors";
  EXPECT_TRUE(Run(structure, structure).ok());
}

TEST_F(VisualizeTest, TruncatedDumpWorksWithAWarning) {
  const std::string rank = dir_.Rank("a", kConstruct, Data(9));
  std::filesystem::resize_file(rank + "/dump.json", std::filesystem::file_size(rank + "/dump.json") - 60);
  const auto summary = Run(rank, "");
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].English().find("byte"), std::string::npos) << warnings_[0].English();
}

TEST_F(VisualizeTest, AllStepsAndRanksGoIntoOneFile) {
  for (const char* rank : {"step2/rank0", "step2/rank1", "step10/rank0", "step10/rank1"})
    dir_.Rank(std::string("a/") + rank, kConstruct, Data(9));
  for (const char* rank : {"step2/rank1", "step10/rank1", "step10/rank3", "step11/rank0"})
    dir_.Rank(std::string("b/") + rank, kConstruct, Data(9));
  const auto summary = Run(dir_.Path("a"), dir_.Path("b"));
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(Query(summary->file, "SELECT DISTINCT step, rank FROM tb_nodes ORDER BY step"),
            (std::vector<std::string>{"2|1", "10|1"}));
  EXPECT_EQ(Query(summary->file, "SELECT rank_list, step_list FROM tb_config")[0], "[1]|[2, 10]");
  EXPECT_FALSE(warnings_.empty());
}

TEST_F(VisualizeTest, PlansAreData) {
  dir_.Rank("a/step0/rank", kConstruct, Data(9));
  dir_.Rank("b/step0/rank", kConstruct, Data(9));
  const auto plan = PlanGraph(dir_.Path("a/step0"), dir_.Path("b/step0"));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(
      GraphPlanJson(*plan),
      "{\"compare\": true, \"steps\": [0], \"ranks\": [0], \"pairs\": [{\"step\": 0, \"rank\": 0, \"target\": \"" +
          dir_.Path("a/step0/rank") + "\", \"golden\": \"" + dir_.Path("b/step0/rank") + "\"}]}");
  EXPECT_EQ(PlanGraph(dir_.Path("a"), dir_.Path("b/step0")).status().code(), Code::kBadInput) << "kinds differ";
  EXPECT_EQ(PlanGraph(dir_.Path("none"), "").status().code(), Code::kBadInput);
  dir_.Rank("p/proc12", kConstruct, Data(9));
  dir_.Rank("q/proc34", kConstruct, Data(9));
  const auto procs = PlanGraph(dir_.Path("p"), dir_.Path("q"));
  ASSERT_TRUE(procs.ok());
  EXPECT_EQ(procs->pairs[0].rank, 0);
}

}  // namespace
}  // namespace msprobe
