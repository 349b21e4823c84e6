"""The engine as one script: what it exports, and that its modules fit into one scope."""

import re

import pytest

from tinytx_course.engine.bundle import FOLDER, bundle, read_module
from tinytx_course.engine.node import run_in_node

MODULES = sorted(path.stem for path in FOLDER.glob("*.js"))
NAMES = re.compile(
    r"^(?:export )?(?:async )?(?:class|function\*?|const|let) (?:(\w+)|[{\[](.*?)[}\]] =)", re.M
)


def top_level(name):
    for one, several in NAMES.findall(read_module(name)):
        yield from [one] if one else re.findall(r"\w+", several)


def test_modules_share_a_scope_without_a_name_twice():
    names = [name for module in MODULES for name in top_level(module)]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("module", MODULES)
def test_a_bundle_of_each_module_runs_and_exports_what_the_module_does(engine, module):
    script = bundle([module])
    assert not re.search(r"^(import|export) ", script, re.M)
    names = run_in_node(f"{script}\nreturn Object.keys(ENGINE).sort();", ({}, {}))[0][1]
    assert names == sorted(
        re.findall(r"^export .*?(?:class|function\*?|const) (\w+)", read_module(module), re.M)
    )
