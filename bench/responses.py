"""The search for broken responses: tokens a second of one core, from dicts of Python with five candidates each.

python bench/responses.py

With --old PYTHON, the earlier tool in its own environment on the same responses.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
import response_cases
from msprobe.response_anomaly import analyze_output_anomaly


def responses(kind: str, count: int, length: int) -> tuple:
    rng = random.Random(1)
    make = {
        "healthy": lambda: response_cases.healthy(rng, length),
        "repeating": lambda: response_cases.repeating(rng, length, 12),
    }[kind]
    made = [make() for _ in range(count)]
    return [logprobs for logprobs, _ in made], [tokens for _, tokens in made]


def speed(kind: str, count: int, length: int) -> float:
    logprobs, tokens = responses(kind, count, length)
    start = time.process_time()
    analyze_output_anomaly(logprobs, tokens, None)
    return count * length / (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--length", type=int, default=2000)
    parser.add_argument("--old", help="the Python that has mindstudio-probe")
    args = parser.parse_args()
    line = {kind: round(speed(kind, args.count, args.length)) for kind in ("healthy", "repeating")}
    print(json.dumps({"tokens_a_second": line}), flush=True)
    if args.old:
        subprocess.run([args.old, __file__, "--count", str(args.count // 10), "--length", str(args.length)], check=True)


if __name__ == "__main__":
    main()
