"""What the training and the checker of an online check say to each other: frames.

A frame is 20 bytes, "MSPO", the version (uint16), 0 (uint16), the lengths of a JSON header and of a body (uint32 each) and the CRC-32 of
both (uint32), big-endian; then the header, an object, and the body, the bytes of tensors one after the other. Nothing in it is
executed. The same frames are the journal of the checker and the files of a shared folder.
"""

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

VERSION = 1
MOST_HEADER, MOST_BODY = 16 << 20, (1 << 32) - 1
MOST_GREETING = 4096  # of a header of somebody who has not said the token
_PREFIX = struct.Struct(">4sHHIII")
_MAGIC = b"MSPO"
_PIECE = 1 << 20


class WireError(Exception):
    """What came is no frame; the text says what is wrong with it."""


def frame(header: dict, bodies: tuple = ()) -> Iterator[bytes]:
    """Yields the parts of a frame.

    Args:
        header: An object of JSON.
        bodies: Bytes of tensors.

    Raises:
        WireError: It is too large for one.
    """
    text = json.dumps(header, separators=(",", ":")).encode()
    length = sum(len(body) for body in bodies)
    if len(text) > MOST_HEADER or length > MOST_BODY:
        raise WireError("a call is too large for one frame")
    check = zlib.crc32(text)
    for body in bodies:
        check = zlib.crc32(body, check)
    yield _PREFIX.pack(_MAGIC, VERSION, 0, len(text), length, check) + text
    yield from bodies


def read_frame(
    read: Callable[[int], bytes], most_header: int = MOST_HEADER, most_body: int = MOST_BODY
) -> tuple[dict, bytes]:
    """Reads one frame.

    Args:
        read: Returns at most so many bytes, none at the end.
        most_header: A longer header is refused before it is read.
        most_body: A longer body is refused before it is read.

    Returns:
        The header and the body.

    Raises:
        WireError: It is no frame.
        EOFError: The other side has closed, between two frames.
    """
    prefix = _exactly(read, _PREFIX.size, start=True)
    magic, version, zero, header_length, length, check = _PREFIX.unpack(prefix)
    if magic != _MAGIC or zero:
        raise WireError("it is not a frame of msprobe")
    if version != VERSION:
        raise WireError(
            f"the other side speaks version {version} and this one {VERSION}: install the same release on both"
        )
    if header_length > most_header or length > most_body:
        raise WireError(f"a frame of {header_length} and {length} bytes is too large")
    text = _exactly(read, header_length)
    body = _exactly(read, length)
    if zlib.crc32(body, zlib.crc32(text)) != check:
        raise WireError("the checksum of a frame does not fit")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError("the header of a frame is not JSON") from error
    if not isinstance(header, dict):
        raise WireError("the header of a frame is not an object")
    return header, body


def _exactly(read: Callable[[int], bytes], count: int, start: bool = False) -> bytes:
    parts, missing = [], count
    while missing:
        piece = read(min(missing, _PIECE))
        if not piece:
            if start and missing == count:
                raise EOFError
            raise WireError("a frame ends in the middle")
        parts.append(piece)
        missing -= len(piece)
    return b"".join(parts)


def frames_of(file: BinaryIO) -> Iterator[tuple[dict, bytes]]:
    """Yields the whole frames of a file; it ends where a kill has cut the last one off.

    Args:
        file: An open file.
    """
    while True:
        try:
            yield read_frame(file.read)
        except (EOFError, WireError):
            return


def number(header: dict, key: str) -> int:
    """Returns a member that is a whole number from 0.

    Args:
        header: The header of a frame.
        key: Name of the member.

    Raises:
        WireError: It is something else.
    """
    value: Any = header.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 53:
        raise WireError(f'"{key}" of a frame is not a whole number')
    return value
