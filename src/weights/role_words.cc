#include "weights/role_words.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/text.h"

namespace msprobe {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view kWrappers[] = {"module",
                                          "model",
                                          "_orig_mod",
                                          "transformer",
                                          "language_model",
                                          "network",
                                          "backbone",
                                          "base_model",
                                          "_backbone",
                                          "gpt_neox",
                                          "bert",
                                          "roberta",
                                          "generator",
                                          "llama",
                                          "gpt2",
                                          "t5",
                                          "net",
                                          "text_model",
                                          "_fsdp_wrapped_module",
                                          "_checkpoint_wrapped_module",
                                          "state_dict",
                                          "weights"};

constexpr std::string_view kQ[] = {"q_proj",     "wq",       "query",       "q",      "q_lin", "to_q",
                                   "query_proj", "linear_q", "query_layer", "dense1", "w_q",   "q_dense"};
constexpr std::string_view kK[] = {"k_proj",   "wk",       "key",       "k",      "k_lin", "to_k",
                                   "key_proj", "linear_k", "key_layer", "dense2", "w_k",   "k_dense"};
constexpr std::string_view kV[] = {"v_proj",     "wv",       "value",       "v",      "v_lin", "to_v",
                                   "value_proj", "linear_v", "value_layer", "dense3", "w_v",   "v_dense"};
constexpr std::string_view kQkv[] = {"c_attn", "query_key_value", "linear_qkv", "qkv_proj", "wqkv",     "w_qkv",
                                     "qkv",    "in_proj",         "w_pack",     "c_qkv",    "qkv_layer"};
constexpr std::string_view kO[] = {"o_proj", "wo",  "out_proj",    "linear_proj", "dense",
                                   "c_proj", "o",   "projection",  "out_lin",     "to_out",
                                   "proj",   "w_o", "output_proj", "output_dense"};
constexpr std::string_view kGate[] = {"gate_proj", "w1", "wi_0", "linear_gate"};
constexpr std::string_view kUp[] = {"up_proj", "w3", "wi_1"};
constexpr std::string_view kGateUp[] = {"gate_up_proj",   "w13",       "gate_up", "w_gate_hidden",
                                        "gate_up_weight", "w13_weight"};
constexpr std::string_view kFc1[] = {"c_fc", "linear_fc1", "dense_h_to_4h", "wi",          "fc1",
                                     "lin1", "fc_in",      "mapping",       "intermediate"};
constexpr std::string_view kDown[] = {"down_proj", "w2",   "wo",     "c_proj",     "linear_fc2", "dense_4h_to_h",
                                      "fc2",       "lin2", "fc_out", "projection", "dense",      "w2_weight"};
constexpr std::string_view kRouter[] = {"router", "gate", "wg", "classifier", "gate_layer"};
constexpr std::string_view kNorm1[] = {"input_layernorm",
                                       "attention_norm",
                                       "ln_1",
                                       "ln1",
                                       "norm1",
                                       "layernorm1",
                                       "input_norm",
                                       "attn_norm",
                                       "layer_norm1",
                                       "layernorm_1",
                                       "self_attn_layer_norm",
                                       "ln_attn",
                                       "norm_1",
                                       "sa_layer_norm",
                                       "attention_layernorm",
                                       "pre_attention_layernorm"};
constexpr std::string_view kNorm2[] = {"post_attention_layernorm",
                                       "ffn_norm",
                                       "ln_2",
                                       "ln2",
                                       "norm2",
                                       "layernorm2",
                                       "pre_mlp_layernorm",
                                       "mlp_norm",
                                       "layer_norm2",
                                       "layernorm_2",
                                       "ln_mlp",
                                       "norm_2",
                                       "post_attention_norm",
                                       "final_layer_norm",
                                       "output_layer_norm",
                                       "ffn_layernorm",
                                       "mlp_layernorm"};
constexpr std::string_view kEmbed[] = {
    "embed_tokens",     "wte",           "word_embeddings",  "word_embedding",
    "tok_embeddings",   "shared",        "embed_in",         "token_embedding",
    "embedding_lookup", "tok_embedding", "token_embeddings", "word_embeddings_table"};
constexpr std::string_view kPositions[] = {"wpe", "position_embeddings", "position_embedding", "embed_positions",
                                           "full_position_embedding"};
constexpr std::string_view kTypes[] = {"token_type_embeddings", "tokentype_embeddings", "token_type_embedding"};
constexpr std::string_view kFinalNorm[] = {
    "norm",      "ln_f",       "final_layernorm", "final_norm", "norm_out", "final_layer_norm",
    "layernorm", "layer_norm", "norm_f",          "ln_out"};
constexpr std::string_view kHead[] = {"lm_head", "output_layer", "embed_out", "head", "output", "lm_head_proj"};

// Attention over a latent vector (MLA): down to it, its norm, up from it.
constexpr std::string_view kQDown[] = {"q_a_proj", "linear_q_down_proj", "q2l_proj", "wq_a"};
constexpr std::string_view kQUp[] = {"q_b_proj", "linear_q_up_proj", "l2q_proj", "wq_b"};
constexpr std::string_view kKvDown[] = {"kv_a_proj_with_mqa", "kv_a_proj", "linear_kv_down_proj", "kv2l", "wkv_a"};
constexpr std::string_view kKvUp[] = {"kv_b_proj", "linear_kv_up_proj", "lkv2kv", "wkv_b"};
constexpr std::string_view kKv[] = {"linear_kv", "kv_proj", "wkv", "kv", "to_kv"};
constexpr std::string_view kRouterBias[] = {"e_score_correction_bias", "expert_bias", "topk_bias"};
constexpr std::string_view kSharedGate[] = {"shared_expert_gate", "shared_experts_gate", "gate_weight"};

// Multi-token prediction: a layer behind the others, whose number Megatron counts apart.
constexpr std::string_view kMtp[] = {"enorm", "hnorm", "eh_proj", "embed_tokens"};

bool In(Words words, std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); }

bool AnyHas(const std::vector<std::string>& words, std::initializer_list<std::string_view> parts) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::any_of(parts.begin(), parts.end(), [&](auto part) { return word.find(part) != std::string::npos; });
  });
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool IsNorm(std::string_view word) {
  return word.find("norm") != std::string_view::npos || word.starts_with("ln_") || word == "ln1" || word == "ln2" ||
         word == "ln";
}

/// "gamma" and "weight" are one thing in two frameworks.
std::string ParamName(const std::string& word) {
  constexpr std::string_view kWeights[] = {"gamma", "embedding_table", "embedding_weight",
                                           "scale", "kernel",          "output_weights"};
  if (In(kWeights, word)) return "weight";
  if (word == "beta" || word == "output_bias") return "bias";
  if (word == "moving_mean") return "running_mean";
  if (word == "moving_variance") return "running_var";
  return word;
}

std::string NormInLayer(const WeightName& name, const std::vector<std::string>& words, int64_t sub, bool attention) {
  const std::string& last = words.back();
  if (last.starts_with("kv_") || last == "lkv_norm") return "attention.kv_norm";
  if (last.starts_with("q_") || last.starts_with("query_") || last == "lq_norm") return "attention.q_norm";
  if (last.starts_with("k_") || last.starts_with("key_")) return "attention.k_norm";
  if (sub >= 0 && last == "layer_norm") {  // T5: each sublayer has one
    if (sub == 0) return "norm1";
    return name.stack == "decoder" && sub == 1 ? "norm_cross" : "norm2";
  }
  // Behind the sublayer, as in BERT: there the place says which.
  if (last == "layernorm" && words.size() > 1 && words[words.size() - 2] == "output")
    return attention ? "norm1" : "norm2";
  if (In(kNorm1, last)) return "norm1";
  if (In(kNorm2, last)) return "norm2";
  if (last.find("inter_attention") != std::string::npos || last == "encoder_attn_layer_norm") return "norm_cross";
  return {};
}

std::string AttentionWord(const std::string& last) {
  if (In(kQ, last)) return "q";
  if (In(kK, last)) return "k";
  if (In(kV, last)) return "v";
  if (In(kQkv, last)) return "qkv";
  if (In(kKv, last)) return "kv";
  for (const auto& [known, word] : {std::pair{Words(kQDown), "q_down"},
                                    {Words(kQUp), "q_up"},
                                    {Words(kKvDown), "kv_down"},
                                    {Words(kKvUp), "kv_up"}}) {
    if (In(known, last)) return word;
  }
  if (In(kO, last)) return "o";
  if (last.find("relative_attention_bias") != std::string::npos) return "relative_bias";
  return {};
}

std::string MlpWord(const std::string& last, const std::vector<std::string>& words, bool experts) {
  if (In(kSharedGate, last) && AnyHas(words, {"shared_expert"})) return "shared_gate";
  if (In(kRouterBias, last)) return "router";
  if (In(kGateUp, last)) return "gate_up";
  if (In(kGate, last)) return "gate";
  if (In(kUp, last)) return "up";
  if (!experts && In(kRouter, last)) return "router";
  if (In(kFc1, last) || (last == "dense" && words.size() > 1 && words[words.size() - 2] == "intermediate")) return "up";
  if (!experts && last == "dense" && AnyHas(words, {"router"})) return "router";
  if (In(kDown, last)) return "down";
  return {};
}

std::string WordInLayer(const WeightName& name, const std::vector<std::string>& words, int64_t sub) {
  const std::string& last = words.back();
  const bool shared_head = AnyHas(words, {"shared_head"});
  if (In(kMtp, last)) return "mtp." + last;
  if (shared_head || (name.mtp && last == "final_layernorm")) return IsNorm(last) ? "mtp.norm" : "mtp.head";
  const bool cross = AnyHas(words, {"cross", "encdec", "encoder_attn", "inter_attention"});
  const bool attention = AnyHas(words, {"attn", "attention"}) && !AnyHas({last}, {"layernorm", "norm"});
  const bool attended = AnyHas({words.begin(), words.end() - 1}, {"attn", "attention"});
  if (IsNorm(last)) return NormInLayer(name, words, sub, attended);
  if (attention || In(kQkv, last)) {
    const std::string word = AttentionWord(last);
    return word.empty() ? word : (cross ? "cross." : "attention.") + word;
  }
  if (const std::string word = MlpWord(last, words, AnyHas(words, {"experts"})); !word.empty()) return "mlp." + word;
  const std::string word = words.size() == 1 ? AttentionWord(last) : "";  // "layers.0.wq"
  return word.empty() || word == "o" ? "" : "attention." + word;
}

std::string WordOutside(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  const std::string& last = words.back();
  if (AnyHas(words, {"cls", "pooler", "predictions", "transform", "classifier"})) return {};
  if (In(kEmbed, last)) return "embed";
  if (In(kPositions, last)) return "positions";
  if (In(kTypes, last)) return "types";
  if (IsNorm(last)) return AnyHas(words, {"embed"}) ? "embed_norm" : In(kFinalNorm, last) ? "final_norm" : "";
  return In(kHead, last) && words.size() <= 2 ? "head" : "";
}

/// Takes the numbers of layer, sublayer and expert out of `words`.
int64_t TakeNumbers(std::vector<std::string>* words, WeightName* out) {
  constexpr size_t kMostDigits = 6;
  int64_t sub = -1;
  std::vector<std::string> left;
  for (size_t i = 0; i < words->size(); ++i) {
    const std::string& word = (*words)[i];
    const bool number = IsDigits(word) && word.size() <= kMostDigits;
    if (!number) {
      left.push_back(word);
      continue;
    }
    const int64_t value = std::stoll(word);
    const std::string before = left.empty() ? "" : left.back();
    if (before.find("expert") != std::string::npos) {
      out->expert = value;
    } else if (out->layer < 0) {
      out->layer = value;
      left.clear();  // what contains the layers tells nothing more
    } else if (before == "layer") {
      sub = value;
      left.pop_back();
    } else {
      left.push_back(word);
    }
  }
  *words = std::move(left);
  return sub;
}

/// "encoder/layer_0/..." as "encoder.layer.0....", in small letters.
std::vector<std::string> WordsOf(std::string_view name) {
  std::string lower = Lower(name);
  std::replace(lower.begin(), lower.end(), '/', '.');
  std::vector<std::string> out;
  for (const std::string_view word : Split(lower, '.')) {
    const size_t at = word.rfind('_');
    const std::string_view before = word.substr(0, at);
    const bool numbered = at != std::string_view::npos && IsDigits(word.substr(at + 1)) &&
                          (before == "layer" || before == "layers" || before == "block" || before == "blocks");
    out.emplace_back(numbered ? before : word);
    if (numbered) out.emplace_back(word.substr(at + 1));
  }
  // The slope of MindSpore's PReLU.
  const bool slope = out.back() == "w" || out.back() == "a";
  if (out.size() > 1 && slope && Contains(out[out.size() - 2], "prelu")) out.back() = "weight";
  return out;
}

/// "experts.linear_fc1.weight7": one parameter for each expert.
void TakeExpertOfParam(const std::vector<std::string>& words, WeightName* out) {
  constexpr std::string_view kWeight = "weight", kBias = "bias";
  constexpr size_t kMostDigits = 6;
  for (const std::string_view param : {kWeight, kBias}) {
    const std::string_view number = std::string_view(out->param).substr(std::min(param.size(), out->param.size()));
    if (!out->param.starts_with(param) || !IsDigits(number) || number.size() > kMostDigits) continue;
    if (!AnyHas(words, {"experts"})) continue;
    out->expert = std::stoll(std::string(number));
    out->param = param;
    return;
  }
}

/// Transformer Engine keeps a norm in the linear layer behind it.
std::string NormInLinear(const std::vector<std::string>& words) {
  if (words.back() == "linear_q_up_proj") return "q_a_layernorm";
  if (words.back() == "linear_kv_up_proj") return "kv_a_layernorm";
  return AnyHas(words, {"qkv", "attn", "attention"}) ? "input_layernorm" : "pre_mlp_layernorm";
}

}  // namespace

WeightName ParseWeightName(std::string_view name) {
  WeightName out;
  std::vector<std::string> words = WordsOf(name);
  while (words.size() > 1 && In(kWrappers, words[0])) words.erase(words.begin());
  if (words.size() > 1) std::erase(words, "base_layer");  // what adapters wrap
  for (size_t i = 0; i < words.size(); ++i) {
    out.rest += (i > 0 ? "." : "") + (i + 1 < words.size() ? words[i] : ParamName(words[i]));
  }
  for (const std::string& word : words) {
    if (word == "encoder" || word == "decoder") {
      out.stack = word;
      break;
    }
  }
  std::vector<std::string> parts = words;
  out.param = ParamName(parts.back());
  out.kernel = parts.back() == "kernel";
  TakeExpertOfParam(parts, &out);
  constexpr std::string_view kParams[] = {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"};
  if (In(kParams, out.param)) {
    parts.pop_back();
  } else if (out.param == "layer_norm_weight" || out.param == "layer_norm_bias") {  // Transformer Engine
    out.param = out.param == "layer_norm_weight" ? "weight" : "bias";
    parts.pop_back();
    if (!parts.empty()) parts.back() = NormInLinear(parts);
  } else {
    out.param = In(kRouterBias, out.param) ? "bias" : "weight";  // a parameter without a module of its own
  }
  out.shared = AnyHas(parts, {"shared_expert"});
  out.mtp = std::find(parts.begin(), parts.end(), "mtp") != parts.end();
  const int64_t sub = TakeNumbers(&parts, &out);
  if (parts.empty()) return out;
  out.leaf = parts.back();
  if (out.layer < 0) {
    std::vector<std::string> outside;
    for (const std::string& word : parts) {
      if (!In(kWrappers, word) && word != "encoder" && word != "decoder") outside.push_back(word);
    }
    out.what = WordOutside(outside);
  } else {
    out.what = WordInLayer(out, parts, sub);
  }
  return out;
}

std::string BlockOf(const WeightName& name) {
  if (name.what.empty() || Contains(name.what, "norm")) return {};
  return std::to_string(name.layer) + " " + name.what.substr(0, name.what.find('.')) + " " + name.param;
}

bool IsCacheScale(std::string_view name) {
  constexpr std::array<std::string_view, 4> kScales{"k_scale", "v_scale", "q_scale", "prob_scale"};
  std::string_view last = name.substr(name.rfind('.') + 1);  // rfind gives -1 without a dot
  if (StartsWith(last, "_")) last.remove_prefix(1);
  return In(kScales, last);
}

}  // namespace msprobe
