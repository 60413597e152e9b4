"""`compare --replay`: ops of the dumps are called again in float64, and the side that is nearer to the truth is named."""

import csv
import json
import os
import re
import sys
from pathlib import Path

import pytest
import torch
from launch import HERE, run_python
from replay_scenario import RUNS

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import run

# step of the comparison -> (target, golden)
PAIRS = [
    ("bfloat16", "single"),
    ("half", "single"),
    ("wrong_bfloat16", "single"),
    ("bfloat16", "wrong_single"),
    ("coarse_bfloat16", "bfloat16"),
    ("wrong_bfloat16", "wrong_single"),
]
ENV = {"MSPROBE_PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}


class Answer:
    def __init__(self, out, stdout):
        self.out = out
        self.summary = json.loads(stdout)
        self.file = json.loads((out / "first_divergence.json").read_text())
        self.replays = {(r["label"], r["op"]): r for r in self.summary.get("replays", [])}

    def of(self, label, op):
        return self.replays[label, op]

    def verdicts(self, label):
        return {op: r["verdict"] for (where, op), r in self.replays.items() if where == label}


def compare(target, golden, out, *options, **more):
    command = ["compare", "-tp", target, "-gp", golden, "-o", out, *options]
    return run(command, env={**os.environ, **ENV, **more.pop("env", {})}, **more)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The runs of the model, compared pair by pair in one call: step N is PAIRS[N]."""
    root = tmp_path_factory.mktemp("replay")
    run_python([HERE / "replay_scenario.py", root])
    for side in (0, 1):
        (root / ("target", "golden")[side]).mkdir()
        for step, pair in enumerate(PAIRS):
            link = root / ("target", "golden")[side] / f"step{step}"
            link.symlink_to(root / "dump" / f"step{RUNS.index(pair[side])}")
    done = compare(root / "target", root / "golden", root / "out", "--json", "--replay", "400")
    return Answer(root / "out", done.stdout)


def label(*pair):
    return f"step{PAIRS.index(pair)} rank"


@pytest.mark.parametrize("pair", PAIRS[:2])
def test_rounding_of_halves_is_no_fault_of_either_side(runs, pair):
    verdicts = runs.verdicts(label(*pair))
    # What drops elements at random is not called again, neither way.
    dropped = {op: v for op, v in verdicts.items() if "dropout" in op}
    assert set(dropped.values()) == {"cannot be replayed"} and len(dropped) == 2
    others = {op: v for op, v in verdicts.items() if op not in dropped}
    assert set(others.values()) == {"both within round-off"}, others
    # Functions and methods, modules, in place, forward and backward.
    for op in (
        "Torch.softmax.0.forward",
        "Tensor.__matmul__.0.forward",
        "Tensor.__iadd__.0.forward",
        "Module.block.up.Linear.forward.0",
        "Functional.layer_norm.0.backward",
        "Torch.softmax.0.backward",
        "Module.block.up.Linear.backward.0",
        "Functional.embedding.0.backward",
    ):
        assert op in others, op
    item = runs.of(label(*pair), "Functional.linear.0.forward")["items"][0]
    assert item["target"]["dtype"] == {"half": "float16"}.get(pair[0], pair[0])
    assert 0 < item["target"]["ulp"] <= 0.5 and item["golden"]["dtype"] == "float32"
    assert 1e-5 < item["inputs"] < 1e-1


@pytest.mark.parametrize(
    "target,golden,verdict,wrong,right,far,near",
    [
        ("wrong_bfloat16", "single", "golden nearer", "target", "golden", 3, 3),
        ("bfloat16", "wrong_single", "target nearer", "golden", "target", 1e4, 0.5),
    ],
)
def test_a_wrong_kernel_is_named(runs, target, golden, verdict, wrong, right, far, near):
    where = label(target, golden)
    apart = {
        op: v for op, v in runs.verdicts(where).items() if v not in ("both within round-off", "cannot be replayed")
    }
    assert apart == {"Functional.gelu.0.forward": verdict}
    item = runs.of(where, "Functional.gelu.0.forward")["items"][0]
    assert item[wrong]["ulp"] > far and item[right]["ulp"] < near


def test_the_same_fault_on_both_sides_has_no_better_one(runs):
    assert runs.of(label("wrong_bfloat16", "wrong_single"), "Functional.gelu.0.forward")["verdict"] == "both far"


def test_sums_in_half_precision_are_further_from_the_truth(runs):
    where = label("coarse_bfloat16", "bfloat16")
    forward = {op: v for op, v in runs.verdicts(where).items() if "inear" in op and "forward" in op}
    assert set(forward.values()) == {"golden nearer"} and len(forward) == 6
    others = {v for op, v in runs.verdicts(where).items() if op not in forward}
    assert others <= {"both within round-off", "cannot be replayed"}


def test_the_rows_of_the_tables_have_it(runs):
    """Behind all other columns; rows of ops that were not replayed, and inputs, have N/A."""
    seen = set()
    for path in runs.out.glob("*.csv"):
        label = re.search("step[0-9]+", path.name)[0]
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0])[-3:] == ["Replay Verdict", "NPU Replay Error", "Bench Replay Error"]
        of_row = {}
        for (where, op), replay in runs.replays.items():
            for item in replay["items"] if where.startswith(label) else ():
                of_row[f"{op}.{item['item']}"] = item
        for row in rows:
            item = of_row.get(row["NPU Name"])
            cells = [row[c] for c in list(row)[-3:]]
            if item is None:
                assert cells[1:] == ["N/A", "N/A"] and cells[0] in ("N/A", "cannot be replayed")
                continue
            seen.add(item["verdict"])
            assert cells[0] == item["verdict"]
            for cell, side in zip(cells[1:], ("target", "golden")):
                assert abs(float(cell) - item[side]["error"]) <= 1e-2 * item[side]["error"], (row["NPU Name"], side)
    assert seen >= {"both within round-off", "target nearer", "golden nearer"}


def test_the_answer_is_in_every_result(runs):
    assert runs.file["replays"] == runs.summary["replays"]
    creator = runs.file["creator"]
    assert creator["replay"] == runs.of("step0 rank", creator["op"])
    assert creator["replay"]["verdict"] == "both within round-off"


# ---- dumps written by hand


class Dump:
    """A dump of tensors, op by op."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "dump_tensor_data").mkdir(parents=True)
        self.data = {}

    def tensor(self, name, value):
        path = self.folder / "dump_tensor_data" / f"{name}.pt"
        torch.save(value, path)
        wide = value.double()
        stats = {
            "Max": wide.max().item(),
            "Min": wide.min().item(),
            "Mean": wide.mean().item(),
            "Norm": wide.norm().item(),
        }
        shape = {"dtype": str(value.dtype), "shape": list(value.shape)}
        return {"type": "torch.Tensor", **shape, **stats, "requires_grad": False, "data_name": path.name}

    def add(self, name, args, outputs, **kwargs):
        def entry(place, value):
            if isinstance(value, torch.Tensor):
                return self.tensor(f"{name}.{place}", value)
            if isinstance(value, list):
                return [entry(f"{place}.{i}", part) for i, part in enumerate(value)]
            if isinstance(value, torch.dtype):
                return {"type": "torch.dtype", "value": str(value)}
            return None if value is None else {"type": type(value).__name__, "value": value}

        self.data[name] = {
            "input_args": [entry(f"input.{i}", value) for i, value in enumerate(args)],
            "input_kwargs": {key: entry(f"input.{key}", value) for key, value in kwargs.items()},
            "output": [entry(f"output.{i}", value) for i, value in enumerate(outputs)],
        }

    def write(self):
        head = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
        (self.folder / "dump.json").write_text(json.dumps({**head, "data": self.data}))


X = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))


def both(tmp_path, fill, *options, **more):
    """`fill(dump, dtype, error)` writes the ops of one side."""
    for name, dtype, error in (("target", torch.bfloat16, 0.5), ("golden", torch.float32, 0.0)):
        dump = Dump(tmp_path / name)
        fill(dump, dtype, error)
        dump.write()
    out = tmp_path / "out"
    code = more.pop("code", 0)
    paths = (tmp_path / "target/dump.json", tmp_path / "golden/dump.json")
    done = compare(*paths, out, "--json", *options, check=code == 0, **more)
    assert done.returncode == code, done.stderr
    return Answer(out, done.stdout)


class Harm:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def test_nothing_of_a_dump_is_executed(tmp_path):
    """Only functions of torch on tensors are called, with arguments that are plain values."""
    marker = tmp_path / "marker"
    torch.save(Harm(marker), tmp_path / "harm.pt")

    def fill(dump, dtype, error):
        x = X.to(dtype)
        dump.add("Torch.load.0.forward", [str(tmp_path / "harm.pt"), None, None, False], [x + error])
        dump.add("Tensor.untyped_storage.0.forward", [x], [x + error])
        dump.add("Tensor.__reduce_ex__.0.forward", [x, 2], [x + error])
        dump.add("Functional.handle_torch_function.0.forward", [x], [x + error])
        dump.add("Torch.relu.0.forward", [x], [x.relu() + error])
        torch.save(Harm(marker), dump.folder / "dump_tensor_data" / "Torch.relu.0.forward.input.0.pt")
        dump.add("Tensor.repeat.0.forward", [x, 1 << 20, 1 << 22], [x + error])
        dump.add("Torch.tanh.0.forward", [x], [x.tanh() + error])

    answer = both(tmp_path, fill, "--replay", code=3)  # what is not read is not compared
    assert not marker.exists()
    why = {op: r["why"] for (_, op), r in answer.replays.items()}
    for op in ("load", "untyped_storage", "__reduce_ex__", "handle_torch_function"):
        (text,) = [text for name, text in why.items() if f".{op}." in name]
        assert text == f"torch has no function {op} that may be called again"
    assert "Torch.relu.0.forward.input.0.pt" in why["Torch.relu.0.forward"]
    assert "torch refuses the call" in why["Tensor.repeat.0.forward"]
    # And the process is still there for the last.
    assert answer.of("", "Torch.tanh.0.forward")["verdict"] == "golden nearer"


def test_what_cannot_be_called_again_says_why(tmp_path):
    def fill(dump, dtype, error):
        x = X.to(dtype)
        dump.add("Distributed.all_reduce.0.forward", [x], [x + error])
        dump.add("Torch.rand_like.0.forward", [x], [x + error])
        dump.add("Torch.bernoulli.0.forward", [x.sigmoid()], [x + error])
        dump.add("Tensor.add_.0.forward", [x + 2 + error, 2.0], [x + 2 + error])
        dump.add("Tensor.add_.1.forward", [x, 2.0], [x + 2 + error])
        dump.add("Torch.matmul.0.forward", [x, x[:3]], [x + error])
        dump.add("Torch.reshape.0.forward", [x, [4, 16]], [x + error])
        dump.add("Torch.reshape.0.backward", [], [x + error])

    answer = both(tmp_path, fill, "--replay")
    why = {op: r["why"] for (_, op), r in answer.replays.items()}
    assert why["Distributed.all_reduce.0.forward"] == "a communication needs its ranks"
    for op in ("rand_like", "bernoulli"):
        assert why[f"Torch.{op}.0.forward"] == "it draws random numbers"
    assert why["Tensor.add_.0.forward"] == "it works in place, and the dump has its input as it was afterwards"
    assert answer.of("", "Tensor.add_.1.forward")["verdict"] == "golden nearer"
    assert why["Torch.matmul.0.forward"].startswith("torch refuses the call (RuntimeError: ")
    assert why["Torch.reshape.0.backward"] == "the dump holds no values of the gradients that come in"
    assert why["Torch.reshape.0.forward"] == "called again it gives [4, 16], the dump has [8, 8] as output.0"


def test_casts_masks_and_choices(tmp_path):
    """Types in arguments are float64 for the truth; numbers that stand for infinity hide nothing."""

    def fill(dump, dtype, error):
        x = X.to(dtype)
        mask = (X > 1) * torch.finfo(dtype).min
        dump.add("Torch.softmax.0.forward", [x, -1], [x.float().softmax(-1)], dtype=torch.float32)
        dump.add("Tensor.half.0.forward", [x], [x.half()])
        dump.add("Torch.add.0.forward", [x, mask.to(dtype)], [x + mask.to(dtype) + error])
        dump.add("Torch.topk.0.forward", [x, 3], list(x.topk(3)))
        dump.add("Torch.exp.0.forward", [50 * x.half()], [(50 * x.half()).exp()])

    answer = both(tmp_path, fill, "--replay")
    assert answer.of("", "Torch.add.0.forward")["verdict"] == "golden nearer"
    assert answer.of("", "Torch.add.0.forward")["items"][0]["target"]["ulp"] < 1e3
    for op in ("softmax", "topk", "exp"):  # exp overflows in float16, and there that is right
        replayed = answer.of("", f"Torch.{op}.0.forward")
        assert replayed["verdict"] == "both within round-off", replayed
    item = answer.of("", "Tensor.half.0.forward")["items"][0]
    assert item["verdict"] == "both within round-off" and item["golden"]["ulp"] <= 0.5


def test_statistics_have_nothing_to_replay(tmp_path):
    def fill(dump, dtype, error):
        dump.add("Torch.tanh.0.forward", [X], [X.tanh() + error])
        for entry in (*dump.data["Torch.tanh.0.forward"]["input_args"], *dump.data["Torch.tanh.0.forward"]["output"]):
            del entry["data_name"]

    answer = both(tmp_path, fill, "--replay", "5")
    (replayed,) = answer.summary["replays"]
    assert replayed["why"] == "the dump holds no values of input.0"


def fake_python(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return {"MSPROBE_PYTHON": str(path)}


def test_a_process_that_ends_does_not_end_the_comparison(tmp_path):
    def fill(dump, dtype, error):
        for i in range(8):
            dump.add(f"Torch.tanh.{i}.forward", [X], [X.tanh() + error])

    env = fake_python(tmp_path / "python", 'printf \'{"torch": "0"}\\n\' >&0\nread line\nexit 3\n')
    answer = both(tmp_path, fill, "--replay", env=env)
    why = [r["why"] for r in answer.summary["replays"]]
    assert sum("did not come to its end" in text for text in why) == 6
    assert why[-1] == "the process of --replay ended again and again"


def test_a_python_without_torch_is_said_before_the_work(tmp_path):
    dump = Dump(tmp_path / "target")
    dump.add("Torch.tanh.0.forward", [X], [X.tanh()])
    dump.write()
    env = fake_python(tmp_path / "python", 'printf \'{"error": "this Python has no torch"}\\n\' >&0\n')
    paths = (tmp_path / "target/dump.json", tmp_path / "target/dump.json", tmp_path / "out")
    done = compare(*paths, "--replay", env=env, check=False)
    assert done.returncode == 2 and "--replay: this Python has no torch: set MSPROBE_PYTHON" in done.stderr
    done = compare(*paths, "--replay", env=fake_python(tmp_path / "python", "exit 1\n"), check=False)
    assert done.returncode == 2 and "its process did not start" in done.stderr
    done = compare(*paths, "--replay=0", check=False)
    assert done.returncode == 2 and "--replay" in done.stderr


def test_the_python_function_takes_it(tmp_path):
    def fill(dump, dtype, error):
        dump.add("Torch.tanh.0.forward", [X.to(dtype)], [X.to(dtype).tanh() + error])

    both(tmp_path, fill)
    text = (
        "import json, sys; from msprobe.pytorch import CompareException, compare\n"
        "p = {'npu_json_path': sys.argv[1], 'bench_json_path': sys.argv[2]}\n"
        "print(compare(p, sys.argv[3], replay=3).summary['replays'][0]['verdict'])\n"
        "try:\n    compare(p, sys.argv[3], replay='x')\nexcept CompareException as error:\n    print(error)\n"
    )
    paths = [tmp_path / "target/dump.json", tmp_path / "golden/dump.json", tmp_path / "out"]
    done = run_python(["-c", text, *paths])
    assert done.stdout.splitlines() == [
        "golden nearer",
        "compare: replay must be True or the number of ops, not 'x'",
    ]
