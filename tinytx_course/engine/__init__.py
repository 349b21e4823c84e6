"""The transformer in the page: an engine in JavaScript, and what Python gives it."""
