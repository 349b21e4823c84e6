"""The command `data`: corpora to learn from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tinytx.commands.options import Answer, Parser, add_command, add_group, reporter


def add_data(commands: Any) -> None:
    """`data ACTION`."""
    data = add_group(commands, "data", "Corpora to learn from.", "ACTION")
    sub = add_command(data, "list", data_list)
    sub.add_argument("name", nargs="?", help="tell all about this one: addresses, checksums, licence")
    _add_data_dir(sub)

    sub = add_command(data, "get", data_get)
    sub.add_argument("name", help="a corpus that `tinytx data list` names")
    _add_data_dir(sub)
    sub.add_argument(
        "--from", dest="source", type=Path, help="folder with the files, fetched elsewhere; no network then"
    )
    sub.add_argument("--mirror", metavar="URL", help="address with the same paths, in place of GitHub's")

    sub = add_command(data, "verify", data_verify)
    sub.add_argument("name", nargs="?", help="a corpus; all that are there when left out")
    _add_data_dir(sub)

    sub = add_command(data, "world", data_world)
    sub.add_argument("--reviews", type=int, default=10_000, help="number of reviews")
    sub.add_argument("--seed", type=int, default=1, help="equal seeds give equal files")
    sub.add_argument("--pairs", action="store_true", help="write English-French sentence pairs too")
    sub.add_argument("--language", default="fr", help="of the reviews: fr or en")
    sub.add_argument("--out", type=Path, required=True, help="new folder")


def _add_data_dir(sub: Parser) -> None:
    sub.add_argument(
        "--data-dir",
        type=Path,
        help="folder that holds one folder a corpus (TINYTX_DATA, else the user's cache folder)",
    )


def data_list(args: argparse.Namespace) -> Answer:
    """Name the corpora that can be asked for, or tell all about one that can be downloaded."""
    from tinytx.text.corpora import list_corpora
    from tinytx.text.downloads.folder import data_folder
    from tinytx.text.pairs import list_pair_corpora

    if args.name is not None:
        return _about(args.name)
    rows = [vars(info) for info in list_corpora(args.data_dir)]
    pairs = [vars(info) for info in list_pair_corpora(args.data_dir)]
    folder = data_folder(args.data_dir)
    lines = [
        f"{row['name']:<21}{'ready' if row['available'] else 'absent':<8}{row['description']}"
        for row in [*rows, *pairs]
    ]
    lines.append(f"absent ones: `tinytx data get NAME` brings them to {folder}")
    lines.append("any .txt (one document a line), .tsv (label, tab, text), .csv or .jsonl file can be named,")
    lines.append("a folder with train.csv and test.csv, or hf:NAME, a dataset of the library datasets;")
    lines.append("to translate, a .tsv (source, tab, target)")
    return {"corpora": rows, "pairs": pairs, "folder": str(folder)}, "\n".join(lines)


def _about(name: str) -> Answer:
    from tinytx.text.downloads.builders import rule
    from tinytx.text.downloads.registry import dataset

    known = dataset(name)
    files = {known.url(path): sha256 for path, sha256 in known.files.items()}
    about = {
        "name": name,
        "description": known.description,
        "licence": known.licence,
        "citation": known.citation,
        "rule": rule(known),
    }
    lines = [f"{key}: {value}" for key, value in about.items()]
    lines += ["sha256 and address of each upstream file:", *(f"{s}  {url}" for url, s in files.items())]
    return {**about, "files": files, "layout": dict(known.layout)}, "\n".join(lines)


def data_get(args: argparse.Namespace) -> Answer:
    """Bring a corpus here, from where it is published or from a folder; what is there already stays."""
    from tinytx.text.downloads.get import get
    from tinytx.text.downloads.registry import HOST, dataset

    if args.source is not None and args.mirror is not None:
        raise ValueError("--from goes without --mirror: nothing is downloaded then")
    got = get(
        dataset(args.name),
        args.data_dir,
        source=args.source,
        host=args.mirror or HOST,
        report=reporter(args),
    )
    lines = [
        f"{name}: " + (f"{facts['lines']:,} lines" if facts["lines"] else f"{facts['bytes']:,} bytes")
        for name, facts in got.state.files.items()
    ]
    if got.state.absent:
        lines.append(f"absent, not in the folder given: {', '.join(got.state.absent)}")
    lines += [f"licence: {got.dataset.licence}", f"please cite: {got.dataset.citation}"]
    return got.to_dict(), "\n".join([f"{args.name} is in {got.state.folder}", *lines])


def data_verify(args: argparse.Namespace) -> Answer:
    """Compare what lies here with its checksums or, where it has none, with the known numbers of lines."""
    from tinytx.text.downloads.folder import corpus_folder, data_folder, inspect
    from tinytx.text.downloads.registry import dataset, datasets

    folder = data_folder(args.data_dir)
    if args.name is not None:
        chosen = [dataset(args.name)]
        corpus_folder(args.name, args.data_dir)
    else:
        chosen = [known for known in datasets().values() if (folder / known.name).is_dir()]
    rows, lines = [], []
    for known in chosen:
        state = inspect(folder / known.name, known)
        by = "checksum" if state.card is not None else "number of lines"
        rows.append(
            {
                "name": known.name,
                "by": by,
                "files": len(state.files),
                "absent": list(state.absent),
                "faults": list(state.faults),
            }
        )
        without = f", without {', '.join(state.absent)}" if state.absent else ""
        lines.append(f"{known.name}: sound by {by}: {len(state.files)}, faults: {len(state.faults)}{without}")
        lines += [f"  {fault}" for fault in state.faults]
    sound = not any(row["faults"] for row in rows)
    answer = {"folder": str(folder), "corpora": rows, "exit_status": 0 if sound else 1}
    return answer, "\n".join(lines or [f"no corpus lies in {folder}"])


def data_world(args: argparse.Namespace) -> Answer:
    """Write reviews of the world to files, with labels and a card."""
    from tinytx.text.world.export import write_world

    rows = write_world(
        args.out, n_reviews=args.reviews, seed=args.seed, pairs=args.pairs, language=args.language
    )
    lines = [f"{name}: {n_rows:,} rows" for name, n_rows in rows.items()]
    return {"out": str(args.out), "rows": rows}, "\n".join([*lines, f"the card is {args.out}/README.md"])
