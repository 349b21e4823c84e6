"""Is pretraining worth it on real texts? Folds, texts, bodies, readers, and the table of all cells.

task          what is told of a corpus             tasks      real reviews, and docstrings by package
sources       unlabelled text, by name             folds      every text is tested once a repetition
recipes       how much is spent, by budget         counts     word vectors from counts
bodies        pretrained in stages that can        tuning     fine-tuned, or read as they are
              be gone on with                      stars      what readers of other books gave
linear        bags of words, and columns beside    conditions what is compared, by name
table         the experiment, cell by cell         rows       means over folds, paired intervals
listing       what is measured, what is missing    kept       rows from kept records alone
"""
