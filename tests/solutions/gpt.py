"""Solutions for tiny_gpt and generate."""

from __future__ import annotations

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


def _stacked(x, blocks):
    for block in blocks:
        x = block(x)
    return x


def _embedded(token_ids, token_embed, positions):
    return token_embed[token_ids] * math.sqrt(token_embed.shape[1]) + positions[: token_ids.shape[1]]


@wrong("positions-not-cut")
def gpt_whole_table(token_ids, token_embed, positions, blocks, final_norm, w_out):
    x = token_embed[token_ids] * math.sqrt(token_embed.shape[1]) + positions
    return final_norm(_stacked(x, blocks)) @ w_out


@wrong("positions-scaled")
def gpt_scaled_sum(token_ids, token_embed, positions, blocks, final_norm, w_out):
    x = (token_embed[token_ids] + positions[: token_ids.shape[1]]) * token_embed.shape[1] ** 0.5
    return final_norm(_stacked(x, blocks)) @ w_out


@wrong("positions-at-the-end")
def gpt_late_positions(token_ids, token_embed, positions, blocks, final_norm, w_out):
    x = _stacked(token_embed[token_ids] * math.sqrt(token_embed.shape[1]), blocks)
    return final_norm(x + positions[: token_ids.shape[1]]) @ w_out


@wrong("positions-in-every-block")
def gpt_positions_each_time(token_ids, token_embed, positions, blocks, final_norm, w_out):
    x = token_embed[token_ids] * math.sqrt(token_embed.shape[1])
    for block in blocks:
        x = block(x + positions[: token_ids.shape[1]])
    return final_norm(x) @ w_out


@wrong("scale-by-vocabulary")
def gpt_root_of_vocabulary(token_ids, token_embed, positions, blocks, final_norm, w_out):
    x = token_embed[token_ids] * math.sqrt(len(token_embed)) + positions[: token_ids.shape[1]]
    return final_norm(_stacked(x, blocks)) @ w_out


@wrong("blocks-reversed")
def gpt_top_first(token_ids, token_embed, positions, blocks, final_norm, w_out):
    return final_norm(_stacked(_embedded(token_ids, token_embed, positions), blocks[::-1])) @ w_out


@wrong("residual-around-blocks")
def gpt_extra_residual(token_ids, token_embed, positions, blocks, final_norm, w_out):
    x = _embedded(token_ids, token_embed, positions)
    for block in blocks:
        x = x + block(x)
    return final_norm(x) @ w_out


@wrong("norm-missing")
def gpt_no_final_norm(token_ids, token_embed, positions, blocks, final_norm, w_out):
    return _stacked(_embedded(token_ids, token_embed, positions), blocks) @ w_out


@wrong("norm-after-each-block")
def gpt_norm_in_the_loop(token_ids, token_embed, positions, blocks, final_norm, w_out):
    x = _embedded(token_ids, token_embed, positions)
    for block in blocks:
        x = final_norm(block(x))
    return x @ w_out


@wrong("hidden-states-returned")
def gpt_without_head(token_ids, token_embed, positions, blocks, final_norm, w_out):
    return final_norm(_stacked(_embedded(token_ids, token_embed, positions), blocks))


@wrong("last-position-only")
def gpt_next_only(token_ids, token_embed, positions, blocks, final_norm, w_out):
    return gpt_plain(token_ids, token_embed, positions, blocks, final_norm, w_out)[:, -1]


@wrong("probabilities")
def gpt_softmax(token_ids, token_embed, positions, blocks, final_norm, w_out):
    return torch.softmax(gpt_plain(token_ids, token_embed, positions, blocks, final_norm, w_out), dim=-1)


@wrong("not-scaled+norm-missing")
def gpt_two_omissions(token_ids, token_embed, positions, blocks, final_norm, w_out):
    return _stacked(token_embed[token_ids] + positions[: token_ids.shape[1]], blocks) @ w_out


wrong("not-scaled", gpt_root_of_vocabulary, {"* math.sqrt(len(token_embed)) ": ""})
wrong("positions-missing", gpt_whole_table, {" + positions": ""})
wrong("positions-of-ids", gpt_whole_table, {"+ positions": "+ positions[token_ids]"})
wrong("last-block-only", gpt_extra_residual, {"x = x +": "h =", "(x) @": "(h) @"})
wrong("blocks-missing", gpt_extra_residual, {"x = x + block": "block"})


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


@wrong("argmax")
def generate_greedy(model, token_ids, n_new, max_len, draw):
    ids = list(token_ids)
    for _ in range(n_new):
        ids.append(int(model(torch.tensor([ids[-max_len:]]))[0, -1].argmax()))
    return ids


@wrong("prompt-dropped")
def generate_new_only(model, token_ids, n_new, max_len, draw):
    return generate_list(model, token_ids, n_new, max_len, draw)[-n_new:]


@wrong("beginning-read")
def generate_reads_the_beginning(model, token_ids, n_new, max_len, draw):
    ids = list(token_ids)
    for _ in range(n_new):
        ids.append(draw(model(torch.tensor([ids[:max_len]]))[0, -1].softmax(-1)))
    return ids


@wrong("beginning-lost")
def generate_sliding(model, token_ids, n_new, max_len, draw):
    ids = list(token_ids)
    for _ in range(n_new):
        ids = ids[-max_len:]
        ids.append(draw(model(torch.tensor([ids]))[0, -1].softmax(-1)))
    return ids[-max_len:]


@wrong("last-id-only")
def generate_bigram(model, token_ids, n_new, max_len, draw):
    return generate_list(model, token_ids, n_new, 1, draw)


@wrong("new-ids-not-read")
def generate_same_prompt(model, token_ids, n_new, max_len, draw):
    prompt = torch.tensor([token_ids[-max_len:]])
    return token_ids + [draw(model(prompt)[0, -1].softmax(-1)) for _ in range(n_new)]


@wrong("first-position")
def generate_from_the_first(model, token_ids, n_new, max_len, draw):
    ids = list(token_ids)
    for _ in range(n_new):
        ids.append(draw(model(torch.tensor([ids[-max_len:]]))[0][0].softmax(-1)))
    return ids


@wrong("logits-drawn")
def generate_draws_logits(model, token_ids, n_new, max_len, draw):
    ids = list(token_ids)
    for _ in range(n_new):
        ids.append(draw(model(torch.tensor([ids[-max_len:]]))[0, -1]))
    return ids


@wrong("log-probabilities-drawn")
def generate_draws_logs(model, token_ids, n_new, max_len, draw):
    ids = list(token_ids)
    for _ in range(n_new):
        ids.append(draw(F.log_softmax(model(torch.tensor([ids[-max_len:]]))[0, -1], dim=-1)))
    return ids


@wrong("one-too-many")
def generate_long(model, token_ids, n_new, max_len, draw):
    ids = list(token_ids)
    while len(ids) <= len(token_ids) + n_new:
        ids.append(draw(model(torch.tensor([ids[-max_len:]]))[0, -1].softmax(-1)))
    return ids


@wrong("stops-at-max-len")
def generate_until_full(model, token_ids, n_new, max_len, draw):
    ids = list(token_ids)
    for _ in range(n_new):
        if len(ids) >= max_len:
            break
        ids.append(draw(model(torch.tensor([ids[-max_len:]]))[0, -1].softmax(-1)))
    return ids


@wrong("input-modified")
def generate_in_place(model, token_ids, n_new, max_len, draw):
    for _ in range(n_new):
        token_ids.append(draw(model(torch.tensor([token_ids[-max_len:]]))[0, -1].softmax(-1)))
    return token_ids


@wrong("error")
def generate_without_batch(model, token_ids, n_new, max_len, draw):
    ids = list(token_ids)
    for _ in range(n_new):
        ids.append(draw(model(torch.tensor(ids[-max_len:]))[-1].softmax(-1)))
    return ids


wrong("context-not-cut", generate_bigram, {"1": "1_000"})
wrong("softmax-over-positions", generate_from_the_first, {"[0].softmax(-1)": ".softmax(dim=0)[-1]"})
wrong("one-too-few", generate_bigram, {"n_new, 1": "n_new - 1, max_len"})
wrong("n-new-is-total", generate_long, {"= len(token_ids) +": ""})
