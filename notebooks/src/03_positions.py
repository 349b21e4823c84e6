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
# Attention compares vectors and takes means. Neither asks *where* a word is, so the position must be put in. Here you build four ways to do it, and see which of them hold in texts longer than those of training.
#
# After this lesson you can
#
# 1. show that attention with neither positions nor a mask is blind to order, and say what adding 0, 1, 2, … does about it;
# 2. write down the sinusoidal table by hand, and read it as a row of clocks;
# 3. prove that moving on by $k$ words is one fixed rotation, and why it takes sine *and* cosine;
# 4. build rotary positions and the biases of ALiBi by hand, and say what each can know and what it cannot;
# 5. train short, test long, and read off which positions hold.
#
# *You need:* attention, as in [lesson 02](02_attention_and_masks.ipynb), and sine and cosine from school.
# *It takes:* an hour and a quarter, about twice that with everything.

# %% [markdown]
# ## Set-up

# %%
import math
from collections import Counter

import pandas as pd
import seaborn as sns
import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_course.results import read_results
from tinytx_run.recipes import default_budget

smoke = default_budget() == "smoke"  # a few steps only: nothing is learned
_ = torch.set_num_threads(1), torch.manual_seed(0)

# %% [markdown]
# Two questions from earlier lessons, then the first of the four ways.

# %%
course.recall("03")

# %%
plots.diagram("token-plus-position")

# %% [markdown]
# ## Why: two reviews, one bag of words
#
# *The beginning is boring, but the hero is magnificent*: that reader liked the book. Exchange two words, and the other reader did not. The grammar behind the language of the course gives the probability that a review is favourable. (A review has at least two sentences, so we say it twice.) Whatever is computed from the bag of words alone is wrong about one of them. Then a small transformer that classifies texts reads both, untrained and without positions.

# %%
world = tx.World()
liked = world.split("Le début est ennuyeux, mais le héros est magnifique.")
disliked = world.split("Le début est magnifique, mais le héros est ennuyeux.")
for words in (liked, disliked):
    print(f"{world.label_posterior(words + words):6.1%} favourable:", " ".join(words))
bag = Counter(liked)
assert bag == Counter(disliked)
print("one bag:", " ".join(f"{word}×{n}" for word, n in sorted(bag.items())))
vocabulary = sorted(bag)
twins = [[vocabulary.index(word) for word in words] for words in (liked, disliked)]
twins = torch.tensor(twins)  # (2, T)
config = tx.TransformerConfig(
    vocab_size=len(vocabulary), d_model=32, n_heads=4, n_layers=2, d_ff=64,
    causal=False, positions="none",
)
blind = tx.Classifier(config)
scores, hidden = blind(twins), blind.body(twins)  # (2, C), (2, T, D)
torch.testing.assert_close(scores[0], scores[1])
shuffle = torch.randperm(twins.shape[1])
torch.testing.assert_close(blind.body(twins[:, shuffle]), hidden[:, shuffle])
print("same scores for both; hidden states shuffled like the words")
causal = tx.Classifier(config.replace(causal=True))(twins)
assert (causal[0] - causal[1]).abs().max() > 1e-3
print("with a causal mask the scores differ")

# %% [markdown]
# Shuffle the words, and the **hidden states**, the vectors that the model makes of them, are shuffled in the same way: **permutation equivariance**, $f(PX) = P f(X)$. Their mean, which the classifier reads, does not change: the model *is* a bag of words. A causal mask gives order away: the first word sees one word, the second two.
#
# ### A tempting way: add the number of the position
#
# Number the words 0, 1, 2, … and add the number to the word's vector, in the same model with the same weights.

# %%
class RawIndex(nn.Module):
    def forward(self, x):
        positions = torch.arange(x.shape[1], dtype=x.dtype)  # (T,)
        # (B, T, D): word t is moved by t in every dimension
        return x + positions[:, None]


counting = tx.Classifier(config)
counting.load_state_dict(blind.state_dict())
counting.body.pos_embed = RawIndex()

# %% [markdown]
# **Predict 03.1.**

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
largest = (counting(twins) - scores).abs().max()
assert largest < 1e-4
course.resolve(
    "03.1",
    "nothing: all scores stay as they were",
    f"The largest change of a score is {largest:.1g}.",
)

# %% [markdown]
# Each block begins with a **layer norm** (lesson 05): it subtracts from each vector the mean of its numbers, and a constant added to all of them goes with it. In a direction of its own the index would survive, and grow until it drowns the words. Divided by the length of the text it stays small, but then one word further is a step of another size in each text.
#
# What we want: the same vector for a position in every text; no two positions with the same one; small numbers; and **a step of one word that is the same thing everywhere**.
#
# ## By hand: clocks
#
# A clock does all this: its fast hand tells neighbouring moments apart, its slow hand three o'clock from nine. So each **position** gets a few hands of different speeds. Hand $i$ turns by $1 / \text{base}^{2i/d}$ radians per word, noted by sine and cosine:
#
# $$PE(pos, 2i) = \sin\left(\frac{pos}{\text{base}^{2i/d}}\right), \qquad PE(pos, 2i+1) = \cos\left(\frac{pos}{\text{base}^{2i/d}}\right).$$
#
# These are **sinusoidal positions**; $pos$ is counted from 0, and $d$ is the width of the vectors. On paper: four words, width 4 and base 100.

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
# Check the row of *a*, with $pos = 2$. The first hand turns by 1 a word: $\sin(2) = 0.91$, $\cos(2) = -0.42$. The second turns by
# $1/100^{2/4} = 1/10$: $\sin(0.2) = 0.20$, $\cos(0.2) = 0.98$. Two slips are common. The even index is that of a *dimension*, not of a word. And $i$ counts hands, from 0 to $d/2 - 1$: the last speed here is 1/10, not 1/100.
#
# ## All at once
#
# The angles are each position times each speed, an outer product; sine and cosine take turns along the
# columns. (In float64, as only the remainder of a large angle counts.) A model adds row $t$ to the vector of word $t$.

# %%
exponents = -torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
speeds = base**exponents  # (D/2,)
angles = torch.outer(torch.arange(4, dtype=torch.float64), speeds)  # (T, D/2)
table = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)  # (T, D)
torch.testing.assert_close(table, torch.tensor(by_hand, dtype=torch.float64))
torch.testing.assert_close(tx.sinusoidal_positions(4, 4, base=100), table.float())
seeing = tx.Classifier(config.replace(positions="sinusoidal"))
x = torch.randn(2, 11, 32)
added = x + tx.sinusoidal_positions(11, 32)
torch.testing.assert_close(seeing.body.pos_embed(x), added)
assert (seeing(twins)[0] - seeing(twins)[1]).abs().max() > 1e-3
print("by hand = all at once = the package; the two reviews get different scores")

# %% [markdown]
# ## Look
#
# First the clocks: width 8, so four hands, and base 100. Each column is one position.

# %% tags=["folded"]
speeds = 100.0 ** (-torch.arange(0, 8, 2, dtype=torch.float64) / 8)  # (D/2,)
fig, ax = plots.phase_clocks(
    torch.outer(speeds, torch.arange(8, dtype=torch.float64)),
    row_labels=[f"hand {i}\n{speed:.2f} rad" for i, speed in enumerate(speeds)],
    xlabel="position of the word (tokens)", title="Eight positions, four hands",
)
plots.show(fig, name="03_clocks")

# %% [markdown]
# The first hand comes round after six positions and a bit; the slower ones tell position 0 from position 6. Now the table as models use it, with base 10,000, and the similarity of its rows, $PE(p) \cdot PE(q)$.

# %%
table = tx.sinusoidal_positions(50, 32)
alike = table @ table.T / 16  # (T, T); 16 = D/2: 1 on the diagonal
for distance in range(50):
    diagonal = alike.diagonal(distance)
    torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
fig, (left, right) = plots.figure(1, 2, width=10.6, height=4.6)
style = {"vmin": -1, "vmax": 1, "cmap": "RdBu", "yticklabels": 5}
sns.heatmap(table, **style, xticklabels=4, cbar_kws={"label": "value"}, ax=left)
sns.heatmap(alike, **style, xticklabels=5, cbar_kws={"label": "similarity"}, ax=right)
left.set(xlabel="dimension (sine where even)", ylabel="position (tokens)")
right.set(xlabel="position q (tokens)", ylabel="position p (tokens)")
left.set_title("The table")
right.set_title("Similarity of its rows")
plots.show(fig, name="03_sinusoidal_table")

# %% [markdown]
# Every diagonal on the right has one colour: **similarity depends on the distance of two positions alone.**
#
# Choose a position and a hand, then a shift $k$. Then make the base small: all hands come round soon, and similarity says nothing about a large distance.

# %%
course.widgets.positions(121, 64, 100, position=23, hand=4, shift=3)

# %% [markdown]
# ## One step is one rotation
#
# To move on by a word, each hand turns by its own fixed angle, *wherever it is*. To turn by a fixed angle is a linear map. By the addition theorems, for a hand of speed $w$,
#
# $$\begin{pmatrix} \sin((pos+k)\,w) \\ \cos((pos+k)\,w) \end{pmatrix} = \begin{pmatrix} \cos(kw) & \sin(kw) \\ -\sin(kw) & \cos(kw) \end{pmatrix} \begin{pmatrix} \sin(pos\,w) \\ \cos(pos\,w) \end{pmatrix}.$$
#
# Put these matrices along the diagonal of a large one and call it $R(k)$. Then
# $PE(pos + k) = R(k)\, PE(pos)$, and **$pos$ does not occur in $R(k)$**. We take two steps from *am* (position 1) to *Robot* (position 3), and then try every pair of positions up to 512.

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
waves = tx.sinusoidal_positions(512, 64, dtype=torch.float64)
for k in range(512):
    moved = waves[: 512 - k] @ shift(k, 64).T  # (512 - k, D)
    torch.testing.assert_close(moved, waves[k:], rtol=0, atol=1e-9)
three, four, seven = (shift(k, 64) for k in (3, 4, 7))
torch.testing.assert_close((three @ four, three.T), (seven, shift(-3, 64)))
print(f"{512 * 513 // 2:,} pairs of positions, each within a billionth")

# %% [markdown]
# Two shifts add up, and the transpose goes back. Sine alone would not do: at position 0 all sines are 0, and no matrix leads away from zero.
#
# ### Further: a head that attends one back
#
# Let a head multiply its queries by $R(-1)$: each word then asks for the position before
# its own. (Nothing is trained; the factor 16 makes the scores large.)

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
# One matrix is enough for every position: the head attends one back wherever it is.
#
# ## Learned positions
#
# BERT and GPT-2 have **learned positions**, a trained vector for each position. They cost `max_len` × $d$ parameters, where
# the sinusoids cost none, and there is no vector beyond the table.

# %% tags=["nbval-check-output"]
n_params = {}
for kind in ("sinusoidal", "learned"):
    model = tx.Classifier(config.replace(positions=kind, max_len=16))
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
# If a step is a rotation, why not turn the words themselves? **Rotary positions** (RoPE) do that, inside each head: the query of word $t$ is turned by $R(t)$, the key of word $s$ by $R(s)$. Nothing is added, nothing is learned, and values are not turned. The score:
#
# $$\bigl(R(t)\,q\bigr) \cdot \bigl(R(s)\,k\bigr) \;=\; q \cdot R(t)^\top R(s)\, k \;=\; q \cdot R(s-t)\, k.$$
#
# The positions are gone, and their **distance** is left. No matrix need be built:


# %% tags=["nbval-check-output"]
def turn(x, positions, base=10_000):
    """Turn x, (..., T, K), pair by pair: row t by R(positions[t])."""
    width = x.shape[-1]
    speeds = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)  # (K/2,)
    angles = positions[:, None] * speeds  # (T, K/2)
    cos, sin = angles.cos(), angles.sin()
    first, second = x[..., 0::2], x[..., 1::2]  # the two numbers of each pair
    pairs = (cos * first + sin * second, cos * second - sin * first)
    return torch.stack(pairs, dim=-1).flatten(-2)  # (..., T, K/2, 2) -> (..., T, K)


q, k = torch.randn(2, 4, 8, dtype=torch.float64)  # (T, K) each
four_words = torch.arange(4)
scores = turn(q, four_words) @ turn(k, four_words).T  # (T, T)
for t in range(4):
    for s in range(4):
        torch.testing.assert_close(scores[t, s], q[t] @ shift(s - t, 8) @ k[s])
torch.testing.assert_close(turn(q, four_words), tx.rotate(q, four_words))
later = four_words + 1000
torch.testing.assert_close(turn(q, later) @ turn(k, later).T, scores)
print("turned = matrices = tx.rotate; same scores a thousand positions on")

# %% [markdown]
# Scores depend on the distance alone, as the cell checks a thousand positions on.
#
# ## Say only how far: ALiBi
#
# **ALiBi**, attention with linear biases, leaves queries and keys alone, and lowers each score by a slope times the distance:
#
# $$\text{score}(t, s) = \frac{q_t \cdot k_s}{\sqrt{K}} - m_h\,|t - s|.$$
#
# Every head $h$ of $H$ has its own fixed slope, $m_h = 2^{-8h/H}$ for $h = 1, \ldots, H$; with four heads 1/4, 1/16, 1/64 and 1/256.


# %% tags=["nbval-check-output"]
def distance_bias(n_heads, seq_len):
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)  # (H,)
    positions = torch.arange(seq_len)
    distances = (positions[:, None] - positions).abs()  # (T, T)
    return slopes[:, None, None] * -distances  # (H, T, T)


torch.testing.assert_close(distance_bias(4, 5), tx.alibi_bias(4, 5))
for row in distance_bias(4, 5)[0].tolist():  # the first head, five words
    print(*(f"{value:6.2f}" for value in row))
mirrored = tx.Classifier(config.replace(positions="alibi"))
torch.testing.assert_close(mirrored(twins), mirrored(twins.flip(1)))
turning = tx.Classifier(config.replace(positions="rotary"))
assert (turning(twins) - turning(twins.flip(1))).abs().max() > 1e-4
print("forwards and backwards read the same: ALiBi True, rotary False")

# %% [markdown]
# **A distance has no direction**: a model that looks both ways and has nothing but ALiBi cannot tell a text from its mirror image. (Under a causal mask, for which ALiBi was made, no token attends ahead.)
#
# | positions | where they act | learned | what they can tell |
# |---|---|---|---|
# | sinusoidal | added to the words | nothing | the position; a distance by a learned rotation |
# | learned | added to the words | a vector for each position | the position |
# | rotary | turn queries and keys | nothing | the distance and its direction |
# | ALiBi | lower the scores | nothing | how far |
#
# ## Break it: train short, test long
#
# Using a model on texts longer than those of its training is called **extrapolation**. Small causal language models of five kinds were trained on snippets of **16 words** from our reviews: 2,000 steps, five seeds each (stored; the code follows under *Further*). Each must predict the first eight words of 125 new reviews, **the same words every time**, with more and more of *other* reviews before them. The grammar gives the **entropy bound**, the lowest loss that a model can expect. **Predict 03.2.**

# %%
course.predict(
    "03.2", "Whose loss rises least from no word before to 96 words before?",
    ["none", "learned", "sinusoidal", "rotary", "alibi"],
)

# %%
stored = read_results("positions")
readers = [one for one in stored.data.values() if one["task"] == "language"]
losses = {kind: [] for kind in ("none", "learned", "sinusoidal", "rotary", "alibi")}
for one in readers:
    losses[one["kind"]].append(one["losses"])
losses = {kind: torch.tensor(found) for kind, found in losses.items()}  # (seeds, 9)
rises = {kind: found[:, -1] - found[:, 0] for kind, found in losses.items()}
print(f"{'words before':<12}", *(f"{n:>5}" for n in readers[0]["before"]), "  rise")
for kind, found in losses.items():
    mean = (f"{loss:5.2f}" for loss in found.mean(dim=0).tolist())
    low, high = rises[kind].aminmax()
    print(f"{kind:<12}", *mean, f"  {low:.2f} to {high:.2f}")
steadiest = min(rises, key=lambda kind: rises[kind].mean())
rise = rises[steadiest].mean()
course.resolve("03.2", steadiest, f"{steadiest}: worse by {rise:.2f} nats a word.")

# %% [markdown]
# The bands reach from the lowest to the highest seed.

# %% tags=["folded"]
lengths = readers[0]["before"]
lines = [
    plots.Curve(kind, lengths, found.mean(dim=0), *found.aminmax(dim=0))
    for kind, found in losses.items()
]
fig, ax = plots.curves(
    lines, references={"entropy bound": readers[0]["bound"]},
    xlabel="words of other reviews before (tokens)", ylabel="loss (nats per word)",
    title="The same words, ever further back in the text",
)
ax.axvspan(0, 8, color="#eeeeee", zorder=0)
ax.text(4, ax.get_ylim()[1], "trained\nlength", ha="center", va="top", fontsize=9)
plots.show(fig, name="03_train_short_test_long")
mean = {kind: found.mean(dim=0) for kind, found in losses.items()}
best = torch.stack([*mean.values()]).amin(dim=0)  # of all kinds, by length
short, long = lengths.index(8), lengths.index(32)
jump = {kind: loss[long] - loss[short] for kind, loss in mean.items()}
assert (mean["none"] - best)[: short + 1].max() < 0.15
assert min(jump["learned"], jump["sinusoidal"]) > 0.5 > jump["rotary"]
assert rises["rotary"].mean() > rises["learned"].mean() > rises["none"].mean() > 0.3
assert rises["alibi"].max() < 0.15

# %% [markdown]
# Within the trained length **a causal model without positions is nearly as good as the others**, as the mask itself gives order away. Beyond it, learned and sinusoidal positions jump by more than half a nat at once. Rotary positions hold until twice the trained length, and then fail as badly. No positions at all get worse slowly, from the start. One kind holds to the end, ALiBi.
#
# ### Further: how they were trained
#
# Each step takes sixteen snippets, the same for all kinds. `world.automaton.read` returns the exact log-probability of words that open a review.

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

# %%
reader_config = tx.TransformerConfig(
    vocab_size=len(numbers), d_model=32, n_heads=4, n_layers=1, d_ff=64, max_len=112,
    tie_embeddings=True,
)


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


def draw_snippets(generator):
    first = torch.randint(len(train_row) - 16, (16, 1), generator=generator)
    token_ids = train_row[first + torch.arange(17)]  # (16, 17): 16 and the next
    return token_ids[:, :-1], token_ids[:, 1:]


# %% [markdown]
# One model, trained here:

# %%
def train_reader(kind, seed, n_steps):
    torch.manual_seed(seed)
    model = tx.LanguageModel(reader_config.replace(positions=kind))
    snippets = torch.Generator().manual_seed(seed)
    return train(model, lambda: draw_snippets(snippets), 1e-2, n_steps)


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
# ### Further: why some hold
#
# With 96 words before, how much of the attention reaches *further back than 15 words*, where in training there never was a word?

# %%
far = torch.arange(104)[:, None] - torch.arange(104) > 15  # (T, T)


def far_shares(model):  # (H,), of the last eight words
    with torch.no_grad(), tx.record_attention(model) as recorded:
        model(test_row[starts[:50, None] + torch.arange(-96, 8)])
    far_weights = (recorded["body.blocks.0.attn"] * far)[:, :, -8:]  # (B, H, 8, T)
    return far_weights.sum(dim=-1).mean(dim=(0, 2))


evenly = (far[-8:].sum() / tx.causal_mask(104)[-8:].sum()).item()
print(f"{'evenly':<12} {evenly:5.0%}   then each of four heads, as stored")
for kind in losses:
    found = [one["far"] for one in readers if one["kind"] == kind]
    shares = torch.tensor(found).mean(dim=0)  # (H,)
    print(f"{kind:<12}", *(f"{share:5.0%}" for share in shares))
    assert kind == "alibi" or (shares - evenly).abs().max() < 0.15
    assert kind != "rotary" or shares.min() > evenly
assert shares[0] < 0.05 and shares[-1] > evenly - 0.15  # the last row: ALiBi

# %% [markdown]
# Without ALiBi every head gives distant words about the share of a head that attends evenly, or more: in training nothing was ever that far away, so no head learned to ignore it. The shares are measured; the reasons are our best explanation:
#
# - *None*: ninety other words drown the near ones. *Learned*: beyond position 15 the rows are still the noise that they began with.
# - *Sinusoidal*: each new position is a vector that no matrix was trained to read. **That a formula continues does not mean that what was learned does.**
# - *Rotary*: no position is new, but distances are. At a distance of 44 words the first hand has come round to where it was for a near word ($44 \approx 7 \cdot 2\pi$), and the slower ones are at angles never met in training.
# - *ALiBi*: the first head hardly sees beyond fifteen words. For it a long text is a short one.
#
# That is also ALiBi's price: a far word is lowered whatever it says.
#
# ## Further: a game that needs the order
#
# Eight different words are drawn, one of them _mais_ (but). The model must name the word **directly
# before** _mais_. A model of the bag cannot expect more than one in seven.

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
    targets = torch.full_like(token_ids, -100)  # (n, T); -100: no target here
    targets[rows, at] = token_ids[rows, at - 1]
    token_ids[rows, at] = 0  # mais
    return token_ids, targets


token_ids, targets = draw_games(3, 8, torch.Generator().manual_seed(3))
for row, answer in zip(token_ids.tolist(), targets.amax(dim=1).tolist(), strict=True):
    print(" ".join(lexicon[i] for i in row), "->", lexicon[answer])

# %% [markdown]
# Six kinds play, with words before *and* after in sight; *one number* is the index divided by the length, times a learned direction. Each was trained on games of eight words for 1,500 steps from five seeds, and is tested on games of eight words, and of **sixteen**, which no model has met.

# %%
game_config = tx.TransformerConfig(
    vocab_size=21, d_model=32, n_heads=2, n_layers=1, d_ff=32, max_len=16, causal=False
)


class OneNumber(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.direction = nn.Parameter(torch.randn(d_model))

    def forward(self, x):
        # (B, T, D)
        return x + torch.linspace(0, 1, x.shape[1])[:, None] * self.direction


def train_player(kind, seed, n_steps):
    torch.manual_seed(seed)
    added = kind == "one number"
    model = tx.LanguageModel(game_config.replace(positions="none" if added else kind))
    if added:
        model.body.pos_embed = OneNumber(game_config.d_model)
    games = torch.Generator().manual_seed(seed)
    return train(model, lambda: draw_games(64, 8, games), 5e-3, n_steps)


# %% [markdown]
# The stored scores, over two thousand new games:

# %%
def right_answers(model, n_words, n=2000):  # (n,) booleans, and where mais was
    token_ids, targets = draw_games(n, n_words, torch.Generator().manual_seed(99))
    with torch.no_grad():
        guesses = model(token_ids).argmax(dim=-1)  # (n, T)
    return (guesses == targets).any(dim=1).float(), (token_ids == 0).int().argmax(dim=1)


games = pd.DataFrame(one for one in stored.data.values() if one["task"] == "game")
by_kind = games.groupby("kind", sort=False)[["right 8", "right 16"]]
print(by_kind.agg(["mean", "min", "max"]).map("{:.0%}".format))
short, long = (by_kind.mean()[f"right {n_words}"] for n_words in (8, 16))
assert abs(short["none"] - 1 / 7) < 0.03 and 0.4 < short["alibi"] < 0.55
assert short["one number"] > 0.95 and long["one number"] < 0.8
assert short[["sinusoidal", "learned"]].min() > 0.95
assert long[["sinusoidal", "learned"]].max() < 0.6
rotary = games[games["kind"] == "rotary"]
assert (rotary["right 16"] - rotary["right 8"]).abs().max() < 0.05

# %% [markdown]
# Without positions a model stays where the bag must stay. One number solves the game of eight words; with sixteen much is lost, as with sinusoids and learned vectors.
# Rotary positions know distances only, and *one before* is the same distance everywhere: they keep what they learned, with every seed. **Of eight words ALiBi gets about one half right, because it cannot tell before from after**: which of the two neighbours of _mais_ came before, it has to guess.
#
# ## Questions
#
# Pick an answer, and read what it gets back: common mistakes are among the choices.

# %%
course.quiz("positions")

# %% [markdown]
# ## Exercises
#
# The check says where your numbers differ, on the smallest input it could find, and, if it knows the
# mistake, what it is.

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
# [exercise: score_new_token]


# %%
def score_new_token(q, k, turned_keys):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("score_new_token", score_new_token)

# %% [markdown]
# ## Further: two more exercises
#
# First a puzzle: put the lines in order; of two joined by "or", one is wrong.

# %%
course.parsons("rotate")

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
# ## Take-home
#
# The four codes on one screen, in float32, which is enough for short texts.

# %%
def sinusoidal(max_len, d_model, base=10_000):  # (T, D): x + sinusoidal(T, D)
    speeds = base ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(max_len)[:, None] * speeds
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)

learned = nn.Embedding(512, 64)  # x + learned.weight[:T]

def rotary(x, base=10_000):  # (..., T, K): scores = rotary(q) @ rotary(k).T
    speeds = base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = torch.arange(x.shape[-2])[:, None] * speeds
    cos, sin = angles.cos(), angles.sin()
    first, second = x[..., 0::2], x[..., 1::2]
    pairs = (cos * first + sin * second, cos * second - sin * first)
    return torch.stack(pairs, dim=-1).flatten(-2)

def alibi(n_heads, seq_len):  # (H, T, T): scores + alibi(H, T)
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    t = torch.arange(seq_len)
    return slopes[:, None, None] * -(t[:, None] - t).abs()

x = torch.randn(2, 7, 64)
torch.testing.assert_close(sinusoidal(7, 64), tx.sinusoidal_positions(7, 64))
torch.testing.assert_close(rotary(x), tx.rotate(x))
torch.testing.assert_close(alibi(8, 7), tx.alibi_bias(8, 7))
print("each equals the package")

# %% [markdown]
# ## What this does not show
#
# - The models are small and have one block; in deeper or wider ones the order of the curves in the middle may change.
# - Eight words of a review need little of what is far back. **A level curve says that a longer text does no harm, not that it is put to use.**
# - Rotary positions need not stay as they are: with all hands slowed down, and a little more training, models read far longer texts (arXiv:2306.15595).
#
# ## Summary
#
# 1. Attention with neither positions nor a mask is permutation-equivariant. A raw index added to all numbers is wiped off by the norm.
# 2. $PE(pos, 2i) = \sin(pos / \text{base}^{2i/d})$ and $PE(pos, 2i+1) = \cos(\ldots)$ with $i = 0 \ldots d/2 - 1$: a row of clocks, fast hands to the left.
# 3. $PE(pos + k) = R(k) \, PE(pos)$ with one rotation for all positions. It needs the pair of sine and cosine.
# 4. Rotary positions turn queries and keys; the score keeps $R(s-t)$, distance and direction. ALiBi lowers the score by a slope times the distance, and knows no direction.
# 5. Trained short and tested long, learned and sinusoidal positions fail at once and rotary ones later; ALiBi held. In a game that needs *before*, with both sides in sight, it gets no more than about one half.
#
# *Where this comes from:* sinusoids, Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section 3.5 (and table 3, row E); learned positions, Gehring et al.,
# [arXiv:1705.03122](https://arxiv.org/abs/1705.03122), section 3.1; rotary, Su et al., [arXiv:2104.09864](https://arxiv.org/abs/2104.09864), section 3.2; ALiBi, Press et al., [arXiv:2108.12409](https://arxiv.org/abs/2108.12409),
# section 3, and figure 1 for real text; slower hands, Chen et al., [arXiv:2306.15595](https://arxiv.org/abs/2306.15595); causal models without positions, Haviv et al., [arXiv:2203.16634](https://arxiv.org/abs/2203.16634).
#
# *What comes next:* lesson 04 splits attention into many heads.
