"""How much the experiment spends on docstrings: one table, by budget."""

from __future__ import annotations

from tinytx.training.transfer_experiment.package_sources import DOCSTRINGS
from tinytx.training.transfer_experiment.recipes import Stage, TransferRecipe, Tuning

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
        pretraining=Stage(1_000, 4_096, 5e-3),
        mask=0.25,
        from_counts=True,
        tuning=Tuning(50, 4, 16, 3e-4, 0.2, keep_embeddings=True),
        fresh_tuning=Tuning(100, 8, 16, 5e-4, 0.2),
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
