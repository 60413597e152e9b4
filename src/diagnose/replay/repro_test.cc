#include "diagnose/replay/repro.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/replay/repro_call.h"
#include "dump/test_files.h"
#include "json/parser.h"

namespace msprobe {
namespace {

const std::string kTensor =
    R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": -1.0, "Mean": 0.0, "Norm": 1.4})";

StatusOr<OpCall> Call(const std::string& name, const std::string& args, const std::string& kwargs = "",
                      const std::string& parameters = "") {
  static JsonDoc doc;
  const std::string text =
      R"({"input_args": [)" + args + R"(], "input_kwargs": {)" + kwargs + R"(}, "parameters": {)" + parameters + "}}";
  EXPECT_TRUE(ParseJson(text, "test", &doc).ok()) << text;
  return CallOf(name, doc);
}
std::string Text(const StatusOr<OpCall>& call) {
  return call.ok() ? PythonText(*call) : "error: " + call.status().message();
}

TEST(ReproCallTest, FunctionsMethodsAndModules) {
  EXPECT_EQ(Text(Call("Functional.linear.0.forward", kTensor + ", " + kTensor + ", null")),
            "F.linear(t('input.0'), t('input.1'), None)");
  EXPECT_EQ(Text(Call("Torch.norm.3.forward", kTensor, R"("p": {"type": "float", "value": 2.0})")),
            "torch_function('norm')(t('input.0'), p=2.0)");
  EXPECT_EQ(
      Text(Call("Tensor.__getitem__.0.forward",
                kTensor + R"(, [{"type": "ellipsis", "value": "..."}, {"type": "slice", "value": [1, null, null]}])")),
      "t('input.0').__getitem__(tuple([..., slice(1, None, None)]))");
  EXPECT_EQ(Text(Call("Module.fc.Linear.forward.0", kTensor, "", "\"weight\": " + kTensor)),
            "F.linear(t('input.0'), t('parameters.weight'), None)");
  EXPECT_EQ(Text(Call("Torch.zeros.0.forward", "[{\"type\": \"int\", \"value\": 2}]",
                      R"("dtype": {"type": "torch.dtype", "value": "torch.float16"})")),
            "torch_function('zeros')([2], dtype=torch.float16)");
}

TEST(ReproCallTest, WhatCannotBeCalledIsRefused) {
  for (const char* name : {"Distributed.all_reduce.0.forward", "NPU.npu_swiglu.0.forward", "Module.a.MyBlock.forward.0",
                           "Functional.x;import os.0.forward", "Functional..0.forward"}) {
    const auto call = Call(name, kTensor);
    ASSERT_FALSE(call.ok()) << name;
    EXPECT_EQ(call.status().code(), Code::kBadInput);
  }
  EXPECT_FALSE(Call("Torch.f.0.forward", R"({"type": "Widget", "value": "x"})").ok());
}

TEST(ReproCallTest, TextOfTheDumpStaysText) {
  EXPECT_EQ(Text(Call("Torch.f.0.forward", R"({"type": "str", "value": "'); import os #"})")),
            "torch_function('f')(\"'); import os #\")");
  EXPECT_FALSE(Call("Torch.f.0.forward", R"({"type": "torch.dtype", "value": "torch.float32; import os"})").ok());
  // A name that is not an identifier names no argument; a type that is not a name of torch is not a tensor.
  EXPECT_EQ(Text(Call("Torch.f.0.forward", "", R"("a=os.system('x'), b": {"type": "int", "value": 1})")),
            "torch_function('f')()");
  EXPECT_FALSE(Call("Torch.f.0.forward", R"({"type": "torch.Tensor", "dtype": "os.x", "shape": [1]})").ok());
}

TEST(ReproTest, StatisticsMakeAScriptOfAtMostFiftyLines) {
  TempDir dir;
  const auto write = [&](const std::string& side, const std::string& out) {
    const std::string forward = R"("Torch.matmul.0.forward": {"input_args": [)" + kTensor + ", " + kTensor +
                                R"(], "input_kwargs": {}, "output": [)" + kTensor + "]}";
    const std::string backward =
        R"("Torch.matmul.0.backward": {"input": [)" + kTensor + R"(], "output": [)" + out + "]}";
    return dir.Write(side + "/dump.json", R"({"task": "statistics", "level": "L1", "framework": "pytorch", "data": {)" +
                                              forward + ", " + backward + "}}");
  };
  Origin origin;
  origin.target_dump = write("t", kTensor);
  origin.golden_dump = write("g", R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 9.0,
                                      "Min": -1.0, "Mean": 0.0, "Norm": 1.4})");
  origin.difference.kind = FirstDifference::Kind::kOp;
  origin.difference.op = 1;
  origin.difference.name = "Torch.matmul.0.backward";
  origin.difference.detail = "\"\"\"\nimport os";
  const auto repro = WriteRepro(origin, Mapping(), dir.path() + "/out");
  ASSERT_TRUE(repro.ok()) << repro.status().message();
  EXPECT_TRUE(repro->made_up);
  EXPECT_EQ(repro->tensors, "");
  const std::string text = ReadAll(repro->script);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 50);
  EXPECT_NE(
      text.find("def target(t): return gradients(lambda t: torch_function('matmul')(t('input.0'), t('input.1')), t, "
                "['gradient.0'])"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("\nimport os\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace msprobe
