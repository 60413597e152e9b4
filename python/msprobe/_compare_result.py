"""What `compare` gives back: a CompareResult, or one of the CompareExceptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._environment import is_chinese


@dataclass(frozen=True, eq=False, repr=False)  # its members are dicts, which have no hash
class CompareResult:
    """What a comparison found, and the files it wrote. Prints as its headline.

    Attributes:
        verdict: What went wrong first in the whole run, over all ranks and steps: the object under `verdict` in the output
            of `msprobe compare --json` (docs/en/compare/verdict.md). None for kernel dumps and models compared by structure.
        ops: Number of ops by verdict, over all pairs: `bit_equal`, `round_off`, `rewritten` (computed another way, same
            result), `inherited`, `suspicious`, `bug`; `target_only` and `golden_only` count the ops without a partner. Empty
            without a verdict.
        files: Every file written, tables first.
        warnings: The command's warnings, one line each: truncated dumps, for example.
        summary: The complete output of `msprobe compare --json` (docs/en/compare/json.md).
    """

    verdict: Mapping[str, Any] | None
    ops: Mapping[str, int]
    files: tuple[Path, ...]
    warnings: tuple[str, ...] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_summary(cls, summary: Mapping[str, Any], warnings: tuple[str, ...] = ()) -> CompareResult:
        """Builds the result from the output of `msprobe compare --json`.

        Args:
            summary: The parsed output.
            warnings: The warnings of the command, which it prints to stderr.

        Returns:
            The result. Paths in `files` are relative if the command was given a relative output path.
        """
        pairs = summary.get("pairs", ())
        by_structure = bool(pairs) and all(pair["structure"] is not None for pair in pairs)
        verdict = None if by_structure else summary.get("verdict")
        ops = verdict["ops"] if verdict else {}
        return cls(verdict, ops, tuple(map(Path, _paths(summary))), warnings, summary)

    @property
    def outcome(self) -> str:
        """The outcome in one word: `origin`, `round_off`, `equal` or `unknown`; `unknown` without a verdict."""
        return self.verdict["outcome"] if self.verdict else "unknown"

    @property
    def whole(self) -> bool:
        """Whether all that was given could be seen: no run was cut, no tensor file is missing (docs/en/compare/verdict.md)."""
        return bool((self.summary.get("verdict") or {}).get("whole", True))

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the verdict as the terminal shows them, in the language of the locale."""
        if self.verdict:
            return tuple(self.verdict["text"]["zh" if is_chinese() else "en"])
        return (self._without_verdict(),)

    @property
    def headline(self) -> str:
        """The first line: where the two runs begin to differ, in one sentence."""
        return self.lines[0]

    def __str__(self) -> str:
        """Returns the headline."""
        return self.headline

    def __repr__(self) -> str:
        """Returns the headline, marked as a result."""
        return f"<CompareResult: {self.headline}>"

    def _without_verdict(self) -> str:
        tables = self.summary.get("tables")
        if tables is not None:
            reached, rows = (sum(table[key] for table in tables) for key in ("reached", "rows"))
            return f"Kernels: {reached} of {rows} rows reach the accuracy asked for, in {len(tables)} tables"
        pairs = self.summary.get("pairs", ())
        kinds = [pair["structure"] for pair in pairs if pair["structure"]]
        found = sum(count for kind in kinds for count in kind.values() if isinstance(count, int))
        return f"Structure: {found} differences between the models, in {len(pairs)} pairs"


def _paths(summary: Mapping[str, Any]) -> Iterator[str]:
    """Of every file that a summary names."""
    pairs = summary.get("pairs", ())
    for pair in pairs:
        yield from pair["files"]
    for pair in pairs:
        structure = pair["structure"] or {}
        more = (*pair["unmatched_files"], *pair.get("mapping_files", ()), structure.get("list"), pair["advisor"])
        yield from filter(None, more)
    for table in summary.get("tables", ()):
        yield table["file"]
    yield from summary.get("diff_analyze", ())
    for key in ("first_divergence_file", "html", "suggested_mapping"):
        if summary.get(key):
            yield summary[key]


class CompareException(Exception):
    """A comparison failed, wholly or in part. The message says what, where, and what to do next.

    Attributes:
        code: Exit code of the command: 2 invalid arguments, 3 unusable input, 4 an error of the tool or the machine.
        result: If only some of several pairs failed, the result for the others, with the failed ones in
            `result.summary["failures"]`; otherwise None.
    """

    code = 4

    def __init__(self, text: str, code: int | None = None, result: CompareResult | None = None) -> None:
        """Stores the message and its details.

        Args:
            text: The message, one line.
            code: Exit code of the command; None for the code of the class.
            result: The pairs that could be compared, if any.
        """
        super().__init__(text)
        self.code = type(self).code if code is None else code
        self.result = result


class CompareArgumentError(CompareException):
    """An argument is invalid or conflicts with another one; nothing was compared."""

    code = 2


class CompareInputError(CompareException):
    """A dump, a mapping or another input file is missing, unreadable or unsuitable."""

    code = 3


class CompareInternalError(CompareException):
    """The tool or the machine failed: disk or memory full, broken installation, command killed."""


_BY_CODE = {kind.code: kind for kind in (CompareArgumentError, CompareInputError, CompareInternalError)}
_BY_CODE[5] = CompareInputError  # a trainer against an inference engine


def failure(code: int, text: str, result: CompareResult | None = None) -> CompareException:
    """Chooses the exception for an exit code.

    Args:
        code: Exit code of the command; an unknown one counts as an internal error.
        text: The message.
        result: The pairs that could be compared, if any.

    Returns:
        The exception, ready to be raised.
    """
    return _BY_CODE.get(code, CompareInternalError)(text, result=result)
