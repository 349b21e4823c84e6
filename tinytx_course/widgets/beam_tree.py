"""The beam tree: which hypotheses beam search extends, keeps and prunes at each step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import traitlets

from tinytx.beam import Hypothesis, Search
from tinytx.encoder_decoder import Translator
from tinytx.generate import check_vocabulary, unwritten_ids
from tinytx.inference import eval_mode
from tinytx.tokenizer import Tokenizer, plain
from tinytx_course.widgets.base import Explorer, bounded
from tinytx_course.widgets.fill_blank import shown

LARGEST_BEAM = 4
PENALTIES = (0.0, 0.5, 1.0)
_MOST_SOURCES = 6
_N_PRUNED = 3
_ENDED = ("finished", "cut")
Node = tuple[int, int, float, str]  # parent in the step before, token id, log-probability, what becomes of it


class BeamTreeExplorer(Explorer):
    """See `beam_tree`.

    A `source` one past the last is the tiny model that lesson 11 follows by hand, which the page searches.
    ``trees[source][beam_size - 1]`` is a list of steps of nodes [parent, token, log-probability, fate]; a
    fate is "kept", "pruned", "finished", or "cut" at the length limit.
    """

    kind = "beam_tree"
    title = traitlets.Unicode("Beam search, step by step").tag(sync=True)

    sources = traitlets.List(traitlets.Unicode()).tag(sync=True)
    references = traitlets.List(traitlets.Unicode()).tag(sync=True)  # one for each source, or none
    trees = traitlets.List(traitlets.List()).tag(sync=True)
    source = bounded(0, 0, lambda its: len(its.sources))
    beam_size = bounded(2, 1, LARGEST_BEAM)
    step = bounded(1, 1, lambda its: max(len(steps) for trees in its.trees for steps in trees))
    length_penalty = traitlets.Enum(PENALTIES, 1.0).tag(sync=True)

    def summary(self) -> str:
        """Return what is shown, and which search."""
        if self.source == len(self.sources):
            shown = f"The tiny model of the lesson, beam size {self.beam_size}."
        else:
            n_steps = len(self.trees[self.source][self.beam_size - 1])
            shown = f"“{self.sources[self.source]}”, beam size {self.beam_size}, step "
            shown += f"{min(self.step, n_steps)} of {n_steps}."
        return (
            "The hypotheses of beam search as a tree, with their log-probabilities: kept, pruned, finished. "
            f"{shown}"
        )


def beam_tree(
    model: Translator,
    tokenizer: Tokenizer,
    sources: str | Sequence[str],
    *,
    references: Sequence[str] = (),
) -> BeamTreeExplorer:
    """Follow beam search step by step, for beam sizes 1 (greedy decoding) to 4.

    Parameters
    ----------
    model : Translator
    tokenizer : Tokenizer
        The one that the model was trained with.
    sources : str or sequence of str
        Texts to translate, at most 6. It opens with the one for which the beam wins most.
    references : sequence of str
        The right translation of each source, shown next to it; by default none.

    Raises
    ------
    ValueError
        If there are too few or too many texts, one is empty, or there are references but not one for each
        source.
    """
    texts = [sources] if isinstance(sources, str) else list(sources)
    if not 1 <= len(texts) <= _MOST_SOURCES or not all(texts):
        raise ValueError(f"sources must be 1 to {_MOST_SOURCES} texts, none empty, got {texts}")
    if references and len(references) != len(texts):
        raise ValueError(f"references must be one for each of {len(texts)} sources, got {len(references)}")
    check_vocabulary(model, tokenizer)
    sizes = range(1, LARGEST_BEAM + 1)
    trees = [[search_tree(model, tokenizer, text, size) for size in sizes] for text in texts]
    named = [
        [
            [[[at, shown(tokenizer, i), round(p, 4), fate] for at, i, p, fate in step] for step in steps]
            for steps in row
        ]
        for row in trees
    ]
    explorer = BeamTreeExplorer(sources=texts, references=list(references), trees=named)
    explorer.source = _furthest_ahead(trees, explorer.beam_size)
    return explorer


def _furthest_ahead(trees: list[list[list[list[Node]]]], beam_size: int) -> int:
    """Source to begin with: where the beam wins most over greedy decoding, or leads most before."""
    ways = [[_lead(row, beam_size, n) for n in range(1, len(row[beam_size - 1]) + 1)] for row in trees]
    ends = [_lead(row, beam_size, max(map(len, row))) for row in trees]
    return max(range(len(trees)), key=lambda i: (ends[i], max(ways[i])))


def _lead(row: list[list[list[Node]]], beam_size: int, n: int) -> float:
    """By how many nats of log P the beam's best hypothesis after n steps is ahead of greedy decoding."""
    return _leader(row[beam_size - 1], n) - _leader(row[0], n)


def _leader(steps: list[list[Node]], n: int) -> float:
    """Log P of the hypothesis with the best score after n steps: a finished one, or one that goes on."""
    seen = [
        (log_prob / length, log_prob, fate, length)
        for length, nodes in enumerate(steps[:n], 1)
        for *_, log_prob, fate in nodes
    ]
    last = min(n, len(steps))
    return max(each for each in seen if each[2] in _ENDED or (each[2] == "kept" and each[3] == last))[1]


@torch.no_grad()
def search_tree(model: Translator, tokenizer: Tokenizer, text: str, beam_size: int) -> list[list[Node]]:
    """All steps of a beam search: the extensions that are kept or end, best first, then the best pruned.

    It ends when no unfinished hypothesis can win with any of `PENALTIES`.
    """
    ids = tokenizer.encode(plain(text))
    limit = Search().max_tokens(len(ids), model.config.max_len)
    steps: list[list[Node]] = []
    beams: list[tuple[int, list[int], float]] = [(-1, [tokenizer.bos_id], 0.0)]  # node, ids, log P
    finished: list[Hypothesis] = []
    with eval_mode(model) as device:
        memory = model.encode(torch.tensor([[*ids, tokenizer.eos_id]], device=device), None)
        while beams and len(steps) < limit and not _is_decided(finished, beams, limit):
            prefixes = torch.tensor([row for _, row, _ in beams], device=device)
            hidden = model.decoder(prefixes, memory.expand(len(beams), -1, -1), None, None)
            logits = model.head(hidden[:, -1])  # (R, V)
            logits[:, list(unwritten_ids(tokenizer))] = -torch.inf
            before = torch.tensor([[log_prob] for *_, log_prob in beams], dtype=torch.float64)
            totals = before + logits.double().log_softmax(dim=-1).cpu()
            best, choice = totals.flatten().topk(beam_size + _N_PRUNED)
            nodes: list[Node] = []
            grown: list[tuple[int, list[int], float]] = []
            for log_prob, index in zip(best.tolist(), choice.tolist(), strict=True):
                (parent, row, _), token = beams[index // totals.shape[1]], index % totals.shape[1]
                fate = "pruned" if len(nodes) >= beam_size else "kept"
                if fate == "kept" and token == tokenizer.eos_id:
                    fate = "finished"
                    finished.append(Hypothesis((*row[1:], token), log_prob, True))
                elif fate == "kept":
                    fate = "cut" if len(steps) + 1 == limit else fate
                    grown.append((len(nodes), [*row, token], log_prob))
                nodes.append((parent, token, log_prob, fate))
            steps.append(nodes)
            beams = grown
    return steps


def _is_decided(finished: list[Hypothesis], beams: list[tuple[int, list[int], float]], limit: int) -> bool:
    """Whether no extension can beat the best finished one: log-probabilities only fall."""
    top, length = max(log_prob for *_, log_prob in beams), len(beams[0][1])
    return bool(finished) and all(
        max(each.score(penalty) for each in finished) >= max(top / n**penalty for n in (length, limit))
        for penalty in PENALTIES
    )
