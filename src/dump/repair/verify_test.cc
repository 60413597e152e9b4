#include "dump/repair/verify.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/text.h"
#include "dump/step_summary.h"
#include "dump/test_files.h"
#include "json/parser.h"
#include "tensor/files/pt_writer.h"
#include "tensor/kernels/crc32.h"

namespace msprobe {
namespace {

std::string Tensor(const std::string& file, const std::string& shape = "2, 3") {
  return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [)" + shape + R"(], "data_name": ")" + file +
         "\"}";
}

std::string Dump(const std::string& ops) {
  return R"({"task": "tensor", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": {)" + ops + "}}";
}

std::string Op(const std::string& name, const std::string& items = "") {
  return "\"" + name + "\": {\"input_args\": [" + items + "], \"input_kwargs\": {}}";
}

/// A file of torch's format with one tensor.
std::string Pt(const TempDir& dir, int64_t rows, DType dtype = DType::kFloat32) {
  const std::vector<double> data(64);
  const std::vector<int64_t> shape = {rows, 3};
  uint64_t bytes = 0;
  const std::string path = dir.path() + "/made.pt";
  EXPECT_TRUE(WritePtFile(path, {data.data(), dtype, 2, shape.data(), nullptr}, &bytes).ok());
  const std::string text = ReadAll(path);
  std::filesystem::remove(path);
  return text;
}

std::map<std::string, uint64_t> Kinds(const std::vector<VerifyFinding>& findings, bool notes) {
  std::map<std::string, uint64_t> kinds;
  for (const VerifyFinding& f : findings) {
    if (f.note == notes) kinds[f.kind] += f.count;
  }
  return kinds;
}

using Counts = std::map<std::string, uint64_t>;

TEST(VerifyDump, AWholeDumpHasNoFindings) {
  const TempDir dir;
  dir.Write("dump.json", Dump(Op("Tensor.add.0.forward", Tensor("a.pt")) + ", " + Op("Tensor.add.1.forward", "null")));
  dir.Write("construct.json", R"({"Tensor.add.0.forward": null, "Tensor.add.1.forward": null})");
  dir.Write("stack.json", R"({"0": [["Tensor.add.0.forward", "Tensor.add.1.forward"], ["f"]]})");
  dir.Write("dump_tensor_data/a.pt", Pt(dir, 2));
  StepSummary summary;
  summary.state = "complete";
  summary.ops = 2;
  dir.Write(kSummaryName, summary.Json());
  const auto check = VerifyDump(dir.path());
  ASSERT_TRUE(check.ok()) << check.status().message();
  EXPECT_EQ(check->count(), 0u) << CheckText(*check).English();
  const RankCheck& rank = check->ranks[0];
  EXPECT_EQ(rank.ops, 2u);
  EXPECT_EQ(rank.items, 2u);
  EXPECT_EQ(rank.tensors, 1u);
  EXPECT_EQ(rank.tensor_files, 1u);
  EXPECT_EQ(rank.state, "complete");
  JsonDoc doc;
  ASSERT_TRUE(ParseJson(CheckJson(*check), "json", &doc).ok());
  EXPECT_TRUE(doc["ok"].Bool());
}

TEST(VerifyDump, TensorFiles) {
  const TempDir dir;
  std::string items;
  for (const char* name : {"good.pt", "missing.pt", "empty.pt", "small.pt", "cut.pt", "shape.pt", "dtype.pt",
                           "../evil.pt", "link.pt", "-1"}) {
    items += (items.empty() ? "" : ", ") + Tensor(name);
  }
  dir.Write("dump.json", Dump(Op("Tensor.add.0.forward", items)));
  dir.Write("evil.pt", Pt(dir, 2));
  dir.Write("dump_tensor_data/good.pt", Pt(dir, 2));
  dir.Write("dump_tensor_data/empty.pt", "");
  dir.Write("dump_tensor_data/small.pt", "PK");
  dir.Write("dump_tensor_data/cut.pt", Pt(dir, 2).substr(0, 300));
  dir.Write("dump_tensor_data/shape.pt", Pt(dir, 5));
  dir.Write("dump_tensor_data/dtype.pt", Pt(dir, 2, DType::kInt32));
  dir.Write("dump_tensor_data/unnamed.pt", Pt(dir, 2));
  dir.Write("dump_tensor_data/good.pt.tmp12.3", Pt(dir, 2));
  std::filesystem::create_symlink("../evil.pt", dir.path() + "/dump_tensor_data/link.pt");
  const auto check = VerifyDump(dir.path());
  ASSERT_TRUE(check.ok());
  EXPECT_EQ(Kinds(check->ranks[0].findings, false), (Counts{{"tensor_missing", 1},
                                                            {"tensor_empty", 1},
                                                            {"tensor_size", 1},
                                                            {"tensor_cut", 1},
                                                            {"tensor_differs", 2},
                                                            {"tensor_unreadable", 1},
                                                            {"unsafe_name", 1},
                                                            {"temporary_file", 1}}))
      << CheckText(*check).English();
  EXPECT_EQ(Kinds(check->ranks[0].findings, true), (Counts{{"tensor_unnamed", 1}})) << CheckText(*check).English();
  EXPECT_EQ(check->ranks[0].tensor_files, 1u);
}

TEST(VerifyDump, FilesThatDoNotBelongTogether) {
  const TempDir dir;
  dir.Write("dump.json", Dump(Op("Tensor.add.0.forward") + "," + Op("Tensor.add.3.forward") + "," +
                              Op("Module.m.M.forward.1") + "," + Op("Tensor.mul.0.forward", "nope")));
  dir.Write("construct.json",
            R"({"Tensor.add.0.forward": null, "Torch.cat.0.forward": null, "Tensor.mul.0.forward": null)");
  dir.Write("stack.json",
            R"({"0": [["Tensor.add.0.forward", "Torch.cat.0.forward", "Tensor.gone.0.forward"], ["f"]], "1": [[)");
  StepSummary summary;
  summary.ops = 9;
  summary.host = "elsewhere";
  summary.pid = 7;
  dir.Write(kSummaryName, summary.Json());
  dir.Write("stack.json.tmp7.1", "");
  const auto check = VerifyDump(dir.path());
  ASSERT_TRUE(check.ok());
  const Counts found = Kinds(check->ranks[0].findings, false), notes = Kinds(check->ranks[0].findings, true);
  EXPECT_EQ(found, (Counts{{"truncated", 2},
                           {"broken_op", 1},
                           {"op_without_parent", 3},
                           {"op_without_stack", 3},
                           {"unfinished", 1},
                           {"ops_missing", 5},
                           {"temporary_file", 1}}))
      << CheckText(*check).English();
  EXPECT_EQ(notes, (Counts{{"gap", 3}, {"construct_without_op", 1}, {"stack_of_unknown_op", 1}}))
      << CheckText(*check).English();
}

TEST(VerifyDump, TheStampOfACertificate) {
  const TempDir dir;
  const std::string dump = Dump(Op("Tensor.add.0.forward"));
  dir.Write("step0/rank0/dump.json", dump);
  const auto stamp = [&](const std::string& name, uint32_t crc) {
    char hex[16];
    std::snprintf(hex, sizeof hex, "%08x", crc);
    dir.Write("msprobe_certificate.json",
              R"({"verdict": "certified: same bits", "files": {")" + name + R"(": ")" + hex + "\"}}");
    const auto check = VerifyDump(dir.path());
    EXPECT_TRUE(check.ok());
    return check->findings;
  };
  const uint32_t crc = Crc32(dump.data(), dump.size());
  auto findings = stamp("step0/rank0/dump.json", crc);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(findings[0].note);
  EXPECT_EQ(findings[0].text.English(), R"(certify: "certified: same bits")");
  for (const auto& other : {stamp("step0/rank0/dump.json", crc + 1), stamp("step0/../step0/rank0/dump.json", crc),
                            stamp("step1/rank0/dump.json", crc)}) {
    ASSERT_EQ(other.size(), 2u);
    EXPECT_EQ(other[1].kind, "certificate_of_other_files");
  }
  dir.Write("msprobe_certificate.json", "{");
  EXPECT_EQ(VerifyDump(dir.path())->findings.at(0).kind, "certificate_unreadable");
}

TEST(VerifyDump, StepsThatARankLacksAndDumpsThatCannotBeRead) {
  const TempDir dir;
  for (const char* rank : {"step0/rank0", "step0/rank1", "step1/rank0"}) {
    dir.Write(std::string(rank) + "/dump.json", Dump(Op("Tensor.add.0.forward")));
  }
  auto check = VerifyDump(dir.path());
  ASSERT_TRUE(check.ok());
  ASSERT_EQ(check->findings.size(), 1u);
  EXPECT_EQ(check->findings[0].text.English(), "step1 has no rank1");
  EXPECT_TRUE(check->readable());
  dir.Write("step1/rank1/dump.json", "");
  check = VerifyDump(dir.path());
  ASSERT_TRUE(check.ok());
  EXPECT_FALSE(check->readable());
  EXPECT_TRUE(Contains(CheckText(*check), "unreadable")) << CheckText(*check).English();
  EXPECT_FALSE(VerifyDump(dir.path() + "/nothing").ok());
}

}  // namespace
}  // namespace msprobe
