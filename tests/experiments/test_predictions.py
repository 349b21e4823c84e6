"""Predictions again with other seeds: what an outcome follows from is run, and nothing else."""

import pytest
import torch

from experiments import predictions
from experiments.predictions import outcomes, table

LESSON = (
    """import torch
import tinytx_course as course
from numpy.random import default_rng
raise RuntimeError("nothing follows from this")""",
    """seen = {}
def watch(step):
    seen[step] = torch.rand(1).item()
def learn(steps, model, on_step):
    model.extend(range(steps))
    on_step(steps)""",
    'course.predict("02.1", "Which?", ["seven", "eight"])',
    """_ = torch.manual_seed(3)
model = []
watch(1)
learn(7, model, watch)
drawn = (torch.rand(1, generator=torch.Generator().manual_seed(5)), default_rng(5).random(), *seen.values())
course.resolve("02.1", {7: "seven", 8: "eight"}[len(model)], f"{drawn}")""",
    'course.predict("02.2", "How fast?", ["slow", "fast"])',
    'course.resolve("02.2", 2.0, "So.", between=(1.5, 2.5), thresholds=(2.2,))',
    'course.predict("02.3", "?", ["yes", "no"])',
    'wrong = 1 / 0\ncourse.resolve("02.3", "yes", f"{wrong}")',
)


def test_an_outcome_follows_from_what_functions_change_and_a_failure_is_named(monkeypatch):
    monkeypatch.setattr(predictions, "code_cells", {"98": LESSON}.get)
    found = outcomes("98", 0, 1)
    assert found["answers"] == {"02.1": "seven", "02.2": "open", "02.3": None}
    assert found["problem"] == "code cell 8: ZeroDivisionError: division by zero"
    assert torch.manual_seed(1).initial_seed() == 1 and torch.Generator.__module__ == "torch._C"


def test_a_lesson_that_says_how_many_threads_it_takes_has_them(monkeypatch):
    cells = (
        "import torch\nimport tinytx_course as course\ntorch.set_num_threads(1)",
        'course.predict("02.1", "Threads?", ["1", "2"])',
        'course.resolve("02.1", str(torch.get_num_threads()), "So.")',
    )
    monkeypatch.setattr(predictions, "code_cells", {"97": cells}.get)
    before = torch.get_num_threads()
    try:
        assert outcomes("97", 0, 2)["answers"] == {"02.1": "1"}
    finally:
        torch.set_num_threads(before)


DRAWS = {
    "torch.manual_seed": "_ = torch.manual_seed(5)\ndrawn = torch.randint(1000, (1,)).item()",
    "a generator": "drawn = torch.randint(1000, (1,), generator=torch.Generator().manual_seed(5)).item()",
    "numpy": "drawn = default_rng(5).integers(1000)",
    "Python": "drawn = Random(5).randrange(1000)",
    "a keyword": "draw = lambda seed: seed % 997\ndrawn = draw(seed=5)",
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_seed_0_leaves_all_seeds_of_a_lesson_and_others_move_them(monkeypatch, draw):
    modules = {"numpy.random": "default_rng", "random": "Random"}
    lines = [f"from {module} import {name}" for module, name in modules.items()]
    imports = "\n".join(["import tinytx_course as course", "import torch", *lines])
    question = 'course.predict("02.1", "?", [str(i) for i in range(1000)])'
    cells = (imports, question, f'{draw}\ncourse.resolve("02.1", str(drawn), "So.")')
    monkeypatch.setattr(predictions, "code_cells", {draw: cells}.get)
    expected = []
    for seed in (0, 1):
        scope = {}
        exec(f"{imports}\n{draw.replace('5)', f'{5 + seed * predictions.STEP})')}", scope)
        expected.append(str(scope["drawn"]))
    assert [outcomes(draw, seed, 1)["answers"]["02.1"] for seed in (0, 1)] == expected
    assert expected[0] != expected[1]


def test_the_table_says_how_often_a_prediction_came_out_the_same():
    answers = [("a", "x"), ("a", "open"), ("b", "x"), ("a", "x")]
    records = {
        str(i): {"answers": {"02.1": first, "02.2": second}, "problem": "so" if i == 2 else ""}
        for i, (first, second) in enumerate(answers)
    }
    found = table(records).set_index("number")
    assert found.loc["02.1", ["n", "answer", "same", "open", "problem"]].tolist() == [4, "a", 0.75, 0.0, "so"]
    assert found.loc["02.2", ["same", "open"]].tolist() == [0.75, 0.25]


def test_a_lesson_is_resolved_once_for_each_number_of_threads(settings):
    with pytest.raises(ValueError, match="lesson must be one of 00, 01.*'44'"):
        predictions.predictions(settings(), lessons=["44"])
    found = predictions.predictions(settings(), lessons=["18"])
    assert set(settings().store.data) == {"18/seed 0/threads 1", "18/seed 0/threads 2"}
    assert found["number"].tolist() == ["18.1", "18.2"] and not any(found["problem"])
