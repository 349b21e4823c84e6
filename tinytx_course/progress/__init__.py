"""What a learner has done: predictions, quiz answers, exercises; all in ``progress.json``, never sent.

>>> from tinytx_course.progress.predictions import predict, resolve
>>> predict("02.1", "Does the loss fall or rise?", ["falls", "rises"])
Predict 02.1. Does the loss fall or rise?
  A. falls
  B. rises
Choose before you look at the next cell.
>>> resolve("02.1", "falls", "The loss falls from 2.3 to 1.9.")
Result of 02.1. Answer: “falls”. The loss falls from 2.3 to 1.9.
"""
