"""How tensors of MindSpore are changed: on the host, so that no operator of the framework runs for it."""

from typing import Any, Optional

import mindspore
import numpy as np
from mindspore.common.api import _pynative_executor

from ..._capture.free_benchmark import NOISE, Tensors
from ..._core import dtype_figures

FLOATS = (mindspore.float16, mindspore.bfloat16, mindspore.float32, mindspore.float64)
_BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}
_LAST_BIT_OF_BFLOAT16 = 1 << 16  # where it lies in a float32


def wait() -> None:
    """Waits for the operators that were called: what fails in one of them is raised here."""
    _pynative_executor.sync()


def name_of(dtype: Any) -> str:
    """`float32`."""
    return str(dtype).rpartition(".")[2].lower()


def is_floating(value: Any) -> bool:
    """Whether it is a tensor of real numbers."""
    return isinstance(value, mindspore.Tensor) and value.dtype in FLOATS


def array_of(tensor: mindspore.Tensor) -> np.ndarray:
    """Returns a copy on the host; bfloat16, which numpy has not, as float32."""
    wide = tensor.astype(mindspore.float32) if tensor.dtype == mindspore.bfloat16 else tensor
    return np.array(wide.asnumpy())


def copied(tensor: mindspore.Tensor) -> mindspore.Tensor:
    """Returns a tensor of the same values that shares nothing with this one."""
    return _tensor(array_of(tensor), tensor)


def _tensor(array: np.ndarray, like: mindspore.Tensor) -> mindspore.Tensor:
    made = mindspore.Tensor(np.ascontiguousarray(array).reshape(array.shape))
    return made.astype(mindspore.bfloat16) if like.dtype == mindspore.bfloat16 else made


def _visible(tensor: mindspore.Tensor) -> Optional[np.ndarray]:
    """Its values, if noise can be seen in it."""
    array = array_of(tensor)
    return None if array.size == 0 or np.abs(array).max() < NOISE[name_of(tensor.dtype)] else array


class _MindSporeTensors(Tensors):
    kind = mindspore.Tensor

    def is_floating(self, tensor: mindspore.Tensor) -> bool:
        return is_floating(tensor)

    def noisy(self, tensor: mindspore.Tensor) -> Optional[mindspore.Tensor]:
        array = _visible(tensor)
        if array is None:
            return None
        noise = NOISE[name_of(tensor.dtype)]
        added = array.dtype.type(noise)
        if tensor.dtype == mindspore.bfloat16:
            added = array_of(_tensor(np.array([added]), tensor))[0]
        return _tensor(np.where(np.abs(array) > noise**0.5, array + added, array), tensor)

    def flipped(self, tensor: mindspore.Tensor) -> Optional[mindspore.Tensor]:
        array = _visible(tensor)
        if array is None:
            return None
        last = _LAST_BIT_OF_BFLOAT16 if tensor.dtype == mindspore.bfloat16 else 1
        bits = array.view(_BITS[array.itemsize]) if array.ndim else array.reshape(1).view(_BITS[array.itemsize])
        normal = np.abs(array) > dtype_figures(name_of(tensor.dtype))[3]
        made = np.where(normal, bits ^ bits.dtype.type(last), bits).view(array.dtype)
        return _tensor(made.reshape(array.shape), tensor)

    def exchanged(self, tensor: mindspore.Tensor) -> Optional[mindspore.Tensor]:
        if tensor.ndim == 0 or tensor.size == 0 or max(tensor.shape[:2]) < 2:
            return None
        array = array_of(tensor)
        made = array.copy()
        first, last = ((0,), (-1,)) if array.ndim == 1 else ((0, 0), (-1, -1))
        made[first], made[last] = array[last], array[first]
        return _tensor(made, tensor)

    def widened(self, tensor: mindspore.Tensor) -> Optional[mindspore.Tensor]:
        halves = (mindspore.float16, mindspore.bfloat16)
        return tensor.astype(mindspore.float32) if tensor.dtype in halves else None


TENSORS = _MindSporeTensors()
