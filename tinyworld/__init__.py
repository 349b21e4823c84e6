"""A small language of book reviews whose every probability can be computed exactly.

>>> import tinyworld
>>> world = tinyworld.World()
>>> next(iter(world.next_word(world.split("Le roman est très"))))  # the most probable
'captivant'
"""

from tinyworld.checker import check_sentence
from tinyworld.reviews import Review, ReviewPlan, split_up, write_out
from tinyworld.sampling import SentencePair
from tinyworld.tokens import TokenWorld
from tinyworld.world import Entropies, Estimate, World

__all__ = [
    "Entropies",
    "Estimate",
    "Review",
    "ReviewPlan",
    "SentencePair",
    "TokenWorld",
    "World",
    "check_sentence",
    "split_up",
    "write_out",
]
