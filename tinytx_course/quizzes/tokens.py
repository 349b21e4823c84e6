"""Questions about tokens."""

from __future__ import annotations

from tinytx_course.quizzes.questions import ask, right, wrong

QUESTIONS = (
    ask(
        "new-word",
        "A tokenizer was trained on French reviews. Now it reads a word that stood in none of them, made "
        "of ordinary letters. What does the model get?",
        right(
            "Several shorter pieces, which the vocabulary holds.",
            "That is the point of pieces: single letters are in the vocabulary too, so nothing has to be "
            "given up.",
        ),
        wrong(
            "One unknown piece, whatever letters the word has.",
            "That is how a vocabulary of whole words behaves. Here only a letter that was never seen is "
            "unknown.",
        ),
        wrong(
            "A new piece, which is added to the vocabulary.",
            "The vocabulary is fixed when training of the tokenizer ends: the embedding table has no row "
            "for more.",
        ),
        wrong(
            "An error, as the word is not in the vocabulary.",
            "Nothing is refused: the word is cut until every part is known.",
        ),
    ),
    ask(
        "double-vocabulary",
        "The vocabulary is made twice as large, with the same text and the same model width. What follows?",
        right(
            "Fewer pieces a text, and an embedding table of twice the size.",
            "Longer pieces cover more letters each, and every piece owns one row of the table.",
        ),
        wrong(
            "More pieces a text, and an embedding table of twice the size.",
            "The table is right. But with more pieces to choose from, longer ones are found, so fewer are "
            "needed.",
        ),
        wrong(
            "Fewer pieces a text, and an embedding table of the same size.",
            "The first half is right. But each piece needs a row, so the table doubles with the vocabulary.",
        ),
        wrong(
            "Half as many pieces a text, and a table of twice the size.",
            "Not half: what is frequent had its long pieces already, and the new ones are for rare words.",
        ),
    ),
    ask(
        "nats-per-piece",
        "Two models read the same text with different tokenizers. One has a loss of 2.0 nats per piece, "
        "the other of 1.5. Which predicts the text better?",
        wrong(
            "The second, as a smaller loss is a better one.",
            "Only per equal unit. With pieces of one letter the loss per piece is small for a poor model "
            "too.",
        ),
        wrong(
            "The first, as its pieces must be the longer ones.",
            "They may be, but it does not follow: it may also be a worse model with pieces of equal length.",
        ),
        right(
            "That is open, as the pieces may differ in length.",
            "Compare the sum over the whole text, or nats per letter: units that both of them share.",
        ),
        wrong(
            "Neither, as a loss says nothing about a text.",
            "The summed loss is exactly how improbable the model finds the text. Only the unit is the "
            "trouble.",
        ),
    ),
    ask(
        "one-tokenizer",
        "You load a pretrained model, but train a new tokenizer of the same vocabulary size for your own "
        "text. What do the embeddings give you?",
        wrong(
            "The right vectors, as the vocabulary size is the same.",
            "Equal size only means that nothing complains. Row 731 was learnt for another piece than your "
            "731.",
        ),
        wrong(
            "The right vectors for French, random ones for the rest.",
            "The language does not matter: a row is found by its number, and the numbers were dealt anew.",
        ),
        right(
            "Vectors of other pieces, as numbers now mean others.",
            "A model and its tokenizer belong together; that is why the course saves them in one folder.",
        ),
        wrong(
            "An error, as the model notices the foreign tokenizer.",
            "A model sees only numbers below its vocabulary size, and these are. It runs, and talks "
            "nonsense.",
        ),
    ),
)
