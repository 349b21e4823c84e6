"""How many numbers a transformer learns: the closed form, term by term, and the count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import nn

from tinytx.model.config import TransformerConfig
from tinytx.model.encoder_decoder import Translator
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.transformer import Classifier, LanguageModel, Transformer

# Parts that occur once a layer, and how the lines below them are called.
_LAYERS = {"blocks": "block", "encoder": "encoder block", "decoder": "decoder block"}
LAYERED = tuple(_LAYERS)
KINDS = ("embeddings", "attention", "feed_forward", "norms", "head")


@dataclass(frozen=True)
class ParameterRow:
    """One term of the count.

    Attributes
    ----------
    part : str
        Where it belongs: "embeddings", "blocks" (or "encoder" and "decoder"), "final_norm" or "head".
    name : str
        The module, as in the code.
    formula : str
        In letters, for one block where it belongs to blocks.
    numbers : str
        The formula with the sizes put in.
    count : int
        Its value.
    times : int
        How often it occurs: once, or once a block.
    kind : str
        What it is, wherever it stands: one of ``KINDS``.
    """

    part: str
    name: str
    formula: str
    numbers: str
    count: int
    times: int
    kind: str

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
        return _sums((row.part, row) for row in self.rows)

    @property
    def kinds(self) -> dict[str, int]:
        """Parameters of each kind, all layers together."""
        return _sums((kind, row) for kind in KINDS for row in self.rows if row.kind == kind)

    def proportions(self, width: int = 40) -> str:
        """Lay out the kinds as bars, the whole being `width` characters wide.

        Examples
        --------
        >>> from tinytx.model.config import PRESETS
        >>> print(parameter_table(PRESETS["seed-lab"]).proportions(width=20))
        embeddings    ▍                        20,000    2.0 %
        attention     ████████████▊           643,200   63.8 %
        feed_forward  ██████▍                 321,600   31.9 %
        norms         ▏                         3,200    0.3 %
        head          ▍                        20,100    2.0 %
        """
        kinds, total = self.kinds, max(self.total, 1)
        names, digits = max(map(len, kinds)), len(f"{total:,}")
        lines = []
        for name, count in kinds.items():
            bar, percent = _bar(count / total, width), f"{100 * count / total:.1f} %"
            lines.append(f"{name:<{names}}  {bar:<{width}}  {count:>{digits},}  {percent:>7}")
        return "\n".join(lines)

    def __str__(self) -> str:
        lines = [("", "formula", "with numbers", "parameters"), *self._lines()]
        names, formulas, numbers, counts = (max(len(line[column]) for line in lines) for column in range(4))
        # The sum of the last line may reach over two columns.
        sum_of_parts = " + ".join(f"{count:,}" for count in self.parts.values() if count)
        numbers = max(numbers, len(sum_of_parts) - formulas - 2)
        counts = max(counts, len(f"{self.total:,}"))
        texts = [
            f"{name:<{names}}  {formula:<{formulas}}  {number:<{numbers}}  {count:>{counts}}"
            for name, formula, number, count in lines
        ]
        last = f"{'total':<{names}}  {sum_of_parts:>{formulas + 2 + numbers}}  {self.total:>{counts},}"
        rule = "-" * len(last)
        return "\n".join([texts[0], rule, *texts[1:], rule, last])

    def _lines(self) -> Iterator[tuple[str, str, str, str]]:
        last = {row.part: row for row in self.rows if row.part in _LAYERS}
        for row in self.rows:
            yield (
                f"  {row.name}" if row.part in last else row.name,
                row.formula,
                row.numbers,
                f"{row.count:,}",
            )
            if row is last.get(row.part):
                name, times = _LAYERS[row.part], row.times
                block = sum(each.count for each in self.rows if each.part == row.part)
                yield f"one {name}", "", "", f"{block:,}"
                yield f"all {name}s", "n_layers·block", f"{times}·{block:,}", f"{times * block:,}"


def _sums(named: Iterable[tuple[str, ParameterRow]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for name, row in named:
        sums[name] = sums.get(name, 0) + row.total
    return sums


def _bar(share: float, width: int) -> str:
    eighths = round(share * width * 8)
    if share > 0:
        eighths = max(eighths, 1)  # what is there is seen
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


@dataclass(frozen=True)
class Term:
    """One term in letters, before the sizes are put in; fields as in `ParameterRow`."""

    part: str
    kind: str
    name: str
    formula: str


def make_table(terms: Iterable[Term], sizes: Mapping[str, int], times: Mapping[str, int]) -> ParameterTable:
    """Put sizes into terms.

    Parameters
    ----------
    terms : iterable of Term
        Formulas are sums of products, such as ``D·F + F``, or a factor and such a sum, ``3·(D·D + D)``.
    sizes : mapping of str to int
        The value of each letter.
    times : mapping of str to int
        How often the terms of a part occur; once where it is not in here.
    """
    return ParameterTable(tuple(_row(term, sizes, times.get(term.part, 1)) for term in terms))


def _row(term: Term, sizes: Mapping[str, int], times: int) -> ParameterRow:
    numbers = re.sub(r"[A-Za-z_]+", lambda letter: str(sizes[letter.group()]), term.formula)
    return ParameterRow(term.part, term.name, term.formula, numbers, _evaluate(numbers), times, term.kind)


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


def linear(wide_in: str, wide_out: str, bias: bool = True) -> str:
    """Formula of a linear map: its matrix, and its bias."""
    return f"{wide_in}·{wide_out} + {wide_out}" if bias else f"{wide_in}·{wide_out}"


def norm(bias: bool = True) -> str:
    """Formula of a norm: a factor, and a shift, for each of the D numbers."""
    return "2·D" if bias else "D"


def attention_terms(
    part: str, bias: bool = True, module: str = "", norm_name: str = "attn_norm"
) -> Iterator[Term]:
    """Terms of one attention with its norm; `module` stands before the names of the projections."""
    square = linear("D", "D", bias)
    yield Term(part, "norms", norm_name, norm(bias))
    projections = f"{module}q_proj, k_proj, v_proj"
    yield Term(part, "attention", projections, f"3·({square})" if bias else f"3·{square}")
    yield Term(part, "attention", f"{module}out_proj", square)


def feed_forward_terms(part: str, bias: bool = True, inner: str = "F") -> Iterator[Term]:
    """Terms of one feed-forward network with its norm; `inner` is the letter of its width."""
    yield Term(part, "norms", "ff_norm", norm(bias))
    yield Term(part, "feed_forward", "up_proj", linear("D", inner, bias))
    yield Term(part, "feed_forward", "down_proj", linear(inner, "D", bias))


Head = Literal["lm", "classifier", "translation", "masked", "masked+nsp"]


def parameter_table(
    config: TransformerConfig, head: Head | None = "lm", n_classes: int = 2
) -> ParameterTable:
    """Count the parameters of a model from its settings alone, without building it.

    A linear map from D to F learns a matrix and a bias, ``D·F + F``; a norm a factor and a shift, ``2·D``.

    Parameters
    ----------
    config : TransformerConfig
        The settings.
    head : {"lm", "classifier", "translation", "masked", "masked+nsp"} or None
        What stands on the body; None counts the body alone, an encoder or, with `causal`, a decoder: the mask
        learns nothing. "translation" counts both, the `Translator`. "masked" counts the `MaskedLanguageModel`
        with its transform (without it, it is "lm"), "masked+nsp" its head for next sentences too.
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

    The encoder-decoder of the paper, whose authors write 65 million:

    >>> base = TransformerConfig(vocab_size=37_000, d_model=512, n_heads=8, n_layers=6, d_ff=2_048)
    >>> parameter_table(base.replace(norm="last", tie_embeddings=True), head="translation").total
    63082496
    """
    _check(head, n_classes)
    if head == "translation" and config.n_segments:
        raise ValueError(f"a translator must have n_segments=0, got n_segments={config.n_segments}")
    sizes = {
        "V": config.vocab_size,
        "D": config.d_model,
        "F": config.d_ff,
        "C": n_classes,
        "max_len": config.max_len,
        "n_segments": config.n_segments,
        "position_offset": config.position_offset,
    }
    terms = _translator_terms(config) if head == "translation" else _one_stack_terms(config, head)
    return make_table(terms, sizes, dict.fromkeys(LAYERED, config.n_layers))


def count_parameters(model: nn.Module) -> int:
    """Count the parameters that a model holds; one that is shared counts once.

    Examples
    --------
    >>> count_parameters(nn.Linear(3, 5))
    20
    """
    return sum(parameter.numel() for parameter in model.parameters())


def build_empty(config: TransformerConfig, head: Head | None = "lm", n_classes: int = 2) -> nn.Module:
    """Build the model of `parameter_table` with shapes but without numbers, so that any size costs nothing.

    Examples
    --------
    >>> from tinytx.model.config import PRESETS
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


def _check(head: str | None, n_classes: int) -> None:
    if head is not None and head not in get_args(Head):
        known = ", ".join(map(repr, get_args(Head)))
        raise ValueError(f"head must be {known} or None, got {head!r}")
    if n_classes < 1:
        raise ValueError(f"n_classes must be at least 1, got {n_classes}")


def _one_stack_terms(config: TransformerConfig, head: Head | None) -> Iterator[Term]:
    yield Term("embeddings", "embeddings", "token_embed", "V·D")
    yield Term("embeddings", "embeddings", "pos_embed", _positions(config))
    if config.n_segments:
        yield Term("embeddings", "embeddings", "segment_embed", "n_segments·D")
    if config.embed_norm:
        yield Term("embeddings", "norms", "embed_norm", norm(config.bias))
    yield from attention_terms("blocks", config.bias)
    yield from feed_forward_terms("blocks", config.bias)
    if config.norm == "first":
        yield Term("final_norm", "norms", "final_norm", norm(config.bias))
    if head in ("masked", "masked+nsp"):
        yield Term("head", "head", "dense", linear("D", "D", config.bias))
        yield Term("head", "norms", "norm", norm(config.bias))
    if head in ("lm", "masked", "masked+nsp"):
        if config.tie_embeddings:
            yield Term("head", "head", "lm_head, tied", "V" if config.lm_bias else "0")
        else:
            yield Term("head", "head", "lm_head", linear("D", "V", config.lm_bias))
    if head == "masked+nsp":
        yield Term("head", "head", "pooler", linear("D", "D", config.bias))
        yield Term("head", "head", "next_head", linear("D", "2", config.bias))
    elif head == "classifier":
        yield Term("head", "head", "class_head", linear("D", "C", config.bias))


def _translator_terms(config: TransformerConfig) -> Iterator[Term]:
    tied, positions = config.tie_embeddings, _positions(config)
    yield Term("embeddings", "embeddings", "token_embed", "V·D" if tied else "2·V·D")
    two = f"2·({positions})" if " + " in positions else f"2·{positions}"
    yield Term("embeddings", "embeddings", "pos_embed", "0" if positions == "0" else two)
    if config.embed_norm:
        yield Term("embeddings", "norms", "embed_norm, two", f"2·{norm(config.bias)}")
    yield from attention_terms("encoder", config.bias)
    yield from feed_forward_terms("encoder", config.bias)
    yield from attention_terms("decoder", config.bias)
    yield from attention_terms("decoder", config.bias, "cross: ", "cross_norm")
    yield from feed_forward_terms("decoder", config.bias)
    if config.norm == "first":
        yield Term("final_norm", "norms", "final_norm, two", f"2·{norm(config.bias)}")
    if tied:
        yield Term("head", "head", "lm_head, tied", "V" if config.translation_bias else "0")
    else:
        yield Term("head", "head", "lm_head", linear("D", "V", config.translation_bias))


def _positions(config: TransformerConfig) -> str:
    if config.positions != "learned":
        return "0"
    return "max_len·D + position_offset·D" if config.position_offset else "max_len·D"
