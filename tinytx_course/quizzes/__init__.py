"""Multiple-choice questions: one ``SLUG.toml`` a lesson, and `quiz.py`, which asks them."""
