"""SingleSave: tensors of a training loop (rewards, log-probabilities, ...) as .npy files, one directory for each name."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import torch

from .. import _core
from .._capture.config import MsprobeException
from .._capture.files import make_directory, write_file
from .._capture.log import logger
from .._capture.npy import npy_header
from .._capture.words import say, wrong
from .._compat import distributed_module
from .npy import bytes_of

Tensors = Union[torch.Tensor, Sequence[torch.Tensor], Mapping[Any, torch.Tensor]]


class SingleSave:
    """Saves named tensors of a training loop, such as rewards and log-probabilities.

        SingleSave("out")
        for batch in loader:
            SingleSave.save({"reward": reward, "logits": [first, second]})
            SingleSave.step()

    save({"reward": tensor}) writes `{dump_path}/data/reward/step{n}/rank{r}/micro_step{m}/reward.npy` (float32, same shape) and
    reward.json beside it (max, min, mean, L2 norm, shape). Tensors in a list or dict get one file each: `reward.0.npy` or
    `reward.{key}.npy`. SingleComparator compares what two runs saved.

    There is one instance per process: constructing it again returns the existing one unchanged, and every method also works
    on the class. If a tensor cannot be saved, the log says so and the training continues.

    Attributes:
        dump_path: The output directory.
        rank: Rank in torch.distributed when constructed; 0 without it.
        step_count: Number of the current step, from 0.
        tag_count: How often each name has been saved in this step.
    """

    dump_path: str
    rank: int
    step_count: int
    tag_count: "Counter[str]"

    _instance: Optional["SingleSave"] = None

    def __new__(cls, dump_path: Union[str, "os.PathLike[str]", None] = None, fmk: str = "pytorch") -> "SingleSave":
        """Returns the instance of this process, and creates it the first time.

        Args:
            dump_path: Output directory; created if missing. Required the first time.
            fmk: The framework; must be `pytorch`.

        Raises:
            MsprobeException: `dump_path` is not a path, or `fmk` is another framework.
            OSError: The directory cannot be created.
        """
        if cls._instance is None:
            _check(dump_path, fmk)
            instance = super().__new__(cls)
            instance.dump_path = os.fspath(dump_path)
            dist = distributed_module()
            instance.rank = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
            instance.step_count = 0
            instance.tag_count = Counter()
            make_directory(instance.dump_path)
            cls._instance = instance
        return cls._instance

    @classmethod
    def save(cls, data: Mapping[str, Tensors]) -> None:
        """Saves tensors. Repeated calls with a name within a step are its micro steps, numbered from 0.

        Args:
            data: {name: tensor, list or tuple of tensors, or dict of tensors}, of any shape and any dtype except complex.

        Raises:
            MsprobeException: SingleSave has not been constructed.
        """
        self = cls._get()
        for name in _names(data):
            self._save_one(name, data[name], self.tag_count[name])
            self.tag_count[name] += 1

    @classmethod
    def save_ex(cls, data: Mapping[str, Tensors], micro_batch: Optional[int] = None) -> None:
        """Saves tensors under an explicit micro step.

        Args:
            data: See save().
            micro_batch: Number of the micro step. None to write directly into `rank{r}`, without a micro step.

        Raises:
            MsprobeException: SingleSave has not been constructed.
        """
        self = cls._get()
        for name in _names(data):
            self._save_one(name, data[name], micro_batch)

    @classmethod
    def save_config(cls, data: Any) -> None:
        """Saves the settings of the run as `{dump_path}/configurations.json`, replacing earlier ones.

        Args:
            data: Any JSON value; objects that JSON cannot represent are written as str(object).

        Raises:
            MsprobeException: SingleSave has not been constructed.
        """
        self = cls._get()
        path = os.path.join(self.dump_path, "configurations.json")
        try:
            write_file(path, json.dumps(data, indent=4, default=str).encode())
        except (OSError, ValueError) as error:
            logger.error("SingleSave: %s cannot be written: %s", path, error)

    @classmethod
    def step(cls) -> None:
        """Ends the step. Later calls save into the next step, with micro steps from 0.

        Raises:
            MsprobeException: SingleSave has not been constructed.
        """
        self = cls._get()
        self.tag_count.clear()
        self.step_count += 1

    @classmethod
    def _get(cls) -> "SingleSave":
        if cls._instance is None:
            text = say("SingleSave has no directory yet: construct it once, SingleSave(dump_path)")
            raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR, text)
        return cls._instance

    def _save_one(self, name: str, value: Any, micro_step: Optional[int]) -> None:
        parts = [self.dump_path, "data", name, f"step{self.step_count}", f"rank{self.rank}"]
        directory = os.path.join(*parts, *([] if micro_step is None else [f"micro_step{micro_step}"]))
        try:
            result = _core.run_unseen(lambda: _save_value(value, name, directory))
            write_file(os.path.join(directory, f"{name}.json"), json.dumps({"data": result}, indent=4).encode())
        except (OSError, TypeError, RuntimeError) as error:  # the training goes on
            logger.error("SingleSave: %s of step %d is not saved: %s", name, self.step_count, error)


def _check(dump_path: Any, fmk: Any) -> None:
    if not isinstance(dump_path, (str, os.PathLike)) or not os.fspath(dump_path):
        text = wrong("dump_path", repr(dump_path), "the path of a directory", "SingleSave")
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)
    if fmk != "pytorch":
        text = wrong("fmk", repr(fmk), "pytorch", "SingleSave")
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def _names(data: Any) -> list:
    if not isinstance(data, Mapping):
        logger.warning("SingleSave: a %s is not saved; allowed: a dict of names and tensors", type(data).__name__)
        return []
    return [name for name in data if _can_save(name, data[name])]


def _can_save(name: Any, value: Any) -> bool:
    if not isinstance(name, str) or not name or name in (".", "..") or "/" in name or "\0" in name or len(name) > 200:
        logger.warning("SingleSave: %r is not saved; allowed: names that a directory can have", name)
        return False
    if not isinstance(value, (torch.Tensor, list, tuple, Mapping)):
        logger.warning("SingleSave: %s is a %s and is not saved; allowed: tensors", name, type(value).__name__)
        return False
    return True


def _save_value(value: Any, name: str, directory: str) -> Any:
    if isinstance(value, torch.Tensor):
        return _save_tensor(value, name, directory)
    if isinstance(value, Mapping):
        return {str(key): _save_item(item, f"{name}.{key}", directory) for key, item in value.items()}
    return [_save_item(item, f"{name}.{index}", directory) for index, item in enumerate(value)]


def _save_item(value: Any, name: str, directory: str) -> dict:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} is a {type(value).__name__}; allowed: torch.Tensor")
    return _save_tensor(value, name.replace("/", "_"), directory)


def _save_tensor(tensor: torch.Tensor, name: str, directory: str) -> dict:
    with torch.no_grad():
        plain = tensor.detach()
        if plain.is_complex():
            raise TypeError(f"{name} is complex; save its real and imaginary parts")
        plain = plain.float().cpu().contiguous()
        numbers = [f(plain).item() if plain.numel() else None for f in (torch.max, torch.min, torch.mean, torch.norm)]
    write_file(os.path.join(directory, f"{name}.npy"), npy_header(plain.shape, "<f4"), bytes_of(plain))
    return {**dict(zip(("max", "min", "mean", "norm"), numbers)), "shape": list(plain.shape)}
