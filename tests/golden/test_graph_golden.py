"""Graphs against what the old tool wrote, cell by cell; where ours differs on purpose, exactly that difference is expected."""

import json
from pathlib import Path

import pytest
from graph_cases import differences, find_command, golden_set, only_db, read_db, run, schema, write_rank

SMALL = sorted(p.parent for p in (Path(__file__).parent / "graph").glob("*/options.json"))
LARGE = """vis_build vis_build_L0 vis_build_m2 vis_build_m3 vis_build_md5 vis_build_oc vis_build_step vis_build_steps vis_build_struct
 vis_build_tensor vis_cmp_L0 vis_cmp_bf16 vis_cmp_ckpt vis_cmp_ckpt_fm vis_cmp_extra vis_cmp_extra_fm vis_cmp_m2 vis_cmp_md5 vis_cmp_nan
 vis_cmp_nan_oc vis_cmp_proc vis_cmp_ren vis_cmp_rope vis_cmp_steps vis_cmp_struct vis_cmp_weight vis_ranks_build vis_ranks_build_oc
 vis_ranks_cmp vis_ranks_cmp_steps vis_ranks_p2p""".split()


@pytest.mark.parametrize("case", SMALL, ids=lambda p: p.name)
def test_small_case(case, tmp_path):
    options = json.loads((case / "options.json").read_text())
    run(["graph_visualize", "-tp", case / "target", "-gp", case / "golden", "-o", tmp_path, *options])
    stored = json.loads((case / "expected.json").read_text())
    expected = {t: {row[0]: dict(zip(v["columns"], row)) for row in v["rows"]} for t, v in stored.items()}
    assert differences(expected, read_db(only_db(tmp_path))) == []


@pytest.mark.parametrize("case", LARGE)
def test_golden_set(case, tmp_path):
    find_command()
    root = golden_set()
    info = json.loads((root / "expected" / case / "case.json").read_text())
    run([a.replace("@OUT", str(tmp_path)) for a in info["argv"][1:]], cwd=root)
    want, got = only_db(root / "expected" / case / "out"), only_db(tmp_path)
    assert schema(want) == schema(got)
    found = differences(read_db(want), read_db(got))
    if case == "vis_ranks_p2p":  # the calls of a batch are linked
        assert {(d[1].rsplit(".", 2)[0].split("_", 3)[3], d[2], d[3]) for d in found} == {
            ("Distributed.batch_isend_irecv", "matched_distributed", "{}")
        }
        assert len(found) == 8
        found = []
    if case == "vis_build_tensor":  # tensors are where the dump is now
        here = (root / info["argv"][3] / "dump_tensor_data").resolve()
        assert {(d[2], d[4]) for d in found} <= {("dump_data_dir", str(here))}
        found = []
    assert found == []


def test_golden_set_without_structure(tmp_path):
    root = golden_set()
    info = json.loads((root / "expected" / "vis_build_L1" / "case.json").read_text())
    done = run([a.replace("@OUT", str(tmp_path / "out")) for a in info["argv"][1:]], cwd=root, check=False)
    assert done.returncode == 3
    assert "L0 or mix" in done.stderr


def tensor(norm=1.0, **more):
    base = {
        "type": "torch.Tensor",
        "dtype": "torch.float32",
        "shape": [2],
        "Max": 1.0,
        "Min": 0.0,
        "Mean": 0.5,
        "Norm": norm,
    }
    return {**base, "requires_grad": False, **more}


def nodes(path):
    return {row["node_name"]: row for row in read_db(path)["tb_nodes"].values() if row["data_source"] == "NPU"}


def build(tmp_path, *args):
    run(["graph_visualize", *args, "-o", tmp_path / "out"])
    return only_db(tmp_path / "out")


def test_orphans_hang_under_the_root(tmp_path):
    """The old tool drops a subtree whose parent has no line of its own."""
    rank = write_rank(
        tmp_path / "a", {"Torch.x.0.forward": "Module.lost.L.forward.0", "Module.m.M.forward.0": None}, {}
    )
    done = run(["graph_visualize", "-tp", rank, "-o", tmp_path / "out"])
    got = nodes(only_db(tmp_path / "out"))
    assert got["Module.lost.L.forward.0"]["up_node"] == "DefaultModel"
    assert got["Torch.x.0.forward"]["up_node"] == "Module.lost.L.forward.0"
    assert json.loads(got["DefaultModel"]["sub_nodes"]) == ["Module.lost.L.forward.0", "Module.m.M.forward.0"]
    assert "1 nodes name a parent" in done.stderr


def test_a_module_called_output_keeps_its_weights_among_the_inputs(tmp_path):
    """The old tool goes by the name and lists the weights of BERT's output layers as outputs."""
    name = "Module.bert.output.dense.Linear.forward.0"
    op = {"input_args": [tensor()], "input_kwargs": {}, "output": [tensor()], "parameters": {"weight": tensor()}}
    rank = write_rank(tmp_path / "a", {name: None}, {name: op})
    got = nodes(build(tmp_path, "-tp", rank))[name]
    assert list(json.loads(got["input_data"])) == [f"{name}.input.0", f"{name}.parameters.weight"]
    assert list(json.loads(got["output_data"])) == [f"{name}.output.0"]


def test_uninitialised_memory_passes_in_md5_mode_too(tmp_path):
    """The old tool gives such nodes index 1 (an error) in md5 mode, the opposite of what it does in the other modes."""
    name = "Torch.empty.0.forward"
    for side, md5 in (("a", "0badcafe"), ("b", "deadbeef")):
        write_rank(
            tmp_path / side, {name: None}, {name: {"input_args": [], "input_kwargs": {}, "output": [tensor(md5=md5)]}}
        )
    got = nodes(build(tmp_path, "-tp", tmp_path / "a", "-gp", tmp_path / "b"))
    assert got[name]["precision_index"] == 0


def test_batches_are_linked_across_ranks(tmp_path):
    """The old tool forgets peer and direction before it looks for partners."""
    name = "Distributed.batch_isend_irecv.0.forward"
    for rank in range(2):
        p2p = {
            "class_type": "torch.distributed.P2POp",
            "op": ["isend", "irecv"][rank],
            "peer": 1 - rank,
            "tag": 0,
            "group_id": "g",
        }
        data = {
            name: {
                "input_args": [[{**p2p, "tensor": tensor()}]],
                "input_kwargs": {},
                "output": [[{**p2p, "tensor": tensor()}]],
            }
        }
        write_rank(tmp_path / "step0" / f"rank{rank}", {name: None}, data)
    rows = read_db(build(tmp_path, "-tp", tmp_path / "step0"))["tb_nodes"]
    assert json.loads(rows[f"NPU_0_0_{name}"]["matched_distributed"]) == {
        "communications_type": "send",
        "nodes_info": {"1": ["Nan", name]},
    }
    assert json.loads(rows[f"NPU_0_1_{name}"]["matched_distributed"])["communications_type"] == "receive"
    assert "peer" not in rows[f"NPU_0_0_{name}"]["input_data"]


def test_steps_are_in_numeric_order(tmp_path):
    """The old tool builds step10 before step2, and which rank describes the file is a matter of chance."""
    for step, calls in ((10, 1), (2, 3)):
        construct = {f"Module.m.M.{d}.{i}": None for i in range(calls) for d in ("forward", "backward")}
        write_rank(tmp_path / "dump" / f"step{step}" / "rank0", construct, {})
    tables = read_db(build(tmp_path, "-tp", tmp_path / "dump"))
    steps = [row["step"] for row in tables["tb_nodes"].values()]
    assert steps == sorted(steps)
    config = tables["tb_config"]["1"]
    assert (config["step_list"], config["micro_steps"]) == ("[2, 10]", 3)
