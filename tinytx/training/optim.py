"""Optimizers (AdamW and Muon) and the memory settings of training on a CPU."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn

from tinytx.training.settings import TrainingSettings, choose_precision

# Parameters of mallopt, see its manual page.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 2**30  # bytes: blocks up to this size, and free memory up to it, stay with the process
TRIM_EVERY = 50  # steps

# oneDNN, which multiplies matrices in torch, makes a kernel for each shape and keeps the latest 1,024.
# Batches by length have hundreds of shapes, and a kernel takes up to a megabyte. It reads this when it first
# multiplies.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")


def keep_memory() -> bool:
    """Let the process keep what it frees, up to a gigabyte, until it is told to `trim_memory`.

    Returns
    -------
    bool
        Whether the C library took the wish: only glibc, the usual one of Linux, does.

    Notes
    -----
    By default glibc gives large blocks back to the system at once, and the top of the heap whenever much of
    it is free. Each training step then begins with memory that the system has to find and clear anew, page
    by page: of the processor time of a step on a virtual machine this was 8 % with our loss, and 33 % where
    all logits were kept (8,000 pieces, 2,048 positions). Numbers do not change.
    """
    libc = _glibc()
    if libc is None:
        return False
    return all(libc.mallopt(parameter, _KEPT) == 1 for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD))


def trim_memory() -> bool:
    """Give back to the system what is free, also between what is in use; True where something was.

    Blocks of ever new sizes leave gaps in the heap that no later block fits: within some hundred steps of
    batches by length they add up to gigabytes.
    """
    libc = _glibc()
    return libc is not None and libc.malloc_trim(0) == 1


@functools.cache
def _glibc() -> ctypes.CDLL | None:
    if sys.platform != "linux":
        return None
    try:
        libc = ctypes.CDLL(None)
        return libc if libc.mallopt and libc.malloc_trim else None
    except (OSError, AttributeError):  # another C library
        return None


MOMENTUM = 0.95
N_ITERATIONS = 5
# An odd polynomial whose iteration lifts every singular value in (0, 1] to about 1 (between 0.7 and 1.2).
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ADAM_LENGTH = 0.2  # root mean square of a usual update of Adam, in units of the rate


def orthogonalised(matrices: Tensor, n_iterations: int = N_ITERATIONS) -> Tensor:
    r"""Matrices with the same singular vectors, and singular values near 1: about :math:`U V^T`.

    Newton-Schulz iteration :math:`X \leftarrow a X + b (X X^T) X + c (X X^T)^2 X` from ``X / |X|``, made of
    matrix products only.

    Parameters
    ----------
    matrices : Tensor of shape (..., M, N)
    n_iterations : int

    Returns
    -------
    Tensor of shape (..., M, N)
        In the dtype of the matrices; computed in bfloat16 where the hardware multiplies it.
    """
    a, b, c = COEFFICIENTS
    fast = choose_precision("auto", matrices.device) == "bf16" and matrices.dtype == torch.float32
    x = matrices.to(torch.bfloat16) if fast else matrices
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(n_iterations):
        square = x @ x.mT  # (..., M, M)
        x = a * x + (b * square + c * square @ square) @ x
    return (x.mT if tall else x).to(matrices.dtype)


class Muon(torch.optim.AdamW):
    """Momentum, orthogonalised, for matrices; AdamW for everything else.

    Adam's strides follow the few directions in which gradients are large. Muon takes the running mean of the
    gradient of a matrix and sets all its singular values to 1, so that rare directions are learned as fast as
    common ones.

    Parameters
    ----------
    matrices : iterable of Parameter of two dimensions
        Hidden layers; not embeddings, and not an output layer.
    others : iterable of dict
        Groups of all other parameters, as `torch.optim.AdamW` takes them.
    lr : float
        Of both: an update of a matrix is made as long as one of Adam usually is, which is `ADAM_LENGTH` times
        the rate for an entry.
    weight_decay : float
        Of the matrices.
    betas : pair of float
        Of AdamW.

    References
    ----------
    Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024 (kellerjordan.github.io).
    Liu et al., "Muon is scalable for LLM training", arXiv 2502.16982, section 2.2, for the length.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        others: Iterable[dict[str, Any]],
        *,
        lr: float,
        weight_decay: float,
        betas: tuple[float, float],
    ) -> None:
        first = {"params": list(matrices), "weight_decay": weight_decay}
        super().__init__([first, *others], lr=lr, betas=betas, fused=True)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Make one update from the gradients at hand; those of the matrices are used up."""
        group = self.param_groups[0]
        by_shape: dict[tuple[int, ...], list[nn.Parameter]] = {}
        for parameter in group["params"]:
            if parameter.grad is not None:
                by_shape.setdefault(tuple(parameter.shape), []).append(parameter)
        for shape, parameters in by_shape.items():
            pulls = [self._pull(parameter, cast(Tensor, parameter.grad)) for parameter in parameters]
            updates = orthogonalised(torch.stack(pulls))
            stride = group["lr"] * ADAM_LENGTH * max(shape) ** 0.5
            for parameter, update in zip(parameters, updates, strict=True):
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(update, alpha=-stride)
                parameter.grad = None  # AdamW passes over what has no gradient
        super().step()

    def _pull(self, parameter: nn.Parameter, gradient: Tensor) -> Tensor:
        """The running mean of the gradient, looked at one step ahead (Nesterov)."""
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        state["momentum"].lerp_(gradient, 1 - MOMENTUM)
        return torch.lerp(gradient, state["momentum"], MOMENTUM)


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.AdamW:
    """AdamW, or `Muon`, that pulls matrices towards zero, but neither embeddings nor norms nor biases.

    Parameters that need no gradient, those of a frozen body, are left out.
    """
    if settings.optimizer == "muon":
        return _make_muon(model, settings)
    decayed, free = _decayed_and_free(model)
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    filled = [group for group in groups if group["params"]]
    return torch.optim.AdamW(filled, lr=settings.lr, betas=settings.betas, fused=True)


def _make_muon(model: nn.Module, settings: TrainingSettings) -> Muon:
    heads = {id(parameter) for name, parameter in model.named_parameters() if name.startswith("head.")}
    decayed, free = _decayed_and_free(model)
    matrices = [parameter for parameter in decayed if parameter.dim() == 2 and id(parameter) not in heads]
    head = [parameter for parameter in decayed if id(parameter) in heads or parameter.dim() != 2]
    groups = [
        {"params": head, "weight_decay": settings.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    return Muon(
        matrices,
        [group for group in groups if group["params"]],
        lr=settings.lr,
        weight_decay=settings.weight_decay,
        betas=settings.betas,
    )


def _decayed_and_free(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        spared = parameter.dim() < 2 or id(parameter) in embeddings or "pos_embed" in name
        (free if spared else decayed).append(parameter)
    return decayed, free
