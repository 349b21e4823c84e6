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
# 4. test any model for leaks: change one input, and see which outputs move;
# 5. read the attention maps of several heads, and compare a learned map with the right one where that is known.
#
# *You need:* lesson 00, above all softmax and the habit "by hand, all at once, the package".
# *It takes:* about an hour to read, half an hour for the exercises, a quarter of a minute to run.

# %% [markdown]
# ## Set-up
#
# The models here are small, and one CPU core is enough. Besides `tinytx` we use torch's own attention, in its two forms, as a
# reference: whatever we compute ourselves has to agree with it.

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx.transformer import record_hidden_states
from tinytx_course import plots

torch.set_num_threads(1)
_ = torch.manual_seed(0)

# %%
course.recall("02")

# %% [markdown]
# ## Why: the dice that could be predicted
#
# A **language model** reads a text and predicts, at every position, the token that comes next. We train two small ones on something that *cannot* be
# predicted: rolls of a fair die. Each row is twelve fresh rolls (the sides are numbered 0 to 5). The target at each position is the roll that follows. The
# last roll of a row has no successor in the row; `-100` is torch's sign for "no target here".


# %%
def dice_game():
    rolls = torch.randint(6, (64, 12))  # (B, T)
    following = F.pad(rolls[:, 1:], (0, 1), value=-100)  # the roll after each roll
    return rolls, following


inputs, targets = dice_game()
print("reads   ", inputs[0].tolist())
print("predicts", targets[0].tolist())

# %% [markdown]
# Training is the subject of lesson 08; here it is a tool. The loop draws a batch and measures the **loss**: how surprised the model was by the
# right answers, in nats. Then it changes all weights a little, so that the model would have been less surprised. A fair die has six sides, so the lowest
# loss that an honest player can expect is $\ln 6$.


# %%
def train(model, draw, n_steps, lr=1e-2):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, lr, n_steps, pct_start=0.1
    )
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
# `tx.TransformerConfig` holds the sizes of a model: `vocab_size` possible tokens, vectors of `d_model` numbers, and so on. `tx.LanguageModel` builds the model
# from it. The two models are alike in everything but one switch. With `causal=True` a position may attend to itself and to earlier positions. With
# `causal=False` every position may attend to every other. More to read, more to learn from: is that not better?

# %%
dice = tx.TransformerConfig(vocab_size=6, d_model=32, n_heads=1, n_layers=1, d_ff=64)
players, lines = {}, []
for name, causal in {"sees the past": True, "sees everything": False}.items():
    torch.manual_seed(1)
    players[name] = tx.LanguageModel(dice.replace(causal=causal))
    losses = train(players[name], dice_game, n_steps=150)
    lines.append(plots.Curve(name, range(1, 151), losses))
    print(
        f"{name:<17}loss after training {losses[-1]:.3f}     (ln 6 = {math.log(6):.3f})"
    )
fig, ax = plots.curves(
    lines, xlabel="training step", ylabel="loss (nats per roll)", y_range=(0, 2),
    references={"ln 6": math.log(6)}, title="Two models read dice",
)
plots.show(fig, name="02_predicting_dice")

# %% [markdown]
# One model stays near $\ln 6$, where every honest player stays. The other seems to predict dice, nearly without error. A result that is
# too good is the most important kind of suspicious result: it comes without an error message, and it pleases.
#
# **Predict 02.1.** Now the test that counts. We show eight rolls and ask for the ninth, *which has not been thrown yet*. We do so 3,000 times.

# %%
course.predict(
    "02.1", "How often is the model with the lower loss right about the ninth roll?",
    ["nearly always", "about half of the time", "about one time in six"],
)

# %%
rolls = torch.randint(6, (3000, 9))
share = {}
for name, player in players.items():
    # (B,) the likeliest ninth roll
    guesses = player(rolls[:, :8])[:, -1].argmax(dim=-1)
    share[name] = (guesses == rolls[:, 8]).float().mean().item()
    print(f"{name:<17}{share[name]:.3f} right     (by chance {1 / 6:.3f})")
right = share["sees everything"]
options = {
    1: "nearly always",
    0.5: "about half of the time",
    1 / 6: "about one time in six",
}
course.resolve(
    "02.1", options[min(options, key=lambda level: abs(level - right))],
    f"Right in {right:.1%} of the cases; chance is {1 / 6:.1%}.",
)

# %% [markdown]
# Both now score at chance level. In training, the answer was part of the input, one position to the right, and all that the second model ever learned was to copy
# it. What was missing is a rule about *who may attend to whom*: a **mask**. The rest
# of the lesson takes attention apart, puts the rule where it belongs, breaks it in all the usual ways, and builds the test that would have caught the cheat
# before any training.
#
# ## By hand: two words ask three
#
# Attention is a way to ask. Each word that asks has a **query**: $d$ numbers that say what it looks for. Each word that may be
# attended to has a **key**, $d$ numbers that say what it can be found by, and a **value**: what it hands over when found. Here two English words ask
# three French ones (*elle* is she, *chante* sings, *bien* well). We made the numbers up, with $d = 4$, so you can check them on paper.

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
# Follow *she* and *elle*: $2 \cdot 1 + 0 + 2 \cdot 1 + 0 = 4$, divided by $\sqrt{4}$ gives a **score** of 2. The three scores of *she* are 2, 0 and 1.
# Softmax turns them into **attention weights** that sum to one. The result, the **context**, is the mean of the three values by these weights. *She* attends
# most to *elle*, whose value is 10. Will its context be about 10?

# %% tags=["nbval-check-output"]
weights_by_hand, contexts_by_hand = attention_by_loops(queries, keys, values)
for word, weights, context in zip(
    english, weights_by_hand, contexts_by_hand, strict=True
):
    shares = "   ".join(
        f"{name} {w:.3f}" for name, w in zip(french, weights, strict=True)
    )
    print(f"{word:<6} attends to   {shares}   context {context[0]:.2f}")

# %% [markdown]
# A weight of a quarter on *bien* is enough: its 40 pulls the context of *she* far above 10. A context is a mixture, not a choice.
#
# Nothing in this asks the two sides to be equally long: two queries and three keys make a table of two rows and three columns. Each *row*
# belongs to one word that asks and sums to one; a column may sum to anything.
#
# ### Step through it
#
# The next picture answers back: click it, or reach it with the Tab key and use the arrows. It holds the numbers above, of *she* first, and takes them through one step at a time, from $q \cdot k$
# to the context. Choose *sings* and work out its steps before you read them off. One switch leaves the division by $\sqrt{d}$ out.
# Drag the numbers of $q$, too. *Why divide?* draws random queries and keys of any width, and compares softmax with the division and without it.

# %%
course.widgets.one_query(
    queries, keys, values, tokens=english, key_tokens=french, query=0
)

# %% [markdown]
# ## All at once: attention of y over x
#
# In a real model queries, keys and values are computed from the word vectors by three learned **weight matrices**. Let $y$ be the
# sequence that asks and $x$ the one it attends to, one vector in each row. Then
#
# $$Q_y = y\,W_Q, \qquad K_x = x\,W_K, \qquad V_x = x\,W_V,$$
#
# $$\text{attention}(y, x) = \operatorname{softmax}\left(\frac{Q_y K_x^\top}{\sqrt{d}}\right) V_x .$$
#
# In words: $Q_y K_x^\top$ holds all scores at once, softmax works along each row, and the product with $V_x$ takes all the means. The diagram shows the shapes, for the case $y = x$. $K$ is our $d$. $H$ counts
# heads, which come later; here there is one. `out_proj` is one more matrix (lesson 04).

# %%
plots.diagram("query-key-value")

# %% [markdown]
# And as code. Random matrices will do for now: the loops from above, given the same queries, keys and values, must return the same contexts.

# %%
# learned in a real model, random here
w_q, w_k, w_v = torch.randn(3, 8, 8) / math.sqrt(8)


def scores_of(y, x):
    return (y @ w_q) @ (x @ w_k).T / math.sqrt(8)  # (T, D) @ (D, S) -> (T, S)


def attend(y, x):
    return scores_of(y, x).softmax(dim=-1) @ (x @ w_v)  # (T, S) @ (S, D) -> (T, D)


y, x = torch.randn(2, 8), torch.randn(3, 8)
_, contexts = attention_by_loops(
    (y @ w_q).tolist(), (x @ w_k).tolist(), (x @ w_v).tolist()
)
torch.testing.assert_close(attend(y, x), torch.tensor(contexts))

# %% [markdown]
# **Self-attention** needs no new formula. It is the case $y = x$: a sequence asks itself, and the table of weights becomes square.
#
# Why not compare the word vectors themselves, as in lesson 00? Then the scores are $x x^\top$. Among vectors of equal
# length, each is most similar to itself, so *every word attends most to itself*. And the scores are symmetric: an article cannot look for a noun unless the noun looks equally hard for the article. Here
# are three words (*le roman beau*, the beautiful novel), one direction for each kind of word, and a $W_Q$ that says what each kind looks for.

# %% tags=["nbval-check-output"]
kinds = torch.eye(3)  # le is an article, roman a noun, beau an adjective
looks_for = torch.tensor([[0.0, 1, 0], [0, 0, 1], [0, 1, 0]])  # noun, adjective, noun
for name, scores in {
    "x xᵀ": kinds @ kinds.T,
    "x W_Q xᵀ": kinds @ looks_for @ kinds.T,
}.items():
    best = [["le", "roman", "beau"][s] for s in scores.argmax(dim=-1)]
    symmetric = torch.equal(scores, scores.T)
    print(
        f"{name:<10} le, roman, beau attend most to {', '.join(best):<18} symmetric: "
        f"{symmetric}"
    )

# %% [markdown]
# With a matrix for asking, *le* attends to *roman*, and *roman* need not attend back. (The table of *weights* need not be symmetric even where the scores are:
# softmax divides each row by its own sum.) One matrix is enough to make the scores asymmetric. A model has two, so queries and keys can have fewer numbers than the word vectors (lesson 04).
#
# `tx.attention` takes queries, keys and values and does the rest. Torch calls it `F.scaled_dot_product_attention`, and need not
# store the table of weights, which saves memory. Three ways, one result.

# %%
words = ["le", "roman", "est", "très", "beau"]  # the novel is very beautiful
x = torch.randn(5, 8)  # five vectors, one a word; also used in the next sections
q, k, v = x @ w_q, x @ w_k, x @ w_v
torch.testing.assert_close(tx.attention(q, k, v), attend(x, x))
torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v), attend(x, x))
print(
    "three ways agree; shape of the weights:", tuple(tx.attention_weights(q, k).shape)
)

# %% [markdown]
# ## Break it: attention without the scale
#
# Why divide by $\sqrt{d}$? A score is a sum of $d$ products. If the numbers in $q$ and $k$ are independent, with mean 0 and variance 1, each product has variance 1 as
# well, and the sum has variance $d$: scores grow like $\sqrt{d}$. Softmax raises $e$ to them. Below, 500 random queries meet 32 keys each, for growing
# $d$. Left of each arrow is the result with raw scores, right of it with divided scores. The last column measures **sensitivity**: how much the weights change if the scores change a little,
# $1 - \sum_s w_s^2$ (the sum of the slopes $w_s (1 - w_s)$). The picture shows the largest weights, with one dashed level to compare with: an even spread over 32 keys, $1/32$.

# %%
widths = [4, 16, 64, 256, 1024]
largest = {"not divided": [], "divided by √d": []}
print("  d    spread of scores    largest weight      sensitivity")
for d in widths:
    q_wide, k_wide = torch.randn(500, d), torch.randn(500, 32, d)
    raw = torch.einsum("nd,nsd->ns", q_wide, k_wide)  # 500 queries, 32 keys for each
    rows = {
        "not divided": raw.softmax(-1),
        "divided by √d": (raw / math.sqrt(d)).softmax(-1),
    }
    for name, row in rows.items():
        largest[name].append(row.amax(-1).mean().item())
    give = [(1 - row.square().sum(-1)).mean().item() for row in rows.values()]
    top = [heights[-1] for heights in largest.values()]
    assert abs(raw.std().item() / math.sqrt(d) - 1) < 0.1  # as announced
    print(
        f"{d:>4}{raw.std():>13.1f}{top[0]:>16.2f} → {top[1]:.2f}{give[0]:>12.2f} → "
        f"{give[1]:.2f}"
    )
assert give[0] < 0.2 and give[1] > 0.8  # at the largest width
fig, ax = plots.curves(
    [plots.Curve(name, widths, heights) for name, heights in largest.items()],
    xlabel="d, the numbers in a query or key",
    ylabel="largest weight of a row (mean)",
    x_log=True,
    y_range=(0, 1),
    references={"even spread, 1/32": 1 / 32},
    title="The largest of 32 weights",
)
for line in ax.lines[:2]:
    line.set_marker("o")
ax.set_xticks(widths, [str(d) for d in widths])
ax.minorticks_off()
assert largest["not divided"][-1] > 0.8 and max(largest["divided by √d"]) < 0.3
plots.show(fig, name="02_why_divide")

# %% [markdown]
# Divided, the weights hardly depend on $d$. Undivided, at large $d$ nearly all weight is on one key, chosen by the accident of the random
# numbers. Worse, such a softmax is **saturated**: it is flat, so almost no gradient flows back. (We measured slopes; no model was trained without the scale here.)
#
# ## The causal mask
#
# Now the rule. To predict the next token, position $t$ may attend to positions $0, \ldots, t$: to its **left** and to itself. To block a position, we add $-\infty$ to its
# score *before* softmax. Since $e^{-\infty} = 0$, its weight is zero, not nearly but exactly, and the row still sums to one. Take *roman*, the second of our five
# words, with scores that can be checked on paper.

# %% tags=["nbval-check-output"]
# of roman with: le, roman, est, très, beau
scores = torch.tensor([1.0, 2.0, 0.0, 1.0, 3.0])
# 0 leaves a score as it is
blocked = torch.tensor([0.0, 0.0, -math.inf, -math.inf, -math.inf])
for name, row in {"no mask": scores, "left and self": scores + blocked}.items():
    print(f"{name:<14}", [round(w, 3) for w in row.softmax(dim=-1).tolist()])

# %% [markdown]
# The three blocked words have *exactly* zero, and the two allowed ones share everything in their old proportion, $e^1 : e^2$.
#
# For all five words the rule is a square table, the **causal mask**. `tx.causal_mask` writes it with `True` where a word **may** attend; row $t$ is the query. Older code
# *adds* a table of 0 and $-\infty$ instead, and torch has a function that makes it. Both say the same.

# %%
mask = tx.causal_mask(5)
position = torch.arange(5)
assert torch.equal(mask, position[:, None] >= position[None, :])  # t down, s across
# 0 where allowed, -inf where not
added = torch.zeros(5, 5).masked_fill(~mask, -math.inf)
assert torch.equal(added, nn.Transformer.generate_square_subsequent_mask(5))
by_adding = (scores_of(x, x) + added).softmax(dim=-1)
torch.testing.assert_close(by_adding, tx.attention_weights(q, k, mask))

# %% [markdown]
# ### Look
#
# Left the mask, right the weights it leaves. Say first: which row of the right map holds a single 1.00, and which row is the same as without any mask?
# Grey and hatched means *not allowed*, and white means *allowed, with a weight near zero*.

# %% tags=["folded"]
fig, axes = plots.figure(1, 2, width=9.4, height=3.9)
common = {
    "allowed": mask,
    "row_labels": words,
    "col_labels": words,
    "low": 0,
    "high": 1,
}
plots.heatmap(mask, **common, title="The mask: True is blue", ax=axes[0])
weights = tx.attention_weights(q, k, mask)
plots.heatmap(weights, **common, numbers=".2f", title="The weights", ax=axes[1])
fig.supxlabel("key (attended to)")
fig.supylabel("query (attends)")
plots.show(fig, name="02_causal_mask")

# %% [markdown]
# *le*, the first word, can only attend to itself. *beau*, the last, sees everything: its row is the one without a mask.
#
# ## The leak test
#
# How could we have caught the dice cheat *before* training? A mask is a promise about what can influence what, and influence can be tested: **change one input, and see which
# outputs move.** `moved[t, s]` below says whether output $t$ moved when input $s$ was changed. Rows and columns are those of the mask, and an honest model has
# `True` only where the mask has.


# %% tags=["nbval-check-output"]
@torch.no_grad()
def moves(model, inputs):
    before = model(inputs)  # (T, ...) -> (T, D)
    moved = torch.zeros(len(before), len(inputs), dtype=torch.bool)
    for s in range(len(inputs)):
        changed = inputs.clone()
        changed[s] = changed[s] + 1
        after = model(changed)
        # exactly, not nearly
        same = (after == before) | (after.isnan() & before.isnan())
        moved[:, s] = ~same.all(dim=-1)
    return moved


def masked(x):
    return tx.attention(x @ w_q, x @ w_k, x @ w_v, mask)


for name, model in {"with the mask": masked, "without": lambda x: attend(x, x)}.items():
    allowed_only = torch.equal(moves(model, x), mask)
    print(f"{name:<14} moves exactly where the mask allows: {allowed_only}")

# %% [markdown]
# ## Break it: ways to get the mask wrong
#
# Each of these is quickly written, and each runs without complaint: setting weights to zero *after* softmax;
# multiplying scores by 0 *before* it; adding a table of 1 and 0; "a mask of 1 and $-\infty$", added or multiplied, which is a common mixture of two rules; the transposed triangle; a triangle
# one position too far, or one too short.

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
    "one too far": lambda s: s.masked_fill(ones.tril(1) == 0, -math.inf).softmax(
        dim=-1
    ),
    "one too short": lambda s: s.masked_fill(ones.tril(-1) == 0, -math.inf).softmax(
        dim=-1
    ),
}

# %% [markdown]
# **Predict 02.2.** One of them is treacherous. Its weights are clean: no NaN ("not a number"), and zero everywhere right of the diagonal. And yet the future *leaks*
# into the outputs.

# %%
course.predict(
    "02.2",
    "Which mask leaves no weight on the future, has no NaN, and leaks all the same?",
    ["zeroed after softmax", "1 and 0 added", "1 and -inf added", "one too short"],
)

# %% [markdown]
# The symptoms, one column each. *Rows sum to 1*, *NaN* and *future weight* (something above zero right of
# the diagonal) can be read off the weights. *Leaks* needs the test above. A good mask reads True, False, False, False.

# %%
print(f"{'':<22}{'rows sum to 1':<16}{'NaN':<8}{'future weight':<16}leaks")
treacherous = []
for name, weights_from in attempts.items():
    weights = weights_from(scores_of(x, x))
    # f: of this round
    moved = moves(lambda x, f=weights_from: f(scores_of(x, x)) @ (x @ w_v), x)
    whole = torch.allclose(weights.sum(dim=-1), torch.ones(5))
    broken, future = weights.isnan().any().item(), (weights[~mask] > 0).any().item()
    leaks = moved[~mask].any().item()
    print(f"{name:<22}{whole!s:<16}{broken!s:<8}{future!s:<16}{leaks}")
    if leaks and not broken and not future:
        treacherous.append(name)
(name,) = treacherous
course.resolve("02.2", name, f"“{name}” leaks without any weight on the future.")

# %% [markdown]
# Zeroing after softmax leaves no weight on the future, and yet it leaks: the *denominator* of softmax was computed with all words in it, so
# the future decides how much is left for the past. "Scores times 0" fails because a score of 0 is not a weight of 0: $e^0 = 1$.
#
# And 1 and $-\infty$? *Added*, it comes out right, by luck: softmax does not change when all scores of a row grow by the same amount. The mistake shows when you take the 1 at its word and
# *multiply*: a negative score times $-\infty$ is $+\infty$, and softmax makes NaN of it. So whether a row is NaN depends on the *signs of future scores*: that is its leak (and NaN is not above zero, so the
# column *future weight* misses it). Say "0 and $-\infty$, added", or, with less to misread, "True and False". `tx.attention`
# accepts nothing but booleans.
#
# In the picture nothing is hatched on purpose: you see the weights as they come out. In which panel does only the last row sum to one, and why?

# %% tags=["folded"]
fig, axes = plots.figure(2, 3, width=9.6, height=6.6, sharex=True, sharey=True)
shown = [name for name in attempts if "1 and" not in name]
style = {
    "row_labels": words,
    "col_labels": words,
    "numbers": ".2f",
    "low": 0,
    "high": 1,
}
for panel, name in zip(axes.flat, shown, strict=True):
    plots.heatmap(attempts[name](scores_of(x, x)), **style, title=name, ax=panel)
fig.supxlabel("key (attended to)")
fig.supylabel("query (attends)")
plots.show(fig, name="02_wrong_masks")

# %% [markdown]
# Zeroed after softmax, only the last row sums to one: the others lost a part to the future. The *transposed* triangle is not nonsense: it is the rule of a model that reads from right to left. A
# left-to-right model takes its context from the left; "context from the right" is a common slip, and it is this panel.

# %% [markdown]
# ## Padding
#
# Sentences differ in length, and a batch is a rectangle. Short rows are filled up on the right with a special id, the **padding**, which means nothing, so
# no token may attend to it. The **padding mask** is one comparison. Unlike the causal mask it has a row for each *sentence*, and speaks only of *keys*.

# %% tags=["nbval-check-output"]
sentences = [[11, 12, 13, 14, 15], [21, 22, 23], [31]]
batch = torch.zeros(3, 5, dtype=torch.long)  # (B, S), 0 is the padding
for row, ids in enumerate(sentences):
    batch[row, : len(ids)] = torch.tensor(ids)
real = batch != 0  # (B, S), True = a real token
assert torch.equal(real, tx.padding_mask(batch, pad_id=0))
print(batch)
print(real.int())

# %% [markdown]
# Both rules together: a key is allowed if *every* rule allows it, so masks are combined by "and". The shapes have to be lined up first. Attention weights of a model have shape (B, H, T, S): batch, heads, queries, keys.
# The padding mask has only (B, S), so we insert two axes of size 1. Broadcasting does the rest, and each sentence gets a triangle of its own.

# %% tags=["folded"]
both = real[:, None, None, :] & mask  # (B, 1, 1, S) and (T, T) -> (B, 1, T, S)
assert torch.equal(both, tx.combine_masks(real[:, None, None, :], mask))
fig, axes = plots.figure(1, 3, width=9.6, height=3.7)
for n, panel in enumerate(axes):
    ids = ["pad" if token == 0 else str(token) for token in batch[n].tolist()]
    style = {
        "row_labels": ids,
        "col_labels": ids,
        "title": f"sentence {n}",
        "low": 0,
        "high": 1,
    }
    plots.heatmap(
        both[n, 0], allowed=both[n, 0], **style, xlabel="key (attended to)", ax=panel
    )
axes[0].set_ylabel("query (attends)")
plots.show(fig, name="02_causal_and_padding")

# %% [markdown]
# Hatched columns: no token attends *to* padding. The rows of padding are still there; something is computed for them, and it is never read.
#
# ### A query that may see nothing
#
# Had we padded on the *left*, a padding row would have no allowed key at all. What is the mean of nothing? With $-\infty$ it is $0/0$. With a "very negative
# number" instead, all keys tie, and everything forbidden is averaged. In this course the answer is zeros.

# %% tags=["nbval-check-output"]
# two paddings, three words
left_padded = torch.tensor([False, False, True, True, True])
allowed = left_padded & mask  # (T, T): rows 0 and 1 may see nothing
for fill in (-math.inf, -1e9):
    weights = scores_of(x, x).masked_fill(~allowed, fill).softmax(dim=-1)
    print(f"filled with {fill:<16}", [round(w, 2) for w in weights[0].tolist()])
print(f"{'tx.attention_weights':<28}", tx.attention_weights(q, k, allowed)[0].tolist())
assert torch.equal(tx.attention(q, k, v, allowed)[:2], torch.zeros(2, 8))

# %% [markdown]
# The first spoils everything: a NaN spreads through the layers to the loss, and from there into every weight. But you see it. The second is silent.
#
# ### Draw your own
#
# All of this in one picture. Combine the causal mask, padding, a **window** (each token attends only to the last few) and a **prefix** (the first tokens, to which all may attend), or switch single cells. The rows below show what softmax makes of your mask and what each row sums to, and the leak test
# runs at every change. Two things to try: open one cell of the future and see which outputs begin to move; and mask *after* softmax and read the sums.

# %%
course.widgets.mask(words, padding=1)

# %% [markdown]
# **Predict 02.3.** Set a window of two: each word attends to itself and to the one before. Now stack two such layers: a word in the second layer attends to words that have themselves attended to others.

# %%
course.predict(
    "02.3",
    "Window of two, two layers: from how many positions back can information reach the "
    "last word?",
    ["one", "two", "four"],
)

# %% [markdown]
# The mask says which position can pass information to which in one layer. For two layers, multiply the mask by itself: from $s$ to some word, and from there to $t$.

# %%
reach = {}
for window in (2, 3):
    steps = (
        mask & (position[:, None] - position < window)
    ).float()  # one layer, (T, T)
    for n_layers in (1, 2):
        paths = torch.linalg.matrix_power(steps, n_layers)[-1]  # into the last word
        reach[window, n_layers] = 4 - int(paths.nonzero()[0])
        assert reach[window, n_layers] == n_layers * (window - 1)
        print(f"window {window}, layers {n_layers}: {reach[window, n_layers]} back")
course.resolve(
    "02.3", {1: "one", 2: "two", 4: "four"}[reach[2, 2]],
    f"{reach[2, 2]} back: with a window of w, each layer adds w - 1 positions.",
)

# %% [markdown]
# A leak travels in the same way, which is why one open cell in one layer is enough to spoil a deep model.
#
# ## Two signs for one rule
#
# Within torch itself the same boolean mask is read in two opposite ways. `F.scaled_dot_product_attention` takes `True` as *may attend*, as we do. The module
# `nn.MultiheadAttention`, and the encoder layers built on it, take `True` as *blocked*. To show it beyond doubt, we copy the weights of our module into theirs. (Both have three **heads**: each splits the twelve numbers of
# a query and key into three groups of four, and each group attends by itself, so one word can look for several things at once. Lesson 04 builds them.)


# %% tags=["nbval-check-output"]
def torch_twin(ours):
    theirs = nn.MultiheadAttention(
        ours.q_proj.in_features, ours.n_heads, batch_first=True
    )
    three = (ours.q_proj, ours.k_proj, ours.v_proj)
    with torch.no_grad():
        # (3 D, D)
        theirs.in_proj_weight.copy_(torch.cat([proj.weight for proj in three]))
        theirs.in_proj_bias.copy_(torch.cat([proj.bias for proj in three]))
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())
    return theirs


ours = tx.MultiHeadAttention(d_model=12, n_heads=3)
theirs = torch_twin(ours)
torch.testing.assert_close(
    F.scaled_dot_product_attention(q, k, v, attn_mask=mask), tx.attention(q, k, v, mask)
)
sentence = torch.randn(1, 5, 12)  # (B, T, D)
# True and False exchanged
output, _ = theirs(sentence, sentence, sentence, attn_mask=~mask)
torch.testing.assert_close(output, ours(sentence, mask=mask))
_, flipped = theirs(sentence, sentence, sentence, attn_mask=mask)  # ours as it is
print(
    "with the wrong sign, query attends to key:\n", (flipped[0].nan_to_num() > 0).int()
)
print("NaN in rows:", flipped[0].isnan().any(dim=-1).nonzero().flatten().tolist())

# %% [markdown]
# Their module with `~mask` equals ours with `mask`. Given *our* mask as it is, a mistake that can cost an evening, every word attends to the future only, and the last one, which has none, gets NaN.
#
# That NaN is hard to overlook. What does the wrong sign do to a *padding* mask? Take the batch from above, with five, three and one real tokens. With the sign wrong, sentence 1 attends to its two paddings and nothing else. In sentence 0, the longest,
# there is no padding, so *every* key is blocked.
#
# **Predict 02.4.** The module has two paths of computation: one that returns the attention weights (`need_weights=True`, the default) and a faster one that does not (`need_weights=False`, used inside torch's encoder layers).

# %%
course.predict(
    "02.4", "What does attention return for sentence 0, all of whose keys are blocked?",
    ["NaN on both paths", "zeros on both paths", "NaN on one path, zeros on the other"],
)

# %%
vectors = torch.randn(3, 5, 12)  # (B, T, D), a batch padded like the one above
outcomes = []
for need_weights in (True, False):
    contexts, weights = theirs(
        vectors, vectors, vectors, key_padding_mask=real, need_weights=need_weights
    )
    contexts = contexts - theirs.out_proj.bias  # before the bias of the last layer
    if weights is not None:
        print(
            "sentence 1, its first word attends:",
            [round(w, 2) for w in weights[1, 0].tolist()],
        )
    broken = contexts[0].isnan().all()
    outcomes.append(
        "NaN" if broken else "zeros" if (contexts[0] == 0).all() else "numbers"
    )
    print(f"need_weights={need_weights!s:<6} sentence 0: {outcomes[-1]}")
both_alike = f"{outcomes[0]} on both paths"
answer = (
    both_alike if outcomes[0] == outcomes[1] else "NaN on one path, zeros on the other"
)
course.resolve("02.4", answer, f"With weights: {outcomes[0]}. Without: {outcomes[1]}.")

# %% [markdown]
# So the same mistake gives NaN on one path and zeros on the other. Which one depends on an option that seems to be about something else. On the fast path the longest sentence of each batch loses its context and the others read padding. No error, no
# NaN, nothing to see from outside. The control: with the sign put right, both paths agree with ours on every real token.

# %%
right = ours(vectors, mask=real[:, None, None, :])
layer = nn.TransformerEncoderLayer(12, nhead=3, dropout=0.0, batch_first=True)
for need_weights in (True, False):
    contexts, _ = theirs(
        vectors, vectors, vectors, key_padding_mask=~real, need_weights=need_weights
    )
    torch.testing.assert_close(contexts, right)
# the wrong sign, silently
assert not layer(vectors, src_key_padding_mask=real).isnan().any()
print(
    "right sign: both paths agree with ours; torch's encoder layer takes the wrong "
    "sign silently"
)

# %% [markdown]
# ## The leak test, through a whole model
#
# One layer with a mask does not leak. But is that enough? Layers are stacked: word 3 may attend to word 2, which has attended to word 1 before.
# What if some detour led back from the future? A language model is a table of token vectors, then **blocks** (attention and a small network for each position, lesson 05), then an output layer. We take it without the output layer, `tx.Transformer`, the **backbone**, with four blocks and
# random weights, change the token at position 4, and record the **hidden states**, the vectors that each block returns.
#
# Each row of the picture is a layer of the model, from the embeddings (before any attention) to what the last block returns; each column is a position. The number is
# the largest movement there, and a plain `0` is an exact zero: not one bit has changed. (From 0.5 up all cells are equally dark.) In the upper panel, do you expect a staircase or a wall?

# %%
deep = tx.TransformerConfig(vocab_size=50, d_model=32, n_heads=2, n_layers=4, d_ff=64)
masked_body = tx.Transformer(deep)
open_body = tx.Transformer(deep.replace(causal=False))
# same weights, only the mask is gone
open_body.load_state_dict(masked_body.state_dict())
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
assert (
    (with_mask[:, :4] == 0).all()
    and (with_mask[1:, 4:] > 0).all()
    and (without[1:] > 0).all()
)
levels = ["embeddings"] + [f"after block {n}" for n in range(1, 5)]
style = {"row_labels": levels, "numbers": ".2g", "low": 0, "high": 0.5}
fig, axes = plots.figure(2, 1, width=8.6, height=6.0)
plots.heatmap(
    with_mask, **style, title="With the mask: how far each vector moves", ax=axes[0]
)
plots.heatmap(without, **style, title="The mask removed", xlabel="position", ax=axes[1])
plots.show(fig, name="02_leak_test")

# %% [markdown]
# A wall: one block is enough to move every position on the right. With the mask, the left side stays at zero in every later block: no detour leads back, since every path leads to the right or
# stays at its position. Without it, one block is enough to move every position.
#
# ### Whose mask is it?
#
# "The causal mask belongs to the decoder" is often said. The original Transformer does have two stacks: an **encoder** without this mask, which reads the source, and a
# **decoder** with it, which writes the translation and attends to the encoder's output. Together they need three masks.

# %%
plots.diagram("three-masks")

# %% [markdown]
# But a mask is just an argument to attention. We change every token in turn, so the promise becomes one sentence: *the table of what moves is the causal mask*. Besides our backbones we test torch's **encoder**, without and with a causal mask.

# %% tags=["nbval-check-output"]
layer = nn.TransformerEncoderLayer(24, nhead=3, dropout=0.0, batch_first=True)
encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
tested = {
    "our backbone": (lambda row: masked_body(row[None])[0], ids[0]),
    "ours, mask removed": (lambda row: open_body(row[None])[0], ids[0]),
    "torch's encoder": (encoder, torch.randn(5, 24)),
    "the same with the mask": (
        lambda row: encoder(row, mask=added),
        torch.randn(5, 24),
    ),
}
for name, (model, inputs) in tested.items():
    same = torch.equal(moves(model, inputs), tx.causal_mask(len(inputs)))
    print(f"{name:<24}moves like the causal mask: {same}")

# %% [markdown]
# An encoder stack with the mask no longer sees ahead, and can be trained to predict next tokens. It *is* what people call a **decoder-only** model: a decoder without the part that attends to
# an encoder. `tx.TransformerConfig(causal=True)` builds the same.
#
# ## Cross-attention: another sequence, another length
#
# When $y$ and $x$ are two sequences, one speaks of **cross-attention**; the sequence attended to is called the **memory**. The package writes it as `module(y, memory=x)`. A translator does
# this: the English so far asks the French sentence, all of which is known, so there is *no* causal mask between them. Padding in the memory stays blocked. Now the leak test: change one token of the memory; which outputs move? Change one that asks; which now?

# %% tags=["nbval-check-output"]
asking, memory = torch.randn(1, 4, 12), torch.randn(1, 6, 12)  # (B, T, D), (B, S, D)
# the memory ends in padding
is_real = torch.tensor([[True, True, True, True, False, False]])
allowed = is_real[:, None, None, :]  # (B, 1, 1, S)
# their sign again
by_torch, _ = theirs(asking, memory, memory, key_padding_mask=~is_real)
torch.testing.assert_close(ours(asking, memory, allowed), by_torch)
by_memory = moves(lambda x: ours(asking, x[None], allowed)[0], memory[0])  # (T, S)
by_asking = moves(lambda y: ours(y[None], memory, allowed)[0], asking[0])  # (T, T)
print("a memory token changes:\n", by_memory.int())
print("an asking token changes:\n", by_asking.int())

# %% [markdown]
# A real memory token moves every output, a padded one moves none. But an asking token moves only its own output: queries never see each other. That is why a
# decoder has *both* kinds, self-attention among its own words and cross-attention to the memory.
#
# ## Use it: a task with a known solution
#
# What does a *learned* attention map look like? For real text the right one is unknown. So we take a task for which we know a good one. The model reads ten random
# letters of five kinds. At each position $t \ge 2$ it must name a pair: the letter **two back**, and the **first** letter of the row. With one layer and two heads,
# one natural solution is known before any training: one head attends two back, a stripe below the diagonal, and the other to position 0, a column. The only signal in training is the loss on the pairs.

# %%
N_LETTERS, SEQ_LEN, BACK = 5, 10, 2


def letter_game(n_rows=64):
    letters = torch.randint(N_LETTERS, (n_rows, SEQ_LEN))  # (B, T)
    two_back, first = letters[:, :-BACK], letters[:, :1]
    pairs = two_back * N_LETTERS + first  # (B, T - 2), one number for the two answers
    # positions 0 and 1 have no target
    return letters, F.pad(pairs, (BACK, 0), value=-100)


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


game = tx.TransformerConfig(
    vocab_size=N_LETTERS**2, d_model=32, n_heads=2, n_layers=1, d_ff=32
)
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
    learned_maps = recorded["body.blocks.0.attn"].mean(dim=0)  # mean over 500 rows
    order, fits = fit(learned_maps)
    results.append([*fits, right])
# both jobs and the pairs, in each seed
assert min(min(result) for result in results) > 0.7

# %% [markdown]
# The first line of the table is a baseline: attending evenly to all that is allowed, and guessing one pair in 25. The number after ± is the standard deviation over the seeds. Softmax comes near a fit of 1 but
# never quite reaches it, as it gives every allowed position a little. A 1.00 in the table is rounded.

# %%
alike = torch.zeros(2, SEQ_LEN, 1)  # queries and keys that all match equally well
_, even = fit(tx.attention_weights(alike, alike, tx.causal_mask(SEQ_LEN)))
std, mean = torch.std_mean(torch.tensor(results), dim=0)
print(f"{'':<22}two back      first         pairs right")
print(f"{'even, or a guess':<22}{even[0]:<14.2f}{even[1]:<14.2f}{1 / N_LETTERS**2:.2f}")
cells = [f"{m:.2f} ± {s:.2f}" for m, s in zip(mean, std, strict=True)]
print(f"{'trained, three seeds':<22}{cells[0]:<14}{cells[1]:<14}{cells[2]}")

# %% [markdown]
# Here are the maps of the last seed: before training, after it, and the known ones. Where do you expect the middle column to differ from the right one?

# %% tags=["folded"]
fig, axes = plots.figure(2, 3, width=9.8, height=6.8)
stages = {"random": random_maps[order], "trained": learned_maps[order], "known": known}
style = {"allowed": tx.causal_mask(SEQ_LEN), "low": 0, "high": 1}
for column, (name, maps) in zip(axes.T, stages.items(), strict=True):
    plots.heatmap(maps[0], **style, title=f"{name}: two back", ax=column[0])
    plots.heatmap(maps[1], **style, title=f"{name}: the first", ax=column[1])
fig.supxlabel("key position (attended to)")
fig.supylabel("query position (attends)")
plots.show(fig, name="02_learnt_and_known_maps")

# %% [markdown]
# They differ most in the first two rows: there is no target at positions 0 and 1, so what the heads do there is free (and position 0 has no choice). In the other rows most of the weight is
# where we expected it, as the fits above say. In all three seeds the two heads divided the work as we wrote down beforehand.
#
# Those maps were means over 500 rows. Here is the same model on a single row of letters. Choose a letter, or move with the arrow keys, and read how its weight is spread: by the lines, by the numbers, and by the entropy,
# which counts in bits how undecided the head is. *Untrained* shows the same layers with new random weights. Find two equal letters in the row, and check that the heads tell them apart.

# %%
course.widgets.attention(
    model, ["ABCDE"[letter] for letter in letters[0]],
    token_ids=letters[:1], head=1, query=7,
    untrained=True,
)  # fmt: skip

# %% [markdown]
# You will meet this explorer again, with more layers and more heads. Two questions that it raises can be answered in numbers. Which head is less undecided? And how much weight did the two *dice* models put on the next position, where the answer was?

# %%
entropy = (
    -(learned_maps := recorded["body.blocks.0.attn"][:, order]).clamp_min(1e-12).log2()
)
bits = (entropy * learned_maps).sum(dim=-1)[:, :, BACK:].mean(dim=(0, 2))  # (H,)
print(f"entropy: {bits[0]:.2f} bits (two back), {bits[1]:.2f} bits (the first)")
for name, player in players.items():
    with tx.record_attention(player) as recorded:
        player(dice_game()[0])
    weights = recorded["body.blocks.0.attn"]  # (B, H, T, T)
    print(
        f"{name:<17} weight on the next position: "
        f"{weights.diagonal(1, 2, 3).mean():.2f}"
    )

# %% [markdown]
# ### A padded batch gives what single rows give
#
# One more use, and a test that every model of this course has to pass. Whether a sentence is read alone or in a batch with longer ones must not change anything. A backbone without a causal mask needs the padding mask for that.
# Does a causal one, padded on the right? Think about which positions the padding is in before you read the output.

# %% tags=["nbval-check-output"]
for name, body in {"no causal mask": open_body, "causal": masked_body}.items():
    for which, given in {"padding mask": real, "no padding mask": None}.items():
        padded_rows = zip(body(batch, given), sentences, strict=True)
        alone = [
            (row[: len(ids)], body(torch.tensor([ids]))[0]) for row, ids in padded_rows
        ]
        same = all(
            torch.allclose(padded, single, atol=1e-5) for padded, single in alone
        )
        print(f"{name:<16}{which:<18}as single rows: {same}")

# %% [markdown]
# A causal backbone needs no padding mask when the padding is on the right: real tokens never attend there. (What is computed *at* the padding is still meaningless, and a loss must leave it out.)
#
# ## What this does not show
#
# - A map says where a head *attends*, not what it makes of it. The values, the other layers and the direct path around attention count as well. In a task built so that attending is
#   all there is, map and meaning agree; for real text whether they do is disputed (Jain and Wallace, 2019).
# - The leak test finds what flows through the model. It does not find an answer that is in the *data*, such as a target that was not shifted.
# - A test on random weights can show that something moves. That nothing moves, at exactly zero, follows from the mask and holds for all weights; that something *does* move may fail by accident. Adding the same 1 to all numbers of a vector, as `moves` does, is
#   invisible to a model that begins with a layer norm (lesson 03 shows why): there, add different numbers, as the last exercise does.
# - We never asked how a head can *know* what is two back. Attention itself is blind to order. That is the next lesson.
#
# ## Take-home
#
# The whole lesson on one screen: two masks, attention, and the test that keeps it honest.

# %%
def masked_attention(q, k, v, mask):
    """q (..., T, K), k and v (..., S, K), mask (..., T, S), True = may attend."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T, S)
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights.nan_to_num(0.0) @ v  # a query that may see nothing gets zeros


def build_masks(token_ids, pad_id):
    position = torch.arange(token_ids.shape[1])
    causal = position[:, None] >= position[None, :]  # (T, T): query t, key s
    real = token_ids != pad_id  # (B, S)
    return causal & real[:, None, :]  # (B, T, S)


def honest(
    model, x
):  # does changing input s and all later ones move no output before s?
    before = model(x)
    for s in range(1, len(x)):
        changed = torch.cat((x[:s], torch.randn_like(x[s:])))
        if not torch.equal(model(changed)[:s], before[:s]):
            return False
    return True


vectors = torch.randn(3, 5, 8)
allowed = build_masks(batch, pad_id=0)
contexts = masked_attention(vectors, vectors, vectors, allowed)
torch.testing.assert_close(contexts, tx.attention(vectors, vectors, vectors, allowed))
assert honest(lambda x: masked_attention(x, x, x, mask), x)
assert not honest(lambda x: attend(x, x), x)

# %% [markdown]
# ## Questions
#
# Before you write code, some questions without any. Pick an answer, and read what it gets back: the wrong ones are not foolish, and several are common mistakes.

# %%
course.quiz("attention_and_masks")

# %% [markdown]
# ## Exercises
#
# Now you. First two puzzles: put the lines of a small program in order; some come in pairs, and one of each pair is wrong.

# %%
course.parsons("causal_mask")

# %%
course.parsons("attention")

# %% [markdown]
# Each exercise below has a cell with dots to fill in and a cell that checks what you wrote. The check says more than right or wrong: where your answer differs, on the
# smallest input it could find, and, if it knows the mistake, what it is. As long as there are only dots, it says "not attempted yet", and nothing else in the lesson waits for you.

# %% [markdown]
# [exercise: causal_mask]


# %%
def causal_mask(seq_len):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("causal_mask", causal_mask)

# %% [markdown]
# [exercise: padding_mask]


# %%
def padding_mask(token_ids, pad_id):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("padding_mask", padding_mask)

# %% [markdown]
# [exercise: attention]


# %%
def attention(q, k, v, mask):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("attention", attention)

# %% [markdown]
# [exercise: leaks_future]


# %%
def leaks_future(model, x):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("leaks_future", leaks_future)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** A common sentence: "The model reads from left to right, so each word takes its context from the right." Which panel of the wrong masks is that, and which outputs would the leak test see moving?
#
# <details><summary>Answer</summary>
#
# The transposed one. Reading from left to right, what is already known is on the *left*, so the context comes from there. With the transposed mask, `moved` is the upper
# triangle. Such a model can be trained, but to predict the *previous* word.
#
# </details>
#
# **2.** In the dice game, give the model `causal=True` but forget to shift: let the targets be the rolls themselves. What will the loss be, and will the leak test notice?
#
# <details><summary>Answer</summary>
#
# The loss should fall to nearly zero again: a position may attend to itself, and the answer is there. The leak test sees nothing, since the mask is as it should be. What is wrong is the
# data, so a result that is too good has more than one possible cause. Compare with what an honest player can reach: here $\ln 6$.
#
# </details>
#
# **3.** A colleague concludes: "BERT is an encoder, so it cannot have a causal mask." What would happen if it had?
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
# 2. Scores spread like $\sqrt{d}$. Dividing keeps softmax from saturating; without it one key takes nearly all the weight at large $d$.
# 3. A mask is True where a query may attend, and acts *before* softmax, as 0 and $-\infty$ added. After softmax is too late, since the denominator has already seen everything. Several masks are combined by
#    "and"; a query that may see nothing gets zeros. Torch reads booleans in two opposite ways, and the wrong one can pass silently.
# 4. Change one input and see which outputs move: for a causal model that table is the causal mask, to exactly zero, in every layer.
# 5. In a task with two jobs, two heads divided them, in all three seeds. Where a good map is known, a learned one can be compared with it.
#
# *Where this comes from:* Vaswani et al., *Attention Is All You Need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), sections 3.2.1 (equation 1, and footnote 4 for the scale), 3.2.2 (heads) and 3.2.3 (the three uses, and the mask
# inside softmax). Attention between two languages: Bahdanau, Cho and Bengio, [arXiv:1409.0473](https://arxiv.org/abs/1409.0473), section 3. A decoder-only model: Liu et al.,
# [arXiv:1801.10198](https://arxiv.org/abs/1801.10198). What maps do not show: Jain and Wallace, *Attention is not Explanation*, [arXiv:1902.10186](https://arxiv.org/abs/1902.10186).
#
# *What comes next:* lesson 03 gives the model a sense of order.
