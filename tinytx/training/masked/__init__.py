"""Models that see both sides.

masking          which tokens are hidden      objective    what a masked model learns
sentence_pairs   does one follow the other?   blanks       one blank at a time
completing       texts from blanks
"""
