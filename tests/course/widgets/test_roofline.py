"""The roofline explorer: its numbers by hand, and compared with what lesson 13 counts."""

import pytest

import tinytx_course as course
from tests.course.widgets.conftest import changed
from tinytx.config import TransformerConfig
from tinytx_course.labs.roofline import layers_of

KERNELS = {"sum": (7.0, 14.0, 0.5), "product": (300.0, 3.0, 2.0), "cached": (20.0, 10.0, 0.1)}


def test_the_product_is_counted_as_in_lesson_13_without_its_bias(node):
    config = TransformerConfig(vocab_size=7, d_model=10, n_heads=1, n_layers=1, d_ff=11)
    work, *_ = layers_of(config, batch_size=3, n_queries=7, n_keys=7).values()
    ((product, intensity),) = node("roofline", "[js.productOf(21, 10), js.intensityOf(21, 10)]")
    assert product == {"flops": work.flops, "bytes": work.n_bytes - 4 * 10}
    assert intensity == pytest.approx(product["flops"] / product["bytes"])


def test_kernels_lie_where_the_roof_puts_them(node):
    """The roof of intensity i is the lower of 20 i and 100 FLOP/s: they meet at 5 FLOP/byte."""
    (points,) = node("roofline", "js.pointsOf(get)", course.widgets.roofline(100.0, 20.0, KERNELS))
    for point, (name, (flops, n_bytes, seconds)) in zip(points, KERNELS.items(), strict=True):
        assert point["name"] == name and point["intensity"] == flops / n_bytes
        assert point["rate"] == pytest.approx(flops / seconds)
        assert point["part"] == pytest.approx(point["rate"] / min(20.0 * flops / n_bytes, 100.0))
        assert point["limit"] == ("memory" if flops / n_bytes < 5.0 else "compute")


def test_what_is_said_names_the_limit_and_what_lies_above_the_roof(describe):
    explorer = changed(course.widgets.roofline(100.0, 20.0, KERNELS), batch_size=1, width=64)
    (few,) = describe(explorer)
    assert few.startswith(
        "Memory limits a product of 1 row, width 64 (compute from 15 rows on): 0.485 FLOP/byte, "
        "at best 9.7 FLOP/s"
    )
    assert (
        "Kernel “sum”: 0.5 FLOP/byte, 14 FLOP/s, 140% of the measured roof, limited by memory; above the roof"
        in few
    )
    (many,) = describe(changed(explorer, batch_size=4096, kernel=1))
    assert (
        many.startswith("Compute limits a product of 4096 rows, width 64 (from 15 rows on): ")
        and "at best 100 FLOP/s" in many
        and "The ridge is at 5 FLOP/byte." in many
    )


def test_what_lies_far_below_the_roof_is_limited_by_neither_side_of_it(node):
    """A tenth of the roof, 10 of 100 FLOP/s, still counts; a hundredth does not."""
    kernels = {"slow": (10.5, 1.0, 1.0), "start": (1.0, 0.1, 1.0)}
    explorer = course.widgets.roofline(100.0, 20.0, kernels)
    state = {**explorer.state(), "kernel": 1, "compute": 4}
    ((limits, said),) = node("roofline", "[js.pointsOf(get).map((p) => p.limit), js.describe(get)]", state)
    assert limits == ["compute", "neither"]
    assert "“start”, at 1% of the roof and limited by neither side of it, hardly faster.\n" in said
    assert "1% of the measured roof, limited by neither memory nor compute" in said


def test_a_faster_machine_helps_what_its_side_of_the_roof_limits(node):
    """Twice the arithmetic, then twice the memory speed: at 0.5, 10 and 100 FLOP/byte, by hand."""
    explorer = changed(course.widgets.roofline(100.0, 20.0, KERNELS), batch_size=1, width=64)
    arithmetic, memory = ({**explorer.state(), name: 2} for name in ("compute", "memory"))
    gains = node("roofline", "[0.5, 4, 10, 100].map((i) => js.gainOf(get, i))", arithmetic, memory)
    assert gains == [[1, 1, 2, 2], [2, 1.25, 1, 1]]
    for state, text in zip((arithmetic, memory), ("no faster", "up to 2 times as fast"), strict=True):
        (said,) = node("roofline", "js.describe(get)", state)
        assert f"Against × 1: product {text}; “sum”, at its part of the roof, {text}." in said
        assert said.startswith("Memory limits a product of 1 row, width 64 (")
        assert "140% of the measured roof" in said  # what was measured does not change


def test_compute_limits_from_the_first_number_of_rows_whose_intensity_reaches_the_ridge(node):
    """The ridge is at 5 FLOP/byte; a product 20 wide comes near to that and never reaches it."""
    explorer = course.widgets.roofline(100.0, 20.0, KERNELS)
    limit = "[js.limitOf(get, js.intensityOf(n - 1, d)), js.limitOf(get, js.intensityOf(n, d))]"
    one = f"(d) => {{ const n = js.crossingOf(get, d); return [n, n && {limit}]; }}"
    expression = f"[20, 21, 64, 512].map({one})"
    ((never, *found),) = node("roofline", expression, explorer)
    assert never[0] is None and [n for n, _ in found] == [210, 15, 11]
    assert all(limits == ["memory", "compute"] for _, limits in found)
