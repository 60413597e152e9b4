"""Graphs of kernel dumps of MindSpore: kernels stand under the Cells that the execution order or the saved graph names."""

import csv
import json
import sqlite3
import sys
from pathlib import Path

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import only_db, run

BLOCK = "network-WithLossCell/_backbone-Net/blocks-CellList/{}-Block/up_proj-Dense"
# As a training step of two blocks has them, of a release that sums residual gradients in the first block.
ORDER = [
    f"Default/{BLOCK.format(0)}/MatMul-op0",
    "Expand/_SumExt/ReduceSum-op0",
    f"Default/{BLOCK.format(1)}/MatMul-op0",
    f"Default/{BLOCK.format(1)}/BiasAdd-op0",
    f"Gradients/Default/{BLOCK.format(1)}/Grad_MatMul/MatMul-op3",
]
UNLISTED = f"Gradients/Default/{BLOCK.format(1)}/Grad_MatMul/AddN-op0"
ROWS = numpy.arange(1, 7, dtype=numpy.float32).reshape(2, 3)


def dump(folder, scale=1.0, order=ORDER, step=0, constant=1.0, code=True):
    """What MindSpore 2.10 writes of a graph, and constants as releases for other devices write them."""
    rank = folder / "rank_0"
    place = rank / "Net" / "0" / str(step)
    place.mkdir(parents=True)
    time = 1795622338000000

    def save(kind, name, io, index, array):
        nonlocal time
        time += 40
        numpy.save(place / f"{kind}.{name}.0.0.{time}.{io}.{index}.DefaultFormat.Float32.npy", array)

    for scope in [*order, UNLISTED]:
        kind = scope.rsplit("/", 1)[1].split("-")[0]
        factor = scale if "1-Block" in scope else 1.0
        name = scope.replace("/", "_")
        save(kind, name, "input", 0, ROWS)
        save(kind, name, "input", 1, ROWS * factor)
        save(kind, name, "output", 0, ROWS * 2 * factor)
    save("Parameter", "blocks_1_up_proj_weight", "output", 0, ROWS * scale * 0.5)
    constants = rank / "Net" / "0" / "constants"
    constants.mkdir()
    numpy.save(constants / "Parameter.data-7.0.0.5.output.0.DefaultFormat.Float32.npy", ROWS * constant)
    lists = rank / "execution_order"
    lists.mkdir()
    (lists / "ms_execution_order_graph_0.csv").write_text(
        "\n".join(["NodeExecutionOrder-FullNameWithScope", *order, ""])
    )
    (lists / "ms_global_execution_order_graph_0.csv").write_text(f"{step}\n")
    if code:
        graphs = rank / "graphs"
        graphs.mkdir()
        nodes = [
            f"  %{i}(CNode_{i}) = MatMul(%a, %b)\n      # Fullname with scope: ({scope})\n"
            f"      # In file /home/u/net.py:{10 + i}~{12 + i}, 8~30/        return self.up_proj(x)/\n"
            for i, scope in enumerate(order)
        ]
        (graphs / "ms_output_trace_code_graph_0.ir").write_text("".join(nodes))
    return folder


def nodes(folder):
    with sqlite3.connect(only_db(folder)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute("SELECT * FROM tb_nodes ORDER BY node_order")]


def test_kernels_stand_under_their_cells(tmp_path):
    target, golden = dump(tmp_path / "t", scale=1.25), dump(tmp_path / "g")
    done = run(["graph_visualize", "-tp", target, "-gp", golden, "-o", tmp_path / "out"])
    assert "network._backbone.blocks.1.up_proj" in done.stdout and "5/4 times" in done.stdout
    assert "stand at the top" not in done.stderr
    rows = [row for row in nodes(tmp_path / "out") if row["data_source"] == "NPU"]
    parent = {row["node_name"]: row["up_node"] for row in rows}
    block = "network._backbone.blocks.1.up_proj"
    assert parent[f"Kernel.{block}.MatMul.0.forward"] == f"Cell.{block}.Dense.forward.0"
    assert parent[f"Kernel.{block}.MatMul.3.backward"] == f"Cell.{block}.Dense.backward.0"
    assert parent[f"Kernel.{block}.AddN.0.backward"] == f"Cell.{block}.Dense.backward.0", "not in the order"
    assert parent[f"Cell.{block}.Dense.forward.0"] == "Cell.network._backbone.blocks.1.Block.forward.0"
    stacks = {row["node_name"]: row["stack_id"] for row in rows}
    assert stacks[f"Kernel.{block}.BiasAdd.0.forward"] and not list((tmp_path / "out").glob(".*"))


def test_a_graph_needs_two_of_a_kind(tmp_path):
    kernels = dump(tmp_path / "t")
    (tmp_path / "g").mkdir()
    done = run(["graph_visualize", "-tp", kernels, "-gp", tmp_path / "g", "-o", tmp_path / "out"], check=False)
    assert done.returncode == 3 and "holds kernels (rank_N)" in done.stderr and not (tmp_path / "out").exists()


def test_without_order_and_graph_kernels_stand_at_the_top(tmp_path):
    kernels = dump(tmp_path / "t", code=False)
    (kernels / "rank_0/execution_order/ms_execution_order_graph_0.csv").write_text("something else\n")
    done = run(["graph_visualize", "-tp", kernels, "-o", tmp_path / "out"])
    assert "6 kernels below" in done.stderr and "is no execution order of MindSpore" in done.stderr
    assert "Kernel.MatMul.3.backward" in {row["node_name"] for row in nodes(tmp_path / "out")}


def table(folder):
    (path,) = folder.glob("compare_result_0_0_*.csv")
    with path.open(newline="") as file:
        return [Path(row["NPU Name"] or row["Bench Name"]).name.split(".")[:2] for row in csv.DictReader(file)]


def test_rows_stand_in_the_execution_order(tmp_path):
    target, golden = dump(tmp_path / "t", scale=1.25), dump(tmp_path / "g", constant=3.0)
    done = run(["compare", "-tp", target, "-gp", golden, "-o", tmp_path / "out", "--json"])
    told = json.loads(done.stdout)
    assert told["execution_orders"] == [
        {"rank": 0, "graph": "Net/0", "target_kernels": 5, "golden_kernels": 5, "same": True}
    ]
    assert told["verdict"]["origins"][0]["op"] == "data-7.0", "a constant is there before any kernel"
    rows = table(tmp_path / "out")
    assert rows[0] == ["Parameter", "data-7"] and rows[-1] == ["Parameter", "blocks_1_up_proj_weight"]
    listed = [name for _, name in rows[1:-1:3]]
    assert listed == [scope.replace("/", "_") for scope in [*ORDER, UNLISTED]]
    run(["compare", "-tp", target, "-gp", golden, "-o", tmp_path / "plain", "--plain"])
    assert table(tmp_path / "plain") == sorted(rows[1:], key=lambda row: row[1]), "as mindstudio-probe has them"


@pytest.mark.parametrize(
    "order, first",
    [([ORDER[0], ORDER[2], *ORDER[1:2], *ORDER[3:]], (1, ORDER[2], ORDER[1])), (ORDER[:4], (4, "", ORDER[4]))],
    ids=["exchanged", "shorter"],
)
def test_where_two_execution_orders_part(tmp_path, order, first):
    target, golden = dump(tmp_path / "t", order=order), dump(tmp_path / "g", step=0)
    (golden / "rank_0/execution_order/ms_global_execution_order_graph_0.csv").write_text("0\n1\n")
    done = run(["compare", "-tp", target, "-gp", golden, "-o", tmp_path / "out", "--json"])
    (told,) = json.loads(done.stdout)["execution_orders"]
    assert not told["same"] and (told["first"], told["target"], told["golden"]) == first
    assert "ran in iterations 0 in the target, in 0, 1 in the golden run" in done.stderr
    text = run(["compare", "-tp", target, "-gp", golden, "-o", tmp_path / "text"]).stdout
    assert f"different from kernel {first[0] + 1} on" in text
