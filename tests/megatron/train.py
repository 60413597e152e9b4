"""Trains a GPT of megatron-core over gloo and records it: `train.py OUT [--layout tp=2,pp=2,sp=1] [--level mix] [--task tensor] ...`.

OUT/step*/rank*/dump.json as PrecisionDebugger writes them; OUT/losses.json; with --bits also OUT/bits{rank}.json, a digest of what
the training leaves. `--fault NAME` plants one of faults.py. All ranks are forked after the imports, which take longer than the training.
Run it with an interpreter that has megatron-core: .venv-megatron/bin/python, or what MSPROBE_MEGATRON_PYTHON names.
"""

import argparse
import functools
import hashlib
import json
import os
import sys
import traceback
from pathlib import Path

import stand_in

stand_in.pretend_cuda()

import gpt  # noqa: E402 - it imports megatron
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from megatron.core import parallel_state  # noqa: E402
from megatron.core.pipeline_parallel import get_forward_backward_func  # noqa: E402


def layout_of(text):
    """`tp=2,pp=2,sp=1` as a Layout."""
    fields = gpt.Layout._field_defaults
    given = dict(pair.split("=") for pair in text.split(",") if pair)
    return gpt.Layout(**{name: type(fields[name])(_number(value)) for name, value in given.items()})


def _number(value):
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def batches(layout, step):
    """The micro batches of this rank: {tokens, labels, position_ids, loss_mask, attention_mask}."""
    first = parallel_state.get_data_parallel_rank() if layout.dp > 1 else 0
    for number in range(layout.micro_batches):
        parts = [
            tokens_of(layout, 10_000 + 1_000 * step + 10 * number + first * layout.batches + i)
            for i in range(layout.batches)
        ]
        ids, mask = (torch.cat(part) for part in zip(*parts))
        future = torch.triu(torch.ones(1, 1, layout.seq, layout.seq), diagonal=1) > 0.5
        yield {
            "tokens": ids[:, :-1].contiguous(),
            "labels": ids[:, 1:].contiguous(),
            "position_ids": torch.arange(layout.seq).unsqueeze(0).expand(len(ids), -1),
            "loss_mask": mask,
            "attention_mask": future,
        }


def tokens_of(layout, seed):
    drawn = torch.Generator().manual_seed(seed)
    mask = torch.ones(layout.micro_batch, layout.seq)
    mask[0, -3:] = 0  # padding
    return torch.randint(0, layout.vocab, (layout.micro_batch, layout.seq + 1), generator=drawn), mask


def loss_func(mask, output):
    """As pretrain_gpt.py has it."""
    losses, mask = output.view(-1).float(), mask.view(-1).float()
    loss = torch.sum(losses * mask)
    tokens = mask.sum().clone().detach().to(torch.int)
    report = torch.cat([loss.clone().detach().view(1), tokens.view(1)])
    return loss, tokens, {"lm loss": report}


def forward_step(iterator, model):
    batch = next(iterator)
    arguments = (batch["tokens"], batch["position_ids"], batch["attention_mask"])
    output = model(*arguments, labels=batch["labels"])
    return output, functools.partial(loss_func, batch["loss_mask"])


def train_step(run, step):
    layout = run.layout
    for chunk in run.chunks:
        chunk.zero_grad_buffer()
    run.optimizer.zero_grad()
    iterators = [batches(layout, step) for _ in run.chunks]
    reports = get_forward_backward_func()(
        forward_step_func=forward_step,
        data_iterator=iterators if layout.vpp > 1 else iterators[0],
        model=run.chunks if layout.vpp > 1 else run.chunks[0],
        num_microbatches=layout.micro_batches,
        seq_length=layout.seq,
        micro_batch_size=layout.micro_batch * layout.batches,
        forward_only=False,
    )
    _, norm, _ = run.optimizer.step()
    total = sum(float(r["lm loss"][0]) / float(r["lm loss"][1]) for r in reports) if reports else None
    return {"loss": total and total / layout.micro_batches, "gradient norm": float(norm) if norm is not None else None}


def digest(run, losses):
    sha = hashlib.sha256(json.dumps(losses).encode())
    for chunk in run.chunks:
        for parameter in chunk.parameters():
            for tensor in (parameter, getattr(parameter, "main_grad", None)):
                if tensor is not None:
                    sha.update(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def debugger_of(options, out, rank):
    if options.level == "none":
        return None
    from msprobe.pytorch import PrecisionDebugger

    section = {"scope": [], "list": [], "data_mode": ["all"]}
    if options.task == "md5":
        section["summary_mode"] = "md5"
    task = "tensor" if options.task == "tensor" else "statistics"
    config = {"task": task, "level": options.level, "rank": [], "step": [], "dump_path": str(out), task: section}
    path = out / f"config{rank}.json"
    path.write_text(json.dumps(config))
    return PrecisionDebugger(config_path=str(path))


def train(options, rank):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if options.memory:
        fill_memory(options.memory)
    layout, out = options.layout, Path(options.out)
    debugger = debugger_of(options, out, rank)
    gpt.start_process(layout, rank, str(out / "store"))
    fault = None
    if options.fault:
        import faults

        fault = faults.FAULTS[options.fault]
    run = gpt.build(layout, fault and fault.before)
    if fault and fault.after:
        fault.after(run)
    losses = []
    for step in range(options.steps):
        if debugger:
            debugger.start(model=run.chunks if len(run.chunks) > 1 or options.as_list else run.chunks[0])
        losses.append(train_step(run, step))
        if debugger:
            debugger.stop()
            debugger.step()
    if losses[0]["loss"] is not None and parallel_state.get_tensor_model_parallel_rank() == 0:
        (out / "losses.json").write_text(json.dumps(losses))
    (out / f"bits{rank}.json").write_text(json.dumps(digest(run, losses)))
    dist.barrier()


def fill_memory(how):
    """What nobody wrote is `large` or `nan`, so that what is read of it shows."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sabotage"))
    import unwritten_memory

    {"large": unwritten_memory.filled_with_large, "nan": unwritten_memory.filled_with_nan}[how](lambda *_: None)(0, 1)


def child(options, rank):
    status = 1
    try:
        train(options, rank)
        status = 0
    except BaseException:  # noqa: BLE001 - whatever it was, it is shown and this process ends
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--layout", type=layout_of, default=gpt.Layout())
    parser.add_argument("--level", default="mix", help="L0, L1, mix, none")
    parser.add_argument("--task", default="statistics", help="statistics, md5, tensor")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--fault", default="")
    parser.add_argument("--memory", default="", help="large, nan: what memory holds that nobody wrote")
    parser.add_argument("--as_list", action="store_true", help="start([model]) also of one chunk")
    return parser.parse_args(arguments)


def run_ranks(options):
    """Trains one side; true if all ranks ended well."""
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "store").unlink(missing_ok=True)
    children = []
    for rank in range(options.layout.world):
        pid = os.fork()
        if pid == 0:
            child(options, rank)
        children.append(pid)
    return not any([os.waitpid(pid, 0)[1] for pid in children])


def main():
    """Several trainings, divided by `--then`, share the imports."""
    if "none" not in sys.argv:
        import msprobe.pytorch  # noqa: F401 - once for all ranks
    runs, current = [], []
    for argument in [*sys.argv[1:], "--then"]:
        if argument == "--then":
            runs.append(parsed(current))
            current = []
        else:
            current.append(argument)
    failed = [options.out for options in runs if not run_ranks(options)]
    sys.exit(f"failed: {failed}" if failed else 0)


if __name__ == "__main__":
    main()
