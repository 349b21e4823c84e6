"""A concept inventory for transformers: two printed forms, the analysis of answers, and the power of a test.

Every option of every item is what a running implementation returns; `python -m tests.solutions.inventory`
makes them and writes ``results/inventory.json``, which is all that this package reads.
"""

from tinytx_course.inventory.forms import write_forms

__all__ = ["write_forms"]
