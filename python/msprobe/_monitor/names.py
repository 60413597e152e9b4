"""Names of parameters and modules in the files of a monitor: "0:layers.0.fc.weight", the number being the pipeline chunk."""

import re
from typing import Any

from .config import MonitorConfig

# What stands before these words is the wrapping, which differs between trainers.
_ROOTS = [re.compile(rf"^.*\.({word}.*)") for word in (r"layers?\.", r"embeddings?\.", "final", "output", "norm")]


def squash(name: str, enable: bool) -> str:
    """Cuts off what wrappers and outer modules add in front of a name.

    Args:
        name: Of a parameter or module.
        enable: False: it stays as it is.

    Returns:
        The name.
    """
    for pattern in _ROOTS if enable else ():
        match = pattern.match(name)
        if match:
            return match.group(1)
    return name


def is_target_parameter(config: MonitorConfig, name: str, prefix: str) -> bool:
    """Tells whether a parameter belongs to a module that is named in the configuration."""
    forms = (name, prefix + squash(name, config.squash_name), prefix + name)
    return any(form.startswith(target) for target in config.targets for form in forms)


def target_module_name(config: MonitorConfig, targets: Any, name: str, prefix: str) -> str:
    """Returns the name of a module that is wanted, as its rows have it; empty if it is not wanted."""
    squashed = prefix + squash(name, config.squash_name)
    if config.all_xy or config.print_struct:
        return squashed
    for form in (squashed, prefix + name):
        if form in targets:
            return form
    return ""


def targets_of_chunks(config: MonitorConfig, chunks: int) -> dict:
    """Names without a pipeline chunk stand for that module of every chunk.

    Args:
        config: With the targets.
        chunks: How many models there are.

    Returns:
        Target -> its object.
    """
    named = {name: value for name, value in config.targets.items() if ":" in name}
    for name, value in config.targets.items():
        if ":" not in name:
            named.update({f"{chunk}:{name}": value for chunk in range(chunks)})
    return named
