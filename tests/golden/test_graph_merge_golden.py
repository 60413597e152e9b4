"""Merged ranks against what the old tool wrote, cell by cell. What differs on purpose is named here: nodes that it loses,
products of row parallel layers, containers of pipelined layers, and what follows from these."""

import json
import re

import pytest
from graph_cases import GRAD, MERGED, MERGED_DUMPS, only_db, read_db, run_case, schema

STATISTICS = ("Max", "Min", "Mean", "Norm")
DIFFERENCES = {"Max diff": "Max", "Min diff": "Min", "Mean diff": "Mean", "L2norm diff": "Norm"}

# Rank that holds the last stage, and the name of its last chunk: what a container of pipelined layers shows.
LAST = {"vis_merge_pp_cmp": (1, "0"), "vis_merge_tppp_cmp": (2, "0"), "vis_merge_vpp": (1, "1")}
BLOCK = "Module.0.module.decoder.TransformerBlock"
GPT = "Module.0.module.GPTModel"
CONTAINERS = {
    "vis_merge_tpdp": {},
    "vis_merge_pp_cmp": {BLOCK: 4},
    "vis_merge_tppp_cmp": {BLOCK: 4},
    # The old tool also shows the first chunk's output, an activation, as that of the model: its loss.
    "vis_merge_vpp": {BLOCK: 4, GPT: 2},
}
# Nodes that the old tool loses: calls of other ranks than the first between modules, with their collections, and what
# is only in the last chunk.
LOST_CALLS = {"vis_merge_tpdp": 0, "vis_merge_pp_cmp": 8, "vis_merge_tppp_cmp": 9, "vis_merge_vpp": 6}
LOST_IN_CHUNK = {"vis_merge_vpp": 20}
# Calls that lead to other nodes: between the stages of a pipeline, and between graphs of data parallel ranks.
LINKS = {"vis_merge_tpdp": 180, "vis_merge_pp_cmp": 8, "vis_merge_tppp_cmp": 24, "vis_merge_vpp": 24}
PRODUCTS = {"vis_merge_tpdp": 32, "vis_merge_pp_cmp": 0, "vis_merge_tppp_cmp": 16, "vis_merge_vpp": 0}
# Verdicts that differ. Of a block the old tool compares outputs of the first stage with those of the whole model (a
# warning), and gradients that come into the first stage with those that come into the whole: they are as wrong as the
# gradients that leave, so it passes. Ours are equal on the way in and differ on the way out, which is the warning.
VERDICTS = {
    "vis_merge_pp_cmp": {f"{BLOCK}.forward.{i}": (0.5, 0) for i in range(2)},
    "vis_merge_tppp_cmp": {
        **{f"{BLOCK}.forward.{i}": (0.5, 0) for i in range(2)},
        **{f"{BLOCK}.backward.{i}": (0, 0.5) for i in range(2)},
        **{f"Functional.linear.{i}.forward": (0.5, 0) for i in (1, 3, 5, 11)},
    },
}

# Verdicts that are of the layout: the size of a rank's vocabulary as an argument, and what a rank finds in its part of it.
OF_LAYOUT = {
    "vis_merge_tppp_cmp": {
        **{f"Tensor.__ge__.{i}.forward": (1, 0) for i in range(2)},
        **{f"Functional.embedding.{i}.forward": (0.5, 0) for i in range(2)},
    }
}


def params(row, column):
    return json.loads(row[column])


def without_decisions(info):
    """Without what the other side's sizes say of the parts ("output.0: each rank has its own")."""
    lines = json.loads(info) if info else None
    return json.dumps([t for t in lines if not re.match(r"[\w.]+: ", t)]) if lines else info


def numbers(fields):
    return [float(fields[k]) for k in STATISTICS]


def assert_fields(ours, theirs, golden):
    """One parameter whose statistics are others than the old tool's: all else is equal, differences are recomputed."""
    assert list(ours) == list(theirs)
    for key, text in ours.items():
        if key in DIFFERENCES:
            want = float(ours[DIFFERENCES[key]]) - float(golden[DIFFERENCES[key]])
            assert float(text) == pytest.approx(want, rel=1e-9, abs=1e-15)
        elif key not in STATISTICS and key not in ("Result", "Err_message", "shape") and "RelativeErr" not in key:
            assert text == theirs[key], key


class Case:
    """What both tools wrote; `changed` collects the nodes whose values differ."""

    def __init__(self, case, out):
        self.name = case
        self.root, _ = run_case(case, out)
        want, got = only_db(self.root / "expected" / case / "out"), only_db(out)
        assert schema(want) == schema(got)
        self.theirs, self.ours = read_db(want), read_db(got)
        self.nodes, self.want = self.ours["tb_nodes"], self.theirs["tb_nodes"]
        self.new = {key: row for key, row in self.nodes.items() if key not in self.want}
        self.changed = {}
        self.target = json.loads((self.root / "expected" / case / "case.json").read_text())["argv"][3]

    def golden(self, row):
        """The partner of a node, or nothing in a build."""
        link = json.loads(row["matched_node_link"])
        return self.nodes[f"Bench_{row['step']}_{row['rank']}_{link[-1]}"] if link else None

    def is_product(self, row):
        return "The output of this data is merged from" in row["parallel_merge_info"]

    def check_product(self, key):
        """A product shows the output of the reduction, the old tool the parts as if they were a tensor."""
        row, want = self.nodes[key], self.want[key]
        ours, theirs = json.loads(row["parallel_merge_info"]), json.loads(want["parallel_merge_info"])
        (source,) = [t for t in ours if t.startswith("The output of this data")]
        assert [t for t in ours if t != source] == [t for t in theirs if " for output.0 is: " not in t]
        reduction = re.search(r"from (Distributed\.all_reduce.*)\.output\.0$", source).group(1)
        reduced = next(iter(params(self.nodes[f"{row['graph_id']}_{reduction}"], "output_data").values()))
        self.check_values(key, "output_data", numbers(reduced))

    def check_container(self, key):
        """A block of layers shows the output of the last stage; in the backward pass what comes into it."""
        row = self.nodes[key]
        rank, chunk = LAST[self.name]
        dump = json.loads((self.root / self.target / "step0" / f"rank{rank}" / "dump.json").read_text())
        op = dump["data"][row["node_name"].replace("Module.0.", f"Module.{chunk}.", 1)]
        forward = ".forward." in row["node_name"]
        (leaf,) = op["output"] if forward else op.get("input", op.get("input_args"))
        self.check_values(key, "output_data" if forward else "input_data", [leaf[k] for k in STATISTICS])

    def check_values(self, key, column, values):
        row, want = self.nodes[key], self.want[key]
        ours, theirs = params(row, column), params(want, column)
        assert list(ours) == list(theirs)
        partner = self.golden(row)
        golden = list(params(partner, column).values()) if partner else [{}] * len(ours)
        (name,) = [n for n in ours if ours[n] != theirs[n]]
        assert numbers(ours[name]) == pytest.approx(values, rel=1e-9)
        assert_fields(ours[name], theirs[name], golden[list(ours).index(name)])
        self.changed.setdefault(key, set()).add(column)

    def check_verdict(self, key):
        """Of a changed node: verdict and messages follow from its values."""
        row, want = self.nodes[key], self.want[key]
        expected = VERDICTS.get(self.name, {}).get(row["node_name"])
        assert (want["precision_index"], row["precision_index"]) == (
            expected or (want["precision_index"], want["precision_index"])
        ), key
        for column in {"input_data", "output_data"} - self.changed[key]:  # only a message may be another
            ours, theirs = params(row, column), params(want, column)
            for name in ours:
                rest = set(ours[name]) - {"Result", "Err_message"}
                assert {k: ours[name][k] for k in rest} == {k: theirs[name][k] for k in rest}
                assert expected or ours[name] == theirs[name]

    def check_of_layout(self, key):
        """All that is said is left out, and nothing else."""
        row, want = self.nodes[key], self.want[key]
        assert (want["precision_index"], row["precision_index"]) == OF_LAYOUT[self.name][row["node_name"]]
        for column in ("input_data", "output_data"):
            ours, theirs = params(row, column), params(want, column)
            for name in ours:
                assert ours[name] == {**theirs[name], "Result": "pass", "Err_message": "[]"}

    def check_link(self, key, link):
        """Partners are other nodes, which lead back."""
        row = self.nodes[key]
        for rank, (_, name) in link["nodes_info"].items():
            other = self.nodes[f"{row['data_source']}_{row['step']}_{rank}_{name}"]
            back = json.loads(other["matched_distributed"])
            assert other is not row and str(row["rank"]) in back["nodes_info"]
            assert {link["communications_type"], back["communications_type"]} in (
                {"send", "receive"},
                {"send_receive"},
            )

    def check_tree(self):
        """New nodes are in their places, gradients under the call that completed them; all else is where it was."""
        for key, row in self.nodes.items():
            if key in self.new:
                continue
            want = self.want[key]
            known = [c for c in json.loads(row["sub_nodes"] or "[]") if f"{row['graph_id']}_{c}" not in self.new]
            drop = [c for c in known if GRAD not in c]
            assert drop == [c for c in json.loads(want["sub_nodes"] or "[]") if GRAD not in c], key
            if GRAD not in key:
                assert row["up_node"] == want["up_node"], key
        order = [
            [k for k in sorted(rows, key=lambda k: (k.split("_")[0], rows[k]["graph_id"], rows[k]["node_order"]))]
            for rows in (self.nodes, self.want)
        ]
        ours, theirs = ([k for k in keys if k not in self.new and GRAD not in k] for keys in order)
        assert ours == theirs


@pytest.mark.parametrize("case", MERGED)
def test_golden_set_merged(case, tmp_path):
    c = Case(case, tmp_path)
    assert c.theirs["tb_config"] == c.ours["tb_config"]
    assert set(c.want) <= set(c.nodes)
    products = [k for k, row in c.nodes.items() if c.is_product(row)]
    assert len(products) == PRODUCTS[case]
    containers = {
        k: name
        for name in CONTAINERS[case]
        for k, row in c.want.items()
        if row["data_source"] == "NPU" and re.fullmatch(re.escape(name) + r"\.(for|back)ward\.\d+", row["node_name"])
    }
    if case == "vis_merge_vpp":  # the gradient that comes into the model is that of the loss, on all ranks the same
        containers = {k: n for k, n in containers.items() if n != GPT or ".forward." in k}
    assert len(containers) == sum(CONTAINERS[case].values())
    for key in products:
        c.check_product(key)
    for key in containers:
        c.check_container(key)
    for key in c.changed:
        c.check_verdict(key)
    c.check_tree()
    placed = {"node_order", "sub_nodes", "stack_id", "up_node"}
    links = {k: row["matched_distributed"] for k, row in c.nodes.items() if row["matched_distributed"] != "{}"}
    assert len(links) == LINKS[case]
    for key, text in links.items():
        c.check_link(key, json.loads(text))
    values = {"input_data", "output_data", "precision_index"}
    for key, want in c.want.items():
        row = c.nodes[key]
        stacks = [t["tb_stack"][r["stack_id"]]["stack_info"] for t, r in ((c.ours, row), (c.theirs, want))]
        assert stacks[0] == stacks[1], key
        other = values if key in c.changed else set()
        if row["data_source"] == "NPU" and row["node_name"] in OF_LAYOUT.get(case, {}):
            c.check_of_layout(key)
            other = values
        pieces = re.findall(r'"([\w.]+): pieces of one tensor', row["parallel_merge_info"] or "")
        for name in pieces:  # the old tool takes parts whose statistics are equal for copies
            fields = {**params(row, "input_data"), **params(row, "output_data")}[f"{row['node_name']}.{name}"]
            assert float(fields["NormRelativeErr"].rstrip("%")) < 0.01, (key, name)
        # Of copies that differ it shows the whole of parts that they are not, of ours the furthest counts.
        if pieces or ": copies, " in (row["parallel_merge_info"] or ""):
            other = values
        if key in products:
            other = other | {"parallel_merge_info"}
        if GRAD in key:
            other = other | {"micro_step_id", "matched_node_link"}
        if key == "Bench_0_0_Apis_Between_Modules_All_Ranks.2":  # the target has it too, now
            other = other | {"micro_step_id", "matched_node_link"}
        assert want["matched_distributed"] == "{}", "the old tool links no merged ranks"
        for column in set(want) - placed - other - {"matched_distributed"}:
            ours = without_decisions(row[column]) if column == "parallel_merge_info" else row[column]
            assert ours == want[column], (key, column)


@pytest.mark.parametrize("case", MERGED)
def test_nodes_that_the_old_tool_loses(case, tmp_path):
    c = Case(case, tmp_path)
    collections = {k for k, row in c.new.items() if row["node_type"] == "9"}
    assert all(re.search(r"_Apis_Between_Modules_(All_Ranks\.\d+|Rank[1-9]\d*\.(\d+|single))$", k) for k in collections)
    names = {c.new[k]["node_name"] for k in collections}
    calls = {k for k, row in c.new.items() if row["up_node"] in names and k not in collections}
    assert all(re.search(r"_rank[1-9]\d*\.", k) for k in calls) and len(calls) == LOST_CALLS[case]
    chunk = {k for k in c.new if k not in collections | calls}
    assert len(chunk) == LOST_IN_CHUNK.get(case, 0)
    ends = ("output_layer.ColumnParallelLinear", "cross_entropy_rank1", "reshape_rank1", "linear_rank1")
    assert all(any(end in k for end in ends) for k in chunk)
    # No call that a rank made outside of its modules is missing.
    for rank in (c.root / c.target / "step0").iterdir():
        number = rank.name[len("rank") :]
        top = [n for n, up in json.loads((rank / "construct.json").read_text()).items() if not up]
        for name in top:
            if name.startswith(("Module.", "optimizer", "clip_grad")):
                continue
            first, second, rest = name.split(".", 2)
            of_rank = f"{first}.{second}_rank{number}.{rest}"
            assert any(row["node_name"] in (name, of_rank) for row in c.nodes.values()), (rank, name)


def statistics(items):
    """Of all tensors in nested lists, as texts."""
    if isinstance(items, list):
        return [found for item in items for found in statistics(item)]
    is_tensor = isinstance(items, dict) and items.get("type") == "torch.Tensor"
    return [[str(items[k]) for k in STATISTICS]] if is_tensor else []


@pytest.mark.parametrize("case", MERGED_DUMPS)
def test_golden_set_merged_dump(case, tmp_path):
    root, _ = run_case(case, tmp_path)
    ours, theirs = (
        {n: json.loads((d / "step0" / "rank0" / f"{n}.json").read_text()) for n in ("construct", "dump", "stack")}
        for d in (tmp_path, root / "expected" / case / "out")
    )
    common = {n: up for n, up in theirs["construct"].items() if GRAD not in n}
    assert ours["construct"].items() >= common.items()
    assert ours["construct"].keys() >= theirs["construct"].keys()
    assert ours["dump"]["is_merged"] is True
    data = ours["dump"]["data"]
    for name, entry in theirs["dump"]["data"].items():
        if is_product := "merged from Distributed" in str(data[name].get("parallel_merge_info")):
            assert name.startswith(("Functional.linear", "Torch.matmul"))
        block = case == "vis_merge_tppp_json" and name.startswith(f"{BLOCK}.")
        # The old tool leaves parameters and what comes into backward nodes as it is on one rank.
        for key in ("input_args", "output"):
            if (key == "output" and is_product) or block or key not in entry:
                continue
            ours_are = statistics(data[name].get(key, data[name].get("input")))
            theirs_are = statistics(entry.get(key))
            if "all_gather_rank" in name and key == "output":  # the old tool loses lists of tensors where it renames
                assert [t for t in ours_are if t in theirs_are] == [*theirs_are, *theirs_are]
                continue
            # It writes the statistics of bool as text.
            assert ours_are == theirs_are, name
