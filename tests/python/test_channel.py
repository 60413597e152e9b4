"""What a process of ours leaves in the memory of both, or says as text."""

import json
import math
import random
import sys

from launch import HERE, run_python

sys.path.insert(0, str(HERE.parents[1] / "python" / "msprobe"))

import _channel

LEAVE = """
import fcntl, os, sys
sys.path.insert(0, sys.argv[1])
import _channel

file = os.memfd_create("test", os.MFD_ALLOW_SEALING)
fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
os.dup2(file, _channel.SHARED)
parts = _channel.SharedParts()
for sizes in ([5, 64, 0, 65], [3 << 20, 1], [(20 << 20) + 3, 7], [100], [2 << 20]):
    for part in (0, 1):
        blobs = [os.urandom(size) for size in sizes]
        left = parts.leave(blobs, part)
        at = part * _channel.PART_SIZE
        for blob in blobs:
            assert os.pread(file, len(blob), at) == blob, (sizes, part)
            at += -(-len(blob) // _channel.ALIGNED) * _channel.ALIGNED
        assert left == at - part * _channel.PART_SIZE and os.fstat(file).st_size >= at
        if left > _channel.MOST_MAPPED:  # as the command does, where there is a call for it in Python
            hole = 0x02 | 0x01
            import ctypes
            libc = ctypes.CDLL(None, use_errno=True)
            libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
            assert libc.fallocate(file, hole, part * _channel.PART_SIZE, 32 << 20) == 0
os.close(_channel.SHARED)
assert parts.leave([b"x" * (20 << 20)], 0) is None  # there is no such memory: bytes go through the socket
print("left")
"""


def test_bytes_lie_where_the_command_reads_them():
    assert "left" in run_python(["-c", LEAVE, HERE.parents[1] / "python" / "msprobe"]).stdout


def test_numbers_that_json_lacks_are_text():
    said = {"error": math.inf, "items": [{"limit": math.nan, "count": 2}], "note": "", "share": 0.5}
    assert json.loads(_channel.text_of(said)) == {
        "error": "inf",
        "items": [{"limit": "nan", "count": 2}],
        "note": "",
        "share": 0.5,
    }
    plain = {str(i): random.random() for i in range(5)}
    assert json.loads(_channel.text_of(plain)) == plain
