#include "base/yaml.h"

#include <gtest/gtest.h>

#include <string>

namespace msprobe {
namespace {

YamlNode Parse(std::string_view text) {
  StatusOr<YamlNode> node = ParseYaml(text, "m.yaml");
  EXPECT_TRUE(node.ok()) << node.status().message();
  return node.ok() ? std::move(*node) : YamlNode();
}

std::string Refused(std::string_view text) {
  const StatusOr<YamlNode> node = ParseYaml(text, "m.yaml");
  EXPECT_FALSE(node.ok()) << "accepted";
  if (node.ok()) return "";
  EXPECT_EQ(node.status().code(), Code::kBadInput);
  EXPECT_EQ(node.status().message().find('\n'), std::string::npos);
  return node.status().message();
}

TEST(Yaml, MapsListsAndTextsAsTheyStand) {
  const YamlNode root = Parse("# a comment\nA:\n  b.c: d\n  n: 0.6\n'quoted key': [x, 'y z', ~]\nempty:\nhere: {}\n");
  ASSERT_TRUE(root.IsMap());
  ASSERT_EQ(root.members.size(), 4u);
  EXPECT_EQ(root.members[0].first, "A");
  EXPECT_EQ(root.Find("A")->Find("b.c")->text, "d");
  EXPECT_EQ(root.Find("A")->Find("n")->text, "0.6");
  EXPECT_EQ(root.Find("A")->Find("n")->line, 4);
  const YamlNode* list = root.Find("quoted key");
  ASSERT_EQ(list->items.size(), 3u);
  EXPECT_EQ(list->items[1].text, "y z");
  EXPECT_TRUE(list->items[2].IsNull());
  EXPECT_TRUE(root.Find("empty")->IsNull());
  EXPECT_TRUE(root.Find("here")->IsMap());
  EXPECT_EQ(root.Find("absent"), nullptr);
}

TEST(Yaml, QuotedNullIsAText) {
  const YamlNode root = Parse("a: 'null'\nb: null\n");
  EXPECT_TRUE(root.Find("a")->IsText());
  EXPECT_TRUE(root.Find("b")->IsNull());
}

TEST(Yaml, OfAKeyThatStandsTwiceTheLastValueCounts) {
  const YamlNode root = Parse("a: 1\nb: 2\na: 3\n");
  ASSERT_EQ(root.members.size(), 2u);
  EXPECT_EQ(root.Find("a")->text, "3");
}

TEST(Yaml, AnAbsentValueIsOnTheLineOfItsKey) {
  const YamlNode root = Parse("top:\n  a:\n\n  b: 1\nlast:\n");
  EXPECT_EQ(root.Find("top")->Find("a")->line, 2);
  EXPECT_EQ(root.Find("top")->Find("b")->line, 4);
  EXPECT_EQ(root.Find("last")->line, 5);
}

TEST(Yaml, EmptyFileIsNull) { EXPECT_TRUE(Parse("").IsNull()); }

TEST(Yaml, SaysWhereItIsBroken) {
  EXPECT_NE(Refused("a: 1\nb: [1, 2\n").find("m.yaml, line "), std::string::npos);
  EXPECT_NE(Refused("a: 1\n  b: 2\n").find("m.yaml, line 2"), std::string::npos);
}

TEST(Yaml, HostileFilesAreRefused) {
  std::string laughs = "a: &a [x, x]\n";
  for (char c = 'b'; c < 'z'; ++c)
    laughs += std::string(1, c) + ": &" + c + " [*" + char(c - 1) + ", *" + char(c - 1) + "]\n";
  EXPECT_NE(Refused(laughs).find("line 2: an alias"), std::string::npos);
  EXPECT_NE(Refused("a: !!python/object/apply:os.system [ls]\n").find("python/object"), std::string::npos);
  EXPECT_NE(Refused("? [1, 2]\n: 3\n").find("a key must be a text"), std::string::npos);
  EXPECT_NE(Refused("a: \xff\xfe\n").find("UTF-8"), std::string::npos);
  Refused(std::string(100000, '['));
  Refused(std::string(100000, '{'));
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_NE(Refused(deep).find("nested deeper than"), std::string::npos);
  std::string wide = "[";
  for (size_t i = 0; i <= kMaxYamlNodes; ++i) wide += "1,";
  EXPECT_NE(Refused(wide + "]").find("more than"), std::string::npos);
  EXPECT_NE(Refused(std::string(kMaxYamlBytes + 1, '#')).find("bytes"), std::string::npos);
}

}  // namespace
}  // namespace msprobe
