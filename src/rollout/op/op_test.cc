#include <gtest/gtest.h>

#include <cmath>

#include "rollout/op/attention_fit.h"
#include "rollout/op/explain_op.h"
#include "rollout/op/module_role.h"

namespace msprobe {
namespace {

RowMatrix Matrix(size_t rows, size_t width, DType dtype = DType::kFloat32) {
  RowMatrix out{rows, width, std::vector<float>(rows * width), dtype};
  uint32_t state = 7;
  for (float& v : out.values) {
    state = state * 1664525 + 1013904223;
    v = static_cast<float>(state >> 8) / (1 << 23) - 1;
  }
  return out;
}

TEST(ModuleRole, IsTheSameForTrainersAndEngines) {
  const auto part = [](std::string_view path) { return RoleOfModule(path).part; };
  EXPECT_EQ(part("model.layers.3.self_attn.q_proj"), ModulePart::kQ);
  EXPECT_EQ(part("model.layers.3.self_attn.qkv_proj"), ModulePart::kQkv);
  EXPECT_EQ(part("module.module.decoder.layers.3.self_attention.linear_qkv"), ModulePart::kQkv);
  EXPECT_EQ(part("model.layers.3.self_attn.attn"), ModulePart::kCore);
  EXPECT_EQ(part("model.layers.3.attn"), ModulePart::kAttention);
  EXPECT_EQ(part("_fsdp_wrapped_module.model.layers.3._fsdp_wrapped_module.mlp.down_proj"), ModulePart::kDown);
  EXPECT_EQ(part("model.layers.3.mlp.experts"), ModulePart::kExperts);
  EXPECT_EQ(part("model.layers.3.mlp.experts.2.down_proj"), ModulePart::kOther);
  EXPECT_EQ(part("model.layers.3.mlp.gate"), ModulePart::kRouter);
  EXPECT_EQ(part("model.layers.3.post_attention_layernorm"), ModulePart::kMlpNorm);
  EXPECT_EQ(part("model.norm"), ModulePart::kFinalNorm);
  EXPECT_EQ(part("lm_head"), ModulePart::kHead);
  EXPECT_EQ(part("logits_processor"), ModulePart::kLogits);
  EXPECT_EQ(RoleOfModule("model.layers.3").part, ModulePart::kLayer);
  EXPECT_EQ(RoleOfModule("model.layers.3.mlp").layer, 3);
}

TEST(RowErrors, AreRelativeToTheRow) {
  RowMatrix a = Matrix(4, 8), b = a;
  EXPECT_EQ(ErrorsOf(a, b).largest, 0);
  for (size_t j = 0; j < 8; ++j) a.row(2)[j] *= 1.5f;
  EXPECT_NEAR(ErrorsOf(a, b).largest, 0.5, 1e-6);
  EXPECT_EQ(ErrorsOf(a, b).worst, 2u);
  a.row(1)[3] = NAN;
  EXPECT_TRUE(std::isinf(ErrorsOf(a, b).largest));
}

TEST(Grid, IsThatOfATypeWithFewerDigits) {
  RowMatrix values = Matrix(4, 8);
  EXPECT_EQ(GridOf(values), DType::kUnknown);
  for (float& v : values.values) v = std::round(v * 128) / 128;
  EXPECT_EQ(GridOf(values), DType::kBFloat16);
  for (float& v : values.values) v += 2 + 1.0f / 512;
  EXPECT_EQ(GridOf(values), DType::kFloat16);
}

TEST(FitNorm, FindsEpsAndTheFormOfTheWeight) {
  const RowMatrix x = Matrix(16, 32);
  std::vector<double> w(32);
  for (size_t j = 0; j < w.size(); ++j) w[j] = 0.5 + 0.03 * static_cast<double>(j);
  const NormFit plain = FitNorm(x, w, Normed(x, w, {0.01, false, 0}), false);
  EXPECT_NEAR(plain.eps, 0.01, 1e-6);
  EXPECT_LT(plain.error, 1e-6);
  EXPECT_GT(FitNorm(x, w, Normed(x, w, {0.01, true, 0}), false).error, 0.01);
}

AttentionInput Attention(double scale, int64_t window, double cap = 0) {
  AttentionInput in;
  in.heads = 4, in.groups = 2, in.size = 8;
  constexpr int64_t kLength = 20;
  for (int64_t p = 0; p < kLength; ++p) in.positions.push_back(p);
  in.queries = Matrix(kLength, 32).values, in.keys = Matrix(kLength, 17).values, in.values = Matrix(kLength, 19).values;
  in.keys.resize(kLength * 16), in.values.resize(kLength * 16);
  for (float& v : in.queries) v *= 4;
  for (int64_t q = 0; q < kLength; ++q) {
    for (int64_t h = 0; h < in.heads; ++h) {
      std::vector<double> out(8);
      double sum = 0;
      for (int64_t p = window > 0 ? std::max<int64_t>(0, q + 1 - window) : 0; p <= q; ++p) {
        double dot = 0;
        for (int64_t d = 0; d < 8; ++d) dot += in.queries[(q * 4 + h) * 8 + d] * in.keys[(p * 2 + h / 2) * 8 + d];
        const double weight = std::exp(cap > 0 ? cap * std::tanh(dot * scale / cap) : dot * scale);
        sum += weight;
        for (int64_t d = 0; d < 8; ++d) out[d] += weight * in.values[(p * 2 + h / 2) * 8 + d];
      }
      for (const double v : out) in.outputs.push_back(static_cast<float>(v / sum));
    }
  }
  return in;
}

TEST(Attention, IsExplainedByScaleOrWindow) {
  const double usual = 1 / std::sqrt(8.0);
  std::optional<bool> local;
  EXPECT_FALSE(ExplainAttention({Attention(usual, 0), Attention(usual, 0), 1e-5, 0}, &local).found());
  EXPECT_EQ(local, false);
  const OpHow scaled = ExplainAttention({Attention(usual, 0), Attention(usual * 0.9, 0), 1e-4, 0}, &local);
  EXPECT_EQ(local, true);
  EXPECT_EQ(scaled.kind, "attention_scale");
  EXPECT_EQ(scaled.words.English(), "its scores are 0.9 times as large");
  const OpHow windowed = ExplainAttention({Attention(usual, 8), Attention(usual, 5), 1e-5, 0}, &local);
  EXPECT_EQ(windowed.words.English(), "it looks through a window of 5 in place of a window of 8");
}

TEST(Attention, IsExplainedWhereScoresAreCapped) {
  const double own = 1 / std::sqrt(10.0);  // not that of the size of a head
  std::optional<bool> local;
  EXPECT_FALSE(ExplainAttention({Attention(own, 8, 50), Attention(own, 8, 50), 2e-5, 0}, &local).found());
  EXPECT_EQ(local, false);
  const OpHow windowed = ExplainAttention({Attention(own, 8, 50), Attention(own, 5, 50), 2e-5, 0}, &local);
  EXPECT_EQ(windowed.words.English(), "it looks through a window of 5 in place of a window of 8");
}

}  // namespace
}  // namespace msprobe
