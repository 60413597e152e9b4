"""Runs `msprobe parity` on combinations of layout and option of megatron-core that have no planted fault, and prints a table.

`python megatron_scan.py --python MEGATRON_PYTHON [--only 0:10]`: the exit code, the verdict and the processor seconds of both runs.
"""

import argparse
import json
import os
import resource
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LAUNCH = ("-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node")
COMBINATIONS = (
    "tp=2,pp=2,tied=1",
    "tp=2,sp=1,recompute=full",
    "dp=2,distributed_optimizer=1,overlap=1,per_token=1",
    "experts=4,ep=2,dp=2,per_token=1",
    "cp=2",
    "tp=2,bf16=1",
    "pp=2,tied=1,per_token=1",
    "tp=2,gelu=1,bias=1,positions=learned_absolute,norm=LayerNorm",
    "tp=2,qk_norm=1",
    "experts=4,tp=2,sp=1",
    "pp=2,vpp=2,recompute=selective",
    "dp=2,overlap=1",
    "dp=2,bf16=1,distributed_optimizer=1",
    "tp=2,groups=4",
    "tp=2,sp=1,qk_norm=1",
    "tp=2,sp=1,tied=1",
    "tp=2,sp=1,per_token=1",
    "pp=2,first_layers=1",
    "pp=2,bf16=1",
    "pp=2,recompute=full",
    "experts=4,pp=2",
    "experts=4,ep=2,dp=2,dispatcher=allgather",
    "experts=4,ep=2,dp=2,distributed_optimizer=1",
    "experts=4,tp=2,sp=1,etp=2",
    "dp=2,per_token=1,tied=1",
    "tp=2,dp=2,sp=1,distributed_optimizer=1,overlap=1",
    "tp=2,pp=2,sp=1,bf16=1",
    "tp=2,pp=2,vpp=2,tied=1",
    "pp=2,dp=2,overlap=1,per_token=1",
    "cp=2,tp=2,sp=1",
    "tp=4,groups=4",
    "pp=4",
)


def ranks_of(layout):
    sizes = dict(pair.split("=") for pair in layout.split(","))
    tp, pp, cp, dp, ep, etp = (int(sizes.get(name, 1)) for name in ("tp", "pp", "cp", "dp", "ep", "etp"))
    return pp * max(tp * cp * dp, ep * etp)


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def answer_of(python, layout, limit):
    """The exit code and the verdict of one combination; a command that failed or did not end has its last line as the verdict."""
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as out:
        command = ["msprobe", "parity", "-o", out, "--set", "sp=0", "--set", "vpp=1", "--", python, *LAUNCH]
        command += [str(ranks_of(layout)), "megatron_train.py", "--layout", layout]
        try:
            done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=limit, env=environment)
        except subprocess.TimeoutExpired:
            return "-", f"did not end in {limit} s"
        certificate = Path(out) / "parity.json"
        if certificate.exists():
            return done.returncode, json.loads(certificate.read_text())["verdict"].splitlines()[0]
        return done.returncode, (done.stderr.strip().splitlines() or ["no output"])[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="an interpreter that has megatron-core and msprobe")
    parser.add_argument("--only", default=":", help="a range of the combinations, such as 0:10")
    parser.add_argument("--limit", type=int, default=300, help="seconds for one combination")
    options = parser.parse_args()
    first, last = (int(part) if part else None for part in options.only.split(":"))
    print("| layout | ranks | exit code | verdict | processor seconds |\n|---|---|---|---|---|", flush=True)
    for layout in COMBINATIONS[first:last]:
        before = processor_seconds()
        code, verdict = answer_of(options.python, layout, options.limit)
        used = processor_seconds() - before
        print(f"| {layout} | {ranks_of(layout)} | {code} | {verdict} | {used:.0f} |", flush=True)


if __name__ == "__main__":
    main()
