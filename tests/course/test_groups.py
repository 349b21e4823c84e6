"""Grouped bars: every value at its place, and series told apart by name."""

import pytest

from tinytx_course import plots

SERIES = {"model": {"beau": 0.25, "long": 0.1}, "truth": {"beau": 0.3, "long": 0.05}}


def test_each_value_is_drawn_once_in_the_group_it_belongs_to():
    _, ax = plots.grouped_bars(SERIES, xlabel="probability")
    drawn = [(bar.get_width(), round(bar.get_y() + bar.get_height() / 2)) for bar in ax.patches]
    assert drawn == [(0.25, 0), (0.1, 1), (0.3, 0), (0.05, 1)]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["beau", "long"]
    assert [note.get_text() for note in ax.texts] == ["0.25", "0.10", "0.30", "0.05"]


def test_groups_run_downwards_and_series_have_names_and_colours_of_their_own():
    _, ax = plots.grouped_bars(SERIES, xlabel="probability", title="Next word")
    assert (
        ax.yaxis_inverted() and ax.get_xlabel() == "probability" and ax.get_title(loc="left") == "Next word"
    )
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["model", "truth"]
    first, second = (container.patches[0].get_facecolor() for container in ax.containers)
    assert first != second


def test_bars_do_not_overlap():
    _, ax = plots.grouped_bars(
        {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 2}, "c": {"x": 1, "y": 2}}, xlabel="n"
    )
    spans = sorted((bar.get_y(), bar.get_y() + bar.get_height()) for bar in ax.patches)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))


def test_series_that_do_not_fit_together_are_refused():
    with pytest.raises(ValueError, match="at least one series, got none"):
        plots.grouped_bars({}, xlabel="n")
    with pytest.raises(ValueError, match=r"groups \['x'\], got \['y'\] for 'b'"):
        plots.grouped_bars({"a": {"x": 1}, "b": {"y": 2}}, xlabel="n")
