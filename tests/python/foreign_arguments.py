"""Arguments of a training as Megatron keeps them in its checkpoints, with an object of every kind that can be pickled."""

import argparse
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import http
import operator
import os
import pathlib
import re
import signal
import socket
import types
import typing
import uuid

import numpy as np
import torch


class Backend(enum.Enum):
    flash = 1
    fused = 2


class Features(enum.Flag):
    A = 1
    B = 2
    C = 4


@dataclasses.dataclass
class Settings:
    steps: int = 1
    join: object = os.path.join


class Slots:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


class OwnDict(dict):
    pass


class OwnList(list):
    pass


Point = collections.namedtuple("Point", "x y")


def function(x):
    return x


class Thing:
    def method(self):
        return self

    @classmethod
    def made(cls):
        return cls()


class Keywords:
    """Pickled with arguments by name: before protocol 4, as a call of a partial."""

    def __new__(cls, *, size):
        return object.__new__(cls)

    def __getnewargs_ex__(self):
        return (), {"size": 1}


def objects():
    """By what they are called in the arguments."""
    loop = Thing()
    loop.itself = loop
    return {
        "exit_signal": signal.SIGTERM,
        "handler": signal.SIG_DFL,
        "status": http.HTTPStatus.OK,
        "family": socket.AF_INET,
        "attention_backend": Backend.flash,
        "features": Features.A | Features.C,
        "getter": operator.attrgetter("a.b"),
        "item": operator.itemgetter(1, 2),
        "caller": operator.methodcaller("f", 1),
        "add": operator.add,
        "run_id": uuid.UUID(int=2**127 + 12345),
        "params_dtype": torch.bfloat16,
        "device": torch.device("cpu"),
        "size": torch.Size([1, 2]),
        "activation": torch.nn.functional.gelu,
        "layer": torch.nn.SiLU,
        "own_function": function,
        "method": Thing().method,
        "class_method": Thing.made,
        "own_class": Thing,
        "builtin": len,
        "of_the_system": os.getcwd,
        "none_type": type(None),
        "ellipsis": Ellipsis,
        "path": pathlib.Path("/data/x"),
        "windows_path": pathlib.PureWindowsPath("c:/x"),
        "partial": functools.partial(function, 1, k=2),
        "partial_join": functools.partial(os.path.join, "/x"),
        "settings": Settings(),
        "slots": Slots(3),
        "own_dict": OwnDict(a=1),
        "own_list": OwnList([1, 2]),
        "point": Point(1, 2),
        "ordered": collections.OrderedDict(a=1),
        "default": collections.defaultdict(list, a=[1]),
        "counter": collections.Counter("aab"),
        "deque": collections.deque([1, 2], 5),
        "chain": collections.ChainMap({"a": 1}),
        "pattern": re.compile("a+", re.IGNORECASE),
        "when": datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc),
        "delta": datetime.timedelta(1),
        "decimal": decimal.Decimal("1.5"),
        "fraction": fractions.Fraction(1, 3),
        "large": 2**200,
        "larger": 2**4000,
        "negative": -(2**100),
        "complex": 1 + 2j,
        "range": range(3),
        "slice": slice(1, 2),
        "set": {1, 2},
        "frozen": frozenset([1]),
        "bytes": b"\x00\xff",
        "bytearray": bytearray(b"xy"),
        "simple": types.SimpleNamespace(a=1),
        "optional": typing.Optional[int],
        "generic": list[int],
        "error": ValueError("x"),
        "scalar": np.float32(1.5),
        "numpy_type": np.dtype("float32"),
        "array": np.arange(3),
        "random": np.random.RandomState(1),
        "iterator": iter([1, 2]),
        "zipped": zip([1], [2]),
        "keywords": Keywords(size=1),
        "stat": os.stat("/"),
        "nan": float("nan"),
        "tensor": torch.ones(2),
        "loop": loop,
    }


def with_objects(args):
    """The Namespace with all of them; what it has already stays."""
    return argparse.Namespace(**{**objects(), **vars(args)})
