"""What the stage "op" of `msprobe rollout` costs: a dump of an engine with 20,000 ops and 64 requests against one of a trainer.

.venv/bin/python bench/rollout_ops.py [--layers 24] [--requests 64] [--ops 20000] [--keep DIRECTORY]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

# The peak of a process counts what it had before it became the command: this small one starts it.
_STARTER = """
import os, sys
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss, file=sys.stderr)
"""
REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests" / "rollout"))


def record(out: Path, layers: int, requests: int, ops: int) -> int:
    """Records both sides; returns how many ops the engine's dumps have."""
    import pairs
    import torch
    from engine import Engine, EngineForCausalLM, Request
    from msprobe.pytorch import PrecisionDebugger

    torch.set_num_threads(1)
    pairs.SMALL = {**pairs.SMALL, "num_hidden_layers": layers}
    model = pairs.build("qwen2", torch.bfloat16)
    engine = Engine(EngineForCausalLM(model, {"attention_scale": 0.8, "layer": layers - 1}, 2048), requests, 512)
    engine.free = list(range(2048))
    steps = max(2, ops // (12 * layers + 5))
    torch.manual_seed(1)
    asked = [Request(str(i), torch.randint(3, 160, (8 + i % 17,)).tolist(), steps - 3) for i in range(requests)]
    debugger = PrecisionDebugger(task="tensor", level="L0", dump_path=str(out / "engine"))
    done = engine.run(asked, debugger)
    debugger.service.config.dump_path = str(out / "train")
    debugger.service.reset_status()
    pairs.train(model, done, "padded", debugger)
    return sum(len(json.loads(f.read_text())["data"]) for f in (out / "engine").glob("*/*/dump.json"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--ops", type=int, default=20000)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        out = args.keep or Path(temporary)
        ops = record(out, args.layers, args.requests, args.ops)
        command = [Path(sys.executable).with_name("msprobe"), "rollout", out / "train", out / "engine", "--json"]
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _STARTER, *map(str, command)], capture_output=True, text=True
        )
        seconds, kilobytes = map(float, done.stderr.split()[-2:])
        [stage] = [s for s in json.loads(done.stdout)["stages"] if s["stage"] == "op"]
        print(f"{ops} ops, {args.requests} requests: {seconds:.2f} s of a processor, {kilobytes / 1024:.0f} MB at most")
        print(f"{stage['seen']}: {stage['sentence']}")


if __name__ == "__main__":
    main()
