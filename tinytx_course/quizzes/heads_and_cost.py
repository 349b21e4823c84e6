"""Questions about heads and cost."""

from __future__ import annotations

from tinytx_course.quizzes.questions import ask, right, wrong

QUESTIONS = (
    ask(
        "when-cheaper",
        "When does a layer of self-attention, O(n²d), need fewer operations than a recurrent one, O(nd²)?",
        wrong(
            "Always, because it has no loop over words.",
            "Having no loop makes it quick on parallel hardware; the number of operations is another "
            "matter, and for n > d it is the larger one.",
            slip="attention-always-cheaper",
        ),
        wrong(
            "Never, because n² is far larger than n.",
            "n² stands against n·d, not against n. Everything depends on how n and d compare.",
        ),
        right(
            "When the text is shorter than the width: n < d.",
            "n²d < nd² is n < d. Sentences at usual widths are on this side, whole books are not.",
        ),
        wrong(
            "When it has more heads than the text words.",
            "Heads share the width among them; the number of operations stays as it is.",
        ),
    ),
    ask(
        "more-heads",
        "d_model stays at 200, and the number of heads goes from 2 to 8. How many parameters has "
        "attention now?",
        wrong(
            "Four times as many, n_heads · d² in all.",
            "The heads cut up the same four matrices. n_heads · d² is right in one case only: four heads, "
            "and no biases.",
            slip="heads-for-projections",
        ),
        right(
            "Just as many, as each head gets narrower.",
            "8 heads of 25 numbers, or 2 of 100: the projections are 200 by 200 in both cases.",
        ),
        wrong(
            "A quarter as many, as heads get narrower.",
            "Narrower, but four times as many of them: the two cancel exactly.",
        ),
        wrong(
            "A few more, for the bias of each new head.",
            "The biases belong to the projections, 200 numbers each, however they are cut.",
        ),
    ),
    ask(
        "steps-in-a-row",
        "A text has n words. How many steps must a layer take one after the other, because each needs the "
        "last?",
        wrong(
            "n for attention and n for a recurrent layer.",
            "In attention every word's sums are ready to be computed at once; none waits for its neighbour.",
        ),
        right(
            "1 for attention and n for a recurrent layer.",
            "That is the middle column of the paper's table, and why attention suits parallel hardware.",
        ),
        wrong(
            "n² for attention and n for a recurrent layer.",
            "n² is the number of pairs. They are computed side by side, not one after the other.",
        ),
        wrong(
            "1 for attention and 1 for a recurrent layer.",
            "A recurrent layer cannot know its state at word 7 before that at word 6.",
        ),
    ),
    ask(
        "double-length",
        "The text becomes twice as long. What becomes of the table of attention weights of one layer and "
        "head?",
        wrong(
            "It takes twice the memory of before.",
            "Twice as many rows, but each row becomes twice as long, too.",
        ),
        wrong(
            "It takes eight times the memory.",
            "Only two of its axes are places of the text; nothing in it grows with the third power.",
        ),
        wrong(
            "It stays as large as it was before.",
            "That holds for the parameters, which do not depend on the length. The table does.",
        ),
        right(
            "It takes four times the memory.",
            "n rows of n weights: 2n by 2n is four times as much.",
        ),
    ),
)
