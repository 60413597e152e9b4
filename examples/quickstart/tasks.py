"""More dumps for trying the page, made like those of train.py.

    python examples/quickstart/tasks.py --out out/tasks

out/tasks/ranks     four ranks that train one model; in step 1 the batch of one of them is all padding, so its loss is NaN
out/tasks/renamed   the run of train.py with one module renamed, as in a different implementation of the model
"""

import argparse
import pathlib
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from msprobe.pytorch import PrecisionDebugger, seed_all
from train import build_model

PADDED_RANK, PADDED_STEP = 2, 1
IGNORED = -100  # the label of padding


def train(model, dump: str, steps: int, batch, after_backward=lambda model: None) -> None:
    """The loop of train.py; `batch` gives the tokens and labels of a step."""
    debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=dump)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        tokens, labels = batch(step)
        debugger.start(model)
        loss = model(input_ids=tokens, labels=labels).loss
        loss.backward()
        after_backward(model)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step()


def renamed(_: int, dump: str) -> None:
    """Layer 1 calls its down_proj w_out."""
    seed_all(1234)
    model = build_model("none")
    mlp = model.model.layers[1].mlp
    mlp.w_out = mlp._modules.pop("down_proj")
    mlp.forward = lambda x: mlp.w_out(mlp.act_fn(mlp.gate_proj(x)) * mlp.up_proj(x))

    def batch(step):
        torch.manual_seed(step)
        tokens = torch.randint(0, model.config.vocab_size, (2, 32))
        return tokens, tokens

    train(model, dump, 2, batch)


def rank_of(rank: int, dump: str, store: str, ranks: int, steps: int) -> None:
    """Data parallelism by hand: gradients are averaged over the ranks."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    seed_all(1234)
    model = build_model("none")

    def batch(step):
        torch.manual_seed(1000 * rank + step)
        tokens = torch.randint(0, model.config.vocab_size, (2, 16))
        padded = rank == PADDED_RANK and step == PADDED_STEP
        return tokens, torch.full_like(tokens, IGNORED) if padded else tokens

    def average(model):
        gradients = [p.grad for p in model.parameters()]
        together = torch.cat([g.flatten() for g in gradients])
        dist.all_reduce(together)
        for g, part in zip(gradients, together.split([g.numel() for g in gradients])):
            g.copy_(part.view_as(g) / ranks)

    train(model, dump, steps, batch, average)
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="out/tasks", help="where the dumps are written")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()

    out = pathlib.Path(args.out)
    for part in ("ranks", "renamed"):
        shutil.rmtree(out / part, ignore_errors=True)
    with tempfile.TemporaryDirectory() as directory:
        store = str(pathlib.Path(directory) / "store")
        mp.start_processes(
            rank_of, (str(out / "ranks"), store, args.ranks, args.steps), args.ranks, start_method="fork"
        )
    mp.start_processes(renamed, (str(out / "renamed"),), 1, start_method="fork")
    print(f"Dumps: {out / 'ranks'}, {out / 'renamed'}")


if __name__ == "__main__":
    main()
