#include "capture/trigger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace msprobe {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

void AddTensor(Record* record, double max, DType dtype = DType::kFloat32) {
  TensorRecord t;
  t.dtype = dtype;
  t.has_stats = true;
  t.stats.max = max;
  t.stats.min = 0;
  record->Tensor() = t;
}

Record Op(double in, double out, NameForm form = NameForm::kApiForward) {
  Record r;
  r.name = {InternName("Tensor.mul"), 0, form};
  r.KeyLiteral(form == NameForm::kApiForward ? "input_args" : "input");
  r.BeginList();
  AddTensor(&r, in);
  r.EndList();
  r.KeyLiteral("output");
  r.BeginList();
  AddTensor(&r, 1);
  r.BeginDict();
  r.Key("input");  // a key of the value, not of the op
  AddTensor(&r, out);
  r.EndDict();
  r.EndList();
  return r;
}

Record JsonOp(const char* output) {
  Record r;
  r.name = {InternName("Tensor.to_sparse"), 0, NameForm::kApiForward};
  r.KeyLiteral("output");
  r.BeginList();
  r.Json(output);
  r.EndList();
  return r;
}

TEST(Trigger, OutputsDecideAboutOverflow) {
  EXPECT_FALSE(OutputOverflows(Op(1, 2)));
  EXPECT_FALSE(OutputOverflows(Op(kInf, 2)));
  EXPECT_TRUE(OutputOverflows(Op(1, kInf)));
  EXPECT_TRUE(OutputOverflows(Op(1, -kInf)));
  EXPECT_TRUE(OutputOverflows(Op(1, std::nan(""), NameForm::kApiBackward)));
  EXPECT_FALSE(OutputOverflows(Op(std::nan(""), 1, NameForm::kApiBackward)));
}

TEST(Trigger, GradientsOfParameters) {
  Record r;
  r.name = {InternName("Module.fc.Linear"), 0, NameForm::kParamGrad};
  r.Key("input");
  r.BeginList();
  AddTensor(&r, 1);
  r.EndList();
  EXPECT_FALSE(OutputOverflows(r));
  r.Key("weight");
  r.BeginList();
  AddTensor(&r, std::nan(""));
  r.EndList();
  EXPECT_TRUE(OutputOverflows(r));
}

TEST(Trigger, TensorsThatPythonDescribed) {
  EXPECT_TRUE(OutputOverflows(JsonOp("{\n \"Max\": 1.0,\n \"Min\": -Infinity\n}")));
  EXPECT_TRUE(OutputOverflows(JsonOp("{\n \"Max\": NaN}")));
  EXPECT_FALSE(OutputOverflows(JsonOp("{\n \"Max\": null,\n \"Min\": 3,\n \"Mean\": NaN\n}")));
  EXPECT_FALSE(OutputOverflows(JsonOp("{\n \"value\": \"\\\"Max\\\": NaN\"\n}")));
}

TEST(Trigger, SidesAreTakenOut) {
  auto tensors = [](const Record& r) {
    return std::count_if(r.nodes.begin(), r.nodes.end(),
                         [](const RecordNode& n) { return n.type == RecordNodeType::kTensor; });
  };
  Record op = Op(1, kInf);
  ASSERT_EQ(tensors(op), 3);
  DropInputs(&op);
  EXPECT_EQ(tensors(op), 2);
  EXPECT_TRUE(OutputOverflows(op));
  DropOutputs(&op);
  EXPECT_TRUE(op.nodes.empty());
  op = Op(1, kInf, NameForm::kApiBackward);
  DropOutputs(&op);
  EXPECT_EQ(tensors(op), 1);
  EXPECT_FALSE(OutputOverflows(op));
}

TEST(Trigger, EndsAtTheLimit) {
  Trigger trigger;
  trigger.Configure({.kind = TriggerKind::kOverflow, .limit = 2});
  EXPECT_FALSE(trigger.Keep(Op(1, 2)));
  EXPECT_TRUE(trigger.Keep(Op(1, kInf)));
  EXPECT_FALSE(trigger.exhausted());
  EXPECT_TRUE(trigger.Keep(Op(1, kInf)));
  EXPECT_TRUE(trigger.exhausted());
  EXPECT_FALSE(trigger.Keep(Op(1, kInf)));
  EXPECT_EQ(trigger.kept(), 2u);
  trigger.Configure({.kind = TriggerKind::kOverflow, .limit = -1});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(trigger.Keep(Op(1, kInf)));
  EXPECT_FALSE(trigger.exhausted());
}

TEST(Trigger, ThreadsTogetherKeepNoMoreThanTheLimit) {
  Trigger trigger;
  trigger.Configure({.kind = TriggerKind::kOverflow, .limit = 50});
  const Record op = Op(1, kInf);
  std::atomic<int> kept{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 40; ++i) kept += trigger.Keep(op) ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(kept, 50);
}

TEST(Trigger, WithoutItsGoldenDumpNothingIsKept) {
  Trigger trigger;
  trigger.Configure({.kind = TriggerKind::kDifference, .limit = 1, .bench_path = "/nowhere"});
  EXPECT_FALSE(trigger.BeginStep(0, 0).ok());
  EXPECT_FALSE(trigger.Keep(Op(1, 2)));
}

}  // namespace
}  // namespace msprobe
