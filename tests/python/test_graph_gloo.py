"""Graphs of dumps that several real processes made: every call finds its partner, and nothing is wrong but
what is."""

import json
import sqlite3
import sys
from pathlib import Path

import pytest
from test_distributed import launch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import only_db
from graph_cases import run as run_msprobe

# In the last one the sends happen after the recording: its receives have no partners.
SCENARIOS = ["collectives", "point_to_point", "never_waited"]
LONELY = {(2, rank, f"Distributed.irecv.{i}.forward") for rank in (0, 1) for i in (0, 1)}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Rows of the calls between two ranks, and what the command said; arguments stand at their positions."""
    directory = tmp_path_factory.mktemp("gloo")
    root = launch(directory, 2, SCENARIOS).root
    done = run_msprobe(["graph_visualize", "-tp", root, "-o", directory / "out", "--json"])
    db = sqlite3.connect(only_db(directory / "out"))
    db.row_factory = sqlite3.Row
    sql = "SELECT g.first + t.node_order AS node, t.* FROM tb_nodes t JOIN msprobe_graph g ON g.graph_id = t.graph_id"
    rows = db.execute(f"{sql} WHERE t.is_distributed = 1").fetchall()
    exchanges = db.execute("SELECT exchange, node, gives, takes FROM msprobe_exchanges").fetchall()
    db.close()
    return rows, exchanges, json.loads(done.stdout)


def test_every_call_is_linked(graph):
    rows, _, summary = graph
    unlinked = {(r["step"], r["rank"], r["node_name"]) for r in rows if r["matched_distributed"] == "{}"}
    assert unlinked == LONELY
    assert summary["links"] == len(rows) - len(LONELY)
    links = {(r["step"], r["rank"], r["node_name"]): json.loads(r["matched_distributed"]) for r in rows}
    by_key = {key: link for key, link in links.items() if link}
    for (step, rank, name), link in by_key.items():
        for partner_rank, (_, partner) in link["nodes_info"].items():
            assert str(rank) in by_key[step, int(partner_rank), partner]["nodes_info"], name
    kinds = {name.split(".")[1]: link["communications_type"] for (_, rank, name), link in by_key.items() if rank == 0}
    assert (kinds["all_reduce"], kinds["broadcast"], kinds["send"]) == ("send_receive", "send", "send")


def test_only_what_has_no_partner_is_a_finding(graph):
    found = graph[2]["findings"]
    assert {f["kind"] for f in found} == {"no_partner"}
    assert sorted((f["step"], f["rank"], f["node"]) for f in found) == sorted(LONELY)


def test_exchanges_have_all_members(graph):
    rows, exchanges, _ = graph
    assert {e["node"] for e in exchanges} == {r["node"] for r in rows}
    members = {}
    for e in exchanges:
        members.setdefault(e["exchange"], []).append(e)
    lonely = {r["node"] for r in rows if (r["step"], r["rank"], r["node_name"]) in LONELY}
    for m in members.values():
        assert len(m) == (1 if m[0]["node"] in lonely else 2)
        assert any(e["takes"] for e in m)
