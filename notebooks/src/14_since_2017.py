# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 14 · Since 2017
#
# **What changed?**
#
# After this lesson you can
#
# 1. say what RMSNorm, SwiGLU and grouped queries replaced (*Further:* and write them);
# 2. compute how much memory grouped queries save in a KV cache;
# 3. compare changes of a model fairly: equal parameters, each with a tuned learning rate, paired over seeds, and with intervals that allow for many comparisons;
# 4. write a block of today in 25 lines, equal to the package (*Further*);
# 5. share a budget of training between the size of a model and the text that it reads (*Further*).
#
# *You need:* lessons [03](03_positions.ipynb) (rotary positions), [05](05_the_block.ipynb) (the block), [09](09_transfer.ipynb) (paired intervals) and [11](11_translation.ipynb) (KV cache).
# *It takes:* an hour and a half to read and do; a minute to run on two cores.

# %% [markdown]
# ## Set-up
#
# What takes minutes was measured by `python -m experiments since-2017` and `scaling`.

# %%
import math  # noqa: F401 - an exercise may need it

import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots, results
from tinytx_run.intervals import paired_interval

# %%
course.recall("14")

# %% [markdown]
# ## Why: what is new, and what does it bring?
#
# The plan of the block is that of 2017; nearly all of its parts have changed. On the right a block as in Llama 3 (Grattafiori et al., [arXiv:2407.21783](https://arxiv.org/abs/2407.21783), section 3.2).

# %%
plots.diagram("old-and-new-block")

# %% [markdown]
# | change | 2017 | today | it is said to |
# |---|---|---|---|
# | pre-norm | norm after each sublayer | before it | keep deep models stable |
# | RMSNorm | layer norm | no mean subtracted | cost less time |
# | SwiGLU | ReLU | two projections multiplied | lower the loss |
# | rotary | positions added | queries and keys turned | lower the loss; only distances count |
# | grouped queries | keys for each head | keys shared | save memory in generation |
# | tied embeddings | two matrices in our model | one | save parameters |
# | no biases | $xW + b$ | $xW$ | be simpler |
# | Muon | Adam | steps of about one length in all directions | lower the loss sooner |
#
# ### The tempting wrong way
#
# Exchange one part, train both models once, and compare. But some changes bring parameters or take them away. So we widen or narrow the feed-forward network until the totals agree: **equal parameters**.

# %% tags=["nbval-check-output"]
old = tx.TransformerConfig(
    vocab_size=600, d_model=64, n_heads=4, n_layers=2, d_ff=256, max_len=128,
    norm="last", norm_kind="layer", activation="relu", positions="sinusoidal",
    bias=True,
)
SWAPS = {
    "pre-norm": {"norm": "first"},
    "RMSNorm": {"norm_kind": "rms"},
    "SwiGLU": {"activation": "swiglu"},
    "rotary": {"positions": "rotary"},
    "grouped queries": {"n_kv_heads": 2},
    "tied embeddings": {"tie_embeddings": True},
    "no biases": {"bias": False},
}
n_old = tx.parameter_table(old).total
for name, changes in SWAPS.items():
    added = tx.parameter_table(old.replace(**changes)).total - n_old
    print(f"{name:<16}{added / n_old:+7.1%}")

# %% [markdown]
# ## Measured: each change alone
#
# The data are reviews of our world, with their exact entropy bound. All variants take 300 steps, with AdamW except for Muon. The learning rate of each was tuned on the valid split. **Predict 14.1.**

# %%
course.predict(
    "14.1",
    "Which single change comes closest to the bound, each at its best rate?",
    ["pre-norm", "RMSNorm", "SwiGLU", "rotary", "grouped queries", "tied embeddings",
     "no biases", "Muon"],
)

# %%
stored = results.read_results("since-2017")
assert all(abs(run["n_params"] / n_old - 1) < 0.002 for run in stored.data.values())
tuned, above = {}, {}  # variant: {rate, or seed: nats per token above the bound}
for record in stored.data.values():
    name, loss = record["variant"], record["above"]
    if record["measure"] == "valid":
        tuned.setdefault(name, {})[record["lr"]] = loss
    elif record["measure"] == "test":
        above.setdefault(name, {})[record["seed"]] = loss
best = {name: min(tried, key=tried.get) for name, tried in tuned.items()}
assert all(min(tuned[name]) < lr < max(tuned[name]) for name, lr in best.items())
single = [*SWAPS, "Muon"]
closest = {name: tuned[name][best[name]] for name in ("2017", *single)}
lowest = min(single, key=closest.get)
course.resolve("14.1", lowest, f"{lowest}: {closest[lowest]:.3f} nats (one seed).")

# %% [markdown]
# From here on results are those of *other* seeds on the test split, and each difference from 2017 is **paired** by seed. Where there is no difference a 95 % interval misses zero once in twenty times, and we make ten comparisons: eight changes, and two of all together, below. **Bonferroni's correction**: each may miss with a probability of 0.05/10 only, so all ten hold *together* with at least 95 %. **Predict 14.2.**

# %%
course.predict(
    "14.2",
    "For how many of the eight single changes does the wide interval lie below zero?",
    ["none or one", "2 to 4", "5 to 8"],
)

# %%
names = [*single, "all together", "all but the tie"]


def differences(name):
    return [above[name][seed] - above["2017"][seed] for seed in sorted(above["2017"])]


together = {
    name: paired_interval(differences(name), n_comparisons=len(names))
    for name in above
    if name != "2017"
}
better = [name for name in single if together[name].high < 0]
worse = [name for name in single if together[name].low > 0]
assert len(above["2017"]) == 5
assert better == ["SwiGLU", "rotary", "Muon"] and worse == ["tied embeddings"]
assert min(single, key=lambda name: together[name].mean) == "rotary"
fig, ax = plots.bars(
    {name: together[name].mean for name in single},
    intervals={name: (together[name].low, together[name].high) for name in single},
    references={"2017": 0.0}, numbers="+.3f",
    xlabel="nats per token, difference from 2017 (below zero is better)",
)
plots.show(fig, name="14_swaps")
course.resolve("14.2", "2 to 4", f"{len(better)} wide intervals lie below zero.")

# %% [markdown]
# **Finding:** the intervals of SwiGLU, rotary positions and Muon lie below zero, that of the tie above. An interval that contains zero means "no difference that we can see": for RMSNorm, no biases and grouped queries a gain as large as that of SwiGLU is not excluded.
#
# ## The norm: RMSNorm
#
# Layer norm subtracts the mean of a token's $D$ numbers and divides by their standard deviation. **RMSNorm** (Zhang and Sennrich, [arXiv:1910.07467](https://arxiv.org/abs/1910.07467)) only divides, by the root of the mean square, and has a factor $\gamma$ but no shift:
#
# $$\text{RMSNorm}(x) = \gamma \cdot \frac{x}{\sqrt{m + \varepsilon}}, \qquad m = \tfrac1D \sum_i x_i^2 .$$
#
# The token (1, −1, 5, 1) has the squares 1, 1, 25, 1 with the mean 7, so it is divided by $\sqrt 7 \approx 2.65$.

# %% tags=["nbval-check-output"]
def norm_by_rms(x, gamma, eps=1e-5):
    mean_square = x.square().mean(dim=-1, keepdim=True)  # (..., 1)
    return gamma * x / (mean_square + eps).sqrt()


token = torch.tensor([1.0, -1.0, 5.0, 1.0])
print(norm_by_rms(token, torch.ones(4)))
_ = torch.manual_seed(0)
x, gamma = torch.randn(2, 5, 64), torch.randn(64)  # (B, T, D), (D,)
torch.testing.assert_close(norm_by_rms(x, gamma), F.rms_norm(x, (64,), gamma, 1e-5))

# %% [markdown]
# **Finding:** each RMSNorm has $D$ parameters fewer, and we see no difference.
#
# ## The feed-forward network: SwiGLU
#
# The network of 2017 has one projection into $F$ numbers: $\max(0, x W_{\text{up}})\, W_{\text{down}}$. A **gated** network multiplies two, number by number. One of them, the gate, goes through an activation. With **SiLU**, $\text{silu}(h) = h\, \sigma(h)$ where $\sigma(h) = 1 / (1 + e^{-h})$, it is called **SwiGLU** (Shazeer, [arXiv:2002.05202](https://arxiv.org/abs/2002.05202)):
#
# $$\text{ff}(x) = \bigl(\text{silu}(x W_{\text{gate}}) \odot x W_{\text{up}}\bigr)\, W_{\text{down}} .$$
#
# Three matrices in place of two: with two thirds of $F$ it has as many parameters. (The block at the end of the lesson has it in code.)
#
# **Finding:** at equal parameters SwiGLU comes closer to the bound.
#
# ## Positions: rotary
#
# Nothing is added to the embeddings: queries and keys are turned, so positions enter a score by their *distance* alone ([lesson 03](03_positions.ipynb) has the code; Su et al., [arXiv:2104.09864](https://arxiv.org/abs/2104.09864)).
#
# **Finding:** rotary positions bring the largest gain of the eight, over sinusoidal positions that are added. A model without any was not tried: how much comes from adding nothing is open.
#
# ## Fewer keys and values: grouped-query attention
#
# In 2017 each of the $H$ heads had keys and values of its own, which a model that writes has to store (the KV cache). **Grouped-query attention** (Ainslie et al., [arXiv:2305.13245](https://arxiv.org/abs/2305.13245)) has only $G$ heads of keys and values; $H/G$ neighbouring heads of queries share one. Head $h$ reads head $\lfloor h\,G / H \rfloor$. With $G = 1$ it is **multi-query attention** (Shazeer, [arXiv:1911.02150](https://arxiv.org/abs/1911.02150)).
#
# The cache holds a key and a value of $K$ numbers for each of $T$ tokens and $G$ heads, in each of $L$ layers: $2 \cdot L \cdot G \cdot K \cdot T$ numbers. Llama 3 with 8 billion parameters has 32 layers, 32 heads of queries, $K = 128$, and numbers of 2 bytes (Grattafiori et al., table 3). **Predict 14.3.**

# %%
course.predict(
    "14.3",
    "How large is the cache of 8,192 tokens if each head has its own keys and values?",
    ["about 40 MB", "about 400 MB", "about 4 GB", "about 40 GB"],
)

# %%
sizes = {G: 2 * 32 * G * 128 * 8192 * 2 / 1e9 for G in (32, 8, 1)}  # 2 · L · G · K · T
finding = f"{sizes[32]:.1f} GB; with 8 heads, as published, {sizes[8]:.1f} GB."
course.resolve("14.3", "about 4 GB", finding)

# %% [markdown]
# **Finding:** with half the keys and values the cache is half as large, and at equal parameters we see no difference.
#
# ## Further: the norm's place, biases, the tie
#
# **Pre-norm** ([lesson 05](05_the_block.ipynb)): $x + f(\text{norm}(x))$ in place of $\text{norm}(x + f(x))$, and one norm at the end (Xiong et al., [arXiv:2002.04745](https://arxiv.org/abs/2002.04745)). **No biases**: $xW$ in place of $xW + b$. **Tied embeddings**: the output layer uses the embedding matrix (Press and Wolf, [arXiv:1608.05859](https://arxiv.org/abs/1608.05859)). The paper of 2017 tied them already; our model of 2017 does not, so the tie can be measured.
#
# **Finding:** pre-norm and no biases make no difference that we can see; the tie costs more here, on average, than SwiGLU or Muon gains.
#
# ### A result that was too large
#
# The first time we ran this comparison, the tie cost many times as much. The cause was the **initialisation**: the package started tied embeddings at a quarter of the size of others. The same variant with three starts, each at its own best rate:

# %%
import pandas as pd

starts = {"0.25": "tied embeddings, start 0.25", "0.5": "tied embeddings, start 0.5"}
small, full = together[starts["0.25"]], together["tied embeddings"]
assert small.mean > 4 * full.mean and small.low > full.high
assert small.mean > max(abs(together[name].mean) for name in single)
gained = max(-together[name].mean for name in ("SwiGLU", "Muon"))
assert full.mean > gained
unseen = ("RMSNorm", "no biases", "grouped queries")
assert all(together[name].low < together["SwiGLU"].mean for name in unseen)
shown = [*starts.values(), "tied embeddings"]
rows = {n: [together[n].mean, together[n].low, together[n].high] for n in shown}
pd.DataFrame(rows, ["nats", "from", "to"]).T.map("{:+.3f}".format)

# %% [markdown]
# A large difference asks for one more question before it is believed: what else has changed?
#
# ## All together
#
# The tie, one matrix for the embedding and the output layer, does harm after 300 steps. All changes together were measured with it and, once this was known, without it. **Predict 14.4.**

# %%
course.predict(
    "14.4",
    "All changes but the tie at once: is the gain the sum of those that were seen?",
    ["less than the sum", "about the sum (within a tenth)", "more than the sum"],
)

# %% tags=["folded"]
gain = -together["all but the tie"].mean
added = -sum(together[name].mean for name in better)
assert together["all together"].high < 0
columns = [differences(name) for name in ("all but the tie", *better)]
by_seed = zip(*columns, strict=True)
surplus = paired_interval(sum(seen) - whole for whole, *seen in by_seed)
assert surplus.high < -0.1 * added
rotary, beyond = above["rotary"], {}
for name in ("all together", "all but the tie"):
    more = beyond[name] = paired_interval(above[name][i] - rotary[i] for i in rotary)
    print(f"{name} - rotary {more.mean:+.3f} [{more.low:+.3f}, {more.high:+.3f}] nats")
assert beyond["all but the tie"].high < 0 < beyond["all together"].high
course.resolve(
    "14.4", surplus.mean,
    f"Together {gain:.3f} nats; {', '.join(better)} add up to {added:.3f}. The "
    f"difference: 95 % from {surplus.low:+.3f} to {surplus.high:+.3f}.",
    between=(surplus.low, surplus.high), thresholds=(-0.1 * added, 0.1 * added),
)

# %% [markdown]
# **Finding:** after these 300 steps the changes together gain less than the sum of the three that we saw. The eight together are not shown to be better than rotary positions alone; without the tie they are a little ahead after these steps. (These intervals came afterwards, and do not allow for the other ten.)
#
# ### Further: after twice the steps
#
# 300 steps are few. `python -m experiments doubt since-2017` has trained all variants again for 600 steps, each at its best rate for these, with five other seeds:

# %%
longer, after = {}, {}  # variant: {seed: nats per token above the bound}, difference
for record in results.read_results("doubt-since-2017").data.values():
    if record["measure"] == "test":
        longer.setdefault(record["variant"], {})[record["seed"]] = record["above"]
print(f"{'minus 2017, nats':<27}300 steps  600 steps")
gaps = {}
for name in (*names, *starts.values()):
    gaps[name] = [longer[name][i] - nats for i, nats in longer["2017"].items()]
    gap = after[name] = paired_interval(gaps[name], n_comparisons=len(names))
    print(f"{name:<27}{together[name].mean:+9.3f}{gap.mean:+11.3f}", end="  ")
    print(f"[{gap.low:+.3f}, {gap.high:+.3f}]")
whole = longer["all but the tie"]
gap = paired_interval(whole[seed] - nats for seed, nats in longer["rotary"].items())
print(f"all but the tie - rotary {gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]")
assert gap.low < 0 < gap.high
by_seed = zip(*(gaps[name] for name in ("all but the tie", *better)), strict=True)
gap = paired_interval(sum(seen) - whole for whole, *seen in by_seed)
print(f"its gain - the sum       {gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]")
assert gap.low < 0 < gap.high and len(whole) == 5
assert min(single, key=lambda name: after[name].mean) == "rotary"
assert all(abs(after[name].mean) < abs(together[name].mean) for name in better + worse)
quarter, half = (after[name] for name in starts.values())
assert quarter.mean < together[starts["0.25"]].mean / 6
assert half.low < 0 < half.high and after["tied embeddings"].low > 0 > quarter.low

# %% [markdown]
# Rotary positions are still first. But each difference that we saw is smaller after twice the steps, and it is open whether all but the tie brings more than rotary positions alone, or less than the sum of the parts: part of what 300 steps rank is how *fast* a change learns, not how far it gets. And the tie, started at half of the size, shows no harm any more; at a quarter that is open: what was measured is the tie *with its start* and its steps.
#
# ## Further: the optimizer Muon
#
# Adam divides each *number* of a gradient by its usual size. But a gradient $M = U \Sigma V^\top$ is a matrix with directions, the singular vectors, and most of its length lies in a few of them. **Muon** (Jordan et al., *Muon: an optimizer for hidden layers in neural networks*, 2024; for its length Liu et al., [arXiv:2502.16982](https://arxiv.org/abs/2502.16982)) gives all directions about the same length, $U V^\top$, by five rounds of a polynomial in matrix products (Newton-Schulz):
#
# $$X \leftarrow a X + \bigl(b\, X X^\top + c\, (X X^\top)^2\bigr) X, \qquad a = 3.4445,\; b = -4.7750,\; c = 2.0315 .$$
#
# It leaves $U$ and $V$ as they are, and brings each singular value that is not tiny near 1, roughly.

# %%
from tinytx.optim import orthogonalised


def with_equal_lengths(matrix):
    x = matrix / matrix.norm()
    for _ in range(5):
        square = x @ x.T  # (M, M)
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x


_ = torch.manual_seed(0)
model, token_ids = tx.LanguageModel(old).double(), torch.randint(600, (32, 41))
model.loss(token_ids[:, :-1], token_ids[:, 1:]).backward()
gradient = model.body.blocks[0].ff.down_proj.weight.grad  # (D, F)
update = with_equal_lengths(gradient)
torch.testing.assert_close(update, orthogonalised(gradient), rtol=1e-4, atol=1e-5)
u, _, vt = torch.linalg.svd(gradient, full_matrices=False)
along = u.T @ update @ vt.T  # diagonal: the same singular vectors
torch.testing.assert_close(along, along.diagonal().diag(), rtol=0.0, atol=1e-6)
lengths = along.diagonal()[:-1]  # without the last one, which is 0 before and after
assert lengths.min() > 0.6 and lengths.max() < 1.2
print(f"Muon: singular values from {lengths.min():.2f} to {lengths.max():.2f}")

# %% [markdown]
# Muon gives all directions but the last one about the same length. Embeddings, output layer, norms and biases are left to AdamW. **Finding:** in as many steps Muon comes closer to the bound.
#
# ## Further: which tricks of a race survive?
#
# `python -m benchmarks race --racer tinytx+NAME --steps 600` adds one to our own racer (Muon, rotary positions, *tinyshakespeare* by characters). *Bigrams*: an embedding for each pair of characters. *Smear*: a share of the embedding before is added. *Gates*: one a head. *First values* are mixed into later layers. Windows *grow*, the last weights are *averaged*, weight decay is *scheduled*, or *cautious*: only where the update shrinks a number, too. All keep the racer's rates, and parameters are not evened. Differences in nats a character over ten seeds, widened for nine comparisons:

# %%
raced = {}  # (how long, tricks): {seed: nats a character}
for key, record in results.read_results("race").data.items():
    if record["kind"] == "race" and "batches" not in key:  # of today's recipe
        run = key.split("/")[1], record["racer"].partition(" + ")[2]
        raced.setdefault(run, {})[record["seed"]] = record["side by side"]


def apart(long, tricks, others=""):  # seed by seed
    ours, theirs = raced[long, tricks], raced[long, others]
    return [ours[seed] - theirs[seed] for seed in sorted(ours)]


tricks = [name for long, name in raced if long == "600 steps"]
alone = [name for name in tricks if name and " + " not in name]
gains = {
    name: paired_interval(apart("600 steps", name), n_comparisons=9) for name in alone
}
for name in sorted(gains, key=lambda name: gains[name].mean):
    gain = gains[name]
    assert gain.n == 10
    print(f"{name:<16}{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]")
ahead = [name for name in gains if gains[name].high < 0]
behind = [name for name in gains if gains[name].low > 0]
assert (sorted(ahead), behind) == (["bigrams", "smear"], ["averaged"])

# %% [markdown]
# Two are ahead. After twice the steps (two seeds), both at once (minus the smear), and by the clock?

# %%
for name, other in (("smear", ""), ("bigrams", ""), ("smear + bigrams", "smear")):
    gaps = (f"{gap:+.3f}" for gap in apart("1200 steps", name, other))
    print(f"{name}, 1,200 steps:", *gaps)
both = paired_interval(apart("600 steps", "smear + bigrams", "smear"))
clock = paired_interval(apart("180 s", "smear"))
for what, gain in {"both minus smear, 600 steps": both, "smear, 180 s": clock}.items():
    print(f"{what}: {gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]")
smear, bigrams = apart("1200 steps", "smear"), apart("1200 steps", "bigrams")
assert max(smear) < -0.01 < -0.005 < min(bigrams) and clock.high < 0 < both.low

# %% [markdown]
# **Finding:** of the two that were ahead after 600 steps one still is after 1,200, the smear; the bigrams' lead is gone (two seeds), and next to the smear they do harm. Averaging costs a little. For the other six, ten seeds show no difference at rates that were not tuned for them; none of these seven was run longer. By the clock, in 180 seconds, the smear is ahead in six seeds too.
#
# ## Further: a mixture of experts
#
# The feed-forward networks hold most of a large model's parameters, and each token uses all of them. A **mixture of experts** has $E$ networks and a **router**, a linear layer with one score an expert. Each token goes to the few with the best scores, and their outputs are added, weighted by the softmax of all scores (Fedus et al., [arXiv:2101.03961](https://arxiv.org/abs/2101.03961), with one expert a token):
#
# $$p = \text{softmax}(x W_{\text{router}}), \qquad \text{out} = \sum_{e\, \in\, \text{top}(p)} p_e\, \text{ff}_e(x) .$$
#
# So the model has $E$ times the parameters in its networks, but a token pays only for those it goes through.

# %% tags=["nbval-check-output"]
from tinytx.transformer import MixtureOfExperts


def mixture(x, router, experts, n_chosen):
    out = torch.zeros_like(x)
    for token in range(len(x)):  # x: (N, D)
        p = (router @ x[token]).softmax(dim=-1)  # (E,)
        for e in p.topk(n_chosen).indices:
            out[token] += p[e] * experts[e](x[token])
    return out


config = old.replace(norm="first", n_experts=4, experts_per_token=2)
layer = MixtureOfExperts(config)
some = torch.randn(9, 64)
mine = mixture(some, layer.router.weight, layer.experts, n_chosen=2)
torch.testing.assert_close(mine, layer(some))
dense = old.replace(norm="first")
for name, each in {"one network": dense, "4 experts, 2 a token": config}.items():
    flops = tx.cost_table(each, batch_size=1, seq_len=64).flops_forward / 64
    n_params = tx.parameter_table(each).total
    print(f"{name:<21}{n_params:>8,} parameters, {flops:>8,.0f} FLOPs a token")

# %% [markdown]
# ## Further: a scaling law with a known bound
#
# A **scaling law** says how the loss falls with the number of parameters $N$ and of tokens read, here $D$. The usual form (Hoffmann et al., [arXiv:2203.15556](https://arxiv.org/abs/2203.15556), equation 2) is
#
# $$L(N, D) = E + \frac{A}{N^{a}} + \frac{B}{D^{b}} .$$
#
# $E$ is the entropy of the language, which no model beats on average. For real text nobody knows it: it is *fitted*, with the other four. Here we know it, and subtract it.
#
# The learning rate of each width was tuned in runs of 250 steps only; for the three smaller ones the best was the largest that was tried, which may favour the largest size.

# %%
import numpy as np

scaling = results.read_results("scaling")
runs = [record for record in scaling.data.values() if record["measure"] == "test"]
excess = {}  # (N, D): losses above the bound, one a seed
multiplied = {}  # N: those of them that take part in products
for run in runs:
    size = (run["n_params"], run["n_tokens"])
    excess.setdefault(size, []).append(run["loss"] - run["bound"])
    tables = run["n_params"] - run["n_non_embedding"]  # half of it only looks ids up
    multiplied[run["n_params"]] = run["n_params"] - tables / 2
counts, amounts = (sorted({size[i] for size in excess}) for i in (0, 1))
tuning = [one for one in scaling.data.values() if one["measure"] == "valid"]
assert {one["n_steps"] for one in tuning} == {250}
print(f"{len(runs)} runs, {len(counts)} sizes, {len(amounts)} amounts of text")


# %%
def line(name, axis, fixed):
    sizes = [size for size in sorted(excess) if size[1 - axis] == fixed]
    points = {size[axis]: excess[size] for size in sizes}
    ends = ([f(losses) for losses in points.values()] for f in (np.mean, min, max))
    return plots.Curve(name, list(points), *ends)


by_tokens = [line(f"{n / 1000:.0f} k parameters", 1, n) for n in counts]
by_size = [line(f"{d / 1000:,.0f} k tokens", 0, d) for d in amounts]
fig, axes = plots.figure(1, 2, width=12.0, height=4.2)
named = {"thousand tokens read": by_tokens, "thousand parameters": by_size}
for panel, (xlabel, lines) in zip(axes, named.items(), strict=True):
    plots.curves(
        lines, x_log=True, y_log=True, xlabel=f"{xlabel} (log scale)",
        ylabel="nats per token above the bound (log scale)", ax=panel,
    )
    panel.set_xticks(lines[0].x, [f"{x / 1000:,.0f}" for x in lines[0].x])
    panel.set_xticks([], minor=True)
plots.show(fig, name="14_scaling")

# %% [markdown]
# Where a line on the left flattens, more text helps less and less: the term $A / N^a$ describes this. Here a rate not tuned for long runs may add to it.
#
# Such runs help to **share a budget**. Training takes about $C = 6 N D$ operations, where $N$ leaves out the embedding, which only looks ids up. Which size is best for a given $C$? The stored runs form rows of similar $C$ (within a factor of 2): a small model that reads much, or a large one that reads little.

# %%
budgets = {}  # a row of similar C: (N, D, excess)
for (n, d), losses in excess.items():
    row = counts.index(n) + amounts.index(d)
    budgets.setdefault(row, []).append((n, d, np.mean(losses)))
winners, largest = [], []
for row in sorted(budgets):
    runs_of = sorted(budgets[row])
    if len(runs_of) > 1:
        products = [multiplied[n] * d for n, d, _ in runs_of]
        C = 6 * np.mean(products)
        assert max(products) < 2 * min(products)
        winners.append(min(runs_of, key=lambda run: run[2])[0])
        largest.append(runs_of[-1][0])
        shown = "  ".join(f"{n / 1000:.0f} k: {above:.3f}" for n, _, above in runs_of)
        print(f"C = {C:.0e}   {shown}   best: {winners[-1] / 1000:.0f} k parameters")
assert winners == sorted(winners) and winners[0] < winners[-1]
n_at_top = sum(best == top for best, top in zip(winners, largest, strict=True))
assert n_at_top > len(winners) / 2

# %% [markdown]
# In most rows the largest size that was tried is the best, and it has paid for up to twice the operations. So these runs, with one seed each, cannot show how the best size grows with the budget, as "Chinchilla" did (Hoffmann et al., section 3): parameters and text together.
#
# ## What this does not show
#
# - One small size, one small language, 300 steps. Changes made for deep models or long texts can matter there and not here.
# - Only learning rates were tuned. Equal parameters are not equal time, which we did not measure.
# - What comes after pretraining is left out: instruction tuning, and learning from preferences (Ouyang et al., [arXiv:2203.02155](https://arxiv.org/abs/2203.02155)).
#
# ## Take-home
#
# | change | what it saves | what we saw, at equal parameters |
# |---|---|---|
# | RMSNorm, no biases, pre-norm | few parameters or none | no difference seen |
# | SwiGLU | nothing | a gain in equal steps |
# | Muon | half of Adam's memory, for matrices | a gain in equal steps |
# | rotary positions | nothing | the largest gain |
# | grouped queries | memory of the KV cache | no difference seen |
# | tied embeddings | the output matrix | harm, which depends on the start and the steps |

# %% [markdown]
# ## Further: the block of today in 25 lines
#
# RMSNorm before each sublayer, rotary positions, grouped queries, SwiGLU, and not one bias.


# %%
class ModernBlock(nn.Module):
    def __init__(self, d_model=64, n_heads=4, n_kv_heads=2, d_ff=170):
        super().__init__()
        self.head_dim = d_model // n_heads  # K
        kv_width = n_kv_heads * self.head_dim
        self.attn_norm, self.ff_norm = (nn.RMSNorm(d_model, eps=1e-5) for _ in range(2))
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, kv_width, bias=False)
        self.v_proj = nn.Linear(d_model, kv_width, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)
        self.gate_proj = nn.Linear(d_model, d_ff, bias=False)
        self.up_proj = nn.Linear(d_model, d_ff, bias=False)
        self.down_proj = nn.Linear(d_ff, d_model, bias=False)

    def heads(self, x):
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)  # (B, H or G, T, K)

    def forward(self, x):
        read = self.attn_norm(x)  # (B, T, D)
        q, k = (tx.rotate(self.heads(p(read))) for p in (self.q_proj, self.k_proj))
        v = self.heads(self.v_proj(read))  # (B, G, T, K)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out_proj(out.transpose(1, 2).flatten(2))
        x_norm = self.ff_norm(x)
        return x + self.down_proj(F.silu(self.gate_proj(x_norm)) * self.up_proj(x_norm))


# %% [markdown]
# The same block from the package's settings, with our weights: equal outputs.

# %% tags=["nbval-check-output"]
from tinytx.transformer import Block

settings = {name: value for swap in SWAPS.values() for name, value in swap.items()}
modern = old.replace(**settings, d_ff=170)
mine, theirs = ModernBlock(), Block(modern)
weights = {
    name.removeprefix("attn.").removeprefix("ff."): weight
    for name, weight in theirs.state_dict().items()
}
mine.load_state_dict(weights)
x = torch.randn(2, 7, 64)  # (B, T, D)
torch.testing.assert_close(mine(x), theirs(x, tx.causal_mask(7)))
print(f"{tx.count_parameters(mine):,} parameters, equal outputs")

# %% [markdown]
# ## Questions

# %%
course.quiz("since_2017")

# %% [markdown]
# ## Exercises
#
# [exercise: windowed_cache]


# %%
def windowed_cache(n_layers, n_full, n_kv_heads, head_dim, n_tokens, window):
    ...


# %%
course.check("windowed_cache", windowed_cache)

# %% [markdown]
# ## Further: two more exercises
#
# [exercise: rms_norm]


# %%
def rms_norm(x, gamma, eps):
    ...


# %%
course.check("rms_norm", rms_norm)

# %% [markdown]
# [exercise: grouped_query_attention]


# %%
def grouped_query_attention(q, k, v, mask):
    ...


# %%
course.check("grouped_query_attention", grouped_query_attention)

# %% [markdown]
# ## Summary
#
# 1. RMSNorm divides by the root mean square and leaves the mean in. SwiGLU multiplies two projections, one through SiLU. In grouped-query attention neighbouring heads of queries share keys and values.
# 2. The KV cache has $2 L G K T$ numbers a text: with a quarter of the heads a quarter of the size.
# 3. Fair: equal parameters, a tuned rate for each, pairs of seeds, wider intervals for many comparisons. After 300 steps the whole gain is less than the sum of the parts, after 600 that is open; nor are the eight shown to be better than rotary positions alone.
# 4. The plan of the block is that of 2017. Norms, positions, heads and activation have changed.
# 5. *Further:* a law of size needs runs on both sides of the best size; ours mostly end there.
#
# *Reference:* a comparison of many changes that found few to transfer: Narang et al., [arXiv:2102.11972](https://arxiv.org/abs/2102.11972).
#
# *What comes next:* [lesson 15](15_real_text.ipynb) leaves the world whose bound is known.
