"""The extract of novels: whole chapters, no names, and the file that is shipped is the one that is made."""

import gzip
import json

from tinytx_course.building.novels import (
    AUTHORS,
    PASSAGE_WORDS,
    attribution,
    chapters,
    names_of,
    passages,
    rows,
    without_names,
)
from tinytx_run.conversion import VALID_NOVELS
from tinytx_run.corpora import NOVELS_FOLDER
from tinytx_run.download import dataset, file_name


def test_chapters_begin_after_their_headings():
    novel = (
        "Préface.\nPARTIE I\nI\nLE BAL\nIl entra.\nElle rit.\nII -- Le soir\nFin.\nChapitre 3 - Là\n4\nOui."
    )
    assert chapters(novel) == [["Il entra.", "Elle rit."], ["Fin."], ["Oui."]]


def test_names_are_found_inside_sentences_and_replaced_everywhere():
    novel = "Emma lut. Il vit Emma, puis Rose et une rose, la rose. Alors Paul-Louis rit, Dieu merci."
    assert names_of(novel) == {"Emma", "Paul", "Louis"}
    text = "Emma et Rose. Rose dort. Madame Emma Bovary rit à l'Opéra de Paul-Louis, mon Dieu !"
    assert without_names(text, names_of(novel)) == "X et X. Rose dort. Madame X rit à l'X de X, mon Dieu !"


def test_passages_end_with_sentences_and_cross_no_chapter():
    sentence = " ".join(["mot"] * 30) + "."
    made = list(passages([f"Un {sentence}", f"Deux {sentence} Trois {sentence} Quatre {sentence}"]))
    assert made == [f"Un {sentence} Deux {sentence} Trois {sentence}"]
    assert len(made[0].split()) >= PASSAGE_WORDS


def test_the_shipped_extract_is_the_one_that_is_made(shared_data):
    source = (shared_data / "eltec-fra" / "corpus.train.txt").read_text(encoding="utf-8").rstrip("\n")
    names = sorted(map(file_name, dataset("eltec-fra").files))
    numbers = [name.partition("_")[0] for name in names if name.removesuffix(".txt") not in VALID_NOVELS]
    made = list(rows(dict(zip(numbers, source.split("\n\n"), strict=True))))
    shipped = gzip.decompress((NOVELS_FOLDER / "novels.jsonl.gz").read_bytes()).decode().splitlines()
    assert [json.loads(line) for line in shipped] == made
    of_author = {
        row["author"]: {one["novel"] for one in made if one["author"] == row["author"]} for row in made
    }
    assert of_author == {author: set(novels) for author, (_, novels) in AUTHORS.items()}
    assert (NOVELS_FOLDER / "ATTRIBUTION.md").read_text(encoding="utf-8") == attribution()
