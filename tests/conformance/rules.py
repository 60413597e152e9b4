"""Where our dumps differ from those of the earlier tool on purpose.

`row` is the row of docs/compatibility.md that says why. A rule allows differences of one kind, in ops whose whole name
matches, of some models only; one that allows nothing in a whole run is out of date, and a test says so.
"""

from typing import NamedTuple


class Rule(NamedTuple):
    row: str
    models: str  # "any", or names
    kind: str  # see Comparison
    name: str  # regular expression of ops
    path: str = ".*"  # of positions in the op; of kind "parent": of what the earlier tool calls the parent


STATISTICS = "Mean, Norm"
MORE = "items of tensors with NaN, infinities, or values near the greatest of their type"
UNWRITTEN = "memory that nobody has written"
XOR = "`xor` of tensors with no dimension, of dimensions of one element with a different stride, of conjugated and negated tensors"
OTHER_NAMES = "functions that the framework reaches by a different name (`torch._VF.lstm` in nn.LSTM)"
IN_PLACE = "backward of functions that work in place on a module's output, and of that module"
UNUSED = "several outputs of a module, one unused"
NO_OPS = "backward of conversions that return their argument (`x.float()` of float32)"
BLIND = "functions after activation checkpointing"
NO_DATA = "checksum of a tensor without data"
VIEWS = "`Tensor.stride` of DTensors at the borders of modules"
NEW_NAMES = "`all_gather_single`, `reduce_scatter_single` (newer PyTorch; FSDP2 calls them)"
WAIT = "`Work.wait()`"
CLAMP = "`clamp` at risk level FOCUS, the default"
P2P_FILES = "names of the tensor files of `batch_isend_irecv`"

RECURRENT = r"(VF\.lstm|Torch\.gru|Torch\.gru_cell)\.\d\.(forward|backward)"
IN_PLACE_MODULES = r"Module\.([34]\.relu\.ReLU|[34]\.bn[12]\.BatchNorm2d|2\.ReLU|1\.BatchNorm2d)\.backward\.\d"
UNUSED_OPS = (
    r"Module\.chain\.right\.Linear\.(parameters_grad|backward)\.0|Functional\.linear\.4\.backward"
    r"|Tensor\.mean\.[13]\.backward"
)
CONVERSIONS = r"Tensor\.(to|float)\.\d+\.backward"
SHARDING = r"Distributed\.(all_gather|reduce_scatter)_single\.\d+\.forward"
CLAMPS = r"(Tensor|Torch)\.clamp\.\d+\.(forward|backward)"
CONVERTED = "llama qwen2_vl mixtral t5 gpt2"
FUNCTIONS = r"(?!Module\.).*\.forward|optimizer|clip_grad"

ALL_RULES = (
    Rule(STATISTICS, "any", "value", "any", "Mean|Norm"),
    Rule(MORE, "any", "keys", "any", "nan_count|inf_count|overflow_margin"),
    Rule(UNWRITTEN, "any", "keys", "any", "unwritten"),
    Rule(XOR, "any", "value", "any", "xor of a number"),
    Rule(OTHER_NAMES, "rnn", "only ours in names", RECURRENT),
    Rule(OTHER_NAMES, "rnn", "only ours in construct", RECURRENT),
    Rule(IN_PLACE, "conv", "only ours in names", IN_PLACE_MODULES),
    Rule(IN_PLACE, "conv", "only ours in names", r"Tensor\.__iadd__\.\d\.backward"),
    Rule(IN_PLACE, "conv", "only ours in construct", IN_PLACE_MODULES),
    Rule(IN_PLACE, "conv", "only ours in construct", r"Tensor\.__iadd__\.\d\.backward"),
    Rule(IN_PLACE, "conv", "parent", r".*\.backward(\.\d)?", IN_PLACE_MODULES),
    Rule(IN_PLACE, "conv", "value", r"Functional\.relu\.\d\.backward", r"\.output\.0"),
    Rule(UNUSED, "nested recomputed", "only theirs in names", UNUSED_OPS),
    Rule(UNUSED, "nested recomputed", "only theirs in construct", UNUSED_OPS),
    Rule(
        UNUSED,
        "nested recomputed",
        "order in construct",
        r"Module\.(chain\.Chain|replayed\.Branches|reentrant\.Branches)\.backward\.\d",
    ),
    Rule(NO_OPS, CONVERTED, "order in construct", CONVERSIONS),
    Rule(NO_OPS, CONVERTED, "parent", CONVERSIONS),
    # A module stands behind its first op.
    Rule(NO_OPS, "llama qwen2_vl", "order in construct", r"Module\.lm_head\.Linear\.backward\.0"),
    Rule(BLIND, "recomputed", "only ours in names, at the end", FUNCTIONS),
    Rule(BLIND, "recomputed", "only ours in construct, at the end", FUNCTIONS),
    Rule(CLAMP, "any", "only ours in names", CLAMPS),
    Rule(NEW_NAMES, "fsdp1 fsdp2", "only ours in names", SHARDING),
    Rule(NEW_NAMES, "fsdp1 fsdp2", "only ours in construct", SHARDING),
    # What has not arrived yet is zeros there.
    Rule(WAIT, "pipeline", "value", r"Distributed\.batch_isend_irecv\.0\.forward", r"\.output\.0\.1\.tensor"),
    Rule(
        P2P_FILES,
        "pipeline",
        "value",
        r"Distributed\.batch_isend_irecv\.0\.forward",
        r"\.(input_args|output)\.0\.[01]\.tensor",
    ),
    Rule(NO_DATA, "dtensor", "keys", r"Tensor\.pow\.0\.forward", r"\.input_args\.0"),
    Rule(VIEWS, "dtensor", "only theirs in construct", r"Tensor\.stride\.\d+\.forward"),
    Rule(VIEWS, "dtensor", "order in construct", r"Tensor\.stride\.\d+\.forward"),
    Rule(VIEWS, "dtensor", "parent", r"Tensor\.stride\.\d+\.forward"),
)


def rules_of(model):
    return [rule for rule in ALL_RULES if rule.models == "any" or model in rule.models.split()]
