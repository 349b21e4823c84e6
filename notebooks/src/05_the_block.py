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
# 1. build a transformer block from attention in five steps, write it in 15 lines, and say of each part what breaks without it;
# 2. measure a signal going up through a stack and a gradient coming down, and read such a map;
# 3. compute layer normalisation by hand, and tell *post-norm* from *pre-norm* by their maps;
# 4. say what warm-up is for, which of the two orders needs it, and show it;
# 5. switch dropout on and off, and say what it did for a model with few examples, and what it did not.
#
# *You need:* attention, as in [lesson 02](02_attention_and_masks.ipynb), positions, as in [lesson 03](03_positions.ipynb), and heads, as in [lesson 04](04_many_heads.ipynb).
# *It takes:* an hour and a half to read and do; half a minute to run, with or without a GPU.

# %% [markdown]
# ## Set-up
#
# Every model of this lesson is 32 numbers wide. Such small matrices want one thread. The budget `smoke` cuts each training to a few steps: then everything runs, but nothing is learned, and the sentences below about learning do not fit.

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx.transformer import record_hidden_states
from tinytx_course import plots
from tinytx_course.labs.lesson_05 import signals, size_of, variety_of, weight_gradients
from tinytx_run.recipes import default_budget

smoke = default_budget() == "smoke"

# %% [markdown]
# Two questions from earlier lessons first.

# %%
course.recall("05")

# %% [markdown]
# ## Why: stack more layers?
#
# A task for the whole lesson: read eight digits and write them **sorted**. Position 0 has to name the smallest, position 7 the largest. So every position has to attend to all the others, and each has another answer to give.

# %%
N_DIGITS, SEQ_LEN = 7, 8


def draw_rows(n_rows=16):
    return torch.randint(N_DIGITS, (n_rows, SEQ_LEN))  # (B, T)


example = torch.tensor([[5, 0, 3, 3, 6, 1, 0, 5]])
print("reads ", example[0].tolist())
print("writes", example.sort(dim=-1).values[0].tolist())
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# "Attention is all you need", says the title of the paper. Let us take it at its word: the **first version of our block** is attention and nothing else. A `stack` puts $L$ of them on top of each other. It starts all weights so that a linear layer neither enlarges nor shrinks what it is given, on average (Glorot's
# initialisation). So if signal is lost, badly scaled weights are not the reason.


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
# Around the stack goes the least that makes a model: an embedding and positions below, an output layer above, which gives seven **logits**: scores, one for each digit, of which softmax makes probabilities. (`final_norm` is for later.) The *loss* is cross-entropy, in nats per digit.


# %%
class Sorter(nn.Module):
    def __init__(self, blocks, final_norm=False):
        super().__init__()
        self.embed = nn.Embedding(N_DIGITS, 32)
        self.register_buffer("positions", tx.sinusoidal_positions(SEQ_LEN, 32))
        self.blocks = blocks
        self.norm = nn.LayerNorm(32) if final_norm else nn.Identity()
        self.head = nn.Linear(32, N_DIGITS)

    def forward(self, rows):
        x = self.embed(rows) + self.positions  # (B, T, D)
        return self.head(self.norm(self.blocks(x)))  # (B, T, V)


def sort_loss(model, rows):
    sorted_rows = rows.sort(dim=-1).values
    return F.cross_entropy(model(rows).flatten(0, 1), sorted_rows.flatten())


# %% [markdown]
# Training is Adam: draw a batch, compute the loss, make a step. Each task brings its own `draw` and `loss_of`. The learning rate is `lr`, but in the first `warmup_steps` it rises to that in a straight line; for now there are none. `watch` may look at the model after each step.


# %%
def train(
    model,
    n_steps,
    draw=draw_rows,
    loss_of=sort_loss,
    *,
    lr=6e-3,
    warmup_steps=0,
    watch=None,
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
# Now one, two, four and eight layers of attention, two seeds each. A deeper stack has more weights, and could at the worst leave the digits as they are. **Predict 05.1.**

# %%
course.predict(
    "05.1",
    "Which depth sorts best after 100 steps?",
    ["1 layer", "2 layers", "4 layers", "8 layers"],
)

# %%
n_steps = 20 if smoke else 100
lines = []
for depth in (1, 2, 4, 8):
    models = [Sorter(stack(AttentionAlone, depth, seed)) for seed in range(2)]
    runs = [train(model, n_steps) for model in models]
    lines.append(plots.seed_band(f"{depth} layer" + "s" * (depth > 1), runs, every=10))
    print(f"{lines[-1].label:<10}loss at the end {lines[-1].y[-1]:.2f}")
best = min(lines, key=lambda line: line.y[-1])
course.resolve(
    "05.1", best.label, f"Its loss at the end is the lowest, {best.y[-1]:.2f}."
)

# %% [markdown]
# The deepest did learn *something*: it began near $\ln 7$, the loss of a uniform guess, and came down. To see what it learned, think of a model that knows which digits are in the row, but at no position knows *where it is*. It can only answer with the row's own mixture, the same everywhere. The best loss of such a model is the mean entropy of that
# mixture, which we can compute: each digit occurs $k$ times in eight draws with a binomial probability. Where do the four stacks end, compared with it? (The band goes from the lower seed to the higher.)

# %%
mixture = 0.0
for k in range(1, SEQ_LEN + 1):
    # a digit occurs k times
    p_k = math.comb(SEQ_LEN, k) * 6 ** (SEQ_LEN - k) / 7**SEQ_LEN
    mixture -= N_DIGITS * p_k * k / SEQ_LEN * math.log(k / SEQ_LEN)
print(
    f"all positions alike: {mixture:.3f} nats per digit, a uniform guess: "
    f"{math.log(7):.3f}"
)
fig, ax = plots.figure(width=6.8, height=3.5)
plots.curves(
    lines, xlabel="training step", ylabel="loss (nats per digit)", y_range=(0, 2.1),
    references={"a uniform guess": math.log(7), "all positions alike": mixture},
    title="Attention alone", ax=ax,
)  # fmt: skip
plots.show(fig, name="05_deeper_is_worse")

# %% [markdown]
# Four and eight layers end above the line. That is no better than a model for which **all positions are alike**. Is training bad at finding the weights, or is something wrong before any training? We look at the numbers that pass through the stack.
#
# ## By hand: what a mean does
#
# Attention gives each token a weighted mean. Take three tokens with one number each, 6, 0 and 3. Let every token attend half to itself and a quarter to each of the two others. The first becomes $\frac12 \cdot 6 + \frac14 \cdot 0 + \frac14 \cdot 3 = 3.75$. Do it four times. Then do it again, but *add* the mean to the token instead of
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
# Replaced, the three soon are one: each layer leaves a quarter of every difference. Added, the differences live, they even grow by a quarter a layer. But the mean doubles each time: 3, 6, 12, 24, 48. One evil for another. So these are the two numbers to watch in real stacks:
#
# $$\text{size}(x) = \sqrt{\operatorname{mean}(x^2)}, \qquad \text{variety}(x) = \frac{\text{size}(x - \text{mean token})}{\text{size}(x)} .$$
#
# **Variety** is our word for the share of the signal that tells tokens apart, from 0 (all alike) to 1. Papers call its fall **rank collapse**, as a matrix of equal rows has rank one.

# %%
def size(x):
    return x.square().mean().sqrt().item()


def variety(x):
    return size(x - x.mean(dim=-2, keepdim=True)) / size(x)  # x: (..., T, D)


tokens = torch.tensor([[6.0, 1.0], [0.0, 1.0], [3.0, 4.0]])  # the mean token is (3, 2)
by_hand = math.sqrt((9 + 1 + 9 + 1 + 0 + 4) / 6) / math.sqrt(
    (36 + 1 + 0 + 1 + 9 + 16) / 6
)
assert math.isclose(variety(tokens), by_hand, rel_tol=1e-6)
print(f"size {size(tokens):.3f}, variety {variety(tokens):.3f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Now send tokens up through a stack and take both numbers at every level. Then send a random gradient of size 1 from the top down, and take its size as well. That is the measurement of the whole lesson, in nine lines. `signals`, from `tinytx_course.labs.lesson_05`, does the same, so we use it from here on.

# %%
def up_and_down(blocks, x):
    levels = [x.clone().requires_grad_()]
    for block in blocks:
        levels.append(block(levels[-1]))  # up
    top, fixed = levels[-1], torch.Generator().manual_seed(0)
    sent = torch.randn(top.shape, generator=fixed, dtype=top.dtype)
    gradients = torch.autograd.grad(top, levels, sent)  # down
    levels = [level.detach() for level in levels]
    return [*map(size, levels)], [*map(variety, levels)], [*map(size, gradients)]


_ = torch.manual_seed(1)
x = torch.randn(8, 16, 32, dtype=torch.float64)  # (B, T, D)
eight = stack(AttentionAlone, 8).double()
seen = signals(eight, x)
shown = (seen.size, seen.variety, seen.gradient)
for mine, theirs in zip(up_and_down(eight, x), shown, strict=True):
    torch.testing.assert_close(torch.tensor(mine), torch.tensor(theirs))

# %% [markdown]
# ## Step 1, measured: attention alone
#
# We do that, before any training, with five stacks of 2 to 32 layers; the input is eight random texts of sixteen tokens. All in 64-bit numbers, as tokens may become alike to many digits. `weight_gradients` asks in the same way what arrives at one weight matrix of each block. We choose the projection of the queries: it learns *which token attends to which*.
#
# In the maps each stack is a row of cells, from the input at the left to the top at the right. Above, yellow is full variety. How many layers will it take to lose nine tenths of it? By hand it was a factor of four a layer. Look for the column in which the colours change, and whether it depends on the depth of the stack. Below, white means "as large as what was sent", and blue less.

# %%
DEPTHS = (2, 4, 8, 16, 32)


def measure(make_block):
    return {depth: signals(stack(make_block, depth).double(), x) for depth in DEPTHS}


def column(seen, quantity):
    return {name: getattr(levels, quantity) for name, levels in seen.items()}


alone, at_queries = measure(AttentionAlone), {}
for depth in DEPTHS:
    blocks = stack(AttentionAlone, depth).double()
    at_queries[depth] = weight_gradients(blocks, x, "attn.q_proj.weight")

fig, axes = plots.figure(2, 1, width=8.4, height=4.6)
plots.depth_map(
    column(alone, "variety"), low=1e-8, high=1, bar_label="variety", ax=axes[0],
    title="What tells tokens apart", xlabel="level (0 = the input)",
)  # fmt: skip
plots.depth_map(
    at_queries, low=1e-8, high=1e1, bar_label="gradient size", ax=axes[1],
    title="Gradient at the query weights", xlabel="layer (0 = the lowest)",
)  # fmt: skip
fig.supylabel("layers in the stack")
plots.show(fig, name="05_attention_alone")
assert all(max(alone[depth].variety[4:]) < 1e-8 for depth in DEPTHS[1:])
assert all(max(at_queries[depth][3:]) < 1e-8 for depth in DEPTHS[1:])

# %% [markdown]
# Dark from level 4 on, whatever the depth. From there upwards there are no sixteen tokens any more, just one vector, sixteen times. From the fourth layer on, the query weights receive next to nothing (lower map). Where all tokens are alike it does not matter which attends to which, so there is nothing to learn about it.
#
# The fall is even faster than by hand. There, each layer left a fixed share. Here, the more alike the tokens are, the more even the attention weights become, and the more alike the next layer makes the tokens. Count the zeros after the decimal point:

# %%
exponents = [-math.log10(variety) for variety in alone[8].variety[:5]]
for level, exponent in enumerate(exponents):
    print(
        f"level {level}: variety {alone[8].variety[level]:.1e} = 1 / 10^{exponent:.1f}"
    )
ratios = [
    after / before for before, after in zip(exponents[1:], exponents[2:], strict=False)
]
print("the exponent grows by factors of", *(f"{ratio:.1f}" for ratio in ratios))
assert min(ratios) > 2

# %% [markdown]
# The *exponent* more than doubles with each layer, until 64-bit numbers end at about sixteen zeros (which cuts the last factor off). Dong, Cordonnier and Loukas ([arXiv:2103.03404](https://arxiv.org/abs/2103.03404), section 2) proved a bound of just this kind, with a cube in each layer: pure attention loses its rank *doubly
# exponentially* with depth. Attention is not all you need.
#
# ## Step 2: a way past, the residual connection
#
# The cure is one `x +`. A block no longer *replaces* what comes in; it adds a change to it:
#
# $$x_{l+1} = x_l + \text{attn}(x_l).$$
#
# This is a **residual connection** (He et al., [arXiv:1512.03385](https://arxiv.org/abs/1512.03385), for networks that read images). What runs through all the sums, from the embedding to the top, is called the **residual stream**. The class inherits everything, and one line differs.


# %%
class WithResidual(AttentionAlone):
    def forward(self, x):
        return x + self.attn(x)  # (B, T, D)


residual = measure(WithResidual)

# %% [markdown]
# It works both ways. Upwards, each token's own vector arrives at the top unchanged, among other things. Downwards, the derivative of $x + f(x)$ is $1 + f'(x)$: a gradient always has the straight way. By hand we saw the price. **Predict 05.2.**

# %%
course.predict(
    "05.2",
    "The input has size 1. How large is the signal after 32 layers of attention with "
    "residual?",
    ["less than 10", "10 to 1,000", "more than 1,000"],
)

# %% tags=["folded"]
fig, axes = plots.figure(2, 1, width=8.4, height=4.6)
titles = {
    "size": "The signal, going up",
    "gradient": "The gradient, coming down (from the right)",
}
for (quantity, title), panel in zip(titles.items(), axes, strict=True):
    rows = column(residual, quantity)
    plots.depth_map(rows, low=1e-1, high=1e8, bar_label="size", title=title, ax=panel)
axes[1].set_xlabel("level (0 = the input)")
fig.supylabel("layers in the stack")
plots.show(fig, name="05_with_residual")
top, bottom = residual[32].size[-1], residual[32].gradient[0]
answer = (
    "less than 10" if top < 10 else "10 to 1,000" if top <= 1000 else "more than 1,000"
)
course.resolve(
    "05.2", answer, f"{top:,.0f}; the gradient at the bottom is even {bottom:.0e}."
)

# %% [markdown]
# (White is 1, red is larger.) Tokens no longer collapse within four layers (a gallery further down shows it); now they explode. The signal grows roughly exponentially with depth. The gradient grows too, by many powers of ten, but unevenly: in jumps, and not by one factor a layer.
#
# There is a cheap test that shows it before any training: an untrained model should know nothing, so its *first loss* should be near $\ln 7 = 1.95$.

# %%
@torch.no_grad()
def first_loss(make_block, n_layers):
    return sort_loss(Sorter(stack(make_block, n_layers)), draw_rows(200)).item()


print(f"{'layers':<16}", *(f"{depth:>9}" for depth in DEPTHS))
for name, make in {
    "attention alone": AttentionAlone,
    "with residual": WithResidual,
}.items():
    print(f"{name:<16}", *(f"{first_loss(make, depth):>9.2f}" for depth in DEPTHS))

# %% [markdown]
# With 2 layers one might not notice; with 4 the first loss is already far above $\ln 7$. With 32 the model is wrong with total conviction, before it has seen a single example.
#
# ## Step 3: a fixed size, layer normalisation
#
# If size is the trouble, set it. **Layer normalisation** (Ba, Kiros and Hinton, [arXiv:1607.06450](https://arxiv.org/abs/1607.06450)) takes *one token*, subtracts the mean of its $D$ numbers and divides by their standard deviation; then come a learned factor $\gamma$ and a learned shift $\beta$ for each of the $D$ numbers, 1 and 0 at the
# start:
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


print(
    [round(v, 3) for v in norm_by_loops([1, 3, 5, 7])],
    f" 3/√5 = {3 / math.sqrt(5):.3f}",
)
looped = [[norm_by_loops(token) for token in row] for row in x.tolist()]
normed = norm_at_once(x)
torch.testing.assert_close(normed, torch.tensor(looped, dtype=torch.float64))
torch.testing.assert_close(normed, F.layer_norm(x, (32,)))
torch.testing.assert_close(norm_at_once(100 * x + 7), normed, rtol=1e-4, atol=1e-4)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The last line says what it is good for: a hundred times larger, and seven added, makes no difference. Note along which axis the mean is taken: over the numbers *of one token*. Neither the other tokens nor the other rows of the batch play a part, so nothing leaks, and a text alone gives the same as in a batch. (Without the subtraction it is **RMSNorm**, which most newer models use.)
#
# Where to put it? The paper applies it to the sum: **post-norm**, `norm="last"` in our settings. A later variant applies it to what attention reads and leaves the residual stream free: **pre-norm**, `norm="first"`. One line each:


# %%
class PostNorm(WithResidual):
    def __init__(self, d_model=32, n_heads=4):
        super().__init__(d_model, n_heads)
        self.attn_norm = nn.LayerNorm(d_model)

    def forward(self, x):
        return self.attn_norm(x + self.attn(x))  # (B, T, D)


class PreNorm(PostNorm):
    def forward(self, x):
        return x + self.attn(self.attn_norm(x))  # (B, T, D)


# %% [markdown]
# The two versions differ only in where the norm is applied. Post-norm sets the size to 1 at every level, that much is sure; pre-norm does not. So post-norm should win? **Predict 05.3.**

# %%
course.predict(
    "05.3",
    "At the top of 32 layers, which order has the larger variety?",
    ["post-norm", "pre-norm", "about equal, within a factor of 2"],
)

# %%
measured = {"Post-norm": measure(PostNorm), "Pre-norm": measure(PreNorm)}
fig, axes = plots.figure(2, 2, width=9.4, height=4.4)
scales = {"variety": (1e-4, 1), "gradient": (1e-1, 1e1)}
for (name, seen), panels in zip(measured.items(), axes.T, strict=True):
    for (quantity, (low, high)), panel in zip(scales.items(), panels, strict=True):
        rows, title = column(seen, quantity), f"{name}: {quantity}"
        plots.depth_map(
            rows, low=low, high=high, bar_label=quantity, title=title, ax=panel
        )
    panel.set_xlabel("level (0 = the input)")
fig.supylabel("layers in the stack")
plots.show(fig, name="05_post_norm_and_pre_norm")
post, pre = (seen[32].variety[-1] for seen in measured.values())
answer = "post-norm" if post > pre else "pre-norm"
answer = (
    answer
    if max(post, pre) > 2 * min(post, pre)
    else "about equal, within a factor of 2"
)
course.resolve("05.3", answer, f"Post-norm {post:.4f}, pre-norm {pre:.4f}.")

# %% [markdown]
# Both gradients now stay within a power of ten or so: no explosion, at any depth. But look at the variety. With post-norm it goes on fading, about as fast as with a residual connection and no norm (the gallery below compares all versions). With pre-norm it fades far less. A likely reason: what attention adds there stays small,
# as it reads normed tokens, while the stream grows, layer by layer. So each layer changes the tokens less. The sizes:

# %%
shown = (0, *DEPTHS[:-1], 31)
print("level           ", *(f"{level:>6}" for level in shown))
for name, seen in measured.items():
    print(f"{name:<12}size", *(f"{seen[32].size[level]:>6.2f}" for level in shown))
config = tx.TransformerConfig(vocab_size=7, d_model=32, n_heads=4, n_layers=32, d_ff=64)
body = tx.LanguageModel(config).body
with record_hidden_states(body) as hidden:
    body(draw_rows(8))
sizes = [size_of(hidden[level]) / size_of(hidden[0]) for level in shown]
print("the package size", *(f"{size:>6.2f}" for size in sizes))
gradients = torch.tensor([measured[name][32].gradient for name in measured])
assert gradients.min() > 0.1 and gradients.max() < 10

# %% [markdown]
# The third line is the package's own stack, complete with feed-forward. Its pre-norm blocks start with smaller output projections, by $\sqrt{2L}$ (GPT-2's way), which is meant to keep the stream from growing.
#
# One thing to remember: with pre-norm, the top of the residual stream has passed no norm yet. So *one* more comes at the very end, the **final norm**, and only with pre-norm.
#
# ## Step 4: the feed-forward network
#
# What can such a block compute? Give it a text of *one token*. Softmax over one key is 1, whatever the score, so the token receives its own value: a matrix times $x$. With the residual, it is still a matrix times $x$. A stack of any depth is then one straight line, for which $f(a + b) + f(0) = f(a) + f(b)$. (A norm bends it somewhat: we shall see how far that goes.) To *think* about a token, something else is needed,
# the **feed-forward network**:
#
# $$\text{ff}(x) = \max(0,\; x W_{\text{up}} + b_{\text{up}})\, W_{\text{down}} + b_{\text{down}},$$
#
# the same for every token, from $D$ numbers up to $F$ and back (Vaswani et al., section 3.3). The function $\max(0, \cdot)$ between the two linear layers, here **ReLU**, is the **activation**; newer models take smoother ones (GELU, SwiGLU). (`dropout` is for step 5.)

# %%
class FeedForward(nn.Module):
    def __init__(self, d_model=32, d_ff=64, dropout=0.0):
        super().__init__()
        self.up_proj = nn.Linear(d_model, d_ff)
        self.down_proj = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        hidden = self.up_proj(x).relu()  # (B, T, D) -> (B, T, F)
        return self.down_proj(self.dropout(hidden))  # (B, T, D)


a, b = x[:, :1], x[:, 1:2]  # texts of one token
for name, f in {
    "32 layers of attention": stack(WithResidual, 32).double(),
    "1 feed-forward network": stack(FeedForward, 1).double(),
}.items():
    bent = size_of(f(a + b) + f(0 * a) - f(a) - f(b)) / size_of(f(a))
    print(f"{name}: a straight line, {bent < 1e-9}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## The block in 15 lines
#
# The complete **block** has two **sublayers**: attention *between* tokens, and feed-forward *on* each token. Each has its own residual connection and its **own norm**. The two orders differ in where the norms are. This is the class to take home; everything after this cell is about it. (`dropout` is 0 until step 5, and then does nothing to these lines.)


# %%
class Block(nn.Module):
    def __init__(self, d_model=32, n_heads=4, d_ff=64, norm="first", dropout=0.0):
        super().__init__()
        self.norm_first, self.dropout = norm == "first", nn.Dropout(dropout)
        self.attn_norm, self.ff_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = tx.MultiHeadAttention(
            d_model=d_model, n_heads=n_heads, dropout=dropout
        )
        self.ff = FeedForward(d_model, d_ff, dropout)

    def forward(self, x, mask=None):
        if self.norm_first:  # pre-norm: x + f(norm(x))
            x = x + self.dropout(self.attn(self.attn_norm(x), mask=mask))  # (B, T, D)
            return x + self.dropout(self.ff(self.ff_norm(x)))  # (B, T, D)
        x = self.attn_norm(x + self.dropout(self.attn(x, mask=mask)))  # (B, T, D)
        return self.ff_norm(x + self.dropout(self.ff(x)))  # post-norm: norm(x + f(x))


# %% [markdown]
# The picture shows both orders next to each other. Follow the residual stream from one end to the other, and count the norms that it passes on its way.

# %%
course.plots.diagram("block")

# %% [markdown]
# ### The package, and torch
#
# Is this the real thing? `nn.TransformerEncoderLayer` is torch's block. We draw all weights at random (norms and biases as well, so that a missing one would show), copy them, and compare in both orders, in 64-bit numbers, to a billionth. Torch stores the three projections in one matrix, and uses other names. The package's `tx.Block`, which adds a choice of activations and positions, has
# our names, so our weights can be loaded as they are.

# %%
def copy_to_torch(ours, theirs):
    three = (ours.attn.q_proj, ours.attn.k_proj, ours.attn.v_proj)
    theirs.self_attn.in_proj_weight.data = torch.cat(
        [proj.weight.data for proj in three]
    )
    theirs.self_attn.in_proj_bias.data = torch.cat([proj.bias.data for proj in three])
    pairs = {
        theirs.self_attn.out_proj: ours.attn.out_proj, theirs.norm1: ours.attn_norm,
        theirs.linear1: ours.ff.up_proj, theirs.linear2: ours.ff.down_proj,
        theirs.norm2: ours.ff_norm,
    }  # fmt: skip
    for target, source in pairs.items():
        target.load_state_dict(source.state_dict())


mask = tx.causal_mask(16)
for norm in ("first", "last"):
    ours = Block(norm=norm).double()
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.5)
    theirs = nn.TransformerEncoderLayer(
        32, 4, 64, dropout=0.0, batch_first=True, norm_first=norm == "first"
    ).double()
    copy_to_torch(ours, theirs)
    package = tx.Block(config.replace(norm=norm, activation="relu")).double()
    package.load_state_dict(ours.state_dict())
    for got in (theirs(x, src_mask=~mask), package(x, mask)):
        torch.testing.assert_close(got, ours(x, mask), rtol=0, atol=1e-9)
    print(f"norm {norm}: equal to torch's layer and to the package's")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### What the feed-forward network is worth
#
# First a task for one token: a point of the plane, and the colour of the checkerboard under it. Then the sorting task, with eight tokens. Four blocks of attention have about as many weights as two complete blocks (a feed-forward network has $2 \cdot 32 \cdot 64$, attention $4 \cdot 32^2$, the same), so the comparison is fair. What will the *straight* model make of a checkerboard? And the one with norms?

# %%
def draw_points(n=128):
    return 2.4 * torch.rand(n, 1, 2) - 1.2  # (B, T = 1, 2)


def board(points):
    fields = ((points + 1.2) / 0.8).floor()  # three by three
    return fields.sum(dim=-1).long() % 2  # (B, T)


def board_loss(model, points):
    return F.cross_entropy(model(points).flatten(0, 1), board(points).flatten())


thinkers = {
    "attention": (WithResidual, 4, nn.Identity),
    "+ norm": (PreNorm, 4, nn.LayerNorm),
    "+ feed-forward": (Block, 2, nn.LayerNorm),
}
painters, points = {}, draw_points(4000)
for name, (make, depth, norm) in thinkers.items():
    print(f"{name:<16}", end="")
    for seed in range(2):
        blocks = stack(make, depth, seed)
        model = nn.Sequential(nn.Linear(2, 32), blocks, norm(32), nn.Linear(32, 2))
        train(model, 20 if smoke else 200, draw_points, board_loss, lr=3e-3)
        share = (model(points).argmax(dim=-1) == board(points)).float().mean()
        losses = train(Sorter(stack(make, depth, seed), norm is nn.LayerNorm), n_steps)
        print(
            f"board {share:.0%}, sorting loss {sum(losses[-10:]) / 10:.2f}", end="   "
        )
    painters[name] = model
    print(f"{tx.count_parameters(blocks):,} parameters")

# %% [markdown]
# Five of the nine fields are white, so always answering white gets 56%. The picture shows the plane as the last model of each kind sees it, with the board itself: the darker, the more surely blue. What can the first one have painted, if all it has is a straight line?

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
plots.show(fig, name="05_thinking_about_one_token")

# %% [markdown]
# A straight line can cut the plane in two, which is no help with a checkerboard; so the first model paints everything nearly the same pale blue. The norm is a curve of a kind, and gets some of the way. With the feed-forward network the nine fields appear. The columns of sorting losses say what the same parameters are worth in a text of eight tokens.
#
# ## Break it: leave one part out
#
# A common mistake is *one norm instead of two*, in the drawing as in the count. With a single norm, one sublayer reads un-normalised input. Below we leave out one norm: the second in pre-norm, the first in post-norm. We compare all versions side by side, with one more that has norms but *no residual*. 32 layers each, one row a version: above the size, then the variety, then the gradient coming down from the right.
# Which rows would you build a deep network of?

# %%
class OneNorm(Block):
    """A mistake: feed-forward (pre-norm) or attention (post-norm) has no norm."""

    def forward(self, x):
        if self.norm_first:
            x = x + self.attn(self.attn_norm(x))
            return x + self.ff(x)
        x = x + self.attn(x)
        return self.ff_norm(x + self.ff(x))


class NoResidual(PostNorm):
    def forward(self, x):
        return self.attn_norm(self.attn(x))


versions = {
    "attention alone": AttentionAlone,
    "+ norm, no residual": NoResidual,
    "+ residual": WithResidual,
    "+ post-norm": PostNorm,
    "+ pre-norm": PreNorm,
    "block, post-norm": lambda: Block(norm="last"),
    "block, pre-norm": Block,
    "one norm, post-norm": lambda: OneNorm(norm="last"),
    "one norm, pre-norm": OneNorm,
}
gallery = {
    name: signals(stack(make, 32).double(), x) for name, make in versions.items()
}

# %% [markdown]
# Same input, same random gradient, same way of drawing the weights. An arrow at the end of a colour bar says that some cells lie beyond it.

# %% tags=["folded"]
fig, axes = plots.figure(3, 1, width=8.2, height=7.6)
scales = {"size": (1e-1, 1e4), "variety": (1e-5, 1), "gradient": (1e-1, 1e4)}
for (quantity, (low, high)), panel in zip(scales.items(), axes, strict=True):
    rows, title = column(gallery, quantity), quantity.capitalize()
    plots.depth_map(rows, low=low, high=high, bar_label=quantity, title=title, ax=panel)
axes[-1].set_xlabel("level (0 = the input)")
plots.show(fig, name="05_all_versions")
one, block = gallery["one norm, pre-norm"], gallery["block, pre-norm"]
assert one.size[-1] > 5 * block.size[-1] and one.gradient[0] > 5 * block.gradient[0]
assert block.variety[-1] > gallery["+ pre-norm"].variety[-1]
assert gallery["+ norm, no residual"].variety[-1] < 1e-5
assert (
    1e-5 < gallery["+ residual"].variety[-1] < 0.01 < gallery["+ pre-norm"].variety[-1]
)
assert 1e-5 < gallery["+ post-norm"].variety[-1] < 0.01

# %% [markdown]
# The two rows "+ pre-norm" and "block, pre-norm" are the calm ones in all three maps, and the complete block has even more variety than the one without feed-forward. With the second norm missing, pre-norm grows a good deal larger, in both directions: the feed-forward network answers a large token with a large change, and no norm limits it. With *post-norm* the mistake hardly shows at the start, as the norm at
# the end of the block catches both. A picture does not show every mistake. (A norm that was never created would show in the count of parameters, lesson 06.) A norm without residual cures nothing: each token has the right size, and all of them are the same. And a residual connection without norm only slows the collapse down, at the price of the sizes.
#
# Now try it yourself. Turn the depth, the norm and the residual connection, and watch what survives on the way up and on the way down.

# %%
course.widgets.depth()

# %% [markdown]
# ## Use it: train both orders, with warm-up and without
#
# **Warm-up** means: start with a tiny learning rate and raise it in a straight line to the full one. The paper does so for 4,000 steps (section 5.3), we for 30 of our 100.
#
# Now the experiment: six layers, both orders, with and without warm-up, two seeds each, all else equal. We also watch the *inside*: every few steps, the variety after each block. **Predict 05.4.**

# %%
orders, ways = ("post-norm", "pre-norm"), ("no warm-up", "warm-up")
names = [f"{order}, {way}" for order in orders for way in ways]
course.predict("05.4", "Which setting has the highest loss after 100 steps?", names)

# %%
probe, results, insides = draw_rows(64), {}, {}


@torch.no_grad()
def watch(step, model):
    if step in (1, 2, 3, 5, 10, 20, 40, 70, 100):
        level, varieties = model.embed(probe) + model.positions, []
        for block in model.blocks:
            level = block(level)
            varieties.append(variety_of(level))
        watched.append((step, varieties))


for name in names:
    norm = "last" if name.startswith("post-norm") else "first"
    results[name], watched = [], []
    for seed in range(2):
        model = Sorter(
            stack(lambda norm=norm: Block(norm=norm), 6, seed),
            final_norm=norm == "first",
        )
        warmup_steps = 0 if name.endswith("no warm-up") else 30
        results[name].append(
            train(model, n_steps, warmup_steps=warmup_steps, watch=watch)
        )
    insides[name] = watched

# %% [markdown]
# The loss at the end is the mean of the last ten steps, seed by seed. In the picture blue is pre-norm, orange post-norm, and dashed is without warm-up. The *band* goes from the lowest seed to the highest.

# %% tags=["folded"]
ends = {
    name: torch.tensor(runs)[:, -10:].mean(dim=-1) for name, runs in results.items()
}
lines = []
for name, runs in results.items():
    print(f"{name:<24}loss at the end", *(f"{end:.2f}" for end in ends[name]))
    look = {"color": plots.COLORS["post" in name], "dashed": "no warm-up" in name}
    lines.append(plots.seed_band(name, runs, every=10, **look))
fig, ax = plots.figure(width=7.0, height=3.6)
plots.curves(
    lines, xlabel="training step", ylabel="loss (nats per digit)", y_range=(0, 2.1),
    references={"a uniform guess": math.log(7)}, title="Six layers", ax=ax,
)  # fmt: skip
plots.show(fig, name="05_warm_up")
worst = max(names, key=lambda name: ends[name].mean())
course.resolve(
    "05.4", worst, f"It ends at {ends[worst].mean():.2f}; a uniform guess has 1.95."
)

# %% [markdown]
# One of the four hardly learns: post-norm without warm-up ends close to the uniform guess. With warm-up the same model learns. Pre-norm does not need it here. Xiong et al. ([arXiv:2002.04745](https://arxiv.org/abs/2002.04745)) report the same difference. But *why* does the one fail? Now the inside (the geometric mean over the seeds). Rows are training steps, from top to bottom; columns are the six blocks. In which row is the matter decided?

# %%
fig, axes = plots.figure(1, 3, width=9.8, height=3.5)
shown = ["post-norm, no warm-up", "post-norm, warm-up", "pre-norm, no warm-up"]
for panel, name in zip(axes, shown, strict=True):
    by_step = {}
    for step, varieties in insides[name]:
        by_step.setdefault(step, []).append(varieties)
    rows = {
        step: torch.tensor(v).log().mean(dim=0).exp() for step, v in by_step.items()
    }
    bar_label = "variety" if panel is axes[-1] else None
    plots.depth_map(rows, low=1e-3, high=1, bar_label=bar_label, title=name, ax=panel)
    panel.set_xlabel("block (0 = the lowest)")
axes[0].set_ylabel("training step")
plots.show(fig, name="05_inside_warm_up")

# %% [markdown]
# In the first few. Post-norm starts with tokens that are already rather alike at the top, and after a few steps at the full rate they are almost equal there. The way back is probably long: where tokens are alike, the query weights learn next to nothing, as we saw with attention alone. With warm-up the first steps are small, the variety survives them, and then grows by itself. This is the collapse of step 1 again.
#
# (Xiong et al. argue from the size of gradients; we see what becomes of the tokens. That the collapse causes the failure we have not shown.)
#
# So is post-norm ill, and pre-norm immune? Before we say so, two more trials without warm-up: post-norm at a *sixth* of the learning rate, and pre-norm at many times the rate.

# %%
final = {}
for norm, lr in (("last", 1e-3), ("first", 1e-1)):
    runs = []
    for seed in range(2):
        model = Sorter(
            stack(lambda norm=norm: Block(norm=norm), 6, seed), norm == "first"
        )
        runs.append(sum(train(model, n_steps, lr=lr)[-10:]) / 10)
    final[norm, lr] = sum(runs) / 2
    print(f"norm {norm:<6}rate {lr:<6}loss at the end", *(f"{end:.2f}" for end in runs))
if not smoke:
    assert final["last", 1e-3] < 1 and final["first", 1e-1] > 1.8  # learns; does not

# %% [markdown]
# At the low rate post-norm learns without warm-up; at a rate that is absurd enough pre-norm does not learn either. So the honest sentence is: *at a learning rate at which pre-norm learns at once, post-norm needs warm-up.*
#
# ## Step 5: dropout
#
# In training, **dropout** sets each number to 0 with probability $p$ and divides the others by $1 - p$, so that the mean stays what it was. In use it does nothing. A switch on the module decides: `.train()` or `.eval()`. In our block it acts on what each sublayer adds to the stream (Vaswani et al., section 5.4), after the ReLU, and on the attention weights, as in torch. Forgetting `.eval()` is the classic
# mistake: the model then gives another answer each time.

# %%
numbers, dropout = torch.full((10_000,), 3.0), nn.Dropout(0.25)
dropped = dropout.train()(numbers)
print("in training:", sorted({round(v, 3) for v in dropped.tolist()}), " 3 / 0.75 = 4")
print("in use:     ", sorted({round(v, 3) for v in dropout.eval()(numbers).tolist()}))
assert abs(dropped.mean().item() - 3) < 0.1
blocks = stack(lambda: Block(dropout=0.2), 2).double()
for mode in ("train", "eval"):
    blocks.train(mode == "train")
    print(f"{mode:<6}twice the same: {torch.equal(blocks(x), blocks(x))}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# What is it good for? It makes it hard to learn examples by heart, that is, to **overfit**. So we give the sorter only 64 rows, the same ones again and again, and measure on them and on 400 fresh ones: without dropout, with $p = 0.2$, and, as a baseline, without dropout but with *twice the rows*. **Predict 05.5.**

# %%
course.predict(
    "05.5",
    "Which has the lowest loss on fresh rows after 140 steps?",
    ["64 rows", "64 rows, dropout", "128 rows"],
)


# %%
def few_examples(n_rows, dropout, seed):
    model = Sorter(stack(lambda: Block(dropout=dropout), 2, seed), final_norm=True)
    known, seen = draw_rows(n_rows), []  # the seed of the stack draws them too

    @torch.no_grad()
    def check(step, model):
        if step % 20 == 0:
            model.eval()
            seen.append([sort_loss(model, rows).item() for rows in (known, fresh)])
            model.train()

    def draw():
        return known[torch.randint(n_rows, (16,))]

    train(model, 20 if smoke else 140, draw, watch=check)
    return seen  # (checks, 2)


_ = torch.manual_seed(9)
fresh = draw_rows(400)
arms = {"64 rows": (64, 0.0), "64 rows, dropout": (64, 0.2), "128 rows": (128, 0.0)}
overfitting = {}
for name, arm in arms.items():
    overfitting[name] = torch.tensor([few_examples(*arm, seed) for seed in range(3)])

# %% [markdown]
# Mean and spread over three seeds. "At their best" is the lowest loss on fresh rows at any check on the way. One may stop there, if one has rows to spare for finding out.

# %%
print(f"{'':<18}known rows      fresh rows      fresh rows, at their best")
fresh_at_end = {}
for name, seen in overfitting.items():  # (seeds, checks, 2)
    cells = (seen[:, -1, 0], seen[:, -1, 1], seen[..., 1].amin(dim=1))
    print(
        f"{name:<18}" + "     ".join(f"{c.mean():.2f} ± {c.std():.2f}" for c in cells)
    )
    fresh_at_end[name] = seen[:, -1, 1].mean().item()
if not smoke:
    assert fresh_at_end["64 rows, dropout"] < fresh_at_end["64 rows"]
    # fresh minus known
    assert overfitting["64 rows, dropout"][:, -1].mean(dim=0).diff() > 0.2
best = min(fresh_at_end, key=fresh_at_end.get)
course.resolve("05.5", best, f"It ends at {fresh_at_end[best]:.2f} nats per digit.")

# %% [markdown]
# Without dropout the 64 rows are known largely by heart at the end, and on fresh rows the loss at the end is higher than at its best. Dropout takes a good part off the damage, but with it too, known and fresh rows lie far apart. And look at the third line. Dropout helps when data is scarce; more data helps more. [Lesson 08](08_pretraining.ipynb), with plenty of text, does without.
#
# ## What this does not show
#
# - The maps are of *random* weights. They say how a network starts, and a network that starts well can still train badly.
# - Width 32 and 100 steps are tiny, and we looked at few learning rates. A fair comparison would look for the best rate of each order, with and without warm-up.
# - Post-norm does not lose in every respect. In Xiong's experiments both reach about the same quality once warmed up. It is harder to get going, above all when it is deep.
# - The checkerboard shows what one token's vector can be turned into. In a text, attention itself is a product of tokens, and can do more than draw straight lines.
#
# ## Take-home
#
# What holds a deep network together? A residual stream, on which each token stays itself; a norm where the sublayers read, which keeps sizes from exploding; and first steps small enough not to break it. The code is the class `Block` above, in 15 lines; here is what each of its parts is for. Then put such lines in order yourself, first those of the norm, then those of the block.
#
# | take away | and this breaks | shown in |
# |---|---|---|
# | the residual connection | all tokens become alike within a few layers, and query weights above them get almost no gradient | step 1 |
# | the norm | signal and gradient grow by many powers of ten in deep stacks | step 2 |
# | one norm of the two (pre-norm) | they still grow, more slowly | break it |
# | feed-forward | about a token by itself there is only a straight line | step 4 |
# | warm-up (post-norm, high rate) | the first steps press the tokens together | use it |
# | dropout | few examples are learned by heart more fully | step 5 |

# %%
course.parsons("layer_norm")

# %% [markdown]
# In each pair below, one line is right and the other is a common mistake. Only one of the two belongs into the block.

# %%
course.parsons("block")

# %% [markdown]
# ## Questions
#
# Pick an answer and read what it says; the wrong answers are common mistakes.

# %%
course.quiz("the_block")

# %% [markdown]
# ## Exercises
#
# Three exercises: the norm, the feed-forward network, and the block in both orders. Fill in the dots and run the cell below them. It checks what you wrote and, if it knows the mistake, names it. While there are only dots, it says "not attempted yet".
#
# [exercise: layer_norm]


# %%
def layer_norm(x, gamma, beta, eps):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("layer_norm", layer_norm)

# %% [markdown]
# [exercise: feed_forward]


# %%
def feed_forward(x, w_up, b_up, w_down, b_down):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("feed_forward", feed_forward)

# %% [markdown]
# [exercise: block]


# %%
def block(x, attn, ff, attn_norm, ff_norm, norm_first):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("block", block)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** How short may the warm-up of post-norm be? Look at the map of the inside once more and guess, then try `warmup_steps` of 20, 10 and 5, with three seeds.
#
# <details><summary>Answer</summary>
#
# The map says that the matter is decided within the first ten steps, so about that many should have to be small. Believe your own runs more than this guess. Real warm-ups are longer, as real training is, and as Adam's averages need time to settle.
#
# </details>
#
# **2.** A count has "the norm" of a layer as $2 D$. By how much is its total wrong for $L$ layers, and which line of the block was forgotten?
#
# <details><summary>Answer</summary>
#
# By $2 D L$. There are two sublayers, attention and feed-forward, and each has its norm: $2 \cdot 2 D$ a layer. With $D = 200$ and four layers that is 1,600 parameters. [Lesson 06](06_counting_parameters.ipynb) finds such mistakes from the wrong total alone.
#
# </details>
#
# ## Summary
#
# 1. The block grows in five steps: attention, `x +`, a norm, a feed-forward network with a norm of its own, dropout. In 15 lines it equals torch's, in both orders.
# 2. Size, variety and gradient, level by level, say before any training how a stack starts.
# 3. A norm takes the numbers of one token to mean 0 and standard deviation 1. Post-norm: $\text{norm}(x + f(x))$. Pre-norm: $x + f(\text{norm}(x))$, and a final norm at the top. Two norms a block.
# 4. Warm-up protects the first steps. At a rate at which pre-norm learns without it, post-norm needs it.
# 5. Dropout acts in `.train()` only. It reduces overfitting and does not replace data.
#
# *Where this comes from:* the block: Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), sections 3.1, 3.3, 5.3 (warm-up) and 5.4 (dropout); the residual connection: He et al., [arXiv:1512.03385](https://arxiv.org/abs/1512.03385), section 3; layer norm: Ba, Kiros and
# Hinton, [arXiv:1607.06450](https://arxiv.org/abs/1607.06450), section 3; pre-norm and warm-up: Xiong et al., [arXiv:2002.04745](https://arxiv.org/abs/2002.04745), sections 3 and 4; RMSNorm: Zhang and Sennrich, [arXiv:1910.07467](https://arxiv.org/abs/1910.07467); SwiGLU: Shazeer, [arXiv:2002.05202](https://arxiv.org/abs/2002.05202); attention alone: Dong, Cordonnier and Loukas,
# [arXiv:2103.03404](https://arxiv.org/abs/2103.03404), section 2; query weights without gradient: Noci et al., [arXiv:2206.03126](https://arxiv.org/abs/2206.03126).
#
# *What comes next:* [lesson 06](06_counting_parameters.ipynb) counts what such blocks learn, term by term, and finds from a wrong number what was forgotten.
