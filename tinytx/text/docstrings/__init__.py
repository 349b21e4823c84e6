"""Text that lies on every machine: the prose of Python's own documentation and its packages'."""

from tinytx.text.docstrings.corpus import DOCSTRINGS, PACKAGES, docstrings_corpus, packages_corpus

__all__ = ["DOCSTRINGS", "PACKAGES", "docstrings_corpus", "packages_corpus"]
