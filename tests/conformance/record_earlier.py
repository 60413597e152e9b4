"""Runs the earlier tool on the models and keeps what it wrote in recorded/: `record_earlier.py PYTHON [MODEL ...]`.

PYTHON is the interpreter in whose environment it is installed: .venv/bin/python tests/conformance/record_earlier.py
.venv-old/bin/python. Its packages have to be those of .venv, and the versions are kept beside the answers.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from captures import COMPARED, Captures, steps_of
from models import MODELS
from recorded import CHECKED, LIVE, write_recorded


def main():
    python, *models = sys.argv[1:]
    models = models or [model for model in MODELS if model not in LIVE or model == CHECKED]
    ask = "from importlib.metadata import version; print('mindstudio-probe', version('mindstudio-probe'))"
    tool = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as scratch:
        captures = Captures({"theirs": (Path(python).absolute(), dict.fromkeys(models, COMPARED))}, Path(scratch))
        try:
            for model in models:
                dumps = {config: steps_of(captures, model, "theirs", config) for config in COMPARED}
                write_recorded(model, dumps, tool)
                print(model, flush=True)
        finally:
            captures.stop()


if __name__ == "__main__":
    main()
