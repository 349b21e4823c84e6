"""Small worlds, written to a folder, in which every review can be listed with its probability."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from tinyworld.grammar import POLARITIES, Grammar
from tinyworld.lexicon import TABLES
from tinyworld.reviews import ReviewPlan
from tinyworld.world import World

SMALL_TABLES = {
    "nouns": """
        french    plural gender initial english   english_plural role     genre
        roman     .      m      c       novel     .              work     any
        histoire  .      f      v       story     stories        work     any
        ouvrage   .      m      v       volume    .              work     crime
        style     -      m      c       style     -              aspect   any
        idée      .      f      v       idea      .              aspect   love
        humour    -      m      v       humour    mass           aspect   any
        héros     héros  m      c       hero      heroes         person   any
        héroïne   .      f      v       heroine   .              person   love
        île       .      f      v       island    .              theme    travel
        merveille .      f      c       marvel    .              verdict+ any
        échec     .      m      v       failure   .              verdict- any
    """,
    "adjectives": """
        masculine feminine  masculine_plural before_vowel place  of   degree english     polarity
        beau      belle     beaux            bel          before any  yes    beautiful   +
        émouvant  émouvante .                .            after  any  no     moving      +
        mauvais   mauvaise  mauvais          .            before any  yes    bad         -
        odieux    odieuse   odieux           .            after  work no     odious      -
        nouveau   nouvelle  nouveaux         nouvel       before any  yes    new         0
        ancien    ancienne  .                .            after  any  no     old         0
    """,
    "verbs": """
        kind     french  second    initial english  english_second polarity
        liking   aime    aimé      v       like     liked          +
        liking   hais    haï       c       hate     hated          -
        touching amuse   amusent   v       amuses   amuse          +
        touching déçoit  déçoivent c       repels   repel          -
        advice   lisez   lisez     c       read     read           +
        advice   évitez  évitez    v       avoid    avoid          -
    """,
    "adverbs": """
        french english polarity
        bien   well    +
        mal    badly   -
    """,
    "particles": """
        class  french english
        degree très   very
        made   écrit  written
    """,
    "openers": """
        class    french english
        greeting Bonjour~à~tous~, Hello~everyone~,
        further  De~plus~, Moreover~,
        contrast Mais But
        remark   Bref~, In~short~,
    """,
}
FEW_SENTENCES = """weight\tpolarity\tfrench\tenglish
3\tboth\t{le 1 person} {be 1} {adj+ 3 1} .\t{the 1} {be 1} {adj 3} .
2\tboth\tquel {adj- 2} !\twhat {adj 2} !
1\t+\tc' est {un 1 verdict+ sg} .\tit is {a 1} .
1\t-\tquel {adj+ 2} !\twhat {adj 2} !
"""


Words = tuple[str, ...]


@dataclass
class Truth:
    """All reviews of a small world with P(review, label, genre), found without the network."""

    world: World  # what is to be tested
    reviews: Mapping[Words, np.ndarray]  # (2, G) each

    def __post_init__(self) -> None:
        self.chance = {words: float(hidden.sum()) for words, hidden in self.reviews.items()}
        self.begins: dict[Words, float] = defaultdict(float)
        for words, chance in self.chance.items():
            for length in range(len(words) + 1):
                self.begins[words[:length]] += chance

    def sample(self, n: int, seed: int) -> list[Words]:
        """Give n reviews, each as likely as any other, so that rare ones are there too."""
        listed = sorted(self.reviews)
        return [listed[i] for i in np.random.default_rng(seed).choice(len(listed), size=n, replace=False)]


def _sentences(grammar: Grammar, language: str, polarity: str, kind: str) -> dict[Words, np.ndarray]:
    """List all sentences with their probability in each genre."""
    found: dict[Words, np.ndarray] = defaultdict(lambda: np.zeros(len(grammar.lexicon.books)))
    openers = [opener.words[language] for opener in grammar.openers if opener.kind == kind]
    for rule in grammar.rules[polarity]:
        for filled in itertools.product(*rule.slots.values()):
            written = rule.write(language, dict(zip(rule.slots, filled, strict=True)))
            words = tuple(word for word, _ in written)
            chance = rule.weight * np.prod([choice.weights for choice in filled], axis=0)
            if kind == "plain":
                found[words[0][:1].upper() + words[0][1:], *words[1:]] += chance
            for opener in openers:
                found[*opener, *words] += chance / len(openers)
    return found


def enumerate_reviews(world: World) -> Truth:
    grammar, plan = world.grammar, world.plan
    kinds = {kind for openers in plan.openers.values() for kind in openers}
    sentences = {
        (polarity, kind): _sentences(grammar, world.language, sign, kind)
        for polarity, sign in enumerate(POLARITIES)
        for kind in kinds
    }

    def after(previous: int | None, label: int, left: int) -> Iterator[tuple[Words, np.ndarray]]:
        if left == 0:
            yield (), np.ones(len(grammar.lexicon.books))
            return
        for (polarity, kind), listed in sentences.items():
            moment = "first" if previous is None else "same" if previous == polarity else "turn"
            chance = plan.openers[moment].get(kind, 0.0)
            chance *= plan.agreement if polarity == label else 1.0 - plan.agreement
            if chance == 0.0:
                continue
            rest = list(after(polarity, label, left - 1))
            for words, by_genre in listed.items():
                for more, weight in rest:
                    yield words + more, chance * by_genre * weight

    reviews: dict[Words, np.ndarray] = defaultdict(lambda: np.zeros((2, len(grammar.lexicon.books))))
    for label, (n_sentences, chance) in itertools.product((0, 1), plan.sentences.items()):
        for words, by_genre in after(None, label, n_sentences):
            reviews[words][label] += by_genre * chance / (2 * len(grammar.lexicon.books))
    return Truth(world, reviews)


@pytest.fixture(scope="session")
def small_truth(tmp_path_factory) -> Callable[[str, str], Truth]:
    """Give a small world, listed when it is first asked for.

    "wide": every sentence pattern of the package, reviews of one sentence.
    "deep": a few patterns, reviews of one or two sentences, labels that are often belied.
    """
    settings = {
        "wide": ((TABLES / "sentences.tsv").read_text(encoding="utf-8"), ReviewPlan(sentences={1: 1.0})),
        "deep": (FEW_SENTENCES, ReviewPlan(sentences={1: 0.3, 2: 0.7}, agreement=0.8)),
    }

    @cache
    def listed(kind: str, language: str) -> Truth:
        patterns, plan = settings[kind]
        folder = tmp_path_factory.mktemp(kind)
        for name, table in SMALL_TABLES.items():
            rows = ["\t".join(line.split()).replace("~", " ") for line in table.strip().splitlines()]
            (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        (folder / "sentences.tsv").write_text(patterns, encoding="utf-8")
        return enumerate_reviews(World(language, folder, plan))

    return listed


@pytest.fixture(scope="session", params=["fr", "en"])
def deep(request, small_truth) -> Truth:
    """Reviews of one or two sentences."""
    return small_truth("deep", request.param)


@pytest.fixture(scope="session", params=["wide-fr", "wide-en", "deep-fr", "deep-en"])
def truth(request, small_truth) -> Truth:
    """Either kind, in either language."""
    return small_truth(*request.param.split("-"))


@pytest.fixture(scope="session")
def world() -> World:
    """The world of the package, in French."""
    return World()
