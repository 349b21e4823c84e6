"""WebAssembly: the fast kernels are used where there is any; what they compute: test_fifty_steps."""

import hashlib

from tinytx_course.building import wasm


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
