"""Builds the wheels that load on real hosts: `make wheels`, or for a part of them
`.venv-wheels/bin/python tools/wheels/build.py --arch x86_64 --python 3.11`. tools/release.md says what is made, and of what.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import check
import pack
import sources
import ziglang
from sources import PINS, WheelError, run

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "wheels-work"
ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = "2.28"
# Two processes, whatever the machine has, so that others keep theirs.
JOBS = os.environ.get("MSPROBE_WHEEL_JOBS", "2")


def say(text):
    print(f"[wheels] {text}", flush=True)


def at(arch):
    return WORK / f"arch-{arch}"


def wrappers():
    """zig as the compilers and archivers that CMake asks for; ccache knows a compiler by the text of its wrapper."""
    folder = WORK / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    zig = Path(ziglang.__file__).parent / "zig"
    version = run(zig, "version").strip()
    texts = {tool: f'exec "{zig}" {tool} "$@"' for tool in ("ar", "ranlib")}
    # Names of files in messages are those of the checkout, wherever it lies.
    maps = f'"-ffile-prefix-map={WORK}=." "-ffile-prefix-map={ROOT}=."'
    for arch in ARCHITECTURES:
        for tool in ("cc", "c++"):
            texts[f"{arch}-{tool}"] = f'exec "{zig}" {tool} -target {arch}-linux-gnu.{GLIBC} {maps} "$@"'
    for name, text in texts.items():
        whole = f"#!/bin/sh\n# zig {version}\n{text}\n"
        path = folder / name
        # A newer file would compile everything again.
        if not path.exists() or path.read_text() != whole:
            path.write_text(whole)
            path.chmod(0o755)
    return folder


def interpreter(version):
    """An interpreter of that version that has its headers; of those that pyenv knows, too."""
    candidates = [shutil.which(f"python{version}")]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates += sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    ask = "import os, sys, sysconfig; p = sysconfig.get_path('include'); print(os.path.exists(p + '/Python.h'), sys.executable, p)"
    for candidate in filter(None, candidates):
        done = subprocess.run([str(candidate), "-c", ask], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.startswith("True "):
            return done.stdout.split()[1:]
    raise WheelError(f"Python {version} with its headers is not here: install it, or name others with --python")


def nanobind(version):
    """The folder of the nanobind for a version of Python, to be put on its path."""
    pin = PINS["nanobind"][version]
    folder = WORK / f"nanobind-{pin}"
    if not folder.exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
        run(*command, "--only-binary", ":all:", "--python-version", version, "--target", folder, f"nanobind=={pin}")
    return folder


def ccache():
    """As CMakeLists.txt has it, but that the compiler is a wrapper, whose name does not say what it is."""
    if not shutil.which("ccache"):
        return []
    settings = [
        f"CCACHE_BASEDIR={ROOT}",
        "CCACHE_NOHASHDIR=1",
        "CCACHE_COMPILERTYPE=clang",
        "CCACHE_COMPILERCHECK=content",
    ]
    launcher = ";".join(["cmake", "-E", "env", *settings, "ccache"])
    return [f"-DCMAKE_{language}_COMPILER_LAUNCHER={launcher}" for language in ("C", "CXX")]


def configure(source, build, arch, *options, **environment):
    toolchain = {
        "CMAKE_TOOLCHAIN_FILE": ROOT / "tools/wheels/zig.cmake",
        "MSPROBE_ARCH": arch,
        "MSPROBE_WRAPPERS": WORK / "bin",
        "MSPROBE_ARCHIVES": at(arch),
        "CMAKE_BUILD_TYPE": "Release",
    }
    words = [f"-D{key}={value}" for key, value in toolchain.items()]
    log = WORK / f"configure-{build.name}.log"
    run("cmake", "-G", "Ninja", "-S", source, "-B", build, *words, *ccache(), *options, log=log, **environment)


def ninja(build, *targets, **environment):
    run("ninja", "-j", JOBS, "-C", build, *targets, log=WORK / f"build-{build.name}.log", **environment)


def archives(arch, unpacked):
    sources.link_headers(at(arch) / "include")
    build = at(arch) / "build"
    configure(
        ROOT / "tools/wheels/archives",
        build,
        arch,
        f"-DMSPROBE_SOURCES={unpacked}",
        f"-DCMAKE_INSTALL_PREFIX={at(arch)}",
    )
    ninja(build, "install")


def product(arch, versions):
    """The command and the extensions of each Python, out of one folder: what does not depend on Python is compiled once.
    It lies as deep in the checkout as the others, so that ccache knows their objects.
    """
    build = ROOT / "build" / f"wheel-{arch}"
    made = at(arch) / "made"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    for version in versions:
        say(f"{arch}: Python {version}" + (", the command" if version == versions[0] else ""))
        python, include = interpreter(version)
        environment = {**os.environ, "PYTHONPATH": str(nanobind(version))}
        asked = [f"-DPython_EXECUTABLE={python}", f"-DPython_INCLUDE_DIR={include}"]
        forgotten = [word for name in ("Python_*", "_Python*", "nanobind*", "NB_*") for word in ("-U", name)]
        configure(
            ROOT,
            build,
            arch,
            *forgotten,
            *asked,
            "-DMSPROBE_LIBRARY=OFF",
            "-DMSPROBE_PYTHON=ON",
            "-DMSPROBE_WEB=ON",
            env=environment,
        )
        modules = build / "src" / "bindings"
        for left in modules.glob("_*.so"):
            left.unlink()
        # The newest Python writes the stubs: for older ones that takes another package.
        stubs = arch == os.uname().machine and version == versions[-1]
        ninja(build, "msprobe", "_core", "_page", *(["_core_stub", "_page_stub"] if stubs else []), env=environment)
        shutil.copy(build / "msprobe", made / "msprobe")
        for extension in ("_core", "_page"):
            (module,) = modules.glob(f"{extension}.*.so")
            # The interpreter that was asked for the suffix is of this machine.
            shutil.copy(module, made / f"{extension}.cpython-{version.replace('.', '')}-{arch}-linux-gnu.so")
            if stubs:
                shutil.copy(modules / f"{extension}.pyi", WORK / f"{extension}.pyi")
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", action="append", choices=ARCHITECTURES, help="both, unless one is named")
    parser.add_argument(
        "--python", action="append", choices=sorted(PINS["nanobind"]), help="all of sources.json, unless some are named"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "wheels")
    asked = parser.parse_args()
    versions = sorted(asked.python or PINS["nanobind"], key=lambda version: int(version.split(".")[1]))
    if sysconfig.get_platform() != "linux-x86_64":
        raise WheelError("wheels are made on Linux for x86-64, of which the stubs of the extensions come")
    wrappers()
    for version in versions:
        interpreter(version)
    say("sources of the libraries")
    unpacked = sources.prepare(WORK)
    asked.out.mkdir(parents=True, exist_ok=True)
    wheels = []
    for arch in asked.arch or ARCHITECTURES:
        say(f"{arch}: libraries")
        archives(arch, unpacked)
        wheels.append(pack.wheel(product(arch, versions), arch, versions, WORK, asked.out))
        say(f"{wheels[-1].name}: {wheels[-1].stat().st_size / 1e6:.1f} MB")
    found = {}
    for wheel in wheels:
        found[wheel.name] = check.wheel(wheel, versions, interpreter)
        say(
            f"{wheel.name}: checked" + ("" if found[wheel.name] else ", but not run: qemu-user-static is not installed")
        )
    check.all_agree(found)
    source = pack.source_archive(asked.out)
    check.check_source_archive(source)
    pack.checksums(asked.out)
    say(f"ready: {asked.out}")


if __name__ == "__main__":
    try:
        main()
    except WheelError as error:
        sys.exit(f"[wheels] error: {error}")
