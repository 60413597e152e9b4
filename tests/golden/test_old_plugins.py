"""Our files in the earlier TensorBoard plugins, 8.3.2 and 26.2.0: each of their routes answers, and answers for our files what
it answers for the file that the old tool wrote of the same dumps. The later one also starts our command itself."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from graph_cases import REPO, find_command, golden_set, missing, only_db, run_case

# Kinds of files that agree with the old tool's, row by row.
SAME = ["vis_cmp_weight", "vis_cmp_md5", "vis_cmp_struct", "vis_build_oc", "vis_cmp_nan_oc"]
# Both layouts of ours answer alike: a file with several steps, values of tensors, merged ranks.
OWN = ["vis_cmp_weight", "vis_cmp_steps", "vis_cmp_tensor", "vis_merge_tppp_cmp"]
VERSIONS = {"8.3.2": ".venv-tb", "26.2.0": ".venv-old"}
# What their pages never ask for: it is not there.
UNUSED = {"/saveData", "/index.html", "/index.js", "/load_meta_dir", "/loadConvertedGraphData"}
UNUSED |= {"/convertToGraph", "/getConvertProgress"}  # asked in another way


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """{run: database} of the files that are compared."""
    made = tmp_path_factory.mktemp("made")
    out = {}
    for case in sorted({*SAME, *OWN}):
        run_case(case, made / f"{case}.compact")
        out[f"{case}.compact"] = only_db(made / f"{case}.compact")
        if case in OWN:
            run_case(case, made / f"{case}.plain", env={"MSPROBE_PLAIN": "1"})
            out[f"{case}.plain"] = only_db(made / f"{case}.plain")
        if case in SAME:
            out[f"{case}.theirs"] = only_db(golden_set() / "expected" / case / "out")
    return out


@pytest.fixture(scope="module", params=VERSIONS)
def said(request, files, tmp_path_factory):
    """What the plugin said about each of them."""
    python = Path(os.environ.get("MSPROBE_OLD_PLUGINS", REPO)) / VERSIONS[request.param] / "bin" / "python"
    if not python.exists():
        missing(f"the earlier plugin is not installed at {python}")
    logs = tmp_path_factory.mktemp("logs")
    for run, file in files.items():
        (logs / run).mkdir()
        shutil.copyfile(file, logs / run / "graph.vis.db")
    data = golden_set() / "data" / "tp_mix_stat"
    for name, side in (("target", "weight"), ("golden", "bench")):
        shutil.copytree(data / side / "step0", logs / "dumps" / name / "step0")
    commands = tmp_path_factory.mktemp("bin")
    (commands / "msprobe").symlink_to(find_command())
    env = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"}
    script = Path(__file__).with_name("old_plugin_routes.py")
    done = subprocess.run([python, script, logs], capture_output=True, text=True, env=env, timeout=900)
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout.splitlines()[-1])
    assert out["version"] == request.param
    return out


def first_difference(a, b, place=""):
    """Where two answers differ; pytest's own words would be megabytes."""
    if type(a) is type(b) and isinstance(a, dict):
        if list(a) != list(b):
            return f"{place}: {list(a)[:9]} and {list(b)[:9]}"
        return next(filter(None, (first_difference(a[k], b[k], f"{place}/{k}") for k in a)), "")
    if type(a) is type(b) and isinstance(a, list) and len(a) == len(b):
        return next(filter(None, (first_difference(x, y, f"{place}/{i}") for i, (x, y) in enumerate(zip(a, b)))), "")
    return "" if a == b else f"{place}: {str(a)[:200]} and {str(b)[:200]}"


def assert_alike(answers, others):
    assert len(answers) == len(others)
    for (question, mine), (same, other) in zip(answers, others):
        assert question == same
        found = first_difference(mine, other)
        assert found == "", question


def asked(answers):
    return [what if isinstance(what, str) else what[0] for what, _ in answers]


def test_every_route_is_asked(said):
    routes = {f"/{route}" for answers in said["answers"].values() for route in asked(answers)}
    assert routes | UNUSED >= set(said["routes"])


@pytest.mark.parametrize("case", OWN)
def test_layouts_answer_alike(said, case):
    compact, plain = (said["answers"][f"{case}.{layout}"] for layout in ("compact", "plain"))
    assert len(compact) > 20
    assert_alike(compact, plain)


@pytest.mark.parametrize("case", SAME)
def test_they_answer_as_for_the_old_tools_file(said, case):
    assert_alike(*(said["answers"][f"{case}.{writer}"] for writer in ("compact", "theirs")))


def test_the_later_page_converts_with_our_command(said):
    if said["version"] == "8.3.2":
        assert "converted" not in said, "it has no such page"
        return
    assert said["converted"] == {
        out: {"progress": 100, "status": "done"} for out in ("made_build", "made_compare", "made_merged")
    }
    for out in said["converted"]:
        assert len(said["answers"][out]) > 20
