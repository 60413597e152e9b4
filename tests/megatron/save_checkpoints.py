"""Saves a GPT of megatron-core: `save_checkpoints.py OUT [--layout tp=2,pp=2] [FORMAT...]`, each format below OUT under its name.

Formats: `ranks` (a file for each rank, and distrib_optim.pt), a kind of states of torch_dist, or
`hugging` (the same model of transformers). The states of the optimizer are those of
the weights' values, so that all layouts of the model have the same. The arguments hold an object of every kind.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import stand_in

stand_in.pretend_cuda()
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import gpt  # noqa: E402 - it imports megatron
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from foreign_arguments import with_objects  # noqa: E402
from megatron.core import dist_checkpointing, parallel_state  # noqa: E402
from train import layout_of  # noqa: E402


def fill_states(run):
    """What one step makes and Megatron gathers."""
    weights = [(p, p.detach().clone()) for chunk in run.chunks for p in chunk.parameters()]
    for optimizer in getattr(run.optimizer, "chained_optimizers", [run.optimizer]):
        optimizer._init_optimizer_states_with_dummy_values()  # a step, with its decay
        with torch.no_grad():
            for parameter, before in weights:
                parameter.copy_(before)
        for parameter in optimizer.model_param_gbuf_map:
            held = optimizer._get_model_param_range_map(parameter)["param"]
            own = parameter.detach().reshape(-1)[held.start : held.end].float()
            tensors = optimizer._get_main_param_and_optimizer_states(parameter)
            with torch.no_grad():
                for key, value in (("param", own), ("exp_avg", 0.1 * own), ("exp_avg_sq", own * own)):
                    tensors[key].copy_(value)


def arguments(layout, config):
    return with_objects(
        argparse.Namespace(
            num_layers=layout.layers,
            hidden_size=layout.hidden,
            num_attention_heads=layout.heads,
            num_query_groups=layout.groups,
            group_query_attention=True,
            kv_channels=layout.hidden // layout.heads,
            ffn_hidden_size=layout.ffn,
            swiglu=True,
            vocab_size=layout.vocab,
            untie_embeddings_and_output_weights=not layout.tied,
            num_experts=layout.experts or None,
            tensor_model_parallel_size=layout.tp,
            pipeline_model_parallel_size=layout.pp,
            expert_model_parallel_size=layout.ep,
            params_dtype=config.params_dtype,
        )
    )


def key_of(run, number):
    return "model" if len(run.chunks) == 1 else f"model{number}"


def save_ranks(run, args, directory):
    saved = {"args": args, "checkpoint_version": 3.0, "iteration": 1, "optimizer": run.optimizer.state_dict()}
    for number, chunk in enumerate(run.chunks):
        saved[key_of(run, number)] = gpt.plain(chunk).state_dict_for_save_checkpoint()
    saved["rng_state"] = [{"torch": torch.get_rng_state()}]
    tp, pp = parallel_state.get_tensor_model_parallel_rank(), parallel_state.get_pipeline_model_parallel_rank()
    ep = parallel_state.get_expert_model_parallel_rank()
    name = (
        f"mp_rank_{tp:02d}" + (f"_{pp:03d}" if run.layout.pp > 1 else "") + (f"_{ep:03d}" if run.layout.ep > 1 else "")
    )
    directory = directory / name
    directory.mkdir(parents=True, exist_ok=True)
    if parallel_state.get_expert_data_parallel_rank() == 0:
        torch.save(saved, directory / "model_optim_rng.pt")
    run.optimizer.save_parameter_state(str(directory / "distrib_optim.pt"))


def save_dist(run, args, directory, kind):
    metadata = {
        "distrib_optim_sharding_type": kind,
        "singleton_local_shards": False,
        "chained_optim_avoid_prefix": True,
    }
    saved = {key_of(run, n): gpt.plain(c).sharded_state_dict(metadata=metadata) for n, c in enumerate(run.chunks)}
    saved["optimizer"] = run.optimizer.sharded_state_dict(saved, metadata=metadata)
    saved |= {"args": args, "checkpoint_version": 3.0, "iteration": 1, "opt_param_scheduler": {"max_lr": 0.1}}
    if dist.get_rank() == 0:
        directory.mkdir(parents=True)
    dist.barrier()
    dist_checkpointing.save(saved, str(directory))


def save(rank, layout, out, formats, store):
    gpt.start_process(layout, rank, store)
    run = gpt.build(layout)
    fill_states(run)
    args = arguments(layout, run.config)
    for form in formats:
        directory = Path(out, form, "iter_0000001")
        if form == "hugging":
            import pair

            pair.hugging_model(layout).save_pretrained(Path(out, form))
            continue
        if form == "ranks":
            save_ranks(run, args, directory)
        else:
            save_dist(run, args, directory, form)
        dist.barrier()
        (directory.parent / "latest_checkpointed_iteration.txt").write_text("1")
    dist.barrier()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("formats", nargs="*", default=["ranks"])
    parser.add_argument("--layout", default="")
    given = parser.parse_args()
    layout = layout_of(given.layout + ",distributed_optimizer=1")
    with tempfile.TemporaryDirectory() as directory:
        ranks = (layout, given.out, given.formats, os.path.join(directory, "store"))
        if layout.world == 1:
            save(0, *ranks)
        else:
            torch.multiprocessing.start_processes(save, ranks, layout.world, start_method="fork")


if __name__ == "__main__":
    main()
