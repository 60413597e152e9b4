"""Makes kept.tar.xz: a few dumps of both frameworks, without call stacks, for `make test`.

.venv/bin/python tests/frameworks/keep.py .venv-ms/bin/python
"""

import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from planted import BUGS, HELD_OUT
from runs import FRAMEWORKS, dump_of, record
from test_frameworks import KEPT, KEPT_BUGS, KEPT_PAIRS


def main(mindspore_python):
    networks = sorted({network for pair in KEPT_PAIRS for network in pair})
    bugs = [bug for bug in (*BUGS, *HELD_OUT) if bug.name in KEPT_BUGS]
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        record(root, mindspore_python, networks, [("mix", "statistics")], bugs)
        places = [dump_of(root, framework, network) for framework in FRAMEWORKS for network in networks]
        places += [root / "bugs" / bug.name for bug in bugs]
        with tarfile.open(KEPT, "w:xz") as archive:
            for place in places:
                for name in ("dump.json", "construct.json"):
                    path = place / "rank" / name
                    archive.add(path, path.relative_to(root).as_posix())


if __name__ == "__main__":
    main(*sys.argv[1:])
