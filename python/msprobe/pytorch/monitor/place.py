"""Where this process is among the ranks, and whether its models can be monitored."""

from typing import Any

from ..._capture.words import say
from ..._compat import distributed_module

dist = distributed_module()


def place_of(process_group: Any) -> tuple:
    """(rank, stage of the pipeline, ranks of the group)."""
    if not (dist.is_available() and dist.is_initialized()):
        return 0, 0, [0]
    group = process_group if isinstance(process_group, dist.ProcessGroup) else dist.group.WORLD
    rank = dist.get_rank()
    return rank, dist.get_group_rank(group, rank), dist.get_process_group_ranks(group)


def check_models(models: list) -> None:
    """Raises ValueError if nothing of them can be monitored."""
    for model in models:
        for module in model.modules():
            if type(module).__name__ == "FullyShardedDataParallel" and not module._use_orig_params:
                raise ValueError(
                    say("the monitor needs FSDP with use_orig_params=True: without it parameters have no names")
                )
    if not any(p.requires_grad for model in models for p in model.parameters()):
        raise ValueError(
            say("no parameter of the model requires a gradient: give set_monitor() the model that is trained")
        )
