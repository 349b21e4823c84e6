"""The network of a language: all its sentences as an acyclic weighted automaton, compiled from the rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tinyworld.grammar import POLARITIES, Grammar, Opener, Rule, capital
from tinyworld.lexicon import Choice
from tinyworld.steps import Read, Step

Known = tuple[tuple[tuple[int, str], str], ...]  # features settled so far: ((slot, feature), value), sorted
Weights = np.ndarray  # (G,), one for each book that a review may be about
# How far a rule is written: by what is known, states, each with a weight that is not yet on an arc.
Frontier = dict[Known, list[tuple[int, Weights]]]
START = -1  # the source of a rule's first arcs, before they are tied to the entries of a polarity


@dataclass(frozen=True)
class Network:
    """The Q states and A arcs of all sentences of a language, sorted by source state."""

    words: tuple[str, ...]  # the vocabulary in sorted order; arcs refer to it by index
    source: np.ndarray  # (A,)
    target: np.ndarray  # (A,)
    word: np.ndarray  # (A,), that an arc writes
    weight: np.ndarray  # (A, G): probability of the arc given its source state and the book
    first: np.ndarray  # (Q + 1,): the arcs of state q are those from first[q] up to first[q + 1]
    ends: tuple[int, ...]  # the state after a sentence, one a polarity
    entries: tuple[dict[str, int], ...]  # a polarity each: where a sentence begins, "plain" or with an opener

    def arcs_from(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All arcs that leave some states: for each, the row of its state in `states`, and its index."""
        counts = self.first[states + 1] - self.first[states]
        rows = np.repeat(np.arange(len(states)), counts)
        offset = self.first[states] - (np.cumsum(counts) - counts)
        return rows, np.arange(counts.sum()) + offset[rows]

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """Index of each word in the vocabulary."""
        return {word: index for index, word in enumerate(self.words)}

    @property
    def n_books(self) -> int:
        """Number of books: G."""
        return int(self.weight.shape[1])


def build_network(grammar: Grammar, language: str) -> Network:
    """Compile the rules of a grammar for one language (``"fr"`` or ``"en"``)."""
    builder = _Builder(language, len(grammar.lexicon.books))
    n_of_kind = Counter(opener.kind for opener in grammar.openers)
    ends, entries = [], []
    for polarity in POLARITIES:
        end = builder.new_state()
        entry = {kind: builder.new_state() for kind in sorted(n_of_kind)}
        inner = [[builder.new_state() for _ in opener.words[language][1:]] for opener in grammar.openers]
        low, entry["plain"] = builder.new_state(), builder.new_state()
        for opener, states in zip(grammar.openers, inner, strict=True):
            chance = 1.0 / n_of_kind[opener.kind]
            builder.add_opener(opener, [entry[opener.kind], *states, low], chance)
        for rule in grammar.rules[polarity]:
            builder.add_rule(rule, low=low, capitalised=entry["plain"], end=end)
        ends.append(end)
        entries.append(entry)
    return builder.finish(tuple(ends), tuple(entries))


@dataclass
class _Builder:
    language: str
    n_books: int
    n_states: int = 0
    vocabulary: dict[str, int] = field(default_factory=dict)
    arcs: list[tuple[int, int, int]] = field(default_factory=list)
    weights: list[Weights] = field(default_factory=list)

    def new_state(self) -> int:
        self.n_states += 1
        return self.n_states - 1

    def add_arc(self, source: int, target: int, word: str, weight: Weights) -> None:
        self.arcs.append((source, target, self.vocabulary.setdefault(word, len(self.vocabulary))))
        self.weights.append(weight)

    def add_opener(self, opener: Opener, states: Sequence[int], chance: float) -> None:
        for position, word in enumerate(opener.words[self.language]):
            weight = np.full(self.n_books, chance if position == 0 else 1.0)
            self.add_arc(states[position], states[position + 1], word, weight)

    def add_rule(self, rule: Rule, *, low: int, capitalised: int, end: int) -> None:
        """Cross the steps of a rule: write arcs where a step writes a word, pass where it writes none."""
        steps = rule.steps[self.language]
        frontier: Frontier = {(): [(START, np.full(self.n_books, rule.weight))]}
        for number, step in enumerate(steps, start=1):
            moved: Frontier = defaultdict(list)
            targets: dict[Known, int] = {}
            for known, word, weight, after in _outcomes(step, frontier, rule, _Needed.after(steps[number:])):
                ways = [(source, w if weight is None else w * weight) for source, w in frontier[known]]
                if not word:
                    moved[after].extend(ways)
                    continue
                if after not in targets:
                    targets[after] = end if number == len(steps) else self.new_state()
                for source, total in ways:
                    if source == START:
                        self.add_arc(low, targets[after], word, total)
                        self.add_arc(capitalised, targets[after], capital(word), total)
                    else:
                        self.add_arc(source, targets[after], word, total)
            for after, state in targets.items():
                moved[after].append((state, np.ones(self.n_books)))
            frontier = moved

    def finish(self, ends: tuple[int, ...], entries: tuple[dict[str, int], ...]) -> Network:
        arcs, weight = np.array(self.arcs), np.array(self.weights)
        words = sorted(self.vocabulary)
        rank = {self.vocabulary[word]: place for place, word in enumerate(words)}
        arcs[:, 2] = [rank[word] for word in arcs[:, 2].tolist()]
        order = np.argsort(arcs[:, 0], kind="stable")
        source, target, word = arcs[order].T.copy()
        weight = weight[order]
        first = np.searchsorted(source, np.arange(self.n_states + 1))
        total = np.zeros((self.n_states, self.n_books))  # of all ways to finish the sentence from a state
        total[list(ends)] = 1.0
        for state in range(self.n_states - 1, -1, -1):
            if state not in ends:
                span = slice(first[state], first[state + 1])
                total[state] = (weight[span] * total[target[span]]).sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = np.where(total[source] > 0, weight * total[target] / total[source], 0.0)
        for state in (state for entry in entries for state in entry.values()):
            if not np.allclose(total[state], 1.0, rtol=0.0, atol=1e-9):
                raise ValueError(f"all that begins at an entry must sum to 1, got {total[state].tolist()}")
        return Network(tuple(words), source, target, word, weight, first, ends, entries)


@dataclass(frozen=True)
class _Needed:
    """What the steps still to come will ask for."""

    features: frozenset[tuple[int, str]]
    slots: frozenset[int]

    @classmethod
    def after(cls, steps: Sequence[Step]) -> _Needed:
        reads = frozenset(pair for step in steps for pair in step.reads)
        return cls(reads, frozenset(step.fills for step in steps if step.fills is not None))

    def keep(self, known: Mapping[tuple[int, str], str]) -> Known:
        kept = {
            pair: value for pair, value in known.items() if pair in self.features or pair[0] in self.slots
        }
        return tuple(sorted(kept.items()))


def _outcomes(
    step: Step, frontier: Frontier, rule: Rule, needed: _Needed
) -> Iterator[tuple[Known, str | None, Weights | None, Known]]:
    """List what a step may do: (features before, word or none, weight or None for 1, features after)."""
    for known in frontier:
        for settled in _settle(sorted(step.reads), dict(known), rule):
            if step.fills is None:
                yield known, step.write(_reader(settled, None, None)), None, needed.keep(settled)
                continue
            for choice in _matching(rule.slots[step.fills], step.fills, settled):
                word = step.write(_reader(settled, step.fills, choice))
                if word is None:  # another step fills the slot
                    yield known, None, None, needed.keep(settled)
                    break
                own = {
                    (step.fills, name): choice.features[name]
                    for slot, name in needed.features
                    if slot == step.fills
                }
                yield known, word, np.array(choice.weights), needed.keep(settled | own)


def _settle(
    reads: Sequence[tuple[int, str]], known: dict[tuple[int, str], str], rule: Rule
) -> Iterator[dict[tuple[int, str], str]]:
    """Fix the features that a step reads, in every way that some choice allows."""
    open_reads = [pair for pair in reads if pair not in known]
    if not open_reads:
        yield known
        return
    slot, feature = open_reads[0]
    for value in sorted({choice.features[feature] for choice in _matching(rule.slots[slot], slot, known)}):
        yield from _settle(reads, known | {(slot, feature): value}, rule)


def _matching(choices: Sequence[Choice], slot: int, known: Mapping[tuple[int, str], str]) -> list[Choice]:
    wanted = [(feature, value) for (of, feature), value in known.items() if of == slot]
    return [choice for choice in choices if all(choice.features.get(f) == v for f, v in wanted)]


def _reader(known: Mapping[tuple[int, str], str], slot: int | None, choice: Choice | None) -> Read:
    def read(of: int, feature: str) -> str:
        if choice is not None and of == slot:
            return choice.features[feature]
        return known[of, feature]

    return read
