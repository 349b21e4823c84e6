"""Several processes, one model.

distributed   who is who, and what is shared     launching   torchrun from a notebook
scaling       what a second process brings
"""
