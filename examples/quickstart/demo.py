"""The main job from end to end: two runs captured, compared, and shown as one graph.

    python demo.py --out out/demo [--sabotage weight|rope|bf16] [--no-serve]

Everything is written below --out; an earlier result of this script there is replaced.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def msprobe_command() -> str:
    """The msprobe command that belongs to this Python."""
    beside = pathlib.Path(sys.executable).with_name("msprobe")
    found = str(beside) if beside.exists() else shutil.which("msprobe")
    if not found:
        sys.exit("msprobe is not installed for this Python: run 'make setup' or 'pip install .' first")
    return found


def run(title: str, *command: str) -> None:
    print(f"\n== {title}\n   $ {' '.join(command)}", flush=True)
    result = subprocess.run(command)
    if result.returncode != 0:
        sys.exit(f"this step failed with exit code {result.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="out/demo", help="where everything is written")
    parser.add_argument("--sabotage", choices=("weight", "rope", "bf16"), default="weight")
    parser.add_argument("--no-serve", action="store_true", help="stop after building; do not serve the page")
    args = parser.parse_args()

    out = pathlib.Path(args.out)
    for part in ("golden", "problem", "compare", "graph"):
        shutil.rmtree(out / part, ignore_errors=True)
    msprobe = msprobe_command()
    train = str(HERE / "train.py")
    golden, problem = str(out / "golden"), str(out / "problem")

    run("the reference run", sys.executable, train, "--dump", golden)
    run("the same run with one silent bug", sys.executable, train, "--dump", problem, "--sabotage", args.sabotage)
    run(
        "the table and the report",
        msprobe,
        "compare",
        "-tp",
        f"{problem}/step0",
        "-gp",
        f"{golden}/step0",
        "-o",
        str(out / "compare"),
        "--html",
    )
    run("the graph", msprobe, "graph_visualize", "-tp", problem, "-gp", golden, "-o", str(out / "graph"))

    table = sorted((out / "compare").glob("*.csv"))[-1]
    report = sorted((out / "compare").glob("*.html"))[-1]
    print(f"\nTable: {table}\nReport: {report}\nGraph: {out / 'graph'}")
    if args.no_serve:
        print(f"To look at it: {msprobe} serve {out / 'graph'} --open")
        return
    print("Serving the page; stop with Ctrl-C.", flush=True)
    try:
        sys.exit(subprocess.run([msprobe, "serve", str(out / "graph"), "--open"]).returncode)
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main()
