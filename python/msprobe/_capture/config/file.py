"""Reads configuration files and remembers on which line each key stands, so that errors can name it."""

import os
import re
import stat
from json.decoder import JSONDecodeError, scanstring
from typing import Any, NamedTuple

from ..words import say

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 64

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
_LITERALS = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_YAML_LIST_ITEM = re.compile(r"\s*-\s+(?P<value>\S+)\s*$")
_YAML_KEY = re.compile(r"(?P<key>[^\s:#-][^\s:]*|\"[^\"]+\")\s*:\s*(?P<value>.*?)\s*$")


class ConfigFileError(Exception):
    """What is wrong with a file, without its name."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class ConfigFile(NamedTuple):
    """The content of a file, and where each key of it stands."""

    path: str
    data: dict
    lines: dict  # path of keys, e.g. ("statistics", "scope") -> line
    duplicates: list  # of such paths


def read_text(path: str) -> str:
    """Reads a file that must be regular, at most 16 MB and UTF-8."""
    try:
        with open(path, "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise ConfigFileError(say("is not a regular file"))
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigFileError(say("cannot be read: %(why)s", why=error.strerror)) from error
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigFileError(say("is larger than %(most)s MB", most=MAX_FILE_BYTES // 1024**2))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigFileError(say("is not UTF-8 text (byte %(at)s)", at=error.start), line) from error


def read_json(path: str) -> ConfigFile:
    """JSON, with commas allowed before a closing bracket. The top level has to be an object."""
    parser = _Parser(read_text(path))
    data = parser.document()
    if not isinstance(data, dict):
        raise ConfigFileError(say("has to hold one JSON object { ... }"), 1)
    return ConfigFile(path, data, parser.lines, parser.duplicates)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict = {}
        self.duplicates: list = []

    def document(self) -> Any:
        value = self._value(())
        self._skip_space()
        if self.at != len(self.text):
            self._fail("text after the end of the JSON value")
        return value

    def _line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def _fail(self, message: str) -> None:
        text = say("is not valid JSON: %(why)s", why=say(message))
        raise ConfigFileError(text, self._line(min(self.at, len(self.text))))

    def _skip_space(self) -> None:
        self.at = _SPACE.match(self.text, self.at).end()

    def _peek(self) -> str:
        self._skip_space()
        if self.text.startswith(("//", "/*", "#"), self.at):
            self._fail("JSON has no comments: remove this one")
        return self.text[self.at : self.at + 1]

    def _take(self, char: str) -> bool:
        if self._peek() != char:
            return False
        self.at += 1
        return True

    def _value(self, path: tuple) -> Any:
        if len(path) > MAX_DEPTH:
            self._fail(say("nested deeper than %(most)s levels", most=MAX_DEPTH))
        first = self._peek()
        if first == "{":
            return self._object(path)
        if first == "[":
            return self._list(path)
        if first == '"':
            return self._string()
        for word, value in _LITERALS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        return self._number()

    def _number(self) -> Any:
        match = _NUMBER.match(self.text, self.at)
        if not match:
            found = self.text[self.at : self.at + 12].split("\n")[0]
            ends = "the file ends in the middle of a value"
            self._fail(say("expected a value, found %(found)s", found=repr(found)) if found else ends)
        if len(match.group()) > 400:
            self._fail("a number of more than 400 digits")
        self.at = match.end()
        is_float = match.group(1) or match.group(2)
        return float(match.group()) if is_float else int(match.group())

    def _string(self) -> str:
        try:
            value, self.at = scanstring(self.text, self.at + 1, True)
        except JSONDecodeError as error:
            self.at = error.pos
            self._fail(error.msg)
        return value

    def _list(self, path: tuple) -> list:
        self.at += 1
        items: list = []
        while not self._take("]"):
            items.append(self._value((*path, len(items))))
            if not self._take(",") and self._peek() != "]":
                self._fail("expected ',' or ']' in a list")
        return items

    def _object(self, path: tuple) -> dict:
        self.at += 1
        items: dict = {}
        while not self._take("}"):
            if self._peek() != '"':
                self._fail('expected a key in double quotes or "}"')
            line = self._line(self.at)
            key = self._string()
            key_path = (*path, key)
            if key in items:
                self.duplicates.append(key_path)
            self.lines[key_path] = line
            if not self._take(":"):
                self._fail(say('expected ":" after the key "%(key)s"', key=key))
            items[key] = self._value(key_path)
            if not self._take(",") and self._peek() != "}":
                self._fail('expected "," or "}" in an object')
        return items


def read_api_lists(path: str) -> dict:
    """{module path: [function, ...]} from JSON, or from the part of YAML such lists need."""
    if path.endswith(".json"):
        return read_json(path).data
    lists: dict = {}
    current = None
    for number, raw in enumerate(read_text(path).split("\n"), 1):
        line = re.sub(r"(^|\s)#.*", "", raw).rstrip()
        if not line:
            continue
        item = _YAML_LIST_ITEM.match(line)
        if item and current is not None:
            lists[current].append(item["value"].strip("\"'"))
            continue
        key = _YAML_KEY.match(line)
        if not key:
            text = "expected 'module.path:' or '- function', found %(found)s"
            raise ConfigFileError(say(text, found=repr(line.strip())), number)
        current = key["key"].strip("\"'")
        lists[current] = _inline_names(key["value"], number)
    return lists


def _inline_names(text: str, line: int) -> list:
    if not text:
        return []
    if not (text.startswith("[") and text.endswith("]")):
        raise ConfigFileError(say("expected a list of functions, found %(found)s", found=repr(text)), line)
    return [name.strip().strip("\"'") for name in text[1:-1].split(",") if name.strip()]
