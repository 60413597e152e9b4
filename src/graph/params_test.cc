#include "graph/params.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

/// Reads one op and shows its parameters as "name: key=text ...".
class Reader {
 public:
  explicit Reader(const std::string& op, std::string_view node = "Torch.x.0.forward") {
    EXPECT_TRUE(ParseJson(op, "test", &doc_).ok());
    list_.Read(node, doc_);
  }
  size_t size() const { return list_.size(); }
  const Param& at(size_t i) const { return list_[i]; }
  std::string Show(size_t i) const {
    std::string out;
    for (const Field& f : list_[i].fields)
      out += (out.empty() ? "" : " ") + std::string(f.key) + "=" + FieldText(f.value);
    return out;
  }

 private:
  JsonDoc doc_;
  ParamList list_;
};

std::string Input(const std::string& leaf) { return "{\"input_args\": [" + leaf + "]}"; }

TEST(Params, TensorsKeepTheirFieldsInOrder) {
  const Reader r(
      Input(R"({"type": "torch.Tensor", "dtype": "torch.bool", "shape": [2], "Max": true, "Min": false, "Mean": null,
                           "Norm": null, "requires_grad": false, "md5": "0badcafe"})"));
  EXPECT_EQ(r.at(0).name, "Torch.x.0.forward.input.0");
  EXPECT_EQ(r.Show(0),
            "type=torch.Tensor dtype=torch.bool shape=[2] Max=True Min=False Mean=null Norm=null requires_grad=False "
            "md5=0badcafe data_name=-1");
}

TEST(Params, ScalarsGetTheirValueAsStatistics) {
  const Reader r(Input(R"({"type": "float", "value": 2.0})"));
  EXPECT_EQ(
      r.Show(0),
      "type=float value=2.0 data_name=-1 requires_grad=null Max=2.0 Min=2.0 Mean=2.0 Norm=2.0 dtype=<class float> "
      "shape=[] md5=f570d16c");
  EXPECT_EQ(Reader(Input(R"({"type": "bool", "value": false})")).at(0).max.kind, Value::Kind::kBool);
}

TEST(Params, SpecialTypes) {
  EXPECT_EQ(FieldText(Reader(Input(R"({"type": "torch.Size", "value": [1, 3]})")).at(0).shape), "[1, 3]");
  EXPECT_EQ(FieldText(Reader(Input(R"({"type": "slice", "value": [0, 3, null]})")).at(0).shape), "(3,)");
  EXPECT_EQ(FieldText(Reader(Input(R"({"type": "ellipsis", "value": "..."})")).at(0).max), "...");
  const Reader group(
      R"({"input_kwargs": {"group": {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "g"}}})");
  EXPECT_EQ(group.at(0).name, "Torch.x.0.forward.input.group");
  EXPECT_EQ(FieldText(group.at(0).md5), "[0, 1]");
  const Reader dst(R"({"input_kwargs": {"dst": {"type": "int", "value": 3}}})");
  EXPECT_EQ(FieldText(dst.at(0).dtype), "int");
  EXPECT_TRUE(dst.at(0).max.is_text());
}

TEST(Params, NullsBatchesAndSavedTensors) {
  const Reader r(
      R"({"input_args": [null, [], {}, {"a": null}], "output": [[{"class_type": "torch.distributed.P2POp", "op": "isend",
      "peer": 1, "tag": 0, "group_id": "g", "tensor": {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1], "Max": 1.0,
      "Min": 1.0, "Mean": 1.0, "Norm": 1.0, "data_name": "Torch.x.0.forward.output.7.pt"}}]]})");
  ASSERT_EQ(r.size(), 3u);
  EXPECT_TRUE(r.at(0).max.is_null());
  EXPECT_EQ(r.at(1).name, "Torch.x.0.forward.input.3.a");
  EXPECT_EQ(r.at(2).name, "Torch.x.0.forward.output.7");
  EXPECT_TRUE(r.at(2).is_output());
  EXPECT_NE(r.Show(2).find("peer=1"), std::string::npos);
}

TEST(Params, TheLastOfTwoSameNamesCounts) {
  const Reader r(R"({"weight": [{"type": "int", "value": 1}, {"type": "int", "value": 2}], "bias": [null]})",
                 "Module.a.A.parameters_grad");
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r.at(0).name, "Module.a.A.parameters_grad.weight");
  EXPECT_EQ(FieldText(r.at(0).max), "2");
}

TEST(Params, ManyParametersStayUnique) {
  std::string args;
  for (int i = 0; i < 3000; ++i) {
    args += (i ? "," : "") + std::string(R"({"type": "int", "value": 1, "data_name": "n)") + std::to_string(i % 1500) +
            ".pt\"}";
  }
  EXPECT_EQ(Reader(Input(args)).size(), 1500u);
}

// A module that is called "output" still has inputs and weights.
TEST(Params, StateDecidesWhatIsAnOutputNotTheName) {
  const Reader r(R"({"input_args": [{"type": "int", "value": 1}], "output": [{"type": "int", "value": 1}],
                     "parameters": {"weight": {"type": "int", "value": 1}}})",
                 "Module.bert.output.dense.Linear.forward.0");
  ASSERT_EQ(r.size(), 3u);
  EXPECT_FALSE(r.at(0).is_output());
  EXPECT_TRUE(r.at(1).is_output());
  EXPECT_FALSE(r.at(2).is_output());
}

}  // namespace
}  // namespace msprobe
