"""What people type by mistake is answered with what to type instead."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from capture_helpers import capture, write_config
from graph_cases import find_command, run
from launch import run_python

WORDS = Path(__file__).resolve().parents[2] / "src/cli/help"
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


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["nan_check"], "msprobe overflow_check DUMP"),
        (["judge"], "msprobe monitor judge DIR"),
        (["diff", "a", "b"], "msprobe compare DUMP REFERENCE"),
        (["visualize"], "msprobe graph_visualize DUMP REFERENCE -o DIR"),
        (["version"], "msprobe --version"),
        (["compare", "--tp", "a"], "-tp (--target_path)"),
        (["compare", "-t", "a"], "-tp (--target_path)"),
        (["compare", "-html", "a", "b"], "--html?"),
        (["monitor", "-o", "a"], "--output?"),
    ],
)
def test_another_word_for_it(typed, meant):
    code, text = said(*typed)
    assert code == 2 and "did you mean" in text and meant in text


def test_every_other_word_names_a_command():
    """Each line that stands for a word of the user's can be typed: its command is known."""
    rows = re.findall(r'MSP_OTHER_WORD\("([^"]+)", "msprobe ([^" ]+)', (WORDS / "other_words.def").read_text())
    commands = set(re.findall(r'MSP_COMMAND\(\w+, +"([^"]+)"', (WORDS.parent / "context/commands.def").read_text()))
    assert len(rows) > 30
    for word, command in rows:
        assert command in commands | {"--version"}, word
        assert word not in commands


def test_no_command_shows_all():
    done = run([], check=False)
    assert done.returncode == 2 and "compare" in done.stdout and "a command is missing" in done.stderr
    assert run(["-v"]).stdout == run(["--version"]).stdout


def test_a_path_that_is_missing_is_asked_for_where_it_is_missing():
    for typed in (["compare", "-tp"], ["compare", "-tp", "-gp", "a"]):
        code, text = said(*typed)
        assert code == 2 and "-tp needs a path" in text and "golden" not in text


def test_a_part_of_a_command_has_examples_of_its_own():
    code, text = said("monitor", "judge")
    assert code == 2 and "as in 'msprobe monitor judge " in text and "'msprobe monitor judge --help'" in text


def test_a_script_without_its_interpreter(tmp_path):
    (tmp_path / "train.py").write_text("print('no')\n")
    code, text = said("run", "--", tmp_path / "train.py")
    assert code == 2 and f"give python {tmp_path / 'train.py'}" in text


def test_a_dump_where_something_else_is_asked_for(dump):
    code, text = said("compare", dump)
    assert code == 2 and f"msprobe compare {dump} REFERENCE" in text and f"msprobe overflow_check {dump}" in text
    code, text = said("graph_visualize", dump)
    assert code == 2 and "needs -o DIRECTORY" in text and "TARGET" not in text
    code, text = said("config_check", dump, dump)
    assert code == 3 and "holds no configuration" in text
    for command in (["ckpt", "show"], ["ckpt", "compare", dump]):
        code, text = said(*command, dump)
        assert code == 3 and "is a dump" in text and "msprobe compare" in text
    code, text = said("optimizer_replay", dump)
    assert code == 3 and "--save-optimizer" in text


def test_config_check_takes_two_runs_without_an_option(tmp_path):
    for name, rate in (("a.yaml", "1e-4"), ("b.yaml", "3e-4")):
        (tmp_path / name).write_text(f"learning_rate: {rate}\nper_device_train_batch_size: 2\n")
    a, b = tmp_path / "a.yaml", tmp_path / "b.yaml"
    short = run(["config_check", a, b, "--json"], check=False)
    whole = run(["config_check", "-tp", a, "-gp", b, "--json"], check=False)
    assert short.stdout == whole.stdout and short.returncode == whole.returncode
    code, text = said("config_check", a)
    assert code == 2 and f"msprobe config_check {a} REFERENCE" in text
