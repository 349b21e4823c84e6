"""The depth explorer: what a norm, a residual connection and depth do to a signal and to its gradient."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
import traitlets
from torch import Tensor, nn

from tinytx.attention import MultiHeadAttention
from tinytx.config import TransformerConfig
from tinytx.transformer import FeedForward
from tinytx_course.widgets.base import Explorer

DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # the last is that of the stack
NORMS = ("none", "pre", "post")
_LARGEST = 1e300
_SETTINGS = TransformerConfig(vocab_size=1, d_model=32, n_heads=4, n_layers=DEPTHS[-1], d_ff=64)
_BATCH_SIZE, _SEQ_LEN = 2, 8


def step(x: Tensor, sublayer: Callable[[Tensor], Tensor], norm: str, residual: bool) -> Tensor:
    """One sublayer of a block: f(x), with or without ``x +``; a norm before f, after the sum, or none."""
    y = sublayer(F.layer_norm(x, x.shape[-1:]) if norm == "pre" else x)
    y = x + y if residual else y
    return F.layer_norm(y, y.shape[-1:]) if norm == "post" else y


@cache
def _stack() -> tuple[list[list[nn.Module]], Tensor, Tensor]:
    """64 blocks of two sublayers, Glorot's start; what goes in at the bottom, and the gradient at the top."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        blocks: list[list[nn.Module]] = [
            [MultiHeadAttention(d_model=_SETTINGS.d_model, n_heads=_SETTINGS.n_heads), FeedForward(_SETTINGS)]
            for _ in range(DEPTHS[-1])
        ]
        for sublayer in sum(blocks, []):
            sublayer.double().requires_grad_(False)
            for name, weight in sublayer.named_parameters():
                nn.init.zeros_(weight) if name.endswith("bias") else nn.init.xavier_uniform_(weight)
        x, sent = torch.randn(2, _BATCH_SIZE, _SEQ_LEN, _SETTINGS.d_model, dtype=torch.float64)
    return blocks, x, sent


def _size(x: Tensor) -> Tensor:
    """Root mean square over all but the first axis; what is squared is at most 1, so nothing overflows."""
    if not len(x):
        return x.new_empty(0)
    rows = x.flatten(1)
    top = rows.abs().amax(1, keepdim=True).clamp(min=1 / _LARGEST)
    return (rows / top).square().mean(1).sqrt() * top[:, 0]


def measure(norm: str, residual: bool) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Sizes and varieties at levels 0 to 64, and for each of `DEPTHS` gradient sizes from level 0 up.

    The variety is the size of what tells the tokens of a text apart, as a share of the size. The stack
    of L blocks is the first L of 64. All gradients pass through a block at once, a row for each depth.
    """
    blocks, x, sent = _stack()

    def run(x: Tensor, block: list[nn.Module]) -> Tensor:
        for sublayer in block:
            x = step(x, sublayer, norm, residual)
        return x

    levels = [x]
    for block in blocks:
        levels.append(run(levels[-1], block))
    seen = torch.stack(levels)
    sizes = _size(seen)
    varieties = _size(seen - seen.mean(dim=-2, keepdim=True)) / sizes
    gradients: dict[int, list[Tensor]] = {}
    arriving = torch.empty(0, *x.shape, dtype=x.dtype)
    for level in range(len(blocks), -1, -1):
        if level in DEPTHS:
            arriving, gradients = torch.cat([arriving, sent[None]]), gradients | {level: []}
        for row, size in zip(gradients.values(), _size(arriving), strict=True):
            row.insert(0, size)
        if level:
            copies = levels[level - 1].expand_as(arriving).flatten(0, 1).requires_grad_()
            out = run(copies, blocks[level - 1])
            (back,) = torch.autograd.grad(out, copies, arriving.flatten(0, 1))
            arriving = back.view_as(arriving)
    return sizes, varieties, [torch.stack(gradients[depth]) for depth in DEPTHS]


@cache
def _measured() -> dict[str, bytes]:
    """What is measured, as powers of ten, for each norm without and with residual connections."""
    measured = [measure(norm, residual) for norm in NORMS for residual in (False, True)]
    sizes, varieties, gradients = zip(*measured, strict=True)
    flat = [row for rows in gradients for row in rows]
    named = {"sizes": torch.cat(sizes), "varieties": torch.cat(varieties), "gradients": torch.cat(flat)}
    # What left the range of float64 counts as its end.
    kept = {name: rows.nan_to_num(torch.inf).clamp(1 / _LARGEST, _LARGEST) for name, rows in named.items()}
    return {name: rows.log10().float().numpy().tobytes() for name, rows in kept.items()}


class DepthExplorer(Explorer):
    """See `depth`. The buffers hold powers of ten: setting by setting, of gradients depth by depth.

    A norm is none, "pre" as in ``x + f(norm(x))``, or "post" as in ``norm(x + f(x))``; without `residual`
    there is no ``x +``. Learned scales are 1, shifts 0.
    """

    kind = "depth"
    title = traitlets.Unicode("Depth explorer").tag(sync=True)

    norm = traitlets.Enum(NORMS, "none").tag(sync=True)
    residual = traitlets.Bool(False).tag(sync=True)
    n_layers = traitlets.Enum(DEPTHS, 12).tag(sync=True)
    depths = traitlets.List(traitlets.Int(), list(DEPTHS)).tag(sync=True)
    sizes = traitlets.Bytes().tag(sync=True)
    varieties = traitlets.Bytes().tag(sync=True)
    gradients = traitlets.Bytes().tag(sync=True)

    def summary(self) -> str:
        """Return what is shown, and the setting."""
        return (
            "A signal on its way up through a stack of blocks, and a gradient on its way down: their sizes "
            f"at every level. {self.n_layers} layers, norm: {self.norm}, residual connections: "
            f"{'on' if self.residual else 'off'}."
        )


def depth() -> DepthExplorer:
    """See how norm, residual connections and depth decide what survives a stack of untrained blocks.

    Blocks of attention and feed-forward, 32 wide with 4 heads, start from Glorot's distribution with biases
    of zero, the same weights in every setting. Into them go 2 random texts of 8 tokens; into the top, a
    gradient drawn from a normal distribution. Sizes are root mean squares, in float64.

    References
    ----------
    .. [1] Xiong et al., arXiv 2002.04745, section 3, on pre-norm and post-norm.
    .. [2] Dong, Cordonnier and Loukas, arXiv 2103.03404, section 2, on tokens that become alike.

    Examples
    --------
    >>> depth().summary().split(". ")[1]
    '12 layers, norm: none, residual connections: off.'
    """
    return DepthExplorer(**_measured())
