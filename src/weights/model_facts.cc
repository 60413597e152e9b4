#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "json/parser.h"
#include "weights/readers.h"

namespace msprobe {
namespace {

int64_t JsonInt(const JsonValue& object, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const JsonValue* v = object.Find(name);
    if (v && v->IsInt() && v->Int() > 0 && v->Int() < (int64_t{1} << 40)) return v->Int();
  }
  return 0;
}

}  // namespace

void ReadConfig(const std::string& directory, ModelFacts* facts) {
  constexpr size_t kMostConfig = size_t{4} << 20;
  const std::string path = JoinPath(directory, "config.json");
  const auto file = MappedFile::Open(path);
  JsonDoc doc;
  // Weights can be read without; a configuration that is not one says nothing.
  if (!file.ok() || file->text().size() > kMostConfig || !ParseJson(file->text(), path, &doc).ok() || !doc.IsObject())
    return;
  const JsonValue* type = doc.Find("model_type");
  if (type && type->IsString()) facts->model_type = std::string(type->Text());
  facts->heads = JsonInt(doc, {"num_attention_heads", "n_head", "num_heads"});
  facts->groups = JsonInt(doc, {"num_key_value_heads"});
  facts->head_dim = JsonInt(doc, {"head_dim", "d_kv"});
  facts->hidden = JsonInt(doc, {"hidden_size", "n_embd", "d_model"});
  facts->ffn = JsonInt(doc, {"intermediate_size", "n_inner", "d_ff"});
  facts->vocab = JsonInt(doc, {"vocab_size"});
  facts->experts = JsonInt(doc, {"num_local_experts", "num_experts", "n_routed_experts"});
  const JsonValue* tied = doc.Find("tie_word_embeddings");
  if (tied && tied->IsBool()) facts->tied = tied->Bool();
}

void ReadArguments(const PtValue& args, ModelFacts* facts) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const auto number = [&](std::string_view name, int64_t otherwise) {
    const int64_t v = PtInt(PtMember(args, name), otherwise);
    return v > 0 && v < kMost ? v : otherwise;
  };
  const auto truth = [&](std::string_view name) -> std::optional<bool> {
    const PtValue* v = PtMember(args, name);
    if (!v || v->kind != PtValue::Kind::kBool) return std::nullopt;
    return v->i != 0;
  };
  facts->heads = number("num_attention_heads", facts->heads);
  facts->groups = truth("group_query_attention").value_or(true) ? number("num_query_groups", 0) : 0;
  facts->head_dim = number("kv_channels", facts->head_dim);
  facts->hidden = number("hidden_size", facts->hidden);
  facts->ffn = number("ffn_hidden_size", facts->ffn);
  facts->vocab = number("vocab_size", facts->vocab);
  facts->experts = number("num_experts", number("num_moe_experts", facts->experts));
  facts->gated = truth("swiglu");
  facts->zero_centred = truth("apply_layernorm_1p");
  if (const auto untied = truth("untie_embeddings_and_output_weights")) facts->tied = !*untied;
  facts->tensor_parallel = number("tensor_model_parallel_size", 1);
  facts->pipeline_parallel = number("pipeline_model_parallel_size", 1);
  facts->expert_parallel = number("expert_model_parallel_size", 1);
}

}  // namespace msprobe
