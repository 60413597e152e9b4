"""msprobe.show(): a graph, a run, trends or a report in a notebook, in a frame of its own."""

import html
import os
import subprocess
import tempfile
from typing import Union

from ._compare_result import CompareInputError
from ._environment import find_command


class ShownPage:
    """A page in one file. A notebook draws it; elsewhere its path is printed."""

    def __init__(self, path: str, height: int) -> None:
        """Reads nothing yet.

        Args:
            path: Of the page.
            height: Of the frame, in pixels.
        """
        self.path = path
        self.height = height

    def _repr_html_(self) -> str:
        """Returns the frame; its scripts can reach neither the notebook nor a network."""
        with open(self.path, encoding="utf-8") as file:
            page = file.read()
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" style="width:100%;height:{self.height}px;border:0" '
            f'title="msprobe" srcdoc="{html.escape(page)}"></iframe>'
        )

    def __repr__(self) -> str:
        """Returns where the page is."""
        return f"msprobe page: {self.path}"


def show(path: Union[str, os.PathLike], *, height: int = 720) -> ShownPage:
    """Shows a result in a notebook, also in VS Code, without a server.

    Args:
        path: A `.vis.db` or `.trend.db` file, the directory of one or of a monitored run, or the HTML file of a report.
        height: Of the frame, in pixels.

    Returns:
        The page, which the notebook draws as the last value of a cell.

    Raises:
        CompareInputError: There is nothing at the path that can be shown.
    """
    path = os.fspath(path)
    if path.endswith(".html"):
        if not os.path.isfile(path):
            raise CompareInputError(f"{path} does not exist: check the path")
        return ShownPage(path, height)
    command = find_command()
    if command is None:
        raise CompareInputError("the program msprobe is not installed beside this package: install msprobe again")
    page = os.path.join(tempfile.mkdtemp(prefix="msprobe_show_"), "page.html")
    done = subprocess.run([command, "export", path, "-o", page], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompareInputError(done.stderr.strip().removeprefix("[msprobe] error: "))
    return ShownPage(page, height)
