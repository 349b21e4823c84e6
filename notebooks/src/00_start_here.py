# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 00 · Start here
#
# **Does my machine run it, and how does the course work?**
#
# After this lesson you can
#
# 1. say whether your machine runs the course, and what to change if it does not;
# 2. compute one row of attention by hand, and get the same numbers from the package;
# 3. read an attention map, and tell a weight of zero from a word that was masked;
# 4. choose how long the notebooks may compute, and find your way around.
#
# *You need:* Python, and knowing how two matrices are multiplied. Nothing about transformers.
# *It takes:* a quarter of an hour to read; ten seconds to run, with or without a GPU.

# %% [markdown]
# ## Set-up
#
# Every lesson begins with a cell like this one. `tinytx` is the small package behind the course: you can read
# all of it, and from lesson 02 on you will have written its central pieces yourself before you import them. The seed
# makes the random numbers the same for everybody.

# %%
import math

import torch
from IPython.display import Markdown

import tinytx as tx
from tinytx_course import lessons, machine, plots

_ = torch.manual_seed(0)

# %% [markdown]
# ## Your machine
#
# The course is made for an ordinary laptop: two processor cores, no graphics card, no network. Here is what it
# found on the machine where this page was computed. If you are reading a page on the web, that was somebody else's machine; in your
# own copy (below) the same cell describes yours.

# %%
here = machine.this_machine()
print(here)

# %% [markdown]
# *bfloat16* is a way to store numbers in half the space; newer processors compute with it directly, and training is then
# faster. Nothing in the course depends on it. What the course *does* depend on is checked here. An empty list means
# that you are ready; anything else is a sentence that says what to change.

# %%
machine.shortcomings(here)

# %% [markdown]
# ## A first taste: four words look at each other
#
# Take the French sentence *le roman est beau*, "the novel is beautiful". A computer that wants to understand *beau* had better know
# *what* is beautiful: the novel. So the vector that stands for *beau* should take in something of the vector for
# *roman*, and little of the rest.
#
# Below, each word is four numbers. We made them up so that they can be checked on paper: one place each for articles, nouns, verbs and
# praise. An adjective shares the place of the noun it goes with.

# %%
words = ["le", "roman", "est", "beau"]
vectors = torch.tensor(
    [
        [2.0, 0.0, 0.0, 0.0],  # le: an article
        [0.0, 2.0, 0.0, 0.0],  # roman: a noun
        [0.0, 0.0, 2.0, 0.0],  # est: a verb
        [0.0, 2.0, 0.0, 1.0],  # beau: goes with a noun, and praises it
    ]
)
vectors.shape

# %% [markdown]
# ### The tempting way: average everything
#
# The simplest mixture gives each word the same share. It works, in the sense that something comes out. But look at what comes out
# when the words are shuffled, or when we ask for *le* instead of *beau*: always the same four numbers. An average
# cannot tell who goes with whom, since it never looks.

# %%
shuffled = vectors[[2, 0, 3, 1]]
print("in order:", vectors.mean(dim=0).tolist())
print("shuffled:", shuffled.mean(dim=0).tolist())
assert torch.equal(vectors.mean(dim=0), shuffled.mean(dim=0))

# %% [markdown]
# ### By hand: let the word decide where to look
#
# Attention does one thing more: it first asks how well two words fit, and then lets each word count for as much as it
# fits. The fit of *beau* with another word is the sum of the products of their numbers, halved. (Halved, because vectors
# with more numbers would give larger sums; the rule is to divide by the square root of how many numbers there are,
# and $\sqrt{4} = 2$.)

# %%
beau = vectors[3].tolist()
scores = []
for word in vectors.tolist():
    products = [a * b for a, b in zip(beau, word, strict=True)]
    scores.append(sum(products) / math.sqrt(4))
for word, score in zip(words, scores, strict=True):
    print(f"{word:<6}{score:4.1f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Check the line for *roman* on paper: only the second place is filled in both words, $2 \cdot 2 = 4$, and half of it is 2.
#
# Scores become shares by the *softmax*: raise $e$ to each score, so that all are positive, and divide by the
# total, so that they sum to one. A fit that is larger by one counts for $e \approx 2.7$ times as much.

# %%
raised = [math.exp(score) for score in scores]
weights_by_hand = [value / sum(raised) for value in raised]
for word, weight in zip(words, weights_by_hand, strict=True):
    print(f"{word:<6}{weight:5.2f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# *beau* now looks mostly at itself and at *roman*, and hardly at the article and the verb. Nobody told it to: it follows
# from the numbers. When a transformer is trained, it is these numbers that are learned.
#
# ### All words at once
#
# The same for each of the four words is one matrix product and one softmax. With one word's vector in each row of $X$, the weights are
#
# $$\operatorname{softmax}\left(\frac{X X^\top}{\sqrt{4}}\right),$$
#
# where the softmax works along each row. The last row must be what we just computed.

# %%
scores_all = vectors @ vectors.T / math.sqrt(4)  # (4, 4): who looks, at whom
weights_all = scores_all.softmax(dim=-1)
torch.testing.assert_close(weights_all[3], torch.tensor(weights_by_hand))
weights_all.sum(dim=-1)

# %% [markdown]
# ### The package
#
# This is the habit of the whole course: first by hand, then all at once, then the package, and each time an `assert` that they agree.
# `tx.attention_weights` takes two matrices, since a word may *ask* with one vector and be *found* by another. Here
# both are ours.

# %%
torch.testing.assert_close(tx.attention_weights(vectors, vectors), weights_all)
print("by hand, all at once and the package agree")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### Look
#
# Before you look at the picture, say what you expect: which cells of the row *beau* are dark? Which word looks
# almost only at itself, and which at two words?
#
# Each row is one word and where it looks; its four numbers sum to one.

# %%
fig, ax = plots.heatmap(
    weights_all, row_labels=words, col_labels=words, numbers=".2f", low=0, high=1,
    xlabel="looked at", ylabel="who looks", bar_label="weight",
    title="Everybody may look at everybody",
)  # fmt: skip
plots.show(fig, name="00_attention_on_four_words", alt="""
    Attention weights of four words as a four by four heat map. The rows of le and est
    are darkest on themselves; roman and beau share most of their weight with each other.""")

# %% [markdown]
# ### And with a mask
#
# A model that learns to *predict the next word* must not see it. So *le* may look only at itself, *roman* at *le* and itself, and so on:
# a triangle. `tx.causal_mask` is that triangle, with `True` where a word **may** look, the meaning of every mask in the course.
#
# In the picture, grey and hatched means *masked: not allowed*. That is something else than a weight of zero, which would be
# white: allowed, but of no interest.

# %%
mask = tx.causal_mask(len(words))
masked_weights = tx.attention_weights(vectors, vectors, mask)
fig, ax = plots.heatmap(
    masked_weights, allowed=mask, row_labels=words, col_labels=words,
    numbers=".2f", low=0, high=1,
    xlabel="looked at", ylabel="who looks", bar_label="weight",
    title="Nobody may look ahead",
)  # fmt: skip
plots.show(fig, name="00_causal_attention_on_four_words", alt="""
    The same heat map with a causal mask. Everything above the diagonal is grey and
    hatched, because looking ahead is masked; le gives all its weight to itself, and each
    row still sums to one.""")

# %% [markdown]
# ### Break it
#
# Does the mask do what it promises? Exchange the last word, *beau*, for something else, and see which of the
# four results move. With the mask, the first three must not move at all: not a little, but by exactly zero. Without it they do, and
# a model trained that way would have read the answer before the question.

# %%
other = vectors.clone()
other[3] = torch.tensor([1.0, 0.0, 3.0, 0.0])
for name, allowed in {"with the mask": mask, "without it": None}.items():
    before = tx.attention(vectors, vectors, vectors, allowed)
    after = tx.attention(other, other, other, allowed)
    moved = (before - after).abs().amax(dim=-1) > 0
    print(f"{name:<14}", dict(zip(words, moved.tolist(), strict=True)))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### What this does not show
#
# The vectors were made up, and four words are no language. Real models learn their vectors, ask and answer with
# different ones, look through several heads at once, and stack many such layers. That is what the next lessons are for.
#
# ## How the course works
#
# Each lesson asks one question, and answers it in steps you have just seen: the tempting way, by hand, all at once, the package,
# look, break it, what it does not show. Every number on a page was computed there; measured ones are never typed.
#
# The models read a language of our own: reviews of books in simple French, made by a grammar whose every probability
# can be computed. So each curve of a model that learns can be drawn with the best that *any* model could reach, and you can see how
# far there is to go. Real text is one option away.

# %% [markdown]
# ### The map
#
# The lessons build on each other, and each runs alone. The times are for two cores without a GPU.

# %%
Markdown(lessons.lesson_table())

# %% [markdown]
# ### Your own copy
#
# Pages are for reading; a lesson is for changing things. `make lab` (or `tinytx-course lab`) opens **your own copy** of all notebooks in JupyterLab. It
# is made the first time and never overwritten, so break what you like. To begin a lesson again, delete or rename your file and
# run the command once more. `make course` runs everything on your machine and writes pages to read, under `site/`.
#
# ### How long it may take
#
# Lessons that train models adapt to a *budget*, taken from the environment variable `TINYTX_BUDGET`:
#
# | budget | what it is for |
# |---|---|
# | `smoke` | a few steps, to see that everything runs: nothing is learned |
# | `laptop` | the usual one: what two cores do while you watch |
# | `study` | several seeds and longer runs, for the tables |
# | `gpu` | larger models, on one graphics card |
#
# Set it before you start, as in `TINYTX_BUDGET=smoke make course`. A number is taken as seconds for each training run. In this
# notebook nothing is trained, so that any budget gives the same page.

# %% [markdown]
# ### Try it yourself
#
# In your own copy, change one thing, say what you expect, then run the cell. Two to begin with:
#
# **1.** Give *est* the vector `[0, 2, 2, 0]`. Which rows of the first map change, and which stay as they are?
#
# <details><summary>What happens</summary>
#
# The rows of *roman* and *beau* now give *est* a share, because it fits them; the row of *est* spreads out too. Only the row of *le* stays: it
# fits none of the others, before as after, and its shares are what they were.
#
# </details>
#
# **2.** Multiply all vectors by 3. Does the map become sharper or flatter? Why does attention divide by $\sqrt{4}$?
#
# <details><summary>What happens</summary>
#
# All scores become nine times as large, and the softmax turns large differences into nearly all or nothing: the map gets sharper. Longer
# vectors give larger scores in the same way, and dividing by the square root of their length holds against it. Lesson 02 measures this.
#
# </details>
#
# ## Summary
#
# - Your machine runs the course when the list above is empty.
# - Attention compares one word with all others, turns the scores into shares, and mixes by them.
# - In every picture here grey and hatched means *not allowed*, white means *weight zero*.
# - `make lab` opens your copy, `TINYTX_BUDGET` sets how long it may compute, the map says what comes next.
#
# *Where this comes from:* Vaswani et al., *Attention Is All You Need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section 3.2.1, equation 1.
