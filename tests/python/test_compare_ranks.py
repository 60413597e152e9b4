"""Many ranks: `--rows differing`, the answer before the tables, replicas, `--ranks` and `--out-limit`."""

import csv
import json
import re
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest
from capture_helpers import capture

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import run

GUILTY, OTHER, COPIES = 5, 6, (0, 1, 2, 3, 4, 7)
MODEL = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 64), nn.Linear(64, 16)
    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))
model = nn.Sequential(*(Block() for _ in range(3)))
torch.manual_seed({seed})
x = torch.randn(8, 16)
{change}
debugger.start(model=model)
loss = model(x).square().mean()
loss.backward()
debugger.stop()
debugger.step()
"""
# An op that the golden run lacks.
FAULT = "model[0].up.register_forward_hook(lambda m, i, o: o * 1.25)"
ROUNDS = "model[0].up.weight.data *= 1 + 1e-7"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of 8 ranks: six hold the same, one rounds otherwise, one goes wrong in its first block."""
    root = tmp_path_factory.mktemp("ranks")

    def rank(name, seed, change=""):
        return capture(root / name, MODEL.format(seed=seed, change=change), level="mix").directory()

    golden, other = rank("golden", 1), rank("other", 2)
    target = {**dict.fromkeys(COPIES, golden), GUILTY: rank("wrong", 1, FAULT), OTHER: rank("rounds", 2, ROUNDS)}
    for number in range(8):
        shutil.copytree(target[number], root / "t" / "step0" / f"rank{number}")
        shutil.copytree(other if number == OTHER else golden, root / "g" / "step0" / f"rank{number}")
    return root


def compare(runs, out, *options, step="step0", check=True):
    return run(["compare", "-tp", runs / "t" / step, "-gp", runs / "g" / step, "-o", out, *options], check=check)


def table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def one(out, pattern):
    (path,) = Path(out).glob(pattern)
    return table(path)


def is_in(row):
    return row["Ruler Verdict"] in ("suspicious", "bug") or row["Bench Name"] == "N/A"


def test_the_table_holds_the_rows_that_the_ruler_calls_more_than_round_off(runs, tmp_path):
    compare(runs, tmp_path / "all", "--ruler")
    compare(runs, tmp_path / "one", "--rows", "differing")
    expected, inherited = [], {}
    for number in range(8):
        rows = one(tmp_path / "all", f"compare_result_rank{number}_*.csv")
        inherited[number] = sum(row["Ruler Verdict"] == "inherited" for row in rows)
        if number in (0, GUILTY, OTHER):  # the others are copies of rank 0
            expected += [(str(number), row) for row in rows if is_in(row)]
    found = one(tmp_path / "one", "compare_differing_*.csv")
    assert expected and inherited[GUILTY] > 10
    assert [(row["Rank"], row["NPU Name"]) for row in found] == [(number, row["NPU Name"]) for number, row in expected]
    for row, (_, full) in zip(found, expected):
        same = {key: value for key, value in row.items() if key not in ("Step", "Rank", "NPU_Stack_Info")}
        assert same == {key: full[key] for key in same}
    assert found[0]["NPU_Stack_Info"].startswith("[")
    ranks = one(tmp_path / "one", "compare_ranks_*.csv")
    assert [int(row["Rank"]) for row in ranks] == list(range(8))
    assert {int(row["Rank"]): int(row["Inherited Rows"]) for row in ranks} == inherited
    assert [row["Equal To"] for row in ranks] == ["", *["rank0"] * 4, "", "", "rank0"]
    assert "up" in ranks[GUILTY]["First Difference"] and ranks[0]["First Difference"] == ""


def test_the_answer_is_that_of_a_comparison_of_all_ranks(runs, tmp_path):
    answers = []
    for options in ([], ["--rows", "differing"]):
        out = tmp_path / str(len(options))
        answers.append(json.loads(compare(runs, out, "--json", *options).stdout))
    full, short = answers
    assert short["verdict"] == full["verdict"]
    assert short["first_divergence"] == full["first_divergence"]
    assert len(short["pairs"]) == 8
    for pair, whole in zip(short["pairs"], full["pairs"]):
        assert pair["ruler"] == whole["ruler"] and pair["rows"] == whole["rows"]
    assert Path(short["ranks_file"]).is_file() and short["pairs"][7]["equal_to"] == "rank0"


def test_the_answer_comes_before_the_tables(runs, tmp_path):
    lines = compare(runs, tmp_path, "--rows", "differing").stdout.splitlines()
    assert lines[0].startswith("Origin:") and f"rank {GUILTY}" in lines[0]
    text = "\n".join(lines)
    assert "ranks: 8, of which 5 have the files of another one and were not compared again" in text
    assert f"  a difference begins on: {GUILTY}" in text and "  round-off: 1; bit-equal: 6" in text
    assert text.index("a difference begins on") < text.index("writing the rows") < text.index("result: ")


def test_a_rank_that_was_cut_stands_for_itself(runs, tmp_path):
    copy = tmp_path / "runs"
    shutil.copytree(runs / "t", copy / "t")
    shutil.copytree(runs / "g", copy / "g")
    (copy / "t" / "step0" / "rank3" / "dump_summary.json").write_text("{")
    done = compare(copy, tmp_path / "out", "--rows", "differing", check=False)
    assert done.returncode == 3
    ranks = one(tmp_path / "out", "compare_ranks_*.csv")
    assert ranks[3]["Equal To"] == "" and ranks[4]["Equal To"] == "rank0"


def test_a_bad_rank_does_not_hide_the_others(runs, tmp_path):
    copy = tmp_path / "runs"
    shutil.copytree(runs / "t", copy / "t")
    shutil.copytree(runs / "g", copy / "g")
    (copy / "t" / "step0" / "rank2" / "dump.json").write_text("no json")
    done = compare(copy, tmp_path / "out", "--rows", "differing", check=False)
    assert done.returncode == 3 and "rank2" in done.stderr and f"rank {GUILTY}" in done.stdout
    assert len(one(tmp_path / "out", "compare_ranks_*.csv")) == 7


def test_only_the_chosen_ranks(runs, tmp_path):
    answer = json.loads(compare(runs, tmp_path, "--ranks", "0,5-6", "--json").stdout)
    assert [pair["label"] for pair in answer["pairs"]] == ["rank0", "rank5", "rank6"]
    done = compare(runs, tmp_path / "none", "--ranks", "64-70", check=False)
    assert done.returncode == 2 and "none of the ranks" in done.stderr and not (tmp_path / "none").exists()
    assert compare(runs, tmp_path, "--ranks", "a", check=False).returncode == 2


def test_a_bound_of_what_is_written(runs, tmp_path):
    done = compare(runs, tmp_path / "out", "--rows", "differing", "--out-limit", "1", check=False)
    assert done.returncode == 2 and "--out-limit" in done.stderr and "--ranks" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []
    compare(runs, tmp_path / "more", "--rows", "differing", "--out-limit", "0")


@pytest.mark.parametrize("option", ["--xlsx", "--html", "--structure", "--plain", "--unmatched"])
def test_options_of_single_tables_are_refused(runs, tmp_path, option):
    done = compare(runs, tmp_path / "out", "--rows", "differing", option, check=False)
    assert done.returncode == 2 and option in done.stderr and not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def many(runs, tmp_path_factory):
    """The two runs again, with as many steps as make a command say what it will write."""
    root = tmp_path_factory.mktemp("many")
    for side in ("t", "g"):
        for step in range(2):
            shutil.copytree(runs / side / "step0", root / side / f"step{step}")
    return root


def size_told(text):
    number, unit = re.search(r"about ([0-9.]+) ([kM]?B)", text).groups()
    return float(number) * {"B": 1, "kB": 1e3, "MB": 1e6}[unit]


def written(out, pattern="*"):
    return sum(path.stat().st_size for path in Path(out).glob(pattern))


@pytest.mark.parametrize("options", [[], ["--xlsx"]])
def test_tables_of_many_ranks_are_announced_and_the_answer_told_first(many, tmp_path, options):
    out = compare(many, tmp_path, *options, step="").stdout
    assert out.startswith("writing 16 tables, about ") and "--rows differing" in out.splitlines()[0]
    most = 2.5 if options else 1.4  # how well a workbook packs depends on its values
    assert 0.7 < size_told(out) / written(tmp_path, "compare_result*") < most
    assert out.index("  a difference begins on: step 0: 5") < out.index("result: ")


def test_too_many_tables_are_not_begun(many, tmp_path):
    done = compare(many, tmp_path / "out", "--out-limit", "100kB", step="", check=False)
    assert done.returncode == 2 and "--rows differing" in done.stderr and "--ranks" in done.stderr
    assert not (tmp_path / "out").exists()
    compare(many, tmp_path / "out", "--out-limit", "100kB", "--ranks", "1", "--rows", "differing", step="")


def test_the_origin_of_several_steps_is_told_once(many, tmp_path):
    out = compare(many, tmp_path, "--rows", "differing", step="").stdout
    assert "  a difference begins on: step 0: 5" in out
    assert [row["Step"] for row in one(tmp_path, "compare_ranks_*.csv")] == ["0"] * 8 + ["1"] * 8


COMMANDS = {
    "graph_visualize": lambda many, out: ["-tp", many / "t", "-gp", many / "g", "-o", out],
    "data2db": lambda many, out: ["--data", many / "t", "--db", out],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_other_commands_say_what_they_write_and_stop_at_the_bound(many, tmp_path, command):
    arguments = [command, *COMMANDS[command](many, tmp_path / "out")]
    done = run([*arguments, "--out-limit", "1kB"], check=False)
    assert done.returncode == 2 and "--out-limit" in done.stderr and "--ranks" in done.stderr
    assert not (tmp_path / "out").exists()
    out = run(arguments).stdout
    assert out.startswith("writing ")
    assert 0.4 < size_told(out) / written(tmp_path / "out", "*.db") < 3.5, "small files have much in common"
    shutil.rmtree(tmp_path / "out")
    out = run([*arguments, "--ranks", "1,3"]).stdout
    assert "writing" not in out, "few ranks"
    assert run([*arguments, "--ranks", "77"], check=False).returncode == 2


def test_the_graph_holds_the_chosen_ranks(many, tmp_path):
    run(["graph_visualize", *COMMANDS["graph_visualize"](many, tmp_path), "--ranks", "2-3"])
    (path,) = tmp_path.glob("*.vis.db")
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT DISTINCT step, rank FROM tb_nodes ORDER BY 1, 2").fetchall() == [
            (0, 2),
            (0, 3),
            (1, 2),
            (1, 3),
        ]
    done = run(
        ["graph_visualize", "-tp", many / "t", "-o", tmp_path]
        + ["--ranks", "2", "--rank_size", 8, "--tp", 2, "--pp", 1],
        check=False,
    )
    assert done.returncode == 2 and "--rank_size" in done.stderr


def test_overflow_check_of_chosen_ranks(many, tmp_path):
    step = tmp_path / "t" / "step0"
    shutil.copytree(many / "t" / "step0", step)
    bad = json.loads((step / "rank4" / "dump.json").read_text())
    next(item for op in bad["data"].values() for item in op["output"] if item)["Max"] = "inf"
    (step / "rank4" / "dump.json").write_text(json.dumps(bad))
    report = json.loads(run(["overflow_check", step, "-o", tmp_path / "out", "--ranks", "4", "--json"]).stdout)
    assert report["ranks"] == 1 and report["verdict"]["origins"][0]["ranks"] == [4]
    report = json.loads(run(["overflow_check", step, "-o", tmp_path / "out", "--ranks", "0-3", "--json"]).stdout)
    assert report["ranks"] == 4 and report["verdict"]["origins"] == []
    done = run(["overflow_check", step, "-o", tmp_path / "none", "--out-limit", "10"], check=False)
    assert done.returncode == 2 and "--out-limit" in done.stderr and not (tmp_path / "none").exists()
