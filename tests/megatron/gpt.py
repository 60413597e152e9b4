"""A GPT of megatron-core in any layout, with the weights of one global model: `Layout`, `build`, `whole`."""

import zlib
from typing import NamedTuple, Optional

import torch
import torch.distributed as dist
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.module import Float16Module
from megatron.core.transformer.moe import moe_utils, token_dispatcher
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules, get_num_layers_to_build
from megatron.core.transformer.transformer_layer import get_transformer_layer_offset

# A name that the router looks up, and that is there only with Transformer Engine.
if not hasattr(moe_utils, "te_general_gemm"):
    moe_utils.te_general_gemm = None
# It makes arrays of tensors that are on a GPU: those are the sizes that all_to_all takes.
token_dispatcher.maybe_move_tensor_to_cpu = lambda tensor, as_numpy=False, record_stream=False: (
    tensor.numpy() if as_numpy and torch.is_tensor(tensor) else tensor
)


class Layout(NamedTuple):
    """How a model is cut and trained; its defaults are one process. `world` is what that needs, with `dp` copies."""

    tp: int = 1
    pp: int = 1
    vpp: int = 1  # chunks of a stage
    ep: int = 1
    etp: int = 1  # tensor parallelism of experts, which may be another than that of the rest
    cp: int = 1
    dp: int = 1
    sp: bool = False
    distributed_optimizer: bool = False
    overlap: bool = False  # gradients are reduced while backward runs
    bf16: bool = False
    recompute: str = ""  # full, selective
    experts: int = 0
    dispatcher: str = "alltoall"  # of tokens to experts; gloo has no all_gather of other sizes, as two sizes need
    layers: int = 4
    hidden: int = 32
    heads: int = 4
    groups: int = 2
    ffn: int = 48
    vocab: int = 96
    seq: int = 16
    micro_batch: int = 2
    micro_batches: int = 2
    tied: bool = False
    norm: str = "RMSNorm"
    eps: float = 1e-5
    qkv_bias: bool = True
    batches: int = 1  # how many ranks' batches this one takes as one: those of a run with so many replicas
    per_token: bool = False  # the loss is a sum, and gradients are divided by the number of all tokens
    first_layers: int = 0  # of the first stage, if the stages differ
    custom_norm: bool = False
    deallocate: bool = True
    gelu: bool = False  # and no gate
    bias: bool = False  # of every linear layer
    positions: str = "rope"
    qk_norm: bool = False
    sinks: bool = False  # a learned offset of each head's softmax

    @property
    def world(self):
        return self.pp * max(self.tp * self.cp * self.dp, self.ep * self.etp)


class RMSNorm(torch.nn.RMSNorm):
    """That of torch, which WrappedTorchNorm refuses under sequence parallelism; its gradients are summed over the ranks then."""

    def __init__(self, config, hidden_size, eps=1e-5, **_):
        super().__init__(normalized_shape=hidden_size, eps=eps)
        self.weight.sequence_parallel = config.sequence_parallel


class Run(NamedTuple):
    layout: Layout
    config: TransformerConfig
    chunks: list
    optimizer: object

    def layers(self):
        """{global number, from 0: TransformerLayer} of this rank."""
        found = {}
        for chunk in self.chunks:
            for layer in plain(chunk).decoder.layers:
                found[layer.layer_number - 1] = layer
        return found


def plain(model):
    """The GPTModel in its wrappers."""
    while hasattr(model, "module"):
        model = model.module
    return model


def start_process(layout, rank, store):
    dist.init_process_group("gloo", store=dist.FileStore(store, layout.world), rank=rank, world_size=layout.world)
    parallel_state.initialize_model_parallel(
        layout.tp,
        layout.pp,
        virtual_pipeline_model_parallel_size=layout.vpp if layout.vpp > 1 else None,
        context_parallel_size=layout.cp,
        expert_model_parallel_size=layout.ep,
        expert_tensor_parallel_size=layout.etp if layout.experts else None,
    )
    tensor_parallel.model_parallel_cuda_manual_seed(1)


def config_of(layout):
    dtype = torch.bfloat16 if layout.bf16 else torch.float32
    options = {}
    if layout.first_layers:
        options["num_layers_in_first_pipeline_stage"] = layout.first_layers
    if layout.sinks:
        options["softmax_type"] = "learnable"
    if layout.experts:
        options |= {"num_moe_experts": layout.experts, "moe_router_topk": 2, "moe_ffn_hidden_size": layout.ffn}
        options |= {"moe_token_dispatcher_type": layout.dispatcher, "moe_router_load_balancing_type": "none"}
    if layout.recompute:
        options |= {"recompute_granularity": layout.recompute}
        if layout.recompute == "full":
            options |= {"recompute_method": "uniform", "recompute_num_layers": 1}
    return TransformerConfig(
        num_layers=layout.layers,
        hidden_size=layout.hidden,
        num_attention_heads=layout.heads,
        num_query_groups=layout.groups,
        ffn_hidden_size=layout.ffn,
        gated_linear_unit=not layout.gelu,
        activation_func=torch.nn.functional.gelu if layout.gelu else torch.nn.functional.silu,
        normalization=layout.norm,
        layernorm_epsilon=layout.eps,
        add_bias_linear=layout.bias,
        qk_layernorm=layout.qk_norm,
        add_qkv_bias=layout.qkv_bias,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        tensor_model_parallel_size=layout.tp,
        pipeline_model_parallel_size=layout.pp,
        virtual_pipeline_model_parallel_size=layout.vpp if layout.vpp > 1 else None,
        expert_model_parallel_size=layout.ep,
        expert_tensor_parallel_size=layout.etp if layout.experts else layout.tp,
        context_parallel_size=layout.cp,
        sequence_parallel=layout.sp,
        calculate_per_token_loss=layout.per_token,
        bf16=layout.bf16,
        params_dtype=dtype,
        pipeline_dtype=dtype,
        use_cpu_initialization=True,
        batch_p2p_comm=False,
        # gloo sends what was freed from a thread of its own; only one stage after the other is safe from that
        deallocate_pipeline_outputs=layout.deallocate and layout.vpp == 1,
        bias_activation_fusion=False,
        bias_dropout_fusion=False,
        masked_softmax_fusion=False,
        apply_rope_fusion=False,
        gradient_accumulation_fusion=False,
        persist_layer_norm=False,
        **options,
    )


def spec_of(layout, config, vp_stage):
    layer = get_gpt_layer_local_spec(
        num_experts=layout.experts or None, normalization=layout.norm, qk_layernorm=layout.qk_norm
    )
    if not (layout.sp or layout.custom_norm):
        return layer
    layer.submodules.input_layernorm = layer.submodules.pre_mlp_layernorm = RMSNorm
    count = get_num_layers_to_build(config, vp_stage=vp_stage)
    return TransformerBlockSubmodules(layer_specs=[layer] * count, layer_norm=RMSNorm)


def whole(name, shape, dtype=torch.float32):
    """The parameter of the global model: `name` counts layers and experts over all ranks."""
    if "norm" in name:
        center, scale = 1.0, 0.1
    else:
        center, scale = 0.0, 0.02 if name.endswith("bias") else 0.15
    noise = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
    return (center + scale * noise).to(dtype)


def global_name(name, layout, vp_stage, config):
    """`decoder.layers.0.x` of this stage with the number that the layer has in the whole model; experts likewise."""
    parts = name.split(".")
    if "layers" in parts:
        at = parts.index("layers") + 1
        parts[at] = str(int(parts[at]) + get_transformer_layer_offset(config, vp_stage))
    if "local_experts" in parts:
        at = parts.index("local_experts") + 1
        each = layout.experts // layout.ep
        parts[at] = str(int(parts[at]) + each * parallel_state.get_expert_model_parallel_rank())
    return ".".join(parts)


def fill(model, layout, config, vp_stage):
    """Gives every parameter of this rank its part of the global model."""
    for local, parameter in model.named_parameters():
        tp, rank = layout.tp, parallel_state.get_tensor_model_parallel_rank()
        if ".local_experts." in local:
            tp, rank = layout.etp, parallel_state.get_expert_tensor_parallel_rank()
        name = global_name(local, layout, vp_stage, config)
        if name == "output_layer.weight" and layout.tied:
            name = "embedding.word_embeddings.weight"
        shape = list(parameter.shape)
        of_heads = name.endswith("softmax_offset")  # which Megatron does not mark
        split = (of_heads or getattr(parameter, "tensor_model_parallel", False)) and tp > 1
        dim = 0 if of_heads else getattr(parameter, "partition_dim", 0)
        if split:
            shape[dim] *= tp
        full = whole(name, shape)
        if split and "linear_fc1" in name and not layout.gelu:  # gate and up, each cut
            full = torch.cat([half.chunk(tp, 0)[rank] for half in full.chunk(2, 0)])
        elif split:
            full = full.chunk(tp, dim)[rank]
        with torch.no_grad():
            parameter.copy_(full)


def build(layout, change=None):
    """The chunks of this rank, wrapped, and their optimizer. `change(model, vp_stage)` sees each chunk before it is wrapped."""
    config = config_of(layout)
    ddp = DistributedDataParallelConfig(
        overlap_grad_reduce=layout.overlap,
        grad_reduce_in_fp32=True,
        use_distributed_optimizer=layout.distributed_optimizer,
        check_for_nan_in_grad=False,
    )
    chunks = []
    for stage in range(layout.vpp):
        vp_stage: Optional[int] = stage if layout.vpp > 1 else None
        first = parallel_state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=vp_stage)
        last = parallel_state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=vp_stage)
        model = GPTModel(
            config,
            spec_of(layout, config, vp_stage),
            layout.vocab,
            layout.seq,
            pre_process=first,
            post_process=last,
            position_embedding_type=layout.positions,
            share_embeddings_and_output_weights=layout.tied,
            vp_stage=vp_stage,
        )
        fill(model, layout, config, vp_stage)
        model.model_type = None
        if change:
            change(model, vp_stage)
        if layout.bf16:
            model = Float16Module(config, model)
        chunks.append(DistributedDataParallel(config, ddp, model, disable_bucketing=stage > 0))
    optimizer = get_megatron_optimizer(
        OptimizerConfig(
            optimizer="adam",
            lr=1e-3,
            weight_decay=0.01,
            clip_grad=1.0,
            bf16=layout.bf16,
            params_dtype=config.params_dtype,
            use_distributed_optimizer=layout.distributed_optimizer,
        ),
        chunks,
    )
    config.finalize_model_grads_func = finalize_model_grads
    config.grad_scale_func = optimizer.scale_loss
    if layout.overlap:
        config.no_sync_func = [chunk.no_sync for chunk in chunks] if layout.vpp > 1 else chunks[0].no_sync
    return Run(layout, config, chunks, optimizer)
