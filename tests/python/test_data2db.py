"""`msprobe data2db` against the earlier tool's: the same tables, targets, rows and tags from the same input."""

import json
import math
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from graph_cases import find_command
from launch import HERE, run_python

STATS = ("norm", "max", "min", "mean")
DUMP, MONITOR = "dump_data.trend.db", "monitor_data.trend.db"


def data2db(*args, code=0):
    done = subprocess.run([find_command(), "data2db", *map(str, args)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


class Trend:
    """A .trend.db file as plain Python values."""

    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.db.row_factory = sqlite3.Row
        self.stats = [name for name, *_ in self.columns("trend_data")][4:]
        self.metrics = {row["metric_id"]: row["metric_name"] for row in self.all("monitoring_metrics")}
        self.targets = {
            row["target_id"]: (row["target_name"], row["vpp_stage"], row["micro_step"])
            for row in self.all("monitoring_targets")
        }

    def all(self, table):
        return self.db.execute(f"SELECT * FROM {table}").fetchall()

    def columns(self, table):
        return [
            (row["name"], row["type"], row["notnull"], row["pk"])
            for row in self.db.execute(f"PRAGMA table_info({table})")
        ]

    def rows(self):
        return {
            (row["rank"], row["step"], self.metrics[row["metric_id"]], *self.targets[row["target_id"]]): tuple(
                row[stat] for stat in self.stats
            )
            for row in self.all("trend_data")
        }

    def tags(self):
        tag = {
            row["tag_id"]: (row["tag_name"], row["category"], self.metrics[row["metric_id"]])
            for row in self.all("monitoring_tags")
        }
        return {(self.targets[row["target_id"]], tag[row["tag_id"]]) for row in self.all("tag_target_mapping")}

    def extent(self):
        (row,) = self.all("global_stats")
        return {key: set(row[key].split(",")) if isinstance(row[key], str) else row[key] for key in row.keys()}


def assert_same(ours, old):
    assert ours.stats == old.stats
    for table in ("monitoring_targets", "monitoring_metrics", "monitoring_tags", "tag_target_mapping", "trend_data"):
        assert ours.columns(table) == old.columns(table), table
    assert ours.extent() == old.extent()
    assert ours.metrics == old.metrics
    assert ours.rows() == old.rows()
    assert ours.tags() == old.tags()


def tensor(value, dtype="torch.float32", **more):
    stats = {"Max": value, "Min": -value, "Mean": value / 2, "Norm": 2 * value, "requires_grad": False}
    return {"type": "torch.Tensor", "dtype": dtype, "shape": [2], **stats, **more}


def write_dump(directory, data, construct):
    directory.mkdir(parents=True)
    head = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None}
    (directory / "dump.json").write_text(json.dumps({**head, "data": data}))
    (directory / "construct.json").write_text(json.dumps(construct))
    (directory / "stack.json").write_text("{}")


def write_odd_dump(root):
    """What a recorded run does not have: infinities, other types, kwargs, processes without rank, gaps in steps."""
    inf, nan = float("inf"), float("nan")
    root_module, child = "Module.net.Net.forward.", "Module.net.fc.Linear."
    for step, rank in ((0, "rank0"), (0, "rank3"), (2, "rank0"), (10, "proc77"), (10, "proc9")):
        data, construct = {}, {}
        for call in range(3):
            construct[f"{root_module}{call}"] = None
            construct[f"{child}forward.{call}"] = f"{root_module}{call}"
            construct[f"{child}backward.{call}"] = f"Module.net.Net.backward.{call}"
            construct[f"Functional.linear.{call}.forward"] = f"{child}forward.{call}"
            data[f"{root_module}{call}"] = {
                "input_args": [tensor(1.0 + step), tensor(2, "torch.int64")],
                "output": [tensor(inf)],
            }
            data[f"{child}forward.{call}"] = {
                "input_args": [tensor(nan), None, [tensor(1.0)], tensor(4.0, "torch.float64")],
                "input_kwargs": {"scale": tensor(3.0)},
                "parameters": {"weight": tensor(3e38), "bias": [tensor(-3e38, "torch.bfloat16")], "scale": None},
                "output": [tensor(1.0, Max=None, Norm="12.5")],
                "is_recompute": call == 2,
            }
            data[f"{child}backward.{call}"] = {"input": [tensor(0.5, "torch.float16")], "output": [tensor(0.25), None]}
            data[f"Functional.linear.{call}.forward"] = {"input_args": [tensor(5.0)], "output": [tensor(float(call))]}
        data["Module.net.fc.Linear.parameters_grad"] = {"weight": [tensor(9.0)], "bias": [None]}
        write_dump(root / f"step{step}" / rank, data, construct)


def write_monitor(root):
    """Two ranks, gaps in the steps, a metric with micro steps and one without."""
    for rank in (0, 12):
        run = root / f"Dec03_21-34-40-rank{rank}-1a2b3c4d"
        run.mkdir(parents=True)
        lines = ["vpp_stage,name,step,micro_step,norm,max,nans,shape,dtype"]
        for step in (0, 2):
            for micro in range(1 + rank % 5):
                lines.append(
                    f'0,layers.{micro}.mlp.fc1.input.0,{step},{micro},{step + micro}.5,inf,0,"[2, 3]",torch.float32'
                )
                lines.append(f'1,"odd,name",{step},{micro},,-inf,1,[],torch.float32')
        (run / "actv_0-2.csv").write_text("\n".join(lines) + "\n")
        (run / "param_origin_0-2.csv").write_text(
            "vpp_stage,name,step,mean,norm\n0,module.0.weight,0,-1e30,2.0\n0,module.0.weight,2,nan,1e-30\n"
        )
        (run / "stack_info.csv").write_text("a,b\n1,2\n")
        (run / "unknown_0-1.csv").write_text("vpp_stage,name,step,norm\n0,x,0,1\n")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    root = tmp_path_factory.mktemp("trends")
    run_python([HERE / "data2db_scenario.py", root / "recorded"])
    for rank in (root / "recorded").glob("step*/rank"):
        rank.rename(rank.with_name("rank0"))  # the earlier tool's data2db knows no rank without a number
    write_odd_dump(root / "odd")
    write_monitor(root / "monitor")
    (root / "map.json").write_text(json.dumps({"net.": "", "fc": "dense", "layers": "block"}))
    return root


JOBS = [
    (data, form, mapping, micro)
    for data, form in (("recorded", "dump"), ("odd", "dump"), ("monitor", "monitor"))
    for mapping, micro in (("", "true"), ("map.json", "false"))
]


@pytest.fixture(scope="module")
def old(inputs, old_python):
    """The earlier tool's files of every job, by one process."""
    jobs = []
    for data, form, mapping, micro in JOBS:
        out = inputs / "old" / f"{data}_{micro}"
        jobs.append("|".join([str(out), str(inputs / data), form, str(inputs / mapping) if mapping else "", micro]))
    run_python([HERE / "data2db_old.py", *jobs], python=old_python, ours=False)
    return inputs / "old"


@pytest.mark.parametrize(("data", "form", "mapping", "micro"), JOBS)
def test_tables_are_the_earlier_tools(inputs, old, data, form, mapping, micro):
    out = inputs / "ours" / f"{data}_{micro}"
    more = ["--mapping", inputs / mapping] if mapping else []
    data2db("--db", out, "--data", inputs / data, "--format", form, "--micro_step", micro, *more)
    name = DUMP if form == "dump" else MONITOR
    ours, theirs = Trend(out / name), Trend(old / f"{data}_{micro}" / name)
    assert (out / name).stat().st_mode & 0o777 == 0o640
    if (data, micro) == ("recorded", "true"):
        return assert_same_but_micro_steps(ours, theirs)
    return assert_same(ours, theirs)


def assert_same_but_micro_steps(ours, old):
    """The earlier tool counts the optimizer as a third micro step, drops functions outside of modules (the loss above all),
    and has another target for the gradients of each micro step."""
    left = ours.rows()
    right = {(rank, step // 3 * 2 + min(step % 3, 1), *name): row for (rank, step, *name), row in old.rows().items()}
    grads = {key for key in right if key[2] == "parameters_grad"}
    assert {key: left[key] for key in right if key not in grads} == {
        key: right[key] for key in right if key not in grads
    }
    more = {key[3] for key in left if key not in right and key[2] != "parameters_grad"}
    assert {name.split(".")[1] for name in more} == {"mse_loss"}
    assert (ours.extent()["max_step"], old.extent()["max_step"]) == (5, 8)
    every = list(range(6))
    assert sorted(key[1] for key in left if key[3] == "Functional.mse_loss.output.0") == sorted(
        every * 2
    )  # forward, backward
    assert sorted(key[1] for key in left if key[2:4] == ("parameters_grad", "Module.net.layers.0.Linear.bias")) == every


def test_nan_is_told_from_what_was_not_recorded(tmp_path):
    """Both are NULL, as in the earlier tool's files; a table of ours names the latter."""
    nan, inf = float("nan"), float("inf")
    output = [
        tensor(nan),
        tensor(1.0, Max=None, Min=None),
        tensor(1.0, Max="nan", Min="NaN", Mean="nan", Norm="nan"),
        tensor(1.0, Norm=-inf),
        tensor(1.0, Mean="N/A"),
    ]
    name = "Module.net.Linear.forward.0"
    write_dump(tmp_path / "dump" / "step0" / "rank0", {name: {"input_args": [], "output": output}}, {name: None})
    data2db("--db", tmp_path, "--data", tmp_path / "dump")
    trend = Trend(tmp_path / DUMP)
    values = {key[3].rsplit(".", 1)[-1]: row for key, row in trend.rows().items()}
    absent = {
        trend.targets[row["target_id"]][0].rsplit(".", 1)[-1]: [
            stat for bit, stat in enumerate(STATS) if row["stats"] >> bit & 1
        ]
        for row in trend.all("msprobe_absent")
    }
    assert values["0"] == values["2"] == (None,) * 4
    assert values["3"][0] == -1e9 - 1
    assert absent == {"1": ["max", "min"], "4": ["mean"]}


def test_an_empty_cell_of_a_monitor_is_nan(tmp_path):
    """pandas writes NaN so; what a metric has no column for is said once, in global_stats."""
    run = tmp_path / "m" / "Dec03_21-34-40-rank0-1a2b3c4d"
    run.mkdir(parents=True)
    (run / "grad_reduced_0-0.csv").write_text("vpp_stage,name,step,norm\n0,w,0,\n0,v,0,nothing\n")
    (run / "param_origin_0-0.csv").write_text("vpp_stage,name,step,norm,max\n0,w,0,1,2\n")
    data2db("--db", tmp_path, "--data", tmp_path / "m")
    trend = Trend(tmp_path / MONITOR)
    assert {row[0] for key, row in trend.rows().items() if key[2] == "grad_reduced"} == {None}
    marked = [(trend.targets[row["target_id"]][0], row["stats"]) for row in trend.all("msprobe_absent")]
    assert marked == [("v", 1)]
    assert trend.extent()["grad_reduced"] == {"norm"}


def test_the_earlier_page_reads_our_file(inputs, old_python):
    data2db("--db", inputs / "page", "--data", inputs / "odd")
    trend = Trend(inputs / "page" / DUMP)
    done = run_python([HERE / "data2db_old.py", "--page", inputs / "page" / DUMP], python=old_python, ours=False)
    said = json.loads(done.stdout.splitlines()[-1])
    assert all(answer["success"] for answer in said.values()), said
    assert said["metrics"]["data"][0] == {"name": "forward", "stats": list(STATS)}
    assert len(said["steps"]["data"]) == trend.extent()["max_step"] + 1
    rows = {key: row[0] for key, row in trend.rows().items() if key[0] == 0 and key[2] == "forward"}
    assert len(said["map"]["data"]) == len(rows)
    first = sorted((key[1], value) for key, value in rows.items() if key[3:] == trend.targets[1])
    assert list(zip(said["line"]["data"]["dimensions"], said["line"]["data"]["values"])) == first
    assert {tag["text"] for tag in said["tags"]["data"]} >= {"Module", "net.fc.Linear", "input.0"}


def test_a_model_without_a_name_is_one_micro_step(tmp_path):
    data, construct = {}, {}
    for call in range(2):
        for name in ("a", "b"):
            construct[f"Module.{name}.Linear.forward.{call}"] = None
            data[f"Module.{name}.Linear.forward.{call}"] = {"input_args": [tensor(1.0)], "output": [tensor(2.0)]}
        for name in ("b", "a"):
            construct[f"Module.{name}.Linear.backward.{call}"] = None
    write_dump(tmp_path / "dump" / "step0" / "rank", data, construct)
    data2db("--db", tmp_path, "--data", tmp_path / "dump")
    assert Trend(tmp_path / DUMP).extent()["max_step"] == 1


def test_the_newest_of_a_ranks_monitor_runs_counts(tmp_path):
    for at, (run, value) in enumerate((("Dec31_01-00-00-rank0-aaaaaaaa", 1), ("Jan01_01-00-00-rank0-bbbbbbbb", 2))):
        directory = tmp_path / "m" / run
        directory.mkdir(parents=True)
        (directory / "grad_reduced_0-0.csv").write_text(
            f"vpp_stage,name,step,norm\n0,w,0,{value}\n0,w{value},0,{value}\n"
        )
        os.utime(directory, (1e9 + at, 1e9 + at))
    data2db("--db", tmp_path, "--data", tmp_path / "m")
    rows = {key[3]: value for key, value in Trend(tmp_path / MONITOR).rows().items()}
    assert rows == {"w": (2.0,), "w1": (1.0,), "w2": (2.0,)}


def test_damaged_ranks_are_left_out(tmp_path, inputs):
    shutil.copytree(inputs / "odd", tmp_path / "odd")
    (tmp_path / "odd" / "step0" / "rank3" / "dump.json").write_text("nonsense")
    (tmp_path / "odd" / "step2" / "rank0" / "construct.json").unlink()
    whole = (tmp_path / "odd" / "step0" / "rank0" / "dump.json").read_text()
    (tmp_path / "odd" / "step0" / "rank0" / "dump.json").write_text(whole[: len(whole) // 2])
    done = data2db("--db", tmp_path, "--data", tmp_path / "odd", "--json", code=3)
    (report,) = json.loads(done.stdout)["files"]
    assert report["rows"] == len(Trend(tmp_path / DUMP).all("trend_data")) > 0
    said = "\n".join(report["warnings"])
    for word in ("rank 3 is left out", "construct.json is missing", "rank0/dump.json"):
        assert word in said


def test_results_do_not_depend_on_threads(tmp_path, inputs):
    for count in (1, 4):
        data2db("--db", tmp_path / str(count), "--data", inputs / "odd", "--process_num", count)
    assert (tmp_path / "1" / DUMP).read_bytes() == (tmp_path / "4" / DUMP).read_bytes()


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--db", "o", "--data", "nowhere"], 3, "nowhere is not a directory"),
        (["--db", "o", "--data", "."], 3, "no dump (step0, step1, ...) and no directories of a training monitor"),
        (["--db", "o", "--data", ".", "--format", "dump"], 3, "is not a dump"),
        (["--db", "o", "--data", ".", "--mapping", "list.json"], 3, "is not a mapping"),
        (["--db", "o", "--data", ".", "--process_num", "129"], 2, "process_num"),
        (["--db", "o", "--data", ".", "--micro_step", "maybe"], 2, "micro_step"),
        (["--data", "."], 2, "--db"),
    ],
)
def test_errors(tmp_path, monkeypatch, args, code, words):
    (tmp_path / "list.json").write_text("[]")
    monkeypatch.chdir(tmp_path)
    done = data2db(*args, code=code)
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not Path("o", DUMP).exists()


def test_values_are_bounded_as_the_page_expects(inputs):
    trend = Trend(inputs / "ours" / "odd_true" / DUMP) if (inputs / "ours" / "odd_true").exists() else None
    if trend is None:
        data2db("--db", inputs / "ours" / "odd_true", "--data", inputs / "odd")
        trend = Trend(inputs / "ours" / "odd_true" / DUMP)
    values = {v for row in trend.rows().values() for v in row if v is not None}
    assert max(values) == 1e9 + 1
    assert not any(math.isnan(v) for v in values)
