"""What the earlier tool wrote of each model, kept small: recorded/MODEL.json.xz, made by record_earlier.py.

Names, order, parents, stacks, fields, shapes, types and requires_grad are kept as they are. Of values, those of the first
step with five digits, as the bits of a sum depend on the processor; of later steps none, as an optimizer may turn a rounding of
a gradient near zero into a whole step; of checksums that there is one. Files of tensors are kept as what they hold.
"""

import json
import lzma
import math
import platform
import re
from importlib.metadata import version
from pathlib import Path

import torch
from comparison import STATISTICS, Dump, header_of, without_own_lines

KEPT = Path(__file__).resolve().parent / "recorded"
# Compared with what the earlier tool computes here and now, to the bit. mixtral: which expert a token goes to hangs on a rounding
# of bfloat16, so that shapes are other ones on another processor.
LIVE = ("mixtral", "nested")
CHECKED = "nested"  # of these, the one that is recorded as well, to hold the record against what the tool says now
DIGITS = 5


def path_of(model):
    return KEPT / f"{model}.json.xz"


def versions(uses_transformers):
    """What decides names, stacks and the random numbers of dropout: where it is another, the earlier tool is asked anew."""
    found = {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "machine": platform.machine(),
        "mkl": torch.backends.mkl.is_available(),
    }
    found["torch"] = version("torch").split("+")[0]
    if uses_transformers:
        found["transformers"] = version("transformers")
    return found


def read_recorded(model):
    """{configuration: [[Dump of each rank] of each step]}; None where the record is not one of these versions."""
    try:
        kept = json.loads(lzma.decompress(path_of(model).read_bytes()))
    except FileNotFoundError:
        return None
    if kept["versions"] != versions("transformers" in kept["versions"]):
        return None
    return {
        config: [[unpacked(rank, model, config) for rank in ranks] for ranks in steps]
        for config, steps in kept["dumps"].items()
    }


def write_recorded(model, dumps, tool):
    """`dumps`: as read_recorded() gives them."""
    packed = {
        config: [[pack(dump, step > 0) for dump in ranks] for step, ranks in enumerate(steps)]
        for config, steps in dumps.items()
    }
    uses_transformers = "transformers/" in json.dumps(packed)
    kept = {"tool": tool, "versions": versions(uses_transformers), "dumps": packed}
    KEPT.mkdir(exist_ok=True)
    text = json.dumps(kept, separators=(",", ":"))
    path_of(model).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def pack(dump, later):
    tensors = dump.directory / "dump_tensor_data"
    groups = {}
    for name, frames in dump.stacks.items():
        groups.setdefault(tuple(without_own_lines(frames)), []).append(name)
    envelope = dict(dump.envelope)
    if envelope.get("dump_data_dir"):
        envelope["dump_data_dir"] = Path(envelope["dump_data_dir"]).name
    return {
        "envelope": envelope,
        "data": small(dump.data, later),
        "construct": dump.construct,
        "stacks": [[names, frames] for frames, names in groups.items()],
        "files": {path.name: header_of(dump.tensor(path.name)) for path in sorted(tensors.glob("*.pt"))},
    }


def small(value, later):
    if isinstance(value, list):
        return [small(item, later) for item in value]
    if not isinstance(value, dict):
        return value
    if "shape" not in value or "dtype" not in value:
        return {key: small(item, later) for key, item in value.items()}
    found = dict(value)
    for key in found.keys() & {*STATISTICS, "md5"}:
        found[key] = small_number(found[key], later)
    return found


def small_number(value, later):
    if isinstance(value, str):
        return re.sub(".", "#", value)
    if isinstance(value, float) and math.isfinite(value):
        return 0.0 if later else float(f"{value:.{DIGITS}g}")
    return 0 if later and isinstance(value, int) and not isinstance(value, bool) else value


def unpacked(kept, model, config):
    stacks = {name: frames for names, frames in kept["stacks"] for name in names}
    files = {name: tuple(header) for name, header in kept["files"].items()}
    place = KEPT / model / config  # for messages
    return Dump(place, kept["envelope"], kept["data"], kept["construct"], stacks, files)
