"""Write what a fold of the experiment on pretraining learns from as files, for any program to learn from.

``python -m experiments.pretraining_files FOLDER`` writes a folder a fold: ``train.tsv`` holds the labelled
reviews of its first draw, ``test.tsv`` and ``valid.tsv`` others of the films that it tests, which no cell of
this fold has read; cells of other folds may have learned from some. Then ``tinytx finetune CHECKPOINT
--corpus FOLDER/fold-0 --epochs 10 --lr 1e-3 --out RUN`` fine-tunes much as a cell does.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments.pretraining_data import Texts, grouped_folds, last_words, texts_of
from experiments.pretraining_recipes import RECIPES, Recipe
from tinytx_run.corpora import label_subset, load_corpus
from tinytx_run.files import write_file

N_VALID = 100


def write_folds(folder: Path, texts: Texts, recipe: Recipe, n_labels: int) -> None:
    """Write the folds; at most `recipe.n_test` fresh texts in each, and `N_VALID` more."""
    n_texts = len(texts.labelled)
    folds, wholes = (grouped_folds(texts.labelled, recipe.n_folds, 1, n) for n in (recipe.n_test, n_texts))
    for fold, whole in zip(folds, wholes, strict=True):
        tested = set(fold.test.texts)
        fresh = [i for i, text in enumerate(whole.test.texts) if text not in tested]
        n = min(recipe.n_test + N_VALID, len(fresh))
        rest = label_subset(whole.test.take(fresh), n, fold.seed)
        n_valid = min(N_VALID, n // 2)
        parts = {
            "train": label_subset(fold.train, n_labels, fold.seed),
            "valid": rest.take(range(n_valid)),
            "test": rest.take(range(n_valid, n)),
        }
        for name, split in parts.items():
            rows = zip(split.labels or (), last_words(split, recipe.n_words).texts, strict=True)
            text = "".join(f"{label}\t{text}\n" for label, text in rows)
            write_file(folder / f"fold-{fold.number}" / f"{name}.tsv", text.encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="to write into")
    parser.add_argument("--labels", type=int, default=200, help="labelled texts of a fold")
    parser.add_argument("--data-dir", type=Path, help="folder that holds one folder a corpus")
    args = parser.parse_args()
    corpora = (load_corpus(name, args.data_dir) for name in ("imdb", "imdb-unlabelled"))
    write_folds(args.folder, texts_of(*corpora), RECIPES["study"], args.labels)
