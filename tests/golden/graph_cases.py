"""What the golden tests share: the command, the large set, reading and comparing `.vis.db` files."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import tarfile
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
TABLES = ("tb_nodes", "tb_stack", "tb_config")

# Cases that merge ranks: databases, and dumps.
MERGED = ["vis_merge_tpdp", "vis_merge_pp_cmp", "vis_merge_tppp_cmp", "vis_merge_vpp"]
MERGED_DUMPS = ["vis_merge_tp_json", "vis_merge_tppp_json"]

# A tensor as dump.json has it.
TENSOR = {
    "type": "torch.Tensor",
    "dtype": "torch.float32",
    "shape": [2],
    "Max": 1.0,
    "Min": 0.0,
    "Mean": 0.5,
    "Norm": 1.0,
}


def find_command():
    """The built command: MSPROBE_BIN, the one of the virtual environment, the release build."""
    places = [os.environ.get("MSPROBE_BIN"), REPO / ".venv" / "bin" / "msprobe", REPO / "build" / "release" / "msprobe"]
    for place in places:
        if place and Path(place).exists():
            return str(place)
    missing("the msprobe command is not built; build it or set MSPROBE_BIN")
    return None


def missing(reason):
    """A test that cannot run is skipped at home and fails where everything has to run."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def golden_set():
    """The unpacked golden set (data/ and expected/)."""
    named = os.environ.get("MSPROBE_GOLDEN")
    for place in (
        [Path(named)] if named else [REPO.parent / "shared" / "golden", REPO.parent.parent / "shared" / "golden"]
    ):
        if (place / "expected").is_dir():
            return place
        if (place / "public" / "expected").is_dir():
            return place / "public"
        if (place / "public.tar.xz").is_file():
            return unpack(place / "public.tar.xz")
    missing("the large golden set is absent; set MSPROBE_GOLDEN to its directory")
    return None


def unpack(archive):
    return unpack_into(archive, "golden_set")


def unpack_into(archive, name):
    """Under build/, once; again when the archive is another one."""
    out = REPO / "build" / f"{name}_{archive.stat().st_size}"
    if not (out / "public" / "expected").is_dir():
        part = REPO / "build" / f"{name}.{os.getpid()}"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        with tarfile.open(archive) as tar:
            tar.extractall(part)
        try:
            part.rename(out)
        except OSError:  # another process was quicker
            shutil.rmtree(part)
    return out / "public"


def case_names(prefix):
    """The cases of the large set whose names begin with `prefix`."""
    return {p.parent.name for p in (golden_set() / "expected").glob(f"{prefix}*/case.json")}


def run_case(name, out, check=True, env=None):
    """A case's command line with the results in `out`: the root of the set, and what became of the command."""
    root = golden_set()
    info = json.loads((root / "expected" / name / "case.json").read_text())
    return root, run([a.replace("@OUT", str(out)) for a in info["argv"][1:]], cwd=root, check=check, env=env)


def assert_refused(name, code, word, out):
    """One line that says why, and no result."""
    _, done = run_case(name, out, check=False)
    assert done.returncode == code, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("[msprobe] error: "), done.stderr
    assert word in lines[0]
    assert not out.exists() or not list(out.iterdir())


def run(args, cwd=None, check=True, env=None):
    done = subprocess.run(
        [find_command(), *map(str, args)],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        timeout=300,
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done


def read_db(path):
    """{table: {id: {column: value}}}; ids are unique in all three tables."""
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        out = {}
        for table in TABLES:
            rows = db.execute(f"SELECT * FROM {table}")
            names = [c[0] for c in rows.description]
            out[table] = {row[0]: dict(zip(names, row)) for row in rows}
        return out
    finally:
        db.close()


def schema(path):
    """Columns of the tables that viewers read; in our files tb_nodes is a view."""
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        return {table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")] for table in TABLES}
    finally:
        db.close()


def layout(path):
    """Everything that a file holds besides rows: [(type, name, table, text)]."""
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        return db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid").fetchall()
    finally:
        db.close()


def differences(expected, got):
    """[(table, id, column, expected, got)] of two read_db() results."""
    out = []
    for table in TABLES:
        for key in sorted(set(expected[table]) | set(got[table])):
            a, b = expected[table].get(key), got[table].get(key)
            if a is None or b is None:
                out.append((table, key, None, a, b))
                continue
            out += [(table, key, column, a[column], b[column]) for column in a if a[column] != b.get(column)]
    return out


def only_db(directory):
    """The database of a run; nothing but the list of a structure comparison may lie beside it."""
    files = [f for f in Path(directory).iterdir() if not f.name.endswith(("-wal", "-shm", "_structure.json"))]
    assert [f.suffix for f in files] == [".db"], files
    return files[0]


def write_rank(path, construct, data, stack=None, task="statistics", data_dir=None, framework="pytorch"):
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    head = {"task": task, "level": "mix", "framework": framework, "dump_data_dir": data_dir}
    (path / "dump.json").write_text(json.dumps({**head, "data": data}, indent=1))
    (path / "construct.json").write_text(json.dumps(construct, indent=1))
    (path / "stack.json").write_text(json.dumps(stack or {}, indent=1))
    return path


GRAD = ".parameters_grad"


def _without_grads(names):
    return [name for name in names if GRAD not in name]


def _module_of(grad):
    return grad[: grad.rindex(GRAD)]


def assert_only_gradients_and_links_differ(expected, got):
    """Two read_db() results that agree except for two things: gradients of parameters hang under the backward call
    that completed them, not all under the last one, and calls are linked that the old tool does not link. Returns the
    links that it lacks: {row id: link}."""
    columns_that_follow = {"node_order", "stack_id", "sub_nodes", "up_node", "matched_node_link", "matched_distributed"}
    nodes, theirs = got["tb_nodes"], expected["tb_nodes"]
    assert set(nodes) == set(theirs)
    assert got["tb_config"] == expected["tb_config"]
    links, parents = {}, {}
    for key, row in nodes.items():
        want, grad = theirs[key], GRAD in row["node_name"]
        stacks = [t["tb_stack"][r["stack_id"]]["stack_info"] for t, r in ((got, row), (expected, want))]
        assert stacks[0] == stacks[1], key
        for column in set(row) - columns_that_follow - ({"micro_step_id"} if grad else set()):
            assert row[column] == want[column], (key, column)
        assert _without_grads(json.loads(row["sub_nodes"] or "[]")) == _without_grads(
            json.loads(want["sub_nodes"] or "[]")
        ), key
        link, wanted = (json.loads(r["matched_node_link"]) for r in (row, want))
        if grad:
            assert re.fullmatch(re.escape(_module_of(row["node_name"])) + r"\.backward\.\d+", row["up_node"]), key
            assert link[-1:] == wanted[-1:], key
            parents.setdefault(f"{row['graph_id']}_{_module_of(row['node_name'])}", []).append(row["up_node"])
        else:
            assert (row["up_node"], link) == (want["up_node"], wanted), key
        if row["matched_distributed"] != want["matched_distributed"]:
            assert want["matched_distributed"] == "{}", key
            links[key] = json.loads(row["matched_distributed"])
    for module, calls in parents.items():
        assert len(calls) == len(set(calls)), module
    for table in (expected, got):
        ordered = sorted(table["tb_nodes"].values(), key=lambda r: (r["graph_id"], r["node_order"]))
        table["names"] = _without_grads([f"{r['graph_id']}_{r['node_name']}" for r in ordered])
    assert got["names"] == expected["names"]
    return links
