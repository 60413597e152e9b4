"""SingleSave and SingleComparator, both ways with the earlier tool; and the names that this release cannot serve."""

import json

import openpyxl
import pytest
from launch import run_python

SAVE = """
import sys, torch
from msprobe.core import SingleSave
torch.manual_seed(0)
saver = SingleSave(sys.argv[1])
saver.save_config({"lr": 0.1, "name": "run"})
noise = float(sys.argv[2])
for step in range(2):
    for micro in range(2):
        x = torch.randn(4, 3)
        x[0, 0] += noise
        saver.save({"reward": x, "pair": [x[:2], (x > 0)], "by_key": {"a": x * 2, "b": x.double()}})
    saver.step()
SingleSave.save_ex({"plain": torch.arange(4)})
"""
COMPARE = """
import sys
from msprobe.core import SingleComparator
if __name__ == "__main__":
    SingleComparator.compare(*sys.argv[1:4], num_processes=2)
"""


@pytest.fixture(scope="module")
def places(tmp_path_factory, old_python):
    place = tmp_path_factory.mktemp("single")
    (place / "save.py").write_text(SAVE)
    (place / "compare.py").write_text(COMPARE)
    for name, python in (("ours", None), ("theirs", old_python)):
        options = {"python": python, "ours": False} if python else {}
        for noise in ("0", "0.01"):
            run_python(["save.py", f"{name}{noise}", noise], cwd=place, **options)
    run_python(["compare.py", "ours0", "ours0.01", "table"], cwd=place)
    run_python(["compare.py", "theirs0", "ours0.01", "mixed"], cwd=place)
    run_python(["compare.py", "ours0", "ours0.01", "by_theirs"], cwd=place, python=old_python, ours=False)
    return place


def files(root):
    return {str(path.relative_to(root)): path for path in sorted(root.rglob("*")) if path.is_file()}


def test_files_are_those_of_the_old_tool(places):
    for noise in ("0", "0.01"):
        ours, theirs = files(places / f"ours{noise}"), files(places / f"theirs{noise}")
        assert list(ours) == list(theirs)
        for name in ours:
            if name.endswith(".npy"):
                assert ours[name].read_bytes() == theirs[name].read_bytes(), name
            else:
                numbers = [json.loads(path.read_text()) for path in (ours[name], theirs[name])]
                assert flat(numbers[0]) == pytest.approx(flat(numbers[1]), rel=1e-6), name
    assert "data/reward/step1/rank0/micro_step1/reward.npy" in ours and "configurations.json" in ours


def flat(value):
    if isinstance(value, dict):
        return [item for key in sorted(value) for item in flat(value[key])]
    if isinstance(value, list):
        return [item for one in value for item in flat(one)]
    return [value if isinstance(value, (int, float)) else len(value)]


def table(path):
    return [list(row) for row in openpyxl.load_workbook(path).active.iter_rows(values_only=True)]


def test_tables_are_those_of_the_old_tool(places):
    assert sorted(p.name for p in (places / "table").iterdir()) == [
        f"{name}.xlsx" for name in ("by_key", "pair", "plain", "reward")
    ]
    for name in ("reward", "pair"):
        ours, theirs, mixed = (table(places / where / f"{name}.xlsx") for where in ("table", "by_theirs", "mixed"))
        assert ours == mixed
        assert ours[0] == theirs[0] and len(ours) == len(theirs) == (5 if name == "reward" else 9)
        for mine, other in zip(ours[1:], theirs[1:]):
            assert mine[:6] == other[:6]
            assert [x or 0 for x in mine[6:]] == pytest.approx([x or 0 for x in other[6:]], rel=1e-4)
    first = table(places / "table" / "reward.xlsx")[1]
    assert first[:8] == [0, 0, 0, 0, "[4, 3]", "[4, 3]", pytest.approx(100 * 11 / 12), 0]
    assert [row[3] for row in table(places / "table" / "by_key.xlsx")[1:3]] == ["a", "b"]


def test_permissions(places):
    assert all(path.stat().st_mode & 0o777 == 0o640 for path in files(places / "ours0").values())
    assert (places / "ours0" / "data" / "reward").stat().st_mode & 0o777 == 0o750


HARD = """
import torch
from msprobe.pytorch import MsprobeException, SingleComparator, SingleSave
import msprobe.pytorch as tool
try: SingleSave.save({"x": torch.ones(1)})
except MsprobeException as error: assert "construct it once" in str(error)
else: raise AssertionError
saver = SingleSave("a")
assert SingleSave("elsewhere") is saver
saver.save({"../x": torch.ones(1), 3: torch.ones(1), "text": "no", "mixed": [torch.ones(1), 2]})
saver.save({"complex": torch.ones(1, dtype=torch.complex64), "empty": torch.ones(0, 2), "bf16": torch.ones(2, dtype=torch.bfloat16)})
saver.save({"=1+1": torch.tensor([float("nan"), float("inf"), 1.0]), "shape": torch.ones(2, 3)})
saver.save([torch.ones(1)])
SingleSave._instance = None
saver = SingleSave("b")
import numpy, pathlib
class Attack:
    def __reduce__(self): return (pathlib.Path.touch, (pathlib.Path("attacked"),))
attacks = {"pickle": numpy.array([Attack()], dtype=object), "text": b"\\x93NUMPY\\x01\\x00\\xff\\xff{", "none": b""}
for name, content in attacks.items():
    for side in "ab":
        place = pathlib.Path(side, "data", name, "step0", "rank0", "micro_step0")
        place.mkdir(parents=True)
        if isinstance(content, bytes): (place / f"{name}.npy").write_bytes(content)
        else: numpy.save(place / f"{name}.npy", content)
saver.save({"=1+1": torch.tensor([float("nan"), float("inf"), 2.0]), "shape": torch.ones(4), "empty": torch.ones(0, 2)})
SingleComparator.compare("a", "b", "out")
for call in (lambda: SingleComparator.compare("a", "nowhere"), lambda: SingleComparator.compare("a", "b", "c", 0),
             lambda: tool.random_save(3)):
    try: call()
    except MsprobeException as error: assert "allowed: " in str(error)
    else: raise AssertionError
assert not pathlib.Path("attacked").exists()
for name, needs in {"set_fx_dump_config": "torchair", "set_ge_dump_config": "torchair", "acl_save": "torch_npu",
                    "AclGraphDumper": "torch_npu"}.items():
    try: getattr(tool, name)("x")
    except RuntimeError as error: assert name in str(error) and needs in str(error), error
    else: raise AssertionError(name)
print("passed")
"""


def test_hard_values_and_wrong_calls(tmp_path):
    (tmp_path / "script.py").write_text(HARD)
    done = run_python(["script.py"], cwd=tmp_path)
    assert done.stdout.strip() == "passed"
    saved = {p.name for p in (tmp_path / "a" / "data").iterdir()}
    assert saved == {"=1+1", "bf16", "empty", "mixed", "shape", "pickle", "text", "none"}
    assert done.stderr.count("cannot be compared") == 3
    assert len(table(tmp_path / "out" / "pickle.xlsx")) == 1
    assert not (tmp_path / "a" / "x").exists()
    for text in ("'../x' is not saved", "3 is not saved", "text is a str", "mixed.1 is a int", "complex is complex"):
        assert text in done.stderr
    special = table(tmp_path / "out" / "=1+1.xlsx")[1]
    assert special[6:8] == [pytest.approx(100 / 3), 0] and special[8] == "nan"
    shape = table(tmp_path / "out" / "shape.xlsx")[1]
    assert shape[4:7] == ["[2, 3]", "[4]", 100]
    assert table(tmp_path / "out" / "empty.xlsx")[1][6] == 100
