"""The header of arrays in the format of NumPy, without it."""

from collections.abc import Sequence


def npy_header(shape: Sequence, kind: str) -> bytes:
    """Builds the header of a .npy file. `kind` is NumPy's name of the dtype, e.g. "<f4" or "|b1"."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
