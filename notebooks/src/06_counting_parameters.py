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
# The picture below is a whole language model, divided in proportion to its parameters. You will compute each of its areas.
#
# After this lesson you can
#
# 1. count the parameters of a transformer on paper, and check the count against the model;
# 2. say what the number of heads, the mask and the length of the text contribute;
# 3. find from a wrong number, with `tx.diagnose_count`, which mistake is behind it;
# 4. say which part of a model dominates, and at what width the blocks outgrow the embedding;
# 5. count a published model from its settings.
#
# *You need:* lessons [04](04_many_heads.ipynb) and [05](05_the_block.ipynb).
# *It takes:* three quarters of an hour, pencil in hand.

# %% [markdown]
# ## Set-up

# %%
import textwrap

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots

# %%
course.recall("06")

# %%
plots.diagram("parameters")

# %% [markdown]
# ## Why count?
#
# A **parameter** is a number that training may change; their number is the size of a model.
#
# Our example has $V = 100$ tokens in the vocabulary, width $D = 200$, width $F = 200$ inside the feed-forward network, $L = 4$ blocks (also called layers) and two heads.
#
# **The tempting way**: each head has a $D \times D$ matrix, so a layer learns $\text{heads} \cdot D^2$. Add an embedding, one vector for each token, and as much again for the output.

# %% tags=["nbval-check-output"]
config = tx.PRESETS["seed-lab"]
model = tx.LanguageModel(config)
n_params = sum(parameter.numel() for parameter in model.parameters())
V, D, F, n_layers, n_heads = 100, 200, 200, 4, 2
tempting = V * D + n_layers * n_heads * D**2 + V * D
print(f"{n_params:,} parameters, {tempting:,} by the tempting way")

# %% [markdown]
# ## By hand
#
# ### A linear layer
#
# In a **linear layer** each output is a weighted sum of all inputs, plus a constant of its own, the **bias**. From 3 inputs to 5 outputs lead $3 \cdot 5$ arrows, and each *output* has a bias: $3 \cdot 5 + 5 = 20$ parameters.
#
# Many newer models, such as Llama, have no biases: there $a$ inputs and $b$ outputs need $a \cdot b$.
#
# ### A norm
#
# **Layer normalisation** multiplies each of the $D$ numbers of a vector by a learned *scale* and moves it by a learned *shift*: $2 D$ in all.
#
# ### One layer
#
# Attention has **four** linear layers from $D$ to $D$: queries, keys, values, and the output projection. The feed-forward network has **two**, up to $F$ and back to $D$. Each has its norm.
#
# ### The whole model
#
# Below the layers is the **embedding**, one vector of $D$ numbers for each of $V$ tokens: a table, so it has no bias. Above them is the **output layer**, `head` in code: a linear layer from $D$ to $V$ in a language model, and from $D$ to $C$ in a classifier with $C$ classes. Embedding and layers are the **backbone**, `body` in code. Our example is post-norm, so no norm follows the last layer. Its positions are sines and cosines, computed and not learned. Do the sums on paper first.


# %% tags=["nbval-check-output"]
def linear(a, b):
    return a * b + b


def norm(width):
    return 2 * width


attention = 4 * linear(D, D)
feed_forward = linear(D, F) + linear(F, D)
norms = 2 * norm(D)
layer = attention + feed_forward + norms
print(f"{attention:,} + {feed_forward:,} + {norms:,} = {layer:,} in one layer")

backbone = V * D + n_layers * layer
language_model, classifier = backbone + linear(D, V), backbone + linear(D, 2)
assert language_model == n_params
assert classifier == tx.count_parameters(tx.Classifier(config))
print(f"language model {language_model:,}, classifier {classifier:,}: exact")

# %% [markdown]
# ### Further: tensor by tensor
#
# Find each of your terms among the tensors of the first layer and of what is outside the layers.

# %% tags=["nbval-check-output"]
for name, parameter in model.named_parameters():
    if "blocks" not in name or "blocks.0." in name:
        print(f"{name:<35}{tuple(parameter.shape)!s:<12}{parameter.numel():>8,}")

# %% [markdown]
# ## One formula for all sizes
#
# With letters, the count of a language model is
#
# $$V D \;+\; L\,(4 D^2 + 4 D \;+\; 2 D F + F + D \;+\; 4 D) \;+\; D V + V .$$

# %% [markdown]
# ## The package
#
# `tx.parameter_table` counts any configuration, and builds no model for it; `print(table)` shows each term.

# %% tags=["nbval-check-output"]
table = tx.parameter_table(config, head="lm")
assert table.total == n_params
print(f"{table.total:,} parameters, by table and model")

# %% [markdown]
# ### Further: at many shapes
#
# One agreement can be luck, so the formula has to hold at many shapes.


# %% tags=["nbval-check-output"]
import itertools


def count_by_formula(V, D, F, L):
    return V * D + L * (4 * D**2 + 4 * D + 2 * D * F + F + D + 4 * D) + D * V + V


shapes = list(itertools.product([2, 11], [6, 10], [1, 5, 24], [1, 3]))
for v, d, f, depth in shapes:
    shape = config.replace(vocab_size=v, d_model=d, d_ff=f, n_layers=depth)
    counted = tx.count_parameters(tx.LanguageModel(shape))
    assert counted == count_by_formula(v, d, f, depth)
print(len(shapes), "shapes, no difference")

# %% [markdown]
# ### What does not count
#
# We change a setting or two. The last change is **tying**: the output layer uses the matrix of the embedding. **Predict 06.1.**

# %%
course.predict(
    "06.1", "The output layer is tied to the embedding. The total falls by …",
    ["nothing: the matrix is still used", "V D, the matrix of the output layer",
     "V D + V, its matrix and its biases"],
)

# %%
changes = {
    "8 heads, not 2": {"n_heads": 8},
    "no causal mask": {"causal": False},
    "4,096 tokens, not 512": {"max_len": 4_096},
    "learned positions": {"positions": "learned"},
    "learned, 4,096 tokens": {"positions": "learned", "max_len": 4_096},
    "tied output layer": {"tie_embeddings": True},
}
for name, settings in changes.items():
    added = tx.parameter_table(config.replace(**settings)).total - table.total
    print(f"{name:<24}{added:>+9,}")
assert added == -V * D
found = f"It falls by {-added:,}."
course.resolve("06.1", "V D, the matrix of the output layer", found)

# %% [markdown]
# **Heads and the mask cost no parameter**: more heads means narrower ones. Nor does the longest text allowed, unless positions are learned: then each of them costs $D$ numbers. Tying saves a matrix of $V \times D$; the biases of the output layer remain.
#
# ## Look: where are the parameters?
#
# Attention grows as $4 D^2$; the feed-forward network, usually with $F = 4 D$, as $8 D^2$; the embedding only as $V D$. **Predict 06.2** for a vocabulary of 30,000, 6 layers and a tied output layer.

# %%
course.predict(
    "06.2", "The largest part at width 64 and at width 4,096:",
    ["embeddings at both", "embeddings at 64, feed-forward at 4,096",
     "attention at 64, embeddings at 4,096", "feed-forward at both"],
)

# %%
shares = []
for width, largest in {64: "embeddings", 4_096: "feed_forward"}.items():
    usual = tx.TransformerConfig(
        vocab_size=30_000, d_model=width, d_ff=4 * width, n_layers=6, n_heads=1,
        tie_embeddings=True,
    )
    kinds = tx.parameter_table(usual).kinds
    assert kinds[largest] == max(kinds.values())
    shares.append(f"{kinds['embeddings'] / sum(kinds.values()):.0%} at {width:,}")
found = f"Embeddings hold {' and '.join(shares)}."
course.resolve("06.2", "embeddings at 64, feed-forward at 4,096", found)

# %% [markdown]
# **With these 30,000 tokens and 6 layers a narrow model is mostly embedding; a wide one is attention and feed-forward, one part to two.** With $F = 4D$ and a tied output layer, embedding and blocks are equal at $V D = 12 L D^2$, so near $D = V / (12 L)$.
#
# Our example, untied and with $F = 200$: move its width.

# %%
course.widgets.count(config)

# %% [markdown]
# ## Break it: from the number to the mistake
#
# `tx.diagnose_count` knows some thirty mistakes, and finds the smallest sets of them that give a number exactly. Here are three wrong totals for a larger model, $V = 5{,}000$ with 6 layers.

# %% tags=["nbval-check-output"]
larger = config.replace(vocab_size=5_000, n_layers=6)
for head, wrong in (
    ("lm", 3_440_000), ("classifier", 2_440_400), ("classifier", 2_447_602)
):
    print(textwrap.fill(str(tx.diagnose_count(larger, head, wrong)), 84))

# %% [markdown]
# **A wrong total can point to its mistake**, or to several: attention's four biases and the two norms of a block are both $4 D$. Trust short explanations: the more mistakes are allowed at once, the more numbers can be explained.
#
# ## Further: GPT-2 from five settings
#
# GPT-2's smallest size states five numbers: 50,257 tokens, texts of at most 1,024 tokens, width 768, 12 heads, 12 layers. Five facts are added: $F = 4 D$; positions are learned; linear layers have biases and norms have shifts; the order is pre-norm, so one **final norm** follows the last block; the output layer is tied to the embedding and has no bias. (On the device `meta` tensors have a shape and no memory.)

# %% tags=["nbval-check-output"]
import torch

V2, T2, D2, L2 = 50_257, 1_024, 768, 12
block = 4 * linear(D2, D2) + linear(D2, 4 * D2) + linear(4 * D2, D2) + 2 * norm(D2)
total = V2 * D2 + T2 * D2 + L2 * block + norm(D2)
print(f"{V2 * D2:,} + {T2 * D2:,} + {L2} · {block:,} + {norm(D2):,} = {total:,}")
gpt2_config = tx.TransformerConfig(
    vocab_size=V2, max_len=T2, d_model=D2, n_heads=12, n_layers=L2, d_ff=4 * D2,
    positions="learned", norm="first", tie_embeddings=True, head_bias=False,
)
with torch.device("meta"):
    assert tx.count_parameters(tx.LanguageModel(gpt2_config)) == total == 124_439_808
print("the model has as many")

# %% [markdown]
# The paper says 117 million. Its authors have since called [their counts an error](https://github.com/openai/gpt-2), and name this model by 124 million.
#
# ## Questions

# %%
course.quiz("counting_parameters")

# %% [markdown]
# ## Exercises
#
# [exercise: count_llama]


# %%
def count_llama(vocab_size, d_model, n_layers, d_ff, kv_dim):
    ...


# %%
course.check("count_llama", count_llama)

# %% [markdown]
# ## Further: two more exercises
#
# [exercise: count_language_model]


# %%
def count_language_model(vocab_size, d_model, n_layers, d_ff):
    ...


# %%
course.check("count_language_model", count_language_model)

# %% [markdown]
# [exercise: count_gpt2]


# %%
def count_gpt2(vocab_size, max_len, d_model, n_heads, n_layers):
    ...


# %%
course.check("count_gpt2", count_gpt2)

# %% [markdown]
# ## Further: published models
#
# For a mental estimate: $12 L D^2$ for the blocks and $V D$ for the embedding. The last column is what the paper of each model states.

# %% tags=["nbval-check-output"]
from tinytx_course.labs.lesson_06 import PUBLISHED

print(f"{'':<17}{'exact':>13}{'rule of thumb':>15}{'off by':>9}{'as stated':>11}")
for name, published in PUBLISHED.items():
    if published.family != "mbart":  # which has an encoder and a decoder
        exact, sizes = published.table().total, published.config
        rule = 12 * sizes.n_layers * sizes.d_model**2 + sizes.vocab_size * sizes.d_model
        stated = f"{published.stated:,} M" if published.stated else "-"
        print(f"{name:<17}{exact:>13,}{rule:>15,}{rule / exact - 1:>9.1%}{stated:>11}")
        assert -0.0105 < rule / exact - 1 < 0 and sizes.d_ff == 4 * sizes.d_model

# %% [markdown]
# **For these ten models the rule is low by about one percent or less.** All have $F = 4 D$, and their output layer is tied or not counted. The rule leaves out positions, segments (vectors that mark the first or second text), biases, norms, and BERT's *pooler*, one more linear layer on top of the first token. (BERT: Devlin et al., [arXiv:1810.04805](https://arxiv.org/abs/1810.04805), section 3; GPT-2: Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019, table 2.)
#
# ## Take-home: the closed form
#
# | part | parameters |
# |---|---|
# | embedding | $V D$ |
# | learned positions | $D$ for each; sinusoidal, rotary, ALiBi: none |
# | each of $L$ blocks: attention | $4 (D^2 + D)$ |
# | feed-forward | $D F + F + F D + D$ |
# | two norms | $4 D$ |
# | final norm, if pre-norm | $2 D$ |
# | output layer | $D V + V$; tied and without bias: none |
#
# ## Limits
#
# A count does not say how good a model is.
#
# ## Summary
#
# 1. A linear layer learns $a b + b$.
# 2. The number of heads (at a fixed width), masks and the length of a text cost no parameter; each learned position costs $D$.
# 3. A wrong number can point to its mistake.
# 4. With $F = 4D$ and a tied output layer, embedding and blocks are equal near $D = V / (12 L)$.
#
# *Where this comes from:* Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762); tying: Press and Wolf, [arXiv:1608.05859](https://arxiv.org/abs/1608.05859); Llama: Touvron et al., [arXiv:2302.13971](https://arxiv.org/abs/2302.13971), and of shared keys and values Grattafiori et al., [arXiv:2407.21783](https://arxiv.org/abs/2407.21783), section 3.2.
#
# *What comes next:* in [lesson 07](07_your_own_gpt.ipynb) you build such a model from the functions of lessons 02 to 05.
