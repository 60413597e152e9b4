"""Pairs of runs without a bug, which differ by no more than rounding explains: no answer may say "bug"."""

from typing import Callable, NamedTuple

import torch
import torch.nn.functional as F
from bugs import gpt2_with_dropout, method
from parallel import ddp, pipeline, tensor_parallel
from torch.utils.checkpoint import checkpoint
from work import bert, conv, gpt2, llama, mini_gpt, moe, rnn, t5, tokens_of, vit


class Clean(NamedTuple):
    name: str
    target: Callable  # () or (rank, world) -> Work
    golden: Callable
    about: str
    world: int = 1
    level: str = "mix"
    task: str = "statistics"
    summary: str = "statistics"

    def side(self, side):
        return None, self.target if side == "target" else self.golden


def in_half(make, dtype=torch.bfloat16):
    """The same weights, rounded; batches of floating point too."""

    def made():
        work = make()
        work.model.to(dtype)
        work.batch = cast(work.batch, dtype)
        return work

    return made


def cast(batch, dtype):
    if isinstance(batch, dict):
        return {key: cast(value, dtype) for key, value in batch.items()}
    if isinstance(batch, tuple):
        return tuple(cast(value, dtype) for value in batch)
    return batch.to(dtype) if batch.is_floating_point() else batch


def autocast(make):
    def made():
        work = make()
        work.autocast = torch.bfloat16
        return work

    return made


def with_threads(count, make):
    def made():
        torch.set_num_threads(count)
        return make()

    return made


def wide_llama():
    work = llama(hidden_size=256, intermediate_size=512, num_hidden_layers=2)
    tokens = tokens_of(2, 40)
    work.batch = {"input_ids": tokens, "labels": tokens}
    return work


def wide_conv():
    work = conv()
    work.batch = (torch.rand(16, 3, 24, 24), torch.randint(0, 10, (16,)))
    return work


def four_samples():
    work = mini_gpt()
    work.batch = tokens_of(4, 12)
    return work


def micro_batches(count):
    def made():
        work = four_samples()
        work.micro_batches = work.batch.chunk(count)
        return work

    return made


def loss_in_parts():
    work = four_samples()

    def loss(model, tokens):
        logits, labels = model(tokens)[:, :-1], tokens[:, 1:]
        parts = [
            F.cross_entropy(*(t.flatten(0, 1) for t in pair), reduction="sum")
            for pair in zip(logits.chunk(2), labels.chunk(2))
        ]
        return (parts[0] + parts[1]) / labels.numel()

    work.loss = loss
    return work


def nll_of_log_softmax():
    work = four_samples()

    def loss(model, tokens):
        logits = model(tokens)[:, :-1].flatten(0, 1)
        return F.nll_loss(F.log_softmax(logits, dim=-1), tokens[:, 1:].flatten())

    work.loss = loss
    return work


def strided_weights():
    """The same numbers, columns first."""
    work = llama()
    for module in work.model.modules():
        if isinstance(module, torch.nn.Linear):
            module.weight.data = module.weight.data.t().contiguous().t()
    return work


def channels_last():
    work = conv()
    work.model.to(memory_format=torch.channels_last)
    work.batch = (work.batch[0].to(memory_format=torch.channels_last), work.batch[1])
    return work


def linear_in_two_steps():
    """Product first and bias second, as other frameworks do."""
    work = mini_gpt()
    for module in work.model.modules():
        if isinstance(module, torch.nn.Linear) and module.bias is not None:

            @method(module, "forward")
            def forward(self, x):
                return torch.matmul(x, self.weight.t()) + self.bias

    return work


def norm_by_hand():
    work = mini_gpt()
    for module in work.model.modules():
        if isinstance(module, torch.nn.LayerNorm):

            @method(module, "forward")
            def forward(self, x):
                x = x - x.mean(-1, keepdim=True)
                return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight + self.bias

    return work


def head_by_head():
    work = mini_gpt()
    for block in work.model.blocks:

        @method(block.attention, "forward")
        def forward(self, x):
            q, k, v = (self.split_heads(part) for part in self.qkv(x).chunk(3, dim=-1))
            heads = [
                torch.matmul(self.weights(q[:, h : h + 1], k[:, h : h + 1]), v[:, h : h + 1]) for h in range(self.heads)
            ]
            return self.out(self.merge_heads(torch.cat(heads, dim=1)))

    return work


def recomputed():
    work = mini_gpt()

    @method(work.model, "forward")
    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(self.norm(x))

    return work


def optimizer_of(**options):
    def made():
        work = mini_gpt()
        work.optimizer = torch.optim.AdamW(work.model.parameters(), lr=1e-2, **options)
        return work

    return made


def sdpa(make):
    return lambda: make(attn_implementation="sdpa")


def ddp_of(megabytes):
    return lambda rank, world: ddp(rank, world, bucket_cap_mb=megabytes)


TENSOR, TWO = {"task": "tensor"}, {"world": 2}
CLEAN = [
    Clean("same_llama", llama, llama, "the same run"),
    Clean("same_conv", conv, conv, "the same run", **TENSOR),
    Clean("same_dropout", gpt2_with_dropout, gpt2_with_dropout, "the same run, with dropout", summary="md5"),
    Clean("same_tensor_parallel", tensor_parallel, tensor_parallel, "the same run, TP", **TWO),
    Clean("same_pipeline", pipeline, pipeline, "the same run, PP", **TENSOR, **TWO),
    Clean("bf16_llama", in_half(llama), llama, "bfloat16 against float32"),
    Clean("bf16_vit", in_half(vit), vit, "bfloat16 against float32", **TENSOR),
    Clean("bf16_t5", in_half(t5), t5, "bfloat16 against float32"),
    Clean("bf16_conv", in_half(conv), conv, "bfloat16 against float32"),
    Clean("bf16_rnn", in_half(rnn), rnn, "bfloat16 against float32", **TENSOR),
    Clean("bf16_moe", in_half(moe), moe, "bfloat16 against float32, with routing"),
    Clean("autocast_gpt2", autocast(gpt2), gpt2, "autocast against float32"),
    Clean("float64", in_half(mini_gpt, torch.float64), mini_gpt, "float64 against float32"),
    Clean("batch_in_2", micro_batches(2), four_samples, "2 micro batches against 1"),
    Clean("batch_in_4", micro_batches(4), micro_batches(2), "4 micro batches against 2"),
    Clean("loss_in_parts", loss_in_parts, four_samples, "loss of half batches against that of the batch"),
    Clean("threads_llama", with_threads(2, wide_llama), with_threads(1, wide_llama), "2 threads against 1"),
    Clean("threads_conv", with_threads(2, wide_conv), with_threads(1, wide_conv), "2 threads against 1", **TENSOR),
    Clean("sdpa_llama", sdpa(llama), llama, "fused attention against eager"),
    Clean("sdpa_bert", sdpa(bert), bert, "fused attention against eager, with padding"),
    Clean("head_by_head", head_by_head, mini_gpt, "attention head by head"),
    Clean("strided_weights", strided_weights, llama, "weights by column against by row", **TENSOR),
    Clean("channels_last", channels_last, conv, "channels last against contiguous"),
    Clean("linear_in_two_steps", linear_in_two_steps, mini_gpt, "product and sum against one call"),
    Clean("norm_by_hand", norm_by_hand, mini_gpt, "LayerNorm in single steps against one call"),
    Clean("log_softmax", nll_of_log_softmax, four_samples, "log_softmax and nll_loss against cross_entropy"),
    Clean("recomputed", recomputed, mini_gpt, "activations computed again in backward"),
    Clean("fused_adam", optimizer_of(fused=True), optimizer_of(foreach=False), "fused AdamW against a loop"),
    Clean("foreach_adam", optimizer_of(foreach=True), optimizer_of(foreach=False), "AdamW for lists against a loop"),
    Clean("ddp_buckets", ddp_of(25), ddp_of(0.01), "DDP with one bucket against many", **TWO),
]
