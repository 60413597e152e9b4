"""The runs: healthy ones and planted faults, with models, sizes and seeds of their own for each split.

The rules were calibrated on "calibration" and made on "development" and "seen", which was a test before. "test" has the same
30 kinds of faults, "other" further ones on families of models that no other split has.
"""

from dataclasses import asdict

from faults import Fault
from models import Shape

STEPS, AFTER = 2000, 90
SHAPES = {
    "calibration": {
        "llama": Shape("llama", 32, 2, 4, 3e-3),
        "moe": Shape("moe", 24, 2, 4, 3e-3),
        "mlp": Shape("mlp", 32, 3, 8, 3e-3),
        "conv": Shape("conv", 8, 3, 8, 3e-3),
    },
    "development": {
        "llama": Shape("llama", 40, 3, 4, 2e-3),
        "moe": Shape("moe", 32, 2, 4, 2e-3),
        "mlp": Shape("mlp", 24, 2, 16, 5e-3),
        "conv": Shape("conv", 6, 2, 16, 5e-3),
    },
    "seen": {
        "llama": Shape("llama", 32, 4, 6, 2e-3),
        "moe": Shape("moe", 32, 2, 6, 2e-3, experts=6),
        "mlp": Shape("mlp", 48, 4, 8, 2e-3),
        "conv": Shape("conv", 10, 4, 8, 2e-3),
    },
    "test": {
        "llama": Shape("llama", 24, 2, 6, 2.5e-3),
        "moe": Shape("moe", 20, 2, 8, 2.5e-3, experts=5),
        "mlp": Shape("mlp", 40, 3, 12, 3e-3, schedule="constant"),
        "conv": Shape("conv", 12, 3, 12, 2e-3),
    },
    "other": {
        "gru": Shape("gru", 24, 2, 6, 4e-3),
        "residual": Shape("residual", 8, 2, 12, 2e-2, optimizer="sgd"),
        "moe": Shape("moe", 16, 2, 6, 4e-3, experts=3, chosen=1),
        "encoder": Shape("encoder", 16, 2, 12, 2e-3, clip=1e9, schedule="constant"),
    },
}
SEEDS = {"calibration": 11, "development": 1101, "seen": 5003, "test": 70001, "other": 91009}
_ATTENTION, _MLP = "layers.1.self_attn", "layers.1.mlp"

# family, ranks, changes to the shape, fault; "at" of each is moved by split and place in the list.
FAULTS = [
    ("llama", 1, {}, Fault("bad_batch", 0, note="random labels for one step")),
    ("mlp", 1, {}, Fault("bad_batch", 0, note="inputs times 5 and noise for one step")),
    ("llama", 1, {}, Fault("lr_jump", 0, size=8, note="learning rate times 8")),
    ("conv", 1, {}, Fault("lr_jump", 0, size=5, note="learning rate times 5")),
    ("mlp", 1, {}, Fault("lr_spike", 0, size=30, note="learning rate times 30 for one step")),
    ("llama", 1, {}, Fault("frozen", 0, layer=_MLP, note="layer requires no gradient any more")),
    ("conv", 1, {}, Fault("zero_gradient", 0, layer="layers.1.0", note="gradients of a layer zeroed")),
    ("moe", 1, {}, Fault("dead_expert", 0, layer=_MLP + ".experts.2", note="expert gets no token any more")),
    ("moe", 1, {}, Fault("layer_rate", 0, layer="layers.0.mlp.router", size=10, note="updates of the router times 10")),
    ("llama", 1, {}, Fault("stale_gradient", 0, layer=_ATTENTION + ".o_proj", note="gradient of one step for ever")),
    ("mlp", 1, {}, Fault("late_gradient", 0, layer="layers.1.1", note="gradient of the step before")),
    ("llama", 1, {}, Fault("gradient_sign", 0, layer=_ATTENTION, note="gradient negated")),
    ("conv", 1, {}, Fault("gradient_sign", 0, layer="head", note="gradient negated")),
    ("llama", 1, {}, Fault("beta1", 0, size=0.3, note="beta1 0.9 becomes 0.3")),
    ("mlp", 1, {}, Fault("beta2", 0, size=0.5, note="beta2 0.99 becomes 0.5")),
    ("llama", 1, {}, Fault("bit_flip", 0, layer=_MLP + ".up_proj", size=29, note="exponent bit of a weight")),
    ("conv", 1, {}, Fault("bit_flip", 0, layer="layers.1.0", size=21, note="mantissa bit of a weight")),
    ("mlp", 1, {}, Fault("state_flip", 0, layer="layers.0.1", size=30, note="exponent bit of a second moment")),
    ("llama", 1, {}, Fault("logit_growth", 0, layer="lm_head", size=0.5, note="a loss that rewards large logits")),
    (
        "llama",
        1,
        {"accumulate": 2, "clip": 100.0},
        Fault("wrong_accumulation", 0, size=2, note="sum, not mean, of 2 micro batches"),
    ),
    ("mlp", 1, {"accumulate": 2}, Fault("lost_micro_batch", 0, note="first micro batch of each step is dropped")),
    ("llama", 1, {"clip": 0.3}, Fault("clip_changed", 0, size=1e6, note="clipping no longer applied")),
    ("llama", 1, {}, Fault("repeated_data", 0, size=1, note="the same batch again and again")),
    ("llama", 1, {}, Fault("shifted_labels", 0, note="labels shifted by one token")),
    ("conv", 1, {}, Fault("nan_gradient", 0, layer="layers.1.0", note="one NaN in a gradient")),
    ("mlp", 3, {}, Fault("rank_noise", 0, rank=1, size=2, note="noise in the gradients of a rank")),
    (
        "llama",
        3,
        {},
        Fault("missing_all_reduce", 0, layer=_ATTENTION + ".v_proj", note="a layer is left out of the reduction"),
    ),
    ("conv", 3, {}, Fault("bad_data", 0, rank=2, note="a rank reads noise")),
    (
        "mlp",
        4,
        {},
        Fault("bit_flip", 0, layer="layers.1.1", rank=3, size=20, note="mantissa bit of a weight of a rank"),
    ),
    ("mlp", 2, {}, Fault("reduced_noise", 0, rank=1, size=1e-3, note="one of 2 ranks gets another sum")),
]

_ONE_OF_TWO = "of 2 replicas one has another weight"
OTHERS = [
    ("gru", 1, {}, Fault("bad_batch", 0, note="random labels for one step")),
    ("gru", 1, {}, Fault("gradient_sign", 0, layer="layers.1", note="gradient negated")),
    ("residual", 1, {}, Fault("frozen", 0, layer="layers.0", note="layer requires no gradient any more")),
    ("encoder", 1, {}, Fault("weight_decay", 0, size=20, note="weight decay times 2000")),
    ("moe", 1, {}, Fault("dead_expert", 0, layer=_MLP + ".experts.1", note="expert gets no token any more")),
    ("moe", 1, {}, Fault("stale_gradient", 0, layer="layers.0.mlp.router", note="gradient of one step for ever")),
    ("encoder", 1, {}, Fault("logit_growth", 0, layer="head", size=0.5, note="a loss that rewards large logits")),
    ("gru", 1, {"clip": 0.4}, Fault("clip_changed", 0, size=1e6, note="clipping no longer applied")),
    ("encoder", 1, {}, Fault("evaluation", 0, note="dropout switched off")),
    ("residual", 3, {}, Fault("rank_noise", 0, rank=2, size=2, note="noise in the gradients of a rank")),
    ("gru", 3, {}, Fault("missing_all_reduce", 0, layer="layers.0", note="a layer is left out of the reduction")),
    ("encoder", 2, {}, Fault("bit_flip", 0, layer="layers.1.linear1", rank=1, size=20, note=_ONE_OF_TWO)),
    ("gru", 1, {}, Fault("repeated_data", 0, size=2, note="the same two batches again and again")),
    ("residual", 1, {}, Fault("bit_flip", 0, layer="layers.1.conv2", size=28, note="exponent bit of a weight")),
    ("gru", 1, {}, Fault("lost_moments", 0, layer="layers.1", note="first moments of a layer zeroed once")),
    ("moe", 1, {}, Fault("lr_jump", 0, size=3, note="learning rate times 3")),
    ("encoder", 1, {}, Fault("beta2", 0, size=0.5, note="beta2 0.99 becomes 0.5")),
    ("residual", 1, {}, Fault("scaled_data", 0, size=4, note="inputs times 4")),
    ("gru", 1, {"accumulate": 2}, Fault("lost_micro_batch", 0, note="first micro batch of each step is dropped")),
    ("residual", 4, {}, Fault("rank_scale", 0, rank=3, size=3, note="gradients of a rank times 3")),
]


def fault_cases(split: str) -> list:
    """The runs with a fault of a split, each as train.run() takes it.

    Args:
        split: A key of SHAPES.

    Returns:
        One object for each of FAULTS, or of OTHERS.
    """
    cases = []
    for number, (family, ranks, changes, fault) in enumerate(OTHERS if split == "other" else FAULTS):
        shape = SHAPES[split][family]._replace(**changes)
        at = 260 + (number * 37 + SEEDS[split]) % 140
        given = {**asdict(fault), "at": at, "kept": {}}
        cases.append(
            {
                "name": f"{number + 1:02d}_{fault.kind}_{family}",
                "shape": shape._asdict(),
                "seed": SEEDS[split] + number,
                "steps": STEPS,
                "until": at + AFTER,
                "ranks": ranks,
                "fault": given,
            }
        )
    return cases


def twin_of(case: dict) -> dict:
    """The same training without the fault, and without the monitor."""
    return {**case, "name": case["name"] + "_twin", "fault": None, "bare": True}


def healthy_cases(split: str, count: int) -> list:
    """Runs of 2,000 steps without a fault; some with two micro batches, three ranks, or a small data set."""
    families = list(SHAPES[split])
    cases = []
    for number in range(count):
        family = families[number % len(families)]
        shape = SHAPES[split][family]
        if number % 8 == 4:
            shape = shape._replace(accumulate=2)
        if split in ("test", "other") and number % 5 == 3:
            shape = shape._replace(samples=40 * shape.batch - shape.batch // 2)
        cases.append(
            {
                "name": f"healthy{number:02d}_{family}",
                "shape": shape._asdict(),
                "seed": SEEDS[split] + 500 + number,
                "steps": STEPS,
                "until": STEPS,
                "ranks": 3 if number % 12 == 6 else 1,
            }
        )
    return cases
