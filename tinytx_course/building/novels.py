"""The extract of French novels that `tinytx` brings: whole chapters of six authors, without names.

``python -m tinytx_course.building.novels --data-dir DIR`` makes it of the corpus ``eltec-fra``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tinytx_run.conversion import VALID_NOVELS
from tinytx_run.corpora import NOVELS_FOLDER
from tinytx_run.download import corpus_folder, dataset, file_name

#: Name and year of death of each author, and the novels in the collection; the last one is valid.
AUTHORS = {
    "Flaubert": ("Gustave Flaubert, 1880", ("FRA01301", "FRA01302", "FRA01303")),
    "Gautier": ("Judith Gautier, 1917", ("FRA01601", "FRA01602", "FRA01603")),
    "Gréville": ("Henry Gréville (Alice Fleury), 1902", ("FRA02301", "FRA02302", "FRA02303")),
    "Malot": ("Hector Malot, 1907", ("FRA02601", "FRA02602", "FRA02603")),
    "Sand": ("George Sand, 1876", ("FRA03701", "FRA03704")),
    "Verne": ("Jules Verne, 1905", ("FRA04001", "FRA04002")),
}
BYTES_TRAIN, BYTES_VALID = 105_000, 55_000  # of an author, at most, in whole chapters
PASSAGE_WORDS = 80  # at least; a passage ends with a sentence and crosses no chapter
HEADING = re.compile(r"(Chapitre [0-9]+|[IVXLC]+|[0-9]+)( ?-.*)?")
SENTENCE_END = re.compile(r"(?<=[.!?…]) (?=\W*[A-ZÀ-Ý])")
WORD = re.compile(r"(?<![^\W\d_])[A-ZÀ-ÝŒ][^\W\d_]+|(?<![^\W\d_])[a-zà-ÿœ][^\W\d_]+")
INSIDE = re.compile(r"[^\W\d_][,;]? $|[^\W\d_]['’-]$")  # before a word that begins no sentence
NO_NAMES = {"Monsieur", "Madame", "Mademoiselle", "Messieurs", "Mesdames", "Dieu", "Seigneur", "Mme", "Mlle"}
PLACEHOLDER = "X"


def chapters(novel: str) -> list[list[str]]:
    """The paragraphs of each chapter, without lines in capitals and what precedes the first heading."""
    found: list[list[str]] = []
    for line in novel.split("\n"):
        if HEADING.fullmatch(line):
            found.append([])
        elif found and line != line.upper():
            found[-1].append(line)
    return [paragraphs for paragraphs in found if paragraphs]


def _is_inside(word: re.Match[str]) -> bool:
    """Whether a word begins no sentence."""
    return bool(INSIDE.search(word.string[max(0, word.start() - 3) : word.start()]))


def names_of(novel: str) -> set[str]:
    """Words that are mostly written with a capital letter inside sentences: characters and places."""
    inside = Counter(word[0] for word in WORD.finditer(novel) if _is_inside(word))
    capital = (word for word in inside if word[0].isupper() and word not in NO_NAMES)
    return {word for word in capital if inside[word] > inside[word.lower()]}


def without_names(text: str, names: set[str]) -> str:
    """A text with a placeholder for each name, and for each other capitalised word inside a sentence.

    Examples
    --------
    >>> without_names("Alors Emma Rouault rit. Charles vit Madame et la pierre de Pierre.", {"Charles"})
    'Alors X rit. X vit Madame et la pierre de X.'
    """

    def replaced(word: re.Match[str]) -> str:
        inside = _is_inside(word) and word[0] not in NO_NAMES
        return PLACEHOLDER if word[0][0].isupper() and (inside or word[0] in names) else word[0]

    return re.sub(rf"\b{PLACEHOLDER}(?:[ -]{PLACEHOLDER}\b)+", PLACEHOLDER, WORD.sub(replaced, text))


def passages(paragraphs: Sequence[str]) -> Iterator[str]:
    """Sentences of a chapter, joined to texts of at least `PASSAGE_WORDS` words; the rest is left out."""
    sentences: list[str] = []
    for sentence in SENTENCE_END.split(" ".join(paragraphs)):
        sentences.append(sentence)
        if sum(len(one.split()) for one in sentences) >= PASSAGE_WORDS:
            yield " ".join(sentences)
            sentences = []


def rows(novels: dict[str, str]) -> Iterator[dict[str, str]]:
    """Author, novel, split and text of each passage."""
    for author, (_, numbers) in AUTHORS.items():
        for number in numbers:
            is_valid = number == numbers[-1]
            room = BYTES_VALID if is_valid else BYTES_TRAIN // (len(numbers) - 1)
            names = names_of(novels[number])
            for paragraphs in chapters(novels[number]):
                texts = list(passages([without_names(one, names) for one in paragraphs]))
                room -= sum(len(text.encode()) for text in texts)
                if room < 0:
                    break
                split = "valid" if is_valid else "train"
                yield from (
                    {"author": author, "novel": number, "split": split, "text": text} for text in texts
                )


def attribution() -> str:
    """Whose words the extract holds, and where they come from."""
    known = dataset("eltec-fra")
    people = "\n".join(f"- {person}: {', '.join(numbers)}" for person, numbers in AUTHORS.values())
    return f"""# Passages of French novels

`novels.jsonl.gz` holds whole chapters from the beginning of novels by six authors, all dead for more than a
century, so their works are in the public domain. Year of death, and the novels by their numbers in the
collection:

{people}

They are taken from: {known.citation}, {known.home} (licence: {known.licence}).

Changes: headings are left out; names of characters and places are replaced by "{PLACEHOLDER}"; sentences are
joined to passages of at least {PASSAGE_WORDS} words, and what is left at the end of a chapter is left out.
`python -m tinytx_course.building.novels` makes the file.
"""


def main() -> None:
    """Write the extract and its attribution into the package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="folder that holds eltec-fra/")
    source = corpus_folder("eltec-fra", parser.parse_args().data_dir) / "corpus.train.txt"
    names = sorted(map(file_name, dataset("eltec-fra").files))
    numbers = [name.partition("_")[0] for name in names if name.removesuffix(".txt") not in VALID_NOVELS]
    texts = source.read_text(encoding="utf-8").rstrip("\n").split("\n\n")
    made = list(rows(dict(zip(numbers, texts, strict=True))))
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made).encode()
    NOVELS_FOLDER.mkdir(exist_ok=True)
    (NOVELS_FOLDER / "novels.jsonl.gz").write_bytes(gzip.compress(content, mtime=0))
    (NOVELS_FOLDER / "ATTRIBUTION.md").write_text(attribution(), encoding="utf-8")
    print(f"{len(made):,} passages, {sum(len(row['text'].encode()) for row in made):,} bytes of text")


if __name__ == "__main__":
    main()
