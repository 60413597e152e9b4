#include "capture/record.h"

#include <gtest/gtest.h>

#include "capture/format.h"
#include "json/writer.h"

namespace msprobe {
namespace {

const FrameworkNames kTorch = {"pytorch", "torch.Tensor", "torch."};

std::string Text(const Record& record, const FrameworkNames& names = kTorch) {
  std::string out;
  JsonWriter json(&out, kJsonIndented, 0);
  json.BeginObject();
  FormatRecord(record, names, &json);
  json.EndObject();
  return out;
}

void Fill(Record* record, const char* key, int64_t rows) {
  record->Key(key);
  record->BeginList();
  TensorRecord tensor;
  tensor.dtype = DType::kFloat32;
  tensor.ndim = 2;
  tensor.dims = static_cast<uint32_t>(record->dims.size());
  record->dims.insert(record->dims.end(), {rows, 3});
  record->Tensor() = tensor;
  record->String(std::string(key) + " text");
  record->Typed("torch.dtype", "torch.float32");
  record->Json("{\"a\": 1}");
  record->EndList();
}

TEST(Record, AppendIsAsIfWrittenAtOnce) {
  Record whole, first, second;
  whole.name = first.name = {InternName("Module.a.A"), 0, NameForm::kParamGrad};
  Fill(&whole, "bias", 1);
  Fill(&whole, "weight", 2);
  Fill(&first, "bias", 1);
  Fill(&second, "weight", 2);
  first.Append(second);
  EXPECT_EQ(Text(first), Text(whole));
  EXPECT_NE(Text(whole).find("weight text"), std::string::npos);
}

TEST(Record, TensorsAreNamedAsTheFrameworkDoes) {
  Record record;
  record.name = {InternName("Functional.relu"), 0, NameForm::kApiForward};
  Fill(&record, "input_args", 1);
  EXPECT_NE(Text(record).find(R"("type": "torch.Tensor")"), std::string::npos);
  EXPECT_NE(Text(record).find(R"("dtype": "torch.float32")"), std::string::npos);
  const std::string other = Text(record, {"mindspore", "mindspore.Tensor", ""});
  EXPECT_NE(other.find(R"("type": "mindspore.Tensor")"), std::string::npos);
  EXPECT_NE(other.find(R"("dtype": "float32")"), std::string::npos);
}

TEST(Record, IsWholeOnlyWithEachValueAndEachEnd) {
  Record record;
  const auto whole = [&](bool before, auto change, bool after) {
    EXPECT_EQ(record.IsWhole(), before);
    change();
    EXPECT_EQ(record.IsWhole(), after);
  };
  whole(
      true, [&] { Fill(&record, "input_args", 1); }, true);
  whole(
      true, [&] { record.KeyLiteral("output"); }, false);
  whole(
      false, [&] { record.BeginList(); }, false);
  whole(
      false, [&] { record.BeginDict(); }, false);
  const size_t inside = record.Mark();
  whole(
      false, [&] { record.EndDict(), record.EndList(); }, true);
  record.Rewind(inside);
  whole(
      false, [&] { record.EndList(), record.EndDict(); }, false);
  record.Rewind(inside);
  whole(
      false, [&] { record.Int(1), record.EndDict(), record.EndList(); }, false);  // a value without its key
  record.Rewind(inside);
  whole(
      false, [&] { record.Key("a"), record.Key("b"), record.Int(1), record.EndDict(), record.EndList(); }, false);
  record.Rewind(inside);
  whole(
      false, [&] { record.Key("a"), record.Typed("t", "v"), record.EndDict(), record.EndList(); }, true);
  record.nodes.erase(record.nodes.end() - 3);  // the text of the typed value
  EXPECT_FALSE(record.IsWhole());
}

}  // namespace
}  // namespace msprobe
