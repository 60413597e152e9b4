"""What `msprobe compare` writes and prints does not depend on the number of threads, byte by byte."""

import base64
import gzip
import hashlib
import io
import json
import random
import re
import shutil
import zipfile

import numpy
import pytest
from graph_cases import run

THREADS = ("1", "5")
TIMES = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[Z.\d]*|\b20\d{12}\b|_20\d{12}|_\d{19}")
BLOCK = 256  # ops that one thread takes at a time


def values(random_, differs):
    """Max, Min, Mean and Norm of both runs."""
    mine = [random_.uniform(-3, 3) for _ in range(4)]
    if not differs:
        return mine, mine
    odd = random_.choice([float("nan"), float("inf"), None, 1e300, 0.0])
    return [odd, *mine[1:]] if random_.random() < 0.1 else mine, [v * random_.choice([1, 1.001, 2]) for v in mine]


def tensor(statistics, dtype="torch.float32"):
    out = {"type": "torch.Tensor", "dtype": dtype, "shape": [4, 3], "requires_grad": True}
    return {**out, **dict(zip(("Max", "Min", "Mean", "Norm"), statistics))}


def pair_of_ops(random_, differs):
    sides = ({"input_args": [], "input_kwargs": {}, "output": []}, {"input_args": [], "input_kwargs": {}, "output": []})
    for place in ("input_args", "input_args", "output"):
        dtype = random_.choice(["torch.float32", "torch.bfloat16"])
        for op, statistics in zip(sides, values(random_, differs and place == "output")):
            op[place].append(tensor(statistics, dtype))
    for op in sides:
        op["input_args"].append({"type": "int", "value": random_.choice([1, 1, 1, 2]) if differs else 1})
    return sides


def two_runs(ops, seed, differs_from):
    """(name, op of the target or None, op of the golden run or None, module) of a run through three layers."""
    random_ = random.Random(seed)
    for i in range(ops):
        backward = i >= ops // 2
        module = f"Module.model.layers.{i % 3}.Layer.{'backward' if backward else 'forward'}.{i // 3}"
        name = f"Functional.linear.{i}.{'backward' if backward else 'forward'}" if i % 4 else module
        target, golden = pair_of_ops(random_, i >= differs_from and random_.random() < 0.7)
        alone = random_.random() < 0.01
        yield name, target, None if alone else golden, None if name == module else module


def write(folder, data, parents, task):
    folder.mkdir(parents=True)
    head = {"task": task, "level": "mix", "framework": "pytorch", "dump_data_dir": None}
    (folder / "dump.json").write_text(json.dumps({**head, "data": data}))
    (folder / "construct.json").write_text(json.dumps({n: parents.get(n) for n in data}))
    frames = {n: [f"File /code/model.py, line {i % 7}, in forward, \n f(x)"] for i, n in enumerate(data)}
    (folder / "stack.json").write_text(json.dumps(frames))


def save_tensors(folder, data, seed):
    """Gives every tensor a file, whose values follow the statistics where they are finite."""
    noise = numpy.random.default_rng(seed).standard_normal((4, 3)).astype(numpy.float32)
    (folder / "dump_tensor_data").mkdir()
    for name, op in data.items():
        for state, key in (("input", "input_args"), ("output", "output")):
            for i, item in enumerate(op[key]):
                if "dtype" not in item:
                    continue
                item["data_name"] = f"{name}.{state}.{i}.npy"
                scale = item["Norm"] if item["Norm"] is not None else float("nan")
                numpy.save(folder / "dump_tensor_data" / item["data_name"], noise * numpy.float32(scale))


def add_checksums(data):
    for op in data.values():
        for item in op["input_args"] + op["output"]:
            if "dtype" in item:
                text = repr([item[k] for k in ("Max", "Min", "Mean", "Norm")])
                item["md5"] = hashlib.md5(text.encode()).hexdigest()[:8]


def dumps(root, kind, ranks):
    for rank in range(ranks):
        ops = 100 if kind == "tensor" else (5 if ranks == 1 else 2) * BLOCK + 17 * rank
        sides = {"target": {}, "golden": {}}
        parents = {}
        for name, target, golden, module in two_runs(ops, rank + 1, ops // (rank + 3)):
            sides["target"][name], parents[name] = target, module
            if golden is not None:
                sides["golden"][name] = golden
        for side, data in sides.items():
            folder = root / side / "step0" / f"rank{rank}"
            task = "tensor" if kind == "tensor" else "statistics"
            if kind == "md5":
                add_checksums(data)
            write(folder, data, parents, task)
            if kind == "tensor":
                save_tensors(folder, data, rank)
                (folder / "dump.json").write_text(
                    json.dumps({"task": task, "level": "mix", "framework": "pytorch", "data": data})
                )
    return [f"{side}/step0" if ranks > 1 else f"{side}/step0/rank0" for side in ("target", "golden")]


def content(name, data):
    """The bytes of a result without the time at which it was made; of workbooks those of their members."""
    if name.endswith(".xlsx"):
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            return [(info.filename, content(info.filename, book.read(info))) for info in book.infolist()]
    if name.endswith(".html"):
        start = data.index(b'id="data">') + 10
        end = data.index(b"<", start)
        data = data[:start] + gzip.decompress(base64.b64decode(data[start:end])) + data[end:]
    return TIMES.sub(b"TIME", data)


def results(root, paths, threads, options):
    out = root / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = ["compare", "-tp", paths[0], "-gp", paths[1], "-o", "out", *options]
    more = {"cwd": root, "env": {"MSPROBE_THREADS": threads}}
    done = run(command, check=False, **more)
    if "built without its pages" in done.stderr:
        done = run([o for o in command if o != "--html"], check=False, **more)
    assert done.returncode == 0, done.stderr
    files = {}
    for path in sorted(out.rglob("*")):
        if path.is_file():
            name = TIMES.sub(b"TIME", str(path.relative_to(out)).encode()).decode()
            files[name] = content(path.name, path.read_bytes())
    return {**files, "printed": content("", done.stdout.encode()), "warnings": content("", done.stderr.encode())}


VARIANTS = (
    ("--ruler", "--unmatched", "--html"),
    ("--xlsx", "-hl", "--json"),
    ("-fm",),
    ("-da", "--json"),
)


@pytest.mark.parametrize("kind, ranks", [("statistics", 1), ("statistics", 3), ("md5", 1), ("tensor", 3)])
def test_results_are_the_same_for_any_number_of_threads(tmp_path, kind, ranks):
    paths = dumps(tmp_path, kind, ranks)
    for options in VARIANTS:
        wanted = results(tmp_path, paths, THREADS[0], options)
        assert "first_divergence.json" in wanted
        assert any(name.endswith((".csv", ".xlsx", ".json")) for name in wanted if name != "first_divergence.json")
        for threads in THREADS[1:]:
            got = results(tmp_path, paths, threads, options)
            assert got.keys() == wanted.keys(), options
            for name, data in wanted.items():
                same = got[name] == data  # a difference of long texts takes pytest minutes to show
                assert same, (name, options, threads)
