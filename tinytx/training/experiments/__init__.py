"""Questions with numbers for answers: measured over several seeds, and kept.

kept                 measured once, read again     ladder               the loss against its floor
layer_speed          time against length           objectives           causal against masked, with
translation          how good a translator gets                         contest and objective_measures
broken_translation   which fault breaks it         completions          "Bonjour les", after real French
transfer_seeds       does it pay to learn something before the labels? Seed by seed, on any corpus
transfer_folds       the same on real texts, where every text is tested once
"""
