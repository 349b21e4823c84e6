"""Optimizers: AdamW, and Muon for the matrices of hidden layers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn

from tinytx.settings import TrainingSettings, choose_precision, require

MOMENTUM = 0.95
N_ITERATIONS = 5
# An odd polynomial: five iterations lift singular values from 0.002 to 1 to between 0.6 and 1.2.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ADAM_LENGTH = 0.2  # root mean square of a usual update of Adam, in units of the learning rate


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.AdamW:
    """AdamW or `Muon`, with weight decay on matrices, but not on embeddings, norms and biases.

    Parameters that need no gradient, those of a frozen body, are left out.
    """
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    matrices, decayed, free = (list[nn.Parameter]() for _ in range(3))  # the first for Muon
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        is_output = name.startswith("head.") or ".router." in name  # which scores experts
        if parameter.dim() < 2 or id(parameter) in embeddings or "pos_embed" in name:
            free.append(parameter)
        elif settings.optimizer == "muon" and parameter.dim() == 2 and not is_output:
            matrices.append(parameter)
        else:
            decayed.append(parameter)
    trained = bool(matrices or decayed or free)
    require(trained, "a model must have a parameter that needs a gradient to be trained", "all frozen")
    decay, betas = settings.weight_decay, settings.betas
    groups = [{"params": p, "weight_decay": wd} for p, wd in ((decayed, decay), (free, 0.0)) if p]
    if settings.optimizer == "muon":
        return Muon(matrices, groups, lr=settings.lr, weight_decay=decay, betas=betas)
    return torch.optim.AdamW(groups, lr=settings.lr, betas=betas, fused=True)


class Muon(torch.optim.AdamW):
    """Momentum, orthogonalised, for matrices; AdamW for everything else.

    Adam's updates follow the few directions in which gradients are large. Muon takes the running mean of the
    gradient of a matrix and brings its singular values near 1, so that rare directions are learned as fast as
    common ones.

    Parameters
    ----------
    matrices, others : iterable of Parameter, iterable of dict
        Matrices of hidden layers, and groups of all other parameters, as `torch.optim.AdamW` takes them.
    lr : float
        Of both: the update of a matrix is made as long as one of Adam usually is.
    weight_decay, betas : float, pair of float
        Of the matrices, and of AdamW.

    Notes
    -----
    `torch.optim.Muon` with ``adjust_lr_fn="match_rms_adamw"`` makes the same updates, but always multiplies
    in bfloat16. Where the processor has no instructions for it, training steps take three times as long.

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
    def step(self) -> None:  # type: ignore[override]
        """Make one update; the gradients of the matrices are cleared."""
        group = self.param_groups[0]
        matrices = [parameter for parameter in group["params"] if parameter.grad is not None]
        if matrices:  # all at once: a GPU waits longer for many small calls than for their work
            for parameter in matrices:
                if "momentum" not in self.state[parameter]:
                    self.state[parameter]["momentum"] = torch.zeros_like(parameter)
            momenta = [self.state[parameter]["momentum"] for parameter in matrices]
            gradients = [cast(Tensor, parameter.grad) for parameter in matrices]
            torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
            torch._foreach_lerp_(gradients, momenta, MOMENTUM)  # one step ahead (Nesterov)
            torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
        by_shape: dict[tuple[int, ...], list[Tensor]] = {}
        for parameter in matrices:
            by_shape.setdefault(tuple(parameter.shape), []).append(parameter)
        for shape, alike in by_shape.items():
            updates = orthogonalised(torch.stack([cast(Tensor, parameter.grad) for parameter in alike]))
            length = group["lr"] * ADAM_LENGTH * max(shape) ** 0.5
            torch._foreach_add_(alike, updates.unbind(), alpha=-length)
            for parameter in alike:
                parameter.grad = None  # AdamW passes over what has no gradient
        super().step()


def orthogonalised(matrices: Tensor) -> Tensor:
    r"""Matrices with the same singular vectors, and singular values near 1: about :math:`U V^T`.

    Newton-Schulz iteration :math:`X \leftarrow a X + b (X X^T) X + c (X X^T)^2 X` from ``X / |X|``, made of
    matrix products only.

    Matrices of shape (..., M, N) stay in their dtype; products are in bfloat16 where the hardware has it.
    """
    a, b, c = COEFFICIENTS
    fast = choose_precision("auto", matrices.device) == "bf16" and matrices.dtype == torch.float32
    x: Tensor = matrices.to(torch.bfloat16) if fast else matrices
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    if in_one := x.is_cuda and type(x) is Tensor and x.dim() == 3:  # a GPU adds within its products
        x = x.contiguous()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(N_ITERATIONS):
        square = x @ x.mT  # (..., M, M)
        if in_one:
            x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
        else:
            x = a * x + (b * square + c * square @ square) @ x
    return (x.mT if tall else x).to(matrices.dtype)
