#include "compare/pair/compare.h"

#include <gtest/gtest.h>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/text.h"
#include "dump/test_files.h"

namespace msprobe {
namespace {

/// Writes the op's name and the id of its stack for each row.
class NameFormat : public RowFormat {
 public:
  void AppendOp(const OpDiff& op, int stack, OpBlock* block) const override {
    for (size_t i = 0; i < op.rows_used; ++i) {
      block->bytes += op.target[i].name + " " + std::to_string(stack) + "\n";
      block->row_ends.push_back(static_cast<uint32_t>(block->bytes.size()));
    }
  }
};

class ComparePairTest : public testing::Test {
 protected:
  void SetUp() override { threads_ = ThreadCount(); }
  void TearDown() override {
    SetThreadCount(threads_);
    SetInterruptRequested(false);
  }
  std::string Dump(const std::string& name, const std::string& head, int ops, const std::string& leaf) {
    std::string text = "{" + head + R"(, "data": {)";
    for (int i = 0; i < ops; ++i) {
      text += (i ? ", \"F.x." : "\"F.x.") + std::to_string(i) + R"(.forward": {"input_args": [)" + leaf +
              R"(], "output": [)" + leaf + "]}";
    }
    return dir_.Write(name, text + "}}");
  }
  StatusOr<DumpPair> Open(const std::string& a, const std::string& b) {
    FilePair files;
    files.target = a;
    files.golden = b;
    return OpenDumpPair(files, Mapping());
  }
  static constexpr const char* kStatistics = R"("task": "statistics", "level": "L1", "framework": "pytorch")";
  static constexpr const char* kLeaf =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1], "Max": 1.0, "Min": 1.0, "Mean": 1.0, "Norm": 1.0})";
  static constexpr const char* kHashed =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1], "md5": "0a0b0c0d"})";
  TempDir dir_;
  int threads_ = 1;
};

TEST_F(ComparePairTest, RowsAreTheSameForAnyThreadCount) {
  const std::string a = Dump("a/dump.json", kStatistics, 1500, kLeaf),
                    b = Dump("b/dump.json", kStatistics, 1400, kLeaf);
  dir_.Write("a/stack.json", R"({"0": [["F.x.3.forward"], ["File a, line 1, in f, \n x"]]})");
  std::string all[2];
  for (int k = 0; k < 2; ++k) {
    SetThreadCount(k ? 4 : 1);
    const auto pair = Open(a, b);
    ASSERT_TRUE(pair.ok()) << pair.status().message();
    double last = 0;
    const auto outcome = ComparePair(
        *pair, NameFormat(),
        [&](OpBlock&& block) {
          all[k] += block.bytes;
          return OkStatus();
        },
        [&](double share) { last = share; });
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome->counts.rows, 3000u);
    EXPECT_EQ(outcome->counts.pass, 3000u);
    EXPECT_EQ(outcome->counts.ops, 1500u);
    EXPECT_EQ(outcome->counts.matched_ops, 1400u);
    EXPECT_EQ(outcome->distances.size(), 1500u);
    EXPECT_EQ(last, 1.0);
    EXPECT_EQ(*CountRows(*pair->target), 3000u);
  }
  EXPECT_EQ(all[0], all[1]);
  EXPECT_TRUE(Contains(all[0], "F.x.3.forward.input.0 0\n"));
  EXPECT_TRUE(Contains(all[0], "F.x.1499.forward.output.0 -1\n"));
}

TEST_F(ComparePairTest, StopsAtAnInterruptAndAtAFullDisk) {
  const std::string a = Dump("a/dump.json", kStatistics, 2000, kLeaf);
  const auto pair = Open(a, a);
  ASSERT_TRUE(pair.ok());
  int taken = 0;
  const auto full = ComparePair(
      *pair, NameFormat(), [&](OpBlock&&) { return ++taken == 2 ? InternalError("disk full") : OkStatus(); }, nullptr);
  EXPECT_EQ(full.status().code(), Code::kInternal);
  EXPECT_EQ(taken, 2);
  const auto stopped = ComparePair(
      *pair, NameFormat(),
      [&](OpBlock&&) {
        SetInterruptRequested(true);
        return OkStatus();
      },
      nullptr);
  EXPECT_EQ(stopped.status().code(), Code::kInterrupted);
}

TEST_F(ComparePairTest, DifferentKindsAreRefused) {
  const std::string stat = Dump("s.json", kStatistics, 1, kLeaf), md5 = Dump("m.json", kStatistics, 1, kHashed);
  const std::string tensor = Dump("t.json", R"("task": "tensor", "framework": "pytorch")", 1, kLeaf);
  const std::string shape = Dump("u.json", R"("task": "structure", "framework": "pytorch")", 1, kLeaf);
  const std::string other = Dump("o.json", R"("task": "statistics", "framework": "jax")", 1, kLeaf);
  const std::string debug =
      Dump("d.json", R"("task": "statistics", "level": "debug", "framework": "pytorch")", 1, kLeaf);
  const std::string empty = Dump("e.json", kStatistics, 0, kLeaf);
  const std::string old = Dump("old.json", R"("task": "statistics")", 1, kLeaf);
  for (const std::string& bad : {md5, tensor, other, debug, empty, shape}) {
    const auto pair = Open(stat, bad);
    ASSERT_FALSE(pair.ok()) << bad;
    EXPECT_EQ(pair.status().code(), Code::kBadInput);
    EXPECT_EQ(pair.status().message().find('\n'), std::string::npos);
  }
  EXPECT_EQ(Open(tensor, tensor)->options.mode, CompareMode::kTensor);
  EXPECT_EQ(Open(shape, shape).status().code(), Code::kBadInput);
  EXPECT_TRUE(Open(stat, old).ok()) << "old dumps do not name their framework";
  EXPECT_EQ(Open(md5, md5)->options.mode, CompareMode::kChecksum);
}

TEST_F(ComparePairTest, ATruncatedDumpIsComparedWithAWarning) {
  const std::string whole = Dump("a/dump.json", kStatistics, 10, kLeaf);
  std::string text = ReadAll(whole);
  const std::string cut = dir_.Write("b/dump.json", text.substr(0, text.size() * 2 / 3));
  const auto pair = Open(cut, whole);
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  ASSERT_EQ(pair->warnings.size(), 1u);
  EXPECT_TRUE(Contains(pair->warnings[0], "byte"));
  EXPECT_LT(pair->target->ops().size(), 10u);
  EXPECT_EQ(pair->plan.target_only(), 0u);
}

}  // namespace
}  // namespace msprobe
