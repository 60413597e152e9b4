#!/usr/bin/env python3
"""Makes stand-ins for the CUDA libraries that a build of PyTorch is linked to, so that it runs on a CPU without their 3 GB.

usage: stand_in_libraries.py SITE_PACKAGES

Each library holds whatever symbol PyTorch's own libraries leave open, under the version that is asked for; each function
says that there is no device.
"""

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

NO_DEVICE = 100  # cudaErrorNoDevice
RETURNS_A_POINTER = {"__cudaRegisterFatBinary"}
OF_THE_SYSTEM = re.compile(r"_?Py|PyPy")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def needed_by(library):
    """(names of the libraries that it needs, its own name)."""
    text = output("readelf", "-d", "-W", library)
    own = re.search(r"\(SONAME\).*\[(.*)\]", text)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text)), own[1] if own else library.name


def versions_from(library):
    """{name of a needed library: versions of symbols that are asked of it}"""
    found, of = defaultdict(set), None
    for line in output("readelf", "-V", "-W", library).splitlines():
        if match := re.search(r"File: (\S+)", line):
            of = match[1]
        elif (match := re.search(r"Name: (\S+)\s+Flags", line)) and of:
            found[of].add(match[1])
    return found


def symbols_of(library):
    """(left open, as `name@version`; defined)"""
    opened, defined = set(), set()
    for line in output("nm", "-D", library).splitlines():
        *_, kind, name = line.split()
        if kind == "U":
            opened.add(name)
        elif kind not in "wv":
            defined.add(name.split("@")[0])
    return opened, defined


def compiled(names, folder):
    """An object with a function for each name."""
    lines = ["static char space[4096];"]
    for number, name in enumerate(names):
        kind, value = ("char *", "space") if name in RETURNS_A_POINTER else ("int ", NO_DEVICE)
        lines.append(f'{kind}f{number}(void) __asm__("{name}");\n{kind}f{number}(void) {{ return {value}; }}')
    source, target = folder / "all.c", folder / "all.o"
    source.write_text("\n".join(lines) + "\n")
    subprocess.run(["gcc", "-O1", "-fPIC", "-fno-builtin", "-w", "-c", "-o", target, source], check=True)
    return target


def make(site):
    """Returns the names of the libraries that it made."""
    folder = Path(site) / "torch" / "lib"
    libraries = [*folder.glob("*.so*"), *folder.parent.glob("_C*.so")]
    there, needed, asked = {library.name for library in libraries}, set(), defaultdict(set)
    opened, defined = set(), set()
    for library in libraries:
        needs, own = needed_by(library)
        there.add(own)
        needed |= needs
        for name, versions in versions_from(library).items():
            asked[name] |= versions
        open_here, defined_here = symbols_of(library)
        opened |= open_here
        defined |= defined_here
    of_system = dict(re.findall(r"^\t(\S+) .*x86-64.* => (\S+)$", output("/sbin/ldconfig", "-p"), re.MULTILINE))
    missing = sorted(n for n in needed - there - of_system.keys() if not n.startswith("libpython"))
    if not missing:
        return []
    for name in (needed - there) & of_system.keys():
        defined |= symbols_of(of_system[name])[1]
    wanted = set().union(*(asked[name] for name in missing))
    by_version = defaultdict(set)
    for symbol in opened:
        name, _, version = symbol.partition("@")
        version = version.strip("@")
        if name not in defined and not OF_THE_SYSTEM.match(name) and (not version or version in wanted):
            by_version[version].add(name)
    with tempfile.TemporaryDirectory() as work:
        code = compiled(sorted(set().union(*by_version.values())), Path(work))
        for name in missing:
            parts = [
                f"{version} {{ global: {' '.join(f'{s};' for s in sorted(by_version[version]))} }};"
                for version in sorted(asked[name])
            ]
            script = Path(work) / "versions"
            script.write_text("\n".join(parts) + "\n")
            given = [f"-Wl,--version-script={script}"] if parts else []
            command = ["gcc", "-shared", "-nostdlib", *given, f"-Wl,-soname,{name}", "-o", folder / name, code]
            subprocess.run(command, check=True)
    return missing


if __name__ == "__main__":
    print("made:", " ".join(make(sys.argv[1])) or "none, nothing is missing")
