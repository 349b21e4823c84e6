"""The command `data`: corpora to learn from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tinytx.commands.options import Answer, add_command, add_group


def add_data(commands: Any) -> None:
    """`data ACTION`."""
    data = add_group(commands, "data", "Corpora to learn from.", "ACTION")
    sub = add_command(data, "list", data_list)
    sub.add_argument("--data-dir", type=Path, help="folder that holds one folder a corpus")

    sub = add_command(data, "world", data_world)
    sub.add_argument("--reviews", type=int, default=10_000, help="number of reviews")
    sub.add_argument("--seed", type=int, default=1, help="equal seeds give equal files")
    sub.add_argument("--pairs", action="store_true", help="write English-French sentence pairs too")
    sub.add_argument("--language", default="fr", help="of the reviews: fr or en")
    sub.add_argument("--out", type=Path, required=True, help="new folder")


def data_list(args: argparse.Namespace) -> Answer:
    """Name the corpora that can be asked for."""
    from tinytx.text.corpora import list_corpora
    from tinytx.text.pairs import list_pair_corpora

    rows = [vars(info) for info in list_corpora(args.data_dir)]
    pairs = [vars(info) for info in list_pair_corpora(args.data_dir)]
    lines = [
        f"{row['name']:<15}{'ready' if row['available'] else 'absent':<8}{row['description']}"
        for row in [*rows, *pairs]
    ]
    lines.append("any .txt (one document a line) or .tsv (label, tab, text) file can be named too;")
    lines.append("to translate, a .tsv (source, tab, target)")
    return {"corpora": rows, "pairs": pairs}, "\n".join(lines)


def data_world(args: argparse.Namespace) -> Answer:
    """Write reviews of the world to files, with labels and a card."""
    from tinytx.text.world.export import write_world

    rows = write_world(
        args.out, n_reviews=args.reviews, seed=args.seed, pairs=args.pairs, language=args.language
    )
    lines = [f"{name}: {n_rows:,} rows" for name, n_rows in rows.items()]
    return {"out": str(args.out), "rows": rows}, "\n".join([*lines, f"the card is {args.out}/README.md"])
