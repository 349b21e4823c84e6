"""Questions about attention and masks."""

from __future__ import annotations

from tinytx_course.quizzes.questions import ask, right, wrong

QUESTIONS = (
    ask(
        "mask-values",
        "A mask is added to the scores, before softmax. Which two numbers does it hold?",
        right(
            "0 where one may look, −∞ where one may not.",
            "Adding 0 changes nothing, and e to the −∞ is 0. As a table of booleans the same rule is True "
            "and False.",
        ),
        wrong(
            "1 where one may look, −∞ where one may not.",
            "A frequent mixture of two rules. Added, the 1 raises all allowed scores alike, and softmax "
            "does not notice; multiplied, a negative score times −∞ is +∞, and the forbidden word takes "
            "all.",
            slip="mask-of-one-and-minus-infinity",
        ),
        wrong(
            "1 where one may look, 0 where one may not.",
            "That is True and False as numbers. Added to scores it forbids nothing: it only favours the "
            "allowed.",
        ),
        wrong(
            "−∞ where one may look, 0 where one may not.",
            "The sign is turned around: the past would be forbidden, and the future open.",
        ),
    ),
    ask(
        "context-side",
        "A language model reads from left to right and predicts the next word. From where does it take "
        "its context?",
        wrong(
            "From the right, where it is going to read.",
            "Reading to the right does not mean looking to the right: what is already known stands on the "
            "left, and what stands on the right is the answer.",
            slip="context-from-the-right",
        ),
        right(
            "From the left, and the word it stands on.",
            "At place t it may look at places 0 to t; place t + 1 is what it has to say.",
        ),
        wrong(
            "From both sides, most from the near words.",
            "That is a masked model, with another task. Here the right side would give the answer away.",
        ),
        wrong(
            "From the one word that stands before it.",
            "That would be counting pairs of words. Attention reaches back to the first word of the text.",
        ),
    ),
    ask(
        "whose-mask",
        "Where in a transformer can a causal mask be worn?",
        wrong(
            "In a decoder only; an encoder has no place for a mask.",
            "The mask is an argument, not an organ. The lab's language model is an encoder stack that "
            "wears one, which makes it what people call a decoder-only model.",
            slip="causal-mask-only-in-decoders",
        ),
        wrong(
            "In the first layer only, as the later ones inherit it.",
            "Nothing is inherited: in the second layer place 1 could look at place 5, and hand on what it "
            "found.",
        ),
        wrong(
            "In cross-attention, so that it cannot see the source.",
            "The source is known in full before translation begins. There, only padding is hidden.",
        ),
        right(
            "In any self-attention, as it is an argument of it.",
            "Encoder or decoder is a matter of which mask is given, and whether there is a memory to look "
            "at.",
        ),
    ),
    ask(
        "zero-after-softmax",
        "Somebody forgets the mask, and sets the weights on the future to 0 after softmax. What is the "
        "result?",
        wrong(
            "The same as with the mask: zero weights are zero weights.",
            "The zeros are the same, the rest is not: it was divided by a sum in which the future still "
            "stood.",
        ),
        right(
            "A leak: the weights that are left depend on the future.",
            "The denominator has seen every score. The rows no longer sum to 1, and what is missing tells "
            "tales.",
        ),
        wrong(
            "NaN, because a row of softmax has to sum to 1.",
            "Nothing checks the sum. That nothing complains is what makes this mistake expensive.",
        ),
        wrong(
            "A slower model, which does learn the same in the end.",
            "It learns something else: to read the future out of the size of the weights that are left.",
        ),
    ),
    ask(
        "table-of-weights",
        "Four words look at a memory of six words. What does the table of attention weights look like?",
        right(
            "4 rows of 6 weights, and each row sums to 1.",
            "One row for each word that looks. Softmax runs along what is looked at.",
        ),
        wrong(
            "4 rows of 6 weights, and each column sums to 1.",
            "A column tells how much one memory word is looked at, by all together; that may be any amount.",
        ),
        wrong(
            "6 rows of 6 weights, and each row sums to 1.",
            "That is the memory looking at itself: self-attention of the other sequence.",
        ),
        wrong(
            "6 rows of 4 weights, and each row sums to 1.",
            "Turned around: here the memory would look at the four words.",
        ),
    ),
)
