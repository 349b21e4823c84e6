"""What it takes to run `tinytx`: corpora, recipes, runs, checkpoints, published models, the command."""
