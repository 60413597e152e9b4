"""What TensorBoard loads (entry point `tensorboard_plugins`). Requests go to the C++ that `msprobe serve` uses."""

import os
import threading
from http import HTTPStatus
from importlib import metadata
from urllib.parse import quote

from tensorboard.plugins import base_plugin
from tensorboard.util import tb_logging

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


def may_convert(flags) -> bool:
    """Dumps below --logdir may be converted unless whoever starts TensorBoard forbids it."""
    forbidden = getattr(flags, "msprobe_no_convert", False) or os.environ.get("MSPROBE_NO_CONVERT", "") not in ("", "0")
    return not forbidden


class PageLoader(base_plugin.TBLoader):
    def define_flags(self, parser):
        group = parser.add_argument_group("msprobe plugin")
        group.add_argument(
            "--msprobe_no_convert",
            action="store_true",
            help="Offer no conversion of dumps below --logdir in the page (also: MSPROBE_NO_CONVERT=1).",
        )

    def load(self, context):
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
    plugin_name = NAME

    def __init__(self, context, name=NAME):
        super().__init__(context)
        self.plugin_name = name
        self._below = len(f"/data/plugin/{name}")
        self._directory = os.path.abspath(os.path.expanduser(context.logdir or "."))
        self._may_convert = may_convert(context.flags)
        self._page = None
        self._making = threading.Lock()

    def is_active(self):
        return True

    def frontend_metadata(self):
        return base_plugin.FrontendMetadata(es_module_path="/index.js", disable_reload=True)

    def get_plugin_apps(self):
        return {"/index.js": _entry, "/*": self._answer}

    def _made(self):
        """At the first request, so that TensorBoard starts as quickly as without us."""
        with self._making:
            if self._page is None:
                from msprobe._environment import find_command
                from msprobe._page import make

                command = find_command() if self._may_convert else None
                self._page = make(os.fsencode(self._directory), os.fsencode(command or ""))
            return self._page

    def _answer(self, environ, start_response):
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


def _entry(environ, start_response):
    start_response("200 OK", [*_ENTRY_HEADERS, ("Content-Length", str(len(_ENTRY)))])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [_ENTRY]


def _body(environ):
    """How long it says it is, and itself; a large one is refused for its length and not read."""
    length = environ.get("CONTENT_LENGTH") or "0"
    length = min(int(length), 1 << 60) if length.isascii() and length.isdigit() and len(length) < 20 else 1 << 60
    return length, environ["wsgi.input"].read(length) if length <= MAX_BODY else b""
