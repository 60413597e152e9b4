"""Pairs of runs that only round in another way, some over several steps: no answer may say "bug", next to none "suspicious"."""

import torch
from clean import Clean, four_samples, micro_batches, with_threads
from rewrites import L0, L1, MD5, MiniGated, changed, gated, optimizer, rms_norm_in_one_call
from work import Experts, MiniGpt, Work, bert, conv, gpt2, llama, mini_gpt, next_token_loss, tokens_of, vit


def wide_gated():
    return Work(MiniGated(width=128), tokens_of(4, 40), next_token_loss)


def wide_gpt():
    return Work(MiniGpt(width=128), tokens_of(4, 30), next_token_loss)


def wide_moe():
    work = wide_gpt()
    for block in work.model.blocks:
        block.mlp = Experts(128)
    return changed(lambda: work, optimizer(foreach=False))()


def wide_bert():
    return bert(hidden_size=128, intermediate_size=256, num_hidden_layers=2)


def steps(count, make):
    def made():
        work = make()
        work.steps = count
        return work

    return made


def without_onednn(work):
    torch.backends.mkldnn.enabled = False


def last_bit(work):
    """Weights that were written and read in another format: some differ in their last bit."""
    with torch.no_grad():
        for parameter in work.model.parameters():
            parameter.mul_(1 + 2.0**-23 * torch.randint(-1, 2, parameter.shape))


def hidden_units_permuted(work):
    """The units of each hidden layer in another order: the same function, other orders of summation."""
    for module in work.model.modules():
        if type(module).__name__ == "FeedForward":
            order = torch.randperm(module.up.weight.shape[0])
            for tensor in (module.up.weight, module.up.bias):
                tensor.data = tensor.data[order].clone()
            module.down.weight.data = module.down.weight.data[:, order].clone()


def samples_permuted(work):
    work.batch = work.batch.flip(0)


def product_in(precision):
    def change(work):
        torch.set_float32_matmul_precision(precision)

    change.__name__ = f"products_{precision}"
    return change


def rounding(name, target, golden, about, **options):
    return Clean(name, target, golden, about, **options)


def two_threads(name, make, **options):
    return rounding(name, with_threads(2, make), with_threads(1, make), "2 threads against 1", **options)


ADAM, LOOP = optimizer(), optimizer(foreach=False)
FUSED, FOREACH = optimizer(fused=True), optimizer(foreach=True)


def many(change, make=mini_gpt, count=3):
    return steps(count, changed(make, change))


ROUNDING = [
    two_threads("threads_gated", wide_gated),
    two_threads("threads_gpt_L1", wide_gpt, **L1),
    two_threads("threads_moe", wide_moe),
    two_threads("threads_moe_md5", wide_moe, **MD5),
    two_threads("threads_steps", steps(3, wide_gated)),
    two_threads("threads_steps_L1", steps(3, wide_gpt), **L1),
    two_threads("threads_bert_md5", wide_bert, **MD5),
    rounding("fused_adam_steps", many(FUSED), many(LOOP), "fused AdamW against a loop, 3 steps"),
    rounding("fused_adam_steps_L0", many(FUSED), many(LOOP), "fused AdamW against a loop, 3 steps", **L0),
    rounding("fused_adam_steps_md5", many(FUSED), many(LOOP), "fused AdamW against a loop, 3 steps", **MD5),
    rounding("foreach_adam_steps", many(FOREACH, bert), many(LOOP, bert), "AdamW for lists against a loop, 3 steps"),
    rounding("foreach_adam_steps_L1", many(FOREACH), many(LOOP), "AdamW for lists against a loop, 3 steps", **L1),
    rounding(
        "sgd_steps",
        many(optimizer("SGD", momentum=0.9, foreach=True), gated),
        many(optimizer("SGD", momentum=0.9, foreach=False), gated),
        "SGD for lists against a loop, 3 steps",
    ),
    rounding(
        "micro_batches_steps", steps(3, micro_batches(2)), steps(3, four_samples), "2 micro batches against 1, 3 steps"
    ),
    rounding("without_onednn", changed(wide_gated, without_onednn), wide_gated, "plain kernels against oneDNN"),
    rounding("without_onednn_conv", changed(conv, without_onednn), conv, "plain kernels against oneDNN", **L1),
    rounding("without_onednn_md5", changed(conv, without_onednn), conv, "plain kernels against oneDNN", **MD5),
    rounding("products_high", changed(wide_gpt, product_in("high")), wide_gpt, "matmul precision high against highest"),
    rounding("last_bit", changed(gated, last_bit), gated, "weights differ in their last bit"),
    rounding("last_bit_md5", changed(gpt2, last_bit), gpt2, "weights differ in their last bit", **MD5),
    rounding(
        "last_bit_steps", steps(3, changed(bert, last_bit)), steps(3, bert), "weights differ in their last bit, 3 steps"
    ),
    rounding("hidden_units", changed(mini_gpt, hidden_units_permuted), mini_gpt, "hidden units in another order"),
    rounding("samples_permuted", changed(four_samples, samples_permuted), four_samples, "samples in another order"),
    rounding(
        "rewrite_steps",
        steps(3, changed(gated, rms_norm_in_one_call)),
        steps(3, gated),
        "rms_norm in one call, 3 steps",
    ),
    rounding(
        "sdpa_steps", steps(3, lambda: gpt2(attn_implementation="sdpa")), steps(3, gpt2), "fused attention, 3 steps"
    ),
    rounding("sdpa_vit_L1", lambda: vit(attn_implementation="sdpa"), vit, "fused attention", **L1),
    rounding("sdpa_llama_md5", lambda: llama(attn_implementation="sdpa"), llama, "fused attention", **MD5),
]
