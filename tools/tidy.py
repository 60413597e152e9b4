#!/usr/bin/env python3
"""Runs clang-tidy on C++ sources with the compile commands of the release build.

  tools/tidy.py          what differs from the upstream branch, committed or not
  tools/tidy.py --recent [N] what the last N (80) commits changed; every source where there are fewer, or the checks are among it
  tools/tidy.py --all    every production source, the bindings too: before a release, and for another clang-tidy

Prints what clang-tidy finds; exit code 1 when it finds anything, 2 without a release build.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
OUT = ROOT / "build" / "tidy"
# Tests and benchmarks follow other rules; the instruction sets have flags of their own.
LEFT_OUT = re.compile(r"_(test|bench|avx2|avx512|neon)\.cc$")
# The analyzer's shallow mode takes a third of the time and inlines small functions only.
SHALLOW = "mode=shallow"
# Of --all and --recent: the analyzer is most of the time; this takes a third of it and leaves long functions unread beyond their first paths.
SHORT_PATHS = SHALLOW + ",max-nodes=8000"
RECENT = 80  # commits: several times what lands at once
# Of units that are read as one: headers are most of what a small one costs.
MOST_LINES = 2500


def git(*args):
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.split("\n") if done.returncode == 0 else []


def changed(base):
    """Sources that differ from a commit; a changed header stands for the sources that include it."""
    names = {name for name in [*git("diff", "--name-only", base), *git("ls-files", "-o", "--exclude-standard")] if name}
    headers = {name[4:] for name in names if name.startswith("src/") and name.endswith(".h")}
    if headers:
        for path in sorted((ROOT / "src").rglob("*.cc")):
            if headers & set(re.findall(r'#include "([^"]+)"', path.read_text())):
                names.add(path.relative_to(ROOT).as_posix())
    return names


def united(path):
    """The sources that a file of msprobe_unite (cmake/rooms.cmake) includes."""
    if "/united/" not in path or not pathlib.Path(path).is_file():
        return []
    return [str(ROOT / "src" / name) for name in re.findall(r'#include "([^"]+)"', pathlib.Path(path).read_text())]


def commands():
    """Sources that are compiled as one, below the root, with their arguments, without what only GCC knows."""
    found = []
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        kept, skip = [], 0
        for word, following in zip(words, [*words[1:], ""]):
            if skip:
                skip -= 1
            elif word in ("-o", "-c") or word == "-include" and "cmake_pch" in following:
                skip = 1
            elif word not in ("-Winvalid-pch", "-fno-fat-lto-objects"):
                kept.append(word)
        arguments = [word for word in kept if not word.endswith((".cc", ".cxx"))]
        sources = [os.path.relpath(source, ROOT) for source in united(entry["file"]) or [entry["file"]]]
        if all(name.startswith("src/") and not LEFT_OUT.search(name) for name in sources):
            found.append((sources, arguments))
    return found


def lines_of(sources):
    return sum((ROOT / name).read_text().count("\n") for name in sources)


def grouped(units):
    """Units of one folder read together, as (sources, arguments, the units they are made of)."""

    def place_of(unit):
        return unit[1], unit[0][0].rsplit("/", 1)[0]

    groups, lines, last = [], 0, None
    for unit in sorted(units, key=place_of):
        sources, arguments = unit
        lines += lines_of(sources)
        if place_of(unit) != last or lines > MOST_LINES:
            groups.append(([], arguments, []))
            last, lines = place_of(unit), lines_of(sources)
        groups[-1][0].extend(sources)
        groups[-1][2].append(sources)
    return groups


def pasted(sources):
    """One file with the text of all sources. Headers are most of what a source makes clang-tidy read, and of a file that is only
    included, as in a unity build, the analyzer looks at nothing."""
    if len(sources) == 1:
        return ROOT / sources[0]
    path = OUT / (sources[0].replace("/", "_") + f"_and_{len(sources) - 1}.cc")
    path.write_text("".join((ROOT / name).read_text() for name in sources))
    return path


def place(line, path, sources):
    """A finding with the source and line that it is about in place of those of the pasted file."""
    match = re.match(rf"{re.escape(str(path))}:(\d+)(:.*)", line)
    if match is None or len(sources) == 1:
        return line
    number = int(match[1])
    for name in sources:
        lines = (ROOT / name).read_text().count("\n")
        if number <= lines:
            return f"{ROOT / name}:{number}{match[2]}"
        number -= lines
    return line


def main():
    if not (BUILD / "compile_commands.json").is_file():
        print("tidy: there is no release build: run `make unit` first", file=sys.stderr)
        return 2
    units = commands()
    wanted = None
    if "--recent" in sys.argv[1:]:
        commits = next((word for word in sys.argv[1:] if word.isdigit()), RECENT)
        base = git("rev-parse", "--verify", "-q", f"HEAD~{commits}")
        wanted = changed(base[0]) if base else None
        if wanted and ".clang-tidy" in wanted:
            wanted = None
    elif "--all" not in sys.argv[1:]:
        wanted = changed((git("merge-base", "HEAD", "@{upstream}") or ["HEAD"])[0] or "HEAD")
    if wanted is not None:
        units = [([name], arguments) for sources, arguments in units for name in sources if name in wanted]
    OUT.mkdir(parents=True, exist_ok=True)
    groups = grouped(units)
    every = [(sources, arguments) for sources, arguments, _ in groups] + units
    files = {tuple(sources): (pasted(sources), arguments) for sources, arguments in every}
    database = [{"directory": str(BUILD), "file": str(p), "arguments": [*a, "-c", str(p)]} for p, a in files.values()]
    (OUT / "compile_commands.json").write_text(json.dumps(database))
    analyzer = SHORT_PATHS if len(sys.argv) > 1 else SHALLOW
    flags = [f"--extra-arg={flag}" for flag in ("-Xclang", "-analyzer-config", "-Xclang", analyzer)]

    def look(sources):
        path, _ = files[tuple(sources)]
        # Objects of Python may not be freed at the end of the process: the interpreter has ended then.
        python = any(str(source).startswith("src/bindings/") for source in sources)
        more = ["--extra-arg=-Wexit-time-destructors"] if python else []
        tidy = ["clang-tidy", "-p", str(OUT), "--quiet", *flags, *more, str(path)]
        done = subprocess.run(tidy, cwd=ROOT, capture_output=True, text=True)
        # What it says decides, not its exit code: warnings alone leave that at 0.
        lines = done.stdout.split("\n")
        said = [place(line, path, sources) for line in lines if "warning:" in line or "error:" in line]
        return said or ([f"{path}: clang-tidy failed: {done.stderr.strip()[-400:]}"] if done.returncode else [])

    def run(group):
        sources, _, parts = group
        said = look(sources)
        # Units that have a name in common cannot be read as one.
        if len(parts) > 1 and any("clang-diagnostic-error" in line for line in said):
            said = [line for part in parts for line in look(part)]
        return said

    # The longest first, so that no core waits for one at the end.
    groups.sort(key=lambda group: -lines_of(group[0]))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        findings = [line for lines in threads.map(run, groups) for line in lines]
    for line in dict.fromkeys(findings):
        print(line)
    print(f"tidy: {sum(len(sources) for sources, _, _ in groups)} sources, {len(set(findings))} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
