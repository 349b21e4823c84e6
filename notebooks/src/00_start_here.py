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
# **Does my machine run it, how does the course work, where will it end?**
#
# After this lesson you can
#
# 1. say whether your machine runs the course, and what to change if it does not;
# 2. compute one row of attention by hand, and have a checker confirm it;
# 3. read an attention map, and tell a small weight from a word that was masked;
# 4. choose how long the notebooks may compute, and find your way around.
#
# *You need:* Python, and knowing how two matrices are multiplied. Nothing about transformers.
# *It takes:* twenty-five minutes to read; fifteen seconds to run, with or without a GPU.

# %% [markdown]
# ## Set-up
#
# Every lesson begins with a cell like this one. `tinytx` is the small package behind the course, and you can read all of it. In each lesson you first see a
# part written out in a few lines, and later write it yourself as an exercise. The seed makes the random numbers the same for everybody.

# %%
import math
import textwrap

import torch
from IPython.display import Markdown

import tinytx as tx
import tinytx_course as course
from tinytx.generate import generate_many
from tinytx_course import lessons, machine, plots
from tinytx_course.engine import shipped_model

_ = torch.manual_seed(0)

# %% [markdown]
# ## Your machine
#
# The course is made for an ordinary laptop: two processor cores, no graphics card, no network. The next cell describes the machine on which this page was computed. In your
# own copy (below) the same cell describes yours.

# %%
here = machine.this_machine()
print(here)

# %% [markdown]
# *bfloat16* is a way to store numbers in half the space. Newer processors compute with it directly, which makes training faster, but the course does not depend on it. What the
# course does depend on is checked here. An empty list means that you are ready. Anything else is a sentence that says what to change.

# %%
machine.shortcomings(here)

# %% [markdown]
# ## Where it will end: a trailer
#
# A **language model** reads the beginning of a text and predicts how it continues. The course comes with a small one, which has read reviews of books in simple French. This is a *trailer*:
# nothing in it is explained yet. Lesson 07 builds such a model line by line, and lesson 08 trains it.

# %%
shipped = shipped_model()
untrained = tx.LanguageModel(shipped.model.config)
print(
    f"{tx.count_parameters(shipped.model):,} learned numbers, eight bits each: a "
    "file of "
    f"{shipped.facts['bytes'] / 1e6:.2f} MB"
)

# %% [markdown]
# Now two models of the same shape write: one with random numbers, as before training, and the one that comes with the course. Each begins with *Le roman*, "the novel".

# %%
for name, model in {"before": untrained, "after": shipped.model}.items():
    print(f"{name} training:")
    for seed in range(3):
        sampling = tx.Sampling(seed=seed)
        text = str(tx.generate(model, shipped.tokenizer, "Le roman", sampling))
        print(textwrap.fill(text, 84, initial_indent="  - ", subsequent_indent=" " * 4))

# %% [markdown]
# Training turned noise into sentences. How good are they? The language of these reviews is one of our own, made by a grammar, so for each text we can ask whether the language contains it. No
# dictionary and no taste is needed. The last cell of the trailer asks this of fifty reviews by each model.

# %%
world = tx.World()
allowed, sampling = {}, tx.Sampling(max_new_tokens=100)
for name, model in {"before": untrained, "after": shipped.model}.items():
    reviews = generate_many(model, shipped.tokenizer, "Le roman", sampling, n=50)
    words = [world.split(str(review)) for review in reviews]
    allowed[name] = sum(world.log_prob(each) > -math.inf for each in words)
    print(f"{name} training: {allowed[name]} of 50 reviews belong to the language")
assert allowed["after"] > allowed["before"]

# %% [markdown]
# ## A first taste: four words attend to each other
#
# The central part of such a model is **attention**: each word collects information from the others. It is one part among a few others, which the diagram shows. The whole
# course is about these boxes. This lesson opens the one in the middle, with four words and numbers that you can check on paper.

# %%
plots.diagram("where-attention-sits")

# %% [markdown]
# Take the French sentence *le roman est beau*, "the novel is beautiful". To understand *beau* you need to know *what* is beautiful: the novel. So the vector of *beau* should take
# in something of the vector of *roman*, and little of the rest.
#
# Below, each word is four numbers, which we made up. They stand for: article, noun, verb, praise. *beau* has a number in the entry for nouns too, because it describes one.

# %%
words = ["le", "roman", "est", "beau"]
vectors = torch.tensor(
    [
        [2.0, 0.0, 0.0, 0.0],  # le: an article
        [0.0, 2.0, 0.0, 0.0],  # roman: a noun
        [0.0, 0.0, 2.0, 0.0],  # est: a verb
        [0.0, 2.0, 0.0, 1.0],  # beau: describes a noun, and praises it
    ]
)
vectors.shape

# %% [markdown]
# ### The tempting way: average everything
#
# The simplest mixture gives each word the same share. Something comes out. But it is the same four numbers for *le* as for *beau*: an average cannot show who belongs to whom, since it never
# compares two words. And it does not change when the words are shuffled. (Attention alone is blind to order, too. Lesson 03 deals with that.)

# %%
shuffled = vectors[[2, 0, 3, 1]]
print("in order:", vectors.mean(dim=0).tolist())
print("shuffled:", shuffled.mean(dim=0).tolist())
assert torch.equal(vectors.mean(dim=0), shuffled.mean(dim=0))

# %% [markdown]
# ### By hand: score, then share
#
# Attention does one thing more: it first scores how well two words match, then gives each word a weight that grows with its score. The **score** of *beau* with another word is their
# **dot product**, the sum of the products of their entries, divided by $\sqrt{4} = 2$.
#
# Why divide? Each further entry adds a product to the sum. So vectors with more entries give larger scores, by about the square root of their number. Dividing by it
# makes scores comparable. Lesson 02 measures this.

# %% tags=["nbval-check-output"]
beau = vectors[3].tolist()
scores = []
for word in vectors.tolist():
    products = [a * b for a, b in zip(beau, word, strict=True)]
    scores.append(sum(products) / math.sqrt(4))
for word, score in zip(words, scores, strict=True):
    print(f"{word:<6}{score:4.1f}")

# %% [markdown]
# Check the line for *roman* on paper: only the second entry is filled in both words, $2 \cdot 2 = 4$, and half of it is 2.
#
# The **softmax** turns scores into weights: raise $e$ to each score, so that all are positive, then divide by the total, so that they sum to one. A score that is larger by one
# counts $e \approx 2.7$ times as much.

# %% tags=["nbval-check-output"]
raised = [math.exp(score) for score in scores]
weights_by_hand = [value / sum(raised) for value in raised]
for word, weight in zip(words, weights_by_hand, strict=True):
    print(f"{word:<6}{weight:5.2f}")
assert min(weights_by_hand[1], weights_by_hand[3]) > max(
    weights_by_hand[0], weights_by_hand[2]
)

# %% [markdown]
# *beau* now attends mostly to itself and to *roman*, and hardly to the article and the verb. We put the match between *beau* and *roman* into the numbers by hand. When a transformer is
# trained, such numbers are learned.
#
# ### All words at once
#
# The same for each of the four words is one matrix product and one softmax. With the vector of one word in each row of $X$, the weights are
#
# $$\operatorname{softmax}\left(\frac{X X^\top}{\sqrt{4}}\right),$$
#
# where the softmax works along each row. The last row must be what we just computed, and each row must sum to one.

# %%
# (4, 4): one row for each word that attends
scores_all = vectors @ vectors.T / math.sqrt(4)
weights_all = scores_all.softmax(dim=-1)
torch.testing.assert_close(weights_all[3], torch.tensor(weights_by_hand))
weights_all.sum(dim=-1)

# %% [markdown]
# ### The package
#
# This is the habit of the whole course: first by hand, then all at once, then the package, and each time an `assert` that they agree. `tx.attention_weights` takes two matrices because
# a real model makes a *query* vector and a *key* vector for each word. Here we use the same vectors for both.

# %% tags=["nbval-check-output"]
torch.testing.assert_close(tx.attention_weights(vectors, vectors), weights_all)
print("by hand, all at once and the package agree")

# %% [markdown]
# ### Look
#
# Another habit: before a picture or a number appears, you say what you expect. Your answer is never sent anywhere. It is stored in a file of your own, or in your browser, and
# compared with what comes out.
#
# **Predict 00.1.** You know the row of *beau*. Compute in your head what the other rows will be like.

# %%
course.predict(
    "00.1",
    "How many of the four words give more than half of their weight to themselves?",
    ["one", "two", "three", "all four"],
)

# %% [markdown]
# Each row of this **attention map** is one word that attends, each column one that is attended to. The four numbers of a row sum to one. Darker means more weight.

# %% tags=["folded"]
fig, ax = plots.heatmap(
    weights_all,
    row_labels=words,
    col_labels=words,
    numbers=".2f",
    low=0,
    high=1,
    xlabel="attended to",
    ylabel="attending",
    bar_label="weight",
    title="Attention on four words",
)
plots.show(fig, name="00_attention_on_four_words")
torch.testing.assert_close(weights_all[1, 1], weights_all[1, 3])  # roman: itself, beau
selfish = [word for i, word in enumerate(words) if weights_all[i, i] > 0.5]
course.resolve(
    "00.1",
    {1: "one", 2: "two", 3: "three", 4: "all four"}[len(selfish)],
    f"{', '.join(selfish)}. A word gives itself between "
    f"{weights_all.diag().min():.2f} and "
    f"{weights_all.diag().max():.2f}.",
)

# %% [markdown]
# Why do *le* and *est* attend so much to themselves? They match nothing else. *roman* matches *beau* exactly as well as itself, so it splits its weight between the two. Follow
# one word through all steps here: choose a query, then step from the products to the mixture. (On a page without a kernel it works too.)

# %%
course.widgets.one_query(vectors, vectors, vectors, tokens=words, query=3)

# %% [markdown]
# ### And with a mask
#
# A model that learns to *predict the next word* must not see it. So *le* may attend only to itself, *roman* to *le* and itself, and so on: a triangle. `tx.causal_mask` is that
# triangle, with `True` where a word **may** attend, the meaning of every mask in the course.
#
# In the picture, grey and hatched means **masked**: not allowed. A masked cell is not the same as a small weight. White or nearly white means: allowed, with a weight near zero.

# %% tags=["folded"]
mask = tx.causal_mask(len(words))
masked_weights = tx.attention_weights(vectors, vectors, mask)
fig, ax = plots.heatmap(
    masked_weights,
    allowed=mask,
    row_labels=words,
    col_labels=words,
    numbers=".2f",
    low=0,
    high=1,
    xlabel="attended to",
    ylabel="attending",
    bar_label="weight",
    title="With a causal mask",
)
plots.show(fig, name="00_causal_attention_on_four_words")

# %% [markdown]
# ### Break it
#
# Does the mask do what it promises? The **result** of a word is the sum of all vectors, weighted by its row. We compute the four results with *beau*, then with another last word, once with
# the mask and once without it.
#
# **Predict 00.2.** "Changes" means: by any amount, however small.

# %%
course.predict(
    "00.2",
    "The last word is exchanged. Which of the four results change when the causal mask "
    "is used?",
    ["none", "only the last one", "only the first three", "all four"],
)

# %%
other = vectors.clone()
other[3] = torch.tensor([1.0, 0.0, 3.0, 0.0])
changed = {}
for name, allowed in {"with the mask": mask, "without it": None}.items():
    before = tx.attention(vectors, vectors, vectors, allowed)
    after = tx.attention(other, other, other, allowed)
    changed[name] = (before - after).abs().amax(dim=-1) > 0
    print(f"{name:<14}", dict(zip(words, changed[name].tolist(), strict=True)))
masked, free = (changed[name].tolist() for name in ("with the mask", "without it"))
course.resolve(
    "00.2",
    {
        (0, 0): "none",
        (0, 1): "only the last one",
        (3, 0): "only the first three",
        (3, 1): "all four",
    }[sum(masked[:3]), sum(masked[3:])],
    f"With the mask {sum(masked)} of 4 results change, without it {sum(free)}.",
)

# %% [markdown]
# Without the mask the first words change with the last one. A model trained that way would read the answer before the question.
#
# ### What this does not show
#
# The vectors were made up, and four words are no language. Real models learn their vectors, use different ones for queries and keys, attend with several heads at once, and
# stack many such layers. That is what the next lessons are for.
#
# ## Take-home: attention in six lines
#
# Each lesson ends with its idea on one screen, short enough to type from memory. Here it is for this one. The third matrix, the **values**, holds what is mixed: each word's result is the
# weighted sum of the values.


# %%
def attention(queries, keys, values, mask=None):
    scores = queries @ keys.T / math.sqrt(queries.shape[-1])  # (T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1)  # each row sums to 1
    return weights @ values


expected = tx.attention(vectors, vectors, vectors, mask)
torch.testing.assert_close(attention(vectors, vectors, vectors, mask), expected)

# %% [markdown]
# ## How the course works
#
# Each lesson asks one question, and answers it in the steps you have just seen: the tempting way, by hand, all at once, the package, look, break it, what it does not show, take-home,
# exercises. Measured numbers on a page were computed there, or read from a stored experiment that is named.
#
# The models read a language of our own: reviews of books in simple French, made by a grammar whose every probability can be computed. So each curve of a model that learns can be drawn
# with the **entropy bound**, the lowest loss that any model can be *expected* to reach on fresh text. You can see how far there is to go. Real text comes in lesson 15.
#
# The course grew out of two university labs, one on transfer learning with a small transformer for French book reviews, one on the transformer for translation from English to French.
# Thanks to those who wrote them, and to those who worked through them: their questions are answered here, by running code.

# %% [markdown]
# ### The lessons
#
# They build on each other, and each runs alone. The times are aims for two cores without a GPU.

# %%
Markdown(lessons.lesson_table())

# %% [markdown]
# ### Words and letters
#
# The course uses the field's own words, and one letter for each size: $B$ texts in a batch, $T$ tokens in a text, $D$ numbers in a vector. Each term is bold where it is explained and
# means the same from then on. Here are the most important ones, with other names you will meet in papers and libraries. Come back to this table when you need it.

# %%
course.glossary()

# %% [markdown]
# ### Your own copy
#
# Pages are for reading; a lesson is for changing things. `make lab` (or `tinytx-course lab`) opens **your own copy** of all notebooks in JupyterLab. It is made the first time and never
# overwritten, so break what you like. To begin a lesson again, delete or rename your file and run the command once more. `make course` runs everything on your machine and writes
# pages to read, under `site/`.
#
# Your copy remembers exercises, questions and predictions, on your disk only. The next cell shows where you are, and what to repeat. `course.reset("attention_row")` forgets one exercise.

# %%
course.status()

# %% [markdown]
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
# Set it before you start, as in `TINYTX_BUDGET=smoke make course`. A number is taken as seconds for each training run. This lesson trains nothing, so any budget gives the
# same page.
#
# ## Questions
#
# A few questions to check what you remember. Pick an answer and read the reply: every wrong answer is explained.

# %%
course.quiz("start_here")

# %% [markdown]
# ## Exercises
#
# Exercises look like this everywhere: a task, a cell with `...` to fill in, and a cell that checks it. Hint and solution are folded. A function must leave its arguments as they are. Try a wrong answer too, such as one without the
# square root: the checker names the mistake, on the smallest input that shows it.
#
# [exercise: attention_row]


# %%
def attention_row(query, keys):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("attention_row", attention_row)

# %% [markdown]
# ### Try it yourself
#
# In your own copy, change one thing, say what you expect, then run the cell. Two to begin with:
#
# **1.** Give *est* the vector `[0, 2, 2, 0]`. Which rows of the first map change, and which do not?
#
# <details><summary>What happens</summary>
#
# The rows of *roman* and *beau* now give *est* a much larger share, because it matches them. The row of *est* changes too. Its own weight rises from 0.71 to 0.78, because its vector is
# longer now, and its weight on *le* falls to 0.01. Only the row of *le* does not change: it matches none of the others, before as after.
#
# </details>
#
# **2.** Multiply all vectors by 3. Does the map become sharper or flatter?
#
# <details><summary>What happens</summary>
#
# All scores become nine times as large, and the softmax turns large differences into nearly all or nothing: the map gets sharper. Vectors with more *entries* also give larger scores;
# dividing by the square root of the number of entries compensates for that, but not for scaling by 3.
#
# </details>
#
# ## Summary
#
# 1. Your machine runs the course when the list above is empty.
# 2. Attention scores one word against all, turns the scores into weights by a softmax, and mixes the values by these weights.
# 3. In an attention map grey and hatched means *not allowed*, white means *allowed, with a weight near zero*. A page says so where it draws it otherwise.
# 4. `make lab` opens your copy, `TINYTX_BUDGET` sets how long it may compute, the table says what comes next.
#
# *Where this comes from:* Vaswani et al., *Attention Is All You Need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section 3.2.1, equation 1.
#
# *What comes next:* we gave each word a vector. Lesson 01 asks what the words of a model are in the first place: [tokens](01_tokens.ipynb).
