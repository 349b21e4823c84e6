"""Solutions for shift_targets, answer_loss, language_model_loss and perplexity."""

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


right(lambda token_ids: (token_ids[:, :-1], token_ids[:, 1:]))
right(lambda token_ids: (token_ids[:, :-1].int(), torch.roll(token_ids, -1, dims=1)[:, :-1]))
wrong("wrong-type", lambda token_ids: token_ids[:, 1:])


right, wrong = of("answer_loss")


@right
def answer_ignore_index(logits, token_ids, prompt_lens, pad_id):
    targets = token_ids.clone()
    for row, length in zip(targets, prompt_lens, strict=True):
        row[:length] = pad_id
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), targets[:, 1:], ignore_index=pad_id)


@right
def answer_loops(logits, token_ids, prompt_lens, pad_id):
    total, n = 0.0, 0
    for b in range(len(token_ids)):
        for t in range(int(prompt_lens[b]), token_ids.shape[1]):
            token = token_ids[b, t].item()
            if token != pad_id:
                total -= logits[b, t - 1].log_softmax(-1)[token].item()
                n += 1
    return total / n


@right
def answer_slices(logits, token_ids, prompt_lens, pad_id):
    parts = []
    for row, ids, n in zip(logits, token_ids, prompt_lens.tolist(), strict=True):
        end = int((ids != pad_id).sum())
        parts.append(F.cross_entropy(row[n - 1 : end - 1], ids[n:end], reduction="none"))
    return torch.cat(parts).mean()


@right
def answer_weights(logits, token_ids, prompt_lens, pad_id):
    each = F.cross_entropy(logits.mT[..., :-1], token_ids[:, 1:], reduction="none")
    t = torch.arange(token_ids.shape[1] - 1, device=token_ids.device)
    weight = ((t > prompt_lens.unsqueeze(1) - 2) * (token_ids[:, 1:] != pad_id)).to(each)
    return (each * weight).sum() / weight.sum()


@right
def answer_numpy(logits, token_ids, prompt_lens, pad_id):
    z = logits.double().numpy()
    log_p = z - np.log(np.exp(z).sum(-1, keepdims=True))
    b, t = np.nonzero(token_ids.numpy() != pad_id)
    keep = t >= prompt_lens.numpy()[b]
    b, t = b[keep], t[keep]
    return -log_p[b, t - 1, token_ids.numpy()[b, t]].mean()


wrong("input-modified", answer_ignore_index, {"token_ids.clone()": "token_ids"})
wrong("wrong-shape", answer_ignore_index, {"=pad_id)": '=pad_id, reduction="none")'})
wrong("not-shifted", answer_loops, {"t - 1": "t"})


@right
def answer_chosen(logits, token_ids, prompt_lens, pad_id):
    asked = (torch.arange(token_ids.shape[1]) >= prompt_lens[:, None]) & (token_ids != pad_id)
    m = asked[:, 1:]
    return F.cross_entropy(logits[:, :-1][m], token_ids[:, 1:][m])


wrong(
    "shifted-backwards",
    answer_chosen,
    {
        "[:, 1:]\n": "[:, :-1]\n",
        "logits[:, :-1]": "logits[:, 1:]",
        "token_ids[:, 1:][m]": "token_ids[:, :-1][m]",
    },
)
wrong("mask-not-shifted", answer_chosen, {"[:, 1:]\n": "[:, :-1]\n"})
wrong(
    "prompt-counted+softmax-twice",
    lambda logits, token_ids, prompt_lens, pad_id: F.cross_entropy(
        logits.softmax(-1)[:, :-1].flatten(0, 1), token_ids[:, 1:].flatten(), ignore_index=pad_id
    ),
)


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


wrong("wrong-shape", loss_gather, {"-(picked * real).sum() / real.sum()": "-picked * real"})
right(lambda logits, targets, pad_id: F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id))


right, wrong = of("perplexity")


@right
def perplexity_numpy(total_nats, n_tokens):
    return np.exp(np.float32(total_nats) / n_tokens)


right(lambda total_nats, n_tokens: math.exp(total_nats / n_tokens))
right(lambda total_nats, n_tokens: torch.exp(torch.tensor(total_nats) / n_tokens))
right(lambda total_nats, n_tokens: math.e ** (total_nats / n_tokens))
right(lambda total_nats, n_tokens: math.exp(total_nats) ** (1 / n_tokens))
wrong("error", lambda total_nats, n_tokens: torch.exp(total_nats / n_tokens))
wrong("wrong-type", lambda total_nats, n_tokens: f"{math.exp(total_nats / n_tokens):.2f}")
