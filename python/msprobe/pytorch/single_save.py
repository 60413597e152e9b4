"""SingleSave: tensors of a training loop (rewards, log-probabilities, ...) as .npy files, one directory for each name."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from typing import Any, Optional

import torch

from .. import _core
from .config import MsprobeException
from .files import make_directory, write_file
from .log import logger
from .npy import bytes_of, npy_header


class SingleSave:
    """One object per process; its methods work on the class, too. The files of save({"reward": tensor}) are
    {dump_path}/data/reward/step{n}/rank{r}/micro_step{m}/reward.npy and reward.json."""

    _instance: Optional["SingleSave"] = None

    def __new__(cls, dump_path: Any = None, fmk: str = "pytorch") -> "SingleSave":
        if cls._instance is None:
            _check(dump_path, fmk)
            instance = super().__new__(cls)
            instance.dump_path = os.fspath(dump_path)
            dist = torch.distributed
            instance.rank = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
            instance.step_count = 0
            instance.tag_count = Counter()
            make_directory(instance.dump_path)
            cls._instance = instance
        return cls._instance

    @classmethod
    def save(cls, data: Mapping) -> None:
        """{name: tensor, list or tuple of tensors, or dict of tensors}; calls within a step are its micro steps."""
        self = cls._get()
        for name in _names(data):
            self._save_one(name, data[name], self.tag_count[name])
            self.tag_count[name] += 1

    @classmethod
    def save_ex(cls, data: Mapping, micro_batch: Optional[int] = None) -> None:
        """As save(), with the number of the micro step, or without micro steps."""
        self = cls._get()
        for name in _names(data):
            self._save_one(name, data[name], micro_batch)

    @classmethod
    def save_config(cls, data: Any) -> None:
        """Any JSON value, as configurations.json."""
        self = cls._get()
        path = os.path.join(self.dump_path, "configurations.json")
        try:
            write_file(path, json.dumps(data, indent=4, default=str).encode())
        except (OSError, ValueError) as error:
            logger.error("SingleSave: %s cannot be written: %s", path, error)

    @classmethod
    def step(cls) -> None:
        self = cls._get()
        self.tag_count.clear()
        self.step_count += 1

    @classmethod
    def _get(cls) -> "SingleSave":
        if cls._instance is None:
            text = "SingleSave has no directory yet: construct it once, SingleSave(dump_path)"
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
        text = f"dump_path is {dump_path!r}; allowed: the path of a directory (SingleSave)"
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)
    if fmk != "pytorch":
        text = f"fmk is {fmk!r}; allowed: pytorch (SingleSave)"
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
