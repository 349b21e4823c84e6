"""Questions about positions."""

from __future__ import annotations

from tinytx_course.quizzes.questions import ask, right, wrong

QUESTIONS = (
    ask(
        "where-sines-stand",
        "In the table of sinusoidal positions, each row is a token and each column a dimension. Where are "
        "the sines?",
        right(
            "In the even columns, whatever the token.",
            "PE(pos, 2i) is a sine and PE(pos, 2i + 1) a cosine: 2i counts dimensions. Every token has both.",
        ),
        wrong(
            "In the even rows; odd tokens have cosines.",
            "Easily misread: 2i is the number of a dimension, not of a token. A token with cosines only "
            "could not be turned into its neighbour.",
            slip="sine-for-even-tokens",
        ),
        wrong(
            "In the left half; cosines fill the right.",
            "Some programs lay it out so, which is as good, but the formula of the paper takes turns.",
        ),
        wrong(
            "Where row plus column is an even number.",
            "A chessboard would give a dimension a sine here and a cosine there; no rotation would fit.",
        ),
    ),
    ask(
        "last-frequency",
        "With d = 200 dimensions, each frequency has a sine and a cosine. Which is the last index i?",
        wrong(
            "i = 100, as i runs from 0 to d/2.",
            "From 0 to 100 there are 101 frequencies, one too many: 2i would be 200, and the columns end "
            "at 199.",
            slip="last-frequency-off-by-one",
        ),
        right(
            "i = 99, as i runs from 0 to d/2 − 1.",
            "A hundred frequencies for two hundred columns: the last pair stands in columns 198 and 199.",
        ),
        wrong(
            "i = 199, as i runs from 0 to d − 1.",
            "That is the last column. Two columns share one frequency.",
        ),
        wrong(
            "i = 198, as i takes even numbers only.",
            "2i is even; i itself takes every whole number from 0 on.",
        ),
    ),
    ask(
        "by-hand",
        "d = 4 and base = 100. Which number stands in row 2 (the third token), column 2?",
        right("0.20", "sin(2 / 100^(2/4)) = sin(0.2): column 2 is the sine of the second frequency, i = 1."),
        wrong("0.91", "That is sin(2): the first frequency, which belongs to column 0."),
        wrong("0.98", "That is cos(0.2): the frequency is right, but it stands one column to the right."),
        wrong("0.02", "That is sin(2 / 100): the exponent is 2i/d = 2/4, so the angle is divided by 10."),
    ),
    ask(
        "no-positions",
        "A body with neither positions nor a mask reads the same words in another order. What becomes of "
        "its output?",
        wrong(
            "It stays as it is, row for row.",
            "That would be an average of all. Each row still belongs to its word, and goes where the word "
            "goes.",
        ),
        wrong(
            "It changes in ways hard to foretell.",
            "It can be foretold: a sum over all words does not care in which order they are added.",
        ),
        right(
            "Its rows are shuffled like the words.",
            "That is permutation equivariance. To such a body a sentence is a bag of words.",
        ),
        wrong(
            "Its rows come in the reverse order.",
            "Only if the words were reversed. The rows follow whatever was done to the words.",
        ),
    ),
    ask(
        "shift",
        "How does PE(pos + k) follow from PE(pos)?",
        wrong(
            "By adding a vector that depends on k alone.",
            "Adding cannot do it: the step from angle to angle looks different at each place of the circle.",
        ),
        wrong(
            "By a matrix that depends on both pos and k.",
            "Better than that: pos drops out, which is what lets one head look k back from anywhere.",
        ),
        wrong(
            "By no matrix, since sine is not a linear function.",
            "Not linear in pos. But the pair (sin, cos) turns, and turning is linear in the pair.",
        ),
        right(
            "By a matrix that depends on k alone.",
            "Each pair of columns is turned by k times its frequency: 2×2 rotations along the diagonal.",
        ),
    ),
)
