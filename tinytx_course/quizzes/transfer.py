"""Questions about transfer."""

from __future__ import annotations

from tinytx_course.quizzes.questions import ask, right, wrong

QUESTIONS = (
    ask(
        "curves-meet",
        "After 15 epochs the pretrained model is five points above the one from scratch, and both curves "
        "are nearly level. What follows about longer training?",
        wrong(
            "Both curves will meet in the end, as scratch catches up.",
            "Perhaps, but nobody looked. It is a guess, and written down as an observation it misleads.",
            slip="curves-will-meet",
        ),
        wrong(
            "The distance will stay at five points from now on.",
            "Perhaps, but the same holds: it is a guess about epochs that were not run.",
        ),
        wrong(
            "The pretrained model will overfit and fall behind.",
            "It can happen, and it can be measured. The curves up to epoch 15 do not show it.",
        ),
        right(
            "Nothing yet: one would have to train longer and look.",
            "What was measured ends at epoch 15. Beyond it there are only guesses, fit to be tested.",
        ),
    ),
    ask(
        "best-epoch",
        "A report gives the accuracy on the test set at the best of 15 epochs, chosen by that same "
        "accuracy. What is the trouble?",
        right(
            "It is too high, as the luck of the test set is chosen too.",
            "The largest of 15 noisy numbers lies above the truth on average. Choose on other texts, then "
            "test once.",
        ),
        wrong(
            "It is too low, as the other 14 epochs are thrown away.",
            "Choosing the largest can only raise it.",
        ),
        wrong(
            "None, as all the models are chosen in the same way.",
            "Then all are flattered, and not by the same amount: the more a curve wobbles, the more it "
            "gains.",
        ),
        wrong(
            "None, as the test set was not used for any gradient.",
            "No gradient, but a choice: that, too, is learning from the test set.",
        ),
    ),
    ask(
        "last-position",
        "Texts of a batch are padded on the right. The classifier reads the output at the last position, "
        "`output[-1]`. What does it mostly read?",
        wrong(
            "The last word of each text, which has seen all.",
            "Only for the longest text of the batch. The others end earlier.",
        ),
        wrong(
            "The mean of all words, padding left out.",
            "That would be mean pooling, which takes a mask and a sum.",
        ),
        right(
            "What was computed at padding, not at a word.",
            "Take the last real position of each text, or the mean over real ones.",
        ),
        wrong(
            "The first word, as padding shifts the texts.",
            "Padding on the right leaves all words where they are.",
        ),
    ),
    ask(
        "head-swap",
        "What changes when a language model becomes a classifier of whole texts?",
        wrong(
            "The body: it must be pretrained once more with labels.",
            "The body is what is kept. It is trained on with labels, but begins where it stands.",
        ),
        wrong(
            "The tokenizer: labels need a vocabulary of their own.",
            "The texts are read as before. Labels are two numbers of the new head.",
        ),
        right(
            "The head: one decision a text, not one at each place.",
            "Body and tokenizer stay. The new head starts from random numbers, and must know which place "
            "it reads.",
        ),
        wrong(
            "Nothing: the head then predicts the label as next word.",
            "That is a way, too (prompting), but not with a head for two classes.",
        ),
    ),
    ask(
        "one-seed",
        "Pretrained 80.7, from scratch 79.9, one training run each. What may be concluded?",
        wrong(
            "Pretraining brings 0.8 points on this task.",
            "0.8 is what these two runs differ by. Two runs that differ in nothing but the seed may "
            "differ as much.",
        ),
        wrong(
            "Pretraining brings nothing on this task.",
            "That does not follow either: a true gain can hide in the noise of single runs.",
        ),
        right(
            "Little, until the spread of seeds is known.",
            "Several seeds each, the same seeds for both, and an interval for the difference.",
        ),
        wrong(
            "Little, until the test is ten times larger.",
            "More test texts help with one source of noise; the seeds of training are another.",
        ),
    ),
)
