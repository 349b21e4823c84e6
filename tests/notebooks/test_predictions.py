"""Every prediction of the course: its own number, shown, resolved within two code cells, nobody's choice."""

import re

import pytest

from tests.environments import published

CALL = re.compile(r'course\.(predict|resolve)\(\s*"([\d.]+)"')
SHOWN = re.compile(r"(Predict|Result of) (\d\d\.\d+)\.")
WORDS = {"predict": "Predict", "resolve": "Result of"}
WITHIN = 2  # code cells after the prediction


@pytest.fixture
def cells(lesson):
    """The code cells of a lesson as published."""
    return [cell for cell in published(lesson).cells if cell.cell_type == "code"]


def texts(cell):
    return [output.get("data", {}).get("text/plain", "") for output in cell.outputs]


def test_predictions_are_numbered_in_their_order_and_each_is_resolved_soon_and_once(lesson, cells):
    places = {name: [] for name in WORDS}
    for place, cell in enumerate(cells):
        for name, number in CALL.findall(cell.source):
            places[name].append((number, place))
    asked, resolved = places.values()
    assert [number for number, _ in asked] == [f"{lesson.number:02d}.{i + 1}" for i in range(len(asked))]
    assert len(asked) >= 2
    assert sorted(number for number, _ in resolved) == sorted(number for number, _ in asked)
    assert all(1 <= dict(resolved)[number] - place <= WITHIN for number, place in asked)


def test_predictions_and_results_are_shown_without_a_choice(cells):
    for cell in cells:
        shown = [found.groups() for found in map(SHOWN.match, texts(cell)) if found]
        assert shown == [(WORDS[name], number) for name, number in CALL.findall(cell.source)]
        assert not any(text.startswith("Result of") and " predicted “" in text for text in texts(cell))


def test_a_lesson_recalls_those_before_it(lesson, cells):
    found = re.findall(r"course\.recall\((.*)\)", "\n".join(cell.source for cell in cells))
    assert found in ([], [f'"{lesson.number:02d}"'])
