"""How the package meets the environment it is installed in: without PyTorch, beside the earlier tool, as a module."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from launch import PACKAGE_ROOT, run_python


def run_module(*args, cwd):
    return run_python(["-m", "msprobe", *args], cwd=cwd, check=False)


def test_the_module_is_the_command(tmp_path):
    command = shutil.which("msprobe")
    assert command, "the command msprobe is not on PATH"
    for args in (["--version"], ["--help"], ["compare", "--nonsense"], ["compare", "-tp", "none", "-gp", "none"]):
        ours = run_module(*args, cwd=tmp_path)
        theirs = subprocess.run([command, *args], cwd=tmp_path, capture_output=True, text=True)
        assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr), args
    assert run_module("compare", "--nonsense", cwd=tmp_path).returncode == 2


def test_without_pytorch(run_script):
    done = run_script(
        """
import sys
sys.modules["torch"] = None  # as if it were not installed
import msprobe
print(msprobe.__version__)
try:
    from msprobe.pytorch import PrecisionDebugger
except ImportError as error:
    print(error.name, "|", error)
""",
        fresh=True,
    )
    version, error = done.stdout.splitlines()
    assert version.count(".") == 2
    assert error.startswith("torch | msprobe.pytorch needs PyTorch") and sys.executable in error and "install" in error


@pytest.mark.parametrize("module", ["msprobe.pytorch", "msprobe.mindspore"])
def test_a_free_threaded_interpreter_is_refused(run_script, module):
    done = run_script(
        f"""
import sys
sys._is_gil_enabled = lambda: False
import msprobe
print(msprobe.__version__)
try:
    from {module} import PrecisionDebugger
except ImportError as error:
    print(error)
print("msprobe._core" in sys.modules)  # which would switch the lock on for all
""",
        fresh=True,
    )
    _, error, loaded = done.stdout.splitlines()
    assert "only under the lock" in error and sys.executable in error and "PYTHON_GIL=1" in error and loaded == "False"


def test_a_run_in_a_free_threaded_interpreter_goes_on(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys._is_gil_enabled = lambda: False\n")
    (tmp_path / "torch.py").write_text("")
    command = [shutil.which("msprobe"), "run", "--dump-path", tmp_path / "dump", "--", sys.executable, "-c"]
    done = subprocess.run(
        [*map(str, command), "import torch; print('went on')"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "went on" in done.stdout
    (line,) = [line for line in done.stderr.splitlines() if "nothing is recorded" in line]
    assert "only under the lock" in line and "install msprobe" not in line


def test_a_broken_pytorch_is_not_called_missing(run_script, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("import a_part_of_torch_that_is_missing")
    done = run_script("import msprobe.pytorch", check=False, fresh=True)
    assert "No module named 'a_part_of_torch_that_is_missing'" in done.stderr and "install torch" not in done.stderr


def test_a_pytorch_that_is_too_old(run_script, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("class nn:\n    class Module: pass\n__version__ = '1.13.1'\n")
    done = run_script("import msprobe.pytorch", check=False, fresh=True)
    assert "ImportError: msprobe.pytorch needs PyTorch 2.0 or newer" in done.stderr and "1.13.1" in done.stderr


@pytest.fixture
def site(tmp_path):
    """A copy of the package in a directory of its own."""
    place = tmp_path / "lib" / "python3" / "site-packages"
    shutil.copytree(PACKAGE_ROOT / "msprobe", place / "msprobe", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return place


def run_in(site, *args):
    code = f"import sys; sys.path.insert(0, {str(site)!r}); " + args[0]
    return run_python(["-c", code], ours=False, check=False)


def test_the_earlier_tool_in_the_same_directory_is_refused(site):
    (site / "mindstudio_probe-26.2.0.dist-info").mkdir()
    done = run_in(site, "import msprobe")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    active = "msprobe was installed last"
    for part in ("ImportError: ", str(site), active, "pip uninstall mindstudio-probe", "--force-reinstall"):
        assert part in last, part


def test_the_earlier_tool_installed_over_ours_is_refused_by_the_module(site):
    """Its __init__ is there instead of ours; `python -m msprobe` is the only part of ours that still runs."""
    (site / "mindstudio_probe-26.2.0.dist-info").mkdir()
    (site / "msprobe" / "__init__.py").write_text("")
    done = run_in(site, "import runpy; runpy.run_module('msprobe', run_name='__main__')")
    assert done.returncode == 4
    assert done.stderr.startswith("[msprobe] error: ") and "pip uninstall mindstudio-probe" in done.stderr
    assert "mindstudio-probe was installed last" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("last", ["ours", "theirs"])
def test_uninstalling_the_earlier_tool_says_how_to_go_on(site, old_python, last):
    """With its real files, in either order: what is left of ours asks for the rest of it."""
    theirs = next(old_python.parents[1].glob("lib/python3*/site-packages"))
    ours = site.parent / "ours"
    shutil.copytree(site / "msprobe", ours)
    shutil.copytree(theirs / "msprobe", site / "msprobe", dirs_exist_ok=True)
    (info,) = theirs.glob("mindstudio_probe-*.dist-info")
    shutil.copytree(info, site / info.name)
    if last == "ours":
        shutil.copytree(ours, site / "msprobe", dirs_exist_ok=True)
    run_module = (
        f"sys.path[:] = [p for p in sys.path if p == {str(site)!r} or 'packages' not in p]; "
        "import os; os.environ['PATH'] = '/nowhere'; import runpy; runpy.run_module('msprobe', run_name='__main__')"
    )
    before = run_in(site, run_module)
    active = {"ours": "msprobe", "theirs": "mindstudio-probe"}[last]
    assert f"{active} was installed last" in before.stderr
    for line in (info / "RECORD").read_text().splitlines():  # as pip uninstalls
        if line.startswith("msprobe/"):
            (site / line.split(",")[0]).unlink(missing_ok=True)
    shutil.rmtree(site / info.name)
    after = run_in(
        site,
        run_module.replace("import runpy", "import sysconfig; sysconfig.get_path = lambda n: '/nowhere'; import runpy"),
    )
    assert after.returncode == 4 and "install msprobe again with --force-reinstall" in after.stderr


def test_the_earlier_tool_elsewhere_on_the_path_does_no_harm(site, tmp_path):
    other = tmp_path / "other"
    (other / "mindstudio_probe-26.2.0.dist-info").mkdir(parents=True)
    done = run_in(site, f"sys.path.append({str(other)!r}); import msprobe; print(msprobe.__version__)")
    assert done.returncode == 0 and done.stdout.strip(), done.stderr


def test_a_missing_command_is_said(site):
    done = run_in(
        site,
        "import os, sysconfig; os.environ['PATH'] = '/nowhere'; sysconfig.get_path = lambda name: '/nowhere'; "
        "import runpy; runpy.run_module('msprobe', run_name='__main__')",
    )
    assert done.returncode == 4 and "--force-reinstall" in done.stderr


def test_the_environment_of_the_command_is_taken_where_python_has_no_msprobe(tmp_path):
    """`python` on PATH is another one than that of the command; a Python that is named by its path is the user's choice."""
    bare = tmp_path / "bare" / "bin"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare.parent], check=True)
    script = tmp_path / "x.py"
    script.write_text("import sys; print(sys.executable)")
    command = [shutil.which("msprobe"), "run", "--dump-path", str(tmp_path / "dump"), "--"]

    def run(python, **env):
        path = os.pathsep.join([str(bare), os.environ["PATH"]])
        given = {**os.environ, "PATH": path, "LC_ALL": "C", **env}
        given.pop("PYTHONPATH", None)
        return subprocess.run([*command, python, str(script)], capture_output=True, text=True, env=given, check=True)

    done = run("python")
    own = str(Path(command[0]).resolve().parent / "python")
    assert done.stdout.strip() == own and done.stderr.count("\n") == 1
    assert f"python is {bare}/python, which has no msprobe: {own} is used" in done.stderr
    assert "其中没有 msprobe" in run("python", LC_ALL="zh_CN.UTF-8").stderr
    assert run(str(bare / "python")).stdout.strip() == str(bare / "python")
    site = next(bare.parent.glob("lib/python3*/site-packages"))
    (site / "ours.pth").write_text(str(PACKAGE_ROOT))
    has = run("python")
    assert has.stdout.strip() == str(bare / "python") and has.stderr == ""
