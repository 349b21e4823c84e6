"""Diagrams: valid, legible, apart from each other; their numbers are those of the package."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest

import tinytx as tx
import tinytx_course as course
from tests.course.contrast import contrast
from tinytx_course.lessons import project_root
from tinytx_course.plots.diagrams.diagram import DIAGRAMS, diagram
from tinytx_course.plots.diagrams.svg import COLORS, Box, Panel, text_width

NAMES = pytest.mark.parametrize("name", DIAGRAMS)


def overlap(one, other):
    across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    return across > 0 and down > 0


def crosses(start, end, box):
    """Whether a straight line passes through a box, at a thousand of its points."""
    x, y = np.linspace(start, end, 1001).T
    return bool(((box.x < x) & (x < box.x + box.width) & (box.y < y) & (y < box.y + box.height)).any())


def faults(panel):
    """Return what a reader would stumble over: labels cut off, on each other, crossed, or too wide."""
    found = []
    for label in panel.labels:
        box = label.box
        if box.x < 0 or box.y < 0 or box.x + box.width > panel.width or box.y + box.height > panel.height:
            found.append(f"{label.words!r} leaves the picture")
        if label.inside and box.width > label.inside.width - 4:
            found.append(f"{label.words!r} is wider than its box")
        for points in panel.lines:
            if any(crosses(*pair, box) for pair in zip(points, points[1:], strict=False)):
                found.append(f"a line crosses {label.words!r}")
    for one, other in combinations(panel.labels, 2):
        if overlap(one.box, other.box):
            found.append(f"{one.words!r} and {other.words!r} overlap")
    return found


@NAMES
def test_every_label_is_legible_and_nothing_crosses_it(name):
    assert [faults(panel) for panel in diagram(name).panels] == [[]] * len(diagram(name).panels)


def test_the_search_for_faults_finds_each_kind():
    panel = Panel(100, 60)
    panel.text(50, 20, "one")
    panel.text(55, 24, "two")
    panel.text(98, 50, "three")
    panel.box(2, 30, 20, 20, "four and more")
    panel.line((0, 0), (100, 40))
    text = "\n".join(faults(panel))
    for fault in ("'one' and 'two' overlap", "'three' leaves", "'four and more' is wider", "crosses 'one'"):
        assert fault in text
    assert not crosses((0, 0), (10, 0), Box(2, 1, 3, 3)) and crosses((3, 0), (3, 9), Box(2, 1, 3, 3))


@NAMES
def test_the_file_is_xml_with_title_and_description_and_no_id_that_could_clash(name):
    drawn = diagram(name)
    root = ET.fromstring(drawn.to_svg())
    assert root.get("role") == "img"
    texts = {child.tag.rpartition("}")[2]: child.text for child in root}
    assert (texts["title"], texts["desc"]) == (drawn.caption, drawn.alt)
    assert not [element for element in root.iter() if element.get("id")]
    assert " id=" not in drawn.to_html()


@NAMES
def test_jupyter_gets_caption_and_alt_text_and_a_terminal_one_line(name):
    drawn = diagram(name)
    data, facts = drawn._repr_mimebundle_()
    assert data["text/plain"] == f"[diagram: {drawn.alt}]" and "\n" not in data["text/plain"]
    assert facts["text/html"] == {"alt": drawn.alt, "caption": drawn.caption, "diagram": name}
    figure = ET.fromstring(re.sub(r"<(img[^>]*)>", r"<\1/>", data["text/html"]))
    assert figure.find("figcaption").text == drawn.caption
    assert figure.find("div/div").attrib["aria-label"] == drawn.alt
    assert len(figure.findall("div/div/svg")) == len(drawn.panels)
    assert not re.search(r"\{\w*\}", drawn.caption + drawn.alt), "every number is filled in"


@NAMES
def test_a_diagram_is_shown_by_its_own_lesson_only(name):
    call = re.compile(rf"diagram\(\s*[\"']{name}[\"']")
    sources = sorted((project_root() / "notebooks" / "src").glob("*.py"))
    shown = {int(source.name[:2]) for source in sources if call.search(source.read_text("utf-8"))}
    assert shown <= {diagram(name).lesson}


def test_areas_are_in_proportion_to_the_parameters():
    table, drawn = tx.parameter_table(tx.PRESETS["seed-lab"]), diagram("parameters")
    areas = dict.fromkeys(table.kinds, 0.0)
    for rect in ET.fromstring(drawn.to_svg()).iter("{http://www.w3.org/2000/svg}rect"):
        if kind := rect.get("data-kind"):
            areas[kind] += float(rect.get("width")) * float(rect.get("height"))
    whole = sum(areas.values())
    for kind, count in table.kinds.items():
        assert areas[kind] / whole == pytest.approx(count / table.total, abs=2e-3)
    assert f"{table.total:,} parameters" in drawn.alt


def test_the_masks_are_those_of_the_package():
    encoder, decoder, cross = (
        "".join(panel.parts).count('class="f-weights"') for panel in diagram("three-masks").panels
    )
    assert (encoder, decoder, cross) == (5 * 4, tx.causal_mask(4).sum(), 4 * 4)


def test_the_marked_paths_have_as_many_steps_as_the_caption_says():
    drawn = diagram("paths-of-information")
    heads = ["".join(panel.parts).count('class="t-weights" d="M') for panel in drawn.panels]
    assert heads == [1 + 7, 4, 1]  # into the recurrent layer, then T - 1; (T - 1) / (width - 1), rounded up
    assert "7 steps" in drawn.caption


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="'blok' .did you mean block"):
        course.plots.diagram("blok")


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("kind", sorted(set(COLORS) - {"ground", "field", "line"}))
def test_letters_can_be_read_on_their_ground(kind, theme):
    assert contrast(COLORS[kind][theme], COLORS["ground"][theme]) >= 4.5


def test_a_subscript_is_narrower_than_a_letter():
    assert text_width("W", 10) < text_width("W_{Q}", 10) < text_width("WQ", 10)
