#include "import/ir_code.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

constexpr char kText[] = R"(subgraph @kernel_graph0() {
  %0(equiv_16_CNode_50) = Load(%para4_conv1.weight, UMonad[U])
      # Fullname with scope: (Default/Load-op0)
  %1(equiv_15_output) = Conv2D(%para9_args0, %0) {instance name: conv2d}
      : (<Tensor[Float32], (4, 1, 16, 16)>) -> (<Tensor[Float32], (4, 6, 12, 12)>)
      # Fullname with scope: (Default/net.conv/Conv2D-op0)
      # In file /home/u/model.py:80~82, 8~64/        def construct(self, x):/
      # In file /home/u/model.py:81, 36~46/            x = self.conv1(x) / 2; y = x/<~~This line of code can be shared by multiple nodes, and may be duplicated./
      # In file /opt/lib/site-packages/mindspore/nn/layer/conv.py:373, 17~44/        output = self.conv2d(x, self.weight)/
  Return(%1)
      # In file /home/u/other.py:1, 1~2/none/
}
)";

TEST(IrCode, LinesOfANode) {
  const auto file = IrFile::Parse(kText, "graph.ir");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->size(), 2u);
  const IrNode* node = file->Find("Default_net_conv_Conv2D-op0");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->scope, "Default/net.conv/Conv2D-op0");
  EXPECT_EQ(node->lines.size(), 3u);
  EXPECT_EQ(SourceLine(*node), "/home/u/model.py:81 x = self.conv1(x) / 2; y = x");
  EXPECT_TRUE(CodeStack(*node).ends_with("output = self.conv2d(x, self.weight)"));
  ASSERT_TRUE(file->Find("Default_Load-op0"));
  EXPECT_EQ(SourceLine(*file->Find("Default_Load-op0")), "");
  EXPECT_FALSE(file->Find("Default_Load-op"));
}

TEST(IrCode, OtherFilesAreRefused) {
  for (const char* text : {"", "# Fullname with scope: (", "{}", "%1(x) = y\n# In file a:1, 2/b/\n"}) {
    EXPECT_EQ(IrFile::Parse(text, "x.ir").status().code(), Code::kBadInput) << text;
  }
}

}  // namespace
}  // namespace msprobe
