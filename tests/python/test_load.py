"""load: modules get the inputs of an earlier dump, here of one the earlier tool made."""

import json

import pytest
from capture_helpers import capture

NET = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x, scale=None, times=1):
        return self.fc(x) * scale * times
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.block, self.head = nn.Linear(4, 4), Block(), nn.Linear(4, 2)
    def forward(self, x):
        x = self.first(x)
        x = self.block(x, scale=x.abs(), times=2)
        return self.head(self.block(x, scale=x, times=1))
torch.manual_seed(3)
net = Net()
def run(x, seen):
    handles = [net.block.register_forward_hook(lambda m, a, k, out: seen.append((a[0], k["scale"])), with_kwargs=True)]
    debugger.start(model=net)
    out = net(x)
    out.sum().backward()
    debugger.stop()
    debugger.step()
    handles[0].remove()
    return out
"""
BLOCK = "Module.block.Block.forward"


@pytest.fixture(scope="module")
def source(tmp_path_factory, old_python):
    """A dump of tensors, of two steps."""
    body = (
        NET
        + """
for step in range(2):
    seen = []
    run(torch.full((2, 4), 1.0 + step), seen)
    torch.save([[t.detach() for t in pair] for pair in seen], f"seen{step}.pt")
"""
    )
    directory = tmp_path_factory.mktemp("source")
    capture(directory, body, python=old_python, task="tensor", level="L0")
    return directory


LOAD_ONLY = (
    NET
    + """
import os
for step in range(3):
    seen, theirs = [], torch.load(f"{SOURCE}/seen{min(step, 1)}.pt")
    out = run(torch.full((2, 4), 9.0), seen)
    (a0, s0), (a1, s1) = seen
    loaded = step == 1
    assert torch.equal(a0, theirs[0][0]) == loaded and torch.equal(s0, theirs[0][1]) == loaded, step
    assert torch.equal(a1, theirs[1][0]) == loaded  # computed from what was loaded
    assert a0.requires_grad and (a0.grad_fn is None) == loaded
assert not os.path.exists("dump")
assert len(net.block._forward_pre_hooks) == 1
import copy
twin = copy.deepcopy(net)
twin(torch.ones(2, 4))
print("passed")
"""
)


def test_inputs_are_replaced_without_recording(tmp_path, source):
    body = LOAD_ONLY.replace("{SOURCE}", str(source))
    load = {"path": str(source / "dump"), "modules": [f"{BLOCK}.0", "Module.nothing.Block.forward.0"], "step": [1]}
    dump = capture(tmp_path, body, level="L0", dump_path="", load=load)
    assert dump.script.stdout.strip() == "passed"
    assert "the model has no module Module.nothing.Block" in dump.script.stderr


LOAD_AND_DUMP = (
    NET
    + """
import shutil
net.first.requires_grad_(False)
for step in range(2):
    seen = []
    run(torch.full((2, 4), 9.0), seen)
    theirs = torch.load(f"{SOURCE}/seen{step}.pt")
    assert torch.equal(seen[1][0], theirs[1][0])
print("passed")
"""
)


@pytest.mark.parametrize("level", ["L0", "L1"])
def test_the_dump_shows_the_replaced_inputs(tmp_path, source, level):
    load = {"path": str(source / "dump"), "modules": [f"{BLOCK}.1"], "dump_after_load": True}
    dump = capture(tmp_path, LOAD_AND_DUMP.replace("{SOURCE}", str(source)), level=level, load=load)
    assert dump.script.stdout.strip() == "passed"
    (theirs,) = (source / "dump" / "step1").glob("*/dump.json")
    wanted = json.loads(theirs.read_text())["data"][f"{BLOCK}.1"]["input_args"][0]
    if level == "L0":
        entry = dump.data(1)[f"{BLOCK}.1"]["input_args"][0]
    else:
        entry = dump.data(1)["Functional.linear.2.forward"]["input_args"][0]
    assert (entry["Max"], entry["Min"]) == (wanted["Max"], wanted["Min"])
    # Reading files is not part of the model.
    assert not [name for name in dump.names(1) if "empty" in name or "set_" in name or "requires_grad" in name]


BROKEN = (
    NET
    + """
import glob, pathlib
(directory,) = glob.glob("copy/step0/*/dump_tensor_data")
files = {n: pathlib.Path(directory) / f"Module.block.Block.forward.{n}.input.0.pt" for n in (0, 1)}
torch.save(torch.ones(3, 3), files[0])
class Attack:
    def __reduce__(self): return (pathlib.Path.touch, (pathlib.Path("attacked"),))
torch.save(Attack(), files[1])
seen = []
run(torch.full((2, 4), 9.0), seen)
assert not pathlib.Path("attacked").exists()
run(torch.full((2, 4), 9.0), seen)  # no such step
print("passed")
"""
)


def test_files_that_do_not_fit_leave_the_input_and_run_no_code(tmp_path, source):
    import shutil

    shutil.copytree(source / "dump", tmp_path / "copy")
    (next((tmp_path / "copy" / "step0").glob("*")) / "dump_tensor_data" / f"{BLOCK}.0.kwargs.scale.pt").unlink()
    shutil.rmtree(tmp_path / "copy" / "step1")
    load = {"path": str(tmp_path / "copy"), "modules": [f"{BLOCK}.0", f"{BLOCK}.1"]}
    dump = capture(tmp_path, BROKEN, level="L0", load=load)
    assert dump.script.stdout.strip() == "passed"
    for text in ("[3, 3], the input is", "forward.0.kwargs.scale.pt is not used", "forward.1.input.0.pt is not used"):
        assert text in dump.script.stderr
    assert "no dump_tensor_data for step 1" in dump.script.stderr
