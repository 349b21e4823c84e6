"""Parallel corpora by name or by file: sentence pairs, split so that no sentence is in two splits."""

from __future__ import annotations

import functools
import os
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

from tinytx.settings import require
from tinytx.tokenizer import canonical, several
from tinytx_run.cells import split_cells
from tinytx_run.corpora import CorpusInfo, Splits, downloaded_info
from tinytx_run.download import corpus_folder
from tinytx_run.letters import MISSING, is_blank, warn
from tinytx_run.splits import split_connected
from tinytx_run.tables import SPLIT_FILES, read_aligned, read_lines

WORLD_SIZES = {"test": 1_000, "valid": 1_000, "train": 40_000}  # drawn; train loses what is held out
WORLD_SEED = 21_000  # of test; the next two seeds draw valid and train
HELD_OUT = 0.05  # of the pairs of a file, about, for valid and for test each

# English sentences that the lesson on translation translates, held out of training.
LAB_SENTENCES = (
    "I am a student",
    "I did not mean to hurt you",
    "The fridge is full of food",
    "The river is full of fish",
)
# Words by which first lines name the columns of pairs: their part, then languages in English, French, their
# own language, and by codes, with a region or a script.
HEADER_WORDS = """
source target src tgt trg text texte texto testo sentence sentences phrase phrases satz sätze translation
traduction traducción traduzione traduzido übersetzung original lang langue language cible quelle ziel input
output english french german spanish italian portuguese dutch russian chinese japanese korean arabic turkish
polish czech swedish danish norwegian finnish greek hebrew hindi vietnamese ukrainian romanian hungarian latin
catalan esperanto icelandic irish welsh estonian latvian lithuanian slovak slovenian croatian serbian persian
bulgarian indonesian basque galician
anglais anglaise français française allemand allemande espagnol espagnole italien italienne
portugais portugaise néerlandais russe chinois japonais coréen arabe turc polonais tchèque suédois danois
norvégien finnois grec hébreu deutsch englisch französisch spanisch italienisch español inglés francés alemán
italiano inglese francese tedesco spagnolo português inglês francês alemão nederlands engels frans duits
русский английский французский немецкий en fr de es it pt nl ru zh ja ko ar tr pl cs sv da no nb fi el he hi
vi uk ro hu la ca eo us gb br mx cn tw eng fra fre deu ger spa ita por nld dut rus zho chi cmn jpn kor ara tur
pol ces cze swe dan nor fin ell gre heb hin vie ukr ron rum hun lat cat epo latn cyrl arab hans hant grek jpan
hebr deva
"""
# Or a name with a number or an underscore, such as col1 and sent_en.
HEADER = re.compile(rf"[\W\d_]*(({'|'.join(HEADER_WORDS.split())})([\W\d_]+|\Z))+|[a-z]+[\d_]\w*", re.I)
_WORLD = CorpusInfo("world", "sentences of the world in English and French, from one grammar")
_TATOEBA, _MULTI30K = "tatoeba-en-fr", "multi30k-en-fr"

Rows = list[tuple[str, str]]


@dataclass(frozen=True, repr=False)
class Pairs:
    """Sentences with their translations.

    Parameters
    ----------
    sources, targets : tuple of str
        Equally many, at least one; ``targets[i]`` translates ``sources[i]``.

    Examples
    --------
    >>> pairs = Pairs(("a book", "a book"), ("un livre", "un bouquin"))
    >>> pairs, pairs.references()
    (Pairs(2, the first 'a book', 'un livre'), {'a book': ['un livre', 'un bouquin']})
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ("sources", "targets"):  # of a column of pandas, too
            object.__setattr__(self, name, tuple(several(getattr(self, name), name)))
        n, n_targets = len(self.sources), len(self.targets)
        rule = "pairs must be as many sources as targets, at least one"
        require(n == n_targets > 0, rule, f"{n} and {n_targets}")

    def __len__(self) -> int:
        return len(self.sources)

    def __repr__(self) -> str:
        first = (shorten(side[0], 60) for side in (self.sources, self.targets))
        return f"Pairs({len(self):,}, the first {', '.join(map(repr, first))})"

    def references(self) -> dict[str, list[str]]:
        """All translations of each different source, in order."""
        found: dict[str, list[str]] = {}
        for source, target in zip(self.sources, self.targets, strict=True):
            found.setdefault(source, []).append(target)
        return found


@dataclass(frozen=True)
class PairCorpus(Splits[Pairs]):
    """A parallel corpus in its splits; for the parameters see `Splits`."""


def list_pair_corpora(data_dir: str | os.PathLike[str] | None = None) -> tuple[CorpusInfo, ...]:
    """Name the parallel corpora that `load_pairs` knows; `data_dir` is as in `load_corpus`."""
    return _WORLD, *(downloaded_info(name, data_dir) for name in (_TATOEBA, _MULTI30K))


def load_pairs(name: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None = None) -> PairCorpus:
    """Read a parallel corpus by its name, or a file.

    Parameters
    ----------
    name : str or path
        "world" (generated), "tatoeba-en-fr" or "multi30k-en-fr" (read from `data_dir`), or a ``.tsv`` file in
        which each line is a source, a tab and a target; further columns are not read, nor is a first line
        that names columns.
    data_dir : path, optional
        As in `load_corpus`.

    Returns
    -------
    PairCorpus
        No source and no target of a held-out split of the world, of Tatoeba or of a file is in train. A file
        is split by hashes, see `tinytx_run.splits.split_connected`.

    Warns
    -----
    CorpusWarning
        If a first line or a further column is not read, or most sources equal their targets.

    Notes
    -----
    Texts are unchanged, but for accents in a file of one's own, which are composed (NFC). From Tatoeba's
    training pairs the sentences of `LAB_SENTENCES` and their translations are removed. Multi30k has its
    published splits; a few captions occur twice.
    """
    name = os.fspath(name)
    if name == _WORLD.name:
        return _world()
    if name in (_TATOEBA, _MULTI30K):
        read = _tatoeba if name == _TATOEBA else _multi30k
        return _corpus(name, read(corpus_folder(name, data_dir)))
    if Path(name).suffix.lower() == ".tsv":
        return _file(Path(name))
    known = ", ".join(info.name for info in list_pair_corpora())
    raise ValueError(
        f"a corpus to translate must be one of {known} or the path of a .tsv file with a source, a tab and a "
        f"target a line, got {name!r}"
    )


def _corpus(name: str, splits: dict[str, Rows]) -> PairCorpus:
    made = {split: Pairs(*zip(*rows, strict=True)) for split, rows in splits.items()}
    return PairCorpus(name, made["train"], made["valid"], made.get("test"))


@functools.cache
def _world() -> PairCorpus:
    from tinyworld.world import World

    world, splits = World(), {}
    sources: set[str] = set()
    targets: set[str] = set()
    for seed, (split, size) in enumerate(WORLD_SIZES.items(), start=WORLD_SEED):
        drawn = list(dict.fromkeys(world.pairs(size, seed=seed)))
        splits[split] = [row for row in drawn if row[0] not in sources and row[1] not in targets]
        sources |= {row[0] for row in splits[split]}
        targets |= {row[1] for row in splits[split]}
    return _corpus(_WORLD.name, splits)


def _tatoeba(folder: Path) -> dict[str, Rows]:
    has_test = (folder / "pairs.test.tsv").exists()
    names = ("train", "valid", "test") if has_test else ("train", "valid")
    files = {name: folder / f"pairs.{name}.tsv" for name in names}
    splits = {name: [(cells[0], cells[1]) for cells in _read_cells(file)] for name, file in files.items()}
    lab, train = {canonical(sentence) for sentence in LAB_SENTENCES}, splits["train"]
    translations = {canonical(target) for source, target in train if canonical(source) in lab}
    splits["train"] = [row for row in train if canonical(row[1]) not in translations]  # so none of the lab
    return splits


def _multi30k(folder: Path) -> dict[str, Rows]:
    splits = {}
    for split, stem in (("train", "train"), ("valid", "val"), ("test", "test_2016_flickr")):
        rows = read_aligned(folder / f"{stem}.en", folder / f"{stem}.fr")
        splits[split] = [(english, french) for _, english, french in rows]
    return splits


def _file(path: Path) -> PairCorpus:
    rows = [(cells[0], cells[1]) for cells in _sentences(path, _read_cells(path, own=True))]
    names = split_connected(rows, share=HELD_OUT)
    splits: dict[str, Rows] = {
        split: [row for row, name in zip(rows, names, strict=True) if name == split] for split in SPLIT_FILES
    }
    rule = f"{path} must hold at least 3 groups of pairs that share no sentence, to be split"
    require(all(splits.values()), rule, f"fewer among {len(rows):,} pairs")
    return _corpus(path.name, splits)


def _read_cells(path: Path, own: bool = False) -> list[list[str]]:
    """Lines of a source, a tab and a target, and more."""
    rows = []
    for number, cells in split_cells(read_lines(path, own)):
        cells = [cell.strip() for cell in cells]
        # But for "null" and "nan", which are words, too.
        missing = ["an empty side" for cell in cells[:2] if is_blank(cell)]
        missing += [repr(cell) for cell in cells[:2] if MISSING.fullmatch(cell) and not cell.isalpha()]
        if len(cells) < 2 or missing:
            got = "no tab" if len(cells) < 2 else missing[0]
            raise ValueError(f"{path}, line {number}: must be a source, a tab and a target, got {got}")
        rows.append(cells)
    return rows


def _sentences(path: Path, rows: list[list[str]]) -> list[list[str]]:
    """The rows of a file of one's own, composed, without a header; ValueError for what is no language."""
    rows = [[unicodedata.normalize("NFC", cell) for cell in cells] for cells in rows]
    sides = [[cells[side] for cells in rows] for side in (0, 1)]
    for number, side, other in zip((1, 2), sides, sides[::-1], strict=True):
        got = _instead_of_sentences(side, other)
        n_different = len(set(side))
        if 10 * n_different < len(side) and (number == 1 or max(map(len, rows)) > 2):
            got = got or f"{n_different} different ones in {len(side):,} lines, such as {side[-1][:40]}"
        if got:
            raise ValueError(
                f"{path}: column {number} must hold sentences, got {got}: leave that column out, so that a "
                "line is a source, a tab and a target"
            )
    if all(map(HEADER.fullmatch, rows[0][:2])):
        warn(f"{path}: the first line names columns, {' and '.join(rows[0][:2])}: it is no pair")
        rows = [cells for cells in rows if cells[:2] != rows[0][:2]]  # files that were joined have it again
    if 2 * (n_equal := sum(cells[0] == cells[1] for cells in rows)) > len(rows):
        warn(f"{path}: {n_equal:,} of {len(rows):,} sources are their own translation")
    if further := [cells[2] for cells in rows if len(cells) > 2]:
        warn(f"{path}: further columns of {len(further):,} lines, such as {further[0][:40]!r}, are not read")
    return rows


def _instead_of_sentences(cells: list[str], others: list[str]) -> str | None:
    """What most cells of a column are in place of sentences; None if nothing speaks against these."""
    numbers = [cell for cell in cells if _is_number(cell)]
    if 2 * len(numbers) > len(cells):
        return f"numbers such as {numbers[-1]}"
    names = [cell for cell in cells if re.fullmatch("[!-~]*[^ .!?\u0080-\uffff]", cell)]
    if 2 * len(names) > len(cells) and sum(len(other.split()) for other in others) >= 4 * len(others):
        return f"names such as {names[-1][:40]} for sentences of several words"
    return None


def _is_number(cell: str) -> bool:
    """Whether a cell is a number, a score or an identifier: no word, one that has a digit, or missing."""
    no_word = not any(map(str.isalpha, cell)) or re.fullmatch("[!-~\u00b0\u00ba]*[0-9][!-~]*", cell)
    return bool(no_word or MISSING.fullmatch(cell))
