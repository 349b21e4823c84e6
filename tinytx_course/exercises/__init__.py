"""Exercises whose checkers name the mistake.

>>> import tinytx as tx
>>> from tinytx_course.exercises.checking import check
>>> verdict = check("causal_mask", tx.causal_mask, display=False)
>>> verdict.passed, verdict.mistake
(True, None)
"""
