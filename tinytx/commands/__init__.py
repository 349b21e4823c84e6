"""The commands of ``tinytx``, by what they are about.

training      pretrain, finetune              models     evaluate, generate, count
experiments   experiment NAME                 translate  translate
data          data ACTION                     course     course, lab, release, check
options       what several of them share
"""
