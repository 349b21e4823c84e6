# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 · Many heads
#
# **Why many heads?**
#
# After this lesson you can
#
# 1. split one projection into many heads and merge them again, and say why their number changes no parameter count;
# 2. write multi-head attention in 20 lines, equal to torch's;
# 3. prove that one head with a linear readout cannot do a task that two can, and show it by training;
# 4. take a head away, and say what the result proves about it and what it does not.
#
# *You need:* lesson 02, attention and masks. *It takes:* three quarters of an hour to read and do; half a minute to run, with or without a GPU.

# %% [markdown]
# ## Set-up
#
# The models of this lesson are tiny, so one core is fastest. The budget `smoke` cuts training to a few steps: then everything runs, but nothing is learned.

# %%
import itertools
import math

import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_course.labs import lesson_04
from tinytx_run.recipes import default_budget

# %% [markdown]
# Two questions from earlier lessons first.

# %%
course.recall("04")

# %% [markdown]
# ## Why: one blend, two questions
#
# In *Anne lit Proust* ("Anne reads Proust"), the verb needs its subject *and* its object. That is two questions about two positions. But attention returns a **weighted mean**: its weights sum to one, and one vector comes out. The tempting answer is: "then attend to both, half and half." Let each
# of the two positions hold one bit, and let the value of a bit be its own number. Here is what arrives in all four cases.

# %%
for first, second in itertools.product([0, 1], repeat=2):
    blend = 0.5 * first + 0.5 * second
    print(f"the positions hold {first} and {second}, what arrives is {blend}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Four cases went in and three came out: the blend cannot tell *0 and 1* from *1 and 0*. Who reads whom is lost. A second set of attention weights could attend to the other position by itself. Such a set, with its own queries, keys and values, is a **head**.
# Is a second head really necessary, or would other weights, more width or longer training do as well? This lesson answers with a proof.
#
# ## By hand: two heads on three words
#
# Each of the three words has a key and a value in each head, here of width $K = 2$. We compute what *lit* receives. In head 0 the scaled scores are $\ln 8$, 0 and 0, so the weights are 8, 1 and 1 tenths; in head 1 the order is reversed. Check one of them on paper.

# %%
words = ["Anne", "lit", "Proust"]
root = math.sqrt(2)  # of K
queries = [[root * math.log(8), 0.0], [0.0, root * math.log(8)]]  # of "lit", one a head
keys = [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]  # one a word, the same in both heads
values = [[[10, 0], [0, 0], [0, 10]], [[0, 0], [1, 1], [20, 30]]]  # by head and word
received = []
for head in range(2):
    raised = [
        math.exp(sum(queries[head][k] * key[k] for k in range(2)) / root)
        for key in keys
    ]  # exp of the scaled score of each word
    weights = [each / sum(raised) for each in raised]
    for k in range(2):
        received.append(sum(weights[s] * values[head][s][k] for s in range(3)))
    print(f"head {head}:", *(f"{words[s]} {weights[s]:.1f}" for s in range(3)))
print("both heads, concatenated:", [round(number, 1) for number in received])
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Head 0 attends mostly to the subject, head 1 mostly to the object. The results are not added: they are **concatenated**, the two numbers of head 0 first. So both answers survive, each at its own place in the vector.
#
# ### In matrices: a loop over heads
#
# With $H$ heads, each has its own matrices $W_Q^h, W_K^h, W_V^h$, from $D$ numbers down to $K = D / H$. Each head attends by itself, the results are concatenated, and a last matrix, the **output projection** $W_O$, mixes them (Vaswani et al., section 3.2.2):
#
# $$\text{head}_h = \operatorname{attention}(x W_Q^h,\; x W_K^h,\; x W_V^h), \qquad \text{out} = \operatorname{concat}(\text{head}_0, \ldots, \text{head}_{H-1})\, W_O .$$
#
# We take the matrices from the package's module. Head $h$, counted from 0, owns rows $hK$ to $(h+1)K - 1$ of each stored weight, since `nn.Linear` stores the transpose.

# %%
_ = torch.manual_seed(0)
B, T, D, H = 2, 5, 12, 3
module, x = tx.MultiHeadAttention(d_model=D, n_heads=H), torch.randn(B, T, D)
three = (module.q_proj, module.k_proj, module.v_proj)
contexts = []
for rows in torch.arange(D).split(D // H):
    of_head = [F.linear(x, proj.weight[rows], proj.bias[rows]) for proj in three]
    contexts.append(tx.attention(*of_head))  # q, k, v: (B, T, K)
by_loop = module.out_proj(torch.cat(contexts, dim=-1))  # H times (B, T, K) -> (B, T, D)
torch.testing.assert_close(by_loop, module(x))

# %% [markdown]
# ## Vectorised: split and merge
#
# Now without the loop. The matrices of all heads, one below the other, *are* one $D \times D$ matrix. So we project once, and then **split** the $D$ numbers of each token into $H$ groups of $K$. A split is only a new way to read the same numbers: nothing is computed.
#
# Attention wants the shape (B, H, T, K). The tempting way is `reshape(B, H, T, K)`, which gives exactly that shape. To see what it does, let the entries of one text count from 0: token 0 holds 0 to 3, token 1 holds 4 to 7, token 2 holds 8 to 11. **Predict 04.1.**

# %%
course.predict(
    "04.1",
    "Two heads, K = 2, three tokens. What does head 0 hold after `reshape(1, 2, "
    "3, 2)`?",
    [
        "the first two numbers of every token",
        "the first six numbers of the text: one and a half tokens",
        "every other number of every token",
    ],
)

# %%
numbers = torch.arange(12).view(1, 3, 4)  # (B, T, D)
tempting = numbers.reshape(1, 2, 3, 2)  # (B, H, T, K)
split = numbers.unflatten(-1, (2, 2)).transpose(1, 2)  # (B, T, H, K) -> (B, H, T, K)
print("reshape alone:          head 0 holds", tempting[0, 0].tolist())
print("unflatten and transpose: head 0 holds", split[0, 0].tolist())
options = {
    "the first two numbers of every token": numbers[0, :, :2].flatten(),
    "the first six numbers of the text: one and a half tokens": numbers[0].flatten()[
        :6
    ],
    "every other number of every token": numbers[0, :, ::2].flatten(),
}
held = tempting[0, 0].flatten()
answer = next(text for text, option in options.items() if option.equal(held))
course.resolve("04.1", answer, f"It holds {held.tolist()}.")

# %% [markdown]
# Same shape, other numbers: after a reshape alone, a head mixes parts of different tokens, and no error is raised. The right way first splits the *last* axis, (B, T, H, K), and then exchanges two axes. The **merge** is the way back: exchange the same two axes, then join the last two.

# %%
def split_into(n_heads, x):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)  # (B, T, D) -> (B, H, T, K)


q, k, v = (split_into(H, proj(x)) for proj in three)  # (B, H, T, K) each
context = tx.attention(q, k, v)  # the axes B and H are both batch axes
merged = context.transpose(1, 2).flatten(2)  # (B, H, T, K) -> (B, T, H, K) -> (B, T, D)
torch.testing.assert_close(module.out_proj(merged), by_loop)
assert split_into(H, x).transpose(1, 2).flatten(2).equal(x)  # merge undoes split

# %% [markdown]
# Here is the same as a picture: one projection, its split into heads, attention in each head, the merge, and the output projection. Follow the shapes along the arrows. At which steps is something computed, and at which are numbers only regrouped?

# %%
course.plots.diagram("split-into-heads")

# %% [markdown]
# To see that nothing is lost on the way, follow single numbers. In this explorer each entry carries its address, (b, t, d), through a whole block: the projections, the split into heads, scores, weights, and the way back. Choose an entry and move through the steps. Then choose another number of
# heads: which lines of the list change their shape?

# %%
course.widgets.shapes(batch_size=2, seq_len=5, d_model=8, n_heads=2, d_ff=10, step=3)

# %% [markdown]
# Shapes with an H or a K in them change, and so does the number of scores.
#
# ## The package, and torch
#
# `tx.MultiHeadAttention` is this code with torch's own fast function for attention in the middle (`scaled_dot_product_attention`). It also takes a `memory`: then queries come from `x`, keys and values from `memory`, and the result is as long as `x`. **Self-attention** is the case where both are the same sequence.
#
# Torch's own module stores the first three projections in one matrix, and reads a boolean mask with the **opposite sign**: there True means *blocked*. So with our weights copied into it, our `mask` must agree with its `~mask`.

# %%
theirs = nn.MultiheadAttention(D, H, batch_first=True)
theirs.in_proj_weight.data = torch.cat([proj.weight.data for proj in three])  # (3 D, D)
theirs.in_proj_bias.data = torch.cat([proj.bias.data for proj in three])
theirs.out_proj.load_state_dict(module.out_proj.state_dict())
mask, memory = tx.causal_mask(T), torch.randn(B, 7, D)
torch.testing.assert_close(module(x, mask=mask), theirs(x, x, x, attn_mask=~mask)[0])
torch.testing.assert_close(module(x, memory=memory), theirs(x, memory, memory)[0])
print("x over x:     ", tuple(module(x).shape))
print("x over memory:", tuple(module(x, memory=memory).shape))

# %% [markdown]
# ### What the number of heads changes
#
# We load the *same* weights into four modules of width 64, with 1, 2, 4 and 8 heads. **Predict 04.2.** How much does the output of 8 heads differ from that of one?

# %%
course.predict(
    "04.2",
    "From 1 head to 8, with the same weights, the output changes",
    ["by rounding only", "by less than a tenth", "by more than a tenth"],
)

# %%
one, tokens = tx.MultiHeadAttention(d_model=64, n_heads=1), torch.randn(1, 10, 64)
print("heads   parameters   output differs by   H · (D² + D)")
for n_heads in (1, 2, 4, 8):
    many = tx.MultiHeadAttention(d_model=64, n_heads=n_heads)
    many.load_state_dict(one.state_dict())
    differs = ((many(tokens) - one(tokens)).norm() / one(tokens).norm()).item()
    n_params = tx.count_parameters(many)
    print(f"{n_heads:>5}{n_params:>13,}{differs:>17.0%}{n_heads * (64**2 + 64):>17,}")
    assert n_params == tx.count_parameters(one)
answer = "by more than a tenth" if differs > 0.1 else "by less than a tenth"
answer = "by rounding only" if differs < 1e-4 else answer
course.resolve("04.2", answer, f"With 8 heads it differs by {differs:.0%}.")

# %% [markdown]
# Heads are groups of one projection, so their number changes no parameter. It changes the function, because each head has its own softmax.
#
# A common mistake is in the last column: to multiply the size of one linear layer, $D^2 + D$, by the number of *heads*. It is right exactly once, at four heads, by luck: four is the number of *linear layers* (queries, keys, values, output). Whoever checks the formula on a model with four heads will
# never notice. With any other number a checker can tell:

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
# Eight bits form a ring. Each position asks two questions: which bit is **one** position back, and which is **three** positions back? Two answers of one bit each, so four possible pairs. There are $2^8 = 256$ rows in all, and we shall test every one. Over all rows, each of the four pairs is right for
# exactly a quarter.

# %%
bits = lesson_04.all_rows()  # (256, T)
right = lesson_04.answers_to(bits)  # (256, T, 2)
# what position 5 should answer: 0, 1, 2 or 3
pairs = (2 * right[..., 0] + right[..., 1])[:, 5]
print("bits", bits[77].tolist(), " position 5 should answer", right[77, 5].tolist())
print("rows for each pair:", pairs.bincount().tolist())
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The model is bare attention. Queries and keys are made from bit and position; **values from the bit alone** (as in the first layer of a model with rotary positions or ALiBi). What the heads return goes through one linear layer, the **readout**, to two numbers. The sign of each is an answer.

# %%
class Asker(nn.Module):
    def __init__(self, width, n_heads, hidden=None):
        super().__init__()
        self.n_heads = n_heads
        self.bit, self.position = nn.Embedding(2, width), nn.Embedding(8, width)
        self.q_proj, self.k_proj, self.v_proj = (
            nn.Linear(width, width) for _ in range(3)
        )
        self.readout = nn.Linear(width, 2)
        if hidden is not None:  # a control, for later
            parts = nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, 2)
            self.readout = nn.Sequential(*parts)

    def weights(self, bits):
        seen = self.bit(bits) + self.position.weight  # (B, T, D)
        q = split_into(self.n_heads, self.q_proj(seen))
        k = split_into(self.n_heads, self.k_proj(seen))
        return tx.attention_weights(q, k)  # (B, H, T, T)

    def contexts(self, bits):
        return self.weights(bits) @ split_into(
            self.n_heads, self.v_proj(self.bit(bits))
        )

    def forward(self, bits):
        return self.readout(self.contexts(bits).transpose(1, 2).flatten(2))  # (B, T, 2)


# %% [markdown]
# Training draws random rows, takes the loss of both answers (the **cross-entropy**: how surprised the model was by them, as in lesson 02), and makes a step. The learning rate rises and falls once (`OneCycleLR`), as in lesson 02.

# %%
def train(model, n_steps):
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.015, n_steps, pct_start=0.1
    )
    for _ in range(n_steps):
        batch = torch.randint(2, (32, 8))
        targets = lesson_04.answers_to(batch).float()  # (B, T, 2)
        loss = F.binary_cross_entropy_with_logits(model(batch), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


# %% [markdown]
# ### The proof
#
# **Claim.** One head with a linear readout gives, at any position, at most *three* of the four pairs, whatever its weights. So at most three quarters of its pairs are right.
#
# 1. There are two bits, so there are two values, $v_0$ and $v_1$. Let $\lambda$ be the total weight on positions that hold a 1. Weights sum to one, so the head returns $(1 - \lambda)\,v_0 + \lambda\,v_1$: a point on the straight **segment** from $v_0$ to $v_1$.
# 2. Each answer asks whether a linear function (plus a constant) is positive. Along a segment such a function is $a + b\lambda$. It changes its sign at most once.
# 3. Two answers, two changes: they cut the segment into at most three parts. On each part the pair of answers is one and the same. One of the four pairs is **never given**.
# 4. Every pair is right for exactly a quarter of the rows. So at least a quarter is wrong.
#
# The argument does not depend on the width, on how the weights are computed, or on training. It uses three things: one set of weights, only two values, a linear readout. Two heads have a $\lambda$ each, so a whole **square** instead of a segment, with a corner for each pair.
#
# Is the bound reached? By hand: put $2/3$ of the weight on the first position and $1/3$ on the second, so that $\lambda$ tells all four cases apart, and cut as well as one can.

# %%
one_back, three_back = bits.roll(1, dims=1), bits.roll(3, dims=1)  # (256, T)
lam = 2 / 3 * one_back + 1 / 3 * three_back  # 0, 1/3, 2/3 or 1
answers = torch.stack([lam > 1 / 2, lam > 1 / 6], dim=-1)  # one cut for each answer
by_hand = (answers == right).all(dim=-1).float().mean().item()
print(f"right pairs with one head, set by hand: {by_hand:.2f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Exactly three quarters: the bound cannot be lowered. (The first cut is always right; the second would have to cut three times.)
#
# ### Trained
#
# Now gradient descent may try, from five different seeds each. Besides one and two heads there are two controls: one head *four times as wide*, and one head whose readout has a **hidden layer**, so it is no longer linear. The proof covers the first control. **Predict 04.3** for the second: what share of the pairs does it get right?

# %%
course.predict(
    "04.3",
    "One head with a hidden layer in its readout, mean over five seeds. Right pairs:",
    ["at most 0.75, like one head", "between 0.75 and 0.95", "more than 0.95"],
)

# %%
shapes = {
    "one head": {"width": 16, "n_heads": 1},
    "one head, 4 times as wide": {"width": 64, "n_heads": 1},
    "two heads": {"width": 16, "n_heads": 2},
    "one head, hidden layer": {"width": 16, "n_heads": 1, "hidden": 32},
}
n_steps = 20 if default_budget() == "smoke" else 300
trained = {name: [] for name in shapes}
for name, seed in itertools.product(shapes, range(5)):
    torch.manual_seed(seed)
    trained[name].append(train(Asker(**shapes[name]), n_steps))

# %% [markdown]
# The table holds mean and spread (standard deviation) over the seeds. *Pairs given* is the largest number of different pairs that any position gives over all rows. The proof limits it to three for one head with a linear readout, and the cell asserts that. The first line is a random guess.

# %%
print(
    f"{'':<28}{'parameters':<13}{'right pairs':<18}pairs "
    f"given\n{'a guess':<41}{1 / 4:.3f}"
)
means = {}
for name, models in trained.items():
    exams = [lesson_04.examine(model) for model in models]
    std, mean = torch.std_mean(torch.tensor([exam.right for exam in exams]))
    given, n_params = (
        max(exam.pairs_given for exam in exams),
        tx.count_parameters(models[0]),
    )
    print(f"{name:<28}{n_params:<13,}{f'{mean:.3f} ± {std:.3f}':<18}{given}")
    assert (given <= 3 and mean <= 0.75) or name in (
        "two heads",
        "one head, hidden layer",
    )
    means[name] = mean.item()
hidden = means["one head, hidden layer"]
answer = "at most 0.75, like one head" if hidden <= 0.75 else "more than 0.95"
answer = "between 0.75 and 0.95" if 0.75 < hidden <= 0.95 else answer
course.resolve(
    "04.3", answer, f"{hidden:.3f}; two heads reach {means['two heads']:.3f}."
)

# %% [markdown]
# The comparison that counts is *two heads* against *one head*: the *same number of parameters*, split into two heads instead of one. One head may end well below its bound of 0.75. A likely reason: training minimises the loss, not the number of wrong pairs. The control shows where the proof ends: with a non-linear readout,
# one head can tell $\lambda = 1/3$ from $2/3$. So a feed-forward network (lesson 05) can repair what a single head blurs.
#
# Now look at the proof. For position 5 every row is a point: across, the first number that the model returns, up, the second. Colours are the right pairs; the answers change where the lines through zero are. For the single head, the dashed line joins the two ends of the segment, reached by the all-zeros row ($\lambda = 0$) and the all-ones row.

# %% tags=["folded"]
fig, axes = plots.figure(1, 2, width=10.6, height=4.4)
for name, panel in zip(("one head", "two heads"), axes, strict=True):
    across, up = trained[name][0](bits)[:, 5].detach().T  # (256,) each
    groups = [
        plots.Points(
            f"right: {pair // 2} {pair % 2}", across[pairs == pair], up[pairs == pair]
        )
        for pair in range(4)
    ]
    axis_names = {
        "xlabel": "first number (a logit)",
        "ylabel": "second number (a logit)",
    }
    plots.scatter(groups, **axis_names, title=name, size=70, ax=panel)
    panel.axhline(0, color="#555555", linewidth=1)
    panel.axvline(0, color="#555555", linewidth=1)
    if name == "one head":
        ends = [0, -1]
        panel.plot(across[ends], up[ends], color="#555555", linestyle="--", zorder=0)
        panel.get_legend().remove()
plots.show(fig, name="04_segment_and_square")

# %% [markdown]
# One head: a line, as step 1 says. A straight line meets at most three quadrants, so it cannot be cut into four answers. Some pairs even lie on top of each other: at this position the head has given up one of the two questions. Two heads: four groups, each in its own quadrant. (Mind the axes: the scales of the two panels differ.)
#
# Where do the heads attend? The right maps are known: a stripe one back and a stripe three back. On a ring they come in again at the right. Which head takes which is an accident of the seed, so we put them in the order of the known ones. The *fit* is the mean weight on the right position; 1 is perfect. The two fits of one head sum to at most 1.

# %%
known = torch.stack([torch.eye(8).roll(-back, dims=1) for back in (1, 3)])  # (2, T, T)
# (H, T, T), mean over rows
maps = trained["two heads"][0].weights(bits).mean(dim=0).detach()
order = sorted((0, 1), key=lambda head: -(maps[head] * known[0]).sum())
maps = maps[order]
single = trained["one head"][0].weights(bits).mean(dim=0)[0].detach()  # (T, T)
even = torch.full((8, 8), 1 / 8)
print(f"{'':<20}one back   three back   together")
compared = {"even weights": even[None], "one head": single[None], "two heads": maps}
for name, picture in compared.items():
    fits = (picture * known).sum(dim=(1, 2)) / 8
    print(f"{name:<20}{fits[0]:>8.2f}{fits[1]:>13.2f}{fits.sum():>11.2f}")

# %% [markdown]
# Here are the maps, the known ones on the left. Compare the stripes of the two heads with the known ones, and look at the rows of the single head one by one: does it attend to both positions everywhere?

# %%
pictures = {
    "known: 1 back": known[0],
    "two heads, first": maps[0],
    "one head": single,
    "known: 3 back": known[1],
    "two heads, second": maps[1],
    "half and half": known.mean(dim=0),
}
fig, axes = plots.figure(2, 3, width=9.6, height=6.2)
for (title, picture), panel in zip(pictures.items(), axes.flat, strict=True):
    plots.heatmap(picture, title=title, low=0, high=1, ax=panel)
fig.supxlabel("position attended to")
fig.supylabel("position that asks")
plots.show(fig, name="04_maps_of_heads")
shares = [[single[t, t - back].item() for back in (1, 3)] for t in range(8)]
listed = " ".join(f"{one:.2f}/{three:.2f}" for one, three in shares)
print("one head, weights on 1 back / 3 back by position:")
print(listed)

# %% [markdown]
# What does the single head do with them? For each seed, how many rows each of its two answers gets right.

# %%
for seed, model in enumerate(trained["one head"]):
    given = model(bits) > 0  # (256, T, 2)
    by_position = (given == right).float().mean(dim=0)  # (T, 2)
    one, three = by_position[0].tolist()
    print(f"seed {seed}, right: one back {one:.2f}, three back {three:.2f}")
    if default_budget() != "smoke":
        assert (by_position == by_position[0]).all() and {one, three} == {0.5, 1.0}
        assert (given[..., 0] == given[..., 1]).all()

# %% [markdown]
# This is the short answer to "why many heads": several narrow heads have the same parameters as one wide head, and can hold *different patterns* at once. The single head answers one question for all rows and is at chance on the other, at every position and with every seed. In these runs it gives that answer to both: (0, 0) or (1, 1). Its map, with 0.40
# on the other position in half of the rows, does not show it.
#
# ## Break it: take a head away
#
# A map shows where a head attends, not what the model does with it. For that, take the head away. An **ablation** replaces what one part returns by something without information, here by its mean over all rows, and leaves everything else in place. We do it to the head that attends one back. **Predict 04.4.**

# %%
course.predict(
    "04.4",
    "Without the head that attends one back, which answers are still right for "
    "all rows?",
    ["those one back", "those three back", "both", "neither"],
)


# %%
@torch.no_grad()
def right_without(model, head):
    contexts = model.contexts(bits)  # (256, H, T, K)
    contexts[:, head] = contexts[:, head].mean(dim=0)  # the same for every row
    answers = model.readout(contexts.transpose(1, 2).flatten(2)) > 0
    return (answers == right).float().mean(dim=(0, 1)).tolist()  # one back, three back


for back, head in ((3, order[1]), (1, order[0])):
    one, three = right_without(trained["two heads"][0], head)
    print(
        f"without the head {back} back: one back {one:.2f} right, three back "
        f"{three:.2f}"
    )
answers = [["neither", "those three back"], ["those one back", "both"]]
answer = answers[one > 0.99][three > 0.99]
course.resolve("04.4", answer, f"One back {one:.2f}, three back {three:.2f}.")

# %% [markdown]
# So in this model the division of labour is real: each head carries one answer. Here we knew the task. What do heads of real models do?
#
# - Some attend to the next or the previous position, some to the object of a verb or the noun of an article; many attend mostly to a separator (Clark et al., 2019, on BERT).
# - In a translator a few heads do most of the work. They are specialised, and most of the others can be removed with little loss (Voita et al., 2019; Michel et al., 2019).
# - **Induction heads** continue a pattern that occurred before: after *A B ... A* they attend to *B* (Olsson et al., 2022).
#
# That a head can be removed does not prove that it did nothing: another head may do the same. And that a map looks meaningful does not prove that the model uses it.
#
# ## What this does not show
#
# - The proof is about *one* layer whose values know the bit only, read by a linear layer. Values that know their position, a second layer or a feed-forward network give one head other ways out, as the control showed.
# - One task with two questions cannot say how many heads a language model needs. Width 16 and five seeds are small, and only one training recipe was tried.
# - Heads cost no parameters, but each head has its own T × T weights. Lesson 12 measures what attention costs in time. To save memory when they generate, newer models let several heads share keys and values (**grouped-query attention**, Ainslie et al., 2023).
#
# ## Take-home: multi-head attention in 20 lines
#
# This is the whole idea on one screen: project, split, scaled scores, mask, softmax, weighted mean, merge, project. It needs torch only, and it works for self-attention and for attention over a memory.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (B, H, T, K)

    def forward(self, x, memory=None, mask=None):
        memory = x if memory is None else memory
        q = self.split(self.q_proj(x))  # (B, H, T, K)
        k = self.split(self.k_proj(memory))  # (B, H, S, K)
        v = self.split(self.v_proj(memory))  # (B, H, S, K)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, T, S)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        context = scores.softmax(dim=-1) @ v  # (B, H, T, K)
        return self.out_proj(context.transpose(1, 2).flatten(2))  # (B, T, D)


# %% [markdown]
# Its parts carry the package's names, so the package's weights can be loaded as they are. All three must agree: this class, `tx.MultiHeadAttention`, and torch's module from above, with a mask and with a memory.

# %%
ours = MultiHeadAttention(D, H)
ours.load_state_dict(module.state_dict())
torch.testing.assert_close(ours(x, mask=mask), module(x, mask=mask))
torch.testing.assert_close(ours(x, mask=mask), theirs(x, x, x, attn_mask=~mask)[0])
torch.testing.assert_close(ours(x, memory), module(x, memory))
torch.testing.assert_close(ours(x, memory), theirs(x, memory, memory)[0])
print("equal to the package and to torch, with a mask and with a memory")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Questions
#
# First without code. Pick an answer and read what it says; the wrong answers are common mistakes.

# %%
course.quiz("many_heads")

# %% [markdown]
# Now put the lines of a function in order. Each wrong line is paired with a right one: only one of the two belongs into the program.

# %%
course.parsons("split_heads")

# %% [markdown]
# ## Exercises
#
# Three exercises: split, merge, and the whole of multi-head attention. Fill in the dots and run the cell below them. It checks what you wrote and, if it knows the mistake, names it. While there are only dots, it says "not attempted yet".
#
# [exercise: split_heads]


# %%
def split_heads(x, n_heads):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("split_heads", split_heads)

# %% [markdown]
# [exercise: merge_heads]


# %%
def merge_heads(context):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("merge_heads", merge_heads)

# %% [markdown]
# [exercise: multi_head_attention]


# %%
def multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads, mask):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("multi_head_attention", multi_head_attention)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** A paper's appendix counts one attention layer as $h\,(d^2 + d)$ with $h$ heads and tests the formula on a model with $h = 4$. It agrees. What is wrong?
#
# <details><summary>Answer</summary>
#
# The factor is the number of *linear layers*: queries, keys, values and output, always four. Heads are groups of the same projections. Test formulas on sizes that differ from each other and from all constants: 3, 5 or 7 heads would have shown it.
#
# </details>
#
# **2.** Give the values of `Asker` the position as well: in your copy of `contexts`, write `self.bit(bits) + self.position.weight` where it has `self.bit(bits)`. Which step of the proof breaks? Can one head learn the task now?
#
# <details><summary>Answer</summary>
#
# Step 1: there are sixteen values now instead of two, and what a head returns need not lie on one segment. The proof no longer applies; what training makes of it you have to measure.
#
# </details>
#
# ## Summary
#
# 1. Heads are groups of one projection: split is `unflatten` and `transpose`, merge is the way back. Their number changes no parameter, $4(d^2 + d)$ for every $H$, but it changes the function.
# 2. Multi-head attention is project, split, attend in each head with scale $\sqrt K$, merge, project.
# 3. With two values, one head returns a point on a segment, and a linear readout cuts it into at most three parts; two heads have a square. Training agrees: with a linear readout and equal parameters, only two heads solve the task.
# 4. An ablation says what a model does without a head. It says more than a map, and still does not prove that the head is useless elsewhere.
#
# *Where this comes from:* heads: Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section 3.2.2. What heads do: Clark et al., [arXiv:1906.04341](https://arxiv.org/abs/1906.04341), sections 3 and 4; Voita et al.,
# [arXiv:1905.09418](https://arxiv.org/abs/1905.09418); Michel, Levy and Neubig, [arXiv:1905.10650](https://arxiv.org/abs/1905.10650); Olsson et al., [arXiv:2209.11895](https://arxiv.org/abs/2209.11895). Grouped queries: Ainslie et al., [arXiv:2305.13245](https://arxiv.org/abs/2305.13245). The proof and its task are this course's own.
#
# *What comes next:* [lesson 05](05_the_block.ipynb) puts attention into a block, and asks what holds a deep stack of them together.
