"""Names of the user keep every byte in a Chinese locale, even those that are sentences of the tool itself: paths,
modules, ops and parameters in errors and in summaries."""

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import TENSOR, run, write_rank

NAMES = [
    "learning rate",
    "all ranks",
    "./run: out of memory",
    "a: grad norm, the model",
    "{}",
    "{0} and {1}",
    "line one\nline two: out of memory",
    "\x1b[31mred",
    "权重：目录",
    "ｗｉｄｅ　ｎａｍｅ",
    ": : :",
    "one; two; three",
    "one, two, three",
    "{} does not exist: check the path",
    "x does not exist: check the path",
    "Permission denied",
    "the model",
    "compare (statistics)",
    "a (b in c) in Module.d: output.0 Norm differs by 5 %, inputs are equal",
    "first difference: none, all matched ops agree",
    "%s %n \\n",
    "note: all layers",
]
PLAIN = "plain"
CHINESE = re.compile("[\u4e00-\u9fff]")
LOCALES = ("C.UTF-8", "zh_CN.UTF-8")


def forms(name):
    """The name, as a line of a terminal has it, and as a text in quotes has it."""
    line = re.sub(r"[\x00-\x1f]", lambda m: "\\n" if m.group() == "\n" else f"\\x{ord(m.group()):02x}", name)
    return {name, line, json.dumps(name, ensure_ascii=False)[1:-1]}


def count(name, text):
    return sum(text.count(form) for form in forms(name))


def without(name, text):
    for form in forms(name):
        text = text.replace(form, "")
    return text


def told(command, cwd):
    """What a command says in English and in Chinese."""
    out = []
    for locale in LOCALES:
        done = run(command, cwd=cwd, check=False, env={"LC_ALL": locale, "LC_MESSAGES": "", "LANG": ""})
        out.append(done.stdout + done.stderr)
    return out


def keeps(name, texts, plain):
    """As often in Chinese as in English, but for what the tool says of a run that has other names."""
    english, chinese = (count(name, text) - count(name, own) for text, own in zip(texts, plain, strict=True))
    assert english > 0, texts[0]
    assert chinese == english, "\n".join(texts)
    assert CHINESE.search(without(name, texts[1])), texts[1]
    assert not CHINESE.search(without(name, texts[0])), texts[0]


def all_told(commands, cwd):
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(commands, pool.map(lambda c: told(c, cwd), commands.values()), strict=True))


def check(name, commands, cwd, plain):
    for command, texts in all_told(commands, cwd).items():
        try:
            keeps(name, texts, plain[command])
        except AssertionError as error:
            raise AssertionError(f"{command}: {error}") from error


def commands_on(path):
    """Those that take a path, with one that is not there."""
    return {
        "compare": ["compare", "-tp", path, "-gp", path, "-o", "out"],
        "graph_visualize": ["graph_visualize", "-tp", path, "-o", "out"],
        "overflow_check": ["overflow_check", "-i", path, "-o", "out"],
        "data2db": ["data2db", "--data", path, "--db", "out"],
        "config_check": ["config_check", "-tp", path],
        "ckpt": ["ckpt", "compare", path, path],
        "doctor": ["doctor", path, path],
        "rollout": ["rollout", path, path],
        "preflight": ["preflight", path],
        "verify-dump": ["verify-dump", path],
        "recover": ["recover", path],
        "merge_result": ["merge_result", "-i", path, "-o", "out", "-config", path],
        "curves": ["curves", path, path],
        "optimizer_replay": ["optimizer_replay", path, path],
        "monitor": ["monitor", "status", path],
        "parse": ["parse", "-d", path],
        "export": ["export", path, "-o", "out.html"],
        "serve": ["serve", path, "--port", "0"],
        "estimate": ["estimate", "--from", path],
        "acc_check": ["acc_check", "-api_info", path, "-o", "out"],
        "unknown option": ["compare", "--" + path],
    }


@pytest.fixture(scope="module")
def absent(tmp_path_factory):
    return all_told(commands_on(PLAIN), tmp_path_factory.mktemp("absent"))


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_path_that_is_not_there(absent, tmp_path, name):
    check(name, commands_on(name), tmp_path, absent)


def write_runs(root, name):
    """Two runs of which a weight differs and holds infinities; everything in them has the name."""
    module, op = f"Module.{name}.Linear.forward.0", f"Torch.{name}.0.forward"
    construct = {module: None, op: module}
    stack = {"0": [[*construct], [f"File /m/{name}.py, line 7, in {name}, \n x = self.fc(x)"]]}
    bad = {**TENSOR, "Max": float("inf"), "Norm": float("inf")}
    for side, weight in (("bad", bad), ("good", TENSOR)):
        rank = root / side / "step0" / "rank0"
        data = {
            key: {"input_args": [TENSOR], "input_kwargs": {}, "parameters": {name: weight}, "output": [weight]}
            for key in (*construct, f"Torch.{name}.1.forward")  # the last has no parent
        }
        write_rank(rank, construct, data)
        (rank / "stack.json").write_text(json.dumps(stack))


def write_weights(path, name, value):
    """A file of safetensors with one weight."""
    header = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + value)


def commands_in(root, name):
    """Those that find something, where every name is this one."""
    write_runs(root / name, name)
    write_weights(root / name / "a.safetensors", name, b"\0\0\0\0")
    write_weights(root / name / "b.safetensors", name, b"\0\0\x80?")
    for side, loss in (("a", 2.0), ("b", 2.5)):
        lines = "".join(f"{i},{loss / (i + 1)}\n" for i in range(8))
        (root / name / f"{side}.csv").write_text("step,loss\n" + lines)
    bad, good = f"{name}/bad", f"{name}/good"
    return {
        "compare": ["compare", "-tp", bad, "-gp", good, "-o", f"{name}/out"],
        "graph_visualize": ["graph_visualize", "-tp", bad, "-gp", good, "-oc", "-o", f"{name}/out"],
        "overflow_check": ["overflow_check", "-i", bad, "-o", f"{name}/out"],
        "verify-dump": ["verify-dump", bad],
        "data2db": ["data2db", "--data", bad, "--db", f"{name}/db"],
        "ckpt": ["ckpt", "compare", f"{name}/a.safetensors", f"{name}/b.safetensors"],
        "curves": ["curves", f"{name}/a.csv", f"{name}/b.csv"],
        "doctor": ["doctor", bad, good, "-o", f"{name}/doctor"],
        "rollout": ["rollout", f"{name}/a.safetensors", f"{name}/b.safetensors", "-o", f"{name}/rollout"],
    }


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    root = tmp_path_factory.mktemp("there")
    return all_told(commands_in(root, PLAIN), root)


@pytest.mark.parametrize("name", [n for n in NAMES if "/" not in n], ids=range(len(NAMES) - 1))
def test_names_in_dumps_weights_and_curves(there, tmp_path, name):
    check(name, commands_in(tmp_path, name), tmp_path, there)
