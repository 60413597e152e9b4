"""Tells the command how many recorded ids of a batch come back when their tokenizer decodes and encodes them again.

Over the socket that is descriptor 0: rows of ids as lines, "." behind the last; the answer is a line with the number of ids
that came back and of all, or "none" and why there is no answer.
"""

import collections
import importlib
import socket
import sys
from collections.abc import Callable


def open_tokenizer(path: str) -> Callable[[list], list]:
    """Returns what decodes and encodes a row.

    Args:
        path: tokenizer.json, or a model of SentencePiece.

    Returns:
        A function from ids to ids.

    Raises:
        ImportError: The library of the tokenizer is not there.
        ValueError: The file is none of these.
    """
    if path.endswith("tokenizer.json"):
        tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(path)
        return lambda row: (
            tokenizer.encode(tokenizer.decode(row, skip_special_tokens=False), add_special_tokens=False).ids
        )
    if path.endswith(".model"):
        pieces = importlib.import_module("sentencepiece").SentencePieceProcessor(model_file=path)
        # Control ids have no text; what lies between them is looked at alone.
        return lambda row: pieces.encode(pieces.decode([i for i in row if not pieces.is_control(i)]))
    raise ValueError("this kind of tokenizer cannot be run: give tokenizer.json or tokenizer.model")


def came_back(convert: Callable[[list], list], rows: list[list[int]]) -> tuple[int, int]:
    """Counts the ids that stand in a row before and after, in any order: ends of cut texts may be told apart otherwise.

    Args:
        convert: Decodes and encodes a row.
        rows: The recorded ids.

    Returns:
        Ids that came back, and all of them.
    """
    back = total = 0
    for row in rows:
        before, after = collections.Counter(row), collections.Counter(convert(row))
        total += len(row)
        back += sum((before & after).values())
    return back, total


def _rows(channel: socket.socket) -> list[list[int]]:
    rows = []
    for line in channel.makefile("r", encoding="ascii"):
        if line.strip() == ".":
            break
        rows.append([int(word) for word in line.split()])
    return rows


def _answer(path: str, rows: list[list[int]]) -> str:
    try:
        back, total = came_back(open_tokenizer(path), rows)
    except ImportError as error:
        return f"none the package {error.name} is missing"
    except (ValueError, OSError, RuntimeError, TypeError) as error:  # others end the program, and the command says so
        return "none " + " ".join(str(error).split())[:200]
    return f"{back} {total}"


if __name__ == "__main__":
    with socket.socket(fileno=0) as connection:
        connection.sendall((_answer(sys.argv[1], _rows(connection)) + "\n").encode("utf-8", "replace"))
