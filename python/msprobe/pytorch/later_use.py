"""Whether code that is running may still use a tensor under a name of its own.

A module that returns its argument as it came (Identity, dropout in evaluation) has no node in the graph: what its caller does with the
result and what he does with the argument itself look alike there. The code tells: after `x = drop(x)` nobody has the argument any more,
in `x + drop(x)` and `drop(x) + block(x)` somebody has.
"""

import dis
import functools
import sys
from types import CodeType, FrameType
from typing import Any, Optional

import torch

_CALLS_OF_MODULES = sys.modules[torch.nn.Module.__module__].__file__
_MOST_FRAMES = 200
_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")
_JUMPS = ("JUMP_FORWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
_ENDS_OF_STATEMENTS = ("STORE_", "DELETE_", "POP_", "RETURN_", "RAISE_", "JUMP_", "FOR_ITER")


def is_used_later(tensor: torch.Tensor) -> bool:
    """Tells whether a function that is running may read the tensor after the call of a module that it makes now.

    Containers and attributes that hold the tensor are not looked into.
    """
    frame: Optional[FrameType] = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        while frame is not None and frame.f_code.co_filename == _CALLS_OF_MODULES:
            frame = frame.f_back
        if frame is None:
            return False
        names = [name for name, value in frame.f_locals.items() if value is tensor]
        if names and not _live(frame.f_code, frame.f_lasti).isdisjoint(names):
            return True
        if not names and not any(_holds(value, tensor) for value in frame.f_locals.values()):
            return False  # so nobody further out gave it to us
        frame = frame.f_back
    return True


def _holds(value: Any, tensor: torch.Tensor) -> bool:
    items = value.values() if type(value) is dict else value if type(value) in (tuple, list) else ()
    return any(item is tensor for item in items)


@functools.lru_cache(maxsize=4096)
def _live(code: CodeType, offset: int) -> frozenset:
    """The names whose values are read after the instruction at this offset, or wait for it on the stack."""
    instructions, behind = _liveness(code)
    at = max(i for i, instruction in enumerate(instructions) if instruction.offset <= offset)
    return behind[at] | _on_the_stack(instructions, at)


@functools.lru_cache(maxsize=1024)
def _liveness(code: CodeType) -> tuple:
    instructions = list(dis.get_instructions(code))
    place = {instruction.offset: i for i, instruction in enumerate(instructions)}
    steps = [
        (*_reads_and_writes(i), [place[o] for o in _next_offsets(instructions, n)]) for n, i in enumerate(instructions)
    ]
    before: list = [frozenset()] * len(steps)
    behind: list = [frozenset()] * len(steps)
    changed = True
    while changed:
        changed = False
        for n in reversed(range(len(steps))):
            reads, writes, following = steps[n]
            behind[n] = frozenset().union(*(before[m] for m in following))
            needed = reads | (behind[n] - writes)
            changed = changed or needed != before[n]
            before[n] = needed
    return instructions, behind


def _next_offsets(instructions: list, n: int) -> list:
    instruction = instructions[n]
    jumps = instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs
    offsets = [instruction.argval] if jumps else []
    if instruction.opname not in (*_ENDS, *_JUMPS) and n + 1 < len(instructions):
        offsets.append(instructions[n + 1].offset)
    return offsets


def _reads_and_writes(instruction: dis.Instruction) -> tuple:
    name, values = instruction.opname, instruction.argval
    if not any(kind in name for kind in ("FAST", "DEREF", "NAME", "GLOBAL", "CLOSURE")):
        return frozenset(), frozenset()
    values = values if isinstance(values, tuple) else (values,)
    if name.startswith("STORE_FAST_LOAD_FAST"):  # two in one, as the next
        return frozenset(values[1:]) - frozenset(values[:1]), frozenset(values[:1])
    if name.startswith(("STORE_", "DELETE_")):
        return frozenset(), frozenset(values)
    return frozenset(values), frozenset()


def _on_the_stack(instructions: list, at: int) -> frozenset:
    """What the expression around the call has loaded and not used yet."""
    # Going back from the call, an item that is still there when it is made was never above the lowest height since.
    height, found = 0, set()
    lowest = _effect(instructions[at]) - 1  # without the callee and its arguments
    for instruction in reversed(instructions[:at]):
        if instruction.opname.startswith(_ENDS_OF_STATEMENTS) and "STORE_FAST_LOAD" not in instruction.opname:
            break
        if "LOAD_" in instruction.opname and height <= lowest:
            found |= _reads_and_writes(instruction)[0]
        height -= _effect(instruction)
        lowest = min(lowest, height)
    return frozenset(found)


def _effect(instruction: dis.Instruction) -> int:
    argument = instruction.arg if instruction.opcode >= dis.HAVE_ARGUMENT else None
    return dis.stack_effect(instruction.opcode, argument, jump=False)
