"""A text file too large for memory, one document a line, read in parts of equal size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tinytx_run.tables import MAX_CHARS, Table, line_fault

STREAM_FROM = 256 * 2**20  # bytes of a .txt from which on it is read in parts
PART_BYTES = 16 * 2**20


@dataclass(frozen=True)
class LargeFile:
    """Lines of a file by parts: a line belongs to the part in which it begins.

    Parameters
    ----------
    path : Path
        UTF-8 text.
    part_bytes : int
        Size of a part; only one part is in memory.
    """

    path: Path
    part_bytes: int = PART_BYTES

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self.path.stat().st_size

    @property
    def n_parts(self) -> int:
        """How many parts it has, the last one perhaps smaller."""
        return max(1, -(-self.n_bytes // self.part_bytes))

    def lines(self, part: int) -> tuple[str, ...]:
        """The lines of a part that are not blank, without their ends; parts are counted modulo `n_parts`.

        Raises
        ------
        ValueError
            If a line is no text; the message names the byte at which it begins.
        """
        table, lines = Table(self.path, unit="byte"), []
        for at, raw in self._raw_lines(part % self.n_parts):
            line = raw.decode("utf-8-sig" if at == 0 else "utf-8", "surrogateescape")
            if fault := line_fault(line):
                table.refuse(at, *fault)
            elif line.strip():
                lines.append(line.rstrip("\r\n"))
        table.settle(len(lines), skip=False)
        return tuple(lines)

    def _raw_lines(self, part: int) -> Iterator[tuple[int, bytes]]:
        """Each line of a part with the byte at which it begins."""
        at, end = part * self.part_bytes, (part + 1) * self.part_bytes
        with self.path.open("rb") as file:
            if part:  # the line that holds the byte before belongs to an earlier part, whole
                file.seek(at - 1)
                at += len(file.readline()) - 1
            while at < end and (raw := file.readline(4 * MAX_CHARS + 2)):  # a longer line is refused
                yield at, raw
                at += len(raw)
