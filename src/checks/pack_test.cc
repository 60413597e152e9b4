#include "checks/pack.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "checks/pack_compare.h"
#include "checks/sequence_ratio.h"
#include "sheet/zip_writer.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;

class Packs : public testing::Test {
 protected:
  Packs() : folder_(fs::temp_directory_path() / ("packs_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Packs() override { fs::remove_all(folder_); }
  std::string Zip(const std::string& name, const std::vector<ZipEntry>& entries) const {
    const std::string path = (folder_ / name).string();
    EXPECT_TRUE(WriteZip(path, entries).ok());
    return path;
  }
  static Pack Read(const std::string& path) {
    auto file = PackFile::Open(path);
    EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.status().message());
    auto pack = file->Read();
    EXPECT_TRUE(pack.ok()) << (pack.ok() ? "" : pack.status().message());
    return *pack;
  }
  fs::path folder_;
};

std::string Text(const SheetValue& value) {
  if (value.kind == SheetValue::Kind::kText) return value.text;
  if (value.kind == SheetValue::Kind::kBool) return value.number != 0 ? "True" : "False";
  return value.kind == SheetValue::Kind::kNone ? "" : std::to_string(value.number);
}

const PackPart& PartOf(const std::vector<PackPart>& parts, std::string_view name) {
  for (const PackPart& part : parts) {
    if (part.sheet.name == name) return part;
  }
  ADD_FAILURE() << name;
  return parts[0];
}

TEST_F(Packs, ColumnsStandUnderTheirTitles) {
  const Pack bench = Read(Zip("a.zip", {{"env", R"({"HCCL_DETERMINISTIC": "true", "ASCEND_LAUNCH_BLOCKING": "1"})"},
                                        {"pip", "numpy=1.0\ntorch=2.0\n"}}));
  const Pack cmp = Read(Zip(
      "b.zip", {{"env", R"({"NCCL_DETERMINISTIC": "0", "CUDA_LAUNCH_BLOCKING": "true"})"}, {"pip", "torch=2.0\n"}}));
  const auto parts = ComparePacks(bench, cmp);
  const auto& env = PartOf(parts, "env").sheet.rows;
  ASSERT_EQ(env.size(), 3u);  // 1 and true of launch blocking are the same
  EXPECT_EQ(Text(env[0][0]), "HCCL_DETERMINISTIC");
  EXPECT_EQ(Text(env[0][1]), "NCCL_DETERMINISTIC");
  EXPECT_EQ(Text(env[0][2]), "true");
  EXPECT_EQ(Text(env[0][3]), "0");
  EXPECT_EQ(Text(env[1][1]), "only bench has this env");
  EXPECT_EQ(Text(env[1][4]), "warning");
  const auto other = ComparePacks(
      Read(Zip("c.zip", {{"env", R"({"NVIDIA_TF32_OVERRIDE": "1", "NCCL_IB_TIMEOUT": "22", "CUBLAS_LOGINFO": "0"})"}})),
      Read(
          Zip("d.zip", {{"env", R"({"NVIDIA_TF32_OVERRIDE": "0", "NCCL_IB_TIMEOUT": "10", "CUBLAS_LOGINFO": "0"})"}})));
  ASSERT_EQ(PartOf(other, "env").sheet.rows.size(), 1u);  // a timeout computes nothing
  EXPECT_EQ(Text(PartOf(other, "env").sheet.rows[0][0]), "NVIDIA_TF32_OVERRIDE");
  EXPECT_EQ(Text(PartOf(other, "env").sheet.rows[0][4]), "warning");
  const auto& pip = PartOf(parts, "pip").sheet.rows;
  ASSERT_EQ(pip.size(), 1u);
  EXPECT_EQ(Text(pip[0][1]), "1.0");
  EXPECT_EQ(Text(pip[0][2]), "None");
}

TEST_F(Packs, RelativeDifferencesAreByMagnitude) {
  const std::string place = "weights/step0/rank0/weight.json";
  const Pack bench = Read(Zip(
      "a.zip",
      {{place,
        R"({"w": {"max": 2.0, "min": -4.0, "mean": 0.0, "norm": NaN}, "x": {"max": 1, "min": 1, "mean": 1, "norm": 1}})"}}));
  const Pack cmp = Read(Zip("b.zip", {{place, R"({"w": {"max": 1.0, "min": -2.0, "mean": 1.0, "norm": NaN}})"}}));
  const auto parts = ComparePacks(bench, cmp);
  const PackPart& weights = PartOf(parts, "weights");
  EXPECT_EQ(weights.verdict, PackVerdict::kError);
  ASSERT_EQ(weights.sheet.rows.size(), 2u);
  EXPECT_EQ(Text(weights.sheet.rows[0][4]), "0.500000");
  EXPECT_EQ(Text(weights.sheet.rows[0][5]), "0.500000");
  EXPECT_EQ(Text(weights.sheet.rows[0][6]), "");
  EXPECT_EQ(Text(weights.sheet.rows[0][7]), "0.000000");
  EXPECT_EQ(Text(weights.sheet.rows[1][3]), "only bench have");
}

TEST_F(Packs, HyperParametersMatchByNameAliasAndSimilarity) {
  const std::string place = "hyperparameters/hyperparameters_static.json";
  const Pack bench = Read(
      Zip("a.zip",
          {{place, R"({"lr": "1e-4", "a.type": 1, "b.type": 2, "num-layers": 4, "hidden_sizes": 8, "gone": 1})"}}));
  const Pack cmp = Read(Zip(
      "b.zip",
      {{place,
        R"({"learning_rate": 0.0002, "a.type": 1, "b.type": 3, "num_layers": "4", "hidden_size": 16, "new": 1})"}}));
  const auto parts = ComparePacks(bench, cmp);
  std::vector<std::string> rows;
  for (const auto& row : PartOf(parts, "hyperparameters").sheet.rows) {
    rows.push_back(Text(row[1]) + "|" + Text(row[2]) + "|" + Text(row[5]) + "|" + Text(row[6]));
  }
  EXPECT_EQ(rows,
            (std::vector<std::string>{
                "Only in comparison|new||warning", "b.type|b.type|pure name|error", "gone|Only in benchmark||warning",
                "hidden_sizes|hidden_size|similarity:0.9565217391304348|error", "lr|learning_rate|mapping|error"}));
}

TEST_F(Packs, RatioIsThatOfPython) {
  EXPECT_DOUBLE_EQ(SequenceRatio("abcd", "bcde"), 0.75);
  EXPECT_DOUBLE_EQ(SequenceRatio("", ""), 1);
  EXPECT_DOUBLE_EQ(SequenceRatio("num_layers", "n_layer"), 0.8235294117647058);
}

TEST_F(Packs, NothingLeavesTheDirectory) {
  const std::string path = Zip("a.zip", {{"env", "{}"},
                                         {"../evil", "x"},
                                         {"/tmp/evil", "x"},
                                         {"dataset/../../env", "x"},
                                         {"random/rank0.json/../../x", "x"}});
  const auto file = PackFile::Open(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Unpack((folder_ / "out").string()).ok());
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) files += entry.is_regular_file();
  EXPECT_EQ(files, 2u);  // the archive and out/env
  const auto pack = file->Read();
  ASSERT_TRUE(pack.ok());
  ASSERT_EQ(pack->warnings.size(), 1u);
  EXPECT_EQ(pack->warnings[0].English().substr(0, 9), "4 members");
}

TEST_F(Packs, BombsAndOtherFilesAreRefused) {
  const std::string bomb = Zip("bomb.zip", {{"env", std::string(200 << 20, ' ')}});
  const auto opened = PackFile::Open(bomb);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("more than a pack holds"), std::string::npos);
  EXPECT_FALSE(PackFile::Open(Zip("other.zip", {{"a.txt", "x"}})).ok());
  std::ofstream(folder_ / "no.zip") << "no zip";
  EXPECT_FALSE(PackFile::Open((folder_ / "no.zip").string()).ok());
  const auto broken = PackFile::Open(Zip("broken.zip", {{"env", "{"}}));
  ASSERT_TRUE(broken.ok());
  EXPECT_FALSE(broken->Read().ok());
}

}  // namespace
}  // namespace msprobe
