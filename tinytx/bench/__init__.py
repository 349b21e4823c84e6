"""How fast the package is, beside others on the same task, in turn within one process.

in_turn       A B C, A B C, ...: medians and ratios round by round      ceiling    the most the machine gives
report        kept results, and the table of the README                settings   how much is measured

steps, peers  training steps of language models                        reviews    fine-tuning on real lengths
generation    writing token by token, and translating
"""
