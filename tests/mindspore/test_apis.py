"""The functions that are recorded are those of mindstudio-probe, as far as the installed MindSpore has them."""

import json

from launch import run_mindspore

LIST = """
import json, os
os.environ["GLOG_v"] = "4"
import mindspore
from msprobe.mindspore.apis import hooked_apis, missing_extra
found = {}
for api in hooked_apis(mindspore):
    found.setdefault(api.prefix, []).append(api.name)
extra = [f"{a.prefix}.{a.name}" for a in hooked_apis(mindspore, {"mindspore.ops": ["softplus"]}, ["relu"])]
present = {
    "Functional": dir(mindspore.ops), "Tensor": dir(mindspore.Tensor), "Mint": dir(mindspore.mint),
    "MintFunctional": dir(mindspore.mint.nn.functional),
}
print(json.dumps([found, extra, missing_extra({"mindspore.ops": ["nothing"], "nowhere": ["f"]}), present]))
"""
SECTIONS = {
    "ops": "Functional",
    "tensor": "Tensor",
    "mint.ops": "Mint",
    "mint.nn.functional": "MintFunctional",
    "communication.comm_func": "Distributed",
    "mint.distributed": "MintDistributed",
}
# Transforms of functions, whose calls are those of the functions.
NOT_OURS = {"derivative", "jet"}
# Names of modules and of a switch of Python that the earlier list holds.
NO_FUNCTIONS = {"absolute_import", "functional", "linalg", "nn", "special"}


def lists_of_old_tool(python):
    package = python.parent.parent.glob("lib/python3*/site-packages/msprobe/mindspore/dump/dump_processor/hook_cell")
    section, found = "", {}
    for line in (next(package) / "support_wrap_ops.yaml").read_text().splitlines():
        line = line.split("#")[0].rstrip()
        if line.strip().startswith("- "):
            found.setdefault(section, set()).add(line.strip()[2:].strip())
        elif line:
            section = line.strip().rstrip(":")
    return found


def test_lists(mindspore_python, old_mindspore_python):
    done = run_mindspore([mindspore_python, "-c", LIST], timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    ours, extra, missing, present = json.loads(done.stdout.splitlines()[-1])
    theirs = lists_of_old_tool(old_mindspore_python)
    for section, prefix in SECTIONS.items():
        names = theirs[section] - NOT_OURS - NO_FUNCTIONS
        names &= set(present.get(prefix, names))
        assert set(ours[prefix]) == names, f"{prefix}: {sorted(set(ours[prefix]) ^ names)}"
    assert "Functional.softplus" in extra and "Functional.relu" not in extra and "Functional.tanh" in extra
    assert sorted(missing) == ["mindspore.ops.nothing", "nowhere.f"]
