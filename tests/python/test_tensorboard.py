"""The page as a plugin of TensorBoard: its routes, its headers, and the earlier plugin beside it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from graph_cases import find_command, missing
from launch import HERE, PACKAGE_ROOT, REPO, run_python

NODE = "Module.fc.Linear.forward.0"


def environment_with(name, variable):
    path = Path(os.environ.get(variable, REPO / name / "bin" / "python"))
    if not path.exists():
        missing(f"TensorBoard is not installed at {path}; set {variable}")
    return path


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Our package alone, as pip puts it into an environment."""
    root = tmp_path_factory.mktemp("package")
    (root / "msprobe").symlink_to(PACKAGE_ROOT / "msprobe")
    info = root / "msprobe-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: msprobe\nVersion: 0.1.0\n")
    settings = (REPO / "pyproject.toml").read_text()
    entry = re.search(r"\[project\.entry-points\.tensorboard_plugins\]\n(.*)\n", settings)[1]
    (info / "entry_points.txt").write_text("[tensorboard_plugins]\n" + entry.replace('"', "") + "\n")
    return root


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A log directory with a graph in a directory of its own, and a file beside it that nobody may see."""
    root = tmp_path_factory.mktemp("runs")
    (root / "secret.vis.db").write_bytes(b"not for you")
    dump = root / "dump"
    dump.mkdir()
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2]}
    tensor.update(Max=1.0, Min=0.0, Mean=0.5, Norm=1.0)
    op = {"input_args": [tensor], "input_kwargs": {}, "output": [tensor]}
    head = {"task": "statistics", "level": "L0", "dump_data_dir": None}
    (dump / "dump.json").write_text(json.dumps({**head, "data": {NODE: op}}))
    (dump / "construct.json").write_text(json.dumps({NODE: None}))
    (dump / "stack.json").write_text("{}")
    out = root / "logs" / "run 一"
    out.mkdir(parents=True)
    command = [str(find_command()), "graph_visualize", "-tp", str(dump), "-o", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return root / "logs"


def ask(python, package, logs, plugin, prefix="", **more):
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", **more}
    command = [python, HERE / "tensorboard_scenario.py", logs, prefix, plugin]
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def said(package, logs):
    """With nothing but TensorBoard, below a prefix."""
    python = environment_with(".venv-board", "MSPROBE_BOARD_PYTHON")
    return ask(python, package, logs, "graph_ascend", "/board/one")


def test_the_tab_is_there_and_loads_the_core_only_when_asked(said):
    listed = json.loads(said["plugins"]["body"])["graph_ascend"]
    assert listed["enabled"]
    assert listed["loading_mechanism"]["module_path"] == "/board/one/data/plugin/graph_ascend/index.js"
    assert "msprobe._page" not in said["loaded_at_start"]
    assert "msprobe._core" not in said["loaded_at_start"]


def test_the_frame_leads_to_the_page(said):
    assert "plugin/graph_ascend/" in said["frame"]["body"]
    assert said["entry"]["status"] == 200
    assert said["entry"]["headers"]["Content-Type"].startswith("text/javascript")
    assert "export function render" in said["entry"]["body"]
    page = said["page"]
    assert page["status"] == 200
    assert page["headers"]["X-Frame-Options"] == "SAMEORIGIN"
    policy = page["headers"]["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'self'" in policy
    assert "unsafe-eval" not in policy


def test_queries_answer_below_the_prefix(said):
    (found,) = json.loads(said["files"]["body"])["files"]
    assert found["file"].startswith("run 一/build_")
    children = json.loads(said["children"]["body"])["children"]
    assert [child["name"] for child in children] == [NODE]
    assert said["unknown_node"]["status"] == 404
    assert "不在 这里" in json.loads(said["unknown_node"]["body"])["error"]
    assert said["head"]["status"] == 200
    assert said["head"]["body"] == ""


def test_nothing_else_is_reached(said):
    assert said["no_token"]["status"] == 403
    assert said["other_token"]["status"] == 403
    assert said["climb"]["status"] == 400
    assert said["climb_path"]["status"] == 404
    assert said["file_itself"]["status"] == 404
    assert 400 <= said["large_body"]["status"] < 500


def test_dumps_below_the_log_directory_can_be_converted(said):
    assert json.loads(said["conversion"]["body"])["enabled"] is True
    assert said["convert"]["status"] == 400, "nothing outside is converted"
    assert said["flag"] is False, "--msprobe_no_convert"


def test_tensorboard_has_nothing_to_complain_of(said):
    assert [text for text in said["log"] if "Security" in text or "msprobe" in text or "3.0" in text] == []


def test_beside_the_earlier_plugin_ours_has_a_name_of_its_own(package, logs):
    python = environment_with(".venv-tb", "MSPROBE_TENSORBOARD_PYTHON")
    said = ask(python, package, logs, "graph_msprobe", MSPROBE_NO_CONVERT="1")
    listed = json.loads(said["plugins"]["body"])
    assert {"graph_ascend", "graph_msprobe"} <= set(listed)
    assert [child["name"] for child in json.loads(said["children"]["body"])["children"]] == [NODE]
    (warning,) = [text for text in said["log"] if "msprobe" in text]
    assert "keeps the tab GRAPH_ASCEND" in warning
    assert "pip uninstall tb-graph-ascend" in warning.replace("_", "-")
    assert json.loads(said["conversion"]["body"])["enabled"] is False, "MSPROBE_NO_CONVERT"
    assert said["convert"]["status"] == 403


def test_the_package_needs_no_tensorboard():
    source = "import sys, msprobe, msprobe.pytorch; sys.exit('msprobe._page' in sys.modules)"
    run_python(["-c", f"import sys; sys.modules['tensorboard'] = None\n{source}"], python=sys.executable)
