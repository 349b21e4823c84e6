"""Figures: everything lies where the numbers say, masked is not zero, equal figures are equal bytes."""

import html
import io
import json
import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib import image
from matplotlib.colors import to_rgb
from PIL import Image

from tinytx_course import plots
from tinytx_course.plots.lines import _spread
from tinytx_course.plots.style import captions

WEIGHTS = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
ALLOWED = torch.tensor([[True, True, False], [True, True, True]])
STACKS = {2: [1.0, 10.0, 100.0], 4: [1.0, 0.1, 0.01, 1e-9, 0.0]}


def tick_labels(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]


def pixels(fig, ax, row, col):
    """Return the pixels well inside one cell of a heat map, as an array of shape (height, width, 3)."""
    drawn = image.imread(io.BytesIO(plots.png_bytes(fig)))[..., :3]
    corners = ax.transData.transform([(col + 0.2, row + 0.2), (col + 0.8, row + 0.8)]) * 120 / fig.dpi
    (left, low), (right, high) = corners.min(axis=0).astype(int), corners.max(axis=0).astype(int)
    return drawn[drawn.shape[0] - high : drawn.shape[0] - low, left:right]


# ---- matrices


def test_a_masked_cell_looks_different_from_a_zero():
    fig, ax = plots.heatmap(WEIGHTS, allowed=ALLOWED, low=0, high=1)
    zero, masked = pixels(fig, ax, 0, 1), pixels(fig, ax, 0, 2)
    assert zero.std(axis=(0, 1)).max() < 1e-3, "a zero is one even colour"
    assert masked.std(axis=(0, 1)).max() > 0.02, "a masked cell is hatched"
    assert abs(zero.mean() - masked.mean()) > 0.1, "and darker, also without colours"


def test_rows_run_downwards_and_carry_their_labels_and_nothing_masked_is_not_explained():
    labels, everything = {"row_labels": ["a", "b"], "col_labels": ["x", "y", "z"]}, torch.ones(2, 3).bool()
    fig, ax = plots.heatmap(WEIGHTS, allowed=everything, **labels, low=0, high=1)
    assert (tick_labels(ax.yaxis), tick_labels(ax.xaxis)) == (["a", "b"], ["x", "y", "z"])
    assert pixels(fig, ax, 0, 0).mean() < pixels(fig, ax, 1, 0).mean()
    assert ax.yaxis_inverted() and not fig.legends


def test_a_signed_matrix_has_white_at_zero():
    fig, ax = plots.heatmap(np.array([[-1.0, 0.0, 1.0]]))
    assert pixels(fig, ax, 0, 1).mean() > 0.95
    assert not np.allclose(pixels(fig, ax, 0, 0).mean((0, 1)), pixels(fig, ax, 0, 2).mean((0, 1)), atol=0.1)


def test_equal_limits_give_equal_colours_whatever_the_values_are():
    colours = [
        pixels(*plots.heatmap(np.array([[0.0, least, 1.0]]), low=-1, high=1), 0, 0).mean((0, 1))
        for least in (-1.0, 0.5)
    ]
    assert np.allclose(*colours) and colours[0].mean() > 0.95


def test_nan_is_marked_unless_it_is_masked():
    broken = torch.tensor([[1.0, float("nan"), float("nan")], [0.0, 1.0, 0.0]])
    _, ax = plots.heatmap(broken, allowed=ALLOWED, low=0, high=1)
    assert {text.get_position() for text in ax.texts if text.get_text() == "NaN"} == {(1.5, 0.5)}
    assert not plots.heatmap(WEIGHTS, low=0, high=1)[1].texts


@pytest.mark.parametrize(
    ("draw", "values"),
    [
        (lambda: plots.heatmap(np.zeros((2, 3, 5))), ["(2, 3, 5)"]),
        (lambda: plots.heatmap(WEIGHTS, allowed=ALLOWED.T), ["(2, 3)", "(3, 2)"]),
        (lambda: plots.depth_map({}, low=0.1, high=1), ["none"]),
        (lambda: plots.depth_map(STACKS, low=0, high=1), ["low=0", "high=1"]),
        (lambda: plots.seed_band("loss", [[1.0, 2.0]], every=3), ["3", "(1, 2)"]),
        (lambda: plots.save_figure(plots.figure()[0], "../up"), ["../up"]),
        (lambda: plots.show(plots.figure()[0], "99_unknown"), ["99_unknown"]),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_its_value(draw, values):
    with pytest.raises(ValueError) as caught:
        draw()
    assert all(value in str(caught.value) for value in values), caught.value


def layer_color(ax, row, col):
    mesh = ax.collections[row]
    return np.array(mesh.to_rgba(mesh.get_array()))[0, col, :3]


def test_a_depth_map_has_white_at_one_and_rows_as_long_as_their_stacks():
    _, ax = plots.depth_map(STACKS, low=0.01, high=100, bar_label="size")
    assert layer_color(ax, 0, 0).min() > 0.95
    red, blue = layer_color(ax, 0, 1), layer_color(ax, 1, 1)
    assert red[0] > red[2] + 0.2 and blue[2] > blue[0] + 0.2
    fig, ax = plots.depth_map(STACKS, low=0.1, high=10, bar_label="size")
    assert [mesh.get_array().size for mesh in ax.collections] == [3, 5]
    assert tick_labels(ax.yaxis) == ["2", "4"] and ax.yaxis_inverted()
    assert np.allclose(layer_color(ax, 1, 4), layer_color(ax, 1, 3)), "zero counts as very small"
    assert (fig.axes[1].get_ylabel(), fig.axes[1]._colorbar.extend) == ("size", "both")


# ---- lines


def test_curves_carry_their_labels_in_their_colours_at_their_height():
    lines = [
        plots.Curve("scratch", [1, 2], [0.1, 0.2]),
        plots.Curve("pretrained", [1, 2], [0.7, 0.8], low=[0.6, 0.7], high=[0.8, 0.9]),
    ]
    fig, ax = plots.curves(lines, xlabel="epoch", ylabel="accuracy", references={"best reachable": 0.95})
    plots.png_bytes(fig)
    labels = {text.get_text(): text for text in ax.texts}
    assert labels.keys() == {"scratch", "pretrained", "best reachable"}
    for name, y in {"scratch": 0.2, "pretrained": 0.8, "best reachable": 0.95}.items():
        drawn = ax.transAxes.transform(labels[name].get_position())[1]
        assert abs(drawn - ax.transData.transform((0, y))[1]) < 0.1 * ax.bbox.height, name
    assert labels["scratch"].get_color() == ax.lines[0].get_color()
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (0.6, 0.9)


def test_a_logarithmic_axis_has_no_exponents_and_names_some_ticks_within_a_decade():
    wide, narrow = ((1, 350), (0.001, 3000)), ((1, 2), (12, 30))
    said = []
    for x, y in (wide, narrow):
        fig, ax = plots.curves([plots.Curve("", x, y)], xlabel="x", ylabel="y", x_log=True, y_log=True)
        fig.canvas.draw()
        said.append([label.get_text() for which in (False, True) for label in ax.get_yticklabels(which)])
    assert {"0.001", "1,000"} <= set(said[0]) and {"20", "30"} <= set(said[1])
    assert not any("^" in text or "e" in text for text in said[0] + said[1])


def test_labels_that_would_overlap_move_apart_in_their_order():
    assert _spread([0.50, 0.51, 0.10, 0.52], gap=0.1) == pytest.approx([0.41, 0.51, 0.10, 0.61])
    assert _spread([0.1, 0.9], gap=0.1) == [0.1, 0.9]


def test_a_seed_band_is_mean_and_range_over_seeds_of_windows():
    runs = [[1.0, 3.0, 5.0, 7.0, 100.0], [3.0, 5.0, 1.0, 1.0, 100.0]]
    curve = plots.seed_band("loss", torch.tensor(runs))
    assert [list(v) for v in (curve.x, curve.y)] == [[1, 2, 3, 4, 5], [2, 4, 3, 4, 100]]
    assert [list(v) for v in (curve.low, curve.high)] == [[1, 3, 1, 1, 100], [3, 5, 5, 7, 100]]
    curve = plots.seed_band("loss", runs, every=2, dashed=True)  # the fifth step fills no window
    assert [list(v) for v in (curve.x, curve.y, curve.low, curve.high)] == [[2, 4], [3, 3.5], [2, 1], [4, 6]]
    assert curve.dashed


# ---- bars


def test_the_number_of_a_negative_bar_is_left_of_bar_and_interval():
    fig, ax = plots.bars({"gain": 0.2, "loss": -0.3}, intervals={"loss": (-0.5, 0.1)}, xlabel="points")
    plots.png_bytes(fig)  # places the letters
    gain, loss = (text.get_window_extent() for text in ax.texts)
    assert gain.x0 > ax.transData.transform((0.2, 0))[0]
    assert loss.x1 < ax.transData.transform((-0.5, 0))[0]


def test_shares_of_bars_add_up_to_100_percent():
    wholes = {"one": {"x": 1, "y": 3}, "two": {"x": 5, "y": 5}, "three": {"y": 2}}
    _, ax = plots.share_bars(wholes, xlabel="percent")
    bars = [patch for container in ax.containers for patch in container]
    assert [bar.get_width() for bar in bars] == [25, 50, 0, 75, 50, 100]
    assert [bar.get_x() for bar in bars] == [0, 0, 0, 25, 50, 0]


# ---- style, files, notebooks


def test_colours_differ_for_the_colour_blind():
    """Simulate the loss of the red or green cones (Viénot et al. 1999) and compare all pairs."""
    rgb = np.array([to_rgb(color) for color in plots.COLORS]) ** 2.2
    protan = np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]])
    deutan = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])
    for sight in (np.eye(3), protan, deutan):
        seen = np.clip(rgb @ sight.T, 0, 1) ** (1 / 2.2)
        apart = np.linalg.norm(seen[:, None] - seen[None], axis=-1) + 9 * np.eye(len(seen))
        assert apart.min() > 0.1


def test_equal_figures_are_equal_bytes_and_the_svg_describes_itself(tmp_path, monkeypatch):
    monkeypatch.delenv("TINYTX_FIGURES", raising=False)
    monkeypatch.chdir(tmp_path)
    plots.save_figure(plots.figure()[0], "nothing")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("TINYTX_FIGURES", str(tmp_path))
    for name in ("one", "two"):
        plots.save_figure(plots.heatmap(WEIGHTS, allowed=ALLOWED)[0], name, alt="the same")
    for ending in ("png", "svg"):
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()
    assert "the same" in "".join(ET.parse(tmp_path / "one.svg").getroot().itertext())


def test_the_alt_text_arrives_in_the_page(monkeypatch):
    import IPython.display
    from nbformat.v4 import new_code_cell, new_notebook, new_output

    from tinytx_course.lessons import LESSONS
    from tinytx_course.site.cells import notebook_to_html

    shown = []
    monkeypatch.setattr(
        IPython.display, "display", lambda data, raw, metadata: shown.append((data, metadata))
    )
    plots.show(plots.heatmap(WEIGHTS)[0], "02_two_rows", alt='Two rows,\n   "three" columns & a < b')
    ((data, metadata),) = shown
    json.dumps(data)
    output = new_output("display_data", data=data, metadata=metadata)
    page = notebook_to_html(new_notebook(cells=[new_code_cell("show()", outputs=[output])]), LESSONS[2])
    (tag,) = re.findall(r"<img\b[^>]*>", page)
    assert 'Two rows, "three" columns & a < b' in html.unescape(tag)
    assert data["text/plain"] == '[figure: Two rows, "three" columns & a < b]'


def test_a_line_without_a_name_moves_no_name_and_has_no_leader():
    lines = [plots.Curve("", [1, 2], [0, 0.5]), plots.Curve("", [1, 2], [1, 0.5])]
    _, ax = plots.curves([*lines, plots.Curve("named", [1, 2], [0.8, 0.5])], xlabel="x", ylabel="y")
    assert [text.get_text() for text in ax.texts] == ["named"] and len(ax.lines) == 3


def test_the_style_does_not_leak_and_no_figure_is_shown_twice():
    before = mpl.rcParams.copy()
    plots.heatmap(WEIGHTS, allowed=ALLOWED)
    plots.curves([plots.Curve("a", [1, 2], [3, 5])], xlabel="x", ylabel="y")
    assert mpl.rcParams == before and plt.get_fignums() == []


def test_a_png_of_256_colours_looks_like_the_figure():
    """Against matplotlib's own PNG, in true colour, of the picture with the most colours: a gradient."""
    fig, _ = plots.heatmap(torch.linspace(0, 1, 700).reshape(20, 35), title="a gradient")
    stream = io.BytesIO()
    with plots.style():
        fig.savefig(stream, format="png")
    small = Image.open(io.BytesIO(plots.png_bytes(fig)))
    true, few = (np.asarray(im.convert("RGB"), dtype=float) for im in (Image.open(stream), small))
    assert small.mode == "P"
    assert np.abs(true - few).mean() < 1  # of 255
    assert len(plots.png_bytes(fig)) < 0.6 * len(stream.getvalue())


def test_every_figure_of_a_lesson_has_its_texts_and_no_text_lacks_its_figure(root):
    sources = "".join(path.read_text(encoding="utf-8") for path in (root / "notebooks" / "src").glob("*.py"))
    shown = re.findall(r"plots\.show\(fig, (?:name=)?\"(\w+)\"\)", sources)
    own = re.findall(r"plots\.show\(fig, (?:name=)?\"(\w+)\", alt", sources)
    texts = captions()
    assert len(set(shown)) == len(shown) and set(shown) == set(texts) - set(own)
    for name, row in texts.items():
        assert set(row) == {"caption", "alt"} and row["alt"] != row["caption"], name
