"""Build, run, release and publish the notebooks of the course."""
