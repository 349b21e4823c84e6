"""Grade filled-in notebooks."""
