"""Fingerprints of weights beside XXH3 over the same bytes, in one run and on one thread each.

    pip install xxhash
    python bench/fingerprint.py                # the weights of a 400 MB model in bfloat16

Prints the bytes a second of XXH3 (one hash a tensor, as projects do by hand), of PrecisionDebugger.fingerprint() without and
with its file, and their ratio: the best of several rounds in turn.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("MSPROBE_THREADS", "1")

import torch
import xxhash
from msprobe.pytorch import PrecisionDebugger

SHAPES = {
    "self_attn.q_proj": (2048, 2048),
    "self_attn.k_proj": (512, 2048),
    "self_attn.v_proj": (512, 2048),
    "self_attn.o_proj": (2048, 2048),
    "mlp.gate_proj": (5504, 2048),
    "mlp.up_proj": (5504, 2048),
    "mlp.down_proj": (2048, 5504),
    "input_layernorm": (2048,),
    "post_attention_layernorm": (2048,),
}


def weights(megabytes: int) -> dict:
    out, size, layer = {}, 0, 0
    random = torch.randn(5504 * 2048).bfloat16()
    while size < megabytes << 20:
        for name, shape in SHAPES.items():
            count = torch.Size(shape).numel()
            t = (random[:count] + layer).view(shape).clone()
            out[f"model.layers.{layer}.{name}.weight"] = t
            size += t.numel() * t.element_size()
        layer += 1
    return out


def seconds(call) -> float:
    """Of the processor: what else runs here does not count."""
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    state = weights(args.megabytes)
    size = sum(t.numel() * t.element_size() for t in state.values())
    views = [t.view(torch.uint8).numpy().data for t in state.values()]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "weights.json"
        times: dict = {"xxh3": [], "fingerprint": [], "with_file": []}
        for _ in range(args.rounds):
            times["xxh3"].append(seconds(lambda: [xxhash.xxh3_64_digest(view) for view in views]))
            times["fingerprint"].append(seconds(lambda: PrecisionDebugger.fingerprint(state, path="")))
            times["with_file"].append(seconds(lambda: PrecisionDebugger.fingerprint(state, path=path)))
        best = {name: min(found) for name, found in times.items()}
        line = {"MB": size >> 20, **{f"{name}_GB/s": round(size / t / 1e9, 2) for name, t in best.items()}}
        line["share_of_xxh3"] = round(best["xxh3"] / best["fingerprint"], 2)
        line["share_with_file"] = round(best["xxh3"] / best["with_file"], 2)
        line["file_share_of_bytes"] = round(path.stat().st_size / size, 4)
        print(json.dumps(line))


if __name__ == "__main__":
    main()
