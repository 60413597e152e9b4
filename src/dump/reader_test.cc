#include "dump/reader.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "dump/test_files.h"

namespace msprobe {
namespace {

constexpr char kDump[] = R"({
 "task": "statistics",
 "level": "mix",
 "framework": "pytorch",
 "dump_data_dir": null,
 "data": {
  "Functional.linear.0.forward": {
   "input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": 1.5, "Min": -Infinity,
                   "Mean": NaN, "Norm": Infinity, "requires_grad": true}, null, {}],
   "input_kwargs": {"bias": null, "text": {"type": "str", "value": "a \"quoted\" } ] { brace \\"}},
   "output": []
  },
  "Module.a\u00e9.Linear.forward.0": {"input_args": [], "input_kwargs": {}, "output": [],},
  "Tensor.add.0.backward": {"input": [], "output": [null]},
 }
}
)";

std::string Error(const std::string& path) {
  const auto dump = DumpFile::Open(path);
  EXPECT_FALSE(dump.ok());
  EXPECT_EQ(dump.status().code(), Code::kBadInput);
  EXPECT_TRUE(Contains(dump.status().message(), path)) << dump.status().message();
  EXPECT_FALSE(Contains(dump.status().message(), "\n")) << dump.status().message();
  return dump.status().message();
}

TEST(DumpFile, ReadsHeaderAndOps) {
  const TempDir dir;
  const auto dump = DumpFile::Open(dir.Write("dump.json", kDump));
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  EXPECT_EQ(dump->task(), "statistics");
  EXPECT_EQ(dump->level(), "mix");
  EXPECT_EQ(dump->framework(), "pytorch");
  EXPECT_EQ(dump->dump_data_dir(), "");
  EXPECT_EQ(dump->truncated().English(), "");
  ASSERT_EQ(dump->ops().size(), 3u);
  EXPECT_EQ(dump->ops()[1].name, "Module.a\xC3\xA9.Linear.forward.0");
  EXPECT_EQ(dump->FindOp("Tensor.add.0.backward"), 2u);
  EXPECT_FALSE(dump->FindOp("Tensor.add.1.backward"));
  EXPECT_EQ(*dump->FindChecksums(), Checksums::kAbsent);
  JsonDoc doc;
  ASSERT_TRUE(dump->ParseOp(0, &doc).ok());
  const JsonValue& tensor = doc["input_args"][0];
  EXPECT_EQ((*tensor.Find("Max")).Number(), 1.5);
  EXPECT_TRUE(std::isnan(tensor.Find("Mean")->Number()));
  EXPECT_EQ(tensor.Find("Min")->Number(), -INFINITY);
  EXPECT_EQ(doc["input_kwargs"]["text"]["value"].Text(), "a \"quoted\" } ] { brace \\");
  ASSERT_TRUE(dump->ParseOp(2, &doc).ok());
  EXPECT_TRUE(doc["output"][0].IsNull());
}

TEST(DumpFile, AnyOrderOfKeysAndMissingFramework) {
  const TempDir dir;
  const auto dump = DumpFile::Open(dir.Write(
      "d.json",
      "\xEF\xBB\xBF {\"data\": {\"a\": {}}, \"extra\": [{\"data\": 1}], \"task\": \"tensor\", \"level\": 3}"));
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  EXPECT_EQ(dump->task(), "tensor");
  EXPECT_EQ(dump->level(), "");
  EXPECT_EQ(dump->framework(), "");
  EXPECT_EQ(dump->ops().size(), 1u);
}

TEST(DumpFile, LastDuplicateCountsAtTheFirstPlace) {
  const TempDir dir;
  const auto dump = DumpFile::Open(dir.Write("d.json", R"({"data": {"a": {"x": 1}, "b": {}, "\u0061": {"x": 2}}})"));
  ASSERT_TRUE(dump.ok());
  ASSERT_EQ(dump->ops().size(), 2u);
  JsonDoc doc;
  ASSERT_TRUE(dump->ParseOp(0, &doc).ok());
  EXPECT_EQ(doc["x"].Int32(), 2);
  EXPECT_EQ(dump->ops()[0].name, "a");
}

TEST(DumpFile, ManyOpsAreFound) {
  const TempDir dir;
  std::string text = "{\"data\": {";
  for (int i = 0; i < 5000; ++i)
    text += (i ? ",\"op." : "\"op.") + std::to_string(i) + "\": {\"n\": " + std::to_string(i) + "}";
  auto opened = DumpFile::Open(dir.Write("d.json", text + "}}"));
  ASSERT_TRUE(opened.ok());
  const DumpFile dump = std::move(*opened);
  JsonDoc doc;
  for (int i = 0; i < 5000; ++i) {
    const auto at = dump.FindOp("op." + std::to_string(i));
    ASSERT_TRUE(at);
    ASSERT_TRUE(dump.ParseOp(*at, &doc).ok());
    EXPECT_EQ(doc["n"].Int32(), i);
  }
}

TEST(DumpFile, DebugValuesAndStructureTask) {
  const TempDir dir;
  const auto debug =
      DumpFile::Open(dir.Write("debug.json", R"({"level": "debug", "data": {"x.0.debug": {"type": "int", "value": 1},
    "l.0.debug": [null, [1]], "g.0.debug": null, "t.0.debug": true}})"));
  ASSERT_TRUE(debug.ok()) << debug.status().message();
  ASSERT_EQ(debug->ops().size(), 4u);
  JsonDoc doc;
  ASSERT_TRUE(debug->ParseOp(2, &doc).ok());
  EXPECT_TRUE(doc.IsNull());
  const auto structure = DumpFile::Open(dir.Write("s.json", R"({"task": "structure", "data": {}})"));
  ASSERT_TRUE(structure.ok());
  EXPECT_TRUE(structure->ops().empty());
}

// Wherever a killed run stopped writing, the ops before that place are read.
TEST(DumpFile, EveryTruncationRecoversTheCompleteOps) {
  const TempDir dir;
  const std::string whole = R"({"task": "statistics", "data": {"a": {"s": "}"}, "b": {"x": [1, {}]}, "c": {}}})";
  const size_t data = whole.find("{\"a\"");
  const size_t ends[] = {whole.find("}\"}") + 3, whole.find("{}]}") + 4, whole.find("{}}}") + 2};
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    const std::string path = dir.Write("d.json", whole.substr(0, cut));
    if (cut <= data) {
      Error(path);
      continue;
    }
    const auto dump = DumpFile::Open(path);
    ASSERT_TRUE(dump.ok()) << cut << dump.status().message();
    size_t complete = 0;
    for (size_t end : ends) complete += cut >= end;
    EXPECT_EQ(dump->ops().size(), complete) << cut;
    EXPECT_TRUE(Contains(dump->truncated(), "byte " + std::to_string(cut))) << dump->truncated().English();
    EXPECT_TRUE(Contains(dump->truncated(), std::to_string(complete) + " complete ops")) << dump->truncated().English();
  }
}

TEST(DumpFile, NulBytesOfACrashedMachineAreTheEnd) {
  const TempDir dir;
  const auto dump =
      DumpFile::Open(dir.Write("d.json", std::string("{\"data\": {\"a\": {}, \"b\"") + std::string(5000, '\0')));
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  EXPECT_EQ(dump->ops().size(), 1u);
  EXPECT_FALSE(dump->truncated().empty());
}

TEST(DumpFile, RefusesWhatIsNoDump) {
  const TempDir dir;
  EXPECT_TRUE(Contains(Error(dir.path() + "/none.json"), "does not exist"));
  EXPECT_TRUE(Contains(Error(dir.Write("a", "")), "is empty"));
  EXPECT_TRUE(Contains(Error(dir.Write("b", "hello")), "expected '{' at byte 0 but found 'h'"));
  EXPECT_TRUE(Contains(Error(dir.Write("c", "\x80\x02\x63")), "found byte 0x80"));
  EXPECT_TRUE(Contains(Error(dir.Write("d", "[1, 2]")), "expected '{'"));
  EXPECT_TRUE(Contains(Error(dir.Write("e", "{\"a\": 1}")), "no object \"data\""));
  EXPECT_TRUE(Contains(Error(dir.Write("f", "{\"data\": []}")), "no object \"data\""));
  EXPECT_TRUE(Contains(Error(dir.Write("g", "{\"data\": {\"a\" {}}}")), "byte 14: expected ':'"));
  EXPECT_TRUE(Contains(Error(dir.Write("h", "{\"data\": {}} x")), "expected the end of the file"));
  EXPECT_TRUE(Contains(Error(dir.Write("i", "{\"data\": {\"a\": {} \"b\": {}}}")), "',' or '}'"));
  EXPECT_TRUE(Contains(Error(dir.Write("j", "{data: {}}")), "double quotes"));
}

TEST(DumpFile, ADamagedOpIsToldWithItsByte) {
  const TempDir dir;
  const std::string text = R"({"data": {"a": {"x": oops}, "b": {}}})";
  const auto dump = DumpFile::Open(dir.Write("d.json", text));
  ASSERT_TRUE(dump.ok());
  JsonDoc doc;
  const Status status = dump->ParseOp(0, &doc);
  EXPECT_EQ(status.code(), Code::kBadInput);
  EXPECT_TRUE(Contains(status.message(), "op \"a\"")) << status.message();
  EXPECT_TRUE(Contains(status.message(), "byte " + std::to_string(text.find("oops")))) << status.message();
  EXPECT_TRUE(dump->ParseOp(1, &doc).ok());
}

TEST(DumpFile, ChecksumsAreFound) {
  const TempDir dir;
  const auto yes = DumpFile::Open(dir.Write("a.json", R"({"data": {"a": {"input_args": [{"type": "int", "value": 1}]},
                   "b": {"output": [[{"type": "torch.Tensor", "shape": [1], "md5": "0a0b0c0d"}]]}}})"));
  ASSERT_TRUE(yes.ok());
  EXPECT_EQ(*yes->FindChecksums(), Checksums::kPresent);
  const auto p2p =
      DumpFile::Open(dir.Write("b.json", R"({"data": {"a": {"input_args": [[{"class_type": "torch.distributed.P2POp",
                    "tensor": {"type": "torch.Tensor", "shape": [], "md5": "0a0b0c0d"}}]]}}})"));
  ASSERT_TRUE(p2p.ok());
  EXPECT_EQ(*p2p->FindChecksums(), Checksums::kPresent);
  const auto text =
      DumpFile::Open(dir.Write("c.json", R"({"data": {"a": {"input_args": [{"type": "str", "value": "md5"}]}}})"));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text->FindChecksums(), Checksums::kNoTensors);
}

TEST(StackFile, BothForms) {
  const TempDir dir;
  const auto grouped =
      StackFile::Open(dir.Write("n.json", R"({"0": [["a", "b"], ["f1", "f2 \n"]], "1": [["c"], []]})"));
  ASSERT_TRUE(grouped.ok()) << grouped.status().message();
  EXPECT_EQ(grouped->size(), 2u);
  EXPECT_EQ(grouped->StackOf("a"), grouped->StackOf("b"));
  EXPECT_EQ(grouped->Frames(*grouped->StackOf("b")), (std::vector<std::string>{"f1", "f2 \n"}));
  EXPECT_FALSE(grouped->StackOf("d"));
  const auto plain = StackFile::Open(dir.Write("o.json", R"({"a": ["f1", "f2"], "b": ["f3"], "c": ["f1", "f2"]})"));
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(plain->size(), 2u);
  EXPECT_EQ(plain->StackOf("a"), plain->StackOf("c"));
  EXPECT_EQ(plain->Frames(*plain->StackOf("b")), (std::vector<std::string>{"f3"}));
}

TEST(StackFile, TruncatedAndWrong) {
  const TempDir dir;
  const auto cut = StackFile::Open(dir.Write("t.json", R"({"0": [["a"], ["f"]], "1": [["b"], ["f2)"));
  ASSERT_TRUE(cut.ok());
  EXPECT_TRUE(cut->StackOf("a"));
  EXPECT_FALSE(cut->StackOf("b"));
  EXPECT_FALSE(cut->truncated().empty());
  const auto wrong = StackFile::Open(dir.Write("w.json", R"({"a": {"b": 1}})"));
  ASSERT_FALSE(wrong.ok());
  EXPECT_TRUE(Contains(wrong.status().message(), "a list of frames"));
}

TEST(ConstructFile, AllForms) {
  const TempDir dir;
  const auto construct = ConstructFile::Open(dir.Write(
      "c.json",
      R"({"a": "p\u00e9", "b": null, "c": "", "d": ["q", 3], "e": [null, 1], "a": "q", "megatron_micro_step_number": 4})"));
  ASSERT_TRUE(construct.ok()) << construct.status().message();
  ASSERT_EQ(construct->entries.size(), 5u);
  EXPECT_EQ(construct->entries[0].name, "a");
  EXPECT_EQ(construct->entries[0].parent, "q");
  EXPECT_EQ(construct->entries[1].parent, "");
  EXPECT_EQ(construct->entries[3].parent, "q");
  EXPECT_EQ(construct->entries[3].micro_step, 3);
  EXPECT_EQ(construct->entries[4].micro_step, 1);
  EXPECT_EQ(construct->megatron_micro_steps, 4);
  const auto empty = ConstructFile::Open(dir.Write("e.json", "{}"));
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->entries.empty());
  EXPECT_FALSE(empty->megatron_micro_steps);
  EXPECT_FALSE(ConstructFile::Open(dir.Write("w.json", R"({"a": {"b": 1}})")).ok());
}

TEST(ResolveDumpPath, KnowsEachKind) {
  const TempDir dir;
  for (const char* rank : {"rank0", "rank2", "rank10"}) dir.Write("d/step2/" + std::string(rank) + "/dump.json", "{}");
  dir.Write("d/step10/rank/dump.json", "{}");
  dir.Write("d/step3/proc77/dump.json", "{}");
  dir.Write("d/step2/rank01/dump.json", "{}");
  dir.Write("d/step2/rank99999999999999999999/dump.json", "{}");
  dir.Write("d/notes.txt", "x");
  dir.Dir("d/stepx");
  const auto all = ResolveDumpPath(dir.path() + "/d");
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->kind, PathKind::kDump);
  ASSERT_EQ(all->steps.size(), 3u);
  EXPECT_EQ(all->steps[0].step, 2);
  EXPECT_EQ(all->steps[1].step, 3);
  EXPECT_EQ(all->steps[2].step, 10);
  ASSERT_EQ(all->steps[0].ranks.size(), 3u);
  EXPECT_EQ(all->steps[0].ranks[2].rank, 10);
  EXPECT_FALSE(all->steps[1].ranks[0].rank);
  EXPECT_EQ(all->steps[2].ranks[0].rank, 0);
  const auto step = ResolveDumpPath(dir.path() + "/d/step10/");
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(step->kind, PathKind::kStep);
  EXPECT_EQ(step->steps[0].step, 10);
  const auto rank = ResolveDumpPath(dir.path() + "/d/step2/rank10");
  ASSERT_TRUE(rank.ok());
  EXPECT_EQ(rank->kind, PathKind::kRank);
  EXPECT_EQ(rank->steps[0].step, 2);
  EXPECT_EQ(rank->steps[0].ranks[0].rank, 10);
  const auto file = ResolveDumpPath(dir.path() + "/d/step2/rank10/dump.json");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->kind, PathKind::kFile);
}

TEST(ResolveDumpPath, SaysWhatItFound) {
  const TempDir dir;
  dir.Write("x/readme.txt", "");
  const auto none = ResolveDumpPath(dir.path() + "/x");
  ASSERT_FALSE(none.ok());
  EXPECT_TRUE(Contains(none.status().message(), "readme.txt")) << none.status().message();
  EXPECT_FALSE(ResolveDumpPath(dir.path() + "/nothing").ok());
}

}  // namespace
}  // namespace msprobe
