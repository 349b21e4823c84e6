"""How fast the package is, beside others on the same task, in turn within one run.

in_turn   A B C, A B C, ...: medians, ratios by round     ceiling     the most the machine gives
report    kept results, and the table of the README       settings    how much is measured

steps, peers      training steps of language models       texts       what is read
reviews, padded   fine-tuning on true lengths             workers     processes for contestants
generation        writing token by token, translating     quality     what half precision loses
speedrun          quality after some minutes
"""
