"""The production sources of the tree, without tests and benchmarks."""

import re

CPP, PYTHON, TYPESCRIPT = (".h", ".cc", ".inc", ".def"), (".py",), (".ts", ".tsx")
FOLDERS = {"src": CPP, "include": CPP, "python": PYTHON, "web/src": TYPESCRIPT, "web/report/src": TYPESCRIPT}


def is_test(path):
    """Tests, benchmarks, and what only they include (test_*.h, *_test_files.h)."""
    return bool(re.search(r"_(test|bench)\.cc$|(^|_)test_|\.test\.tsx?$", path.name))


def production(root, suffixes):
    """Sorted paths of all production files with one of these endings."""
    found = []
    for folder, kinds in FOLDERS.items():
        if set(kinds) & set(suffixes):
            found += [p for p in (root / folder).rglob("*") if p.suffix in suffixes and not is_test(p)]
    return sorted(found)
