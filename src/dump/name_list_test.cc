#include "dump/name_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "dump/reader.h"
#include "dump/test_files.h"

namespace msprobe {
namespace {

TEST(NameList, NamesOfTheFileAndOthers) {
  const std::string file = R"({"one": 1, "": 2, ")" + std::string(70'000, 'x') + R"(": 3})";
  const std::string_view text(file);
  NameList names(text);
  names.Add(text.substr(2, 3));
  names.Add("");
  names.Add(text.substr(text.find("xx"), 70'000));
  names.Add("not in the file");
  names.Add(std::string(80'000, 'y'));
  names.Add(std::string(65'535, 'z'));
  ASSERT_EQ(names.size(), 6u);
  EXPECT_EQ(names[0], "one");
  EXPECT_EQ(names[0].data(), text.data() + 2) << "not a copy";
  EXPECT_EQ(names[1], "");
  EXPECT_EQ(names[2], std::string(70'000, 'x'));
  EXPECT_EQ(names[3], "not in the file");
  EXPECT_EQ(names[4], std::string(80'000, 'y'));
  EXPECT_EQ(names[5], std::string(65'535, 'z'));
  names.Clear();
  EXPECT_EQ(names.size(), 0u);
}

TEST(NamesByHash, EachNameIsThereOnce) {
  NamesByHash names("ab");
  EXPECT_EQ(names.Find("a"), NamesByHash::kNone);
  for (const char* name : {"x", "a", "b", "a", "", "x", "a", "c"}) names.Add(name);
  std::vector<std::pair<uint32_t, uint32_t>> taken;
  BigArray<int> values = {0, 1, 2, 3, 4, 5, 6, 7};
  names.Finish([&](uint32_t first, uint32_t last) { taken.emplace_back(first, last); },
               [&](const std::vector<bool>& gone) { NamesByHash::Compact(gone, &values); });
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 5}, {1, 6}}));
  EXPECT_EQ(values, (std::vector<int>{0, 1, 2, 4, 7}));
  ASSERT_EQ(names.size(), 5u);
  for (const char* name : {"x", "a", "b", "", "c"}) EXPECT_EQ(names[names.Find(name)], name);
  EXPECT_EQ(names.Find("c"), 4u);
  EXPECT_EQ(names.Find("d"), NamesByHash::kNone);
  names.Clear();
  EXPECT_EQ(names.Find("b"), NamesByHash::kNone);
}

TEST(NamesByHash, ManyNamesAreFoundInMemoryAndInFiles) {
  constexpr size_t kMany = 300'000;
  for (const size_t bound : {size_t{1} << 40, size_t{0}}) {
    const size_t before = SetBigArrayMemory(bound);
    {
      NamesByHash names;
      for (size_t i = 0; i < kMany; ++i) names.Add("Functional.linear." + std::to_string(i * 7 % kMany) + ".forward");
      names.Finish([](uint32_t, uint32_t) { FAIL(); }, [](const std::vector<bool>&) { FAIL(); });
      for (size_t i = 0; i < kMany; ++i) ASSERT_EQ(names.Find(std::string(names[i])), i);
      EXPECT_EQ(names.Find("Functional.linear.300000.forward"), NamesByHash::kNone);
    }
    SetBigArrayMemory(before);
  }
}

TEST(NamesByHash, OneNameManyTimesTakesNoLonger) {
  constexpr size_t kMany = 300'000;
  NamesByHash names;
  for (size_t i = 0; i < kMany; ++i) names.Add("same");
  uint32_t last_of_all = 0;
  names.Finish([&](uint32_t first, uint32_t last) { last_of_all = first == 0 ? last : 0; },
               [](const std::vector<bool>&) {});
  EXPECT_EQ(last_of_all, kMany - 1);
  EXPECT_EQ(names.size(), 1u);
  EXPECT_EQ(names.Find("same"), 0u);
}

TEST(OpList, EscapedNamesAndLongOps) {
  const TempDir dir;
  const std::string value = "{\"input_args\": [], \"output\": [\"" + std::string(size_t{17} << 20, 'v') + "\"]}";
  const std::string path =
      dir.Write("dump.json", R"({"task": "statistics", "data": {"a\u0041": {}, "long": )" + value +
                                 R"(, "aA": {"b": 1}, "tab\t": {}, "long2": )" + value + R"(, "long2": {"c": 2}}})");
  const auto dump = DumpFile::Open(path);
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  ASSERT_EQ(dump->ops().size(), 4u);
  EXPECT_EQ(dump->ops()[0].name, "aA");
  EXPECT_EQ(dump->ops()[0].length, 8u) << "of duplicates the last one counts";
  EXPECT_EQ(dump->ops()[1].length, value.size());
  EXPECT_EQ(dump->ops()[2].name, "tab\t");
  EXPECT_EQ(dump->ops()[3].length, 8u) << "the last one is not long";
  EXPECT_EQ(dump->FindOp("tab\t"), 2u);
  size_t at = 0;
  for (const OpSpan& op : dump->ops()) EXPECT_EQ(op.name, dump->ops().NameAt(at++));
  EXPECT_EQ(dump->ops().back().name, "long2");
}

TEST(OpList, AnEmptyDumpHasNoOps) {
  const TempDir dir;
  const auto dump = DumpFile::Open(dir.Write("dump.json", R"({"task": "statistics", "data": {}})"));
  ASSERT_TRUE(dump.ok());
  EXPECT_TRUE(dump->ops().empty());
  EXPECT_EQ(dump->ops().begin(), dump->ops().end());
  EXPECT_FALSE(dump->FindOp(""));
}

TEST(StackFile, GroupsAreReadWithoutBuildingThem) {
  const TempDir dir;
  const auto stacks = StackFile::Open(dir.Write("stack.json", R"({
    "0": [["a", "caf\u00e9", "both"], ["File x, line 1", "two"]],
    "1" : [ [ "both" , "" ] , [ ] ],
    "2": [[], ["nobody"]],
    "3": [["lenient",], ["File y, line 2"],],
    "flat": ["File x, line 1", "two"]})"));
  ASSERT_TRUE(stacks.ok()) << stacks.status().message();
  ASSERT_EQ(stacks->size(), 5u);
  EXPECT_EQ(stacks->StackOf("a"), 0u);
  EXPECT_EQ(stacks->StackOf("caf\xC3\xA9"), 0u);
  EXPECT_EQ(stacks->StackOf("both"), 1u) << "the last one counts";
  EXPECT_EQ(stacks->StackOf(""), 1u);
  EXPECT_EQ(stacks->StackOf("lenient"), 3u);
  EXPECT_EQ(stacks->StackOf("flat"), 4u);
  EXPECT_FALSE(stacks->StackOf("nobody"));
  EXPECT_EQ(stacks->Frames(0), (std::vector<std::string>{"File x, line 1", "two"}));
  EXPECT_TRUE(stacks->Frames(1).empty());
}

TEST(StackFile, DamagedGroupsAreRefused) {
  const TempDir dir;
  for (const char* text : {R"({"0": [["a", 1], ["f"]]})", R"({"0": [["a"], [1]]})", R"({"0": [["a"], "f"]})",
                           R"({"0": [["a"]]})", R"({"0": [["a\q"], ["f"]]})", "{\"0\": [[\"a\tb\"], [\"f\"]]}",
                           R"({"0": [["a"], ["f"], ["g"]]})", R"({"0": [["a"] ["f"]]})"}) {
    const auto stacks = StackFile::Open(dir.Write("stack.json", text));
    EXPECT_FALSE(stacks.ok()) << text;
    EXPECT_EQ(stacks.status().code(), Code::kBadInput) << text;
  }
}

TEST(ParentIndex, LastDuplicateCountsAtTheFirstPlace) {
  const TempDir dir;
  const auto index = ParentIndex::Open(dir.Write(
      "construct.json",
      R"({"a": "m", "b": "m", "c\u0041": ["n", 1], "a": null, "d": "\u00e9", "megatron_micro_step_number": 2})"));
  ASSERT_TRUE(index.ok()) << index.status().message();
  ASSERT_EQ(index->size(), 4u);
  EXPECT_EQ(index->NameAt(2), "cA");
  EXPECT_EQ(index->ParentOf("a"), "");
  EXPECT_EQ(index->ParentOf("b"), "m");
  EXPECT_EQ(index->ParentOf("cA"), "n");
  EXPECT_EQ(index->ParentOf("d"), "\xC3\xA9");
  EXPECT_EQ(index->ParentOf("nobody"), "");
  EXPECT_TRUE(index->Has("a"));
  EXPECT_FALSE(index->Has("nobody"));
}

}  // namespace
}  // namespace msprobe
