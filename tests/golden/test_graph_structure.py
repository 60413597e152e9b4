"""Graphs of two models that differ: the list of differences, and the layer mapping that is suggested."""

import json

from graph_cases import golden_set, only_db, run


def graph(data, target, golden, out, *args):
    paths = ["-tp", data / target / "step0" / "rank0", "-gp", data / golden / "step0" / "rank0", "-o", out]
    return run(["graph_visualize", *paths, *args])


def test_structure_dumps_are_listed_by_themselves(tmp_path):
    data = golden_set() / "data"
    done = graph(data, "m1_mix_struct/weight", "m1_mix_struct/bench", tmp_path)
    name = only_db(tmp_path).name[: -len(".vis.db")] + "_structure.json"
    assert f"structure: 8 target only ({tmp_path / name})" in done.stdout
    assert "target only: Torch.abs.0.forward, outside of all modules" in done.stdout
    [pair] = json.loads((tmp_path / name).read_text())
    assert (pair["step"], pair["rank"], pair["structure"]["matched"]) == (0, 0, 514)
    assert len(pair["structure"]["target_only"]) == 8


def test_the_plain_layout_has_nothing_beside_it(tmp_path):
    data = golden_set() / "data"
    done = graph(data, "m1_mix_struct/weight", "m1_mix_struct/bench", tmp_path, "--plain")
    assert "structure: 8 target only\n" in done.stdout
    assert [f.suffix for f in tmp_path.iterdir()] == [".db"]


def test_a_mapping_is_suggested_and_matches_the_renamed_layers(tmp_path):
    data = golden_set() / "data"
    mapping = tmp_path / "map.yaml"
    args = (data, "m1_ren_stat/weight", "m1_mix_stat/bench", tmp_path / "out")
    done = graph(*args, "--structure", "--suggest_mapping", mapping, "--json")
    summary = json.loads(done.stdout)
    assert summary["structure"][0]["structure"]["renamed"] > 0
    found = json.loads(graph(*args, "-lm", mapping, "--json").stdout)
    assert found["unmatched"] < summary["unmatched"] and "structure" not in found


def test_one_run_has_no_structure_to_compare(tmp_path):
    rank = golden_set() / "data" / "m1_mix_struct" / "bench" / "step0" / "rank0"
    done = run(["graph_visualize", "-tp", rank, "-o", tmp_path / "out", "--structure"], check=False)
    assert done.returncode == 2 and "add -gp GOLDEN" in done.stderr
