"""The scripts that prepare a shell for the probe of ATB. The library is a stand-in: it runs on an NPU only."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "python" / "msprobe" / "scripts" / "atb"
SHOW = 'echo "$?|$LD_PRELOAD|$ATB_OUTPUT_DIR|$ATB_DUMP_CONFIG"'


@pytest.fixture
def ascend(tmp_path):
    """Variables of a shell in which CANN and ATB are set up."""
    libraries = tmp_path / "lib"
    libraries.mkdir()
    for interface in (0, 1):
        (libraries / f"libatb_probe_abi{interface}.so").write_bytes(b"")
    return {
        "ASCEND_HOME_PATH": "/usr/local/Ascend",
        "ATB_HOME_PATH": "/usr/local/Ascend/nnal/atb/cxx_abi_1",
        "MSPROBE_ATB_PROBE_DIR": str(libraries),
        "MSPROBE_PYTHON": sys.executable,
    }


def shell(directory, variables, *lines):
    environment = {"PATH": os.environ["PATH"], **variables}
    script = "\n".join(lines)
    return subprocess.run(["bash", "-c", script], cwd=directory, env=environment, capture_output=True, text=True)


def probe(*arguments, cwd):
    command = [sys.executable, SCRIPTS / "atb_probe.py", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def load(*arguments):
    return f"source {SCRIPTS}/load_atb_probe.sh {' '.join(arguments)}; {SHOW}"


def test_a_shell_is_prepared_and_put_back(tmp_path, ascend):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"task": "statistics", "dump_enable": True}))
    # A library that exists: the loader warns of others in every program of the shell.
    done = shell(
        tmp_path,
        {**ascend, "LD_PRELOAD": ""},
        f"{load('--output=out', '--config=config.json')}; export LD_PRELOAD=first.so:$LD_PRELOAD:last.so",
        f"source {SCRIPTS}/unload_atb_probe.sh 2>/dev/null; {SHOW}",
    )
    before, after = done.stdout.splitlines()
    library = f"{ascend['MSPROBE_ATB_PROBE_DIR']}/libatb_probe_abi1.so"
    assert before == f"0|{library}|{tmp_path}/out|{config}"
    assert after.split("|")[1:] == ["first.so:last.so", "", ""]


def test_a_configuration_may_come_later(tmp_path, ascend):
    done = shell(tmp_path, ascend, load("--config=later.json"))
    assert done.stdout.startswith("0|") and "later.json does not exist yet" in done.stderr


@pytest.mark.parametrize(
    ("changed", "arguments", "said"),
    [
        ({"ASCEND_HOME_PATH": ""}, (), "ASCEND_HOME_PATH is not set"),
        ({"ATB_HOME_PATH": "/opt/atb"}, (), "does not end in cxx_abi_0 or cxx_abi_1"),
        ({"MSPROBE_ATB_PROBE_DIR": "/nowhere"}, (), "libatb_probe_abi1.so is not in /nowhere"),
        ({}, ("--config=wrong.json",), 'task is "tensors"; allowed: tensor, statistics, all'),
        ({}, ("--output=wrong.json",), "is not a directory"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_set(tmp_path, ascend, changed, arguments, said):
    (tmp_path / "wrong.json").write_text('{"task": "tensors"}')
    done = shell(tmp_path, {**ascend, **changed}, load(*arguments))
    assert done.stdout.strip() == "1|||"
    assert said in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("exec_range", "2,1"),
        ("exec_range", "1"),
        ("ids", "a"),
        ("ids", "0,,1"),
        ("device", "npu:0"),
        ("op_name", "word;rm"),
        ("save_child", 1),
        ("filter_level", 3),
        ("filter_level", True),
        ("frob", 1),
    ],
)
def test_values_that_the_probe_does_not_take(tmp_path, key, value):
    (tmp_path / "config.json").write_text(json.dumps({key: value}))
    done = probe("check", "config.json", cwd=tmp_path)
    assert done.returncode == 1 and "config.json: " in done.stderr and key in done.stderr


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"{"])
def test_files_that_are_no_configuration(tmp_path, content):
    (tmp_path / "config.json").write_bytes(content)
    done = probe("check", "config.json", cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("[msprobe] error: config.json: ")


def test_a_written_configuration_is_a_good_one(tmp_path):
    made = probe(
        "config", "--task", "statistics", "--dump_enable", "--ids", "0,2_1", "--exec_range", "0,2", cwd=tmp_path
    )
    assert made.returncode == 0, made.stderr
    config = json.loads((tmp_path / "config.json").read_text())
    example = json.loads((SCRIPTS / "config_example.json").read_text())
    assert list(config) == list(example) and config["ids"] == "0,2_1"
    assert probe("check", "config.json", cwd=tmp_path).returncode == 0
    refused = probe("config", "--exec_range", "x", "-o", "other.json", cwd=tmp_path)
    assert refused.returncode == 1 and not (tmp_path / "other.json").exists()
