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
# We take "Attention is all you need" at its word: we stack attention, and see what is lost. Then we add one part after another, up to the block of the picture.
#
# After this lesson you can
#
# 1. build a transformer block from attention in four steps, write it in 15 lines, and say of each part what breaks without it;
# 2. measure a signal going up through a stack and a gradient coming down, and read such a map;
# 3. compute layer normalisation by hand, and tell *post-norm* from *pre-norm* by their maps;
# 4. *Further:* say what warm-up is, and show a setting in which post-norm fails without it.
#
# *You need:* lessons [02](02_attention_and_masks.ipynb) to [04](04_many_heads.ipynb).
# *It takes:* an hour and a half to read and do; a minute to run.

# %% [markdown]
# ## Set-up

# %%
import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_course.labs.lesson_05 import signals

_ = torch.set_num_threads(1)
plots.diagram("block")

# %%
course.recall("05")

# %% [markdown]
# ## Why: stack more layers?
#
# **Step 1** is attention and nothing else. A `stack` puts $L$ of them on top of each other. (Glorot's initialisation keeps the size of numbers about the same in one layer.)

# %%
class AttentionAlone(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = tx.MultiHeadAttention(d_model=32, n_heads=4)

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
# ### Further: train it
#
# The task: read eight digits and write them **sorted**, so the answer depends on the position. Around the stack go an embedding, positions, and an output layer that gives seven **logits**, the scores of which softmax makes probabilities.


# %%
N_DIGITS, SEQ_LEN = 7, 8


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


def draw_rows(n_rows=16):
    return torch.randint(N_DIGITS, (n_rows, SEQ_LEN))  # (B, T)


def sort_loss(model, rows):
    sorted_rows = rows.sort(dim=-1).values
    return F.cross_entropy(model(rows).flatten(0, 1), sorted_rows.flatten())


# %% [markdown]
# Training is Adam. In the first `warmup_steps` the learning rate rises to `lr` in a straight line; for now there are none.


# %%
from tinytx_run.recipes import default_budget

smoke = default_budget() == "smoke"  # true in quick tests of the course only
n_steps = 20 if smoke else 100


def train(model, n_steps, lr=6e-3, warmup_steps=0):
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    losses = []
    for step in range(1, n_steps + 1):
        optimizer.param_groups[0]["lr"] = lr * min(1, step / max(1, warmup_steps))
        loss = sort_loss(model, draw_rows())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% [markdown]
# One, two, four and eight layers of attention, two seeds each. A deeper stack has more weights.

# %%
course.predict(
    "05.1",
    "Which depth sorts best after 100 steps?",
    ["1 layer", "2 layers", "4 layers", "8 layers"],
)

# %%
import math

lines, mixture = [], 0.0
for depth in (1, 2, 4, 8):
    models = [Sorter(stack(AttentionAlone, depth, seed)) for seed in range(2)]
    runs = [train(model, n_steps) for model in models]
    lines.append(plots.seed_band(f"{depth} layer" + "s" * (depth > 1), runs, every=10))
    print(f"{lines[-1].label:<10}loss at the end {lines[-1].y[-1]:.2f}")
for k in range(1, SEQ_LEN + 1):  # a digit occurs k times
    p_k = math.comb(SEQ_LEN, k) * 6 ** (SEQ_LEN - k) / 7**SEQ_LEN
    mixture -= N_DIGITS * p_k * k / SEQ_LEN * math.log(k / SEQ_LEN)
fig, ax = plots.figure(width=6.8, height=3.5)
plots.curves(
    lines, xlabel="training step", ylabel="loss (nats per digit)", y_range=(0, 2.1),
    references={"a uniform guess": math.log(7), "all positions alike": mixture},
    title="Attention alone", ax=ax,
)
plots.show(fig, name="05_depth")
assert smoke or min(lines[2].y[-1], lines[3].y[-1]) > mixture
best = min(lines, key=lambda line: line.y[-1])
course.resolve("05.1", best.label, f"Its loss at the end is {best.y[-1]:.2f}.")

# %% [markdown]
# The lower dashed line is the best loss of a model that knows how often each digit occurs in the row, but gives the same answer at every position. After 100 steps four and eight layers are still above it, no better than a model for which **all positions are alike**. With so few steps, and no stack of another kind next to them, the figure does not say why.
#
# ## By hand: what a mean does
#
# Three tokens have one number each, 6, 0 and 3. Each attends half to itself and a quarter to each other one: the first becomes $\frac12 \cdot 6 + \frac14 \cdot 0 + \frac14 \cdot 3 = 3.75$. In four layers, one after the other, this mean either *replaces* the token or is *added* to it.

# %% tags=["nbval-check-output"]
weights = torch.tensor([[2, 1, 1], [1, 2, 1], [1, 1, 2]]) / 4
replaced = added = torch.tensor([6.0, 0.0, 3.0])
for _ in range(4):
    replaced, added = weights @ replaced, added + weights @ added
print(f"after four layers: replaced {replaced}, added {added}")

# %% [markdown]
# Replaced tokens are soon nearly equal. If the mean is *added*, differences survive, but the average of the three tokens doubles with each layer. So we watch two numbers:
#
# $$\text{size}(x) = \sqrt{\operatorname{mean}(x^2)}, \qquad \text{variety}(x) = \frac{\text{size}(x - \text{mean token})}{\text{size}(x)} .$$
#
# **Variety** is our word for the share of the signal that tells tokens apart, from 0 (all alike) to 1. Papers call its fall **rank collapse**. `signals` computes both after every layer. It also sends a random **gradient** of size 1 in at the top, and measures its size at each level below: how strongly the top reacts to a change there.

# %%
_ = torch.manual_seed(1)
x = torch.randn(8, 16, 32, dtype=torch.float64)  # (B, T, D)
seen = signals(stack(AttentionAlone, 8).double(), x)
print("variety, level 0 to 4:", *(f"{share:.0e}" for share in seen.variety[:5]))
assert seen.variety[4] < 1e-12 and max(seen.variety[4:]) < 1e-8

# %% [markdown]
# With random weights, attention alone makes all sixteen tokens of a text equal at level 4, up to rounding. Then it does not matter which attends to which, so the query weights from the fourth layer on get next to no gradient, a **vanishing gradient** (*Further*).
#
# ## Step 2: a way past, the residual connection
#
# With a **residual connection** a block no longer *replaces* what comes in; it adds a change to it: $x_{l+1} = x_l + \text{attn}(x_l)$.
#
# What runs through all the sums is the **residual stream**: the token's own vector reaches the top as one term of a sum. And as the derivative of $x + f(x)$ is $1 + f'(x)$, a gradient has a straight way down. We measure untrained stacks of 2 to 32 layers.

# %%
DEPTHS = (2, 4, 8, 16, 32)


def measure(make_block):
    return {depth: signals(stack(make_block, depth).double(), x) for depth in DEPTHS}


def column(seen, quantity):
    return {name: getattr(levels, quantity) for name, levels in seen.items()}


class WithResidual(AttentionAlone):
    def forward(self, x):
        return x + self.attn(x)  # (B, T, D)


residual = measure(WithResidual)
seen = residual[32]
size, variety, gradient = seen.size[-1], seen.variety[-1], seen.gradient[0]
print(f"32 layers: signal {size:,.0f}, variety {variety:.0e}, gradient {gradient:.0e}")
assert size > 1000 and variety > 1e-5 and gradient > 1e4

# %% [markdown]
# Tokens become alike far more slowly. But now signal and gradient **explode**.
#
# ### Further: the explosion, in maps
#
# Each stack is a row of cells, from the input at the left to the top at the right; white is 1, red is larger.

# %%
fig, axes = plots.figure(2, 1, width=8.4, height=4.6)
titles = {"size": "The signal, going up", "gradient": "The gradient, coming down"}
for (quantity, title), panel in zip(titles.items(), axes, strict=True):
    rows = column(residual, quantity)
    plots.depth_map(rows, low=1e-1, high=1e8, bar_label="size", title=title, ax=panel)
axes[1].set_xlabel("level (0 = the input)")
fig.supylabel("layers in the stack")
plots.show(fig, name="05_with_residual")

# %% [markdown]
# ## Step 3: layer normalisation
#
# **Layer normalisation** takes *one token*, subtracts the mean of its $D$ numbers and divides by their standard deviation; then come a learned factor $\gamma$ and a learned shift $\beta$ for each of the $D$ numbers, 1 and 0 at the start ($\varepsilon$ prevents a division by zero):
#
# $$\text{norm}(x) = \gamma \cdot \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta, \qquad \mu = \tfrac1D \sum_i x_i, \quad \sigma^2 = \tfrac1D \sum_i (x_i - \mu)^2 .$$
#
# On paper: the token (1, 3, 5, 7) has the mean 4 and the deviations −3, −1, 1, 3, whose squares have the mean 5. So it becomes $(-3, -1, 1, 3) / \sqrt5$.

# %% tags=["nbval-check-output"]
def norm_at_once(x, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)  # (..., D)
    return centred / (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt()


print(norm_at_once(torch.tensor([1.0, 3.0, 5.0, 7.0])))
normed = norm_at_once(x)
torch.testing.assert_close(normed, F.layer_norm(x, (32,)))
torch.testing.assert_close(norm_at_once(100 * x + 7), normed, rtol=1e-4, atol=1e-4)
print("equal to torch; 100 times larger, plus 7: the same")

# %% [markdown]
# The transformer paper of 2017 applies it to the sum: **post-norm**, `norm="last"` in our settings. A later variant applies it to what attention reads: **pre-norm**, `norm="first"`.


# %%
class PostNorm(WithResidual):
    def __init__(self):
        super().__init__()
        self.attn_norm = nn.LayerNorm(32)

    def forward(self, x):
        return self.attn_norm(x + self.attn(x))  # (B, T, D)


class PreNorm(PostNorm):
    def forward(self, x):
        return x + self.attn(self.attn_norm(x))  # (B, T, D)


# %% [markdown]
# **Predict 05.2.** The same stacks, with a norm in each block.

# %%
course.predict(
    "05.2",
    "At the top of 32 layers, which order has the larger variety?",
    ["post-norm", "about equal, within a factor of 2", "pre-norm"],
)

# %%
measured = {"Post-norm": measure(PostNorm), "Pre-norm": measure(PreNorm)}
fig, axes = plots.figure(1, 2, width=9.4, height=2.5)
for (name, seen), panel in zip(measured.items(), axes, strict=True):
    rows = column(seen, "variety")
    plots.depth_map(rows, low=1e-4, high=1, bar_label="variety", title=name, ax=panel)
    panel.set_xlabel("level (0 = the input)")
fig.supylabel("layers in the stack")
plots.show(fig, name="05_post_norm_and_pre_norm")
post, pre = (seen[32] for seen in measured.values())
both = post.gradient + pre.gradient
print(f"32 layers: gradients between {min(both):.1f} and {max(both):.1f}")
assert 0.1 < min(both) < max(both) < 10
post, pre = post.variety[-1], pre.variety[-1]
assert post < 0.01 and pre > 10 * post
tops = [measured["Post-norm"][depth].variety[-1] for depth in DEPTHS]
assert tops == sorted(tops, reverse=True)
finding = f"Post-norm {post:.4f}, pre-norm {pre:.4f}."
course.resolve("05.2", pre / post, finding, thresholds=[0.5, 2])

# %% [markdown]
# With post-norm the variety goes on fading; with pre-norm it fades far less in deep stacks: the stream grows from layer to layer and what is added does not, so each layer changes a smaller share of it. At 32 layers both gradients stay within a factor of ten of 1. At the top the stream of pre-norm has passed no norm yet, so *one* more comes at the very end, the **final norm**.
#
# Change the depth, the norm and the residual connection.

# %%
course.widgets.depth()

# %% [markdown]
# ## Step 4: the feed-forward network
#
# Apart from mixing tokens, attention only multiplies them by fixed matrices. The **feed-forward network** can do more:
#
# $$\text{ff}(x) = \max(0,\; x W_{\text{up}} + b_{\text{up}})\, W_{\text{down}} + b_{\text{down}},$$
#
# the same for every token, from $D$ numbers up to $F$ and back. The function between the two linear layers, here **ReLU**, is the **activation**.

# %%
class FeedForward(nn.Module):
    def __init__(self, d_model=32, d_ff=64):
        super().__init__()
        self.up_proj = nn.Linear(d_model, d_ff)
        self.down_proj = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down_proj(self.up_proj(x).relu())  # (B, T, D) -> (B, T, F) -> ...


# %% [markdown]
# ## The block in 15 lines
#
# The **block** has two **sublayers**: attention *between* tokens, and feed-forward *on* each token. Each has its own residual connection and its **own norm**. (*Further* finds this block equal to torch's and to the package's.)


# %%
class Block(nn.Module):
    def __init__(self, d_model=32, n_heads=4, d_ff=64, norm="first"):
        super().__init__()
        self.norm_first = norm == "first"
        self.attn_norm, self.ff_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = tx.MultiHeadAttention(d_model=d_model, n_heads=n_heads)
        self.ff = FeedForward(d_model, d_ff)

    def forward(self, x, mask=None):
        if self.norm_first:  # pre-norm: x + f(norm(x))
            x = x + self.attn(self.attn_norm(x), mask=mask)  # (B, T, D)
            x = x + self.ff(self.ff_norm(x))  # (B, T, D)
        else:  # post-norm: norm(x + f(x))
            x = self.attn_norm(x + self.attn(x, mask=mask))  # (B, T, D)
            x = self.ff_norm(x + self.ff(x))  # (B, T, D)
        return x


# %% [markdown]
# ### Further: a straight line, and one that bends
#
# In a text of *one token* softmax over one key is 1, so the token receives its own value: a matrix times $x$. Without a norm, a stack of any depth is then one straight line, for which $f(a + b) + f(0) = f(a) + f(b)$.

# %% tags=["nbval-check-output"]
from tinytx_course.labs.lesson_05 import size_of

a, b = x[:, :1], x[:, 1:2]  # texts of one token
for name, f in {
    "32 layers of attention": stack(WithResidual, 32).double(),
    "1 feed-forward network": stack(FeedForward, 1).double(),
}.items():
    bent = size_of(f(a + b) + f(0 * a) - f(a) - f(b)) / size_of(f(a))
    print(f"{name}: a straight line, {bent < 1e-9}")

# %% [markdown]
# ### Further: equal to torch and to the package
#
# We draw all weights at random (norms and biases as well, so a missing one would show), copy them to torch's `nn.TransformerEncoderLayer` and to `tx.Block`, and compare. Torch stores the three projections in one matrix, and uses other names.

# %% tags=["nbval-check-output"]
torchs = {
    "self_attn.out_proj": "attn.out_proj", "linear1": "ff.up_proj",
    "linear2": "ff.down_proj", "norm1": "attn_norm", "norm2": "ff_norm",
}
config = tx.TransformerConfig(vocab_size=7, d_model=32, n_heads=4, n_layers=1, d_ff=64)
mask = tx.causal_mask(16)
for norm in ("first", "last"):
    ours = Block(norm=norm).double()
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.5)
    mine, renamed = ours.state_dict(), {}
    for part in ("weight", "bias"):
        three = [mine[f"attn.{name}_proj.{part}"] for name in "qkv"]
        renamed[f"self_attn.in_proj_{part}"] = torch.cat(three)
        for its, name in torchs.items():
            renamed[f"{its}.{part}"] = mine[f"{name}.{part}"]
    settings = {"dropout": 0.0, "batch_first": True, "norm_first": norm == "first"}
    theirs = nn.TransformerEncoderLayer(32, 4, 64, **settings).double()
    package = tx.Block(config.replace(norm=norm, activation="relu")).double()
    theirs.load_state_dict(renamed)
    package.load_state_dict(mine)
    for got in (theirs(x, src_mask=~mask), package(x, mask)):
        torch.testing.assert_close(got, ours(x, mask), rtol=0, atol=1e-9)
    print(f"norm {norm}: equal to torch's layer and to the package's")

# %% [markdown]
# ## Further: train both orders, with warm-up and without
#
# **Warm-up** means: start with a tiny learning rate and raise it in a straight line to the full one, in the paper (section 5.3) for 4,000 steps, here for 30 of 100. Six layers, two seeds each, all else equal but the final norm of pre-norm.

# %%
orders, ways = ("post-norm", "pre-norm"), ("no warm-up", "warm-up")
names = [f"{order}, {way}" for order in orders for way in ways]
course.predict("05.3", "Which setting has the highest loss after 100 steps?", names)

# %% [markdown]
# The first setting is also trained at a sixth of the rate.

# %%
def six_layers(name, seed):
    norm = "last" if name.startswith("post-norm") else "first"
    blocks = stack(lambda: Block(norm=norm), 6, seed)
    return Sorter(blocks, final_norm=norm == "first")


results = {}
for name in names:
    rise = 0 if name.endswith("no warm-up") else 30
    models = [six_layers(name, seed) for seed in range(2)]
    results[name] = [train(model, n_steps, warmup_steps=rise) for model in models]
models = [six_layers("post-norm", seed) for seed in range(2)]
low = [train(model, n_steps, lr=1e-3)[-10:] for model in models]

# %% tags=["folded"]
ends = {name: torch.tensor(results[name])[:, -10:].mean(dim=-1) for name in names}
ends["post-norm, a sixth of the rate"] = torch.tensor(low).mean(dim=-1)
for name, last in ends.items():
    print(f"{name:<32}loss at the end", *(f"{end:.2f}" for end in last))
lines = []
for name, runs in results.items():
    look = {"color": plots.COLORS["post" in name], "dashed": "no warm-up" in name}
    lines.append(plots.seed_band(name, runs, every=10, **look))
fig, ax = plots.figure(width=7.0, height=3.6)
plots.curves(
    lines, xlabel="training step", ylabel="loss (nats per digit)", y_range=(0, 2.1),
    references={"a uniform guess": math.log(7)}, title="Six layers", ax=ax,
)
plots.show(fig, name="05_warm_up")
worst = max(names, key=lambda name: ends[name].mean())
assert smoke or (worst == "post-norm, no warm-up" and ends[worst].min() > 1.7)
assert smoke or max(last.max() for name, last in ends.items() if name != worst) < 1
course.resolve("05.3", worst, f"It ends at {ends[worst].mean():.2f}; ln 7 is 1.95.")

# %% [markdown]
# Was it the rate or the order? Pre-norm at a sixth of the rate:

# %%
models = [six_layers("pre-norm", seed) for seed in range(2)]
low = torch.tensor([train(model, n_steps, lr=1e-3)[-10:] for model in models])
print("loss at the end", *(f"{end:.2f}" for end in low.mean(dim=-1)))
gap = low.mean(dim=-1) - ends["post-norm, a sixth of the rate"]
assert smoke or gap.abs().max() < 0.3

# %% [markdown]
# At the low rate post-norm comes closer. Post-norm without warm-up ends close to the uniform guess. With warm-up, or at a sixth of the learning rate, the same model learns. So **in these 100 steps, at a rate at which pre-norm learns without warm-up, post-norm learns only with it**, as Xiong et al. report ([arXiv:2002.04745](https://arxiv.org/abs/2002.04745), sections 3 and 4); a lower rate helps, too. In their experiments pre-norm without warm-up comes about as far as post-norm with it.
#
# ## Further: a gradient that vanishes
#
# The stacks of attention alone: what arrives at the query weights of each block.

# %%
from tinytx_course.labs.lesson_05 import weight_gradients

for depth in DEPTHS[1:]:
    blocks = stack(AttentionAlone, depth).double()
    at_queries = weight_gradients(blocks, x, "attn.q_proj.weight")
    assert max(at_queries[3:]) < 1e-8
print("32 layers, from the lowest:", *(f"{size:.0e}" for size in at_queries[:6]))

# %% [markdown]
# From the fourth layer on, whatever the depth, the query weights receive next to nothing (Noci et al., [arXiv:2206.03126](https://arxiv.org/abs/2206.03126)).
#
# ## Further: dropout
#
# In training, **dropout** sets each number to 0 with probability $p$ and divides the others by $1 - p$, so the mean stays what it was. It is meant to make it harder to learn examples by heart, that is, to **overfit** (Srivastava et al., *Dropout*, 2014; in the paper section 5.4). In use it does nothing: `.train()` or `.eval()` decides. If `.eval()` is forgotten, each call gives another answer.

# %% tags=["nbval-check-output"]
numbers, dropout = torch.full((10_000,), 3.0), nn.Dropout(0.25)
dropped = dropout.train()(numbers)
print("in training:", sorted({round(v, 3) for v in dropped.tolist()}), " 3 / 0.75 = 4")
print("in use:     ", sorted({round(v, 3) for v in dropout.eval()(numbers).tolist()}))
assert abs(dropped.mean().item() - 3) < 0.1
careful = tx.Block(config.replace(dropout=0.2)).double()
for mode in ("train", "eval"):
    careful.train(mode == "train")
    print(f"{mode:<6}twice the same: {torch.equal(careful(x), careful(x))}")

# %% [markdown]
# ## Questions

# %%
course.quiz("the_block")

# %% [markdown]
# ## Exercises
#
# [exercise: parallel_block]


# %%
def parallel_block(x, attn, ff, norm):
    ...


# %%
course.check("parallel_block", parallel_block)

# %% [markdown]
# ## Further: three more exercises
#
# [exercise: layer_norm]


# %%
def layer_norm(x, gamma, beta, eps):
    ...


# %%
course.check("layer_norm", layer_norm)

# %% [markdown]
# [exercise: feed_forward]


# %%
def feed_forward(x, w_up, b_up, w_down, b_down):
    ...


# %%
course.check("feed_forward", feed_forward)

# %% [markdown]
# [exercise: block]


# %%
def block(x, attn, ff, attn_norm, ff_norm, norm_first):
    ...


# %%
course.check("block", block)

# %% [markdown]
# ## Take-home
#
# | take away | and this breaks | shown in |
# |---|---|---|
# | the residual connection | with random weights all tokens become alike within four layers | *By hand* |
# | the norm | signal and gradient grow by many powers of ten in deep stacks | step 2 |
# | feed-forward | apart from the norms, a token by itself is only mapped linearly | *Further* |
#
# ## What this does not show
#
# The maps show attention without feed-forward networks, with one draw of *random* weights, of width 32.
#
# ## Summary
#
# 1. A block has two sublayers, attention and feed-forward. Each has its own norm and its own residual connection.
# 2. In deep untrained stacks of attention far more of the variety is left with pre-norm than with post-norm.
# 3. A norm takes the numbers of one token to mean 0 and standard deviation 1. Post-norm: $\text{norm}(x + f(x))$. Pre-norm: $x + f(\text{norm}(x))$, and a final norm at the top.
#
# *Where this comes from:* the block: Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), sections 3.1 and 3.3; the residual connection: He et al., [arXiv:1512.03385](https://arxiv.org/abs/1512.03385), section 3; layer norm: Ba, Kiros and
# Hinton, [arXiv:1607.06450](https://arxiv.org/abs/1607.06450), section 3; pre-norm: Xiong et al., [arXiv:2002.04745](https://arxiv.org/abs/2002.04745); attention alone: Dong, Cordonnier and Loukas, [arXiv:2103.03404](https://arxiv.org/abs/2103.03404), section 2.
#
# *What comes next:* [lesson 06](06_counting_parameters.ipynb) counts what such blocks learn, term by term.
