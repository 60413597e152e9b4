"""What people type by mistake is answered with what to type instead."""

import os
import signal
import subprocess

import pytest
from capture_helpers import capture, write_config
from graph_cases import find_command, run
from launch import run_python

RUN = "import torch\nfrom msprobe.pytorch import PrecisionDebugger\nPrecisionDebugger(config_path={!r})\n"


def said(*arguments):
    done = run(list(arguments), check=False)
    return done.returncode, done.stderr.strip()


def test_one_run_for_the_doctor(tmp_path):
    code, text = said("doctor", tmp_path)
    assert code == 2 and f"msprobe preflight {tmp_path}" in text and "two runs" in text


@pytest.mark.parametrize("command", ["curves", "optimizer_replay", "serve", "recover", "lowp"])
def test_a_missing_argument_is_shown_in_an_example(command):
    code, text = said(command)
    assert code == 2 and f"as in 'msprobe {command} " in text


def test_a_directory_without_a_monitored_run(tmp_path):
    code, text = said("monitor", "show", tmp_path)
    assert code == 3 and str(tmp_path) in text and "monitor.series" in text and "list of files" not in text


def wrong_config(directory, text):
    path = directory / "config.json"
    path.write_text(text)
    script = directory / "script.py"
    script.write_text(RUN.format(str(path)))
    done = run_python([script], cwd=directory, check=False)
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


def test_a_misspelt_key_is_named_before_what_lacks(tmp_path):
    text = wrong_config(tmp_path, '{"task": "statistics", "dump_pth": "x", "level": "L0"}')
    assert text.index('did you mean "dump_path"') < text.index('dump_path is ""')


def test_a_misspelt_task_and_a_comment(tmp_path):
    text = wrong_config(tmp_path, '{"task": "statistic", "dump_path": "x"}')
    assert 'did you mean "statistics"' in text
    for comment in ("// why", "# why", "/* why */"):
        text = wrong_config(tmp_path, f'{{\n  {comment}\n  "task": "statistics"}}')
        assert "line 2" in text and "no comments" in text
    assert "no comments" not in wrong_config(tmp_path, '{"task": "sta#tistics // x"}')


def test_an_error_of_run_has_one_prefix(tmp_path):
    path = write_config(tmp_path, task="statistics", level="L0")
    path.write_text(path.read_text().replace('"statistics", ', '"statistic", ', 1))
    done = run(["run", "--config", path, "--", "python", "-c", "import torch"], check=False)
    assert done.returncode != 0 and done.stderr.count("[msprobe] error:") == 1
    assert done.stderr.splitlines()[-1].count("[msprobe]") == 1


@pytest.fixture
def dump(tmp_path):
    return capture(
        tmp_path, "m = nn.Linear(2, 2)\ndebugger.start(m)\nm(torch.ones(1, 2))\ndebugger.stop()\n", level="L0"
    ).root


def served(directory, tmp_path, **environment):
    """What `serve --open` says, with a program in the place of the browser that notes that it ran."""
    browser = tmp_path / "bin/xdg-open"
    browser.parent.mkdir(exist_ok=True)
    browser.write_text(f'#!/bin/sh\necho noise >&2\ntouch "{tmp_path}/opened"\n')
    browser.chmod(0o755)
    env = {k: v for k, v in os.environ.items() if k != "SSH_CONNECTION"}
    env.update(environment, PATH=f"{browser.parent}:{env['PATH']}")
    process = subprocess.Popen(
        [find_command(), "serve", str(directory), "--open", "--port", "0"],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "Ctrl-C" in line:
            break
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=60)
    return out, "".join(lines) + rest


def test_a_page_over_ssh_prints_the_tunnel_and_stays_quiet(dump, tmp_path):
    out, errors = served(dump, tmp_path, SSH_CONNECTION="10.0.0.1 5000 10.0.0.7 22")
    port = out.split("127.0.0.1:")[1].split("/")[0]
    assert f"ssh -L {port}:127.0.0.1:{port} 10.0.0.7" in out
    assert "noise" not in errors and not (tmp_path / "opened").exists()


def test_a_page_of_dumps_says_how_they_become_a_graph(dump, tmp_path):
    out, errors = served(dump, tmp_path)
    assert f"msprobe graph_visualize {dump}" in errors and "ssh -L" not in out
    assert "noise" not in errors
