"""Sphinx builds one language of the site from the Markdown files as they are; `-t zh` chooses Chinese."""

import html
import json
import pathlib
import re
import sys

from docutils import nodes

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import api  # noqa: E402 - beside this file
import pages  # noqa: E402
from bigrams import ChineseBigrams  # noqa: E402

LANGUAGE = "zh" if tags.has("zh") else "en"  # noqa: F821 - Sphinx puts `tags` there
OTHER = "zh" if LANGUAGE == "en" else "en"

project = "msprobe"
release = re.search(r'^version = "(.*)"', (HERE.parents[1] / "pyproject.toml").read_text(), re.M)[1]
html_title = f"msprobe {release}"
language = "zh_CN" if LANGUAGE == "zh" else "en"
root_doc = pages.ROOT[LANGUAGE]

extensions = ["myst_parser"]
include_patterns = [f"{name}.md" for name in pages.documents(LANGUAGE)]
exclude_patterns = [".*", "build", "out", "web", "src", "include", "python", "tests", "bench", "cmake", "tools"]
myst_heading_anchors = 4
highlight_language = "none"
# Fragments of JSON are shown as such.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_search_language = LANGUAGE
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_search_scorer = str(HERE / "scorer.js")
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "language.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}


def _read(app, name, source):
    text = source[0]
    if name == pages.README[LANGUAGE]:
        # The sidebar has the link to the other language.
        text = re.sub(r"^\[[^]]+\]\(README(\.zh)?\.md\)\n", "", text, flags=re.M)
    elif name == root_doc:
        for caption, documents in pages.sections(LANGUAGE):
            entries = "\n".join(f"/{document}" for document in documents)
            text += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n"
    elif LANGUAGE == "zh" and not name.startswith("docs/zh/"):
        # A page that both sites share leads to the guides of the site it is in, whose headings have other names.
        text = re.sub(r"\]\(((?:\.\./)*(?:docs/)?)en/([^)#]*)(#[^)]*)?\)", r"](\1zh/\2)", text)
        text = re.sub(r"\]\(((?:\.\./)*)README\.md", r"](\1README.zh.md", text)
    source[0] = api.fill(text)


def _context(app, name, template, context, doctree):
    known = name in pages.documents(LANGUAGE)
    target = pages.twin(name, LANGUAGE) if known else pages.ROOT[OTHER]
    context["twin"] = context["pathto"](f"../{OTHER}/{target}.html", 1)
    context["twin_label"] = {"en": "English", "zh": "中文"}[OTHER]


def _text(node):
    """The text of a part of a page, in sections that have the anchors of the page."""
    if isinstance(node, nodes.section):
        inner = "".join(map(_text, node.children))
        for anchor in node["ids"]:
            inner = f'<section id="{anchor}">{inner}</section>'
        return inner
    if isinstance(node, nodes.document):
        return "".join(map(_text, node.children))
    return html.escape(" ".join(node.astext().split())) + " "


def _excerpts(app, error):
    """Writes what the search cuts its excerpts from, as a page that is opened from a disk may read no other page."""
    if error:
        return
    texts = {name: _text(app.env.get_doctree(name)) for name in app.env.found_docs}
    file = pathlib.Path(app.outdir) / "_static" / "texts.js"
    file.write_text(f"const TEXTS = {json.dumps(texts, ensure_ascii=False)};\n", encoding="utf-8")


def setup(app):
    app.add_search_language(ChineseBigrams)
    app.connect("source-read", _read)
    app.connect("html-page-context", _context)
    app.connect("build-finished", _excerpts)
