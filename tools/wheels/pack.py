"""One wheel for all Pythons of an architecture: the package once, the command once, and the extension modules of each version side
by side under their suffixes. With the licences of all that is linked in, and a list of it (CycloneDX, dist-info/sboms).
"""

import base64
import hashlib
import json
import re
import shutil
import sys
import time
import zipfile
from importlib.metadata import version as installed
from importlib.util import find_spec
from pathlib import Path

from sources import PINS, WheelError, run

ROOT = Path(__file__).resolve().parents[2]
THIRD = "third_party"


def moment():
    """Of the commit, so that the same sources give the same wheel."""
    return int(run("git", "log", "-1", "--format=%ct", cwd=ROOT))


def npm_version(name):
    lock = json.loads((ROOT / "web/package-lock.json").read_text())
    return lock["packages"][f"node_modules/{name}"]["version"]


def component(name, version, licence, purl, text, sha256=None):
    return {"name": name, "version": version, "licence": licence, "purl": purl, "text": text, "sha256": sha256}


def components(work, versions):
    """Everything that is not ours and is in the wheel, each with the text of its licence."""
    out = []
    for name, pin in PINS["debian"].items():
        text = (work / "sources" / name / "debian" / "copyright").read_text()
        purl = f"pkg:deb/debian/{name}@{pin['version']}?arch=source"
        out.append(component(name, pin["version"], pin["licence"], purl, text, pin["sha256"]))
    for name, pin in PINS["headers"].items():
        text = Path("/usr/share/doc", pin["package"], "copyright").read_text()
        if name == "boost":  # two megabytes of who wrote which file; what is used of it is under the one licence
            text = re.search(r"^License: BSL-1\.0\n( .*\n)+", text, re.MULTILINE)[0]
        purl = f"pkg:deb/debian/{pin['package']}@{pin['version']}"
        out.append(component(name, pin["version"], pin["licence"], purl, text))
    for pin in sorted({PINS["nanobind"][version] for version in versions}):
        (licence,) = (work / f"nanobind-{pin}").glob("nanobind-*.dist-info/licenses/LICENSE")
        out.append(component("nanobind", pin, "BSD-3-Clause", f"pkg:pypi/nanobind@{pin}", licence.read_text()))
    robin = next((work / f"nanobind-{PINS['nanobind'][versions[0]]}").rglob("robin_map.h")).read_text()
    out.append(
        component("robin-map", "in nanobind", "MIT", "pkg:github/tessil/robin-map", robin[: robin.index("*/") + 2])
    )
    zig = installed("ziglang")
    of_zig = Path(find_spec("ziglang").origin).parent
    for name, licence, path in (
        ("libc++ and libc++abi", "Apache-2.0 WITH LLVM-exception", "lib/libcxx/LICENSE.TXT"),
        ("libunwind", "Apache-2.0 WITH LLVM-exception", "lib/libunwind/LICENSE.TXT"),
        ("start files of glibc", "LGPL-2.1-or-later WITH linking exception", "lib/libc/glibc/LICENSES"),
        ("compiler-rt of zig", "MIT", "LICENSE"),
    ):
        out.append(component(name, f"in zig {zig}", licence, f"pkg:pypi/ziglang@{zig}", (of_zig / path).read_text()))
    preact = npm_version("preact")
    out.append(
        component(
            "preact", preact, "MIT", f"pkg:npm/preact@{preact}", (ROOT / "web/node_modules/preact/LICENSE").read_text()
        )
    )
    return out


def bill(ours, parts):
    """The list of what is linked in, as CycloneDX 1.6."""
    listed = []
    for part in parts:
        entry = {
            "type": "library",
            "bom-ref": f"{part['purl']}#{part['name']}",
            "name": part["name"],
            "version": part["version"],
        }
        # What is no identifier of SPDX is a name.
        spdx = re.fullmatch(r"[A-Za-z0-9.-]+", part["licence"])
        entry["licenses"] = [{"license": {"id" if spdx else "name": part["licence"]}}]
        entry["purl"] = part["purl"]
        if part["sha256"]:
            entry["properties"] = [{"name": "sha256 of the source package's .dsc", "value": part["sha256"]}]
        listed.append(entry)
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment()))
    root = {"type": "application", "bom-ref": "msprobe", "licenses": [{"license": {"id": "Apache-2.0"}}], **ours}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": made, "component": root},
        "components": listed,
        "dependencies": [{"ref": "msprobe", "dependsOn": [entry["bom-ref"] for entry in listed]}],
    }


def metadata(work):
    """The dist-info as the build backend writes it from pyproject.toml; nothing is compiled."""
    folder = work / "metadata"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    ask = "import sys; from scikit_build_core.build import prepare_metadata_for_build_wheel as p; p(sys.argv[1])"
    run(sys.executable, "-c", ask, folder, cwd=ROOT)
    (info,) = folder.glob("msprobe-*.dist-info")
    return info


def package_files():
    listed = run("git", "ls-files", "-co", "--exclude-standard", "python/msprobe", cwd=ROOT).splitlines()
    return {path.removeprefix("python/"): (ROOT / path).read_bytes() for path in listed if (ROOT / path).is_file()}


def slug(name):
    return re.sub(r"\W+", "-", name.replace("+", "x")).strip("-")


def contents(made, arch, versions, work):
    """Every file of the wheel by its name there."""
    info = metadata(work)
    name = info.name.removesuffix(".dist-info")
    parts = components(work, versions)
    files = package_files()
    for stub in ("_core.pyi", "_page.pyi"):
        if not (work / stub).exists():
            raise WheelError("the stubs of the extensions come from the x86-64 build: make that first")
        files[f"msprobe/{stub}"] = (work / stub).read_bytes()
    for module in sorted(made.glob("*.so")):
        files[f"msprobe/{module.name}"] = module.read_bytes()
    files[f"{name}.data/scripts/msprobe"] = (made / "msprobe").read_bytes()
    texts = {f"{THIRD}/{slug(part['name'])}-{slug(part['version'])}.txt": part["text"] for part in parts}
    own = (info / "METADATA").read_text()
    listed = "".join(f"License-File: {path}\n" for path in sorted(texts))
    own = own.replace("License-File: LICENSE\n", f"License-File: LICENSE\n{listed}", 1)
    version = re.search(r"^Version: (.*)$", own, re.MULTILINE)[1]
    files[f"{info.name}/METADATA"] = own.encode()
    tag = f"py3-none-manylinux_2_28_{arch}"
    wheel = f"Wheel-Version: 1.0\nGenerator: msprobe tools/wheels\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{info.name}/WHEEL"] = wheel.encode()
    files[f"{info.name}/entry_points.txt"] = (info / "entry_points.txt").read_bytes()
    files[f"{info.name}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    for path, text in texts.items():
        files[f"{info.name}/licenses/{path}"] = text.encode()
    ours = {"name": "msprobe", "version": version, "purl": f"pkg:pypi/msprobe@{version}"}
    files[f"{info.name}/sboms/msprobe.cdx.json"] = (json.dumps(bill(ours, parts), indent=1) + "\n").encode()
    return info.name, f"{name}-{tag}.whl", files


def recorded(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def write(path, info, files, when):
    """A wheel of these files; the record of them is added."""
    record = f"{info}/RECORD"
    rows = [recorded(name, data) for name, data in files.items()] + [f"{record},,"]
    files = {**files, record: ("\n".join(rows) + "\n").encode()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, when)
            runs = name.endswith((".so", ".sh")) or "/scripts/" in name.partition(".data")[2]
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def wheel(made, arch, versions, work, out):
    info, name, files = contents(made, arch, versions, work)
    write(out / name, info, files, time.gmtime(moment())[:6])
    return out / name


def source_archive(out):
    """With the built pages: it builds where no Node is."""
    ask = "import sys; from scikit_build_core.build import build_sdist as b; print('made ' + b(sys.argv[1]))"
    name = re.search(r"^made (.*)$", run(sys.executable, "-c", ask, out.resolve(), cwd=ROOT), re.MULTILINE)[1]
    return out / name


def checksums(out):
    names = sorted(path.name for pattern in ("*.whl", "*.tar.gz") for path in out.glob(pattern))
    (out / "SHA256SUMS").write_text(run("sha256sum", *names, cwd=out))
