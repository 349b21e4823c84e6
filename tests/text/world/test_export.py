"""The world as files."""

from __future__ import annotations

import pytest

from tinytx.text.world import World
from tinytx.text.world.export import write_world


def rows(path):
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def test_files_hold_the_drawn_reviews_and_pairs_and_a_card(tmp_path, world):
    found = write_world(tmp_path / "out", n_reviews=200, seed=7, pairs=True, n_means=50)
    assert found == {
        **{"train.tsv": 160, "valid.tsv": 20, "test.tsv": 20},
        **{"pairs-train.tsv": 160, "pairs-valid.tsv": 20, "pairs-test.tsv": 20},
    }
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*found, "README.md"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    written = [row for name in ("train", "valid", "test") for row in rows(tmp_path / "out" / f"{name}.tsv")]
    assert written == [[str(r.label), " ".join(r.words)] for r in world.reviews(200, seed=7)]
    pairs = [
        row for name in ("train", "valid", "test") for row in rows(tmp_path / "out" / f"pairs-{name}.tsv")
    ]
    assert pairs == [[" ".join(p.english), " ".join(p.french)] for p in world.sentence_pairs(200, seed=7)]
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in card and f"{len(world.vocabulary):,}" in card
    assert str(world.entropy_per_word(n=50)) in card and str(world.best_accuracy(n=50)) in card


def test_same_seed_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_world(tmp_path / name, n_reviews=50, seed=3, language="en", n_means=20)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    assert World("en").log_prob(rows(tmp_path / "a" / "test.tsv")[0][1].split(" ")) > -1000


def test_nothing_is_overwritten_and_nothing_is_left_behind(tmp_path, monkeypatch):
    (tmp_path / "kept.txt").write_text("mine")
    with pytest.raises(ValueError, match="new or empty"):
        write_world(tmp_path, n_reviews=50)
    with pytest.raises(ValueError, match="n_reviews must be at least 20, got 3"):
        write_world(tmp_path / "new", n_reviews=3)
    monkeypatch.setattr("pathlib.Path.rename", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_world(tmp_path / "new", n_reviews=50, n_means=20)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]
