# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 13 · Faster and larger
#
# **Where does the time go?**
#
# After this lesson you can
#
# 1. work out how many operations a layer does on each byte it moves, and say from that what it waits for;
# 2. draw the roofline of your own machine and find the layers of a model under it;
# 3. predict what a change can bring at most, before you make it, and measure what it did bring;
# 4. halve the bytes, throw out padding, keep keys and values, and show that the answers stay the same;
# 5. stop a training and go on with it to the same bytes, and share its batches among several processes.
#
# *You need:* lesson 04, what a layer costs, and lesson 08, how a model is trained. *It takes:* an hour to read; a minute to run on two quiet cores.

# %% [markdown]
# ## Set-up
#
# Here everything is about time, and your machine is probably doing other things meanwhile. So we compute on **one** core, and read the clock of the *processor*: it stands still while other programs have the core. (On a GPU there is no such clock;
# there we wait for each result and look at the clock on the wall.) The budget `smoke` cuts all measuring short: everything runs, the figures mean nothing.

# %%
import math
import tempfile
from pathlib import Path

import torch
from torch import nn

import tinytx as tx
from tinytx.training.generate import generate_ids
from tinytx.training.loop import train
from tinytx.training.objectives import CausalObjective, language_model_loss
from tinytx.training.recipes import default_budget
from tinytx.training.runs import open_run
from tinytx.training.settings import TrainingSettings, choose_device, choose_precision
from tinytx.training.tasks import new_language_model
from tinytx_course import plots

_ = torch.manual_seed(0)
torch.set_num_threads(1)
device = choose_device()
on_gpu = device.type == "cuda"
smoke = default_budget() == "smoke"

# %% [markdown]
# One thing takes a while and can begin at once. Near the end we shall ask what a *compiler* makes of a small function. It works in a process of its own, on another core where there is one, while we go on; we collect its answer later.

# %%
from tinytx_course.labs.lesson_13 import CompileTrial, NotCompiledError

trial = None if smoke else CompileTrial(device=device.type)

# %% [markdown]
# ## Why: the tempting calculation
#
# How long does a training step take? Lesson 04 gave us the number of operations. A machine has a speed, in operations a second: we can measure that with one large product of matrices, the thing processors do best. Divide the one by the other, and there is the answer. Everybody
# calculates like this once. First the model: four layers, a vocabulary of 8,000, a batch of four rows.

# %%
config = tx.TransformerConfig(
    vocab_size=8_000, d_model=256, n_heads=4, n_layers=4, d_ff=1024, max_len=128
)  # fmt: skip
batch_size, seq_len = (2, 16) if smoke else (4, 128)
model = tx.LanguageModel(config).to(device)
ids = torch.randint(6, config.vocab_size, (batch_size, seq_len + 1), device=device)
inputs, targets = ids[:, :-1], ids[:, 1:]
costs = tx.cost_table(config, batch_size=batch_size, seq_len=seq_len)
print(f"{costs.flops_training:,} operations in a step")

# %% [markdown]
# Now a step as everybody writes it first: all scores, their loss, the way back, an update. And a fair stopwatch, `take_turns`: it calls each task once without looking, because the first call fetches memory and chooses kernels; then it measures
# several rounds, all tasks in turn, so that a bad moment of the machine meets all of them. Say now what you expect: how far off is the division?

# %%
from tinytx_course.labs.lesson_13 import product, take_turns

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def step():
    language_model_loss(model(inputs), targets, pad_id=0).backward()
    optimizer.step()
    optimizer.zero_grad()


def measure(tasks, n_rounds=5):
    return take_turns(tasks, n_rounds=1 if smoke else n_rounds, device=device, progress=False)


def seconds(turns, name):
    return (turns.wall if on_gpu else turns.processor)[name].median


# %% [markdown]
# The product is one of two square matrices, in float32 like the step. What the line below prints is the whole reason for this lesson.

# %%
wide = 64 if smoke else 1024
turns = measure({"step": step, "product": product(wide, "fp32", device)})
speed = 2 * wide**3 / seconds(turns, "product")
claimed, taken = costs.flops_training / speed, seconds(turns, "step")
print(f"largest product {speed / 1e9:,.0f} billion operations a second")
print(f"a step should take {1e3 * claimed:,.1f} ms; it takes {1e3 * taken:,.1f} ms", end="")
print(f", {taken / claimed:.2f} times as long")

# %% [markdown]
# Whatever the last number is on your machine, operations alone do not give it. Something else takes time that is in no count of operations: numbers have to *travel*. Before a processor can multiply two numbers it must fetch them
# from memory, and afterwards it must put the result back.
#
# ## By hand: operations and bytes
#
# Take a product of a $3 \times 5$ matrix with a $5 \times 4$ matrix. Count both: each multiplication and each addition, and each number that is read or written, at 4 bytes. Every number is fetched only once: that is the best case.

# %%
rows, inner, columns = 3, 5, 4
operations = 0
for _row in range(rows):
    for _column in range(columns):
        for _term in range(inner):
            operations += 2  # multiply, and add
numbers = rows * inner + inner * columns + rows * columns
print(f"{operations} operations, {4 * numbers} bytes, {operations / (4 * numbers):.2f} for each byte")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# This last number is called the **intensity**: operations for each byte moved. Do two more on paper. Two vectors of length $n$ are added: one operation for every three numbers. Two square matrices are multiplied: $2 n^3$ operations on $3 n^2$ numbers. What happens to either when $n$ grows?

# %%
print("    n    sum of vectors    product of matrices")
for n in (6, 60, 600):
    of_sum, of_product = n / (4 * 3 * n), 2 * n**3 / (4 * 3 * n**2)
    print(f"{n:>5}{of_sum:>18.3f}{of_product:>23.0f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# A sum stays where it is: each number is used once, whatever the size. In a product each number is used again and again, and the larger the matrices the more often. That difference is what this lesson is about.
#
# ### A roof from two numbers
#
# A machine has two speeds: it does at most $P$ operations a second, and moves at most $M$ bytes a second. If it can fetch and compute at the same time, work of $f$ operations and $b$ bytes takes as long as the slower of the two:
#
# $$\text{seconds} = \max\left(\frac{f}{P}, \frac{b}{M}\right).$$
#
# Let a machine have $P = 100$ and $M = 20$ (billion). Work out three cases before you run the cell.

# %%
P, M = 100, 20
for name, f, b in (("a sum", 100, 1200), ("a small product", 600, 120), ("a large one", 9000, 300)):
    of_computing, of_moving = f / P, b / M
    slower = "memory" if of_moving > of_computing else "arithmetic"
    slower = "both alike" if of_moving == of_computing else slower
    print(f"{name:<16} computes {of_computing:4.0f}, moves {of_moving:4.0f}: waits for {slower}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Divide operations by those seconds, and the same rule becomes a picture. With intensity $i = f / b$ the speed is $\min(P, i \cdot M)$: a line that rises with $i$, up to a flat top. That is a **roofline**. The two
# meet at $i = P / M$, the *ridge*. `Roof` of the package says the same; we check it against the rule above.

# %%
from tinytx_course.labs.lesson_13 import Roof, layers_of, measure_roofline

invented = Roof(flops=P, copied=M, cached=M)
for f, b in ((100, 1200), (600, 120), (9000, 300)):
    assert math.isclose(invented.attainable(f / b), f / max(f / P, b / M))
print("ridge:", invented.ridge, "operations for each byte")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## The package: our own layers
#
# Where do the layers of a transformer lie? In training a map meets all tokens of a batch at once: its matrix is fetched once and used for every one of them. When a text is *written*, one token comes at a time: the whole matrix is fetched to be used once. Predict both
# intensities for a map before you look at the table. (A multiply-add is two operations; a number has four bytes.)

# %%
train_work = layers_of(config, batch_size=4, n_queries=128, n_keys=128, device=device)
write_work = layers_of(config, batch_size=1, n_queries=1, n_keys=128, device=device)
print(f"{'operations for each byte':<26}{'training':>10}{'writing':>10}")
for name in train_work:
    print(f"{name:<26}{train_work[name].intensity:>10.2f}{write_work[name].intensity:>10.2f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# One half, for every product in writing: two operations for each weight of four bytes. In training the maps do a hundred times as much on each byte; sums and norms do not, they have no number to use again. The operations are those of lesson 04:

# %%
block = 4 * train_work["map in attention"].flops + train_work["attention"].flops
block += train_work["feed-forward, up"].flops + train_work["feed-forward, down"].flops
total = config.n_layers * block + train_work["output layer"].flops
assert total == tx.cost_table(config, batch_size=4, seq_len=128).flops_forward
print(f"{total:,} operations forward, by both counts")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Look: the roofline of this machine
#
# Now your machine itself: a large product for the top, a large copy for the slope, and every layer in training and in writing. A second, dashed slope is a copy so small that it never leaves the processor's *cache*, a small memory close by.
# Predict: which numbers will lie under the slope, which under the flat top? How far below the top will the best one lie?

# %%
work = {("training", name): each for name, each in train_work.items()}
work |= {("writing", name): each for name, each in write_work.items()}
roof, points = measure_roofline(work, device=device, tiny=smoke)
groups = {"training": {}, "writing": {}}
for (group, name), point in points.items():
    groups[group][name] = (point.intensity, point.rate)
fig, ax = plots.roofline(
    groups, flops=roof.flops, slopes={"memory": roof.copied, "cache": roof.cached},
    title="Our layers under the roof of this machine",
)  # fmt: skip
plots.show(fig, name="13_roofline", alt="""
    Operations a second over operations for each byte, both logarithmic. A line
    rises and becomes flat: the roof. Maps and output layer in training lie to the
    right, near the flat top; the same layers in writing lie far to the left and
    far lower, with sums and norms.""")

# %% [markdown]
# Read it from right to left. The circles on the right are the products of training: near the top, so that only *faster arithmetic* helps them. The other marks, far to the left, are the same layers in writing: a hundredth of the intensity, and a small part of the speed. They wait for their weights. A point
# *above* the solid slope is no mistake: it found its numbers in a cache. A point far below both roofs has another problem: it is so small that starting it takes longer than doing it. In numbers:

# %%
print(f"top {roof.flops / 1e9:,.0f} billion operations, slope {roof.copied / 1e9:,.1f} GB a second")
print(f"ridge at {roof.ridge:.1f} operations for each byte; of the roof reached:")
for (group, name), point in points.items():
    share = point.rate / roof.attainable(point.intensity)
    side = "memory" if point.intensity < roof.ridge else "arithmetic"
    print(f"  {group:<9}{name:<19} bound by {side:<11}{share:>5.0%}")

# %% [markdown]
# ## Where the time goes in a step
#
# A **profile** is a clock on every single operation, on the way forward, on the way back, and in the update. `profile` puts itself between PyTorch and its kernels and reads the clock before and after each. On paper, products of matrices do more than 99 of 100 operations. What share of
# the *time* will they have?

# %%
from tinytx_course.labs.lesson_13 import PRODUCTS, profile

before = profile(step, n_calls=1 if smoke else 3)
kinds = before.by_kind()
attention_flops = 4 * batch_size * seq_len**2 * config.d_model * config.n_layers
on_paper = dict.fromkeys(kinds, 0.0)
on_paper |= {"fused attention": attention_flops, PRODUCTS: costs.flops_forward - attention_flops}
fig, ax = plots.share_bars(
    {"operations on paper": on_paper, "time measured": kinds},
    notes={"time measured": f"{1e3 * before.total:.0f} ms"},
    xlabel="share in percent", title="A training step: work and time",
)  # fmt: skip
plots.show(fig, name="13_profile", alt="""
    Two bars of 100 percent. On paper nearly all operations are products of
    matrices, a little is attention. In time the products have less, and softmax
    and loss, copies, norms and sums own the rest.""")

# %% [markdown]
# The difference between the two bars is what a count of operations cannot see: work of low intensity. The loss is the plainest case. A softmax over 8,000 pieces does a few operations on each score and moves all of them through memory several times. Here are the single operations that took longest.

# %%
for name, each in list(before.seconds.items())[:7]:
    print(f"{name:<46}{before.calls[name]:>4} calls{each / before.total:>8.1%}")
share_of_products = kinds[PRODUCTS] / before.total
print(f"products of matrices: {share_of_products:.0%} of the time")

# %% [markdown]
# ### What can be won at most
#
# Before anything is made faster, work out what it can bring. If a share $p$ of the time becomes $k$ times as fast, the rest stays: $\frac{1}{(1 - p) + p / k}$ times as fast in all. This is Amdahl's law. Do the corners in your head: all of it, twice as fast; half of it,
# *infinitely* fast.

# %%
def gain(p, k):
    return 1 / ((1 - p) + p / k)


for p, k in ((1.0, 2), (0.5, 2), (0.5, 1e9), (0.05, 1e9)):
    print(f"{p:>4.0%} of the time, {k:>13,.0f} times as fast: {gain(p, k):.2f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Half, made infinitely fast, brings a factor of two and no more. Whoever works for a week on five percent wins five percent. That is why one measures *first*.
#
# ## Precision: half the bytes
#
# A number in float32 has 4 bytes, in **bfloat16** 2: the same range, but only 8 bits for the digits instead of 24. Half the bytes to move, and some processors have instructions that multiply them at a multiple of the speed. What is lost? Between 1 and 2 there are only 128 steps:

# %%
one = torch.tensor(1.0, dtype=torch.bfloat16)
print("1 + 1/128 =", (one + 1 / 128).item(), "  1 + 1/512 =", (one + 1 / 512).item())
coarse, fine = torch.tensor(1.0, dtype=torch.bfloat16), torch.tensor(1.0)
for _update in range(1000):
    coarse, fine = coarse + 0.001, fine + 0.001
print(f"1 and a thousand times 0.001: bfloat16 {coarse.item()}, float32 {fine.item():.3f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# A thousand small updates, and the weight has not moved: each one was rounded away. So the *weights* and the optimizer stay in float32, and only the products are made in bfloat16. PyTorch calls that `autocast`. Whether it pays depends on the processor, so it is
# measured, here by two products in turn.

# %%
pair = measure({name: product(wide, name, device) for name in ("fp32", "bf16")})
k = seconds(pair, "fp32") / seconds(pair, "bf16")
print(f"a product in bfloat16 is {k:.2f} times as fast as in float32")
print(f"so the whole step should be about {gain(share_of_products, k):.2f} times as fast")
chosen = choose_precision("auto", device)
print("training of this course takes", "bfloat16" if chosen == "bf16" else "float32", "here")

# %% [markdown]
# ### The output layer, in parts
#
# The second candidate is the loss. A row of 8,000 scores for each of the tokens, made, read, turned into probabilities, read again for the gradient: all that through memory. `output_loss` of the package cuts the tokens into parts so small that their scores stay in the cache, and makes the
# gradients while they are there. How large is what never comes into being now? And is the loss the same?

# %%
from tinytx.model.output_loss import output_loss


def loss_in_parts():
    return output_loss(model.body(inputs), model.head.weight, targets.cpu(), bias=model.head.bias, ignore_id=0)


whole = language_model_loss(model(inputs), targets, pad_id=0)
torch.testing.assert_close(loss_in_parts(), whole, rtol=1e-4, atol=1e-5)
n_scores = batch_size * seq_len * config.vocab_size
print(f"equal losses; all scores would take {4 * n_scores / 1e6:.1f} MB, as much for their gradient")

# %% [markdown]
# Now four kinds of step in turn: each with all scores or in parts, in float32 or bfloat16. You have a prediction for precision. For the loss, take the share of *softmax and loss* in the profile, and Amdahl. Which of the four wins, and do the two gains multiply?

# %%
def make_step(in_parts, precision):
    def one_step():
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            scores_loss = language_model_loss
            loss = loss_in_parts() if in_parts else scores_loss(model(inputs), targets, pad_id=0)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return one_step


steps = {
    f"{how}, {precision}": make_step(how == "in parts", precision)
    for precision in ("fp32", "bf16")
    for how in ("all scores", "in parts")
}
turns = measure(steps)

# %% [markdown]
# One bar a kind of step; short is good. Compare the first with the second for the loss, the first with the third for precision, and the first with the last for both.

# %%
fig, ax = plots.bars(
    {name: 1e3 * seconds(turns, name) for name in steps},
    xlabel="milliseconds a step (median)", title="Four ways to make the same step",
)  # fmt: skip
plots.show(fig, name="13_steps", alt="""
    Four bars, milliseconds a training step: all scores and in parts in float32, all
    scores and in parts in bfloat16. Each bar has its number at its end.""")
ratio = turns.ratio if on_gpu else turns.processor_ratio
first, *others = steps
for name in others:
    print(f"{name:<17} {ratio(first, name)} times as fast as {first}")

# %% [markdown]
# The brackets hold the 95 % interval of the median ratio, round by round. An interval that contains 1.00 says: no difference found. If bfloat16 lost on your machine, its processor imitates it, or has instructions for it that are slow; that is why the package
# asks the clock and not a table.
#
# ## Padding: work that nobody needs
#
# A batch is a rectangle, and texts are not equally long. The rest of each row is filled with padding, and padding is multiplied like everything else. Here are the true lengths of reviews from the world of lesson 08. In which order would *you* put them into batches?

# %%
from tinytx.text.batching import batches_by_length, pad_batch, padding_share
from tinytx_course.labs.lesson_13 import tokenizer_for

corpus = tx.load_corpus("world")
tokenizer = tokenizer_for(corpus, 1_000, n_texts=1_000)
reviews = [tokenizer.encode(text) for text in corpus.train.texts[:64]]
lengths = [len(ids) for ids in reviews]
print(f"{len(reviews)} reviews, {min(lengths)} to {max(lengths)} pieces, {sum(lengths)} in all")

# %% [markdown]
# First as they come: sixteen after sixteen. A row of the picture is a review. Blue is a piece of text, orange is padding up to the longest of its batch, and pale is what is outside the batch and costs nothing. Guess before you look: how much of the coloured area is orange?

# %%
def picture(batches):
    widest = max(lengths)
    rows = []
    for batch in batches:
        longest = max(lengths[i] for i in batch)
        for i in batch:
            text, padding = lengths[i], longest - lengths[i]
            rows.append([1] * text + [2] * padding + [0] * (widest - longest))
    return torch.tensor(rows)


def draw(batches, title):
    share = padding_share(lengths, batches)
    kinds = {"outside": "#f4f4f4", "text": plots.COLORS[0], "padding": plots.COLORS[4]}
    return plots.categorical_map(
        picture(batches), kinds, xlabel="position in the row", ylabel="reviews, batch by batch",
        title=f"{title}: {share:.0%} padding",
    )  # fmt: skip


as_they_come = [list(range(start, start + 16)) for start in range(0, 64, 16)]
fig, ax = draw(as_they_come, "As they come")
plots.show(fig, name="13_padding_as_they_come", alt="""
    A row for each of 64 reviews: blue for text, orange for padding. In every batch
    one long review pulls a wide orange area behind the others.""")

# %% [markdown]
# In each batch one long review makes all others pay. `batches_by_length` shuffles, sorts by length, cuts into batches of at most so many positions, and shuffles the batches, so that training still sees them in random order. Short
# reviews then travel in large batches, long ones in small ones. What will be left of the orange?

# %%
budget = 16 * max(lengths) // 2
by_length = batches_by_length(lengths, budget, seed=0, epoch=0)
assert sorted(i for batch in by_length for i in batch) == list(range(64))
fig, ax = draw(by_length, "By length")
plots.show(fig, name="13_padding_by_length", alt="""
    The same 64 reviews in batches of similar length. Batches differ in width, and
    only thin orange strips are left behind the text.""")

# %% [markdown]
# Every review is there, once, and hardly any padding. And the worst way, which is also common: every row to the longest that the model can read, 128 here. How much faster should batches by length be than either? If the time went by positions alone, the ratio of positions would say it. So predict, and measure a
# pass over all reviews in these three ways.

# %%
def positions(batches, width=0):
    return sum(len(batch) * max(width, *(lengths[i] for i in batch)) for batch in batches)


@torch.inference_mode()
def read_all(batches, width=0):
    for batch in batches:
        rows = [reviews[i] + [0] * max(0, width - lengths[i]) for i in batch]
        model.body(pad_batch(rows, pad_id=0).to(device))


ways = {"to 128": (as_they_come, 128), "as they come": (as_they_come, 0), "by length": (by_length, 0)}
turns = measure({name: (lambda way=way: read_all(*way)) for name, way in ways.items()}, n_rounds=3)
for name, way in ways.items():
    expected = positions(*way) / positions(*ways["by length"])
    found = seconds(turns, name) / seconds(turns, "by length")
    print(f"{name:<14}{positions(*way):>6} positions: expected {expected:.2f}, measured {found:.2f}")

# %% [markdown]
# The same texts, the same model, the same answers: only zeros were left out. Where the measured number differs from the expected one, batches of other sizes use the machine more or less well (look at the roofline again: fewer rows, less intensity), and attention grows with the square of the width.
#
# ## Cache: what need not be computed again
#
# To write the next token a model reads all tokens before it. For the one after that it reads them *again*. But keys and values of a token never change, since a causal model looks at nothing that comes later (lesson 02). So keep them: `KeyValues` does. On paper, for $n$ tokens: how many token visits without, how many with?

# %%
print("    n    without    with    ratio")
for n in (16, 32, 64, 127):
    without = sum(range(1, n + 1))
    print(f"{n:>5}{without:>11,}{n:>8}{without / n:>9.1f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Half of $n$, if the time went by visits. But look at the roofline once more: a single token has an intensity of one half, and many tokens at once have a far better speed. So the cache does far *less* work at a *worse* speed. Predict how the measured ratio compares with
# the one on paper. That both write the same tokens is checked first.

# %%
ns = (4, 8) if smoke else (16, 32, 64, 127)
greedy = {"top_k": 1, "eos_id": -1}  # always the likeliest, and no end mark: exactly n tokens


def write(n, cached):
    return generate_ids(model, [2], max_new_tokens=n, cached=cached, **greedy)


assert write(ns[-1], cached=True) == write(ns[-1], cached=False)
tasks = {(n, cached): (lambda n=n, c=cached: write(n, c)) for n in ns for cached in (True, False)}
turns = measure(tasks, n_rounds=2)
for n in ns:
    found = seconds(turns, (n, False)) / seconds(turns, (n, True))
    print(f"{n:>4} tokens: (n + 1) / 2 is {(n + 1) / 2:4.1f}, measured {found:4.1f} times as fast")

# %% [markdown]
# Both curves over the number of tokens, on logarithmic axes, where a power of $n$ is a straight line. With a cache each token costs about the same: slope one. Without it each costs more than the one before. Which slope would you give the upper curve at the right end?

# %%
lines = [
    plots.Curve(name, ns, [1e3 * seconds(turns, (n, cached)) for n in ns])
    for name, cached in (("without cache", False), ("with cache", True))
]
fig, ax = plots.curves(
    lines, x_log=True, y_log=True, xlabel="tokens written (log scale)",
    ylabel="milliseconds (log scale)", title="Keys and values, kept or computed again",
)  # fmt: skip
ax.set_xticks(ns, [str(n) for n in ns])
ax.set_xticks([], minor=True)
plots.show(fig, name="13_cache", alt="""
    Milliseconds over the number of tokens written, both axes logarithmic. The
    curve without cache lies above the one with cache and rises more steeply, so
    that their distance grows with the length.""")

# %% [markdown]
# Between two tokens and many the gap opens. Towards slope two it would go only for long texts: as long as a step is mostly the fetching of weights, reading ten tokens takes hardly longer than reading one. And the cache has a price: memory.

# %%
for rows_at_once in (1, 32):
    table = tx.cost_table(config, batch_size=rows_at_once, seq_len=128)
    kept, weights = table.bytes_kv_cache / 1e6, table.bytes_parameters / 1e6
    print(f"{rows_at_once:>3} texts: cache {kept:5.1f} MB beside weights of {weights:.1f} MB")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Many texts written side by side use each weight many times: intensity again. That is why services answer many people at once, and why their memory is full of keys and values.
#
# ## Compile: fewer journeys
#
# Here is a norm and a GELU, written out as one would on paper. Each line reads whole tensors and writes whole tensors: a dozen journeys through memory for a few operations on each number. A compiler can *fuse* them: fetch a number once, do everything to it, put it back.

# %%
import inspect

from tinytx_course.labs.lesson_13 import norm_and_gelu

print(inspect.getsource(norm_and_gelu))

# %% [markdown]
# `torch.compile` writes such a fused function, in C++ or for a GPU, and has it compiled: that takes a while, and needs a compiler. It was set to work at the beginning of this lesson. Count the journeys above, and predict the gain; then, how many calls repay the wait?

# %%
try:
    if trial is None:
        raise NotCompiledError("left out in this budget")
    found = trial.result(limit=900)
except NotCompiledError as problem:
    print("not compiled here:", problem)
else:
    print(f"plain {1e3 * found.plain:.2f} ms, compiled {1e3 * found.compiled:.2f} ms", end="")
    print(f": {found.plain / found.compiled:.1f} times as fast, differs by {found.difference:.0e}")
    print(f"compiling took {found.seconds_to_compile:.0f} s, repaid after {found.calls_to_repay:,.0f} calls")

# %% [markdown]
# In a model most of this is done already: `layer_norm` and `gelu` of PyTorch are fused functions that somebody wrote by hand. And products stay what they are. So compile what is made of many small steps, in programs that run for long; and put it into Amdahl's law first.
#
# ## Larger: what does not fit at once
#
# A batch may be too large for the memory. **Accumulate**: the gradient of a mean is the mean of gradients, so cut the batch into parts, go back from each, and let the gradients add up. One update at the end. Each part counts by its share of the tokens, which is the usual slip: with parts of different
# size a plain mean is wrong.

# %%
def gradients(parts):
    model.zero_grad()
    for rows in parts:
        loss = language_model_loss(model(inputs[rows]), targets[rows], pad_id=0)
        (loss * len(inputs[rows]) / len(inputs)).backward()
    return [p.grad.clone() for p in model.parameters()]


at_once = gradients([slice(0, None)])
in_pieces = gradients([slice(0, 1), slice(1, None)])  # one row, and all others
torch.testing.assert_close(in_pieces, at_once, rtol=1e-3, atol=1e-6)
print("the same gradient, at once and in parts")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Longer: stop, and go on
#
# A training of days will be interrupted: power, a full disk, a closed laptop. Going on must lead to the *same* model, or nobody can repeat a result. What has to be saved for that? Write a list before you read on.
#
# <details><summary>The list</summary>
#
# Weights; both averages of the optimizer for each weight; the number of steps (the learning rate depends on it); the place in the data; the state of the random numbers, if there is dropout; and the losses that are not written down yet.
#
# </details>
#
# We train a small model twice: in one piece, and with a power cut at step 7, when the last checkpoint is from step 5. The cut is an error out of nowhere.

# %%
small = tx.TransformerConfig(
    vocab_size=1_000, d_model=64, n_heads=2, n_layers=2, d_ff=128, max_len=128, dropout=0.1
)  # fmt: skip
marks = {"bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id, "pad_id": tokenizer.pad_id}
objective = CausalObjective(reviews, max_len=128, **marks)
settings = TrainingSettings(n_steps=12, checkpoint_every=5, tokens_per_batch=512)


def train_small(folder, cut_at=None):
    def power(step, model):
        if step == cut_at:
            raise SystemError("no power")

    learner = new_language_model(small, seed=0).to(device)
    with open_run(folder, plan={}) as checkpoints:
        train(learner, objective, settings, checkpoints=checkpoints, on_step=power, progress=False)
    return learner


# %% [markdown]
# After the cut we only call the same function again, with the same folder. It finds the last checkpoint, makes steps 6 and 7 a second time, and goes on. Are the weights close? The question is stricter: are the *bytes* the same?

# %%
with tempfile.TemporaryDirectory() as folder:
    whole = train_small(f"{folder}/whole")
    try:
        train_small(f"{folder}/cut", cut_at=7)
    except SystemError as error:
        saved = sorted(path.name for path in Path(f"{folder}/cut").glob("step-*"))
        print(f"{error} at step 7, saved:", *saved)
    resumed = train_small(f"{folder}/cut")
same = [torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True)]
print(f"{sum(same)} of {len(same)} tensors equal, bit for bit")
assert on_gpu or all(same)

# %% [markdown]
# Equal on a CPU, with the same number of threads, bit for bit. (Some kernels of a GPU add up in the order of arrival, which changes the last bits from run to run; there the line above may say less.) `make torture` does this a hundred times with a process that is really killed, at random moments. If it
# has been run in this checkout, here is what it found.

# %%
from tinytx_course.results import read_results


def kept(name, command):
    try:
        return read_results(name)
    except FileNotFoundError:
        print(f"nothing is kept in results/{name}.json yet: `{command}` makes it")


if torture := kept("torture", "make torture"):
    for name, record in torture.data.items():
        print(f"{record['kills']:>4} kills in {record['runs']} runs, {name}: all bytes as without")
    print(torture.source_line())

# %% [markdown]
# ## More hands: several processes
#
# Two processes can each take half of every batch. You have proved above that this gives the same gradient: a process is a part of the batch, and the gradients are added up *between* processes instead of within one. So all of them make the same update, and stay copies of each other. The same command does it:
# `torchrun --nproc-per-node=2 -m tinytx.cli pretrain ...`; from a notebook, `launch`.
#
# Predict: two processes with one thread each, against one with one. Ideal would be twice as fast. What is in the way?

# %%
from tinytx_course.labs.lesson_13 import Workload, scaling

many_gpus = on_gpu and torch.cuda.device_count() > 1
sizes = {"d_model": 32, "n_layers": 1, "tokens_per_batch": 256} if smoke else {}
workload = Workload(
    device="cuda" if many_gpus else "cpu", seq_len=64, n_rounds=1 if smoke else 3, n_steps=1 if smoke else 2, **sizes
)  # fmt: skip
speeds = scaling(2, workload, report=lambda line: None)
for speed in speeds:
    print(speed)

# %% [markdown]
# Each bar is a way to share the same batch, in tokens a second: one process with one thread, one with as many threads as there are processes, and two processes. The dashed line is the ideal, twice the single one. These are times on the wall: other programs on your cores, or a machine with only one, keep all of them from the line.

# %%
from tinytx_course.machine import usable_cores

named = {f"processes: {one.n_processes}, threads each: {one.n_threads}": one for one in speeds}
fig, ax = plots.bars(
    {name: one.median for name, one in named.items()},
    intervals={name: (min(one.tokens_per_second), max(one.tokens_per_second)) for name, one in named.items()},
    references={"ideal": max(one.ideal for one in speeds)}, numbers=",.0f",
    xlabel="tokens a second (median, slowest, fastest round)", title="Two workers, one model",
)  # fmt: skip
plots.show(fig, name="13_scaling", alt="""
    Bars of tokens a second for one process with one and with two threads, and for
    two processes, beside a dashed line at twice the speed of one.""")
two, single = speeds[-1], next(one for one in speeds if one.n_processes * one.n_threads == 1)
print(f"two processes: {two.median / single.median:.2f} times one; usable cores: {usable_cores()}")

# %% [markdown]
# What is in the way is what Amdahl said: adding up gradients and updating weights is done by each process for itself, whatever the number of hands; both fetch from the same memory; and the slower one keeps the other waiting. Larger batches make the shared part larger, and come closer to the line.
#
# ## Use it: everything together
#
# Now one real training, twice. The *baseline* is the loop that one writes first: reviews as they come, all scores, float32. Against it `train` of the package: batches by length, loss in parts, precision as chosen above. As many steps, the same rates, three seeds. Faster is worth nothing if the model is worse: so the loss on reviews
# that neither has seen is measured too.

# %%
n_seeds, n_texts, per_batch = (1, 64, 16) if smoke else (3, 512, 16)
texts = [tokenizer.encode(text) for text in corpus.train.texts[: n_texts + 64]]
seen = CausalObjective(texts[:n_texts], max_len=128, **marks)
held_out = CausalObjective(texts[n_texts:], max_len=128, **marks)
n_steps = n_texts // per_batch
recipe = TrainingSettings(
    n_steps=n_steps, lr=3e-3, warmup_steps=4, tokens_per_batch=seen.n_tokens // n_steps
)  # fmt: skip


def first_loop(learner):
    adamw = torch.optim.AdamW(learner.parameters(), betas=recipe.betas)
    for number in range(n_steps):
        adamw.param_groups[0]["lr"] = recipe.lr_at(number + 1)
        rows, wanted = seen.batch(range(number * per_batch, (number + 1) * per_batch))
        scores = learner(rows.to(device))
        loss = language_model_loss(scores, wanted.to(device), pad_id=0)
        adamw.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(learner.parameters(), recipe.clip_norm)
        adamw.step()


# %% [markdown]
# Three seeds, both ways in turn. Which ratio do you expect? The vocabulary has only 1,000 pieces here and the model is small, so the loss has less to win than above; padding has more.

# %%
def run(seed, packaged):
    learner = new_language_model(small.replace(dropout=0.0), seed=seed).to(device)

    def task():
        if packaged:
            train(learner, seen, recipe.replace(seed=seed), progress=False)
        else:
            first_loop(learner)

    taken = take_turns({"task": task}, n_rounds=1, n_warmup=0, device=device, progress=False)
    with torch.inference_mode():
        loss = held_out.loss(learner.eval(), list(range(64))).item()
    return seconds(taken, "task"), loss


found = {(seed, packaged): run(seed, packaged) for seed in range(n_seeds) for packaged in (False, True)}
print("seed    first loop            package               times as fast")
for seed in range(n_seeds):
    (slow, slow_loss), (fast, fast_loss) = found[seed, False], found[seed, True]
    print(f"{seed:>4}{slow:>8.2f} s{slow_loss:>7.3f} nats", end="")
    print(f"{fast:>9.2f} s{fast_loss:>7.3f} nats{slow / fast:>13.2f}")

# %% [markdown]
# Read both columns: seconds *and* nats. Within one line they started from the same weights. The losses differ a little because the batches hold other reviews, as two seeds differ. What matters is whether the difference between the columns is larger than that between the lines; mean and spread say so.

# %%
from tinytx_course.labs.lesson_13 import ratio_of

ratios = [found[seed, False][0] / found[seed, True][0] for seed in range(n_seeds)]
losses = torch.tensor([[found[seed, way][1] for way in (False, True)] for seed in range(n_seeds)])
between = (losses[:, 1] - losses[:, 0]).mean().item()
among = losses.std(dim=0, correction=0).max().item()
print(f"times as fast: {ratio_of(ratios)} (median, 95 % interval)")
print(f"loss of the package minus that of the first loop: {between:+.3f}; spread of seeds {among:.3f}")

# %% [markdown]
# ### How good after three minutes?
#
# Steps a second are a means. The end is a good model soon. A classic test is [tinyshakespeare](https://github.com/karpathy/char-rnn): a million characters, of which the last tenth is for validation; a model reads characters and foretells the next. How far does one get in three minutes on two cores? The clock stands still while the model is judged.
#
# `python -m benchmarks speedrun` trains four times. The *peer* is `torch.nn.TransformerEncoder`, trained as [nanoGPT](https://github.com/karpathy/nanoGPT) proposes for a laptop: 4 layers of width 128, AdamW, batches of 12 times 64 characters, 2,000 steps; and once more with as many steps as fit into three minutes. *Ours* has 4 layers of width 128, too, and learns with two optimizers. Beside them stand counting models (lesson 01).
#
# Predict: both have as many layers and the same width. Which of the two starts faster, and which is better in the end?

# %%
if speedrun := kept("bench-speedrun", "python -m benchmarks speedrun"):
    runs = {
        key.removeprefix("characters: "): one
        for key, one in speedrun.data.items()
        if one["kind"] == "speedrun" and one["unit"] == "character"
    }
    counts = speedrun.data["characters: counting models"]
    names = {name: name.replace("torch.nn.TransformerEncoder", "peer") for name in runs}
    fig, ax = plots.curves(
        [
            plots.Curve(names[name], *([point[axis] for point in one["curve"]] for axis in ("seconds", "nats")))
            for name, one in runs.items()
        ],
        xlabel="seconds of training", ylabel="nats a character", y_range=(1.3, 2.6),
        references={"best counts": counts["nats"]}, title="Quality after so many seconds",
    )  # fmt: skip
    plots.show(fig, name="13_speedrun", alt="""
        Nats a character over seconds of training, for our model with two optimizers, for
        the peer with 2,000 steps and with three minutes. A dashed line shows the best counting model.""")
    for name, one in runs.items():
        print(f"{names[name]:<20}{one['nats']:.3f} nats after {one['n_steps']:,} steps, {one['seconds']:.0f} s")
    print(f"{'best counts':<20}{counts['nats']:.3f} nats")
    print(speedrun.source_line())

# %% [markdown]
# The curve counts the first 20,000 characters of the validation text, the lines below it all of them. Whence the difference? Batches of 4,096 characters instead of 768, so that products are large (right of the ridge); bfloat16 where it pays; ReLU, which costs less than GELU; rotary positions (lesson 03); a window of 128 characters.
# The rest is the optimizer, as the two lines of ours show: [Muon](https://kellerjordan.github.io/posts/muon/) makes all directions of a matrix move equally far, where Adam follows the few in which gradients are large. Everybody is judged with at least half a window before each character.
#
# ### Measured with care
#
# A lesson of a minute measures a few rounds. `python -m benchmarks` takes its time: the package beside other packages on the same batches, each in a process of its own, many rounds in turn. What this checkout keeps of it stands here, with machine and date; your own figures replace it when you run the command.

# %%
from tinytx_course.labs.lesson_13 import speed_line

for part in ("steps", "reviews", "generation"):
    if results := kept(f"bench-{part}", f"python -m benchmarks {part}"):
        print(results.source_line())
        for key, record in results.data.items():
            if record.get("fastest"):
                print("  " + speed_line(key, record))

# %% [markdown]
# ## What this does not show
#
# Two slopes are a coarse map of a memory with several caches, and "bytes that must be moved" is the best case: a kernel may move more. Times of one machine say little about another: on a GPU the ridge lies far to the right, and starting a kernel costs more than many of our layers. We measured small models; in large ones products own more of the time. Sharing batches is not the only
# way to use many devices: a model that does not fit must itself be cut (`shard` in `Layout`). And a ratio without its interval is an anecdote, however many digits it has.
#
# ### Try it yourself
#
# **1.** A feed-forward map from $D$ to $4D$ meets $N$ tokens at once. From which $N$ on has it more than $i$ operations for each byte, if $D$ is large? And what does that say about writing 32 texts side by side?
#
# <details><summary>Answer</summary>
#
# $2 N D \cdot 4D$ operations; for large $D$ the matrix is nearly all that moves, $4 \cdot 4 D^2$ bytes. So $i \approx N / 2$. Written side by side, 32 texts have an intensity of 16 instead of one half, at nearly the same time a step while that lies left of the ridge: up to 32 times as many tokens a second.
#
# </details>
#
# **2.** A report says: "attention is quadratic, so it is what takes the time." Ask the profile above. What would you measure to convince its author?
#
# <details><summary>Answer</summary>
#
# The share of attention at several lengths. Per token attention takes $4 T D$ operations, and the maps of a layer $8 D^2 + 4 D F$; with $F = 4 D$ they meet at $T = 6 D$. At a width of 256 that is a text of 1,536 tokens. Below it the maps own the time.
#
# </details>
#
# **3.** A change makes the products twice as fast, and the whole step 1.1 times. Which share had the products, if Amdahl is right?
#
# <details><summary>Answer</summary>
#
# $1 / 1.1 = 1 - p / 2$, so $p \approx 0.18$. Whoever expected a factor of two had not looked at a profile.
#
# </details>
#
# ## Summary
#
# - Intensity is operations for each byte moved: a sum has one twelfth, a large product hundreds, a map that meets one token one half.
# - A machine is a roof of two numbers. Left of the ridge work waits for memory, right of it for arithmetic.
# - Profile first, then Amdahl, then the change, then the clock, in turn and with an interval. It may come out the other way round.
# - Half the bytes, scores in parts, no padding, kept keys and values, fused steps: all are ways to move less. Each was checked to give the same answers, or as good ones.
# - Gradients of parts add up to the gradient of the whole: that is accumulation, and it is training with several processes. A checkpoint that holds everything gives the same bytes.
#
# *Where this comes from:* the roofline: Williams, Waterman and Patterson, *Communications of the ACM* 52(4), 2009; what training in 16 bits needs: Micikevicius et al., [arXiv:1710.03740](https://arxiv.org/abs/1710.03740), section 3.1 (weights kept in float32); bfloat16 in training: Kalamkar et al., [arXiv:1905.12322](https://arxiv.org/abs/1905.12322);
# moving less in attention: Dao et al., [arXiv:2205.14135](https://arxiv.org/abs/2205.14135), section 3; writing with large models: Pope et al., [arXiv:2211.05102](https://arxiv.org/abs/2211.05102), section 2; copies that share a batch: Li et al., [arXiv:2006.15704](https://arxiv.org/abs/2006.15704); cutting the model too: Zhao et al., [arXiv:2304.11277](https://arxiv.org/abs/2304.11277).
#
# *What comes next:* real text and real models. Does what we learned in a small world hold outside?
