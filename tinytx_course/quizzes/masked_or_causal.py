"""Questions about masked and causal models."""

from __future__ import annotations

from tinytx_course.quizzes.questions import ask, right, wrong

QUESTIONS = (
    ask(
        "barthez",
        "CamemBERT and BARThez were both pretrained on French. How do they compare in shape?",
        wrong(
            "Both are encoders, as BERT is.",
            "CamemBERT is. BARThez follows BART: it repairs damaged text with a decoder that writes it "
            "out anew.",
            slip="barthez-is-an-encoder",
        ),
        wrong(
            "Both are decoders, as GPT is.",
            "Neither is: CamemBERT has no causal mask at all, and BARThez has an encoder in front of its "
            "decoder.",
        ),
        right(
            "An encoder, and an encoder-decoder.",
            "CamemBERT descends from BERT, BARThez from BART.",
        ),
        wrong(
            "A decoder, and an encoder-decoder.",
            "CamemBERT fills gaps with both sides in view; a decoder could not.",
        ),
    ),
    ask(
        "which-places-count",
        "BERT draws 15 % of the tokens. Of these it hides 80 %, replaces 10 % by random ones and leaves "
        "10 %. Which places enter the loss?",
        wrong(
            "Only those that were hidden behind the mask token.",
            "Then the other two tenths would be pointless: they keep the model on its guard at tokens "
            "that look ordinary.",
        ),
        wrong(
            "Those hidden and those replaced, not those left.",
            "Those left count as well. There the right answer is the very token, and the model cannot "
            "know it.",
        ),
        right(
            "All that were drawn, those left alone included.",
            "Everywhere else the label is -100, which torch leaves out.",
        ),
        wrong(
            "All the places of a text, drawn or not.",
            "Where nothing was drawn the answer stands in the input, and copying would be rewarded.",
        ),
    ),
    ask(
        "comparing-losses",
        "On the same text a masked model has a loss of 1.2 nats per hidden token, a causal one of 1.9 per "
        "token. Which knows the language better?",
        right(
            "That is open: the two were asked different questions.",
            "One saw both sides of a few gaps, the other only the left. Compare on an equal task, such as "
            "one gap.",
        ),
        wrong(
            "The masked one, as its loss is lower by 0.7 nats.",
            "With both sides in view the same gap is easier for anybody; even the exact answer has a "
            "lower loss there.",
        ),
        wrong(
            "The causal one, as it answers for every token.",
            "It gets more lessons from a text, which is something else than knowing more.",
        ),
        wrong(
            "Neither: losses of two models are never comparable.",
            "They are, if tokens, text and question are the same.",
        ),
    ),
    ask(
        "right-context",
        "For which kind of word in our French reviews does looking at the right side help the most?",
        wrong(
            "The full stop at the end of a sentence.",
            "What follows a full stop says little that the words before it did not.",
        ),
        right(
            "An article that stands before its noun.",
            "Gender and number are decided by the noun, and it comes after.",
        ),
        wrong(
            "The last adjective of a long review.",
            "To its right there is next to nothing; its clues stand before it.",
        ),
        wrong(
            "A noun that stands after its article.",
            "The article on the left already tells gender and number.",
        ),
    ),
)
