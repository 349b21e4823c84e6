"""A small copy of the layout of the real data, made of few words."""

import json
import random

import pytest

from tinytx.text.corpora import Corpus, Split

GOOD, BAD = ("superbe", "magnifique", "passionnant"), ("ennuyeux", "raté", "décevant")
OTHER = ("le", "livre", "un", "roman", "est", "histoire", "auteur", "très", "page", "et", "dans", "la")


def review(rng, label):
    """Ten words, two of them of the label's kind; a number makes each text different."""
    words = [rng.choice(OTHER) for _ in range(8)] + [rng.choice(GOOD if label else BAD) for _ in range(2)]
    rng.shuffle(words)
    return " ".join(words) + f" {rng.randrange(10**6)}"


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
        Split(("jamais lu ici",), (1,)),
    )


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory, reviews):
    """Novels, sentence pairs and star-rated reviews, one of which is a review of the task."""
    rng = random.Random(1)
    folder = tmp_path_factory.mktemp("data")
    letters = "abcdefghijklmnopqrstuvwxyzàâçéèêëîïôùûüœ"

    def line():
        made = ["".join(rng.choice(letters) for _ in range(rng.randint(2, 4))) for _ in range(6)]
        return " ".join(made) + " " + review(rng, rng.randrange(2))

    (folder / "eltec-fra").mkdir()
    (folder / "eltec-fra" / "corpus.train.txt").write_text("\n".join(line() for _ in range(200)))
    (folder / "tatoeba-en-fr").mkdir()
    pairs = "\n".join(f"english\t{line()}" for _ in range(200))
    (folder / "tatoeba-en-fr" / "pairs.train.tsv").write_text(pairs)
    rows = [{"reader_review": review(rng, i % 2), "rating": 4.5 if i % 2 else 2.0} for i in range(80)]
    rows.append({"reader_review": reviews.train.texts[3] + " !", "rating": 5.0})
    (folder / "reader-reviews-fr").mkdir()
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (folder / "reader-reviews-fr" / "some.jsonl").write_text(lines)
    return folder
