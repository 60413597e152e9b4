#include "compare/first_difference/head_preview.h"

#include <gtest/gtest.h>

#include "dump/test_files.h"

namespace msprobe {
namespace {

class HeadPreviewTest : public testing::Test {
 protected:
  std::string Dump(const std::string& name, const std::string& task, int ops, const std::string& last) {
    std::string text = R"({"task": ")" + task + R"(", "level": "L1", "framework": "pytorch", "data": {)";
    for (int i = 0; i < ops; ++i) {
      const std::string max = i + 1 == ops ? last : "1.0";
      text += (i ? ", " : "") + std::string("\"F.x.") + std::to_string(i) +
              R"(.forward": {"input_args": [], "output": [{"type": "torch.Tensor", "dtype": "torch.float32", )" +
              R"("shape": [1], "Max": )" + max + R"(, "Min": 1.0, "Mean": 1.0, "Norm": )" + max + "}]}";
    }
    dir_.Write(name, text + "}}");
    return dir_.path() + "/" + name;
  }
  std::string Glance(const std::string& target, const std::string& golden) {
    FilePair files;
    files.target = target;
    files.golden = golden;
    return HeadPreview(files).English();
  }
  TempDir dir_;
};

TEST_F(HeadPreviewTest, CountsTheFirstOps) {
  const std::string golden = Dump("g", "tensor", 200, "1.0");
  EXPECT_EQ(Glance(golden, golden), "the statistics of the first 200 ops agree");
  EXPECT_EQ(Glance(Dump("t", "tensor", 200, "2.0"), golden),
            "199 of the first 200 ops agree; first difference: F.x.199.forward");
}

TEST_F(HeadPreviewTest, SaysNothingOfSmallOrDamagedDumps) {
  const std::string golden = Dump("g", "statistics", 200, "1.0");
  EXPECT_EQ(Glance(golden, golden), "");
  const std::string few = Dump("f", "tensor", 20, "1.0");
  EXPECT_EQ(Glance(few, few), "");
  dir_.Write("bad", R"({"task": "tensor", "data": {"a": {]]]})");
  EXPECT_EQ(Glance(dir_.path() + "/bad", golden), "");
  EXPECT_EQ(Glance(dir_.path() + "/none", golden), "");
}

TEST_F(HeadPreviewTest, ReadsOnlyTheStartOfALargeDump) {
  const std::string golden = Dump("g", "statistics", 250'000, "1.0");
  const std::string line = Glance(golden, golden);
  EXPECT_EQ(line.substr(0, 10), "the first ") << line;
  EXPECT_LT(std::stoi(line.substr(10)), 10'000);
}

}  // namespace
}  // namespace msprobe
