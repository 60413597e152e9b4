#include "graph/flow/name_index.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(NameIndex, NumbersAreWildcards) {
  EXPECT_EQ(NamePattern("Module.layers.12.fc1.Linear.forward.0"), "Module.layers.#.fc1.Linear.forward.#");
  EXPECT_EQ(NamePattern("Torch.conv2d.0.forward"), "Torch.conv2d.#.forward");
  EXPECT_EQ(NamePattern("7.8a..9"), "#.8a..#");
  EXPECT_EQ(NamePattern(""), "");
  EXPECT_EQ(NamePatternHash("Torch.a.1.forward"), NamePatternHash("Torch.a.22.forward"));
  EXPECT_NE(NamePatternHash("Torch.a.1.forward"), NamePatternHash("Torch.a.1a.forward"));
}

TEST(NameIndex, NoNameIsMissed) {
  const std::string name = "Module.Layers.12.fc1.Linear.forward.0";
  const std::string pattern = NamePattern(name);
  for (size_t begin = 0; begin < name.size(); ++begin) {
    for (size_t n = 1; begin + n <= name.size(); ++n) {
      EXPECT_TRUE(PatternMayContain(pattern, name.substr(begin, n))) << name.substr(begin, n);
    }
  }
  EXPECT_TRUE(PatternMayContain(pattern, "layers.3.FC1"));
  EXPECT_FALSE(PatternMayContain(pattern, "layers.3.fc2"));
  EXPECT_FALSE(PatternMayContain(pattern, "fc1.3"));
  EXPECT_FALSE(PatternMayContain(pattern, "forward.0.x"));
}

TEST(NameIndex, KeepsNodesByPattern) {
  PatternIndex index;
  for (uint32_t i = 0; i < 400; ++i) {
    const std::string name = (i % 2 ? "Torch.add." : "Tensor.mul.") + std::to_string(i / 2) + ".forward";
    index.Add(i, name, NamePatternHash(name));
  }
  ASSERT_EQ(index.patterns().size(), 2u);
  EXPECT_EQ(index.patterns()[1].text, "Torch.add.#.forward");
  EXPECT_EQ(index.patterns()[1].nodes, 200u);
  EXPECT_EQ(index.patterns()[1].packed.size(), 200u);  // a byte a node
  std::vector<uint32_t> nodes;
  ASSERT_TRUE(UnpackNodes(index.patterns()[1].packed, &nodes));
  ASSERT_EQ(nodes.size(), 200u);
  EXPECT_EQ(nodes[0], 1u);
  EXPECT_EQ(nodes[199], 399u);
  EXPECT_FALSE(UnpackNodes("\xff", &nodes));
}

}  // namespace
}  // namespace msprobe
