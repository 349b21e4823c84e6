"""The engine as one script: its modules fit into one scope, and its fast kernels are WebAssembly.

What kernels compute: test_fifty_steps.
"""

import hashlib
import re

import pytest

from tinytx_course.building import wasm
from tinytx_course.engine.bundle import FOLDER, bundle, read_module
from tinytx_course.engine.node import run_in_node

MODULES = sorted(path.stem for path in FOLDER.glob("*.js"))
NAMES = re.compile(
    r"^(?:export )?(?:async )?(?:class|function\*?|const|let) (?:(\w+)|[{\[](.*?)[}\]] =)", re.M
)


def test_modules_share_a_scope_without_a_name_twice():
    found = [names for module in MODULES for names in NAMES.findall(read_module(module))]
    names = [name for one, several in found for name in ([one] if one else re.findall(r"\w+", several))]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("module", MODULES)
def test_a_bundle_of_each_module_runs_and_exports_what_the_module_does(engine, module):
    script = bundle([module])
    assert not re.search(r"^(import|export) ", script, re.M)
    names = run_in_node(f"{script}\nreturn Object.keys(ENGINE).sort();", ({}, {}))[0][1]
    assert names == sorted(
        re.findall(r"^export .*?(?:class|function\*?|const) (\w+)", read_module(module), re.M)
    )


def test_the_fast_kernels_are_those_of_webassembly_and_fall_back_where_it_is_missing(engine):
    body = (
        "return [!!(await kernelsFor('wasm')).wasm, (await fastKernels(new Uint8Array(9))).constructor.name];"
    )
    assert engine(body, ({}, {}))[0][1] == [True, "Kernels"]


def test_the_committed_webassembly_comes_from_its_source(tmp_path):
    content = wasm.TARGET.read_bytes()
    assert content.endswith(hashlib.sha256(wasm.SOURCE.read_bytes()).hexdigest().encode()), (
        "run `make engine`"
    )
    if wasm.compiler().is_file():  # for authors; others have no compiler
        assert wasm.compiled(tmp_path) == content
