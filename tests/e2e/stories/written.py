"""Runs that are too large to be trained in a test: statistics dumps of a decoder, written line by line, with one fault each."""

import json
from collections import defaultdict

from story import Story, Truth

HIDDEN, INNER, HEADS, LENGTH = 64, 160, 4, 32
ROUND_OFF = 3e-9  # what an op adds to the relative difference of the two sides
GOLDEN_RATIO = 0.6180339887498949

STREAM, WIDE, SCORES, PARTS = [2, LENGTH, HIDDEN], [2, LENGTH, INNER], [2, HEADS, LENGTH, LENGTH], [2, LENGTH, HIDDEN]
WEIGHTS = {"gate_proj": [INNER, HIDDEN], "up_proj": [INNER, HIDDEN], "down_proj": [HIDDEN, INNER]}


def tensor(norm, shape, masked=False):
    """The text of a tensor in dump.json; a mask puts -inf in."""
    size = 1.0
    for n in shape:
        size *= n
    unit = norm / size**0.5
    low, mean, norm = ("-Infinity", "-Infinity", "Infinity") if masked else (-3.9 * unit, 0.01 * unit, norm)
    return (
        f'{{"type": "torch.Tensor", "dtype": "torch.float32", "shape": {shape}, "Max": {4.1 * unit}, "Min": {low}, '
        f'"Mean": {mean}, "Norm": {norm}, "requires_grad": true}}'
    )


class Fault:
    """None, but for rounding. Places are (micro batch, layer, part), errors relative ones."""

    def output(self, place, rank):
        """What the op at this place adds to the error."""
        return 0.0

    def weight(self, place, rank):
        """By how much the weight at this place is off."""
        return 0.0

    def summed(self, place, rank):
        """What a sum over the group adds, behind the op at this place."""
        return 0.0


class Rank:
    """One rank of a run; the golden one has neither rounding nor a fault."""

    def __init__(self, fault, rank=0, group=None):
        self.noise = ROUND_OFF if fault else 0.0
        self.fault, self.rank, self.group = fault or Fault(), rank, group
        self.data, self.construct, self.frames = [], [], defaultdict(list)
        self.calls = defaultdict(int)
        self.error = 0.0

    def value(self, shape, *place, shared=False, masked=False):
        """A tensor whose norm depends on its place only, but for the error so far. `shared`: by the ranks of a group."""
        who = self.group.number if shared and self.group else self.rank
        mixed = sum(n * factor for n, factor in zip((*place, who), (1009, 131, 17, 7))) * GOLDEN_RATIO
        self.error += self.noise
        return tensor((5 + mixed % 1) * (1 + self.error), shape, masked)

    def enter(self, name, parent, line):
        self.construct.append((name, parent))
        self.frames[line].append(name)

    def op(self, api, parent, line, inputs, output, kwargs=""):
        name = f"{api}.{self.calls[api]}.forward"
        self.calls[api] += 1
        self.enter(name, parent, line)
        self.data.append(
            f'"{name}": {{"input_args": [{", ".join(inputs)}], "input_kwargs": {{{kwargs}}}, "output": [{output}]}}'
        )
        return name

    def module(self, name, inputs, output, weight=None):
        parameters = f'"parameters": {{"weight": {weight}}}, ' if weight else ""
        self.data.append(
            f'"{name}": {{"input_args": [{inputs}], "input_kwargs": {{}}, {parameters}"output": [{output}]}}'
        )

    def back(self, name, parent, line, given, taken):
        self.enter(name, parent, line)
        self.data.append(f'"{name}": {{"input": [{given}], "output": [{taken}]}}')

    def write(self, directory):
        directory.mkdir(parents=True)
        head = '{"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": {\n'
        (directory / "dump.json").write_text(head + ",\n".join(self.data) + "\n}}\n")
        (directory / "construct.json").write_text(json.dumps(dict(self.construct), indent=0))
        code = "File /train/model.py, line {}, in forward, \n x = self.part(x)"
        stack = {i: [names, [code.format(line)]] for i, (line, names) in enumerate(self.frames.items())}
        (directory / "stack.json").write_text(json.dumps(stack, indent=0))


class Layer:
    """One layer in one micro batch: its forward ops, then those of backward in the reverse order."""

    def __init__(self, rank, batch, layer):
        self.run, self.batch, self.layer = rank, batch, layer
        self.path = f"Module.model.layers.{layer}"
        self.done = []  # (name, parent, line) of what backward visits
        self.parts = 0

    def value(self, shape, **how):
        self.parts += 1
        return self.run.value(shape, self.batch, self.layer, self.parts, **how)

    def place(self, part):
        return (self.batch, self.layer, part), self.run.rank

    def name(self, path, kind):
        return f"{self.path}{path}.{kind}.forward.{self.batch}"

    def put(self, api, parent, line, inputs, shape, part, masked=False):
        self.run.error += self.run.fault.output(*self.place(part))
        out = self.value(shape, shared=shape is STREAM and api != "Functional.linear", masked=masked)
        self.done.append((self.run.op(api, parent, line, inputs, out), parent, line))
        return out

    def begin(self, path, kind, parent, line):
        name = self.name(path, kind)
        self.run.enter(name, parent, line)
        self.done.append((name, parent, line))
        return name

    def norm(self, path, parent, x, line):
        name = self.begin(path, "RMSNorm", parent, line)
        weight = tensor(8.0, [HIDDEN])
        out = self.put("Functional.rms_norm", name, line + 1, [x, weight], STREAM, path)
        self.run.module(name, x, out, weight)
        return out

    def linear(self, path, parent, x, line):
        name = self.begin(path, "Linear", parent, line)
        part = path.rsplit(".", 1)[1]
        off = self.run.fault.weight(*self.place(part))
        weight = tensor(8.0 * (1 + off), WEIGHTS.get(part, [HIDDEN, HIDDEN]))
        self.run.error += off
        out = self.put(
            "Functional.linear", name, line + 1, [x, weight], [2, LENGTH, WEIGHTS.get(part, [HIDDEN])[0]], part
        )
        self.run.module(name, x, out, weight)
        return out

    def reduce(self, parent, x, line):
        """Over the tensor parallel group: what a rank of it has wrong, all have then."""
        group = self.run.group
        if not group:
            return x
        part = parent.split(".")[4]
        self.run.error += self.run.fault.summed(*self.place(part))
        out = self.value(STREAM, shared=True)
        self.run.op("Distributed.all_reduce", parent, line, [x], f"{out}, {group.text}", f'"group": {group.text}')
        return out

    def attention(self, parent, x):
        name = self.begin(".self_attn", "Attention", parent, 30)
        q, k, v = (self.linear(f".self_attn.{part}_proj", name, x, 31) for part in "qkv")
        scores = self.put("Torch.matmul", name, 34, [q, k], SCORES, "scores")
        masked = self.put("Tensor.masked_fill", name, 35, [scores], SCORES, "mask", masked=True)
        weights = self.put("Functional.softmax", name, 36, [masked], SCORES, "softmax")
        mixed = self.put("Torch.matmul", name, 37, [weights, v], PARTS, "mixed")
        out = self.reduce(name, self.linear(".self_attn.o_proj", name, mixed, 38), 39)
        self.run.module(name, x, out)
        return out

    def mlp(self, parent, x):
        name = self.begin(".mlp", "MLP", parent, 50)
        gate = self.linear(".mlp.gate_proj", name, x, 51)
        act = self.put("Functional.silu", name, 52, [gate], WIDE, "act")
        up = self.linear(".mlp.up_proj", name, x, 53)
        both = self.put("Tensor.__mul__", name, 54, [act, up], WIDE, "both")
        out = self.reduce(name, self.linear(".mlp.down_proj", name, both, 55), 56)
        self.run.module(name, x, out)
        return out

    def forward(self, root, x):
        name = self.begin("", "DecoderLayer", root, 20)
        y = self.attention(name, self.norm(".input_layernorm", name, x, 21))
        middle = self.put("Tensor.__add__", name, 22, [x, y], STREAM, "add")
        y = self.mlp(name, self.norm(".post_attention_layernorm", name, middle, 23))
        out = self.put("Tensor.__add__", name, 24, [middle, y], STREAM, "add")
        self.run.module(name, x, out)
        return out

    def backward(self, grad):
        for name, parent, line in reversed(self.done):
            taken = self.value(STREAM)
            mirrored = (text.replace(".forward", ".backward") for text in (name, parent))
            self.run.back(*mirrored, line + 100, grad, taken)
            grad = taken
        return grad


def decode(rank, layers, batches):
    """All micro batches, each forward and back."""
    for batch in range(batches):
        rank.error = 0.0
        root = f"Module.model.Decoder.forward.{batch}"
        rank.enter(root, None, 10)
        first = x = rank.value(STREAM, batch, layers, 0)
        made = [Layer(rank, batch, layer) for layer in range(layers)]
        for layer in made:
            x = layer.forward(root, x)
        rank.module(root, first, x)
        back = f"Module.model.Decoder.backward.{batch}"
        grad = loss = rank.value(STREAM, batch, layers, 1)
        rank.enter(back, None, 110)
        for layer in reversed(made):
            grad = layer.backward(grad)
        rank.data.append(f'"{back}": {{"input": [{loss}], "output": [{grad}]}}')


def write_single(out, layers, batches, fault):
    for side, of in (("golden", None), ("target", fault)):
        rank = Rank(of)
        decode(rank, layers, batches)
        rank.write(out / side / "step0" / "rank0")


# ---- one rank ------------------------------------------------------------------------------------------------------------


class OutputOff(Fault):
    def __init__(self, place, error):
        self.at, self.error = place, error

    def output(self, place, rank):
        return self.error if place == self.at else 0.0


class WeightOff(Fault):
    """In every micro batch, as a weight is."""

    def __init__(self, layer, part, error):
        self.at, self.error = (layer, part), error

    def weight(self, place, rank):
        return self.error if place[1:] == self.at else 0.0


def linear(layers, batch, layer, part):
    """Which call of linear a part is."""
    order = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    return f"Functional.linear.{(batch * layers + layer) * len(order) + order.index(part)}.forward"


# ---- many ranks ----------------------------------------------------------------------------------------------------------


class Group:
    """Those of tensor parallelism that a rank belongs to."""

    SIZE = 8

    def __init__(self, rank):
        self.number = rank // self.SIZE
        first = self.number * self.SIZE
        ranks = list(range(first, first + self.SIZE))
        self.text = f'{{"type": "torch.ProcessGroup", "group_ranks": {ranks}, "group_id": "tp{self.number}"}}'


class OnRank(OutputOff):
    """On one rank; the others of its group have a part of it from the next sum over the group on."""

    def __init__(self, rank, place, error):
        super().__init__(place, error)
        self.rank = rank

    def output(self, place, rank):
        return super().output(place, rank) if rank == self.rank else 0.0

    def summed(self, place, rank):
        if place != (*self.at[:2], "self_attn") or rank // Group.SIZE != self.rank // Group.SIZE:
            return 0.0
        return self.error * (1 / Group.SIZE - (rank == self.rank))


def write_ranks(out, world, layers, fault):
    for side, of in (("golden", None), ("target", fault)):
        for number in range(world):
            rank = Rank(of, number, Group(number))
            decode(rank, layers, 1)
            rank.write(out / side / "step0" / f"rank{number}")


M20, M100, R64 = (43, 8), (119, 15), (64, 4)  # layers and micro batches; ranks and layers

WRITTEN = [
    (
        Story(
            "m20",
            "single",
            "20,000 nodes: round-off that grows, and down_proj of layer 32 gives a quarter too much in micro batch 5",
            Truth("op", linear(M20[0], 5, 32, "down_proj"), "output.0", "model.layers.32.mlp.down_proj"),
        ),
        lambda out: write_single(out, *M20, OutputOff((5, 32, "down_proj"), 0.25)),
    ),
    (
        Story(
            "m100",
            "single",
            "100,000 nodes: the weight of up_proj of layer 89 is 5 % larger",
            Truth(
                "weight",
                linear(M100[0], 0, 89, "up_proj"),
                "input.1",
                "model.layers.89.mlp.up_proj",
                parameter="weight",
            ),
        ),
        lambda out: write_single(out, *M100, WeightOff(89, "up_proj", 0.05)),
    ),
    (
        Story(
            "r64",
            "precision",
            "64 ranks with the same causal masks on both sides; softmax of layer 2 is off by 10 % on rank 37",
            Truth("op", "Functional.softmax.2.forward", "output.0", "model.layers.2.self_attn", (37,)),
        ),
        lambda out: write_ranks(out, *R64, OnRank(37, (0, 2, "softmax"), 0.1)),
    ),
]
