"""The tutorial runs as it stands: its script, each command in its order, and what the page quotes of them."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from graph_cases import find_command
from launch import REPO
from transcript import consoles, missing_lines

PAGES = {language: (REPO / "docs" / language / "tutorial.md").read_text(encoding="utf-8") for language in ("en", "zh")}
LOCALES = {"en": "C.UTF-8", "zh": "zh_CN.UTF-8"}
# What only reads is asked again in the other language.
READS = re.compile(r"msprobe (compare|monitor judge)|grep|tail")


def test_the_page_shows_the_script_of_the_examples():
    script = (REPO / "examples" / "tutorial" / "train.py").read_text(encoding="utf-8")
    for text in PAGES.values():
        assert re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE) == [script]


def test_both_languages_run_the_same_commands():
    english, chinese = ([command for command, _ in consoles(text)] for text in PAGES.values())
    assert english == chinese and len(english) > 15


@pytest.mark.timeout(1200)
def test_commands_print_what_the_page_quotes(tmp_path):
    (tmp_path / "train.py").write_bytes((REPO / "examples" / "tutorial" / "train.py").read_bytes())
    path = f"{Path(find_command()).parent}{os.pathsep}{os.environ['PATH']}"

    def printed(command, language):
        environment = {**os.environ, "PATH": path, "LC_ALL": LOCALES[language]}
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, encoding="utf-8"
        )
        assert done.returncode in (0, 1), (command, done.stdout[-2000:], done.stderr[-4000:])
        return done.stdout.splitlines()

    for (command, english), (_, chinese) in zip(consoles(PAGES["en"]), consoles(PAGES["zh"])):
        lines = printed(command, "en")
        assert missing_lines(english, lines) == [], (command, lines)
        lines = printed(command, "zh") if READS.match(command) else lines
        assert missing_lines(chinese, lines) == [], (command, lines)


@pytest.mark.parametrize(
    ("quoted", "fits"),
    [
        (["step 3 loss 0.31", "..."], True),
        (["step 4 loss 0.31", "..."], False),
        (["step 3 loss 0.9", "..."], False),
        (["step 3 los 0.31", "..."], False),
        (["step 3 ...", "equal"], True),
        (["step 3 ..."], False),
        (["...", "equal"], True),
        (["equal"], False),
    ],
)
def test_what_is_quoted_is_held_to_what_is_printed(quoted, fits):
    assert (missing_lines(quoted, ["step 3 loss 0.30", "equal"]) == []) is fits
