"""A workbook of one table, without a library: text cells are text, whatever they begin with."""

import math
import os
import re
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any
from xml.sax.saxutils import escape

from .._capture.files import open_new

_ROWS_PER_SHEET = 1_000_000
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def write_workbook(path: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Writes the table under a temporary name and renames it when it is complete."""
    starts = range(0, max(len(rows), 1), _ROWS_PER_SHEET)
    numbers = range(1, len(starts) + 1)
    temporary = f"{path}.{os.getpid()}.tmp"
    with os.fdopen(open_new(temporary), "w+b") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in _frame(numbers):
            book.writestr(name, _HEAD + text)
        for number, start in zip(numbers, starts):
            with book.open(f"xl/worksheets/sheet{number}.xml", "w", force_zip64=True) as sheet:
                sheet.write(f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetData>'.encode())
                for row in (header, *rows[start : start + _ROWS_PER_SHEET]):
                    sheet.write(f"<row>{''.join(map(_cell, row))}</row>".encode())
                sheet.write(b"</sheetData></worksheet>")
    os.replace(temporary, path)


def _cell(value: Any) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, (int, float)) and math.isfinite(value):
        return f"<c><v>{value!r}</v></c>"
    text = escape(_NOT_XML.sub("\ufffd", str(value)))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


def _frame(numbers: Iterable[int]) -> list:
    """Yields the parts of the file that declare the sheets."""
    types = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{_TYPE}.worksheet+xml"/>' for n in numbers
    )
    sheets = "".join(f'<sheet name="Sheet{n}" sheetId="{n}" r:id="rId{n}"/>' for n in numbers)
    links = "".join(
        f'<Relationship Id="rId{n}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>' for n in numbers
    )
    return [
        (
            "[Content_Types].xml",
            f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
            f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>{types}</Types>',
        ),
        (
            "_rels/.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" Type="{_OFFICE}/officeDocument" '
            f'Target="xl/workbook.xml"/></Relationships>',
        ),
        ("xl/workbook.xml", f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{sheets}</sheets></workbook>'),
        ("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>'),
    ]
