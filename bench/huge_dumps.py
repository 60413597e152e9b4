"""Statistics dumps of ten gigabytes: a large one several times, as further micro batches whose calls have numbers of their own."""

import re

PIECE = 64 << 20
MARK = b"\0"  # in no dump


def keys(piece, copy):
    """Names of ops in dump.json: "Functional.add.12.forward" and "Module.a.Linear.forward.3" have further digits."""
    digits = b"%07d" % copy
    for way in (b".forward", b".backward"):
        piece = piece.replace(way + b'": {', digits + way + MARK + b": {")
    return piece.replace(b'": {\n   "', digits + b'": {\n   "').replace(MARK, b'"')


def parents(piece, copy):
    """The same in construct.json, where parents are modules."""
    digits = b"%07d" % copy
    for way in (b".forward", b".backward"):
        piece = piece.replace(way + b'": ', digits + way + MARK + b": ")
    piece = piece.replace(b'": ', digits + b'": ').replace(b'",\n', digits + b'",\n').replace(MARK, b'"')
    return piece[:-1] + digits + b'"' if piece.endswith(b'"') else piece


def groups(piece, copy):
    """The same in stack.json."""
    digits = b"%07d" % copy
    piece = re.sub(rb'\.(\d+)((?:\.(?:forward|backward))?")', rb".\g<1>" + digits + rb"\g<2>", piece)
    return piece.replace(b'\n "', b'\n "' + digits)


def pieces(path, start, end, behind):
    """The bytes [start, end) of a file in pieces that end behind the text `behind`."""
    with open(path, "rb") as f:
        f.seek(start)
        rest, left = b"", end - start
        while left > 0:
            read = f.read(min(PIECE, left))
            left -= len(read)
            rest += read
            cut = rest.rfind(behind) + len(behind)
            if cut >= len(behind) and left > 0:
                yield rest[:cut]
                rest = rest[cut:]
        yield rest


def body(path, opening, closing):
    """Where what is repeated starts and ends in a file."""
    size = path.stat().st_size
    with open(path, "rb") as f:
        start = f.read(1 << 16).index(opening) + len(opening)
        f.seek(max(0, size - (1 << 16)))
        tail = f.read()
    return start, size - len(tail) + tail.rindex(closing), size


def repeat(source, target, opening, closing, behind, copies, renumber):
    start, end, size = body(source, opening, closing)
    with open(target, "wb") as out:
        for piece in pieces(source, 0, start, opening):
            out.write(piece)
        for copy in range(copies):
            if copy:
                out.write(b",")
            for piece in pieces(source, start, end, behind):
                out.write(renumber(piece, copy) if copy else piece)
        for piece in pieces(source, end, size, closing):
            out.write(piece)


def enlarge(source, target, copies):
    """Writes to the directory `target` a rank with `copies` times the ops of the rank in `source`."""
    target.mkdir(parents=True)
    repeat(source / "dump.json", target / "dump.json", b'"data": {', b"\n }\n}", b"\n  },", copies, keys)
    repeat(source / "construct.json", target / "construct.json", b"{", b"\n}", b",\n", copies, parents)
    repeat(source / "stack.json", target / "stack.json", b"{", b"\n}", b"\n ],", copies, groups)
