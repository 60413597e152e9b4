"""Which files belong to `make test-deep` and not to `make test`; a single test says so with @pytest.mark.deep.

What runs the earlier tool itself (the fixture old_python) is deep, too: `make test` holds ours against its recorded answers.
"""

from pathlib import Path

DEEP = (
    "conformance/",  # some twenty models under both tools, level by level
    "mindspore/",  # records in an environment of its own
    "golden/test_graph_ray.py",
    "golden/test_old_plugins.py",
    "doctor/test_grafts.py",
    "python/test_compare_hypothesis.py",
    "python/test_compile.py",
    "python/test_distributed.py",
    "python/test_examples.py",
    "python/test_filters.py",
    "python/test_graph_gloo.py",
    "python/test_no_memory.py",
    "python/test_overflow_causes.py",
    "python/test_overflow_planted.py",
    "python/test_routes_fuzz.py",
    "python/test_run_processes.py",
    "python/test_served_load.py",
    "python/test_tensorboard.py",
    "python/test_torch_samples.py",
)


def is_deep(path):
    """`path`: of a test file, below tests/."""
    return path.startswith(DEEP)


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    for file in sorted(here.glob("*/test_*.py")):
        if is_deep(file.relative_to(here).as_posix()):
            print(file)
