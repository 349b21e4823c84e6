# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 02 · Attention and masks
#
# **Who may attend to whom?**
#
# A translator's **encoder** reads the source, its **decoder** writes the target. Words attend within each, and from the decoder to the encoder. Each place has its own rule: a table of True and False, a **mask**.
#
# After this lesson you can
#
# 1. compute attention of one sequence over another, by hand and as matrices;
# 2. say why scores are divided by $\sqrt{d}$;
# 3. build causal and padding masks, combine them, and recognise wrong ones by their symptoms;
# 4. test any model for leaks: change one input, and see which outputs move.
#
# *You need:* lesson 00, above all softmax.
# *It takes:* three quarters of an hour, about twice that with everything.

# %% [markdown]
# ## Set-up

# %%
import math

import ipywidgets
import matplotlib.pyplot as plt
import seaborn as sns
import torch
import torch.nn.functional as F

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_course.labs import lesson_02

torch.set_num_threads(1)
_ = torch.manual_seed(0)

# %% [markdown]
# Two earlier questions.

# %%
course.recall("02")

# %% [markdown]
# ## Why: the dice that could be predicted
#
# We train two small language models on rolls of a fair die. Shapes are (B, T): B texts at once, a **batch**, of T positions. The target at each position is the next roll, or `-100` where there is none.
#
# With `causal=True` a position may attend to itself and to earlier positions, with `causal=False` to all. The **loss** is the mean of $-\ln p$, where $p$ is the probability of the right answer, in **nats** (lesson 08 shows the loop). Who does not see the next roll of a fair die cannot expect less than $\ln 6$.


# %%
def dice_game():
    rolls = torch.randint(6, (64, 12))  # (B, T)
    return rolls, F.pad(rolls[:, 1:], (0, 1), value=-100)  # the roll after each roll


dice = tx.TransformerConfig(vocab_size=6, d_model=32, n_heads=1, n_layers=1, d_ff=64)
with plots.style():
    fig, ax = plt.subplots()
for causal in (True, False):
    torch.manual_seed(1)
    player = tx.LanguageModel(dice.replace(causal=causal))
    losses = lesson_02.train(player, dice_game, n_steps=150)
    ax.plot(losses, label=f"causal={causal}")
assert losses[-1] < 0.5  # of the one that sees everything
ax.axhline(math.log(6), color="0.3", linestyle="--", label="ln 6 = 1.79")
ax.set(xlabel="training step", ylabel="loss (nats per roll)")
ax.legend()
plots.show(fig, name="02_predicting_dice")
plt.close(fig)

# %% [markdown]
# **Predict 02.1.** We show eight of nine rolls and ask for the ninth, *which no model can see*.

# %%
course.predict(
    "02.1", "How often is the model with the lower loss right about the ninth roll?",
    ["nearly always", "about half of the time", "about one time in six"],
)

# %%
rolls = torch.randint(6, (3000, 9))
guesses = player(rolls[:, :8])[:, -1].argmax(dim=-1)  # (B,) of the last one trained
right = (guesses == rolls[:, 8]).float().mean().item()
assert abs(right - 1 / 6) < 0.04
course.resolve("02.1", "about one time in six", f"Right in {right:.1%} of the cases.")

# %% [markdown]
# In training the answer stood in the input, one position to the right, and this model learned to copy it. It lacked a rule: *who may attend to whom*.
#
# ## By hand: two words ask three
#
# Each word that asks has a **query**: $d$ numbers for what it looks for. Each word that may be
# attended to has a **key**, to be found by, and a **value**, to hand over.

# %%
queries = torch.tensor([[2.0, 0, 2, 0], [0, 1, 0, 2]])  # T = 2: she, sings
keys = torch.tensor([[1.0, 0, 1, 0], [0, 2, 0, 1], [1, 1, 0, 0]])  # elle, chante, bien
values = torch.tensor([10.0, 20, 40])  # of the same S = 3 words

# %% [markdown]
# *She* and _elle_: $2 \cdot 1 + 2 \cdot 1 = 4$, divided by $\sqrt{4}$ gives a **score** of 2. The scores of *she* are 2, 0 and 1.
# Softmax makes **attention weights** of them; the mean of the values by these weights is the **context**.

# %% tags=["nbval-check-output"]
def by_hand(divisor=2.0):
    for word, query in zip(("she", "sings"), queries, strict=True):
        weights = torch.stack([query @ key / divisor for key in keys]).softmax(dim=0)
        context = sum(w * value for w, value in zip(weights, values, strict=True))
        print(f"{word:<5} {weights}, context {context:.2f}")


by_hand()

# %% [markdown]
# *She* attends most to _elle_.
#
# Why divide by $\sqrt{d}$? A dot product is a sum of $d$ products. If these are independent, with mean 0 and variance 1, its standard deviation is $\sqrt{d}$. Scores that lie far apart give nearly all weight to one key. There softmax is **saturated**: its slope $w (1 - w)$ is near 0, so the weights hardly answer to a change of a score. Try a divisor of 0.4, and others:

# %% tags=["varies"]
_ = ipywidgets.interact(by_hand, divisor=(0.2, 8.0, 0.2))

# %% [markdown]
# ## All at once: attention of y over x
#
# Queries, keys and values are the word vectors times three learned **weight matrices**. The
# sequence $y$ asks, and attends to $x$; each row is a vector.
#
# $$\text{attention}(y, x) = \operatorname{softmax}\left(\frac{Q_y K_x^\top}{\sqrt{d}}\right) V_x$$

# %%
w_q, w_k, w_v = torch.randn(3, 8, 8) / math.sqrt(8)  # learned in a real model


def scores_of(y, x):
    return (y @ w_q) @ (x @ w_k).T / math.sqrt(8)  # (T, D) @ (D, S) -> (T, S)


y, x = torch.randn(2, 8), torch.randn(5, 8)  # random vectors: weights mean nothing yet
q, k, v = y @ w_q, x @ w_k, x @ w_v
context = scores_of(y, x).softmax(dim=-1) @ v  # (T, S) @ (S, D) -> (T, D)
torch.testing.assert_close(context, tx.attention(q, k, v))
torch.testing.assert_close(context, F.scaled_dot_product_attention(q, k, v))
print("matrices, tx.attention and torch agree")

# %% [markdown]
# **Self-attention** is the case $y = x$. With two different sequences it is **cross-attention** (lesson 11).
#
# ## The causal mask
#
# To predict the next token, position $t$ may attend to itself and to its **left**. The **causal mask** is `True` where query $t$, the row, **may** attend to key $s$. To block a key, its score becomes $-\infty$ *before* softmax: as $e^{-\infty} = 0$, its weight is exactly zero. (Adding a table of 0 and $-\infty$ does the same.)

# %% tags=["nbval-check-output"]
words = ["le", "roman", "est", "très", "beau"]  # the novel is very beautiful
position = torch.arange(5)
mask = position[:, None] >= position[None, :]  # (T, S): t down, s across
assert torch.equal(mask, tx.causal_mask(5))


def keep(s, allowed):
    return s.masked_fill(~allowed, -math.inf).softmax(dim=-1)


print(mask.int(), "as in the package")

# %% [markdown]
# ## The leak test
#
# An output that moves with what it must not see is a **leak**. A mask can be tested before any training: **change one input, and see which outputs move.**


# %% tags=["nbval-check-output"]
@torch.no_grad()
def moves(model, inputs):  # (T, S): did output t move when input s was changed?
    before = model(inputs)  # (T, D)
    moved = []
    for s in range(len(inputs)):
        changed = inputs.clone()
        changed[s] += torch.rand(8)
        moved.append((model(changed) != before).any(dim=-1))  # at all
    return torch.stack(moved, dim=1)


moved = moves(lambda x: tx.attention(x @ w_q, x @ w_k, x @ w_v, mask), x)
print("outputs move exactly where the mask allows:", torch.equal(moved, mask))

# %% [markdown]
# ## Break it: ways to get the mask wrong
#
# One of these six is right; none raises an error.

# %%
ones = torch.ones(5, 5)
one_and_inf = ones.masked_fill(~mask, -math.inf)
attempts = {
    "right": lambda s: keep(s, mask),
    "zeroed after softmax": lambda s: s.softmax(dim=-1) * mask,
    "scores times 0": lambda s: (s * mask).softmax(dim=-1),
    "times 1 and -inf": lambda s: (s * one_and_inf).softmax(dim=-1),
    "transposed": lambda s: keep(s, mask.T),
    "one too far": lambda s: keep(s, ones.tril(diagonal=1).bool()),
}

# %% [markdown]
# **Predict 02.2.** NaN means "not a number".

# %%
course.predict(
    "02.2",
    "Which mask leaves no weight on the future, has no NaN, and leaks all the same?",
    ["zeroed after softmax", "scores times 0", "times 1 and -inf", "one too far"],
)

# %%
maps = {name: weights_of(scores_of(x, x)) for name, weights_of in attempts.items()}
leaky = []
for name, weights in maps.items():
    moved = moves(lambda x, f=attempts[name]: f(scores_of(x, x)) @ (x @ w_v), x)
    if moved[~mask].any() and not weights[~mask].any():  # neither weight nor NaN
        leaky.append(name)
(name,) = leaky
course.resolve("02.2", name, "It leaks without any weight on the future.")

# %% [markdown]
# *Zeroed after softmax*: each weight was divided by a sum over *all* words, so it depends on the future. Divide each row by its own sum, and it is right.
#
# *Scores times 0* fails because $e^0 = 1$. *Times 1 and -inf* fails because a negative score times $-\infty$ is $+\infty$; softmax makes NaN of it, red in the maps. *Transposed* opens the future in place of the past, *one too far* the next word as well.

# %% tags=["folded"]
fig, axes = plots.figure(2, 3, width=9.6, height=6.6, sharex=True, sharey=True)
style = {"vmin": 0, "vmax": 1, "cmap": "Blues", "fmt": ".2f", "annot": True}
for panel, (name, weights) in zip(axes.flat, maps.items(), strict=True):
    sns.heatmap(weights, **style, cbar=False, ax=panel)
    panel.stairs(range(len(weights)), baseline=None, color="0.3")  # above: the future
    panel.set(title=name, facecolor="#f2c4b8")  # which shows where a weight is NaN
fig.supxlabel("key (attended to)")
fig.supylabel("query (attends)")
plots.show(fig, name="02_wrong_masks")
repaired = F.normalize(maps["zeroed after softmax"], p=1, dim=-1)  # by the sum of a row
torch.testing.assert_close(repaired, maps["right"])

# %% [markdown]
# ## Padding
#
# Short rows of a batch are filled up with **padding**, a special id to which
# no token may attend. Its mask has one row a *sentence*, and says which *keys* are real. Masks are combined by "and" where every rule must allow a key, by "or" where one is enough.

# %% tags=["nbval-check-output"]
batch = torch.tensor([[11, 12, 13, 14, 15], [21, 22, 23, 0, 0], [31, 0, 0, 0, 0]])
real = batch != 0  # (B, S), True = a real token; 0 is the padding here
assert torch.equal(real, tx.padding_mask(batch, pad_id=0))
both = real[:, None, None, :] & mask  # (B, 1, 1, S) and (T, T) -> (B, 1, T, S)
assert torch.equal(both, tx.combine_masks(real[:, None, None, :], mask))
print("the second sentence, causal and padding:\n", both[1, 0].int())

# %% [markdown]
# The axes of size 1 stand for heads (lesson 04) and queries: weights of a model have shape (B, H, T, S).
#
# ### Two signs for one rule
#
# `F.scaled_dot_product_attention` takes `True` as *may attend*, as we do; `torch.nn.MultiheadAttention` as *blocked*. Given our padding mask, it blocks each real key: NaN for the longest sentence, for the others finite numbers that come from padding. No error.

# %%
three = torch.randn(3, 5, 8)  # (B, T, D)
torchs = torch.nn.MultiheadAttention(8, 1, batch_first=True)
wrong, _ = torchs(three, three, three, key_padding_mask=real)
print("the longest sentence, all NaN:", wrong[0].isnan().all().item())

# %% [markdown]
# ### Draw your own
#
# Combine the causal mask, padding, a **window** (the last few tokens) and a **prefix** (first tokens that all may attend to). Open one cell of the future.

# %%
course.widgets.mask([*words[:4], "<pad>"], padding=1)

# %% [markdown]
# ### Further: three places
#
# A translator uses masks in three places.

# %%
plots.diagram("three-masks")

# %% [markdown]
# ## Further: name the mistake
#
# **Predict 02.3.** A map comes without its code: two words and two paddings, no causal mask, all scores equal, rows are queries. Right would be one half on each word, in every row.
#
# | | word | word | pad | pad |
# |---|---|---|---|---|
# | word | 0.25 | 0.25 | 0.25 | 0.25 |
# | word | 0.25 | 0.25 | 0.25 | 0.25 |
# | pad | NaN | NaN | NaN | NaN |
# | pad | NaN | NaN | NaN | NaN |

# %%
course.predict(
    "02.3", "What went wrong?",
    ["queries masked, not keys", "True and False exchanged", "zeroed after softmax"],
)

# %%
real = torch.tensor([True, True, False, False])
weights = keep(torch.zeros(4, 4), real[:, None])
assert (weights[:2] == 0.25).all() and weights[2:].isnan().all()
course.resolve("02.3", "queries masked, not keys", "The padding blocks rows.")

# %% [markdown]
# ### A query that may see nothing
#
# In such a row softmax computes $0/0$. With a "very negative number" in place of $-\infty$ all keys tie, and everything forbidden is averaged. Here the answer is zeros.

# %% tags=["nbval-check-output"]
nothing = torch.zeros(1, 5, dtype=torch.bool)
for fill in (-math.inf, -1e9):
    weights = scores_of(x, x)[:1].masked_fill(~nothing, fill).softmax(dim=-1)
    print(fill, weights[0])
print("ours", tx.attention_weights(x[:1] @ w_q, k, nothing)[0])

# %% [markdown]
# A NaN is seen, the average is silent.
#
# ## Further: attention without the scale
#
# 500 random queries meet 32 keys each; the largest weight of a row, raw → divided:

# %%
for d in (4, 64, 1024):
    q_wide, k_wide = torch.randn(500, d), torch.randn(500, 32, d)
    raw = torch.einsum("nd,nsd->ns", q_wide, k_wide)  # 500 queries, 32 keys for each
    rows = [scores.softmax(dim=-1) for scores in (raw, raw / math.sqrt(d))]
    top = [row.amax(dim=-1).mean().item() for row in rows]
    assert top[1] < 0.3
    print(f"d = {d}: spread {raw.std():.1f}, {top[0]:.2f} → {top[1]:.2f}")
assert top[0] > 0.9

# %% [markdown]
# Undivided, at $d = 1024$ nearly all weight is on one key: softmax is saturated. (No model was trained without the scale here.)
#
# ## Questions

# %%
course.quiz("attention_and_masks")

# %% [markdown]
# ## Exercises
#
# [exercise: window_prefix_mask]


# %%
def window_prefix_mask(seq_len, window, prefix):
    ...


# %%
course.check("window_prefix_mask", window_prefix_mask)

# %% [markdown]
# ## Further: four more exercises
#
# The last one is the leak test. Each number must change by its own random amount, as above: layer norm, [lesson 05](05_the_block.ipynb), takes away a change that all numbers of a token share.
#
# [exercise: causal_mask]


# %%
def causal_mask(seq_len):
    ...


# %%
course.check("causal_mask", causal_mask)

# %% [markdown]
# [exercise: padding_mask]


# %%
def padding_mask(token_ids, pad_id):
    ...


# %%
course.check("padding_mask", padding_mask)

# %% [markdown]
# [exercise: attention]


# %%
def attention(q, k, v, mask):
    ...


# %%
course.check("attention", attention)

# %% [markdown]
# [exercise: leaks_future]


# %%
def leaks_future(model, x):
    ...


# %%
course.check("leaks_future", leaks_future)

# %% [markdown]
# ## Take-home
#
# | mask | True, may attend | shape |
# |---|---|---|
# | causal | the key is the query's own position, or left of it | (T, S) |
# | padding | the key is a real token | (B, 1, 1, S) |
#
# ## What this does not show
#
# A map says where a model *attends*, not what it makes of it. The leak test finds what flows through the model, not an answer in the *data*.
#
# ## Summary
#
# 1. Attention of $y$ over $x$ is $\operatorname{softmax}(Q_y K_x^\top / \sqrt{d})\, V_x$; the $\sqrt{d}$ keeps scores from spreading with the width.
# 2. A mask is True where a query may attend, and acts *before* softmax.
# 3. Change one input, and see which outputs move: with a causal mask that table is the mask.
#
# *Where this comes from:* Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), sections 3.2.1 and 3.2.3; what maps do not show, Jain and Wallace, [arXiv:1902.10186](https://arxiv.org/abs/1902.10186).
#
# *What comes next:* attention is blind to order; [lesson 03](03_positions.ipynb) gives the model a sense of it.
