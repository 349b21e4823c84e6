# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 06 · Counting parameters
#
# **How many numbers are learned?**
#
# After this lesson you can
#
# 1. count the parameters of a transformer on paper, term by term, and check the count against the model itself;
# 2. say what the number of heads, the mask and the length of the text contribute;
# 3. find from a wrong number which mistake is behind it;
# 4. say which part of a model dominates, and at what width that changes;
# 5. count a published model from its configuration alone, and compare with what its paper says.
#
# *You need:* heads, as in [lesson 04](04_many_heads.ipynb), and the block, as in [lesson 05](05_the_block.ipynb).
# *It takes:* an hour to read and do, pencil in hand; ten seconds to run, with or without a GPU.

# %% [markdown]
# ## Set-up
#
# A **parameter** is a number that training may change. Nothing is trained here: a count depends only on the shape of a model. The letters are those of the whole course: $V$ tokens in the vocabulary, width $D$ of the model, width $F$ inside the feed-forward network, $L$ blocks (also called layers), $C$ classes.

# %%
import itertools
import textwrap

import torch
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_course.labs import lesson_06
from tinytx_course.labs.lesson_06 import PUBLISHED

# %% [markdown]
# Two questions from earlier lessons first.

# %%
course.recall("06")

# %% [markdown]
# ## Why count?
#
# The number of parameters says how much memory the weights take, and gives a first idea of how long training lasts. It is what people mean by the size of a model. It is also a good check of understanding: a matrix that you forgot shows up in the total.
#
# Our example is a small language model with four layers and two heads. First the answer, straight from the model: we build it and add up the sizes of everything that can be learned.

# %%
config = tx.PRESETS["seed-lab"]
model = tx.LanguageModel(config)
n_params = sum(parameter.numel() for parameter in model.parameters())
print(f"{n_params:,} parameters")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### The tempting way
#
# A transformer is attention, attention is heads, and each head works with matrices of $D \times D$ numbers. So a layer must learn $\text{heads} \cdot D^2$. Add the embedding, one vector for each token, and as much again for the output, and you are done. It sounds sensible. Compare the result.

# %%
V, D, F, n_layers, n_heads = 100, 200, 200, 4, 2
tempting = V * D + n_layers * n_heads * D**2 + V * D
print(f"{tempting:,} claimed: {tempting / n_params:.0%} of the real number")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Most of the model is missing, so this is no slip of the pen: whole parts were left out. Before the end of the lesson a function will say from that one number which.
#
# ## By hand
#
# ### A linear layer
#
# Nearly everything in a transformer is a **linear layer**: each output is a weighted sum of all inputs, plus a constant of its own, the **bias**. With 3 inputs and 5 outputs, draw the arrows and count them one by one: an arrow for each pair, and a bias for each output.

# %%
n_arrows = n_biases = 0
for _output in range(5):
    n_biases += 1
    for _input in range(3):
        n_arrows += 1
print(n_arrows, "weights and", n_biases, "biases")


def linear(a, b):
    return a * b + b


assert linear(3, 5) == n_arrows + n_biases == tx.count_parameters(nn.Linear(3, 5))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# So a linear layer from $a$ to $b$ numbers learns $a \cdot b + b$. The bias belongs to the *outputs*. It is small compared with the weights, which is why it is forgotten so often.
#
# ### A norm
#
# **Layer normalisation** brings the $D$ numbers of a vector to mean 0 and variance 1. Nothing in that is learned. But then each number is multiplied by a *scale* and moved by a *shift* of its own, and those are learned: $2 D$ in all.
#
# ### One layer
#
# Attention makes queries, keys and values from each vector, and an output projection puts the results of all heads together: **four** linear layers from $D$ to $D$. The feed-forward network widens each vector to $F$ numbers and brings it back to $D$: **two** linear layers. Each of these two sublayers has its norm: **two** norms. Do the sums on paper with $D = F = 200$ before you read on.

# %%
def norm(width):
    return 2 * width


assert norm(D) == tx.count_parameters(nn.LayerNorm(D))
attention = 4 * linear(D, D)
feed_forward = linear(D, F) + linear(F, D)
norms = 2 * norm(D)
layer = attention + feed_forward + norms
print(f"{attention:,} + {feed_forward:,} + {norms:,} = {layer:,} in one layer")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### The whole model
#
# Below the layers is the **embedding**, one vector of $D$ numbers for each of $V$ tokens. (It is a lookup table, not a linear layer, so it has no bias.) Above them is the **output layer**: for a language model a linear layer from $D$ to $V$, a score for each token; for a classifier one from $D$ to $C$, here $C = 2$. In code it is called `head` (`lm_head`, `class_head`); it has nothing to do with the heads of attention.

# %%
embedding = V * D
backbone = embedding + n_layers * layer
language_model, classifier = backbone + linear(D, V), backbone + linear(D, 2)
print(f"language model {language_model:,}, classifier {classifier:,}")
assert language_model == n_params
assert classifier == tx.count_parameters(tx.Classifier(config))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Both agree with the models, to the last number. But equal totals may hide two errors that cancel. So look at every matrix: `named_parameters` lists each tensor that can be learned. Here are their shapes, of the first layer only; the others repeat it. Find each of your terms. Which tensor holds the positions?

# %%
listed = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
for name, shape in listed.items():
    if "blocks" not in name or "blocks.0." in name:
        print(f"{name:<35}{shape!s:<12}{model.get_parameter(name).numel():>8,}")
in_first = [model.get_parameter(name).numel() for name in listed if "blocks.0." in name]
assert sum(in_first) == layer
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# None does. Positions are sines and cosines here, computed and not learned: they count zero. A linear layer stores its weight as (outputs, inputs), and its bias has one number for each output.
#
# ## One formula for all sizes
#
# Written out with letters, the count of a language model is
#
# $$V D \;+\; L\,(4 D^2 + 4 D \;+\; 2 D F + F + D \;+\; 4 D) \;+\; D V + V$$
#
# with $L$ layers. One agreement can be luck. So we try many shapes, odd ones too, and ask for equality each time.

# %%
def count_by_formula(V, D, F, L):
    return V * D + L * (4 * D**2 + 4 * D + 2 * D * F + F + D + 4 * D) + D * V + V


n_shapes = 0
for v, d, f, depth in itertools.product([2, 11], [6, 10], [1, 5, 24], [1, 3]):
    shape = config.replace(vocab_size=v, d_model=d, d_ff=f, n_layers=depth)
    counted = tx.count_parameters(tx.LanguageModel(shape))
    assert counted == count_by_formula(v, d, f, depth)
    n_shapes += 1
print(n_shapes, "shapes, no difference")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## The package
#
# `tx.parameter_table` writes such a count out for any configuration: each term with its formula, the numbers put in, and its value. It builds no model, so it is instant even for a large one. Find the terms you have just worked out.
#
# PyTorch has an encoder of its own. It stores the projections for queries, keys and values in a single matrix of $3 D$ rows, so it looks different when you print it. It has the same number of parameters as the layers of the table.

# %%
table = tx.parameter_table(config, head="lm")
assert table.total == language_model
print(table)
torch_layer = nn.TransformerEncoderLayer(D, n_heads, F, batch_first=True)
torch_encoder = nn.TransformerEncoder(torch_layer, n_layers, enable_nested_tensor=False)
assert tx.count_parameters(torch_encoder) == table.parts["blocks"]
print(f"\nlayers of PyTorch's encoder: {tx.count_parameters(torch_encoder):,}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### What does not count
#
# Our example has 2 heads, a causal mask and texts of at most 512 tokens. Below, these three are changed one at a time, and then the positions. Which of the changes move the total? The last change is **tying**: the output layer uses the matrix of the embedding, so both are one and the same. **Predict 06.1.** What does tying take away from our example?

# %%
course.predict(
    "06.1",
    "The output layer is tied to the embedding. The total falls by …",
    [
        "nothing: the matrix is still used",
        "V D, the matrix of the output layer",
        "V D + V, its matrix and its biases",
    ],
)

# %%
changes = {
    "8 heads instead of 2": {"n_heads": 8},
    "no causal mask": {"causal": False},
    "texts of 4,096 tokens instead of 512": {"max_len": 4_096},
    "learned positions": {"positions": "learned"},
    "learned, 4,096 tokens": {"positions": "learned", "max_len": 4_096},
    "output layer tied to the embedding": {"tie_embeddings": True},
}
change = {
    name: tx.parameter_table(config.replace(**settings)).total - table.total
    for name, settings in changes.items()
}
print("\n".join(f"{name:<38}{added:>+9,}" for name, added in change.items()))
fewer = -change["output layer tied to the embedding"]
answers = {
    0: "nothing: the matrix is still used",
    V * D: "V D, the matrix of the output layer",
    V * D + V: "V D + V, its matrix and its biases",
}
course.resolve("06.1", answers[fewer], f"It falls by {fewer:,}.")

# %% [markdown]
# Heads share the same four matrices: more heads means narrower ones. A mask is a rule, not a number that is learned. The same matrices serve at every position of a text, so length costs parameters only where each position has a learned vector, $D$ numbers a position. Tying saves a matrix of $V \times D$ numbers; the biases of the output layer remain.
#
# ## Look: where are the parameters?
#
# Here is a whole model as one area, divided in proportion to the counts. Every column of the large part is one block. Which two kinds of rectangle make up most of a block, and in which ratio?

# %%
course.plots.diagram("parameters")

# %% [markdown]
# Attention and feed-forward, here two to one, because $F = D$. Is it always so? Attention grows as $4 D^2$. The feed-forward network is usually four times as wide as the model and grows as $8 D^2$. The embedding grows only as $V D$. **Predict 06.2** for a vocabulary of 30,000, 6 layers and a tied output layer: which part is the largest in a narrow model, and which in a wide one?

# %%
course.predict(
    "06.2",
    "The largest part at width 64 and at width 4,096:",
    [
        "embeddings at both",
        "embeddings at 64, feed-forward at 4,096",
        "attention at 64, embeddings at 4,096",
        "feed-forward at both",
    ],
)


# %%
def usual(width, vocab_size=30_000, n_layers=6):
    return tx.TransformerConfig(
        vocab_size=vocab_size, d_model=width, n_heads=1,
        n_layers=n_layers, d_ff=4 * width, tie_embeddings=True,
    )  # fmt: skip


widths = sorted({2 * round(8 * 2 ** (step / 4)) for step in range(33)})
kinds = ["embeddings", "attention", "feed_forward", "head", "norms"]
tables = {width: tx.parameter_table(usual(width)).kinds for width in widths}
largest = [max(kinds, key=tables[width].get).replace("_", "-") for width in (64, 4_096)]
same = largest[0] == largest[1]
answer = (
    f"{largest[0]} at both" if same else f"{largest[0]} at 64, {largest[1]} at 4,096"
)
shares = [
    tables[width]["embeddings"] / sum(tables[width].values()) for width in (64, 4_096)
]
found = "Embeddings hold {:.0%} at 64 and {:.0%} at 4,096.".format(*shares)
course.resolve("06.2", answer, found)

# %% [markdown]
# Now all widths between. In the figure every column is a whole model of 100 percent, from narrow (left) to wide (right). Follow the upper edge of the lowest area. Of the tied output layer only the biases count, one for each token. The norms are there too, but too thin to see.

# %%
def mark_widths(ax):
    ax.set_xticks([16, 64, 256, 1024, 4096], ["16", "64", "256", "1,024", "4,096"])
    ax.set_xticks([], minor=True)


names = {kind: kind.replace("_", "-") for kind in kinds} | {"head": "output biases"}
fig, ax = plots.share_areas(
    widths, {names[kind]: [tables[width][kind] for width in widths] for kind in kinds},
    x_log=True, title="Where the parameters are, by width",
    xlabel="width D (log scale)", ylabel="share of the parameters (percent)",
)  # fmt: skip
mark_widths(ax)
plots.show(fig, "06_shares_by_width")

# %% [markdown]
# A narrow model is mostly embedding: a dictionary with a little thinking on top. In a wide model the embedding becomes an afterthought. Of the rest, attention and feed-forward hold one part and two, $4 D^2$ to $8 D^2$.
#
# ### Where do embeddings stop dominating?
#
# Where embeddings and blocks are equally large: beyond that width the blocks hold more. The next cell searches for it, for three vocabularies, and compares it with a rule that follows below. **Predict 06.3.** A vocabulary is four times as large. By what factor does that width grow?

# %%
course.predict(
    "06.3",
    "Four times the vocabulary: the width where embeddings hold one half grows by",
    ["a factor of about two", "a factor of about four", "a factor of about sixteen"],
)


# %%
def crossing(vocab_size, n_layers=6):
    width = 2
    while True:
        parts = tx.parameter_table(usual(width, vocab_size, n_layers)).parts
        if parts["blocks"] >= parts["embeddings"]:
            return (
                width  # the first even width at which the blocks outweigh the embedding
            )
        width += 2


vocab_sizes = (8_000, 32_000, 128_000)
exact = [crossing(vocab_size) for vocab_size in vocab_sizes]
for vocab_size, width in zip(vocab_sizes, exact, strict=True):
    print(f"V = {vocab_size:>7,}: rule {vocab_size / 72:7.1f}, exact {width:>5,}")
    assert abs(width / (vocab_size / 72) - 1) < 0.03
factor = (exact[2] / exact[0]) ** 0.5
in_words = {2: "two", 4: "four", 16: "sixteen"}[round(factor)]
found = f"From 8,000 to 128,000 in two steps: {factor:.2f} a step."
course.resolve("06.3", f"a factor of about {in_words}", found)

# %% [markdown]
# The rule: with a tied matrix, embeddings and blocks are equal at $V D = 12 L D^2$, or
#
# $$D = \frac{V}{12 L},$$
#
# and at twice that width when the output layer has a matrix of its own and both matrices count. The rule leaves out biases and norms, and is within three percent of the exact width. Now all widths and the three vocabularies. Each curve is the share of the embedding; the dashed line is one half. Compare where the curves cross it with the numbers above.

# %% tags=["folded"]
lines = []
for vocab_size in vocab_sizes:
    parts = [tx.parameter_table(usual(width, vocab_size)).parts for width in widths]
    share = [100 * part["embeddings"] / sum(part.values()) for part in parts]
    lines.append(plots.Curve(f"V = {vocab_size:,}", widths, share))
fig, ax = plots.curves(
    lines, x_log=True, references={"one half": 50}, y_range=(0, 100),
    xlabel="width D (log scale)", ylabel="embedding (percent of all parameters)",
    title="Share of the embedding, by width",
)  # fmt: skip
mark_widths(ax)
plots.show(fig, "06_embedding_share")

# %% [markdown]
# Where they fall, it is one curve moved to the right. (The bend at the far left comes from the biases: compared with vectors of 16 numbers, one bias for each token in the output layer is not small.) At the same width a larger vocabulary leaves a larger share to the embedding; that is one reason to choose its size with care.
#
# Now move the controls yourself. The areas are the terms of this lesson; the other three cards show what a model of that size has to compute and to store, the subject of [lesson 12](12_the_price_of_attention.ipynb). Each card compares with a state that you can pin; dashed lines are models that you know. First change the length of the text and the number of heads: which cards move? Then look for a model of which more than half is embedding, and for the largest one that your own graphics card could train.

# %%
course.widgets.count(tx.PRESETS["seed-lab"])

# %% [markdown]
# Length and heads leave every parameter unchanged. What grows with the length is the work of attention, by its square, and the memory of generation.
#
# ## Break it: forget something
#
# What does each omission cost? We leave one thing out of the example's count at a time, and see how far the total falls. Guess the order on paper. Can the size of the error alone say what is missing? **Predict 06.4.**

# %%
course.predict(
    "06.4",
    "Seven omissions, each alone. How many pairs of them give exactly the same wrong "
    "total?",
    ["no pair", "one pair", "two pairs or more"],
)

# %%
forgotten = {
    "feed-forward network": n_layers * feed_forward,
    "output projection of attention": n_layers * linear(D, D),
    "embedding": embedding,
    "norms": n_layers * norms,
    "biases of attention": n_layers * 4 * D,
    "one norm a layer": n_layers * norm(D),
    "bias of the output layer": V,
}
percent = {name: 100 * count / language_model for name, count in forgotten.items()}
fig, ax = plots.bars(
    percent, numbers=".2f", title="What is missing when one thing is forgotten",
    xlabel="missing from the total (percent)",
)  # fmt: skip
plots.show(fig, "06_what_forgetting_costs")
pairs = [
    (one, other)
    for one, other in itertools.combinations(forgotten, 2)
    if forgotten[one] == forgotten[other]
]
answer = ["no pair", "one pair"][len(pairs)] if len(pairs) < 2 else "two pairs or more"
course.resolve("06.4", answer, "; ".join(" and ".join(pair) for pair in pairs))

# %% [markdown]
# The lower four are below half a percent: no feeling for sizes will find them. Equality with the model will. Norms and biases of attention are exactly as many, $4 D$ each in a layer, so a count that is too small by that much has two explanations.
#
# ### From the number to the mistake
#
# `tx.diagnose_count` works backwards. It knows two dozen ways to go wrong, and finds the smallest sets of them that give a number exactly. First the tempting count from above:

# %%
def diagnose(*question, **part):
    print(textwrap.fill(str(tx.diagnose_count(*question, **part)), 84), end="\n\n")


diagnose(config, "lm", tempting)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Four mistakes in one number: the number of heads where the number of matrices belongs, and three things left out. Now a larger model of the same kind, $V = 5{,}000$ and 6 layers, and two wrong totals that people arrived at. Then the case with two explanations from the figure above.

# %%
larger = config.replace(vocab_size=5_000, n_layers=6)
diagnose(larger, "lm", 3_440_000)
diagnose(larger, "classifier", 2_440_400)
diagnose(config, "lm", language_model - n_layers * 4 * D)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Parts can be asked about as well. A common mistake is to count $2 D \cdot \text{heads}$ for the norms of a layer. With two heads that is right by luck: there are as many heads as norms. The same formula for four heads shows the mistake:

# %%
for heads in (2, 4):
    diagnose(config.replace(n_heads=heads), "lm", 2 * D * heads, part="norms")
diagnose(config, "lm", 1_234_567)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# A right number is called right, whatever the reasoning was: a checker of numbers sees no further. And where nothing it knows gives the number, it says so.
#
# ## Find the slip
#
# Four derivations, each with **one** wrong line; later lines carry the wrong value forward correctly. Read slowly. In your own copy replace the dots by the number of the wrong line and by the right result of that line. The first:

# %%
print(lesson_06.DERIVATIONS["A"])
print(lesson_06.check("A", line=..., number=...))

# %% [markdown]
# <details><summary>The slip in A</summary>
#
# Line 2. Attention has four matrices with a bias each, $4 \cdot (8 \cdot 8 + 8) = 288$. The number of heads does not enter the formula: it says into how many parts the matrices are split, not how many there are.
#
# </details>
#
# The second is a classifier. Every formula in it is one that you have seen above. Does each occur as often as it should?

# %%
print(lesson_06.DERIVATIONS["B"])
print(lesson_06.check("B", line=..., number=...))

# %% [markdown]
# <details><summary>The slip in B</summary>
#
# Line 4. One norm was counted, but there are two in a layer: one for attention, one for the feed-forward network. $2 \cdot 2 \cdot 6 = 24$.
#
# </details>
#
# In the third the formulas are all right. Do not trust the letters alone: put the numbers in yourself, line by line.

# %%
print(lesson_06.DERIVATIONS["C"])
print(lesson_06.check("C", line=..., number=...))

# %% [markdown]
# <details><summary>The slip in C</summary>
#
# Line 3. The biases $F + D$ are in the formula, but are lost when the numbers are put in: $2 \cdot 10 \cdot 10 + 10 + 10 = 220$. The two totals of the larger model above lack these biases as well.
#
# </details>
#
# The fourth was first done for a model with 2 heads, where the total was right. Here the same formulas are used for 4 heads.

# %%
print(lesson_06.DERIVATIONS["D"])
print(lesson_06.check("D", line=..., number=...))

# %% [markdown]
# <details><summary>The slip in D</summary>
#
# Line 4. A layer has two norms, whatever the number of heads: $2 \cdot 2 \cdot 8 = 32$. With 2 heads, $2 \cdot D \cdot H$ gave the right number for the wrong reason. Trying a formula on a second case is the cheapest test there is.
#
# </details>
#
# ## Use it: published models
#
# ### GPT-2 from five settings
#
# A published model comes with a small file of settings. That is all a count needs: nothing is downloaded here. GPT-2 (its smallest size) states five numbers: 50,257 tokens, texts of at most 1,024 tokens, width 768, 12 heads, 12 layers. Its paper and code add four facts:
#
# - the feed-forward network is four times as wide as the model, $F = 4 D$;
# - positions are learned, one vector for each;
# - the order is pre-norm, so one **final norm** follows the last block;
# - the output layer is tied to the embedding and has no bias.
#
# That is enough. Go from bottom to top. The second half of the cell checks the sum with a model: on the device `meta` tensors have a shape and no memory, so even large models can be built for counting.

# %%
gpt2 = {
    "vocab_size": 50_257,
    "max_len": 1_024,
    "d_model": 768,
    "n_heads": 12,
    "n_layers": 12,
}
D2 = gpt2["d_model"]
tokens = gpt2["vocab_size"] * D2
positions = gpt2["max_len"] * D2
one_block = 4 * linear(D2, D2) + linear(D2, 4 * D2) + linear(4 * D2, D2) + 2 * norm(D2)
total = tokens + positions + gpt2["n_layers"] * one_block + norm(D2)
print(f"{tokens:,} + {positions:,} + {gpt2['n_layers']} · {one_block:,} + {norm(D2):,}")
print(f"= {total:,}")
assert total == 124_439_808

gpt2_config = tx.TransformerConfig(
    **gpt2, d_ff=4 * D2, positions="learned", norm="first",
    tie_embeddings=True, head_bias=False,
)  # fmt: skip
with torch.device("meta"):
    assert tx.count_parameters(tx.LanguageModel(gpt2_config)) == total
assert tx.parameter_table(gpt2_config).total == total
assert PUBLISHED["GPT-2 small"].table().total == total
print("model, closed form and table of published models agree")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# 124,439,808 is the number that the published weights have. The number of heads was used by the model alone, to divide its matrices: it is in no term of the sum.
#
# ### A rule of thumb
#
# For an estimate in the head there is a shorter rule: $12 L D^2$ for the blocks and $V D$ for the embedding. How far off is it? The last column is the size that the paper of each model states.

# %%
def rule_of_thumb(table):
    """12 L D² + V D, with L, D and V read from the rows of the table."""
    vocab_size, width = map(int, table.rows[0].numbers.split("·"))
    depth = max(row.times for row in table.rows)
    return 12 * depth * width**2 + vocab_size * width


errors = []
print(f"{'':<17}{'exact':>14}{'rule of thumb':>16}{'off by':>9}{'as stated':>11}")
for name, published in PUBLISHED.items():
    if published.family in ("bert", "roberta", "camembert", "distilbert", "gpt2"):
        counted_table = published.table()
        rule = rule_of_thumb(counted_table)
        errors.append(rule / counted_table.total - 1)
        stated = f"{published.stated:,} M" if published.stated else "-"
        print(
            f"{name:<17}{counted_table.total:>14,}{rule:>16,}{errors[-1]:>9.1%}"
            f"{stated:>11}"
        )
assert all(-0.02 < error < 0 for error in errors)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The rule is always low, and by less than two percent. It leaves out positions, segments (vectors that mark the first or second text), biases, norms, and BERT's *pooler*, one more linear layer on top of the first token.
#
# Look at GPT-2's last column: the paper (table 2) says 117 million for the smallest, and the model it describes has more. Its authors have since called [their counts an error](https://github.com/openai/gpt-2). Count for yourself before you quote.
#
# How are published models made up? **Predict 06.5.**

# %%
course.predict(
    "06.5",
    "Which of these models has the largest share of embeddings?",
    [
        "CamemBERT base (one language, width 768)",
        "mBART (25 languages, width 1,024)",
        "GPT-2 XL (one language, width 1,600)",
    ],
)

# %%
chosen = [
    "Transformer base", "BERT base", "CamemBERT base", "DistilBERT base", "GPT-2 small",
    "GPT-2 XL", "BARThez", "mBART", "T5 small",
]  # fmt: skip
counted = {name: PUBLISHED[name].table() for name in chosen}
labels = names | {"head": "pooler"}  # of BERT and its relatives
fig, ax = plots.share_bars(
    {name: {labels[k]: n for k, n in t.kinds.items()} for name, t in counted.items()},
    notes={name: f"{t.total / 1e6:,.0f} M" for name, t in counted.items()},
    xlabel="share of the parameters (percent)", title="Nine published models",
)  # fmt: skip
plots.show(fig, "06_published_models")
options = {
    "CamemBERT base": "CamemBERT base (one language, width 768)",
    "mBART": "mBART (25 languages, width 1,024)",
    "GPT-2 XL": "GPT-2 XL (one language, width 1,600)",
}
share = {
    name: counted[name].kinds["embeddings"] / counted[name].total for name in options
}
answer = options[max(share, key=share.get)]
course.resolve(
    "06.5", answer, ", ".join(f"{name} {part:.0%}" for name, part in share.items())
)

# %% [markdown]
# The quarter of a million tokens of mBART were made for many languages, more than the twenty-five that it was pretrained on, and it pays for all of them. GPT-2 XL has the vocabulary of GPT-2 small, but is so wide and deep that the embedding hardly shows. CamemBERT has the blocks of BERT. Its embeddings are laid out as in RoBERTa: 514 positions and one type of **segment** (a learned vector that marks first or second text), where BERT has 512 and two. Its vocabulary is its own. The next cell accounts for the difference.

# %%
bert, camembert = counted["BERT base"], counted["CamemBERT base"]
assert bert.parts["blocks"] == camembert.parts["blocks"]
print(f"blocks {bert.parts['blocks']:,} in both")
difference = camembert.kinds["embeddings"] - bert.kinds["embeddings"]
rows = {"tokens": 32_005 - 30_522, "positions": 514 - 512, "segments": 1 - 2}
for part, more in rows.items():
    print(f"{part:<11}{more:>+6,} vectors of 768: {more * 768:>+10,}")
assert difference == sum(rows.values()) * 768
print(f"embeddings of CamemBERT minus those of BERT: {difference:+,}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### The Transformer of the paper
#
# The first Transformer translated. It has two stacks: an encoder that reads one language, and a decoder that writes the other. The layers of the decoder have a *second* attention, to the encoder, with four more matrices and a third norm. One matrix of 37,000 rows serves as embedding of both languages and as output matrix. Which terms would you expect to dominate?

# %%
base = counted["Transformer base"]
settings = PUBLISHED["Transformer base"].settings
translator_config = tx.TransformerConfig(**settings, norm="last", tie_embeddings=True)
with torch.device("meta"):
    assert tx.count_parameters(tx.Translator(translator_config)) == base.total
print(base.proportions(width=30))
easily_missed = [
    row for row in base.rows if "cross" in row.name or "out_proj" in row.name
]
missed = sum(row.total for row in easily_missed)
print(
    f"\noutput projections, second attention and its norms: {missed:,} of "
    f"{base.total:,}"
)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Three kinds of term make nearly all of it: the feed-forward networks, the one embedding matrix, and attention. A common mistake is to forget the output projections and the decoder's second attention with its norms; the last line says what would be missing. Now compare this and other counts with what the papers state. These are off by more than two percent:

# %%
for name, published in PUBLISHED.items():
    millions = published.table().total / 1e6
    if published.stated and abs(millions / published.stated - 1) > 0.02:
        print(f"{name:<17}counted {millions:5.1f} M, stated {published.stated} M")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# There are gaps, in both directions. GPT-2's paper states too few, as above. For the first Transformer the paper's table 3 says 65 million, and the terms that its text describes sum to less; BARThez and mBART are stated larger than we count, too. We know of no statement of the authors that explains these three differences, so we leave them as they are: a number in a paper, and a number that can be counted.
#
# ## Limits
#
# A count says nothing about quality, and little about speed: attention's work grows with the square of a text's length, and the length of the text is in no formula for a block. It is not the memory of training either: there each parameter also has a gradient and the optimizer's averages, and intermediate results come on top.
#
# And `tx.diagnose_count` knows only the mistakes that we have met. A number that it can explain may still have come about in another way.
#
# ## Take-home: the closed form
#
# This is the whole idea on one screen. It counts one stack of blocks with a single attention each: our language model, our classifier, GPT-2. It leaves out the second attention of a translator's decoder, and BERT's segments, embedding norm and pooler. It needs no library.

# %%
def count_transformer(
    vocab_size, d_model, n_layers, d_ff, *, n_outputs,
    learned_positions=0, pre_norm=False, tied=False, output_bias=True,
):  # fmt: skip
    def linear(a, b):
        return a * b + b  # a weight for each pair, a bias for each output

    norm = 2 * d_model  # scale and shift
    embedding = (vocab_size + learned_positions) * d_model  # lookup tables: no bias
    attention = 4 * linear(d_model, d_model)  # query, key, value, output
    feed_forward = linear(d_model, d_ff) + linear(d_ff, d_model)
    block = attention + feed_forward + 2 * norm
    final_norm = norm if pre_norm else 0
    output = 0 if tied else d_model * n_outputs
    output += n_outputs if output_bias else 0
    return embedding + n_layers * block + final_norm + output


example = (100, 200, 4, 200)
assert count_transformer(*example, n_outputs=100) == language_model
assert count_transformer(*example, n_outputs=2) == classifier
tied = {"pre_norm": True, "tied": True, "output_bias": False}
by_form = count_transformer(
    50_257, 768, 12, 3_072, n_outputs=50_257, learned_positions=1_024, **tied
)
assert by_form == total
print("language model, classifier and GPT-2: exact")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Questions
#
# First without a pencil: a few questions on where the numbers come from. Pick an answer and read the reply; common mistakes are among the choices.

# %%
course.quiz("counting_parameters")

# %% [markdown]
# ## Exercises
#
# Now write the counts down as functions, for all sizes. Below each cell to fill in is one that checks it, on several sizes. If your number is wrong, the check does what `tx.diagnose_count` did above: it says what was probably forgotten. While there are only dots, it says "not attempted yet".
#
# [exercise: count_language_model]


# %%
def count_language_model(vocab_size, d_model, n_layers, d_ff):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("count_language_model", count_language_model)

# %% [markdown]
# [exercise: count_classifier]


# %%
def count_classifier(vocab_size, d_model, n_layers, d_ff, n_classes):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("count_classifier", count_classifier)

# %% [markdown]
# [exercise: count_gpt2]


# %%
def count_gpt2(vocab_size, max_len, d_model, n_heads, n_layers):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("count_gpt2", count_gpt2)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), on paper first:
#
# **1.** A classifier has $V = 1{,}000$, $D = 10$, $F = 40$, 2 layers, 5 heads and 3 classes, post-norm, fixed positions. How many parameters?
#
# <details><summary>Answer</summary>
#
# Embedding $10{,}000$. A layer: attention $4 \cdot 110 = 440$, feed-forward $440 + 410 = 850$, norms $40$, in all $1{,}330$; twice, $2{,}660$. Output layer $33$. Total $12{,}693$. Check it with your own `count_classifier`, or with `tx.parameter_table`; if your number is another one, ask `tx.diagnose_count`.
#
# </details>
#
# **2.** Count BERT base from its settings: 30,522 tokens, 512 learned positions, 2 segments, width 768, 12 layers, $F = 3{,}072$, post-norm. One norm follows the sum of the three embeddings, and a pooler from $D$ to $D$ is at the top; there is no output layer.
#
# <details><summary>Answer</summary>
#
# Embeddings $(30{,}522 + 512 + 2) \cdot 768$ and their norm $2 \cdot 768$, together $23{,}837{,}184$. Blocks $12 \cdot 7{,}087{,}872 = 85{,}054{,}464$, as in GPT-2. Pooler $768^2 + 768 = 590{,}592$. Total $109{,}482{,}240$, the exact number in the table of the rule of thumb.
#
# </details>
#
# **3.** "We doubled the number of heads, so attention has twice the parameters." What do you answer?
#
# <details><summary>Answer</summary>
#
# That nothing changed: each head became half as wide. Twice the parameters would need twice the *width in attention*, and another projection back to $D$.
#
# </details>
#
# ## Summary
#
# 1. A linear layer learns $a b + b$, a norm $2 D$. A block has four linear layers in attention, two in the feed-forward network, and two norms. Check with `named_parameters`.
# 2. Heads, masks and the length of a text learn nothing; learned positions cost $D$ a position.
# 3. A wrong number often points to its mistake: `tx.diagnose_count` names all smallest explanations that it knows. There may be two, or none.
# 4. With $F = 4D$, embeddings dominate below a width of about $V / 12 L$ (tied); above, attention and feed-forward do, as one to two.
# 5. A published model is counted from its settings, GPT-2 from five; what papers state may differ from what can be counted.
#
# *Where this comes from:* Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), sections 3.1 to 3.4 and table 3; tying: Press and Wolf, [arXiv:1608.05859](https://arxiv.org/abs/1608.05859);
# BERT: Devlin et al., [arXiv:1810.04805](https://arxiv.org/abs/1810.04805), section 3; RoBERTa: Liu et al., [arXiv:1907.11692](https://arxiv.org/abs/1907.11692); CamemBERT: Martin et al., [arXiv:1911.03894](https://arxiv.org/abs/1911.03894); BARThez: Kamal Eddine et al., [arXiv:2010.12321](https://arxiv.org/abs/2010.12321);
# mBART: Liu et al., [arXiv:2001.08210](https://arxiv.org/abs/2001.08210); GPT-2: Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019, table 2; T5: Raffel et al., [arXiv:1910.10683](https://arxiv.org/abs/1910.10683).
#
# *What comes next:* such a model learns. In [lesson 07](07_your_own_gpt.ipynb) you build and train one, without biases, from functions that you wrote.
