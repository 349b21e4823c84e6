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
# After this lesson you can
#
# 1. compute attention of one sequence over another, by hand and as matrices, and say what makes it *self*-attention;
# 2. say why scores are divided by $\sqrt{d}$, and what happens without it;
# 3. build causal and padding masks, combine them, and recognise the usual wrong ones by their symptoms;
# 4. test any model for leaks: move one input, and see which outputs move;
# 5. read the attention maps of several heads, and compare a learnt map with the right one where that is known.
#
# *You need:* lesson 00, above all softmax and the habit "by hand, all at once, the package".
# *It takes:* three quarters of an hour to read; fifteen seconds to run, with or without a GPU.

# %% [markdown]
# ## Set-up
#
# The models of this lesson are so small that a GPU, or even a second core, would only be waited for, so one core does everything. Besides `tinytx`
# we use torch's own attention, in its two forms, as a witness: whatever we compute ourselves has to agree with it.

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx.model.masks import combine_masks
from tinytx.model.transformer import record_hidden_states
from tinytx.text.batching import pad_batch
from tinytx_course import plots

torch.set_num_threads(1)
_ = torch.manual_seed(0)

# %% [markdown]
# ## Why: the dice that could be predicted
#
# A language model reads a text and predicts, at every place, what comes next. We let two small ones do that with something that *cannot* be
# predicted: rolls of a fair die. Each row is twelve rolls (the sides are numbered 0 to 5), always fresh ones; the target at each place is the roll that follows. (The
# last roll of a row has no successor there, and `-100` is torch's sign for "do not ask".)


# %%
def dice_game():
    rolls = torch.randint(6, (64, 12))  # (B, T)
    following = F.pad(rolls[:, 1:], (0, 1), value=-100)  # the roll after each roll
    return rolls, following


inputs, targets = dice_game()
print("reads   ", inputs[0].tolist())
print("predicts", targets[0].tolist())

# %% [markdown]
# Training is the subject of lesson 08; here it is a tool. This loop draws a batch, measures the *loss* (how surprised the model was by the
# right answers, in nats), and nudges all weights so that it would have been a little less surprised. A fair die has six sides:
# the best that an honest player can reach is a loss of $\ln 6$.


# %%
def train(model, draw, n_steps, lr=1e-2):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, n_steps, pct_start=0.1)
    losses = []
    for _ in range(n_steps):
        inputs, targets = draw()
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


# %% [markdown]
# The two models are alike in everything but one switch. With `causal=True` a place may look at itself and at what stands before it. With
# `causal=False` every place may look at every other. More to look at, more to learn from: is that not better? Before you go on, guess the two
# losses.

# %%
dice = tx.TransformerConfig(vocab_size=6, d_model=32, n_heads=1, n_layers=1, d_ff=64)
players, curves = {}, []
for name, causal in {"may look back": True, "may look everywhere": False}.items():
    torch.manual_seed(1)
    players[name] = tx.LanguageModel(dice.replace(causal=causal))
    losses = train(players[name], dice_game, n_steps=150)
    curves.append(plots.Curve(name, range(1, 151), losses))
    print(f"{name:<20} loss after training {losses[-1]:.3f}     (ln 6 = {math.log(6):.3f})")

# %% [markdown]
# One model stays where any honest player must stay. The other says it can predict dice, and nearly without error. A result that is
# too good is the most important kind of suspicious result: it comes without an error message, and it pleases. Look at how early the lower curve
# drops below the dashed line, which nobody should be able to cross.

# %%
fig, ax = plots.curves(
    curves, xlabel="training step", ylabel="loss (nats per roll)", y_range=(0, 2),
    references={"ln 6, the best there is": math.log(6)}, title="Learning to predict a fair die",
)  # fmt: skip
plots.show(fig, name="02_predicting_dice", alt="""
    Training loss of two models. One may look back and stays at the dashed line ln 6; the
    other may look everywhere, falls through that line at once and ends close to zero.""")

# %% [markdown]
# Now the test that counts. We show eight rolls and ask for the ninth, *which has not been thrown yet*. In training the answer stood in the
# input, one place to the right, and the second model had only to look there. Now there is nothing to the right. What share of its answers will be
# correct?

# %%
rolls = torch.randint(6, (3000, 9))
for name, player in players.items():
    guesses = player(rolls[:, :8])[:, -1].argmax(dim=-1)  # (B,) the likeliest ninth roll
    share = (guesses == rolls[:, 8]).float().mean()
    print(f"{name:<20} {share:.3f} right     (by chance {1 / 6:.3f})")

# %% [markdown]
# Both are down to chance, and the second has learnt nothing but to copy. What was missing is a rule about *who may look at whom*: a **mask**. The rest
# of the lesson takes attention apart, puts the rule where it belongs, breaks it in all the usual ways, and builds the test that would have caught the cheat
# before any training.
#
# ## By hand: two words ask three
#
# Attention is a way to ask. Each asking word has a **query**, a list of $d$ numbers saying what it looks for. Each word that may be
# looked at has a **key**, $d$ numbers saying what it can be found by, and a **value**: what it hands over when found. Here two English words ask
# three French ones. We made the numbers up, with $d = 4$, so that you can check them on paper.

# %%
english, french = ["she", "sings"], ["elle", "chante", "bien"]
queries = [[2.0, 0, 2, 0], [0, 1, 0, 2]]  # T = 2 words ask
keys = [[1.0, 0, 1, 0], [0, 2, 0, 1], [1, 1, 0, 0]]  # S = 3 words answer
values = [[10.0], [20], [40]]  # one number each, easy to follow


def dot(a, b):
    return sum(first * second for first, second in zip(a, b, strict=True))


def attention_by_loops(queries, keys, values):
    all_weights, contexts = [], []
    for query in queries:
        raised = [math.exp(dot(query, key) / math.sqrt(len(key))) for key in keys]
        weights = [value / sum(raised) for value in raised]
        all_weights.append(weights)
        contexts.append([dot(weights, column) for column in zip(*values, strict=True)])
    return all_weights, contexts


# %% [markdown]
# Follow *she* and *elle*: $2 \cdot 1 + 0 + 2 \cdot 1 + 0 = 4$, divided by $\sqrt{4}$ gives a score of 2. The three scores of *she* are 2, 0 and 1.
# Softmax turns them into weights that sum to one, and the result, the **context**, is the mean of the three values by these weights. *She* looks
# mostly at *elle*, whose value is 10. Will it receive about 10? Watch what the 40 of *bien* does, even with a modest weight.

# %%
weights_by_hand, contexts_by_hand = attention_by_loops(queries, keys, values)
for word, weights, context in zip(english, weights_by_hand, contexts_by_hand, strict=True):
    shares = "   ".join(f"{name} {w:.3f}" for name, w in zip(french, weights, strict=True))
    print(f"{word:<6} looks at   {shares}   and receives {context[0]:.2f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Nothing in this asks the two sides to be equally long: two queries and three keys make a table of two rows and three columns. Each *row*
# belongs to one word that asks and sums to one; a column need not sum to anything.
#
# ### Step through it
#
# The next picture answers back: click it, or reach it with the Tab key and use the arrows. It holds the numbers above, of *she* first, and takes them through one step at a time, from $q \cdot k$
# to the context. Choose *sings* and go through its steps before you read them off. (Such a picture also works on the exported page, without Python.)

# %%
course.widgets.one_query(queries, keys, values, tokens=english, key_tokens=french, query=0)

# %% [markdown]
# One switch leaves the division by $\sqrt{d}$ out. With four numbers it changes little. The lower part draws random queries and keys as wide as you like, and there it changes everything: more about that in a moment.
#
# ## All at once: attention of y over x
#
# Queries, keys and values are not made up in a real model. They come from the word vectors by three learnt matrices. Let $y$ be the
# sequence that asks and $x$ the one it looks at, one vector in each row. Then
#
# $$Q_y = y\,W_Q, \qquad K_x = x\,W_K, \qquad V_x = x\,W_V,$$
#
# $$\text{attention}(y, x) = \operatorname{softmax}\left(\frac{Q_y K_x^\top}{\sqrt{d}}\right) V_x .$$
#
# In words: $Q_y K_x^\top$ holds all scores at once, softmax works along each row, and the product with $V_x$ takes all the means. The
# loops must give the same.

# %%
w_q, w_k, w_v = torch.randn(3, 8, 8) / math.sqrt(8)  # learnt in a real model, random here


def scores_of(y, x):
    return (y @ w_q) @ (x @ w_k).T / math.sqrt(8)  # (T, D) @ (D, S) -> (T, S)


def attend(y, x):
    return scores_of(y, x).softmax(dim=-1) @ (x @ w_v)  # (T, S) @ (S, D) -> (T, D)


y, x = torch.randn(2, 8), torch.randn(3, 8)
_, contexts = attention_by_loops((y @ w_q).tolist(), (x @ w_k).tolist(), (x @ w_v).tolist())
torch.testing.assert_close(attend(y, x), torch.tensor(contexts))

# %% [markdown]
# **Self-attention** needs no new formula. It is the case $y = x$: a sequence asks itself, and the table of weights becomes square. Still there are
# three different matrices, so that a word may look for one thing and be found by another. That is why the table is *not* symmetric: how much
# *roman* looks at *beau* says nothing about the way back.
#
# `tx.attention` takes queries, keys and values and does the rest. Torch calls the same thing `F.scaled_dot_product_attention`, and need not
# keep the table of weights, which saves memory. Three ways, one result.

# %%
words = ["le", "roman", "est", "très", "beau"]
x = torch.randn(5, 8)  # five vectors, one a word; kept for the next sections
q, k, v = x @ w_q, x @ w_k, x @ w_v
torch.testing.assert_close(tx.attention(q, k, v), attend(x, x))
torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v), attend(x, x))
weights = tx.attention_weights(q, k)
print("shape:", tuple(weights.shape), "  symmetric:", torch.equal(weights, weights.T))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Break it: attention without the scale
#
# Why divide by $\sqrt{d}$? A score is a sum of $d$ products. If the numbers in $q$ and $k$ are independent, with mean 0 and variance 1, each product has variance 1 as
# well, and the sum has variance $d$: scores grow like $\sqrt{d}$. Softmax raises $e$ to them. At $d = 4$ that is harmless; let us see what is left of a row
# of 32 weights as $d$ grows. The last two columns ask how much the weights would still give way if the scores were nudged: $1 - \sum_s w_s^2$, the sum of the slopes $w_s (1 - w_s)$.

# %%
widths = [4, 16, 64, 256, 1024]
largest = {"as it is": [], "divided by √d": []}
print("  d    spread of scores    largest weight    give in the weights")
for d in widths:
    q_wide, k_wide = torch.randn(500, d), torch.randn(500, 32, d)
    raw = torch.einsum("nd,nsd->ns", q_wide, k_wide)  # 500 queries, 32 keys for each
    rows = {"as it is": raw.softmax(-1), "divided by √d": (raw / math.sqrt(d)).softmax(-1)}
    for name, row in rows.items():
        largest[name].append(row.amax(-1).mean().item())
    give = [(1 - row.square().sum(-1)).mean().item() for row in rows.values()]
    top = [heights[-1] for heights in largest.values()]
    assert abs(raw.std().item() / math.sqrt(d) - 1) < 0.1
    print(f"{d:>4}{raw.std():>13.1f}{top[0]:>16.2f} → {top[1]:.2f}{give[0]:>15.2f} → {give[1]:.2f}")

# %% [markdown]
# The spread is $\sqrt{d}$ within a few per cent, as announced. Left of each arrow is the raw score, right of it the divided one. Before the picture: which of the two curves will
# be level, and where does the other one end? One dashed level to compare with: an even spread over 32 keys, $1/32$.

# %%
fig, ax = plots.curves(
    [plots.Curve(name, widths, heights) for name, heights in largest.items()],
    xlabel="d, the numbers in a query or key", ylabel="largest weight of a row (mean)", x_log=True,
    y_range=(0, 1), references={"even spread, 1/32": 1 / 32}, title="Without the scale one key takes all",
)  # fmt: skip
plots.show(fig, name="02_why_divide", alt="""
    The largest of 32 attention weights against the width d, 4 to 1024: level and low when scores
    are divided by the square root of d; undivided it rises until it is close to one.""")

# %% [markdown]
# Divided, the weights do not care how wide the model is. Undivided, nearly all goes to one key in wide models, chosen by the accident of the first random
# numbers. Worse is the loss of give: where softmax is flat, no gradient comes back, and training cannot change its mind. That is what *saturated*
# means.
#
# ## The causal mask
#
# Now the rule. For predicting the next word, the word at place $t$ may look at places $0, \ldots, t$: to its **left** and at itself. To forbid a place, we add $-\infty$ to its
# score *before* softmax. Since $e^{-\infty} = 0$, its weight is zero, not nearly but exactly, and the rest still sums to one. Take *roman*, the second of our five
# words, with scores that can be checked on paper.

# %%
scores = torch.tensor([1.0, 2.0, 0.0, 1.0, 3.0])  # roman looks at: le, roman, est, très, beau
forbidden = torch.tensor([0.0, 0.0, -math.inf, -math.inf, -math.inf])  # 0: stay as you are
for name, row in {"everybody": scores, "left and self": scores + forbidden}.items():
    print(f"{name:<14}", [round(w, 3) for w in row.softmax(dim=-1).tolist()])
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The three forbidden words hold *exactly* zero, and the two allowed ones share everything in their old proportion, $e^1 : e^2$.
#
# For all five words the rule is a square table. `tx.causal_mask` writes it with `True` where a word **may** look; row $t$ is the one who looks. Older code
# *adds* a table of 0 and $-\infty$ instead, and torch has a function that makes it. Both say the same thing.

# %%
mask = tx.causal_mask(5)
added = torch.zeros(5, 5).masked_fill(~mask, -math.inf)  # 0 where allowed, -inf where not
assert torch.equal(added, nn.Transformer.generate_square_subsequent_mask(5))
by_adding = (scores_of(x, x) + added).softmax(dim=-1)
torch.testing.assert_close(by_adding, tx.attention_weights(q, k, mask))
print(mask.int())
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### Look
#
# Left the mask, right the weights it leaves. Say first: which row of the right map holds a single 1.00, and which row is the same as without any mask? As
# everywhere in the course, grey and hatched means *not allowed*, and white means *allowed, weight zero*.

# %%
fig, axes = plots.figure(1, 2, width=9.4, height=3.9)
common = {"allowed": mask, "row_labels": words, "col_labels": words, "low": 0, "high": 1}
plots.heatmap(mask, **common, title="The mask: True is blue", ax=axes[0])
weights = tx.attention_weights(q, k, mask)
plots.heatmap(weights, **common, numbers=".2f", title="The weights it leaves", ax=axes[1])
fig.supxlabel("looked at")
fig.supylabel("who looks")
plots.show(fig, name="02_causal_mask", alt="""
    Left the causal mask of five words: the diagonal and what is left of it is allowed, the rest
    hatched. Right the weights: the first row is all on itself, the hatched triangle is empty.""")

# %% [markdown]
# *le*, the first word, can only look at itself. *beau*, the last, sees everything: its row is the one without a mask.
#
# ## The leak test
#
# How could we have caught the dice cheat *before* training it? A mask is a promise about what can influence what, and influence can be tested: **change one input, and see which
# outputs move.** `moved[t, s]` below says whether output $t$ moved when input $s$ was changed. Its rows and columns are those of the mask, and for an honest model it
# may be `True` only where the mask is.


# %%
@torch.no_grad()
def moves(model, inputs):
    before = model(inputs)  # (T, ...) -> (T, D)
    moved = torch.zeros(len(before), len(inputs), dtype=torch.bool)
    for s in range(len(inputs)):
        changed = inputs.clone()
        changed[s] = changed[s] + 1
        after = model(changed)
        same = (after == before) | (after.isnan() & before.isnan())  # exactly, not nearly
        moved[:, s] = ~same.all(dim=-1)
    return moved


for name, allowed in {"with the mask": mask, "without": None}.items():
    moved = moves(lambda x, m=allowed: tx.attention(x @ w_q, x @ w_k, x @ w_v, m), x)
    print(f"{name:<14} moves exactly where the mask allows: {torch.equal(moved, mask)}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Break it: ways to get the mask wrong
#
# Each of these is quickly written, and each runs without complaint: zeroing the weights *after* softmax;
# multiplying the scores by 0 *before* it; adding a table of 1 and 0; "a mask of 1 and $-\infty$", a phrase from students' reports, added or multiplied; the transposed triangle; a triangle
# one place too far, or one too short. Which of them leak? Note your guesses: one surprises nearly everybody.

# %%
ones = torch.ones(5, 5)
one_and_inf = ones.masked_fill(~mask, -math.inf)
attempts = {
    "right": lambda s: s.masked_fill(~mask, -math.inf).softmax(dim=-1),
    "zeroed after softmax": lambda s: s.softmax(dim=-1) * mask,
    "scores times 0": lambda s: (s * mask).softmax(dim=-1),
    "1 and 0 added": lambda s: (s + mask).softmax(dim=-1),
    "1 and -inf added": lambda s: (s + one_and_inf).softmax(dim=-1),
    "times 1 and -inf": lambda s: (s * one_and_inf).softmax(dim=-1),
    "transposed": lambda s: s.masked_fill(~mask.T, -math.inf).softmax(dim=-1),
    "one place too far": lambda s: s.masked_fill(ones.tril(1) == 0, -math.inf).softmax(dim=-1),
    "one place too short": lambda s: s.masked_fill(ones.tril(-1) == 0, -math.inf).softmax(dim=-1),
}

# %% [markdown]
# Now the symptoms, one column each. *Rows sum to 1* and *NaN* (not a number) can be read off the weights. So can *future weight*: something other than zero right of
# the diagonal. *Leaks* needs the test above. A good mask reads True, False, False, False.

# %%
print(f"{'':<22}{'rows sum to 1':<16}{'NaN':<8}{'future weight':<16}leaks")
for name, weights_from in attempts.items():
    weights = weights_from(scores_of(x, x))
    moved = moves(lambda x, f=weights_from: f(scores_of(x, x)) @ (x @ w_v), x)
    whole = torch.allclose(weights.sum(dim=-1), torch.ones(5))
    broken, future = weights.isnan().any().item(), (weights[~mask] > 0).any().item()
    print(f"{name:<22}{whole!s:<16}{broken!s:<8}{future!s:<16}{moved[~mask].any()}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The surprise is the second line. Zeroing after softmax leaves no weight on the future, and yet it leaks: the *denominator* of softmax was computed with all words in it, so that
# the future decides how much is left for the past. "Scores times 0" fails because a score of 0 is not a weight of 0: $e^0 = 1$.
#
# And 1 and $-\infty$? *Added*, it comes out right, by luck: softmax does not change when all the scores of a row grow by the same amount. The slip shows when somebody takes the 1 at its word and
# *multiplies*: a negative score times $-\infty$ is $+\infty$. Say "0 and $-\infty$, added", or, with less to misread, "True and False". `tx.attention`
# accepts nothing but booleans.
#
# In the picture, nothing is hatched on purpose: what you see is the weights as they come out. Which panel has pale rows at the top, and why?

# %%
fig, axes = plots.figure(2, 3, width=9.6, height=6.6, sharex=True, sharey=True)
shown = [name for name in attempts if "1 and" not in name]
style = {"row_labels": words, "col_labels": words, "numbers": ".2f", "low": 0, "high": 1}
for panel, name in zip(axes.flat, shown, strict=True):
    plots.heatmap(attempts[name](scores_of(x, x)), **style, title=name, ax=panel)
fig.supxlabel("looked at")
fig.supylabel("who looks")
plots.show(fig, name="02_wrong_masks", alt="""
    Six weight maps. Right: a lower triangle. Zeroed after softmax: the same, but the upper rows
    are pale. Scores times zero: weight everywhere. Transposed: an upper triangle. Too far: one
    more diagonal. Too short: the first row may see nothing and reads NaN.""")

# %% [markdown]
# The upper rows are the pale ones, because they lost most to the future. The *transposed* triangle is not nonsense: it is the rule of a model that reads from right to left. A
# left-to-right model takes its context from the left, and "context from the right", which students do write, is this panel.
#
# ## Padding
#
# Sentences differ in length, and a batch is a rectangle. Short rows are filled up with a special id, the padding, which means nothing, so
# nobody may look at it. `tx.padding_mask` finds it. Unlike the causal mask it has a row for each *sentence*, and speaks only of who may be looked *at*.

# %%
sentences = [[11, 12, 13, 14, 15], [21, 22, 23], [31]]
batch = pad_batch(sentences, pad_id=0)  # (B, S)
real = tx.padding_mask(batch, pad_id=0)  # (B, S), True = a real token
print(batch)
print(real.int())
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Both rules together: a place may be looked at if *every* rule allows it, so masks are combined by "and". The shapes have to be lined up first. Weights have the axes
# sentence, head, who looks, looked at; the padding mask knows only the first and the last, and `None` puts ones between. The rest is broadcasting, and you get a
# triangle of its own for each sentence.

# %%
both = combine_masks(real[:, None, None, :], mask)  # (B, 1, 1, S) and (T, T) -> (B, 1, T, S)
fig, axes = plots.figure(1, 3, width=9.6, height=3.7)
for n, panel in enumerate(axes):
    ids = ["pad" if token == 0 else str(token) for token in batch[n].tolist()]
    style = {"row_labels": ids, "col_labels": ids, "title": f"sentence {n}", "low": 0, "high": 1}
    plots.heatmap(both[n, 0], allowed=both[n, 0], **style, xlabel="looked at", ax=panel)
axes[0].set_ylabel("who looks")
plots.show(fig, name="02_causal_and_padding", alt="""
    Three masks, for five, three and one real token. The first is the full lower triangle; in the
    others the columns of padding are hatched from top to bottom.""")

# %% [markdown]
# Hatched columns: nobody looks *at* padding. The rows of padding are still there; something is computed for them, and nobody will read it.
#
# ### A query that may see nothing
#
# Had we padded on the *left*, a padding row would have no allowed key at all. What is the mean of nothing? With $-\infty$ it is $0/0$. With a "very negative
# number" instead, all keys tie and everything forbidden is averaged. In this course the answer is zeros.

# %%
left_padded = torch.tensor([False, False, True, True, True])  # two paddings, three words
allowed = combine_masks(left_padded, mask)  # (T, T): rows 0 and 1 may see nothing
for fill in (-math.inf, -1e9):
    weights = scores_of(x, x).masked_fill(~allowed, fill).softmax(dim=-1)
    print(f"filled with {fill:<16}", [round(w, 2) for w in weights[0].tolist()])
print(f"{'tx.attention_weights':<28}", tx.attention_weights(q, k, allowed)[0].tolist())
assert torch.equal(tx.attention(q, k, v, allowed)[:2], torch.zeros(2, 8))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The first is the dangerous one: a single NaN anywhere spreads through the layers to the loss, and from there into every weight.
#
# ### Draw your own
#
# All of this in one place. Combine the causal mask, padding, a window and a prefix, or turn single cells over yourself. The rows below show what softmax makes of your mask and what each row sums to, and the leak test
# runs at every change. Three things to try: open one cell of the future and see which outputs begin to move; mask *after* softmax and read the sums; and set two layers, with a window of two. How far back does the
# last word see now?

# %%
course.widgets.mask(words, padding=1)

# %% [markdown]
# With a window, a word two layers up has seen what its neighbours had seen: news travels one window a layer. A leak travels in the same way, which is why one open cell in one layer is enough to spoil a deep model.
#
# ## Two signs for one rule
#
# Within torch itself the same boolean mask is read in two opposite ways. `F.scaled_dot_product_attention` takes `True` as *may attend*, as we do. The module
# `nn.MultiheadAttention`, and the encoder layers built on it, take `True` as *blocked*. To show it beyond doubt, we copy the weights of our module into theirs.


# %%
def torch_twin(ours):
    theirs = nn.MultiheadAttention(ours.q_proj.in_features, ours.n_heads, batch_first=True)
    three = (ours.q_proj, ours.k_proj, ours.v_proj)
    theirs.in_proj_weight.data = torch.cat([proj.weight.data for proj in three])  # (3 D, D)
    theirs.in_proj_bias.data = torch.cat([proj.bias.data for proj in three])
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())
    return theirs


ours = tx.MultiHeadAttention(d_model=12, n_heads=3)
theirs = torch_twin(ours)
sentence = torch.randn(1, 5, 12)  # (B, T, D)

# %% [markdown]
# If the two signs are as we say, our module with `mask` must equal theirs with `~mask`, where every True has become False and the other way round. Then we give them *our* mask as it is, a mistake that can
# cost an evening: where do the words look now? (What the three `n_heads` are comes below.)

# %%
fused = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
torch.testing.assert_close(fused, tx.attention(q, k, v, mask))
output, _ = theirs(sentence, sentence, sentence, attn_mask=~mask)
torch.testing.assert_close(output, ours(sentence, mask=mask))
_, flipped = theirs(sentence, sentence, sentence, attn_mask=mask)
print("who sees whom:\n", (flipped[0].nan_to_num() > 0).int())
print("NaN in rows:", flipped[0].isnan().any(dim=-1).nonzero().flatten().tolist())
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Everybody looks at the future only, and the last word, for whom there is none, gets NaN. That NaN is a kind of luck, as it is hard to overlook. With a padding mask the wrong sign is quieter:
# everybody attends to padding only, and nothing complains.
#
# ## The leak test, through a whole model
#
# One layer with a mask does not leak. But is that enough? Layers are stacked, and word 3 may look at word 2, which has looked at word 1 before.
# What if some detour led back from the future? We take a body of four layers with random weights, change the token at place 4, and let `record_hidden_states` keep what every layer
# computed. Guess the picture before you draw it.

# %%
deep = tx.TransformerConfig(vocab_size=50, d_model=32, n_heads=2, n_layers=4, d_ff=64)
masked_body = tx.Transformer(deep)
open_body = tx.Transformer(deep.replace(causal=False))
open_body.load_state_dict(masked_body.state_dict())  # same weights, only the mask is gone
ids = torch.randint(49, (1, 9))
changed = ids.clone()
changed[0, 4] += 1


def movement_of(body):  # (n_layers + 1, T): the embeddings, then each block
    with record_hidden_states(body) as before:
        body(ids)
    with record_hidden_states(body) as after:
        body(changed)
    return (torch.stack(after) - torch.stack(before)).abs().amax(dim=-1)[:, 0]


with_mask, without = movement_of(masked_body), movement_of(open_body)
print("with the mask, moved at the top:", with_mask[-1].nonzero().flatten().tolist())
print("mask removed,  moved at the top:", without[-1].nonzero().flatten().tolist())
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Now at every height. Each row of the map is a level of the model, from the embeddings (before any attention) to what the last block returns; each column is a place. The number is
# the largest movement there, and a plain `0` is an exact zero: not one bit has changed. (From 0.5 up all cells are equally dark.) In the upper panel, do you expect a staircase or a wall?

# %%
levels = ["embeddings"] + [f"after block {n}" for n in range(1, 5)]
style = {"row_labels": levels, "numbers": ".2g", "low": 0, "high": 0.5}
fig, axes = plots.figure(2, 1, width=8.6, height=6.0)
plots.heatmap(with_mask, **style, title="With the mask: how far each vector moves", ax=axes[0])
plots.heatmap(without, **style, title="The mask removed", xlabel="place", ax=axes[1])
plots.show(fig, name="02_leak_test", alt="""
    Movement at nine places and five levels after a change at place 4. With the mask places 0 to 3
    read exactly 0 at every level. Without it every place moves from the first block on.""")

# %% [markdown]
# A wall: one block passes the news to everybody on the right. With the mask, the left side stays at zero all the way up: no detour leads back, since every path in every layer goes to the right or straight on. Without it, one
# block is enough to tell everybody.
#
# ### Whose mask is it?
#
# "The causal mask is a thing of the decoder" is often said. The original Transformer does have two stacks, an *encoder* without this mask and a
# *decoder* that wears it. But the mask is an argument, not an organ. We move every token in turn, so that the promise becomes one sentence: *the table of what moves is the causal mask*. And
# beside our bodies we test torch's **encoder**, without and with a mask on.

# %%
layer = nn.TransformerEncoderLayer(24, nhead=3, dropout=0.0, batch_first=True)
encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
tested = {
    "our body": (lambda row: masked_body(row[None])[0], ids[0]),
    "our body, mask removed": (lambda row: open_body(row[None])[0], ids[0]),
    "torch's encoder": (encoder, torch.randn(5, 24)),
    "the same with the mask": (lambda row: encoder(row, mask=added), torch.randn(5, 24)),
}
for name, (model, inputs) in tested.items():
    same = torch.equal(moves(model, inputs), tx.causal_mask(len(inputs)))
    print(f"{name:<24}moves like the causal mask: {same}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# An encoder stack that wears the mask no longer sees ahead, and can be trained to predict next words. It *is* what people call a **decoder-only** model: a decoder without the part that looks at
# an encoder. The lab this course grew out of builds its language model in just this way, and so does `tx.TransformerConfig(causal=True)`.
#
# ## Cross-attention: another sequence, another length
#
# When $y$ and $x$ are two sequences, one speaks of *cross-attention*; what is looked at is called the **memory**. The package writes it as `module(y, memory=x)`. A translator does
# this: the English so far asks the French sentence, all of which is known, so there is *no* causal mask between them. Padding in the memory stays forbidden.

# The module has three **heads**. It splits the twelve numbers of each query and key into three lots of four,
# lets each lot attend by itself, and lays the results side by side. So one word can look for several things at once.
#
# The weights here are random. What shape will the maps have, and which columns are hatched?

# %%
asking, memory = torch.randn(1, 4, 12), torch.randn(1, 6, 12)  # (B, T, D), (B, S, D)
real = torch.tensor([[True, True, True, True, False, False]])  # the memory ends in padding
allowed = real[:, None, None, :]  # (B, 1, 1, S)
with tx.record_attention(ours) as recorded:
    ours(asking, memory, allowed)
(weights,) = recorded.values()  # (B, H, T, S)
asks, found = ["y0", "y1", "y2", "y3"], ["x0", "x1", "x2", "x3", "pad", "pad"]
fig, axes = plots.figure(1, 3, width=10.2, height=3.3)
for n, panel in enumerate(axes):
    style = {"row_labels": asks, "col_labels": found, "numbers": ".2f", "low": 0, "high": 0.6}
    plots.heatmap(weights[0, n], allowed=real.expand(4, 6), **style, title=f"head {n}", ax=panel)
fig.supxlabel("looked at (memory)")
axes[0].set_ylabel("who looks")
plots.show(fig, name="02_cross_attention", alt="""
    Three maps of four rows and six columns, one a head. The last two columns, padding in the
    memory, are hatched; there is no triangle. The heads spread their weights differently.""")

# %% [markdown]
# No triangle: all of the memory is open to everybody, and each head spreads its weights in its own way. Now the leak test. Change one token of the
# memory: which outputs move? Change one that asks: which now? The second answer is a little surprising at first sight.

# %%
by_torch, _ = theirs(asking, memory, memory, key_padding_mask=~real)  # their sign again
torch.testing.assert_close(ours(asking, memory, allowed), by_torch)
by_memory = moves(lambda x: ours(asking, x[None], allowed)[0], memory[0])  # (T, S)
by_asking = moves(lambda y: ours(y[None], memory, allowed)[0], asking[0])  # (T, T)
print("a memory token changes:\n", by_memory.int())
print("an asking token changes:\n", by_asking.int())
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# A real memory token moves every output, a padded one moves none. But an asking token moves only its own: those who ask never see each other. That is why a
# decoder has *both* kinds, self-attention among its own words and cross-attention to the memory.
#
# ## Use it: a task whose right map is known
#
# What does a *learnt* map look like? For real text nobody knows the right one. So we take a task for which we do. The model reads ten random
# letters of five kinds. At each place $t \ge 2$ it must name a pair: the letter **two back**, and the **first** letter of the row. Everything else is noise. With one layer and two heads the
# right maps are known before any training: one head looks two back, a stripe below the diagonal, and the other at place 0, a column. But nobody tells them: the only signal is the loss on the pairs.

# %%
N_LETTERS, SEQ_LEN, BACK = 5, 10, 2


def letter_game(n_rows=64):
    letters = torch.randint(N_LETTERS, (n_rows, SEQ_LEN))  # (B, T)
    two_back, first = letters[:, :-BACK], letters[:, :1]
    pairs = two_back * N_LETTERS + first  # (B, T - 2), one number for the two answers
    return letters, F.pad(pairs, (BACK, 0), value=-100)  # places 0 and 1 are not asked


known = torch.zeros(2, SEQ_LEN, SEQ_LEN)  # (H, T, T)
for t in range(BACK, SEQ_LEN):
    known[0, t, t - BACK] = 1.0  # the stripe: two back
    known[1, t, 0] = 1.0  # the column: the first


# %% [markdown]
# The *fit* of a map is its mean weight where it should be: 1 is perfect. Which head takes which job is an accident of the seed, so we take the better order of the two. Three seeds show
# whether it was luck; *right* is the share of right pairs on 500 fresh rows. What would you bet that the heads share the work as we would?

# %%
def fit(maps):
    score = torch.einsum("hts,jts->hj", maps, known) / (SEQ_LEN - BACK)  # (head, job)
    order = [0, 1] if score.trace() >= score.flip(1).trace() else [1, 0]
    return order, score[order].diagonal().tolist()


game = tx.TransformerConfig(vocab_size=N_LETTERS**2, d_model=32, n_heads=2, n_layers=1, d_ff=32)
letters, pairs = letter_game(500)
results = []
for seed in range(3):
    torch.manual_seed(seed)
    model = tx.LanguageModel(game)
    with tx.record_attention(model) as recorded:
        model(letters)
    random_maps = recorded["body.blocks.0.attn"].mean(dim=0)  # (H, T, T)
    train(model, letter_game, n_steps=250)
    with tx.record_attention(model) as recorded:
        right = (model(letters).argmax(dim=-1) == pairs)[:, BACK:].float().mean().item()
    learnt_maps = recorded["body.blocks.0.attn"].mean(dim=0)  # mean over 500 rows
    order, fits = fit(learnt_maps)
    results.append([*fits, right])

# %% [markdown]
# The first line of the table is a baseline: looking evenly at all that is allowed, and guessing one pair in 25. The number after ± is the spread over the seeds (standard deviation). A fit of 1 would be the known map itself; softmax can come near it but
# hardly reach it, as it gives every allowed place a little.

# %%
alike = torch.zeros(2, SEQ_LEN, 1)  # queries and keys that all fit equally well
_, even = fit(tx.attention_weights(alike, alike, tx.causal_mask(SEQ_LEN)))
std, mean = torch.std_mean(torch.tensor(results), dim=0)
print(f"{'':<22}two back      first         pairs right")
print(f"{'even, or a guess':<22}{even[0]:<14.2f}{even[1]:<14.2f}{1 / N_LETTERS**2:.2f}")
cells = [f"{m:.2f} ± {s:.2f}" for m, s in zip(mean, std, strict=True)]
print(f"{'trained, three seeds':<22}{cells[0]:<14}{cells[1]:<14}{cells[2]}")

# %% [markdown]
# Here are the maps of the last seed: before training, after it, and the known ones. In the left column you should see hardly more than
# the even spread that the mask leaves; in the middle, the stripe and the column; and a difference from the right column at places 0 and 1. Why there?

# %%
fig, axes = plots.figure(2, 3, width=9.8, height=6.8)
stages = {"random": random_maps[order], "trained": learnt_maps[order], "known": known}
style = {"allowed": tx.causal_mask(SEQ_LEN), "low": 0, "high": 1}
for column, (name, maps) in zip(axes.T, stages.items(), strict=True):
    plots.heatmap(maps[0], **style, title=f"{name}: two back", ax=column[0])
    plots.heatmap(maps[1], **style, title=f"{name}: the first", ax=column[1])
fig.supxlabel("place looked at")
fig.supylabel("place that looks")
plots.show(fig, name="02_learnt_and_known_maps", alt="""
    Maps of two heads. Before training both spread evenly over the allowed triangle. After it one
    shows a stripe two below the diagonal, the other a dark first column, like the known maps.""")

# %% [markdown]
# In the first two rows nothing was asked, so what the heads do there is free (and place 0 has no choice). Everywhere else, two heads found by themselves the division of work that we wrote down
# beforehand.
#
# Those maps were means over 500 rows. Here is the same model on a single row of letters. Point at a place, or move with the arrow keys, and read how its weight is spread: by the colour of the letters, by the numbers, and by the entropy,
# which counts in bits how undecided the head is. Which head is surer of itself? Note that equal letters are not taken for each other: it is places that are looked at.

# %%
course.widgets.attention(model, ["ABCDE"[letter] for letter in letters[0]], token_ids=letters[:1], query=7)

# %% [markdown]
# You will meet this explorer again, with more layers and more heads. The same look explains the dice: open the model that predicted them, and see how much weight a place gives to the one just right of it, where the answer stood.

# %%
for name, player in players.items():
    with tx.record_attention(player) as recorded:
        player(dice_game()[0])
    weights = recorded["body.blocks.0.attn"]  # (B, H, T, T)
    print(f"{name:<20} weight on the next place: {weights.diagonal(1, 2, 3).mean():.2f}")

# %% [markdown]
# ### A padded batch gives what single rows give
#
# One more use, and a test that every model of this course has to pass. Whether a sentence is read alone or in a batch with longer ones must not change anything. A body that may
# look everywhere needs the padding mask for that. Does a causal one, padded on the right? Think about who stands to the right of whom before you read the output.

# %%
sentences = [[11, 12, 13, 14, 15, 16, 17], [21, 22, 23, 24], [31, 32]]
batch = pad_batch(sentences, pad_id=0)
real = tx.padding_mask(batch, pad_id=0)
for name, body in {"open": open_body, "causal": masked_body}.items():
    for told, given in {"padding mask": real, "no padding mask": None}.items():
        pairs = zip(body(batch, given), sentences, strict=True)
        alone = [(row[: len(ids)], body(torch.tensor([ids]))[0]) for row, ids in pairs]
        same = all(torch.allclose(padded, single, atol=1e-5) for padded, single in alone)
        print(f"{name:<8}{told:<18}as single rows: {same}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# A causal body needs no padding mask when the padding stands on the right: real tokens never look there. (What is computed *at* the padding is still meaningless, and a loss must leave it out.)
#
# ## What this does not show
#
# - A map says where a head *looks*, not what it makes of it. The values, the other layers and the direct path around attention count as well. In a task built so that looking is
#   all there is, map and meaning agree; for real text whether they do is disputed (Jain and Wallace, 2019).
# - The leak test finds what flows through the model. It does not find an answer that stands in the *data*, such as a target that was not shifted.
# - A test on random weights can tell that something moves. That nothing moves, at exactly zero, is a matter of the mask and holds for all weights; that something *does* move may fail by accident, say
#   after training has driven a weight to zero.
# - We never asked how a head can *know* what is two back. Attention itself is blind to order. That is the next lesson.

# %% [markdown]
# ## Questions
#
# Before you write code, five questions without any. Pick an answer, and read what it gets back: the wrong ones are not foolish, and several of them were found in reports. In your own copy there are buttons to press;
# on a page without a kernel each answer opens on a click.

# %%
course.quiz("attention_and_masks")

# %% [markdown]
# ## Exercises
#
# Now you. Each exercise has a cell with dots to fill in and a cell that checks what you wrote. The check tells you more than right or wrong: where your answer differs, on the
# smallest input it could find, and, if it knows the mistake, what it is. As long as there are only dots, it says "not attempted yet", and nothing else in the lesson waits for you.
#
# ### Exercise: the causal mask
#
# `Level 1/5 · 5 minutes · outcome 3`
#
# Write `causal_mask(seq_len)`. It returns a boolean tensor of shape (T, T), where T is `seq_len`: row $t$ is the one who looks, column $s$ is looked at, and the entry is
# `True` where $t$ **may** look at $s$, that is at itself and at what stands before it. *It trains* keeping apart who looks and who is looked at, and which sign a mask has.
#
# <details><summary>Hint</summary>
#
# Number the places with `torch.arange(seq_len)`, once standing as a column and once lying as a row: comparing the two gives the whole table at once. Two loops will do as well. Check the first row on paper:
# a single `True`.
#
# </details>


# %%
def causal_mask(seq_len):
    ### BEGIN SOLUTION
    place = torch.arange(seq_len)
    return place[:, None] >= place[None, :]  # (T, 1) against (1, T) -> (T, T)
    ### END SOLUTION


# %%
course.check("causal_mask", causal_mask)

# %% [markdown]
# ### Exercise: the padding mask
#
# `Level 1/5 · 5 minutes · outcome 3`
#
# Write `padding_mask(token_ids, pad_id)`. `token_ids` has shape (B, S), rows filled up on the right with `pad_id`, an id of the vocabulary that need not be 0. Return a boolean tensor of the same shape, `True` where a real token stands, one that may be looked at. Each row has
# at least one. *It trains* asking for the meaning of an id, not for a number that it often has.
#
# <details><summary>Hint</summary>
#
# One comparison of the whole tensor with one id. Before you run the check, ask yourself what your line does to a real token whose id is 0, and to ids above and below `pad_id`.
#
# </details>


# %%
def padding_mask(token_ids, pad_id):
    ### BEGIN SOLUTION
    return token_ids != pad_id  # (B, S)
    ### END SOLUTION


# %%
course.check("padding_mask", padding_mask)

# %% [markdown]
# ### Exercise: attention with a mask
#
# `Level 3/5 · 15 minutes · outcome 1`
#
# Write `attention(q, k, v, mask)`. Queries have shape (..., T, K), keys and values (..., S, K), with any axes in front; `mask`, boolean and of shape (..., T, S), is `True` where a query may look. Return the contexts, (..., T, K): the scale in its place, softmax over the allowed keys, and **zeros**
# for a query that may see nothing. Loops, matrices or torch's own function: as you like. *It trains* putting scale, mask and softmax in their order.
#
# <details><summary>Hint</summary>
#
# Swap the last two axes of the keys with `k.transpose(-2, -1)`; then the shapes say what to multiply. Forbid before softmax. For a row where nothing is allowed softmax gives NaN or an even spread, depending on how you forbid; in both cases the weights of forbidden places can still be set
# to zero afterwards.
#
# </details>


# %%
def attention(q, k, v, mask):
    ### BEGIN SOLUTION
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T, S)
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    weights = weights.masked_fill(~mask, 0.0)  # changes only rows that may see nothing
    return weights @ v  # (..., T, S) @ (..., S, K) -> (..., T, K)
    ### END SOLUTION


# %%
course.check("attention", attention)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** A report says: "The model reads from left to right, so each word takes its context from the right." Which panel of the wrong masks is that, and which outputs would the leak test see moving?
#
# <details><summary>Answer</summary>
#
# The transposed one. Reading from left to right, what is already known stands on the *left*, so the context comes from there. With the transposed mask, `moved` is the upper
# triangle. Such a model can be trained, but to predict the *previous* word.
#
# </details>
#
# **2.** In the dice game, give the model `causal=True` but forget to shift: let the targets be the rolls themselves. What will the loss be, and will the leak test notice?
#
# <details><summary>Answer</summary>
#
# The loss goes to zero again: a place may look at itself, and the answer stands there. The leak test sees nothing, since the mask is as it should be. What is wrong is the
# data, so a result that is too good has more than one possible cause. Compare with what an honest player can reach: here $\ln 6$.
#
# </details>
#
# **3.** Somebody concludes: "BERT is an encoder, so it cannot wear a causal mask." What would happen if it did?
#
# <details><summary>Answer</summary>
#
# It would run, and be a decoder-only model by its shape. The mask is an argument of attention, not a part of a stack. But it would be a poor BERT: it was trained to fill gaps with
# words from both sides, and would lose one. Lesson 10 measures what both sides are worth.
#
# </details>
#
# ## Summary
#
# 1. Attention of $y$ over $x$ is $\operatorname{softmax}(Q_y K_x^\top / \sqrt{d})\, V_x$; self-attention is the case $y = x$, cross-attention any other.
# 2. Scores spread like $\sqrt{d}$. Dividing keeps softmax where it can still learn; without it one key takes all.
# 3. A mask is True where one may look, and acts *before* softmax, as 0 and $-\infty$ added. After softmax is too late, since the denominator has already seen everything. Several rules are combined by
#    "and"; who may see nothing gets zeros. Torch reads booleans in two opposite ways.
# 4. Change one input and see which outputs move: for a causal model that table is the causal mask, to exactly zero, in every layer.
# 5. Heads divide work among themselves. Where the right map is known, a learnt one can be checked against it.
#
# *Where this comes from:* Vaswani et al., *Attention Is All You Need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), sections 3.2.1 (equation 1, and footnote 4 for the scale), 3.2.2 (heads) and 3.2.3 (the three uses, and the mask
# inside softmax). Attention between two languages: Bahdanau, Cho and Bengio, [arXiv:1409.0473](https://arxiv.org/abs/1409.0473), section 3. A decoder-only model: Liu et al.,
# [arXiv:1801.10198](https://arxiv.org/abs/1801.10198). What maps do not show: Jain and Wallace, *Attention is not Explanation*, [arXiv:1902.10186](https://arxiv.org/abs/1902.10186).
#
# *What comes next:* lesson 03 gives the model a sense of order.
