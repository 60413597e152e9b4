"""Planted bugs in a bfloat16 run that is compared with a float32 run: each op differs a little, one of them differs wrongly."""

import bugs
from clean import autocast, in_half

CASES = {case.name: case for case in bugs.BUGS}


def in_noise(name, half=in_half):
    """The case, with rounding all around it."""
    case = CASES[name]
    if case.world > 1:
        return case._replace(name=f"{name}_bf16", target=lambda rank, world: half(lambda: case.make(rank, world))())
    return case._replace(name=f"{name}_bf16", target=half(case.make))


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
