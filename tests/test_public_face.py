"""`import tinytx` is cheap and touches nothing; its names arrive when asked for."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib

import pytest

import tinytx as tx
import tinytx_course as course
import tinyworld
from tinytx_course import PACKAGES

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
    assert not modules_after(PROBE) & {*HEAVY, "tinytx.tokenizer", *PACKAGES[1:]}


def test_importing_alone_does_not_even_import_torch():
    assert "torch" not in modules_after("import json, sys, tinytx; print(json.dumps(sorted(sys.modules)))")


@pytest.mark.parametrize("module", [tx, tinyworld, course], ids=lambda module: module.__name__)
def test_every_public_name_is_found_and_listed(module):
    for name in module.__all__:
        value = getattr(module, name)
        assert value is getattr(module, name) and name in dir(module)
        if callable(value):
            assert value.__module__.partition(".")[0] in PACKAGES and value.__doc__, name
            assert module is course or "\nExamples\n--------\n" in inspect.getdoc(value), name


def test_type_checkers_read_the_names_of_the_table(root):
    stub = ast.parse((root / "tinytx" / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    named = {
        alias.asname: node.module for node in imports for alias in node.names if alias.asname == alias.name
    }
    assert named == tx._HOME and len(named) == sum(len(node.names) for node in imports) <= 45


@pytest.mark.proof
def test_a_file_that_uses_the_names_is_type_checked_with_their_types(tmp_path, root):
    file = tmp_path / "mine.py"
    file.write_text(
        "import tinytx as tx\nimport tinyworld\n\n"
        "right: tx.LanguageModel = tx.LanguageModel(tx.PRESETS['tiny'])\n"
        "wrong: int = tx.count_parameters\n"
        "unknown = tx.Langauge\n"
        "other: str = tinyworld.World().log_prob(['le'])\n"
    )
    # Reading torch would take a minute.
    ours = "[mypy-tinytx.*,tinytx_run.*,tinyworld.*]\nfollow_imports = normal\n"
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\nfollow_imports = skip\n" + ours)
    command = [sys.executable, "-m", "mypy", file]
    found = {**os.environ, "MYPYPATH": str(root)}  # mypy does not see what is installed in place
    done = subprocess.run(command, cwd=tmp_path, env=found, capture_output=True, text=True)
    errors = dict(re.findall(r"mine\.py:(\d+): error: .* \[([\w-]+)\]", done.stdout))
    assert errors == {"5": "assignment", "6": "attr-defined", "7": "assignment"}, done.stdout


def test_an_unknown_name_is_answered_with_the_nearest_known_one():
    with pytest.raises(AttributeError, match="'LangaugeModel'.* 'LanguageModel'"):
        tx.LangaugeModel  # noqa: B018
    with pytest.raises(AttributeError, match="'zzz'$"):
        tx.zzz  # noqa: B018


def test_version_is_that_of_the_project(root):
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert tx.__version__ == project["version"]


IN_EIGHT_THREADS = """
import sys, threading
module = __import__(sys.argv[1])
sys.setswitchinterval(1e-5)
names, gate, failed = sorted(module._HOME), threading.Barrier(8), []
def ask(names):
    gate.wait()
    for name in names:
        try:
            getattr(module, name)
        except Exception as error:
            failed.append(str(error))
threads = [threading.Thread(target=ask, args=(names[n:] + names[:n],)) for n in range(0, 16, 2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed)
"""


@pytest.mark.parametrize("name", ["tinytx", "tinytx_course"])
def test_threads_that_ask_for_names_at_once_all_get_them(name):
    done = subprocess.run([sys.executable, "-c", IN_EIGHT_THREADS, name], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
