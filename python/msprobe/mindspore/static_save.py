"""save, save_grad and step: single tensors of a network, also of one that is compiled into a static graph.

The files are `{save_dir}/step{n}/rank{r}/{name}_{dtype}_{number}.npy`, as the runtime of MindSpore writes them: it fills in
step and rank, and numbers the tensors in the order in which they are written.
"""

import os
from typing import Any

import mindspore
from mindspore import ops


@mindspore.jit_class
class _Saver:
    """Writes tensors with the operator that graphs have for it."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def save(self, name: str, data: Any) -> None:
        """Writes a tensor, or those of a nested dict, list or tuple."""
        if isinstance(data, dict):
            for key, value in data.items():
                self.save(f"{name}.{key}", value)
        elif isinstance(data, (list, tuple)):
            for index, value in enumerate(data):
                self.save(f"{name}.{index}", value)
        elif data is not None:
            self.write(name, data)

    def write(self, name: str, data: Any) -> None:
        """Writes one tensor; NumPy has no bfloat16."""
        if data.dtype == mindspore.bfloat16:
            data = data.float()
        ops.TensorDump()(self._directory + name, data)


def _directory(save_dir: str) -> str:
    return os.path.join(save_dir, "{step}", "{rank}", "")


def save(save_dir: str, name: str, data: Any) -> None:
    """Saves tensors where the network computes them.

    Args:
        save_dir: Directory of the steps.
        name: Begin of the names of files; those of a nested value have its keys behind it.
        data: A tensor, or a nested dict, list or tuple of tensors; None is left out.
    """
    _Saver(_directory(save_dir)).save(name, data)


def save_grad(save_dir: str, name: str, data: Any) -> Any:
    """Saves the gradient of a tensor, when there is one.

    Args:
        save_dir: Directory of the steps.
        name: Begin of the name of the file, which goes on with `_grad`.
        data: The tensor.

    Returns:
        The tensor to go on with: what uses it is what the gradient comes from.
    """
    saver = _Saver(_directory(save_dir))

    def write(gradient: Any) -> Any:
        saver.write(f"{name}_grad", gradient)
        return gradient

    return ops.InsertGradientOf(write)(data)


def step() -> None:
    """Ends the step: what is saved from here on goes to the directory of the next one. Needs an Ascend or a GPU."""
    mindspore.hal.synchronize()
    marker = mindspore.Tensor(0, mindspore.float32)
    ops.TensorDump()("<tensordump-update-step>", marker)
    mindspore.hal.synchronize()
