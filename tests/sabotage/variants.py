"""The planted bugs where they are harder to see: amid the rounding of bfloat16, and in dumps of modules only."""

import bugs
from clean import autocast, in_half

CASES = {case.name: case for case in bugs.BUGS}


def in_noise(name, half=in_half):
    """A bfloat16 run with the bug against a float32 run: each op differs a little, one of them differs wrongly."""
    case = CASES[name]
    if case.world > 1:
        return case._replace(name=f"{name}_bf16", target=lambda rank, world: half(lambda: case.make(rank, world))())
    return case._replace(name=f"{name}_bf16", target=half(case.make))


def of_modules(name):
    """Only modules are recorded: the answer is the module that has the bug in its own code, or its container."""
    return CASES[name]._replace(name=f"{name}_L0", level="L0")


NOISY = [
    in_noise("attention_scale"),
    in_noise("norm_eps"),
    in_noise("rope_base"),
    in_noise("softmax_dim"),
    in_noise("mask_off_by_one")._replace(summary="statistics"),
    in_noise("residual_dropped"),
    in_noise("padding_not_masked"),
    in_noise("layer_skipped", autocast),
    in_noise("batch_norm_in_eval"),
    in_noise("dropped_all_reduce"),
    in_noise("wrong_shard"),
    in_noise("detached_residual"),
]

MODULES = [
    of_modules("attention_scale"),
    of_modules("stale_rope_cache"),
    of_modules("head_not_tied"),
    of_modules("used_buffer"),
    of_modules("mask_off_by_one"),
    of_modules("head_order"),
    of_modules("heads_not_moved_back"),
    of_modules("padding_not_masked"),
    of_modules("residual_dropped"),
    of_modules("overwritten_input"),
    of_modules("gelu_tanh"),
    of_modules("batch_norm_in_eval"),
    of_modules("detached_residual"),
    of_modules("dropped_all_reduce"),
    of_modules("dropped_backward_reduce"),
    of_modules("wrong_shard"),
]
