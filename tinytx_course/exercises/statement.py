"""What an exercise asks: written in its file, and put into its lesson by the build.

In the source of a lesson the line ``[exercise: attention]`` stands for all of it, with heading and hints.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Statement:
    """What an exercise asks, and how much it asks for; its text is Markdown.

    Raises
    ------
    ValueError
        If a number is out of range, or a text is missing.

    Examples
    --------
    >>> print(Statement(2, "a mask", 1, 5, 3, "Write `f`.", ("Compare.",)))
    ### Exercise: a mask
    <BLANKLINE>
    `Level 1/5 · 5 minutes · outcome 3`
    <BLANKLINE>
    Write `f`.
    <BLANKLINE>
    <details><summary>Hint</summary>
    <BLANKLINE>
    Compare.
    <BLANKLINE>
    </details>
    """

    lesson: int
    title: str  # without *Exercise:*, as ``the padding mask``
    level: int  # from 1 to 5
    minutes: int  # from 2 to 60
    outcome: int  # number of the outcome of the lesson that it trains
    statement: str = field(repr=False)  # the task, with shapes
    hints: tuple[str, ...] = field(repr=False)  # each is folded

    def __post_init__(self) -> None:
        for name, least, most in (("level", 1, 5), ("minutes", 2, 60), ("outcome", 1, 9)):
            if not least <= (number := getattr(self, name)) <= most:
                raise ValueError(f"{name} must be from {least} to {most}, got {number}")
        for text in (self.title, self.statement, *(self.hints or [""])):
            if not isinstance(text, str) or not text.strip():
                raise ValueError(f"title, statement and hints must be texts that say something, got {text!r}")

    @property
    def heading(self) -> str:
        """Its line in the lesson."""
        return f"### Exercise: {self.title}"

    def __str__(self) -> str:
        about = f"`Level {self.level}/5 · {self.minutes} minutes · outcome {self.outcome}`"
        folded = (f"<details><summary>Hint</summary>\n\n{hint.strip()}\n\n</details>" for hint in self.hints)
        return "\n\n".join([self.heading, about, self.statement.strip(), *folded])
