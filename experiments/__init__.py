"""Measurements behind the lessons: ``python -m experiments NAME`` writes results/NAME.json."""
