"""Speed next to other packages: ``python -m benchmarks`` writes results/bench-*.json."""
