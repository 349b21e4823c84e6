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
# 1. show that attention without positions is blind to order, and why adding 0, 1, 2, … does not cure it;
# 2. write down the sinusoidal table by hand, and read it as a row of clocks;
# 3. prove that moving on by $k$ words is one fixed rotation, and why it takes sine *and* cosine;
# 4. build rotary positions and the biases of ALiBi by hand, and say what each can know and what it cannot;
# 5. train short, test long, and read off which positions hold.
#
# *You need:* attention, as in [lesson 02](02_attention_and_masks.ipynb) (or its first taste in [lesson 00](00_start_here.ipynb)), and sine and cosine from school.
# *It takes:* fifty minutes to read; half a minute to run, with or without a GPU.

# %% [markdown]
# ## Set-up
#
# Some thirty very small models are trained near the end, and one setting, `n_steps`, says for how long. The budget `smoke` cuts it short: everything runs then, but
# nothing is learned. The matrices of this lesson are so small that one thread is faster than several, which would mostly wait for each other.

# %%
import math
from collections import Counter

import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx.model.positions import alibi_bias, rotate
from tinytx.training.recipes import default_budget
from tinytx_course import plots

torch.set_num_threads(1)
_ = torch.manual_seed(0)
n_steps = 10 if default_budget() == "smoke" else 250

# %% [markdown]
# ## Why: two reviews, one bag of words
#
# Here are two verdicts in the language of the course. *The beginning is boring, but the hero is magnificent*: that reader liked the book. Exchange two words, and
# the other reader did not. The language is made by a grammar whose probabilities we can compute, so we need not trust our feeling: we ask it how
# likely a review that says this is favourable. (A review has at least two sentences. So we say it twice.)

# %%
world = tx.World()
liked = world.split("Le début est ennuyeux, mais le héros est magnifique.")
disliked = world.split("Le début est magnifique, mais le héros est ennuyeux.")
for words in (liked, disliked):
    print(f"{world.label_posterior(words + words):6.1%} favourable:", " ".join(words))

# %% [markdown]
# Now put the words of each into a bag: count them, and forget where they stood. The two bags are the same. So whatever
# is computed from a bag, by the cleverest method there is, comes out the same for both. For one of the two reviews it must be wrong.

# %%
bag = Counter(liked)
assert bag == Counter(disliked)
print(" ".join(f"{word}×{n}" for word, n in sorted(bag.items())))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Surely a transformer does better? It compares every word with every other, after all. Let us take a small one that classifies whole
# texts, leave out the positions (`positions="none"`), and give it both reviews. It is untrained. But watch what would *not* change with any training:
# the two rows of scores are the same.

# %%
vocabulary = sorted(bag)
twins = [[vocabulary.index(word) for word in words] for words in (liked, disliked)]
twins = torch.tensor(twins)  # (2, T)
config = tx.TransformerConfig(
    vocab_size=len(vocabulary), d_model=32, n_heads=4, n_layers=2, d_ff=64,
    causal=False, positions="none",
)  # fmt: skip
blind = tx.Classifier(config)
scores = blind(twins)  # (2, C)
torch.testing.assert_close(scores[0], scores[1])
print("same scores for both, up to rounding")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The reason: nothing inside asks *where* a word stands. A score compares two words by their vectors. The mixture is a sum, and a sum has no order.
# The feed-forward network looks at one word at a time. So when we shuffle the words that go in, the vectors that come out are shuffled
# in the same way and otherwise unchanged. This has a name, **permutation-equivariance**: for each shuffling $P$, $\; f(PX) = P f(X)$.

# %%
shuffle = torch.randperm(twins.shape[1])
hidden = blind.body(twins)  # (2, T, D)
torch.testing.assert_close(blind.body(twins[:, shuffle]), hidden[:, shuffle])
print("shuffled in, shuffled out, nothing else")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# And at the end the classifier takes the mean of those vectors, which no shuffling changes. Such a model *is* a bag of words, an
# expensive one.
#
# ### A tempting way: add the number of the place
#
# The cure seems easy. Number the words 0, 1, 2, … and add the number to the word's vector. Here it is, four lines; and the same model as before, with the
# same weights, now wears it. The scores of the two reviews should differ at last.

# %%
class RawIndex(nn.Module):
    def forward(self, x):
        places = torch.arange(x.shape[1], dtype=x.dtype)  # (T,)
        return x + places[:, None]  # (B, T, D): word t is moved by t in every direction


counting = tx.Classifier(config)
counting.load_state_dict(blind.state_dict())
counting.body.pos_embed = RawIndex()
torch.testing.assert_close(counting(twins), scores, rtol=1e-4, atol=1e-4)
print("the number went in, and nothing came out")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Suspicious! The scores are still those of the blind model. The first thing inside each block here is a *layer norm*: it subtracts from each vector the
# mean of its numbers, and a constant that was added to all of them is gone with it. The index was wiped off before anybody could read it.
#
# Very well: give the index a direction of its own, where no norm can mistake it for the mean. Then it survives. But it grows. Before you look at the
# picture, say what happens to two *different* words, *magnifique* and *ennuyeux* say, when they both stand at place 5, at place 50, at place 500. How similar are their vectors? A similarity of 1
# means that they point the same way: a network that normalises its input then reads the same word twice. (The second line in the picture belongs to the method that this lesson is about.)

# %%
one_word, other_word = torch.randn(2, 64)  # two words that have nothing in common
places = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500]
direction = F.one_hot(torch.tensor(0), 64)
waves = tx.sinusoidal_positions(501, 64)


def similar(added):
    return [F.cosine_similarity(one_word + v, other_word + v, dim=0) for v in added]


with_index = similar(place * direction for place in places)
with_waves = similar(waves[place] for place in places)
fig, ax = plots.curves(
    [
        plots.Curve("index added", places, with_index),
        plots.Curve("sinusoids added", places, with_waves),
    ],
    xlabel="place of both words (tokens)", ylabel="cosine similarity",
    y_range=(-0.2, 1.08), title="Two different words at the same place",
)  # fmt: skip
plots.show(fig, name="03_index_drowns_words", alt="""
    Cosine similarity of two different word vectors at the same place, for places 0 to
    500. With the raw index added it climbs to almost 1 within the first hundred places;
    with sinusoids added it stays low and nearly level.""")

# %% [markdown]
# The index drowns the words. After some dozens of places all vectors point in nearly the same direction, and what is said no longer counts, only where. And each
# place is a number that the model has never met, as soon as a text is longer than those it was trained on.
#
# ### Another tempting way: one number between 0 and 1
#
# Then divide by the length, so that the first word has 0 and the last has 1. Nothing grows now. But ask what the second word of a text is told: 1/4 if there are five words, 1/19 if there
# are twenty, 1/99 if there are a hundred.
#
# The same place has a different number in every text, and "one word further" is a step of another size each time. *pas* turns the
# word right after it, in short reviews and in long ones. A model that must first work out the length cannot learn that once and for all. Near the end of this lesson
# we train one, and you can see how far it gets.
#
# What we want from a position, then: the same place has the same vector in every text; no two places share one; the numbers stay small; and **a step of
# one word is the same thing everywhere**.
#
# ## By hand: clocks
#
# We know a device that does all this: a clock. The second hand tells neighbouring seconds apart, but comes round each minute. The hour hand is too slow to
# tell seconds, but knows the morning from the afternoon. Together they give each moment its own picture, and no hand ever leaves its dial.
#
# So give each place a few hands of different speeds. Hand $i$ turns by $1 / \text{base}^{2i/d}$ radians per word, and a hand is noted by the two coordinates of its
# tip, sine and cosine:
#
# $$PE(pos, 2i) = \sin\left(\frac{pos}{\text{base}^{2i/d}}\right), \qquad PE(pos, 2i+1) = \cos\left(\frac{pos}{\text{base}^{2i/d}}\right).$$
#
# Here $pos$ is the place of the word, counted from 0, and $d$ is the width of the vectors. Four words, width 4 and base 100 are small enough for paper.

# %%
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
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Check the row of *a* on paper. It stands at $pos = 2$. The first hand turns by 1 a word: $\sin(2) = 0.91$, $\cos(2) = -0.42$ (in radians). The second turns by
# $1/100^{2/4} = 1/10$: $\sin(0.2) = 0.20$, $\cos(0.2) = 0.98$. The word itself plays no part: any word in that place gets the same four numbers.
#
# Two slips are common here. The even index is that of a *dimension*, not of a word: each word gets sines and cosines. And $i$ counts hands, so that it
# runs from 0 to $d/2 - 1$, not to $d/2$. The last hand would reach $1/\text{base}$ at $i = d/2$, which is never there: with $d = 4$ it stops far short of it, at 1/10 instead of 1/100. With
# wide vectors the difference is small, but it is there.
#
# ## All at once
#
# As a matrix: the angles are each place times each speed, an outer product. Then sine and cosine take turns along the
# columns. We compute in float64, since an angle of some hundreds leaves few digits for what counts, its rest after whole turns. The cell also prints the hands, to settle the two slips.

# %%
exponents = -torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
speeds = base**exponents  # (D/2,)
for i, speed in enumerate(speeds):
    print(f"hand i = {i}: dimensions {2 * i} and {2 * i + 1}, {speed:.2f} radians a word")
angles = torch.outer(torch.arange(4, dtype=torch.float64), speeds)  # (T, D/2)
table = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)  # (T, D)
torch.testing.assert_close(table, torch.tensor(by_hand, dtype=torch.float64))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## The package
#
# `tx.sinusoidal_positions` is that table, with the paper's base of 10,000 where you name none. PyTorch has no module for it to compare with, so the loop above is
# the reference. Adding is all a model does with it: row $t$ of the table is added to the vector of word $t$.
#
# And the two reviews? `seeing` is a model like `blind`, untrained like it, only with positions. It need not be *right* about them. But it *can* be, as soon as it no longer gives both the same scores.

# %%
torch.testing.assert_close(tx.sinusoidal_positions(4, 4, base=100), table.float())
seeing = tx.Classifier(config.replace(positions="sinusoidal"))
x = torch.randn(2, 11, 32)
torch.testing.assert_close(seeing.body.pos_embed(x), x + tx.sinusoidal_positions(11, 32))
print("by hand, all at once and the package agree")
assert (seeing(twins)[0] - seeing(twins)[1]).abs().max() > 1e-3
print("and now the two reviews get different scores")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Look
#
# First the clocks themselves: width 8, so four hands, and base 100. Each row is one hand, with the radians that it turns per word; each column is one place. Before you look: which row changes most
# from column to column? Could two columns be the same?

# %%
speeds = 100.0 ** (-torch.arange(0, 8, 2, dtype=torch.float64) / 8)  # (D/2,)
places = torch.arange(8, dtype=torch.float64)
fig, ax = plots.phase_clocks(
    torch.outer(speeds, places),
    row_labels=[f"hand {i}\n{speed:.2f} rad" for i, speed in enumerate(speeds)],
    xlabel="place of the word (tokens)", title="Each place has its own picture",
)  # fmt: skip
plots.show(fig, name="03_clocks", alt="""
    Four rows of eight clocks, one column for each place from 0 to 7. In the first row the
    hand turns by almost a sixth of a circle per place and comes round; each further row
    turns about three times slower, and the last hand hardly leaves the top.""")

# %% [markdown]
# All hands start upright at place 0. The first comes round after six places and a bit: it tells neighbours apart, but not place 0 from place 6. The slower hands do
# that. The sine of an angle is how far the tip stands to the right, the cosine how far it stands up. So the column of a place *is* its row in the table.
#
# Now the table as models use it, wider and with base 10,000. Predict: where are the fast stripes? What do the last columns look like?

# %%
fig, ax = plots.heatmap(
    tx.sinusoidal_positions(50, 32), low=-1, high=1, bar_label="value",
    xlabel="dimension (sine where even, cosine where odd)", ylabel="place (tokens)",
    title="Fifty places, width 32",
)  # fmt: skip
plots.show(fig, name="03_sinusoidal_table", alt="""
    The table of sinusoidal positions for 50 places and 32 dimensions as a heat map. On
    the left the colours change from row to row; to the right the stripes get longer and
    longer, until the last dimensions do not change at all: zero for sines, one for
    cosines.""")

# %% [markdown]
# On the left the colour changes from row to row, then ever more slowly. On the far right nothing moves within fifty places: every sine is still near 0, every cosine near 1. Those
# hands are for longer texts. A full turn takes $2\pi$ divided by the speed of the hand: $2\pi$ words for the first, $2\pi \cdot \text{base}^{2i/d}$ for hand $i$.

# %% [markdown]
# ## One step is one rotation
#
# Here is why the clocks are more than a pretty code. To move from one place to the next, each hand turns by its own fixed angle, *wherever it stands*. And to
# turn an arrow by a fixed angle is a linear map, a 2 × 2 matrix. By the addition theorems, for a hand of speed $w$,
#
# $$\begin{pmatrix} \sin((pos+k)\,w) \\ \cos((pos+k)\,w) \end{pmatrix} = \begin{pmatrix} \cos(kw) & \sin(kw) \\ -\sin(kw) & \cos(kw) \end{pmatrix} \begin{pmatrix} \sin(pos\,w) \\ \cos(pos\,w) \end{pmatrix}.$$
#
# By hand, with the slower hand of the robot ($w = 0.1$): from place 1 we go $k = 2$ places on and must arrive at place 3.

# %%
w, k = 0.1, 2
sine, cosine = by_hand[1][2:]
new_sine = math.cos(k * w) * sine + math.sin(k * w) * cosine
new_cosine = -math.sin(k * w) * sine + math.cos(k * w) * cosine
torch.testing.assert_close([new_sine, new_cosine], by_hand[3][2:])
print(f"{new_sine:.2f} {new_cosine:.2f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The row of *Robot* ends with just these two numbers. All hands together: put the small matrices along the diagonal of a large one, zeros elsewhere, and call it $R(k)$. Then
# $PE(pos + k) = R(k)\, PE(pos)$, and **$pos$ does not occur in $R(k)$**. `tx.shift_matrix` builds it; here is $R(2)$ for the robot.

# %%
for row in tx.shift_matrix(2, 4, base=100).tolist():
    print(*(f"{value:6.2f}" for value in row))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# One such example proves little. So we try every pair of places up to 512, at width 64 and base 10,000: each $k$ has one matrix, and it must carry *all* places $k$ steps on.
# We also check that these matrices behave as shifts should: two of them add up, and the transpose goes back.

# %%
waves = tx.sinusoidal_positions(512, 64, dtype=torch.float64)
for k in range(512):
    moved = waves[: 512 - k] @ tx.shift_matrix(k, 64).T  # (512 - k, D)
    torch.testing.assert_close(moved, waves[k:], rtol=0, atol=1e-9)
three, four, seven = (tx.shift_matrix(k, 64) for k in (3, 4, 7))
torch.testing.assert_close((three @ four, three.T), (seven, tx.shift_matrix(-3, 64)))
print(f"{512 * 513 // 2:,} pairs of places, each within a billionth")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### What a model can do with it
#
# Attention compares *queries* with *keys*, and makes both by multiplying with learned matrices. So let a head multiply its queries by $R(-1)$: each word then asks for the place before
# its own. Nothing is trained in the next cell. The factor 16 stands for how loudly the head asks.

# %%
queries = 16 * waves @ tx.shift_matrix(-1, 64).T  # (T, D): "who stands one before me?"
looks_back = tx.attention_weights(queries, waves)  # (T, T)
assert looks_back.argmax(dim=-1)[1:].tolist() == list(range(511))
print("each of 511 places looks most at the one before it")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Left: a rotation $R(k)$ as a picture, at width 8 so that you can count; right: where the first twelve words look. Predict both: where can the left one be anything else than
# white? And in which cells of the right one do you expect the weight, given that a word is to look at the one before it? What can word 0 do?

# %%
fig, (left, right) = plots.figure(1, 2, width=8.8, height=4.2)
plots.heatmap(
    tx.shift_matrix(3, 8, base=100), low=-1, high=1, numbers=".1f", ax=left,
    xlabel="dimension before", ylabel="dimension after", title="The rotation R(3)",
)  # fmt: skip
plots.heatmap(
    looks_back[:12, :12], low=0, high=1, ax=right, xlabel="place looked at (tokens)",
    ylabel="place that looks (tokens)", title="A head that looks one back",
)  # fmt: skip
plots.show(fig, name="03_rotation_and_look_back", alt="""
    Left, the matrix that moves positions three steps on: four two by two blocks along
    the diagonal, zeros everywhere else. Right, attention weights of twelve places: each
    place looks mostly at the one just before it, so that the dark cells form a line one
    below the diagonal; place 0 looks at itself.""")

# %% [markdown]
# One matrix, the same for every place, and the head looks one back wherever it stands. That is what "a step is the same thing everywhere" buys: the head learns *the word before* once, not
# once per place. (Word 0 has nobody before it, and takes the nearest there is.)
#
# ### Similar means near
#
# A rotation changes no lengths and no angles. So how similar two positions are, $PE(p) \cdot PE(q)$, can depend on nothing but their distance. In the table of all similarities every diagonal
# must then be constant, and the next cell asserts it. So one curve tells all: similarity against distance. We draw it for three bases. Predict what a small base, where even the slowest hand comes
# round soon, does to places that are far apart.

# %%
similarities = waves @ waves.T / 32  # (512, 512); 32 = D/2: 1 on the diagonal
for distance in range(512):
    diagonal = similarities.diagonal(distance)
    torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
lines = []
for b in (10, 100, 10_000):
    positions = tx.sinusoidal_positions(121, 64, b)  # (T, D)
    alike = positions @ positions[0] / 32  # (T,)
    lines.append(plots.Curve(f"base {b:,}", range(121), alike))
fig, ax = plots.curves(
    lines, xlabel="distance (tokens)", ylabel="similarity (1 = same place)",
    title="How alike two places are",
)  # fmt: skip
plots.show(fig, name="03_similarity_and_distance", alt="""
    Similarity of two positions against their distance up to 120 tokens, for three
    bases. All start at 1 and fall. With base 10 the curve is below zero within ten tokens
    and then swings around it; with base 100 it gets there after some fifty tokens; with
    base 10,000 it comes down slowly and in waves, and stays well above.""")

# %% [markdown]
# All three start at 1 and fall. The small base soon swings around zero only, and then says nothing about *how* far away a word is. The base of 10,000
# is still on its way down at the right end: it has slow hands to spare. Notice the waves, too. Nearer means more similar on the whole, but not always.
#
# Table, clocks, similarity and rotation are four views of one thing, and here they move together. Choose a place and a hand, then a shift $k$, and check that the same turn leads from every place to the one $k$ words on. Then make the base small and watch
# what happens to the curve. Everything can be reached with Tab and the arrow keys.

# %%
course.widgets.positions(121, 64, 100, position=23, hand=4, shift=4)

# %% [markdown]
# ### How to choose the base
#
# Is larger always better, then? A hand that does not move within the texts you have is a wasted dimension. Here are, for width 64 and texts of 512 tokens, the slowest turn, and
# how many of the 64 numbers change by less than 0.1 from the first token to the last.

# %%
for b in (10, 100, 10_000, 100_000_000):
    positions = tx.sinusoidal_positions(512, 64, b, dtype=torch.float64)
    idle = (positions.amax(dim=0) - positions.amin(dim=0) < 0.1).sum()
    slowest = 2 * math.pi * b ** (62 / 64)
    print(f"base {b:>11,}: slowest turn {slowest:>13,.0f} tokens, {idle:>2} of 64 idle")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# So there are two ends to keep away from: at one the hands come round too soon, at the other most of them stand still. The paper's 10,000 lies between, with some slow hands in reserve for longer
# texts. The *length of the table* is another matter: `max_len` only says how many rows are computed in advance, and no row depends on it.
#
# ## Break it: sine alone
#
# Each hand costs two dimensions. Could we not drop the cosines, and have twice as many speeds for the same price? Look at place 0: all sines are 0 there. A linear map
# carries zeros to zeros, so no matrix can ever leave place 0. And elsewhere? The sine of 30° is that of 150°: the tip is at the same height, but
# once on its way up and once on its way down. Same number, different futures.
#
# We look for the best matrix anyway, by least squares: from all places up to 511 to the next one, and leave out place 0, to be generous.

# %%
all_places = torch.arange(512, dtype=torch.float64)
speeds = 10_000 ** (-torch.arange(64, dtype=torch.float64) / 64)  # (D,), twice as many
sines = torch.outer(all_places, speeds).sin()  # (T, D)
assert sines[0].abs().max() == 0
for name, positions in {"sine and cosine": waves, "sine alone": sines}.items():
    now, following = positions[1:-1], positions[2:]
    best = torch.linalg.lstsq(now, following, driver="gelsd").solution  # (D, D)
    print(f"{name:<16}largest error: {(now @ best - following).abs().max():.2f}")

# %% [markdown]
# With both, the error is nothing but rounding: the matrix that least squares found is a shift. With sine alone, the best of all matrices is wrong by a good part of what a sine can be at all. It is
# the *pair* that makes a hand, and the hand that can be turned.
#
# ## Learned positions
#
# There is a plainer way: give each place a vector of its own, and let training find it, as for words. BERT and GPT-2 do so. It costs `max_len` × $d$ parameters, where
# the sinusoids cost none. And there is no vector for a place beyond the table: a model with learned positions *cannot* read a longer text, and should say so. (In this package the others say the
# same; but what they need could simply be computed for longer texts.)

# %%
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
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Turn the words: rotary positions
#
# So far a position is *added*. The same numbers then carry what a word is and where it stands, and a head that wants to look one back must first tell the two apart. But we have seen that
# a step is a rotation. Why not turn the words themselves? **Rotary positions** do that, inside each head: the query of word $t$ is turned by $R(t)$ and the key of word $s$ by $R(s)$,
# with the matrices you know. Nothing is added to the word, and nothing is learned. Look at the score:
#
# $$\bigl(R(t)\,q\bigr) \cdot \bigl(R(s)\,k\bigr) \;=\; q \cdot R(t)^\top R(s)\, k \;=\; q \cdot R(s-t)\, k.$$
#
# The transpose goes back, and two shifts add up; both were checked above. The places $t$ and $s$ are gone, and their **distance** is left. We try it in loops, on four words of width 4, and compare with the package, which turns all words at
# once without building any matrix.

# %%
q, k = torch.randn(2, 4, 4, dtype=torch.float64)  # (T, K) each
by_loop = torch.zeros(4, 4, dtype=torch.float64)
for t in range(4):
    for s in range(4):
        turned_q = tx.shift_matrix(t, 4, base=100) @ q[t]
        turned_k = tx.shift_matrix(s, 4, base=100) @ k[s]
        by_loop[t, s] = turned_q @ turned_k
        by_distance = q[t] @ tx.shift_matrix(s - t, 4, base=100) @ k[s]
        torch.testing.assert_close(by_loop[t, s], by_distance)
scores = rotate(q, base=100) @ rotate(k, base=100).T  # (T, T)
torch.testing.assert_close(scores, by_loop)
print("turned by R(t) and R(s), compared by R(s - t)")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# If the distance is all that counts, the same four words must score the same a thousand places on. And a model made with `positions="rotary"` must no longer be blind: the two
# reviews of the beginning get different scores. (The mixture of the values stays as it was. Only the comparison is turned: what a word *says* does not depend on its place.)

# %%
places = torch.arange(4)
here = rotate(q, places) @ rotate(k, places).T
there = rotate(q, places + 1000) @ rotate(k, places + 1000).T
torch.testing.assert_close(here, there)
turning = tx.Classifier(config.replace(positions="rotary"))(twins)
assert (turning[0] - turning[1]).abs().max() > 1e-4
print("same scores a thousand places on; different scores for the two reviews")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Say only how far: ALiBi
#
# Must it be a rotation? The plainest way to tell a distance is to *subtract* it. **ALiBi**, attention with linear biases, leaves queries and keys alone, and lowers each score by a slope times the distance:
#
# $$\text{score}(t, s) = \frac{q_t \cdot k_s}{\sqrt{K}} - m_h\,|t - s|.$$
#
# Every head $h$ of $H$ has its own slope, $m_h = 2^{-8h/H}$ for $h = 1, \ldots, H$. They are fixed, not learned. With four heads they are 1/4, 1/16, 1/64 and 1/256. Here is the first head for five words; check a row on paper.

# %%
by_loop = torch.zeros(4, 5, 5)
for h in range(4):
    slope = 2 ** (-8 * (h + 1) / 4)
    for t in range(5):
        for s in range(5):
            by_loop[h, t, s] -= slope * abs(t - s)
torch.testing.assert_close(alibi_bias(4, 5), by_loop)
for row in by_loop[0].tolist():
    print(*(f"{value:6.2f}" for value in row))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# What does that do to the weights? Let all keys fit equally well, so that every score is 0 before. After softmax each step back then multiplies the weight by $e^{-m}$: it fades, quickly in the first head, hardly at all in the
# last.
#
# And what can it *not* know? A distance has no direction. A model that looks both ways and has nothing but ALiBi cannot tell a text from its mirror image. The cell asserts both. (Under a causal mask, for which ALiBi was
# made, nobody looks ahead, and the question does not arise.)

# %%
silent = torch.zeros(4, 5, 8)  # (H, T, K): queries and keys that say nothing
weights = tx.attention_weights(silent, silent, tx.causal_mask(5), alibi_bias(4, 5))
fading = weights[0, 4, :4] / weights[0, 4, 1:]  # each word against the one after it
torch.testing.assert_close(fading, torch.full((4,), math.exp(-1 / 4)))
fading_model = tx.Classifier(config.replace(positions="alibi"))
torch.testing.assert_close(fading_model(twins), fading_model(twins.flip(1)))
print("weights fade by exp(-1/4) a word; forwards and backwards read the same")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Both side by side. Left, rotary at width 64: the score of a turned query and a turned key against their distance, for a query that equals its key, for one that is $R(-20)$ times its key, and for a pair drawn at random. Right,
# ALiBi: what is added to the score in each head. Predict: which of the left curves have you seen before? Where is the peak of the second? And which head on the right can look far?

# %%
fig, (left, right) = plots.figure(1, 2, width=9.8, height=3.8)
key = waves[0]  # the clock of place 0
pairs = {
    "q = k": (key, key),
    "turned": (tx.shift_matrix(-20, 64) @ key, key),
    "random": torch.randn(2, 64, dtype=torch.float64),
}
distances = torch.arange(-40, 41)
lines = []
for name, (q, k) in pairs.items():
    turned = rotate(k.expand(81, 64), distances)  # (81, K)
    lines.append(plots.Curve(name, distances, turned @ q / (q.norm() * k.norm())))
plots.curves(
    lines, xlabel="distance from query to key (tokens)", ylabel="score (cosine)",
    title="Rotary: a curve for each pair", ax=left,
)  # fmt: skip
plots.heatmap(
    alibi_bias(4, 8)[:, 0], low=-2, high=0, numbers=".2f", ax=right,
    row_labels=["1/4", "1/16", "1/64", "1/256"], xlabel="distance (tokens)",
    ylabel="slope of the head", title="ALiBi: added to the score",
)  # fmt: skip
plots.show(fig, name="03_rotary_and_alibi", alt="""
    Left, the score of turned queries and keys against distances from 40 back to 40
    ahead: for equal vectors a peak at distance 0 that falls in waves to both sides
    alike; for a query turned back by 20 the same curve with its peak at distance -20;
    for a random pair irregular waves. Right, the biases of four heads up to distance 7:
    they fall quickly in the head of slope 1/4 and hardly in the head of slope 1/256.""")

# %% [markdown]
# The curve of equal vectors is the similarity you know. A query that was turned by $R(-20)$ moves it as a whole: this head looks twenty back, wherever it stands. So a head can learn to look at any distance, to either side. ALiBi offers no such
# choice. Near counts more than far, in the first heads steeply, in the last ones hardly. That is less. Keep the question: when is less better?
#
# | positions | where they act | learned | what they can tell |
# |---|---|---|---|
# | sinusoidal | added to the words | nothing | the place; a distance by a learned rotation |
# | learned | added to the words | a vector for each place | the place |
# | rotary | turn queries and keys | nothing | the distance and its direction |
# | ALiBi | lower the scores | nothing | how far |

# %% [markdown]
# ## Use it: the word before *mais*
#
# Time to train. The task is a game that cannot be won without order. Eight different words are drawn, one of them *mais*, and shuffled. The model must name the word that stands **directly
# before** *mais*. It answers at the place of *mais*, by choosing among all words.

# %%
lexicon = [
    "mais", "le", "la", "un", "une", "roman", "livre", "style", "fin", "il", "elle",
    "est", "beau", "lent", "long", "bon", "très", "pas", "et", "mal", "bien",
]  # fmt: skip


def draw(n, n_words, generator):
    shuffled = torch.rand(n, 20, generator=generator).argsort(dim=1)
    token_ids = 1 + shuffled[:, :n_words]  # (n, T), no word twice
    places = torch.randint(1, n_words, (n,), generator=generator)
    rows = torch.arange(n)
    token_ids[rows, places] = 0  # mais
    return token_ids, places, token_ids[rows, places - 1]


token_ids, _, answers = draw(3, 8, torch.Generator().manual_seed(3))
for row, answer in zip(token_ids.tolist(), answers.tolist(), strict=True):
    print(" ".join(lexicon[i] for i in row), "->", lexicon[answer])

# %% [markdown]
# How well can somebody do who sees the bag only? There are seven words besides *mais*, and each is as likely as any other to stand before it. Nobody can beat one in seven, however clever. That
# is our baseline, and it is exact.
#
# Six kinds of model play: without positions, with one number between 0 and 1 (times a learned direction), with sinusoids, with learned vectors, with rotary positions and with ALiBi. All else is equal: one block, two heads,
# width 32, the same games. The words before *and* after are in sight. The training loop is an ordinary one: draw 64 games, ask the model at the place of *mais*, compare with the right answer, take a step. Every game is new, so that
# nothing can be learned by heart. Lesson 08 says more about how models are trained; here it is enough that they are.

# %%
class OneNumber(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.direction = nn.Parameter(torch.randn(d_model))

    def forward(self, x):
        return x + torch.linspace(0, 1, x.shape[1])[:, None] * self.direction  # (B, T, D)


def new_model(kind):
    positions = "none" if kind == "one number" else kind
    model = tx.LanguageModel(game_config.replace(positions=positions))
    if kind == "one number":
        model.body.pos_embed = OneNumber(game_config.d_model)
    return model


def train(kind, seed):
    torch.manual_seed(seed)
    model, games = new_model(kind), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, n_steps)
    for _ in range(n_steps):
        token_ids, places, answers = draw(64, 8, games)
        logits = model(token_ids)[torch.arange(64), places]  # (64, V), at mais
        F.cross_entropy(logits, answers).backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    return model.eval()


# %% [markdown]
# One run may be lucky, so each kind is trained from three different beginnings. We count the right answers in a thousand new games each, and note the mean and the spread; first in games of eight words, as in training,
# then in games of **sixteen**, which no model has met. Say first what you expect: who stays at the baseline? What of ALiBi, which must find a word *before*, and not after? And with sixteen words?

# %%
def right_answers(model, n_words, n=1000):
    token_ids, places, answers = draw(n, n_words, torch.Generator().manual_seed(99))
    with torch.no_grad():
        guesses = model(token_ids)[torch.arange(n), places].argmax(dim=-1)
    return (guesses == answers).float().mean().item()


kinds = ("none", "one number", "sinusoidal", "learned", "rotary", "alibi")
models, accuracy = {}, {}
print(f"{'bag of words at best':<22}{1 / 7:6.1%}{1 / 15:17.1%}")
for kind in kinds:
    models[kind] = [train(kind, seed) for seed in range(3)]
    found = [[right_answers(model, n) for n in (8, 16)] for model in models[kind]]
    accuracy[kind] = torch.tensor(found)  # (seeds, lengths)
    short, long = accuracy[kind].T
    print(f"{kind:<22}{short.mean():6.1%} ± {short.std():5.1%}", end="")
    print(f"{long.mean():9.1%} ± {long.std():5.1%}")

# %% [markdown]
# Read the first column of figures: which kinds learned the game? Then the second. Of the places that *mais* can have among sixteen words, 1 to 15, seven were met in training. Which kinds keep about that share, 7/15 or 47 %, and
# which keep more?
#
# Without positions a model stays where the bag must stay, however long it trains. One number is better than nothing, and not enough: near the edges it tells places apart, in the middle
# they blur. Sinusoids and learned vectors both learn the game, which agrees with the paper, where both gave "nearly identical results" on translation (arXiv:1706.03762, table 3, row E). With sixteen words they keep the places they
# know, and lose the others. Rotary positions know distances only, and *one before* is the same distance everywhere: they carry on.
#
# ALiBi is not made for this game, and does hardly better than a bag. It cannot tell the word before from the word after, and with two heads its slopes are 1/16 and 1/256: all eight words count nearly the same.

# ### What the trained head does
#
# We built a head that looks one back out of a rotation. Is that what training found? Take the first model with sinusoids, ask it 2,000 games, and note where it looks *from mais*, on average for each
# place of *mais*. Predict where the dark cells are: rows are places
# of *mais*, from 1 to 7, columns the places looked at, from 0 to 7.

# %%
token_ids, places, _ = draw(2_000, 8, torch.Generator().manual_seed(5))
with torch.no_grad(), tx.record_attention(models["sinusoidal"][0]) as recorded:
    models["sinusoidal"][0](token_ids)
attn_weights = recorded["body.blocks.0.attn"]  # (B, H, T, T)
looks = [attn_weights[places == p][:, :, p].mean(dim=0) for p in range(1, 8)]
fig, panels = plots.figure(1, 2, width=8.8, height=3.8)
for head, ax in enumerate(panels):
    plots.heatmap(
        torch.stack(looks)[:, head], low=0, high=1, numbers=".1f",
        row_labels="1234567", col_labels="01234567", xlabel="place looked at (tokens)",
        ylabel="place of mais (tokens)", title=f"Head {head}, after training", ax=ax,
    )  # fmt: skip
plots.show(fig, name="03_trained_heads_look_back", alt="""
    Mean attention weights from mais in the two heads of a trained model, for each place
    of mais. In both heads the largest weight lies on the diagonal: mais looks at the
    place just before it.""")

# %% [markdown]
# Both heads found it by themselves: the weight lies one before *mais*, on the diagonal that begins in the upper left corner, with some smear to its neighbours. A blurred version of the head we built.
#
# ## Break it: train short, test long
#
# A game of one rule is not language. So here is the question of the lesson once more, for small language models on the reviews of our world: each predicts the next word, and sees only what stands before (a causal mask).
# Five kinds (all but the single number) are trained on snippets of **16 words**, cut out of the reviews anywhere.
#
# Then we ask for the first eight words of new reviews, **the same words every time**, and put more and more of *other* reviews before them: no word, 4, 8, … 96 words. Reviews have nothing to do with each other, so what stands before
# helps nobody and need disturb nobody. The lowest loss that anybody can reach, the *floor*, is the same for every length. We know the grammar, so we can compute it.

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
floor = -sum(world.automaton.read(words).log_prob for words in first_eight) / (125 * 8)
print(f"{len(train_row):,} words to train on; floor {floor:.3f} nats a word")

# %% [markdown]
# One block, four heads, width 32, and a `max_len` that leaves room for the long test. Each step takes sixteen snippets. The loss is that of every next word. (More on such models and their loss in lesson 08; here all kinds get the same
# snippets in the same order, and that is what matters.)

# %%
reader_config = tx.TransformerConfig(
    vocab_size=len(numbers), d_model=32, n_heads=4, n_layers=1, d_ff=64, max_len=112,
    tie_embeddings=True,
)  # fmt: skip


def train_reader(kind, seed):
    torch.manual_seed(seed)
    model = tx.LanguageModel(reader_config.replace(positions=kind))
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, n_steps)
    snippets = torch.Generator().manual_seed(seed)
    for _ in range(n_steps):
        first = torch.randint(len(train_row) - 16, (16, 1), generator=snippets)
        token_ids = train_row[first + torch.arange(17)]  # (16, 17): 16 and the next
        logits = model(token_ids[:, :-1])  # (16, 16, V)
        F.cross_entropy(logits.flatten(0, 1), token_ids[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    return model.eval()


# %% [markdown]
# Now the test. `n_before` words, then the first eight of a review; the loss is taken on those eight only. With up to eight words before, everything lies within the trained length of sixteen. What do you expect beyond: who rises, who
# stays level? We print the loss with nothing before and with 96 words before, and by how much the same model got worse: mean and spread of three seeds.

# %%
def loss_on_first_eight(model, n_before):
    token_ids = test_row[starts[:, None] + torch.arange(-n_before, 9)]
    with torch.no_grad():
        hidden = model.body(token_ids[:, :-1])[:, -8:]  # (125, 8, D)
        logits = model.head(hidden).flatten(0, 1)
    return F.cross_entropy(logits, token_ids[:, -8:].flatten()).item()


befores = (0, 4, 8, 16, 24, 32, 48, 64, 96)
readers, losses = {}, {}
for kind in ("none", "learned", "sinusoidal", "rotary", "alibi"):
    readers[kind] = [train_reader(kind, seed) for seed in range(3)]
    found = [[loss_on_first_eight(model, n) for n in befores] for model in readers[kind]]
    losses[kind] = torch.tensor(found)  # (seeds, lengths)
    rise = losses[kind][:, -1] - losses[kind][:, 0]
    first, last = losses[kind].mean(dim=0)[[0, -1]]
    print(f"{kind:<12}{first:6.2f} -> {last:.2f}", end=", ")
    print(f"worse by {rise.mean():5.2f} ± {rise.std():.2f}")

# %% [markdown]
# The same as curves. Shaded is what lies within the trained length; the bands run from the best to the worst of the three runs. All points are the loss on the same 1,000 words. What tells rotary positions from ALiBi here, and where do
# their curves part?

# %%
lines = [
    plots.Curve(kind, befores, found.mean(dim=0), *found.aminmax(dim=0))
    for kind, found in losses.items()
]
fig, ax = plots.curves(
    lines, references={"exact floor": floor},
    xlabel="words of other reviews before (tokens)", ylabel="loss (nats per word)",
    title="The same words, ever further back in the text",
)  # fmt: skip
ax.axvspan(0, 8, color="#eeeeee", zorder=0)
plots.show(fig, name="03_train_short_test_long", alt="""
    Loss on the same words against the number of words before them, for five kinds of
    positions trained on 16 words, with the exact floor below all. Within the trained
    length all are nearly level. Beyond it sinusoidal positions rise most. Learned positions
    and none at all drift up. Rotary positions stay level up to about twice the trained
    length and then rise. ALiBi stays nearly level to the end.""")

# %% [markdown]
# So one kind holds in this test, ALiBi; rotary positions hold for a while; the others begin to lose as soon as the trained length is left. Why? Two measurements help. First the learned table: a row that
# no snippet reached gets no gradient, so it must still be the random vector it began with. Second, with 96 words before: how much of the attention goes *further back than 15 words*, where in training there never was a word? We
# print it for each of the four heads, next to what a head would have that looks at all words evenly.

# %%
table = readers["learned"][0].body.pos_embed.table.detach()
torch.manual_seed(0)  # the seed of that model: its beginning is drawn again
at_first = tx.LanguageModel(reader_config.replace(positions="learned")).body.pos_embed.table
assert torch.equal(table[16:], at_first[16:].detach())
print("learned: from place 16 on, every row is what it was before training")
far = torch.arange(104)[:, None] - torch.arange(104) > 15  # (T, T)
print(f"{'evenly':<12} {far[-8:].sum() / tx.causal_mask(104)[-8:].sum():5.0%}")
for kind, (model, *_) in readers.items():
    with torch.no_grad(), tx.record_attention(model) as recorded:
        model(test_row[starts[:50, None] + torch.arange(-96, 8)])
    shares = (recorded["body.blocks.0.attn"] * far)[:, :, -8:].sum(dim=-1).mean(dim=(0, 2))  # (H,)
    print(f"{kind:<12}", *(f"{share:5.0%}" for share in shares))

# %% [markdown]
# In every head of every kind but ALiBi, the share is about that of a head that looks at all words evenly, near or far. In sixteen words nothing was ever that far, so nothing taught them to let go. That much is measured; here is
# what goes wrong, as far as these numbers let us see it.
#
# - *None*: each word is one voice among all, and ninety others drown the near ones.
# - *Learned*: noise beyond place 15, added to every word.
# - *Sinusoidal*: the formula goes on, and each new place is a new vector that no matrix was ever trained to read. **That a formula goes on does not mean that what was learned goes on.**
# - *Rotary*: no place is new, but distances are. Here a head is eight wide, so it has four hands. Within fifteen words the second turned by at most 1.5 radians; at a distance of fifty it stands where it never stood, and the first has come round to
#   where it stood for a near word ($44 \approx 7 \cdot 2\pi$). A key far back can look like the word just before.
# - *ALiBi*: the first head hardly sees beyond fifteen words, however many there are. For it a long text is a short one.
#
# That is also its price. ALiBi holds since it forgets: what stands far back is lowered whatever it says, and the game of *mais* showed what else is given up. Its authors find the same level curves on real text (arXiv:2108.12409, figure 1), where
# sinusoids and rotary positions get worse.
#
# ## What this does not show
#
# Small models, trained for seconds, with one block. In a deeper or wider model the order of the curves in the middle may change; try it. Eight words of a review need little of what stands far back, so nobody was paid
# for a long memory: **a level curve says that a longer text does no harm, not that it is put to use.** And models with rotary positions need not stay as they are: slowing all hands down, so that a long text turns them no further
# than a short one did in training, and training on for a little, lets them read far longer texts (arXiv:2306.15595).
#
# In the game each word looked at *all* others. Under a causal mask things are different: the first word sees one word, the second two, and this alone gives order away. Without any positions, the reviews
# of the beginning get different scores:

# %%
causal = tx.Classifier(config.replace(causal=True))
difference = (causal(twins)[0] - causal(twins)[1]).abs().max()
assert difference > 1e-4
print(f"causal mask, no positions: scores differ by {difference:.2g}")

# %% [markdown]
# Language models with causal masks and no positions can indeed be trained, and find out about places by themselves (arXiv:2203.16634). Most models add positions all the same.

# %% [markdown]
# ## Questions
#
# Five minutes without code. Pick an answer, and read what it gets back: slips from reports are among the choices. In your own copy there are buttons to press; on a page without a kernel each answer opens on a click.

# %%
course.quiz("positions")

# %% [markdown]
# ## Exercises
#
# Now build the clocks yourself. Each exercise has a cell with dots to fill in and a cell that checks what you wrote. The check says more than right or wrong: where your numbers differ, on the smallest table it could find, and, if it knows the
# mistake, what it is. While there are only dots, it says "not attempted yet", and nothing else waits for you.
#
# ### Exercise: the table of clocks
#
# `Level 2/5 · 10 minutes · outcome 2`
#
# Write `sinusoidal_positions(max_len, d_model)`. It returns a tensor of shape (T, D), with T = `max_len` places, counted from 0, and D = `d_model`, which is even. Hand $i$ turns by $1 / 10{,}000^{2i/D}$ radians a
# place, $i = 0 \ldots D/2 - 1$; its sine stands in column $2i$, its cosine in column $2i + 1$. Loops or one outer product, float32 or float64: as you like. *It trains* reading an index formula exactly as it stands.
#
# <details><summary>Hint</summary>
#
# First the speeds, one for each of the D / 2 hands; print them for D = 4: 1 and 0.01. Then every place times every speed. Getting sine and cosine to take turns is the fiddly part: two assignments to `[:, 0::2]` and `[:, 1::2]` do it, or a `torch.stack` along a new
# last axis.
#
# </details>


# %%
def sinusoidal_positions(max_len, d_model):
    ### BEGIN SOLUTION
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model  # (D/2,), 2i/D
    places = torch.arange(max_len, dtype=torch.float64)  # (T,)
    angles = torch.outer(places, 10_000**-exponents)  # (T, D/2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)  # (T, D)
    ### END SOLUTION


# %%
course.check("sinusoidal_positions", sinusoidal_positions)

# %% [markdown]
# ### Exercise: the matrix that moves on
#
# `Level 3/5 · 15 minutes · outcome 3`
#
# Write `shift_matrix(k, d_model)`. It returns a tensor M of shape (D, D), the same for all places, with M @ PE(pos) = PE(pos + k). PE is the table of the exercise before, with its base of 10,000 and sine and cosine taking turns; D is even,
# and PE(pos) stands as a column of D numbers. The check applies your matrix to several places. *It trains* turning a proof, the addition theorems, into an array.
#
# <details><summary>Hint</summary>
#
# Only blocks of 2 × 2 on the diagonal are not zero. Begin with D = 2, where the speed is 1, and write $\sin(pos + k)$ and $\cos(pos + k)$ out: what stands before $\sin(pos)$ and $\cos(pos)$ fills the two rows. Mind which of the four entries has the minus.
#
# </details>


# %%
def shift_matrix(k, d_model):
    ### BEGIN SOLUTION
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)  # (D, D)
    for i in range(d_model // 2):
        angle = k / 10_000 ** (2 * i / d_model)
        sine, cosine = 2 * i, 2 * i + 1  # the two places of hand i
        matrix[sine, sine] = matrix[cosine, cosine] = math.cos(angle)
        matrix[sine, cosine] = math.sin(angle)
        matrix[cosine, sine] = -math.sin(angle)
    return matrix
    ### END SOLUTION


# %%
course.check("shift_matrix", shift_matrix)

# %% [markdown]
# ### Try it yourself
#
# **1.** Somebody writes: "Words at even places get sines, words at odd places cosines." What would the table for "I am a Robot" look like then, and what would go wrong?
#
# <details><summary>Answer</summary>
#
# It confuses words with dimensions. Row *I* would be (0, 0), row *am* (cos 1, cos 0.1), and so on: one number a hand, so that the height of the tip is known and the direction is not. No rotation leads from one row to the next. In the
# right table *every* word has sines (in the even dimensions) and cosines (in the odd ones).
#
# </details>
#
# **2.** For $d = 512$ and base 10,000: how many hands are there, which $i$ has the last, and does it take $2\pi \cdot 10{,}000$ tokens for a turn?
#
# <details><summary>Answer</summary>
#
# 256 hands, and the last is $i = 255$, that is $d/2 - 1$. Its speed is $10{,}000^{-510/512}$, so a turn takes $2\pi \cdot 10{,}000^{510/512}$, about 60,600 tokens; $2\pi \cdot 10{,}000$ is about 62,800 and would belong to $i = 256$, which is not
# there. Check it in your copy with the cell that prints the turns.
#
# </details>
#
# **3.** A colleague writes: "Rotary adds $R(t)$ to the word vectors." Two things are wrong. Which? And why do the values stay as they are?
#
# <details><summary>Answer</summary>
#
# Nothing is added: vectors are multiplied, and not the word vectors but the queries and keys made from them, in every layer anew. The rotation is there to make scores depend on distance. Values are not compared with anything; were they turned too, what
# a word contributes would depend on its place, and nothing would turn it back.
#
# </details>
#
# **4.** In `draw`, let the model be asked for the word *after* next, two behind *mais*. Which rotation does a head need now? Will one trained with sinusoids find it as quickly?
#
# <details><summary>Hint</summary>
#
# Let `places` run from 0 to `n_words - 3`, and answer with `token_ids[rows, places + 2]`. The rotation is $R(+2)$. Run it with a few values of `n_steps`, and with several seeds, before you say "as quickly".
#
# </details>
#
# ## Summary
#
# - Attention without positions is permutation-equivariant: shuffle the words, and the same vectors come out, shuffled. Two reviews that differ in order only are one to it.
# - A raw index is wiped off by the norm or drowns the words; a share of the length means something else in every text.
# - $PE(pos, 2i) = \sin(pos / \text{base}^{2i/d})$ and $PE(pos, 2i+1) = \cos(\ldots)$ with $i = 0 \ldots d/2 - 1$: each place a row of clocks, fast hands to the left, slow ones to the right.
# - $PE(pos + k) = R(k) \, PE(pos)$ with one rotation for all places. It needs the pair of sine and cosine; sine alone has no such matrix.
# - Rotary positions turn queries by $R(t)$ and keys by $R(s)$; the score keeps $R(s-t)$, distance and direction. ALiBi lowers the score by a slope times the distance, and knows no direction.
# - Trained short and tested long: learned and sinusoidal positions did not hold in either task. Rotary positions held in the game and for a while in the language; ALiBi failed in the game and held in the language. Which is best depends on what is asked.
#
# *Where this comes from:* sinusoids, Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section 3.5 (and table 3, row E); learned positions, Gehring et al.,
# [arXiv:1705.03122](https://arxiv.org/abs/1705.03122), section 3.1; rotary, Su et al., [arXiv:2104.09864](https://arxiv.org/abs/2104.09864), section 3.2; ALiBi, Press et al., [arXiv:2108.12409](https://arxiv.org/abs/2108.12409),
# section 3; slower hands for longer texts, Chen et al., [arXiv:2306.15595](https://arxiv.org/abs/2306.15595); causal models without positions, Haviv et al., [arXiv:2203.16634](https://arxiv.org/abs/2203.16634).
#
# *What comes next:* the [map of the course](00_start_here.ipynb#The-map). You now know all that goes into a transformer's first layer: tokens, who may look at whom, and order.
