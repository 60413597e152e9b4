"""`--engine ray`: the same file as the local engine writes, from parts that tasks on a cluster have built."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from graph_cases import REPO, find_command, golden_set, missing, only_db, run

# A stand-in for the package: tasks in two threads, each of which runs its command as a process of its own.
STAND_IN = """
import os
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait as _wait
from types import SimpleNamespace

pool = ThreadPoolExecutor(2)
exceptions = SimpleNamespace(RayError=KeyError)
is_initialized = lambda: True
nodes = lambda: [{"Alive": True, "Resources": {"CPU": 2.0}}, {"Alive": True, "Resources": {}}]


def get(task):
    if "STAND_IN_LOST" in os.environ:
        raise KeyError
    return task.result()


class remote:
    def __init__(self, function):
        self.function = function

    def options(self, **_):
        return self

    def remote(self, *arguments):
        return pool.submit(self.function, *arguments)


def wait(tasks, num_returns, timeout):
    if "STAND_IN_WAITS" in os.environ:
        open(os.environ["STAND_IN_WAITS"], "w").close()
        time.sleep(3)
        return [], tasks
    ready = next(iter(_wait(tasks, return_when=FIRST_COMPLETED).done))
    return [ready], [task for task in tasks if task is not ready]
"""


@pytest.fixture
def stand_in(tmp_path):
    folder = tmp_path / "packages" / "ray"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(STAND_IN)
    paths = [str(folder.parent), os.environ.get("PYTHONPATH", "")]
    return {"MSPROBE_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)}


@pytest.fixture
def real_ray():
    python = Path(os.environ.get("MSPROBE_RAY_PYTHON", REPO / ".venv-ray" / "bin" / "python"))
    if not python.exists():
        missing(f"Ray is not installed at {python}; set MSPROBE_RAY_PYTHON")
    # Where Ray leaves the address of a cluster: of one that is gone. Short, for there are sockets in it.
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        (Path(folder) / "ray").mkdir()
        (Path(folder) / "ray" / "ray_current_cluster").write_text("192.0.2.2:6399")
        yield {"MSPROBE_PYTHON": str(python), "RAY_TMPDIR": folder}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A real one with two workers, for all tests of this file: starting it takes longer than they do."""
    python = Path(os.environ.get("MSPROBE_RAY_PYTHON", REPO / ".venv-ray" / "bin" / "python"))
    if not python.exists():
        missing(f"Ray is not installed at {python}; set MSPROBE_RAY_PYTHON")
    script = (
        "import ray, sys; "
        "head = ray.init('local', num_cpus=2, include_dashboard=False, logging_level='ERROR'); "
        "print(head.address_info['gcs_address'], flush=True); "
        "sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    ours = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "of_this_test_" * 4}
    with subprocess.Popen([python, "-c", script], env={**os.environ, **ours}, **pipes) as head:
        address = head.stdout.readline().strip()
        assert address, "Ray does not start"
        yield {"MSPROBE_PYTHON": str(python), "RAY_ADDRESS": address, **ours}
        head.stdin.close()


def content(path):
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        layout = db.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
        tables = [name for kind, name, _ in layout if kind == "table"]
        return layout, {name: sorted(db.execute(f"SELECT * FROM {name}"), key=repr) for name in tables}
    finally:
        db.close()


def graph(out, *args, target="weight", data="tp_mix_stat", **how):
    """The summary and the content of the file; `out` is new."""
    side = golden_set() / "data" / data
    done = run(["graph_visualize", "-tp", side / target, "-gp", side / "bench", "-o", out, "--json", *args], **how)
    assert [f.suffix for f in out.iterdir()] == [".db"], "parts are gone"
    return done.stdout.replace(str(only_db(out)), "FILE"), content(only_db(out))


@pytest.mark.parametrize("args", [["-oc"], ["--plain"], ["-lm", "-fm"]], ids=" ".join)
def test_parts_make_the_same_file(args, stand_in, tmp_path):
    local = graph(tmp_path / "local", *args)
    parts = graph(tmp_path / "ray", *args, "--engine", "ray", env=stand_in)
    assert parts == local


def assert_same_file(case, ray, tmp_path):
    """Of a case of the golden set, by the local engine and by that of `ray`."""
    results = []
    for name, more, env in (("local", [], None), ("ray", ["--engine", "ray"], ray)):
        root = golden_set()
        argv = json.loads((root / "expected" / case / "case.json").read_text())["argv"][1:]
        out = tmp_path / name
        done = run([*(a.replace("@OUT", str(out)) for a in argv), "--json", *more], cwd=root, env=env)
        assert [f.suffix for f in out.iterdir()] == [".db"], "parts are gone"
        results.append((done.stdout.replace(str(only_db(out)), "FILE"), content(only_db(out))))
    assert results[0] == results[1]


@pytest.mark.parametrize("case", ["vis_merge_tppp_cmp", "vis_merge_tpdp"])
def test_merged_parts_make_the_same_file(case, stand_in, tmp_path):
    assert_same_file(case, stand_in, tmp_path)


LAYOUTS = ["vis_merge_tpdp", "vis_merge_tppp_cmp", "vis_merge_vpp"]


@pytest.mark.parametrize("case", LAYOUTS)
def test_a_cluster_makes_the_same_file(case, cluster, tmp_path):
    assert_same_file(case, cluster, tmp_path)


def is_group(pid):
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_parts_of_a_killed_command_are_removed(stand_in, tmp_path):
    data = golden_set() / "data" / "tp_mix_stat" / "bench"
    out = tmp_path / "out"
    env = {**os.environ, **stand_in, "STAND_IN_WAITS": str(tmp_path / "waits")}
    args = [find_command(), "graph_visualize", "-tp", data, "-o", out, "--engine", "ray"]
    nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(list(map(str, args)), env=env, start_new_session=True, **nowhere) as killed:
        while not (tmp_path / "waits").exists():
            assert killed.poll() is None
            time.sleep(0.02)
        killed.kill()
    # What it started goes on for a while and would write into what the next command removes.
    end = time.monotonic() + 60
    while is_group(killed.pid):
        assert time.monotonic() < end, "the tasks of the killed command go on"
        time.sleep(0.05)
    (left,) = out.iterdir()
    assert left.name.startswith(".parts_") and left.name.endswith(f"_{killed.pid}")
    run([*args[1:]], env=stand_in)
    assert [f.suffix for f in out.iterdir()] == [".db"]


@pytest.mark.parametrize(
    "more,word",
    [(["--rank_size", "2", "--tp", "2", "--pp", "1", "--file_type", "json"], "--file_type"), (["-tensor_log"], "log")],
    ids=["json", "log"],
)
def test_what_ray_does_not_do_is_said(more, word, tmp_path):
    data = golden_set() / "data" / "tp_mix_stat" / "bench"
    done = run(["graph_visualize", "-tp", data, "-o", tmp_path / "out", "--engine", "ray", *more], check=False)
    assert done.returncode == 2 and word in done.stderr


def refused(out, ray, *args, target=None):
    side = golden_set() / "data" / "tp_mix_stat"
    args = ["-tp", target or side / "weight", "-gp", side / "bench", "-o", out, "--engine", "ray", *args]
    done = run(["graph_visualize", *args], check=False, env=ray)
    assert not out.exists() or list(out.iterdir()) == [], "something is left"
    return done


def test_a_lost_task_is_an_error(stand_in, tmp_path):
    done = refused(tmp_path / "out", {**stand_in, "STAND_IN_LOST": "1"})
    assert done.returncode == 4
    assert "the task was lost: KeyError" in done.stderr and len(done.stderr.splitlines()) == 1


def patched(stand_in, old, new):
    """The stand-in with one line of it replaced."""
    path = Path(stand_in["PYTHONPATH"].split(os.pathsep)[0]) / "ray" / "__init__.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return stand_in


def test_a_machine_that_lacks_the_files_is_named(stand_in, tmp_path):
    started = "return pool.submit(self.function, *arguments)"
    moved = (
        "command, _, *rest = arguments; rest[-1] = 'another'; "
        "return pool.submit(self.function, [w.replace('weight', 'gone') for w in command], _, *rest)"
    )
    done = refused(tmp_path / "out", patched(stand_in, started, moved))
    assert done.returncode == 3
    assert "gone does not exist" in done.stderr and f"(on {socket.gethostname()})" in done.stderr


def test_a_machine_that_sees_other_files_does_not_mix_them(stand_in, tmp_path):
    data = golden_set() / "data" / "tp_mix_stat"
    for side in ("weight", "bench"):
        (tmp_path / "other" / side).mkdir(parents=True)
        for step in (5, 6):
            (tmp_path / "other" / side / f"step{step}").symlink_to((data / side / "step0").resolve())
    started = "return pool.submit(self.function, *arguments)"
    other = f"[w.replace({str(data)!r}, {str(tmp_path / 'other')!r}) for w in command]"
    moved = f"command, *rest = arguments; return pool.submit(self.function, {other}, *rest)"
    done = refused(tmp_path / "out", patched(stand_in, started, moved))
    assert done.returncode == 3 and "step 5 rank 0 where step 0 rank 0 was to be built" in done.stderr


def test_an_output_directory_of_its_own_is_an_error(stand_in, tmp_path):
    started = "return pool.submit(self.function, *arguments)"
    elsewhere = tmp_path / "elsewhere"
    moved = (
        "command, *rest = arguments; at = command.index('-o') + 1; "
        f"return pool.submit(self.function, [*command[:at], {str(elsewhere)!r}, *command[at + 1:]], *rest)"
    )
    done = refused(tmp_path / "out", patched(stand_in, started, moved))
    assert done.returncode == 3 and "must see the output directory" in done.stderr


def test_ray_makes_the_same_file(real_ray, tmp_path):
    assert graph(tmp_path / "ray", "--engine", "ray", env=real_ray) == graph(tmp_path / "local")


def test_a_rank_that_cannot_be_read_is_left_out(stand_in, tmp_path):
    dump = tmp_path / "dump"
    for side in ("weight", "bench"):
        for rank in ("rank0", "rank1"):
            (dump / side / "step0").mkdir(parents=True, exist_ok=True)
            source = golden_set() / "data" / "tp_mix_stat" / side / "step0" / rank
            (dump / side / "step0" / rank).symlink_to(source.resolve())
    broken = dump / "weight" / "step0" / "rank1"
    broken.unlink()
    broken.mkdir()
    (broken / "dump.json").write_text("{}")
    results = []
    for engine in ("local", "ray"):
        done = graph(tmp_path / engine, "--engine", engine, target=str(dump / "weight"), env=stand_in, check=False)
        results.append(done)
    assert results[0] == results[1]
    assert '"left_out": true' in results[0][0]


def test_without_ray_the_command_says_how_to_get_it(tmp_path):
    side = golden_set() / "data" / "tp_mix_stat" / "bench"
    broken = tmp_path / "packages" / "ray"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('not here')")
    env = {"MSPROBE_PYTHON": sys.executable, "PYTHONPATH": str(broken.parent)}
    done = run(["graph_visualize", "-tp", side, "-o", tmp_path / "out", "--engine", "ray"], check=False, env=env)
    assert done.returncode == 2 and "pip install 'msprobe[ray]'" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []
