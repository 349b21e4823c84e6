"""Solutions for layer_norm, parallel_block, feed_forward and block."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("layer_norm")


@right
def norm_plain(x, gamma, beta, eps):
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return gamma * (x - mean) / torch.sqrt(variance + eps) + beta


@right
def norm_var_mean(x, gamma, beta, eps):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + eps) * gamma + beta


@right
def norm_loops(x, gamma, beta, eps):
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            token = x[b, t].tolist()
            mean = sum(token) / len(token)
            variance = sum((v - mean) ** 2 for v in token) / len(token)
            for d, v in enumerate(token):
                out[b, t, d] = gamma[d] * (v - mean) / math.sqrt(variance + eps) + beta[d]
    return out


@right
def norm_mean_of_squares(x, gamma, beta, eps):
    x64 = x.double()
    mean = x64.mean(-1, keepdim=True)
    variance = (x64**2).mean(-1, keepdim=True) - mean**2
    return ((x64 - mean) / (variance + eps).sqrt() * gamma + beta).float()


@right
def norm_numpy(x, gamma, beta, eps):
    a = x.numpy()
    normed = (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + eps)
    return torch.from_numpy(normed * gamma.numpy() + beta.numpy())


@right
def norm_transposed(x, gamma, beta, eps):
    y = x.movedim(-1, 0)
    y = (y - y.mean(0)) / (y.var(0, unbiased=False) + eps).sqrt()
    return y.movedim(0, -1) * gamma + beta


@wrong("unbiased-variance+eps-outside-root")
def norm_annotated(x, gamma, beta, eps):
    mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
    return gamma * (x - mean) / (std + eps) + beta


wrong("error", norm_plain, {"mean = x.mean(dim=-1, keepdim=True)": "mean = x.mean(dim=-1)"})
wrong("input-modified", norm_transposed, {"y = (y - y.mean(0))": "y -= y.mean(0)\n    y = y"})
wrong("nothing-returned", norm_plain, {"return gamma": "gamma"})
wrong("calls-the-answer", lambda x, gamma, beta, eps: F.layer_norm(x, x.shape[-1:], gamma, beta, eps))
wrong("calls-the-answer", lambda x, gamma, beta, eps: torch.layer_norm(x, x.shape[-1:], gamma, beta, eps))
wrong(
    "variance-along-another-axis",
    lambda x, gamma, beta, eps: (
        gamma * (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(1, keepdim=True, unbiased=False) + eps)
        + beta
    ),
)


right, wrong = of("parallel_block")


@right
def parallel_in_place_results(x, attn, ff, norm):
    y = norm(x)
    h = attn(y)
    h += ff(y)
    h += x
    return h


@right
def parallel_loop(x, attn, ff, norm):
    y, total = norm(x), x.clone()
    for sublayer in (attn, ff):
        total += sublayer(y)
    return total


@right
def parallel_stack(x, attn, ff, norm):
    return torch.stack([x, attn(norm(x)), ff(norm(x))]).sum(dim=0)


@right
def parallel_text_by_text(x, attn, ff, norm):
    return torch.cat([text + attn(norm(text)) + ff(norm(text)) for text in x.split(1)])


@right
def parallel_differences(x, attn, ff, norm):
    after_attention, after_ff = x + attn(norm(x)), x + ff(norm(x))
    return after_attention + after_ff - x


wrong("input-modified", parallel_loop, {"x.clone()": "x"})
wrong("nothing-returned", parallel_stack, {"return torch": "torch"})
wrong("too-many-results", lambda x, attn, ff, norm: (x + attn(norm(x)), x + ff(norm(x))))


right, wrong = of("feed_forward")


@right
def ff_linear(x, w_up, b_up, w_down, b_down):
    hidden = F.relu(F.linear(x, w_up.T, b_up))
    return F.linear(hidden, w_down.T, b_down)


@right
def ff_by_token(x, w_up, b_up, w_down, b_down):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            hidden = torch.clamp(x[b, t] @ w_up + b_up, min=0)
            out[b, t] = hidden @ w_down + b_down
    return out


@right
def ff_einsum(x, w_up, b_up, w_down, b_down):
    hidden = torch.einsum("btd,df->btf", x, w_up) + b_up
    return torch.einsum("btf,fd->btd", hidden * (hidden > 0), w_down) + b_down


@right
def ff_in_place_hidden(x, w_up, b_up, w_down, b_down):
    hidden = x @ w_up
    hidden += b_up
    hidden[hidden < 0] = 0
    return torch.matmul(hidden, w_down).add_(b_down)


@right
def ff_numpy(x, w_up, b_up, w_down, b_down):
    hidden = np.maximum(x.numpy() @ w_up.numpy() + b_up.numpy(), 0)
    return torch.from_numpy(hidden @ w_down.numpy() + b_down.numpy())


@wrong("input-modified")
def ff_bias_in_place(x, w_up, b_up, w_down, b_down):
    hidden = (x @ w_up + b_up).relu()
    b_down += hidden.sum() * 0 + 1
    return hidden @ w_down + b_down - 1


right(lambda x, w_up, b_up, w_down, b_down: (x @ w_up + b_up).relu() @ w_down + b_down)
wrong(
    "error", lambda x, w_up, b_up, w_down, b_down: F.linear(F.relu(F.linear(x, w_up, b_up)), w_down, b_down)
)
wrong("error", lambda x, w_up, b_up, w_down, b_down: max(0, x @ w_up + b_up) @ w_down + b_down)
wrong("no-activation+biases-missing", lambda x, w_up, b_up, w_down, b_down: x @ w_up @ w_down)


right, wrong = of("block")


@right
def block_if(x, attn, ff, attn_norm, ff_norm, norm_first):
    if norm_first:
        x = x + attn(attn_norm(x))
        return x + ff(ff_norm(x))
    x = attn_norm(x + attn(x))
    return ff_norm(x + ff(x))


@right
def block_writes_into_what_a_sublayer_returned(x, attn, ff, attn_norm, ff_norm, norm_first):
    if norm_first:
        h = attn(attn_norm(x))
        h += x
        y = ff(ff_norm(h))
        y += h
        return y
    h = attn(x)
    h += x
    h = attn_norm(h)
    y = ff(h)
    y += h
    return ff_norm(y)


@right
def block_loop(x, attn, ff, attn_norm, ff_norm, norm_first):
    for sublayer, norm in ((attn, attn_norm), (ff, ff_norm)):
        x = x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x))
    return x


@right
def block_method(x, attn, ff, attn_norm, ff_norm, norm_first):
    def add(x, norm, sublayer):
        if norm_first:
            return x + sublayer(norm(x))
        return norm(x + sublayer(x))

    return add(add(x, attn_norm, attn), ff_norm, ff)


@right
def block_stream(x, attn, ff, attn_norm, ff_norm, norm_first):
    stream = x.clone()
    stream += attn(attn_norm(stream) if norm_first else stream)
    if not norm_first:
        stream = attn_norm(stream)
    residual = stream
    stream = ff_norm(stream) if norm_first else stream
    stream = residual + ff(stream)
    return stream if norm_first else ff_norm(stream)


@right
def block_identity(x, attn, ff, attn_norm, ff_norm, norm_first):
    same = nn.Identity()
    before, after = (
        ((attn_norm, ff_norm), (same, same)) if norm_first else ((same, same), (attn_norm, ff_norm))
    )
    h = after[0](torch.add(x, attn(before[0](x))))
    return after[1](torch.add(h, ff(before[1](h))))


wrong("input-modified", block_stream, {"x.clone()": "x"})
wrong("nothing-returned", block_loop, {"return x": "x"})


@wrong("feed-forward-of-attention")
def block_feed_forward_of_attention(x, attn, ff, attn_norm, ff_norm, norm_first):
    if norm_first:
        return x + ff(attn(attn_norm(x)))
    return ff_norm(x + ff(attn(x)))


wrong("feed-forward-reads-old-norm", block_if, {"(attn_norm(x))": "(h := attn_norm(x))", "ff_norm(x))": "h)"})
wrong(
    "residuals-missing-in-one-order",
    block_if,
    {"x + attn(attn_norm(x))": "attn(attn_norm(x))", "x + ff(ff_norm(x))": "ff(ff_norm(x))"},
)
wrong(
    "residual-from-input",
    block_if,
    {"x = attn_norm(x": "h = attn_norm(x", "ff_norm(x + ff(x))": "ff_norm(x + ff(h))"},
)
