"""The files in which `compare -lm` says what stands against what, beside those of the old tool's own function."""

import json
import sys
from pathlib import Path

import pytest
import yaml
from launch import run_python

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import golden_set, run

OLD = """
import sys
from msprobe.core.compare.layer_mapping import layer_mapping as lm
target, golden, mapping, out = sys.argv[1:]
paths = {"npu_path": target, "bench_path": golden}
apis = lm.generate_api_mapping_by_layer_mapping(target, golden, mapping or None, out)
lm.generate_data_mapping(target, golden, apis, out)
"""


def mapping_file(folder, name):
    (path,) = Path(folder).glob(f"{name}_2*.yaml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def tree(nested, path=()):
    """{(place in the model, state): ops}; a place is named by its name and its class."""
    out = {}
    for title, inner in nested.items():
        if title == "data_item":
            # The old tool puts gradients of parameters beside the module, not into it.
            out.update({(path, state): sorted(ops) for state, ops in inner.items() if state != "parameters_grad"})
            continue
        name, described = title.split(" @ Layer(type_name=")
        out.update(tree(inner, (*path, (name, described.split(",")[0]))))
    return out


@pytest.mark.parametrize("with_file", [True, False], ids=["file", "no file"])
def test_the_old_tool_writes_the_same(old_python, with_file, tmp_path):
    data = golden_set() / "data"
    target = data / ("m1_ren_stat" if with_file else "m1_mix_stat") / "weight/step0/rank0/dump.json"
    golden = data / "m1_mix_stat/bench/step0/rank0/dump.json"
    mapping = [data / "maps" / "layer_mapping.yaml"] if with_file else []
    done = run(["compare", "-tp", target, "-gp", golden, "-o", tmp_path / "ours", "-lm", *mapping, "--json"])
    assert len(json.loads(done.stdout)["pairs"][0]["mapping_files"]) == 4
    (tmp_path / "theirs").mkdir()
    script = tmp_path / "old.py"
    script.write_text(OLD)
    run_python(
        [script, target, golden, mapping[0] if mapping else "", tmp_path / "theirs"],
        python=old_python,
        ours=False,
        cwd=tmp_path,
    )
    for name in ("api_mapping", "data_mapping"):
        ours, theirs = (mapping_file(tmp_path / side, name) for side in ("ours", "theirs"))
        assert set(ours) == set(theirs)
        different = {key: (ours[key], theirs[key]) for key in ours if ours[key] != theirs[key]}
        # The old tool finds no partner of gradients of parameters whose layer has another name.
        assert all("parameters_grad" in key and pair[1] == "N/A" for key, pair in different.items()), different
        assert len(ours) > 400 and sum(value != "N/A" for value in ours.values()) > 400
    # Of two runs of one framework the old tool's trees have one name: that of the golden run is left.
    ours = tree(mapping_file(tmp_path / "ours", "pytorch_tree_golden"))
    last = max((tmp_path / "theirs").glob("pytorch_tree_2*.yaml"))
    assert ours == tree(yaml.safe_load(last.read_text(encoding="utf-8"))) and len(ours) > 100
    assert with_file == (tree(mapping_file(tmp_path / "ours", "pytorch_tree")) != ours)
    run(["compare", "-tp", target, "-gp", golden, "-o", tmp_path / "plain", "-lm", *mapping, "--plain"])
    names = {path.name.rsplit("_", 1)[0] for path in (tmp_path / "plain").iterdir()}
    assert names == {"compare_result", "api_mapping", "data_mapping", "pytorch_tree"}
    assert ours == tree(mapping_file(tmp_path / "plain", "pytorch_tree"))
