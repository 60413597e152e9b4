"""The length of the sentences that users read: a mean that is easy to follow, and none that has to be read twice.

python tools/docs/sentences.py [--all] [FILE ...]     # means, and sentences that are too long; --all: each page too
"""

import argparse
import pathlib
import re
import statistics
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Limit(NamedTuple):
    mean: float
    longest: int


# Words in English, ideographs and words in Chinese.
LIMITS = {"en": Limit(18, 40), "zh": Limit(40, 90)}
_WORD = re.compile(r"[A-Za-z0-9][\w'’.,/+-]*")
_CHINESE = re.compile(r"[\u4e00-\u9fff]|[A-Za-z0-9][\w'’.,/+-]*")
_END = {"en": re.compile(r"(?<=[.?!])[\"”)*]*\s+(?=[\"“(*\[`A-Z0-9])|(?<=[.?!])$"), "zh": re.compile(r"(?<=[。？！])")}
# Word order of another language: "Of the first run, 24 bytes are kept".
_FRONTED = re.compile(r"Of (?!\d)")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf)\.")


def user_documents(language):
    """The pages of one language, its README first."""
    name = "README.md" if language == "en" else "README.zh.md"
    return [ROOT / name, *sorted((ROOT / "docs" / language).rglob("*.md"))]


def _plain(text):
    """What is read aloud: a code span and the target of a link count as one word, and pictures as none."""
    text = re.sub(r"<!--.*?-->", "", text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"`[^`]*`", "Code", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return _ABBREVIATION.sub(r"\1", text.replace("**", "").replace("*", ""))


def paragraphs(text):
    """Paragraphs, items of lists and cells of tables, without code and headings."""
    fenced, lines = False, []

    def block():
        joined = " ".join(lines)
        lines.clear()
        return [joined] if joined.strip() else []

    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith("```"):
            fenced = not fenced
            yield from block()
        elif fenced:
            continue
        elif bare.startswith("|"):
            yield from block()
            if not re.fullmatch(r"[|:\- ]+", bare):
                yield from (
                    cell.strip() for cell in re.split(r"(?<!\\)\|", re.sub(r"`[^`]*`", "Code", bare)) if cell.strip()
                )
        elif not bare or bare.startswith("#") or bare.startswith("<!--"):
            yield from block()
        else:
            if re.match(r"([-*]|\d+\.) ", bare):
                yield from block()
                bare = re.sub(r"^([-*]|\d+\.) ", "", bare)
            lines.append(bare)
    yield from block()


def sentences(text, language):
    """Each sentence of a page with its length; what has no verb to end, such as a cell of a table, counts where it is long."""
    count = _WORD if language == "en" else _CHINESE
    for paragraph in paragraphs(text):
        for sentence in _END[language].split(_plain(paragraph)):
            length = len(count.findall(sentence))
            if length:
                yield sentence.strip(), length


def _is_whole(sentence, length):
    """Cells and captions of a few words would make every mean look short."""
    return sentence[-1] in ".?!。？！:：" or length > 12


def fronted(paths):
    """English sentences that begin with what belongs behind."""
    return [
        (path, sentence)
        for path in paths
        for sentence, _ in sentences(path.read_text(encoding="utf-8"), "en")
        if _FRONTED.match(sentence)
    ]


def figures(paths, language):
    """The mean length over the sentences of pages, and those that are too long with their page."""
    lengths, long = [], []
    for path in paths:
        for sentence, length in sentences(path.read_text(encoding="utf-8"), language):
            if _is_whole(sentence, length):
                lengths.append(length)
            if length > LIMITS[language].longest:
                long.append((path, length, sentence))
    return statistics.mean(lengths) if lengths else 0.0, long


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="the mean of each page too")
    arguments = parser.parse_args()
    bad = False
    for language, limit in LIMITS.items():
        mine = [
            path
            for path in arguments.files
            if ("zh" in path.parts or path.name.endswith(".zh.md")) == (language == "zh")
        ]
        paths = mine or ([] if arguments.files else user_documents(language))
        mean, long = figures(paths, language)
        if arguments.all:
            for path in paths:
                own, too_long = figures([path], language)
                print(f"{own:5.1f} {len(too_long):4d}  {path}")
        for path, length, sentence in long:
            print(f"{path}: {length}: {sentence}")
        turned = fronted(paths) if language == "en" else []
        for path, sentence in turned:
            print(f"{path}: begins with what belongs behind: {sentence}")
        if paths:
            print(f"{language}: mean {mean:.1f} of at most {limit.mean}, {len(long)} sentences over {limit.longest}")
        bad = bad or bool(long or turned) or mean > limit.mean
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
