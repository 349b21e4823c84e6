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
# 3. tell from a wrong number which mistake is behind it;
# 4. say which part of a model dominates, and at what width that changes;
# 5. count a published model from its configuration alone, and compare with what its paper says.
#
# *You need:* matrix products, and a rough idea of attention (lesson 02). What else there is in a layer is said when it is counted.
# *It takes:* half an hour to read, pencil in hand; ten seconds to run, with or without a GPU.

# %% [markdown]
# ## Set-up
#
# A *parameter* is a number that training may change. Nothing is trained here: a count depends on the shape of a model only. Letters
# are those of the whole course: $V$ words in the vocabulary, width $D$ of the model, width $F$ inside the feed-forward network, $C$ classes.

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

_ = torch.manual_seed(0)

# %% [markdown]
# ## Why count?
#
# The number of parameters says how much memory a model takes, gives a first idea of how long it trains, and is what
# people name when they say how large a model is. It is also the best check of understanding there is: whoever can count every
# matrix knows every matrix.
#
# Our example is the model of a university lab: a small language model, four layers, two heads. First the
# answer, straight from the model: we build it and add up the sizes of everything that can be learned.

# %%
config = tx.PRESETS["seed-lab"]
model = tx.LanguageModel(config)
n_params = sum(parameter.numel() for parameter in model.parameters())
print(f"{n_params:,} parameters")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### The tempting way
#
# A transformer is attention, attention is heads, and each head works with matrices of $D \times D$ numbers. So a layer must learn
# $\text{heads} \cdot D^2$; add the embedding, one vector for each word, and as much again for the output, and you are
# done. This is how a student reckoned, and it sounds sensible. Look at the result, and compare.

# %%
V, D, F, n_layers, n_heads = 100, 200, 200, 4, 2
tempting = V * D + n_layers * n_heads * D**2 + V * D
print(f"{tempting:,} claimed, {n_params / tempting:.1f} times too few")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Most of the model is missing, so this is no slip of the pen: whole parts were left out. Before the end of
# the lesson a function will tell from that one number which.
#
# ## By hand
#
# ### A linear map
#
# Nearly everything in a transformer is a *linear map*: each output is a weighted sum of all inputs, plus a constant of its own, the *bias*.
# With 3 inputs and 5 outputs, draw the arrows and count them one by one: an arrow for each pair, and a bias for each output.

# %%
n_arrows = n_biases = 0
for _output in range(5):
    n_biases += 1
    for _input in range(3):
        n_arrows += 1
print(n_arrows, "weights and", n_biases, "biases")
assert n_arrows + n_biases == tx.count_parameters(nn.Linear(3, 5))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# So a map from $a$ to $b$ numbers learns $a \cdot b + b$. The bias goes with the *outputs*. It is small beside
# the weights, which is why it is forgotten so often.
#
# ### A norm
#
# Layer normalisation brings the $D$ numbers of a vector to mean 0 and variance 1: nothing in that is learned. But then each of them is multiplied by a
# factor and moved by a shift of its own, and those are learned: two for each number, $2 D$ in all.

# %%
def linear(a, b):
    return a * b + b


def norm(width):
    return 2 * width


assert linear(3, 5) == 20
assert norm(D) == tx.count_parameters(nn.LayerNorm(D))

# %% [markdown]
# ### One layer
#
# Attention makes queries, keys and values from each vector, and one more map puts the results of all heads together: **four** maps from $D$ to $D$. The
# feed-forward network widens each vector to $F$ numbers and brings it back to $D$: **two** maps. Each of these two steps has
# its norm: **two** norms. Do the sums on paper with $D = F = 200$ before you read on.

# %%
attention = 4 * linear(D, D)
feed_forward = linear(D, F) + linear(F, D)
norms = 2 * norm(D)
layer = attention + feed_forward + norms
print(f"{attention:,} + {feed_forward:,} + {norms:,} = {layer:,} in one layer")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### The whole model
#
# Below the layers stands the embedding, one vector of $D$ numbers for each of $V$ words (a table to look things up in, no map, so that it has no bias). Above them
# stands the *head*: for a language model a map from $D$ to $V$, a score for each word; for a classifier a
# map from $D$ to $C$, a score for each class. This lab had $C = 2$.

# %%
embedding = V * D
body = embedding + n_layers * layer
language_model, classifier = body + linear(D, V), body + linear(D, 2)
print(f"language model {language_model:,}, classifier {classifier:,}")
assert language_model == n_params
assert classifier == tx.count_parameters(tx.Classifier(config))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Both are exactly what the models hold, to the last number. Where are the positions? They are sines and cosines
# here, computed and not learned: they count zero.
#
# ## One formula for all sizes
#
# Written out with letters, the count of a language model is
#
# $$V D \;+\; L\,(4 D^2 + 4 D \;+\; 2 D F + F + D \;+\; 4 D) \;+\; D V + V$$
#
# with $L$ layers. One agreement can be luck. So we try this on many shapes, odd ones too, and ask for equality each time.

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
# `tx.parameter_table` writes such a count out for any configuration, each term with its formula, the numbers put in, and
# its value. It builds nothing, so that it costs nothing, however large the model. Find the terms you have just worked out.

# %%
table = tx.parameter_table(config, head="lm")
assert table.total == language_model
print(table)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# PyTorch brings an encoder of its own. It keeps the maps for queries, keys and values in a single matrix, of $3 D$ rows, and so looks
# different when you print it. The numbers to be learned are the same in number: the layers of the table, and nothing else.

# %%
torch_layer = nn.TransformerEncoderLayer(D, n_heads, F, batch_first=True)
torch_encoder = nn.TransformerEncoder(torch_layer, n_layers, enable_nested_tensor=False)
assert tx.count_parameters(torch_encoder) == table.parts["blocks"]
print(f"{tx.count_parameters(torch_encoder):,}")

# %% [markdown]
# ### What does not count
#
# Say first what you expect: how does the total change with 8 heads instead of 2? Without the causal mask? With texts of 4,096 words
# instead of 512? With learned positions? And when the head uses the embedding matrix again, which is called *tying*?

# %%
changes = {
    "8 heads": {"n_heads": 8},
    "no causal mask": {"causal": False},
    "texts of 4,096 words": {"max_len": 4_096},
    "positions learned": {"positions": "learned"},
    "learned, 4,096 words": {"positions": "learned", "max_len": 4_096},
    "head tied to the embedding": {"tie_embeddings": True},
}
for name, change in changes.items():
    changed = tx.parameter_table(config.replace(**change))
    print(f"{name:<28}{changed.total - table.total:>+9,}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Three zeros. Heads share the same four matrices: more heads means narrower ones. A mask is a rule, not a number that is learned. And the same matrices serve at every place of
# a text, so that its length costs parameters only where each place has a learned vector, $D$ numbers a place.
# Tying saves a whole $V \times D$ matrix, and leaves the head its bias.
#
# ## Look: who owns the parameters?
#
# In this little model attention owns most. Is that so in general? Attention grows as $4 D^2$, the feed-forward network, usually four times as wide as the model, as $8 D^2$, but the embedding only as $V D$.
# So predict, for a vocabulary of 30,000 and 6 layers: which part dominates a narrow model, and which a wide one?

# %%
def usual(width, vocab_size=30_000, n_layers=6):
    return tx.TransformerConfig(
        vocab_size=vocab_size, d_model=width, n_heads=1,
        n_layers=n_layers, d_ff=4 * width, tie_embeddings=True,
    )  # fmt: skip


widths = sorted({2 * round(8 * 2 ** (step / 4)) for step in range(33)})
kinds = ["embeddings", "attention", "feed_forward", "norms"]
tables = [tx.parameter_table(usual(width)).kinds for width in widths]
sizes = {kind: [table[kind] for table in tables] for kind in kinds}

# %% [markdown]
# In the picture every column is a whole model of 100 percent, from narrow (left) to wide (right). Follow the upper edge of the lowest area. The norms are there too, and hardly to be seen.

# %%
def mark_widths(ax):
    ax.set_xticks([16, 64, 256, 1024, 4096], ["16", "64", "256", "1,024", "4,096"])
    ax.set_xticks([], minor=True)


fig, ax = plots.share_areas(
    widths, sizes, x_log=True, title="Narrow models are mostly embedding",
    xlabel="width D (log scale)", ylabel="share of the parameters in percent",
)  # fmt: skip
mark_widths(ax)
plots.show(fig, name="06_shares_by_width", alt="""
    Shares of the parameters by width from 16 to 4,096, stacked to 100 percent.
    Embeddings own nearly everything on the left and less than a tenth on the
    right; there attention holds a third of the rest and the feed-forward
    network two thirds. Norms are never visible.""")

# %% [markdown]
# On the left nearly everything is embedding: such a model is a dictionary with a little thinking on top. On the right embeddings become an afterthought, and of the rest attention and feed-forward hold one part and two, $4 D^2$ to $8 D^2$.
#
# ### Where do embeddings stop dominating?
#
# Where both sides weigh the same. With one matrix for embedding and head that is at $V D = 12 L D^2$, or
#
# $$D = \frac{V}{12 L},$$
#
# and at twice that width when the head has a matrix of its own. Biases and norms were left out, so we search for the exact place too.

# %%
def crossing(vocab_size, n_layers=6):
    """First even width at which the layers outweigh the embedding."""
    width = 2
    while True:
        parts = tx.parameter_table(usual(width, vocab_size, n_layers)).parts
        if parts["blocks"] >= parts["embeddings"]:
            return width
        width += 2


for vocab_size in (1_000, 8_000, 30_000):
    exact = crossing(vocab_size)
    print(f"V = {vocab_size:>6,}: rule {vocab_size / 72:5.1f}, exact {exact:3}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The rule is as good as can be asked of it. Now for all widths and three sizes of vocabulary: each curve is the share of the embedding, and the dashed line is
# one half. Before you look: by what factor do the crossings of neighbouring curves lie apart? (The vocabularies differ by a factor of four.)

# %%
lines = []
for vocab_size in (8_000, 32_000, 128_000):
    parts = [tx.parameter_table(usual(width, vocab_size)).parts for width in widths]
    share = [100 * part["embeddings"] / sum(part.values()) for part in parts]
    lines.append(plots.Curve(f"V = {vocab_size:,}", widths, share))
fig, ax = plots.curves(
    lines, x_log=True, references={"one half": 50}, y_range=(0, 100),
    xlabel="width D (log scale)", ylabel="embedding, percent of all",
    title="A larger vocabulary rules for longer",
)  # fmt: skip
mark_widths(ax)
plots.show(fig, name="06_embedding_share", alt="""
    Share of the embedding by width for vocabularies of 8,000, 32,000 and
    128,000. All three curves start above 80 percent and fall; they cross one
    half at widths four times apart, the largest vocabulary last.""")

# %% [markdown]
# Where they fall, it is one curve moved to the right: four times the vocabulary needs four times the width. (The bend at the far left is made by biases: beside vectors of 16 numbers even the head's one bias a word is not small.)
# Depth works in the other direction. The map shows both at a width of 512; a cell holds the embedding's share in percent. Which cells belong to models that are mostly dictionary?

# %%
vocab_sizes, depths = [1_000, 4_000, 16_000, 64_000, 256_000], [2, 6, 12, 24, 48]
grid = [[tx.parameter_table(usual(512, v, depth)) for v in vocab_sizes] for depth in depths]
percents = [[100 * one.parts["embeddings"] / one.total for one in row] for row in grid]
fig, ax = plots.heatmap(
    percents, numbers=".0f", low=0, high=100, bar_label="embedding, percent",
    row_labels=[str(depth) for depth in depths], ylabel="layers L",
    col_labels=[f"{v:,}" for v in vocab_sizes], xlabel="vocabulary V",
    title="Width 512: how much is embedding?",
)  # fmt: skip
plots.show(fig, name="06_embedding_by_vocabulary_and_depth", alt="""
    Heat map of the embedding's share at width 512, vocabulary from 1,000 to
    256,000 across, 2 to 48 layers down. The upper right, a large vocabulary
    over few layers, is darkest; the lower left is almost white.""")

# %% [markdown]
# Dark is at the upper right: a huge vocabulary over few layers. Models for many languages are drawn that way, since they need pieces of words from all of them; this is one reason among others to choose the size of
# a vocabulary with care.
#
# Now move the controls yourself. The bars are the terms of this lesson and, beside them, what a model of that size has to compute and to keep (the subject of lesson 04). The dashed bars below them are a state that you can pin, to compare with. First change the length of the text and the
# number of heads: which bars move? Then look for a model of which more than half is embedding.

# %%
course.widgets.count(tx.PRESETS["seed-lab"])

# %% [markdown]
# Length and heads leave every parameter where it is. What grows with the length is the work of attention, by its square, and the memory of generation.
#
# ## Break it: forget something
#
# What does each omission cost? We leave one thing out of the lab's count at a time, and see how far the total falls. Guess the order first. Which omission would you never notice from the size of
# the number?

# %%
forgotten = {
    "feed-forward network": n_layers * feed_forward,
    "way out of attention": n_layers * linear(D, D),
    "embedding": embedding,
    "norms": n_layers * norms,
    "biases of attention": n_layers * 4 * D,
    "one norm a layer": n_layers * norm(D),
    "bias of the head": V,
}
percent = {name: 100 * count / language_model for name, count in forgotten.items()}
fig, ax = plots.bars(
    percent, numbers=".2f", title="What forgetting costs",
    xlabel="missing from the total, percent",
)  # fmt: skip
plots.show(fig, name="06_what_forgetting_costs", alt="""
    Bars of what each omission takes from the total. The feed-forward network
    takes about a third and the way out of attention half of that; the embedding
    little; norms, biases and the bias of the head next to nothing.""")

# %% [markdown]
# The lower four are below half a percent: no feeling for sizes will find them. Equality with the model will. And look closely: two bars are *exactly* as long, norms and biases of attention, $4 D$ each in a layer. A count that is
# too small by that much has two explanations.
#
# ### From the number to the mistake
#
# `tx.diagnose_count` goes backwards. It knows two dozen ways to go wrong, and finds the smallest sets of them that give a number exactly. First the student's:

# %%
def diagnose(*question, **part):
    print(textwrap.fill(str(tx.diagnose_count(*question, **part)), 84), end="\n\n")


diagnose(config, "lm", tempting)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Four mistakes in one number: heads where matrices belong, and three things left out. Now a larger model of the same lab, $V = 5{,}000$ and 6 layers, another student, two numbers. And then the case with two
# explanations from the chart above.

# %%
larger = config.replace(vocab_size=5_000, n_layers=6)
diagnose(larger, "lm", 3_440_000)
diagnose(larger, "classifier", 2_440_400)
diagnose(config, "lm", language_model - n_layers * 4 * D)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Parts can be asked about as well. A report counts $2 D \cdot \text{heads}$ for the norms of a layer. With two heads that is right; but by luck, since the 2 is the number of *norms*. The same formula for four heads shows
# what was in the writer's mind:

# %%
for heads in (2, 4):
    diagnose(config.replace(n_heads=heads), "lm", 2 * D * heads, part="norms")
diagnose(config, "lm", 1_234_567)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# A right number is called right, whatever was thought on the way: a checker of numbers sees no further. And where nothing it knows gives the number, it says so.
#
# ## Find the slip
#
# Four derivations, each with **one** wrong line; the lines below it reckon on faithfully with what it gave. Read slowly. In your own copy put the number of the wrong line, and what it
# should arrive at, in place of the dots. The first:

# %%
print(lesson_06.DERIVATIONS["A"])
print(lesson_06.check("A", line=..., number=...))

# %% [markdown]
# <details><summary>The slip in A</summary>
#
# Line 2. Attention has four matrices with a bias each, $4 \cdot (8 \cdot 8 + 8) = 288$. The number of heads has no place in the formula: it says into how many pieces the matrices are cut, not how many there are.
#
# </details>
#
# The second is a classifier. Every formula in it is one that you have seen above. Is every one there as often as it should be?

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
# Line 3. The biases $F + D$ stand in the formula and are gone when the numbers are put in: $2 \cdot 10 \cdot 10 + 10 + 10 = 220$. In the report behind the two totals of the larger model above, this is what became of these biases.
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
# Line 4. The norms of a layer number two, whatever the heads: $2 \cdot 2 \cdot 8 = 32$. With 2 heads, $2 \cdot D \cdot H$ gave the right number for the wrong reason. Trying a formula on a second case is the cheapest test there is.
#
# </details>
#
# ## Use it: models out there
#
# Published models come with a small file of settings. That is all a count needs: nothing is downloaded here. A rule of thumb makes the baseline: $12 L D^2$ for the layers and $V D$ for the embedding. How far off is it?

# %%
def rule_of_thumb(table):
    """12 L D² + V D, with L, D and V read from the rows of the table."""
    vocab_size, width = map(int, table.rows[0].numbers.split("·"))
    depth = max(row.times for row in table.rows)
    return 12 * depth * width**2 + vocab_size * width


print(f"{'':<17}{'exact':>14}{'rule of thumb':>16}{'off by':>9}{'as stated':>11}")
for name, published in PUBLISHED.items():
    if published.family in ("bert", "roberta", "camembert", "distilbert", "gpt2"):
        table = published.table()
        rule = rule_of_thumb(table)
        stated = f"{published.stated:,} M" if published.stated else "-"
        print(f"{name:<17}{table.total:>14,}{rule:>16,}", end="")
        print(f"{rule / table.total - 1:>9.1%}{stated:>11}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The rule errs by a percent or so, always on the low side: it leaves out positions, biases, norms, and BERT's *pooler*, one more map on top of the first token. For a first estimate it is all one needs.
#
# The last column is what the paper says. Look at GPT-2: its paper (table 2) says 117 million for the smallest, and the model it describes has more. Count for yourself before you quote.
#
# How are they made up? Before you look: which has the largest share of embedding, a model for one language or for twenty-five?

# %%
chosen = [
    "Transformer base", "BERT base", "CamemBERT base", "DistilBERT base", "GPT-2 small",
    "GPT-2 XL", "BARThez", "mBART", "T5 small",
]  # fmt: skip
counted = {name: PUBLISHED[name].table() for name in chosen}
fig, ax = plots.share_bars(
    {name: table.kinds for name, table in counted.items()},
    notes={name: f"{table.total / 1e6:,.0f} M" for name, table in counted.items()},
    xlabel="share of the parameters in percent", title="Nine published models",
)  # fmt: skip
plots.show(fig, name="06_published_models", alt="""
    Nine published models as bars of 100 percent by kind of parameter. Embeddings
    hold between a fifth and two fifths in most, the most in mBART with its
    250,000 pieces, and very little in GPT-2 XL.""")

# %% [markdown]
# GPT-2 XL is the picture's odd one out: the same vocabulary as GPT-2 small, but a model so wide and deep that it hardly shows. CamemBERT is BERT with a French vocabulary: the same house, and the blocks below are equal to the last number.

# %%
bert, camembert = counted["BERT base"], counted["CamemBERT base"]
assert bert.parts["blocks"] == camembert.parts["blocks"]
print(f"blocks {bert.parts['blocks']:,} in both")
for name, one in {"BERT": bert, "CamemBERT": camembert}.items():
    print(f"{name:<10} embeddings {one.kinds['embeddings']:>11,}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### The Transformer of the paper
#
# The first Transformer translated. It has two stacks: an encoder that reads one language, and a decoder that writes the other and whose layers have a *second*
# attention, to the encoder, with four more matrices and a third norm. One matrix of 37,000 rows serves as embedding of both languages and as head. Which three terms would you expect to dominate?

# %%
base = counted["Transformer base"]
print(base)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Three kinds of term make nearly all of it: the feed-forward networks, the one embedding matrix, and attention. A report on this very question listed the dominating terms and forgot two, the maps out of attention and
# the decoder's second attention. What would have been missing is printed below. First the check, as always: we build the model, and count.

# %%
settings = PUBLISHED["Transformer base"].settings
translator_config = tx.TransformerConfig(**settings, norm="last", tie_embeddings=True)
with torch.device("meta"):  # shapes without memory
    translator = tx.Translator(translator_config)
assert tx.count_parameters(translator) == base.total
forgotten = [row for row in base.rows if "cross" in row.name or "out_proj" in row.name]
print(base.proportions(width=30))
print(f"\nforgotten in the report: {sum(row.total for row in forgotten):,}")
print(f"the paper says 65 million, {(65e6 - base.total) / 1e6:.2f} million more than all")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# There is a gap. The paper's table 3 says 65 million for this model, and the terms that its text describes sum to less. We know of no statement of the authors that explains the difference, so we leave it as it is: a number in a paper and a number that can be counted. The same for the
# others whose papers are off by more than two in a hundred:

# %%
for name, published in PUBLISHED.items():
    total = published.table().total / 1e6
    if published.stated and abs(total / published.stated - 1) > 0.02:
        print(f"{name:<17}counted {total:5.1f} M, stated {published.stated} M")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## What this does not show
#
# A count says nothing of quality, and little of speed: attention's work grows with the square of a text's length, and the length is in no formula above. It is not the memory of training either, where each parameter has a
# gradient and the optimizer's averages beside it, and intermediate results come on top.
#
# And `tx.diagnose_count` knows the mistakes we have met. A number that it can explain may still have come about in another way.

# %% [markdown]
# ## Questions
#
# First without a pencil: a few questions on where the numbers come from. Pick an answer and read what it gets back; slips from reports are among the choices. In your own copy there are buttons to press;
# on a page without a kernel each answer opens on a click.

# %%
course.quiz("counting_parameters")

# %% [markdown]
# ## Exercises
#
# Now write the counts down as functions, once and for all sizes. Below each cell to fill in stands one that checks it, on several sizes. If your number is wrong, the check does what `tx.diagnose_count` did above: it says
# what was probably forgotten. While there are only dots, it says "not attempted yet", and nothing else waits for you.
#
# ### Exercise: count a language model
#
# `Level 2/5 · 15 minutes · outcome 1`
#
# Write `count_language_model(vocab_size, d_model, n_layers, d_ff)`, which returns a whole number: all parameters of the lab's language model in that size. Two heads, so widths are even; each layer with four maps in attention,
# two in the feed-forward network and two norms; biases everywhere; norm last, so none after the last layer; positions as sines and cosines; a head onto the vocabulary that is not tied to the embedding. *It trains* taking a model apart, term by term, without forgetting the small ones.
#
# <details><summary>Hint</summary>
#
# Two helpers do most of it: one for a map from $a$ to $b$ numbers, one for a norm. Then go from bottom to top: table, one layer, all layers, head. Try the sizes of the lab on paper: 100, 200, 4, 200 should give the number at the top of this lesson.
#
# </details>


# %%
def count_language_model(vocab_size, d_model, n_layers, d_ff):
    ### BEGIN SOLUTION
    def map_between(a, b):
        return a * b + b  # an arrow for each pair, a bias for each output

    attention = 4 * map_between(d_model, d_model)
    feed_forward = map_between(d_model, d_ff) + map_between(d_ff, d_model)
    norms = 2 * 2 * d_model  # two norms, each with a factor and a shift for each number
    embedding = vocab_size * d_model  # a table: no bias
    head = map_between(d_model, vocab_size)
    return embedding + n_layers * (attention + feed_forward + norms) + head
    ### END SOLUTION


# %%
course.check("count_language_model", count_language_model)

# %% [markdown]
# ### Exercise: count a classifier
#
# `Level 2/5 · 5 minutes · outcome 1`
#
# Write `count_classifier(vocab_size, d_model, n_layers, d_ff, n_classes)`, a whole number again: the same body, with a head onto `n_classes` scores instead of the vocabulary. *It trains* saying what stays and what goes when a head is swapped.
#
# <details><summary>Hint</summary>
#
# Embedding and layers are those of the language model, to the last number. What is left to ask is how many arrows and how many biases lead from $D$ numbers to $C$.
#
# </details>


# %%
def count_classifier(vocab_size, d_model, n_layers, d_ff, n_classes):
    ### BEGIN SOLUTION
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norms = 2 * 2 * d_model
    body = vocab_size * d_model + n_layers * (attention + feed_forward + norms)
    return body + d_model * n_classes + n_classes
    ### END SOLUTION


# %%
course.check("count_classifier", count_classifier)

# %% [markdown]
# ### Try it yourself
#
# In your own copy, on paper first:
#
# **1.** A classifier has $V = 1{,}000$, $D = 10$, $F = 40$, 2 layers, 5 heads and 3 classes, norms last, positions fixed. How many parameters?
#
# <details><summary>Answer</summary>
#
# Embedding $10{,}000$. A layer: attention $4 \cdot 110 = 440$, feed-forward $440 + 410 = 850$, norms $40$, in all $1{,}330$; twice, $2{,}660$. Head $33$. Total $12{,}693$. Check it with your own `count_classifier`, or with `tx.parameter_table`; if your number is another one, ask `tx.diagnose_count`.
#
# </details>
#
# **2.** With `norm="first"` the same model has a few parameters more. How many, and why?
#
# <details><summary>Answer</summary>
#
# $2 D = 20$. If each step *begins* with a norm, nothing normalises what the last layer returns; so one final norm is added.
#
# </details>
#
# **3.** Somebody says: "We doubled the number of heads, so attention has twice the parameters." What do you answer?
#
# <details><summary>Answer</summary>
#
# That nothing changed: each head became half as wide. Twice the parameters would need twice the *width in attention*, and another map back to $D$.
#
# </details>
#
# ## Summary
#
# - A map learns $a b + b$, a norm $2 D$; a layer has four maps in attention, two in the feed-forward network, and two norms; check with `numel`.
# - Heads, masks and the length of a text learn nothing; learned positions cost $D$ a place.
# - A wrong number carries its mistake: `tx.diagnose_count` reads it back, and names all smallest explanations.
# - Embeddings dominate below a width of about $V / 12 L$ (tied); above, attention and feed-forward do, as one to two.
# - A published model is counted from its settings; what papers state may differ from what can be counted.
#
# *Where this comes from:* Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), sections 3.1 to 3.4 and table 3; tying: Press and Wolf, [arXiv:1608.05859](https://arxiv.org/abs/1608.05859);
# BERT: Devlin et al., [arXiv:1810.04805](https://arxiv.org/abs/1810.04805), section 3; CamemBERT: Martin et al., [arXiv:1911.03894](https://arxiv.org/abs/1911.03894); BARThez: Kamal Eddine et al., [arXiv:2010.12321](https://arxiv.org/abs/2010.12321);
# mBART: Liu et al., [arXiv:2001.08210](https://arxiv.org/abs/2001.08210); GPT-2: Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019, table 2; T5: Raffel et al., [arXiv:1910.10683](https://arxiv.org/abs/1910.10683).
#
# *What comes next:* the same model learns. Lesson 08 trains it on text whose every probability is known.
