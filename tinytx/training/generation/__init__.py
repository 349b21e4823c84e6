"""From probabilities to text.

sampling     choosing next tokens                     decoding     one text
continuing   rows of ids side by side, id by id       many         many texts
nextword     from pieces to whole words               beamsearch   greedy and beam search
"""
