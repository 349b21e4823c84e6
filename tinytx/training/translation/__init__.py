"""From pairs of sentences to a translator, and how good it is.

translators   training in one call          recipes     how much is spent
objective     what it learns                steps       one step of the decoder
translating   texts in, texts out           alignment   where it looks
bleu          BLEU and chrF                 scoring     a translator on a split
"""
