"""What ``tinytx count`` says of a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tinytx.model.config import TransformerConfig
from tinytx.model.counting import Head, build_empty, count_parameters, parameter_table
from tinytx.model.diagnosis import Diagnosis, diagnose_count
from tinytx.model.terms import ParameterTable


@dataclass(frozen=True)
class CountReport:
    """A parameter table, the count of the model built, and what is behind a number that was claimed.

    Attributes
    ----------
    config : TransformerConfig
    head : str
    table : ParameterTable
        The closed form.
    numel : int
        Counted in the model itself.
    diagnosis : Diagnosis or None
        Where a number was claimed.
    """

    config: TransformerConfig
    head: str | None
    table: ParameterTable
    numel: int
    diagnosis: Diagnosis | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        names = ("part", "name", "formula", "numbers", "count", "times", "kind", "total")
        rows = [{name: getattr(row, name) for name in names} for row in self.table.rows]
        answer: dict[str, Any] = {
            "head": self.head,
            "total": self.table.total,
            "numel": self.numel,
            "rows": rows,
        }
        answer["proportions"] = {kind: n / self.table.total for kind, n in self.table.kinds.items()}
        if self.diagnosis is not None:
            answer["diagnosis"] = {
                "claimed": self.diagnosis.claimed,
                "part": self.diagnosis.part,
                "correct": self.diagnosis.correct,
                "explanations": [sorted(slips) for slips in self.diagnosis.explanations],
                "sentence": str(self.diagnosis),
            }
        return answer | {"config": self.config.to_dict()}

    def __str__(self) -> str:
        built = f"numel of the model built: {self.numel:,}"
        lines = [str(self.table), built, "", self.table.proportions()]
        return "\n".join(lines if self.diagnosis is None else [*lines, "", str(self.diagnosis)])


def count_report(
    config: TransformerConfig,
    head: Head | None = "lm",
    n_classes: int = 2,
    claimed: int | None = None,
    part: str = "total",
) -> CountReport:
    """Count a model by closed form and by numel, and look into a number that somebody claims.

    Parameters
    ----------
    config, head, n_classes
        As in `parameter_table`.
    claimed : int, optional
        To be diagnosed.
    part : str
        What the claim is about, as in `diagnose_count`.

    Raises
    ------
    ValueError
        As in `parameter_table` and `diagnose_count`.

    Examples
    --------
    >>> from tinytx.model.config import PRESETS
    >>> report = count_report(PRESETS["seed-lab"], "lm", claimed=1_008_000)
    >>> report.table.total == report.numel
    True
    >>> print(report.diagnosis)
    1,008,000 is not right for the total: the bias of the head was forgotten.
    """
    diagnosis = None if claimed is None else diagnose_count(config, head, claimed, part, n_classes)
    numel = count_parameters(build_empty(config, head, n_classes))
    return CountReport(config, head, parameter_table(config, head, n_classes), numel, diagnosis)
