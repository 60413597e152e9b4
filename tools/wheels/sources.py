"""The sources of the libraries that a wheel carries: as sources.json pins them, fetched with apt-get, checked, unpacked.

The file of a source package that names the others with their checksums (.dsc) is held to a checksum in sources.json; the
index of the distribution is asked where it lies. Nothing of the system's own apt is changed.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
PINS = json.loads((HERE / "sources.json").read_text())


class WheelError(Exception):
    """One line: what is wrong, and what to do."""


def run(*command, log=None, **options):
    """Runs a command; its words are said only when it fails."""
    done = subprocess.run(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if log:
        log.write_text(done.stdout)
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-30:])
        raise WheelError(f"{' '.join(str(word) for word in command)[:300]} failed:\n{tail}")
    return done.stdout


def dsc_name(name):
    version = re.sub(r"^\d+:", "", PINS["debian"][name]["version"])
    return f"{name}_{version}.dsc"


def check_pin(name, path):
    """The description of a source package is the one that was looked at."""
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != PINS["debian"][name]["sha256"]:
        raise WheelError(
            f"{path.name}: its checksum is {found}, not the one of sources.json: see tools/release.md, Pinned sources"
        )


def source_lines():
    """What the distribution's own entries of apt say, as entries of sources."""
    codename = re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.MULTILINE)
    codename = codename[1] if codename else "?"
    out = []
    places = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for place in filter(Path.is_file, places):
        text = place.read_text()
        if place.suffix == ".sources":
            for stanza in re.split(r"\n\s*\n", text):
                if re.search(rf"^Suites:.*\b{codename}\b", stanza, re.MULTILINE):
                    out.append(("sources", re.sub(r"^Types:.*$", "Types: deb-src", stanza.strip(), flags=re.MULTILINE)))
        else:
            for line in text.splitlines():
                if re.match(rf"deb\s+(\[.*\]\s+)?\S+\s+{codename}\b", line):
                    out.append(("list", re.sub(r"^deb\s", "deb-src ", line)))
    if not out:
        raise WheelError("apt has no entry for this distribution in /etc/apt: wheels are made on Debian 12")
    return out


def apt_options(folder):
    """apt-get with an index of its own in this folder."""
    parts = folder / "entries"
    parts.mkdir(parents=True, exist_ok=True)
    for made in ("lists/partial", "cache/archives/partial"):
        (folder / made).mkdir(parents=True, exist_ok=True)
    for kind, separator in (("sources", "\n\n"), ("list", "\n")):
        entries = [text for of, text in source_lines() if of == kind]
        (parts / f"source.{kind}").write_text(separator.join(entries) + "\n")
    settings = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": parts,
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root" if os.geteuid() == 0 else "",
    }
    return [word for key, value in settings.items() if value for word in ("-o", f"{key}={value}")]


def download(folder):
    """Fetches what is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in PINS["debian"] if not (folder / dsc_name(name)).exists()]
    if wanted:
        options = apt_options(folder.parent / "apt")
        run("apt-get", *options, "update", "-q")
        pairs = [f"{name}={PINS['debian'][name]['version']}" for name in wanted]
        try:
            run("apt-get", *options, "source", "-q", "--download-only", *pairs, cwd=folder)
        except WheelError as error:
            raise WheelError(f"{error}\nA pin may have been replaced: see tools/release.md, Pinned sources") from None
    for name in PINS["debian"]:
        check_pin(name, folder / dsc_name(name))


def amalgamate(source, into):
    """SQLite is one file, which its own tools join (they need tclsh)."""
    into.mkdir()
    run(source / "configure", "--disable-tcl", "--disable-readline", cwd=into, env={**os.environ, "CC": "cc"})
    run("make", "sqlite3.c", cwd=into)


def unpack(downloads, sources):
    """Each source package under its name, patched as the distribution does it."""
    for name in PINS["debian"]:
        target, mark = sources / name, sources / f"{name}.pin"
        if mark.exists() and mark.read_text() == PINS["debian"][name]["sha256"]:
            continue
        shutil.rmtree(target, ignore_errors=True)
        plain = sources / f"{name}.plain" if name == "sqlite3" else target
        shutil.rmtree(plain, ignore_errors=True)
        # Its checksum was looked at, which says more than a signature of whomever.
        run("dpkg-source", "--no-check", "--no-copy", "-x", downloads / dsc_name(name), plain)
        if plain != target:
            amalgamate(plain, target)
            shutil.copytree(plain / "debian", target / "debian")
            shutil.rmtree(plain)
        mark.write_text(PINS["debian"][name]["sha256"])


def link_headers(include):
    """Libraries that are headers alone come from the packages of the system that building needs anyway."""
    include.mkdir(parents=True, exist_ok=True)
    for name, pin in PINS["headers"].items():
        query = ["dpkg-query", "-W", "-f", "${Version}", pin["package"]]
        found = subprocess.run(query, capture_output=True, text=True).stdout
        if found != pin["version"]:
            raise WheelError(
                f"{name}: {pin['package']} is {found or 'not installed'}, sources.json names {pin['version']}: "
                "see tools/release.md, Pinned sources"
            )
        for path in pin["paths"]:
            link = include / path
            if not link.is_symlink():
                link.symlink_to(Path("/usr/include") / path)


def prepare(folder):
    """Everything in `folder`; what is there already stays. Returns the folder of the unpacked sources."""
    sources = folder / "sources"
    sources.mkdir(parents=True, exist_ok=True)
    download(folder / "downloads")
    unpack(folder / "downloads", sources)
    return sources
