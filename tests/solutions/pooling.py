"""Solutions for mean_pool and last_token."""

from __future__ import annotations

import numpy as np
import torch

from tests.solutions.collection import right, wrong

# mypy: ignore-errors


@right("mean_pool")
def mean_weighted(hidden, mask):
    weights = mask.unsqueeze(-1).float()
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1e-9)


@right("mean_pool")
def mean_loop(hidden, mask):
    return torch.stack([h[m].mean(dim=0) for h, m in zip(hidden, mask, strict=True)])


@right("mean_pool")
def mean_einsum(hidden, mask):
    return torch.einsum("btd,bt->bd", hidden.double(), mask.double()) / mask.sum(1, keepdim=True)


@right("mean_pool")
def mean_nan(hidden, mask):
    return hidden.masked_fill(~mask[:, :, None], float("nan")).nanmean(dim=1)


@right("mean_pool")
def mean_numpy(hidden, mask):
    return torch.as_tensor(
        np.array([h[m].mean(0) for h, m in zip(hidden.numpy(), mask.numpy(), strict=True)])
    )


@right("mean_pool")
def mean_matmul(hidden, mask):
    weights = mask.float() / mask.float().sum(1, keepdim=True)
    return (weights[:, None] @ hidden)[:, 0]


@wrong("mean_pool", "padding-counted")
def mean_all(hidden, mask):
    return hidden.mean(dim=1)


@wrong("mean_pool", "divided-by-all")
def mean_masked_mean(hidden, mask):
    return (hidden * mask.unsqueeze(-1)).mean(dim=1)


@wrong("mean_pool", "not-divided")
def mean_sum(hidden, mask):
    return hidden.masked_fill(~mask.unsqueeze(-1), 0.0).sum(1)


@wrong("mean_pool", "divided-by-batch-total")
def mean_total(hidden, mask):
    return (hidden * mask[..., None]).sum(1) / mask.sum()


@wrong("mean_pool", "rows-mixed")
def mean_flat(hidden, mask):
    return hidden[mask].mean(dim=0)


@wrong("mean_pool", "features-averaged")
def mean_features(hidden, mask):
    return (hidden * mask[..., None]).mean(-1)


@wrong("mean_pool", "batch-averaged")
def mean_batch(hidden, mask):
    return hidden.mean(0)


@wrong("mean_pool", "reversed")
def mean_padding(hidden, mask):
    weights = (~mask).float()[..., None]
    return (hidden * weights).sum(1) / weights.sum(1)


@wrong("mean_pool", "maximum")
def mean_max(hidden, mask):
    return hidden.masked_fill(~mask[..., None], -1e9).max(dim=1).values


@wrong("mean_pool", "one-length-for-all")
def mean_longest(hidden, mask):
    return (hidden * mask[..., None]).sum(1) / mask.sum(1).max()


@wrong("mean_pool", "axis-kept")
def mean_keepdim(hidden, mask):
    m = mask[..., None].float()
    return (hidden * m).sum(1, keepdim=True) / m.sum(1, keepdim=True)


@wrong("mean_pool", "input-modified")
def mean_in_place(hidden, mask):
    hidden[~mask] = 0
    return hidden.sum(1) / mask.sum(1, keepdim=True)


@right("last_token")
def last_indexed(hidden, mask):
    return hidden[torch.arange(len(hidden)), mask.sum(dim=1) - 1]


@right("last_token")
def last_loop(hidden, mask):
    rows = []
    for h, m in zip(hidden, mask, strict=True):
        last = 0
        for t in range(len(m)):
            if m[t]:
                last = t
        rows.append(h[last])
    return torch.stack(rows)


@right("last_token")
def last_gather(hidden, mask):
    index = (mask.long().sum(1) - 1)[:, None, None].expand(-1, 1, hidden.shape[-1])
    return hidden.gather(1, index).squeeze(1)


@right("last_token")
def last_one_hot(hidden, mask):
    following = torch.cat([mask[:, 1:], torch.zeros_like(mask[:, :1])], 1)
    return torch.einsum("bt,btd->bd", (mask & ~following).double(), hidden.double())


@right("last_token")
def last_argmax(hidden, mask):
    place = (mask * torch.arange(1, mask.shape[1] + 1)).argmax(1)
    return hidden[range(len(place)), place.tolist()]


@right("last_token")
def last_selected(hidden, mask):
    return torch.stack([h[m][-1] for h, m in zip(hidden, mask, strict=True)])


@wrong("last_token", "last-place")
def last_minus_one(hidden, mask):
    return hidden[:, -1, :]


@wrong("last_token", "one-too-far")
def last_length(hidden, mask):
    lengths = mask.sum(1).clamp(max=mask.shape[1] - 1)
    return hidden[torch.arange(hidden.shape[0]), lengths]


@wrong("last_token", "first-token")
def last_argmax_of_mask(hidden, mask):
    return hidden[torch.arange(len(hidden)), mask.int().argmax(dim=1)]


@wrong("last_token", "padding-zeroed")
def last_zeroed(hidden, mask):
    return (hidden * mask.unsqueeze(-1))[:, -1]


@wrong("last_token", "one-length-for-all")
def last_longest(hidden, mask):
    return hidden[:, mask.sum(1).max() - 1]


@wrong("last_token", "mean")
def last_mean(hidden, mask):
    return (hidden * mask[..., None]).sum(1) / mask.sum(1)[:, None]


@wrong("last_token", "every-length-for-every-row")
def last_square(hidden, mask):
    return hidden[:, mask.sum(1) - 1]


@wrong("last_token", "axis-kept")
def last_kept(hidden, mask):
    index = (mask.long().sum(1) - 1)[:, None, None].expand(-1, 1, hidden.shape[-1])
    return hidden.gather(1, index)


@wrong("last_token", "batch-taken-for-tokens")
def last_of_batch(hidden, mask):
    return hidden[-1]


@wrong("last_token", "one-too-early")
def last_but_one(hidden, mask):
    return torch.stack([h[max(int(m.sum()) - 2, 0)] for h, m in zip(hidden, mask, strict=True)])


@wrong("last_token", "error")
def last_out_of_range(hidden, mask):
    return torch.stack([h[int(m.sum())] for h, m in zip(hidden, mask, strict=True)]).index(0)
