"""What stands beside the table: colours of workbooks, the advisor of the older command form, the HTML report."""

import base64
import gzip
import json
import re

import openpyxl
import pytest
from graph_cases import golden_set, run

RED, YELLOW = "FFFF0000", "FFFFFF00"


def sides(name="m1_mix_stat", variant="weight"):
    data = golden_set() / "data" / name
    return ["-tp", data / variant / "step0", "-gp", data / "bench" / "step0"]


def workbook(folder):
    (path,) = folder.glob("*.xlsx")
    return openpyxl.load_workbook(path)["Sheet1"]


def color(cell):
    return cell.fill.fgColor.rgb if cell.fill.fill_type == "solid" else None


def test_workbooks_have_a_fixed_header_filters_and_coloured_results(tmp_path):
    run(["compare", *sides(variant="nan"), "-o", tmp_path, "--xlsx"])
    sheet = workbook(tmp_path)
    assert sheet.freeze_panes == "B2"
    assert sheet.auto_filter.ref == f"A1:AF{sheet.max_row}"
    assert sheet["A1"].font.bold and not sheet["A2"].font.bold
    result = [cell.value for cell in sheet[1]].index("Result")
    expected = {"pass": None, "warning": YELLOW, "error": RED}
    assert all(color(row[result]) == expected[row[result].value] for row in sheet.iter_rows(min_row=2))
    assert all(color(row[0]) is None for row in sheet.iter_rows(min_row=2))


def test_highlighting_colours_rows_and_says_why(tmp_path):
    run(["compare", *sides(variant="nan"), "-o", tmp_path, "-hl"])
    sheet = workbook(tmp_path)
    header = [cell.value for cell in sheet[1]]
    seen = set()
    for row in sheet.iter_rows(min_row=2):
        values = dict(zip(header, (cell.value for cell in row)))
        reasons = [text for text in json.loads(values["Err_message"]) if text.startswith(("red: ", "yellow: "))]
        want = RED if any(r.startswith("red") for r in reasons) else YELLOW if reasons else None
        assert color(row[0]) == want, values
        if str(values["NPU max"]).lower() in ("nan", "inf", "-inf"):
            assert "red: the target holds NaN or infinity" in reasons
        seen.add(want)
    assert RED in seen and None in seen


@pytest.fixture
def compare_json(tmp_path):
    _, target, _, golden = sides()
    text = {"npu_path": str(target / "rank0/dump.json"), "bench_path": str(golden / "rank0/dump.json")}
    (tmp_path / "compare.json").write_text(json.dumps(text))
    return tmp_path / "compare.json"


def test_the_older_command_form_has_an_advisor(compare_json, tmp_path):
    run(["-f", "pytorch", "compare", "-i", compare_json, "-o", tmp_path / "out"])
    (path,) = (tmp_path / "out").glob("advisor*.txt")
    assert re.fullmatch(r"advisor_20\d{12}\.txt", path.name)
    lines = [line.split(": ", 1) for line in path.read_text().splitlines()]
    assert [key for key, _ in lines] == ["Line", "Suspect Nodes", "Expert Advice"]
    rows = [[cell.value for cell in row] for row in workbook(tmp_path / "out")]
    number, op, result = int(lines[0][1]), lines[1][1], rows[0].index("Result")
    assert rows[number - 1][0].startswith(op) and rows[number - 1][result] == "Warning"
    assert not any(row[result] for row in rows[1 : number - 1])


def test_without_the_advisor(compare_json, tmp_path):
    run(["-f", "pytorch", "compare", "-i", compare_json, "-o", tmp_path / "out", "-c"])
    run(["compare", *sides(), "-o", tmp_path / "out"])
    assert not list((tmp_path / "out").glob("advisor*"))


def test_the_html_report_holds_what_the_table_holds(tmp_path):
    done = run(["compare", *sides(), "-o", tmp_path, "--html", "--json"], check=False)
    if "built without its pages" in done.stderr:
        assert done.returncode == 2 and not list(tmp_path.iterdir())
        return
    answer = json.loads(done.stdout)
    html = open(answer["html"]).read()
    data = json.loads(gzip.decompress(base64.b64decode(re.search(r'id="data">([^<]*)<', html).group(1))))
    (page,) = data["pages"]
    table = answer["pairs"][0]["files"][0]
    lines = open(table).read().splitlines()
    assert page["table"]["total"] == len(lines) - 1 == len(page["table"]["rows"])
    columns = lines[0].split(",")[:-1]
    assert page["table"]["columns"][: len(columns)] == columns, "the stack is kept apart"
    assert page["table"]["columns"][len(columns) :] == ["Ruler Error", "Ruler Units", "Ruler Verdict", "Ruler Note"]
    blamed = [row[3][-2] for row in page["table"]["rows"] if row[3][-2] in ("bug", "suspicious")]
    assert blamed and page["worst"][0][1] in ("bug", "suspicious", "inherited")
    assert data["summary"]["pairs"][0]["rows"] == page["table"]["total"]
    assert [row[0] for row in page["table"]["rows"]] == list(range(len(lines) - 1))
    names = [row[3][0] for row in page["table"]["rows"]]
    assert all(line.startswith(name) for name, line in zip(names, lines[1:]))
    layers = {cell[2] for cell in page["curves"]["cells"]}
    assert layers == {0, 1}
    assert re.fullmatch(r"compare_result_rank0_20\d{12}\.html", answer["html"].rsplit("/", 1)[1])
