#include "capture/record_path.h"

#include <gtest/gtest.h>

#include "capture/record.h"
#include "capture/save_policy.h"
#include "capture/tensor_files.h"

namespace msprobe {
namespace {

std::string Next(Record* r) { return r->path.NameAt(*r, r->nodes.size()); }

TEST(RecordPath, NamesFollowListsDictsAndSections) {
  Record r;
  r.name = {InternName("Functional.linear"), 3, NameForm::kApiForward};
  r.KeyLiteral("input_args");
  r.BeginList();
  EXPECT_EQ(Next(&r), "Functional.linear.3.forward.input.0");
  r.Tensor();
  r.Typed("torch.device", "cpu");
  EXPECT_EQ(Next(&r), "Functional.linear.3.forward.input.2");
  r.BeginList();
  r.Null();
  r.BeginDict();
  r.Key("k");
  EXPECT_EQ(Next(&r), "Functional.linear.3.forward.input.2.1.k");
  r.Tensor();
  r.Key("other");
  EXPECT_EQ(Next(&r), "Functional.linear.3.forward.input.2.1.other");
  r.Int(1);
  r.EndDict();
  r.EndList();
  EXPECT_EQ(Next(&r), "Functional.linear.3.forward.input.3");
  r.EndList();
  r.KeyLiteral("input_kwargs");
  r.BeginDict();
  r.Key("mask");
  EXPECT_EQ(Next(&r), "Functional.linear.3.forward.kwargs.mask");
  r.Tensor();
  r.EndDict();
  r.KeyLiteral("output");
  r.BeginList();
  EXPECT_EQ(Next(&r), "Functional.linear.3.forward.output.0");
  // From the beginning again, as SavePending() does.
  RecordPath again;
  EXPECT_EQ(again.NameAt(r, 2), "Functional.linear.3.forward.input.0");
}

TEST(RecordPath, GradientsOfParametersAreNamedAfterThem) {
  Record r;
  r.name = {InternName("Module.a.Linear"), 1, NameForm::kParamGrad};
  r.Key("weight");
  r.BeginList();
  EXPECT_EQ(Next(&r), "Module.a.Linear.parameters_grad.1.weight");
}

TEST(TensorFileName, HoldsNothingThatAFileSystemRefuses) {
  EXPECT_EQ(TensorFileName("a.input.0", ".pt"), "a.input.0.pt");
  const std::string slash = TensorFileName("a/../b", ".pt"), underscore = TensorFileName("a_.._b", ".pt");
  EXPECT_EQ(slash.find('/'), std::string::npos);
  EXPECT_NE(slash, underscore);
  EXPECT_EQ(underscore, "a_.._b.pt");
  const std::string longest(300, 'x');
  const std::string one = TensorFileName(longest + "1", ".pt"), two = TensorFileName(longest + "2", ".pt");
  EXPECT_LE(one.size(), 230u);
  EXPECT_NE(one, two);
  EXPECT_TRUE(one.ends_with(".pt"));
  std::string letters;
  for (int i = 0; i < 150; ++i) letters += "\xc3\xa9";
  const std::string cut = TensorFileName(letters, ".pt");
  EXPECT_EQ(cut[cut.find('~') - 1], '\xa9');
}

TEST(SavePolicy, ListsMatchPartsOfNames) {
  SavePolicy policy;
  const OpName name{InternName("Torch.relu"), 2, NameForm::kApiForward};
  EXPECT_EQ(policy.For(name), SaveMode::kNone);
  EXPECT_FALSE(policy.saves());
  policy.tensor_list = {"sigmoid", "relu.2.for"};
  EXPECT_EQ(policy.For(name), SaveMode::kNow);
  EXPECT_EQ(policy.For({name.base, 1, NameForm::kApiForward}), SaveMode::kNone);
  policy.all = SaveMode::kDeferred;
  EXPECT_EQ(policy.For({name.base, 1, NameForm::kApiForward}), SaveMode::kDeferred);
}

TEST(Record, AppendMovesFilesAndWhatIsUndecided) {
  Record part, whole;
  part.Key("weight");
  part.BeginList();
  part.SetFile(&part.Tensor(), "f.pt");
  part.held.push_back({2, nullptr, nullptr});
  whole.Key("bias");
  whole.Null();
  whole.Append(part);
  EXPECT_EQ(whole.held.at(0).node, 4u);
  EXPECT_EQ(whole.nodes[4].type, RecordNodeType::kTensor);
  EXPECT_EQ(whole.text.substr(whole.tensors[0].file, whole.tensors[0].file_length), "f.pt");
}

}  // namespace
}  // namespace msprobe
