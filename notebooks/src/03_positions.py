# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 03 · Positions
#
# **How does it know the order of words?**
#
# After this lesson you can
#
# 1. show that attention with neither positions nor a mask is blind to order, and say what adding 0, 1, 2, … does about it;
# 2. write down the sinusoidal table by hand, and read it as a row of clocks;
# 3. prove that moving on by $k$ words is one fixed rotation, and why it takes sine *and* cosine;
# 4. build rotary positions and the biases of ALiBi by hand, and say what each can know and what it cannot;
# 5. train short, test long, and read off which positions hold.
#
# *You need:* attention, as in [lesson 02](02_attention_and_masks.ipynb) (or its first taste in [lesson 00](00_start_here.ipynb)), and sine and cosine from school.
# *It takes:* an hour and a quarter to read, three quarters of an hour for the exercises, half a minute to run. It has two halves: *clocks and turns* builds the codes, and from "Use it" on they are trained short and tested long. Take a break between.

# %% [markdown]
# ## Set-up
#
# Two very small models are trained near the end. With the budget `smoke` they make a few steps only: everything runs then, but
# nothing is learned. One thread is faster than several here, because the matrices are so small.

# %%
import math
from collections import Counter

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_course.results import read_results
from tinytx_run.recipes import default_budget

smoke = default_budget() == "smoke"
_ = torch.set_num_threads(1), torch.manual_seed(0)

# %%
course.recall("03")

# %% [markdown]
# ## Why: two reviews, one bag of words
#
# Here are two verdicts in the language of the course. *The beginning is boring, but the hero is magnificent*: that reader liked the book. Exchange two words, and
# the other reader did not. (*début* is beginning, *ennuyeux* boring, *mais* but.) The language is made by a grammar whose probabilities we can compute, so we ask it how
# likely a review that says this is favourable. (A review has at least two sentences, so we say it twice.)

# %%
world = tx.World()
liked = world.split("Le début est ennuyeux, mais le héros est magnifique.")
disliked = world.split("Le début est magnifique, mais le héros est ennuyeux.")
for words in (liked, disliked):
    print(f"{world.label_posterior(words + words):6.1%} favourable:", " ".join(words))

# %% [markdown]
# Now put the words of each into a bag: count them, and forget where they were. The two bags are the same. So whatever
# is computed from a bag, by the cleverest method there is, comes out the same for both. For one of the two reviews it must be wrong.

# %% tags=["nbval-check-output"]
bag = Counter(liked)
assert bag == Counter(disliked)
print(" ".join(f"{word}×{n}" for word, n in sorted(bag.items())))

# %% [markdown]
# Surely a transformer does better? It compares every word with every other, after all. Let us take a small one that classifies whole
# texts, leave out the positions (`positions="none"`), and give it both reviews. It is untrained. But the reason for what comes out has nothing to do with training.

# %% tags=["nbval-check-output"]
vocabulary = sorted(bag)
twins = [[vocabulary.index(word) for word in words] for words in (liked, disliked)]
twins = torch.tensor(twins)  # (2, T)
config = tx.TransformerConfig(
    vocab_size=len(vocabulary), d_model=32, n_heads=4, n_layers=2, d_ff=64,
    causal=False, positions="none",
)
blind = tx.Classifier(config)
scores = blind(twins)  # (2, C)
torch.testing.assert_close(scores[0], scores[1])
print("same scores for both, up to rounding")

# %% [markdown]
# Nothing inside asks *where* a word is. A score compares two words by their vectors. The context is a sum, and a sum has no order.
# The feed-forward network reads one word at a time. So when we shuffle the words that go in, the vectors that come out are shuffled
# in the same way and otherwise unchanged. This is called **permutation equivariance**: for each shuffling $P$, $\; f(PX) = P f(X)$.

# %% tags=["nbval-check-output"]
shuffle = torch.randperm(twins.shape[1])
hidden = blind.body(twins)  # (2, T, D)
torch.testing.assert_close(blind.body(twins[:, shuffle]), hidden[:, shuffle])
print("shuffled in, shuffled out, nothing else")

# %% [markdown]
# At the end the classifier takes the mean of those vectors, which no shuffling changes. Such a model *is* a bag of words, an
# expensive one.
#
# ### A tempting way: add the number of the position
#
# The cure seems easy. Number the words 0, 1, 2, … and add the number to the word's vector. Here it is, in four lines, put into the same model with the
# same weights.

# %%
class RawIndex(nn.Module):
    def forward(self, x):
        positions = torch.arange(x.shape[1], dtype=x.dtype)  # (T,)
        # (B, T, D): word t is moved by t in every dimension
        return x + positions[:, None]


counting = tx.Classifier(config)
counting.load_state_dict(blind.state_dict())
counting.body.pos_embed = RawIndex()

# %%
course.predict(
    "03.1",
    "What happens to the scores of the two reviews once the index is added?",
    [
        "the two reviews now get different scores",
        "nothing: all scores stay as they were",
    ],
)

# %%
with_index = counting(twins)
unchanged = torch.allclose(with_index, scores, rtol=1e-4, atol=1e-4)
options = [
    "the two reviews now get different scores",
    "nothing: all scores stay as they were",
]
largest = (with_index - scores).abs().max()
course.resolve(
    "03.1", options[unchanged], f"The largest change of a score is {largest:.1g}."
)

# %% [markdown]
# Suspicious! These are still the scores of the blind model. The first thing inside each block here is a **layer norm**: it subtracts from each vector the
# mean of its numbers, and a constant that was added to all of them is gone with it. The index was wiped off before anything could read it.
#
# Very well: give the index a direction of its own, where no norm can mistake it for the mean. Then it survives. But it grows. Take two *different* words, *magnifique* and *ennuyeux* say, both at position 1, at position 100, at position 500: how similar are their vectors? A similarity of 1
# means that they point the same way: a network that normalises its input then reads the same word twice. (The second line in the picture belongs to the method that this lesson is about.)

# %%
one_word, other_word = torch.randn(2, 64)  # two words that have nothing in common
# (T, D), one direction
index = torch.arange(501)[:, None] * F.one_hot(torch.tensor(0), 64)
waves = tx.sinusoidal_positions(501, 64)
lines = []
for name, added in {"index added": index, "sinusoids added": waves}.items():
    alike = F.cosine_similarity(one_word + added, other_word + added)  # (T,)
    print(
        f"{name:<17} at 0, 1, 100, 500:",
        *(f"{alike[t]:6.2f}" for t in (0, 1, 100, 500)),
    )
    lines.append(plots.Curve(name, range(501), alike))
fig, ax = plots.curves(
    lines, xlabel="position of both words (tokens)", ylabel="cosine similarity",
    y_range=(-0.2, 1.08), title="Two different words at the same position",
)
plots.show(fig, name="03_index_drowns_words")

# %% [markdown]
# The index drowns the words: far out, all vectors point in nearly the same direction, and only *where* counts. And in a longer text the model meets indices it has never seen. Using a model on texts longer than those of its training is called **extrapolation**. The sinusoids also make the two words more similar, at once and by about the same amount everywhere: they add the same
# vector to both. But its length is fixed, so the words remain. (A sinusoid at a position never met in training is new to the model, too. That matters at the end of this lesson.)
#
# ### Another tempting way: one number between 0 and 1
#
# Then divide by the length: the first word has 0 and the last has 1. Nothing grows now. But the second word of a text has 1/4 if there are five words, 1/19 if there
# are twenty, 1/99 if there are a hundred. One word further is a step of another size each time. *pas* (not) turns the
# word right after it, in short reviews and in long ones; a model that must first work out the length cannot learn that once and for all. Near the end of this lesson
# such a model is trained on texts of one length, and tested on longer ones.
#
# What we want from a position, then: the same position has the same vector in every text; no two positions share one; the numbers stay small; and **a step of
# one word is the same thing everywhere**.

# %%
plots.diagram("token-plus-position")

# %% [markdown]
# ## By hand: clocks
#
# We know a device that does all this: a clock. The second hand tells neighbouring seconds apart, but comes round each minute. The hour hand is too slow to
# tell seconds, but tells nine o'clock from three o'clock. Together the hands give each moment of twelve hours its own picture, and no hand ever leaves its dial.
#
# So give each position a few clock hands of different speeds. Hand $i$ turns by $1 / \text{base}^{2i/d}$ radians per word, and a hand is noted by the two coordinates of its
# tip, sine and cosine:
#
# $$PE(pos, 2i) = \sin\left(\frac{pos}{\text{base}^{2i/d}}\right), \qquad PE(pos, 2i+1) = \cos\left(\frac{pos}{\text{base}^{2i/d}}\right).$$
#
# These are **sinusoidal positions**. Here $pos$ is the position of the word, counted from 0, and $d$ is the width of the vectors. Four words, width 4 and base 100 are small enough for paper.

# %% tags=["nbval-check-output"]
robot = ["I", "am", "a", "Robot"]
d_model, base = 4, 100
by_hand = []
for pos, word in enumerate(robot):
    row = []
    for i in range(d_model // 2):
        angle = pos / base ** (2 * i / d_model)
        row += [math.sin(angle), math.cos(angle)]
    by_hand.append(row)
    print(f"{word:<6}", *(f"{value:6.2f}" for value in row))

# %% [markdown]
# Check the row of *a* on paper. Its $pos$ is 2. The first hand turns by 1 a word: $\sin(2) = 0.91$, $\cos(2) = -0.42$ (in radians). The second turns by
# $1/100^{2/4} = 1/10$: $\sin(0.2) = 0.20$, $\cos(0.2) = 0.98$. The word itself plays no part: any word at that position gets the same four numbers.
#
# Two slips are common here. The even index is that of a *dimension*, not of a word: each word gets sines and cosines. And $i$ counts hands, so it
# runs from 0 to $d/2 - 1$, not to $d/2$. The speed $1/\text{base}$ would belong to $i = d/2$, which does not exist: with $d = 4$ the last speed is 1/10, not 1/100. With
# wide vectors the difference is small, but it is there.
#
# ## All at once
#
# As a matrix: the angles are each position times each speed, an outer product. Then sine and cosine take turns along the
# columns. We compute in float64, because for large angles float32 keeps too few digits of the part that matters, the remainder after whole turns. `tx.sinusoidal_positions` is that table, with the paper's base of 10,000 where you name none.
# A model adds row $t$ of it to the vector of word $t$.

# %%
exponents = -torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
speeds = base**exponents  # (D/2,)
angles = torch.outer(torch.arange(4, dtype=torch.float64), speeds)  # (T, D/2)
table = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)  # (T, D)
torch.testing.assert_close(table, torch.tensor(by_hand, dtype=torch.float64))
torch.testing.assert_close(tx.sinusoidal_positions(4, 4, base=100), table.float())
seeing = tx.Classifier(config.replace(positions="sinusoidal"))
x = torch.randn(2, 11, 32)
torch.testing.assert_close(
    seeing.body.pos_embed(x), x + tx.sinusoidal_positions(11, 32)
)
assert (seeing(twins)[0] - seeing(twins)[1]).abs().max() > 1e-3
print(
    "by hand, all at once and the package agree; the two reviews get different scores"
)

# %% [markdown]
# ## Look
#
# First the clocks themselves: width 8, so four hands, and base 100. Each row is one hand, with the radians that it turns per word; each column is one position. Before you look: which row changes most
# from column to column? Could two columns be the same?

# %% tags=["folded"]
speeds = 100.0 ** (-torch.arange(0, 8, 2, dtype=torch.float64) / 8)  # (D/2,)
fig, ax = plots.phase_clocks(
    torch.outer(speeds, torch.arange(8, dtype=torch.float64)),
    row_labels=[f"hand {i}\n{speed:.2f} rad" for i, speed in enumerate(speeds)],
    xlabel="position of the word (tokens)", title="Eight positions, four hands",
)
plots.show(fig, name="03_clocks")

# %% [markdown]
# All hands start upright at position 0. The first comes round after six positions and a bit: it tells neighbours apart, but hardly position 0 from position 6. The slower hands do
# that. The sine of an angle is how far the tip is to the right, the cosine how far it is up. So the column of a position *is* its row in the table.
#
# Now the table as models use it, wider and with base 10,000, and next to it how similar any two of its rows are, $PE(p) \cdot PE(q)$. Where are the fast stripes? What do the last columns look like? And what pattern do you expect on the right?

# %% tags=["folded"]
table = tx.sinusoidal_positions(50, 32)
fig, (left, right) = plots.figure(1, 2, width=10.6, height=4.6)
plots.heatmap(
    table, low=-1, high=1, bar_label="value", ax=left, ylabel="position (tokens)",
    xlabel="dimension (sine where even, cosine where odd)", title="The table",
)
plots.heatmap(
    table @ table.T / 16,
    low=-1,
    high=1,
    bar_label="similarity",
    ax=right,
    xlabel="position q (tokens)",
    ylabel="position p (tokens)",
    title="Similarity of its rows",
)
plots.show(fig, name="03_sinusoidal_table")

# %% [markdown]
# In the table, colours on the left change from row to row, then ever more slowly. On the far right nothing moves within fifty positions: every sine is still near 0, every cosine near 1. Those
# hands are for longer texts. A full turn takes $2\pi \cdot \text{base}^{2i/d}$ words for hand $i$. On the right, every diagonal has one colour: similarity depends on the *distance* of two positions and on nothing else. The section "Similar means near" says why.
#
# ## One step is one rotation
#
# Here is why the clocks are more than a pretty code. To move from one position to the next, each hand turns by its own fixed angle, *wherever it is*. And to
# turn an arrow by a fixed angle is a linear map, a 2 × 2 matrix. By the addition theorems, for a hand of speed $w$,
#
# $$\begin{pmatrix} \sin((pos+k)\,w) \\ \cos((pos+k)\,w) \end{pmatrix} = \begin{pmatrix} \cos(kw) & \sin(kw) \\ -\sin(kw) & \cos(kw) \end{pmatrix} \begin{pmatrix} \sin(pos\,w) \\ \cos(pos\,w) \end{pmatrix}.$$
#
# All hands together: put the small matrices along the diagonal of a large one, zeros elsewhere, and call it $R(k)$. Then
# $PE(pos + k) = R(k)\, PE(pos)$, and **$pos$ does not occur in $R(k)$**. The robot takes two steps, from *am* (position 1) to *Robot* (position 3):

# %% tags=["nbval-check-output"]
def shift(k, d_model, base=10_000):
    blocks = []
    for i in range(d_model // 2):
        angle = torch.tensor(k / base ** (2 * i / d_model), dtype=torch.float64)
        cos, sin = angle.cos(), angle.sin()
        blocks.append(torch.stack((cos, sin, -sin, cos)).view(2, 2))
    return torch.block_diag(*blocks)  # (D, D)


two_steps = shift(2, 4, base=100)
torch.testing.assert_close(two_steps, tx.shift_matrix(2, 4, base=100))
am, end = torch.tensor([by_hand[1], by_hand[3]], dtype=torch.float64)
torch.testing.assert_close(two_steps @ am, end)
for row in two_steps.tolist():
    print(*(f"{value:6.2f}" for value in row))

# %% [markdown]
# One such example proves little. So we try every pair of positions up to 512, at width 64 and base 10,000: each $k$ has one matrix, and it must carry *all* positions $k$ steps on.
# We also check that these matrices behave as shifts should: two of them add up, and the transpose goes back.

# %% tags=["nbval-check-output"]
waves = tx.sinusoidal_positions(512, 64, dtype=torch.float64)
for k in range(512):
    moved = waves[: 512 - k] @ tx.shift_matrix(k, 64).T  # (512 - k, D)
    torch.testing.assert_close(moved, waves[k:], rtol=0, atol=1e-9)
three, four, seven = (tx.shift_matrix(k, 64) for k in (3, 4, 7))
torch.testing.assert_close((three @ four, three.T), (seven, tx.shift_matrix(-3, 64)))
print(f"{512 * 513 // 2:,} pairs of positions, each within a billionth")

# %% [markdown]
# ### What a model can do with it
#
# Attention compares *queries* with *keys*, and makes both by multiplying with learned matrices. So let a head multiply its queries by $R(-1)$: each word then asks for the position before
# its own. Nothing is trained here; the factor 16 makes the scores large. Left, a rotation at width 8, small enough to count; right, where the first twelve words attend. Predict both: which cells of the left one can be anything but
# white? And what can word 0 do?

# %% tags=["folded"]
queries = 16 * waves @ tx.shift_matrix(-1, 64).T  # (T, D): "who is one before me?"
looks_back = tx.attention_weights(queries, waves)  # (T, T)
assert looks_back.argmax(dim=-1)[1:].tolist() == list(range(511))  # all but word 0
fig, (left, right) = plots.figure(1, 2, width=8.8, height=4.2)
plots.heatmap(
    tx.shift_matrix(3, 8, base=100), low=-1, high=1, numbers=".1f", ax=left,
    xlabel="dimension before", ylabel="dimension after", title="The rotation R(3)",
)
plots.heatmap(
    looks_back[:12, :12], low=0, high=1, ax=right, xlabel="key position (tokens)",
    ylabel="query position (tokens)", title="A head with queries turned by R(-1)",
)
plots.show(fig, name="03_rotation_and_look_back")

# %% [markdown]
# One matrix is enough for every position: the head attends one back wherever it is. Whether training finds this matrix is another question, which we test below. (Word 0 has no word before it, and takes the nearest there is.)
#
# ### Similar means near
#
# A rotation changes no lengths and no angles. So how similar two positions are can depend on nothing but their distance, as the heatmap showed; the next cell asserts it for all 512 positions. One curve says it all then: similarity against distance, here for three bases. What does a small base, where even the slowest hand comes
# round soon, do to positions that are far apart?

# %%
similarities = waves @ waves.T / 32  # (512, 512); 32 = D/2: 1 on the diagonal
for distance in range(512):
    diagonal = similarities.diagonal(distance)
    torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
lines = []
for b in (10, 100, 10_000):
    positions = tx.sinusoidal_positions(121, 64, b)  # (T, D)
    lines.append(plots.Curve(f"base {b:,}", range(121), positions @ positions[0] / 32))
fig, ax = plots.curves(
    lines, xlabel="distance (tokens)", ylabel="similarity (1 = same position)",
    title="How alike two positions are",
)
plots.show(fig, name="03_similarity_and_distance")

# %% [markdown]
# All three start at 1 and fall. The curve of the small base soon swings around zero, and then says nothing about *how* far away a word is. The base of 10,000
# is still well above zero at the right end: it has slow hands to spare. Notice the waves, too. Nearer means more similar on the whole, but not always.
#
# Table, clocks, similarity and rotation are four views of one thing, and here they move together. Choose a position and a hand, then a shift $k$, and check that the same turn leads from every position to the one $k$ words on. Then make the base small and watch
# what happens to the curve. Everything can be reached with Tab and the arrow keys.

# %%
course.widgets.positions(121, 64, 100, position=23, hand=4, shift=3)

# %% [markdown]
# ### How to choose the base
#
# Is larger always better, then? A hand that does not move within the texts you have is a wasted dimension. Here are, for width 64 and texts of 512 tokens, the slowest turn, and
# how many of the 64 numbers change by less than 0.1 from the first token to the last.

# %% tags=["nbval-check-output"]
for b in (10, 100, 10_000, 100_000_000):
    positions = tx.sinusoidal_positions(512, 64, b, dtype=torch.float64)
    idle = (positions.amax(dim=0) - positions.amin(dim=0) < 0.1).sum()
    slowest = 2 * math.pi * b ** (62 / 64)
    print(f"base {b:>11,}: slowest turn {slowest:>13,.0f} tokens, {idle:>2} of 64 idle")

# %% [markdown]
# So there are two ends to keep away from: at one the hands come round too soon, at the other most of them do not move. The paper's 10,000 lies between, with some slow hands in reserve for longer
# texts. The *length of the table* is another matter: `max_len` only says how many rows are computed in advance, and no row depends on it.
#
# ## Break it: sine alone
#
# Each hand costs two dimensions. Drop the cosines, and there are twice as many speeds for the same price. But at position 0 all sines are 0, and a linear map
# carries zeros to zeros, so no matrix can ever leave position 0. Elsewhere the sine of 30° is that of 150°: the tip is at the same height, but
# once on its way up and once on its way down. A rotation needs both coordinates, sine *and* cosine.
#
# ## Learned positions
#
# There is a plainer way: give each position a vector of its own, and let training find it, as for words. BERT and GPT-2 do so. It costs `max_len` × $d$ parameters, where
# the sinusoids cost none. And there is no vector for a position beyond the table: a model with learned positions *cannot* read a longer text, and should say so. (tinytx raises this error
# for the other encodings too, although they could be computed for any length.)

# %% tags=["nbval-check-output"]
game_config = tx.TransformerConfig(
    vocab_size=21, d_model=32, n_heads=2, n_layers=1, d_ff=32, max_len=16, causal=False
)
n_params = {}
for kind in ("none", "sinusoidal", "learned"):
    model = tx.LanguageModel(game_config.replace(positions=kind))
    n_params[kind] = tx.count_parameters(model)
    print(f"{kind:<12}{n_params[kind]:>6,} parameters")
assert n_params["learned"] == n_params["sinusoidal"] + 16 * 32
try:
    model(torch.zeros(1, 17, dtype=torch.long))
except ValueError as refused:
    print(refused)

# %% [markdown]
# ## Turn the words: rotary positions
#
# So far a position is *added*. The same numbers then carry what a word is and where it is, and a head that wants to attend one back must first separate the two. But we have seen that
# a step is a rotation. Why not turn the words themselves? **Rotary positions** (RoPE) do that, inside each head: the query of word $t$ is turned by $R(t)$ and the key of word $s$ by $R(s)$. Nothing is added, and nothing is learned. Look at the score:
#
# $$\bigl(R(t)\,q\bigr) \cdot \bigl(R(s)\,k\bigr) \;=\; q \cdot R(t)^\top R(s)\, k \;=\; q \cdot R(s-t)\, k.$$
#
# The transpose goes back, and two shifts add up; both were checked above. The positions $t$ and $s$ are gone, and their **distance** is left. No matrix need be built: turning is two products for each number of a pair. Eight lines do it:


# %% tags=["nbval-check-output"]
def turn(x, positions, base=10_000):
    """Turn x, (..., T, K), pair by pair: row t by R(positions[t])."""
    width = x.shape[-1]
    speeds = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)  # (K/2,)
    angles = positions[:, None] * speeds  # (T, K/2)
    cos, sin = angles.cos(), angles.sin()
    first, second = x[..., 0::2], x[..., 1::2]  # the two numbers of each pair
    turned = torch.stack(
        (cos * first + sin * second, cos * second - sin * first), dim=-1
    )
    return turned.flatten(-2)  # (..., T, K/2, 2) -> (..., T, K)


q, k = torch.randn(2, 4, 8, dtype=torch.float64)  # (T, K) each
four_words = torch.arange(4)
scores = turn(q, four_words) @ turn(k, four_words).T  # (T, T)
for t in range(4):
    for s in range(4):
        torch.testing.assert_close(
            scores[t, s], shift(t, 8) @ q[t] @ (shift(s, 8) @ k[s])
        )
        torch.testing.assert_close(scores[t, s], q[t] @ shift(s - t, 8) @ k[s])
torch.testing.assert_close(turn(q, four_words), tx.rotate(q, four_words))
far = four_words + 1000
torch.testing.assert_close(turn(q, far) @ turn(k, far).T, scores)
print("eight lines = matrices = tx.rotate; same scores a thousand positions on")

# %% [markdown]
# (The Hugging Face code of Llama and GPT-NeoX pairs number $i$ with number $i + K/2$ instead of with its neighbour, and turns the other way. Both are matters of naming, and a model trained with one cannot be read with the other.)
#
# As a picture: one pair of numbers, so one arrow for the query (position 2) and one for the key (position 0). Then the same two words nine positions further on. What has changed, and what has not?

# %% tags=["folded"]
arrow_q, arrow_k = torch.tensor([[0.5, 0.9]]), torch.tensor([[0.95, 0.1]])
fig, panels = plots.figure(1, 2, width=8.4, height=4.2)
for shift_by, ax in zip((0, 9), panels, strict=True):
    pair = {"query": (arrow_q, 2 + shift_by), "key": (arrow_k, shift_by)}
    tips = {name: turn(v, torch.tensor([pos]))[0] for name, (v, pos) in pair.items()}
    for color, (name, tip) in zip(plots.COLORS, tips.items(), strict=False):
        ax.annotate(
            "",
            tip.tolist(),
            (0, 0),
            arrowprops={"arrowstyle": "->", "color": color, "lw": 2.4},
        )
        ax.text(
            *(1.18 * tip).tolist(), f"{name}, {pair[name][1]}", color=color, ha="center"
        )
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal", xlabel="first number")
    ax.set_title(f"score {tips['query'] @ tips['key']:.2f}")
panels[0].set_ylabel("second number")
plots.show(fig, name="03_turned_arrows")

# %% [markdown]
# Both arrows have turned, by the same angle. The angle between them is as before, and so is the score. (Values are never turned: what a word *says* does not depend on its position.)
#
# ## Say only how far: ALiBi
#
# Must it be a rotation? The plainest way to use a distance is to *subtract* it. **ALiBi**, attention with linear biases, leaves queries and keys alone, and lowers each score by a slope times the distance:
#
# $$\text{score}(t, s) = \frac{q_t \cdot k_s}{\sqrt{K}} - m_h\,|t - s|.$$
#
# Every head $h$ of $H$ has its own slope, $m_h = 2^{-8h/H}$ for $h = 1, \ldots, H$. They are fixed, not learned. With four heads they are 1/4, 1/16, 1/64 and 1/256. Four lines:


# %% tags=["nbval-check-output"]
def distance_bias(n_heads, seq_len):
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)  # (H,)
    positions = torch.arange(seq_len)
    distances = (positions[:, None] - positions).abs()  # (T, T)
    return slopes[:, None, None] * -distances  # (H, T, T)


torch.testing.assert_close(distance_bias(4, 5), tx.alibi_bias(4, 5))
for row in distance_bias(4, 5)[0].tolist():  # the first head, five words
    print(*(f"{value:6.2f}" for value in row))

# %% [markdown]
# What does that do to the weights? Let all keys match equally well, so that every score is 0 before. After softmax each step back then multiplies the weight by $e^{-m}$: it fades, quickly in the first head, hardly at all in the
# last.
#
# And what can it *not* know? A distance has no direction. A model that looks both ways and has nothing but ALiBi cannot tell a text from its mirror image. The cell asserts both. (Under a causal mask, for which ALiBi was
# made, no token attends ahead, and the question does not arise.)

# %% tags=["nbval-check-output"]
silent = torch.zeros(4, 5, 8)  # (H, T, K): queries and keys that say nothing
weights = tx.attention_weights(silent, silent, tx.causal_mask(5), distance_bias(4, 5))
fading = weights[0, 4, :4] / weights[0, 4, 1:]  # each word against the one after it
torch.testing.assert_close(fading, torch.full((4,), math.exp(-1 / 4)))
mirrored = tx.Classifier(config.replace(positions="alibi"))
torch.testing.assert_close(mirrored(twins), mirrored(twins.flip(1)))
turning = tx.Classifier(config.replace(positions="rotary"))
assert (turning(twins)[0] - turning(twins)[1]).abs().max() > 1e-4
print("ALiBi: weights fade by exp(-1/4) a word; forwards and backwards read the same")
print("rotary: the two reviews get different scores")

# %% [markdown]
# Both next to each other. Left, rotary at width 64: the score of a turned query and a turned key against their distance, for a query that equals its key, for one that is $R(-20)$ times its key, and for a pair drawn at random. Right,
# ALiBi: what is added to the score in each head. Which of the left curves have you seen before? Where is the peak of the second?

# %%
fig, (left, right) = plots.figure(1, 2, width=9.8, height=3.8)
key = waves[0]  # the clock of position 0
pairs = {
    "q = k": (key, key),
    "q = R(-20) k": (tx.shift_matrix(-20, 64) @ key, key),
    "random": torch.randn(2, 64, dtype=torch.float64),
}
distances = torch.arange(-40, 41)
lines = []
for name, (query, key) in pairs.items():
    turned = turn(key.expand(81, 64), distances)  # (81, K)
    lines.append(
        plots.Curve(name, distances, turned @ query / (query.norm() * key.norm()))
    )
plots.curves(
    lines, xlabel="distance from query to key (tokens)", ylabel="score (cosine)",
    title="Rotary: a curve for each pair", ax=left,
)
plots.heatmap(
    distance_bias(4, 6)[:, 0], low=-2, high=0, numbers=".2f", ax=right,
    row_labels=["1/4", "1/16", "1/64", "1/256"], xlabel="distance (tokens)",
    ylabel="slope of the head", title="ALiBi: added to the score",
)
plots.show(fig, name="03_rotary_and_alibi")

# %% [markdown]
# The curve of equal vectors is the similarity you know. A query that was turned by $R(-20)$ moves it as a whole: this head attends twenty back, wherever it is. So a head can learn to attend at any distance, to either side. ALiBi offers no such
# choice: near counts more than far, in the first heads steeply, in the last ones hardly. That is a weaker tool. Keep in mind: when could weaker be better?
#
# | positions | where they act | learned | what they can tell |
# |---|---|---|---|
# | sinusoidal | added to the words | nothing | the position; a distance by a learned rotation |
# | learned | added to the words | a vector for each position | the position |
# | rotary | turn queries and keys | nothing | the distance and its direction |
# | ALiBi | lower the scores | nothing | how far |

# %% [markdown]
# ## Use it: the word before *mais*
#
# Time to train. The task is a game that cannot be won without order. Eight different words are drawn, one of them *mais* (but), and shuffled. The model must name the word **directly
# before** *mais*. It answers at the position of *mais*, by choosing among all words; all other targets are `-100`, "no target here".

# %%
lexicon = [
    "mais", "le", "la", "un", "une", "roman", "livre", "style", "fin", "il", "elle",
    "est", "beau", "lent", "long", "bon", "très", "pas", "et", "mal", "bien",
]


def draw_games(n, n_words, generator):
    shuffled = torch.rand(n, 20, generator=generator).argsort(dim=1)
    token_ids = 1 + shuffled[:, :n_words]  # (n, T), no word twice
    at = torch.randint(1, n_words, (n,), generator=generator)  # where mais will be
    rows = torch.arange(n)
    targets = torch.full_like(token_ids, -100)  # (n, T)
    targets[rows, at] = token_ids[rows, at - 1]
    token_ids[rows, at] = 0  # mais
    return token_ids, targets


token_ids, targets = draw_games(3, 8, torch.Generator().manual_seed(3))
for row, answer in zip(token_ids.tolist(), targets.amax(dim=1).tolist(), strict=True):
    print(" ".join(lexicon[i] for i in row), "->", lexicon[answer])

# %% [markdown]
# How well can a model do that sees the bag only? There are seven words besides *mais*, and each is as likely as any other to come before it. No method can expect more than one in seven. That
# is our baseline, and it is exact.
#
# Six kinds of model play: without positions, with one number between 0 and 1 (times a learned direction), with sinusoids, with learned vectors, with rotary positions and with ALiBi. All else is equal: one block, two heads,
# width 32, the same games, words before *and* after in sight. The training loop is that of lesson 02 (with Adam): draw 64 games, compute the loss, take a step. Every game is new, so
# nothing can be learned by heart.

# %%
class OneNumber(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.direction = nn.Parameter(torch.randn(d_model))

    def forward(self, x):
        # (B, T, D)
        return x + torch.linspace(0, 1, x.shape[1])[:, None] * self.direction


def train(model, draw, lr, n_steps):
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, n_steps)
    for _ in range(n_steps):
        inputs, targets = draw()
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def train_player(kind, seed, n_steps):
    torch.manual_seed(seed)
    added = kind == "one number"
    model = tx.LanguageModel(game_config.replace(positions="none" if added else kind))
    if added:
        model.body.pos_embed = OneNumber(game_config.d_model)
    games = torch.Generator().manual_seed(seed)
    return train(model, lambda: draw_games(64, 8, games), 5e-3, n_steps)


# %% [markdown]
# One run may be lucky, and a short run misleads: after 250 steps, one number seems not to be enough, and after 1,500 it is. So each kind was trained for 1,500 steps from five seeds with these very functions; `python -m experiments positions` stored the results. We train one of them here. We count the right answers in two thousand new games: first in games of eight words, as in training,
# then in games of **sixteen**, which no model has met. Of the fifteen positions that *mais* can have there, seven occurred in training.
#
# **Predict 03.2.** ALiBi must find the word *before*, and not the one after.

# %%
course.predict(
    "03.2", "Who is best in games of sixteen words?",
    ["sinusoidal", "learned", "rotary", "alibi"],
)

# %%
def right_answers(model, n_words, n=2000):  # (n,) booleans, and where mais was
    token_ids, targets = draw_games(n, n_words, torch.Generator().manual_seed(99))
    with torch.no_grad():
        guesses = model(token_ids).argmax(dim=-1)  # (n, T)
    return (guesses == targets).any(dim=1).float(), (token_ids == 0).int().argmax(dim=1)


player = train_player("sinusoidal", seed=0, n_steps=10 if smoke else 1500)
for n_words in (8, 16):
    share, bag = right_answers(player, n_words)[0].mean(), 1 / (n_words - 1)
    print(f"sinusoidal, {n_words} words: {share:.1%}; a bag at best {bag:.1%}")

# %% [markdown]
# And now all six kinds, as stored: the mean over the seeds, and in brackets the worst and the best of them.

# %%
stored = read_results("positions")
print(stored.source_line())
games = pd.DataFrame(one for one in stored.data.values() if one["task"] == "game")
by_kind = games.groupby("kind", sort=False)[["right 8", "right 16"]]
right, worst, best = by_kind.mean(), by_kind.min(), by_kind.max()
print(f"{'':<12}{'8 words':<20}16 words")
for kind in right.index:
    line = f"{kind:<12}"
    for n in right:
        ends = f"({worst[n][kind]:.0%} to {best[n][kind]:.0%})"
        line += f"{right[n][kind]:<5.0%}{ends:<15}"
    print(line)
winner = right["right 16"].drop(["none", "one number"]).idxmax()
share = right["right 16"][winner]
course.resolve("03.2", winner, f"{winner}: {share:.0%} right with sixteen words.")

# %% [markdown]
# Without positions a model stays where the bag must stay, however long it trains. One number between 0 and 1 solves the game of eight words, where one word further is always a seventh. With sixteen words it is a fifteenth, and much of what the model knew is gone. Sinusoids and learned vectors solve the game of eight and know about half of the longer one.
# Rotary positions know distances only, and *one before* is the same distance everywhere: in the longer game they keep what they learned, with every seed.
#
# **Of eight words ALiBi gets about one half right, because it cannot tell before from after.** A head can find the two neighbours of *mais*; which of them came before, it has to guess. The next cell asserts all this from the stored numbers. To see where the others fail, it splits the answers by the position of *mais* among sixteen words.

# %%
short, long = right["right 8"], right["right 16"]
assert abs(short["none"] - 1 / 7) < 0.03 and 0.4 < short["alibi"] < 0.55
assert short["one number"] > 0.95 and long["one number"] < 0.8
assert short[["sinusoidal", "learned"]].min() > 0.95
assert long[["sinusoidal", "learned"]].max() < 0.6
rotary = games[games["kind"] == "rotary"]
assert (rotary["right 16"] - rotary["right 8"]).abs().max() < 0.05
for kind in ("one number", "sinusoidal", "learned"):
    shares = games[games["kind"] == kind]["by position 16"].tolist()  # (seeds, 15)
    share = torch.tensor(shares).mean(dim=0)
    print(f"{kind:<11} mais at 1 to 15:", *(f"{p:.0%}" for p in share.tolist()))

# %% [markdown]
# With sixteen words, sinusoids and learned vectors keep nearly all they know at the positions met in training, 1 to 7. Beyond them, learned vectors fall to about chance or below at once; sinusoids do so after position 8, the first new one. This is the first sign of the question below: *train short, test long*.
#
# ### Further: what the trained head does
#
# We built a head that attends one back out of a rotation. Did training find it? Take the model with sinusoids that we just trained, give it 2,000 games, and average where it attends *from mais*, for each
# position of *mais*: rows are positions of *mais*, from 1 to 7, columns the positions attended to, from 0 to 7. Where are the dark cells?

# %% tags=["folded"]
token_ids, _ = draw_games(2_000, 8, torch.Generator().manual_seed(5))
at = (token_ids == 0).int().argmax(dim=1)  # (B,) where mais is
with torch.no_grad(), tx.record_attention(player) as recorded:
    player(token_ids)
attn_weights = recorded["body.blocks.0.attn"]  # (B, H, T, T)
looks = torch.stack([attn_weights[at == p][:, :, p].mean(dim=0) for p in range(1, 8)])
fig, panels = plots.figure(1, 2, width=8.8, height=3.8)
for head, ax in enumerate(panels):
    plots.heatmap(
        looks[:, head],
        low=0,
        high=1,
        numbers=".1f",
        ax=ax,
        title=f"Head {head}, after training",
        row_labels="1234567",
        col_labels="01234567",
        xlabel="key position (tokens)",
        ylabel="position of mais (tokens)",
    )
plots.show(fig, name="03_trained_heads_look_back")
one_back = looks[torch.arange(7), :, torch.arange(7)]  # (positions, heads)
print(
    "mean weight one back, head by head:", *(f"{w:.2f}" for w in one_back.mean(dim=0))
)

# %% [markdown]
# At positions 1 to 7 the map looks like the head we built, with some weight on neighbours. But beyond them this model fails, as the table above shows. So it has not learned the rotation that works everywhere.
#
# ## Break it: train short, test long
#
# A game of one rule is not language. So here is the question once more, for small language models on the reviews of our world: each predicts the next word under a causal mask.
# Five kinds (all but the single number) are trained on snippets of **16 words**, cut out of the reviews anywhere.
#
# Then we ask for the first eight words of new reviews, **the same words every time**, and put more and more of *other* reviews before them: no word, 4, 8, … 96 words. Reviews have nothing to do with each other, so the preceding text
# neither helps nor has to hurt. We know the grammar, so we can compute the **entropy bound**, the lowest loss that a model can expect: `world.automaton.read` returns the exact log-probability of words that open a review. It is the same for every length.

# %%
numbers = {None: 0} | {word: i for i, word in enumerate(world.vocabulary, start=1)}


def in_one_row(reviews):  # None: one review ends, the next begins
    words = [word for review in reviews for word in (None, *review.words)]
    return torch.tensor([numbers[word] for word in words])


train_row = in_one_row(world.reviews(8_000, seed=1))
new_reviews = world.reviews(145, seed=2)
test_row = in_one_row(new_reviews)
starts = (test_row == 0).nonzero()[20:, 0]  # of 125 reviews with enough before them
first_eight = [review.words[:8] for review in new_reviews[20:]]
bound = -sum(world.automaton.read(words).log_prob for words in first_eight) / (125 * 8)
print(f"{len(train_row):,} words to train on; entropy bound {bound:.3f} nats a word")

# %% [markdown]
# One block, four heads, width 32, and a `max_len` that leaves room for the long test. (`tie_embeddings`: the output layer uses the table of the word vectors once more, which saves parameters.) Each step takes sixteen snippets, the same for all kinds and
# in the same order, for 2,000 steps.

# %%
reader_config = tx.TransformerConfig(
    vocab_size=len(numbers), d_model=32, n_heads=4, n_layers=1, d_ff=64, max_len=112,
    tie_embeddings=True,
)


def draw_snippets(generator):
    first = torch.randint(len(train_row) - 16, (16, 1), generator=generator)
    token_ids = train_row[first + torch.arange(17)]  # (16, 17): 16 and the next
    return token_ids[:, :-1], token_ids[:, 1:]


def train_reader(kind, seed, n_steps):
    torch.manual_seed(seed)
    model = tx.LanguageModel(reader_config.replace(positions=kind))
    snippets = torch.Generator().manual_seed(seed)
    return train(model, lambda: draw_snippets(snippets), 1e-2, n_steps)


# %% [markdown]
# Five seeds of each kind are stored; we train the one with learned positions here, and look into its table below.
#
# **Predict 03.3.** With up to eight words before, everything lies within the trained length of sixteen. What do you expect beyond?

# %%
course.predict(
    "03.3", "Whose loss rises least from no word before to 96 words before?",
    ["none", "learned", "sinusoidal", "rotary", "alibi"],
)

# %%
def loss_on_first_eight(model, n_before):
    token_ids = test_row[starts[:, None] + torch.arange(-n_before, 9)]
    with torch.no_grad():
        hidden = model.body(token_ids[:, :-1])[:, -8:]  # (125, 8, D)
        logits = model.head(hidden).flatten(0, 1)
    return F.cross_entropy(logits, token_ids[:, -8:].flatten()).item()


befores = (0, 4, 8, 16, 24, 32, 48, 64, 96)
reader = train_reader("learned", seed=0, n_steps=10 if smoke else 2000)
for n in (0, 8, 32, 96):
    print(f"{n:>2} words before: {loss_on_first_eight(reader, n):.2f} nats a word")

# %% [markdown]
# And all five kinds, as stored. The columns are the numbers of words before; then follows the range of the rise from none to 96 over the seeds.

# %%
readers = [one for one in stored.data.values() if one["task"] == "language"]
losses = {kind: [] for kind in ("none", "learned", "sinusoidal", "rotary", "alibi")}
for one in readers:
    losses[one["kind"]].append(one["losses"])
losses = {kind: torch.tensor(found) for kind, found in losses.items()}  # (seeds, 9)
rises = {kind: found[:, -1] - found[:, 0] for kind, found in losses.items()}
print(f"{'words before':<12}", *(f"{n:>5}" for n in befores))
for kind, found in losses.items():
    mean = (f"{loss:5.2f}" for loss in found.mean(dim=0).tolist())
    low, high = rises[kind].aminmax()
    print(f"{kind:<12}", *mean, f"  + {low:.2f} to {high:.2f}")
steadiest = min(rises, key=lambda kind: rises[kind].mean())
rise = rises[steadiest].mean()
course.resolve("03.3", steadiest, f"{steadiest}: worse by {rise:.2f} nats a word.")

# %% [markdown]
# The same as curves. Shaded is what lies within the trained length; the bands run from the best to the worst of the seeds. All points are the loss on the same 1,000 words. What distinguishes rotary positions from ALiBi here, and where do
# their curves part?

# %% tags=["folded"]
lines = [
    plots.Curve(kind, befores, found.mean(dim=0), *found.aminmax(dim=0))
    for kind, found in losses.items()
]
fig, ax = plots.curves(
    lines, references={"entropy bound": bound},
    xlabel="words of other reviews before (tokens)", ylabel="loss (nats per word)",
    title="The same words, ever further back in the text",
)
ax.axvspan(0, 8, color="#eeeeee", zorder=0)
ax.text(4, ax.get_ylim()[1], "trained\nlength", ha="center", va="top", fontsize=9)
plots.show(fig, name="03_train_short_test_long")

# %% [markdown]
# Within the trained length **a causal model without positions is nearly as good as the others: the mask itself gives order away**, since the first word sees one word and the second two. Beyond it, learned and sinusoidal positions jump by more than half a nat at once. Rotary positions hold until twice the trained length, and then fail as badly. No positions at all get worse slowly, from the start. One kind holds to the end, ALiBi.

# %%
mean = {kind: found.mean(dim=0) for kind, found in losses.items()}
best = torch.stack([*mean.values()]).amin(dim=0)  # of all kinds, by length
short, long = befores.index(8), befores.index(32)
jump = {kind: (loss[long] - loss[short]).item() for kind, loss in mean.items()}
print("from 8 to 32 words before:", *(f"{kind} +{jump[kind]:.2f}" for kind in jump))
assert (mean["none"] - best)[: short + 1].max() < 0.15
assert min(jump["learned"], jump["sinusoidal"]) > 0.5 > jump["rotary"]
assert rises["rotary"].mean() > rises["learned"].mean() > rises["none"].mean() > 0.3
assert rises["alibi"].max() < 0.15

# %% [markdown]
# Why? Three measurements help. First the **learned table**, before and after training, and the similarity of its rows (the cosine). Training reached positions 0 to 15. What will the rows from 16 on look like?

# %%
after = reader.body.pos_embed.table.detach()
_ = torch.manual_seed(0)  # the seed of that model: its beginning is drawn again
before = tx.LanguageModel(
    reader_config.replace(positions="learned")
).body.pos_embed.table
before = before.detach()
assert torch.equal(after[16:], before[16:]) and not torch.equal(after[:16], before[:16])
fig, axes = plots.figure(2, 2, width=9.4, height=7.6)
for column, (name, table) in zip(
    axes.T, {"before": before, "after": after}.items(), strict=True
):
    unit = F.normalize(table[:24], dim=-1)
    plots.heatmap(
        table[:24],
        low=-1,
        high=1,
        ax=column[0],
        title=f"Learned table, {name} training",
    )
    plots.heatmap(
        unit @ unit.T, low=-1, high=1, ax=column[1], title=f"Similarity, {name}"
    )
    column[0].set_xlabel("dimension")
    column[1].set_xlabel("position q (tokens)")
axes[0, 0].set_ylabel("position (tokens)")
axes[1, 0].set_ylabel("position p (tokens)")
plots.show(fig, name="03_learned_table")
for name, table in {"before": before, "after": after}.items():
    neighbours = F.cosine_similarity(table[:15], table[1:16]).mean()
    print(
        f"similarity of neighbours among positions 0 to 15, {name} training: "
        f"{neighbours:.2f}"
    )

# %% [markdown]
# A row that no snippet reached gets no gradient, so it is still, bit for bit, the random vector it began with (asserted above). Compare the similarities with those of the sinusoids: near positions became more alike. But apart from the main diagonal no diagonal has one colour, so here a step is *not* the same thing everywhere. Second, and third: with 96 words before, how much of the attention reaches *further back than 15 words*, where in training there never was a word? And what would a head have that attends to all words evenly? (For our reader, and for the stored ones, mean over their seeds.)

# %%
far = torch.arange(104)[:, None] - torch.arange(104) > 15  # (T, T)


def far_shares(model):  # (H,), of the last eight words
    with torch.no_grad(), tx.record_attention(model) as recorded:
        model(test_row[starts[:50, None] + torch.arange(-96, 8)])
    far_weights = (recorded["body.blocks.0.attn"] * far)[:, :, -8:]  # (B, H, 8, T)
    return far_weights.sum(dim=-1).mean(dim=(0, 2))


evenly = (far[-8:].sum() / tx.causal_mask(104)[-8:].sum()).item()
print(f"{'evenly':<12} {evenly:5.0%}   then each of four heads")
print(f"{'our reader':<12}", *(f"{share:5.0%}" for share in far_shares(reader)))
far_by_kind = {kind: [] for kind in losses}
for one in readers:
    far_by_kind[one["kind"]].append(one["far"])
for kind, found in far_by_kind.items():
    shares = torch.tensor(found).mean(dim=0)  # (H,)
    print(f"{kind:<12}", *(f"{share:5.0%}" for share in shares))
    assert kind == "alibi" or (shares - evenly).abs().max() < 0.15
    assert kind != "rotary" or shares.min() > evenly
assert shares[0] < 0.05 and shares[-1] > evenly - 0.15  # the last row: ALiBi

# %% [markdown]
# With learned, sinusoidal and no positions the share of every head is near that of a head that attends evenly, with rotary ones it is larger still. In ALiBi it rises from almost nothing in the first head to near it in the last. In training nothing was ever that far away, so no head learned to ignore distant words. The shares are measured. The reasons below are our best explanation:
#
# - *None*: each word is one among a hundred, and ninety others drown the near ones.
# - *Learned*: noise beyond position 15, added to every word.
# - *Sinusoidal*: the formula continues, and each new position is a new vector that no matrix was ever trained to read. **That a formula continues does not mean that what was learned does.**
# - *Rotary*: no position is new, but distances are. A head is eight wide here, so it has four clock hands. At a distance of 44 words the first has come round to where it was for a near word ($44 \approx 7 \cdot 2\pi$), and the slower ones are at angles never met in training. A key far back can look like the word just before.
# - *ALiBi*: the first head hardly sees beyond fifteen words, however many there are. For it a long text is a short one.
#
# If so, ALiBi holds because its first head all but ignores what is far back, and its second gives it much less weight. That is also its price: a far word is lowered whatever it says, and the game of *mais* showed what else is given up. Its authors find the same level curves on real text (arXiv:2108.12409, figure 1), where
# sinusoids and rotary positions get worse.
#
# ## What this does not show
#
# Small models, trained for seconds, with one block. In a deeper or wider model the order of the curves in the middle may change; try it. Eight words of a review need little of what is far back, so no model was rewarded
# for a long memory: **a level curve says that a longer text does no harm, not that it is put to use.** And models with rotary positions need not stay as they are: slowing all hands down, so a long text turns them no further
# than a short one did in training, and training on for a little, lets them read far longer texts (arXiv:2306.15595).
#
# In the game each word attended to *all* others. Under a causal mask things are different: the first word sees one word, the second two, and this alone gives order away. Without any positions, the reviews
# of the beginning get different scores:

# %%
causal = tx.Classifier(config.replace(causal=True))
difference = (causal(twins)[0] - causal(twins)[1]).abs().max()
assert difference > 1e-4
print(f"causal mask, no positions: scores differ by {difference:.2g}")

# %% [markdown]
# Language models with causal masks and no positions can indeed be trained, and find out about positions by themselves (arXiv:2203.16634). Most models add positions all the same.
#
# ## Take-home
#
# The four codes on one screen. Two are added to the words, one turns queries and keys, one is added to the scores. (They compute in float32, which is enough for short texts.)

# %%
def sinusoidal(max_len, d_model, base=10_000):  # (T, D): x + sinusoidal(T, D)
    speeds = base ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(max_len)[:, None] * speeds
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


# x + learned.weight[:T]: one free vector for each position
learned = nn.Embedding(512, 64)


def rotary(x, base=10_000):  # (..., T, K): scores = rotary(q) @ rotary(k).T
    speeds = base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = torch.arange(x.shape[-2])[:, None] * speeds
    cos, sin = angles.cos(), angles.sin()
    first, second = x[..., 0::2], x[..., 1::2]
    return torch.stack(
        (cos * first + sin * second, cos * second - sin * first), -1
    ).flatten(-2)


def alibi(n_heads, seq_len):  # (H, T, T): scores + alibi(H, T)
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    t = torch.arange(seq_len)
    return slopes[:, None, None] * -(t[:, None] - t).abs()


x = torch.randn(2, 7, 64)
torch.testing.assert_close(sinusoidal(7, 64), tx.sinusoidal_positions(7, 64))
torch.testing.assert_close(rotary(x), tx.rotate(x))
torch.testing.assert_close(alibi(8, 7), tx.alibi_bias(8, 7))

# %% [markdown]
# ## Questions
#
# Five minutes without code. Pick an answer, and read what it gets back: common mistakes are among the choices.

# %%
course.quiz("positions")

# %% [markdown]
# ## Exercises
#
# First a puzzle: put the lines of rotary positions in order; some come in pairs, and one of each pair is wrong.

# %%
course.parsons("rotate")

# %% [markdown]
# Now build all of it yourself. Each exercise has a cell with dots to fill in and a cell that checks what you wrote. The check says more than right or wrong: where your numbers differ, on the smallest input it could find, and, if it knows the
# mistake, what it is. While there are only dots, it says "not attempted yet", and nothing else waits for you.

# %% [markdown]
# [exercise: sinusoidal_positions]


# %%
def sinusoidal_positions(max_len, d_model):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("sinusoidal_positions", sinusoidal_positions)

# %% [markdown]
# [exercise: shift_matrix]


# %%
def shift_matrix(k, d_model):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("shift_matrix", shift_matrix)

# %% [markdown]
# [exercise: rotate]


# %%
def rotate(x, positions):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("rotate", rotate)

# %% [markdown]
# [exercise: alibi_bias]


# %%
def alibi_bias(n_heads, seq_len):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("alibi_bias", alibi_bias)

# %% [markdown]
# ### Try it yourself
#
# **1.** A common misreading: "Words at even positions get sines, words at odd positions cosines." What would the table for "I am a Robot" look like then, and what would go wrong?
#
# <details><summary>Answer</summary>
#
# It confuses words with dimensions. Row *I* would be (0, 0), row *am* (cos 1, cos 0.1), and so on: one number a hand, so the height of the tip is known and the direction is not. No rotation leads from one row to the next. In the
# right table *every* word has sines (in the even dimensions) and cosines (in the odd ones).
#
# </details>
#
# **2.** For $d = 512$ and base 10,000: how many hands are there, which $i$ has the last, and does it take $2\pi \cdot 10{,}000$ tokens for a turn?
#
# <details><summary>Answer</summary>
#
# 256 hands, and the last is $i = 255$, that is $d/2 - 1$. Its speed is $10{,}000^{-510/512}$, so a turn takes $2\pi \cdot 10{,}000^{510/512}$, about 60,600 tokens; $2\pi \cdot 10{,}000$ is about 62,800 and would belong to $i = 256$, which does not
# exist. Check it in your copy with the cell that prints the turns.
#
# </details>
#
# **3.** A colleague writes: "Rotary adds $R(t)$ to the word vectors." Two things are wrong. Which? And why do the values stay as they are?
#
# <details><summary>Answer</summary>
#
# Nothing is added: vectors are multiplied, and not the word vectors but the queries and keys made from them, in every layer anew. The rotation is there to make scores depend on distance. Values are not compared with anything; were they turned too, what
# a word contributes would depend on its position, and nothing would turn it back.
#
# </details>
#
# **4.** In `draw_games`, let the model be asked for the word *after* next, two words after *mais*. Which rotation does a head need now? Will one trained with sinusoids find it as quickly?
#
# <details><summary>Hint</summary>
#
# Let `at` run from 0 to `n_words - 3`, and take `token_ids[rows, at + 2]` as the target. The rotation is $R(+2)$. Run it with a few values of `n_steps`, and with several seeds, before you say "as quickly".
#
# </details>
#
# ## Summary
#
# - Attention with neither positions nor a mask is permutation-equivariant: shuffle the words, and the same vectors come out, shuffled. Two reviews that differ in order only are one to it.
# - A raw index is wiped off by the norm or drowns the words; a share of the length means something else in every text.
# - $PE(pos, 2i) = \sin(pos / \text{base}^{2i/d})$ and $PE(pos, 2i+1) = \cos(\ldots)$ with $i = 0 \ldots d/2 - 1$: each position a row of clocks, fast hands to the left, slow ones to the right.
# - $PE(pos + k) = R(k) \, PE(pos)$ with one rotation for all positions. It needs the pair of sine and cosine; sine alone has no such matrix.
# - Rotary positions turn queries by $R(t)$ and keys by $R(s)$; the score keeps $R(s-t)$, distance and direction. ALiBi lowers the score by a slope times the distance, and knows no direction.
# - Trained short and tested long: learned and sinusoidal positions held in neither task. Rotary positions kept the game and held for a while in the language, then failed as well. ALiBi stays at one half of the game, as it knows no direction, and held in the language. Under a causal mask a model without positions is nearly as good within the trained length. Which is best depends on what is asked.
#
# *Where this comes from:* sinusoids, Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section 3.5 (and table 3, row E); learned positions, Gehring et al.,
# [arXiv:1705.03122](https://arxiv.org/abs/1705.03122), section 3.1; rotary, Su et al., [arXiv:2104.09864](https://arxiv.org/abs/2104.09864), section 3.2; ALiBi, Press et al., [arXiv:2108.12409](https://arxiv.org/abs/2108.12409),
# section 3; slower hands for longer texts, Chen et al., [arXiv:2306.15595](https://arxiv.org/abs/2306.15595); causal models without positions, Haviv et al., [arXiv:2203.16634](https://arxiv.org/abs/2203.16634).
#
# *What comes next:* lesson 04 splits attention into many heads. You now know what goes *into* a transformer's first layer: tokens, a mask, and order.
