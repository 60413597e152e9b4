"""load: how Cells of MindSpore get other inputs."""

from typing import Any, Optional

import mindspore
import numpy
from mindspore import nn

from .._capture.load_inputs import InputLoader, refuse_other
from .._capture.words import say
from . import cell_hooks


class MindSporeInputLoader(InputLoader):
    """Files of numpy; those of torch.save() become such files where `msprobe doctor` prepares a run."""

    tensor_type = mindspore.Tensor

    def hook(self, base: str, module: nn.Cell) -> None:
        """Replaces inputs ahead of all other hooks of the Cell."""

        def replace(cell: nn.Cell, args: tuple, kwargs: Optional[dict] = None) -> Any:
            return self.replace(base, args, kwargs or {})

        cell_hooks.before(module, replace, prepend=True, with_kwargs=True)

    def read(self, path: str, like: mindspore.Tensor) -> mindspore.Tensor:
        """Returns the tensor of a file.

        Raises:
            ValueError: It does not fit `like`, or is no tensor.
            OSError: It cannot be read.
        """
        if not path.endswith(".npy"):
            raise ValueError(say("there is no .npy file of it, and MindSpore reads no other"))
        stored = numpy.load(path, allow_pickle=False)
        found = mindspore.Tensor(stored)
        widened = stored.dtype == numpy.float32 and like.dtype == mindspore.bfloat16
        if widened or (stored.dtype.kind in "iu" and like.dtype in mindspore.int_type + mindspore.uint_type):
            # Files of numpy have no bfloat16: such a tensor lies in float32, and is taken only if no bit is lost.
            found = mindspore.Tensor(stored).astype(like.dtype)
            back = found.astype(mindspore.float32).asnumpy() if widened else found.asnumpy()
            if not numpy.array_equal(back, stored, equal_nan=widened):
                refuse_other(path, _kind(mindspore.Tensor(stored)), _kind(like))
        if found.shape != like.shape or found.dtype != like.dtype:
            refuse_other(path, _kind(found), _kind(like))
        return found


def _kind(value: mindspore.Tensor) -> str:
    return f"{value.dtype} {list(value.shape)}"
