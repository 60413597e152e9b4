"""Comparison tables against what the old tool wrote, cell by cell; where ours differs on purpose, that difference is expected."""

import ast
import csv
import json
import re
from pathlib import Path

import openpyxl
import pytest
from graph_cases import assert_refused, case_names, golden_set, run, run_case

SMALL = sorted(
    p.parent for p in (Path(__file__).parent / "compare").glob("*/options.json") if p.parent.name != "tensor_vectors"
)

# Every case of the large set stands in exactly one of the following lists.
AGREE = """compare_L0_md5_weight compare_L0_stat_weight compare_L1_md5_weight compare_L1_stat_weight compare_debug_stat compare_m2_f16
 compare_m2_weight compare_m3_scale compare_m3_vs_m1 compare_mismatch_level compare_mix_md5_weight compare_mix_md5_weight_xlsx
 compare_mix_stat_weight_da_dir compare_tp_md5_da compare_tp_weight_da
 compare_mix_stat_bench compare_mix_stat_bf16 compare_mix_stat_ckpt compare_mix_stat_ckpt2 compare_mix_stat_extra compare_mix_stat_nan
 compare_mix_stat_rope compare_mix_stat_weight compare_mix_stat_weight_step1 compare_mix_stat_weight_stepdir
 compare_mix_stat_weight_xlsx compare_mix_xor_weight compare_proc compare_proc_dir compare_renL0_cm compare_tp_bwdnan
 compare_tp_commnan compare_tp_md5 compare_tp_nan compare_tp_weight compare_tp_weight_xlsx""".split()
# As above, for tensor dumps: metrics within 1e-9, and one rule whose threshold is the documented one (assert_same_tensors).
AGREE_TENSOR = """compare_L0_tensor_weight compare_L1_tensor_weight compare_debug_tensor compare_m2_L0_tensor compare_mix_tensor_bench
 compare_mix_tensor_bf16 compare_mix_tensor_nan compare_mix_tensor_weight compare_mix_tensor_weight_fm compare_mix_tensor_weight_log
 compare_mix_tensor_weight_xlsx compare_tp_tensor compare_tp_tensor_xlsx""".split()
# As above, for ATB: metrics within 1e-9; means and norms, which the old tool sums in float32, to that precision.
AGREE_ATB = ["compare_atb"]
# Both tools refuse: (case, our exit code, word of the error). The old tool ends with a traceback, or with exit code 0.
WRONG_INPUT = [
    ("compare_file_vs_dir", 3, "same kind"),
    ("compare_mismatch_task", 3, "same summary_mode"),
    ("compare_missing_file", 3, "does not exist"),
    ("compare_verl_nobackend", 2, "--backend"),
]
# The old tool fails or answers wrongly; a test below says what is right. docs/compatibility.md gives the reasons.
DIFFERENT = """compare_mix_md5_weight_fm compare_mix_stat_weight_fm compare_mix_stat_extra_fm compare_mix_stat_ckpt_fm
 compare_mix_stat_weight_rootdir compare_L1_dm compare_ren_lm compare_verl_fsdp
 compare_verl_fsdp_xlsx compare_mix_md5_weight_da compare_mix_stat_weight_da
 compare_mix_struct compare_ren_none""".split()
csv.field_size_limit(1 << 30)


def blank_time(name):
    return re.sub(r"diff_analyze_\d+", "diff_analyze_TIME", re.sub(r"_20\d{12}", "_TIME", name))


def rows_of(sheet):
    """Without the verdicts of the ruler, which only our workbooks have."""
    rows = list(sheet.values)
    kept = [i for i, title in enumerate(rows[0]) if not str(title).startswith("Ruler ")]
    return [[row[i] for i in kept] for row in rows]


def read_table(path):
    """Rows of text; a workbook's cells with their types."""
    if path.suffix == ".xlsx":
        book = openpyxl.load_workbook(path, read_only=True)
        return [[name] for name in book.sheetnames] + [
            [repr(v) for v in row] for sheet in book for row in rows_of(sheet)
        ]
    with open(path, encoding="utf-8", newline="") as f:
        if path.suffix == ".json":
            return sorted(json.load(f, parse_constant=str).items())
        return list(csv.reader(f))


def tables(folder):
    return {
        blank_time(p.name): [] if p.suffix == ".yaml" else read_table(p)
        for p in sorted(Path(folder).iterdir())
        if p.name != "first_divergence.json"
    }


def assert_same(want, got):
    assert set(want) == set(got)
    for name, rows in want.items():
        assert len(rows) == len(got[name]), name
        for number, (a, b) in enumerate(zip(rows, got[name])):
            assert a == b, f"{name}, row {number}"


METRICS = ["Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio"]
THOUSANDTH = "error: The input/parameters of One Thousandth Err Ratio > 0.9 while the output < 0.6."


def as_number(cell):
    try:
        return float(cell)
    except ValueError:
        return None


def same_metric(want, got):
    a, b = as_number(want), as_number(got)
    if want == got or a is None or b is None:
        return want == got
    return abs(a - b) <= max(1e-9 * abs(a), 1.1e-12)  # cells have twelve decimals


def only_documented_threshold(want, got, columns):
    """Our threshold is the documented 0.6, the old tool's 0.1: the row then has one finding more."""
    message, result = columns.index("Err_message"), columns.index("Result")
    strip = (
        ast.literal_eval if got[message].startswith("'") else str
    )  # a workbook's cells are shown as Python writes them
    more = [text for text in json.loads(strip(got[message])) if text not in json.loads(strip(want[message]))]
    if more != [THOUSANDTH] or strip(got[result]) != "error":
        return False
    return [c for i, c in enumerate(want) if i not in (message, result)] == [
        c for i, c in enumerate(got) if i not in (message, result)
    ]


def assert_same_tensors(want, got):
    """The number of rows that only our threshold calls an error."""
    assert set(want) == set(got)
    stricter = 0
    for name, rows in want.items():
        assert len(rows) == len(got[name]), name
        header = next(i for i, row in enumerate(rows) if len(row) > 1)
        columns = [ast.literal_eval(c) for c in rows[header]] if rows[header][0].startswith("'") else rows[header]
        assert rows[: header + 1] == got[name][: header + 1]
        at = [columns.index(metric) for metric in METRICS]
        for number in range(header + 1, len(rows)):
            a, b = list(rows[number]), list(got[name][number])
            for i in at:
                assert same_metric(a[i], b[i]), f"{name}, row {number}, {columns[i]}: {a[i]} and {b[i]}"
                a[i] = b[i]
            if a == b:
                continue
            assert only_documented_threshold(a, b, columns), f"{name}, row {number}: {a} and {b}"
            stricter += 1
    return stricter


@pytest.mark.parametrize("case", SMALL, ids=lambda p: p.name)
def test_small_case(case, tmp_path):
    info = json.loads((case / "options.json").read_text())
    run(
        [
            "compare",
            "-tp",
            case / "target" / info["file"],
            "-gp",
            case / "golden" / info["file"],
            "-o",
            tmp_path,
            *info["options"],
        ]
    )
    assert_same(tables(case / "expected"), tables(tmp_path))


def test_every_case_is_judged():
    judged = AGREE + AGREE_TENSOR + AGREE_ATB + DIFFERENT + [case for case, _, _ in WRONG_INPUT]
    assert len(judged) == len(set(judged))
    assert set(judged) == case_names("compare_")


@pytest.mark.parametrize("case", AGREE)
def test_golden_set(case, tmp_path):
    root, _ = run_case(case, tmp_path)
    assert_same(tables(root / "expected" / case / "out"), tables(tmp_path))


@pytest.mark.parametrize("case", AGREE_TENSOR)
def test_golden_set_of_tensors(case, tmp_path):
    root, _ = run_case(case, tmp_path)
    stricter = assert_same_tensors(tables(root / "expected" / case / "out"), tables(tmp_path))
    assert stricter <= 20


@pytest.mark.parametrize("case", AGREE_ATB)
def test_golden_set_of_atb(case, tmp_path):
    root, _ = run_case(case, tmp_path)
    ((name, want),) = tables(root / "expected" / case / "out").items()
    got = tables(tmp_path)[name]
    columns = [ast.literal_eval(title) for title in want[1]]
    assert want[:2] == got[:2] and len(want) == len(got) > 20
    sums = {columns.index(f"{side} {stat}") for side in ("Target", "Golden") for stat in ("Mean", "Norm")}
    for row, mine in zip(want[2:], got[2:]):
        norm = max(as_number(row[columns.index(f"{side} Norm")].strip("'")) or 0 for side in ("Target", "Golden"))
        for i, (a, b) in enumerate(zip(row, mine)):
            if i in sums and a != b:
                assert abs(float(a.strip("'")) - float(b.strip("'"))) <= 1e-6 * norm, (row[0], columns[i])
            else:
                assert same_metric(a.strip("'"), b.strip("'")), (row[0], columns[i])


POSITION = "error: The position of inf or nan in NPU and bench Tensor do not match."
SIGN = "error: The sign of inf in NPU and bench Tensor do not match."
COSINE = "warning: The input/parameters of Cosine > 0.9, and input/parameters - output > 0.1"
UNMATCHED = "warning: Bench api/module unmatched."
# Rows of tensor_vectors where ours differs on purpose: Result, Err_message, and metrics in the order of METRICS (None: as there).
TENSOR_DIFFERENT = {
    "nan_only_golden.0.forward.output.0": ("error", [POSITION], None),
    "nan_moved.0.forward.output.0": ("error", [POSITION], None),
    "inf_sign.0.forward.output.0": ("error", [SIGN], ["N/A"] * 6),
    "bfloat_float.0.forward.output.0": (
        "error",
        [THOUSANDTH, "error: The dtype of NPU and Bench are inconsistent."],
        None,
    ),
    "large_ints.0.forward.output.0": ("pass", [], [1.0, 1.0, 1.0, None, 1.0, 1.0]),
    "complex_imaginary.0.forward.output.0": (
        "error",
        [THOUSANDTH, COSINE],
        [0.817629817533, 13**0.5, 3.0, 0.4**0.5, 0.0, 0.0],
    ),
    "many.0.forward.output.0": ("error", [THOUSANDTH], None),
    "missing_file.0.forward.output.0": ("warning", ["warning: Dump file not found or read failed: "], None),
    "missing_null.0.forward.output.0": ("warning", [UNMATCHED], None),
    "no_file.0.forward.output.0": ("warning", ["warning: NPU does not have data file."], None),
    "cosine_drops.0.forward.output.0": ("error", [THOUSANDTH, COSINE], None),
    "only_here.0.forward.input.0": ("warning", [UNMATCHED], None),
    "only_here.0.forward.input.1": ("warning", [UNMATCHED], None),
    "only_here.0.forward.output.0": ("warning", [UNMATCHED], None),
}


def test_tensor_vectors(tmp_path):
    """Every rule of tensor mode on files of its own."""
    case = Path(__file__).parent / "compare" / "tensor_vectors"
    paths = ["-tp", case / "target" / "dump.json", "-gp", case / "golden" / "dump.json"]
    done = run(["compare", *paths, "-o", tmp_path], check=False)
    assert done.returncode == 3 and "1 row had no tensor" in done.stdout  # of one rule
    (want,), (got,) = tables(case / "expected").values(), tables(tmp_path).values()
    columns, seen = want[0], set()
    assert columns == got[0] and len(want) == len(got)
    result, message = columns.index("Result"), columns.index("Err_message")
    metrics = [columns.index(name) for name in METRICS]
    for a, b in zip(want[1:], got[1:]):
        name = a[0].removeprefix("Functional.")
        expected = {i: a[i] for i in range(len(columns))}
        if name in TENSOR_DIFFERENT:
            seen.add(name)
            verdict, texts, cells = TENSOR_DIFFERENT[name]
            expected[result] = verdict
            assert len(json.loads(b[message])) == len(texts), name
            assert all(x.startswith(y) for x, y in zip(json.loads(b[message]), texts)), f"{name}: {b[message]}"
            expected.pop(message)
            expected.update({i: str(cell) for i, cell in zip(metrics, cells or []) if cell is not None})
            assert {i: b[i] for i in expected} != {i: a[i] for i in expected} or b[message] != a[message]
        for i, cell in expected.items():
            same = same_metric(cell, b[i]) if i in metrics else cell == b[i]
            assert same, f"{name}, {columns[i]}: {cell} and {b[i]}"
    assert seen == set(TENSOR_DIFFERENT)


@pytest.mark.parametrize("case,code,word", WRONG_INPUT, ids=lambda v: str(v))
def test_refused_with_one_line(case, code, word, tmp_path):
    assert_refused(case, code, word, tmp_path / "out")


def test_structures_are_compared(tmp_path):
    """The old tool refuses. The run with the changed weight calls four functions more (test_compare_structure.py has others)."""
    _, done = run_case("compare_mix_struct", tmp_path)
    assert "compare (structure)" in done.stdout and "structure: 8 target only" in done.stdout
    table = next(rows for name, rows in tables(tmp_path).items() if name.endswith(".csv"))
    at = table[0].index("Difference")
    extra = [row[0] for row in table[1:] if row[at] != "same"]
    forward = ["Torch.abs.0", "Torch.sum.0", "Tensor.__mul__.25", "Tensor.__add__.18"]
    assert extra == [f"{op}.forward" for op in forward] + [f"{op}.backward" for op in reversed(forward)]


@pytest.mark.parametrize("mode", ["stat", "md5"])
def test_fuzzy_match_of_like_structures_is_the_plain_table(mode, tmp_path):
    """The old tool compares nothing (statistics) or calls every row an error (md5)."""
    run_case(f"compare_mix_{mode}_weight_fm", tmp_path)
    root = golden_set()
    assert_same(tables(root / "expected" / f"compare_mix_{mode}_weight" / "out"), tables(tmp_path))


def test_fuzzy_match_finds_the_extra_ops(tmp_path):
    """The old tool crashes on any op without a partner; by call number, later backward ops stand against the wrong ones."""
    _, done = run_case("compare_mix_stat_extra_fm", tmp_path)
    assert "440 matched, 8 only in the target, 0 only in the golden run" in done.stdout
    (table,) = tables(tmp_path).values()
    header, rows = table[0], table[1:]
    verdicts = [row[header.index("Result")] for row in rows]
    assert verdicts.count("error") == 0, "the plain table has 74"
    assert sum(row[1] == "N/A" for row in rows) >= 8


def test_fuzzy_match_of_recomputed_forwards(tmp_path):
    """The old tool crashes. Here no call number is off, so the order of the ops says what their names say."""
    run_case("compare_mix_stat_ckpt_fm", tmp_path)
    root = golden_set()
    assert_same(tables(root / "expected" / "compare_mix_stat_ckpt" / "out"), tables(tmp_path))


@pytest.mark.parametrize(
    "mode,first", [("stat", "Functional.linear.13.forward"), ("md5", "Functional.linear.13.forward")]
)
def test_diff_analyze_of_two_files(mode, first, tmp_path):
    """The old tool ignores -da there, and its documentation promises what the directory form does."""
    run_case(f"compare_mix_{mode}_weight_da", tmp_path)
    files = tables(tmp_path)
    assert set(files) == {"compare_result_TIME.json", "diff_analyze_TIME.json"}
    ((rank, ops),) = files["diff_analyze_TIME.json"]
    assert rank == "rank_0" and [op["op_name"] for op in ops] == [first]
    assert dict(files["compare_result_TIME.json"])[first]["is_same"] is False


# Which ranks and ops were changed: tests/golden/make_compare_cases.py and the notes of the set.
DIVERGENCES = [
    ("tp_nan", "parameter", [1], "Functional.linear.10.forward", {0: "Distributed.all_reduce.6.forward"}),
    ("tp_weight", "parameter", [0, 1], "Functional.linear.10.forward", {}),
    # The hook that multiplied a gradient by NaN is an op of its own.
    ("tp_bwdnan", "extra_op", [1], "Tensor.__mul__.0.forward", {0: "Distributed.all_reduce.21.forward"}),
    ("tp_md5", "parameter", [0, 1], "Functional.linear.6.forward", {}),
]


@pytest.mark.parametrize("case,kind,ranks,op,handovers", DIVERGENCES, ids=[d[0] for d in DIVERGENCES])
def test_first_divergence_of_ranks(case, kind, ranks, op, handovers, tmp_path):
    _, done = run_case(f"compare_{case}", tmp_path)
    found = json.loads((tmp_path / "first_divergence.json").read_text())
    assert found["version"] == 1 and found["step"] == 0
    creator = found["creator"]
    assert creator["ranks"] == ranks
    assert creator["kind"] in (kind, "input")
    assert op is None or creator["op"] == op
    assert {h["rank"]: h["through"] for h in found["inherited_by"]} == handovers
    where = f"(rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}, step 0)"
    headline = done.stdout.splitlines()[0]
    assert headline.startswith("Origin: ") and headline.endswith(where)
    assert found["infected"]["ops"] == sum(group["ops"] for group in found["inherited"])


def test_a_dump_directory_compares_every_step(tmp_path):
    """The old tool refuses the directory above the steps."""
    run_case("compare_mix_stat_weight_rootdir", tmp_path)
    assert set(tables(tmp_path)) == {f"compare_result_step{n}_rank0_TIME.csv" for n in (0, 1)}


@pytest.mark.parametrize(
    "variant,expected",
    [("weight", ("Functional.linear.13.forward", ".input.1")), ("nan", ("Functional.linear.13.forward", ".input.1"))],
)
def test_the_perturbed_weight_is_named(variant, expected, tmp_path):
    data = golden_set() / "data" / "m1_mix_stat"
    done = run(
        [
            "compare",
            "-tp",
            data / variant / "step0" / "rank0",
            "-gp",
            data / "bench" / "step0" / "rank0",
            "-o",
            tmp_path,
            "--json",
        ]
    )
    found = json.loads(done.stdout)["pairs"][0]["earlier_input_difference"]
    assert (found["op"], found["item"]) == expected
    assert found["frame"].startswith("modeling_llama.py:")


def test_data_mapping_leaves_other_items_to_their_names(tmp_path):
    """The listed items are as the old tool has them. It counts the backward calls of one side anew, so that those stand against the wrong ones."""
    root, _ = run_case("compare_L1_dm", tmp_path)
    (got,) = tables(tmp_path).values()
    (old,) = tables(root / "expected" / "compare_L1_dm" / "out").values()
    (plain,) = tables(root / "expected" / "compare_L1_stat_weight" / "out").values()
    listed = set(re.findall(r"^([^\s:]+):", (root / "data" / "maps" / "data_mapping.yaml").read_text(), re.M))
    assert len(listed) > 20
    for want, row, number in zip(old, got, plain):
        assert row == (number if ".backward." in row[0] else want)
        assert (row[0] != row[1]) == (row[0] in listed or number[0] != number[1]) or row[0] == "NPU Name"


def test_modules_of_another_class_at_the_same_path_are_a_pair(tmp_path):
    """The old tool has them alone; so has --plain, and all others as they were."""
    root, _ = run_case("compare_ren_none", tmp_path / "plain", env={"MSPROBE_PLAIN": "1"})
    ((name, old),) = tables(root / "expected" / "compare_ren_none" / "out").items()
    plain = tables(tmp_path / "plain")[name]
    assert plain == old
    run_case("compare_ren_none", tmp_path / "paired")
    paired = tables(tmp_path / "paired")[name]
    alone = {row[0] for row in old if row[1] == "N/A"}
    found = [row for row in paired if row[0] in alone and row[1] != "N/A"]
    assert len(found) > 20 and all(row[0].startswith("Module.") for row in found)
    assert all(
        row[0].split(".forward")[0].rpartition(".")[0] == row[1].split(".forward")[0].rpartition(".")[0]
        for row in found
        if ".forward" in row[0]
    )


LAYER_FILES = [("compare_result", "csv")] + [
    (name, "yaml") for name in ("api_mapping", "data_mapping", "pytorch_tree", "pytorch_tree_golden")
]


def test_layer_mapping_works_for_pytorch(tmp_path):
    """The old tool ignores it: 440 ops, of which it compares those whose names happen to be equal."""
    root, done = run_case("compare_ren_lm", tmp_path)
    assert "ops: 440, all matched" in done.stdout
    files = tables(tmp_path)
    assert set(files) == {f"{name}_TIME.{kind}" for name, kind in LAYER_FILES}
    (got,) = (rows for name, rows in files.items() if name.endswith(".csv"))
    (plain,) = tables(root / "expected" / "compare_mix_stat_weight" / "out").values()
    assert [row[1:22] for row in got[1:]] == [row[1:22] for row in plain[1:]], "as if the modules had equal names"


@pytest.mark.parametrize("case", ["compare_verl_fsdp", "compare_verl_fsdp_xlsx"])
def test_training_against_inference(case, tmp_path):
    """As the old tool has it, but that a row without a partner says so."""
    root, _ = run_case(case, tmp_path)
    ((_, got),) = tables(tmp_path).items()
    ((_, want),) = tables(root / "expected" / case / "out").items()
    assert len(got) == len(want)
    header = next(i for i, row in enumerate(want) if len(row) > 1)
    columns = [c.strip("'") for c in want[header]]
    result, message, golden = (columns.index(c) for c in ("Result", "Err_message", "Bench Name"))
    alone = 0
    for row, old in zip(got[header + 1 :], want[header + 1 :]):
        if old[golden].strip("'") == "N/A":
            alone += 1
            assert "unmatched" in row[message] and row[result].strip("'") == "warning"
            row[message], row[result] = old[message], old[result]
        for name, mine, theirs in zip(columns, row, old):
            assert same_metric(mine, theirs) if name in METRICS else mine == theirs, (row[0], name)
    assert alone == 9


def test_plain_writes_the_files_of_the_old_tool_and_no_other(tmp_path):
    root, _ = run_case("compare_mix_stat_weight", tmp_path, env={"MSPROBE_PLAIN": "1"})
    want = {p.name for p in (root / "expected" / "compare_mix_stat_weight" / "out").iterdir()}
    assert {blank_time(p.name) for p in tmp_path.iterdir()} == {blank_time(name) for name in want}
