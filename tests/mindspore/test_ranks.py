"""Several processes of MindSpore on this machine: the groups of communication Primitives link their ranks."""

import json
import os
import pathlib
import socket
import sqlite3
import subprocess

import pytest
from graph_cases import run

HERE = pathlib.Path(__file__).parent


def record(python, folder, *arguments):
    """The step of a run of two ranks."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        python.parent / "msrun",
        "--worker_num=2",
        "--local_worker_num=2",
        f"--master_port={port}",
        "--join=True",
    ]
    command += ["--cluster_time_out=120", f"--log_dir={folder / 'logs'}", HERE / "ranks_scenario.py", folder / "dump"]
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"  # msrun starts "python"
    words = [str(part) for part in [*command, *arguments]]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=300, cwd=folder, env={**os.environ, "PATH": path}
    )
    logs = "".join(path.read_text(errors="replace")[-1500:] for path in sorted((folder / "logs").glob("worker*")))
    assert done.returncode == 0, done.stderr[-1500:] + logs
    return folder / "dump" / "step0"


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory, mindspore_python):
    return record(mindspore_python, tmp_path_factory.mktemp("ranks"))


def test_communications_say_their_group(two_ranks):
    for rank in (0, 1):
        dump = json.loads((two_ranks / f"rank{rank}" / "dump.json").read_text())["data"]
        reduce, gather = (dump[f"Primitive.{name}.forward"] for name in ("reduce.AllReduce.0", "gather.AllGather.0"))
        assert reduce["attributes"] == {
            "op": {"type": "str", "value": "sum"},
            "group": {"type": "str", "value": "tp-0-1"},
        }
        assert gather["attributes"]["group"]["value"].endswith("_world_group")
        assert "attributes" not in dump["Primitive.matmul.MatMul.0.forward"]


def graph(out, *arguments):
    summary = json.loads(run(["graph_visualize", *arguments, "-o", out, "--json"], env={"MSPROBE_PLAIN": "1"}).stdout)
    db = sqlite3.connect(f"file:{summary['file']}?immutable=1", uri=True)
    rows = db.execute("SELECT rank, node_name, is_distributed, matched_distributed FROM tb_nodes").fetchall()
    db.close()
    return summary, rows


def test_their_nodes_are_linked(two_ranks, tmp_path):
    summary, rows = graph(tmp_path, "-tp", two_ranks)
    linked = {(rank, name): json.loads(link) for rank, name, _, link in rows if link != "{}"}
    names = ("Primitive.reduce.AllReduce.0.forward", "Primitive.gather.AllGather.0.forward")
    assert set(linked) == {(rank, name) for rank in (0, 1) for name in names}
    for (rank, name), link in linked.items():
        assert link["nodes_info"][str(1 - rank)][1] == name
    assert {name for _, name, distributed, _ in rows if distributed} == set(names)
    assert summary["findings"] == []


def test_they_are_merged(two_ranks, tmp_path):
    _, rows = graph(tmp_path, "-tp", two_ranks, "--rank_size", "2", "--tp", "2", "--pp", "1")
    assert {rank for rank, *_ in rows} == {0}
    assert any(name == "Primitive.reduce.AllReduce.0.forward" for _, name, *_ in rows)


def test_a_fault_is_of_the_rank_where_it_began(two_ranks, tmp_path, mindspore_python):
    faulty = record(mindspore_python, tmp_path, "1")
    done = run(["compare", "-tp", faulty, "-gp", two_ranks, "-o", tmp_path / "out", "--json"], check=False)
    origins = json.loads(done.stdout)["verdict"]["origins"]
    assert [(origin["ranks"], origin["module"], origin["parameter"]) for origin in origins] == [([1], "down", "weight")]
