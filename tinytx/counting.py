"""How many parameters a transformer has: the closed form, term by term, and the count."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, get_args

import torch
from torch import nn

from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.settings import check_whole, require
from tinytx.transformer import LanguageModel, Transformer

# Parts that occur once a layer, and the names of the lines below them.
LAYERS = {"blocks": "block", "encoder": "encoder block", "decoder": "decoder block"}
KINDS = ("embeddings", "attention", "feed_forward", "norms", "head")


@dataclass(frozen=True)
class Term:
    """One term of a count, in letters; for one block where it belongs to blocks.

    A formula is a sum of products, such as ``D·F + F``, or a factor and such a sum, ``3·(D·D + D)``.
    """

    part: str  # "embeddings", "blocks" (or "encoder" and "decoder"), "final_norm" or "head"
    kind: str  # one of KINDS, in whatever part
    name: str  # the module, as in the code
    formula: str


@dataclass(frozen=True)
class ParameterRow(Term):
    """A term with the sizes put in: the formula in numbers, its value, and how often it occurs."""

    numbers: str
    count: int
    times: int

    @property
    def total(self) -> int:
        """Parameters in all occurrences."""
        return self.count * self.times


@dataclass(frozen=True)
class ParameterTable:
    """Every term of a parameter count, in the order of the forward pass; `str` prints it as a table."""

    rows: tuple[ParameterRow, ...]

    @property
    def total(self) -> int:
        """Parameters of the whole model."""
        return sum(row.total for row in self.rows)

    @property
    def parts(self) -> dict[str, int]:
        """Parameters of each part, in the order of the forward pass."""
        parts = dict.fromkeys(row.part for row in self.rows)
        return {part: sum(row.total for row in self.rows if row.part == part) for part in parts}

    @property
    def kinds(self) -> dict[str, int]:
        """Parameters of each kind, all layers together."""
        kinds = {row.kind for row in self.rows}
        return {kind: sum(r.total for r in self.rows if r.kind == kind) for kind in KINDS if kind in kinds}

    def proportions(self, width: int = 40) -> str:
        """Print the kinds as bars, the whole being `width` characters wide.

        Examples
        --------
        >>> from tinytx.config import PRESETS
        >>> print(parameter_table(PRESETS["seed-lab"]).proportions(width=20))
        embeddings    ▍                        20,000    2.0 %
        attention     ████████████▊           643,200   63.8 %
        feed_forward  ██████▍                 321,600   31.9 %
        norms         ▏                         3,200    0.3 %
        head          ▍                        20,100    2.0 %
        """
        rows, total = [], max(self.total, 1)
        for kind, count in self.kinds.items():
            eighths = max(round(count / total * width * 8), int(count > 0))  # nothing that exists disappears
            bar = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
            number, percent = f"{count:,}".rjust(len(f"{total:,}")), f"{100 * count / total:.1f} %"
            rows.append((kind, bar.ljust(width), number, percent.rjust(7)))
        return "\n".join(aligned(rows))

    def __str__(self) -> str:
        rows = list(self._lines())
        sums = " + ".join(f"{count:,}" for count in self.parts.values() if count)
        total = f"{self.total:,}".rjust(len("parameters"))
        # The sum of the last line may reach over two columns.
        numbers = "with numbers".ljust(len(sums) - max(len(row[1]) for row in rows) - 2)
        header, *lines = aligned([("", "formula", numbers, "parameters".rjust(len(total))), *rows])
        rule, last = "-" * len(header), f"{sums}  {total}".rjust(len(header) - len("total"))
        return "\n".join([header, rule, *lines, rule, f"total{last}"])

    def _lines(self) -> Iterator[tuple[str, str, str, str]]:
        for part, rows in groupby(self.rows, lambda row: row.part):
            block = 0
            for row in rows:
                indent = "  " if part in LAYERS else ""
                yield indent + row.name, row.formula, row.numbers, f"{row.count:,}"
                block += row.count
            if part in LAYERS:
                name = LAYERS[part]
                yield f"one {name}", "", "", f"{block:,}"
                yield f"all {name}s", "n_layers·block", f"{row.times}·{block:,}", f"{row.times * block:,}"


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lay out columns: the last to the right, the others to the left."""
    *widths, last = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = [[text.ljust(width) for text, width in zip(row, widths, strict=False)] for row in rows]
    return ["  ".join([*cells, row[-1].rjust(last)]) for cells, row in zip(left, rows, strict=True)]


def make_table(terms: Iterable[Term], sizes: Mapping[str, int], times: Mapping[str, int]) -> ParameterTable:
    """Put sizes, the value of each letter, into terms; those of a part occur `times[part]` times, or once."""
    rows = []
    for term in terms:
        numbers = re.sub(r"[A-Za-z_]+", lambda letter: str(sizes[letter.group()]), term.formula)
        factor, _, summands = numbers.rpartition("·(")
        value = sum(math.prod(map(int, each.split("·"))) for each in summands.rstrip(")").split(" + "))
        count, n = int(factor or 1) * value, times.get(term.part, 1)
        rows.append(ParameterRow(term.part, term.kind, term.name, term.formula, numbers, count, n))
    return ParameterTable(tuple(rows))


def linear(wide_in: str, wide_out: str, bias: bool = True) -> str:
    """Formula of a linear layer: its matrix, and its bias."""
    return f"{wide_in}·{wide_out} + {wide_out}" if bias else f"{wide_in}·{wide_out}"


Head = Literal["lm", "classifier", "translation", "masked", "masked+nsp"]


def parameter_table(
    config: TransformerConfig, head: Head | None = "lm", n_classes: int = 2
) -> ParameterTable:
    """Count the parameters of a model from its settings alone, without building it.

    A linear layer from D to F has a matrix and a bias, ``D·F + F``; a norm a factor and a shift, ``2·D``.

    Parameters
    ----------
    config : TransformerConfig
    head : {"lm", "classifier", "translation", "masked", "masked+nsp"} or None
        None counts the `Transformer` alone, causal or not: a mask has no parameters. "translation" counts the
        `Translator`. "masked" counts the `MaskedLanguageModel` with its transform (without it, it is "lm"),
        "masked+nsp" its next-sentence head too.
    n_classes : int
        C, read for a classifier.

    Notes
    -----
    ``table.total`` equals `count_parameters` of the model built from the same settings. The number of heads
    occurs in no formula, unless queries share keys: H heads of width K = D / H have together the matrices of
    one head of width D. A head tied to the embeddings adds its bias only; fixed positions add nothing.

    Examples
    --------
    >>> config = TransformerConfig(vocab_size=10, d_model=2, n_heads=1, n_layers=3, d_ff=5)
    >>> table = parameter_table(config, head="classifier")
    >>> table.parts, table.total
    ({'embeddings': 20, 'blocks': 177, 'final_norm': 4, 'head': 6}, 207)
    >>> row = table.rows[3]
    >>> row.name, row.formula, row.numbers, row.count, row.times
    ('q_proj, k_proj, v_proj', '3·(D·D + D)', '3·(2·2 + 2)', 18, 3)

    The encoder-decoder of the paper, whose authors write 65 million:

    >>> base = TransformerConfig(vocab_size=37_000, d_model=512, n_heads=8, n_layers=6, d_ff=2_048)
    >>> parameter_table(base.replace(norm="last", tie_embeddings=True), head="translation").total
    63082496
    """
    _check(head, n_classes)
    fits, got = head != "translation" or not config.n_segments, f"n_segments={config.n_segments}"
    require(fits, "a translator must have n_segments=0", got)
    sizes = {"V": config.vocab_size, "D": config.d_model, "F": config.d_ff, "C": n_classes}
    sizes |= {"K": config.head_dim, "n_kv_heads": config.kv_heads, "n_experts": config.n_experts}
    sizes |= {name: getattr(config, name) for name in ("max_len", "n_segments", "position_offset")}
    return make_table(_terms(config, head), sizes, dict.fromkeys(LAYERS, config.n_layers))


def _terms(config: TransformerConfig, head: Head | None) -> Iterator[Term]:
    bias, tied, two = config.bias, config.tie_embeddings, head == "translation"
    masked = head in ("masked", "masked+nsp")
    shifted = bias and config.norm_kind == "layer"
    norm = "2·D" if shifted else "D"  # a factor and a shift for each of the D numbers
    factor, both = ("2·", ", two") if two else ("", "")  # a translator has two halves
    yield Term("embeddings", "embeddings", "token_embed", "V·D" if tied else f"{factor}V·D")
    positions = "0" if config.positions != "learned" else f"{factor}max_len·D"
    if config.position_offset:
        rows = "max_len·D + position_offset·D"
        positions = f"{factor}({rows})" if two else rows
    yield Term("embeddings", "embeddings", "pos_embed", positions)
    if config.n_segments:
        yield Term("embeddings", "embeddings", "segment_embed", "n_segments·D")
    if config.embed_norm:
        yield Term("embeddings", "norms", f"embed_norm{both}", factor + norm)
    for part in ("encoder", "decoder") if two else ("blocks",):
        square = linear("D", "D", bias)
        for cross in ("", "cross: ") if part == "decoder" else ("",):
            yield Term(part, "norms", "cross_norm" if cross else "attn_norm", norm)
            if config.kv_heads == config.n_heads:
                yield Term(part, "attention", f"{cross}q_proj, k_proj, v_proj", _several("3", square))
            else:
                shared = linear("D", "n_kv_heads·K", bias)
                yield Term(part, "attention", f"{cross}q_proj", square)
                yield Term(part, "attention", f"{cross}k_proj, v_proj", _several("2", shared))
            yield Term(part, "attention", f"{cross}out_proj", square)
        yield Term(part, "norms", "ff_norm", norm)
        yield from _feed_forward(config, part)
    if config.norm == "first":
        yield Term("final_norm", "norms", f"final_norm{both}", factor + norm)
    if masked:
        yield Term("head", "head", "dense", linear("D", "D", bias))
        yield Term("head", "norms", "norm", norm)
    if head == "classifier":
        yield Term("head", "head", "class_head", linear("D", "C", bias))
    elif head is not None:
        head_bias = config.translation_bias if two else config.lm_bias
        if tied:
            yield Term("head", "head", "lm_head, tied", "V" if head_bias else "0")
        else:
            yield Term("head", "head", "lm_head", linear("D", "V", head_bias))
    if head == "masked+nsp":
        yield Term("head", "head", "pooler", linear("D", "D", bias))
        yield Term("head", "head", "next_head", linear("D", "2", bias))


def _feed_forward(config: TransformerConfig, part: str) -> Iterator[Term]:
    shapes = {"up_proj": linear("D", "F", config.bias), "down_proj": linear("F", "D", config.bias)}
    if config.activation == "swiglu":
        shapes = {"gate_proj": shapes["up_proj"], **shapes}
    if config.n_experts > 1:
        yield Term(part, "feed_forward", "router", "D·n_experts")
        shapes = {f"{name}, all": _several("n_experts", shape) for name, shape in shapes.items()}
    for name, shape in shapes.items():
        yield Term(part, "feed_forward", name, shape)


def _several(number: str, formula: str) -> str:
    return f"{number}·({formula})" if "+" in formula else f"{number}·{formula}"


def _check(head: str | None, n_classes: int) -> None:
    known = ", ".join(map(repr, get_args(Head)))
    require(head in (None, *get_args(Head)), f"head must be {known} or None", repr(head))
    check_whole("n_classes", n_classes, 1)


def count_parameters(model: nn.Module) -> int:
    """Count the parameters of a model; a shared one counts once.

    Examples
    --------
    >>> count_parameters(nn.Linear(3, 5))
    20
    """
    return sum(parameter.numel() for parameter in model.parameters())


def build_empty(config: TransformerConfig, head: Head | None = "lm", n_classes: int = 2) -> nn.Module:
    """Build the model of `parameter_table` on the meta device: shapes without numbers, at any size for free.

    Examples
    --------
    >>> from tinytx.config import PRESETS
    >>> count_parameters(build_empty(PRESETS["seed-lab"].replace(vocab_size=10**9)))
    401000968000
    """
    _check(head, n_classes)
    with torch.device("meta"):
        if head == "lm":
            return LanguageModel(config)
        if head == "classifier":
            return Classifier(config, n_classes)
        if head in ("masked", "masked+nsp"):
            return MaskedLanguageModel(config, next_sentence=head == "masked+nsp")
        return Translator(config) if head == "translation" else Transformer(config)
