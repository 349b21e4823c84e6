"""Questions about the block."""

from __future__ import annotations

from tinytx_course.quizzes.questions import ask, right, wrong

QUESTIONS = (
    ask(
        "norms-in-a-block",
        "How many layer norms does a block with attention and feed-forward hold?",
        wrong(
            "One, which stands at the very end of the block.",
            "Each of the two parts has its own. Forget one, and 2·d parameters are missing from every layer.",
            slip="one-norm-instead-of-two",
        ),
        wrong(
            "One, which attention and feed-forward share.",
            "They are two modules with numbers of their own, learnt for different inputs.",
            slip="one-norm-instead-of-two",
        ),
        right(
            "Two, one for each of these two parts.",
            "One with attention, one with the feed-forward, each with d scales and d shifts.",
        ),
        wrong(
            "As many as the attention has heads, and one more.",
            "A norm works on the whole vector of a word; it knows nothing of heads.",
        ),
    ),
    ask(
        "nothing-added",
        "Norm first, and both parts of a block return zeros. What leaves the block?",
        wrong(
            "Zeros, as nothing was computed in it.",
            "The parts are added to what came in, they do not replace it.",
        ),
        wrong(
            "What came in, after a layer norm.",
            "With norm first, norms stand inside the branches. The straight path has none.",
        ),
        right(
            "What came in, without any change.",
            "x + 0 + 0: the residual path carries everything past the parts. So depth does no harm to "
            "begin with.",
        ),
        wrong(
            "Twice what came in, once for each part.",
            "Each part adds its own output to the one path; the path itself is not doubled.",
        ),
    ),
    ask(
        "who-moves",
        "Which words does the feed-forward part read to compute its output at place 5?",
        right(
            "The one at place 5, and no other.",
            "Each place goes through the same small network by itself. Between places, only attention "
            "carries.",
        ),
        wrong(
            "Those at the places from 0 to 5.",
            "That is causal attention. The feed-forward part needs no mask, as it never looks aside.",
        ),
        wrong(
            "Those at all places of the text.",
            "Then a causal model would leak in every block. It is applied to each place by itself.",
        ),
        wrong(
            "Those next to it, at places 4 to 6.",
            "That would be a convolution of width 3.",
        ),
    ),
    ask(
        "straight-path",
        "What is the difference between norm first and norm last?",
        wrong(
            "Norm last needs more parameters in each block.",
            "Both have two norms a block. (Norm first adds a single one at the top of the whole stack.)",
        ),
        wrong(
            "Norm first divides the words by their average length.",
            "A norm looks at one vector: its mean and spread over the dimensions, nothing about other words.",
        ),
        wrong(
            "Norm last works only together with a causal mask.",
            "The two have nothing to do with each other; the lab's model has both, BERT only norm last.",
        ),
        right(
            "Norm first leaves a path with no norm on it.",
            "Gradients run down that path undisturbed, which is why it needs less care with the warm-up.",
        ),
    ),
)
