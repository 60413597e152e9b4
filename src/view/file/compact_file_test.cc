// The page's view of a file that graph_visualize has just written.
#include <gtest/gtest.h>

#include "graph/build/visualize.h"
#include "graph/graph_test_files.h"
#include "view/query/viewer.h"

namespace msprobe::view {
namespace {

TEST(CompactFile, IsReadLikeAnyOther) {
  DumpDir dir;
  const std::string name = "Torch.a.0.forward";
  const std::string construct = R"("Torch.a.0.forward": "Module.m.M.forward.0", "Module.m.M.forward.0": null)";
  const auto data = [&](double norm) { return OpJson(name, TensorJson(1, 0, 0.5, 2), TensorJson(1, 0, 0.5, norm)); };
  GraphSettings settings;
  settings.target = dir.Rank("a", construct, data(9), R"("Torch.a.0.forward": ["File a.py, line 1, in f"])");
  settings.golden = dir.Rank("b", construct, data(2));
  settings.output = dir.Path("out");
  const auto made = VisualizeGraph(settings);
  ASSERT_TRUE(made.ok()) << made.status().message();

  auto viewer = Viewer::Open(dir.Path("out"));
  ASSERT_TRUE(viewer.ok());
  const auto list = (*viewer)->Files();
  ASSERT_EQ(list->files.size(), 1u);
  const GraphAddress key{list->files[0].file, 0, 0};
  const auto summary = (*viewer)->Summary(key);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->target.nodes, 3u);
  EXPECT_EQ(summary->target.error, 1u);
  EXPECT_EQ(summary->target.unmatched, 0u);
  const auto node = (*viewer)->Node(key, Side::kTarget, name);
  ASSERT_TRUE(node.ok()) << node.status().message();
  EXPECT_EQ(node->node.matched, name);
  EXPECT_EQ(node->record.stack, std::vector<std::string>{"File a.py, line 1, in f"});
  ASSERT_EQ(node->record.outputs.size(), 1u);
  EXPECT_EQ(node->record.outputs[0].name, name + ".output.0");
  EXPECT_EQ(node->record.outputs[0].values[6], (std::pair<std::string, std::string>{"Norm", "9"}));
  ASSERT_TRUE(node->partner.has_value());
  EXPECT_EQ(node->partner->record.inputs.size(), 1u);
}

}  // namespace
}  // namespace msprobe::view
