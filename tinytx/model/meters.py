"""Counting what a computation does and keeps, without a formula: the check on every closed form.

Torch does the counting, of operations and of what autograd keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode


def count_flops(task: Callable[[], object]) -> int:
    """Count the floating-point operations of the matrix products and convolutions in a task.

    Parameters
    ----------
    task : callable without arguments
        Run once; a backward pass in it is counted too.

    Returns
    -------
    int
        A multiply-add counts as two.

    Notes
    -----
    Fused attention on a CPU is unknown to the counter and counts 0: run the plain path (`trace`) instead.

    Examples
    --------
    >>> count_flops(lambda: torch.ones(2, 3) @ torch.ones(3, 5)) == 2 * 2 * 3 * 5
    True
    """
    with FlopCounterMode(display=False) as counter:
        task()
    return counter.get_total_flops()


def count_saved_bytes(task: Callable[[], object], ignore: Iterable[Tensor] = ()) -> int:
    """Count the bytes that autograd keeps for the backward pass of a task.

    Parameters
    ----------
    task : callable without arguments
        Run once, forward only.
    ignore : iterable of Tensor
        Not to be counted, neither they nor views of them: the parameters of the model.

    Returns
    -------
    int
        Memory that several saved tensors share counts once.

    Examples
    --------
    The product of x and y needs both for its gradient, the sum needs neither:

    >>> x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    >>> count_saved_bytes(lambda: x * y), count_saved_bytes(lambda: x + y)
    (24, 0)
    """
    ignored = {tensor.untyped_storage().data_ptr() for tensor in ignore}
    sizes: dict[int, int] = {}
    alive: list[Tensor] = []  # memory that is freed may be used again, and would be taken for the same

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in ignored:
            sizes[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        task()
    return sum(sizes.values())
