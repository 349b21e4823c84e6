"""``python -m tests.solutions``: try the checkers and keep the table in results/."""

from __future__ import annotations

import argparse

import torch
from tqdm import tqdm

from tests.solutions import table, try_all
from tests.solutions.collection import SOLUTIONS
from tinytx_course.lessons import project_root
from tinytx_course.results import Results


def main() -> int:
    """Check all solutions; 1 if a right one failed, a wrong one passed, or too few mistakes were named."""
    parser = argparse.ArgumentParser(prog="python -m tests.solutions", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many seeds, from 0 (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="write the table to results/checkers.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    total = options.seeds * len(SOLUTIONS)
    rows = table(tqdm(try_all(range(options.seeds), SOLUTIONS), total=total, disable=None))
    print(f"{'exercise':22s} {'right':>9s} {'rejected':>10s} {'named':>10s}  median / slowest ms")
    for name, row in rows.items():
        right = f"{row['right_passed']}/{row['right_trials']}"
        rejected = f"{row['wrong_rejected']}/{row['wrong_trials']}"
        named = f"{row['wrong_named']}/{row['wrong_trials']}"
        print(
            f"{name:22s} {right:>9s} {rejected:>10s} {named:>10s}  {row['median_ms']} / {row['slowest_ms']}"
        )
        for solution, names in row["named_otherwise"].items():
            print(f"    {solution}: {names}")
    if options.keep:
        results = Results("checkers", project_root() / "results")
        for name, row in rows.items():
            results.put(name, row)
    sound = all(
        row["right_passed"] == row["right_trials"]
        and row["wrong_rejected"] == row["wrong_trials"]
        and row["wrong_named"] >= 0.9 * row["wrong_trials"]
        for row in rows.values()
    )
    return 0 if sound else 1


if __name__ == "__main__":
    raise SystemExit(main())
