"""Diagrams of the course: drawn by code as SVG, in the colours of the page, with caption and alt text."""
