"""Positions and ablation: the lessons' own functions, every cell once."""

from experiments import ablation, positions
from experiments.lesson_cells import from_lesson


def test_every_kind_plays_and_reads_and_is_measured_once(once, monkeypatch):
    kinds = {"game": ("one number", "alibi"), "language": ("none",)}
    monkeypatch.setattr(positions, "KINDS", kinds)
    found, records = once(positions.positions, changes={"n_seeds": 2})
    assert list(records)[:2] == ["game/one number/seed 0", "game/alibi/seed 0"] and len(records) == 6
    game, language = records["game/alibi/seed 1"], records["language/none/seed 1"]
    assert 0 <= game["right 8"] <= 1 and 0 <= game["right 16"] <= 1
    assert len(language["losses"]) == len(language["before"]) and min(language["losses"]) > language["bound"]
    assert len(language["far"]) == 4 and (found["n"] == 2).all()


def test_the_parts_of_the_lesson_are_left_out_and_pairs_of_tokens_counted(once):
    found, _ = once(ablation.ablation)
    rows = found.set_index("left out")["mean"]
    assert [*rows.index] == ["2-gram", *from_lesson("07", "parts").parts] and rows.nunique() == len(rows)
    assert rows["2-gram"] < rows["no part"]
