"""Figures: masked is not taken for zero, alt texts arrive in pages, equal figures are equal bytes."""

import io
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from matplotlib import image
from PIL import Image

from tinytx_course import plots
from tinytx_course.plots.lines import _spread
from tinytx_course.plots.style import style

WEIGHTS = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
ALLOWED = torch.tensor([[True, True, False], [True, True, True]])


def pixels(fig, ax, row, col):
    """Return the pixels well inside one cell of a heat map, as an array of shape (height, width, 3)."""
    drawn = image.imread(io.BytesIO(plots.png_bytes(fig)))[..., :3]
    scale = 120 / fig.dpi
    corners = ax.transData.transform([(col + 0.2, row + 0.2), (col + 0.8, row + 0.8)]) * scale
    (left, low), (right, high) = corners.min(axis=0).astype(int), corners.max(axis=0).astype(int)
    height = drawn.shape[0]
    return drawn[height - high : height - low, left:right]


def test_a_masked_cell_looks_different_from_a_zero():
    fig, ax = plots.heatmap(WEIGHTS, allowed=ALLOWED, low=0, high=1)
    zero, masked = pixels(fig, ax, 0, 1), pixels(fig, ax, 0, 2)
    assert zero.std(axis=(0, 1)).max() < 1e-3, "a zero is one even colour"
    assert masked.std(axis=(0, 1)).max() > 0.02, "a masked cell is hatched"
    assert abs(zero.mean() - masked.mean()) > 0.1, "and darker, also without colours"


def test_what_is_allowed_looks_the_same_with_and_without_a_mask():
    plain, ax_plain = plots.heatmap(WEIGHTS, low=0, high=1)
    masked, ax_masked = plots.heatmap(WEIGHTS, allowed=torch.ones(2, 3, dtype=torch.bool), low=0, high=1)
    assert np.array_equal(pixels(plain, ax_plain, 0, 0), pixels(masked, ax_masked, 0, 0))
    assert not masked.legends, "nothing is masked, so nothing has to be explained"


def test_rows_run_downwards_and_carry_their_tokens():
    fig, ax = plots.heatmap(WEIGHTS, row_labels=["a", "b"], col_labels=["x", "y", "z"], low=0, high=1)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["x", "y", "z"]
    assert pixels(fig, ax, 0, 0).mean() < pixels(fig, ax, 1, 0).mean()
    assert ax.transData.transform((0, 0))[1] > ax.transData.transform((0, 1))[1]


@pytest.mark.parametrize(
    ("labels", "leans"),
    [(["un", "deux"], False), (["un\n(1679)", "deux\n(731)"], False), (["un (1679)", "deux (731)"], True)],
)
def test_names_of_columns_lean_only_where_a_line_of_them_is_long(labels, leans):
    _, ax = plots.heatmap([[0.1, 0.9]], col_labels=labels)
    assert [tick.get_rotation() != 0 for tick in ax.get_xticklabels()] == [leans, leans]


def test_a_signed_matrix_has_white_at_zero():
    fig, ax = plots.heatmap(np.array([[-1.0, 0.0, 1.0]]))
    assert pixels(fig, ax, 0, 1).mean() > 0.95
    assert not np.allclose(pixels(fig, ax, 0, 0).mean((0, 1)), pixels(fig, ax, 0, 2).mean((0, 1)), atol=0.1)


def test_what_is_not_a_number_says_so_unless_it_is_masked():
    broken = torch.tensor([[1.0, float("nan"), float("nan")], [0.0, 1.0, 0.0]])
    fig, ax = plots.heatmap(broken, allowed=ALLOWED, low=0, high=1)
    named = {text.get_position() for text in ax.texts if text.get_text() == "NaN"}
    assert named == {(1.5, 0.5)}, "column 1 of row 0; column 2 is masked"
    assert pixels(fig, ax, 0, 1).std(axis=(0, 1)).max() > 0.02
    _, whole = plots.heatmap(WEIGHTS, low=0, high=1)
    assert not whole.texts


@pytest.mark.parametrize("matrix", [np.zeros(3), np.zeros((2, 3, 5))])
def test_a_matrix_has_two_axes(matrix):
    with pytest.raises(ValueError, match="two axes, got shape"):
        plots.heatmap(matrix)


def test_a_mask_has_the_shape_of_its_matrix():
    with pytest.raises(ValueError, match=r"shape of matrix, \(2, 3\), got \(3, 2\)"):
        plots.heatmap(WEIGHTS, allowed=ALLOWED.T)


def test_curves_carry_their_names_in_their_colours_at_their_height():
    low, high = [0.6, 0.7], [0.8, 0.9]
    lines = [
        plots.Curve("scratch", [1, 2], [0.1, 0.2]),
        plots.Curve("pretrained", [1, 2], [0.7, 0.8], low, high),
    ]
    fig, ax = plots.curves(lines, xlabel="epoch", ylabel="accuracy", references={"best reachable": 0.95})
    plots.png_bytes(fig)
    texts = {text.get_text(): text for text in ax.texts}
    assert set(texts) == {"scratch", "pretrained", "best reachable"}
    for name, y in {"scratch": 0.2, "pretrained": 0.8, "best reachable": 0.95}.items():
        drawn = ax.transAxes.transform(texts[name].get_position())[1]
        assert abs(drawn - ax.transData.transform((0, y))[1]) < 0.1 * ax.bbox.height, name
    assert texts["scratch"].get_color() == ax.lines[0].get_color() == plots.COLORS[0]
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (0.6, 0.9)


def test_names_that_would_meet_move_apart_and_keep_their_order():
    placed = _spread([0.50, 0.51, 0.10, 0.52], gap=0.1)
    assert placed == pytest.approx([0.41, 0.51, 0.10, 0.61])
    assert _spread([0.1, 0.9], gap=0.1) == [0.1, 0.9]


def test_bars_write_their_values_and_run_from_top_to_bottom():
    fig, ax = plots.bars(
        {"first": 20_000, "second": 160_800}, xlabel="parameters", numbers=",", references={"limit": 5}
    )
    plots.png_bytes(fig)
    assert {"20,000", "160,800", "limit"} <= {text.get_text() for text in ax.texts}
    assert ax.transData.transform((0, 0))[1] > ax.transData.transform((0, 1))[1]


def test_bars_of_a_kind_share_a_colour_that_the_legend_explains():
    values, kinds = {"a": 1.0, "b": -2.0, "c": 3.0}, {"a": "new", "b": "old", "c": "new"}
    _, ax = plots.bars(values, kinds=kinds, xlabel="points")
    a, b, c = (bar.get_facecolor() for bar in ax.patches)
    legend = ax.get_legend()
    named = zip(legend.get_texts(), legend.get_patches(), strict=True)
    assert {text.get_text(): patch.get_facecolor() for text, patch in named} == {"new": a, "old": b}
    assert a == c != b


def test_colours_differ_in_lightness_or_hue_for_the_colour_blind():
    """Simulate the loss of the red or green cones (Viénot et al. 1999) and compare all pairs."""
    rgb = np.array([[int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)] for color in plots.COLORS]) ** 2.2
    protan = np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]])
    deutan = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])
    for sight in (np.eye(3), protan, deutan):
        seen = np.clip(rgb @ sight.T, 0, 1) ** (1 / 2.2)
        apart = np.linalg.norm(seen[:, None] - seen[None], axis=-1) + 9 * np.eye(len(seen))
        assert apart.min() > 0.1


def test_equal_figures_are_equal_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYTX_FIGURES", str(tmp_path))
    for name in ("one", "two"):
        fig, _ = plots.heatmap(WEIGHTS, allowed=ALLOWED)
        plots.save_figure(fig, name, alt="the same")
    for ending in ("png", "svg"):
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


def test_figures_are_written_only_when_told_so(tmp_path, monkeypatch):
    monkeypatch.delenv("TINYTX_FIGURES", raising=False)
    monkeypatch.chdir(tmp_path)
    fig, _ = plots.figure()
    plots.save_figure(fig, "nothing")
    assert list(tmp_path.iterdir()) == []


def test_a_saved_svg_describes_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYTX_FIGURES", str(tmp_path))
    fig, _ = plots.figure()
    plots.save_figure(fig, "described", alt="an empty frame")
    assert "an empty frame" in "".join(ET.parse(tmp_path / "described.svg").getroot().itertext())


@pytest.mark.parametrize("name", ["", "a/b", "../up"])
def test_a_figure_is_named_without_folders(name):
    fig, _ = plots.figure()
    with pytest.raises(ValueError, match="plain file name"):
        plots.save_figure(fig, name)


def test_a_figure_without_alt_text_is_not_shown():
    fig, _ = plots.figure()
    with pytest.raises(ValueError, match="what the figure shows"):
        plots.show(fig, alt="  ")


def test_the_alt_text_arrives_in_the_page(monkeypatch):
    pytest.importorskip("nbconvert")
    pytest.importorskip("latex2mathml")
    import IPython.display
    from nbformat.v4 import new_code_cell, new_notebook, new_output

    from tinytx_course.site.pages import notebook_to_html

    shown = []
    monkeypatch.setattr(
        IPython.display, "display", lambda data, raw, metadata: shown.append((data, metadata))
    )
    fig, _ = plots.heatmap(WEIGHTS)
    plots.show(fig, alt='Two rows,\n   "three" columns & a < b')
    ((data, metadata),) = shown
    json.dumps(data)
    output = new_output("display_data", data=data, metadata=metadata)
    page = notebook_to_html(new_notebook(cells=[new_code_cell("show()", outputs=[output])]))
    (tag,) = re.findall(r"<img\b[^>]*>", page)
    assert """alt='Two rows, "three" columns &amp; a &lt; b'""" in tag
    assert data["text/plain"] == '[figure: Two rows, "three" columns & a < b]'


def test_a_figure_is_not_shown_a_second_time_by_itself():
    import matplotlib.pyplot as plt

    plots.figure()
    assert plt.get_fignums() == []


def test_the_style_does_not_leak_into_other_figures():
    import matplotlib as mpl

    before = mpl.rcParams.copy()
    plots.heatmap(WEIGHTS, allowed=ALLOWED)
    plots.curves([plots.Curve("a", [1, 2], [3, 5])], xlabel="x", ylabel="y")
    assert mpl.rcParams == before


def test_the_number_of_a_negative_bar_stands_to_its_left():
    fig, ax = plots.bars({"gain": 0.2, "loss": -0.3}, intervals={"loss": (-0.5, 0.1)}, xlabel="points")
    plots.png_bytes(fig)  # places the letters
    gain, loss = (text.get_window_extent() for text in ax.texts)
    assert gain.x0 > ax.transData.transform((0.2, 0))[0]
    assert loss.x1 < ax.transData.transform((-0.5, 0))[0]


def test_a_png_of_256_colours_looks_like_the_figure():
    """Against matplotlib's own PNG, in true colour, of the picture with the most colours: a gradient."""
    fig, _ = plots.heatmap(torch.linspace(0, 1, 700).reshape(20, 35), title="a gradient")
    stream = io.BytesIO()
    with style():
        fig.savefig(stream, format="png")
    small = Image.open(io.BytesIO(plots.png_bytes(fig)))
    true, few = (np.asarray(im.convert("RGB"), dtype=float) for im in (Image.open(stream), small))
    assert small.mode == "P"
    assert np.abs(true - few).mean() < 1  # of 255
    assert len(plots.png_bytes(fig)) < 0.6 * len(stream.getvalue())
