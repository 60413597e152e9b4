#include "match/mapping.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "dump/test_files.h"

namespace msprobe {
namespace {

class MappingTest : public testing::Test {
 protected:
  void Refused(const MappingSettings& settings, Code code, const std::string& word) {
    const auto mapping = LoadMapping(settings);
    ASSERT_FALSE(mapping.ok()) << word;
    EXPECT_EQ(mapping.status().code(), code) << mapping.status().message();
    EXPECT_TRUE(Contains(mapping.status().message(), word)) << mapping.status().message();
    EXPECT_FALSE(Contains(mapping.status().message(), "\n"));
  }
  TempDir dir_;
};

TEST_F(MappingTest, ReadsEachKind) {
  MappingSettings settings;
  settings.cell = dir_.Write("c.yaml", "RMSNorm: LlamaRMSNorm\nfc1.Dense: fc1.Linear\n");
  auto mapping = LoadMapping(settings);
  ASSERT_TRUE(mapping.ok()) << mapping.status().message();
  EXPECT_TRUE(mapping->cell);
  ASSERT_EQ(mapping->cells.size(), 2u);
  EXPECT_EQ(mapping->cells[1].second, "fc1.Linear");

  settings = {};
  settings.layer = dir_.Write("l.yaml", "Cell: {module: model}\nMLP:\n  linear_gate: gate_proj(Linear)\nEmpty:\n");
  mapping = LoadMapping(settings);
  ASSERT_TRUE(mapping.ok()) << mapping.status().message();
  ASSERT_EQ(mapping->layers.size(), 3u);
  EXPECT_EQ(mapping->layers[0].type, "TopLayer") << "its older name is Cell";
  EXPECT_EQ(mapping->layers[1].children[0].second, "gate_proj") << "text behind ( is a note";

  settings = {};
  settings.api =
      dir_.Write("a.yaml",
                 "- ms_api: Functional.dense\n  pt_api: Functional.linear\n  ms_args: [0, 1]\n  pt_args: [0, "
                 "weight]\n  ms_output: [0]\n  pt_outputs: [0]\n");
  mapping = LoadMapping(settings);
  ASSERT_TRUE(mapping.ok()) << mapping.status().message();
  ASSERT_EQ(mapping->apis.size(), 1u);
  EXPECT_EQ(mapping->apis[0].inputs[1].second, "weight");
  EXPECT_EQ(mapping->apis[0].outputs.size(), 1u) << "singular and plural keys";

  settings = {};
  settings.layer = settings.cell = "";
  settings.cell.reset();
  EXPECT_TRUE(LoadMapping(settings)->layer) << "without a file";
}

TEST_F(MappingTest, OptionsThatExcludeEachOther) {
  MappingSettings settings;
  settings.cell = "";
  settings.layer = "";
  Refused(settings, Code::kUsage, "exclude each other");
  settings = {};
  settings.data = dir_.Write("d.yaml", "a: b\n");
  settings.fuzzy = true;
  Refused(settings, Code::kUsage, "-fm");
  settings = {};
  settings.backend = "fsdp";
  Refused(settings, Code::kUsage, "--consistent_check");
  settings = {};
  settings.consistent_check = true;
  Refused(settings, Code::kUsage, "--backend");
}

TEST_F(MappingTest, FilesOfAnotherKindAreRefusedByLine) {
  MappingSettings settings;
  settings.cell = dir_.Write("c.yaml", "a: b\nc: [1, 2]\n");
  Refused(settings, Code::kBadInput, "c.yaml, line 2");
  settings = {};
  settings.api = dir_.Write("a.yaml", "ms_api: x\n");
  Refused(settings, Code::kBadInput, "list of entries");
  settings.api = dir_.Write("b.yaml", "- ms_api: x\n");
  Refused(settings, Code::kBadInput, "pt_api");
  settings.api = dir_.Write("e.yaml", "- {ms_api: x, pt_api: y, ms_args: [0, 1], pt_args: [0]}\n");
  Refused(settings, Code::kBadInput, "ms_args has 2 entries and pt_args 1");
  settings = {};
  settings.layer = dir_.Write("l.yaml", "MLP: gate\n");
  Refused(settings, Code::kBadInput, "l.yaml, line 1");
  settings.layer = dir_.Write("m.yaml", "MLP:\n  a: b\n  c: d\nMLP:\n  e: f\n");
  Refused(settings, Code::kBadInput, "m.yaml, line 5: \"MLP\" stands in line 2 already");
  settings = {};
  settings.data = dir_.path() + "/none.yaml";
  Refused(settings, Code::kBadInput, "none.yaml");
}

}  // namespace
}  // namespace msprobe
