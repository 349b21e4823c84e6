"""Is pretraining worth it on real reviews? Folds, texts, bodies, readers, and the table of all cells.

folds         every review is tested once a repetition         sources    unlabelled text, far and near
recipes       how much is spent, by budget                     counts     word vectors from counts
bodies        pretrained in stages that can be gone on with    tuning     fine-tuned, or read as they are
linear        bags of words, and columns beside them           stars      what readers of other books gave
conditions    what is compared, by name                        table      the experiment, cell by cell
rows          means over folds, paired intervals               listing    what is measured, what is missing
"""
