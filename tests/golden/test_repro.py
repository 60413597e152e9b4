"""The script of `compare --repro` runs with plain torch and shows the op of the first difference."""

import ast
import json
import re
import shutil
import subprocess
import sys

from graph_cases import golden_set, run


def compare(tmp_path, target, golden):
    data = golden_set() / "data"
    options = ["-tp", data / target, "-gp", data / golden, "-o", tmp_path / "out", "--repro", tmp_path / "repro"]
    done = run(["compare", *options])
    return done, json.loads((tmp_path / "out" / "first_divergence.json").read_text())["creator"]


def replay(tmp_path):
    script = tmp_path / "repro" / "repro.py"
    text = script.read_text()
    assert len(text.splitlines()) <= 50
    names = {
        n.name.split(".")[0] for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for n in node.names
    }
    assert names <= {"json", "math", "os", "struct", "torch"}
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def relative(line):
    return float(re.search(r"relative ([\d.e+-]+)", line).group(1))


def test_values_are_replayed_bit_by_bit(tmp_path):
    done, creator = compare(
        tmp_path, "m1_mix_tensor/weight/step0/rank0/dump.json", "m1_mix_tensor/bench/step0/rank0/dump.json"
    )
    assert f"repro: {tmp_path}/repro/repro.py" in done.stdout
    lines = replay(tmp_path).splitlines()
    assert creator["op"] in (tmp_path / "repro" / "repro.py").read_text()
    for side in ("target", "golden"):
        (dumped,) = [line for line in lines if line.startswith(f"{side}.output.0: dump against replay")]
        assert relative(dumped) < 1e-6
    (between,) = [line for line in lines if line.startswith("output.0: target against golden")]
    assert relative(between) > 1e-3
    assert (tmp_path / "repro" / "repro.safetensors").stat().st_mode & 0o777 == 0o640


def test_statistics_give_inputs_of_the_same_kind(tmp_path):
    done, creator = compare(
        tmp_path, "m1_mix_stat/weight/step0/rank0/dump.json", "m1_mix_stat/bench/step0/rank0/dump.json"
    )
    assert "(inputs are made up: the dumps hold no values)" in done.stdout
    printed = replay(tmp_path)
    assert "drawn at random" in (tmp_path / "repro" / "repro.py").read_text()
    assert "target output 0: replay has Max, Min, Mean, Norm" in printed
    assert "golden.output.0: the dump has Max, Min, Mean, Norm" in printed


def test_ranks(tmp_path):
    done, creator = compare(tmp_path, "tp_mix_stat/nan/step0", "tp_mix_stat/bench/step0")
    assert creator["ranks"] == [1]
    assert "against float64" in replay(tmp_path)


def test_a_communication_has_no_script(tmp_path):
    """Of two ranks whose sum is another one though they gave the same."""
    name = "Distributed.all_reduce.6.forward"
    bench = golden_set() / "data" / "tp_mix_stat" / "bench" / "step0"
    shutil.copytree(bench, tmp_path / "step0")
    for rank in (0, 1):
        path = tmp_path / "step0" / f"rank{rank}" / "dump.json"
        dump = json.loads(path.read_text())
        for item in dump["data"][name]["output"]:
            if item and item["type"] == "torch.Tensor":
                item.update({key: item[key] * 2 for key in ("Max", "Min", "Mean", "Norm")})
        path.write_text(json.dumps(dump))
    done, creator = compare(tmp_path, tmp_path / "step0", bench)
    assert (creator["kind"], creator["op"]) == ("collective", name)
    assert "a communication needs its ranks" in done.stdout
    assert not (tmp_path / "repro" / "repro.py").exists()


def test_programs_get_the_path_of_the_script(tmp_path):
    data = golden_set() / "data"
    pair = [data / "m1_mix_stat" / side / "step0" / "rank0" / "dump.json" for side in ("weight", "bench")]
    arguments = ["compare", "-tp", pair[0], "-gp", pair[1], "-o", tmp_path / "out", "--json"]
    found = json.loads(run([*arguments, "--repro", tmp_path / "repro"]).stdout)["repro"]
    assert found == {"script": f"{tmp_path}/repro/repro.py", "made_up": True, "error": ""}
    assert json.loads(run(arguments).stdout)["repro"] is None
