"""How much the experiment spends on docstrings: one table, by budget.

Why the numbers are as they are
-------------------------------
Looked around on 2026-11-20, on 2,400 texts that the table does not draw, 200 labels, per cent.

====================================================================================  ====
two folds, all of the body trained                                                     200
====================================================================================  ====
new weights, 100 updates at 5e-4                                                      33.9
new weights, 200 updates at 1e-3                                                      37.2
counts that are kept, 50 updates at 3e-4, as for reviews                              42.4
counts that are kept, 150 updates at 3e-4                                             44.9
counts that are kept, 150 updates at 1e-3                                             49.0
counts that learn too, 150 updates at 1e-3                                            46.5
====================================================================================  ====

Nine classes ask for more steps than two. What a package is about stands in its nouns, and counts of plain
text know which nouns belong together: windows of 5 and of 15 do equally well (read by a linear model,
three folds: 46.2 and 46.7). Language models keep counted embeddings, as they do for reviews; one and a half
passes over a million pieces are what some minutes of one core allow.
"""

from __future__ import annotations

from tinytx.training.experiments.transfer_folds.package_sources import DOCSTRINGS
from tinytx.training.experiments.transfer_folds.recipes import Stage, TransferRecipe, Tuning

ALL_WORDS = 10_000_000  # of a text of one or two million
PIECES_WORDS = {DOCSTRINGS: ALL_WORDS}
PACKAGE_RECIPES = {
    "smoke": TransferRecipe(
        "smoke",
        vocab_size=400,
        d_model=16,
        n_layers=1,
        n_heads=2,
        max_len=64,
        positions="rotary",
        words={DOCSTRINGS: 3_000},
        pretraining=Stage(4, 512, 5e-3),
        mask=0.2,
        from_counts=True,
        tuning=Tuning(4, 1, 8, 3e-4, 0.1, n_curve=2, n_scored=10, keep_embeddings=True),
        fresh_tuning=Tuning(4, 1, 8, 5e-4, 0.1, n_curve=2, n_scored=10),
    ),
    "study": TransferRecipe(
        "study",
        vocab_size=6_000,
        d_model=192,
        n_layers=2,
        n_heads=6,
        max_len=128,
        positions="rotary",
        words={DOCSTRINGS: ALL_WORDS},
        pretraining=Stage(800, 2_048, 5e-3),
        mask=0.25,
        from_counts=True,
        tuning=Tuning(150, 4, 16, 1e-3, 0.2, keep_embeddings=True),
        fresh_tuning=Tuning(200, 8, 16, 1e-3, 0.2),
    ),
    "gpu": TransferRecipe(
        "gpu",
        vocab_size=12_000,
        d_model=384,
        n_layers=6,
        n_heads=6,
        max_len=256,
        positions="rotary",
        words={DOCSTRINGS: ALL_WORDS},
        pretraining=Stage(4_000, 16_384, 2e-3),
        mask=0.3,
        from_counts=True,
        tuning=Tuning(100, 6, 16, 1e-4, 0.2, keep_embeddings=True),
        fresh_tuning=Tuning(200, 10, 16, 2e-4, 0.2),
    ),
}
