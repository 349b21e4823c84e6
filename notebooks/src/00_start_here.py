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
# **Does my machine run it, how does the course work, where does it lead?**
#
# After this lesson you can
#
# 1. say whether your machine runs the course;
# 2. compute one row of attention by hand, and have a checker confirm it;
# 3. read an attention map;
# 4. find your way around, and work in a copy of your own.
#
# *You need:* Python, and knowing how two matrices are multiplied. Nothing about transformers.
# *It takes:* half an hour.

# %% [markdown]
# ## Set-up
#
# `tinytx` is the small package behind the course. The **seed** makes the random numbers repeatable on your machine.

# %%
import math

import torch

import tinytx as tx
import tinytx_course as course
from tinytx_course import machine, plots

_ = torch.manual_seed(0)

# %% [markdown]
# Below is a transformer with one block; larger ones stack many. This lesson opens the box in the middle, **attention**.

# %%
plots.diagram("where-attention-sits")

# %% [markdown]
# ## Your machine
#
# Two processor cores are enough, without a graphics card or a network. What is missing is named here:

# %%
print(machine.shortcomings(machine.this_machine()) or "nothing: you are ready")

# %% [markdown]
# ### Your own copy
#
# `make lab` (or `tinytx-course lab`) opens **your own copy** of all notebooks in JupyterLab. It is never overwritten. To begin a lesson again, delete its file there and run the command once more.
#
# ## Further: where it leads, a trailer
#
# A **language model** reads the beginning of a text and predicts how it continues. Lesson 07 builds a small one, lesson 08 trains it on reviews of books in simple French. Here two such models continue _Le roman_, "the novel": one still random, one trained.
#
# The language of these reviews is our own, made by a grammar whose every probability can be computed. So we can ask whether a text belongs to it, here for fifty reviews by each model. (One that is cut off after 100 tokens does not count.)

# %%
import textwrap

from tinytx.generate import generate_many
from tinytx_course.engine import shipped_model

shipped = shipped_model()
untrained = tx.LanguageModel(shipped.model.config)
print(f"{tx.count_parameters(shipped.model):,} numbers to be learned")
for name, model in {"before": untrained, "after": shipped.model}.items():
    text = tx.generate(model, shipped.tokenizer, "Le roman", tx.Sampling(seed=0))
    print(textwrap.fill(f"{name} training: {text}", 84))

world = tx.World()
allowed, sampling = {}, tx.Sampling(max_new_tokens=100)
for name, model in {"before": untrained, "after": shipped.model}.items():
    reviews = generate_many(model, shipped.tokenizer, "Le roman", sampling, n=50)
    words = [world.split(str(review)) for review in reviews]
    belongs = [world.log_prob(each) > -math.inf for each in words]
    allowed[name] = sum(belongs)
    print(f"{name} training: {allowed[name]} of 50 reviews belong to the language")
assert allowed["after"] > allowed["before"]

# %% [markdown]
# ## A first taste: four words attend to each other
#
# In _le roman est beau_, "the novel is beautiful", *what* is beautiful? By **attention** each word gets a new vector, here from all four words. That of _beau_ should keep what matches, and little of _le_ and _est_. Each word begins as four made-up numbers: how much it has to do with an article, a noun, a verb and praise.

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

# %% [markdown]
# It is tempting to give each word the average of all vectors. But that is the same for every word: it never compares two.
#
# ### By hand: score, then share
#
# The word that attends, here _beau_, gives the **query**; each word that it may attend to gives a **key**. Here both are the vectors themselves. The **score** of a query with a key is their **dot product**, the sum of the products of their entries, divided by $\sqrt{4}$, the root of the number of entries (lesson 02 says why). For _roman_, $2 \cdot 2 = 4$, and half of it is 2.
#
# The **softmax** turns scores into weights that sum to one: take $e$ to the power of each score, then divide by their sum. A score of 0 still gets a share, as $e^0 = 1$.

# %% tags=["nbval-check-output"]
beau = vectors[3].tolist()
scores = []
for word in vectors.tolist():
    products = [a * b for a, b in zip(beau, word, strict=True)]
    scores.append(sum(products) / math.sqrt(4))
raised = [math.exp(score) for score in scores]
weights_by_hand = [value / sum(raised) for value in raised]
for word, score, weight in zip(words, scores, weights_by_hand, strict=True):
    print(f"{word:<6}{score:4.1f}{weight:6.2f}")
new = torch.tensor(weights_by_hand) @ vectors
print("the new vector of beau:", *(f"{number:.2f}" for number in new))

# %% [markdown]
# _beau_ attends mostly to itself and to _roman_, **because their vectors match**. The **result** of a word is the weighted sum of all vectors. In a transformer the vectors are learned.
#
# ### All words at once, and the package
#
# With one word in each row of $X$, the weights are $\operatorname{softmax}(X X^\top / \sqrt{4})$, row by row.

# %% tags=["nbval-check-output"]
scores_all = vectors @ vectors.T / math.sqrt(4)  # (4, 4): a row for each query
weights_all = scores_all.softmax(dim=-1)
torch.testing.assert_close(weights_all[3], torch.tensor(weights_by_hand))
torch.testing.assert_close(tx.attention_weights(vectors, vectors), weights_all)
print("all three agree")

# %% [markdown]
# ### Look
#
# Say what you expect; your answer stays on your machine. **Predict 00.1.**

# %%
course.predict(
    "00.1",
    "How many of the four words give more than half of their weight to themselves?",
    ["one", "two", "three", "all four"],
)

# %% tags=["folded"]
fig, ax = plots.heatmap(
    weights_all, row_labels=words, col_labels=words, numbers=".2f", low=0, high=1,
    xlabel="attended to", ylabel="attending",
)
plots.show(fig, name="00_attention_on_four_words")
selfish = [word for i, word in enumerate(words) if weights_all[i, i] > 0.5]
assert selfish == ["le", "est", "beau"]
own = weights_all.diag()
found = f"{', '.join(selfish)}. A word gives itself {own.min():.2f} to {own.max():.2f}."
course.resolve("00.1", "three", found)

# %% [markdown]
# Each row of this **attention map** is one word that attends. _roman_ matches _beau_ exactly as well as itself, so it splits its weight between the two. In other maps a cell is grey and hatched: **masked**, not allowed, which is not the same as a weight near zero.
#
# ### Follow one word
#
# Choose a query, then step from the products to the mixture. The *values*, which are mixed, are the vectors again.

# %%
course.widgets.one_query(vectors, vectors, vectors, tokens=words, query=3)

# %% [markdown]
# ## Further: with a mask
#
# A model that learns to *predict the next word* must not see it. So _le_ may attend only to itself, _roman_ to _le_ and itself, and so on. `tx.causal_mask` is that triangle, with `True` where a word **may** attend.

# %% tags=["folded"]
mask = tx.causal_mask(len(words))
masked_weights = tx.attention_weights(vectors, vectors, mask)
fig, ax = plots.heatmap(
    masked_weights, allowed=mask, row_labels=words, col_labels=words, numbers=".2f",
    low=0, high=1, xlabel="attended to", ylabel="attending", bar_label="weight",
    title="With a causal mask",
)
plots.show(fig, name="00_causal_attention_on_four_words")

# %% [markdown]
# We exchange the last word. **Predict 00.2.** "Changes" means: by any amount, however small.

# %%
course.predict(
    "00.2",
    "The last word is exchanged. With the mask, which of the four results change?",
    ["none", "only the last one", "only the first three", "all four"],
)

# %% tags=["nbval-check-output"]
other = vectors.clone()
other[3] = torch.tensor([1.0, 0.0, 3.0, 0.0])
changed = {}
for name, allowed in {"with the mask": mask, "without it": None}.items():
    before = tx.attention(vectors, vectors, vectors, allowed)
    after = tx.attention(other, other, other, allowed)
    changed[name] = (before != after).any(dim=-1).tolist()
    print(f"{name:<14}", dict(zip(words, changed[name], strict=True)))
assert changed["with the mask"] == [False, False, False, True]
n_changed = sum(changed["without it"])
found = f"With the mask 1 of 4 results changes, without it {n_changed}."
course.resolve("00.2", "only the last one", found)

# %% [markdown]
# Without the mask each word would see the next one, which it is to predict. Lesson 02 is about masks.
#
# ## Questions

# %%
course.quiz("start_here")

# %% [markdown]
# ## Exercises
#
# Hint and solution are folded. Try a wrong answer too, such as one without the square root: the checker names the mistake.
#
# [exercise: attention_row]


# %%
def attention_row(query, keys):
    ...


# %%
course.check("attention_row", attention_row)

# %% [markdown]
# ### Try it yourself
#
# **Attention by distance.** Let the score of two words be $-|x - y|$, where $x$ and $y$ are their positions, 0 to 3. Which four weights does _le_ give? Compute all four rows in one line of code.
#
# <details><summary>Answer</summary>
#
# $e^0, e^{-1}, e^{-2}, e^{-3}$, divided by their sum: 0.64, 0.24, 0.09 and 0.03. With `x = torch.arange(4.0)` it is `(-(x[:, None] - x).abs()).softmax(dim=-1)`.
#
# </details>
#
# ## Take-home: attention in three lines
#
# In general queries and keys differ, and a third matrix, the **values**, holds what is mixed.


# %%
def attention(queries, keys, values):
    scores = queries @ keys.T / math.sqrt(queries.shape[-1])  # (T, S)
    return scores.softmax(dim=-1) @ values  # softmax along each row


expected = tx.attention(vectors, vectors, vectors)
torch.testing.assert_close(attention(vectors, vectors, vectors), expected)
print("it equals the package")

# %% [markdown]
# ## How the course works
#
# From lesson 01 on, the core takes 40 to 47 minutes; parts marked *Further* can be left out. Measured numbers were computed on the page, or read from a stored experiment that is named. Later lessons learn from book reviews in simple French, which a grammar of ours makes up. So we know the lowest loss that a model can expect: the **entropy bound**.
#
# - **The machine:** [01 tokens](01_tokens.ipynb), [02 attention and masks](02_attention_and_masks.ipynb), [03 positions](03_positions.ipynb), [04 many heads](04_many_heads.ipynb), [05 the block](05_the_block.ipynb), [06 counting parameters](06_counting_parameters.ipynb), [07 your own GPT](07_your_own_gpt.ipynb).
# - **What it learns:** [08 pretraining](08_pretraining.ipynb), [09 transfer](09_transfer.ipynb), [10 masked or causal](10_masked_or_causal.ipynb), [11 translation](11_translation.ipynb).
# - **What it costs, and what came later:** [12 the price of attention](12_the_price_of_attention.ipynb), [13 faster and larger](13_faster_and_larger.ipynb), [14 since 2017](14_since_2017.ipynb), [15 real text](15_real_text.ipynb), [16 real models](16_real_models.ipynb), [17 looking inside](17_looking_inside.ipynb), [18 bug museum](18_bug_museum.ipynb).
#
# `course.status()` shows where you are, `course.reset("attention_row")` forgets one exercise, and `course.glossary()` explains each bold term.
#
# ## Summary
#
# 1. Attention scores one word against all, turns the scores into weights by a softmax, and mixes the values by these weights.
# 2. In an attention map each row is a word that attends.
#
# *Where this comes from:* Vaswani et al., *Attention Is All You Need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section 3.2.1, equation 1. The course grew out of two university labs, one on transfer learning with a small transformer for French book reviews, one on translation from English to French. Thanks to those who wrote them, and to those who worked through them.
#
# *What comes next:* lesson 01 asks what the words of a model are: [tokens](01_tokens.ipynb).
