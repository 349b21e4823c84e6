"""What a check answers: passed or not, and the mistake by name."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tinytx_course.exercises.card import Part, as_html, as_text

if TYPE_CHECKING:
    from tinytx_course.exercises.judging import Trial


@dataclass(frozen=True)
class Verdict:
    """The answer of `check`; true in a condition exactly when the exercise is passed.

    Attributes
    ----------
    exercise : str
        Its name.
    passed : bool
        Whether the function does what the exercise asks for.
    parts : tuple of Part
        What the message is made of: paragraphs, and rows of grids.
    mistake : str or None
        The slug of the mistake, if it is a known one; ``+`` joins two that were made together.
    attempted : bool
        False for a stub: neither passed nor a mistake.
    finding : str
        Of the message, the words that name the mistake or the failure; empty where nothing is known but that
        the result differs.
    trial : Trial or None
        The call that shows it, if it is one call.

    Notes
    -----
    ``str()`` gives the whole as text. A notebook shows a card, once: `check` has it displayed, and the value
    at the end of that same cell stays quiet.
    """

    exercise: str
    passed: bool
    parts: tuple[Part, ...] = field(repr=False)
    mistake: str | None = None
    attempted: bool = True
    finding: str = field(default="", repr=False)
    trial: Trial | None = field(default=None, repr=False, compare=False)
    _shown_in: list[int] = field(default_factory=list, init=False, repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.passed

    @property
    def message(self) -> str:
        """The smallest input that shows the mistake, expected and got, what it is and where to read."""
        return as_text(self.parts)

    @property
    def state(self) -> str:
        """``passed``, ``not yet`` or ``not attempted yet``."""
        if self.passed:
            return "passed"
        return "not yet" if self.attempted else "not attempted yet"

    @property
    def _heading(self) -> str:
        sign = {"passed": "✓", "not yet": "✗", "not attempted yet": "…"}[self.state]
        return f"{sign} {self.exercise}: {self.state}"

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold: the five fields that say it all."""
        names = ("exercise", "passed", "attempted", "mistake", "message")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        return f"{self._heading}\n{self.message}".rstrip()

    def _repr_html_(self) -> str:
        return as_html(self._heading, self.parts, self.state)

    def _ipython_display_(self) -> None:
        if _cell() not in self._shown_in:
            self.show()

    def show(self) -> None:
        """Show it: as a card in a notebook, printed elsewhere."""
        shell = _shell()
        self._shown_in.append(_cell())
        if hasattr(shell, "kernel"):
            from IPython.display import display

            display({"text/html": self._repr_html_(), "text/plain": str(self)}, raw=True)
        else:
            print(self)


def _shell() -> Any:
    """The running IPython shell, if there is one; IPython is not imported for it."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _cell() -> int:
    return getattr(_shell(), "execution_count", 0)
