"""Questions with four options: the bank, one ``NN_slug.toml`` a lesson, and the card that asks them."""
