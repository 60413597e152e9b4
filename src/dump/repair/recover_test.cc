#include "dump/repair/recover.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "base/text.h"
#include "dump/reader.h"
#include "dump/test_files.h"
#include "json/parser.h"

namespace msprobe {
namespace {

constexpr char kWholeDump[] =
    "{\n \"task\": \"statistics\",\n \"level\": \"mix\",\n \"data\": {\n"
    "  \"Tensor.add.0.forward\": {\n   \"input_args\": [],\n   \"x\": \"}\\\"\"\n  },\n"
    "  \"Tensor.add.1.forward\": {\n   \"output\": [\n    NaN\n   ]\n  }\n }\n}";
constexpr char kConstruct[] = "{\n \"Tensor.add.0.forward\": null,\n \"Tensor.add.1.forward\": null\n}";
constexpr char kStack[] =
    "{\n \"0\": [\n  [\n   \"Tensor.add.0.forward\",\n   \"Tensor.add.1.forward\"\n  ],\n  [\n   \"f\"\n  ]\n ]\n}";

RankRecovery Recover(const std::string& dir, const std::string& output = {}) {
  const auto ranks = RecoverDump({dir, output, false});
  EXPECT_TRUE(ranks.ok()) << ranks.status().message();
  return ranks.ok() ? (*ranks)[0] : RankRecovery();
}

// Whatever the length of what is left, the result is whole, keeps each complete op, and the original is kept.
TEST(Recover, AtEveryByte) {
  const std::string whole = kWholeDump;
  const size_t data = whole.find("\"data\": {") + std::strlen("\"data\": {");
  const size_t first = whole.find("\"\n  },") + 5, second = whole.find("]\n  }\n }") + 5;
  for (size_t size = data; size <= whole.size(); ++size) {
    const TempDir dir;
    const std::string path = dir.Write("dump.json", whole.substr(0, size));
    const RankRecovery rank = Recover(dir.path());
    const bool cut = size < whole.size();
    ASSERT_EQ(rank.changed(), cut) << size;
    EXPECT_EQ(rank.ops, size >= second ? 2u : size >= first ? 1u : 0u) << size;
    const auto dump = DumpFile::Open(path);
    ASSERT_TRUE(dump.ok()) << dump.status().message();
    EXPECT_EQ(dump->truncated().English(), "");
    JsonDoc doc;
    EXPECT_TRUE(ParseJson(ReadAll(path), path, &doc).ok()) << ReadAll(path);
    if (size >= second) {
      EXPECT_EQ(ReadAll(path), whole);
    }
    EXPECT_EQ(cut ? ReadAll(path + ".damaged") : "", cut ? whole.substr(0, size) : "");
    EXPECT_FALSE(Recover(dir.path()).changed());
  }
}

TEST(Recover, ABrokenOpIsLeftOutAndTheRestStays) {
  const TempDir dir;
  std::string text = kWholeDump;
  text[text.find("NaN")] = '\x01';
  const std::string path = dir.Write("dump.json", text);
  const RankRecovery rank = Recover(dir.path());
  EXPECT_EQ(rank.files[0].found.broken, 1u);
  EXPECT_EQ(rank.ops, 1u);
  EXPECT_TRUE(DumpFile::Open(path)->FindOp("Tensor.add.0.forward"));
}

TEST(Recover, SaysWhatIsMissing) {
  const TempDir dir;
  dir.Write("dump.json", kWholeDump);
  dir.Write("construct.json", std::string(kConstruct).substr(0, 40));
  dir.Write("stack.json", "{\n \"0\": [\n  [");
  StepSummary summary;
  summary.ops = 3;
  summary.host = "gone";
  summary.pid = 7;
  dir.Write(kSummaryName, summary.Json());
  dir.Write("dump.json.tmp12.0", "");
  const auto refused = RecoverDump({dir.path(), "", false});  // written just now, by another host
  ASSERT_TRUE(refused.ok());
  EXPECT_TRUE(Contains((*refused)[0].refused, "--force")) << RecoveryText(*refused).English();
  const auto ranks = RecoverDump({dir.path(), "", true});
  ASSERT_TRUE(ranks.ok());
  const RankRecovery& rank = (*ranks)[0];
  EXPECT_EQ(rank.ops_missing, 1u);
  EXPECT_EQ(rank.without_stack, 2u);
  EXPECT_EQ(rank.without_parent, 1u);
  EXPECT_EQ(rank.temporary_files, 1u);
  EXPECT_FALSE(rank.complete());
  EXPECT_TRUE(Contains(RecoveryText(*ranks), "missing: 1 ops that were reported flushed"))
      << RecoveryText(*ranks).English();
  JsonDoc doc;
  ASSERT_TRUE(ParseJson(RecoveryJson(*ranks), "json", &doc).ok());
  EXPECT_EQ(StepSummary::Read(dir.path() + "/" + kSummaryName)->state, "recovered");
}

TEST(Recover, ALivingWriterIsLeftAlone) {
  const TempDir dir;
  const std::string path = dir.Write("dump.json", std::string(kWholeDump).substr(0, 100));
  StepSummary summary;
  SetWriter(&summary);
  dir.Write(kSummaryName, summary.Json());
  const RankRecovery rank = Recover(dir.path());
  EXPECT_TRUE(Contains(rank.refused, "is still recording")) << rank.refused.English();
  EXPECT_EQ(ReadAll(path).size(), 100u);
  // A copy may be made at any time.
  const RankRecovery copy = Recover(dir.path(), dir.path() + "/copy");
  EXPECT_TRUE(copy.refused.empty());
  EXPECT_EQ(DumpFile::Open(dir.path() + "/copy/dump.json")->truncated().English(), "");
  summary.process_start += 1;  // the number belongs to another process by now
  dir.Write(kSummaryName, summary.Json());
  EXPECT_TRUE(Recover(dir.path()).refused.empty());
}

TEST(Recover, CopiesOfAllStepsAndRanks) {
  const TempDir dir;
  for (const char* rank : {"step0/rank0", "step0/rank1", "step3/rank0", "step3/rank1"}) {
    dir.Write(std::string("d/") + rank + "/dump.json", std::string(kWholeDump).substr(0, 170));
    dir.Write(std::string("d/") + rank + "/construct.json", kConstruct);
    dir.Write(std::string("d/") + rank + "/stack.json", kStack);
  }
  const auto ranks = RecoverDump({dir.path() + "/d", dir.path() + "/out", false});
  ASSERT_TRUE(ranks.ok()) << ranks.status().message();
  EXPECT_EQ(ranks->size(), 4u);
  for (const RankRecovery& rank : *ranks) {
    EXPECT_EQ(ReadAll(rank.path + "/dump.json").size(), 170u);
    EXPECT_EQ(ReadAll(rank.output + "/construct.json"), kConstruct);
    EXPECT_EQ(ReadAll(rank.output + "/stack.json"), kStack);
    EXPECT_TRUE(DumpFile::Open(rank.output + "/dump.json")->truncated().empty());
  }
  EXPECT_TRUE(PathExists(dir.path() + "/out/step3/rank1/dump.json"));
  EXPECT_FALSE(RecoverDump({dir.path() + "/d", dir.path() + "/out", false}).ok());  // not empty
}

TEST(Recover, AFileWithoutABeginningIsNamed) {
  const TempDir dir;
  dir.Write("dump.json", "");
  dir.Write("construct.json", kConstruct);
  const auto ranks = RecoverDump({dir.path(), "", false});
  ASSERT_TRUE(ranks.ok());
  EXPECT_FALSE((*ranks)[0].complete());
  EXPECT_TRUE(Contains(RecoveryText(*ranks), "dump.json: nothing to recover")) << RecoveryText(*ranks).English();
}

TEST(StepSummary, TextOfAnyKindStaysWithinAPage) {
  StepSummary summary;
  summary.ops_stopped = summary.tensors_stopped = std::string(5000, '\x01');
  for (int i = 0; i < 100; ++i) summary.skipped[std::string(500, '\x02') + std::to_string(i)] = 1;
  EXPECT_LE(summary.Json().size(), StepSummary::kMostBytes);
  summary.ops_stopped = summary.tensors_stopped = "";
  for (int i = 0; i < 1000; ++i) summary.ops_stopped += "\xE4\xB8\xAD";
  summary.skipped = {{"a", 2}, {"b", 3}};
  const TempDir dir;
  const auto read = StepSummary::Read(dir.Write("s.json", summary.Json()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->skipped, summary.skipped);
  EXPECT_TRUE(EndsWith(read->ops_stopped, "..."));
}

}  // namespace
}  // namespace msprobe
