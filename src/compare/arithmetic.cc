#include "compare/arithmetic.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/text.h"
#include "match/op_name.h"

namespace msprobe {
namespace {

struct Names {
  Arithmetic kind;
  std::string_view list;  // separated by blanks, in lower case, without underscores at the ends
};

constexpr Names kNames[] = {
    {Arithmetic::kCopy,
     "view reshape transpose permute t contiguous clone detach cat concat concatenate stack split chunk unbind narrow "
     "select index_select gather getitem embedding expand expand_as repeat repeat_interleave tile flatten unflatten "
     "squeeze unsqueeze flip roll pad tril triu masked_fill where take take_along_dim swapaxes movedim unfold "
     "as_strided view_as reshape_as index_put scatter copy fill zero identity full zeros ones full_like zeros_like "
     "ones_like arange broadcast_to masked_select max_pool1d max_pool2d max_pool3d max_unpool2d max min amax amin sort "
     "topk argmax argmin eq ne lt le gt ge logical_and logical_or logical_not isnan isinf abs neg relu clamp clip "
     "maximum minimum one_hot embeddings permute_ slice diagonal diag mt sign round floor ceil data unsqueeze_ "
     "maxpool1d maxpool2d maxpool3d flatten_ unflatten_ pixel_shuffle pixelshuffle upsample_nearest"},
    {Arithmetic::kElementwise,
     "add sub mul div truediv floordiv rsub radd rmul rtruediv iadd isub imul itruediv square reciprocal sqrt rsqrt "
     "lerp addcmul addcdiv threshold hardtanh relu6 leaky_relu leakyrelu dropout feature_dropout true_divide multiply "
     "subtract divide mod remainder fmod hardswish hardsigmoid float_power alpha_dropout scale unscale"},
    {Arithmetic::kFunction,
     "exp expm1 log log1p log2 log10 sin cos tan sinh cosh tanh sigmoid gelu silu swish mish softplus elu selu celu "
     "erf "
     "erfc pow rpow ipow logsigmoid glu swiglu atan atan2 softsign rotary_embedding rotaryembedding logit normal "
     "uniform rand randn geglu"},
    {Arithmetic::kProduct,
     "linear matmul mm bmm dot mv addmm addmv baddbmm einsum tensordot inner outer ger rmatmul conv1d conv2d conv3d "
     "conv_transpose1d conv_transpose2d convtranspose1d convtranspose2d bilinear columnparallellinear "
     "rowparallellinear lora_linear kron chain_matmul addbmm convolution cdist"},
    {Arithmetic::kReduction,
     "sum mean nansum nanmean var std var_mean norm vector_norm cumsum prod cumprod mse_loss mseloss l1_loss l1loss "
     "smooth_l1_loss smoothl1loss avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d avgpool1d avgpool2d "
     "adaptiveavgpool1d adaptiveavgpool2d index_add scatter_add get_total_norm trace interpolate all_reduce "
     "reduce reduce_scatter reduce_scatter_tensor reduce_scatter_base huber_loss kl_div kldivloss"},
    {Arithmetic::kNormalise,
     "layer_norm layernorm rms_norm rmsnorm batch_norm batchnorm1d batchnorm2d batchnorm3d group_norm groupnorm "
     "instance_norm instancenorm2d normalize local_response_norm cosine_similarity"},
    {Arithmetic::kSoftmax,
     "softmax log_softmax logsoftmax cross_entropy crossentropyloss nll_loss nllloss logsumexp binary_cross_entropy "
     "binary_cross_entropy_with_logits bceloss bcewithlogitsloss gumbel_softmax vocab_parallel_cross_entropy"},
    {Arithmetic::kAttention,
     "scaled_dot_product_attention multi_head_attention_forward multiheadattention flash_attn_func "
     "npu_fusion_attention"},
};

using Table = std::unordered_map<std::string_view, Arithmetic>;

Table MakeTable() {
  Table out;
  for (const Names& names : kNames) {
    for (std::string_view rest = names.list; !rest.empty();) {
      const size_t blank = std::min(rest.find(' '), rest.size());
      if (blank > 0) out.emplace(rest.substr(0, blank), names.kind);
      rest.remove_prefix(std::min(blank + 1, rest.size()));
    }
  }
  return out;
}

std::string LowerCore(std::string_view name) {
  while (!name.empty() && name.front() == '_') name.remove_prefix(1);
  while (!name.empty() && name.back() == '_') name.remove_suffix(1);
  std::string out(name);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool EndsIn(std::string_view s, std::string_view end) {
  return s.size() >= end.size() && s.substr(s.size() - end.size()) == end;
}

/// Classes that carry the name of their kind: LlamaRMSNorm, QKVParallelLinear, BertSelfAttention.
Arithmetic ByEnding(std::string_view name) {
  if (EndsIn(name, "norm")) return Arithmetic::kNormalise;
  if (EndsIn(name, "linear") || EndsIn(name, "conv1d") || EndsIn(name, "conv2d")) return Arithmetic::kProduct;
  if (EndsIn(name, "rotaryembedding")) return Arithmetic::kFunction;
  return Arithmetic::kUnknown;
}

}  // namespace

std::string_view ApiOrClassOf(std::string_view op_name) {
  const std::string_view base = ParseOpName(op_name).base;
  const size_t dot = base.rfind('.');
  return dot == std::string_view::npos ? base : base.substr(dot + 1);
}

Arithmetic ArithmeticOf(std::string_view op_name) {
  static const Table* const kTable = new Table(MakeTable());
  const std::string name = LowerCore(ApiOrClassOf(op_name));
  const auto it = kTable->find(name);
  if (it != kTable->end()) return it->second;
  return StartsWith(op_name, "Module.") || StartsWith(op_name, "Cell.") ? ByEnding(name) : Arithmetic::kUnknown;
}

bool OnlyMovesOrCasts(std::string_view op_name) {
  static constexpr std::string_view kApis[] = {"to",
                                               "float",
                                               "half",
                                               "bfloat16",
                                               "double",
                                               "type",
                                               "type_as",
                                               "contiguous",
                                               "clone",
                                               "detach",
                                               "cpu",
                                               "cuda",
                                               "npu",
                                               "numpy",
                                               "item",
                                               "tolist",
                                               "empty",
                                               "empty_like",
                                               "new_empty",
                                               "new_empty_strided",
                                               "empty_strided",
                                               "is_nonzero",
                                               "size",
                                               "requires_grad",
                                               "eq",
                                               "isnan",
                                               "isinf",
                                               "any",
                                               "all",
                                               "isfinite",
                                               "allclose"};
  const std::string name = LowerCore(ApiOrClassOf(op_name));
  return std::find(std::begin(kApis), std::end(kApis), name) != std::end(kApis);
}

}  // namespace msprobe
