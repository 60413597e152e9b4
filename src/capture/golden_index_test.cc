#include "capture/golden_index.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "json/parser.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;

constexpr char kTensor[] = R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": NaN, "md5": ")";

class GoldenIndexTest : public testing::Test {
 protected:
  GoldenIndexTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() / ("msprobe_bench_" + std::string(info->name()) + std::to_string(::getpid()));
    fs::create_directories(root_);
  }
  ~GoldenIndexTest() override { fs::remove_all(root_); }

  std::string Write(const std::string& where, const std::string& data, const std::string& tail = "}}") {
    const fs::path path = root_ / where;
    fs::create_directories(path.parent_path());
    std::ofstream(path)
        << R"({"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {)" << data
        << tail;
    return path.string();
  }
  static std::string Op(const std::string& name, const std::string& in, const std::string& out) {
    return "\"" + name + R"(": {"input_args": [)" + kTensor + in + R"("}, 3, null], "input_kwargs": {}, "output": [)" +
           kTensor + out + "\"}]}";
  }
  static OpChecksums Parsed(const std::string& in, const std::string& out) {
    JsonDoc doc;
    EXPECT_TRUE(ParseJson(std::string("{") + Op("x", in, out) + "}", "op", &doc).ok());
    OpChecksums sums;
    SumsOf("x", *doc.Find("x"), &sums);
    return sums;
  }

  fs::path root_;
};

TEST_F(GoldenIndexTest, FindsWhatDiffers) {
  const auto index = GoldenIndex::Read(Write("dump.json", Op("Tensor.add.0.forward", "00000001", "00000002") + "," +
                                                              Op("Tensor.mul.0.forward", "00000001", "00000003")));
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_EQ(index->size(), 2u);
  EXPECT_TRUE(index->Contains("Tensor.add.0.forward"));
  EXPECT_FALSE(index->Contains("Tensor.add.1.forward"));
  EXPECT_FALSE(index->OnlyOutputsDiffer("Tensor.add.0.forward", Parsed("00000001", "00000002")));
  EXPECT_TRUE(index->OnlyOutputsDiffer("Tensor.add.0.forward", Parsed("00000001", "00000003")));
  EXPECT_FALSE(index->OnlyOutputsDiffer("Tensor.add.0.forward", Parsed("00000004", "00000003")));
  EXPECT_FALSE(index->OnlyOutputsDiffer("Tensor.add.9.forward", Parsed("00000001", "00000003")));
}

TEST_F(GoldenIndexTest, ADumpThatEndsInTheMiddle) {
  const auto index = GoldenIndex::Read(
      Write("dump.json", Op("Tensor.add.0.forward", "00000001", "00000002"), R"(, "Tensor.mul.0.for)"));
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_TRUE(index->OnlyOutputsDiffer("Tensor.add.0.forward", Parsed("00000001", "00000003")));
}

TEST_F(GoldenIndexTest, RefusesWhatHasNoChecksums) {
  const std::string path = Write("dump.json", R"("Tensor.add.0.forward": {"output": [{"type": "int", "value": 1}]})");
  const auto index = GoldenIndex::Read(path);
  ASSERT_FALSE(index.ok());
  EXPECT_NE(index.status().message().find("summary_mode"), std::string::npos);
  EXPECT_FALSE(GoldenIndex::Read((root_ / "none.json").string()).ok());
}

TEST_F(GoldenIndexTest, ChecksumsOfOtherKindsAreNone) {
  const auto index = GoldenIndex::Read(Write("dump.json", Op("Tensor.add.0.forward", "0x7e22e0c77ff218ab", "zzzz") +
                                                              std::string(",") + Op("Tensor.mul.0.forward", "1", "2")));
  ASSERT_TRUE(index.ok());
  EXPECT_FALSE(index->OnlyOutputsDiffer("Tensor.add.0.forward", Parsed("00000001", "00000003")));
}

TEST_F(GoldenIndexTest, StepsAndRanks) {
  const std::string op = Op("Tensor.add.0.forward", "00000001", "00000002");
  for (const char* where :
       {"a/step0/rank0/dump.json", "a/step0/rank1/dump.json", "a/step1/rank/dump.json", "a/step2/proc77/dump.json"}) {
    Write(where, op);
  }
  auto found = [&](const char* path, int step, int rank) {
    const auto dump = FindGoldenDump((root_ / path).string(), step, rank);
    return dump.ok() ? fs::relative(*dump, root_).string() : "none";
  };
  EXPECT_EQ(found("a", 0, 1), "a/step0/rank1/dump.json");
  EXPECT_EQ(found("a", 0, -1), "a/step0/rank0/dump.json");
  EXPECT_EQ(found("a", 0, 2), "none");
  EXPECT_EQ(found("a", 1, -1), "a/step1/rank/dump.json");
  EXPECT_EQ(found("a", 1, 0), "a/step1/rank/dump.json");
  EXPECT_EQ(found("a", 2, -1), "a/step2/proc77/dump.json");
  EXPECT_EQ(found("a", 3, 0), "none");
  EXPECT_EQ(found("a/step0", 5, 1), "a/step0/rank1/dump.json");
  EXPECT_EQ(found("a/step2/proc77", 2, 3), "a/step2/proc77/dump.json");
  EXPECT_EQ(found("a/step1/rank/dump.json", 4, 3), "a/step1/rank/dump.json");
  EXPECT_EQ(found("b", 0, 0), "none");
}

}  // namespace
}  // namespace msprobe
