"""What must never go stands in the core of its lesson, and the core runs without what is Further."""

import ast
import re
import tomllib

import pytest

from tests.course.test_sources import cells_of
from tinytx_course.building.editions import is_further
from tinytx_course.grading.slicing import statements
from tinytx_course.lessons import LESSONS, project_root

ROOT = project_root()
#: Lesson, what a reader meets there, and what one of its cells, or several, must hold for it.
ITEMS = [
    (2, "masks as heatmaps", r"sns\.heatmap\("),
    (2, "the wrong masks", r"zeroed after softmax.*mask\.T.*02_wrong_masks"),
    (2, "two signs of a mask", r"nn\.MultiheadAttention\("),
    (2, "a mask of one's own", r"course\.widgets\.mask\("),
    (2, "a first curve", r"ax\.plot\("),
    (2, "a control that a learner turns", r"\bipywidgets\b.*interact\("),
    (3, "positions as heatmaps", r"sns\.heatmap\("),
    (3, "sinusoidal positions", r"tx\.sinusoidal_positions\("),
    (3, "learned positions", r'"learned"'),
    (3, "rotary positions", r"tx\.rotate\("),
    (3, "ALiBi", r"tx\.alibi_bias\("),
    (1, "sentencepiece", r"tx\.Tokenizer\.train\(.*sentencepiece"),
    (6, "counts by formula equal numel", r"\.numel\(\).*(?:assert .* == |assert_)"),
    (6, "the wrong counts of the labs", r"3_440_000.*2_440_400"),
    (8, "pretraining with its loop", r"loss\.backward\(\).*optimizer\.step\(\)"),
    (9, "the swap of the head", r"tx\.Classifier\(|classifier\.head"),
    (9, "pretrained against scratch", r"pretrained.*scratch|scratch.*pretrained"),
    (10, "masked against causal", r"masked.*causal|causal.*masked"),
    (10, "BERT's ablation", r"84\.4.*77\.8"),
    (11, "translation", r"tx\.train_translator\(.*tx\.translate\("),
    *((n, "an explorer", r"course\.widgets\.\w+\(") for n in range(19) if n not in (14, 15)),
    *((n, "a quiz", r"course\.quiz\(") for n in range(19)),
]


@pytest.mark.parametrize(
    ("number", "item", "pattern"), ITEMS, ids=[f"{number:02d} {item}" for number, item, _ in ITEMS]
)
def test_it_stands_in_the_core_of_its_lesson(number, item, pattern):
    core = "\n".join(
        cell.source
        for cell in cells_of(LESSONS[number])
        if not is_further(cell) and (cell.cell_type == "code" or "|---|" in cell.source)
    )
    assert re.search(pattern, core, re.S)


def test_who_skips_what_is_further_has_every_name_that_a_cell_of_the_core_reads(lesson):
    own, further = set[str](), set[str]()
    for cell in cells_of(lesson):
        if cell.cell_type == "code":
            for one in statements(ast.parse(cell.source), 1):
                if is_further(cell):
                    further |= one.sets
                else:
                    missing = (one.reads | one.calls) & further - own - one.changes
                    assert not missing, f"{', '.join(missing)} in {ast.unparse(one.node)[:80]}"
                    own |= one.sets | one.changes


def test_what_a_reader_meets_outside_of_lessons_is_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = str([project["dependencies"], project["optional-dependencies"]])
    for name in ("seaborn", "matplotlib", "ipywidgets", "anywidget", "sentencepiece", "nbval", "jupyterlab"):
        assert name in needed, name
    for place in (
        "environment.yml",
        "figures",
        ".github/workflows/gpu.yml",
        "tinytx_course/kit/self_study.py",
    ):
        assert (ROOT / place).exists(), place
    assert "nbval" in (ROOT / "docs" / "house.md").read_text()
    assert "tinytx-course lab" in (ROOT / "Makefile").read_text()
