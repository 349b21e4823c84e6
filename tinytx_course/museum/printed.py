"""The checklist: symptom, test, fault, on one page that can be printed.

``python -m tinytx_course.museum.printed`` prints the page that ``notebooks/bug_checklist.html`` holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from tinytx_course.museum.faults import FAULTS

FIRST_STEPS = (
    "Compare the first loss with ln V, the last held-out one with a bound, if any: clearly below is a bug.",
    "Read ten samples. Read ten rows of the data, as the model gets them.",
    "Overfit one small batch. If the loss of four rows stays high, look for a bug.",
    "Change a future word: nothing before it may move. Evaluate twice: nothing may move at all.",
    "Compare rows alone with rows in a batch, and the held-out text with text drawn anew.",
    "One change at a time, several seeds, and a healthy model to compare with.",
)
_HEAD = ("symptom", "question to ask, and the test", "fault", "the line that was wrong")
_STYLE = """\
body { font: 9pt/1.25 system-ui, sans-serif; margin: 1.2cm; color: #111; background: #fff; }
h1 { font-size: 15pt; margin: 0 0 0.2cm; } ol { margin: 0 0 0.3cm; padding-left: 0.6cm; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; }
th, td { border-top: 1px solid #999; padding: 1pt 5pt; } code { font-size: 7.5pt; }
@page { size: A4 landscape; margin: 0.8cm; } @media print { body { margin: 0; } }"""


@dataclass(frozen=True)
class Checklist:
    """The table and the six first steps; shown as HTML in a notebook, as text elsewhere."""

    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        steps = [f"{number}. {step}" for number, step in enumerate(FIRST_STEPS, start=1)]
        lines = [f"{symptom} -> {test} -> {name}" for symptom, test, name, _ in self.rows]
        return "\n".join([*steps, "", *lines])

    def _repr_html_(self) -> str:
        steps = "".join(f"<li>{escape(step)}</li>" for step in FIRST_STEPS)
        head = "".join(f"<th scope='col'>{name}</th>" for name in _HEAD)
        code = "<code>{}</code>".format
        body = "".join(
            f"<tr><td>{escape(symptom)}</td><td>{test}</td><td>{code(name)}</td><td>{code(escape(line))}</td></tr>\n"
            for symptom, test, name, line in self.rows
        )
        return f"<ol>{steps}</ol><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"

    def page(self) -> str:
        """A page of its own, for the printer."""
        title = "What is wrong with my transformer?"
        return (
            f"<!doctype html>\n<html lang='en'>\n<head><meta charset='utf-8'><title>{title}</title>\n"
            f"<style>\n{_STYLE}\n</style></head>\n<body>\n<h1>{title}</h1>\n{self._repr_html_()}\n</body>\n</html>\n"
        )


def checklist() -> Checklist:
    """The checklist of all faults of the museum."""
    from tinytx_course.museum.examining import TESTS

    return Checklist(
        tuple(
            (fault.symptom, f"{TESTS[fault.test].question} {fault.test}", fault.name, fault.broken)
            for fault in FAULTS.values()
        )
    )


if __name__ == "__main__":
    print(checklist().page(), end="")
