"""Four short derivations of a parameter count, each with one slip for the reader to find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tinytx.model.config import TransformerConfig


@dataclass(frozen=True)
class Line:
    """One line of a derivation.

    Attributes
    ----------
    what : str
        What is counted.
    working : str
        Letters, then numbers, joined by "=".
    number : int
        What the line arrives at.
    """

    what: str
    working: str
    number: int

    def __str__(self) -> str:
        return f"{self.what}: {self.working} = {self.number:,}"


@dataclass(frozen=True)
class Derivation:
    """A count with one wrong line; the lines below it reckon on with what it gave.

    Attributes
    ----------
    config : TransformerConfig
        The model that is counted.
    head : str
        "lm" or "classifier".
    n_classes : int
        Of the classifier.
    lines : tuple of Line
        Numbered from 1.
    wrong_line : int
        Where the slip is.
    right_number : int
        What should stand there.
    hint : str
        Why, for who has found it.
    """

    config: TransformerConfig
    head: str
    n_classes: int
    lines: tuple[Line, ...]
    wrong_line: int
    right_number: int
    hint: str

    @property
    def claimed(self) -> int:
        """The total it arrives at."""
        return self.lines[-1].number

    def __str__(self) -> str:
        config = self.config
        head = "language model" if self.head == "lm" else f"classifier with {self.n_classes} classes"
        sizes = (
            f"{head}: V = {config.vocab_size}, D = {config.d_model}, F = {config.d_ff}, "
            f"{config.n_layers} layers, {config.n_heads} heads"
        )
        return "\n".join([sizes, *(f"  {number}. {line}" for number, line in enumerate(self.lines, 1))])


def check(name: str, line: object = ..., number: object = ...) -> str:
    """Say whether the slip of a derivation was found.

    Parameters
    ----------
    name : str
        One of ``DERIVATIONS``.
    line : int
        The number of the line with the slip; ``...`` while it is not known.
    number : int
        What that line should arrive at.

    Returns
    -------
    str
        A sentence for the reader.

    Raises
    ------
    ValueError
        If there is no such derivation.

    Examples
    --------
    >>> check("A")
    'A: not attempted yet.'
    >>> check("A", line=1, number=240)
    'A: line 1 is right as it stands. Look at the others.'
    """
    if name not in DERIVATIONS:
        raise ValueError(f"name must be one of {', '.join(DERIVATIONS)}, got {name!r}")
    derivation = DERIVATIONS[name]
    if line is ... or line is None:
        return f"{name}: not attempted yet."
    if not isinstance(line, int) or line not in range(1, len(derivation.lines) + 1):
        return f"{name}: line must be a number from 1 to {len(derivation.lines)}, got {line!r}."
    if line != derivation.wrong_line:
        if line > derivation.wrong_line and _passes_on(derivation, line):
            return f"{name}: line {line} reckons rightly with a number from further up. Look there."
        return f"{name}: line {line} is right as it stands. Look at the others."
    if number is ... or number is None:
        return f"{name}: line {line} it is. What should it arrive at?"
    if number != derivation.right_number:
        return f"{name}: line {line} it is, but it should not arrive at {number!r}."
    return f"{name}: found! {derivation.hint}"


def _passes_on(derivation: Derivation, line: int) -> bool:
    """Whether a line below the slip uses what the slip gave: the layers and the total do."""
    return derivation.lines[line - 1].what in ("all layers", "total")


def _derivation(
    config: TransformerConfig,
    *,
    slip: dict[str, tuple[str, int]],
    hint: str,
    head: str = "lm",
    n_classes: int = 2,
) -> Derivation:
    """Write a derivation out, the part named in `slip` with another working and number."""
    v, d, f = config.vocab_size, config.d_model, config.d_ff
    out, letter = (v, "V") if head == "lm" else (n_classes, "C")
    right = {
        "embedding": (f"V·D = {v}·{d}", v * d),
        "attention": (f"4·(D·D + D) = 4·({d}·{d} + {d})", 4 * (d * d + d)),
        "feed-forward": (f"2·D·F + F + D = 2·{d}·{f} + {f} + {d}", 2 * d * f + f + d),
        "norms": (f"2·2·D = 2·2·{d}", 4 * d),
        "head": (f"D·{letter} + {letter} = {d}·{out} + {out}", d * out + out),
    }
    written = right | slip
    each = [written[part][1] for part in ("attention", "feed-forward", "norms")]
    layers = config.n_layers * sum(each)
    lines = [Line(part, *written[part]) for part in ("embedding", "attention", "feed-forward", "norms")]
    lines.append(Line("all layers", f"{config.n_layers}·({' + '.join(map(str, each))})", layers))
    lines.append(Line("head", *written["head"]))
    ends = written["embedding"][1], written["head"][1]
    lines.append(Line("total", f"{ends[0]} + {layers} + {ends[1]}", ends[0] + layers + ends[1]))
    (wrong,) = slip
    position = [line.what for line in lines].index(wrong) + 1
    return Derivation(config, head, n_classes, tuple(lines), position, right[wrong][1], hint)


def _config(vocab_size: int, d_model: int, n_heads: int, n_layers: int, d_ff: int) -> TransformerConfig:
    return TransformerConfig(
        vocab_size=vocab_size, d_model=d_model, n_heads=n_heads, n_layers=n_layers, d_ff=d_ff, norm="last"
    )


DERIVATIONS: Mapping[str, Derivation] = {
    "A": _derivation(
        _config(30, 8, 2, 2, 12),
        slip={"attention": ("H·D² = 2·8·8", 128)},
        hint=(
            "Attention has four matrices, for queries, keys, values and the way out, each with a bias; "
            "how many heads share them does not matter."
        ),
    ),
    "B": _derivation(
        _config(40, 6, 3, 3, 24),
        head="classifier",
        n_classes=5,
        slip={"norms": ("2·D = 2·6", 12)},
        hint="A layer has two norms, one for attention and one for the feed-forward network.",
    ),
    "C": _derivation(
        _config(20, 10, 5, 4, 10),
        slip={"feed-forward": ("2·D·F + F + D = 2·10·10", 200)},
        hint="The biases are written down in letters, and lost when the numbers are put in.",
    ),
    "D": _derivation(
        _config(16, 8, 4, 2, 8),
        slip={"norms": ("2·D·H = 2·8·4", 64)},
        hint=(
            "There are two norms in a layer, whatever the number of heads: with 2 heads the formula gave "
            "the right number by luck."
        ),
    ),
}
