"""What TensorBoard loads (entry point `tensorboard_plugins`). Requests go to the C++ that `msprobe serve` uses."""

import argparse
import os
import threading
from http import HTTPStatus
from importlib import metadata
from typing import Any, Callable
from urllib.parse import quote

from tensorboard.plugins import base_plugin
from tensorboard.util import tb_logging

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], list[bytes]]

NAME = "graph_ascend"
# TensorBoard does not start with two plugins of one name. An earlier plugin cannot be moved from here, so ours gives way.
NAME_BESIDE_ANOTHER = "graph_msprobe"
MAX_BODY = 1 << 20

# The frame's first page is TensorBoard's own; ours takes its place, below whatever prefix TensorBoard is served at.
_ENTRY = b"export function render() { window.location.replace(new URL('index.html', import.meta.url)); }\n"
_ENTRY_HEADERS = [
    ("Content-Type", "text/javascript; charset=utf-8"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
]


def another_plugin() -> str:
    """Who else claims the name in this environment; empty if nobody."""
    found = metadata.entry_points()
    plugins = found.select(group="tensorboard_plugins") if hasattr(found, "select") else found["tensorboard_plugins"]
    for plugin in plugins:
        if plugin.name == NAME and not plugin.value.startswith("msprobe.tensorboard."):
            owner = getattr(plugin, "dist", None)
            return owner.metadata["Name"] if owner else plugin.value.split(":")[0]
    return ""


def may_convert(flags: Any) -> bool:
    """Dumps below --logdir may be converted unless whoever starts TensorBoard forbids it."""
    forbidden = getattr(flags, "msprobe_no_convert", False) or os.environ.get("MSPROBE_NO_CONVERT", "") not in ("", "0")
    return not forbidden


class PageLoader(base_plugin.TBLoader):
    """Creates the plugin when TensorBoard starts (entry point `tensorboard_plugins`)."""

    def define_flags(self, parser: argparse.ArgumentParser) -> None:
        """Adds --msprobe_no_convert to TensorBoard's flags.

        Args:
            parser: The parser of TensorBoard's command line.
        """
        group = parser.add_argument_group("msprobe plugin")
        group.add_argument(
            "--msprobe_no_convert",
            action="store_true",
            help="Offer no conversion of dumps below --logdir in the page (also: MSPROBE_NO_CONVERT=1).",
        )

    def load(self, context: base_plugin.TBContext) -> "PagePlugin":
        """Creates the plugin, and logs a warning if another plugin already has its name.

        Args:
            context: TensorBoard's settings: --logdir and flags.

        Returns:
            The plugin. Its tab is GRAPH_ASCEND, or GRAPH_MSPROBE if another plugin has that name.
        """
        other = another_plugin()
        if other:
            tb_logging.get_logger().warning(
                "%s is installed as well and keeps the tab %s; msprobe's page is the tab %s (/#%s). "
                "For %s to be msprobe's: pip uninstall %s",
                other,
                NAME.upper(),
                NAME_BESIDE_ANOTHER.upper(),
                NAME_BESIDE_ANOTHER,
                NAME.upper(),
                other,
            )
        return PagePlugin(context, NAME_BESIDE_ANOTHER if other else NAME)


class PagePlugin(base_plugin.TBPlugin):
    """The tab that shows the page. Requests go to the C++ server code that `msprobe serve` uses.

    Attributes:
        plugin_name: Name of the tab, in lower case.
    """

    plugin_name = NAME

    def __init__(self, context: base_plugin.TBContext, name: str = NAME) -> None:
        """Stores the settings; the page itself is created by the first request.

        Args:
            context: TensorBoard's settings: --logdir and flags.
            name: Name of the tab.
        """
        super().__init__(context)
        self.plugin_name = name
        self._below = len(f"/data/plugin/{name}")
        self._directory = os.path.abspath(os.path.expanduser(context.logdir or "."))
        self._may_convert = may_convert(context.flags)
        self._page: Any = None
        self._making = threading.Lock()

    def is_active(self) -> bool:
        """Always true: the page itself says when --logdir contains no graphs."""
        return True

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """Points TensorBoard to the page; TensorBoard's reload button does not apply to it."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", disable_reload=True)

    def get_plugin_apps(self) -> dict[str, WsgiApp]:
        """Maps paths below /data/plugin/{name} to the WSGI functions that answer them."""
        return {"/index.js": _entry, "/*": self._answer}

    def _made(self) -> Any:
        """The page, made at the first request, so that TensorBoard starts as quickly as without us."""
        with self._making:
            if self._page is None:
                from msprobe._environment import find_command
                from msprobe._page import make

                command = find_command() if self._may_convert else None
                self._page = make(os.fsencode(self._directory), os.fsencode(command or ""))
            return self._page

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        path = environ.get("PATH_INFO", "").encode("latin-1")[self._below :]
        target = quote(path, safe="/")
        if environ.get("QUERY_STRING"):
            target += "?" + environ["QUERY_STRING"]
        method = environ["REQUEST_METHOD"]
        token = environ.get("HTTP_X_MSPROBE_TOKEN", "")
        length, sent = _body(environ)
        kind = environ.get("CONTENT_TYPE", "")
        status, headers, body = self._made().answer(method, target, token, kind, length, sent)
        start_response(f"{status} {HTTPStatus(status).phrase}", [*headers, ("Content-Length", str(len(body)))])
        return [] if method == "HEAD" else [body]


def _entry(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    start_response("200 OK", [*_ENTRY_HEADERS, ("Content-Length", str(len(_ENTRY)))])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [_ENTRY]


def _body(environ: dict[str, Any]) -> tuple[int, bytes]:
    """The length that a request's body says it has, and the body; a large one is refused for its length and not read."""
    length = environ.get("CONTENT_LENGTH") or "0"
    length = min(int(length), 1 << 60) if length.isascii() and length.isdigit() and len(length) < 20 else 1 << 60
    return length, environ["wsgi.input"].read(length) if length <= MAX_BODY else b""
