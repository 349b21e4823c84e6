"""A translator against a parallel corpus: BLEU, chrF, loss, and on the world the mistakes of grammar."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from tinytx.model import Translator
from tinytx.text import Tokenizer
from tinytx.text.pairs import PairCorpus, Pairs, load_pairs
from tinytx.text.plain import plain
from tinytx.training.generation.beamsearch import Search
from tinytx.training.translation.bleu import TranslationScore, score_translations
from tinytx.training.translation.objective import TranslationObjective
from tinytx.training.translation.translating import GREEDY, translate


@dataclass(frozen=True)
class GrammarCount:
    """Mistakes of grammar in translations into the language of the world.

    Attributes
    ----------
    n_errors : int
        All mistakes that `tinytx.text.world.checker.check_sentence` names.
    n_sentences : int
        Translations with at least one.
    n_agreement : int
        Mistakes of agreement in gender and number among them.
    """

    n_errors: int
    n_sentences: int
    n_agreement: int


@dataclass(frozen=True)
class TranslationEvaluation:
    """What a translator makes of one split of a parallel corpus.

    Attributes
    ----------
    corpus, split : str
    search : Search
        How translations were searched for.
    nats_per_token : float or None
        Mean surprise at the pieces of the references, the end mark included, without label smoothing; over
        pairs that the model can read.
    score : TranslationScore
        Each pair by itself, against its one reference.
    all_references : TranslationScore or None
        Each different source once, against all references that it has in the split; None where each source
        has one.
    grammar : GrammarCount or None
        On the world only.
    n_unfinished, n_cut : int
        Translations that the model did not end, and sources that were too long to be read at once.
    translations : tuple of str
        One for each pair.
    """

    corpus: str
    split: str
    search: Search
    nats_per_token: float | None
    score: TranslationScore
    all_references: TranslationScore | None
    grammar: GrammarCount | None
    n_unfinished: int
    n_cut: int
    translations: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them; not the translations."""
        return {
            "kind": "translator",
            "corpus": self.corpus,
            "split": self.split,
            "search": self.search.to_dict(),
            "nats_per_token": self.nats_per_token,
            **self.score.to_dict(),
            "all_references": None if self.all_references is None else self.all_references.to_dict(),
            "grammar": None if self.grammar is None else vars(self.grammar),
            "n_unfinished": self.n_unfinished,
            "n_cut": self.n_cut,
        }

    def __str__(self) -> str:
        how = "greedy" if self.search.beam_size == 1 else f"beam of {self.search.beam_size}"
        lines = [f"{self.corpus}, {self.split} split, {how}: {self.score}"]
        if self.all_references is not None:
            lines.append(f"against all references of each source: {self.all_references}")
        if self.grammar is not None:
            count = self.grammar
            lines.append(
                f"mistakes of grammar: {count.n_errors:,} in {count.n_sentences:,} translations, "
                f"{count.n_agreement:,} of them of agreement"
            )
        if self.n_cut:
            lines.append(f"{self.n_cut:,} sources were too long and translated in parts")
        return "\n".join(lines)


def evaluate_translator(
    model: Translator,
    tokenizer: Tokenizer,
    corpus: str | os.PathLike[str] | PairCorpus,
    *,
    split: str | None = None,
    search: Search = GREEDY,
    data_dir: str | os.PathLike[str] | None = None,
) -> TranslationEvaluation:
    """Translate a split and score it.

    Parameters
    ----------
    model : Translator
    tokenizer : Tokenizer
    corpus : str, path or PairCorpus
    split : {"train", "valid", "test"}, optional
        By default the test split, or valid where there is none.
    search : Search
    data_dir : path, optional
        Folder that holds one folder a corpus.

    Notes
    -----
    References are compared as they stand in the corpus; only what the model reads is made plain.
    """
    data = corpus if isinstance(corpus, PairCorpus) else load_pairs(corpus, data_dir)
    chosen = split or ("valid" if data.test is None else "test")
    if chosen not in data.splits:
        raise ValueError(f"split must be one of {', '.join(data.splits)}, got {chosen!r}")
    pairs = data.splits[chosen]
    references = pairs.references()
    sources = list(references)
    found = translate(model, tokenizer, sources, search=search, report=lambda line: None)
    text_of = {source: one.text for source, one in zip(sources, found, strict=True)}
    translations = tuple(text_of[source] for source in pairs.sources)
    several = len(sources) < len(pairs)
    return TranslationEvaluation(
        corpus=data.name,
        split=chosen,
        search=search,
        nats_per_token=pair_nats(model, tokenizer, pairs),
        score=score_translations(translations, [[target] for target in pairs.targets]),
        all_references=score_translations([one.text for one in found], list(references.values()))
        if several
        else None,
        grammar=count_mistakes(translations) if data.name == "world" else None,
        n_unfinished=sum(not one.finished for one in found),
        n_cut=sum(one.n_parts > 1 for one in found),
        translations=translations,
    )


@torch.no_grad()
def pair_nats(
    model: Translator, tokenizer: Tokenizer, pairs: Pairs, *, tokens_per_batch: int = 4096
) -> float | None:
    """Mean nats a target piece, its end mark included; None where every pair is too long to be read."""
    objective = translation_objective(tokenizer, pairs, model.config.max_len)
    if objective is None:
        return None
    was_training = model.training
    model.eval()
    total = 0.0
    for indices in objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=tokens_per_batch):
        total += objective.nats(model, indices).item() * objective.n_predictions(indices)
    model.train(was_training)
    return total / objective.n_tokens


def translation_objective(
    tokenizer: Tokenizer, pairs: Pairs, max_len: int, label_smoothing: float = 0.0
) -> TranslationObjective | None:
    """What is to be learned from some pairs, in plain typography; None where every pair is too long."""
    sources = tokenizer.encode_batch([plain(text) for text in pairs.sources])
    targets = tokenizer.encode_targets([plain(text) for text in pairs.targets])
    if all(max(len(a), len(b)) >= max_len for a, b in zip(sources, targets, strict=True)):
        return None
    return TranslationObjective(
        sources,
        targets,
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
        pad_id=tokenizer.pad_id,
        max_len=max_len,
        label_smoothing=label_smoothing,
    )


@cache
def _world() -> Any:
    from tinytx.text.world import World

    return World()


def count_mistakes(translations: Sequence[str]) -> GrammarCount:
    """Count the mistakes of grammar in French sentences made of the world's words.

    Examples
    --------
    >>> count_mistakes(["L'histoire est belle.", "La histoire est beau."])
    GrammarCount(n_errors=2, n_sentences=1, n_agreement=1)
    """
    from tinytx.text.world.checker import check_sentence

    found = [check_sentence(_world().split(text)) for text in translations]
    return GrammarCount(
        sum(map(len, found)),
        sum(map(bool, found)),
        sum("must agree" in mistake for mistakes in found for mistake in mistakes),
    )
