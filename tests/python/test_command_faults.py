"""Commands under faults: limits of files and of memory, commands that were killed, links to nothing, files that end
early. Each ends with a sentence and its exit code, never with a signal."""

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from served import dump, serving

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import find_command

BAD_INPUT, INTERNAL = 3, 4


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for name, shift in (("a", 0.25), ("b", 0)):
        for step in range(2):
            for rank in range(2):
                dump(root / name / f"step{step}" / f"rank{rank}", shift, False)
    return root


def run(*args, before=None):
    return subprocess.run(
        [find_command(), *map(str, args)], capture_output=True, text=True, check=False, timeout=120, preexec_fn=before
    )


def commands(target, golden, out):
    return {
        "compare": ["compare", "-tp", target, "-gp", golden, "-o", out],
        "graph_visualize": ["graph_visualize", "-tp", target, "-gp", golden, "-o", out],
        "data2db": ["data2db", "--data", target, "--db", out],
        "doctor": ["doctor", target, golden, "-o", out],
    }


NAMES = list(commands("", "", ""))


def temporary(directory):
    return sorted(path.name for path in directory.rglob("*") if ".tmp" in path.name or path.name.startswith("."))


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_on_the_size_of_files(runs, tmp_path, name):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

    done = run(*commands(runs / "a", runs / "b", tmp_path)[name], before=limit)
    assert done.returncode == INTERNAL, (done.returncode, done.stderr)
    assert "could not be written" in done.stderr and "choose another directory" in done.stderr
    assert not temporary(tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_little_memory_is_said(runs, tmp_path, name):
    """The answer is the same as with enough of it, or that there was too little."""
    command = commands(runs / "a", runs / "b", tmp_path)[name]
    expected = run(*command).returncode
    codes = []
    for megabytes in (30, 40, 60, 100, 200, 2000):
        limit = (megabytes << 20, megabytes << 20)
        done = run(*command, before=partial(resource.setrlimit, resource.RLIMIT_AS, limit))
        codes.append(done.returncode)
        if "error while loading shared libraries" in done.stderr:  # it was not begun
            continue
        assert done.returncode in (expected, INTERNAL), (megabytes, done.returncode, done.stderr)
        if done.returncode == INTERNAL:
            assert "out of memory" in done.stderr and not temporary(tmp_path), (megabytes, done.stderr)
    assert codes[-1] == expected


def large(root):
    """A dump whose graph takes a while to write."""
    dump(root, 0, False)
    for name in ("dump.json", "construct.json"):
        made = json.loads((root / name).read_text())
        ops = made["data"] if name == "dump.json" else made
        for i in range(1, 20_000):
            ops[f"Torch.add.{i}.forward"] = ops["Torch.add.0.forward"]
        (root / name).write_text(json.dumps(made))
    return root


@pytest.mark.parametrize("waited", [True, False], ids=["waited", "zombie"])
def test_what_a_killed_command_left_is_removed(runs, tmp_path, waited):
    """Also where nobody waits for the killed process, as in a container."""
    slow, out = large(tmp_path / "large" / "rank0"), tmp_path / "out"
    killed = subprocess.Popen([find_command(), "graph_visualize", "-tp", str(slow), "-o", str(out)])
    left = []
    while killed.poll() is None and not left:
        left = [path for path in out.glob("*.tmp*")]
    killed.kill()
    os.waitid(os.P_PID, killed.pid, os.WEXITED | (0 if waited else os.WNOWAIT))
    assert left and left[0].exists(), "the command ended before it was killed"
    others = (out / left[0].name.replace(f".tmp{killed.pid}.", f".tmp{os.getpid()}."), out / "notes.tmp")
    for path in others:  # of a process that lives, and of the user
        path.write_text("")
    assert run(*commands(runs / "a", runs / "b", out)["compare"]).returncode == 0
    assert sorted(out.glob("*.tmp*")) == sorted(others)
    killed.wait()


@pytest.mark.parametrize("what", ["dump", "step1", "step1/rank1", "step1/rank1/dump.json"])
def test_a_link_to_nothing_is_named(runs, tmp_path, what):
    """Without it the other ranks would be taken for the whole run."""
    broken = tmp_path / "dump"
    if what != "dump":
        shutil.copytree(runs / "a", broken)
        path = broken / what
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    link = broken if what == "dump" else broken / what
    link.symlink_to(tmp_path / "nowhere")
    for name in ("compare", "graph_visualize", "data2db"):
        done = run(*commands(broken, runs / "b", tmp_path / "out")[name])
        assert done.returncode == BAD_INPUT, (name, done.stdout, done.stderr)
        assert f"{link} is a link to {tmp_path / 'nowhere'}, which is not there" in done.stderr, (name, done.stderr)


HEAD = "vpp_stage,name,step,micro_step,min,max,norm\n"


@pytest.mark.parametrize("cut", ["0,b,1,0,1.0,2.0\n", "0,b,1,0,1.0,2.0,3.2", "0,b,1"])
def test_the_last_row_of_a_monitor_that_was_cut(tmp_path, cut):
    """Fewer columns, or a part of a number: it is left out, and named."""
    directory = tmp_path / "Dec03_21-34-40-rank0-1a2b3c4d"
    directory.mkdir()
    file = directory / "grad_reduced_0-9.csv"
    file.write_text(HEAD + "0,a,0,0,1.0,2.0,3.0\n0,b,0,0,1.0,2.0,3.0\n0,a,1,0,1.0,2.0,3.0\n")
    whole = run("data2db", "--data", tmp_path, "--db", tmp_path / "out")
    assert whole.returncode == 0 and "3 rows of 2 targets" in whole.stdout, (whole.stdout, whole.stderr)
    file.write_text(file.read_text() + cut)
    done = run("data2db", "--data", tmp_path, "--db", tmp_path / "out")
    assert done.returncode == BAD_INPUT and "3 rows of 2 targets" in done.stdout, (done.stdout, done.stderr)
    assert f"{file}: 1 rows that were cut are left out" in done.stderr
    assert done.stdout.startswith("1 parts of the data could not be read")


def test_strangers_shut_nobody_out(runs, tmp_path):
    run(*commands(runs / "a", runs / "b", tmp_path)["graph_visualize"])
    with serving(tmp_path) as server, contextlib.ExitStack() as strangers:
        for _ in range(600):
            strangers.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
        for _ in range(10):
            assert server.api("files").status == 200


def test_a_damaged_graph_in_the_page(runs, tmp_path):
    run(*commands(runs / "a", runs / "b", tmp_path)["graph_visualize"])
    (graph,) = tmp_path.glob("*.vis.db")
    data = graph.read_bytes()
    graph.rename(tmp_path / "good.vis.db")
    for size in (0, 10, 5000, len(data) // 2, len(data) - 100):
        (tmp_path / f"cut{size}.vis.db").write_bytes(data[:size])
    with serving(tmp_path) as server:
        answer = server.api("files").json
        assert [file["file"] for file in answer["files"]] == ["good.vis.db"]
        assert len(answer["skipped"]) == 5
        for skipped in answer["skipped"]:
            assert any(words in skipped["reason"] for words in ("is damaged", "is not a SQLite", "is not a graph"))
            assert server.api("summary", file=skipped["file"], step=0, rank=0).status >= 400
