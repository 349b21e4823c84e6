"""How many numbers a transformer learns: the closed form, term by term, and the count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from torch import nn

from tinytx.model.config import TransformerConfig

Head = Literal["lm", "classifier"]


@dataclass(frozen=True)
class ParameterRow:
    """One term of the count.

    Attributes
    ----------
    part : str
        Where it belongs: "embeddings", "blocks", "final_norm" or "head".
    name : str
        The module, as in the code.
    formula : str
        In the letters V, D, F, C and the name max_len, for one block where it belongs to blocks.
    numbers : str
        The formula with the sizes put in.
    count : int
        Its value.
    times : int
        How often it occurs: once, or once a block.
    """

    part: str
    name: str
    formula: str
    numbers: str
    count: int
    times: int

    @property
    def total(self) -> int:
        """Parameters in all occurrences."""
        return self.count * self.times


@dataclass(frozen=True)
class ParameterTable:
    """Every term of a parameter count; `str` lays it out as a table.

    Attributes
    ----------
    rows : tuple of ParameterRow
        In the order of the forward pass.
    """

    rows: tuple[ParameterRow, ...]

    @property
    def total(self) -> int:
        """Parameters of the whole model."""
        return sum(row.total for row in self.rows)

    @property
    def parts(self) -> dict[str, int]:
        """Parameters of each part, in the order of the forward pass."""
        sums: dict[str, int] = {}
        for row in self.rows:
            sums[row.part] = sums.get(row.part, 0) + row.total
        return sums

    def __str__(self) -> str:
        lines = [("", "formula", "with numbers", "parameters"), *self._lines(), self._total_line()]
        widths = [max(len(line[column]) for line in lines) for column in range(4)]
        texts = [
            f"{name:<{widths[0]}}  {formula:<{widths[1]}}  {numbers:<{widths[2]}}  {count:>{widths[3]}}"
            for name, formula, numbers, count in lines
        ]
        rule = "-" * len(texts[0])
        return "\n".join([texts[0], rule, *texts[1:-1], rule, texts[-1]])

    def _lines(self) -> Iterator[tuple[str, str, str, str]]:
        in_block = [row for row in self.rows if row.part == "blocks"]
        for row in self.rows:
            name = f"  {row.name}" if row in in_block else row.name
            yield name, row.formula, row.numbers, f"{row.count:,}"
            if in_block and row is in_block[-1]:
                block, times = sum(each.count for each in in_block), row.times
                yield "one block", "", "", f"{block:,}"
                yield "all blocks", "n_layers·block", f"{times}·{block:,}", f"{times * block:,}"

    def _total_line(self) -> tuple[str, str, str, str]:
        return "total", "", " + ".join(f"{count:,}" for count in self.parts.values()), f"{self.total:,}"


def parameter_table(
    config: TransformerConfig, head: Head | None = "lm", n_classes: int = 2
) -> ParameterTable:
    """Count the parameters of a model from its settings alone, without building it.

    A linear map from D to F learns a matrix and a bias, ``D·F + F``; a norm a factor and a shift, ``2·D``.

    Parameters
    ----------
    config : TransformerConfig
        The settings.
    head : {"lm", "classifier"} or None
        What stands on the body; None counts the body alone.
    n_classes : int
        C, read for a classifier.

    Returns
    -------
    ParameterTable
        ``table.total`` equals `count_parameters` of the model built from the same settings.

    Raises
    ------
    ValueError
        If `head` is not as above or `n_classes` is smaller than 1.

    Notes
    -----
    The number of heads occurs in no formula: H heads of width D / H have together the matrices of one head
    of width D. A head tied to the embeddings learns its bias only; fixed positions learn nothing.

    Examples
    --------
    >>> config = TransformerConfig(vocab_size=10, d_model=2, n_heads=1, n_layers=3, d_ff=5)
    >>> table = parameter_table(config, head="classifier")
    >>> table.parts
    {'embeddings': 20, 'blocks': 177, 'final_norm': 4, 'head': 6}
    >>> table.total
    207
    >>> row = table.rows[3]
    >>> row.name, row.formula, row.numbers, row.count, row.times
    ('q_proj, k_proj, v_proj', '3·(D·D + D)', '3·(2·2 + 2)', 18, 3)
    """
    if head not in ("lm", "classifier", None):
        raise ValueError(f"head must be 'lm', 'classifier' or None, got {head!r}")
    if n_classes < 1:
        raise ValueError(f"n_classes must be at least 1, got {n_classes}")
    sizes = {
        "V": config.vocab_size,
        "D": config.d_model,
        "F": config.d_ff,
        "C": n_classes,
        "max_len": config.max_len,
    }
    terms = [*_embedding_terms(config), *_block_terms(config), *_last_terms(config, head)]
    return ParameterTable(tuple(_row(*term, sizes=sizes, config=config) for term in terms))


def count_parameters(model: nn.Module) -> int:
    """Count the parameters that a model holds; one that is shared counts once.

    Examples
    --------
    >>> count_parameters(nn.Linear(3, 5))
    20
    """
    return sum(parameter.numel() for parameter in model.parameters())


Term = tuple[str, str, str]  # part, name, formula


def _embedding_terms(config: TransformerConfig) -> Iterator[Term]:
    yield "embeddings", "token_embed", "V·D"
    yield "embeddings", "pos_embed", "max_len·D" if config.positions == "learned" else "0"


def _block_terms(config: TransformerConfig) -> Iterator[Term]:
    square = _linear("D", "D", config.bias)
    yield "blocks", "attn_norm", _norm(config.bias)
    yield "blocks", "q_proj, k_proj, v_proj", f"3·({square})" if config.bias else f"3·{square}"
    yield "blocks", "out_proj", square
    yield "blocks", "ff_norm", _norm(config.bias)
    yield "blocks", "up_proj", _linear("D", "F", config.bias)
    yield "blocks", "down_proj", _linear("F", "D", config.bias)


def _last_terms(config: TransformerConfig, head: Head | None) -> Iterator[Term]:
    if config.norm == "first":
        yield "final_norm", "final_norm", _norm(config.bias)
    if head == "lm" and config.tie_embeddings:
        yield "head", "lm_head, tied", "V" if config.bias else "0"
    elif head == "lm":
        yield "head", "lm_head", _linear("D", "V", config.bias)
    elif head == "classifier":
        yield "head", "class_head", _linear("D", "C", config.bias)


def _linear(wide_in: str, wide_out: str, bias: bool) -> str:
    return f"{wide_in}·{wide_out} + {wide_out}" if bias else f"{wide_in}·{wide_out}"


def _norm(bias: bool) -> str:
    return "2·D" if bias else "D"


def _row(
    part: str, name: str, formula: str, *, sizes: dict[str, int], config: TransformerConfig
) -> ParameterRow:
    numbers = re.sub(r"[A-Za-z_]+", lambda letter: str(sizes[letter.group()]), formula)
    times = config.n_layers if part == "blocks" else 1
    return ParameterRow(part, name, formula, numbers, _evaluate(numbers), times)


def _evaluate(numbers: str) -> int:
    """Value of sums and products such as ``3·(200·200 + 200)``."""
    factor, _, inner = numbers.partition("·(")
    if inner:
        return int(factor) * _evaluate(inner.removesuffix(")"))
    total = 0
    for summand in numbers.split(" + "):
        product = 1
        for number in summand.split("·"):
            product *= int(number)
        total += product
    return total
