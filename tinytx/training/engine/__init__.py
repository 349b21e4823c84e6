"""Steps: from a batch to new weights.

loop         one training loop               learners     gradients: alone, copied, sharded
optimizers   by name                         muon         an optimizer for matrices
outputloss   the loss over a large vocabulary             allocator    memory that is given back
history      what was measured on the way    interrupts   Ctrl-C ends after a step
progress     bars                            timing       medians, in turn
"""
