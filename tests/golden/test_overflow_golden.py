"""The op that is the first to go wrong, against what the old tool wrote; where ours differs on purpose, the truth is expected."""

import json
import re

import pytest
from graph_cases import TENSOR, case_names, golden_set, run, run_case, write_rank

# Every case of the large set stands in exactly one of these lists.
AGREE = ["overflow_pp_nan", "overflow_single_nan", "overflow_tp_bwdnan", "overflow_tp_nan"]
NOTHING = ["overflow_tp_bench"]
# The old tool names a rank that only received it, or one member of a collective by chance.
DIFFERENT = {
    "overflow_tp2dp2_nan": {
        "rank_2": "Module.0.module.decoder.layers.1.mlp.linear_fc1.ColumnParallelLinear.forward.0",
    },
    "overflow_tp_commnan": {"rank_0": "Distributed.all_reduce.6.forward", "rank_1": "Distributed.all_reduce.6.forward"},
}
NAN, INF = float("nan"), float("inf")


def only_result(folder):
    files = list(folder.iterdir())
    assert len(files) == 1 and re.fullmatch(r"anomaly_analyze_\d{19}\.json", files[0].name), files
    return files[0]


def named(folder):
    return {
        rank: [node["op_name"] for node in nodes] for rank, nodes in json.loads(only_result(folder).read_text()).items()
    }


def test_every_case_is_judged():
    judged = AGREE + NOTHING + list(DIFFERENT)
    assert len(judged) == len(set(judged))
    assert set(judged) == case_names("overflow_")


@pytest.mark.parametrize("case", AGREE)
def test_golden_set(case, tmp_path):
    root, done = run_case(case, tmp_path)
    expected = only_result(root / "expected" / case / "out")
    assert only_result(tmp_path).read_text() == expected.read_text()
    assert f"The analyze result is saved in: {only_result(tmp_path)}" in done.stdout


@pytest.mark.parametrize("case", NOTHING)
def test_nothing_to_find(case, tmp_path):
    _, done = run_case(case, tmp_path / "out")
    assert "Cannot find any anomaly node, no need to generate analyze file." in done.stdout
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_is_right(case, tmp_path):
    run_case(case, tmp_path)
    assert named(tmp_path) == {rank: [op] for rank, op in DIFFERENT[case].items()}


@pytest.mark.parametrize("form", [["overflow_check"], ["nan_analyze"], ["-f", "pytorch", "nan_analyze"]], ids=" ".join)
def test_command_forms(form, tmp_path):
    root = golden_set()
    done = run([*form, "-i", root / "data/pp2_sr/nan/step0", "-o", tmp_path, "--json", "--exit_code"], check=False)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["found"] and report["result_file"] == str(only_result(tmp_path))
    assert [op["rank"] for op in report["first"][0]["ops"]] == [0]
    assert report["first"][0]["reached"][0]["op"] == "Distributed.recv.0.forward"
    assert run([*form, "-i", root / "data/pp2_sr/nan/step0", "-o", tmp_path]).returncode == 0


@pytest.mark.parametrize("path", ["step0", "step0/rank0", "step0/rank0/dump.json", "."])
def test_kinds_of_input(path, tmp_path):
    root = golden_set() / "data" / "m1_mix_stat" / "nan"
    run(["overflow_check", "-i", root / path, "-o", tmp_path])
    assert named(tmp_path) == {"rank_0": ["Module.model.layers.1.mlp.down_proj.Linear.forward.0"]}


def bad(**values):
    return {**TENSOR, "Max": NAN, "Min": NAN, "Mean": NAN, "Norm": NAN, **values}


def op(inputs, output):
    return {"input_args": inputs, "input_kwargs": {}, "output": output}


def check(folder, data, tmp_path, **options):
    write_rank(folder / "step0" / "rank0", {}, data, **options)
    return json.loads(run(["overflow_check", "-i", folder / "step0", "-o", tmp_path / "out", "--json"]).stdout)


def test_same_answer_for_any_number_of_threads(tmp_path):
    root = golden_set() / "data" / "tp2dp2" / "nan" / "step0"
    answers = {
        re.sub(
            r"_\d{19}",
            "",
            run(["overflow_check", "-i", root, "-o", tmp_path, "--json"], env={"MSPROBE_THREADS": n}).stdout,
        )
        for n in ("1", "3", "16")
    }
    assert len(answers) == 1


def test_files_beside_the_dump_may_be_missing(tmp_path):
    data = {"Torch.exp.0.forward": op([TENSOR], [bad(Max=INF)])}
    write_rank(tmp_path / "step0" / "rank0", {}, data)
    (tmp_path / "step0" / "rank0" / "construct.json").unlink()
    (tmp_path / "step0" / "rank0" / "stack.json").unlink()
    done = run(["overflow_check", "-i", tmp_path / "step0", "-o", tmp_path / "out"])
    assert done.stderr.count("[msprobe] warning: ") == 2
    (node,) = json.loads(only_result(tmp_path / "out").read_text())["rank_0"]
    assert node["construct_info"] == ["Torch.exp.0.forward"] and node["stack_info"] == {}


def test_mindspore_dumps(tmp_path):
    tensor = {**TENSOR, "type": "mindspore.Tensor", "dtype": "Float32"}
    data = {
        "Mint.div.0.forward": op([tensor], [{**tensor, "Max": INF}]),
        "Cell.fc.Dense.forward.0": op([{**tensor, "Max": INF}], [{**tensor, "Max": NAN, "Min": NAN}]),
    }
    report = check(tmp_path, data, tmp_path, framework="mindspore")
    assert report["first"][0]["ops"][0]["op"] == "Mint.div.0.forward"


def test_values_that_only_their_statistics_make_infinite(tmp_path):
    """Attention masks hold the lowest number of float32, whose sum overflows in dumps of older releases."""
    mask = {**TENSOR, "Max": 0.0, "Min": -3.4028234663852886e38, "Mean": -INF, "Norm": INF}
    report = check(tmp_path, {"Torch.where.0.forward": op([TENSOR], [mask])}, tmp_path)
    assert not report["found"]


def test_nan_that_only_the_mean_shows(tmp_path):
    data = {"Torch.add.0.forward": op([TENSOR], [{**TENSOR, "Mean": NAN}])}
    assert check(tmp_path, data, tmp_path)["first"][0]["ops"][0]["op"] == "Torch.add.0.forward"


def test_nested_outputs_and_inputs(tmp_path):
    data = {
        "Torch.split.0.forward": op([TENSOR], [[TENSOR, {"second": [bad()]}]]),
        "Torch.cat.0.forward": op([[TENSOR, bad()]], [bad(shape=[4])]),
    }
    report = check(tmp_path, data, tmp_path)
    assert [f["ops"][0]["op"] for f in report["first"]] == ["Torch.split.0.forward"]
    assert report["first"][0]["item"] == "output.0.1.second.0"
    assert report["first"][0]["carriers"] == 1


@pytest.mark.parametrize(
    "task,change,word",
    [("structure", {}, "structure"), ("statistics", {"Max": None, "Min": None, "Mean": None, "Norm": None}, "")],
)
def test_dumps_without_values(task, change, word, tmp_path):
    leaf = {k: v for k, v in {**TENSOR, **change}.items() if v is not None}
    write_rank(tmp_path / "rank0", {}, {"Torch.add.0.forward": op([leaf], [leaf])}, task=task)
    done = run(["overflow_check", "-i", tmp_path / "rank0", "-o", tmp_path / "out"], check=False)
    assert done.returncode == 3 and word in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_path_that_is_no_dump(tmp_path):
    done = run(["overflow_check", "-i", tmp_path, "-o", tmp_path / "out"], check=False)
    assert done.returncode == 3 and "is not a dump" in done.stderr
