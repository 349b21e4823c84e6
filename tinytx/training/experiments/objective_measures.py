"""How the contest of objectives judges a pretrained model: on the world, beside the exact optimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tinytx.model import LanguageModel, MaskedLanguageModel
from tinytx.text import Tokenizer
from tinytx.text.corpora import Corpus
from tinytx.text.overlap import TopicOverlap
from tinytx.text.world import World
from tinytx.training.generation.decoding import generate_ids, unwritten_ids
from tinytx.training.masked.blanks import Sides, fill_probs
from tinytx.training.masked.completing import complete_masked
from tinytx.training.masked.objective import pair_rows
from tinytx.training.masked.sentence_pairs import PairsOfSentences, draw_pairs, make_passages
from tinytx.training.objectives import PackedSequences

_BLANKS, _PAIRS = 41, 42  # seeds of what is drawn from the test texts


def fill_measures(
    model: LanguageModel | MaskedLanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    n_blanks: int,
    sides: Sides = "both",
) -> dict[str, Any]:
    """Fill one blank in each of some texts of the world.

    Returns
    -------
    dict
        ``nats`` (mean surprise at the true piece), ``accuracy`` of the most probable one, ``excess`` (mean
        Kullback-Leibler divergence from the exact fill given both sides), and under ``exact`` the first two
        for the exact fill. Blanks are the same for every model.
    """
    through = World().through(tokenizer)
    rng = np.random.default_rng(_BLANKS)
    found: dict[str, list[float]] = {"nats": [], "accuracy": [], "excess": []}
    exact: dict[str, list[float]] = {"nats": [], "accuracy": []}
    for ids in tokenizer.encode_batch(texts[:n_blanks]):
        place = int(rng.integers(len(ids)))
        truth = through.fill_token(ids, place)
        chances = fill_probs(model, tokenizer, ids, place, sides=sides)
        for which, probs in ((found, chances), (exact, truth)):
            which["nats"].append(-float(np.log(probs[ids[place]])))
            which["accuracy"].append(float(probs.argmax() == ids[place]))
        possible = truth > 0
        found["excess"].append(float((truth[possible] * np.log(truth[possible] / chances[possible])).sum()))
    means = {name: float(np.mean(values)) for name, values in found.items()}
    return {
        "n": len(found["nats"]),
        **means,
        "exact": {name: float(np.mean(values)) for name, values in exact.items()},
    }


def completion_measures(
    model: LanguageModel | MaskedLanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    n_prefixes: int,
    *,
    n_sweeps: int = 4,
    seed: int = 0,
) -> dict[str, Any]:
    """Carry on the first half of some texts of the world by sampling, to the end of the review.

    A causal model stops by itself. A masked one is told the true number of pieces.

    Returns
    -------
    dict
        ``possible``: share of completed reviews that the world can write at all; ``words_before_error``: mean
        number of new words before the first one that no review could have there; ``new_words``: mean number
        of new words. Samples of the exact language would have 1, and no error.
    """
    prefixes, n_new = [], []
    for text in texts[:n_prefixes]:
        words = text.split(" ")
        prefixes.append(words[: len(words) // 2])
        n_new.append(len(tokenizer.encode(" ".join(words[len(words) // 2 :]))))
    starts = [tokenizer.encode(" ".join(prefix)) for prefix in prefixes]
    if isinstance(model, MaskedLanguageModel):
        new = complete_masked(model, tokenizer, starts, n_new, n_sweeps=n_sweeps, seed=seed)
    else:
        first = seed * len(starts)
        new = [_carried_on(model, tokenizer, start, first + i) for i, start in enumerate(starts)]
    world, possible, before_error, n_words = World(), 0, 0, 0
    for prefix, start, ids in zip(prefixes, starts, new, strict=True):
        words = tokenizer.decode([*start, *ids]).split(" ")
        possible += world.log_prob(words) > -np.inf
        fine = [state.total > 0 for state in world.automaton.prefixes(words)][1:]
        good = fine.index(False) if False in fine else len(fine)
        before_error += max(0, good - len(prefix))
        n_words += max(0, len(words) - len(prefix))
    n = len(prefixes)
    return {
        "n": n,
        "possible": possible / n,
        "words_before_error": before_error / n,
        "new_words": n_words / n,
        "n_sweeps": n_sweeps,
    }


def _carried_on(model: LanguageModel, tokenizer: Tokenizer, start: list[int], seed: int) -> list[int]:
    ids = generate_ids(
        model,
        [tokenizer.bos_id, *start],
        eos_id=tokenizer.eos_id,
        forbidden_ids=unwritten_ids(tokenizer),
        max_new_tokens=model.config.max_len - len(start) - 1,
        seed=seed,
    )
    return ids[:-1] if ids[-1] == tokenizer.eos_id else ids


def next_sentence_measures(
    model: MaskedLanguageModel, tokenizer: Tokenizer, corpus: Corpus, split: str
) -> dict[str, Any]:
    """Ask whether one part of a text follows another, and ask counts of words the same.

    Returns
    -------
    dict
        Accuracies on one pair a passage of the split: of the ``model``, of ``associations`` between words of
        the training pairs, and of ``shared`` words; see `TopicOverlap`.
    """
    room = model.config.max_len - 3
    learned, asked = (
        draw_pairs(make_passages(tokenizer, texts, room), room, np.random.default_rng(seed))
        for texts, seed in ((corpus.train.texts, _PAIRS), (corpus.splits[split].texts, _PAIRS + 1))
    )
    labels = np.array(asked.labels)
    accuracy = {"model": float((_follows(model, tokenizer, asked) == labels).mean())}
    for name, associations in (("associations", True), ("shared", False)):
        baseline = TopicOverlap(tokenizer.vocab_size, associations=associations)
        baseline.fit(learned.firsts, learned.seconds, learned.labels)
        accuracy[name] = float((baseline.predict(asked.firsts, asked.seconds) == labels).mean())
    return {"n": len(labels), **accuracy}


@torch.no_grad()
def _follows(
    model: MaskedLanguageModel, tokenizer: Tokenizer, pairs: PairsOfSentences, n_rows: int = 64
) -> np.ndarray:
    """The model's answers, 0 or 1, shape (N,)."""
    device = next(model.parameters()).device
    rows = PackedSequences(pair_rows(tokenizer, pairs), tokenizer.pad_id)
    firsts = [len(first) + 2 for first in pairs.firsts]
    order = sorted(range(len(rows)), key=lambda i: rows.lengths[i])
    answers = np.zeros(len(rows), dtype=int)
    was_training = model.training
    model.eval()
    for at in range(0, len(order), n_rows):
        chosen = order[at : at + n_rows]
        inputs = rows.rows(chosen)  # (n, T)
        places = torch.arange(inputs.shape[1])
        real = inputs != tokenizer.pad_id
        second = (places >= torch.tensor([firsts[i] for i in chosen])[:, None]) & real
        segments = second.long().to(device) if model.config.n_segments else None
        found = model.follows(inputs.to(device), real.to(device), segments)
        answers[chosen] = found.argmax(dim=1).cpu().numpy()
    model.train(was_training)
    return answers


def best_label_accuracy(texts: Sequence[str], labels: Sequence[int]) -> float:
    """How often the most probable label, given the whole review, is the right one: nobody can expect more."""
    world = World()
    right = [
        (world.label_posterior(text.split(" ")) > 0.5) == bool(label)
        for text, label in zip(texts, labels, strict=True)
    ]
    return float(np.mean(right))
