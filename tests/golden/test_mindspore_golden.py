"""The MindSpore golden set: every case of mindstudio-probe 26.2.0 and 8.1.1 agrees, or differs by what docs/compatibility.md says."""

import collections
import csv
import glob
import json
import re
import sqlite3
from pathlib import Path

import openpyxl
import pytest
from graph_cases import run
from mindspore_cases import (
    AGREE,
    CONFIGS,
    GROUPS,
    KERNELS,
    OTHER_COMMANDS,
    STRICTER,
)
from mindspore_set import (
    as_number,
    blank_time,
    case_names,
    differences,
    files,
    mindspore_set,
    read_table,
    run_case,
    same_cell,
)

pytestmark = pytest.mark.deep


def test_every_case_is_judged():
    judged = [case for group in GROUPS for case in group]
    assert [c for c, n in collections.Counter(judged).items() if n > 1] == []
    assert set(judged) == case_names()


@pytest.mark.parametrize("case", [case for case in OTHER_COMMANDS if "generate" in case])
def test_scripts_of_operators_have_their_names_and_ran(case, tmp_path, monkeypatch, mindspore_python):
    """Theirs refuses functions of mint.nn.functional."""
    monkeypatch.setenv("MSPROBE_PYTHON", str(mindspore_python))
    _, done = run_case(case, tmp_path)
    names = {name for name in expected(case) if name.endswith(".py")}
    assert set(files(tmp_path)) == (names or {"MintFunctional.silu.0.forward.py"})
    errors = re.findall(r"of the largest value ([0-9.e+-]+)", done.stdout)
    assert errors and all(float(error) < 1e-6 for error in errors), done.stdout


@pytest.mark.parametrize("case", [case for case in OTHER_COMMANDS if "generate" not in case])
def test_checks_of_operators_agree(case, tmp_path, monkeypatch, mindspore_python):
    """The status of each call in both directions; gradients of a list of tensors are checked, where theirs are skipped."""
    monkeypatch.setenv("MSPROBE_PYTHON", str(mindspore_python))
    run_case(case, tmp_path, check=False)
    tables = []
    for side in (expected(case), files(tmp_path)):
        (head, *rows), (details, *_) = (
            read_table(side[f"accuracy_checking_{name}_TIME.csv"]) for name in ("result", "details")
        )
        tables.append((head, details, {row[0]: [cell.strip() for cell in row[1:3]] for row in rows}))
    (head, details, theirs), (ours_head, ours_details, ours) = tables
    assert (head, details) == (ours_head, ours_details)
    assert set(theirs) <= set(ours)
    for name, (forward, backward) in theirs.items():
        # Theirs calls NaN at the same places an error of clamp, which gives NaN for NaN.
        assert ours[name][0] == forward or (name, case) == ("Mint.clamp.0", "ms_acc_L1_nan"), name
        assert ours[name][1] == backward or backward == "SKIP", name


@pytest.mark.parametrize("case", CONFIGS)
def test_packs_agree(case, tmp_path):
    """But for the columns of env, which mindstudio-probe swaps, signs of relative differences, and stacks that are alike."""
    _, _ = run_case(case, tmp_path)
    want, got = expected(case), files(tmp_path)
    assert {*want, "res/result.html"} == set(got)
    for name, path in want.items():
        if path.suffix == ".json":
            assert path.read_bytes() == got[name].read_bytes()
    theirs, ours = (openpyxl.load_workbook(side["res/result.xlsx"]) for side in (want, got))
    assert theirs.sheetnames == ours.sheetnames
    for sheet in theirs.sheetnames:
        a, b = (sorted(map(list, list(book[sheet].values)[1:]), key=repr) for book in (theirs, ours))
        assert list(theirs[sheet].values)[0] == list(ours[sheet].values)[0]
        if sheet == "env":
            a = [[row[1], row[0], row[3], row[2], row[4]] for row in a]
        if sheet == "random":  # a stack goes with the one that is equal, not with the first that is alike
            a, b = ([[*row[:2], *row[4:]] for row in side] for side in (a, b))
        plain = [[abs(x) if isinstance(x, (int, float)) and not isinstance(x, bool) else x for x in row] for row in a]
        assert sorted(plain, key=repr) == sorted(b, key=repr) or all(
            same_cell(str(x), str(y)) for p, q in zip(plain, b) for x, y in zip(p, q)
        ), sheet


def expected(case):
    return files(mindspore_set() / "expected" / case / "out")


def tables_of(want, got):
    """Pairs of tables, theirs and ours, of one name."""
    for name, path in want.items():
        if path.suffix in (".csv", ".xlsx"):
            yield read_table(path), read_table(got[name])


def open_db(path):
    """Without the files that SQLite puts beside it: other tests look into the same directory."""
    return sqlite3.connect(f"file:{path}?immutable=1", uri=True)


def assert_same_database(want, got):
    def rows(path):
        db = open_db(path)
        tables = [t for (t,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
        return {
            t: sorted(blank_time(repr(row)) for row in db.execute(f"SELECT * FROM {t}"))
            for t in tables
            if not t.startswith("msprobe_")
        }

    a, b = rows(want), rows(got)
    assert set(a) == set(b)
    for table in a:
        assert a[table] == b[table], table


@pytest.mark.parametrize("case", AGREE)
def test_agrees(case, tmp_path):
    want = expected(case)
    root = mindspore_set()
    _, done = run_case(case, tmp_path, check=False)
    rc = json.loads((root / "expected" / case / "case.json").read_text())["rc"]
    assert bool(done.returncode) == bool(rc), done.stderr
    got = files(tmp_path)
    assert set(want) == set(got)
    for theirs, ours in tables_of(want, got):
        assert len(theirs) == len(ours) and theirs[0] == ours[0]
        assert list(differences(theirs, ours)) == []
    for name, path in want.items():
        if path.suffix == ".db":
            assert_same_database(path, got[name])


# What rows say here that pass there, and the verdict that goes with it: the rows on tensor dumps in docs/compatibility.md.
STRICTER_MESSAGES = {
    '["warning: Bench api/module unmatched."]': "warning",
    '["error: The position of inf or nan in NPU and bench Tensor do not match."]': "error",
}


@pytest.mark.parametrize("case", STRICTER)
def test_stricter(case, tmp_path):
    """Nothing but verdict and message, of rows that have no partner or have NaN at other places."""
    run_case(case, tmp_path)
    for theirs, ours in tables_of(expected(case), files(tmp_path)):
        assert len(theirs) == len(ours) and theirs[0] == ours[0]
        message = theirs[0].index("Err_message")
        stricter = 0
        for a, b in zip(theirs[1:], ours[1:]):
            if case.endswith("_fm") and a[1] != b[1]:
                continue  # matched by order
            wrong = {t: (x, y) for t, x, y in zip(theirs[0], a, b) if not same_cell(x, y)}
            if not wrong:
                continue
            assert wrong.pop("Err_message", ("[]",))[0] == "[]", a[0]
            assert wrong == {"Result": ("pass", STRICTER_MESSAGES[b[message]])}, a[0]
            stricter += 1
        assert stricter


def by_name(rows):
    out = {}
    for row in rows[1:]:
        out.setdefault(blank_time(row[0] or row[1]).split("/")[-1], []).append(row)
    return out


def excused_kernel_cell(title, want, got, theirs, ours):
    """Whether docs/compatibility.md ("`compare` of kernel dumps") gives the cell of a pair its reason."""
    if want.split() == got.split():  # a line break at the end of a message
        return title == "Err_message"
    if title.endswith("Shape"):  # 8.1.1 has round brackets
        return want.strip("()") == got.strip("[]")
    nan = any((as_number(cell) or 0) != (as_number(cell) or 0) for cell in ours.values())
    if want == "":  # NaN and infinities are shown, and judged
        return (as_number(got) is not None and as_number(got) != as_number(got)) or (
            title.startswith("Accuracy") and got == "No" and (nan or "position of inf or nan" in ours["Err_message"])
        )
    if title.startswith("Accuracy"):  # of statistics both directions count, Min and Norm as well
        return (want, got) == ("Yes", "No") and "Cosine" not in ours
    a, b = as_number(want), as_number(got)
    if a is None or b is None:
        return False
    if title.endswith(("mean", "Mean diff", "l2norm")):  # sums in float64
        norms = [as_number(ours[f"{side} l2norm"]) or 0 for side in ("NPU", "Bench")]
        return abs(a - b) <= 1e-6 * max(1, *(n for n in norms if n == n))
    # Of an element that is zero but for rounding; 8.1.1 divides by another smallest number.
    return "Relative" in title and max(a, b) > 1e3


@pytest.mark.parametrize("case", KERNELS)
def test_kernels(case, tmp_path):
    """Sums in float64, NaN shown, verdicts in both directions, no line breaks in messages."""
    run_case(case, tmp_path)
    for theirs, ours in tables_of(expected(case), files(tmp_path)):
        assert len(theirs) == len(ours)
        assert [t for t in theirs[0] if t not in ours[0]] == []
        there, here = by_name(theirs), by_name(ours)
        assert set(there) == set(here)
        for name, rows in there.items():
            for a, b in zip(rows, here[name], strict=True):
                a, b = dict(zip(theirs[0], a)), dict(zip(ours[0], b))
                wrong = {t: (a[t], b[t]) for t in a if t and not same_cell(a[t], b[t])}
                lonely = [
                    side for side in ("NPU", "Bench") if f"{side} has no such kernel." in b.get("Err_message", "")
                ]
                for side in lonely:  # the reason, not that an empty name is no file
                    assert wrong.pop("Err_message")[0].strip() == "Dump file is not ndarray."
                    assert wrong.pop(f"{side} Tensor Shape", ("None", "")) == ("None", "")
                assert [(t, *c) for t, c in wrong.items() if not excused_kernel_cell(t, *c, a, b)] == [], name


def test_kernels_with_long_names(tmp_path):
    """The earlier tool drops nine of twelve files."""
    root, _ = run_case("ms_compare_kernel_long", tmp_path)
    truth(root, "kernel_m2_long", tmp_path)


def truth(root, name, out):
    with open(root / "truth" / name / "answer" / "pairs.csv", newline="") as f:
        want = [(row["target"], row["golden"]) for row in csv.DictReader(f)]
    rows = []
    for path in sorted(glob.glob(f"{out}/compare_result_*.csv")):
        rows += read_table(Path(path))[1:]
    got = {(blank_time(row[0]), blank_time(row[1])) for row in rows}
    assert len(want) > 10 and set(want) <= got


@pytest.mark.parametrize(
    "name", ["kernel_m1_graph", "kernel_m1_jitfwd", "kernel_m2_graph", "kernel_m2_jit", "kernel_m2_long"]
)
def test_truth_of_kernels(name, tmp_path):
    root, _ = run_case(name, tmp_path, folder="truth")
    truth(root, name, tmp_path)


def test_kernels_without_rank(tmp_path):
    root, _ = run_case("ms_compare_kernel_graph_norank", tmp_path, folder="truth")
    want = files(root / "expected" / "ms_compare_kernel_graph_weight" / "out")
    assert set(want) == set(files(tmp_path))


@pytest.mark.parametrize("mapped", [True, False], ids=["lm", "no_mapping"])
@pytest.mark.parametrize("name", [f"cross_{m}_{v}" for m in ("m1", "m2") for v in ("bench", "op", "weight")])
def test_truth_across_frameworks(name, mapped, tmp_path):
    """All module pairs; equal ones pass, and the first that differs is the faulty layer."""
    root, done = run_case(name, tmp_path, folder="truth", drop=() if mapped else ("-lm",))
    (path,) = tmp_path.glob("compare_result_*.csv")
    table = read_table(path)
    rows = {row[0]: dict(zip(table[0], row)) for row in table[1:]}
    with open(root / "truth" / name / "answer" / "pairs.csv", newline="") as f:
        want = list(csv.DictReader(f))
    assert len(want) >= 18
    for pair in want:
        row = rows[pair["MindSpore item"]]
        assert row["Bench Name"] == pair["PyTorch item"]
        assert pair["verdict"] != "same" or row["Result"] != "error"
    if name.endswith("bench") and not mapped:
        assert not any(row["Result"] == "error" for row in rows.values())
        assert done.stdout.startswith("No difference beyond rounding") or "small differences add up" in done.stdout


@pytest.mark.parametrize("m", ["m1", "m2"])
def test_plural_keys_of_an_api_mapping(m, tmp_path):
    root, _ = run_case(f"ms_compare_{m}_cross_am_yaml_doc", tmp_path / "doc", folder="truth")
    run_case(f"ms_compare_{m}_cross_am_yaml", tmp_path / "code")
    (a,), (b,) = (list(tables.values()) for tables in (files(tmp_path / "doc"), files(tmp_path / "code")))
    assert read_table(a) == read_table(b)


def test_fuzzy_match_of_a_changed_op(tmp_path):
    _, done = run_case("ms_compare_m2_stat_fm", tmp_path, folder="truth")
    assert "only in the target" in done.stdout


@pytest.mark.parametrize("name", ["overflow_m1", "overflow_m2", "ms_overflow_m1", "ms_overflow_m2"])
def test_truth_of_overflows(name, tmp_path):
    """An infinite weight: the layer and its parameter are the source."""
    m = name[-2:]
    root, done = run_case(name, tmp_path, folder="truth")
    layer, parameter = json.loads((root / "truth" / f"overflow_{m}" / "case.json").read_text())["answer"]["source"]
    path = ".".join(layer.split(".")[1:-3])
    assert f"Origin: {path}.{parameter.split('.')[1]} " in done.stdout


@pytest.mark.parametrize("case", ["ms8_code_mapping_m1", "ms8_code_mapping_npy"])
def test_code_mapping(case, tmp_path):
    run_case(case, tmp_path)
    ((want, got),) = tables_of(expected(case), files(tmp_path))
    theirs, ours = by_name(want), by_name(got)
    assert set(theirs) == set(ours)
    exact = 0
    for name, ((_, code, scope),) in theirs.items():
        ((_, my_code, my_scope),) = ours[name]
        own = [line for line in scope.splitlines() if re.sub(r"[./\\\\ ]", "_", line) == name.split(".")[1]]
        assert my_scope in own or (my_scope == "" and own == [])  # theirs also has those that begin alike
        exact += (my_code, my_scope) == (code, scope)
    assert exact >= 0.6 * len(theirs)


def test_code_mapping_of_statistics(tmp_path):
    """The set's case adds its columns to a file that was copied beside it: the expected one without them."""
    root = mindspore_set()
    want = read_table(root / "expected" / "ms8_code_mapping_stat" / "out" / "statistic.csv")
    plain = [row[:14] + ([""] if i else []) for i, row in enumerate(want)]
    path = tmp_path / "statistic.csv"
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows(plain)
    ir = root / "data" / "e2e_m2_graph" / "bench" / "rank_0" / "graphs" / "ms_output_trace_code_graph_0.ir"
    run(["-f", "mindspore", "code_mapping", "--ir", ir, "--dump_data", path, "--output", tmp_path])
    assert read_table(path) == want


@pytest.mark.parametrize("m", ["m1", "m2"])
def test_pytorch_against_mindspore(m, tmp_path):
    """Refused by the earlier tool. The pairs are those of the other direction."""
    run_case(f"ms_compare_{m}_cross_reverse", tmp_path / "there")
    run_case(f"ms_compare_{m}_cross_stat_none", tmp_path / "back")
    pairs = []
    for folder in ("there", "back"):
        (path,) = (tmp_path / folder).glob("compare_result_*.csv")
        pairs.append(
            {(r[0], r[1]) for r in read_table(path)[1:] if r[1] != "N/A" and ("Cell." in r[0] or "Module." in r[0])}
        )
    assert len(pairs[0]) > 18 and {(b, a) for a, b in pairs[0]} == pairs[1]


def test_parse(tmp_path):
    """Known by construction: all values of every type, both forms of overflow records."""
    root, _ = run_case("ms_parse_adump", tmp_path)
    answer = root / "truth" / "adump" / "answer"
    for path in answer.iterdir():
        if path.name != "facts.json":
            assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name
    assert set(files(tmp_path)) == set(expected("ms_parse_adump"))


def test_parse_of_broken_files(tmp_path):
    _, done = run_case("ms_parse_broken", tmp_path, check=False)
    assert done.returncode == 3
    name = "convert_failed_file_list.txt"
    want = expected("ms_parse_broken")[name].read_text()
    assert blank_time((tmp_path / name).read_text()) == blank_time(want)


@pytest.mark.parametrize("name", ["diff_analyze_1795820106513082113.json", "diff_analyze_1700000000000000000.json"])
def test_names_without_their_time(name):
    """The first holds 14 digits within its 19 that read as a stamp."""
    assert blank_time(name) == "diff_analyze_TIME.json"
    assert blank_time("compare_result_rank0_20261127225512.csv") == "compare_result_rank0_TIME.csv"


@pytest.mark.parametrize("case", ["ms_compare_m1_ranks_da", "ms_compare_m2_ranks_da", "ms_compare_m2_da_file"])
def test_diff_analyze(case, tmp_path):
    """26.2.0 needs directories of ranks that are called rank*; here -da gives its files everywhere."""
    run_case(case, tmp_path)
    assert "diff_analyze_TIME.json" in files(tmp_path)


@pytest.mark.parametrize(
    "case",
    [
        "ms_compare_kernel_stat_vs_npy",
        "ms8_compare_kernel_stat",
        "ms_compare_m2_struct",
        "ms_compare_m1_ms_dm",
        "ms_compare_m2_ms_lm",
        "ms8_compare_m2_fm",
    ],
)
def test_answers_where_the_earlier_tool_has_none(case, tmp_path):
    _, done = run_case(case, tmp_path)
    assert any(name.startswith("compare_result") for name in files(tmp_path)), done.stdout


def test_api_mapping_of_one_framework_is_refused(tmp_path):
    _, done = run_case("ms_compare_m2_ms_am", tmp_path, check=False)
    assert done.returncode == 2 and "-am/--api_mapping" in done.stderr


@pytest.mark.parametrize("case", ["ms_db_m1", "ms_db_m2"])
def test_trends(case, tmp_path):
    """As the earlier tool's with --micro_step false; with it micro steps are counted by another rule."""
    run_case(case, tmp_path)
    (got,), (want,) = files(tmp_path).values(), expected(case).values()
    tables = [
        {t for (t,) in open_db(p).execute("SELECT name FROM sqlite_master WHERE type = 'table'")} for p in (want, got)
    ]
    assert tables[0] <= tables[1]
