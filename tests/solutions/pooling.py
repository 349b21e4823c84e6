"""Solutions for mean_pool and last_token."""

from __future__ import annotations

import numpy as np
import torch

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("mean_pool")


@right
def mean_weighted(hidden, mask):
    weights = mask.unsqueeze(-1).float()
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1e-9)


@right
def mean_loop(hidden, mask):
    return torch.stack([h[m].mean(dim=0) for h, m in zip(hidden, mask, strict=True)])


@right
def mean_einsum(hidden, mask):
    return torch.einsum("btd,bt->bd", hidden.double(), mask.double()) / mask.sum(1, keepdim=True)


@right
def mean_numpy(hidden, mask):
    return torch.as_tensor(
        np.array([h[m].mean(0) for h, m in zip(hidden.numpy(), mask.numpy(), strict=True)])
    )


@right
def mean_matmul(hidden, mask):
    weights = mask.float() / mask.float().sum(1, keepdim=True)
    return (weights[:, None] @ hidden)[:, 0]


wrong("input-modified", mean_weighted, {"hidden * weights": "hidden.mul_(weights)"})
right(lambda hidden, mask: hidden.masked_fill(~mask[:, :, None], float("nan")).nanmean(dim=1))


right, wrong = of("last_token")


@right
def last_loop(hidden, mask):
    rows = []
    for h, m in zip(hidden, mask, strict=True):
        last = 0
        for t in range(len(m)):
            if m[t]:
                last = t
        rows.append(h[last])
    return torch.stack(rows)


@right
def last_gather(hidden, mask):
    index = (mask.long().sum(1) - 1)[:, None, None].expand(-1, 1, hidden.shape[-1])
    return hidden.gather(1, index).squeeze(1)


@right
def last_one_hot(hidden, mask):
    following = torch.cat([mask[:, 1:], torch.zeros_like(mask[:, :1])], 1)
    return torch.einsum("bt,btd->bd", (mask & ~following).double(), hidden.double())


@right
def last_argmax(hidden, mask):
    place = (mask * torch.arange(1, mask.shape[1] + 1)).argmax(1)
    return hidden[range(len(place)), place.tolist()]


wrong("error", last_loop, {"torch.stack(rows)": "rows.stack()"})
right(lambda hidden, mask: hidden[torch.arange(len(hidden)), mask.sum(dim=1) - 1])
right(lambda hidden, mask: torch.stack([h[m][-1] for h, m in zip(hidden, mask, strict=True)]))
