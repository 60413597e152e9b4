#include "graph/node/item_fields.h"

#include <gtest/gtest.h>

#include "graph/node/field_text.h"
#include "json/parser.h"

namespace msprobe {
namespace {

/// Reads one op and shows its items as "key=text ...".
class Reader {
 public:
  explicit Reader(const std::string& op, std::string_view node = "Torch.x.0.forward") {
    EXPECT_TRUE(ParseJson(op, "test", &doc_).ok());
    std::vector<Item> scratch;
    size_t count = 0;
    DescribeNode(node, doc_, CompareMode::kChecksum, &scratch, &items_, &count);
    items_.resize(count);
  }
  size_t size() const { return items_.size(); }
  const ItemView& at(size_t i) const { return items_[i]; }
  std::string Max(size_t i) const { return FieldText(items_[i].stats[kMax]); }
  std::string Show(size_t i) const {
    std::vector<ItemField> fields;
    ListFields(items_[i], true, &fields);
    std::string out;
    for (const ItemField& f : fields) out += (out.empty() ? "" : " ") + std::string(f.key) + "=" + FieldText(f.value);
    return out;
  }

 private:
  JsonDoc doc_;
  std::vector<ItemView> items_;
};

std::string Input(const std::string& leaf) { return "{\"input_args\": [" + leaf + "]}"; }

TEST(ItemFields, TensorsKeepTheirFieldsInOrder) {
  const Reader r(
      Input(R"({"type": "torch.Tensor", "dtype": "torch.bool", "shape": [2], "Max": true, "Min": false, "Mean": null,
                           "Norm": null, "requires_grad": false, "md5": "0badcafe"})"));
  EXPECT_EQ(r.at(0).name, "Torch.x.0.forward.input.0");
  EXPECT_EQ(r.Show(0),
            "type=torch.Tensor dtype=torch.bool shape=[2] Max=True Min=False Mean=null Norm=null requires_grad=False "
            "md5=0badcafe data_name=-1");
}

TEST(ItemFields, ScalarsGetTheirValueAsStatistics) {
  const Reader r(Input(R"({"type": "float", "value": 2.0})"));
  EXPECT_EQ(
      r.Show(0),
      "type=float value=2.0 data_name=-1 requires_grad=null Max=2.0 Min=2.0 Mean=2.0 Norm=2.0 dtype=<class float> "
      "shape=[] md5=f570d16c");
  EXPECT_EQ(Reader(Input(R"({"type": "bool", "value": false})")).at(0).stats[kMax].kind, StatValue::Kind::kBool);
}

TEST(ItemFields, SpecialTypes) {
  EXPECT_EQ(Reader(Input(R"({"type": "torch.Size", "value": [1, 3]})")).at(0).shape, "[1, 3]");
  EXPECT_EQ(Reader(Input(R"({"type": "slice", "value": [0, 3, null]})")).at(0).shape, "(3,)");
  EXPECT_EQ(Reader(Input(R"({"type": "ellipsis", "value": "..."})")).Max(0), "...");
  const Reader group(
      R"({"input_kwargs": {"group": {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "g"}}})");
  EXPECT_EQ(group.at(0).name, "Torch.x.0.forward.input.group");
  EXPECT_EQ(group.at(0).checksum, "[0, 1]");
  const Reader dst(R"({"input_kwargs": {"dst": {"type": "int", "value": 3}}})");
  EXPECT_EQ(dst.at(0).dtype, "int");
  EXPECT_EQ(dst.Max(0), "3");
  EXPECT_FALSE(dst.at(0).stats[kMax].IsNumber());
}

TEST(ItemFields, NullsBatchesAndSavedTensors) {
  const Reader r(
      R"({"input_args": [null, [], {}, {"a": null}], "output": [[{"class_type": "torch.distributed.P2POp", "op": "isend",
      "peer": 1, "tag": 0, "group_id": "g", "tensor": {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1], "Max": 1.0,
      "Min": 1.0, "Mean": 1.0, "Norm": 1.0, "data_name": "Torch.x.0.forward.output.7.pt"}}]]})");
  ASSERT_EQ(r.size(), 3u);
  EXPECT_TRUE(IsShownAsNull(r.at(0)));
  EXPECT_EQ(r.at(1).name, "Torch.x.0.forward.input.3.a");
  EXPECT_EQ(r.at(2).name, "Torch.x.0.forward.output.7");
  EXPECT_EQ(r.at(2).state, ItemState::kOutput);
  EXPECT_NE(r.Show(2).find("peer=1"), std::string::npos);
}

TEST(ItemFields, TheLastOfTwoSameNamesCounts) {
  const Reader r(R"({"weight": [{"type": "int", "value": 1}, {"type": "int", "value": 2}], "bias": [null]})",
                 "Module.a.A.parameters_grad");
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r.at(0).name, "Module.a.A.parameters_grad.weight");
  EXPECT_EQ(r.Max(0), "2");
}

TEST(ItemFields, ManyParametersStayUnique) {
  std::string args;
  for (int i = 0; i < 3000; ++i) {
    args += (i ? "," : "") + std::string(R"({"type": "int", "value": 1, "data_name": "n)") + std::to_string(i % 1500) +
            ".pt\"}";
  }
  EXPECT_EQ(Reader(Input(args)).size(), 1500u);
}

}  // namespace
}  // namespace msprobe
