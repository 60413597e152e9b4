"""What bash completes, and the page of man: both made of the declaration of the commands."""

import re
import shutil
import subprocess

import pytest
from graph_cases import find_command

TRY = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_msprobe
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("completion") / "msprobe.bash"
    path.write_text(
        subprocess.run([find_command(), "completion", "bash"], check=True, capture_output=True, text=True).stdout
    )
    return path


@pytest.mark.parametrize(
    "typed,wanted",
    [
        (["com"], {"compare", "completion"}),
        (["compare", "--htm"], {"--html"}),
        (["compare", "-t"], {"-tp"}),
        (["ckpt", "c"], {"compare", "convert"}),
        (["ckpt", "compare", "--ex"], {"--exact"}),
        (["compare", "-tp", "compare", "--fail-on", "s"], {"suspicious"}),
        (["monitor", "j"], {"judge"}),
        # A value of an option that no list bounds, and words behind "--", are files or the user's own.
        (["compare", "-tp", "du"], set()),
        (["run", "--task", "x", "--", "msp"], set()),
    ],
)
def test_bash_completes(script, typed, wanted):
    done = subprocess.run(["bash", "-c", TRY, "bash", script, "msprobe", *typed], capture_output=True, text=True)
    assert done.stderr == ""
    assert wanted <= set(done.stdout.split()), done.stdout
    assert bool(done.stdout.split()) == bool(wanted)


def test_each_command_of_the_help_is_completed(script):
    listed = subprocess.run([find_command(), "--help"], capture_output=True, text=True).stdout
    names = re.findall(r"^  ([a-z0-9_-]+) {2,}\S", listed, re.MULTILINE)
    assert len(names) > 25
    done = subprocess.run(["bash", "-c", TRY, "bash", script, "msprobe", ""], capture_output=True, text=True)
    assert set(names) - set(done.stdout.split()) <= {"-f", "-h"}


def test_the_page_of_man_has_every_command():
    page = subprocess.run([find_command(), "completion", "man"], check=True, capture_output=True, text=True).stdout
    for name in ("run", "compare", "ckpt compare", "verify\\-dump"):
        assert f".SS msprobe {name}\n" in page
    if groff := shutil.which("groff"):
        told = subprocess.run([groff, "-man", "-Tascii", "-ww"], input=page, capture_output=True, text=True)
        assert told.returncode == 0 and told.stderr == ""


def test_another_shell_is_refused():
    done = subprocess.run([find_command(), "completion", "fish"], capture_output=True, text=True)
    assert done.returncode == 2 and "bash" in done.stderr
