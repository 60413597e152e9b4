"""msprobe certify: a capture that changes nothing gets a certificate, a change of one bit and a script that differs by itself do not."""

import json
import os
import subprocess
import sys

from graph_cases import find_command
from launch import HERE, PACKAGE_ROOT
from test_run_command import LOOP, entries, write_config


def certify(program, *options, cwd):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(HERE), str(PACKAGE_ROOT)])}
    command = [find_command(), "certify", "-c", "config.json", "-o", "out", *options, "--", *map(str, program)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def certificate(directory) -> dict:
    return json.loads((directory / "out" / "certificate.json").read_text())


def test_a_run_that_capture_leaves_alone(tmp_path):
    write_config(tmp_path)
    (tmp_path / "loop.py").write_text(LOOP.replace("range(3)", "range(40)"))
    done = certify([sys.executable, "loop.py", "nested"], "--steps", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "certified: " in done.stdout and "Traceback" not in done.stderr
    result = certificate(tmp_path)
    (rank,) = result["ranks"]
    assert result["certified"] and result["deterministic"] and rank["first_difference"] is None
    first, second = rank["steps"]
    assert (first["losses"], second["losses"]) == (1, 1) and first["loss"] != second["loss"]
    assert first["gradients"] == first["parameters"] > 10 and first["random"] == 3
    assert rank["peak_memory"]["host"]["bare"] > 2**20
    assert (tmp_path / "dump" / "msprobe_certificate.json").read_text() == (
        tmp_path / "out" / "certificate.json"
    ).read_text()
    assert list(result["files"]) == ["step0/rank/dump.json", "step1/rank/dump.json"]
    assert len(entries(tmp_path / "dump" / "step1" / "rank")) > 50
    page = (tmp_path / "out" / "certificate.md").read_text()
    assert page.startswith("# Certified\n") and "| rank | 1 |" in page
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "certificate.html",
        "certificate.json",
        "certificate.md",
    ]

    write_config(tmp_path, dump_path=str(tmp_path / "other"))
    # As if the tool had touched a gradient.
    touch = "    if 'MSPROBE_ATTACH' in os.environ and '\"captured\"' in os.environ['MSPROBE_ATTACH']: model.head.bias.grad[3] += 1e-7"
    (tmp_path / "changed.py").write_text(
        "import os" + LOOP.replace("    optimizer.step()", touch + "\n    optimizer.step()")
    )
    changed = certify([sys.executable, "changed.py", "nested"], cwd=tmp_path)
    assert changed.returncode == 1 and "the captured run differs" in changed.stderr
    difference = certificate(tmp_path)["ranks"][0]["first_difference"]
    assert (difference["step"], difference["what"], difference["name"]) == (0, "gradient", "head.bias")
    assert "# Not certified" in (tmp_path / "out" / "certificate.md").read_text()


def test_a_script_that_is_not_deterministic(tmp_path):
    write_config(tmp_path)
    (tmp_path / "loop.py").write_text(LOOP.replace("torch.manual_seed(1)", "torch.seed()"))
    done = certify([sys.executable, "loop.py", "linears"], "--steps", "1", cwd=tmp_path)
    assert done.returncode == 1 and "two runs without capture already differ" in done.stderr
    result = certificate(tmp_path)
    assert not result["certified"] and not result["deterministic"]
    assert result["ranks"][0]["difference_without_capture"]["what"] == "loss"

    failing = certify([sys.executable, "-c", "raise SystemExit(5)"], cwd=tmp_path)
    assert failing.returncode == 3 and "exit code 5" in failing.stderr
    nothing = certify([sys.executable, "-c", "import torch"], cwd=tmp_path)
    assert nothing.returncode == 3 and "no step" in nothing.stderr
