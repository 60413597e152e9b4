"""A recording that is not whole: a killed run, tensor files that are gone, a dump.json that ends early. Every command
says it first, concludes upon nothing that was not seen, and does not exit with 0."""

import json
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from capture_helpers import capture

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import find_command

NOT_WHOLE, UNDECIDED = 3, 5

TRAIN = """
import os, signal, threading, time
width = 8
net = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(30)])
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
kill_after = {kill_after}
if kill_after:
    kill = lambda: (time.sleep(kill_after), os.kill(os.getpid(), signal.SIGKILL))
    threading.Thread(target=kill, daemon=True).start()
began = time.monotonic()
for _ in range(2):
    debugger.start(model=net)
    for _ in range(8):
        net(torch.randn(4, width)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    debugger.stop()
    debugger.step()
print("TOOK", time.monotonic() - began)
"""


def run(*args, code):
    done = subprocess.run(
        [str(find_command()), *map(str, args)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, (args, done.returncode, done.stdout[:2000], done.stderr[:2000])
    assert "No difference" not in done.stdout, done.stdout[:2000]
    return done.stdout


def train(directory, kill_after=0, **config):
    return capture(directory, TRAIN.format(kill_after=kill_after), level="mix", check=False, **config)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return train(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def whole_tensors(tmp_path_factory):
    script = TRAIN.format(kill_after=0).replace("range(8)", "range(2)")
    return capture(tmp_path_factory.mktemp("tensors"), script, level="mix", task="tensor").root


def steps_of(root):
    """The summary of each step of a run."""
    return {
        path.parents[1].name: json.loads(path.read_text())
        for path in sorted(root.glob("step*/rank*/dump_summary.json"))
    }


def check_flushed(root, whole):
    """Nothing that was reported flushed is lost: the ops are the first of the whole run, with the same values."""
    for step, summary in steps_of(root).items():
        path = root / step / "rank" / "dump.json"
        if summary["state"] == "recording" and summary["ops"] == 0 and not path.exists():
            continue
        ops = json.loads(path.read_text())["data"]
        assert len(ops) >= summary["ops"]
        expected = json.loads((whole / step / "rank" / "dump.json").read_text())["data"]
        assert list(ops) == list(expected)[: len(ops)]
        assert all(ops[name] == expected[name] for name in ops)


def first_line(text):
    """Without what is told before the answer, of the first statistics of tensors."""
    early = "step0 rank: the statistics of the first"
    return next(line for line in text.splitlines() if not line.startswith(early))


def doctor_line(text):
    """The answer, which stands behind what was given."""
    return next(line for line in text.splitlines() if "Not decided" in line)


def check_story(story, ops):
    assert story["outcome"] == "unknown" and story["origins"] == [] and not story["whole"]
    (gap,) = story["not_whole"]
    assert gap["state"] == "killed" and gap["ops"] == ops
    assert story["ops"]["target_only"] == story["ops"]["golden_only"] == 0
    assert "was cut: the run was killed" in story["text"]["en"][0] and "被截断" in story["text"]["zh"][0]


def check_compare(target, golden, ops, out):
    line = first_line(run("compare", "-tp", target, "-gp", golden, "-o", out, code=NOT_WHOLE))
    assert f"killed after {ops} of its ops" in line or (ops == 0 and "killed before any of its ops" in line)
    answer = json.loads(run("compare", "-tp", target, "-gp", golden, "-o", out, "--json", code=NOT_WHOLE))
    check_story(answer["verdict"], ops)
    assert sum(pair["target_only_ops"] + pair["golden_only_ops"] for pair in answer["pairs"]) == 0


def check_graph(paths, ops, out):
    text = run("graph_visualize", *paths, "-o", out, code=NOT_WHOLE)
    assert "was cut: the run was killed" in first_line(text)
    answer = json.loads(run("graph_visualize", *paths, "-o", out, "--json", code=NOT_WHOLE))
    check_story(answer["verdict"], ops)
    with sqlite3.connect(answer["file"]) as opened:  # what the page shows
        ((story,),) = opened.execute("SELECT story FROM msprobe_verdict")
    check_story(json.loads(story), ops)


def check_commands(cut, whole, out):
    """Each command on a killed run; False where it was killed between two steps, which are whole."""
    recording = {step: summary for step, summary in steps_of(cut).items() if summary["state"] == "recording"}
    if not recording:
        return False
    ((step, _),) = recording.items()
    path = cut / step / "rank" / "dump.json"
    ops = len(json.loads(path.read_text())["data"]) if path.exists() else 0
    check_compare(cut, whole, ops, out)
    check_compare(whole, cut, ops, out)
    if ops > 0:  # without any there is nothing to show, which the error says
        only = cut / step
        check_graph(["-tp", only], ops, out)
        check_graph(["-tp", only, "-gp", whole / step], ops, out)
        check_graph(["-tp", whole / step, "-gp", only], ops, out)
    assert "was cut: the run was killed" in first_line(run("overflow_check", "-i", cut, "-o", out, code=NOT_WHOLE))
    check_story(json.loads(run("overflow_check", "-i", cut, "-o", out, "--json", code=NOT_WHOLE))["verdict"], ops)
    assert "was cut: the run was killed" in first_line(run("data2db", "--db", out, "--data", cut, code=NOT_WHOLE))
    (trend,) = json.loads(run("data2db", "--db", out, "--data", cut, "--json", code=NOT_WHOLE))["files"]
    assert [gap["ops"] for gap in trend["not_whole"]] == [ops]
    for pair in ((whole, cut), (cut, whole)):
        assert "was cut: the run was killed" in doctor_line(run("doctor", *pair, "-o", out / "doctor", code=UNDECIDED))
        answer = json.loads(run("doctor", *pair, "-o", out / "doctor", "--json", code=UNDECIDED))
        assert [gap["ops"] for gap in answer["not_whole"]] == [ops] and answer["outcome"] == "undecided"
    return True


def kill_at_random_moments(whole, directory, times, seed):
    took = float(whole.script.stdout.split("TOOK")[1])
    moments = random.Random(seed)
    inside = 0
    for i in range(times):
        cut = train(directory / str(i), kill_after=moments.uniform(0.02, 0.9) * took).root
        check_flushed(cut, whole.root)
        inside += check_commands(cut, whole.root, directory / str(i) / "out")
        shutil.rmtree(directory / str(i))
    return inside


def test_a_run_that_was_killed(whole, tmp_path):
    assert kill_at_random_moments(whole, tmp_path, 4, seed=1) >= 2


@pytest.mark.deep
def test_a_run_that_was_killed_at_sixty_moments(whole, tmp_path):
    inside = kill_at_random_moments(whole, tmp_path, 60, seed=2)
    print(f"{inside} of 60 were killed inside a step")
    assert inside >= 40


@pytest.fixture(scope="module")
def cut_once(whole, tmp_path_factory):
    """A run that was killed inside its second step, after some of its ops were flushed."""
    root = tmp_path_factory.mktemp("cut") / "dump"
    shutil.copytree(whole.root, root)
    dump = json.loads((root / "step1/rank/dump.json").read_text())
    dump["data"] = dict(list(dump["data"].items())[:795])
    (root / "step1/rank/dump.json").write_text(json.dumps(dump))
    summary = json.loads((root / "step1/rank/dump_summary.json").read_text())
    summary.update(state="recording", ops=795)
    summary["writer"]["pid"] = subprocess.run(
        ["sh", "-c", "echo $$"], capture_output=True, text=True, check=True
    ).stdout.strip()
    summary["writer"]["pid"] = int(summary["writer"]["pid"])
    (root / "step1/rank/dump_summary.json").write_text(json.dumps(summary))
    return root


def test_the_headline_of_a_cut_step(cut_once, whole, tmp_path):
    check_commands(cut_once, whole.root, tmp_path)
    line = first_line(run("compare", "-tp", cut_once, "-gp", whole.root, "-o", tmp_path, code=NOT_WHOLE))
    assert line.startswith(
        "Step 1 of the target was cut: the run was killed after 795 of its ops. What was seen agrees"
    )


def test_a_recovered_run_is_still_cut(cut_once, whole, tmp_path):
    shutil.copytree(cut_once, tmp_path / "dump")
    run("recover", tmp_path / "dump", code=0)
    assert steps_of(tmp_path / "dump")["step1"]["state"] == "recovered"
    check_compare(tmp_path / "dump", whole.root, 795, tmp_path / "out")


def test_a_difference_before_the_cut_is_found(cut_once, whole, tmp_path):
    root = tmp_path / "dump"
    shutil.copytree(cut_once, root)
    dump = json.loads((root / "step1/rank/dump.json").read_text())
    names = list(dump["data"])
    name = next(name for name in names[100:] if name.startswith("Functional.linear"))
    for later in names[names.index(name) :]:
        op = dump["data"][later]
        inputs = [] if later == name else op.get("input_args", []) + op.get("input", [])
        for item in inputs + op.get("output", []):
            if isinstance(item, dict) and "Norm" in item:
                item.update({key: item[key] + 1 for key in ("Max", "Min", "Mean", "Norm")})
    (root / "step1/rank/dump.json").write_text(json.dumps(dump))
    text = run("compare", "-tp", root, "-gp", whole.root, "-o", tmp_path, code=NOT_WHOLE)
    assert first_line(text).startswith("Step 1 of the target was cut")
    answer = json.loads(run("compare", "-tp", root, "-gp", whole.root, "-o", tmp_path, "--json", code=NOT_WHOLE))
    assert answer["verdict"]["outcome"] == "origin" and answer["verdict"]["origins"][0]["op"] == name


def two_ranks(root, one, other):
    for step in ("step0", "step1"):
        for rank, source in enumerate((one, other)):
            shutil.copytree(source / step / "rank", root / step / f"rank{rank}")
    return root


def test_ranks_that_are_merged(cut_once, whole, tmp_path):
    cut = two_ranks(tmp_path / "cut", whole.root, cut_once) / "step1"
    good = two_ranks(tmp_path / "good", whole.root, whole.root) / "step1"
    text = run("compare", "-tp", cut, "-gp", good, "-o", tmp_path / "tables", code=NOT_WHOLE)
    assert "Step 1, rank 1 of the target was cut: the run was killed after 795" in first_line(text)
    config = tmp_path / "merge.yaml"
    config.write_text("api:\n  - Functional.linear\ncompare_index: []\n")
    merge = ["merge_result", "-i", tmp_path / "tables", "-o", tmp_path / "merged", "-config", config]
    assert "Step 1, rank 1 of the target was cut" in first_line(run(*merge, code=NOT_WHOLE))
    assert [gap["ops"] for gap in json.loads(run(*merge, "--json", code=NOT_WHOLE))["not_whole"]] == [795]
    sizes = ["--rank_size", "2", "2", "--tp", "2", "2", "--pp", "1", "1"]
    text = run("graph_visualize", "-tp", cut, "-gp", good, *sizes, "-o", tmp_path / "graph", code=NOT_WHOLE)
    assert "Step 1, rank 1 of the target was cut" in first_line(text)


# ---- tensors


def damaged_tensors(whole, directory, how, seed):
    root = directory / "dump"
    shutil.copytree(whole, root)
    files = sorted((root / "step1").rglob("*.pt"))
    for path in random.Random(seed).sample(files, len(files) // 2):
        if how == "deleted":
            path.unlink()
        else:
            data = path.read_bytes()
            path.unlink()  # it may be one file under several names
            path.write_bytes(data[: random.Random(str(path)).randrange(len(data))])
    return root


@pytest.mark.parametrize("how", ["deleted", "cut"])
def test_tensor_files_that_are_gone(how, whole_tensors, tmp_path):
    root = damaged_tensors(whole_tensors, tmp_path, how, seed=3)
    for pair in (("-tp", root, "-gp", whole_tensors), ("-tp", whole_tensors, "-gp", root)):
        line = first_line(run("compare", *pair, "-o", tmp_path / "out", code=NOT_WHOLE))
        assert " rows had no tensor: their files are missing, cut or not readable" in line
        answer = json.loads(run("compare", *pair, "-o", tmp_path / "out", "--json", code=NOT_WHOLE))
        verdict = answer["verdict"]
        assert line.startswith(str(verdict["rows_without_tensor"])) and verdict["rows_without_tensor"] > 100
        assert verdict["outcome"] == "unknown" and not verdict["whole"]
        # An op whose tensors could not be read is not bit-equal.
        assert verdict["ops"]["bit_equal"] < sum(pair["matched_ops"] for pair in answer["pairs"])
        line = first_line(run("graph_visualize", *pair, "-o", tmp_path / "out", code=NOT_WHOLE))
        assert " rows had no tensor" in line
        assert (
            json.loads(run("graph_visualize", *pair, "-o", tmp_path / "out", "--json", code=NOT_WHOLE))[
                "rows_without_tensor"
            ]
            > 100
        )
    text = run("doctor", whole_tensors, root, "-o", tmp_path / "doctor", code=UNDECIDED)
    assert " rows had no tensor" in doctor_line(text)


def test_all_tensors_gone(whole_tensors, tmp_path):
    root = tmp_path / "dump"
    shutil.copytree(whole_tensors, root)
    for folder in root.rglob("dump_tensor_data"):
        shutil.rmtree(folder)
    line = first_line(run("compare", "-tp", root, "-gp", whole_tensors, "-o", tmp_path / "out", code=NOT_WHOLE))
    assert "No tensor could be compared" in line


# ---- a dump.json that ends early


def test_a_dump_that_ends_anywhere(whole, tmp_path):
    root = tmp_path / "dump"
    shutil.copytree(whole.root, root)
    path = root / "step1/rank/dump.json"
    data = path.read_bytes()
    places = random.Random(4)
    for _ in range(20):
        path.write_bytes(data[: places.randrange(len(data) - 1)])
        for args in (
            ["compare", "-tp", root, "-gp", whole.root],
            ["compare", "-tp", whole.root, "-gp", root, "--json"],
            ["compare", "-tp", path, "-gp", whole.root / "step1/rank/dump.json"],
            ["graph_visualize", "-tp", root / "step1"],
            ["graph_visualize", "-tp", whole.root, "-gp", root],
            ["overflow_check", "-i", root],
        ):
            run(*args, "-o", tmp_path / "out", code=NOT_WHOLE)
        run("data2db", "--db", tmp_path / "out", "--data", root, code=NOT_WHOLE)
        run("doctor", root, whole.root, "-o", tmp_path / "doctor", code=UNDECIDED)
        shutil.rmtree(tmp_path / "out")


def test_a_dump_that_ends_early_without_its_summary(whole, tmp_path):
    """As other recorders leave it."""
    root = tmp_path / "dump"
    shutil.copytree(whole.root / "step0", root)
    (root / "rank/dump_summary.json").unlink()
    path = root / "rank/dump.json"
    path.write_bytes(path.read_bytes()[:-2000])
    answer = json.loads(
        run("compare", "-tp", root, "-gp", whole.root / "step0", "-o", tmp_path, "--json", code=NOT_WHOLE)
    )
    (gap,) = answer["verdict"]["not_whole"]
    assert gap["state"] == "cut" and answer["verdict"]["origins"] == []
