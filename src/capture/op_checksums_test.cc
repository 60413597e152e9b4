#include "capture/op_checksums.h"

#include <gtest/gtest.h>

#include <string>

#include "capture/format.h"
#include "json/parser.h"
#include "json/writer.h"

namespace msprobe {
namespace {

void AddChecksum(Record* record, uint32_t crc, std::vector<int64_t> shape = {2, 3}) {
  TensorRecord t;
  t.dtype = DType::kFloat32;
  t.has_crc = true;
  t.crc = crc;
  t.ndim = static_cast<uint8_t>(shape.size());
  t.dims = static_cast<uint32_t>(record->dims.size());
  record->dims.insert(record->dims.end(), shape.begin(), shape.end());
  record->Tensor() = t;
}

// The sums of a record are those of what it is written as.
void ExpectSameAsWritten(const Record& record, size_t inputs, size_t outputs) {
  std::string text;
  JsonWriter json(&text, kJsonIndented, 0);
  json.BeginObject();
  FormatRecord(record, {"pytorch", "torch.Tensor", "torch."}, &json);
  json.EndObject();
  JsonDoc doc;
  ASSERT_TRUE(ParseJson(text, "record", &doc).ok()) << text;
  OpChecksums here, written;
  SumsOf(record, &here);
  SumsOf(record.name.str(), *doc.Find(record.name.str()), &written);
  EXPECT_EQ(here.inputs, written.inputs) << text;
  EXPECT_EQ(here.outputs, written.outputs) << text;
  EXPECT_EQ(here.inputs.size(), inputs);
  EXPECT_EQ(here.outputs.size(), outputs);
}

TEST(OpChecksums, OfAModuleWithNestedValues) {
  Record r;
  r.name = {InternName("Module.block.Block"), 0, NameForm::kModuleForward};
  r.KeyLiteral("input_args");
  r.BeginList();
  AddChecksum(&r, 1);
  r.Null();
  r.Int(3);
  r.Typed("torch.dtype", "torch.float32");
  r.BeginDict();
  r.Key("mask");
  AddChecksum(&r, 2, {});
  r.Key("pair");
  r.BeginList();
  AddChecksum(&r, 3, {7});
  AddChecksum(&r, 3, {7});
  r.EndList();
  r.Key("none");
  r.EmptyDict();
  r.EndDict();
  r.Json(R"({"type": "torch.distributed.tensor.DTensor", "dtype": "torch.float32", "shape": [4], "md5": "0000abcd"})");
  r.Json(R"({"type": "torch._subclasses.fake_tensor.FakeTensor", "shape": [4], "md5": null})");
  AddChecksum(&r, 4);
  r.EndList();
  r.KeyLiteral("input_kwargs");
  r.BeginDict();
  r.Key("scale");
  AddChecksum(&r, 5, {1});
  r.EndDict();
  r.KeyLiteral("output");
  r.BeginList();
  AddChecksum(&r, 6);
  AddChecksum(&r, 0xffffffff, {0});
  r.EndList();
  r.KeyLiteral("parameters");
  r.BeginDict();
  r.Key("weight");
  AddChecksum(&r, 8);
  r.EndDict();
  ExpectSameAsWritten(r, 7, 2);
}

TEST(OpChecksums, OfGradientsOfParameters) {
  Record r;
  r.name = {InternName("Module.fc.Linear"), 1, NameForm::kParamGrad};
  for (const char* name : {"bias", "weight"}) {
    r.Key(name);
    r.BeginList();
    AddChecksum(&r, 9);
    r.EndList();
  }
  ExpectSameAsWritten(r, 0, 2);
}

TEST(OpChecksums, OfABackward) {
  Record r;
  r.name = {InternName("Functional.linear"), 0, NameForm::kApiBackward};
  r.KeyLiteral("input");
  r.BeginList();
  AddChecksum(&r, 1);
  r.EndList();
  r.KeyLiteral("output");
  r.BeginList();
  AddChecksum(&r, 2);
  r.Null();
  AddChecksum(&r, 3);
  r.EndList();
  ExpectSameAsWritten(r, 1, 2);
}

TEST(OpChecksums, WhatCountsAsADifference) {
  const TensorSum a{1, 10, 100}, b{2, 10, 200}, b2{2, 10, 201}, b3{2, 11, 200};
  const std::vector<TensorSum> in{a}, out{b}, none;
  OpChecksums here{{a}, {b}};
  EXPECT_FALSE(OnlyOutputsDiffer(here, in, out));
  here.outputs = {b2};
  EXPECT_TRUE(OnlyOutputsDiffer(here, in, out));
  here.outputs = {b3};  // another shape
  EXPECT_TRUE(OnlyOutputsDiffer(here, in, out));
  here.outputs = {};  // nothing to compare
  EXPECT_FALSE(OnlyOutputsDiffer(here, in, out));
  here = {{b2}, {b2}};  // another place
  EXPECT_FALSE(OnlyOutputsDiffer(here, in, out));
  here = {{a, b}, {b2}};  // more inputs
  EXPECT_FALSE(OnlyOutputsDiffer(here, in, out));
  here = {{TensorSum{1, 10, 101}}, {b2}};
  EXPECT_FALSE(OnlyOutputsDiffer(here, in, out));
  here = {{}, {b2}};  // random numbers have no inputs
  EXPECT_TRUE(OnlyOutputsDiffer(here, none, out));
}

}  // namespace
}  // namespace msprobe
