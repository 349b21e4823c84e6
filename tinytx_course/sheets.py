"""Tables as a spreadsheet saves them, which teachers hand in."""

from __future__ import annotations

import csv
import io
from pathlib import Path


def read_sheet(path: Path) -> list[tuple[int, list[str]]]:
    """Rows of a table in UTF-8 with the numbers of their lines; commas, semicolons or tabs separate cells.

    Raises
    ------
    ValueError
        If it is no such table.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        first, _, rest = text.partition("\n")
        names_sign = first.lower().replace(" ", "").lstrip('"').startswith("sep=")  # as Excel does
        head = rest.partition("\n")[0] if names_sign else first
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count))
        return [(reader.line_num, cells) for cells in reader][names_sign:]
    except (csv.Error, UnicodeDecodeError) as error:  # such as a field of more than 131,072 letters
        raise ValueError(f"{path} must be a table in UTF-8, got one that cannot be read: {error}") from error
