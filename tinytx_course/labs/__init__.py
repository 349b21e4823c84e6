"""Code that one lesson needs, one module a lesson."""
