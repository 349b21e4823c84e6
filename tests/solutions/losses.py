"""Solutions for shift_targets, language_model_loss and perplexity."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("shift_targets")


@right
def shift_narrow(token_ids):
    n = token_ids.shape[-1] - 1
    return [token_ids.narrow(-1, 0, n).contiguous(), token_ids.narrow(-1, 1, n).clone()]


@right
def shift_loops(token_ids):
    inputs = torch.stack([row[:-1] for row in token_ids])
    targets = torch.tensor([[int(row[t + 1]) for t in range(len(row) - 1)] for row in token_ids])
    return inputs, targets


@right
def shift_unfold(token_ids):
    pairs = token_ids.unfold(1, 2, 1)
    return pairs[..., 0], pairs[..., 1]


@wrong("exchanged")
def shift_swapped(token_ids):
    return token_ids[:, 1:], token_ids[:, :-1]


@wrong("rolled")
def shift_rolled(token_ids):
    return token_ids, torch.roll(token_ids, shifts=-1, dims=1)


@wrong("filled-up")
def shift_filled(token_ids):
    targets = torch.zeros_like(token_ids)
    targets[:, :-1] = token_ids[:, 1:]
    return token_ids, targets


right(lambda token_ids: (token_ids[:, :-1], token_ids[:, 1:]))
right(lambda token_ids: (token_ids[:, :-1].int(), torch.roll(token_ids, -1, dims=1)[:, :-1]))
wrong("not-shifted", lambda token_ids: (token_ids, token_ids.clone()))
wrong("shifted-by-two", lambda token_ids: (token_ids[:, :-2], token_ids[:, 2:]))
wrong("inputs-not-cut", lambda token_ids: (token_ids, token_ids[:, 1:]))
wrong("batch-shifted", lambda token_ids: (token_ids[:-1], token_ids[1:]))
wrong("only-last-target", lambda token_ids: (token_ids[:, :-1], token_ids[:, -1]))
wrong("wrong-type", lambda token_ids: token_ids[:, 1:])
wrong("rolled-over-rows", lambda token_ids: (token_ids, torch.roll(token_ids, -1)))


right, wrong = of("language_model_loss")


@right
def loss_gather(logits, targets, pad_id):
    log_probs = F.log_softmax(logits, dim=-1)
    picked = log_probs.gather(2, targets.unsqueeze(2)).squeeze(2)
    real = targets != pad_id
    return -(picked * real).sum() / real.sum()


@right
def loss_loop(logits, targets, pad_id):
    total, n = 0.0, 0
    for row, ids in zip(logits, targets, strict=True):
        for scores, target in zip(row, ids, strict=True):
            if target != pad_id:
                total += math.log(sum(math.exp(s) for s in scores.tolist())) - scores[target].item()
                n += 1
    return total / n


@right
def loss_selected(logits, targets, pad_id):
    keep = targets != pad_id
    return F.nll_loss(logits[keep].double().log_softmax(-1), targets[keep])


@right
def loss_numpy(logits, targets, pad_id):
    z = logits.numpy()
    z = z - z.max(-1, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
    chosen = np.take_along_axis(p, targets.numpy()[..., None], -1)[..., 0]
    return -np.log(chosen[targets.numpy() != pad_id]).mean()


@right
def loss_one_hot(logits, targets, pad_id):
    real = (targets != pad_id).float()
    hot = F.one_hot(targets, logits.shape[-1]).float() * real[..., None]
    return -torch.einsum("btv,btv->", hot, logits - logits.logsumexp(-1, keepdim=True)) / real.sum()


@wrong("padding-counted")
def loss_everything(logits, targets, pad_id):
    return F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))


@wrong("divided-by-all")
def loss_mean_of_zeros(logits, targets, pad_id):
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id, reduction="none"
    ).mean()


@wrong("softmax-twice")
def loss_two_softmaxes(logits, targets, pad_id):
    probs = torch.softmax(logits, dim=-1)
    return F.cross_entropy(probs.transpose(1, 2), targets, ignore_index=pad_id)


@wrong("mean-of-means")
def loss_rows(logits, targets, pad_id):
    rows = [F.cross_entropy(x, y, ignore_index=pad_id) for x, y in zip(logits, targets, strict=True)]
    return sum(rows) / len(rows)


@wrong("bits")
def loss_bits(logits, targets, pad_id):
    probs = logits.softmax(-1).gather(-1, targets[..., None]).squeeze(-1)
    return -torch.log2(probs[targets != pad_id]).mean()


@wrong("sign-forgotten")
def loss_sign(logits, targets, pad_id):
    picked = logits.log_softmax(-1).gather(-1, targets[..., None]).squeeze(-1)
    return picked[targets != pad_id].mean()


@wrong("view-for-transpose")
def loss_view(logits, targets, pad_id):
    b, t, v = logits.shape
    return F.cross_entropy(logits.view(b, v, t), targets, ignore_index=pad_id)


@wrong("softmax-over-positions")
def loss_axis(logits, targets, pad_id):
    picked = torch.log(logits.softmax(dim=1)).gather(2, targets[:, :, None])[:, :, 0]
    return -picked[targets != pad_id].mean()


@wrong("perplexity-returned")
def loss_perplexity(logits, targets, pad_id):
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id).exp()


@wrong("wrong-shape")
def loss_unreduced(logits, targets, pad_id):
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id, reduction="none")


@wrong("probability-for-log")
def loss_no_log(logits, targets, pad_id):
    p = logits.softmax(-1).gather(-1, targets[..., None])[..., 0]
    return p[targets != pad_id].mean()


right(lambda logits, targets, pad_id: F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id))
wrong("not-divided", loss_unreduced, {"none": "sum"})
wrong(
    "log-of-mean-probability", loss_no_log, {"p[targets != pad_id].mean": "-p[targets != pad_id].mean().log"}
)
wrong("pad-id-0-assumed", loss_unreduced, {'pad_id, reduction="none"': "0"})


right, wrong = of("perplexity")


@right
def perplexity_numpy(total_nats, n_tokens):
    return np.exp(np.float32(total_nats) / n_tokens)


right(lambda total_nats, n_tokens: math.exp(total_nats / n_tokens))
right(lambda total_nats, n_tokens: torch.exp(torch.tensor(total_nats) / n_tokens))
right(lambda total_nats, n_tokens: math.e ** (total_nats / n_tokens))
right(lambda total_nats, n_tokens: math.exp(total_nats) ** (1 / n_tokens))
wrong("not-divided", lambda total_nats, n_tokens: math.exp(total_nats))
wrong("base-2", lambda total_nats, n_tokens: 2 ** (total_nats / n_tokens))
wrong("negative-exponent", lambda total_nats, n_tokens: np.exp(-total_nats / n_tokens))
wrong("exp-forgotten", lambda total_nats, n_tokens: total_nats / n_tokens)
wrong("divided-after-exp", lambda total_nats, n_tokens: math.exp(total_nats) / n_tokens)
wrong("exchanged", lambda total_nats, n_tokens: math.exp(n_tokens / total_nats))
wrong("whole-division", lambda total_nats, n_tokens: math.exp(total_nats // n_tokens))
wrong("rounded", lambda total_nats, n_tokens: round(math.exp(total_nats / n_tokens), 1))
wrong("log-for-exp", lambda total_nats, n_tokens: math.log(total_nats / n_tokens))
wrong("error", lambda total_nats, n_tokens: torch.exp(total_nats / n_tokens))
wrong("wrong-type", lambda total_nats, n_tokens: f"{math.exp(total_nats / n_tokens):.2f}")
