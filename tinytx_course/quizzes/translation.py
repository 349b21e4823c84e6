"""Questions about translation."""

from __future__ import annotations

from tinytx_course.quizzes.questions import ask, right, wrong

QUESTIONS = (
    ask(
        "who-asks",
        "In cross-attention of a translator, who gives what?",
        right(
            "Decoder: queries. Encoder: keys and values.",
            "The translation so far asks; the source sentence answers.",
        ),
        wrong(
            "Encoder: queries. Decoder: keys and values.",
            "Turned around: the source would look at the translation, which is not written yet.",
        ),
        wrong(
            "Decoder: queries and keys. Encoder: values.",
            "Keys and values belong to the same words: what is found by a key is handed over as its value.",
        ),
        wrong(
            "Encoder: queries and keys. Decoder: values.",
            "Then the source would attend to itself. Who asks is the one that is being written.",
        ),
    ),
    ask(
        "why-mask",
        "While translating, the decoder knows no later words anyway. Why does it wear a causal mask in "
        "training?",
        wrong(
            "To make training quicker, as fewer pairs are computed.",
            "The gain is small, and not the reason: usually all pairs are computed and half are covered.",
        ),
        right(
            "Since all words of the right answer are fed in at once.",
            "So every place is trained at the same time, and each must be kept from its own answer.",
        ),
        wrong(
            "To keep the decoder from looking at the source.",
            "It may look at all of the source. The mask covers the later words of the translation.",
        ),
        wrong(
            "To make it ignore padding at the end of a line.",
            "That is the padding mask. Both are needed, and combined by “and”.",
        ),
    ),
    ask(
        "beam",
        "A beam search with two beams and a greedy search translate the same sentence. Whose result has "
        "the larger probability?",
        wrong(
            "Always the beam's, as it keeps more options open.",
            "Nearly always, but not for sure: the greedy path may be pushed out of the beam by two others "
            "that end badly.",
        ),
        wrong(
            "Always the greedy one's: it takes the best each time.",
            "The best next word can lead to a poor sentence. To look ahead is why beams exist.",
        ),
        right(
            "Mostly the beam's, but there is no guarantee of it.",
            "Only a search through everything would be sure, and that is far too large.",
        ),
        wrong(
            "Both the same, as they ask one and the same model.",
            "The model is the same, but they walk different paths through its answers.",
        ),
    ),
    ask(
        "largest-term",
        "In the base Transformer of the paper, with one vocabulary of 37,000 shared by all, which term "
        "holds the most parameters?",
        wrong(
            "The embedding, with its 37,000 rows.",
            "About 19 million, and as it is shared it counts once. It comes close to attention, but is "
            "not the largest.",
        ),
        wrong(
            "The attention, which has 18 modules.",
            "About 19 million, cross-attention included. Two matrices of 512 by 2,048 in each layer weigh "
            "more.",
        ),
        right(
            "The feed-forward parts of 12 layers.",
            "About 25 million of 63: 12 layers with two matrices of 512 by 2,048.",
        ),
        wrong(
            "The positions, as texts are long.",
            "They are computed by a formula: nothing is learned there.",
        ),
    ),
)
