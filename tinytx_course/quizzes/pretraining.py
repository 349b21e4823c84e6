"""Questions about pretraining."""

from __future__ import annotations

from tinytx_course.quizzes.questions import ask, right, wrong

QUESTIONS = (
    ask(
        "first-loss",
        "A language model with a vocabulary of 1,000 has not been trained yet. Which loss should its "
        "first batch show?",
        wrong(
            "About 0.001 nats, one part in 1,000.",
            "That is the probability it gives to the right piece. The loss is minus its logarithm.",
        ),
        right(
            "About 6.9 nats, the logarithm of 1,000.",
            "Knowing nothing, it spreads evenly: −ln(1/1,000). A first loss far from it is a warning.",
        ),
        wrong(
            "About 10 nats, as 2 to the 10 is 1,024.",
            "That counts in bits. Here logarithms are natural, and the unit is the nat.",
        ),
        wrong(
            "About 1,000 nats, one for each piece.",
            "The loss of a guess grows like the logarithm of the number of choices.",
        ),
    ),
    ask(
        "stuck",
        "Training runs, but the loss stays within a hair of ln V, whatever the learning rate. What is the "
        "likely cause?",
        wrong(
            "The model is too small to learn anything.",
            "Even counting single words comes far below ln V. A tiny model learns that in a few steps.",
        ),
        wrong(
            "The causal mask was forgotten in the body.",
            "Then the answers stand in the input, and the loss falls too far, not too little.",
        ),
        wrong(
            "The text has reached its exact floor.",
            "The floor of a language lies far below ln V, unless all words are equally likely at every "
            "place.",
        ),
        right(
            "Softmax is applied before cross-entropy.",
            "`cross_entropy` applies its own. A second one squeezes all scores between 0 and 1: nearly "
            "even for good.",
        ),
    ),
    ask(
        "below-the-floor",
        "On held-out text, a model's loss lies clearly and lastingly below the exact floor of the "
        "language. What does that mean?",
        right(
            "It sees what it should predict, or the sum is wrong.",
            "On average nobody predicts better than the true probabilities. Chance explains little on "
            "much text.",
        ),
        wrong(
            "It has learnt the language better than the grammar.",
            "The grammar is the language: its probabilities are the truth, and the floor is their loss.",
        ),
        wrong(
            "It has learnt the training text by heart.",
            "That lowers the loss on training text. On held-out text it costs.",
        ),
        wrong(
            "It was trained for longer than the floor assumes.",
            "The floor assumes no training at all: it is computed from the grammar.",
        ),
    ),
    ask(
        "perplexity",
        "A loss of 2.0 nats per token is which perplexity?",
        wrong("4.0", "That is 2 to the power 2, right for a loss of 2 bits. In nats the base is e."),
        wrong("2.0", "That is the loss itself. Perplexity is e to the loss."),
        right("7.4", "e² ≈ 7.39: as unsure as with a die of between seven and eight sides."),
        wrong("0.1", "That is e to the −2, a typical probability of the right token. Take the inverse."),
    ),
    ask(
        "target",
        "A causal model reads tokens 0, 1, …, T − 1. What is it asked to say at place t?",
        wrong(
            "Token t, which it has just read there.",
            "It could copy it. The loss falls to zero, and nothing is learnt: the shift was forgotten.",
        ),
        wrong(
            "Token t − 1, which it read before that.",
            "Shifted the wrong way: the answer lies in the past, where the mask lets it look.",
        ),
        right(
            "Token t + 1, which it may not see yet.",
            "Inputs and targets are one text, shifted by one. The causal mask keeps the answer covered.",
        ),
        wrong(
            "Token T, with which the whole text ends.",
            "Every place has its own question; that is why one text gives T lessons at once.",
        ),
    ),
)
