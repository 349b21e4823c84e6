"""Speed that a reader need not see: results as by the formulas, up to rounding, sooner or in less memory.

What helps the cache of a processor is done on a CPU only. Each piece names the row of `results/` that pays
for it. Shape letters as in `tinytx.attention`; D model width, V vocabulary, N positions.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from importlib.util import find_spec
from shutil import which
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from tinytx.masks import causal_mask

FUSED = ("cpu", "cuda")  # devices for which torch has kernels that form no attention weights
# Keys up to which two products beat the fused kernel in bfloat16 on a CPU, forward and backward; with a bias,
# up to which its sum with the scores has digits enough.
SHORT, SHORT_WITH_BIAS = 1024, 256
# Queries of a causal text are taken in at most so many blocks, none shorter than that.
MOST_BLOCKS, SHORTEST_BLOCK = 4, 128
# With a mask and 64, 192, 320, ... keys, the backward pass of cuDNN gives NaN where all scores of a query lie
# below -88: in torch 2.11 to 2.13 on an H100 and H200, https://github.com/pytorch/pytorch/issues/196678.
ALL_BUT_CUDNN = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]

_triangle = lru_cache(maxsize=8)(partial(causal_mask, device="cpu"))  # whatever the default device


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None, dropout: float
) -> Tensor | None:
    """`tinytx.attention.attention` with weights dropped, of operands that fit; None where nothing beats it.

    A mask that is known to equal `causal_mask` is not read by the kernel, which then skips the scores above
    the diagonal: on a CPU it is compared, and on a GPU, which would wait for that, a model marks its own. In
    float64 a GPU has no kernel of this kind.
    Paid for by bench-steps.json, "small GPT, vocabulary 1,000, 2 x 1024".
    """
    device, seq_len, mem_len = q.device.type, q.shape[-2], k.shape[-2]
    if device not in FUSED or (device == "cuda" and q.dtype == torch.float64):
        return None
    short = SHORT if bias is None else SHORT_WITH_BIAS
    by_products = device == "cpu" and q.dtype == torch.bfloat16 and mem_len <= short
    if by_products and (bias is not None or seq_len <= SHORTEST_BLOCK):
        return _by_products(q, k, v, mask, bias, dropout)
    if bias is None and device == "cpu" and mask is not None and not torch.compiler.is_compiling():
        square = mask.shape == (seq_len, seq_len) == (mem_len, mem_len)
        is_causal = square and torch.equal(mask, _triangle(seq_len))
    else:
        is_causal = getattr(mask, "is_lower_triangle", False)
    if by_products:
        if mask is None or not is_causal:
            return _by_products(q, k, v, mask, bias, dropout)
        width, contexts = max(SHORTEST_BLOCK, -(-seq_len // MOST_BLOCKS)), []
        for start in range(0, seq_len, width):
            end = min(start + width, seq_len)  # no query of the block reads a key that comes after it
            rows, keys, values = q[..., start:end, :], k[..., :end, :], v[..., :end, :]
            contexts.append(_by_products(rows, keys, values, mask[start:end, :end], None, dropout))
        return torch.cat(contexts, dim=-2)
    if bias is None and (mask is None or is_causal):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=is_causal)
    blind = None
    if mask is not None:
        # What a query that may attend to no key gets depends on the kernel. Here it attends to everything,
        # and its context is set to zero afterwards: gradients are finite on every device.
        mask = mask[(None,) * (2 - mask.dim())]  # the kernels want an axis of queries
        blind = ~mask.any(dim=-1, keepdim=True)  # (..., T or 1, 1), True = no key is allowed
        mask = mask | blind
    if bias is not None:  # in the dtype of the queries and with all their axes, as the fast kernels ask
        bias = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
        mask = bias.to(q.dtype)[(None,) * (q.dim() - bias.dim())]
    gives_nan = device == "cuda" and mem_len % 128 == 64 and torch.is_grad_enabled()
    with sdpa_kernel(ALL_BUT_CUDNN) if gives_nan else contextlib.nullcontext():
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
    return context if blind is None else context.masked_fill(blind, 0.0)


def _by_products(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None, p: float
) -> Tensor:
    """Attention by two products, with scale, bias and mask applied in place or within the first.

    In bfloat16 on a CPU, where the backward pass of the fused kernel is slow.
    Paid for by bench-steps.json, "small GPT, vocabulary 1,000, 16 x 128".
    """
    scale, lowest = q.shape[-1] ** -0.5, torch.finfo(q.dtype).min
    alike = q.shape[:-2] == k.shape[:-2]
    if alike and bias is None and mask is not None and mask.shape == (q.shape[-2], k.shape[-2]):
        blocked = torch.zeros(mask.shape, dtype=q.dtype).masked_fill_(~mask, lowest)
        left, right = (x.reshape(-1, *x.shape[-2:]) for x in (q, k))  # (N, T, K), (N, S, K)
        attn_scores = torch.baddbmm(blocked, left, right.transpose(1, 2), alpha=scale)  # (N, T, S)
        attn_scores = attn_scores.view(*q.shape[:-1], -1)  # (..., T, S)
    else:
        attn_scores = (q * scale) @ k.transpose(-2, -1)  # (..., T, S)
        if bias is not None:
            attn_scores = attn_scores.add_(bias)
        if mask is not None:
            attn_scores = attn_scores.masked_fill_(~mask, lowest)
    attn_weights = attn_scores.softmax(dim=-1, dtype=attn_scores.dtype)  # also under autocast
    context = dropout(attn_weights, p) @ v  # (..., T, K)
    if mask is None or (sighted := mask.any(dim=-1, keepdim=True)).all():
        return context
    return context.masked_fill(~sighted, 0.0)


LEVELS = 256  # of a byte


def dropout(x: Tensor, p: float) -> Tensor:
    """Set each number to 0 with probability p, and scale the others so that the mean stays.

    On a CPU one random byte decides on each number, where torch draws a float.
    Paid for by bench-steps.json, "small GPT, vocabulary 1,000, 16 x 128, dropout 0.1".

    Parameters
    ----------
    x : Tensor of any shape
    p : float
        In [0, 1). On a CPU it is rounded to a multiple of 1/256, but not to 0 unless it is 0. The scale is
        that of the rounded one, so that the mean stays; in bfloat16 up to the scale's own rounding, 0.4 %.
    """
    if not 0 <= p < 1:
        raise ValueError(f"p must lie in [0, 1), got {p}")
    if p == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    n, level = x.numel(), min(max(round(p * LEVELS), 1), LEVELS - 1)
    words = torch.empty((n + 7) // 8, dtype=torch.int64).random_(-(2**63), None)  # 8 bytes a draw
    random_bytes = words.view(torch.uint8)[:n]
    passed = torch.ge(random_bytes, level, out=torch.empty_like(random_bytes)).view(x.shape)
    return x * passed.to(x.dtype).mul_(LEVELS / (LEVELS - level))


class Dropout(nn.Dropout):
    """`torch.nn.Dropout` by `dropout`."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop some of x in training."""
        return dropout(x, self.p) if self.training else x


NO_WAIT = {"cuda"}  # devices that take a tensor of the CPU while they compute, and Python goes on


def sent(x: Tensor, device: torch.device) -> Tensor:
    """A tensor on a device, without a wait for a GPU."""
    return x.to(device, non_blocking=device.type in NO_WAIT)


# Operations of a whole run from which compiling its blocks pays: about two minutes of one large card.
WORTH_COMPILING = 5e16


class Compiled:
    """While entered, the blocks of a model compute by kernels that `torch.compile` makes of them.

    In a run of many tokens on a GPU, where there is a compiler for it; elsewhere nothing happens, nor where
    the variable ``TORCH_COMPILE_DISABLE`` is 1. Each token takes six operations for a parameter.
    Paid for by gpu.json, "GPT-2, vocabulary 50,304, 32 x 1024".
    """

    def __init__(self, model: nn.Module, n_tokens: int) -> None:
        weights = list(model.parameters())
        pays = 6 * sum(weight.numel() for weight in weights) * n_tokens >= WORTH_COMPILING
        able = find_spec("triton") and any(map(which, (os.environ.get("CC", "cc"), "gcc", "clang")))
        blocks = [block for module in model.modules() for block in getattr(module, "blocks", ())]
        used = [block for block in blocks if not block._compiled_call_impl] if pays and able else []
        self.calls = [(block, torch.compile(block._call_impl)) for block in used]

    def __enter__(self) -> None:
        for block, call in self.calls:
            block._compiled_call_impl = call

    def __exit__(self, *_: object) -> None:
        for block, _call in self.calls:
            block._compiled_call_impl = None


def widened(logits: Tensor) -> Tensor:
    """Logits in float32, as a loss needs them, or in their own dtype if that is wider."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


IGNORE_ID = -100  # a target where nothing is to be predicted, as in the losses of torch
# Logits that exist at once: on a CPU few enough for its cache, elsewhere many enough to keep a GPU busy.
CHUNK, CHUNK_ELSEWHERE = 2**22, 2**28


def output_loss(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    *,
    bias: Tensor | None = None,
    ignore_id: int = IGNORE_ID,
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""Mean cross-entropy of the predictions of an output layer, whose logits never exist all at once.

    .. math:: -\sum_v q(v) \log p(v), \quad q(v) = (1 - s) [v = \text{target}] + s / V,
              \quad p = \text{softmax}(W h + b)
    Paid for by bench-steps.json, "small GPT, vocabulary 8,000, 16 x 128".

    Parameters
    ----------
    hidden, weight, bias : Tensor of shape (..., D), (V, D) and (V,)
        Hidden states, and the output layer.
    targets : Tensor of shape (...), integer
        Those that are `ignore_id` are left out of the mean: on the CPU, looking for them makes no GPU wait.
    label_smoothing : float
        s, in [0, 1]: the share of probability that is spread over the whole vocabulary.

    Returns
    -------
    Tensor of shape ()
        In nats a target, in float32, or in the dtype of the weight if that is wider; NaN if every target is
        ignored. Under autocast the products are made in its precision, but those of float16 in float32: sums
        over positions pass what it can hold.

    Raises
    ------
    TypeError, ValueError
        If `targets` are no integers or not one a hidden state, or `label_smoothing` lies outside [0, 1].

    Notes
    -----
    Equal to `torch.nn.functional.cross_entropy` on all logits, first derivatives included: they are computed
    in the forward pass, while the logits of a chunk are at hand. Second derivatives are refused:
    ``create_graph=True`` raises a RuntimeError.

    References
    ----------
    .. [1] Szegedy et al., arXiv 1512.00567, section 7 (label smoothing).
    """
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must lie in [0, 1], got {label_smoothing}")
    if targets.shape != hidden.shape[:-1]:
        raise ValueError(f"targets must have shape {tuple(hidden.shape[:-1])}, got {tuple(targets.shape)}")
    if targets.is_floating_point():
        raise TypeError(f"targets must be integers, got {targets.dtype}")
    hidden, targets = hidden.flatten(0, -2), targets.flatten().long()  # (N, D), (N,)
    chosen, ahead = (targets != ignore_id).nonzero()[:, 0], hidden.device.type in NO_WAIT
    if len(chosen) < len(targets):
        hidden, targets = hidden[chosen.to(hidden.device, non_blocking=ahead)], targets[chosen]
    targets = targets.to(hidden.device, non_blocking=ahead)
    loss: Tensor = _OutputLoss.apply(hidden, weight, bias, targets, label_smoothing)  # type: ignore[no-untyped-call]
    return loss


class _OutputLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
    ) -> Tensor:
        device = hidden.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        exact = torch.promote_types(weight.dtype, torch.float32)
        dtype = exact if dtype == torch.float16 else dtype
        states, matrix = hidden.detach().to(dtype), weight.detach().to(dtype)
        added = None if bias is None else bias.detach().to(dtype)
        grad_hidden, grad_weight = torch.empty_like(states), torch.zeros_like(weight, dtype=exact)
        grad_bias = None if bias is None else torch.zeros_like(bias, dtype=exact)
        total = torch.zeros((), device=hidden.device, dtype=exact)
        at_once = max(1, (CHUNK if device == "cpu" else CHUNK_ELSEWHERE) // len(weight))
        with torch.autocast(device, enabled=False):
            for start in range(0, len(hidden), at_once):
                chunk = slice(start, start + at_once)
                logits, wanted = F.linear(states[chunk], matrix, added).to(exact), targets[chunk, None]
                # The log-sum-exp follows from the largest logit and its probability, which is at least 1 / V:
                # one pass of exponentials serves both. What follows is written over the logits, (C, V).
                top, spread = logits.amax(dim=1), smoothing / len(weight)  # (C,)
                expected = logits.gather(1, wanted).sum() * (1 - smoothing)
                if smoothing:
                    expected = expected + logits.sum() * spread
                probs = torch.softmax(logits, dim=1, out=logits)
                total += (top - probs.amax(dim=1).log()).sum() - expected
                error = probs.sub_(spread) if smoothing else probs  # p - q, once the targets are taken off
                error.scatter_add_(1, wanted, error.new_full((), smoothing - 1).expand_as(wanted))
                if grad_bias is not None:
                    grad_bias += error.sum(dim=0)
                error = error.to(dtype)
                grad_hidden[chunk] = error @ matrix
                grad_weight += error.T @ states[chunk]
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        ctx.n_rows, ctx.dtypes = len(hidden), (hidden.dtype, weight.dtype)
        return total / len(hidden)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError("output_loss must be differentiated once only, got create_graph=True")
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        scale, (dtype, weight_dtype) = grads[0] / ctx.n_rows, ctx.dtypes
        scaled_bias = None if grad_bias is None else (grad_bias * scale).to(weight_dtype)
        scaled_hidden = (grad_hidden.to(scale.dtype) * scale).to(dtype)
        return scaled_hidden, (grad_weight * scale).to(weight_dtype), scaled_bias, None, None


@contextlib.contextmanager
def laid_out(model: nn.Module, n_rows: int) -> Iterator[None]:
    """Let linear layers multiply by copies of their matrices that suit so many rows, while this lasts.

    torch stores a matrix as (O, I). One row is multiplied fastest where the longer side is contiguous in
    memory; for several, oneDNN reorders the matrix at each call, which takes as long as the product, and here
    once. Other numbers of rows give the same results. On a CPU, in float32, without gradients; the modules
    and their hooks run as always.
    Paid for by bench-generation.json, "greedy, 256 tokens, vocabulary 8,000, batch 32".
    """
    laid: list[nn.Linear] = []
    try:
        for layer in model.modules():
            own = "forward" in vars(layer) or type(layer).forward is not nn.Linear.forward
            if isinstance(layer, nn.Linear) and not own and (product := _product(layer, n_rows)) is not None:
                layer.forward = product  # type: ignore[assignment,method-assign]
                laid.append(layer)
        yield
    finally:
        for layer in laid:
            del layer.forward


_ONEDNN = torch.backends.mkldnn.is_available() and all(  # type: ignore[no-untyped-call]
    hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise")
)


@torch.no_grad()
def _product(layer: nn.Linear, n_rows: int) -> Callable[[Tensor], Tensor] | None:
    """What a layer computes, by a copy of its matrix; None where that is no faster."""
    weight, bias = layer.weight.detach(), None if layer.bias is None else layer.bias.detach()
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or torch.is_autocast_enabled("cpu"):
        return None
    if n_rows > 1 and _ONEDNN:  # the operators that `torch.compile` uses for frozen weights
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, max(n_rows, 8))
        return lambda x: torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    if n_rows > 1 or weight.shape[0] <= weight.shape[1]:
        return None
    columns = weight.t().contiguous()  # (I, O)
    return lambda x: x @ columns if bias is None else x @ columns + bias


TRIM_EVERY = 50  # steps
RETAINED = 2**30  # bytes: larger blocks, and free memory beyond it, are given back at once
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # parameters of mallopt, see its manual page
# oneDNN, which multiplies matrices in torch, caches a kernel for each of 1,024 shapes, a few MB each; batches
# by length have hundreds of shapes. It reads this where it first multiplies.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
LIBC: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
HAS_GLIBC = hasattr(LIBC, "malloc_trim") and hasattr(LIBC, "mallopt")


def retain_memory() -> None:
    """Let the process reuse the memory that it frees, until `trim_memory` gives it back to the system.

    By default glibc gives large blocks back at once: the next step to touch a page clears it anew.
    Paid for by bench-reviews.json, "cls-books, 256 reviews, up to 512 ids".
    """
    if HAS_GLIBC:
        for parameter in (MMAP_THRESHOLD, TRIM_THRESHOLD):
            LIBC.mallopt(parameter, RETAINED)


def trim_memory() -> None:
    """Give free memory back to the system, gaps in the heap included that no later block fits.
    Paid for by bench-reviews.json, "cls-books, 256 reviews, up to 512 ids".
    """
    if HAS_GLIBC:
        LIBC.malloc_trim(0)
