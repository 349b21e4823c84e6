"""Solutions for causal_mask, window_prefix_mask, padding_mask, cross_attention_mask and leaks_future."""

from __future__ import annotations

import numpy as np
import torch

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("causal_mask")


@right
def causal_loop(seq_len):
    mask = torch.zeros(seq_len, seq_len, dtype=torch.bool)
    for t in range(seq_len):
        for s in range(t + 1):
            mask[t, s] = True
    return mask


@right
def causal_compare(seq_len, device="cpu"):
    i = torch.arange(seq_len, device=device)
    return i.unsqueeze(1) >= i


@right
def causal_numpy_inside(seq_len):
    return torch.from_numpy(np.tri(seq_len, dtype=bool))


@right
def causal_list(seq_len):
    return torch.tensor([[s <= t for s in range(seq_len)] for t in range(seq_len)])


wrong("nothing-returned", causal_loop, {"return mask": "mask"})
right(lambda n: torch.tril(torch.ones(n, n)).bool())
right(lambda seq_len: ~torch.ones((seq_len, seq_len), dtype=torch.bool).triu(diagonal=1))
right(lambda seq_len: torch.nn.Transformer.generate_square_subsequent_mask(seq_len) == 0)
right(lambda seq_len: torch.eye(seq_len).cumsum(dim=0).T.flip(0).flip(1).to(torch.bool))
wrong("additive-mask", lambda seq_len: torch.triu(torch.full((seq_len, seq_len), float("-inf")), diagonal=1))
wrong("not-boolean", lambda seq_len: torch.tril(torch.ones(seq_len, seq_len)))
wrong("numpy-array", lambda seq_len: np.tril(np.ones((seq_len, seq_len))).astype(bool))
wrong("wrong-shape", lambda seq_len: torch.ones(seq_len).bool())


right, wrong = of("window_prefix_mask")


@right
def window_loop(seq_len, window, prefix):
    mask = torch.zeros(seq_len, seq_len, dtype=torch.bool)
    for t in range(seq_len):
        mask[t, max(0, t - window + 1) : t + 1] = True
        mask[t, :prefix] = True
    return mask


@right
def window_by_triangles(seq_len, window, prefix):
    ones = torch.ones(seq_len, seq_len, dtype=torch.bool)
    mask = ones.tril() & ones.triu(1 - window)
    mask[:, :prefix] = True
    return mask


@right
def window_by_list(seq_len, window, prefix):
    rows = range(seq_len)
    return torch.tensor([[s < prefix or t - window < s <= t for s in rows] for t in rows])


@right
def window_in_numpy(seq_len, window, prefix):
    t, s = np.indices((seq_len, seq_len))
    return torch.from_numpy((s < prefix) | ((s <= t) & (t - s < window)))


wrong("not-boolean", window_by_triangles, {"return mask": "return mask.float()"})


right, wrong = of("padding_mask")


@right
def padding_loop(token_ids, pad_id):
    mask = torch.empty(token_ids.shape, dtype=torch.bool)
    for b, row in enumerate(token_ids):
        for s, token in enumerate(row):
            mask[b, s] = token.item() != pad_id
    return mask


@right
def padding_by_length(token_ids, pad_id):
    lengths = (token_ids != pad_id).sum(dim=1, keepdim=True)
    return torch.arange(token_ids.size(1)).expand_as(token_ids) < lengths


wrong("additive-mask", lambda ids, pad: torch.zeros(ids.shape).masked_fill(ids == pad, float("-inf")))
right(lambda token_ids, pad_id: token_ids != pad_id)
right(lambda token_ids, pad_id=0: ~token_ids.eq(pad_id))
right(lambda token_ids, pad_id: torch.where(token_ids == pad_id, 0, 1).bool())
wrong("not-boolean", lambda token_ids, pad_id: (token_ids != pad_id).float())
wrong("argument-returned", lambda token_ids, pad_id: token_ids.clone())
wrong("not-boolean", lambda token_ids, pad_id: token_ids - pad_id)
wrong(
    "wrong-type", lambda token_ids, pad_id: [[token != pad_id for token in row] for row in token_ids.tolist()]
)


right, wrong = of("cross_attention_mask")


@right
def cross_loop(src_ids, tgt_ids, pad_id):
    b, s = src_ids.shape
    t = tgt_ids.shape[1]
    mask = torch.zeros(b, t, s, dtype=torch.bool)
    for i in range(b):
        for j in range(t):
            for k in range(s):
                mask[i, j, k] = bool(src_ids[i, k] != pad_id)
    return mask


@right
def cross_einsum(src_ids, tgt_ids, pad_id):
    real = (src_ids != pad_id).float()
    return torch.einsum("bs,bt->bts", real, torch.ones(tgt_ids.shape)) > 0.5


wrong("not-boolean", cross_einsum, {" > 0.5": ""})
right(lambda src_ids, tgt_ids, pad_id: (src_ids != pad_id).unsqueeze(1).expand(-1, tgt_ids.size(1), -1))
right(lambda src_ids, tgt_ids, pad_id: (~(src_ids == pad_id))[:, None, :].repeat(1, tgt_ids.shape[1], 1))
right(lambda src, tgt, pad: torch.stack([src.ne(pad) for _ in range(tgt.shape[1])], dim=1))


right, wrong = of("leaks_future")


@right
def leaks_loop(model, x):
    before = model(x)
    for s in range(1, len(x)):
        changed = x.clone()
        changed[s] = 7 - 3 * changed[s]
        if not torch.equal(model(changed)[:s], before[:s]):
            return True
    return False


@right
def leaks_table(model, x):
    before = model(x)
    moved = torch.zeros(len(x), len(x), dtype=torch.bool)
    for s in range(len(x)):
        changed = x.clone()
        changed[s] = changed[s] + torch.randn_like(changed[s])
        moved[:, s] = (model(changed) != before).any(dim=-1)
    return bool((moved & torch.ones_like(moved).triu(1)).any())


@right
def leaks_jacobian(model, x):
    grid = torch.autograd.functional.jacobian(model, x)  # (T, E, T, D)
    influence = grid.abs().sum(dim=(1, 3))
    return influence.triu(1).sum().item() > 0


@right
def leaks_backwards(model, x):
    before, changed = model(x), x.clone()
    for s in reversed(range(len(x))):
        changed[s] = changed[s] * 2 + 0.3
        if (model(changed)[:s] - before[:s]).abs().sum() > 0:
            return True
    return False


@right
def leaks_pairs(model, x):
    def output(t, s):
        y = x.detach().clone()
        if s is not None:
            y[s] = 5 - y[s]
        return model(y)[t].tolist()

    return any(output(t, s) != output(t, None) for t in range(len(x)) for s in range(t + 1, len(x)))


@right
def leaks_cut_the_future(model, x):
    whole = model(x)
    found = torch.tensor(False)
    for t in range(len(x) - 1):
        changed = torch.cat([x[: t + 1], torch.rand_like(x[t + 1 :]) + 5])
        found |= (model(changed)[: t + 1] != whole[: t + 1]).any()
    return found


@wrong("sums-compared")
def leaks_by_gradients_of_sums(model, x):
    x = x.clone().requires_grad_()
    rows = [torch.autograd.grad(output.sum(), x, retain_graph=True)[0] for output in model(x)]
    return any(bool(row[t + 1 :].any()) for t, row in enumerate(rows))


wrong("nothing-changed", leaks_loop, {"7 - 3 *": "2 *"})
wrong("not-a-number", leaks_loop, {"7 - 3 *": "torch.inf *"})
wrong("input-modified", leaks_backwards, {"model(x), x.clone()": "model(x).clone(), x"})
wrong("wrong-shape", leaks_table, {"bool((moved & torch.ones_like(moved).triu(1)).any())": "moved.triu(1)"})
wrong(
    "wrong-type",
    leaks_table,
    {"bool((moved & torch.ones_like(moved).triu(1)).any())": "int(moved.triu(1).sum())"},
)
