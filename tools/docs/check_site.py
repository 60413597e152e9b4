"""Fails when a page of the site would load a script, a style, a font or a picture from elsewhere, or links to a file of the
site that is not there.

    python tools/docs/check_site.py out/site
"""

import html.parser
import pathlib
import re
import sys
import urllib.parse

_LOADS = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}
_STYLE = re.compile(r"""(?:@import|url\()\s*["']?((?:https?:)?//[^"')]+)""")


class _Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.loads, self.links = [], []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag in _LOADS and values.get(_LOADS[tag]):
            self.loads.append(values[_LOADS[tag]])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        self.loads += _STYLE.findall(values.get("style") or "")


def faults_of(path):
    """What is wrong with one page or style sheet."""
    text = path.read_text()
    if path.suffix == ".css":
        return [f"loads {address}" for address in _STYLE.findall(text)]
    page = _Page()
    page.feed(text)
    found = []
    for address in page.loads + page.links:
        parts = urllib.parse.urlsplit(address)
        remote = bool(parts.scheme or parts.netloc)
        if remote and address in page.loads and parts.scheme != "data":
            found.append(f"loads {address}")
        target = path.parent / urllib.parse.unquote(parts.path)
        if not remote and address in page.loads and not target.exists():
            found.append(f"loads {address}, which does not exist")
        elif not remote and parts.path and not target.exists():
            found.append(f"links to {address}, which does not exist")
    return found


def main():
    root = pathlib.Path(sys.argv[1])
    files = [path for path in sorted(root.rglob("*")) if path.suffix in (".html", ".css")]
    faults = [f"{path}: {fault}" for path in files for fault in faults_of(path)]
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    sys.exit(1 if faults or not files else 0)


if __name__ == "__main__":
    main()
