"""Names of the parameters that an optimizer steps, as the models have them."""

import torch


def names_by_id(roots: list) -> dict:
    """Maps the id of each parameter of the models to its name."""
    found: dict = {}
    for number, root in enumerate(roots):
        for name, parameter in root.named_parameters():
            # What wraps a model says nothing of it.
            plain = ".".join(part for part in name.split(".") if part not in ("_orig_mod", "_fsdp_wrapped_module"))
            while plain.startswith("module."):
                plain = plain[len("module.") :]
            full = f"{number}.{plain}" if number else plain
            found[id(parameter)] = full
            # Megatron's optimizers step copies of higher precision.
            if isinstance(main := getattr(parameter, "main_param", None), torch.Tensor):
                found[id(main)] = full
    return found
