#!/usr/bin/env python3
"""The kernel of devices as PTX: src/device/statistics.ptx from src/device/statistics.cu, by clang alone (no CUDA is needed).

    python tools/ptx.py                         writes it
    python tools/ptx.py --check                 fails where the text in the tree is another one
    python tools/ptx.py --assemble PTXAS [ARCH ...]  assembles it, by default for sm_70, sm_80 and sm_90

Another release of clang gives another text; the first line of the text says which one made it. `ptxas` is in the package
nvidia-cuda-nvcc-cu12 (nvidia/cuda_nvcc/bin) and in every CUDA toolkit; those of CUDA 13 begin at sm_75.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
TEXT = SOURCE / "device" / "statistics.ptx"
TARGET = "sm_60"  # the lowest device; drivers compile for theirs from it
ARCHITECTURES = ("sm_70", "sm_80", "sm_90")
# No product is fused with a sum, so that devices give the bits of the host. There is no CUDA to be found, on any machine.
OPTIONS = (
    "-x cuda --cuda-device-only --cuda-path=/nonexistent -nocudainc -nocudalib -std=c++20 -O3 -fno-unroll-loops "
    "-ffp-contract=off -fno-exceptions -Wall -Wextra -Werror -Xclang -target-feature -Xclang +ptx60"
).split()


def release_of(clang):
    """Its number of the release, or None where there is no such compiler."""
    try:
        said = subprocess.run([clang, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r"clang version (\d+)", said)
    return int(found.group(1)) if found else None


def ptxas_release_of(ptxas):
    """Its number of the release."""
    said = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"release (\d+)", said).group(1))


def made_by(text):
    """The release of clang that gave the text."""
    return int(re.match(r"// Made by tools/ptx\.py with clang (\d+)\n", text).group(1))


def generate(clang):
    """The text that this compiler gives."""
    command = [clang, *OPTIONS, f"--cuda-gpu-arch={TARGET}", "-I", ".", "-S", "-o", "-", "device/statistics.cu"]
    made = subprocess.run(command, cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True).stdout
    return f"// Made by tools/ptx.py with clang {release_of(clang)}\n" + made


def assemble(ptxas, architectures):
    """Fails as ptxas does; warnings are errors."""
    for architecture in architectures:
        with tempfile.TemporaryDirectory() as directory:
            code = Path(directory) / "statistics.cubin"
            subprocess.run([ptxas, f"-arch={architecture}", "-Werror", "-o", str(code), str(TEXT)], check=True)
            print(f"{architecture}: {code.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clang", default="clang++")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--assemble", nargs="+", metavar="PTXAS", help="ptxas, and architectures")
    given = parser.parse_args()
    if given.assemble:
        assemble(given.assemble[0], given.assemble[1:] or ARCHITECTURES)
        return 0
    made = generate(given.clang)
    if not given.check:
        TEXT.write_text(made)
        return 0
    if made != TEXT.read_text():
        print(f"{TEXT} is not what {given.clang} makes of the sources; run: python tools/ptx.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
