"""The transformer in the page: an engine in JavaScript, and what Python gives it."""

from tinytx_course.engine.shipped import Shipped, shipped_model

__all__ = ["Shipped", "shipped_model"]
