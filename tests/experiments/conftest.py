"""A small copy of the layout of the real data, made of few words, and settings that spend nothing."""

import json
import random

import pytest

from experiments.harness import Settings
from tinytx_course.results import Results
from tinytx_run.corpora import Corpus, Split
from tinyworld.world import World

GOOD, BAD = ("superbe", "magnifique", "passionnant"), ("ennuyeux", "raté", "décevant")
OTHER = ("le", "livre", "un", "roman", "est", "histoire", "auteur", "très", "page", "et", "dans", "la")
LETTERS = "abcdefghijklmnopqrstuvwxyzàâçéèêëîïôùûüœ"
PUT = Results.put


def review(rng, label):
    """Ten words, two of them of the label's kind; a number makes each text different."""
    words = [rng.choice(OTHER) for _ in range(8)] + [rng.choice(GOOD if label else BAD) for _ in range(2)]
    rng.shuffle(words)
    return " ".join(words) + f" {rng.randrange(10**6)}"


def sentence(rng):
    """Words that never were, then a review: enough letters for any tokenizer."""
    made = ["".join(rng.choice(LETTERS) for _ in range(rng.randint(2, 4))) for _ in range(6)]
    return " ".join(made) + " " + review(rng, rng.randrange(2))


@pytest.fixture(scope="session")
def reviews():
    """150 reviews of two classes; the last of valid repeats the first of train, but for its case."""
    rng = random.Random(0)
    labels = [i % 2 for i in range(150)]
    texts = [review(rng, label) for label in labels]
    return Corpus(
        "books",
        Split(tuple(texts[:120]), tuple(labels[:120])),
        Split((*texts[120:], texts[0].upper()), (*labels[120:], labels[0])),
        Split(tuple(review(rng, label) for label in labels[:11]), tuple(labels[:11])),
    )


def world_split(n, seed, whole_alphabet=False):
    """Some reviews; with the whole alphabet, a few more, so that every letter of the world occurs."""
    world = World()
    reviews = world.reviews(n, seed=seed)
    if whole_alphabet:
        missing = set("".join(world.vocabulary)) - set("".join(word for one in reviews for word in one.words))
        for one in world.reviews(4000, seed=seed + 1):
            if missing & set("".join(one.words)):
                missing -= set("".join(one.words))
                reviews.append(one)
    return Split(tuple(" ".join(one.words) for one in reviews), tuple(one.label for one in reviews))


@pytest.fixture(scope="session")
def corpus():
    """The language of the world with few reviews."""
    return Corpus("world", world_split(150, 1, whole_alphabet=True), world_split(20, 2), world_split(12, 3))


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory, reviews):
    """Novels, sentence pairs and star-rated reviews, one of which is a review of the task."""
    rng = random.Random(1)
    folder = tmp_path_factory.mktemp("data")
    texts = [review(rng, i % 2) for i in range(80)] + [reviews.train.texts[3] + " !"]
    rated = [json.dumps({"reader_review": text, "label": i % 3 - 1}) for i, text in enumerate(texts)]
    novels = [sentence(rng) for _ in range(200)]
    files = {
        "eltec-fra/corpus.train.txt": [*novels, novels[0]],
        "eltec-fra/corpus.valid.txt": [*(sentence(rng) for _ in range(20)), novels[1]],
        "tatoeba-en-fr/pairs.train.tsv": [f"english {i}\t{sentence(rng)}" for i in range(200)],
        "tatoeba-en-fr/pairs.valid.tsv": ["english\tBonjour\u202f!"],
        "reader-reviews-fr/babelio_reviews.jsonl": rated[:40],
        "reader-reviews-fr/critiques_libres_reviews.jsonl": rated[40:],
    }
    for name, lines in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture
def settings(tmp_path):
    """Makes settings of the smallest budget, with a store in a folder of the test."""

    def make(name="demo", **changes):
        return Settings(
            store=Results(name, tmp_path / "results"),
            **{"budget": "smoke", "work_dir": tmp_path / "build", "device": "cpu"}
            | {"report": lambda line: None}
            | changes,
        )

    return make


@pytest.fixture
def stop_after(monkeypatch):
    """Lets so many records be stored and refuses the next; gives a list with the number that is left."""

    def limit(n_records):
        left = [n_records]

        def put(store, key, record):
            if left[0] == 0:
                raise ConnectionAbortedError
            left[0] -= 1
            PUT(store, key, record)

        monkeypatch.setattr(Results, "put", put)
        return left

    return limit


@pytest.fixture
def once(settings, stop_after):
    """Runs an experiment, then again when nothing may be measured; gives its table and its records."""

    def run(experiment, *args, changes=None, **how):
        found = experiment(settings(**changes or {}), *args, **how)
        stop_after(0)
        assert experiment(settings(**changes or {}), *args, **how).equals(found)
        return found, settings().store.data

    return run
