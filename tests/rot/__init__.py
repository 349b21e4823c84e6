"""Versions of other people's packages, past, present and lowest: `python -m tests.rot`."""
