"""The exception of wrong configurations and calls. Its text begins in the language of the locale."""

from .._environment import is_chinese


class MsprobeException(RuntimeError):
    """Invalid configuration or call, or the end of the recorded range with `exit_after_range`.

    While recording, no other exception of the tool reaches the training script.

    Attributes:
        code: INVALID_PARAM_ERROR, INTERFACE_USAGE_ERROR (called at the wrong time) or CAPTURE_ERROR (end of the range, or
            PrecisionDebugger has not been constructed).
        error_info: The message: what, where, and what is allowed.
    """

    INVALID_PARAM_ERROR = 0
    INTERFACE_USAGE_ERROR = 3
    CAPTURE_ERROR = 10

    _PREFIXES = {
        INVALID_PARAM_ERROR: ("Invalid parameter: ", "无效参数："),
        INTERFACE_USAGE_ERROR: ("Invalid interface usage: ", "接口使用错误："),
    }

    def __init__(self, code: int, error_info: str = "") -> None:
        """Prefixes the message with the kind of error.

        Args:
            code: One of the three codes.
            error_info: The message.
        """
        super().__init__(code, error_info)
        self.code = code
        begin = "" if code == self.CAPTURE_ERROR else "[msprobe] "
        self.error_info = begin + self._PREFIXES.get(code, ("", ""))[is_chinese()] + error_info

    def __str__(self) -> str:
        """Returns the message without the code."""
        return self.error_info
