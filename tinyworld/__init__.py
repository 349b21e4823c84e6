"""A small language of book reviews whose every probability can be computed exactly."""
