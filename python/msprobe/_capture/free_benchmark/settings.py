"""The keys of the section free_benchmark in config.json."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

FORWARD, BACKWARD = "forward", "backward"
CHECK, FIX = "check", "fix"
NPU, CPU = "npu", "cpu"
ADD_NOISE, BIT_NOISE, CHANGE_VALUE = "add_noise", "bit_noise", "change_value"
IMPROVE_PRECISION, NO_CHANGE, TO_CPU = "improve_precision", "no_change", "to_cpu"
MODES = (ADD_NOISE, CHANGE_VALUE, IMPROVE_PRECISION, NO_CHANGE, BIT_NOISE, TO_CPU)


class Settings(NamedTuple):
    """What is changed, and what becomes of the results.

    Attributes:
        fuzz_device: `npu` for the device of the script, whichever it is; `cpu` with pert_mode `to_cpu`.
        pert_mode: How the inputs are changed.
        handler_type: `check` writes down what differs; `fix` gives the script the results of the changed call.
        fuzz_level: `L1`.
        fuzz_stage: `forward` or `backward`.
        if_preheat: Whether thresholds are found in the first steps, by comparing with the CPU.
        preheat_step: Steps that this takes.
        max_sample: At most so many calls of a function are compared with the CPU in each of these steps.
    """

    fuzz_device: str = NPU
    pert_mode: str = IMPROVE_PRECISION
    handler_type: str = CHECK
    fuzz_level: str = "L1"
    fuzz_stage: str = FORWARD
    if_preheat: bool = False
    preheat_step: int = 15
    max_sample: int = 15

    @classmethod
    def of(cls, section: Mapping) -> "Settings":
        """Returns the settings of a section; what it does not have has its default."""
        return cls(**{name: section[name] for name in cls._fields if section.get(name) is not None})

    def fault(self, modes: Sequence = MODES) -> tuple[str, Any, str]:
        """Finds the first value that cannot be.

        Args:
            modes: What the framework has.

        Returns:
            The key, its value and what is allowed; three empty texts when all is well.
        """
        fixes = self.handler_type == FIX
        devices = (NPU, CPU) if TO_CPU in modes else (NPU,)
        rules = (
            ("pert_mode", self.pert_mode in modes, ", ".join(modes)),
            ("fuzz_device", self.fuzz_device in devices, ", ".join(devices)),
            (
                "fuzz_device",
                (self.fuzz_device == CPU) == (self.pert_mode == TO_CPU),
                "cpu with pert_mode to_cpu, else npu",
            ),
            ("handler_type", self.handler_type in (CHECK, FIX), "check, fix"),
            ("fuzz_stage", self.fuzz_stage in (FORWARD, BACKWARD), "forward, backward"),
            ("fuzz_level", self.fuzz_level == "L1", "L1"),
            ("if_preheat", isinstance(self.if_preheat, bool), "true, false"),
            ("preheat_step", _is_count(self.preheat_step), "a whole number above 0"),
            ("max_sample", _is_count(self.max_sample), "a whole number above 0"),
            ("if_preheat", not (fixes and self.if_preheat), "false with handler_type fix"),
            ("fuzz_stage", not fixes or self.fuzz_stage == FORWARD, "forward with handler_type fix"),
            (
                "pert_mode",
                not fixes or self.pert_mode in (IMPROVE_PRECISION, TO_CPU),
                "improve_precision, to_cpu with handler_type fix"
                if TO_CPU in modes
                else "improve_precision with handler_type fix",
            ),
        )
        for name, holds, allowed in rules:
            if not holds:
                return name, getattr(self, name), allowed
        return "", "", ""


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
