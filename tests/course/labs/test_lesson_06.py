"""Lesson 06: published models equal to those of `transformers`."""

import pytest
import torch

from tinytx.counting import count_parameters
from tinytx_course.labs.lesson_06 import PUBLISHED

NAMES = ("Bert", "Roberta", "Camembert", "DistilBert", "GPT2", "MBart")
CLASSES = {name.lower(): name for name in NAMES}


@pytest.fixture(scope="module")
def transformers():
    module = pytest.importorskip("transformers", reason="the extra `parity` is not installed")
    module.logging.set_verbosity_error()
    return module


@pytest.mark.parametrize("name", PUBLISHED)
def test_totals_are_those_of_the_model_that_transformers_builds(transformers, name):
    published = PUBLISHED[name]
    family = CLASSES[published.family]
    config = getattr(transformers, f"{family}Config")(**published.settings)
    with torch.device("meta"):  # nothing is allocated, nothing is downloaded
        assert published.table().total == count_parameters(getattr(transformers, f"{family}Model")(config))


def test_gaps_to_what_papers_state():
    gaps = {
        name: round(model.table().total / 1e6 - model.stated, 1)
        for name, model in PUBLISHED.items()
        if model.stated is not None and abs(model.table().total / 1e6 / model.stated - 1) > 0.02
    }
    gpt = {"GPT-2 small": 7.4, "GPT-2 medium": 9.8}
    assert gaps == {**gpt, "BARThez": -25.8, "mBART": -69.1}
