"""Verdicts of graphs by the numbers of a thresholds file, the one of `msprobe compare`."""

import json

from graph_cases import golden_set, only_db, read_db, run


def errors(tmp_path, name, text):
    """Of a changed weight: the number of errors, and what is said of them."""
    side = golden_set() / "data" / "m1_mix_stat"
    args = ["-tp", side / "weight/step0/rank0", "-gp", side / "bench/step0/rank0", "-o", tmp_path / name, "--json"]
    if text:
        (tmp_path / f"{name}.yaml").write_text(text)
        args += ["--thresholds", tmp_path / f"{name}.yaml"]
    done = run(["graph_visualize", *args])
    rows = read_db(only_db(tmp_path / name))["tb_nodes"].values()
    said = {
        m
        for row in rows
        for p in json.loads(row["output_data"]).values()
        for m in json.loads(p.get("Err_message", "[]"))
    }
    return json.loads(done.stdout)["error"], {m for m in said if "NormRelativeErr" in m}


def test_a_smaller_number_makes_more_errors_and_is_named(tmp_path):
    usual, said = errors(tmp_path, "usual", "")
    assert said <= {"error: The NormRelativeErr of output is greater than 0.5."}
    strict, said = errors(tmp_path, "strict", "statistics:\n  output_wrong: 0.001\n")
    assert strict > usual and said == {"error: The NormRelativeErr of output is greater than 0.001."}


def test_a_wrong_file_is_named_with_its_line(tmp_path):
    rank = golden_set() / "data" / "m1_mix_stat" / "bench" / "step0" / "rank0"
    (tmp_path / "t.yaml").write_text("statistics:\n  output_wrng: 1\n")
    args = ["graph_visualize", "-tp", rank, "-gp", rank, "-o", tmp_path / "out", "--thresholds", tmp_path / "t.yaml"]
    done = run(args, check=False)
    assert done.returncode == 3 and "t.yaml" in done.stderr and "2" in done.stderr
    assert run([*args[:3], *args[5:]], check=False).returncode == 2, "one run has no verdicts"
