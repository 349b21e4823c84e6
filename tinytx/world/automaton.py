r"""Exact probabilities, forward: what a prefix leaves open.

A state of the whole automaton is a pair: where the sentence stands (a state :math:`q` of the `Network`), and
what is hidden above it (label :math:`z`, number of finished sentences :math:`k`, book :math:`g`), kept as an
array of shape (2, K + 1, G). With one more word :math:`w` the weights move along its arcs,

.. math:: \alpha_{t+1}(q', z, k, g) = \sum_{q \to q' \text{ writes } w} \alpha_t(q, z, k, g) \, P(q \to q'
\mid g)

and the mass that reaches the end of a sentence is shared between the end of the review and the entries of the
next sentence. The weights are scaled after each sentence, so that a review of any length stays within
floating point.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tinytx.world.grammar import POLARITIES, Grammar, Opener, Rule, capital
from tinytx.world.lexicon import Choice
from tinytx.world.reviews import N_LABELS, ReviewPlan
from tinytx.world.steps import Read, Step

Known = tuple[tuple[tuple[int, str], str], ...]  # features settled so far: ((slot, feature), value), sorted
Weights = np.ndarray  # (G,), one for each book that a review may be about
Frontier = dict[
    Known, list[tuple[int, Weights]]
]  # where a rule stands: states, each with weight not yet on an arc

START = -1  # the source of a rule's first arcs, before they are tied to the entries of a polarity


@dataclass(frozen=True)
class Network:
    """States and arcs of all sentences of a language, sorted by source state.

    Attributes
    ----------
    words : tuple of str
        The vocabulary in sorted order; arcs refer to it by index.
    source, target, word : ndarray of shape (A,)
        Arc endpoints and the word that it writes.
    weight : ndarray of shape (A, G)
        Probability of the arc given its source state and what the review is about, one of G books.
    first : ndarray of shape (Q + 1,)
        Arcs of state q are those from ``first[q]`` up to ``first[q + 1]``.
    ends : tuple of int
        The state after a sentence, one a polarity.
    entries : tuple of dict
        For each polarity, the state where a sentence begins: after nothing (``"plain"``) or with an opener.
    """

    words: tuple[str, ...]
    source: np.ndarray
    target: np.ndarray
    word: np.ndarray
    weight: np.ndarray
    first: np.ndarray
    ends: tuple[int, ...]
    entries: tuple[dict[str, int], ...]

    def arcs_from(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """List all arcs that leave some states: for each, the row of its state in `states`, and its index."""
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
        """Number of books that a review may be about: G."""
        return self.weight.shape[1]


def build_network(grammar: Grammar, language: str) -> Network:
    """Compile the rules of a grammar for one language (``"fr"`` or ``"en"``)."""
    builder = _Builder(language, len(grammar.lexicon.books))
    ends, entries = [], []
    for polarity in POLARITIES:
        end, entry = builder.new_state(), {}
        low_first = {opener.kind for opener in grammar.openers}
        for kind in sorted(low_first):
            entry[kind] = builder.new_state()
        chains = [(opener, entry[opener.kind]) for opener in grammar.openers]
        inner = {
            id(opener): [builder.new_state() for _ in opener.words[language][1:]]
            for opener in grammar.openers
        }
        low, entry["plain"] = builder.new_state(), builder.new_state()
        for opener, start in chains:
            same_kind = sum(other.kind == opener.kind for other in grammar.openers)
            builder.add_opener(opener, [start, *inner[id(opener)], low], 1.0 / same_kind)
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
        steps = rule.steps[self.language]
        frontier: Frontier = {(): [(START, np.full(self.n_books, rule.weight))]}
        for position, step in enumerate(steps):
            later = steps[position + 1 :]
            last = position == len(steps) - 1
            frontier = self._take(
                step, frontier, rule, _Needed.after(later), (low, capitalised), end if last else None
            )

    def _take(
        self,
        step: Step,
        frontier: Frontier,
        rule: Rule,
        needed: _Needed,
        starts: tuple[int, int],
        end: int | None,
    ) -> Frontier:
        """Cross one step with the frontier: write arcs where it writes a word, pass where it writes none."""
        moved: Frontier = defaultdict(list)
        targets: dict[Known, int] = {}
        for known, word, weight, after in _outcomes(step, frontier, rule, needed):
            if not word:
                moved[after].extend(
                    (source, w if weight is None else w * weight) for source, w in frontier[known]
                )
                continue
            if after not in targets:
                targets[after] = self.new_state() if end is None else end
            for source, w in frontier[known]:
                total = w if weight is None else w * weight
                if source == START:
                    self.add_arc(starts[0], targets[after], word, total)
                    self.add_arc(starts[1], targets[after], capital(word), total)
                else:
                    self.add_arc(source, targets[after], word, total)
        for after, state in targets.items():
            moved[after].append((state, np.ones(self.n_books)))
        return moved

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


Mass = dict[int, np.ndarray]  # network state -> probability of what is hidden, (2, K + 1, G)
CACHED_PREFIXES = 4096
ROWS_AT_ONCE = 2048  # prefixes whose next words are computed together


@dataclass
class Forward:
    """All that a prefix leaves open.

    Attributes
    ----------
    mass : mapping from int to ndarray of shape (2, K + 1, G)
        Weight of each state that the prefix may have led to, apart from the end of the review.
    stopped : ndarray of shape (2, K + 1, G)
        Weight of the review ending here.
    log_scale : float
        What all weights are to be multiplied by, as a logarithm.
    """

    mass: Mass
    stopped: np.ndarray
    log_scale: float

    @property
    def total(self) -> float:
        """Sum of all weights: 0 where no review begins like this."""
        return float(sum(hidden.sum() for hidden in self.mass.values()) + self.stopped.sum())

    @property
    def hidden(self) -> np.ndarray:
        """P(label, finished sentences, book | prefix), shape (2, K + 1, G)."""
        weight = sum(self.mass.values(), self.stopped)
        return weight / weight.sum()

    @property
    def log_prob(self) -> float:
        """Log-probability that a review begins with the prefix, in nats."""
        return self.log_scale + float(np.log(total)) if (total := self.total) > 0 else -np.inf

    @property
    def log_prob_of_end(self) -> float:
        """Log-probability that the prefix is a whole review, in nats."""
        return self.log_scale + float(np.log(self.stopped.sum())) if self.stopped.any() else -np.inf


class Automaton:
    """Weighted automaton over the words of one language.

    Parameters
    ----------
    network : Network
        Sentences.
    plan : ReviewPlan
        What is hidden above them.
    """

    def __init__(self, network: Network, plan: ReviewPlan) -> None:
        self.network, self.plan = network, plan
        self.word_ids = network.word_ids
        self._nothing = np.zeros((N_LABELS, plan.most_sentences + 1, network.n_books))
        self._stop = plan.stop[None, :, None]
        self._polarity = plan.polarity_given_label()
        self._cache: dict[tuple[str | None, ...], Forward] = {}

    def start(self) -> Forward:
        """Give the state of affairs before the first word."""
        hidden = np.zeros_like(self._nothing)
        hidden[:, 0] = 1.0 / (N_LABELS * self.network.n_books)
        mass: Mass = {}
        self._enter(None, hidden, mass)
        return Forward(mass, self._nothing, 0.0)

    def _enter(self, previous: int | None, hidden: np.ndarray, mass: Mass) -> None:
        """Spread the mass before a sentence over the entries of the network."""
        if not hidden.any():
            return
        for polarity, entries in enumerate(self.network.entries):
            weighted = hidden * self._polarity[:, polarity, None, None]
            for kind, chance in self.plan.opener_chances(previous, polarity).items():
                _add(mass, entries[kind], chance * weighted)

    @cached_property
    def _steps(self) -> dict[tuple[int, int], list[tuple[int, np.ndarray]]]:
        """Where a word leads from a state, with weights in the shape of what is hidden.

        Products of arrays of equal shape take a third of the time of broadcast ones, and this is what
        reading consists of.
        """
        network = self.network
        weights = np.broadcast_to(
            network.weight[:, None, None, :], (len(network.word), *self._nothing.shape)
        ).copy()
        steps: dict[tuple[int, int], list[tuple[int, np.ndarray]]] = defaultdict(list)
        columns = network.source.tolist(), network.word.tolist(), network.target.tolist(), weights
        for source, word, target, weight in zip(*columns, strict=True):
            steps[source, word].append((target, weight))
        return dict(steps)

    def advance(self, before: Forward, word: str) -> Forward:
        """Read one more word; a word that cannot follow leaves no weight."""
        steps = self._steps
        mass: Mass = {}
        if (word_id := self.word_ids.get(word)) is not None:
            for state, hidden in before.mass.items():
                for target, weight in steps.get((state, word_id), ()):
                    _add(mass, target, hidden * weight)
        return self._pass_on(mass, before.log_scale)

    def advance_any(self, before: Forward) -> Forward:
        """Read one hidden word: the weights of all that may stand there together."""
        network = self.network
        mass: Mass = {}
        for state, hidden in before.mass.items():
            for arc in range(network.first[state], network.first[state + 1]):
                _add(mass, int(network.target[arc]), hidden * network.weight[arc])
        return self._pass_on(mass, before.log_scale)

    def _pass_on(self, mass: Mass, log_scale: float) -> Forward:
        """Go on from the ends of sentences to the next ones, or to the end of the review."""
        stopped = self._nothing
        if any(end in mass for end in self.network.ends):
            total = sum(hidden.sum() for hidden in mass.values())
            mass = {state: hidden / total for state, hidden in mass.items()}
            log_scale += float(np.log(total))
            for polarity, end in enumerate(self.network.ends):
                if end in mass:
                    finished = _one_more_sentence(mass.pop(end))
                    stopped = stopped + finished * self._stop
                    self._enter(polarity, finished * (1.0 - self._stop), mass)
        return Forward(mass, stopped, log_scale)

    def read(self, words: Iterable[str | None], state: Forward | None = None) -> Forward:
        """Read words one by one (None: a hidden word), from the beginning or from where a state stands."""
        state = state or self.start()
        for word in words:
            state = self.advance_any(state) if word is None else self.advance(state, word)
        return state

    def prefixes(self, words: Iterable[str | None]) -> list[Forward]:
        """Read words one by one and give what was open before each of them, and at the end."""
        states = [self.start()]
        for word in words:
            states.append(self.read([word], states[-1]))
        return states

    def forward(self, words: Sequence[str | None]) -> Forward:
        """Read a prefix; where all but its last word was read lately, only that word."""
        key = tuple(words)
        if key in self._cache:
            return self._cache[key]
        before = self._cache.get(key[:-1])
        state = self.read(key) if before is None else self.read(key[-1:], before)
        if len(self._cache) >= CACHED_PREFIXES:
            self._cache.clear()
        self._cache[key] = state
        return state

    def forget(self) -> None:
        """Forget which prefixes were read lately, as a measurement of speed must."""
        self._cache.clear()

    def next_words(self, before: Sequence[Forward]) -> np.ndarray:
        """Give P(next word | prefix) for many prefixes.

        Parameters
        ----------
        before : sequence of Forward
            What each prefix leaves open.

        Returns
        -------
        ndarray of shape (n, V + 1)
            One column a word, and the end of the review in the last; rows sum to 1.
        """
        parts = [
            self._next_words(before[at : at + ROWS_AT_ONCE]) for at in range(0, len(before), ROWS_AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.network.words) + 1))

    def _next_words(self, before: Sequence[Forward]) -> np.ndarray:
        n_columns = len(self.network.words) + 1
        states = np.array([state for one in before for state in one.mass], dtype=np.int64)
        owner = np.repeat(np.arange(len(before)), [len(one.mass) for one in before])
        hidden = [hidden for one in before for hidden in one.mass.values()]
        by_book = np.array(hidden).reshape(-1, *self._nothing.shape).sum(axis=(1, 2))  # (states, G)
        rows, arcs = self.network.arcs_from(states)
        value = np.einsum("ag,ag->a", by_book[rows], self.network.weight[arcs])
        cell = owner[rows] * n_columns + self.network.word[arcs]
        chances = np.bincount(cell, value, minlength=len(before) * n_columns)
        chances = chances.astype(float).reshape(-1, n_columns)  # without any arc it would be whole numbers
        chances[:, -1] = np.array([one.stopped for one in before]).sum(axis=(1, 2, 3))
        total = np.bincount(owner, by_book.sum(axis=1), minlength=len(before)) + chances[:, -1]
        return chances / total[:, None]


def _add(mass: Mass, state: int, weight: np.ndarray) -> None:
    mass[state] = mass[state] + weight if state in mass else weight


def _one_more_sentence(hidden: np.ndarray) -> np.ndarray:
    moved = np.zeros_like(hidden)
    moved[:, 1:] = hidden[:, :-1]
    return moved
