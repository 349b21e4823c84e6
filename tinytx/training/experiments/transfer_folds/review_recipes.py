"""How much the experiment spends on real reviews: one table, by budget.

Why the numbers are as they are
-------------------------------
Looked around on 2026-11-20, on other folds than those of the table: six folds, 200 / 1,600 labels, per cent.
The strength of the linear model was the best of two or three, which flatters all rows alike; "own" reviews
are those outside the first fold, so that five of six folds had been read, without their labels. Texts
were cut after 128 pieces where a body read them, and in the row of reader reviews only.

========================================================================  ====  =====
mean states of a text, read by a linear model                              200  1,600
========================================================================  ====  =====
masked, 1,000 steps (4.1 M tokens, own reviews among them): embeddings     64.0   68.7
the same: last layer                                                       64.3   68.7
new weights: embeddings                                                    59.8   65.8
counts, window 15, reader reviews only                                     71.7   75.8
the same, last layer of a new body                                         69.3   72.8
the same, last layer after 330 masked steps (0.7 M tokens)                 71.3   75.2
the same, embeddings and last layer                                        72.6   75.7
counts, window 15, own reviews too                                         73.5   79.8
counts, window 5, own reviews too                                          72.7   77.7
counts, window 5, own reviews and novels too                               70.4   76.8
TF-IDF, for comparison                                                     73.6   81.9
========================================================================  ====  =====

So fine-tuning was not the first thing that was ill: after minutes of masked training the states hold little
of the polarity, less than counts of the same text hold after seconds. Hence embeddings from counts, of near
text, in wide windows, without the part that all texts share; and they are kept while the body learns, as the
rates of a body (5e-3 a step) would overwrite embeddings of size 0.07 within some steps.

Fine-tuned on 200 labels (one fold): new weights 63.1, counts 72.9, counts that are kept 73.2; with counts
that learn too at a rate of 1e-3, 66.2.

Looked around on 2026-11-22, on the six folds of the second repetition, 200 labels; the body was masked, with
counted embeddings, after its 2,000 steps on reader reviews alone. Per cent, and points beside the first row
with the 95 % interval of the paired difference:

=====================================================================  ====  ==================
fine-tuned                                                              200
=====================================================================  ====  ==================
pretrained, 100 updates at 1e-3                                        74.4
pretrained, 100 updates at 2e-3                                        73.9  -0.5 [-2.8, +1.8]
pretrained, 100 updates at 1e-3, embeddings learn too                  72.1  -2.3 [-3.7, -1.0]
pretrained, 50 updates at 3e-4                                         69.8  -4.6 [-7.5, -1.7]
counted embeddings, new layers, 100 updates at 1e-3                    71.1  -3.4 [-4.2, -2.5]
counted embeddings, new layers, 50 updates at 3e-4                     69.6
new weights, 100 updates at 5e-4                                       67.3  -7.1 [-9.1, -5.1]
new weights, 100 updates at 1e-3                                       67.2  -7.2 [-10.2, -4.2]
=====================================================================  ====  ==================

A linear model that reads mean states had 69.6 for the embeddings, 68.8 for the last layer of a new body on
them, 73.4 for the pretrained last layer. So masked training does teach the layers something, and a short and
careful fine-tuning (50 updates at 3e-4, as these recipes once had) ends before it is used.

Known ways to treat a pretrained body more gently, looked around with on the same day and the same folds, 200
labels; the body was masked, after its 2,000 steps on all text elsewhere. None was better than plain training:

=====================================================================  ====  ==================
fine-tuned, 100 updates at 1e-3                                         200
=====================================================================  ====  ==================
all of the body at one rate                                            70.8
rates halved at each layer towards the words                           70.2  -0.6 [-2.5, +1.4]
weights averaged over the second half of the updates                   70.4  -0.4 [-1.1, +0.4]
head first, then a layer more every 25 updates                          70.6  -0.2 [-2.4, +2.1]
=====================================================================  ====  ==================

Star ratings foretold from words and letters need no label to reach 78.5 (cut at the median), words alone
77.2; training again on the opinions about unlabelled reviews adds nothing to that.
"""

from __future__ import annotations

from tinytx.training.experiments.transfer_folds.recipes import Stage, TransferRecipe, Tuning

_WORDS = {"novels": 1_000_000, "tatoeba": 400_000, "readers": 10_000_000}
REVIEW_RECIPES = {
    "smoke": TransferRecipe(
        "smoke",
        vocab_size=400,
        d_model=16,
        n_layers=1,
        n_heads=2,
        max_len=64,
        positions="rotary",
        words={"novels": 3_000, "tatoeba": 3_000, "readers": 3_000},
        pretraining=Stage(4, 512, 5e-3),
        adapting=Stage(2, 512, 3e-3),
        rating=Stage(3, 512, 5e-3),
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
        max_len=256,
        positions="rotary",
        words=_WORDS,
        pretraining=Stage(2_000, 4_096, 5e-3),
        adapting=Stage(200, 4_096, 3e-3),
        rating=Stage(600, 4_096, 3e-3),
        mask=0.25,
        from_counts=True,
        tuning=Tuning(100, 4, 16, 1e-3, 0.2, keep_embeddings=True),
        fresh_tuning=Tuning(100, 8, 16, 5e-4, 0.2),
    ),
    "gpu": TransferRecipe(
        "gpu",
        vocab_size=16_000,
        d_model=512,
        n_layers=8,
        n_heads=8,
        max_len=384,
        positions="rotary",
        words={"novels": 10_000_000, "tatoeba": 2_000_000, "readers": 10_000_000},
        pretraining=Stage(20_000, 32_768, 2e-3),
        adapting=Stage(1_000, 16_384, 1e-3),
        rating=Stage(1_000, 16_384, 1e-3),
        mask=0.3,
        from_counts=True,
        tuning=Tuning(100, 6, 16, 1e-4, 0.2, keep_embeddings=True),
        fresh_tuning=Tuning(200, 10, 16, 2e-4, 0.2),
    ),
}
