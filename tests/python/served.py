"""A server under test with one of everything in its directory, for the tests of its routes."""

import contextlib
import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from graph_cases import find_command

OPENAPI = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"
STEPS = 2
CALLS = ("Functional.linear.0.forward", "Functional.relu.0.forward", "Torch.add.0.forward")
MODULE = "Module.layers.0.fc.Linear.forward.0"
ITEM = "input.0"


class Reply(NamedTuple):
    status: int
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


def dump(rank, shift, tensors):
    """A dump of three calls; with `tensors` their values as well."""
    rank.mkdir(parents=True)
    files = rank / "dump_tensor_data"

    def tensor(name, seed):
        values = np.random.default_rng(seed).normal(size=(3, 4, 5)).astype(np.float32) + shift
        value = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [3, 4, 5], "requires_grad": False}
        value.update(Max=float(values.max()), Min=float(values.min()), Mean=float(values.mean()))
        value["Norm"] = float(np.linalg.norm(values))
        if tensors:
            files.mkdir(exist_ok=True)
            np.save(files / f"{name}.npy", values)
            value["data_name"] = f"{name}.npy"
        return value

    data = {}
    for i, name in enumerate((*CALLS, MODULE)):
        made = [tensor(f"{name}.{item}", 2 * i + k) for k, item in enumerate((ITEM, "output.0"))]
        data[name] = {"input_args": [made[0]], "input_kwargs": {}, "output": [made[1]]}
    head = {"task": "tensor" if tensors else "statistics", "level": "mix", "framework": "pytorch"}
    head["dump_data_dir"] = str(files.resolve()) if tensors else None
    (rank / "dump.json").write_text(json.dumps({**head, "data": data}))
    parents = {**dict.fromkeys(CALLS[:2], MODULE), CALLS[2]: None, MODULE: None}
    (rank / "construct.json").write_text(json.dumps(parents))
    (rank / "stack.json").write_text(json.dumps({"0": [[CALLS[0]], ["File a.py, line 1, in f"]]}))


def msprobe(*args):
    subprocess.run([find_command(), *map(str, args)], check=True, capture_output=True)


def fill(root):
    """root/served: graphs of statistics and of tensors, trends, what is broken, and links that lead out of it."""
    served = root / "served"
    for name, shift, tensors in (("a", 0.25, False), ("b", 0, False), ("ta", 0.25, True), ("tb", 0, True)):
        for step in range(STEPS):
            dump(served / "dumps" / name / f"step{step}" / "rank0", shift * (step + 1), tensors)
    dumps = served / "dumps"
    made = (("compared", "a", "b"), ("tensors", "ta", "tb"), ("single", "a", None))
    for name, target, golden in made:
        more = ["-gp", dumps / golden] if golden else []
        msprobe("graph_visualize", "-tp", dumps / target, *more, "-o", root / "made")
        (found,) = (root / "made").glob("*.vis.db")
        shutil.move(found, served / f"{name}.vis.db")
    msprobe("data2db", "--data", dumps / "a", "--db", served)
    (served / "broken.vis.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    (served / "map.yaml").write_text("a: b\n")
    outside = root / "outside"
    outside.mkdir()
    shutil.copy(served / "single.vis.db", outside / "secret.vis.db")
    shutil.copy(served / "dump_data.trend.db", outside / "secret.trend.db")
    (outside / "secret.yaml").write_text("a: b\n")
    for name in ("secret.vis.db", "secret.trend.db", "secret.yaml"):
        (served / f"link_{name}").symlink_to(outside / name)
    (served / "link").symlink_to(outside)
    return served


class Server:
    def __init__(self, directory, *options):
        command = [find_command(), "serve", str(directory), "--port", "0", "--json", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = json.loads(self.process.stdout.readline())
        self.port, self.token = said["port"], said["token"]
        self.url = f"http://127.0.0.1:{self.port}"
        self.headers = {"X-Msprobe-Token": self.token}

    def ask(self, target, *, body=None, headers=None):
        """`target` goes out as it is; with a body by POST."""
        data = None if body is None else json.dumps(body).encode()
        sent = {**self.headers, **({"Content-Type": "application/json"} if data else {}), **(headers or {})}
        request = urllib.request.Request(self.url + target, data=data, headers=sent)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return Reply(reply.status, reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.read())

    def api(self, what, **parameters):
        return self.ask(f"/api/{what}?{urllib.parse.urlencode(parameters)}")

    def memory_mb(self):
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1024

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        """What it said on stderr."""
        self.process.terminate()
        return self.process.communicate(timeout=60)[1]


@contextlib.contextmanager
def serving(directory, *options):
    server = Server(directory, *options)
    try:
        yield server
    finally:
        server.stop()


def openapi():
    return yaml.safe_load(OPENAPI.read_text())
