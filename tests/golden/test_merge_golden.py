"""merge_result against what the old tool wrote, and where ours differs on purpose."""

import csv
import json

import openpyxl
import pytest
from graph_cases import case_names, golden_set, run, run_case

CASES = ["merge_all", "merge_stat", "merge_tensor"]


def book(folder):
    (path,) = folder.glob("multi_ranks_compare_merge_*.xlsx")
    return {sheet.title: [list(row) for row in sheet.values] for sheet in openpyxl.load_workbook(path)}


def merge(inputs, out, config, code=0):
    done = run(["merge_result", "-i", inputs, "-o", out, "-config", config], check=False)
    assert done.returncode == code, done.stderr
    return done


def test_every_case_is_judged():
    assert set(CASES) == case_names("merge_")


@pytest.mark.parametrize("case", CASES)
def test_golden_set(case, tmp_path):
    root, _ = run_case(case, tmp_path)
    want, got = book(root / "expected" / case / "out"), book(tmp_path)
    assert list(want) == list(got)
    for sheet, rows in want.items():
        assert rows == got[sheet], sheet


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """A golden comparison as csv, which the old tool cannot merge."""
    out = tmp_path_factory.mktemp("ranks")
    data = golden_set() / "data" / "tp_mix_stat"
    run(["compare", "-tp", data / "weight" / "step0", "-gp", data / "bench" / "step0", "-o", out])
    return out


def test_csv_gives_the_same_as_workbooks(ranks, tmp_path):
    root = golden_set()
    merge(ranks, tmp_path, root / "data" / "maps" / "merge_all.yaml")
    want, got = book(root / "expected" / "merge_all" / "out"), book(tmp_path)
    assert list(want) == list(got)
    for sheet, rows in want.items():
        assert rows == got[sheet], sheet


def test_the_summary_for_programs(ranks, tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("api:\n- Distributed\n- Functional.nothing\ncompare_index: [L2norm diff]\n")
    done = run(["merge_result", "-i", ranks, "-o", tmp_path / "out", "-config", config, "--json"])
    answer = json.loads(done.stdout)
    assert answer["ranks"] == [0, 1] and answer["metrics"] == ["L2norm diff"] and answer["rows"] > 100
    assert "Functional.nothing is not in the results of any rank" in answer["warnings"][0]
    assert list(book(tmp_path / "out")) == ["L2norm diff"]


def write_result(folder, rank, rows, time="20260101120000", header=()):
    header = list(header) or ["NPU Name", "Bench Name", "Max diff", "NPU max", "Bench max", "Requires_grad Consistent"]
    with open(folder / f"compare_result_rank{rank}_{time}.csv", "w", newline="") as f:
        csv.writer(f).writerows([header, *rows])


def test_blanks_placeholders_and_formulas(tmp_path):
    write_result(
        tmp_path, 0, [["A.x.0.forward.input.0", "", "Nan", "nan", "1.0", "True"], ["A.xy.0.f", "", 9, 9, 9, "True"]]
    )
    write_result(tmp_path, 10, [["A.x.0.forward.output.0", "", "=1+1", "tp-0-1", "tp-0-1", "False"]])
    write_result(tmp_path, 10, [["A.x.0.forward.output.0", "", "5", "1", "1", "True"]], time="20250101120000")
    config = tmp_path / "c.yaml"
    config.write_text("api: [A.x]\n")
    done = merge(tmp_path, tmp_path / "out", config)
    assert "rank10 has several results" in done.stderr and "20260101120000.csv is merged" in done.stderr
    sheets = book(tmp_path / "out")
    assert sheets["Max diff"] == [
        ["NPU Name", "rank0", "rank10"],
        ["A.x.0.forward.input.0", "NPU:nan  Bench:1.0", None],
        ["A.x.0.forward.output.0", None, "=1+1"],
    ]
    assert sheets["Requires_grad Consistent"][1:] == [
        ["A.x.0.forward.input.0", True, None],
        ["A.x.0.forward.output.0", None, False],
    ]
    (path,) = (tmp_path / "out").glob("*.xlsx")
    assert openpyxl.load_workbook(path)["Max diff"]["C3"].data_type == "s", "a text, not a formula"
    assert openpyxl.load_workbook(path)["Max diff"].freeze_panes == "B2"


@pytest.mark.parametrize(
    "config,word",
    [
        ("api: []", "names no API"),
        ("api: Distributed", "must be a list"),
        ("api: [{a: b}]", "must be a text"),
        ("[]", "must hold 'api:'"),
        ("api: [A]\ncompare_index: [Cosine]", "only Max diff"),
        ("api: [B]", "no result has rows"),
        ("api: [&x A, *x]", "alias"),
    ],
)
def test_wrong_configurations_are_one_line(config, word, tmp_path):
    for rank in (0, 1):
        write_result(tmp_path, rank, [["A.x.0", "", 1, 1, 1, "True"]])
    (tmp_path / "c.yaml").write_text(config)
    done = merge(tmp_path, tmp_path / "out", tmp_path / "c.yaml", code=3)
    assert word in done.stderr and done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("out/*"))


def test_results_that_cannot_be_merged(tmp_path):
    (tmp_path / "c.yaml").write_text("api: [A]")
    write_result(tmp_path, 0, [["A.x.0", "", 1, 1, 1, "True"]])
    assert "needs two or more" in merge(tmp_path, tmp_path / "out", tmp_path / "c.yaml", code=3).stderr
    write_result(tmp_path, 1, [], header=["NPU Name", "NPU MD5", "BENCH MD5"])
    assert "compares checksums" in merge(tmp_path, tmp_path / "out", tmp_path / "c.yaml", code=3).stderr
    write_result(tmp_path, 1, [], header=["NPU Name", "Cosine", "NPU max", "Bench max"])
    assert "have different metrics" in merge(tmp_path, tmp_path / "out", tmp_path / "c.yaml", code=3).stderr
    write_result(tmp_path, 1, [], header=["a", "b"])
    assert "it is not a comparison result" in merge(tmp_path, tmp_path / "out", tmp_path / "c.yaml", code=3).stderr
