"""Solutions for tiny_gpt, tie_embeddings and generate."""

from __future__ import annotations

import copy
import functools
import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("tiny_gpt")


@right
def gpt_plain(token_ids, token_embed, positions, blocks, final_norm, w_out):
    x = token_embed[token_ids] * token_embed.shape[1] ** 0.5 + positions[: token_ids.shape[1]]
    for block in blocks:
        x = block(x)
    return final_norm(x) @ w_out


@right
def gpt_functional(token_ids, token_embed, positions, blocks, final_norm, w_out):
    x = math.sqrt(positions.size(-1)) * F.embedding(token_ids, token_embed)
    x = x + positions.narrow(0, 0, token_ids.size(1)).unsqueeze(0)
    return torch.einsum("btd,dv->btv", final_norm(functools.reduce(lambda h, b: b(h), blocks, x)), w_out)


@right
def gpt_sequential(token_ids, token_embed, positions, blocks, final_norm, w_out):
    class Step(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, x):
            return self.function(x)

    one_hot = F.one_hot(token_ids, len(token_embed)).to(token_embed.dtype)  # (B, T, V)
    x = one_hot @ token_embed * math.sqrt(w_out.shape[0])
    x += positions[torch.arange(token_ids.shape[1])]
    stack = nn.Sequential(*(Step(f) for f in (*blocks, final_norm)))
    return stack(x).matmul(w_out)


@right
def gpt_rows(token_ids, token_embed, positions, blocks, final_norm, w_out):
    d_model = token_embed.shape[-1]
    rows = []
    for ids in token_ids:
        vectors = [token_embed[i] * d_model**0.5 + positions[t] for t, i in enumerate(ids.tolist())]
        x = torch.stack(vectors)[None]
        for n in range(len(blocks)):
            x = blocks[n](x)
        rows.append(F.linear(final_norm(x)[0], w_out.T))
    return torch.stack(rows)


right, wrong = of("tie_embeddings")


@right
def tie_and_count(model):
    before = sum(p.numel() for p in model.parameters())
    model.head.weight = model.token_embed.weight
    return model, before - sum(p.numel() for p in model.parameters())


@right
def tie_by_shape(model):
    rows, width = model.token_embed.weight.shape
    setattr(model.head, "weight", model.token_embed.weight)  # noqa: B010
    return model, rows * width


@right
def tie_registered(model):
    model.head.register_parameter("weight", model.token_embed.weight)
    return model, model.token_embed.num_embeddings * model.token_embed.embedding_dim


wrong("copy-returned", lambda model: tie_registered(copy.deepcopy(model)))


@right
def tie_a_new_layer(model):
    vocab_size, d_model = model.token_embed.weight.shape
    head = nn.Linear(d_model, vocab_size, bias=model.head.bias is not None)
    head.weight, head.bias = model.token_embed.weight, model.head.bias
    model.head = head
    return model, torch.tensor(head.weight.numel())


wrong("error", tie_and_count, {"token_embed.weight": "token_embed.weight.T"})


replaced = {'model.head, "weight", model.token_embed.weight': 'model, "head", model.token_embed'}
wrong("head-replaced", tie_by_shape, replaced)
wrong("head-replaced", lambda model: (delattr(model, "head"), (model, 6))[1])
wrong("wrong-type", tie_by_shape, {"return model, rows * width": "return rows * width"})


right, wrong = of("generate")


@right
def generate_list(model, token_ids, n_new, max_len, draw):
    ids = list(token_ids)
    for _ in range(n_new):
        logits = model(torch.tensor([ids[-max_len:]]))
        ids.append(draw(logits[0, -1].softmax(dim=-1)))
    return ids


@right
def generate_tensor(model, token_ids, n_new, max_len, draw):
    ids = torch.tensor(token_ids)[None]  # (1, T)
    with torch.no_grad():
        for _ in range(n_new):
            last = model(ids[:, -max_len:])[:, -1]
            newest = torch.tensor([[draw(F.softmax(last, dim=-1)[0])]])
            ids = torch.cat([ids, newest], dim=1)
    return ids[0].tolist()


@right
def generate_recursive(model, token_ids, n_new, max_len, draw):
    if n_new == 0:
        return token_ids
    logits = model(torch.tensor(token_ids[-max_len:]).view(1, -1)).squeeze(0)
    newest = draw((logits - logits.max()).exp()[-1] / (logits - logits.max()).exp()[-1].sum())
    return generate_recursive(model, [*token_ids, newest], n_new - 1, max_len, draw)


@right
def generate_while(model, token_ids, n_new, max_len, draw):
    text = token_ids[:]
    while len(text) < len(token_ids) + n_new:
        start = max(0, len(text) - max_len)
        probs = model(torch.as_tensor([text[start:]])).softmax(-1)
        text += [int(draw(probs[0][-1].flatten()))]
    return text


wrong("input-modified", generate_list, {"list(token_ids)": "token_ids"})
wrong("error", generate_list, {"[ids[-max_len:]]": "ids[-max_len:]", "logits[0, -1]": "logits[-1]"})
wrong("error", generate_list, {"logits[0, -1]": "logits[:, -1]"})
