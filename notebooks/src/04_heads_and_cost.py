# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 · Heads and cost
#
# **Why many heads, and what do they cost?**
#
# After this lesson you can
#
# 1. write attention of one sequence over another, cut one projection into many heads, and say why their number changes no parameter count;
# 2. prove that one head cannot do a task that two can, and show it by training;
# 3. derive what attention, recurrent layers and convolutions cost, and say *when* one is cheaper;
# 4. measure the same on your machine: time, waiting, and how far a gradient reaches;
# 5. work out the operations and the memory of a whole model before you build it.
#
# *You need:* lesson 02, attention and masks. *It takes:* an hour to read; three quarters of a minute to run, with or without a GPU.

# %% [markdown]
# ## Set-up
#
# Times are measured in this lesson, so everything runs on one core, where less disturbs them. The budget `smoke`
# cuts training and measuring short: everything runs then, but little is learned, and the times mean nothing.

# %%
import itertools

import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx.model.transformer import record_hidden_states
from tinytx.training.recipes import default_budget
from tinytx_course import plots
from tinytx_course.labs import lesson_04

torch.set_num_threads(1)
smoke = default_budget() == "smoke"

# %% [markdown]
# ## Why: one look, two questions
#
# A verb wants to know its subject *and* its object. Two questions, two places to look at. But attention is a mean: its weights sum to one, and out comes one blend. The tempting answer is: "no
# matter, let it look at both, half and half." Let the two places hold one bit each, and give a bit its own number as value. Here is what arrives for all four cases.

# %%
for first, second in itertools.product([0, 1], repeat=2):
    blend = 0.5 * first + 0.5 * second
    print(f"the places hold {first} and {second}, what arrives is {blend}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Four cases went in, and three came out: after the blend nobody can tell *0 and 1* from *1 and 0*. Who did what to whom is lost. A second head would look at the other place by itself. Is there really no way round it, with
# other weights, with more width, with longer training? And if we take more heads, what does it cost? These are the two halves of this lesson.
#
# ## By hand: attention of y over x
#
# First the tool, once more and in its general form. A sequence $y$ of $T$ vectors asks a sequence $x$ of $S$ vectors:
#
# $$\operatorname{attention}(y, x) = \operatorname{softmax}\left(\frac{Q_y K_x^\top}{\sqrt{d}}\right) V_x, \qquad Q_y = y W_Q,\quad K_x = x W_K,\quad V_x = x W_V .$$
#
# In words: all products of queries and keys, scaled, become weights along each row, and the weights take means of the values.

# %%
_ = torch.manual_seed(0)
D = 8
w_q, w_k, w_v = torch.randn(3, D, D) / D**0.5


def attend(y, x):
    scores = (y @ w_q) @ (x @ w_k).T / D**0.5  # (T, D) @ (D, S) -> (T, S)
    return scores.softmax(dim=-1) @ (x @ w_v)  # (T, S) @ (S, D) -> (T, D)


# %% [markdown]
# In loops: every $y_t$ scores every $x_s$; the exponentials of the scores, divided by their sum, are the weights; and the mean of the values by these weights is what $y_t$ receives. Both must give the same.

# %%
y, x = torch.randn(2, D), torch.randn(5, D)
for t in range(2):
    raised = [((y[t] @ w_q) @ (x[s] @ w_k) / D**0.5).exp() for s in range(5)]
    received = sum(raised[s] / sum(raised) * (x[s] @ w_v) for s in range(5))
    torch.testing.assert_close(received, attend(y, x)[t])

# %% [markdown]
# Two askers, five that are asked, two answers: the result is as long as $y$ and made of stuff from $x$. **Self-attention** is the case $y = x$, a sequence that asks itself, and needs no formula of its own. The package says the same:
# `module(y, memory=x)`, and `module(x)` when the memory is the sequence itself.

# %%
module = tx.MultiHeadAttention(d_model=D, n_heads=2)
longer, shorter = torch.randn(1, 5, D), torch.randn(1, 2, D)  # (B, S, D), (B, T, D)
torch.testing.assert_close(module(longer, memory=longer), module(longer))
print("y over x:", tuple(module(shorter, memory=longer).shape))
print("x over x:", tuple(module(longer).shape))

# %% [markdown]
# ## Vectorised: many heads are one reshape
#
# With $H$ heads, each has its own $W_Q^h, W_K^h, W_V^h$, from $D$ numbers to only $K = D / H$. Each attends for itself, the results are laid side by side, and a last map $W_O$ mixes them. Written so, it is a
# loop over heads. We take the matrices of the heads from `module`: head $h$ owns rows $hK$ to $(h+1)K$ of each projection.


# %%
def head_by_head(module, x):
    three, contexts = (module.q_proj, module.k_proj, module.v_proj), []
    for rows in torch.arange(D).split(D // module.n_heads):
        of_head = [F.linear(x, proj.weight[rows], proj.bias[rows]) for proj in three]
        contexts.append(tx.attention(*of_head))  # q, k, v: (B, T, K)
    return module.out_proj(torch.cat(contexts, dim=-1))  # H times (B, T, K) -> (B, T, D)


torch.testing.assert_close(head_by_head(module, longer), module(longer))

# %% [markdown]
# Now without the loop. The matrices of all heads, one below the other, *are* one $D \times D$ matrix. So project once, and cut the $D$ numbers of each result into $H$ lots of $K$. Cutting is a reshape: no number is
# computed or moved. The axis of heads then goes to the front, where attention takes it as one more batch axis.


# %%
def heads(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)  # (B, T, D) -> (B, H, T, K)


three = (module.q_proj, module.k_proj, module.v_proj)
context = tx.attention(*(heads(proj(longer), 2) for proj in three))  # (B, H, T, K)
output = module.out_proj(context.transpose(1, 2).flatten(2))  # -> (B, T, H, K) -> (B, T, D)
torch.testing.assert_close(output, head_by_head(module, longer))

# %% [markdown]
# To see that nothing is lost on the way, follow single numbers. In this explorer each entry carries its address, (b, t, d), and keeps it through a whole block: the projections, the cut into heads, scores, weights, and the way
# back. Choose an entry and move through the steps; then choose another number of heads. Which lines of the list change their shape, and does any change its parameters?

# %%
course.widgets.shapes(batch_size=2, seq_len=5, d_model=8, n_heads=2, d_ff=10, step=3)

# %% [markdown]
# Shapes with an H in them change, and so does the number of scores. The parameters stay what they are.
#
# ## The package, and torch
#
# `tx.MultiHeadAttention` is this code with the fused kernel in the middle. Torch's own module stores the first three projections in one matrix and reads a boolean mask with the **opposite sign**: there True means *blocked*. So with our weights
# copied into it, our `mask` must agree with its `~mask`.

# %%
ours = tx.MultiHeadAttention(d_model=12, n_heads=3)
theirs = nn.MultiheadAttention(12, 3, batch_first=True)
three = (ours.q_proj, ours.k_proj, ours.v_proj)
theirs.in_proj_weight.data = torch.cat([proj.weight.data for proj in three])  # (3 D, D)
theirs.in_proj_bias.data = torch.cat([proj.bias.data for proj in three])
theirs.out_proj.load_state_dict(ours.out_proj.state_dict())
words, mask = torch.randn(2, 7, 12), tx.causal_mask(7)
output, _ = theirs(words, words, words, attn_mask=~mask)
torch.testing.assert_close(ours(words, mask=mask), output)

# %% [markdown]
# ### What the number of heads changes, and what it does not
#
# Since heads are lots cut from one projection, their number should change no parameter, but change the function. Guess before you read: how many parameters have 1, 2, 4, 8 heads at width 64, and how different is what
# they compute, *with the very same weights*? The last column is the slip of many reports: they multiply the size of one map, $D^2 + D$, by the number of **heads**.

# %%
one = tx.MultiHeadAttention(d_model=64, n_heads=1)
tokens = torch.randn(1, 10, 64)
print("heads   parameters   output differs by   heads · (D² + D)")
for n_heads in (1, 2, 4, 8):
    many = tx.MultiHeadAttention(d_model=64, n_heads=n_heads)
    many.load_state_dict(one.state_dict())
    differs = (many(tokens) - one(tokens)).norm() / one(tokens).norm()
    slip = n_heads * (64**2 + 64)
    print(f"{n_heads:>5}{tx.count_parameters(many):>13,}{differs:>17.0%}{slip:>21,}")

# %% [markdown]
# The count stands still; the function does not. And the slip is right exactly once, at four heads, by luck: four is the number of **maps** (queries, keys, values, out). Whoever checks the formula on a model with four heads will never notice. With any
# other number a checker can tell:

# %%
import textwrap

for n_heads in (4, 2):
    config = tx.PRESETS["seed-lab"].replace(n_heads=n_heads)
    claimed = n_heads * (200**2 + 200)
    verdict = str(tx.diagnose_count(config, "lm", claimed, part="attention"))
    print(textwrap.fill(f"{n_heads} heads: {verdict}", 84))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Look: a task that one head cannot do
#
# Eight bits sit on a ring. Each place asks two questions: which bit is **one** place back, and which is **three** places back? Two answers of one bit each, so four possible pairs. There are $2^8 = 256$ rows in all, and we shall test every
# one. Over all rows, each of the four pairs is the right one for exactly a quarter.

# %%
bits = lesson_04.all_rows()  # (256, T)
right = lesson_04.answers_to(bits)  # (256, T, 2)
pairs = (2 * right[..., 0] + right[..., 1])[:, 5]  # what place 5 should say: 0, 1, 2 or 3
print("bits", bits[77].tolist(), " place 5 should say", right[77, 5].tolist())
print("rows for each pair:", pairs.bincount().tolist())
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The model is bare attention: queries and keys know letters and places; **values know the letter only** (so it is in the first layer of a model with rotary positions or ALiBi); what the heads bring goes through one linear map to two numbers, and the sign
# of each is an answer. Here is all that it computes; `_heads` is the reshape from above.


# %%
import inspect

print(inspect.getsource(lesson_04.Asker.weights))
print(inspect.getsource(lesson_04.Asker.forward))

# %% [markdown]
# ### The proof
#
# **Claim.** One head with a linear readout gives, at any place, at most *three* of the four pairs, whatever its weights. So at most three quarters of its answers are right.
#
# 1. There are two letters, so there are two values, $v_0$ and $v_1$. Let $\lambda$ be the total weight on places that hold a 1. Weights sum to one, so the head brings $(1 - \lambda)\,v_0 + \lambda\,v_1$: a point on the straight **segment** from $v_0$ to $v_1$.
# 2. Each answer asks whether a linear function (plus a constant) is positive. Along a segment such a function is $a + b\lambda$. It changes its sign at most once.
# 3. Two answers, two changes: they cut the segment into at most three pieces. On each piece the pair of answers is one and the same. One of the four pairs is **never given**.
# 4. Every pair is right for exactly a quarter of the rows. So at least a quarter is wrong.
#
# Width does not occur in it, nor how weights come about, nor training. It used three things: one set of weights, values that know two letters only, a linear readout. Two heads have a $\lambda$ each, so a whole **square** instead of a
# segment, with a corner for each pair.
#
# Is the bound reached? By hand: put $2/3$ of the weight on the first place and $1/3$ on the second, so that $\lambda$ tells all four cases apart, and cut as well as one can.

# %%
one_back, three_back = bits.roll(1, dims=1), bits.roll(3, dims=1)  # (256, T)
lam = 2 / 3 * one_back + 1 / 3 * three_back  # 0, 1/3, 2/3 or 1
said = torch.stack([lam > 1 / 2, lam > 1 / 6], dim=-1)  # one cut for each answer
by_hand = (said == right).all(dim=-1).float().mean().item()
print(f"right pairs with one head, set by hand: {by_hand:.2f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Exactly three quarters: the bound cannot be lowered. (The first cut is right always; the second would have to cut twice.)
#
# ### Trained
#
# Now gradient descent may try. Each model is trained on random rows, from five different seeds, and then asked about all 256 rows. What do you expect of one head four times as wide? The last model is a control: its readout is a small network with a hidden layer instead of a linear map.


# %%
shapes = {
    "one head": {"width": 16, "n_heads": 1},
    "one head, 4 times as wide": {"width": 64, "n_heads": 1},
    "two heads": {"width": 16, "n_heads": 2},
    "one head, hidden layer": {"width": 16, "n_heads": 1, "hidden": 32},
}
n_steps = 20 if smoke else 400
trained = {name: [lesson_04.train_asker(seed, n_steps, **shape) for seed in range(5)]
           for name, shape in shapes.items()}  # fmt: skip

# %% [markdown]
# The table holds mean and spread (standard deviation) over the seeds. *Pairs given* is the largest number of different pairs that any place gives over all rows, which the proof limits to three for one head with a
# linear readout. The first line is a guess.


# %%
print(f"{'':<28}{'parameters':<13}{'right pairs':<18}pairs given")
print(f"{'a guess':<41}{1 / 4:.3f}")
for name, models in trained.items():
    exams = [lesson_04.examine(model) for model in models]
    std, mean = torch.std_mean(torch.tensor([exam.right for exam in exams]))
    given, n_params = max(exam.pairs_given for exam in exams), tx.count_parameters(models[0])
    print(f"{name:<28}{n_params:<13,}{f'{mean:.3f} ± {std:.3f}':<18}{given}")
    assert (given <= 3 and mean <= 0.75) or name in ("two heads", "one head, hidden layer")

# %% [markdown]
# The line that counts is the third against the first: the *same number of parameters*, cut into two lots instead of one. One head may stay well below its bound of 0.75: the loss likes an honest "half and half" better
# than a certain mistake. The last line is the control: with a bent readout the proof no longer holds, and one head can tell $\lambda = 1/3$ from $2/3$. So a feed-forward network can repair what a single head blurs, if it must.
#
# Now look at the proof. For place 5 every row is a point: across, the first number that the model gives, up, the second. Colours are the right pairs; the lines through zero are where answers change. For the single head, a dashed line joins the two ends of its segment, which are easy to have: the rows of nothing but zeros ($\lambda = 0$) and of nothing but ones. What shape
# will the left cloud have?

# %%
fig, axes = plots.figure(1, 2, width=10.6, height=4.4)
for name, panel in zip(("one head", "two heads"), axes, strict=True):
    x, y = trained[name][0](bits)[:, 5].detach().T  # (256,) each
    sorted_by_pair = [(n, pairs == n) for n in range(4)]
    groups = [plots.Points(f"right: {n // 2} {n % 2}", x[of], y[of]) for n, of in sorted_by_pair]
    axis_names = {"xlabel": "first number", "ylabel": "second number"}
    plots.scatter(groups, **axis_names, title=name, size=70, ax=panel)
    panel.axhline(0, color="#555555", linewidth=1)
    panel.axvline(0, color="#555555", linewidth=1)
    if name == "one head":
        panel.plot(x[[0, -1]], y[[0, -1]], color="#555555", linestyle="--", zorder=0)
        panel.get_legend().remove()
plots.show(fig, name="04_segment_and_square", alt="""
    Two scatter plots of the two numbers a model gives for place 5, one point a row. With one head
    all points lie on one dashed segment, which crosses at most three of the four quadrants. With
    two heads the four right pairs lie in four groups, one in each quadrant.""")

# %% [markdown]
# One head: a line, as step 1 says, and a line meets three quadrants at most. Where colours cover each other, rows that need different answers have come to the same point, or nearly. Two heads: four clouds, each in its own quadrant.
#
# Where do the heads look? The right maps are known: a stripe one back and a stripe three back (on a ring, so that they come in again at the right). Two heads should divide them; which takes which is an accident of the seed. We put them in the order of the known ones, and print how well each map fits: its mean weight on the right place, 1 being perfect. Since the weights of one head sum to one, its two fits share a
# total of 1.

# %%
known = torch.stack([torch.eye(8).roll(-back, dims=1) for back in (1, 3)])  # (2, T, T)
maps = trained["two heads"][0].weights(bits).mean(dim=0)  # (H, T, T), mean over all rows
maps = max(maps, maps.flip(0), key=lambda order: (order * known).sum())
single = trained["one head"][0].weights(bits).mean(dim=0)[0]  # (T, T)
print(f"{'looking evenly':<16}0.12   0.12")
for name, picture in {"one head": single.expand(2, -1, -1), "two heads": maps}.items():
    fits = (picture * known).sum(dim=(1, 2)) / 8
    print(f"{name:<16}{fits[0]:.2f}   {fits[1]:.2f}   together {fits.sum():.2f}")

# %% [markdown]
# Here are the maps, the known ones on the left. Trained long enough, each of the two heads should wear one stripe, nearly black, and the single head shares its weight between both, at each place in its own proportion.

# %%
pictures = {
    "known: 1 back": known[0], "two heads: 1 back": maps[0], "one head": single,
    "known: 3 back": known[1], "two heads: 3 back": maps[1], "half and half": known.mean(dim=0),
}  # fmt: skip
fig, axes = plots.figure(2, 3, width=9.6, height=6.2)
for (title, picture), panel in zip(pictures.items(), axes.flat, strict=True):
    plots.heatmap(picture, title=title, low=0, high=1, ax=panel)
fig.supxlabel("place looked at")
fig.supylabel("place that asks")
plots.show(fig, name="04_maps_of_heads", alt="""
    Attention maps on a ring of eight places. Left the known ones, a stripe one back and a stripe
    three back. Middle the two trained heads, each showing one of these stripes. Right the single
    head, with both stripes at part of their strength, above a map of half and half.""")

# %% [markdown]
# This is the short answer to "why many heads": many small ones instead of one large one have the same parameters and can hold *different patterns* at once.
#
# ## What does a layer cost?
#
# Attention is one way of letting tokens hear each other. A **recurrent** layer reads from left to right and keeps one state; a **convolution** with kernel $k$ shows each token its $k$ nearest. All three map $n$ vectors of $d$ numbers to
# $n$ vectors of $d$ numbers, so they can be compared. Count products of matrices; a multiply-add is **two** operations.
#
# - One map from $d$ to $d$, for $n$ vectors: $2 n d^2$.
# - *Attention:* four maps, $8 n d^2$; and for all pairs of tokens scores and weighted sums, $2 n^2 d$ each.
# - *Vanilla recurrent:* two maps a token, $4 n d^2$. *GRU:* three times that, $12 n d^2$.
# - *Convolution:* each token meets $k$ maps, $2 k n d^2$.
#
# Torch can count operations while they run. (It knows nothing of fused attention on a CPU and counts it as 0, so we let it watch the plain path, which `record_attention` takes.)

# %%
from tinytx_course.labs import lesson_12
from tinytx_course.labs.lesson_12 import ConvolutionLayer, GRULayer, RecurrentLayer

n, d, k = 50, 24, 3
x = torch.randn(1, n, d)


def attend_plainly(attn, x):
    with tx.record_attention(attn):
        return attn(x)


tasks = {
    "attention": lambda: attend_plainly(tx.MultiHeadAttention(d_model=d, n_heads=1), x),
    "recurrent": lambda: RecurrentLayer(d)(x),
    "gru": lambda: GRULayer(d)(x),
    "convolution": lambda: ConvolutionLayer(d, k)(x),
}
counted = {kind: lesson_12.count_flops(task) for kind, task in tasks.items()}
assert counted["attention"] == 8 * n * d**2 + 4 * n**2 * d
assert counted["recurrent"] == 4 * n * d**2 and counted["gru"] == 12 * n * d**2
assert counted["convolution"] == 2 * k * n * d**2
print(counted)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### "Attention is cheaper than a recurrent layer"
#
# So it says in many reports, and no more. It is no true sentence before it says *when*, and of *what*. The paper's table compares the pairs of tokens alone with a recurrent layer, so the four maps are left out. Set the formulas equal and solve for $n$; then
# look whether a search at $d = 64$ agrees. (`layer_flops` is the package's table of these formulas.)

# %%
from tinytx_course.labs.lesson_12 import layer_flops


def flops(kind, n):
    return layer_flops(kind, d_model=64, seq_len=n, kernel_size=3).total


def pairs_only(kind, n):
    terms = layer_flops(kind, d_model=64, seq_len=n).rows
    return sum(row.total for row in terms if row.name in ("scores", "weighted sums"))


for name, mine in {"pairs alone": pairs_only, "all of attention": flops}.items():
    for kind in ("recurrent", "gru", "convolution"):
        cheaper = [n for n in range(1, 1000) if mine("attention", n) < flops(kind, n)]
        found = f"up to n = {cheaper[-1]}" if cheaper else "never"
        print(f"{name:<17}cheaper than {kind:<12} {found}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The last length that is still cheaper is 63, so the costs meet at $n = d = 64$: the **pairs alone** against the vanilla layer ($4 n^2 d = 4 n d^2$), and **all of attention** against a GRU ($8 + 4 = 12$). But all of attention against a vanilla layer or a
# convolution with $k = 3$: never. The true sentence is: *the pairs cost less than a recurrent layer while the text is shorter than the model is wide.*
#
# In the picture both axes are logarithmic, so that a power becomes a straight line and its exponent the slope. Where will the line of attention bend?

# %%
lengths = [2**power for power in range(2, 13)]
alone = [pairs_only("attention", n) for n in lengths]
lines = [plots.Curve("its pairs alone", lengths, alone, dashed=True)]
for kind in ("attention", "recurrent", "gru", "convolution"):
    lines.append(plots.Curve(kind, lengths, [flops(kind, n) for n in lengths]))
fig, ax = plots.curves(
    lines, x_log=True, y_log=True, title="Width 64: operations cross at n = d",
    xlabel="length n, tokens (log scale)", ylabel="operations (log scale)",
)  # fmt: skip
ax.axvline(64, color="#555555", linewidth=1.2, linestyle=":")
plots.show(fig, name="04_operations", alt="""
    Operations against length from 4 to 4,096 at width 64, both axes logarithmic. Recurrent layers
    and convolution are parallel straight lines. Attention runs parallel to them for short texts,
    meets the GRU at the dotted line n = 64, and bends up to twice the slope. Its pairs alone are
    a straight line of double slope that meets the vanilla layer at the same n.""")

# %% [markdown]
# For short texts attention is its four maps, slope 1; for long ones it is its pairs, slope 2. The bend lies where both weigh the same, at $4 n^2 d = 8 n d^2$, or $n = 2d$.
#
# ## Now with a clock
#
# Operations are paper. What does *your* machine say? We time all layers in turn, again and again (A B C, A B C), so that a slow moment hits all of them alike, and take medians. The clock is that of the process: it stands still while other programs have the core. Besides our own GRU, a loop in Python, there is torch's,
# a loop in compiled code.

# %%
lengths = [16, 32, 64, 128] if smoke else [64, 128, 256, 512, 1024, 2048, 4096]
widths = [16, 32, 64] if smoke else [32, 64, 128, 256, 512, 1024]
n_rounds = 2 if smoke else 9
by_length = lesson_12.time_layers([(n, 64) for n in lengths], n_rounds)
by_width = lesson_12.time_layers([(128, d) for d in widths], n_rounds)

# %% [markdown]
# Above, the width is 64 and the text grows; below, the text has 128 tokens and the model grows. Bands hold the middle half of all rounds. Compare the upper panel with the picture before: is the order of the lines the same? And is everything already
# straight at the left edge of each panel?

# %%
panels = {"length n, tokens": by_length, "width d": by_width}
titles = ["Time by length, d = 64", "Time by width, n = 128"]
fig, axes = plots.figure(2, 1, width=8.0, height=8.0)
for (what, seen), title, panel in zip(panels.items(), titles, axes, strict=True):
    lines = [plots.Curve(name, seen.scale, *seen.milliseconds(name)) for name in seen.times]
    axis_names = {"xlabel": f"{what} (log scale)", "ylabel": "milliseconds (log scale)"}
    plots.curves(lines, x_log=True, y_log=True, **axis_names, title=title, ax=panel)
plots.show(fig, name="04_time", alt="""
    Two panels of measured times on logarithmic axes, with the middle half of all rounds as bands.
    By length: convolution and recurrent layers are nearly parallel straight lines, attention rises
    more steeply than they do towards the right. By width: recurrent layers are flat on the left,
    and all lines are steeper on the right.""")

# %% [markdown]
# A formula like $8 n d^2 + 4 n^2 d$ has no single exponent, and small sizes are mostly overhead. So we fit lines to the medians of the largest sizes only (four lengths, three widths). The interval (95 %) is a *bootstrap*: the rounds are drawn again and again with replacement, as if we had measured anew. Beside it stands the slope that the *operations* have over the same sizes. Where the interval leaves that slope out, it is not noise but the machine.

# %%
print(f"{'exponents':<22}in n: paper, measured       in d: paper, measured")
for name in by_length.times:
    columns = []
    for seen, n_last in ((by_length, 4), (by_width, 3)):
        fit = seen.exponent(name, n_last)
        value, low, high = fit.measured.median, fit.measured.low, fit.measured.high
        columns.append(f"{fit.paper:4.2f}   {value:4.2f} [{low:4.2f}, {high:4.2f}]")
    print(f"{name:<22}" + "    ".join(columns))

# %% [markdown]
# Read the columns in pairs. In $n$ recurrent layers and convolution should come out near 1 and attention close to 2. In $d$ the loops often stay below their 2: a step with a small matrix costs what it costs to start it,
# however small it is.
#
# And the crossing at $n = d$? We look for the length from which attention takes longer than each of the others, if it was faster at first. Beside it stands how many operations each layer gets done in a second at the largest length.

# %%
mine = by_length.medians("attention")
print(f"{'':<22}billion operations a second    attention slower from n =")
for name in by_length.times:
    theirs = by_length.medians(name)
    met = lesson_12.first_crossing(lengths, mine, theirs)
    faster = "nowhere here" if mine[-1] < theirs[-1] else f"{lengths[0]} or before"
    found = f"{met:,.0f} = {met / 64:.0f} d" if met else faster
    rate = f"{name:<22}{by_length.rate(name) / 1e9:>9.2f}"
    print(rate if name == "attention" else f"{rate}{'':<27}{found}")

# %% [markdown]
# By operations, attention should be overtaken at $n = d$ by a GRU and never be cheaper than a vanilla layer. If your clock says otherwise, the rates say why: an operation does not cost the same everywhere. Attention and
# convolution are a few *large* products, which a processor works off at full speed. A recurrent layer is a long row of small ones, each of which has to wait for the one before, and much of the time goes into starting them.
#
# ## Waiting: what cannot be done at once
#
# With unlimited cores, what would still have to happen one after the other? Autograd keeps a graph of what was computed from what. Its **longest chain** is the answer, in numbers that no clock can disturb. Guess how the four chains grow when a text gets twice as
# long.

# %%
layers = {
    "attention": tx.MultiHeadAttention(d_model=8, n_heads=2),
    "vanilla recurrent": RecurrentLayer(8),
    "GRU": GRULayer(8),
    "convolution, k = 5": ConvolutionLayer(8, kernel_size=5),
}
print(f"{'longest chain at n =':<24}8    16    32    64   a token more")
for name, layer in layers.items():
    chain = [lesson_12.longest_chain(layer(torch.randn(1, n, 8))) for n in (8, 16, 32, 64)]
    numbers = "".join(f"{links:>6}" for links in chain)
    print(f"{name:<19}{numbers}{(chain[3] - chain[2]) / 32:>15g}")

# %% [markdown]
# Constant, $O(1)$, for attention and convolution; $O(n)$ for recurrent layers, where each token adds some links. With this the paper's case for attention begins (in its section 1): what does not wait can be done at once, and a GPU does a great
# deal at once.
#
# ## Distance: how far news must travel
#
# If the last word depends on the first, through how many stations must the news pass? We count rounds. In one round every token hears what a layer lets it hear: for attention and convolution one layer, applied again; for a recurrent layer one step, in
# which each state hears its neighbour. After each round we ask the gradient of the *last* vector with respect to the *first* token whether it is still exactly zero.

# %%
print(f"{'rounds at n =':<24}9    17    33    65")
for name, layer in layers.items():
    rounds = [lesson_12.path_length(layer, n, 8) for n in (9, 17, 33, 65)]
    print(f"{name:<19}" + "".join(f"{number:>6}" for number in rounds))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Attention: one, always. Recurrent: $n$. A convolution that looks two places back needs $(n - 1)/2$ layers: in general $O(n/k)$. (With growing gaps in the kernel, *dilation*, it would be $O(\log_k n)$.)
#
# Long ways are hard to learn, since a gradient may fade on each station. How large is it after $t$ tokens, in layers with fresh weights? The last line is a GRU whose gate *keep* was pushed open by adding 4 to its bias. Which lines will be straight on this
# logarithmic axis, and what does a straight line mean?

# %%
torch.manual_seed(0)
keeping = GRULayer(32)
keeping.hidden_proj.bias.data[32:64] += 4
fresh = {
    "attention": tx.MultiHeadAttention(d_model=32, n_heads=4),
    "vanilla recurrent": RecurrentLayer(32),
    "GRU": GRULayer(32),
    "convolution, k = 9": ConvolutionLayer(32, kernel_size=9),
    "GRU told to keep": keeping,
}
texts, lines = torch.randn(4, 64, 32), []
for name, layer in fresh.items():
    sizes = lesson_12.gradient_sizes(layer, texts).flip(0)  # (T,), by distance from the last token
    reached = sizes[sizes > 0]
    lines.append(plots.Curve(name, range(len(reached)), reached))
    print(f"{name:<20}reaches {len(reached):>2} tokens, nearest to farthest {reached[1] / reached[-1]:7.1e}")

# %% [markdown]
# These are the sizes along the way, from the token itself, at the left, to one that stands 63 places before it.

# %%
fig, ax = plots.curves(
    lines, y_log=True, title="How far a gradient reaches through one layer",
    xlabel="distance to the token, in places", ylabel="size of the gradient (log scale)",
)  # fmt: skip
plots.show(fig, name="04_gradients", alt="""
    Size of the gradient by distance, 0 to 63, logarithmic. Attention is level. The vanilla
    recurrent layer and the GRU fall as straight lines over many powers of ten, the vanilla one
    faster. The GRU told to keep falls slowly. The convolution is level and ends at distance 4.""")

# %% [markdown]
# A straight line here means that each step multiplies by the same factor below one: with fresh weights the gradient **vanishes** exponentially in a vanilla layer, and more slowly in a GRU, the more slowly the more its gate keeps. In attention distance plays no part. In a convolution it is a wall. Now all is measured, and can be put together:
#
# | one layer | operations | must wait | path |
# |---|---|---|---|
# | self-attention | $O(n^2 d)$, with its maps $+\,O(n d^2)$ | $O(1)$ | $O(1)$ |
# | recurrent, vanilla or GRU | $O(n d^2)$ | $O(n)$ | $O(n)$ |
# | convolution, kernel $k$ | $O(k n d^2)$ | $O(1)$ | $O(n/k)$ |
#
# ## Use it: what will a whole model cost?
#
# `tx.cost_table` applies these formulas to a whole model, from its configuration alone: operations, and memory with what training must keep. Here is the small model of the lab with a text of 128 tokens. Find the two
# terms with $T \cdot T$ in them, and what takes most of the memory.

# %%
print(tx.cost_table(tx.PRESETS["seed-lab"], batch_size=1, seq_len=128))

# %% [markdown]
# A table is worth what its check is worth. So we build a model and count: operations as torch sees them, on the plain path and on the fused one (which it cannot see), and the bytes of all tensors that autograd really keeps. On the plain path operations must agree to the last one, and what is kept within two per cent. What is left out by both: norms, softmax and sums, a few operations
# a number where a product takes hundreds.

# %%
config = tx.PRESETS["small-gpt"].replace(max_len=16_384)
model = tx.LanguageModel(config)
ids, following = torch.randint(8_000, (2, 2, 128))  # (B, T) each


def loss_of(hidden):
    return F.cross_entropy(model.head(hidden).flatten(0, 1), following.flatten())


passes = {
    "plain": lambda: loss_of(attend_plainly(model.body, ids)),
    "fused": lambda: loss_of(model.body(ids)),
}
constants = [*model.parameters(), *model.buffers()]
for path, run in passes.items():
    table = tx.cost_table(config, batch_size=2, seq_len=128, attention=path)
    counted, kept = lesson_12.count_flops(run), lesson_12.count_saved_bytes(run, constants)
    print(f"{path}: operations {table.flops_forward:>13,}   counted {counted:>13,}")
    print(f"       bytes kept {table.bytes_activations:>13,}   counted {kept:>13,}")
    assert abs(table.bytes_activations / kept - 1) < 0.02
    assert counted == table.flops_forward or path == "fused"
of_pairs = sum(row.total for row in table.flops.rows if row.name in ("scores", "weighted sums"))
print(f"fused: {table.flops_forward - counted:,} operations not seen, the pairs are {of_pairs:,}")

# %% [markdown]
# What the counter misses on the fused path is the pairs, and nothing else.
#
# A rule of thumb says that training takes $6 N$ operations a token, for $N$ parameters outside the embeddings: two forward for each weight, and four backward. It forgets the pairs. Where does that begin to matter, for this model of
# width 256?

# %%
n_params = table.parameters.parts["blocks"] + table.parameters.parts["head"]
print("tokens     formula against 6 N")
for seq_len in (64, 256, 1024, 4096, 16_384):
    exact = tx.cost_table(config, batch_size=1, seq_len=seq_len).flops_training
    print(f"{seq_len:>6,}{exact / (6 * n_params * seq_len):>14.2f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# As long as the text is short beside the width, the rule is fine; for long texts the pairs, which no parameter stands for, take over.
#
# Memory next. Parameters, gradients and Adam's two numbers for each parameter do not depend on the text. What the forward pass keeps does, in proportion to the text, and with plain attention, which keeps all weights, as its **square**. Where
# will the kept numbers outweigh the model?

# %%
lengths = [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384]
fused, plain = (
    [tx.cost_table(config, batch_size=1, seq_len=n, attention=path) for n in lengths]
    for path in ("fused", "plain")
)
heights = {
    "kept, plain attention": [table.bytes_activations for table in plain],
    "kept, fused attention": [table.bytes_activations for table in fused],
    "key-value cache": [table.bytes_kv_cache for table in fused],
    "model and optimizer": [table.bytes_training - table.bytes_activations for table in fused],
}

# %% [markdown]
# Both axes are logarithmic once more: what grows in proportion to the text has slope 1, what grows as its square slope 2, and what does not depend on it is level.

# %%
lines = []
for name, line in heights.items():
    lines.append(plots.Curve(name, lengths, [n_bytes / 2**20 for n_bytes in line]))
fig, ax = plots.curves(
    lines, x_log=True, y_log=True, xlabel="length n, tokens (log scale)", ylabel="MiB (log scale)",
    title="Six layers of width 256: memory by length",
)  # fmt: skip
plots.show(fig, name="04_memory", alt="""
    Memory against length from 64 to 16,384 tokens on logarithmic axes. Model and optimizer are
    level. What is kept with fused attention rises with slope 1; with plain attention it starts a
    little higher and bends up to slope 2. The key-value cache is a straight line far below.""")

# %% [markdown]
# The fused kernel keeps one number for each query and head, the logarithm of the sum in its softmax, and computes the weights again when it needs them: linear instead of quadratic, at the price of some operations more.
#
# The lowest line is the memory of *generation*. A model that writes word by word keeps the keys and values of all words so far, so that it need not compute them again: $2\,D$ numbers a layer and token. From the model itself, the tensors, and
# from the formula:

# %%
n_bytes = 0
with torch.no_grad():
    with record_hidden_states(model.body) as hidden:
        model.body(ids)
    for block, x in zip(model.body.blocks, hidden, strict=False):
        x = block.attn_norm(x)
        n_bytes += block.attn.k_proj(x).nbytes + block.attn.v_proj(x).nbytes
table = tx.cost_table(config, batch_size=2, seq_len=128)
assert n_bytes == table.bytes_kv_cache
each = table.bytes_kv_cache // (2 * 128)
print(f"{each:,} bytes a token, as much as the model after {table.bytes_parameters // each:,} tokens")

# %% [markdown]
# ## What this does not show
#
# - The proof is about *one* layer whose values know letters only, read by a linear map. Values that know their place, a second layer or a feed-forward network give one head other ways out, as the control showed. That heads
#   *specialise* in large models is another question; there many can be taken out without much loss (Michel et al., 2019).
# - All times are those of one core and one text at a time. With many texts at once the steps of a recurrent layer become larger products, and it catches up; on a GPU waiting weighs more still. A later lesson goes on from here.
# - The longest chain takes a product of matrices for one operation. Inside it sums have to be formed as well, in about $\log d$ steps at best.
# - Gradients were those of fresh weights, and shrink or explode with their size. A trained recurrent layer may carry further, or not as far.
# - Formulas of memory hold for float32 without dropout on this version of torch. Buffers that a kernel needs for a moment are not in them.

# %% [markdown]
# ## Questions
#
# First without code. Pick an answer, and read what it gets back; slips from reports on just this subject are among the choices. In your own copy there are buttons to press; on a page without a kernel each answer opens on a click.

# %%
course.quiz("heads_and_cost")

# %% [markdown]
# ## Exercises
#
# One exercise, on the line of code that makes many heads out of one projection. Fill in the dots, and run the cell below them, which checks what you wrote and, if it knows the mistake, says what it is. While there are only dots, it says "not attempted yet", and nothing else waits
# for you.
#
# ### Exercise: cut the heads
#
# `Level 2/5 · 10 minutes · outcome 1`
#
# Write `split_heads(x, n_heads)`, without looking at `heads` above. `x` has shape (B, T, D), and D is a multiple of `n_heads`. The result has shape (B, H, T, K), H = `n_heads`, K = D / H: head $h$ holds, for every token, the
# features $hK$ to $(h+1)K - 1$. A reshape does it, and so do slices that are stacked. *It trains* telling a reshape that keeps neighbours together from one that only has the right shape.
#
# <details><summary>Hint</summary>
#
# Take B = 1, T = 2, D = 4, two heads, and number the entries 0 to 7: token 0 holds 0 1 2 3. Head 0 must hold 0 1 and 4 5. Cut the *last* axis into two first; then the axes are (B, T, H, K), and two of them have to change places.
#
# </details>


# %%
def split_heads(x, n_heads):
    ### BEGIN SOLUTION
    batch_size, seq_len, d_model = x.shape
    lots = x.view(batch_size, seq_len, n_heads, d_model // n_heads)  # (B, T, H, K)
    return lots.transpose(1, 2)  # (B, H, T, K)
    ### END SOLUTION


# %%
course.check("split_heads", split_heads)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** A report says: "Self-attention costs less than a recurrent layer." Name two conditions under which the sentence is true, and one under which it never is.
#
# <details><summary>Answer</summary>
#
# By operations: the pairs alone against a vanilla layer while $n < d$; all of attention against a GRU while $n < d$. Never: all of attention against a vanilla layer, since its four maps cost more than both maps of the other. By
# the clock it depends on the machine: see what yours has printed.
#
# </details>
#
# **2.** A report counts one attention layer as $h\,(d^2 + d)$ with $h$ heads and tests the formula on a model with $h = 4$. It agrees. What is wrong?
#
# <details><summary>Answer</summary>
#
# The factor is the number of *maps*: queries, keys, values and out, always four. Heads are lots cut from the same maps. Test formulas on sizes that differ from each other and from all constants: 3, 5 or 7 heads would have shown it.
#
# </details>
#
# **3.** Give the values of `Asker` the place as well: in your copy of `forward`, write `self.letter(bits) + self.place.weight` where it has `self.letter(bits)`. Which step of the proof breaks? Can one head learn the task now?
#
# <details><summary>Answer</summary>
#
# Step 1: there are sixteen values now instead of two, and what a head brings need not lie on one segment. The proof says nothing any more; what training makes of it you have to measure.
#
# </details>
#
# ## Summary
#
# 1. Attention of $y$ over $x$ is $\operatorname{softmax}(Q_y K_x^\top/\sqrt{d})\,V_x$; self-attention is $y = x$. Heads are lots cut from one projection by a reshape: any number of them has the same parameters, $4(d^2 + d)$, and another function.
# 2. One head brings a point on a segment where values are two, and a linear readout cuts it into three pieces at most; two heads bring a square.
# 3. Attention takes $8nd^2 + 4n^2d$ operations, vanilla recurrence $4nd^2$, a GRU $12nd^2$, a convolution $2knd^2$. "Cheaper" needs a *when* ($n < d$) and an *of what*.
# 4. The clock has its own crossing: an operation in a large product is not the same as one in a small step that has to wait. Chains grow with the text in recurrent layers only; paths grow in recurrent layers and convolutions; over recurrent ones gradients fade.
# 5. `tx.cost_table` gives operations and memory of a model from its configuration, in agreement with what torch counts.
#
# *Where this comes from:* Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), sections 3.2.2 (heads) and 4 with table 1 (operations, waiting, path; $O(n/k)$ layers for contiguous kernels stands in the text). GRU: Cho et al.,
# [arXiv:1406.1078](https://arxiv.org/abs/1406.1078), section 2.3. Vanishing gradients: Pascanu, Mikolov and Bengio, [arXiv:1211.5063](https://arxiv.org/abs/1211.5063), section 2. Superfluous heads: Michel, Levy and Neubig,
# [arXiv:1905.10650](https://arxiv.org/abs/1905.10650). $6N$: Kaplan et al., [arXiv:2001.08361](https://arxiv.org/abs/2001.08361), section 2.1. What training keeps: Korthikanti et al.,
# [arXiv:2205.05198](https://arxiv.org/abs/2205.05198), section 4. Fused attention: Dao et al., [arXiv:2205.14135](https://arxiv.org/abs/2205.14135), section 3. The cache: Pope et al.,
# [arXiv:2211.05102](https://arxiv.org/abs/2211.05102), section 2.
#
# *What comes next:* lesson 06 counts parameters, term by term, and tells from a wrong number what was forgotten.
