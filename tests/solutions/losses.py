"""Solutions for shift_targets, language_model_loss and perplexity."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.solutions.collection import right, wrong

# mypy: ignore-errors


@right("shift_targets")
def shift_slices(token_ids):
    return token_ids[:, :-1], token_ids[:, 1:]


@right("shift_targets")
def shift_narrow(token_ids):
    n = token_ids.shape[-1] - 1
    return [token_ids.narrow(-1, 0, n).contiguous(), token_ids.narrow(-1, 1, n).clone()]


@right("shift_targets")
def shift_loops(token_ids):
    inputs = torch.stack([row[:-1] for row in token_ids])
    targets = torch.tensor([[int(row[t + 1]) for t in range(len(row) - 1)] for row in token_ids])
    return inputs, targets


@right("shift_targets")
def shift_roll_and_cut(token_ids):
    return token_ids[:, :-1].int(), torch.roll(token_ids, -1, dims=1)[:, :-1]


@right("shift_targets")
def shift_unfold(token_ids):
    pairs = token_ids.unfold(1, 2, 1)
    return pairs[..., 0], pairs[..., 1]


@wrong("shift_targets", "exchanged")
def shift_swapped(token_ids):
    return token_ids[:, 1:], token_ids[:, :-1]


@wrong("shift_targets", "not-shifted")
def shift_same(token_ids):
    return token_ids, token_ids.clone()


@wrong("shift_targets", "rolled")
def shift_rolled(token_ids):
    return token_ids, torch.roll(token_ids, shifts=-1, dims=1)


@wrong("shift_targets", "shifted-by-two")
def shift_two(token_ids):
    return token_ids[:, :-2], token_ids[:, 2:]


@wrong("shift_targets", "inputs-not-cut")
def shift_uncut(token_ids):
    return token_ids, token_ids[:, 1:]


@wrong("shift_targets", "batch-shifted")
def shift_rows(token_ids):
    return token_ids[:-1], token_ids[1:]


@wrong("shift_targets", "filled-up")
def shift_filled(token_ids):
    targets = torch.zeros_like(token_ids)
    targets[:, :-1] = token_ids[:, 1:]
    return token_ids, targets


@wrong("shift_targets", "only-last-target")
def shift_last(token_ids):
    return token_ids[:, :-1], token_ids[:, -1]


@wrong("shift_targets", "wrong-type")
def shift_one_thing(token_ids):
    return token_ids[:, 1:]


@wrong("shift_targets", "rolled-over-rows")
def shift_flat_roll(token_ids):
    return token_ids, torch.roll(token_ids, -1)


@right("language_model_loss")
def loss_library(logits, targets, pad_id):
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id)


@right("language_model_loss")
def loss_gather(logits, targets, pad_id):
    log_probs = F.log_softmax(logits, dim=-1)
    picked = log_probs.gather(2, targets.unsqueeze(2)).squeeze(2)
    real = targets != pad_id
    return -(picked * real).sum() / real.sum()


@right("language_model_loss")
def loss_loop(logits, targets, pad_id):
    total, n = 0.0, 0
    for row, ids in zip(logits, targets, strict=True):
        for scores, target in zip(row, ids, strict=True):
            if target != pad_id:
                total += math.log(sum(math.exp(s) for s in scores.tolist())) - scores[target].item()
                n += 1
    return total / n


@right("language_model_loss")
def loss_selected(logits, targets, pad_id):
    keep = targets != pad_id
    return F.nll_loss(logits[keep].double().log_softmax(-1), targets[keep])


@right("language_model_loss")
def loss_numpy(logits, targets, pad_id):
    z = logits.numpy()
    z = z - z.max(-1, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
    chosen = np.take_along_axis(p, targets.numpy()[..., None], -1)[..., 0]
    return -np.log(chosen[targets.numpy() != pad_id]).mean()


@right("language_model_loss")
def loss_one_hot(logits, targets, pad_id):
    real = (targets != pad_id).float()
    hot = F.one_hot(targets, logits.shape[-1]).float() * real[..., None]
    return -torch.einsum("btv,btv->", hot, logits - logits.logsumexp(-1, keepdim=True)) / real.sum()


@wrong("language_model_loss", "padding-counted")
def loss_everything(logits, targets, pad_id):
    return F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))


@wrong("language_model_loss", "divided-by-all")
def loss_mean_of_zeros(logits, targets, pad_id):
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id, reduction="none"
    ).mean()


@wrong("language_model_loss", "softmax-twice")
def loss_two_softmaxes(logits, targets, pad_id):
    probs = torch.softmax(logits, dim=-1)
    return F.cross_entropy(probs.transpose(1, 2), targets, ignore_index=pad_id)


@wrong("language_model_loss", "not-divided")
def loss_sum(logits, targets, pad_id):
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id, reduction="sum")


@wrong("language_model_loss", "mean-of-means")
def loss_rows(logits, targets, pad_id):
    rows = [F.cross_entropy(x, y, ignore_index=pad_id) for x, y in zip(logits, targets, strict=True)]
    return sum(rows) / len(rows)


@wrong("language_model_loss", "bits")
def loss_bits(logits, targets, pad_id):
    probs = logits.softmax(-1).gather(-1, targets[..., None]).squeeze(-1)
    return -torch.log2(probs[targets != pad_id]).mean()


@wrong("language_model_loss", "sign-forgotten")
def loss_sign(logits, targets, pad_id):
    picked = logits.log_softmax(-1).gather(-1, targets[..., None]).squeeze(-1)
    return picked[targets != pad_id].mean()


@wrong("language_model_loss", "view-for-transpose")
def loss_view(logits, targets, pad_id):
    b, t, v = logits.shape
    return F.cross_entropy(logits.view(b, v, t), targets, ignore_index=pad_id)


@wrong("language_model_loss", "softmax-over-positions")
def loss_axis(logits, targets, pad_id):
    picked = torch.log(logits.softmax(dim=1)).gather(2, targets[:, :, None])[:, :, 0]
    return -picked[targets != pad_id].mean()


@wrong("language_model_loss", "log-of-mean-probability")
def loss_mean_first(logits, targets, pad_id):
    p = logits.softmax(-1).gather(-1, targets[..., None])[..., 0]
    return -p[targets != pad_id].mean().log()


@wrong("language_model_loss", "perplexity-returned")
def loss_perplexity(logits, targets, pad_id):
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id).exp()


@wrong("language_model_loss", "pad-id-0-assumed")
def loss_zero(logits, targets, pad_id):
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=0)


@wrong("language_model_loss", "wrong-shape")
def loss_unreduced(logits, targets, pad_id):
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id, reduction="none")


@wrong("language_model_loss", "probability-for-log")
def loss_no_log(logits, targets, pad_id):
    p = logits.softmax(-1).gather(-1, targets[..., None])[..., 0]
    return p[targets != pad_id].mean()


@right("perplexity")
def perplexity_exp(total_nats, n_tokens):
    return math.exp(total_nats / n_tokens)


@right("perplexity")
def perplexity_tensor(total_nats, n_tokens):
    return torch.exp(torch.tensor(total_nats) / n_tokens)


@right("perplexity")
def perplexity_power(total_nats, n_tokens):
    return math.e ** (total_nats / n_tokens)


@right("perplexity")
def perplexity_numpy(total_nats, n_tokens):
    return np.exp(np.float32(total_nats) / n_tokens)


@right("perplexity")
def perplexity_root(total_nats, n_tokens):
    return math.exp(total_nats) ** (1 / n_tokens)


@wrong("perplexity", "not-divided")
def perplexity_total(total_nats, n_tokens):
    return math.exp(total_nats)


@wrong("perplexity", "base-2")
def perplexity_bits(total_nats, n_tokens):
    return 2 ** (total_nats / n_tokens)


@wrong("perplexity", "negative-exponent")
def perplexity_negative(total_nats, n_tokens):
    return np.exp(-total_nats / n_tokens)


@wrong("perplexity", "exp-forgotten")
def perplexity_mean(total_nats, n_tokens):
    return total_nats / n_tokens


@wrong("perplexity", "divided-after-exp")
def perplexity_late(total_nats, n_tokens):
    return math.exp(total_nats) / n_tokens


@wrong("perplexity", "exchanged")
def perplexity_upside_down(total_nats, n_tokens):
    return math.exp(n_tokens / total_nats)


@wrong("perplexity", "whole-division")
def perplexity_floor(total_nats, n_tokens):
    return math.exp(total_nats // n_tokens)


@wrong("perplexity", "rounded")
def perplexity_rounded(total_nats, n_tokens):
    return round(math.exp(total_nats / n_tokens), 1)


@wrong("perplexity", "log-for-exp")
def perplexity_log(total_nats, n_tokens):
    return math.log(total_nats / n_tokens)


@wrong("perplexity", "error")
def perplexity_torch_float(total_nats, n_tokens):
    return torch.exp(total_nats / n_tokens)


@wrong("perplexity", "wrong-type")
def perplexity_text(total_nats, n_tokens):
    return f"{math.exp(total_nats / n_tokens):.2f}"
