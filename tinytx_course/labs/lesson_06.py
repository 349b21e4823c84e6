"""Lesson 06, counting parameters: derivations with one error each, and published models by their settings.

Nothing is downloaded: a count needs only the ``config.json`` that a model is published with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tinytx.config import TransformerConfig
from tinytx.counting import Head, ParameterTable, Term, linear, make_table, parameter_table


class Line(NamedTuple):
    """One line of a derivation: what is counted, letters and then numbers joined by "=", and the result."""

    what: str
    working: str
    number: int

    def __str__(self) -> str:
        return f"{self.what}: {self.working} = {self.number:,}"


@dataclass(frozen=True)
class Derivation:
    """A parameter count with an error in one line; the lines below use its result.

    Attributes
    ----------
    config : TransformerConfig
    head : {"lm", "classifier"}
    n_classes : int
        Of the classifier.
    lines : tuple of Line
    wrong_line, right_number : int
        The number, from 1, of the line with the error, and the right result of that line.
    hint : str
        The explanation, shown when the error is found.
    """

    config: TransformerConfig
    head: Head
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
    """Check an answer: which line of a derivation is wrong, and what is its right result?

    Parameters
    ----------
    name : str
        One of ``DERIVATIONS``.
    line : int
        The number of the wrong line; ``...`` while it is not known.
    number : int
        The right result of that line.

    Examples
    --------
    >>> check("A")
    'A: not attempted yet.'
    >>> check("A", line=1, number=240)
    'A: line 1 is right. Look at the others.'
    """
    if name not in DERIVATIONS:
        raise ValueError(f"name must be one of {', '.join(DERIVATIONS)}, got {name!r}")
    derivation = DERIVATIONS[name]
    if line in (..., None):
        return f"{name}: not attempted yet."
    if not isinstance(line, int) or line not in range(1, len(derivation.lines) + 1):
        return f"{name}: line must be a number from 1 to {len(derivation.lines)}, got {line!r}."
    if line != derivation.wrong_line:
        uses_others = derivation.lines[line - 1].what in ("all layers", "total")
        if line > derivation.wrong_line and uses_others:
            return f"{name}: line {line} is right, but uses a wrong number from a line above."
        return f"{name}: line {line} is right. Look at the others."
    if number in (..., None):
        return f"{name}: line {line} is the wrong one. What is its right result?"
    if number != derivation.right_number:
        return f"{name}: line {line} is the wrong one, but its right result is not {number!r}."
    total = parameter_table(derivation.config, derivation.head, derivation.n_classes).total
    return f"{name}: found! {derivation.hint} The right total is {total:,}."


# The sizes of a configuration, in the order in which models are listed here.
_OURS = ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len", "n_segments")


def _derivation(
    sizes: tuple[int, ...], slip: Line, hint: str, *, head: Head = "lm", n_classes: int = 2
) -> Derivation:
    """Write a derivation, with `slip` in place of the right line."""
    named: dict[str, Any] = dict(zip(_OURS, sizes, strict=False))
    config = TransformerConfig(**named, norm="last")
    v, d, f = config.vocab_size, config.d_model, config.d_ff
    out, letter = (v, "V") if head == "lm" else (n_classes, "C")
    right = {
        "embedding": (f"V·D = {v}·{d}", v * d),
        "attention": (f"4·(D·D + D) = 4·({d}·{d} + {d})", 4 * (d * d + d)),
        "feed-forward": (f"2·D·F + F + D = 2·{d}·{f} + {f} + {d}", 2 * d * f + f + d),
        "norms": (f"2·2·D = 2·2·{d}", 4 * d),
        "output layer": (f"D·{letter} + {letter} = {d}·{out} + {out}", d * out + out),
    }
    *lines, head_line = (
        slip if part == slip.what else Line(part, *working) for part, working in right.items()
    )
    embedding, *in_layer = (line.number for line in lines)
    layers = config.n_layers * sum(in_layer)
    total = embedding + layers + head_line.number
    lines += [
        Line("all layers", f"{config.n_layers}·({' + '.join(map(str, in_layer))})", layers),
        head_line,
        Line("total", f"{embedding:,} + {layers:,} + {head_line.number:,}", total),
    ]
    position = lines.index(slip) + 1
    return Derivation(config, head, n_classes, tuple(lines), position, right[slip.what][1], hint)


DERIVATIONS: Mapping[str, Derivation] = {
    "A": _derivation(
        (30, 8, 2, 2, 12),
        Line("attention", "H·D² = 2·8·8", 128),
        "Attention has four matrices, for queries, keys, values and the output, each with a bias; "
        "how many heads share them does not matter.",
    ),
    "B": _derivation(
        (40, 6, 3, 3, 24),
        Line("norms", "2·D = 2·6", 12),
        "A layer has two norms, one for attention and one for the feed-forward network.",
        head="classifier",
        n_classes=5,
    ),
}

Settings = Mapping[str, int]

# The settings of a ``config.json`` on which a count depends, by family, in the order of `_OURS`.
_BERT = (
    *("vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size"),
    *("max_position_embeddings", "type_vocab_size"),
)
_MBART = ("encoder_attention_heads", "encoder_layers", "encoder_ffn_dim", "max_position_embeddings")
_THEIRS: Mapping[str, tuple[str, ...]] = {
    "transformer": _OURS[:5],
    "bert": _BERT,
    "roberta": _BERT,
    "camembert": _BERT,
    "distilbert": ("vocab_size", "dim", "n_heads", "n_layers", "hidden_dim", "max_position_embeddings"),
    "gpt2": ("vocab_size", "n_embd", "n_head", "n_layer", "n_inner", "n_positions"),
    "mbart": ("vocab_size", "d_model", *_MBART),
    "t5": (
        *("vocab_size", "d_model", "num_heads", "num_layers", "d_ff"),
        *("d_kv", "relative_attention_num_buckets"),
    ),
}
_ENCODER = {"norm": "last", "positions": "learned", "embed_norm": True}
_FIXED: Mapping[str, dict[str, Any]] = {  # what all models of a family have in common
    "transformer": {"norm": "last", "tie_embeddings": True},
    "gpt2": {"positions": "learned"},
    "mbart": {"positions": "learned", "embed_norm": True, "tie_embeddings": True, "head_bias": False},
}


@dataclass(frozen=True)
class PublishedModel:
    """A published model.

    Attributes
    ----------
    family : str
        The ``model_type`` of its ``config.json``; "transformer" for the original one, which has none.
    settings : mapping of str to int
        Those of its ``config.json`` that the count depends on.
    source : str
        Where the settings were published.
    stated : float or None
        Parameters as its paper gives them, in millions.
    """

    family: str
    settings: Settings
    source: str
    stated: float | None = None

    @property
    def config(self) -> TransformerConfig:
        """As one of our models, except for T5, which is none."""
        theirs = (self.settings[name] for name in _THEIRS[self.family])
        sizes: dict[str, Any] = dict(zip(_OURS, theirs, strict=False))
        if self.family == "mbart":
            sizes["max_len"] += 2  # two rows of its positions are never used
        return TransformerConfig(**_FIXED.get(self.family, _ENCODER), **sizes)

    def table(self) -> ParameterTable:
        """Every term of the bare model; each of these ties its output layer to the embeddings.

        Examples
        --------
        >>> PUBLISHED["DistilBERT base"].table().parts
        {'embeddings': 23835648, 'blocks': 42527232}
        """
        if self.family == "t5":
            return _t5(self.settings)
        pair = self.family in ("transformer", "mbart")
        table = parameter_table(self.config, "translation" if pair else None)
        if _THEIRS[self.family] is not _BERT:
            return table
        width = {"D": self.config.d_model}
        pooler = make_table([Term("head", "head", "pooler", linear("D", "D"))], width, {})
        return ParameterTable((*table.rows, *pooler.rows))


def _t5(settings: Settings) -> ParameterTable:
    """T5 has distances for positions, no biases, and heads whose widths together may differ from D."""
    inner = settings["num_heads"] * settings["d_kv"]
    sizes = {"V": settings["vocab_size"], "D": settings["d_model"], "F": settings["d_ff"], "I": inner}
    sizes |= {"H": settings["num_heads"], "buckets": settings["relative_attention_num_buckets"]}
    terms = [
        Term("embeddings", "embeddings", "token_embed", "V·D"),
        Term("embeddings", "embeddings", "distances, two", "2·buckets·H"),
    ]
    for part, crosses in (("encoder", [""]), ("decoder", ["", "cross: "])):
        for cross in crosses:
            terms.append(Term(part, "norms", "cross_norm" if cross else "attn_norm", "D"))
            terms.append(Term(part, "attention", f"{cross}q_proj, k_proj, v_proj", "3·D·I"))
            terms.append(Term(part, "attention", f"{cross}out_proj", "I·D"))
        terms.append(Term(part, "norms", "ff_norm", "D"))
        terms.append(Term(part, "feed_forward", "up_proj, down_proj", "2·D·F"))
    terms.append(Term("final_norm", "norms", "final_norm, two", "2·D"))
    return make_table(terms, sizes, dict.fromkeys(("encoder", "decoder"), settings["num_layers"]))


def _model(family: str, sizes: tuple[int, ...], source: str, stated: float | None = None) -> PublishedModel:
    """A model from its settings in the order of `_THEIRS`."""
    settings = dict(zip(_THEIRS[family], sizes, strict=True))
    if family == "mbart":
        settings |= {name.replace("encoder", "decoder"): settings[name] for name in _MBART[:3]}
    return PublishedModel(family, settings, source, stated)


_VASWANI = "arXiv 1706.03762, table 3; vocabulary from section 5.1"
_DEVLIN = "arXiv 1810.04805, section 3"
_RADFORD = "Radford et al. 2019, table 2"

PUBLISHED: Mapping[str, PublishedModel] = {
    "Transformer base": _model("transformer", (37_000, 512, 8, 6, 2_048), _VASWANI, 65),
    "Transformer big": _model("transformer", (37_000, 1_024, 16, 6, 4_096), _VASWANI, 213),
    "BERT base": _model("bert", (30_522, 768, 12, 12, 3_072, 512, 2), _DEVLIN, 110),
    "BERT large": _model("bert", (30_522, 1_024, 16, 24, 4_096, 512, 2), _DEVLIN, 340),
    # RoBERTa counts positions from 2 on, and has one type of segment instead of two.
    "RoBERTa base": _model("roberta", (50_265, 768, 12, 12, 3_072, 514, 1), "arXiv 1907.11692"),
    "RoBERTa large": _model(
        "roberta", (50_265, 1_024, 16, 24, 4_096, 514, 1), "arXiv 1907.11692, section 5", 355
    ),
    "CamemBERT base": _model(
        "camembert", (32_005, 768, 12, 12, 3_072, 514, 1), "arXiv 1911.03894, section 4", 110
    ),
    "DistilBERT base": _model(
        "distilbert", (30_522, 768, 12, 6, 3_072, 512), "arXiv 1910.01108, table 3", 66
    ),
    "GPT-2 small": _model("gpt2", (50_257, 768, 12, 12, 3_072, 1_024), _RADFORD, 117),
    "GPT-2 medium": _model("gpt2", (50_257, 1_024, 16, 24, 4_096, 1_024), _RADFORD, 345),
    "GPT-2 large": _model("gpt2", (50_257, 1_280, 20, 36, 5_120, 1_024), _RADFORD, 762),
    "GPT-2 XL": _model("gpt2", (50_257, 1_600, 25, 48, 6_400, 1_024), _RADFORD, 1_542),
    "BARThez": _model("mbart", (50_002, 768, 12, 6, 3_072, 1_024), "arXiv 2010.12321", 165),
    "mBART": _model("mbart", (250_027, 1_024, 16, 12, 4_096, 1_024), "arXiv 2001.08210, section 2.2", 680),
    "T5 small": _model("t5", (32_128, 512, 8, 6, 2_048, 64, 32), "arXiv 1910.10683, section 3.7", 60),
}
