"""Solutions for layer_norm, feed_forward and block."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.solutions.collection import right, wrong

# mypy: ignore-errors


@right("layer_norm")
def norm_plain(x, gamma, beta, eps):
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return gamma * (x - mean) / torch.sqrt(variance + eps) + beta


@wrong("layer_norm", "calls-the-answer")
def norm_torch(x, gamma, beta, eps):
    return F.layer_norm(x, x.shape[-1:], gamma, beta, eps)


@right("layer_norm")
def norm_var_mean(x, gamma, beta, eps):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + eps) * gamma + beta


@right("layer_norm")
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


@right("layer_norm")
def norm_mean_of_squares(x, gamma, beta, eps):
    x64 = x.double()
    mean = x64.mean(-1, keepdim=True)
    variance = (x64**2).mean(-1, keepdim=True) - mean**2
    return ((x64 - mean) / (variance + eps).sqrt() * gamma + beta).float()


@right("layer_norm")
def norm_numpy(x, gamma, beta, eps):
    a = x.numpy()
    normed = (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + eps)
    return torch.from_numpy(normed * gamma.numpy() + beta.numpy())


@right("layer_norm")
def norm_transposed(x, gamma, beta, eps):
    y = x.movedim(-1, 0)
    y = (y - y.mean(0)) / (y.var(0, unbiased=False) + eps).sqrt()
    return y.movedim(0, -1) * gamma + beta


@wrong("layer_norm", "unbiased-variance")
def norm_unbiased(x, gamma, beta, eps):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
    return gamma * (x - mean) / torch.sqrt(variance + eps) + beta


@wrong("layer_norm", "unbiased-variance+eps-outside-root")
def norm_annotated(x, gamma, beta, eps):
    mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
    return gamma * (x - mean) / (std + eps) + beta


@wrong("layer_norm", "eps-outside-root")
def norm_std_plus_eps(x, gamma, beta, eps):
    std = x.std(-1, keepdim=True, correction=0)
    return gamma * (x - x.mean(-1, keepdim=True)) / (std + eps) + beta


@wrong("layer_norm", "eps-missing")
def norm_no_eps(x, gamma, beta, eps):
    centred = x - x.mean(-1, keepdim=True)
    return gamma * centred / centred.square().mean(-1, keepdim=True).sqrt() + beta


@wrong("layer_norm", "over-tokens")
def norm_over_tokens(x, gamma, beta, eps):
    centred = x - x.mean(dim=1, keepdim=True)
    return gamma * centred / ((centred**2).mean(dim=1, keepdim=True) + eps).sqrt() + beta


@wrong("layer_norm", "over-batch")
def norm_over_batch(x, gamma, beta, eps):
    variance, mean = torch.var_mean(x, dim=0, correction=0)
    return (x - mean) / torch.sqrt(variance + eps) * gamma + beta


@wrong("layer_norm", "over-everything")
def norm_whole_tensor(x, gamma, beta, eps):
    return (x - x.mean()) / torch.sqrt(x.var(correction=0) + eps) * gamma + beta


@wrong("layer_norm", "over-tokens-and-features")
def norm_whole_text(x, gamma, beta, eps):
    return F.layer_norm(x, x.shape[1:], None, None, eps) * gamma + beta


@wrong("layer_norm", "no-root")
def norm_by_variance(x, gamma, beta, eps):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    return (x - mean) / (variance + eps) * gamma + beta


@wrong("layer_norm", "not-centred")
def norm_rms(x, gamma, beta, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * gamma + beta


@wrong("layer_norm", "not-divided")
def norm_centred_only(x, gamma, beta, eps):
    return (x - x.mean(-1, keepdim=True)) * gamma + beta


@wrong("layer_norm", "gamma-missing")
def norm_no_gamma(x, gamma, beta, eps):
    return F.layer_norm(x, (x.size(-1),), eps=eps) + beta


@wrong("layer_norm", "beta-missing")
def norm_no_beta(x, gamma, beta, eps):
    return F.layer_norm(x, (x.size(-1),), weight=gamma, eps=eps)


@wrong("layer_norm", "gamma-and-beta-exchanged")
def norm_exchanged(x, gamma, beta, eps):
    return F.layer_norm(x, (x.size(-1),), beta, gamma, eps)


@wrong("layer_norm", "beta-before-gamma")
def norm_bracket(x, gamma, beta, eps):
    return gamma * (F.layer_norm(x, x.shape[-1:], eps=eps) + beta)


@wrong("layer_norm", "second-moment-not-centred")
def norm_uncentred_variance(x, gamma, beta, eps):
    mean, square = x.mean(-1, keepdim=True), (x * x).mean(-1, keepdim=True)
    return gamma * (x - mean) / (square + eps).sqrt() + beta


@wrong("layer_norm", "unit-length")
def norm_length(x, gamma, beta, eps):
    centred = x - x.mean(-1, keepdim=True)
    return gamma * centred / torch.sqrt((centred**2).sum(-1, keepdim=True) + eps) + beta


@wrong("layer_norm", "error")
def norm_no_keepdim(x, gamma, beta, eps):
    return gamma * (x - x.mean(-1)) / (x.var(-1, correction=0) + eps).sqrt() + beta


@wrong("layer_norm", "input-modified")
def norm_in_place(x, gamma, beta, eps):
    x -= x.mean(-1, keepdim=True)
    return gamma * x / ((x * x).mean(-1, keepdim=True) + eps).sqrt() + beta


@wrong("layer_norm", "nothing-returned")
def norm_returns_nothing(x, gamma, beta, eps):
    out = F.layer_norm(x, x.shape[-1:], gamma, beta, eps)  # noqa: F841


@right("feed_forward")
def ff_plain(x, w_up, b_up, w_down, b_down):
    return (x @ w_up + b_up).relu() @ w_down + b_down


@right("feed_forward")
def ff_linear(x, w_up, b_up, w_down, b_down):
    hidden = F.relu(F.linear(x, w_up.T, b_up))
    return F.linear(hidden, w_down.T, b_down)


@right("feed_forward")
def ff_by_token(x, w_up, b_up, w_down, b_down):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            hidden = torch.clamp(x[b, t] @ w_up + b_up, min=0)
            out[b, t] = hidden @ w_down + b_down
    return out


@right("feed_forward")
def ff_einsum(x, w_up, b_up, w_down, b_down):
    hidden = torch.einsum("btd,df->btf", x, w_up) + b_up
    return torch.einsum("btf,fd->btd", hidden * (hidden > 0), w_down) + b_down


@right("feed_forward")
def ff_in_place_hidden(x, w_up, b_up, w_down, b_down):
    hidden = x @ w_up
    hidden += b_up
    hidden[hidden < 0] = 0
    return torch.matmul(hidden, w_down).add_(b_down)


@right("feed_forward")
def ff_numpy(x, w_up, b_up, w_down, b_down):
    hidden = np.maximum(x.numpy() @ w_up.numpy() + b_up.numpy(), 0)
    return torch.from_numpy(hidden @ w_down.numpy() + b_down.numpy())


@wrong("feed_forward", "no-activation")
def ff_linear_only(x, w_up, b_up, w_down, b_down):
    return (x @ w_up + b_up) @ w_down + b_down


@wrong("feed_forward", "no-activation")
def ff_relu_not_taken(x, w_up, b_up, w_down, b_down):
    hidden = x @ w_up + b_up
    hidden.relu()
    return hidden @ w_down + b_down


@wrong("feed_forward", "activation-at-the-end")
def ff_late_relu(x, w_up, b_up, w_down, b_down):
    return F.relu((x @ w_up + b_up) @ w_down + b_down)


@wrong("feed_forward", "activation-twice")
def ff_two_relus(x, w_up, b_up, w_down, b_down):
    for w, b in ((w_up, b_up), (w_down, b_down)):
        x = F.relu(x @ w + b)
    return x


@wrong("feed_forward", "activation-on-input")
def ff_early_relu(x, w_up, b_up, w_down, b_down):
    return (x.clamp(min=0) @ w_up + b_up) @ w_down + b_down


@wrong("feed_forward", "gelu")
def ff_gelu(x, w_up, b_up, w_down, b_down):
    return F.gelu(x @ w_up + b_up) @ w_down + b_down


@wrong("feed_forward", "silu")
def ff_silu(x, w_up, b_up, w_down, b_down):
    hidden = x @ w_up + b_up
    return (hidden * hidden.sigmoid()) @ w_down + b_down


@wrong("feed_forward", "tanh")
def ff_tanh(x, w_up, b_up, w_down, b_down):
    return torch.tanh(x @ w_up + b_up) @ w_down + b_down


@wrong("feed_forward", "absolute")
def ff_abs(x, w_up, b_up, w_down, b_down):
    return abs(x @ w_up + b_up) @ w_down + b_down


@wrong("feed_forward", "minimum")
def ff_min(x, w_up, b_up, w_down, b_down):
    return torch.clamp(x @ w_up + b_up, max=0) @ w_down + b_down


@wrong("feed_forward", "b-up-missing")
def ff_no_b_up(x, w_up, b_up, w_down, b_down):
    return (x @ w_up).relu() @ w_down + b_down


@wrong("feed_forward", "b-up-after-activation")
def ff_b_up_late(x, w_up, b_up, w_down, b_down):
    return ((x @ w_up).relu() + b_up) @ w_down + b_down


@wrong("feed_forward", "b-down-missing")
def ff_no_b_down(x, w_up, b_up, w_down, b_down):
    return F.relu(x @ w_up + b_up) @ w_down


@wrong("feed_forward", "biases-missing")
def ff_no_biases(x, w_up, b_up, w_down, b_down):
    return F.relu(x @ w_up) @ w_down


@wrong("feed_forward", "residual-added")
def ff_residual(x, w_up, b_up, w_down, b_down):
    return x + F.relu(x @ w_up + b_up) @ w_down + b_down


@wrong("feed_forward", "only-up")
def ff_hidden_only(x, w_up, b_up, w_down, b_down):
    return F.relu(x @ w_up + b_up)


@wrong("feed_forward", "error")
def ff_as_linear_stores(x, w_up, b_up, w_down, b_down):
    return F.linear(F.relu(F.linear(x, w_up, b_up)), w_down, b_down)


@wrong("feed_forward", "error")
def ff_python_max(x, w_up, b_up, w_down, b_down):
    return max(0, x @ w_up + b_up) @ w_down + b_down


@wrong("feed_forward", "input-modified")
def ff_bias_in_place(x, w_up, b_up, w_down, b_down):
    hidden = (x @ w_up + b_up).relu()
    b_down += hidden.sum() * 0 + 1
    return hidden @ w_down + b_down - 1


@right("block")
def block_if(x, attn, ff, attn_norm, ff_norm, norm_first):
    if norm_first:
        x = x + attn(attn_norm(x))
        return x + ff(ff_norm(x))
    x = attn_norm(x + attn(x))
    return ff_norm(x + ff(x))


@right("block")
def block_loop(x, attn, ff, attn_norm, ff_norm, norm_first):
    for sublayer, norm in ((attn, attn_norm), (ff, ff_norm)):
        x = x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x))
    return x


@right("block")
def block_method(x, attn, ff, attn_norm, ff_norm, norm_first):
    def add(x, norm, sublayer):
        if norm_first:
            return x + sublayer(norm(x))
        return norm(x + sublayer(x))

    return add(add(x, attn_norm, attn), ff_norm, ff)


@right("block")
def block_stream(x, attn, ff, attn_norm, ff_norm, norm_first):
    stream = x.clone()
    stream += attn(attn_norm(stream) if norm_first else stream)
    if not norm_first:
        stream = attn_norm(stream)
    residual = stream
    stream = ff_norm(stream) if norm_first else stream
    stream = residual + ff(stream)
    return stream if norm_first else ff_norm(stream)


@right("block")
def block_identity(x, attn, ff, attn_norm, ff_norm, norm_first):
    same = nn.Identity()
    before, after = (
        ((attn_norm, ff_norm), (same, same)) if norm_first else ((same, same), (attn_norm, ff_norm))
    )
    h = after[0](torch.add(x, attn(before[0](x))))
    return after[1](torch.add(h, ff(before[1](h))))


@wrong("block", "always-pre-norm")
def block_pre_only(x, attn, ff, attn_norm, ff_norm, norm_first):
    x = x + attn(attn_norm(x))
    return x + ff(ff_norm(x))


@wrong("block", "always-post-norm")
def block_paper_only(x, attn, ff, attn_norm, ff_norm, norm_first):
    x = attn_norm(x + attn(x))
    return ff_norm(x + ff(x))


@wrong("block", "orders-exchanged")
def block_exchanged(x, attn, ff, attn_norm, ff_norm, norm_first):
    return block_if(x, attn, ff, attn_norm, ff_norm, not norm_first)


@wrong("block", "residual-missing")
def block_no_residual(x, attn, ff, attn_norm, ff_norm, norm_first):
    if norm_first:
        return ff(ff_norm(attn(attn_norm(x))))
    return ff_norm(ff(attn_norm(attn(x))))


@wrong("block", "residual-missing-at-attention")
def block_replaces(x, attn, ff, attn_norm, ff_norm, norm_first):
    if norm_first:
        x = attn(attn_norm(x))
        return x + ff(ff_norm(x))
    x = attn_norm(attn(x))
    return ff_norm(x + ff(x))


@wrong("block", "residual-missing-at-feed-forward")
def block_ends_in_ff(x, attn, ff, attn_norm, ff_norm, norm_first):
    if norm_first:
        x = x + attn(attn_norm(x))
        return ff(ff_norm(x))
    x = attn_norm(x + attn(x))
    return ff_norm(ff(x))


@wrong("block", "residual-from-norm")
def block_overwrites_x(x, attn, ff, attn_norm, ff_norm, norm_first):
    if norm_first:
        x = attn_norm(x)
        x = x + attn(x)
        x = ff_norm(x)
        return x + ff(x)
    x = attn_norm(x + attn(x))
    return ff_norm(x + ff(x))


@wrong("block", "residual-from-input")
def block_one_stream_start(x, attn, ff, attn_norm, ff_norm, norm_first):
    if norm_first:
        h = x + attn(attn_norm(x))
        return x + ff(ff_norm(h))
    h = attn_norm(x + attn(x))
    return ff_norm(x + ff(h))


@wrong("block", "norm-on-sublayer-output")
def block_norm_inside(x, attn, ff, attn_norm, ff_norm, norm_first):
    x = x + attn_norm(attn(x))
    return x + ff_norm(ff(x))


@wrong("block", "ff-norm-missing")
def block_one_norm(x, attn, ff, attn_norm, ff_norm, norm_first):
    if norm_first:
        x = x + attn(attn_norm(x))
        return x + ff(x)
    x = attn_norm(x + attn(x))
    return x + ff(x)


@wrong("block", "attn-norm-missing")
def block_only_ff_norm(x, attn, ff, attn_norm, ff_norm, norm_first):
    x = x + attn(x)
    return x + ff(ff_norm(x)) if norm_first else ff_norm(x + ff(x))


@wrong("block", "norms-missing")
def block_no_norm(x, attn, ff, attn_norm, ff_norm, norm_first):
    x = x + attn(x)
    return x + ff(x)


@wrong("block", "attn-norm-twice")
def block_shared_norm(x, attn, ff, attn_norm, ff_norm, norm_first):
    for sublayer in (attn, ff):
        x = x + sublayer(attn_norm(x)) if norm_first else attn_norm(x + sublayer(x))
    return x


@wrong("block", "norms-exchanged")
def block_wrong_norms(x, attn, ff, attn_norm, ff_norm, norm_first):
    return block_loop(x, attn, ff, ff_norm, attn_norm, norm_first)


@wrong("block", "sublayers-exchanged")
def block_ff_first(x, attn, ff, attn_norm, ff_norm, norm_first):
    for sublayer, norm in ((ff, ff_norm), (attn, attn_norm)):
        x = x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x))
    return x


@wrong("block", "norm-at-the-end")
def block_final_norm(x, attn, ff, attn_norm, ff_norm, norm_first):
    if norm_first:
        x = x + attn(attn_norm(x))
        x = x + ff(ff_norm(x))
    else:
        x = attn_norm(x + attn(x))
        x = x + ff(x)
    return ff_norm(x)


@wrong("block", "parallel")
def block_parallel(x, attn, ff, attn_norm, ff_norm, norm_first):
    if norm_first:
        return x + attn(attn_norm(x)) + ff(ff_norm(x))
    return attn_norm(x + attn(x)) + ff_norm(x + ff(x)) - x


@wrong("block", "feed-forward-missing")
def block_only_attention(x, attn, ff, attn_norm, ff_norm, norm_first):
    return x + attn(attn_norm(x)) if norm_first else attn_norm(x + attn(x))


@wrong("block", "both-norms")
def block_sandwich(x, attn, ff, attn_norm, ff_norm, norm_first):
    x = attn_norm(x + attn(attn_norm(x)))
    return ff_norm(x + ff(ff_norm(x)))


@wrong("block", "input-modified")
def block_in_place(x, attn, ff, attn_norm, ff_norm, norm_first):
    if norm_first:
        x += attn(attn_norm(x))
        return x + ff(ff_norm(x))
    x += attn(x)
    x = attn_norm(x)
    return ff_norm(x + ff(x))


@wrong("block", "nothing-returned")
def block_forgets_return(x, attn, ff, attn_norm, ff_norm, norm_first):
    x = x + attn(attn_norm(x)) if norm_first else attn_norm(x + attn(x))
    x = x + ff(ff_norm(x)) if norm_first else ff_norm(x + ff(x))
