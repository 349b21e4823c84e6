"""`import tinytx` is cheap and touches nothing; its names arrive when asked for."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tinytx as tx

PROBE = """
import json, socket, sys, time
import torch
def refuse(*args, **kwargs):
    raise AssertionError("network")
socket.socket.connect = socket.getaddrinfo = refuse
started = time.process_time()
import tinytx
tinytx.LanguageModel(tinytx.PRESETS["tiny"])
seconds = time.process_time() - started
heavy = ("matplotlib", "seaborn", "ipywidgets", "IPython", "pooch", "sentencepiece", "pandas")
print(json.dumps([seconds, [name for name in heavy if name in sys.modules], "tinytx.text" in sys.modules]))
"""


def probe(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_importing_and_building_a_model_pulls_in_no_plotting_no_widgets_and_no_network():
    seconds, heavy, text = probe(PROBE)
    assert heavy == [] and not text
    assert seconds < 1


def test_importing_alone_does_not_even_import_torch():
    assert probe("import json, sys, tinytx; print(json.dumps('torch' in sys.modules))") is False


@pytest.mark.parametrize("name", tx.__all__)
def test_every_public_name_is_found_and_listed(name):
    value = getattr(tx, name)
    assert value is getattr(tx, name)
    assert name in dir(tx)
    if callable(value):
        assert value.__module__.startswith("tinytx.") and value.__doc__


def test_star_names_and_lazy_homes_are_the_same():
    assert sorted(tx.__all__) == sorted(tx._HOME)


def test_an_unknown_name_is_answered_with_the_nearest_known_one():
    with pytest.raises(AttributeError, match="no attribute 'LangaugeModel'; did you mean 'LanguageModel'"):
        tx.LangaugeModel  # noqa: B018
    with pytest.raises(AttributeError, match="^module 'tinytx' has no attribute 'zzz'$"):
        tx.zzz  # noqa: B018


def test_version_is_that_of_the_project(root):
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert tx.__version__ == project["version"]


def test_types_are_announced():
    assert (Path(tx.__file__).parent / "py.typed").is_file()
