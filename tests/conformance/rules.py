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
BUFFER = "tensors that a module keeps beside its parameters, where a function is given one"
UNWRITTEN = "memory that nobody has written"
XOR = "`xor` of tensors with no dimension, of dimensions of one element with a different stride, of conjugated and negated tensors"
OTHER_NAMES = "functions that the framework reaches by a different name (`torch._VF.lstm` in nn.LSTM)"
IN_PLACE = "backward of functions that work in place on a module's output, and of that module"
UNUSED = "several outputs of a module, one unused"
NO_OPS = "backward of conversions that return their argument (`x.float()` of float32)"
BLIND = "functions after activation checkpointing"
ARRIVES = "a tensor that a functional collective still fills"
VIEWS = "`Tensor.stride` of DTensors at the borders of modules"
NEW_NAMES = "`all_gather_single`, `reduce_scatter_single` (newer PyTorch; FSDP2 calls them)"
WAIT = "`Work.wait()`"
RETURNED = "a module that returns an argument among other outputs"
HOOKS = "hooks of the user and of DTensor at a module"
CLAMP = "`clamp` at risk level FOCUS, the default"
FLAT = "gradients of the parameters of FSDP1 (`use_orig_params=True`)"
UNCALLED = "parameters of modules that are not called (`MultiheadAttention.out_proj`), and of the root"
DATACLASS = "a module that returns a dataclass"
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
BRANCHES = r"Module\.(plain|replayed|reentrant)\.Branches\.backward\.\d"
WRAPS = r"Module\.wraps\.Wraps\.backward\.\d"
CONVERTED = "llama qwen2_vl mixtral t5 gpt2"
FUNCTIONS = r"(?!Module\.).*\.forward|optimizer|clip_grad"

ALL_RULES = (
    Rule(STATISTICS, "any", "value", "any", "Mean|Norm"),
    Rule(MORE, "any", "keys", "any", "nan_count|inf_count|overflow_margin"),
    Rule(BUFFER, "any", "keys", "any", "buffer"),
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
    *(Rule(DATACLASS, "nested recomputed", f"only ours in {where}", WRAPS) for where in ("names", "construct")),
    Rule(
        DATACLASS,
        "nested recomputed",
        "parent",
        r"Module\.wraps\.inner\.Linear\.backward\.\d|Torch\.tanh\.\d\.backward",
    ),
    Rule(FLAT, "fsdp1", "value", r"Module\._fsdp_wrapped_module\..*\.parameters_grad\.\d"),
    Rule(UNCALLED, "clip", "only ours in names", r"Module\.CLIPModel\.parameters_grad\.\d"),
    # What has not arrived yet is zeros there.
    Rule(WAIT, "pipeline", "value", r"Distributed\.batch_isend_irecv\.0\.forward", r"\.output\.0\.1\.tensor"),
    Rule(
        P2P_FILES,
        "pipeline",
        "value",
        r"Distributed\.batch_isend_irecv\.0\.forward",
        r"\.(input_args|output)\.0\.[01]\.tensor",
    ),
    *(Rule(ARRIVES, "dtensor", kind, r"Tensor\.pow\.0\.forward", r"\.input_args\.0") for kind in ("keys", "value")),
    # What the hooks of DTensor run is inside the module.
    Rule(HOOKS, "dtensor", "parent", r"Tensor\.view_as\.\d+\.forward"),
    Rule(HOOKS, "dtensor", "order in construct", r"Module\.[02]\.Linear\.backward\.\d"),
    Rule(RETURNED, "nested recomputed", "value", BRANCHES, r"\.(input\.2|output\.0)"),
    *(Rule(HOOKS, "dtensor", kind, r"Module\.[02]\.Linear\.forward\.\d", r"\.output\.0") for kind in ("keys", "value")),
    *(Rule(HOOKS, "dtensor", kind, r"Module\.[02]\.Linear\.backward\.\d", r"\.input\.0") for kind in ("keys", "value")),
    Rule(VIEWS, "dtensor", "only theirs in construct", r"Tensor\.stride\.\d+\.forward"),
    Rule(VIEWS, "dtensor", "order in construct", r"Tensor\.stride\.\d+\.forward"),
    Rule(VIEWS, "dtensor", "parent", r"Tensor\.stride\.\d+\.forward"),
)

# Of architectures.py and families.py, besides those of any model.
SEVERAL = "one tensor given to a module several times, or returned by it several times"
OBJECTS = "complex numbers, sets, generators, layouts, ranges, enums, functions, other objects"
NOT_CALLED = "parameters of a module that is not called (`MultiheadAttention.out_proj`), and of the root"

COMPLEX = "Max and Min of complex tensors"
JOINED = "several outputs of a module whose inputs need no gradient"

DEVICES = "dtype and device at other places than keywords of that name"
DEVICE_GIVEN = r"Module\..*\.position_embeddings\.\w+\.forward\.0"
HOOKED = "hooked functions"
UNREAD = "a module that is given a tensor with a gradient and does not use it"

PLACES = "BartForConditionalGeneration MBartForConditionalGeneration"
POSITIONS = r"Module\.model\.(encoder|decoder)\.embed_positions\.\w+\.backward\.0"
POOLED = "FNetForMaskedLM SqueezeBertForMaskedLM BigBirdForMaskedLM"
POOLER = r"Module\..*\.(pooler|activation)\..*|Torch\.tanh\.\d\.backward|Functional\.linear\.\d+\.backward|Tensor\.__getitem__\.\d+\.backward"
CHANGED = "FalconForCausalLM XLMWithLMHeadModel CTRLLMHeadModel ConvBertForMaskedLM LEDForConditionalGeneration LongformerForMaskedLM"
CHANGED_OUTPUT = (
    r"Module\..*\.(dense_4h_to_h|mlp|lin2|layer_norm\w+\.\d|w|ffns\.\d|pointwise|query)\.\w+\.backward\.\d+"
    r"|Tensor\.__i\w+__\.\d\.backward"
)
SWITCH = "SwitchTransformersForConditionalGeneration"  # noise on the router's argument, which the experts get, too
JITTERED = r"Module\..*\.1\.layer\.[12]\.(mlp\.router|mlp|layer_norm)\.\w+\.backward\.0"
RESNET = "ResNetForImageClassification"  # the shortcut is added to what the block returned
SHORTENED = (
    r"Module\..*\.layer\.(1\.activation\.Identity|1\.normalization\.BatchNorm2d|1\.ResNetConvLayer|Sequential)"
    r"\.backward\.0"
)
SWIN, SWIN2 = "SwinForImageClassification", "Swinv2ForImageClassification"
UNUSED_STAGES = r"Tensor\.permute\.[24]\.backward"  # hidden states that nobody asked for
BIASES = r"Module\..*\.continuous_position_bias_mlp\.[01]\.\w+\.backward\.0"
# Where the ReLU begins and never ends, all that follows hangs below it, or below what was to end behind it.
LEFT_OPEN = rf"{BIASES}|Module\..*\.Swinv2(Stage|Layer|Attention)\.backward\.0"
SHORTCUTS = r"Module\..*\.attention\.output\.Swinv2SelfOutput\.backward\.0"
DEBERTA = "DebertaForMaskedLM"  # scales the queries of positions in place
SCALED = r"Module\..*\.pos_q_proj\.Linear\.backward\.0"
EARLIER_MODELS = "RobertaForMaskedLM XLMWithLMHeadModel LongformerForMaskedLM MPNetForMaskedLM"
EARLIER = r"Functional\.gelu\.\d\.(forward|backward)"
EXTRA = r"Module\.layers\.0\.Layer\.backward\.0|Tensor\.(sum\.0|__mul__\.4|mean\.1)\.backward"
UNUSED_OUTPUT = r"Module\.two\.right\.Linear\.(parameters_grad|backward)\.0|Functional\.linear\.2\.backward"
HELD = r"Module\.held\.Held\.backward\.0"
KINDS_OF_FUNCTIONS = r"(VF\.\w+|Torch\.(gru|rnn_tanh|(gru|lstm)_cell))\.\d+\.(forward|backward)"
RECORDED_AGAIN = r"Functional\.(layer_norm|linear|dropout)\.\d\.forward"

FURTHER_RULES = (
    Rule(OBJECTS, "any", "object", r"Module\..*"),
    Rule(SEVERAL, "any", "one tensor several times", r"Module\..*\.backward\.\d+"),
    Rule(NO_OPS, "any", "order in construct", CONVERSIONS),
    Rule(NO_OPS, "any", "parent", CONVERSIONS),
    Rule(NO_OPS, "any", "order in construct", r"Module\..*\.backward\.\d+"),  # behind its first op
    Rule(COMPLEX, "any", "value", "any", "magnitude"),
    Rule(SEVERAL, "family_attention_of_torch", "value", "any", "computes"),
    *(Rule(UNUSED, POOLED, f"only theirs in {kind}", POOLER) for kind in ("names", "construct")),
    *(Rule(UNUSED, POOLED, kind, POOLER) for kind in ("order in construct", "parent")),
    *(Rule(IN_PLACE, CHANGED, f"only ours in {kind}", CHANGED_OUTPUT) for kind in ("names", "construct")),
    *(Rule(IN_PLACE, CHANGED, kind, r".*\.backward(\.\d+)?") for kind in ("order in construct", "parent")),
    *(Rule(IN_PLACE, CHANGED, kind, r"Tensor\.__i\w+__\.\d+\.backward") for kind in ("value", "length")),
    *(Rule(IN_PLACE, SWITCH, f"only ours in {kind}", JITTERED) for kind in ("names", "construct")),
    *(Rule(IN_PLACE, SWITCH, kind, r"Tensor\.__imul__\.\d\.backward") for kind in ("value", "length")),
    Rule(IN_PLACE, SWITCH, "only ours in construct", r"Tensor\.to\.\d+\.backward"),
    Rule(
        IN_PLACE, SWITCH, "parent", r".*\.backward(\.\d+)?", rf"{JITTERED}|.*\.SwitchTransformersLayerFF\.backward\.0"
    ),
    *(Rule(IN_PLACE, RESNET, f"only ours in {kind}", SHORTENED) for kind in ("names", "construct")),
    Rule(IN_PLACE, RESNET, "parent", r".*\.backward(\.\d+)?", r"Module\..*\.ResNetBasicLayer\.backward\.0"),
    Rule(IN_PLACE, RESNET, "length", r"Tensor\.__iadd__\.\d\.backward"),
    *(Rule(IN_PLACE, SWIN2, f"only ours in {kind}", BIASES) for kind in ("names", "construct")),
    *(Rule(IN_PLACE, DEBERTA, f"only ours in {kind}", SCALED) for kind in ("names", "construct")),
    Rule(IN_PLACE, SWIN2, "parent", r".*\.backward(\.\d+)?", LEFT_OPEN),
    Rule(UNUSED, SWIN, "only theirs in construct", UNUSED_STAGES),
    Rule(UNREAD, SWIN2, "value", SHORTCUTS, r"\.output\.1"),
    *(Rule(HOOKED, EARLIER_MODELS, f"only ours in {kind}", EARLIER) for kind in ("names", "construct")),
    *(Rule(DEVICES, "ProphetNetForConditionalGeneration", kind, DEVICE_GIVEN) for kind in ("keys", "value")),
    *(Rule(UNREAD, PLACES, f"only ours in {kind}", POSITIONS) for kind in ("names", "construct")),
    *(Rule(UNREAD, PLACES, kind, r".*\.backward(\.\d+)?", f"{POSITIONS}|None") for kind in ("parent",)),
    *(Rule(JOINED, "family_experts", kind, EXTRA) for kind in ("order in names", "order in construct", "parent")),
    *(Rule(UNUSED, "family_outputs", f"only theirs in {kind}", UNUSED_OUTPUT) for kind in ("names", "construct")),
    Rule(UNUSED, "family_outputs", "order in construct", r"Module\.two\.Two\.backward\.0"),
    *(Rule(DATACLASS, "family_outputs", f"only ours in {kind}", HELD) for kind in ("names", "construct")),
    Rule(DATACLASS, "family_outputs", "parent", r"Module\.held\.(left|right)\.Linear\.backward\.0", "None"),
    Rule(OTHER_NAMES, "family_recurrent", "only ours in names", KINDS_OF_FUNCTIONS),
    Rule(OTHER_NAMES, "family_recurrent", "only ours in construct", KINDS_OF_FUNCTIONS),
    Rule(BLIND, "family_checkpointed", "only ours in names", RECORDED_AGAIN),
    Rule(BLIND, "family_checkpointed", "only ours in construct", RECORDED_AGAIN),
    Rule(NOT_CALLED, "any", "not called", r"Module\..*\.parameters_grad\.\d+"),
)


def rules_of(model):
    return [rule for rule in ALL_RULES if rule.models == "any" or model in rule.models.split()]


def further_rules_of(model):
    any_model = [rule for rule in ALL_RULES if rule.models == "any"]
    return any_model + [rule for rule in FURTHER_RULES if rule.models == "any" or model in rule.models.split()]
