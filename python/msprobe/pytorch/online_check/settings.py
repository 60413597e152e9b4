"""The keys of the section tensor that send calls to a checker, as mindstudio-probe 8.x has them, and four of our own."""

import ipaddress
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

_MOST_QUEUE, _MOST_WAIT = 1 << 20, 3600


class Settings(NamedTuple):
    """Where calls go, and how much the training waits for it.

    Attributes:
        online_run_ut: Whether calls are sent at all.
        nfs_path: A directory that both sides have; with it host, port and tls_path have no effect.
        host: Address of the checker.
        port: Its port.
        tls_path: Directory of client.key, client.crt and ca.crt; "" for connections without TLS.
        token_path: File of the token that the checker wants, readable by its owner only; "" without one.
        online_run_ut_recompute: Whether the training computes activations again; then no gradients are sent.
        online_queue_mb: Megabytes of steps that wait to be sent. A step that begins beyond them is left out.
        online_wait: Seconds that a step waits at most before it is left out.
        online_end_wait: Seconds that the end of the training waits at most for the last calls to be acknowledged.
    """

    online_run_ut: bool = False
    nfs_path: str = ""
    host: str = ""
    port: int = -1
    tls_path: str = ""
    token_path: str = ""
    online_run_ut_recompute: bool = False
    online_queue_mb: int = 1024
    online_wait: float = 10
    online_end_wait: float = 60

    @classmethod
    def of(cls, section: Mapping) -> "Settings":
        """Returns the settings of a section; what it does not have has its default."""
        return cls(**{name: section[name] for name in cls._fields if section.get(name) is not None})

    def fault(self) -> tuple[str, Any, str]:
        """Finds the first value that cannot be.

        Returns:
            The key, its value and what is allowed; three empty texts when all is well.
        """
        rules = [
            ("online_run_ut", isinstance(self.online_run_ut, bool), "true or false"),
            ("online_run_ut_recompute", isinstance(self.online_run_ut_recompute, bool), "true or false"),
            ("online_queue_mb", _is_number(self.online_queue_mb, 1, _MOST_QUEUE), "a number of megabytes from 1"),
            ("online_wait", _is_number(self.online_wait, 0, _MOST_WAIT), "seconds from 0 to 3600"),
            ("online_end_wait", _is_number(self.online_end_wait, 0, _MOST_WAIT), "seconds from 0 to 3600"),
            ("nfs_path", isinstance(self.nfs_path, str), "a string"),
        ]
        if self.nfs_path:
            rules.append(("nfs_path", os.path.isdir(str(self.nfs_path)), "a directory that both sides have"))
        else:
            rules += [
                ("host", _is_address(self.host), "the address of the checker"),
                ("port", _is_number(self.port, 1, 65535) and isinstance(self.port, int), "a port from 1 to 65535"),
                ("tls_path", isinstance(self.tls_path, str), "a string"),
                (
                    "tls_path",
                    self._has_certificates(),
                    'a directory of client.key, client.crt and ca.crt, or "" for none',
                ),
                ("token_path", isinstance(self.token_path, str), "a string"),
                ("tls_path", self._is_protected(), "given for a checker on another machine, or token_path"),
                ("token_path", not self.token_path or os.path.isfile(str(self.token_path)), "the file of the token"),
            ]
        for name, holds, allowed in rules if self.online_run_ut is not False else ():
            if not holds:
                return name, getattr(self, name), allowed
        return "", "", ""

    def _has_certificates(self) -> bool:
        if not self.tls_path or not isinstance(self.tls_path, str):
            return True
        names = ("client.key", "client.crt", "ca.crt")
        return all(os.path.isfile(os.path.join(self.tls_path, name)) for name in names)

    def _is_protected(self) -> bool:
        return bool(self.tls_path or self.token_path) or self.host in ("localhost", "::1") or self.host[:4] == "127."


def _is_number(value: Any, least: float, most: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most


def _is_address(value: Any) -> bool:
    if value == "localhost":
        return True
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True
