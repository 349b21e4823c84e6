"""Solutions for mask_tokens and masked_loss."""

from __future__ import annotations

import math
import random

import numpy as np
import torch
import torch.nn.functional as F

from tests.solutions.collection import of

# mypy: ignore-errors


def _allowed(mask_id, special_ids, vocab_size):
    return torch.tensor([i for i in range(vocab_size) if i != mask_id and i not in special_ids])


def _special(token_ids, special_ids):
    return torch.isin(token_ids, torch.tensor(special_ids))


right, wrong = of("mask_tokens")


@right
def masking_one_number(token_ids, mask_id, special_ids, vocab_size, p, generator):
    drawn = (torch.rand(token_ids.shape, generator=generator) < p) & ~_special(token_ids, special_ids)
    labels = torch.where(drawn, token_ids, -100)
    fate = torch.rand(token_ids.shape, generator=generator)
    allowed = _allowed(mask_id, special_ids, vocab_size)
    noise = allowed[torch.randint(len(allowed), token_ids.shape, generator=generator)]
    inputs = torch.where(drawn & (fate < 0.8), mask_id, token_ids)
    inputs = torch.where(drawn & (fate >= 0.8) & (fate < 0.9), noise, inputs)
    return inputs, labels


@right
def masking_hugging_face_style(token_ids, mask_id, special_ids, vocab_size, p, generator):
    inputs, labels = token_ids.clone(), token_ids.clone()
    chances = torch.full(labels.shape, p)
    for special in special_ids:
        chances[token_ids == special] = 0.0
    drawn = torch.bernoulli(chances, generator=generator).bool()
    labels[~drawn] = -100
    replaced = torch.bernoulli(torch.full(labels.shape, 0.8), generator=generator).bool() & drawn
    inputs[replaced] = mask_id
    other = torch.bernoulli(torch.full(labels.shape, 0.5), generator=generator).bool() & drawn & ~replaced
    allowed = _allowed(mask_id, special_ids, vocab_size)
    inputs[other] = allowed[torch.randint(len(allowed), labels.shape, generator=generator)][other]
    return inputs, labels


@right
def masking_loop(token_ids, mask_id, special_ids, vocab_size, p, generator):
    inputs = token_ids.tolist()
    labels = [[-100] * len(row) for row in inputs]
    allowed = [i for i in range(vocab_size) if i != mask_id and i not in special_ids]
    for row, row_labels in zip(inputs, labels, strict=True):
        for t, token in enumerate(row):
            if token in special_ids or torch.rand((), generator=generator).item() >= p:
                continue
            row_labels[t] = token
            fate = torch.rand((), generator=generator).item()
            if fate < 0.8:
                row[t] = mask_id
            elif fate < 0.9:
                row[t] = allowed[int(torch.randint(len(allowed), (), generator=generator))]
    return torch.tensor(inputs), torch.tensor(labels)


@right
def masking_indices(token_ids, mask_id, special_ids, vocab_size, p, generator):
    flat = token_ids.flatten().clone()
    labels = torch.full_like(flat, -100)
    candidates = (~_special(flat, special_ids)).nonzero().flatten()
    chosen = candidates[torch.rand(len(candidates), generator=generator) < p]
    labels[chosen] = flat[chosen]
    fates = torch.multinomial(torch.tensor([0.8, 0.1, 0.1]), len(chosen), True, generator=generator)
    flat[chosen[fates == 0]] = mask_id
    places = chosen[fates == 1]
    allowed = _allowed(mask_id, special_ids, vocab_size)
    flat[places] = allowed[torch.randint(len(allowed), (len(places),), generator=generator)]
    return flat.view_as(token_ids), labels.view_as(token_ids)


@right
def masking_rejection(token_ids, mask_id, special_ids, vocab_size, p, generator, ignore=-100):
    r = torch.rand(token_ids.shape, generator=generator)
    r[_special(token_ids, special_ids)] = 1.0
    inputs = token_ids.clone()
    inputs[r < 0.8 * p] = mask_id
    other = (r >= 0.8 * p) & (r < 0.9 * p)
    noise = torch.randint(vocab_size, token_ids.shape, generator=generator)
    forbidden = torch.tensor([*special_ids, mask_id])
    while torch.isin(noise, forbidden).any():
        again = torch.randint(vocab_size, token_ids.shape, generator=generator)
        noise = torch.where(torch.isin(noise, forbidden), again, noise)
    inputs[other] = noise[other]
    labels = token_ids.masked_fill(r >= p, ignore)
    return inputs, labels


another = "[i for i in allowed if i != token][int(torch.randint(len(allowed) - 1, (), generator=generator))]"
right(masking_loop, {"allowed[int(torch.randint(len(allowed), (), generator=generator))]": another})
taken = "torch.randperm(len(candidates), generator=generator)[: round(p * len(candidates))]"
wrong("same-number", masking_indices, {"torch.rand(len(candidates), generator=generator) < p": taken})


above = "torch.randint(mask_id + 1, vocab_size, token_ids.shape, generator=generator)"
drawn = "allowed[torch.randint(len(allowed), token_ids.shape, generator=generator)]"
wrong("random-special-id", masking_one_number, {drawn: above})
wrong("special-drawn", masking_one_number, {"_special(token_ids, special_ids)": "(token_ids < mask_id)"})
wrong("input-modified", masking_one_number, {"return inputs": "return token_ids.copy_(inputs)"})


@wrong("generator-ignored")
def masking_python_random(token_ids, mask_id, special_ids, vocab_size, p, generator):
    allowed = _allowed(mask_id, special_ids, vocab_size).tolist()
    inputs, labels = token_ids.clone(), torch.full_like(token_ids, -100)
    for b, row in enumerate(token_ids.tolist()):
        for t, token in enumerate(row):
            if token not in special_ids and random.random() < p:
                labels[b, t] = token
                fate = random.random()
                inputs[b, t] = mask_id if fate < 0.8 else random.choice(allowed) if fate < 0.9 else token
    return inputs, labels


@wrong("same-draw-every-time")
def masking_reseeded(token_ids, mask_id, special_ids, vocab_size, p, generator):
    generator.manual_seed(0)
    return masking_one_number(token_ids, mask_id, special_ids, vocab_size, p, generator)


wrong("generator-ignored", masking_reseeded, {"generator.manual_seed(0)": "generator = None"})


right, wrong = of("masked_loss")


@right
def masked_loss_transposed(logits, labels):
    return F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-100, reduction="mean")


@right
def masked_loss_selected(logits, labels):
    chosen = labels != -100
    log_probs = logits[chosen].log_softmax(dim=-1)
    return -log_probs.gather(-1, labels[chosen][:, None]).mean()


@right
def masked_loss_loops(logits, labels):
    nats = []
    for row, row_labels in zip(logits.tolist(), labels.tolist(), strict=True):
        for scores, label in zip(row, row_labels, strict=True):
            if label == -100:
                continue
            nats.append(math.log(sum(map(math.exp, scores))) - scores[label])
    return sum(nats) / len(nats)


@right
def masked_loss_numpy(logits, labels):
    z, y = logits.numpy(), labels.numpy()
    rows, columns = np.nonzero(y != -100)
    z = z[rows, columns] - z[rows, columns].max(-1, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
    return -np.log(p[np.arange(len(rows)), y[rows, columns]]).mean()


@right
def masked_loss_einsum(logits, labels):
    chosen = (labels != -100).float()
    hot = F.one_hot(labels.clamp(min=0), logits.shape[-1]).float() * chosen[..., None]
    return -torch.einsum("btv,btv->", hot, F.log_softmax(logits, dim=-1)) / chosen.sum()


@wrong("divided-by-all+bits")
def masked_loss_two_slips(logits, labels):
    picked = logits.softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return -(picked.log2() * (labels != -100)).mean()


right(lambda logits, labels: F.cross_entropy(logits.flatten(0, 1), labels.flatten()))


right, wrong = of("mask_words")


@right
def words_joined(tokens, chosen):
    found, start = list(tokens), 0
    for end in range(1, len(tokens) + 1):
        if end == len(tokens) or tokens[end][0] == "▁":
            if any(start <= i < end for i in chosen):
                found[start:end] = ["[MASK]"] * (end - start)
            start = end
    return found


@right
def words_walk_from_each(tokens, chosen):
    hidden = set()
    for i in chosen:
        first = i
        while first > 0 and not tokens[first].startswith("▁"):
            first -= 1
        last = i + 1
        while last < len(tokens) and not tokens[last].startswith("▁"):
            last += 1
        hidden.update(range(first, last))
    return ["[MASK]" if i in hidden else token for i, token in enumerate(tokens)]


@right
def words_numpy(tokens, chosen):
    word = np.cumsum([token.startswith("▁") for token in tokens])
    hide = np.isin(word, word[np.array(chosen, dtype=int)])
    return np.where(hide, "[MASK]", tokens).tolist()


@right
def words_torch(tokens, chosen):
    word = torch.tensor([token[:1] == "▁" for token in tokens]).cumsum(0)
    drawn = word[torch.tensor(chosen, dtype=torch.long)]
    hide = (word[:, None] == drawn).any(dim=1)
    return [("[MASK]" if h else token) for h, token in zip(hide.tolist(), tokens, strict=True)]


wrong("input-modified", words_joined, {"list(tokens)": "tokens"})
wrong("wrong-type", lambda tokens, chosen: " ".join(words_joined(tokens, chosen)))
wrong("next-word-begun", words_walk_from_each, {"(first, last)": "(first, min(last + 1, len(tokens)))"})
