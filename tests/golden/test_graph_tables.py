"""Our own tables of a graph file: what they say must follow from the tables beside them and from the dumps."""

import json
import shutil
import sqlite3
from collections import defaultdict

import pytest
from graph_cases import TENSOR, golden_set, only_db, run, run_case, write_rank

# tb_nodes with the numbers of its nodes.
NODES = "(SELECT g.first + t.node_order AS node, t.* FROM tb_nodes t JOIN msprobe_graph g ON g.graph_id = t.graph_id)"


def query(path, sql, *args):
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        return db.execute(sql, args).fetchall()
    finally:
        db.close()


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def edges(path):
    """{(node, input): (from, output, trust)} by row ids."""
    out = {}
    for first, count, packed in query(path, "SELECT node, count, edges FROM msprobe_flow"):
        numbers, node = list(varints(packed)), first
        assert len(numbers) == 5 * count
        for i in range(0, len(numbers), 5):
            step, position, back, output, trust = numbers[i : i + 5]
            node += step
            out[node, position] = (node - back, output, trust)
    return out


def names_of(path):
    return dict(query(path, "SELECT node, name FROM msprobe_node JOIN msprobe_name USING (name_id)"))


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    out = tmp_path_factory.mktemp("compared")
    root, done = run_case("vis_ranks_cmp", out)
    return only_db(out), root, done


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """NaN in one run, looked for with -oc."""
    out = tmp_path_factory.mktemp("broken")
    _, done = run_case("vis_cmp_nan_oc", out)
    return only_db(out), done


def test_subtrees(compared, broken):
    assert not any(row[0] for row in check_subtrees(compared[0]))
    assert any(row[0] for row in check_subtrees(broken[0]))


def check_subtrees(path):
    rows = query(
        path, f"SELECT node, id, graph_id, up_node, node_type, precision_index, matched_node_link FROM {NODES}"
    )
    at = {row[1]: row for row in rows}
    counts = defaultdict(lambda: [0] * 4)
    inner = set()
    for row in rows:
        own = [1, row[4] != "9" and row[5] == 1, row[4] != "9" and row[5] == 0.5, row[4] != "9" and row[6] == "[]"]
        node = row
        while node:
            counts[node[0]] = [a + b for a, b in zip(counts[node[0]], own)]
            node = at.get(f"{node[2]}_{node[3]}")
            if node:
                inner.add(node[0])
    got = {
        row[0]: list(row[1:])
        for row in query(path, "SELECT node, nodes, error, warning, unmatched FROM msprobe_subtrees")
    }
    assert got == {node: counts[node] for node in inner}
    return [row[1:] for row in got.values()]


def test_execution_follows_the_dump(compared):
    path, root, _ = compared
    names = names_of(path)
    graphs = query(path, "SELECT graph, rank, data_source, first, last - first + 1 FROM msprobe_graph")
    assert len(graphs) == 4
    for graph, rank, source, first, count in graphs:
        order = []
        for position, node, nodes in query(
            path, "SELECT position, node, nodes FROM msprobe_execution WHERE graph = ? ORDER BY position", graph
        ):
            assert position == len(order) and first <= node and node + nodes <= first + count
            order += [names[n] for n in range(node, node + nodes)]
        assert len(order) == len(set(order))
        run_name = "weight" if source == "NPU" else "bench"
        dump = json.loads((root / f"data/tp_mix_stat/{run_name}/step0/rank{rank}/dump.json").read_text())
        known = set(order)
        assert [n for n in order if n in dump["data"]] == [n for n in dump["data"] if n in known]
        assert len(order) > 0.9 * len(dump["data"])


def test_names(compared):
    path, _, _ = compared
    names = names_of(path)
    first_of = dict(query(path, "SELECT graph, first FROM msprobe_graph"))
    found = {}
    for graph, pattern, count, packed in query(path, "SELECT graph, pattern, count, nodes FROM msprobe_names"):
        node = first_of[graph]
        steps = list(varints(packed))
        assert len(steps) == count
        for step in steps:
            node += step
            found[node] = pattern
    assert set(found) == set(names)
    for node, pattern in found.items():
        segments = ["#" if s.isdigit() else s for s in names[node].split(".")]
        assert pattern == ".".join(segments)


def test_flow(compared):
    path, _, _ = compared
    names, flow = names_of(path), edges(path)
    data = {
        r[0]: (json.loads(r[1]), json.loads(r[2]))
        for r in query(path, f"SELECT node, input_data, output_data FROM {NODES}")
    }
    for (node, position), (source, output, _) in flow.items():
        taken = list(data[node][0].values())[position]
        given = list(data[source][1].values())[output]
        assert source < node
        assert [taken[k] for k in ("dtype", "Max", "Min")] == [given[k] for k in ("dtype", "Max", "Min")], names[node]
    by_name = {(names[n], p): (names[s], t) for (n, p), (s, _, t) in flow.items()}
    # A layer norm feeds the projection behind it.
    assert by_name["Functional.linear.0.forward", 0] == ("Functional.layer_norm.0.forward", 3)
    strong = sum(trust >= 2 for _, _, trust in flow.values())
    calls = query(path, "SELECT count(*) FROM tb_nodes WHERE node_type = '1' AND data_source = 'NPU'")[0][0]
    assert strong > 0.5 * calls


def test_exchanges(compared):
    path, _, _ = compared
    linked = {r[0] for r in query(path, f"SELECT node FROM {NODES} WHERE matched_distributed <> '{{}}'")}
    rows = query(path, "SELECT exchange, node, gives, takes FROM msprobe_exchanges")
    members = defaultdict(set)
    for exchange, node, _, _ in rows:
        members[exchange].add(node)
    assert {n for m in members.values() if len(m) > 1 for n in m} == linked
    assert all(g or t for _, _, g, t in rows)


def test_findings_of_a_comparison(broken):
    path, done = broken
    rows = query(path, "SELECT kind, node, name, text FROM msprobe_findings WHERE source = 'NPU'")
    names = names_of(path)
    assert all(names[node] == name for _, node, name, _ in rows)
    errors = {r[0] for r in query(path, f"SELECT node FROM {NODES} WHERE precision_index = 1 AND node_type <> '9'")}
    order = []
    for node, nodes in query(path, "SELECT node, nodes FROM msprobe_execution WHERE graph = 1 ORDER BY position"):
        order += range(node, node + nodes)
    ((_, first, name, _),) = [r for r in rows if r[0] == "first_error"]
    assert first == next(n for n in order if n in errors)
    assert f"first error by the old rule: {name} " in done.stdout
    modules = [r for r in rows if r[0] == "bad_module"]
    assert modules and all(r[2].startswith(("Module.", "optimizer")) and "is off" in r[3] for r in modules)
    # What may follow from the origin is told by number.
    ((follows,),) = query(path, "SELECT count(*) FROM msprobe_findings WHERE kind LIKE 'first_%' OR kind LIKE 'bad_%'")
    assert "finding: " not in done.stdout
    assert f"findings that may follow from it: {follows}, in table msprobe_findings" in done.stdout
    # Of those that the golden run does not have as well.
    golden = "SELECT node_name FROM tb_nodes WHERE data_source = 'Bench' AND overflow_level = 'critical'"
    critical = {
        r[0]
        for r in query(
            path, f"SELECT node FROM {NODES} WHERE overflow_level = 'critical' AND node_name NOT IN ({golden})"
        )
    }
    ((_, node, _, _),) = [r for r in rows if r[0] == "first_overflow"]
    assert node == next(n for n in order if n in critical)


def test_the_module_of_a_bad_weight_is_named(tmp_path):
    """The old tool marks the leaves; which module holds the weight has to be found by hand."""
    bad = {**TENSOR, "Max": float("inf"), "Mean": float("inf"), "Norm": float("inf")}
    module, call = "Module.net.fc.Linear.forward.0", "Functional.linear.0.forward"
    data = {
        call: {"input_args": [TENSOR, bad], "input_kwargs": {}, "output": [bad]},
        module: {"input_args": [TENSOR], "input_kwargs": {}, "parameters": {"weight": bad}, "output": [bad]},
        "Module.net.fc.Linear.parameters_grad.0": {"weight": [bad]},
        "Module.net.fc.Linear.backward.0": {"input": [TENSOR], "output": [TENSOR]},
    }
    construct = {call: module, module: None, "Module.net.fc.Linear.backward.0": None}
    rank = write_rank(tmp_path / "a", construct, data)
    done = run(["graph_visualize", "-tp", rank, "-o", tmp_path / "out", "-oc", "--json"])
    found = {f["kind"]: f for f in json.loads(done.stdout)["findings"]}
    assert found["bad_parameter"]["node"] == module
    assert found["bad_parameter"]["text"] == (
        "parameters.weight of Module.net.fc.Linear holds bad values before it is used: Max inf"
    )
    assert found["first_overflow"]["node"] == module  # the call has the weight as an argument: high, not critical
    assert found["bad_gradient"]["node"] == "Module.net.fc.Linear.parameters_grad.0"
    levels = dict(query(only_db(tmp_path / "out"), "SELECT node_name, overflow_level FROM tb_nodes"))
    assert (levels[module], levels[call]) == ("critical", "high")


def test_a_rank_that_lacks_a_call_is_a_finding(tmp_path):
    """A step hangs when one rank leaves out a collective; the old tool shows the call without a link, that is all."""
    source = golden_set() / "data/tp_mix_stat/bench/step0"
    shutil.copytree(source, tmp_path / "step0")
    lost = "Distributed.all_reduce.5.forward"
    for name in ("dump.json", "construct.json"):
        path = tmp_path / "step0" / "rank1" / name
        content = json.loads(path.read_text())
        del (content["data"] if name == "dump.json" else content)[lost]
        path.write_text(json.dumps(content))
    done = run(["graph_visualize", "-tp", tmp_path / "step0", "-o", tmp_path / "out"])
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("finding: ")]
    assert line.startswith("finding: rank 1 calls all_reduce 3"), line
    ((kind, rank, name),) = query(only_db(tmp_path / "out"), "SELECT kind, rank, name FROM msprobe_findings")
    assert (kind, rank) == ("missing_call", 0) and name.startswith("Distributed.all_reduce.")


def test_clean_ranks_have_no_findings(tmp_path):
    done = run_case("vis_ranks_p2p", tmp_path)[1]
    assert "finding" not in done.stdout
    assert query(only_db(tmp_path), "SELECT * FROM msprobe_findings") == []


def test_plain_has_none_of_them(tmp_path):
    root = golden_set()
    run(["graph_visualize", "-tp", root / "data/tp_mix_stat/bench/step0", "-o", tmp_path, "--plain"])
    tables = {row[0] for row in query(only_db(tmp_path), "SELECT name FROM sqlite_master WHERE type = 'table'")}
    ours = "subtrees execution names flow exchanges findings".split()
    assert not tables & {f"msprobe_{name}" for name in ours}


def test_an_overflow_that_both_runs_have_is_no_finding(tmp_path):
    """A mask fills in -inf on both sides; the division is infinite in the target alone."""
    bad = {**TENSOR, "Max": float("inf"), "Mean": float("inf"), "Norm": float("inf")}
    mask, division = "Tensor.masked_fill.0.forward", "Tensor.div.0.forward"

    def op(result):
        return {"input_args": [TENSOR], "input_kwargs": {}, "output": [result]}

    target = write_rank(tmp_path / "a", {mask: None, division: None}, {mask: op(bad), division: op(bad)})
    golden = write_rank(tmp_path / "b", {mask: None, division: None}, {mask: op(bad), division: op(TENSOR)})
    for other, wanted in ((golden, [("NPU", division)]), (target, [])):
        out = tmp_path / other.parts[-1] / "out"
        run(["graph_visualize", "-tp", target, "-gp", other, "-o", out, "-oc"])
        found = query(only_db(out), "SELECT source, name FROM msprobe_findings WHERE kind = 'first_overflow'")
        assert found == wanted
