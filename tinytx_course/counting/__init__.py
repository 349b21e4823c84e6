"""What a model costs, and why a count of its parameters is wrong."""
