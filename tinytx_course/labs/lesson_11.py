"""Where a translator looks: its attention to the source against the alignment that the grammar knows.

Shape letters: T target positions (pieces and the end mark), S source positions, L layers, H heads.
"""

from __future__ import annotations

import math
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tinytx.model.attention import MultiHeadAttention, record_attention
from tinytx.model.config import TransformerConfig
from tinytx.model.encoder_decoder import Translator
from tinytx.model.positions import SinusoidalPositions
from tinytx.text.pairs import LAB_SENTENCES, PairCorpus, Pairs
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.beam import Search
from tinytx.training.bleu import pair_nats
from tinytx.training.fit import TranslatorResult, train_translator
from tinytx.training.translate import translate_ids
from tinytx.world.sampling import SentencePair
from tinytx.world.typography import write_out
from tinytx_course.results import Results, read_results

_NAMES = {  # ours: torch's; the norms are numbered in the order in which a block uses them
    "attn": "self_attn",
    "cross_attn": "multihead_attn",
    "ff.up_proj": "linear1",
    "ff.down_proj": "linear2",
}
_NORMS = {"encoder": ("attn_norm", "ff_norm"), "decoder": ("attn_norm", "cross_norm", "ff_norm")}


def torch_attention(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """A `torch.nn.MultiheadAttention` with the weights of our module.

    Its masks have the opposite sign: True = blocked.
    """
    weight = ours.out_proj.weight
    theirs = nn.MultiheadAttention(len(weight), ours.n_heads, batch_first=True, dtype=weight.dtype)
    _copy(ours, theirs)
    return theirs.eval()


class TorchTranslator(nn.Module):
    """`torch.nn.Transformer` between our embeddings and head, with the weights of one of our translators.

    Parameters
    ----------
    ours : Translator
        With tied embeddings and sinusoidal positions. Its weights are copied.

    Notes
    -----
    Torch puts a last norm on both halves even where each block ends in one already (``norm="last"``); there
    it is taken out.
    """

    table: Tensor

    def __init__(self, ours: Translator) -> None:
        super().__init__()
        config = ours.config
        positions = ours.encoder.pos_embed
        if not config.tie_embeddings or not isinstance(positions, SinusoidalPositions):
            raise ValueError(
                "the twin needs tie_embeddings=True and positions='sinusoidal', "
                f"got tie_embeddings={config.tie_embeddings}, positions={config.positions!r}"
            )
        self.matrix = nn.Parameter(ours.head.weight.detach().clone())  # (V, D), used three times
        self.register_buffer("table", positions.table.clone())
        self.stacks = _torch_stacks(config, self.matrix.dtype)
        for mine, other in _counterparts(ours, self.stacks):
            _copy(mine, other)
        self.eval()

    def forward(self, src_ids: Tensor, tgt_ids: Tensor, src_padding_mask: Tensor) -> Tensor:
        """Logits (B, T, V), as `Translator.forward` gives them; True = a real token."""
        n = tgt_ids.shape[1]
        blocked = ~src_padding_mask
        hidden = self.stacks(
            self._embed(src_ids),
            self._embed(tgt_ids),
            tgt_mask=torch.ones(n, n, dtype=torch.bool, device=tgt_ids.device).triu(1),
            src_key_padding_mask=blocked,
            memory_key_padding_mask=blocked,
        )
        return hidden @ self.matrix.T

    def _embed(self, token_ids: Tensor) -> Tensor:
        width = self.matrix.shape[1]
        return self.matrix[token_ids] * math.sqrt(width) + self.table[: token_ids.shape[1]]


def _torch_stacks(config: TransformerConfig, dtype: torch.dtype) -> nn.Transformer:
    layer: dict[str, Any] = {
        "d_model": config.d_model,
        "nhead": config.n_heads,
        "dim_feedforward": config.d_ff,
        "dropout": 0.0,
        "activation": config.activation,
        "batch_first": True,
        "norm_first": config.norm == "first",
        "dtype": dtype,
    }
    norms = [nn.LayerNorm(config.d_model, dtype=dtype) if config.norm == "first" else None for _ in range(2)]
    return nn.Transformer(
        config.d_model,
        config.n_heads,
        custom_encoder=nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**layer), config.n_layers, norms[0], enable_nested_tensor=False
        ),
        custom_decoder=nn.TransformerDecoder(nn.TransformerDecoderLayer(**layer), config.n_layers, norms[1]),
        batch_first=True,
    )


def _counterparts(ours: Translator, theirs: nn.Transformer) -> Iterator[tuple[nn.Module, nn.Module]]:
    for half, norms in _NORMS.items():
        mine, other = getattr(ours, half), getattr(theirs, half)
        for block, layer in zip(mine.blocks, other.layers, strict=True):
            for name, its_name in _NAMES.items():
                if name != "cross_attn" or half == "decoder":
                    yield block.get_submodule(name), layer.get_submodule(its_name)
            for number, name in enumerate(norms, start=1):
                yield block.get_submodule(name), layer.get_submodule(f"norm{number}")
        if other.norm is not None:
            yield mine.final_norm, other.norm


@torch.no_grad()
def _copy(mine: nn.Module, other: nn.Module) -> None:
    if isinstance(mine, MultiHeadAttention) and isinstance(other, nn.MultiheadAttention):
        three = (mine.q_proj, mine.k_proj, mine.v_proj)
        other.in_proj_weight.copy_(torch.cat([projection.weight for projection in three]))  # (3 D, D)
        other.in_proj_bias.copy_(torch.cat([projection.bias for projection in three]))
        other.out_proj.load_state_dict(mine.out_proj.state_dict())
    else:
        other.load_state_dict(mine.state_dict())


WIDTH = 88  # characters of a line that a page shows


class SourceLosses(NamedTuple):
    """Nats a target piece, given the sentence's own source and given that of another sentence."""

    own: float
    other: float


def source_losses(model: Translator, tokenizer: Tokenizer, pairs: Pairs) -> SourceLosses:
    """How surprised a translator is by the right translations, given the right sources and wrong ones.

    Each sentence gets its neighbour's source. A model for which both losses are equal does not read.

    Raises
    ------
    ValueError
        If there is but one pair, or every pair is too long for the model.
    """
    if len(pairs) < 2:
        raise ValueError(f"pairs must be at least 2, to exchange their sources, got {len(pairs)}")
    wrong = Pairs(pairs.sources[1:] + pairs.sources[:1], pairs.targets)
    own, other = (pair_nats(model, tokenizer, each) for each in (pairs, wrong))
    if own is None or other is None:
        raise ValueError(f"pairs must fit into max_len={model.config.max_len} pieces, got only longer ones")
    return SourceLosses(own, other)


def writing_seconds(
    model: Translator, lengths: Sequence[int], *, cached: bool, n_sources: int = 4, n_tries: int = 2
) -> list[float]:
    """Processor time to write exactly so many pieces, the best of some tries.

    Other programs that run meanwhile change it less than they change the time on the wall.

    Parameters
    ----------
    model : Translator
        What it writes does not matter; `max_len` must allow the lengths.
    lengths : sequence of int
        From 2 on.
    cached : bool
        As in `tinytx.training.translate`.
    n_sources : int
        Translated side by side, of 20 pieces each.
    n_tries : int
    """
    source, seconds = [model.config.vocab_size - 1] * 20, []
    for n in lengths:
        # No end mark before piece n, which is the last one.
        exactly = Search(max_factor=0.0, max_extra=n, read_on=n / len(source))
        tries = []
        for _ in range(n_tries):
            begin = time.process_time()
            found = translate_ids(model, [source] * n_sources, search=exactly, cached=cached)
            tries.append(time.process_time() - begin)
            if {len(one.token_ids) for one in found} != {n}:
                raise ValueError(f"lengths must be at most max_len={model.config.max_len}, got {n}")
        seconds.append(min(tries))
    return seconds


def short_race(
    pairs: PairCorpus, *, norm: str, warmup_steps: int, lr: float, dropout: float, n_steps: int
) -> TranslatorResult:
    """Train a small translator on short sentences, with ingredients of one's choice, by AdamW.

    Parameters
    ----------
    pairs : PairCorpus
        Only its pairs with sources of at most 32 characters are learned from.
    norm, dropout, warmup_steps, lr, n_steps
        As in `TransformerConfig` and `TrainingSettings`.
    """
    rows = zip(pairs.train.sources, pairs.train.targets, strict=True)
    short = [row for row in rows if len(row[0]) <= 32]
    learned = Pairs(tuple(a for a, _ in short), tuple(b for _, b in short))
    return train_translator(
        PairCorpus(pairs.name, learned, pairs.valid),
        budget="smoke",
        model_changes={"d_model": 64, "n_heads": 4, "d_ff": 256, "norm": norm, "dropout": dropout},
        training_changes={
            "n_steps": n_steps,
            "tokens_per_batch": 500,
            "optimizer": "adamw",
            "lr": lr,
            "warmup_steps": warmup_steps,
        },
        search=None,
        progress=False,
        report=lambda line: None,
    )


def told_translation(corpus: str, folder: str | Path | None = None) -> str:
    """Rows that `python -m experiments translation` measured, or the command to run."""
    command = f"python -m experiments translation --corpus {corpus} --budget study --data-dir DATA"
    kept = _kept(f"translation-{corpus}", folder)
    if kept is None:
        return f"{corpus}: not measured here yet. The command that does it:\n  {command}"
    lines = [textwrap.fill(f"{corpus}: {kept.source_line()}", WIDTH)]
    for key, record in kept.data.items():
        lines.append(f"  {key}: {record['n_params']:,} parameters, {record['n_steps']:,} steps")
        for how, score in record["scores"].items():
            low, high = score["interval"]
            line = f"    {how:<10} BLEU {score['bleu']:.1f} [{low:.1f}, {high:.1f}], chrF {score['chrf']:.1f}"
            several = score["all_references"]
            lines += [line + (f", all references {several['bleu']:.1f}" if several else "")]
            lines += [f"      {score['signature']}"]
        if corpus == "tatoeba-en-fr":
            lines += _told_sentences(record["sentences"])
    return "\n".join(lines)


def told_faults(folder: str | Path | None = None) -> str:
    """What `python -m experiments broken-translation` measured, as lines; or the command that does it."""
    kept = _kept("broken-translation", folder)
    if kept is None:
        return "not measured here yet. The command that does it:\n  python -m experiments broken-translation"
    lines = [textwrap.fill(kept.source_line(), WIDTH)]
    for record in kept.data.values():
        bleu = "diverged" if record["bleu"] is None else f"BLEU {record['bleu']:5.1f}"
        lines.append(f"  seed {record['seed']}  {record['name']:<22}{bleu}")
    return "\n".join(lines)


def _kept(name: str, folder: str | Path | None) -> Results | None:
    try:
        return read_results(name, folder)
    except FileNotFoundError:
        return None


def _told_sentences(sentences: dict[str, dict[str, Any]]) -> list[str]:
    lines = []
    for sentence in LAB_SENTENCES:
        lines.append(f"    {sentence}")
        lines += [f"      {how:<10} {text}" for how, text in sentences[sentence].items()]
    return lines


@dataclass(frozen=True)
class AlignmentMass:
    """How much attention falls on the words that the grammar aligns.

    Attributes
    ----------
    mass : ndarray of shape (L, H)
        Mean over the aligned target pieces of the weight on pieces of the words that they translate, in each
        layer and head; from 0 to 1.
    uniform : float
        What attention spread evenly over the source would have.
    n_pieces : int
        Target pieces that the mean is over.
    """

    mass: np.ndarray
    uniform: float
    n_pieces: int


def word_spans(words: Sequence[str], language: str) -> list[tuple[int, int]]:
    """Where each word stands in the text that `write_out` makes of them: (begin, end) in characters.

    Examples
    --------
    >>> word_spans(["L'", "eau", "!"], "fr")            # L'eau !
    [(0, 2), (2, 5), (6, 7)]
    """
    text, spans, end = write_out(words, language), [], 0
    for word in words:
        begin = text.index(word, end)
        end = begin + len(word)
        spans.append((begin, end))
    return spans


def words_of_pieces(tokenizer: Tokenizer, words: Sequence[str], language: str) -> list[set[int]]:
    """For each piece of the written sentence, the numbers of the words that it writes.

    A piece that is but a space belongs to the word that it begins.
    """
    spans, found, end = word_spans(words, language), [], -1  # the first piece begins with a space of its own
    for piece in tokenizer.pieces(write_out(words, language)):
        begin, end = end, end + len(piece)
        own = {i for i, (first, last) in enumerate(spans) if first < end and last > begin}
        found.append(own or {i for i, (first, _) in enumerate(spans) if first == end})
    return found


def true_alignment(tokenizer: Tokenizer, pair: SentencePair) -> Tensor:
    """Which source positions each target position should look at, by the grammar.

    Parameters
    ----------
    tokenizer : Tokenizer
    pair : SentencePair

    Returns
    -------
    Tensor of shape (T, S), bool
        True where piece s writes a word that piece t translates. Rows and columns of the end marks, and rows
        of words without counterpart, are False.
    """
    sources = words_of_pieces(tokenizer, pair.english, "en")
    targets = words_of_pieces(tokenizer, pair.french, "fr")
    links = set(pair.alignment)
    table = torch.zeros(len(targets) + 1, len(sources) + 1, dtype=torch.bool)
    for t, written in enumerate(targets):
        for s, read in enumerate(sources):
            table[t, s] = any((i, j) in links for i in read for j in written)
    return table


@torch.no_grad()
def cross_attention(model: Translator, tokenizer: Tokenizer, english: str, french: str) -> Tensor:
    """Weights with which a translation is written, its text given.

    Row t holds the weights of the step that predicts piece t of the target.

    Returns
    -------
    Tensor of shape (L, H, T, S)
        Rows sum to 1.
    """
    device = next(model.parameters()).device
    src_ids = torch.tensor([[*tokenizer.encode(english), tokenizer.eos_id]], device=device)
    tgt_ids = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(french)]], device=device)
    was_training = model.training
    model.eval()
    with record_attention(model) as recorded:
        model(src_ids, tgt_ids)
    model.train(was_training)
    return torch.stack([weights for name, weights in recorded.items() if name.endswith("cross_attn")])[:, 0]


def alignment_mass(model: Translator, tokenizer: Tokenizer, pairs: Sequence[SentencePair]) -> AlignmentMass:
    """Measure how much of the attention to the source falls on the words being translated.

    Parameters
    ----------
    model : Translator
        From English into French.
    tokenizer : Tokenizer
    pairs : sequence of SentencePair
        Such as `World.sentence_pairs` draws.

    Returns
    -------
    AlignmentMass
    """
    total = torch.zeros(model.config.n_layers, model.config.n_heads, dtype=torch.float64)
    uniform, n_pieces = 0.0, 0
    for pair in pairs:
        truth = true_alignment(tokenizer, pair)  # (T, S)
        aligned = truth.any(dim=1)
        english, french = write_out(pair.english, "en"), write_out(pair.french, "fr")
        weights = cross_attention(model, tokenizer, english, french).cpu().double()  # (L, H, T, S)
        total += (weights * truth).sum(dim=-1)[:, :, aligned].sum(dim=-1)
        uniform += truth[aligned].double().mean(dim=1).sum().item()
        n_pieces += int(aligned.sum())
    if not n_pieces:
        raise ValueError(f"pairs must hold an aligned word, got {len(pairs)} pairs without any")
    return AlignmentMass((total / n_pieces).numpy(), uniform / n_pieces, n_pieces)
