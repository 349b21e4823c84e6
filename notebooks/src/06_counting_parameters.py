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
# The picture below is a whole language model, divided in proportion to its parameters. Here you learn to compute each of its areas, and what a wrong total says about the mistake behind it.
#
# After this lesson you can
#
# 1. count the parameters of a transformer on paper, term by term, and check the count against the model itself;
# 2. say what the number of heads, the mask and the length of the text contribute;
# 3. find from a wrong number which mistake is behind it;
# 4. say which part of a model dominates, and at what width that changes;
# 5. count a published model from its settings and a few facts about its architecture.
#
# *You need:* heads, as in [lesson 04](04_many_heads.ipynb), and the block, as in [lesson 05](05_the_block.ipynb).
# *It takes:* three quarters of an hour, pencil in hand.

# %% [markdown]
# ## Set-up

# %%
import itertools
import textwrap

import torch
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_course.labs import lesson_06

# %% [markdown]
# Two questions from earlier lessons, then what is to be counted.

# %%
course.recall("06")

# %%
plots.diagram("parameters")

# %% [markdown]
# ## Why count?
#
# A **parameter** is a number that training may change. How many a model has is what people mean by its size; it decides how much memory the weights take. Counting also checks understanding: a matrix that you forgot shows up in the total.
#
# Our example has $V = 100$ tokens in the vocabulary, width $D = 200$, width $F = 200$ inside the feed-forward network, $L = 4$ blocks (also called layers) and two heads.
#
# **The tempting way.** A transformer is attention, attention is heads, and each head works with $D \times D$ matrices. So a layer learns $\text{heads} \cdot D^2$. Add an embedding, one vector for each token, and as much again for the output. The model itself has the answer.

# %% tags=["nbval-check-output"]
config = tx.PRESETS["seed-lab"]
model = tx.LanguageModel(config)
n_params = sum(parameter.numel() for parameter in model.parameters())
print(f"{n_params:,} parameters")
V, D, F, n_layers, n_heads = 100, 200, 200, 4, 2
tempting = V * D + n_layers * n_heads * D**2 + V * D
print(f"{tempting:,} claimed: {tempting / n_params:.0%} of the real number")

# %% [markdown]
# Whole parts were left out. Which ones, a function will say later from this number alone.
#
# ## By hand
#
# ### A linear layer
#
# Nearly everything in a transformer is a **linear layer**: each output is a weighted sum of all inputs, plus a constant of its own, the **bias**. From 3 inputs to 5 outputs lead $3 \cdot 5$ arrows, and each *output* has a bias.

# %% tags=["nbval-check-output"]
def linear(a, b):
    return a * b + b


assert linear(3, 5) == tx.count_parameters(nn.Linear(3, 5))
print("from 3 to 5:", 3 * 5, "weights and", 5, "biases are", linear(3, 5), "parameters")

# %% [markdown]
# Many models since Llama have no biases: there a linear layer from $a$ to $b$ learns $a \cdot b$.
#
# ### A norm
#
# **Layer normalisation** brings the $D$ numbers of a vector to mean 0 and variance 1, which needs no parameter. Then each number is multiplied by a learned *scale* and moved by a learned *shift*: $2 D$ in all.
#
# ### One layer
#
# Attention has **four** linear layers from $D$ to $D$: queries, keys, values, and the output projection. The feed-forward network has **two**, up to $F$ and back to $D$. Each of these two sublayers has its norm: **two** norms. Do the sums on paper before you read on.

# %% tags=["nbval-check-output"]
def norm(width):
    return 2 * width


assert norm(D) == tx.count_parameters(nn.LayerNorm(D))
attention = 4 * linear(D, D)
feed_forward = linear(D, F) + linear(F, D)
norms = 2 * norm(D)
layer = attention + feed_forward + norms
print(f"{attention:,} + {feed_forward:,} + {norms:,} = {layer:,} in one layer")

# %% [markdown]
# ### The whole model
#
# Below the layers is the **embedding**, one vector of $D$ numbers for each of $V$ tokens: a table, so it has no bias. Above them is the **output layer**, a linear layer from $D$ to $V$ in a language model, and from $D$ to $C$ in a classifier with $C$ classes. Code calls it `head`; it has nothing to do with the heads of attention. Embedding and layers are the **backbone**, `body` in code. Our example is post-norm, so no norm follows the last layer. Equal totals may hide two errors that cancel, so the cell lists every tensor of the first layer and of what is outside the layers: find each of your terms.

# %% tags=["nbval-check-output"]
embedding = V * D
backbone = embedding + n_layers * layer
language_model, classifier = backbone + linear(D, V), backbone + linear(D, 2)
assert language_model == n_params
assert classifier == tx.count_parameters(tx.Classifier(config))
print(f"language model {language_model:,}, classifier {classifier:,}: exact")
for name, parameter in model.named_parameters():
    if "blocks" not in name or "blocks.0." in name:
        print(f"{name:<35}{tuple(parameter.shape)!s:<12}{parameter.numel():>8,}")

# %% [markdown]
# No tensor holds the positions: here they are sines and cosines, computed and not learned.
#
# ## One formula for all sizes
#
# With letters, the count of a language model is
#
# $$V D \;+\; L\,(4 D^2 + 4 D \;+\; 2 D F + F + D \;+\; 4 D) \;+\; D V + V .$$
#
# One agreement can be luck, so we ask for equality at many shapes, unusual ones too.

# %% tags=["nbval-check-output"]
def count_by_formula(V, D, F, L):
    return V * D + L * (4 * D**2 + 4 * D + 2 * D * F + F + D + 4 * D) + D * V + V


shapes = list(itertools.product([2, 11], [6, 10], [1, 5, 24], [1, 3]))
for v, d, f, depth in shapes:
    shape = config.replace(vocab_size=v, d_model=d, d_ff=f, n_layers=depth)
    counted = sum(p.numel() for p in tx.LanguageModel(shape).parameters())
    assert counted == count_by_formula(v, d, f, depth)
print(len(shapes), "shapes, no difference")

# %% [markdown]
# ## The package
#
# `tx.parameter_table` writes such a count out for any configuration, and builds no model for it. PyTorch's own encoder stores queries, keys and values in one matrix of $3 D$ rows; the number is the same.

# %% tags=["nbval-check-output"]
table = tx.parameter_table(config, head="lm")
print(table)
torch_layer = nn.TransformerEncoderLayer(D, n_heads, F, batch_first=True)
assert table.total == n_params
assert n_layers * tx.count_parameters(torch_layer) == table.parts["blocks"]
print("\nequal to the model, and the blocks to four layers of torch")

# %% [markdown]
# ### What does not count
#
# Now one thing is changed at a time. The last change is **tying**: the output layer uses the matrix of the embedding, so both are one and the same.
#
# **Predict 06.1.** What does tying take away from our example?

# %%
course.predict(
    "06.1", "The output layer is tied to the embedding. The total falls by …",
    ["nothing: the matrix is still used", "V D, the matrix of the output layer",
     "V D + V, its matrix and its biases"],
)

# %%
changes = {
    "8 heads instead of 2": {"n_heads": 8},
    "no causal mask": {"causal": False},
    "texts of 4,096 tokens instead of 512": {"max_len": 4_096},
    "learned positions": {"positions": "learned"},
    "learned, 4,096 tokens": {"positions": "learned", "max_len": 4_096},
    "no biases, and no shifts in norms": {"bias": False},
    "output layer tied to the embedding": {"tie_embeddings": True},
}
for name, settings in changes.items():
    added = tx.parameter_table(config.replace(**settings)).total - table.total
    print(f"{name:<38}{added:>+9,}")
assert added == -V * D
found = f"It falls by {-added:,}."
course.resolve("06.1", "V D, the matrix of the output layer", found)

# %% [markdown]
# **Heads, the mask and the length of the text cost no parameter.** Heads share the same four matrices: more heads means narrower ones. A mask is a rule. The same matrices serve at every position; only learned positions cost $D$ numbers each. Tying saves a matrix of $V \times D$; the biases of the output layer remain.
#
# ## Look: where are the parameters?
#
# Attention grows as $4 D^2$; the feed-forward network, usually four times as wide as the model, as $8 D^2$; the embedding only as $V D$. **Predict 06.2** for a vocabulary of 30,000, 6 layers and a tied output layer.

# %%
course.predict(
    "06.2", "The largest part at width 64 and at width 4,096:",
    ["embeddings at both", "embeddings at 64, feed-forward at 4,096",
     "attention at 64, embeddings at 4,096", "feed-forward at both"],
)


# %%
def kinds_at(width):
    shape = {"vocab_size": 30_000, "d_model": width, "d_ff": 4 * width, "n_layers": 6}
    usual = tx.TransformerConfig(**shape, n_heads=1, tie_embeddings=True)
    return tx.parameter_table(usual).kinds


def share_at(width):
    return kinds_at(width)["embeddings"] / sum(kinds_at(width).values())


narrow, wide = kinds_at(64), kinds_at(4_096)
assert max(narrow, key=narrow.get) == "embeddings"
assert max(wide, key=wide.get) == "feed_forward"
found = f"Embeddings hold {share_at(64):.0%} at 64 and {share_at(4_096):.0%} at 4,096."
course.resolve("06.2", "embeddings at 64, feed-forward at 4,096", found)

# %% [markdown]
# In the figure every column is a whole model. Of the tied output layer only the biases count; the norms are too thin to see.

# %%
widths = sorted({2 * round(8 * 2 ** (step / 4)) for step in range(33)})
names = {"embeddings": "embeddings", "attention": "attention",
         "feed_forward": "feed-forward", "head": "output biases", "norms": "norms"}
areas = {names[kind]: [kinds_at(w)[kind] for w in widths] for kind in names}
fig, ax = plots.share_areas(
    widths, areas, x_log=True, title="Where the parameters are, by width",
    xlabel="width D (log scale)", ylabel="share of the parameters (percent)",
)
ax.set_xticks([16, 64, 256, 1024, 4096], ["16", "64", "256", "1,024", "4,096"])
ax.set_xticks([], minor=True)
plots.show(fig, "06_shares_by_width")
equal = next(w for w in range(2, 4_096, 2) if share_at(w) < 0.5)
print(f"embedding below one half from width {equal}; V / (12 L) is {30_000 / 72:.0f}")

# %% [markdown]
# **With these 30,000 tokens and 6 layers a narrow model is mostly embedding; a wide one is attention and feed-forward, one part to two.** In general, with $F = 4D$ and a tied output layer, embedding and blocks are equal at $V D = 12 L D^2$, so near $D = V / (12 L)$.
#
# Now move the controls yourself. First change the length of the text and the number of heads: does the number of parameters move? The cards on what a model computes and stores belong to [lesson 12](12_the_price_of_attention.ipynb).

# %%
course.widgets.count(config)

# %% [markdown]
# ## Break it: from the number to the mistake
#
# `tx.diagnose_count` works backwards. It knows about thirty ways to go wrong, and finds the smallest sets of them that give a number exactly. First the tempting count; then two wrong totals that people arrived at for a larger model, $V = 5{,}000$ with 6 layers; then a number that no known mistake gives.

# %% tags=["nbval-check-output"]
def diagnose(*question):
    print(textwrap.fill(str(tx.diagnose_count(*question)), 84), end="\n\n")


larger = config.replace(vocab_size=5_000, n_layers=6)
diagnose(config, "lm", tempting)
diagnose(larger, "lm", 3_440_000)
diagnose(larger, "classifier", 2_440_400)
diagnose(config, "lm", 1_234_567)

# %% [markdown]
# **A wrong total often points to its mistake.** But a number that can be explained may still have come about in another way.
#
# ## Use it: GPT-2 from five settings
#
# A published model comes with a small file of settings. GPT-2's smallest size states five numbers: 50,257 tokens, texts of at most 1,024 tokens, width 768, 12 heads, 12 layers. Its paper and code add five facts: $F = 4 D$; positions are learned; linear layers have biases and norms have shifts; the order is pre-norm, so one **final norm** follows the last block; the output layer is tied to the embedding and has no bias.
#
# That is enough. On the device `meta` tensors have a shape and no memory, so even a large model can be built for counting.

# %% tags=["nbval-check-output"]
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
# The published weights have 124,439,808 numbers too. The paper (table 2) says 117 million; its authors have since called [their counts an error](https://github.com/openai/gpt-2).
#
# ## Questions

# %%
course.quiz("counting_parameters")

# %% [markdown]
# ## Exercises
#
# If your number is wrong, the check says what was probably forgotten.
#
# [exercise: count_llama]


# %%
def count_llama(vocab_size, d_model, n_layers, d_ff, kv_dim):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("count_llama", count_llama)

# %% [markdown]
# ## Further: two more exercises
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
# [exercise: count_gpt2]


# %%
def count_gpt2(vocab_size, max_len, d_model, n_heads, n_layers):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("count_gpt2", count_gpt2)

# %% [markdown]
# ## Further: find the slip
#
# Two derivations, each with **one** wrong line; later lines carry the wrong value forward correctly. In your own copy replace the dots by the number of the wrong line and by the right result of that line.

# %%
print(lesson_06.DERIVATIONS["A"])
print(lesson_06.check("A", line=..., number=...))
print(lesson_06.DERIVATIONS["B"])
print(lesson_06.check("B", line=..., number=...))

# %% [markdown]
# <details><summary>The slip in A</summary>
#
# Line 2. Attention has four matrices with a bias each, $4 \cdot (8 \cdot 8 + 8) = 288$. The number of heads says into how many parts the matrices are split, not how many there are.
#
# </details>
#
# <details><summary>The slip in B</summary>
#
# Line 4. One norm was counted, but there are two in a layer: $2 \cdot 2 \cdot 6 = 24$.
#
# </details>
#
# ## Further: published models
#
# ### A rule of thumb
#
# For a mental estimate: $12 L D^2$ for the blocks and $V D$ for the embedding. The last column is what the paper of each model states.

# %% tags=["nbval-check-output"]
print(f"{'':<17}{'exact':>13}{'rule of thumb':>15}{'off by':>9}{'as stated':>11}")
for name, published in lesson_06.PUBLISHED.items():
    if published.family not in ("transformer", "mbart", "t5"):  # these have a decoder
        exact, sizes = published.table().total, published.config
        rule = 12 * sizes.n_layers * sizes.d_model**2 + sizes.vocab_size * sizes.d_model
        stated = f"{published.stated:,} M" if published.stated else "-"
        print(f"{name:<17}{exact:>13,}{rule:>15,}{rule / exact - 1:>9.1%}{stated:>11}")
        assert -0.0105 < rule / exact - 1 < 0

# %% [markdown]
# **For these ten models the rule is low by one percent at most.** All have $F = 4 D$, and their output layer is tied or not counted. The rule leaves out positions, segments (vectors that mark the first or second text), biases, norms, and BERT's *pooler*, one more linear layer on top of the first token.

# %%
chosen = [
    "Transformer base", "BERT base", "CamemBERT base", "DistilBERT base", "GPT-2 small",
    "GPT-2 XL", "BARThez", "mBART", "T5 small",
]
counted = {name: lesson_06.PUBLISHED[name].table() for name in chosen}
labels = names | {"head": "pooler"}  # of BERT and its relatives
fig, ax = plots.share_bars(
    {name: {labels[k]: n for k, n in t.kinds.items()} for name, t in counted.items()},
    notes={name: f"{t.total / 1e6:,.0f} M" for name, t in counted.items()},
    xlabel="share of the parameters (percent)", title="Nine published models",
)
plots.show(fig, "06_published_models")
share = {name: t.kinds["embeddings"] / t.total for name, t in counted.items()}
for name in (max(share, key=share.get), min(share, key=share.get)):
    print(f"embeddings of {name}: {share[name]:.0%}")

# %% [markdown]
# mBART pays for a vocabulary of a quarter of a million tokens, made for many languages. GPT-2 XL has the vocabulary of GPT-2 small, but is so wide and deep that the embedding hardly shows.
#
# ## Take-home: the closed form
#
# It counts one stack of blocks with a single attention each: our language model, our classifier, GPT-2. A translator's decoder has a second attention; BERT has segments, an embedding norm and a pooler.


# %%
def count_transformer(
    vocab_size, d_model, n_layers, d_ff, *, n_outputs,
    learned_positions=0, pre_norm=False, tied=False, output_bias=True,
):
    def linear(a, b):
        return a * b + b  # a weight for each pair, a bias for each output

    norm = 2 * d_model  # scale and shift
    embedding = (vocab_size + learned_positions) * d_model  # tables: no bias
    attention = 4 * linear(d_model, d_model)  # query, key, value, output
    feed_forward = linear(d_model, d_ff) + linear(d_ff, d_model)
    block = attention + feed_forward + 2 * norm
    final_norm = norm if pre_norm else 0
    output = 0 if tied else d_model * n_outputs
    output += n_outputs if output_bias else 0
    return embedding + n_layers * block + final_norm + output


as_gpt2 = {"pre_norm": True, "tied": True, "output_bias": False}
gpt2 = {"n_outputs": 50_257, "learned_positions": 1_024, **as_gpt2}
assert count_transformer(100, 200, 4, 200, n_outputs=100) == language_model
assert count_transformer(100, 200, 4, 200, n_outputs=2) == classifier
assert count_transformer(50_257, 768, 12, 3_072, **gpt2) == total
print("language model, classifier and GPT-2: exact")

# %% [markdown]
# ## Limits
#
# A count says nothing about quality, and little about speed: attention's work grows with the square of a text's length, which is in no parameter formula. Nor is it the memory of training: gradients, the optimizer's averages and intermediate results come on top.
#
# ## Summary
#
# 1. A linear layer learns $a b + b$, or $a b$ without bias; a norm $2 D$. A block has four linear layers in attention, two in the feed-forward network, and two norms. Check with `named_parameters`.
# 2. Heads, masks and the length of a text cost no parameter; learned positions cost $D$ each.
# 3. A wrong number often points to its mistake. There may be two explanations, or none.
# 4. With $F = 4D$, embeddings dominate below a width of about $V / (12 L)$ (tied); above it attention and feed-forward do, as one to two.
# 5. GPT-2 is counted from five settings and five facts about its architecture.
#
# *Where this comes from:* Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), sections 3.1 to 3.4; tying: Press and Wolf, [arXiv:1608.05859](https://arxiv.org/abs/1608.05859); Llama: Touvron et al., [arXiv:2302.13971](https://arxiv.org/abs/2302.13971), section 2.2 and table 2 ($V$ and $F$ from its published settings);
# BERT: Devlin et al., [arXiv:1810.04805](https://arxiv.org/abs/1810.04805), section 3; CamemBERT: Martin et al., [arXiv:1911.03894](https://arxiv.org/abs/1911.03894); BARThez: Kamal Eddine et al., [arXiv:2010.12321](https://arxiv.org/abs/2010.12321);
# mBART: Liu et al., [arXiv:2001.08210](https://arxiv.org/abs/2001.08210); GPT-2: Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019, table 2; T5: Raffel et al., [arXiv:1910.10683](https://arxiv.org/abs/1910.10683).
#
# *What comes next:* in [lesson 07](07_your_own_gpt.ipynb) you build such a model, without biases, from functions that you wrote, and train it.
