#include "capture/record.h"

#include <gtest/gtest.h>

#include "capture/format.h"
#include "dump/writer.h"

namespace msprobe {
namespace {

std::string Text(const Record& record) {
  std::string out;
  JsonStream json(&out, 0);
  json.BeginObject();
  FormatRecord(record, &json);
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

}  // namespace
}  // namespace msprobe
