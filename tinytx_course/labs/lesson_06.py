"""Published models as tables of terms, from their configurations alone.

The settings are those of the ``config.json`` that a model is published with, under the names used there, so
that the same functions count other models of these families too. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tinytx.model.config import TransformerConfig
from tinytx.model.counting import (
    LAYERED,
    ParameterTable,
    Term,
    attention_terms,
    feed_forward_terms,
    linear,
    make_table,
    norm,
    parameter_table,
)


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


Settings = Mapping[str, Any]


@dataclass(frozen=True)
class PublishedModel:
    """A model that others trained, by its settings.

    Attributes
    ----------
    family : str
        Which function counts it, one of ``FAMILIES``.
    counted_as : str
        The class of the `transformers` package that has these parameters; the original Transformer has none
        there and is counted as our `Translator`.
    settings : mapping of str to int
        Those that the count depends on.
    source : str
        Where the settings stand.
    stated : float or None
        Parameters as its paper gives them, in millions.
    """

    family: str
    counted_as: str
    settings: Settings
    source: str
    stated: float | None = None

    def table(self) -> ParameterTable:
        """Every term of its count."""
        return published_table(self.family, self.settings)


def published_table(family: str, settings: Settings) -> ParameterTable:
    """Count a model of a family of published ones from its settings.

    Parameters
    ----------
    family : str
        One of ``FAMILIES``; the ``model_type`` of a ``config.json``.
    settings : mapping
        As in a ``config.json``; entries that the count does not depend on are not read.

    Returns
    -------
    ParameterTable
        Of the bare model: what predicts words shares its matrix with the embedding in all of these, and other
        heads are chosen by those who fine-tune it.

    Raises
    ------
    ValueError
        If the family is unknown or a setting is missing.

    Examples
    --------
    >>> table = published_table("distilbert", PUBLISHED["DistilBERT base"].settings)
    >>> table.parts
    {'embeddings': 23835648, 'blocks': 42527232}
    >>> table.total
    66362880
    """
    if family not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {family!r}")
    try:
        return FAMILIES[family](settings)
    except KeyError as missing:
        raise ValueError(f"settings of {family} must hold {missing.args[0]}, got none") from None


def _transformer(settings: Settings) -> ParameterTable:
    config = TransformerConfig(norm="last", tie_embeddings=True, activation="relu", **settings)
    return parameter_table(config, head="translation")


def _bert(settings: Settings) -> ParameterTable:
    sizes = {
        "V": settings["vocab_size"],
        "D": settings["hidden_size"],
        "F": settings["intermediate_size"],
        "max_len": settings["max_position_embeddings"],
        "types": settings["type_vocab_size"],
    }
    types = Term("embeddings", "embeddings", "type_embed", "types·D")
    pooler = Term("head", "head", "pooler", linear("D", "D"))
    return make_table([*_encoder(types), pooler], sizes, _times(settings["num_hidden_layers"]))


def _distilbert(settings: Settings) -> ParameterTable:
    sizes = {
        "V": settings["vocab_size"],
        "D": settings["dim"],
        "F": settings["hidden_dim"],
        "max_len": settings["max_position_embeddings"],
    }
    return make_table(_encoder(), sizes, _times(settings["n_layers"]))


def _encoder(*more_embeddings: Term) -> Iterator[Term]:
    yield Term("embeddings", "embeddings", "token_embed", "V·D")
    yield Term("embeddings", "embeddings", "pos_embed", "max_len·D")
    yield from more_embeddings
    yield Term("embeddings", "norms", "embed_norm", norm())
    yield from attention_terms("blocks")
    yield from feed_forward_terms("blocks")


def _gpt2(settings: Settings) -> ParameterTable:
    width = settings["n_embd"]
    sizes = {
        "V": settings["vocab_size"],
        "D": width,
        "F": settings.get("n_inner") or 4 * width,
        "max_len": settings["n_positions"],
    }
    terms = [
        Term("embeddings", "embeddings", "token_embed", "V·D"),
        Term("embeddings", "embeddings", "pos_embed", "max_len·D"),
        *attention_terms("blocks"),
        *feed_forward_terms("blocks"),
        Term("final_norm", "norms", "final_norm", norm()),
    ]
    return make_table(terms, sizes, _times(settings["n_layer"]))


def _mbart(settings: Settings) -> ParameterTable:
    sizes = {
        "V": settings["vocab_size"],
        "D": settings["d_model"],
        "F": settings["encoder_ffn_dim"],
        "G": settings["decoder_ffn_dim"],
        "max_len": settings["max_position_embeddings"] + 2,  # two rows are set aside and never used
    }
    terms = [
        Term("embeddings", "embeddings", "token_embed", "V·D"),
        Term("embeddings", "embeddings", "pos_embed, two", "2·max_len·D"),
        Term("embeddings", "norms", "embed_norm, two", "2·2·D"),
        *attention_terms("encoder"),
        *feed_forward_terms("encoder"),
        *attention_terms("decoder"),
        *attention_terms("decoder", module="cross: ", norm_name="cross_norm"),
        *feed_forward_terms("decoder", inner="G"),
        Term("final_norm", "norms", "final_norm, two", "2·2·D"),
    ]
    times = {"encoder": settings["encoder_layers"], "decoder": settings["decoder_layers"]}
    return make_table(terms, sizes, times)


def _t5(settings: Settings) -> ParameterTable:
    sizes = {
        "V": settings["vocab_size"],
        "D": settings["d_model"],
        "F": settings["d_ff"],
        "I": settings["num_heads"] * settings["d_kv"],  # all heads side by side
        "H": settings["num_heads"],
        "buckets": settings["relative_attention_num_buckets"],
    }
    gated = str(settings.get("feed_forward_proj", "relu")).startswith("gated")
    terms = [
        Term("embeddings", "embeddings", "token_embed", "V·D"),
        Term("embeddings", "embeddings", "distances, two", "2·buckets·H"),
        *_t5_attention("encoder"),
        *_t5_feed_forward("encoder", gated),
        *_t5_attention("decoder"),
        *_t5_attention("decoder", "cross: ", "cross_norm"),
        *_t5_feed_forward("decoder", gated),
        Term("final_norm", "norms", "final_norm, two", "2·D"),
    ]
    n_decoder = settings.get("num_decoder_layers") or settings["num_layers"]
    return make_table(terms, sizes, {"encoder": settings["num_layers"], "decoder": n_decoder})


def _t5_attention(part: str, module: str = "", norm_name: str = "attn_norm") -> Iterator[Term]:
    yield Term(part, "norms", norm_name, norm(bias=False))
    yield Term(part, "attention", f"{module}q_proj, k_proj, v_proj", "3·D·I")
    yield Term(part, "attention", f"{module}out_proj", "I·D")


def _t5_feed_forward(part: str, gated: bool) -> Iterator[Term]:
    yield Term(part, "norms", "ff_norm", norm(bias=False))
    yield Term(part, "feed_forward", "up_proj and gate" if gated else "up_proj", "2·D·F" if gated else "D·F")
    yield Term(part, "feed_forward", "down_proj", "F·D")


def _times(n_layers: int) -> dict[str, int]:
    return dict.fromkeys(LAYERED, n_layers)


FAMILIES: Mapping[str, Callable[[Settings], ParameterTable]] = {
    "transformer": _transformer,
    "bert": _bert,
    "roberta": _bert,
    "camembert": _bert,
    "distilbert": _distilbert,
    "gpt2": _gpt2,
    "mbart": _mbart,
    "t5": _t5,
}


def _paper(d_model: int, n_heads: int, d_ff: int) -> Settings:
    return {"vocab_size": 37_000, "d_model": d_model, "n_heads": n_heads, "n_layers": 6, "d_ff": d_ff}


def _bert_settings(vocab_size: int, *, large: bool = False, roberta: bool = False) -> Settings:
    return {
        "vocab_size": vocab_size,
        "hidden_size": 1_024 if large else 768,
        "num_hidden_layers": 24 if large else 12,
        "num_attention_heads": 16 if large else 12,
        "intermediate_size": 4_096 if large else 3_072,
        # RoBERTa counts places from 2 on, and knows one type of segment instead of two.
        "max_position_embeddings": 514 if roberta else 512,
        "type_vocab_size": 1 if roberta else 2,
    }


def _gpt2_settings(n_embd: int, n_layer: int, n_head: int) -> Settings:
    return {
        "vocab_size": 50_257,
        "n_positions": 1_024,
        "n_embd": n_embd,
        "n_layer": n_layer,
        "n_head": n_head,
    }


def _mbart_settings(vocab_size: int, d_model: int, n_layers: int, n_heads: int) -> Settings:
    both = {"layers": n_layers, "attention_heads": n_heads, "ffn_dim": 4 * d_model}
    halves = {f"{half}_{name}": value for half in ("encoder", "decoder") for name, value in both.items()}
    return {"vocab_size": vocab_size, "d_model": d_model, "max_position_embeddings": 1_024, **halves}


_DISTILBERT = {
    "vocab_size": 30_522,
    "dim": 768,
    "n_layers": 6,
    "n_heads": 12,
    "hidden_dim": 3_072,
    "max_position_embeddings": 512,
}
_T5_SMALL = {
    "vocab_size": 32_128,
    "d_model": 512,
    "d_kv": 64,
    "d_ff": 2_048,
    "num_layers": 6,
    "num_heads": 8,
    "relative_attention_num_buckets": 32,
}
_VASWANI = "arXiv 1706.03762, table 3; vocabulary from section 5.1"
_GPT2_PAPER = "Radford et al. 2019, table 2"

PUBLISHED: Mapping[str, PublishedModel] = {
    "Transformer base": PublishedModel("transformer", "Translator", _paper(512, 8, 2_048), _VASWANI, 65),
    "Transformer big": PublishedModel("transformer", "Translator", _paper(1_024, 16, 4_096), _VASWANI, 213),
    "BERT base": PublishedModel(
        "bert", "BertModel", _bert_settings(30_522), "bert-base-uncased; arXiv 1810.04805, section 3", 110
    ),
    "BERT large": PublishedModel(
        "bert",
        "BertModel",
        _bert_settings(30_522, large=True),
        "bert-large-uncased; arXiv 1810.04805, section 3",
        340,
    ),
    "RoBERTa base": PublishedModel(
        "roberta", "RobertaModel", _bert_settings(50_265, roberta=True), "roberta-base; arXiv 1907.11692"
    ),
    "RoBERTa large": PublishedModel(
        "roberta",
        "RobertaModel",
        _bert_settings(50_265, large=True, roberta=True),
        "roberta-large; arXiv 1907.11692, section 5",
        355,
    ),
    "CamemBERT base": PublishedModel(
        "camembert",
        "CamembertModel",
        _bert_settings(32_005, roberta=True),
        "camembert-base; arXiv 1911.03894, section 4",
        110,
    ),
    "DistilBERT base": PublishedModel(
        "distilbert",
        "DistilBertModel",
        _DISTILBERT,
        "distilbert-base-uncased; arXiv 1910.01108, table 3",
        66,
    ),
    "GPT-2 small": PublishedModel("gpt2", "GPT2Model", _gpt2_settings(768, 12, 12), _GPT2_PAPER, 117),
    "GPT-2 medium": PublishedModel("gpt2", "GPT2Model", _gpt2_settings(1_024, 24, 16), _GPT2_PAPER, 345),
    "GPT-2 large": PublishedModel("gpt2", "GPT2Model", _gpt2_settings(1_280, 36, 20), _GPT2_PAPER, 762),
    "GPT-2 XL": PublishedModel("gpt2", "GPT2Model", _gpt2_settings(1_600, 48, 25), _GPT2_PAPER, 1_542),
    "BARThez": PublishedModel(
        "mbart", "MBartModel", _mbart_settings(50_002, 768, 6, 12), "moussaKam/barthez; arXiv 2010.12321", 165
    ),
    "mBART": PublishedModel(
        "mbart",
        "MBartModel",
        _mbart_settings(250_027, 1_024, 12, 16),
        "facebook/mbart-large-cc25; arXiv 2001.08210, section 2.2",
        680,
    ),
    "T5 small": PublishedModel("t5", "T5Model", _T5_SMALL, "t5-small; arXiv 1910.10683, section 3.7", 60),
}
