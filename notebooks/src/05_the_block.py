# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 05 · The block
#
# **What holds a deep network together?**
#
# After this lesson you can
#
# 1. build a transformer block from attention in five steps, and say of each part what breaks without it;
# 2. measure a signal going up through a stack and a gradient coming down, and read such a map;
# 3. compute layer normalisation by hand, and tell *norm last* from *norm first* by their maps;
# 4. say what warm-up is for, which of the two orders needs it, and show it;
# 5. switch dropout on and off, and say what it did for a model with few examples, and what it did not.
#
# *You need:* attention and heads, as in [lesson 02](02_attention_and_masks.ipynb), and positions, as in [lesson 03](03_positions.ipynb).
# *It takes:* fifty minutes to read; half a minute to run, with or without a GPU.

# %% [markdown]
# ## Set-up
#
# Every model of this lesson is 32 numbers wide. Such small matrices want one thread; several would wait for each other. The budget `smoke` cuts each training to a
# few steps: everything runs then, but nothing is learned, and the sentences below that speak of learning do not fit.

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx.model.transformer import Block, record_hidden_states
from tinytx.training.recipes import default_budget
from tinytx_course import plots
from tinytx_course.labs.lesson_05 import signals, size_of, variety_of, weight_gradients

torch.set_num_threads(1)
smoke = default_budget() == "smoke"

# %% [markdown]
# ## Why: deeper is worse
#
# A task for the whole lesson: read eight digits, write them down **sorted**. Place 0 has to name the smallest, place 7 the largest. So every place has to look at all the others, and
# each has another answer to give.

# %%
N_DIGITS, SEQ_LEN = 7, 8


def draw_rows(n_rows=16):
    return torch.randint(N_DIGITS, (n_rows, SEQ_LEN))  # (B, T)


example = torch.tensor([[5, 0, 3, 3, 6, 1, 0, 5]])
print("reads ", example[0].tolist())
print("writes", example.sort(dim=-1).values[0].tolist())
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# "Attention is all you need", says the title of the paper. Let us take it at its word, the **first version of our class**: attention and nothing else. A `stack` puts $L$ of them on
# top of each other. It starts all weights so that a linear map neither enlarges nor shrinks what it is given, on average (Glorot's way): whatever gets lost below, it is not lost for
# want of weights of the right size.


# %%
class AttentionAlone(nn.Module):
    def __init__(self, d_model=32, n_heads=4):
        super().__init__()
        self.attn = tx.MultiHeadAttention(d_model=d_model, n_heads=n_heads)

    def forward(self, x):
        return self.attn(x)  # (B, T, D) -> (B, T, D)


def stack(make_block, n_layers, seed=0):
    torch.manual_seed(seed)
    blocks = nn.Sequential(*(make_block() for _ in range(n_layers)))
    for module in blocks.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
    return blocks


# %% [markdown]
# Around the stack goes the least that makes a model: an embedding and positions below, a linear map to seven scores above. (`final_norm` is for later.) The *loss* is the usual one, in nats per
# digit.


# %%
class Sorter(nn.Module):
    def __init__(self, blocks, final_norm=False):
        super().__init__()
        self.embed = nn.Embedding(N_DIGITS, 32)
        self.register_buffer("places", tx.sinusoidal_positions(SEQ_LEN, 32))
        self.blocks = blocks
        self.norm = nn.LayerNorm(32) if final_norm else nn.Identity()
        self.head = nn.Linear(32, N_DIGITS)

    def forward(self, rows):
        x = self.embed(rows) + self.places  # (B, T, D)
        return self.head(self.norm(self.blocks(x)))  # (B, T, V)


def sort_loss(model, rows):
    sorted_rows = rows.sort(dim=-1).values
    return F.cross_entropy(model(rows).flatten(0, 1), sorted_rows.flatten())


# %% [markdown]
# Training is Adam: draw a batch, take the loss, take a step. Each task brings its own `draw` and `loss_of`. The learning rate is `lr`, but in the first `warmup_steps` it rises to that in a straight line; for now there are none. `watch` may look at
# the model after each step.


# %%
def train(
    model, n_steps, draw=draw_rows, loss_of=sort_loss, *, lr=6e-3, warmup_steps=0, watch=None
):
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    losses = []
    for step in range(1, n_steps + 1):
        optimizer.param_groups[0]["lr"] = lr * min(1, step / max(1, warmup_steps))
        loss = loss_of(model, draw())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if watch:
            watch(step, model)
    return losses


# %% [markdown]
# Now one, two, four and eight layers of attention, two seeds each. More layers have more weights, and could at the worst leave the digits as they are. Which depth do you
# expect to sort best? (Losses are means over ten steps here, and the band in the picture goes from the lower seed to the higher.)

# %%
n_steps = 20 if smoke else 100
lines = []
for depth in (1, 2, 4, 8):
    models = [Sorter(stack(AttentionAlone, depth, seed)) for seed in range(2)]
    runs = [train(model, n_steps) for model in models]
    lines.append(plots.seed_band(f"{depth} layer" + "s" * (depth > 1), runs, every=10))
    print(f"{lines[-1].label:<10}loss at the end {lines[-1].y[-1]:.2f}")

# %% [markdown]
# The deeper, the worse! And the deepest did learn *something*: it began at $\ln 7 = 1.95$, the loss of a blind guess, and came down. To see what it learned, think of a model that knows
# which digits are in the row, but at no place knows *where it is*. It can only answer with the row's own mixture, everywhere the same. The best loss of such a model is the mean entropy of
# that mixture, which we can compute: each digit occurs $k$ times in eight draws with a binomial probability.

# %%
mixture = 0.0
for k in range(1, SEQ_LEN + 1):
    p_k = math.comb(SEQ_LEN, k) * 6 ** (SEQ_LEN - k) / 7**SEQ_LEN  # a digit occurs k times
    mixture -= N_DIGITS * p_k * k / SEQ_LEN * math.log(k / SEQ_LEN)
print(f"all places alike: {mixture:.3f} nats per digit, a blind guess: {math.log(7):.3f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Where do the four stacks end, seen from this line? With a model that knows its places there is no such limit.

# %%
fig, ax = plots.figure(width=6.8, height=3.5)
plots.curves(
    lines, xlabel="training step", ylabel="loss (nats per digit)", y_range=(0, 2.1),
    references={"a blind guess": math.log(7), "all places alike": mixture},
    title="Attention alone: the deeper, the worse", ax=ax,
)  # fmt: skip
plots.show(fig, name="05_deeper_is_worse", alt="""
    Loss against training step for stacks of attention alone with 1, 2, 4 and 8 layers.
    One layer falls farthest; each deeper stack ends higher, and four and eight layers stay
    above the dashed line of a model for which all places are alike.""")

# %% [markdown]
# Four and eight layers stop just above it. They behave like a model for which **all places are alike**. Is it that the training is bad at finding the weights, or is
# something wrong before any training? We look at the numbers that pass through the stack.
#
# ## By hand: what a mean does
#
# Attention gives each token a weighted mean. Take three tokens with one number each, 6, 0 and 3, and let every token look half at itself and a quarter at each of the two others. The
# first becomes $\frac12 \cdot 6 + \frac14 \cdot 0 + \frac14 \cdot 3 = 3.75$. Do it four times. Then do it again, but *add* the mean to the token instead of
# replacing the token by it. What happens to the differences, and what to the size?

# %%
def look_around(tokens):
    return [0.5 * own + 0.25 * (sum(tokens) - own) for own in tokens]


replaced, added = [6.0, 0.0, 3.0], [6.0, 0.0, 3.0]
for layer in range(1, 5):
    replaced = look_around(replaced)
    added = [own + mean for own, mean in zip(added, look_around(added), strict=True)]
    print(f"layer {layer}   replaced", *(f"{v:6.3f}" for v in replaced), end="     ")
    print("added", *(f"{v:7.2f}" for v in added))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Replaced, the three soon are one: each layer leaves a quarter of every difference, and what does not differ stays. Added, the differences live, they even grow by a quarter a layer. But
# their mean doubles each time: 3, 6, 12, 24, 48. One evil for another. These are the two numbers to watch, for real stacks:
#
# $$\text{size}(x) = \sqrt{\operatorname{mean}(x^2)}, \qquad \text{variety}(x) = \frac{\text{size}(x - \text{mean token})}{\text{size}(x)} .$$
#
# Variety is the share of the signal that tells tokens apart, from 0 (all alike) to 1. `tinytx_course.labs.lesson_05` has both.

# %%
def size_by_loops(tokens):
    values = [v for token in tokens for v in token]
    return math.sqrt(sum(v * v for v in values) / len(values))


tokens = torch.tensor([[6.0, 1.0], [0.0, 1.0], [3.0, 4.0]])  # (T, D)
apart = [[6 - 3, 1 - 2], [0 - 3, 1 - 2], [3 - 3, 4 - 2]]  # the mean token is (3, 2)
assert math.isclose(size_by_loops(tokens.tolist()), size_of(tokens), rel_tol=1e-6)
share = size_by_loops(apart) / size_by_loops(tokens.tolist())
assert math.isclose(share, variety_of(tokens), rel_tol=1e-6)
print(f"size {size_of(tokens):.3f}, variety {variety_of(tokens):.3f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Step 1, measured: attention alone
#
# `signals(blocks, x)` sends tokens up through a stack and takes both numbers at every level. Then it sends a random gradient of size 1 from the top down, and takes its size as well. We do that, before any training, with five stacks, of 2 to 32 layers; what
# goes in is eight random texts of sixteen tokens. In 64-bit numbers, as tokens may become alike to many digits.

# %%
DEPTHS = (2, 4, 8, 16, 32)
_ = torch.manual_seed(1)
x = torch.randn(8, 16, 32, dtype=torch.float64)  # (B, T, D)


def measure(make_block):
    return {depth: signals(stack(make_block, depth).double(), x) for depth in DEPTHS}


def column(seen, quantity):
    return {name: getattr(levels, quantity) for name, levels in seen.items()}


alone = measure(AttentionAlone)

# %% [markdown]
# A second function, `weight_gradients`, asks what arrives at one matrix of each block. We choose the matrix that makes queries: it learns *who looks at whom*.
#
# In the maps each stack is a row of cells, from the input at the left to the top at the right. Above, yellow is full variety. How many layers will it take to lose, say, nine
# tenths of it? By hand it was a factor of four a layer. Below, white means "as large as what was sent", and blue less.

# %%
at_queries = {}
for depth in DEPTHS:
    blocks = stack(AttentionAlone, depth).double()
    at_queries[depth] = weight_gradients(blocks, x, "attn.q_proj.weight")
fig, axes = plots.figure(2, 1, width=8.4, height=4.6)
plots.depth_map(
    column(alone, "variety"), low=1e-8, high=1, bar_label="variety", ax=axes[0],
    title="What tells tokens apart", xlabel="level (0 = what comes in)",
)  # fmt: skip
plots.depth_map(
    at_queries, low=1e-8, high=1e1, bar_label="gradient size", ax=axes[1],
    title="Gradient at the query weights", xlabel="layer (0 = the lowest)",
)  # fmt: skip
fig.supylabel("layers in the stack")
plots.show(fig, name="05_attention_alone", alt="""
    Two maps of cells, one row for each depth from 2 to 32 layers. Variety starts yellow and
    is dark from level 4 on, in every row. The gradient at the query weights is near white in
    the lowest two layers and deep blue, below a hundred-millionth, from the fourth on.""")

# %% [markdown]
# Dark after four levels or so, whatever the depth. From there upwards there are no sixteen tokens any more, just one vector, sixteen times; and training will hardly undo it, for the lower map shows what
# the query weights receive: next to nothing. Where all tokens are alike it does not matter who looks at whom, so nothing is to be learned about it.
#
# The fall is even faster than by hand. There, each layer kept a fixed share. Here, the more alike the tokens are, the more evenly they look around, and the more alike the next layer makes them. Count the
# zeros after the point:

# %%
for level, variety in enumerate(alone[8].variety[:7]):
    print(f"level {level}: variety {variety:.1e}   = 1 / 10^{-math.log10(variety):.1f}")

# %% [markdown]
# The *exponent* grows by a factor of about three with each level, until some sixteen zeros, where 64-bit numbers end. Dong, Cordonnier and Loukas ([arXiv:2103.03404](https://arxiv.org/abs/2103.03404), section 2) proved a bound of just this kind, with a cube in each
# layer: pure attention loses its rank *doubly exponentially* with depth. Attention is not all you need.
#
# ## Step 2: a way past, the residual connection
#
# The cure is one `x +`. A block no longer *replaces* what comes in; it adds a change to it:
#
# $$x_{l+1} = x_l + \text{attn}(x_l).$$
#
# The idea is from networks for images (He et al., [arXiv:1512.03385](https://arxiv.org/abs/1512.03385)). The class inherits everything, and one line differs.


# %%
class WithResidual(AttentionAlone):
    def forward(self, x):
        return x + self.attn(x)  # (B, T, D)


# %% [markdown]
# It works both ways. Upwards, each token's own vector arrives at the top unchanged, among other things. Downwards, the derivative of $x + f(x)$ is $1 + f'(x)$: a gradient always has the straight way. By hand
# we saw the price. So predict both maps: which way will the colours run, and how far is it from 2 layers to 32? (White is 1, red larger, blue smaller.)

# %%
residual = measure(WithResidual)
fig, axes = plots.figure(2, 1, width=8.4, height=4.6)
titles = {
    "size": "The signal, going up",
    "gradient": "The gradient, coming down (from the right)",
}
for (quantity, title), panel in zip(titles.items(), axes, strict=True):
    rows = column(residual, quantity)
    plots.depth_map(rows, low=1e-1, high=1e8, bar_label="size", title=title, ax=panel)
axes[1].set_xlabel("level (0 = what comes in)")
fig.supylabel("layers in the stack")
plots.show(fig, name="05_with_residual", alt="""
    Two maps by depth and level. The signal grows from white on the left to red on the right,
    by four powers of ten at 32 layers. The gradient grows from white on the right to darkest
    red on the left, by about eight powers of ten; stacks of 2 and 4 layers stay pale.""")

# %% [markdown]
# What was all alike is all too large now. The signal grows by a factor in each layer, so exponentially with depth. The gradient does the same on its way down, and worse, because with large queries and
# keys softmax becomes a switch. A step that is right for one layer is absurd for another. There is a cheap test that shows it, before any training: an untrained model should know nothing, and its *first
# loss* be near $\ln 7 = 1.95$.

# %%
@torch.no_grad()
def first_loss(make_block, n_layers):
    return sort_loss(Sorter(stack(make_block, n_layers)), draw_rows(200)).item()


print(f"{'layers':<16}", *(f"{depth:>9}" for depth in DEPTHS))
for name, make in {"attention alone": AttentionAlone, "with residual": WithResidual}.items():
    print(f"{name:<16}", *(f"{first_loss(make, depth):>9.2f}" for depth in DEPTHS))

# %% [markdown]
# With 2 or 4 layers one might not notice. With 32 the model is wrong with total conviction, before it has seen a single example.
#
# ## Step 3: a fixed size, layer normalisation
#
# If size is the trouble, set it. **Layer normalisation** (Ba, Kiros and Hinton, [arXiv:1607.06450](https://arxiv.org/abs/1607.06450)) takes *one token*, subtracts the mean of its $D$ numbers and divides by their standard deviation;
# then come a learned factor $\gamma$ and a learned shift $\beta$ for each of the $D$ numbers, 1 and 0 at the start:
#
# $$\text{norm}(x) = \gamma \cdot \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta, \qquad \mu = \tfrac1D \sum_i x_i, \quad \sigma^2 = \tfrac1D \sum_i (x_i - \mu)^2 .$$
#
# Take the token (1, 3, 5, 7). Its mean is 4, its deviations are −3, −1, 1, 3, their squares have the mean 5. So it becomes $(-3, -1, 1, 3) / \sqrt5$. Loop, matrix form and torch:

# %%
def norm_by_loops(token, eps=1e-5):
    mean = sum(token) / len(token)
    variance = sum((v - mean) ** 2 for v in token) / len(token)
    return [(v - mean) / math.sqrt(variance + eps) for v in token]


def norm_at_once(x, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)  # (..., D)
    return centred / (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt()


print([round(v, 3) for v in norm_by_loops([1, 3, 5, 7])], f" 3/√5 = {3 / math.sqrt(5):.3f}")
looped = [[norm_by_loops(token) for token in row] for row in x.tolist()]
normed = norm_at_once(x)
torch.testing.assert_close(normed, torch.tensor(looped, dtype=torch.float64))
torch.testing.assert_close(normed, F.layer_norm(x, (32,)))
torch.testing.assert_close(norm_at_once(100 * x + 7), normed, rtol=1e-4, atol=1e-4)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The last line says what it is good for: a hundred times larger, and seven added, makes no difference. Note along which axis this goes: the numbers *of one token*. Neither the other tokens nor the other rows of the
# batch play a part, so nothing leaks, and a text alone gives the same as in a batch.
#
# Where to put it? The paper has it **last**, on the sum. A later variant puts it **first**, on what attention reads, and leaves the straight way free. One line each:


# %%
class NormLast(WithResidual):
    def __init__(self, d_model=32, n_heads=4):
        super().__init__(d_model, n_heads)
        self.attn_norm = nn.LayerNorm(d_model)

    def forward(self, x):
        return self.attn_norm(x + self.attn(x))  # (B, T, D)


class NormFirst(NormLast):
    def forward(self, x):
        return x + self.attn(self.attn_norm(x))  # (B, T, D)


# %% [markdown]
# Two lines that differ in the place of a bracket. Norm last sets the size to 1 at every level, that much is sure; norm first does not. So norm last should win? The left column belongs to norm last, the right to norm first; above what
# tells tokens apart, below the gradient. Look for the darkest cells.

# %%
measured = {"Norm last": measure(NormLast), "Norm first": measure(NormFirst)}
fig, axes = plots.figure(2, 2, width=9.4, height=4.4)
scales = {"variety": (1e-4, 1), "gradient": (1e-1, 1e1)}
for (name, seen), panels in zip(measured.items(), axes.T, strict=True):
    for (quantity, (low, high)), panel in zip(scales.items(), panels, strict=True):
        rows, title = column(seen, quantity), f"{name}: {quantity}"
        plots.depth_map(rows, low=low, high=high, bar_label=quantity, title=title, ax=panel)
    panel.set_xlabel("level (0 = what comes in)")
fig.supylabel("layers in the stack")
plots.show(fig, name="05_norm_last_and_first", alt="""
    Four maps by depth and level. Variety: with norm last it fades to dark in deep stacks,
    below a thousandth at level 32; with norm first it stays yellow to green. Gradient: within
    a factor of ten of 1 in both; with norm last it is smallest in the middle levels, with
    norm first it grows towards the bottom.""")

# %% [markdown]
# Both gradients now stay within a power of ten or so: no explosion, at any depth. But look at the variety. With norm last it goes on fading, slower than without residual, but surely: each norm on the
# sum *shrinks the straight way* too, by about $\sqrt2$ when both parts are equally large; after thirty of them nothing is left of what came in. With norm first nothing ever touches it. The stream grows, layer by layer, but
# gently:

# %%
shown = (0, *DEPTHS[:-1], 31)
print("level           ", *(f"{level:>6}" for level in shown))
for name, seen in measured.items():
    print(f"{name:<12}size", *(f"{seen[32].size[level]:>6.2f}" for level in shown))
config = tx.TransformerConfig(vocab_size=7, d_model=32, n_heads=4, n_layers=32, d_ff=64)
body = tx.Transformer(config)
with record_hidden_states(body) as hidden:
    body(draw_rows(8))
sizes = [size_of(hidden[level]) / size_of(hidden[0]) for level in shown]
print("tx body     size", *(f"{size:>6.2f}" for size in sizes))

# %% [markdown]
# The third line is the package's own body, complete with feed-forward. Its norm-first blocks start with smaller output maps, by $\sqrt{2L}$ (GPT-2's way), so that the stream hardly grows at all.
#
# One thing to remember: with norm first, what comes out at the top has passed no norm yet. So *one* more stands at the very end, the **final norm**, and only with norm first.
#
# ## Step 4: something to think with, the feed-forward network
#
# What can such a block compute? Give it a text of *one token*. Softmax over one key is 1, whatever the score, so the token receives its own value: a matrix times $x$. With the residual, still a matrix times $x$. A stack of any depth is then
# one straight line, for which $f(a + b) + f(0) = f(a) + f(b)$, and norms bend it only a little. To *think* about a token, something else is needed:
#
# $$\text{ff}(x) = \max(0,\; x W_{\text{up}} + b_{\text{up}})\, W_{\text{down}} + b_{\text{down}},$$
#
# the same for every token, from $D$ numbers up to $F$ and back (Vaswani et al., section 3.3).

# %%
class FeedForward(nn.Module):
    def __init__(self, d_model=32, d_ff=64):
        super().__init__()
        self.up_proj = nn.Linear(d_model, d_ff)
        self.down_proj = nn.Linear(d_ff, d_model)

    def forward(self, x):
        hidden = self.up_proj(x).relu()  # (B, T, D) -> (B, T, F)
        return self.down_proj(hidden)  # (B, T, D)


a, b = x[:, :1], x[:, 1:2]  # texts of one token
for name, f in {
    "32 layers of attention": stack(WithResidual, 32).double(),
    "1 feed-forward network": stack(FeedForward, 1).double(),
}.items():
    bent = size_of(f(a + b) + f(0 * a) - f(a) - f(b)) / size_of(f(a))
    print(f"{name}: a straight line, {bent < 1e-9}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The complete block has two sublayers, attention *between* tokens and feed-forward *on* each, and each of them has its own residual and its **own norm**. Both orders fit in one small method.


# %%
class WithFeedForward(NormLast):
    def __init__(self, d_model=32, n_heads=4, d_ff=64, norm="first"):
        super().__init__(d_model, n_heads)
        self.ff_norm = nn.LayerNorm(d_model)
        self.ff = FeedForward(d_model, d_ff)
        self.norm_first = norm == "first"

    def add(self, x, norm, sublayer):
        return x + sublayer(norm(x)) if self.norm_first else norm(x + sublayer(x))

    def forward(self, x):
        x = self.add(x, self.attn_norm, self.attn)  # (B, T, D)
        return self.add(x, self.ff_norm, self.ff)  # (B, T, D)


# %% [markdown]
# What is it worth? A task for one token: a point of the plane, and the colour of the checkerboard under it. Four blocks of attention have about as many weights as two with feed-forward (it is $2 \cdot 32 \cdot 64$ weights, attention $4 \cdot 32^2$,
# the same), so the comparison is fair. What will the *straight* model make of a checkerboard? And the one with norms?

# %%
def draw_points(n=128):
    return 2.4 * torch.rand(n, 1, 2) - 1.2  # (B, T = 1, 2)


def board(points):
    fields = ((points + 1.2) / 0.8).floor()  # three by three
    return fields.sum(dim=-1).long() % 2  # (B, T)


def board_loss(model, points):
    return F.cross_entropy(model(points).flatten(0, 1), board(points).flatten())


# %% [markdown]
# Three models: attention with the residual, the same with norm first, and the complete block. Two seeds each, and the share of 4,000 fresh points that each gets right.

# %%
thinkers = {
    "attention": (WithResidual, 4, nn.Identity),
    "+ norm": (NormFirst, 4, nn.LayerNorm),
    "+ feed-forward": (WithFeedForward, 2, nn.LayerNorm),
}
painters, points = {}, draw_points(4000)
for name, (make, depth, norm) in thinkers.items():
    print(f"{name:<16}", end="")
    for seed in range(2):
        blocks = stack(make, depth, seed)
        model = nn.Sequential(nn.Linear(2, 32), blocks, norm(32), nn.Linear(32, 2))
        train(model, 20 if smoke else 200, draw_points, board_loss, lr=3e-3)
        right = (model(points).argmax(dim=-1) == board(points)).float().mean()
        print(f"{right:.2f} right", end="   ")
    painters[name] = model
    print(f"{tx.count_parameters(model):,} parameters")

# %% [markdown]
# Half is what a coin gets. The picture shows the plane as the last model of each kind sees it, beside the board itself: the darker, the more surely blue. What can the first one have painted, if all it has is a straight line?

# %%
ticks = torch.linspace(-1.19, 1.19, 42)
plane = torch.cartesian_prod(ticks.flip(0), ticks).flip(-1)[:, None]  # (B, 1, 2)
views = {"the board": board(plane)}
for name, model in painters.items():
    views[name] = model(plane).softmax(dim=-1)[..., 1].detach()
fig, axes = plots.figure(1, 4, width=9.8, height=2.8)
for (name, view), panel in zip(views.items(), axes, strict=True):
    plots.heatmap(view.reshape(42, 42), low=0, high=1, title=name, ax=panel)
    panel.set(aspect="equal", xticks=[], yticks=[], xlabel="first number")
    panel.collections[0].set_rasterized(True)  # lines would make a large file
axes[0].set_ylabel("second number")
plots.show(fig, name="05_thinking_about_one_token", alt="""
    Four square panels. The board: three by three fields, alternately white and blue.
    Attention: an even pale blue, without any field. With norm: a few bent regions that
    only partly fit. With feed-forward: the nine fields are clearly there.""")

# %% [markdown]
# A straight line can cut the plane in two, which is no help with a checkerboard; so the first model paints everything the same pale blue, "four fields of nine". The norm is a curve of a kind, and gets some of the way. With the feed-forward network the nine fields appear.
#
# ### A slip: one norm instead of two
#
# Reports often have "a norm" per block, in the drawing as in the count. Does it matter? Two sublayers write into the stream; with one norm, one of them works on what no norm has touched. We leave out the second,
# in both orders, and put everything we have built on one page: 32 layers each, one row a version. Above the size, then the variety, then the gradient coming down from the right. Which rows would you build a deep network of?

# %%
class OneNorm(WithFeedForward):
    """A slip: feed-forward (norm first) or attention (norm last) goes without its norm."""

    def forward(self, x):
        if self.norm_first:
            x = x + self.attn(self.attn_norm(x))
            return x + self.ff(x)
        x = x + self.attn(x)
        return self.ff_norm(x + self.ff(x))


versions = {
    "attention alone": AttentionAlone,
    "+ residual": WithResidual,
    "+ norm last": NormLast,
    "+ norm first": NormFirst,
    "block, norm last": lambda: WithFeedForward(norm="last"),
    "block, norm first": WithFeedForward,
    "one norm, last": lambda: OneNorm(norm="last"),
    "one norm, first": OneNorm,
}
gallery = {name: signals(stack(make, 32).double(), x) for name, make in versions.items()}

# %% [markdown]
# Same input, same random gradient, same way of drawing the weights. An arrow at the end of a colour bar says that some cells lie beyond it: the gradient of the second row, for one, goes far off the scale.

# %%
fig, axes = plots.figure(3, 1, width=8.2, height=7.0)
scales = {"size": (1e-1, 1e4), "variety": (1e-5, 1), "gradient": (1e-1, 1e4)}
for (quantity, (low, high)), panel in zip(scales.items(), axes, strict=True):
    rows, title = column(gallery, quantity), quantity.capitalize()
    plots.depth_map(rows, low=low, high=high, bar_label=quantity, title=title, ax=panel)
axes[-1].set_xlabel("level (0 = what comes in)")
plots.show(fig, name="05_all_versions", alt="""
    Three maps of eight rows and 33 levels: size, variety, gradient. Attention alone is
    dark in variety; residual alone is red in size and darkest in gradient; norm last is
    white in size but darkens in variety; both rows with norm first are pale in size and
    gradient and yellow in variety; one norm, first, is redder than the whole block.""")

# %% [markdown]
# The two rows with norm first are the calm ones in all three maps, and the complete block keeps even more variety than the one without feed-forward. With the second norm missing, norm first grows a good deal larger, in both directions: the feed-forward network answers a large token with a large change,
# and no norm holds it back. With norm *last* the slip hardly shows at the start, as the norm at the end of the block catches both; a picture does not betray every mistake. A count does:

# %%
def in_norms(block):
    norms = (module for module in block.modules() if isinstance(module, nn.LayerNorm))
    return sum(tx.count_parameters(norm) for norm in norms)


lab_block = tx.LanguageModel(tx.PRESETS["seed-lab"]).body.blocks[0]
print(f"our block, width 32:       {in_norms(WithFeedForward())} in two norms, not 64")
print(f"the lab's block, width 200: {in_norms(lab_block)}, not 400")
slip, right = gallery["one norm, first"], gallery["block, norm first"]
assert slip.size[-1] > 5 * right.size[-1] and slip.gradient[0] > 5 * right.gradient[0]
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Use it: train both orders, with warm-up and without
#
# **Warm-up** means: start with a tiny learning rate and raise it in a straight line to the full one. The paper does so for 4,000 steps (section 5.3), we for 30 of our 100. Xiong et al.
# ([arXiv:2002.04745](https://arxiv.org/abs/2002.04745)) found in their experiments that a stack with norm last needs it, and one with norm first does not. Their reason is the gradient at the *top* feed-forward network of an untrained stack. They bound it (theorem 1): with norm last the bound does not get smaller with
# depth; with norm first it shrinks as $1/\sqrt L$. Let us see what ours do, with the loss of the sorting task.

# %%
def top_gradient(norm, n_layers):
    sizes = []
    for seed in range(6):
        blocks = stack(lambda: WithFeedForward(norm=norm), n_layers, seed)
        model = Sorter(blocks, final_norm=norm == "first")
        sort_loss(model, draw_rows(64)).backward()
        sizes.append(model.blocks[-1].ff.down_proj.weight.grad.norm().item())
    return sum(sizes) / len(sizes)


print("layers       ", *(f"{depth:>7}" for depth in DEPTHS))
for norm in ("last", "first"):
    print(f"norm {norm:<8}", *(f"{top_gradient(norm, depth):7.3f}" for depth in DEPTHS))

# %% [markdown]
# The upper line stays about level, the lower one falls with depth, as the bounds do. Now the experiment: six layers, both orders, with and without warm-up, three seeds each, all else equal. The *band* of a curve goes from the lowest seed to the highest. One of the four will not learn; which,
# and where will it stop? We also keep an eye on the *inside*: every few steps, the variety after each block.

# %%
probe, watched = draw_rows(64), []


@torch.no_grad()
def watch(step, model):
    if step in (1, 2, 3, 5, 10, 20, 40, 70, 100):
        level, varieties = model.embed(probe) + model.places, []
        for block in model.blocks:
            level = block(level)
            varieties.append(variety_of(level))
        watched.append((step, varieties))


# %% [markdown]
# Twelve trainings, some seconds. Each setting starts from the same three seeds, and its loss at the end is the mean of the last ten steps; the number after ± is the spread over the seeds (standard deviation).

# %%
results, insides = {}, {}
for norm in ("last", "first"):
    for warmup_steps in (0, 30):
        name = f"norm {norm}, " + ("warm-up" if warmup_steps else "no warm-up")
        results[name], watched = [], []
        for seed in range(3):
            blocks = stack(lambda norm=norm: WithFeedForward(norm=norm), 6, seed)
            model = Sorter(blocks, final_norm=norm == "first")
            run = train(model, n_steps, warmup_steps=warmup_steps, watch=watch)
            results[name].append(run)
        insides[name] = watched
        ends = torch.tensor(results[name])[:, -10:].mean(dim=-1)  # (seeds,)
        print(f"{name:<24}loss at the end {ends.mean():.2f} ± {ends.std():.2f}")

# %% [markdown]
# Now the way there. Blue is norm first, orange norm last; dashed is without warm-up. Which of the two blue curves should be ahead after 30 steps?

# %%
lines = []
for name, runs in results.items():
    look = {"color": plots.COLORS["last" in name], "dashed": "no warm-up" in name}
    lines.append(plots.seed_band(name, runs, every=10, **look))
fig, ax = plots.figure(width=7.0, height=3.6)
plots.curves(
    lines, xlabel="training step", ylabel="loss (nats per digit)", y_range=(0, 2.1),
    references={"a blind guess": math.log(7)}, title="Six layers", ax=ax,
)  # fmt: skip
plots.show(fig, name="05_warm_up", alt="""
    Loss against training step for four settings, with a band over three seeds. Norm last
    without warm-up stays high, close to the line of a blind guess. Norm last with warm-up
    comes down late. Norm first comes down at once, a little earlier without warm-up.""")

# %% [markdown]
# Norm last without warm-up stays near the blind guess, with every seed. With warm-up the same model learns. Norm first does not need it here: at the end the two blue curves are as close as the seeds are to each other, and on the way warm-up costs it the time of its slow steps. But *why* does the one fail? Now the inside (the geometric mean over the seeds). Rows are training steps, from top
# to bottom; columns are the six blocks. In which row is the matter decided?

# %%
fig, axes = plots.figure(1, 3, width=9.8, height=3.5)
shown = ["norm last, no warm-up", "norm last, warm-up", "norm first, no warm-up"]
for panel, name in zip(axes, shown, strict=True):
    by_step = {}
    for step, varieties in insides[name]:
        by_step.setdefault(step, []).append(varieties)
    rows = {step: torch.tensor(v).log().mean(dim=0).exp() for step, v in by_step.items()}
    bar_label = "variety" if panel is axes[-1] else None
    plots.depth_map(rows, low=1e-3, high=1, bar_label=bar_label, title=name, ax=panel)
    panel.set_xlabel("block (0 = the lowest)")
axes[0].set_ylabel("training step")
plots.show(fig, name="05_inside_warm_up", alt="""
    Three maps of variety, training steps downwards and six blocks to the right. Norm last
    without warm-up darkens to the right within the first ten steps and stays dark. With
    warm-up the right side stays green at first and turns yellow later. Norm first is green
    and soon all yellow.""")

# %% [markdown]
# In the first few. Norm last starts with tokens that are already rather alike at the top, and the first steps, taken at full speed, press them together altogether. Then the way back is long: where tokens are alike, the query weights
# learn next to nothing, as we saw with attention alone. With warm-up the first steps are small, the variety survives them, and then grows by itself. It is the same disease twice.
#
# (Xiong et al. argue from the size of gradients; what we see here is what becomes of the tokens. That the one causes the other we have not shown.)
#
# So is norm last ill, and norm first immune? Before we say so, two trials more, neither with warm-up: norm last at a *sixth* of the rate, and norm first at many times the rate. Which way will they go?

# %%
for norm, lr in (("last", 1e-3), ("first", 1e-1)):
    ends = []
    for seed in range(2):
        blocks = stack(lambda norm=norm: WithFeedForward(norm=norm), 6, seed)
        model = Sorter(blocks, final_norm=norm == "first")
        ends.append(sum(train(model, n_steps, lr=lr)[-10:]) / 10)
    print(f"norm {norm:<6}rate {lr:<6}loss at the end", *(f"{end:.2f}" for end in ends))

# %% [markdown]
# At the low rate norm last learns without warm-up, and gets about as far as at the high rate with it. At a rate that is absurd enough norm first does not learn either. So the honest sentence is: *at a rate at which norm first learns at once, norm last needs warm-up.* And that fast rate paid: compare the
# losses at the end.
#
# ## Step 5: dropout
#
# In training, dropout sets each number to 0 with probability $p$ and divides the others by $1 - p$, so that the mean stays what it was. In use it does nothing. Which of the two it does is decided by a switch on the module: `.train()` or `.eval()`.

# %%
numbers = torch.full((10_000,), 3.0)
dropout = nn.Dropout(0.25)
dropped = dropout.train()(numbers)
print("in training:", sorted({round(v, 3) for v in dropped.tolist()}), " 3 / 0.75 = 4")
print("in use:     ", sorted({round(v, 3) for v in dropout.eval()(numbers).tolist()}))
assert abs(dropped.mean().item() - 3) < 0.1
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# In the paper (section 5.4) dropout stands on each sublayer's output, before it is added to the stream; torch also drops inside the feed-forward network, after the ReLU, and on the attention weights. With that, **our class is complete**. It began as a single call of attention.


# %%
class GrownBlock(WithFeedForward):
    def __init__(self, d_model=32, n_heads=4, d_ff=64, norm="first", dropout=0.0):
        super().__init__(d_model, n_heads, d_ff, norm)
        self.attn.dropout = dropout  # on the attention weights
        self.ff.down_proj = nn.Sequential(nn.Dropout(dropout), self.ff.down_proj)
        self.dropout = nn.Dropout(dropout)

    def add(self, x, norm, sublayer):
        if self.norm_first:
            return x + self.dropout(sublayer(norm(x)))
        return norm(x + self.dropout(sublayer(x)))


# %% [markdown]
# The same sentence twice, in both modes. Forgetting `.eval()` is the classic slip: the model is then tested with parts of it missing, and gives another answer each time.

# %%
torch.manual_seed(0)
blocks = stack(lambda: GrownBlock(dropout=0.2), 2).double()
for mode in ("train", "eval"):
    blocks.train(mode == "train")
    print(f"{mode:<6}twice the same: {torch.equal(blocks(x), blocks(x))}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# What is it good for? It makes it hard to learn examples by heart. So we give the sorter only 64 rows, the same ones again and again, and measure on them and on 400 fresh ones. Without dropout, with $p = 0.2$, and, for a baseline, without dropout but with
# *twice the rows*. What do you expect of the loss on the 64, and of the loss on fresh rows, as training goes on?

# %%
_ = torch.manual_seed(9)
fresh = draw_rows(400)
check_steps = range(20, (20 if smoke else 200) + 1, 20)


def few_examples(n_rows, dropout, seed):
    model = Sorter(stack(lambda: GrownBlock(dropout=dropout), 2, seed), final_norm=True)
    known, seen = draw_rows(n_rows), []  # the seed of the stack draws them too

    @torch.no_grad()
    def check(step, model):
        if step in check_steps:
            model.eval()
            seen.append([sort_loss(model, rows).item() for rows in (known, fresh)])
            model.train()

    def draw():
        return known[torch.randint(n_rows, (16,))]

    train(model, check_steps[-1], draw, watch=check)
    return seen  # (checks, 2)


# %% [markdown]
# "At their best" is the lowest loss on fresh rows that was seen on the way. One may stop there, if one has rows to spare for finding out.

# %%
arms = {"64 rows": (64, 0.0), "64 rows, dropout": (64, 0.2), "128 rows": (128, 0.0)}
overfitting = {}
print(f"{'':<18}known rows      fresh rows      fresh rows, at their best")
for name, arm in arms.items():
    seen = torch.tensor([few_examples(*arm, seed) for seed in range(3)])  # (seeds, checks, 2)
    cells = (seen[:, -1, 0], seen[:, -1, 1], seen[..., 1].amin(dim=1))
    print(f"{name:<18}" + "     ".join(f"{c.mean():.2f} ± {c.std():.2f}" for c in cells))
    overfitting[name] = seen

# %% [markdown]
# Left the rows it trains on, right the fresh ones; the bands go over three seeds. Look for a curve that turns up on the right while it still falls on the left. That is over-fitting.

# %%
fig, axes = plots.figure(1, 2, width=9.0, height=3.1, sharey=True)
for part, title in enumerate(("Rows it trains on", "Fresh rows")):
    lines = []
    for name, seen in overfitting.items():
        loss = seen[..., part]  # (seeds, checks)
        low, high = loss.amin(dim=0), loss.amax(dim=0)
        lines.append(plots.Curve(name, check_steps, loss.mean(dim=0), low, high))
    plots.curves(lines, xlabel="training step", ylabel="", title=title, ax=axes[part])
axes[0].set(ylabel="loss (nats per digit)", ylim=(0, 1.3))
plots.show(fig, name="05_dropout", alt="""
    Two panels of loss against training step. On the rows it trains on all three settings
    fall towards zero, the one with dropout most slowly. On fresh rows 64 rows without dropout
    turn up again; with dropout the curve stays lower, and with 128 rows it is lowest.""")

# %% [markdown]
# Without dropout the 64 rows are soon known nearly by heart, and the fresh ones get *worse* again. Dropout slows the learning by heart and takes a good part off the damage. It does not abolish it: with dropout too, known and
# fresh rows lie far apart. And look at the third arm: twice the examples do more. Dropout is what one does for want of data; [lesson 08](08_pretraining.ipynb), with plenty of text, does without.
#
# ## The package, and torch
#
# Is what we have grown the real thing? `nn.TransformerEncoderLayer` is torch's block. We draw all weights at random (norms and biases as well, so that a missing one would show), copy them over, and compare in both orders, in 64-bit numbers, to a billionth. Torch keeps the three
# projections in one matrix, and calls things by other names.


# %%
def copy_to_torch(ours, theirs):
    three = (ours.attn.q_proj, ours.attn.k_proj, ours.attn.v_proj)
    packed = theirs.self_attn.in_proj_weight, theirs.self_attn.in_proj_bias
    packed[0].data = torch.cat([proj.weight.data for proj in three])  # (3 D, D)
    packed[1].data = torch.cat([proj.bias.data for proj in three])  # (3 D,)
    theirs.self_attn.out_proj.load_state_dict(ours.attn.out_proj.state_dict())
    theirs.linear1.load_state_dict(ours.ff.up_proj.state_dict())
    theirs.linear2.load_state_dict(ours.ff.down_proj[1].state_dict())  # 0: dropout
    theirs.norm1.load_state_dict(ours.attn_norm.state_dict())
    theirs.norm2.load_state_dict(ours.ff_norm.state_dict())


grown = {}
for norm in ("first", "last"):
    grown[norm] = GrownBlock(norm=norm).double()
    for parameter in grown[norm].parameters():
        nn.init.normal_(parameter, std=0.5)
    theirs = nn.TransformerEncoderLayer(
        32, 4, 64, dropout=0.0, batch_first=True, norm_first=norm == "first"
    ).double()
    copy_to_torch(grown[norm], theirs)
    torch.testing.assert_close(grown[norm](x), theirs(x), rtol=0, atol=1e-9)
    print(f"norm {norm}: equal to torch's layer")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# And the package's `Block`, which adds masks and a choice of activations to what you have built. Its parts carry the names that we used, so that our weights can be loaded as they are, but for the one map that hides behind a dropout.

# %%
for norm, ours in grown.items():
    settings = {"vocab_size": 7, "d_model": 32, "n_heads": 4, "n_layers": 1, "d_ff": 64}
    config = tx.TransformerConfig(**settings, norm=norm, activation="relu")
    block, weights = Block(config).double(), ours.state_dict()
    for kind in ("weight", "bias"):
        weights[f"ff.down_proj.{kind}"] = weights.pop(f"ff.down_proj.1.{kind}")
    block.load_state_dict(weights)
    torch.testing.assert_close(block(x), ours(x), rtol=0, atol=1e-9)
    assert tx.count_parameters(block) == tx.count_parameters(ours)
print(f"equal in both orders, {tx.count_parameters(block):,} parameters")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## What this does not show
#
# - The maps are of *random* weights. They say how a network starts, and a network that starts well can still train badly.
# - Width 32 and 100 steps are tiny, and we looked at three learning rates. A fair contest would look for the best rate of each order, with and without warm-up.
# - Norm last is not the loser in every respect. In Xiong's experiments both reach about the same quality once warmed up. It is harder to get going, and above all when it is deep.
# - The checkerboard shows what one token's vector can be turned into. In a text, attention itself is a product of tokens, and can do more than draw straight lines.

# %% [markdown]
# ## Questions
#
# A few questions before you go on to experiments of your own. Pick an answer, and read what it gets back; a slip from reports is among the choices. In your own copy there are buttons to press; on a page
# without a kernel each answer opens on a click.

# %%
course.quiz("the_block")

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** How short may the warm-up of norm last be? Look at the map of the inside once more and guess, then try `warmup_steps` of 20, 10 and 5, with three seeds.
#
# <details><summary>Answer</summary>
#
# Short: the map says that the matter is decided within the first ten steps, and about that many have to be small. With fewer, some seeds are late. Real warm-ups are longer, as real training is, and as Adam's averages need time to settle.
#
# </details>
#
# **2.** Somebody keeps the norm and drops the residual: `norm(attn(x))`. The size is 1 at each level. Is the network held together?
#
# <details><summary>Answer</summary>
#
# Measure it: `class NoResidual(NormLast)` with `return self.attn_norm(self.attn(x))`. The size is perfect and the variety falls as with attention alone, only a few levels later: a norm changes how large a token is, not
# that all of them are the same one. Dong et al. say so too.
#
# </details>
#
# **3.** A report counts "the norm" of a layer as $2 D$. By how much is its total wrong for $L$ layers, and which line of the block's `forward` was forgotten?
#
# <details><summary>Answer</summary>
#
# By $2 D L$. There are two sublayers, attention and feed-forward, and each has its norm: $2 \cdot 2 D$ a layer. In the lab with $D = 200$ and four layers that is 1,600 parameters. [Lesson 06](06_counting_parameters.ipynb) finds such slips from the wrong total alone.
#
# </details>
#
# ## Summary
#
# What holds a deep network together? A straight way through (the residual) on which each token stays itself; a norm where the sublayers read, so that sizes stay in hand; and first steps small enough not to break it.
#
# | take away | and this breaks |
# |---|---|
# | the residual | all tokens become alike within a few layers, and query weights learn nothing |
# | the norm | signal and gradient grow exponentially with depth |
# | one norm of the two (norm first) | they still grow, more slowly |
# | feed-forward | about a token by itself there is only a straight line |
# | warm-up (norm last, high rate) | the first steps press the tokens together |
# | dropout | few examples are learned by heart sooner |
#
# 1. The block grows in five steps: attention, `x +`, a norm, a feed-forward network with a norm of its own, dropout. In the end it equals torch's, in both orders.
# 2. Size, variety and gradient, level by level, tell before any training whether a stack can be trained.
# 3. A norm takes the numbers of one token to mean 0 and standard deviation 1. Last: $\text{norm}(x + f(x))$. First: $x + f(\text{norm}(x))$, and a final norm at the top. Two norms a block.
# 4. Warm-up protects the first steps. At a high rate norm last needs it and norm first does not.
# 5. Dropout acts in `.train()` only. It lessens over-fitting and does not replace data.
#
# *Where this comes from:* the block: Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), sections 3.1, 3.3, 5.3 (warm-up) and 5.4 (dropout); the residual: He et al., [arXiv:1512.03385](https://arxiv.org/abs/1512.03385), section 3; the norm: Ba, Kiros and
# Hinton, [arXiv:1607.06450](https://arxiv.org/abs/1607.06450), section 3; its place and warm-up: Xiong et al., [arXiv:2002.04745](https://arxiv.org/abs/2002.04745), sections 3 and 4; attention alone: Dong, Cordonnier and Loukas,
# [arXiv:2103.03404](https://arxiv.org/abs/2103.03404), section 2; query weights without gradient: Noci et al., [arXiv:2206.03126](https://arxiv.org/abs/2206.03126).
#
# *What comes next:* [lesson 04](04_heads_and_cost.ipynb) asks why attention has several heads, and what all this costs.
