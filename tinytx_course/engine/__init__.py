"""The transformer in the page: an engine in JavaScript, and what Python gives it."""

import base64

from tinytx_course.engine.bundle import FOLDER, bundle
from tinytx_course.engine.shipped import Shipped, shipped_model
from tinytx_course.engine.tables import world_tables
from tinyworld.world import World

__all__ = ["Shipped", "shipped_model", "training_parts"]


def training_parts(world: World) -> dict[str, str]:
    """All that a page needs for a model to learn in it, as text.

    Returns
    -------
    dict of str to str
        ``script``: defines ``ENGINE``, whose ``workerFrom(script)`` starts the worker; ``wasm`` and
        ``tables``: the bytes that its message "start" takes, as base64.
    """
    files = {"wasm": (FOLDER / "kernels.wasm").read_bytes(), "tables": world_tables(world)}
    texts = {name: base64.b64encode(content).decode() for name, content in files.items()}
    return {"script": bundle(["worker"]), **texts}
