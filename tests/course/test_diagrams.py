"""Diagrams: valid, and their numbers are those of the package; tests/browser measures their letters."""

import re
import xml.etree.ElementTree as ET

import pytest

import tinytx as tx
from tests.course.contrast import contrast
from tinytx_course.lessons import project_root
from tinytx_course.plots.diagrams.diagram import DIAGRAMS, diagram
from tinytx_course.plots.diagrams.svg import COLORS

NAMES = pytest.mark.parametrize("name", DIAGRAMS)


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


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("kind", sorted(set(COLORS) - {"ground", "field", "line"}))
def test_letters_can_be_read_on_their_ground(kind, theme):
    assert contrast(COLORS[kind][theme], COLORS["ground"][theme]) >= 4.5
