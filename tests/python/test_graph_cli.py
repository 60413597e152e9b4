"""`msprobe graph_visualize` as users meet it: options, bad input, full disks, Ctrl-C."""

import json
import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import TENSOR, find_command, only_db, run, write_rank


def op(norm=1.0):
    return {"input_args": [TENSOR], "input_kwargs": {}, "output": [{**TENSOR, "Norm": norm}]}


def make_rank(path, norm=1.0, calls=3, task="statistics", **more):
    names = [f"Torch.add.{i}.forward" for i in range(calls)]
    construct = {**dict.fromkeys(names, "Module.fc.Linear.forward.0"), "Module.fc.Linear.forward.0": None}
    return write_rank(path, construct, {n: op(norm) for n in construct}, task=task, **more)


def graph(*args, **more):
    return run(["graph_visualize", *args], check=False, **more)


def assert_refused(done, code, *words):
    assert done.returncode == code, done.stderr
    lines = done.stderr.strip().splitlines()
    assert lines[-1].startswith("[msprobe] error: "), done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in lines[-1]


def left_in(directory):
    return sorted(p.name for p in Path(directory).iterdir()) if Path(directory).exists() else []


def test_build_says_what_it_wrote(tmp_path):
    rank = make_rank(tmp_path / "a")
    done = graph("-tp", rank, "-o", tmp_path / "out" / "deep")
    assert done.returncode == 0, done.stderr
    file = only_db(tmp_path / "out" / "deep")
    assert file.name.startswith("build_") and file.name.endswith(".vis.db")
    assert str(file) in done.stdout and "5 target" in done.stdout
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o750


def test_compare_names_the_first_error(tmp_path):
    a, b = make_rank(tmp_path / "a", 9.0), make_rank(tmp_path / "b")
    done = graph("-tp", a, "-gp", b, "-o", tmp_path / "out", "--json")
    summary = json.loads(done.stdout)
    assert (summary["pass"], summary["error"], summary["unmatched"]) == (0, 4, 0)
    assert summary["first_error"] == {"step": 0, "rank": 0, "order": 0, "node": "Torch.add.0.forward"}
    assert Path(summary["file"]).stat().st_size == summary["bytes"]
    text = graph("-tp", a, "-gp", b, "-o", tmp_path / "out2").stdout
    assert "first error by the old rule: Torch.add.0.forward (step 0, rank 0)" in text


def test_a_dump_file_stands_for_its_directory(tmp_path):
    rank = make_rank(tmp_path / "a")
    assert graph("-tp", rank / "dump.json", "-o", tmp_path / "out").returncode == 0


def test_names_with_spaces_and_other_letters(tmp_path):
    rank = make_rank(tmp_path / "дамп 转储")
    assert graph("-tp", rank, "-o", tmp_path / "out put").returncode == 0


def test_empty_golden_path_means_build(tmp_path):
    done = graph("-tp", make_rank(tmp_path / "a"), "-gp", "", "-o", tmp_path / "out")
    assert done.returncode == 0 and only_db(tmp_path / "out").name.startswith("build_")


def test_progress_lines(tmp_path):
    done = graph("-tp", make_rank(tmp_path / "a"), "-o", tmp_path / "out", "-progress_log")
    states = [json.loads(line.split("PROGRESS: ")[1]) for line in done.stdout.splitlines() if "PROGRESS: " in line]
    assert states[-1] == {"current_progress": 100, "process_running": False, "error_msg": []}
    done = graph("-tp", tmp_path / "none", "-o", tmp_path / "out", "-progress_log")
    last = json.loads(done.stdout.splitlines()[-1].split("PROGRESS: ")[1])
    assert last["process_running"] is False and "does not exist" in last["error_msg"][0]


@pytest.mark.parametrize(
    "extra,warning", [(["--rank_size", "2", "--tp", "2", "--pp", "1"], ""), (["--file_type", "json"], "--rank_size")]
)
def test_a_rank_by_itself_is_a_graph_with_options_of_a_merge_too(tmp_path, extra, warning):
    done = graph("-tp", make_rank(tmp_path / "a"), "-o", tmp_path / "out", *extra)
    assert done.returncode == 0 and warning in done.stderr
    assert only_db(tmp_path / "out")


def test_json_files_are_not_for_comparisons(tmp_path):
    rank = make_rank(tmp_path / "a")
    assert_refused(graph("-tp", rank, "-gp", rank, "-o", tmp_path / "out", "--file_type", "json"), 2, "-gp")
    assert left_in(tmp_path / "out") == []


def test_missing_options(tmp_path):
    assert graph("-o", tmp_path).returncode == 2
    assert graph("-tp", tmp_path).returncode == 2


def test_no_such_path(tmp_path):
    assert_refused(graph("-tp", tmp_path / "none", "-o", tmp_path / "out"), 3, "none", "does not exist")


def test_not_a_dump(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "notes.txt").write_text("hello")
    assert_refused(graph("-tp", tmp_path / "x", "-o", tmp_path / "out"), 3, "notes.txt")


@pytest.mark.parametrize("file", ["dump.json", "construct.json", "stack.json"])
@pytest.mark.parametrize(
    "content", ["", "no json at all", "[1, 2]", '{"data": 5}', "\x00\xff\xfe", "{" * 100000, '{"a": ["b"']
)
def test_damaged_files(tmp_path, file, content):
    rank = make_rank(tmp_path / "a")
    (rank / file).write_bytes(content.encode("latin-1"))
    done = graph("-tp", rank, "-o", tmp_path / "out")
    assert done.returncode in (0, 3), done.stderr
    if done.returncode == 3:
        assert_refused(done, 3, file)
        assert left_in(tmp_path / "out") == []


def test_missing_file(tmp_path):
    rank = make_rank(tmp_path / "a")
    (rank / "construct.json").unlink()
    assert_refused(graph("-tp", rank, "-o", tmp_path / "out"), 3, "no construct.json: a graph needs a dump at level L0")


@pytest.mark.parametrize("content", ["", "{}"])
def test_a_dump_without_structure(tmp_path, content):
    rank = make_rank(tmp_path / "a")
    (rank / "construct.json").write_text(content)
    done = graph("-tp", rank, "-o", tmp_path / "out")
    assert_refused(done, 3, "construct.json", "a graph needs a dump at level L0 or mix")


@pytest.mark.parametrize(
    "text,side",
    [
        ("# names\nMLP:\n  up: down\n", "target"),
        ("\nTopLayer:\n  fc: other\n", "golden run"),
        ("TopLayer: {fc: fc}", ""),
    ],
)
def test_a_layer_mapping_that_matches_nothing_is_told(tmp_path, text, side):
    a, b = make_rank(tmp_path / "a"), make_rank(tmp_path / "b")
    (tmp_path / "map.yaml").write_text(text)
    for command in ("graph_visualize", "compare"):
        done = run([command, "-tp", a, "-gp", b, "-o", tmp_path / command, "-lm", tmp_path / "map.yaml"])
        said = [line for line in done.stderr.splitlines() if "map.yaml matches nothing" in line]
        assert len(said) == (1 if side else 0), done.stderr
        if side:
            assert f"the {side} has nothing" in said[0] and "line 3, " in said[0]


def test_truncated_dump_works_with_a_warning(tmp_path):
    rank = make_rank(tmp_path / "a", calls=50)
    text = (rank / "dump.json").read_text()
    (rank / "dump.json").write_text(text[: len(text) // 2])
    done = graph("-tp", rank, "-o", tmp_path / "out")
    assert done.returncode == 3 and "was cut" in done.stdout.splitlines()[0]
    assert "[msprobe] warning:" in done.stderr and "dump.json" in done.stderr


def test_empty_structure_asks_for_another_level(tmp_path):
    rank = write_rank(tmp_path / "a", {}, {"Torch.x.0.forward": op()})
    assert_refused(graph("-tp", rank, "-o", tmp_path / "out"), 3, "L0 or mix")


def test_kinds_differ(tmp_path):
    make_rank(tmp_path / "a" / "step0" / "rank0")
    make_rank(tmp_path / "b" / "step0" / "rank0")
    done = graph("-tp", tmp_path / "a", "-gp", tmp_path / "b" / "step0", "-o", tmp_path / "out")
    assert_refused(done, 3, "same kind")


def test_nothing_in_common(tmp_path):
    make_rank(tmp_path / "a" / "rank0")
    make_rank(tmp_path / "b" / "rank1")
    assert_refused(graph("-tp", tmp_path / "a", "-gp", tmp_path / "b", "-o", tmp_path / "out"), 3, "no rank in common")
    make_rank(tmp_path / "c" / "step0" / "rank0")
    make_rank(tmp_path / "d" / "step1" / "rank0")
    assert_refused(graph("-tp", tmp_path / "c", "-gp", tmp_path / "d", "-o", tmp_path / "out"), 3, "no step in common")


def test_ranks_that_only_one_side_has_are_named(tmp_path):
    for rank in ("a/rank0", "a/rank1", "b/rank1"):
        make_rank(tmp_path / rank)
    done = graph("-tp", tmp_path / "a", "-gp", tmp_path / "b", "-o", tmp_path / "out")
    assert done.returncode == 0 and f"{tmp_path}/b has no rank0: left out" in done.stderr
    done = graph("-tp", tmp_path / "b", "-gp", tmp_path / "a", "-o", tmp_path / "out")
    assert done.returncode == 0 and f"{tmp_path}/b has no rank0: left out" in done.stderr


def test_steps_that_only_one_side_has_are_named(tmp_path):
    for step in ("a/step1", "a/step2", "b/step2", "b/step3"):
        make_rank(tmp_path / step / "rank0")
    done = graph("-tp", tmp_path / "a", "-gp", tmp_path / "b", "-o", tmp_path / "out")
    assert done.returncode == 0
    assert f"{tmp_path}/b has no step1: left out" in done.stderr
    assert f"{tmp_path}/a has no step3: left out" in done.stderr


def test_tasks_that_do_not_go_together(tmp_path):
    stats, structure = make_rank(tmp_path / "a"), make_rank(tmp_path / "s", task="structure")
    assert_refused(graph("-tp", stats, "-gp", structure, "-o", tmp_path / "out"), 3, "same task")
    md5 = make_rank(tmp_path / "m")
    (md5 / "dump.json").write_text(
        (md5 / "dump.json").read_text().replace('"Norm": 1.0', '"Norm": 1.0, "md5": "0badcafe"')
    )
    assert_refused(graph("-tp", stats, "-gp", md5, "-o", tmp_path / "out"), 3, "checksums")
    tensor = make_rank(tmp_path / "t", task="tensor")
    assert_refused(graph("-tp", tensor, "-gp", stats, "-o", tmp_path / "out"), 3, "same task")
    assert left_in(tmp_path / "out") == []


def test_output_is_a_file(tmp_path):
    rank = make_rank(tmp_path / "a")
    (tmp_path / "file").write_text("mine")
    assert_refused(graph("-tp", rank, "-o", tmp_path / "file"), 3, "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_output_cannot_be_made(tmp_path):
    assert_refused(graph("-tp", make_rank(tmp_path / "a"), "-o", "/proc/here"), 3, "/proc/here")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_output_is_not_writable(tmp_path):
    out = tmp_path / "out"
    out.mkdir(mode=0o550)
    assert_refused(graph("-tp", make_rank(tmp_path / "a"), "-o", out), 3, "not writable")


def run_limited(args, limit):
    """With files cut at `limit` bytes: to the command, a disk that is full."""

    def prepare():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [find_command(), "graph_visualize", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=prepare)


@pytest.mark.parametrize("limit", [0, 100_000, 1_000_000])
def test_full_disk_leaves_nothing(tmp_path, limit):
    rank = make_rank(tmp_path / "a", calls=4000)
    done = run_limited(["-tp", rank, "-gp", rank, "-o", tmp_path / "out"], limit)
    assert_refused(done, 4, "could not be written")
    assert left_in(tmp_path / "out") == []


def test_ctrl_c_leaves_nothing(tmp_path):
    rank = make_rank(tmp_path / "a", calls=40000)
    command = [find_command(), "graph_visualize", "-tp", rank, "-gp", rank, "-o", tmp_path / "out"]
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not left_in(tmp_path / "out") and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert left_in(tmp_path / "out") == []


def test_an_older_result_is_kept_when_a_run_fails(tmp_path):
    rank = make_rank(tmp_path / "a", calls=4000)
    graph("-tp", rank, "-o", tmp_path / "out")
    before = left_in(tmp_path / "out")
    run_limited(["-tp", rank, "-o", tmp_path / "out"], 100_000)
    assert left_in(tmp_path / "out") == before
    db = sqlite3.connect(only_db(tmp_path / "out"))
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


def test_one_thread_gives_the_same_rows(tmp_path):
    a, b = make_rank(tmp_path / "a", 2.0, calls=500), make_rank(tmp_path / "b", calls=500)
    rows = []
    for threads in ("1", "3"):
        out = tmp_path / threads
        graph("-tp", a, "-gp", b, "-o", out, env={"MSPROBE_THREADS": threads})
        db = sqlite3.connect(only_db(out))
        rows.append(db.execute("SELECT * FROM tb_nodes ORDER BY graph_id, node_order").fetchall())
        db.close()
    assert len(rows[0]) == 1004 and rows[0] == rows[1]
