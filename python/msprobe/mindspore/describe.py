"""Values that the recorder cannot read by itself: tensors without memory, types, values of NumPy, objects.

The recorder calls these functions with its own hooks off and turns an exception into null and a line in the error log.
Nothing here changes a value or calls a method that a user's class defines.
"""

import json
from typing import Any, NamedTuple, Optional

from .._capture import tensor_file
from .._capture.other_values import OtherValues, class_path

_OTHERS = OtherValues(tensor_file.save_npy)


class TensorDescription(NamedTuple):
    """What is recorded of a tensor without memory of its own. The recorder reads the members by their names."""

    type: str
    dtype: str
    shape: tuple
    requires_grad: bool = False
    extra: str = ""
    plain: Any = None
    file: Optional[str] = None


def describe_tensor(tensor: Any, file: Optional[str] = None) -> TensorDescription:
    """Describes a tensor whose elements cannot be read: of a type that no array has, or not initialised yet."""
    shape = tuple(size if isinstance(size, int) else 0 for size in tensor.shape)
    return TensorDescription("mindspore.Tensor", str(tensor.dtype), shape)


def describe(value: Any, key: Any = None, file: Optional[str] = None) -> Any:
    """Describes a value that is neither a tensor nor one of Python's own containers, as JSON text or by its members."""
    if type(value).__name__ == "P2POp" and type(value).__module__.startswith("mindspore."):
        return _exchange(value)
    return json.dumps(_value(value, key, file), indent=1)


def _exchange(value: Any) -> tuple:
    """Describes one send or receive of a batch."""
    members = {
        "class_type": "mindspore.mint.distributed.P2POp",
        "tensor": value.tensor,
        "op": value.op if isinstance(value.op, str) else value.op.__name__,
        "peer": value.peer,
        "tag": value.tag,
    }
    return tuple(part for key, item in members.items() for part in (key, item if key == "tensor" else json.dumps(item)))


def _value(value: Any, key: Any, file: Optional[str]) -> Any:
    if type(value).__module__.startswith("mindspore._c_expression.typing"):
        return {"type": "mindspore.dtype", "value": str(value)}
    if key in ("dtype", "output_dtype") and type(value) in (str, int):
        return {"type": "mindspore.dtype", "value": str(value)}
    return _OTHERS.describe(value, file) or {"type": class_path(type(value))}
