"""`import tinytx` is cheap and touches nothing; its names arrive when asked for."""

import json
import subprocess
import sys
import tomllib

import pytest

import tinytx as tx
import tinytx_course as course

PROBE = """
import json, socket, sys
import torch
def refuse(*args, **kwargs):
    raise AssertionError("network")
socket.socket.connect = socket.getaddrinfo = refuse
import tinytx
tinytx.LanguageModel(tinytx.PRESETS["tiny"])
print(json.dumps(sorted(sys.modules)))
"""
HEAVY = {"matplotlib", "seaborn", "ipywidgets", "IPython", "pooch", "sentencepiece", "pandas", "scipy"}


def modules_after(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_building_a_model_imports_no_plotting_no_widgets_no_text_and_no_network():
    assert not modules_after(PROBE) & {*HEAVY, "tinytx.text"}


def test_importing_alone_does_not_even_import_torch():
    assert "torch" not in modules_after("import json, sys, tinytx; print(json.dumps(sorted(sys.modules)))")


@pytest.mark.parametrize("module", [tx, course], ids=["tinytx", "tinytx_course"])
def test_every_public_name_is_found_and_listed(module):
    for name in module.__all__:
        value = getattr(module, name)
        assert value is getattr(module, name) and name in dir(module)
        if callable(value):
            assert value.__module__.startswith(f"{module.__name__}.") and value.__doc__, name


def test_an_unknown_name_is_answered_with_the_nearest_known_one():
    with pytest.raises(AttributeError, match="'LangaugeModel'.* 'LanguageModel'"):
        tx.LangaugeModel  # noqa: B018
    with pytest.raises(AttributeError, match="'zzz'$"):
        tx.zzz  # noqa: B018


def test_version_is_that_of_the_project(root):
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert tx.__version__ == project["version"]
