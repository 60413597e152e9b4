#include "diagnose/replay/replay.h"

#include <gtest/gtest.h>

#include <limits>

#include "diagnose/replay/op_call.h"
#include "diagnose/replay/replay_request.h"
#include "dump/test_files.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

ReplayedItem Item(const std::string& name, ReplayFigures target, ReplayFigures golden) {
  return {name, std::move(target), std::move(golden), 0, ReplayVerdict::kNotReplayed};
}
ReplayFigures Half(double ulp) { return {"bfloat16", ulp * 0x1p-7, ulp, 1}; }
ReplayFigures Single(double ulp) { return {"float32", ulp * 0x1p-23, ulp, 10}; }

ReplayVerdict Judged(ReplayFigures target, ReplayFigures golden) {
  ReplayedOp op;
  op.items = {Item("output.0", std::move(target), std::move(golden))};
  JudgeReplay(&op);
  return op.verdict;
}

TEST(ReplayResultTest, TheSideWithinItsOwnRoundingIsNearer) {
  EXPECT_EQ(Judged(Half(0.5), Single(9)), ReplayVerdict::kBothRoundOff);
  EXPECT_EQ(Judged(Half(4), Single(1)), ReplayVerdict::kGoldenNearer);
  // 1000 units of float32 are less than half a unit of bfloat16, and yet more than float32 explains.
  EXPECT_EQ(Judged(Half(0.5), Single(1000)), ReplayVerdict::kTargetNearer);
  EXPECT_EQ(Judged(Half(0), Half(kInf)), ReplayVerdict::kTargetNearer);
}

TEST(ReplayResultTest, BeyondRoundingTheSmallerErrorIsNearerIfItIsMuchSmaller) {
  EXPECT_EQ(Judged(Half(4), Half(7)), ReplayVerdict::kBothFar);
  EXPECT_EQ(Judged(Half(4), Half(9)), ReplayVerdict::kTargetNearer);
  EXPECT_EQ(Judged(Half(40), Single(1000)), ReplayVerdict::kGoldenNearer);
  EXPECT_EQ(Judged(Half(kInf), Half(kInf)), ReplayVerdict::kBothFar);
}

TEST(ReplayResultTest, TheResultFurthestBeyondRoundingDecides) {
  ReplayedOp op;
  op.name = "Torch.var_mean.0.forward";
  op.items = {Item("output.0", Half(0.4), Half(0.4)), Item("output.1", Half(3), Half(0)),
              Item("output.2", Half(2), Half(0.4))};
  JudgeReplay(&op);
  EXPECT_EQ(op.verdict, ReplayVerdict::kGoldenNearer);
  EXPECT_EQ(op.items[0].item, "output.1");
  EXPECT_EQ(op.items[1].verdict, ReplayVerdict::kBothRoundOff);
  EXPECT_EQ(ReplayText(op).English(), "golden nearer (output.1: target 3 ulp of bfloat16, golden exact)");
}

TEST(ReplayResultTest, TextsOfADumpStayOnTheirLine) {
  ReplayedOp op;
  op.why = Message("torch has no function a\nb");
  EXPECT_EQ(ReplayText(op).English(), "cannot be replayed: torch has no function a\\nb");
  ReplayedOp other;
  other.items = {Item("output.0", Half(0), Half(kInf))};
  other.notes = {Message("eps is taken to be 1e-5")};
  JudgeReplay(&other);
  EXPECT_EQ(ReplayText(other).English(),
            "target nearer (output.0: target exact, golden a different kind of value); eps is taken to be 1e-5");
  EXPECT_EQ(ReplayCountsText({op, other, op}).English(), "3 ops: 1 target nearer, 2 cannot be replayed");
  JsonWriter json;
  WriteReplay(&json, other);
  EXPECT_NE(json.Take().find("\"ulp\": \"inf\""), std::string::npos);
}

/// A dump of one op with these arguments.
std::string Dump(const std::string& args, const std::string& name = "Torch.f.0.forward") {
  return R"({"task": "tensor", "level": "L1", "framework": "pytorch", "data": {")" + name + R"(": {"input_args": [)" +
         args + R"(], "input_kwargs": {"dim": {"type": "int", "value": -1}}, "output": []}}})";
}

StatusOr<std::string> Request(const TempDir& dir, const std::string& args) {
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(dir.Write("dump.json", Dump(args))));
  OpSide side;
  MSP_RETURN_IF_ERROR(LoadOpSide(dump, 0, &side));
  return ReplaySideJson(dump, side);
}

TEST(ReplayRequestTest, ArgumentsAreDataNotText) {
  TempDir dir;
  const auto request = Request(dir, R"({"type": "str", "value": "'); import os #"}, {"type": "float", "value": NaN},
      [null, {"type": "slice", "value": [1, null, 2]}], {"type": "torch.dtype", "value": "torch.float16"},
      {"type": "ellipsis", "value": "..."}, {"a": {"type": "bool", "value": true}}, {"type": "torch.device", "value": "npu:0"})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(*request,
            "{\"owner\": \"torch\", \"function\": \"f\", \"in_place\": false, \"args\": [\"'); "
            "import os #\", "
            "{\"float\": \"nan\"}, [null, {\"slice\": [1, null, 2]}], {\"torch\": \"float16\"}, {\"ellipsis\": true}, "
            "{\"dict\": [[\"a\", true]]}, {\"device\": true}], \"kwargs\": {\"dim\": -1}, \"module\": false, "
            "\"tensors\": [], "
            "\"gradients\": [], \"outputs\": []}");
}

TEST(ReplayRequestTest, FilesOutsideOfTheDumpAreNotRead) {
  TempDir dir;
  const auto tensor = [](const std::string& data_name) {
    return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "data_name": )" + data_name + "}";
  };
  dir.Write("outside.pt", "x");
  dir.Write("dump_tensor_data/broken.pt", "no tensor");
  dir.Write("dump_tensor_data/other.npy", "no tensor");
  for (const auto& [name, word] :
       {std::pair("\"../outside.pt\"", "leads out"), std::pair("\"/etc/passwd\"", "absolute"),
        std::pair("\"absent.pt\"", "does not exist"), std::pair("\"other.npy\"", "not a file of PyTorch"),
        std::pair("\"broken.pt\"", "broken.pt"), std::pair("5", "no values of input.0")}) {
    const auto request = Request(dir, tensor(name));
    ASSERT_FALSE(request.ok()) << name;
    EXPECT_EQ(request.status().code(), Code::kBadInput);
    EXPECT_NE(request.status().message().find(word), std::string::npos) << request.status().message();
  }
}

TEST(ReplayPlanTest, TheFirstDivergenceThenSuspectsThenWhatAddsMost) {
  TempDir dir;
  const std::string tensor = R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1, "Min": 0,
                                 "Mean": 0, "Norm": 1, "data_name": "x.pt"})";
  std::string data;
  for (const char* name : {"Torch.a.0.forward", "Torch.b.0.forward", "Distributed.c.0.forward",
                           "Distributed.d.0.forward", "Torch.e.0.forward", "Module.m.Linear.forward.0"}) {
    data += (data.empty() ? "\"" : ", \"") + std::string(name) +
            R"(": {"input_args": [], "input_kwargs": {}, "output": [)" + tensor + "]}";
  }
  const std::string text = R"({"task": "tensor", "level": "L1", "framework": "pytorch", "data": {)" + data + "}}";
  FilePair files;
  files.target = dir.Write("t/dump.json", text);
  files.golden = dir.Write("g/dump.json", text);
  dir.Write("t/dump_tensor_data/x.pt", "x");
  dir.Write("g/dump_tensor_data/x.pt", "x");
  const auto pair = OpenDumpPair(files, Mapping());
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  OpDistances distances(6);
  for (size_t i = 0; i < distances.size(); ++i) {
    distances[i].matched = distances[i].has_output = true;
    distances[i].output_error = 0.1f * static_cast<float>(i + 1);
    distances[i].input_error = 0.1f;
  }
  Differences differences;
  differences.verdicts.assign(6, RulerVerdict::kInherited);
  differences.verdicts[2] = RulerVerdict::kBug;  // which no replay can call, but a reader expects
  const auto ops = [&](size_t most, const Divergence& divergence) {
    ReplayPlan plan(most);
    plan.Add(*pair, files, differences, distances);
    plan.AddFirst(divergence);
    std::vector<size_t> out;
    for (const ReplayPlan::Entry& e : plan.Entries()) out.push_back(e.op);
    return out;
  };
  // The communication at 3 is left out; a module comes after the functions.
  EXPECT_EQ(ops(10, {}), (std::vector<size_t>{0, 1, 2, 4, 5}));
  EXPECT_EQ(ops(2, {}), (std::vector<size_t>{2, 4}));
  Divergence divergence;
  divergence.found = true;
  divergence.creator.target_dump = files.target;
  divergence.creator.golden_dump = files.golden;
  divergence.creator.difference.kind = FirstDifference::Kind::kOp;
  divergence.creator.difference.op = 1;
  EXPECT_EQ(ops(2, divergence), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(ops(10, divergence), (std::vector<size_t>{0, 1, 2, 4, 5}));
}

}  // namespace
}  // namespace msprobe
