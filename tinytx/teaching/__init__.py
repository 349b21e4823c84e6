"""How it is taught: figures, results, the course itself. Used by notebooks and the command line only."""
