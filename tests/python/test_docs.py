"""The documents: links and anchors lead somewhere, both languages have one structure, and figures are those of the bench."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "docs"), str(ROOT / "tests" / "conformance")]

import pages  # noqa: E402 - of tools/docs
import sentences  # noqa: E402
from rules import ALL_RULES  # noqa: E402 - of tests/conformance

_LINK = re.compile(r"(!?)\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^(#{1,6}) +(.*?) *#*$")


def markdown_files():
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True
    )
    files = sorted(ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists())
    if not files:  # an unpacked archive
        files = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
    return files


def outside_code(text):
    """The lines that are not in fenced code, without code spans."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield line


def headings(path):
    found = (_HEADING.match(line) for line in outside_code(path.read_text()))
    return [(len(m[1]), m[2]) for m in found if m]


def anchors(path):
    """As GitHub and MyST make them."""
    slugs = []
    for _, title in headings(path):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        slugs.append(slug if slug not in slugs else f"{slug}-{slugs.count(slug)}")
    return slugs


def faults_of_links(path):
    faults = []
    for line in outside_code(path.read_text()):
        for picture, link in _LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            where = (path.parent / target).resolve() if target else path
            if not where.exists():
                faults.append(f"{path.relative_to(ROOT)}: {'picture' if picture else 'link'} {link}: no such file")
            elif anchor and where.suffix == ".md" and anchor not in anchors(where):
                faults.append(f"{path.relative_to(ROOT)}: {link}: no such heading")
    return faults


def test_links_and_pictures_lead_somewhere():
    faults = [fault for path in markdown_files() for fault in faults_of_links(path)]
    assert not faults, "\n".join(faults)


def names(language):
    folder = ROOT / "docs" / language
    return {str(path.relative_to(folder)) for path in folder.rglob("*.md")}


def test_both_languages_have_the_same_files():
    assert names("en") == names("zh")


@pytest.mark.parametrize("name", sorted(names("en") & names("zh")) + ["README"])
def test_both_languages_have_the_same_headings(name):
    english, chinese = (ROOT / "docs" / language / name for language in ("en", "zh"))
    if name == "README":
        english, chinese = ROOT / "README.md", ROOT / "README.zh.md"
    levels = [[level for level, _ in headings(path)] for path in (english, chinese)]
    assert levels[0] == levels[1], f"{name}: {headings(english)} and {headings(chinese)}"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_is_in_the_site(language):
    documents = pages.documents(language)
    assert len(documents) == len(set(documents))
    missing = [name for name in documents if not (ROOT / f"{name}.md").exists()]
    assert not missing
    mine = {f"docs/{language}/{name[:-3]}" for name in names(language)}
    shared = {f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")} | {"CHANGELOG", "CONTRIBUTING"}
    assert set(documents) == mine | shared | {pages.README[language]}
    assert pages.twin(pages.twin(documents[3], language), "zh" if language == "en" else "en") == documents[3]


def test_links_stay_in_their_language():
    strays = []
    for language, other in (("en", "zh"), ("zh", "en")):
        for path in (ROOT / "docs" / language).rglob("*.md"):
            links = [link for line in outside_code(path.read_text()) for _, link in _LINK.findall(line)]
            strays += [
                f"{path.relative_to(ROOT)}: {link}"
                for link in links
                if f"/{other}/" in link or link.endswith(f"_{other}.png")
            ]
    assert not strays, "\n".join(strays)


def test_figures_of_the_readme_are_those_of_the_bench():
    checked = subprocess.run(
        [sys.executable, ROOT / "tools" / "readme_figures.py", "--check"], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr


def test_versions_in_the_readme_are_those_that_are_installed():
    """What "tested with" says is what tools/setup.sh pins, and what pyproject.toml requires."""
    setup = (ROOT / "tools" / "setup.sh").read_text()
    torch = re.search(r"venv \.venv torch==([\d.]+)", setup)[1]
    earlier = re.search(r"mindstudio-probe==([\d.]+)", setup)[1]
    plugin = re.search(r"tb-graph-ascend==([\d.]+)", setup)[1]
    least = re.search(r'requires-python = ">=([\d.]+),', (ROOT / "pyproject.toml").read_text())[1]
    for name in ("README.md", "README.zh.md"):
        text = (ROOT / name).read_text()
        rows = [line for line in text.splitlines() if re.match(r"\| [\w-]+", line)]
        row = {re.match(r"\| ([A-Za-z-]+|)", line)[1]: line for line in rows}
        assert torch in row["PyTorch"]
        assert earlier in row["mindstudio-probe"] and f"| mindstudio-probe {earlier} |" in text
        assert f"tb-graph-ascend {plugin}" in text
        assert f"| {least} " in row["Python"]


def test_a_page_that_loads_from_elsewhere_is_refused(tmp_path):
    (tmp_path / "good.html").write_text(
        '<a href="https://example.com">x</a><a href="good.html#a">y</a><img src="data:,">'
    )
    check = [sys.executable, ROOT / "tools" / "docs" / "check_site.py", tmp_path]
    assert subprocess.run(check).returncode == 0
    (tmp_path / "bad.html").write_text('<script src="//cdn.example/x.js"></script><a href="gone.html">z</a>')
    (tmp_path / "bad.css").write_text("@import url(https://fonts.example/a.css);")
    said = subprocess.run(check, capture_output=True, text=True)
    assert said.returncode == 1
    assert [line.split(": ", 2)[2] for line in said.stderr.splitlines()] == [
        "loads https://fonts.example/a.css",
        "loads //cdn.example/x.js",
        "links to gone.html, which does not exist",
    ]


# What was once written here, and what the field says instead.
_WORDS = {
    r"\b(?:old|older|earlier) tool\b": "mindstudio-probe",
    r"\b(?:is|are) told\b": "is reported",
    r"\bforetell": "predict",
    r"\bfiles? without a name\b": "unlinked temporary file",
    r"\bpart ways\b": "differ",
    "旧工具": "mindstudio-probe",
}


@pytest.mark.parametrize("pattern", _WORDS)
def test_what_users_read_has_one_word_for_one_thing(pattern):
    """Documents, docstrings and messages of the package, texts of the commands (not comments)."""
    texts = {path: path.read_text() for path in markdown_files() if "tests" not in path.relative_to(ROOT).parts}
    texts.update((path, path.read_text()) for path in (ROOT / "python" / "msprobe").rglob("*.py"))
    for path in (ROOT / "src" / "cli").glob("*.cc"):
        texts[path] = "\n".join(re.findall(r'"(?:[^"\\\n]|\\.)*"', path.read_text()))
    found = [f"{path.relative_to(ROOT)}: {m[0]}" for path, text in texts.items() for m in re.finditer(pattern, text)]
    assert not found, f"{found}: say {_WORDS[pattern]!r}"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_sentences_are_short(language):
    mean, long = sentences.figures(sentences.user_documents(language), language)
    assert mean <= sentences.LIMITS[language].mean
    assert not long, long
    assert language == "zh" or not sentences.fronted(sentences.user_documents("en"))


def test_sentences_are_counted_without_code_and_targets():
    text = "# A heading of many words\n\nOne `a b c` two [three](four.md). Is it?\n\n```\nnot this\n```\n| cell | two words. |\n"
    assert list(sentences.sentences(text, "en")) == [
        ("One Code two three.", 4),
        ("Is it?", 2),
        ("cell", 1),
        ("two words.", 2),
    ]
    assert list(sentences.sentences("第一句 `x`。第二句！", "zh")) == [("第一句 Code。", 4), ("第二句！", 3)]


def test_chinese_pages_use_chinese_punctuation():
    """Between two ideographs a comma, colon, semicolon or bracket is full-width."""
    wrong = []
    for path in [ROOT / "README.zh.md", *(ROOT / "docs" / "zh").rglob("*.md")]:
        for line in outside_code(path.read_text()):
            for match in re.finditer(r"[\u4e00-\u9fff][,;:!?][\u4e00-\u9fff ]", re.sub(r"`[^`]*`", "", line)):
                wrong.append(f"{path.relative_to(ROOT)}: {match[0]} in {line[:60]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("row", sorted({rule.row for rule in ALL_RULES}))
def test_every_rule_of_the_conformance_tests_has_its_row(row):
    assert f"\n| {row} |" in (ROOT / "docs" / "compatibility.md").read_text()
