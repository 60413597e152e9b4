"""Graphs against what the old tool wrote, cell by cell; where ours differs on purpose, exactly that difference is expected."""

import json
import re
from pathlib import Path

import pytest
from graph_cases import (
    MERGED,
    MERGED_DUMPS,
    assert_only_gradients_and_links_differ,
    assert_refused,
    case_names,
    differences,
    golden_set,
    layout,
    only_db,
    read_db,
    run,
    run_case,
    schema,
    write_rank,
)

SMALL = sorted(p.parent for p in (Path(__file__).parent / "graph").glob("*/options.json"))

# Every case of the large set stands in exactly one of the following lists.
AGREE = """vis_build vis_build_L0 vis_build_m2 vis_build_m3 vis_build_md5 vis_build_oc vis_build_step vis_build_steps vis_build_struct
 vis_cmp_L0 vis_cmp_bf16 vis_cmp_ckpt vis_cmp_ckpt_fm vis_cmp_extra vis_cmp_extra_fm vis_cmp_lm_empty vis_cmp_m2 vis_cmp_md5 vis_cmp_nan
 vis_cmp_nan_oc vis_cmp_proc vis_cmp_ren vis_cmp_rope vis_cmp_steps vis_cmp_struct vis_cmp_weight""".split()
# Agree but for the directory of the tensors, and within 1e-9 in metrics: the old tool sums in the order of its library.
AGREE_TENSORS = ["vis_cmp_tensor", "vis_cmp_tensor_bf16", "vis_ranks_cmp_tensor"]
# Ours differ on purpose, and exactly as the test of the case says.
MOVED_GRADS = "vis_ranks_build vis_ranks_build_oc vis_ranks_cmp vis_ranks_cmp_steps vis_ranks_p2p".split()
DIFFERENT = ["vis_build_tensor", "vis_cmp_ren_lm", *MOVED_GRADS, *MERGED, *MERGED_DUMPS]
# Both tools refuse; the old tool with a traceback.
WRONG_INPUT = [("vis_build_L1", 3, "L0 or mix"), ("vis_merge_bad", 3, "holds 4 ranks")]


@pytest.mark.parametrize("case", SMALL, ids=lambda p: p.name)
def test_small_case(case, tmp_path):
    options = json.loads((case / "options.json").read_text())
    run(["graph_visualize", "-tp", case / "target", "-gp", case / "golden", "-o", tmp_path, *options])
    stored = json.loads((case / "expected.json").read_text())
    expected = {t: {row[0]: dict(zip(v["columns"], row)) for row in v["rows"]} for t, v in stored.items()}
    got = read_db(only_db(tmp_path))
    if case.name.startswith("ranks"):
        assert_only_gradients_and_links_differ(expected, got)
    else:
        assert differences(expected, got) == []


def test_every_case_is_judged():
    judged = AGREE + AGREE_TENSORS + DIFFERENT + [case for case, _, _ in WRONG_INPUT]
    assert len(judged) == len(set(judged))
    assert set(judged) == case_names("vis_")


def both_layouts(case, out):
    """The database of a case as the old tool wrote it, and ours, read through the view; the plain one is the same."""
    root, done = run_case(case, out / "compact")
    _, again = run_case(case, out / "plain", env={"MSPROBE_PLAIN": "1"})
    told = [re.sub(r"^graph: .*\n| \(.*_structure.json\)", "", d.stdout, flags=re.M) for d in (done, again)]
    assert told[0] == told[1], "the summary, but for names of files"
    want, got, plain = (only_db(d) for d in (root / "expected" / case / "out", out / "compact", out / "plain"))
    assert schema(want) == schema(got)
    assert layout(want) == layout(plain)
    rows = read_db(got)
    assert differences(rows, read_db(plain)) == []
    return read_db(want), rows


def golden_differences(case, out):
    """What our databases of a case have otherwise than the old tool's."""
    return differences(*both_layouts(case, out))


@pytest.mark.parametrize("case", AGREE)
def test_golden_set(case, tmp_path):
    assert golden_differences(case, tmp_path) == []


def fields_that_differ(theirs, ours):
    """[(parameter, field, theirs, ours)] of two columns of parameters."""
    a, b = json.loads(theirs), json.loads(ours)
    assert {p: list(fields) for p, fields in a.items()} == {p: list(fields) for p, fields in b.items()}
    return [(p, f, a[p][f], b[p][f]) for p in a for f in a[p] if a[p][f] != b[p][f]]


@pytest.mark.parametrize("case", AGREE_TENSORS)
def test_golden_set_of_tensors(case, tmp_path):
    found = golden_differences(case, tmp_path)
    rules = []
    for _, row, column, theirs, ours in found:
        if column == "dump_data_dir" or (column == "matched_distributed" and theirs == "{}"):
            continue
        assert column in ("input_data", "output_data"), (row, column)
        for param, field, a, b in fields_that_differ(theirs, ours):
            if field == "Err_message":
                rules.append((param, a, b))
            else:
                assert field == "EucDist" and float(b) == pytest.approx(float(a), rel=1e-9), (param, field, a, b)
    # The text of the rule says 0.6 and the old tool's code 0.1: two outputs that are errors anyway lie in between.
    assert len(rules) == (2 if case == "vis_cmp_tensor_bf16" else 0)
    assert all(json.loads(b)[1:] == json.loads(a) and "output < 0.6" in b for _, a, b in rules)


@pytest.mark.parametrize("case", MOVED_GRADS)
def test_golden_set_of_ranks(case, tmp_path):
    """The old tool gives all gradients of a module to one of its calls, and links calls with keyword arguments only."""
    want, tables = both_layouts(case, tmp_path)
    links = assert_only_gradients_and_links_differ(want, tables)
    for key, link in links.items():
        row = tables["tb_nodes"][key]
        for rank, (_, partner) in link["nodes_info"].items():
            back = tables["tb_nodes"][f"{row['data_source']}_{row['step']}_{rank}_{partner}"]
            assert json.loads(back["matched_distributed"])["nodes_info"][str(row["rank"])][1] == row["node_name"]
    linked = {json.loads(r["matched_distributed"]) != {} for r in tables["tb_nodes"].values() if r["is_distributed"]}
    assert linked == {True}
    api = {tables["tb_nodes"][key]["node_name"].split(".")[1] for key in links}
    if case == "vis_ranks_p2p":
        assert api == {"batch_isend_irecv"} and len(links) == 8
    else:
        assert "all_gather_into_tensor" in api  # of the default group


def test_golden_set_gradients_of_renamed_layers_match(tmp_path):
    """The old tool loses the gradients of parameters as soon as their layer has another name."""
    found = golden_differences("vis_cmp_ren_lm", tmp_path)
    rows = {row for _, row, *_ in found}
    assert len(rows) == 16 and all(row.endswith(".parameters_grad.0") for row in rows)
    links = {row: (theirs, json.loads(ours)) for _, row, column, theirs, ours in found if column == "matched_node_link"}
    assert set(links) == rows and all(theirs == "[]" for theirs, _ in links.values())
    name = "Module.model.layers.0.self_attention.linear_q.Linear.parameters_grad.0"
    assert links[f"NPU_0_0_{name}"][1][-1] == "Module.model.layers.0.self_attn.q_proj.Linear.parameters_grad.0"
    assert [ours for _, row, column, _, ours in found if column == "precision_index"] == [0] * 8


def test_golden_set_tensors_are_where_the_dump_is_now(tmp_path):
    """Both tools look beside the dump when the directory that it names is gone; the set was made elsewhere."""
    found = golden_differences("vis_build_tensor", tmp_path)
    here = golden_set().resolve() / "data" / "m1_mix_tensor" / "bench" / "step0" / "rank0" / "dump_tensor_data"
    assert {(d[2], d[4]) for d in found} <= {("dump_data_dir", str(here))}


@pytest.mark.parametrize("case,code,word", WRONG_INPUT, ids=lambda v: str(v))
def test_refused_with_one_line(case, code, word, tmp_path):
    assert_refused(case, code, word, tmp_path / "out")


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


def test_ignored_functions_are_ignored_without_inputs_too(tmp_path):
    """The old tool takes the name of the function from the first input."""
    name = "Torch.empty.0.forward"
    for side, top in (("a", float("inf")), ("b", 1.0)):
        op = {"input_args": [], "input_kwargs": {}, "output": [{**tensor(), "Max": top}]}
        write_rank(tmp_path / side, {name: None}, {name: op})
    got = nodes(build(tmp_path, "-tp", tmp_path / "a", "-gp", tmp_path / "b"))[name]
    assert json.loads(got["output_data"])[f"{name}.output.0"]["Result"] == "pass"


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
