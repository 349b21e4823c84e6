"""Questions about counting parameters."""

from __future__ import annotations

from tinytx_course.quizzes.questions import ask, right, wrong

QUESTIONS = (
    ask(
        "the-four",
        "The weights of attention are counted as 4·d². Where does the 4 come from?",
        wrong(
            "From the four heads of the attention.",
            "The number of heads does not enter: they share the matrices. With n_heads in its place the "
            "count changes with a number that changes nothing.",
            slip="heads-for-projections",
        ),
        right(
            "From query, key, value and output.",
            "Four projections, each d by d, however many heads share them.",
        ),
        wrong(
            "From the four layers of the stack.",
            "4·d² is the count for a single layer; the layers come as a factor of their own.",
        ),
        wrong(
            "From a feed-forward four times as wide.",
            "That is another part, and another 4, which many models happen to have.",
        ),
    ),
    ask(
        "norms",
        "d_model = 200 and n_heads = 4. How many parameters do the norms of one block hold?",
        wrong(
            "400: one norm with 200 scales, 200 shifts.",
            "One norm is right so far, but a block has two: one for attention, one for the feed-forward.",
            slip="one-norm-instead-of-two",
        ),
        wrong(
            "1,600: 2·d for each of the four heads.",
            "2·d·n_heads is right for two heads, by accident. Norms know nothing of heads.",
            slip="norm-times-heads",
        ),
        right(
            "800: two norms with 200 scales, 200 shifts.",
            "2 norms × (200 + 200). They are easily forgotten, being so small.",
        ),
        wrong(
            "2: one scale and one shift for the block.",
            "Each of the 200 dimensions has a scale and a shift of its own.",
        ),
    ),
    ask(
        "head-swap",
        "The lab's language model has 1,008,100 parameters, 20,100 of them in its head. What has the "
        "classifier with two classes, which takes its place?",
        right(
            "988,402: another head on the same body.",
            "1,008,100 − 20,100 + 402. The head for two classes has 2·200 weights and 2 biases.",
        ),
        wrong(
            "1,008,502: the new head comes on top.",
            "The old head is taken away: nobody asks for 100 scores at every place any more.",
        ),
        wrong(
            "988,400: two weights for each dimension.",
            "Nearly. The two biases are missing.",
        ),
        wrong(
            "968,402: a head on the four layers only.",
            "The classifier still reads tokens: the 20,000 numbers of the embedding stay.",
        ),
    ),
    ask(
        "biases",
        "At d = 200, attention with biases has 160,800 parameters in a layer. What are the 800?",
        wrong(
            "The two layer norms that stand around it.",
            "They are 800 as well, by accident (2·2·200), but they are counted on a line of their own.",
        ),
        wrong(
            "One number for each head and dimension.",
            "Heads have no numbers of their own. With two heads this would be 400.",
        ),
        right(
            "Four biases with 200 numbers each.",
            "4·(200·200 + 200): each of the four projections has one bias for each output.",
        ),
        wrong(
            "The √d by which the scores are divided.",
            "The scale follows from the width. It is not learned, so it counts for nothing.",
        ),
    ),
)
