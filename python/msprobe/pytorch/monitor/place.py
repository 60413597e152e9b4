"""Where this process is among the ranks."""

from typing import Any

import torch.distributed as dist


def place_of(process_group: Any) -> tuple:
    """(rank, stage of the pipeline, ranks of the group)."""
    if not (dist.is_available() and dist.is_initialized()):
        return 0, 0, [0]
    group = process_group if isinstance(process_group, dist.ProcessGroup) else dist.group.WORLD
    rank = dist.get_rank()
    return rank, dist.get_group_rank(group, rank), dist.get_process_group_ranks(group)
