"""Questions about real text and real models."""

from __future__ import annotations

from tinytx_course.quizzes.questions import ask, right, wrong

QUESTIONS = (
    ask(
        "repeated-reviews",
        "Thirteen of 400 held-out reviews stand in the training part too, word for word. Whom do they help?",
        wrong(
            "Nobody: one review in thirty is too few to show.",
            "It can be three points of accuracy, as much as the gains that reports are about.",
        ),
        right(
            "Most of all a model that learns its texts by heart.",
            "It names the right class for all of them without having understood any. So the leak changes the "
            "order of the models, too.",
        ),
        wrong(
            "All models alike, so a comparison of them is fair.",
            "A linear model with strong regularisation gains little from a text it has seen; one that "
            "remembers gains it all.",
        ),
        wrong(
            "Only those models that were pretrained beforehand.",
            "The labels of these texts stand in the labelled training part: everybody who trains has them.",
        ),
    ),
    ask(
        "bag-beats-transformer",
        "With 200 labelled reviews a bag of words beats a transformer from scratch. Why?",
        wrong(
            "Order never tells anything about praise or blame.",
            "It does, as in *pas mal* or *pas bon*; only less often than single words do.",
        ),
        wrong(
            "The transformer has far too few parameters for it.",
            "It has far more than the linear model. That is part of the trouble, with 200 labels.",
        ),
        wrong(
            "Its tokenizer throws away most words of a review.",
            "Nothing is thrown away: rare words are cut into pieces, and the text comes back whole.",
        ),
        right(
            "One weight a word is soon learned; meaning is not.",
            "From 200 reviews a transformer must learn what words are, and how to combine them, and the "
            "verdict. The linear model learns the verdict alone.",
        ),
    ),
    ask(
        "two-tables",
        "One table says 80.2 for a pretrained model, another 76.9 for a bag of words. What must you know "
        "before you call the first one better?",
        wrong(
            "How many parameters each of the two models has.",
            "Worth knowing, but a larger model is not a reason to distrust its accuracy.",
        ),
        right(
            "On which texts, with how many labels, chosen how.",
            "Other test texts, more labels, an epoch picked on the test set: each alone can make three "
            "points.",
        ),
        wrong(
            "Which of the two papers was the later to appear.",
            "Dates tell nothing about what was measured, and on what.",
        ),
        wrong(
            "Nothing: both are shares of right answers in 100.",
            "Shares of what? Only answers about the same texts can be compared, best of all fold by fold.",
        ),
    ),
    ask(
        "converted-weights",
        "You copy GPT-2's weights into a model of your own. All shapes fit, no error is raised, and the "
        "text it writes is nonsense. What do you look for first?",
        right(
            "A square matrix that should have been transposed.",
            "`c_proj` of attention is (D, D) either way round, so no shape complains. Compare outputs "
            "layer by layer, from the bottom.",
        ),
        wrong(
            "A learning rate that was far too high for GPT-2.",
            "Nothing is trained when weights are copied.",
        ),
        wrong(
            "Weights that were rounded when they were stored.",
            "Rounding changes outputs a little: nonsense needs a larger error.",
        ),
        wrong(
            "A text that differs from what GPT-2 had learned.",
            "Then the original would write nonsense too: compare with it on the same ids.",
        ),
    ),
)
