"""Exercises whose checkers name the mistake.

>>> import torch
>>> from tinytx_course.exercises.checking import check
>>> verdict = check("causal_mask", lambda seq_len: torch.ones(seq_len, seq_len).tril() > 0, display=False)
>>> verdict.passed, verdict.mistake
(True, None)
"""
