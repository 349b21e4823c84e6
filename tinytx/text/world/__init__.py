"""A language whose truth is known: book reviews in French, with an English twin, and every probability exact.

A review has a hidden label and a hidden genre; its sentences follow a small grammar (`sentences.tsv`) filled
from tables of words. The grammar is compiled to a weighted automaton, so that no probability is estimated:
the floor that a loss curve is drawn against, the perfect next-word prediction and the best possible guess of
a label are sums over the automaton.

=========================  =================================================================================
`steps`, `grammar`         patterns, slots and steps; what both languages have in common
`french`, `english`        articles, elision, agreement, word order
`lexicon`, ``tables/``     the words
`network`                  states and arcs of all sentences
`automaton`, `backward`    forward sums (what a prefix leaves open), backward sums (what the rest says)
`estimates`, `tokens`      entropies and expectations; the same questions about pieces of a tokenizer
`sampling`, `typography`   drawing reviews and sentence pairs; writing them out
`checker`                  an independent judge of grammar
`export`, `speed`          the world as files; how fast it answers
=========================  =================================================================================
"""

from tinytx.text.world.estimates import Entropies, Estimate
from tinytx.text.world.reviews import Review, ReviewPlan
from tinytx.text.world.sampling import SentencePair
from tinytx.text.world.world import World

__all__ = ["Entropies", "Estimate", "Review", "ReviewPlan", "SentencePair", "World"]
