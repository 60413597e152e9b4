"""The commands that the pages by symptom show exist, with the options that stand there."""

import pathlib
import re
import shlex
import subprocess

import pytest
from graph_cases import find_command

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("symptoms", "guide", "faq", "programs")


def shown(language):
    """The commands of the pages: their words up to the user's own command, without comments."""
    for page in PAGES:
        text = (ROOT / "docs" / language / f"{page}.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL)
        lines = [line for block in blocks for line in block.splitlines()] + re.findall(r"`(msprobe [^`]+)`", text)
        for line in lines:
            words = shlex.split(line, comments=True)
            if words[:1] == ["msprobe"]:
                yield words[1 : words.index("--")] if "--" in words else words[1:]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_option_is_one_of_its_command(language):
    commands, helps = list(shown(language)), {}
    assert len(commands) > 25
    for words in commands:
        names = words[:2] if words[:1] in (["monitor"], ["ckpt"], ["weights"]) else words[:1]
        names = [name for name in names if not name.startswith("-")]
        key = " ".join(names)
        if key not in helps:
            done = subprocess.run([find_command(), *names, "--help"], capture_output=True, text=True)
            assert done.returncode == 0, words
            helps[key] = done.stdout
        for option in (word for word in words if re.fullmatch(r"--?[A-Za-z][\w-]*", word)):
            assert re.search(rf"(^|[\s,]){re.escape(option)}\b", helps[key], re.MULTILINE), (words, option)


def test_both_languages_show_the_same_commands():
    assert list(shown("en")) == list(shown("zh"))
