"""The bytes that autograd saves for the backward pass."""

import torch


def count_saved_bytes(task, ignore=()):
    """Run a task, forward only; the memory of tensors to ignore does not count, shared memory counts once."""
    ignored = {tensor.untyped_storage().data_ptr() for tensor in ignore}
    sizes = {}
    alive = []  # freed memory may be reused, and would then count once

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in ignored:
            sizes[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        task()
    return sum(sizes.values())
