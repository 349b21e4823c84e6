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
# 1. time code fairly, and report a ratio with its range;
# 2. count operations and bytes of a layer, and say from the roofline whether memory or arithmetic limits it;
# 3. say what a change can gain at most (Amdahl's law) before you make it, and measure what it does gain;
# 4. save work with less padding, a KV cache and fused functions, show that the answers stay the same, and say what lower precision changes;
# 5. train larger: cut a batch into micro-batches, resume a run, share a batch among processes.
#
# *You need:* lesson 12 (what a layer costs), lesson 08 (training), lesson 11 (KV cache). *It takes:* an hour to read, half an hour for the exercises; a minute to run on two quiet cores.

# %% [markdown]
# ## Set-up
#
# This lesson is about time, and your machine is probably busy with other things. So we compute on **one** core; only the compiler, in its own process, and a comparison of threads and processes near the end use another. The budget `smoke` cuts all measurements short: everything runs, the numbers mean nothing.

# %%
import math
import tempfile

import torch
import torch.nn.functional as F

import tinytx as tx
import tinytx_course as course
from tinytx_course.labs import lesson_13
from tinytx_course.plots import COLORS, Curve
from tinytx_run.recipes import default_budget

torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
smoke = default_budget() == "smoke"

# %% [markdown]
# Two questions of earlier lessons first. The first line starts a compiler in another process; it works while we go on, and near the end we collect its result. Until it is done it shares memory and caches with us: a first small disturbance.

# %%
trial = None if smoke else lesson_13.CompileTrial(device=device.type)
course.recall("13")

# %% [markdown]
# ## Why: the tempting calculation
#
# How long does a training step take? Lesson 12 counted the operations. The largest product of matrices tells us how many operations a second the machine can do. Divide one by the other, and there is the answer. Everybody calculates like this once. Here is the model: two blocks, a vocabulary of 8,000, four texts of 128 tokens.

# %%
config = tx.TransformerConfig(
    vocab_size=8_000, d_model=256, n_heads=4, n_layers=2, d_ff=1024, max_len=128
)  # fmt: skip
torch.manual_seed(0)
batch_size, seq_len = (2, 16) if smoke else (4, 128)
model = tx.LanguageModel(config).to(device)
token_ids = torch.randint(6, 8_000, (batch_size, seq_len + 1), device=device)
inputs, targets = token_ids[:, :-1], token_ids[:, 1:]
costs = tx.cost_table(config, batch_size=batch_size, seq_len=seq_len)
print(f"{costs.flops_training:,} operations in a training step")

# %% [markdown]
# To compare, we need a fair stopwatch. Three rules make it fair. **Warm up**: the first call fetches memory and chooses kernels, so it does not count. **Take turns**: A B, A B, A B, so a slow moment of the machine meets all tasks alike. **Read the right clock**: processor time, which does not pass while other
# programs have the core. A GPU works in the background: there we wait until it has finished and use the clock on the wall.


# %%
from time import perf_counter, process_time


def seconds_of(task):
    clock = perf_counter if device.type == "cuda" else process_time
    start = clock()
    task()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return clock() - start


def take_turns(tasks, n_rounds=5):
    times = {name: [] for name in tasks}
    for round_number in range(1 + (1 if smoke else n_rounds)):
        for name, task in tasks.items():
            taken = seconds_of(task)
            if round_number > 0:  # the first round is the warm-up
                times[name].append(max(taken, 1e-9))
    return times


# %% [markdown]
# One median is not a result: it says nothing about how much the measurement varies. So we compare round by round and report the median of the ratios with their smallest and largest value. This is a **range**. It is not a confidence interval: three or five ratios are too few for one.

# %%
from statistics import median


def ratio(slow, fast):
    ratios = [a / b for a, b in zip(slow, fast, strict=True)]
    ends = f"range {min(ratios):.2f} to {max(ratios):.2f}, n = {len(ratios)}"
    text = f"{median(ratios):.2f} ({ends})"
    return median(ratios), text


print(ratio([2.0, 3.0, 6.0], [1.0, 2.0, 2.0])[1])
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# **Predict 13.1.** Now a training step in its plainest form: logits, loss, backward pass, update, all in float32. Next to it, in turns, one product of two square matrices of width 1,024.

# %%
course.predict(
    "13.1",
    "How long does the step take, compared with operations divided by the speed of the "
    "product?",
    [
        "less than 0.8 times as long",
        "0.8 to 1.25 times as long",
        "more than 1.25 times as long",
    ],
)

# %% tags=["varies"]
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def step():
    logits = model(inputs)  # (B, T, V)
    F.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()


width = 64 if smoke else 1024
a, b = torch.randn(2, width, width, device=device)
times = take_turns({"step": step, "product": lambda: a @ b})
speed = 2 * width**3 / median(times["product"])  # operations a second
calculated = [
    costs.flops_training / (2 * width**3) * seconds for seconds in times["product"]
]
factor, text = ratio(times["step"], calculated)
at_first = 1e3 * median(times["step"])  # milliseconds
answer = (
    "less than 0.8"
    if factor < 0.8
    else "more than 1.25"
    if factor > 1.25
    else "0.8 to 1.25"
)
course.resolve(
    "13.1",
    f"{answer} times as long",
    f"The product runs at {speed / 1e9:,.0f} billion operations a second. The step "
    "takes "
    f"{at_first:,.0f} ms, {text} times as long as calculated.",
)

# %% [markdown]
# Operations are half of the story. Numbers also have to *travel*: before a processor can multiply two numbers it must read them from memory, and afterwards it must write the result.
#
# ## By hand: operations and bytes
#
# Multiply a $3 \times 5$ matrix by a $5 \times 4$ matrix. Count each multiplication and each addition, and each number that is read or written, at 4 bytes. Each number is read only once: that is the best case.

# %%
rows, inner, columns = 3, 5, 4
operations = 0
for _row in range(rows):
    for _column in range(columns):
        for _term in range(inner):
            operations += 2  # multiply, and add
n_bytes = 4 * (rows * inner + inner * columns + rows * columns)
print(
    f"{operations} operations, {n_bytes} bytes: {operations / n_bytes:.2f} for "
    "each byte"
)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The last number is the **arithmetic intensity**: operations for each byte moved. Do two more on paper. Two vectors of length $n$ are added: one operation for every three numbers. Two square matrices are multiplied: $2n^3$ operations on $3n^2$ numbers. What happens to each when $n$ grows?

# %%
print("    n    sum of vectors    product of matrices")
for n in (6, 60, 600):
    of_sum, of_product = n / (4 * 3 * n), 2 * n**3 / (4 * 3 * n**2)
    print(f"{n:>5}{of_sum:>18.3f}{of_product:>23.0f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# In a sum each number is used once, whatever the size. In a product each number is used again and again, and more often in larger matrices. This difference explains most of the lesson.
#
# ### A roof from two numbers
#
# A machine has two speeds: at most $P$ operations a second, and at most $M$ bytes a second. If it can read and compute at the same time, work of $f$ operations and $b$ bytes takes as long as the slower of the two: $\text{seconds} = \max(f / P,\ b / M)$. Work out three cases for $P = 100$ and $M = 20$ (billion) before you run the cell.

# %%
P, M = 100, 20
for name, f, b in (
    ("a sum", 100, 1200),
    ("a small product", 600, 120),
    ("a large one", 9000, 300),
):
    seconds = max(f / P, b / M)
    assert math.isclose(f / seconds, min(P, f / b * M))
    limits = [
        limit for limit, s in (("arithmetic", f / P), ("memory", b / M)) if s == seconds
    ]
    print(
        f"{name:<16} computes {f / P:4.0f}, moves {b / M:4.0f}: limited by "
        f"{' and '.join(limits)}"
    )
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The `assert` says the same as a picture. With intensity $i = f / b$ the speed is $\min(P,\ i M)$: a line that rises with $i$, up to a flat top. This is a **roofline**. Slope and top meet at $i = P / M$, the **ridge**. Work left of the ridge is **memory-bound**, work right of it **compute-bound**.
#
# ## The package: our own layers
#
# In training, a linear layer meets all tokens of a batch at once: each weight is read once and used for every token. In generation, one token comes at a time: the whole matrix is read to be used once.

# %%
course.predict(
    "13.2",
    "Generation, one token at a time, float32: how many operations does a linear layer "
    "do for each byte?",
    ["about 0.5", "about 8", "about 64"],
)

# %%
kinds_of_work = {
    "training": lesson_13.layers_of(
        config, batch_size=4, n_queries=128, n_keys=128, device=device
    ),
    "generation": lesson_13.layers_of(
        config, batch_size=1, n_queries=1, n_keys=128, device=device
    ),
}
print(f"{'operations for each byte':<26}{'training':>10}{'generation':>12}{'ratio':>8}")
for name, layer in kinds_of_work["training"].items():
    one_token = kinds_of_work["generation"][name].intensity
    print(
        f"{name:<26}{layer.intensity:>10.2f}{one_token:>12.2f}"
        f"{layer.intensity / one_token:>8.0f}"
    )
intensity = kinds_of_work["generation"]["feed-forward, up"].intensity
closest = min((0.5, 8, 64), key=lambda option: abs(option - intensity))
course.resolve(
    "13.2",
    f"about {closest}",
    f"It is {intensity:.2f}: two operations for each weight of four bytes.",
)

# %% [markdown]
# In training each weight is reused for every token, so matrix products do about 60 to 170 times as much work for each byte: the last column. Sums reuse nothing, norms only their scale and shift. `layers_of` counts with the formulas of lesson 12; the whole forward pass agrees with the cost table.

# %%
layers = kinds_of_work["training"]
block = 4 * layers["projection"].flops + layers["attention"].flops
block += layers["feed-forward, up"].flops + layers["feed-forward, down"].flops
total = config.n_layers * block + layers["output layer"].flops
assert total == tx.cost_table(config, batch_size=4, seq_len=128).flops_forward
print(f"{total:,} operations forward, by both counts")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Look: the roofline of this machine
#
# A large product gives the top, a large copy gives the slope. Then every layer is measured, in training and in generation. A real model has far more weights than a **cache** holds, the small memory close to the processor. So before each measurement we write 256 MB of other numbers, outside the clock: the layer then has to read its weights from
# memory.

# %%
kernels = {
    (group, name): w
    for group, named in kinds_of_work.items()
    for name, w in named.items()
}
copied = torch.ones(2**16 if smoke else 2**26, device=device)  # 256 MB
target = torch.empty_like(copied)
rates = {name: [] for name in kernels}
with torch.inference_mode():
    copies = take_turns({"copy": lambda: target.copy_(copied)})["copy"]
    for _round in range(2 if smoke else 6):
        for name, work in kernels.items():
            target.fill_(_round)  # what was in the cache is now out
            rates[name].append(seconds_of(work.task))
bandwidth = 2 * 4 * copied.numel() / min(copies)  # bytes a second: read, and written
speed = max(speed, 2 * width**3 / min(times["product"]))
measured = {name: max(median(seconds[1:]), 1e-9) for name, seconds in rates.items()}
points = {group: {} for group in kinds_of_work}
for (group, name), work in kernels.items():
    points[group][name] = (work.intensity, work.flops / measured[group, name])
fig, ax = course.plots.roofline(
    points, flops=speed, slopes={"memory": bandwidth},
    title="Our layers under the roof of this machine",
)  # fmt: skip
course.plots.show(fig, "13_roofline")

# %% [markdown]
# Read it from right to left. The products of training lie right of the ridge: only *faster arithmetic* helps them. The same layers in generation lie left of it. Some points lie far below both parts of the roof. The residual sum and the norm of a single token move a few kilobytes: there *starting* the operation is nearly all of the time. Why other layers stay below the roof we did not measure. In numbers:

# %%
ridge = speed / bandwidth
print(
    f"ridge at {ridge:.1f} operations for each byte; share of the roof that is reached:"
)
for (group, name), work in kernels.items():
    roof = min(speed, work.intensity * bandwidth)
    side = "memory" if work.intensity < ridge else "compute"
    share = work.flops / measured[group, name] / roof
    digits = 0 if share > 0.02 else 1
    print(f"  {group:<11}{name:<20}{side + '-bound':<15}{share:>7.{digits}%}")

# %% [markdown]
# What is far below the roof, such as a norm in generation, is limited by neither: calling it from Python takes longer than its arithmetic and its bytes. Should a share on your machine be above 100 %, the roof was measured in a slow moment, or a cache still helped. First guess, then choose it in the explorer: what would a machine with twice the arithmetic, or twice the memory speed, gain for each product?

# %%
course.widgets.roofline(
    speed,
    bandwidth,
    {
        f"{name}, {group}": (work.flops, work.n_bytes, measured[group, name])
        for (group, name), work in kernels.items()
    },
)

# %% [markdown]
# ## Where the time goes in a step
#
# A **profile** is a clock on every operation: forward, backward, update. `profile` reads the clock before and after each; we profile three steps and report the range. The other bar is the work *on paper*: matrix products and attention from the cost table, 5 operations for each logit in softmax and loss, 7 for each number in a norm, 10 in a GELU, 1 in a sum; the backward pass counts twice; 12 operations a weight in the
# update.

# %%
course.predict(
    "13.3",
    "Products are nearly all of the operations on paper. What share of the time do "
    "they have?",
    ["less than 60 %", "60 to 90 %", "more than 90 %"],
)

# %%
profiles = [lesson_13.profile(step) for _ in range(1 if smoke else 3)]
shares = sorted(each.by_kind()[lesson_13.PRODUCTS] / each.total for each in profiles)
profile = min(profiles, key=lambda each: each.total)
kinds = profile.by_kind()
N, L = batch_size * seq_len, config.n_layers
attention = L * 4 * batch_size * seq_len**2 * config.d_model
forward = {
    lesson_13.PRODUCTS: costs.flops_forward - attention,
    "fused attention": attention,
    "softmax and loss": 5 * N * config.vocab_size,
    "norms": 7 * N * config.d_model * (2 * L + 1),
    "the rest": N * (10 * config.d_ff + 2 * config.d_model) * L,
}
on_paper = dict.fromkeys(kinds, 0) | {kind: 3 * n for kind, n in forward.items()}
on_paper["optimizer"] = 12 * sum(p.numel() for p in model.parameters())
share_on_paper = on_paper[lesson_13.PRODUCTS] / sum(on_paper.values())
share_of_products = median(shares)
growth = {
    kind: kinds[kind] / profile.total - n / sum(on_paper.values())
    for kind, n in on_paper.items()
}
fig, ax = course.plots.share_bars(
    {"operations on paper": on_paper, "time measured": kinds},
    notes={"time measured": f"{1e3 * profile.total:.0f} ms"},
    xlabel="share in percent", title="A training step: work and time",
)  # fmt: skip
course.plots.show(fig, "13_profile")
answer = "60 to 90 %"
if not 0.6 <= share_of_products <= 0.9:
    answer = "less than 60 %" if share_of_products < 0.6 else "more than 90 %"
course.resolve(
    "13.3",
    answer,
    f"Products are {share_on_paper:.1%} of the operations and {share_of_products:.0%} "
    "of the time "
    f"(range {shares[0]:.0%} to {shares[-1]:.0%}, n = {len(shares)}). "
    f"“{max(growth, key=growth.get).capitalize()}” "
    f"grows most from paper to clock, by {100 * max(growth.values()):.0f} points.",
)

# %% [markdown]
# The figure shows the fastest of the three steps. What grows from the upper bar to the lower is what a count of operations cannot see: work of low intensity, and slow operations such as the exponentials in softmax. Before anything is made faster, work out what it can gain. If a share $p$ of the time becomes $k$ times as fast, the whole becomes $\frac{1}{(1 - p) + p / k}$ times as fast. This is **Amdahl's law**. Do two corners in your head: all of it, twice as fast; half of it, *infinitely* fast.


# %%
def amdahl(p, k):
    return 1 / ((1 - p) + p / k)


for p, k in ((1.0, 2), (0.5, 2), (0.5, 1e9), (0.05, 1e9)):
    print(f"{p:>4.0%} of the time, {k:>13,.0f} times as fast: {amdahl(p, k):.2f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Half, made infinitely fast, gives a factor of two and no more. Whoever works for a week on five percent wins five percent. So measure *first*.
#
# ## Precision: half the bytes
#
# A number in float32 has 4 bytes, in **bfloat16** 2: the same range, but 8 bits for the digits instead of 24. There is half as much to move, and some processors multiply such numbers much faster. What is lost? Between 1 and 2 there are only 128 steps:

# %%
coarse, fine = torch.tensor(1.0, dtype=torch.bfloat16), torch.tensor(1.0)
print(
    "1 + 1/128 =", (coarse + 1 / 128).item(), "  1 + 1/512 =", (coarse + 1 / 512).item()
)
for _update in range(1000):
    coarse, fine = coarse + 0.001, fine + 0.001
print(
    f"1 and a thousand times 0.001: bfloat16 {coarse.item()}, float32 {fine.item():.3f}"
)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# A thousand small updates, and the weight has not moved: each one was rounded away. So the *weights* and the optimizer stay in float32, and only the products run in bfloat16. PyTorch calls this **autocast**, or mixed precision.
#
# ### The output layer in chunks
#
# A second candidate is the loss: 8,000 logits for each token are written, read, turned into probabilities, and read again for the gradient. Cut the tokens into **chunks**: the sum of their losses is the loss.

# %%
hidden, goal = model.body(inputs).flatten(0, 1), targets.flatten()  # (N, D), (N,)
chunks = zip(hidden.split(32), goal.split(32), strict=True)
chunked = sum(F.cross_entropy(model.head(h), g, reduction="sum") for h, g in chunks) / N
torch.testing.assert_close(chunked, F.cross_entropy(model(inputs).flatten(0, 1), goal))
torch.testing.assert_close(model.loss(inputs, targets), chunked)
print(
    f"equal losses; all logits take {4 * N * config.vocab_size / 1e6:.1f} MB, "
    f"a chunk {4 * 32 * config.vocab_size / 1e6:.1f} MB"
)

# %% [markdown]
# These lines save no memory yet: autograd keeps every chunk for the backward pass. `model.loss` of the package computes the gradients of a chunk while it is there, so only one chunk of logits exists at a time. Now four kinds of step, in turns: all logits or chunks, float32 or bfloat16.
#
# **Predict 13.4.** Amdahl needs the share of the products, printed above, and how much faster a product is in bfloat16. That depends on your processor: some have instructions for it, some imitate it.

# %%
course.predict(
    "13.4",
    "How fast is a whole step in bfloat16 on this machine, compared with float32 (all "
    "logits)?",
    ["slower", "0.9 to 1.1 times as fast", "faster"],
)


# %% tags=["varies"]
def make_step(in_chunks, dtype):
    def one_step():
        with torch.autocast(device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
            if in_chunks:
                loss = model.loss(inputs, targets)
            else:
                loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return one_step


a16, b16 = a.bfloat16(), torch.randn(width, width, device=device).bfloat16()
pair = take_turns({"float32": lambda: a @ a, "bfloat16": lambda: a16 @ b16})
steps = {
    f"{how}, {dtype}": make_step(how == "chunks", dtype)
    for dtype in ("float32", "bfloat16")
    for how in ("all logits", "chunks")
}
times = take_turns(steps)
k, text = ratio(pair["float32"], pair["bfloat16"])
gained, text_of_step = ratio(
    times["all logits, float32"], times["all logits, bfloat16"]
)
answer = "0.9 to 1.1 times as fast"
if not 0.9 <= gained <= 1.1:
    answer = "slower" if gained < 0.9 else "faster"
course.resolve(
    "13.4",
    answer,
    f"A product in bfloat16 is {text} times as fast, so Amdahl expects "
    f"{amdahl(share_of_products, k):.2f} "
    f"for the step. Measured: {text_of_step}.",
)

# %% tags=["varies"]
fig, ax = course.plots.bars(
    {name: 1e3 * median(seconds) for name, seconds in times.items()},
    intervals={name: (1e3 * min(s), 1e3 * max(s)) for name, s in times.items()},
    xlabel="milliseconds a step (median, range)",
    title="Four ways to make the same step",
)
course.plots.show(fig, "13_steps")
first, *others = times
for name in others:
    ratios = [slow / fast for slow, fast in zip(times[first], times[name], strict=True)]
    verdict = (
        "faster in every round"
        if min(ratios) > 1
        else "no difference that all rounds share"
    )
    verdict = "slower in every round" if max(ratios) < 1 else verdict
    print(f"{name:<22}{ratio(times[first], times[name])[1]} times as fast: {verdict}")
print(f"{first}: {1e3 * median(times[first]):,.0f} ms here, {at_first:,.0f} ms in 13.1")

# %% [markdown]
# Take each line as it is printed: a technique that is famous elsewhere may gain nothing here. The last line warns about medians of different moments: only rounds in turn are a comparison. The package trains in bfloat16 where the processor has instructions for it, and in float32 elsewhere.
#
# ## Padding: work that nobody needs
#
# A batch is a rectangle, and texts are not equally long. The rest of each row is **padding**, and padding is multiplied like everything else. Here are reviews from the world of lesson 08, sixteen to a batch, as they come.

# %%
from tinytx.batching import batches_by_length, pad_batch, padding_share

corpus = tx.load_corpus("world")
tokenizer = lesson_13.tokenizer_for(corpus, 1_000, n_texts=1_000)
reviews = [tokenizer.encode(text) for text in corpus.train.texts[:64]]
lengths = [len(ids) for ids in reviews]
as_they_come = [list(range(start, start + 16)) for start in range(0, 64, 16)]


def draw(batches, title):
    longest = {i: max(lengths[j] for j in batch) for batch in batches for i in batch}
    rows = [
        [1] * lengths[i] + [2] * (longest[i] - lengths[i])
        for batch in batches
        for i in batch
    ]
    rows = [row + [0] * (max(lengths) - len(row)) for row in rows]
    kinds = {"outside": "#f4f4f4", "text": COLORS[0], "padding": COLORS[4]}
    return course.plots.categorical_map(
        torch.tensor(rows),
        kinds,
        xlabel="position in the row",
        ylabel="reviews, batch by batch",
        title=f"{title}: {padding_share(lengths, batches):.0%} padding",
    )


fig, ax = draw(as_they_come, "As they come")
course.plots.show(fig, "13_padding_as_they_come")

# %% [markdown]
# In each batch one long review makes all others pay. `batches_by_length` shuffles, sorts by length, cuts into batches of at most so many positions, and shuffles the batches, so training still sees them in random order. Short reviews then travel in large batches, long ones in small ones.

# %%
by_length = batches_by_length(lengths, 16 * max(lengths) // 2, seed=0, epoch=0)
assert sorted(i for batch in by_length for i in batch) == list(range(64))
fig, ax = draw(by_length, "By length")
course.plots.show(fig, "13_padding_by_length")

# %% [markdown]
# No review is lost, as the `assert` checks. How much padding is left, the titles of both figures say. The worst option, though common, is to pad every row to the model's maximum, here 128.

# %%
course.predict(
    "13.5",
    "How does the measured gain of batches by length over padding to 128 compare "
    "with the ratio of positions?",
    ["smaller by more than a tenth", "within a tenth", "larger by more than a tenth"],
)


# %% tags=["varies"]
def positions(batches, width=0):
    return sum(
        len(batch) * max(width, *(lengths[i] for i in batch)) for batch in batches
    )


states = {}


@torch.inference_mode()
def read_all(name):
    (batches, width), last = ways[name], {}
    for batch in batches:
        rows = [reviews[i] + [0] * max(0, width - lengths[i]) for i in batch]
        hidden = model.body(pad_batch(rows, pad_id=0).to(device))  # (B, T, D)
        last |= {i: hidden[row, lengths[i] - 1] for row, i in enumerate(batch)}
    # last hidden state of each review
    states[name] = torch.stack([last[i] for i in range(64)])


ways = {
    "to 128": (as_they_come, 128),
    "as they come": (as_they_come, 0),
    "by length": (by_length, 0),
}
times = take_turns(
    {name: lambda name=name: read_all(name) for name in ways}, n_rounds=3
)
torch.testing.assert_close(states["to 128"], states["by length"], rtol=1e-3, atol=1e-4)
expected = {
    name: positions(*way) / positions(*ways["by length"]) for name, way in ways.items()
}
for name, way in ways.items():
    text = ratio(times[name], times["by length"])[1]
    print(
        f"{name:<13}{positions(*way):>6} positions: expected {expected[name]:.2f}, "
        f"measured {text}"
    )
relative = ratio(times["to 128"], times["by length"])[0] / expected["to 128"]
answer = "within a tenth"
if not 0.9 <= relative <= 1.1:
    answer = f"{'smaller' if relative < 1 else 'larger'} by more than a tenth"
course.resolve(
    "13.5",
    answer,
    "Same hidden states. Measured gain divided by the ratio of positions: "
    f"{relative:.2f}.",
)

# %% [markdown]
# The texts, the model and the answers are the same; padding and the sizes of the batches differ. Attention grows with the square of the length, but at 128 positions its pairs add only $\frac{4TD}{8D^2 + 4DF}$, or 8 %, to the linear layers, so they can explain only a few per cent of a difference. If yours is larger, there is something that we did not separate: batches of other sizes may use caches better or worse.
#
# ## KV cache: what need not be computed again
#
# To generate the next token, a model reads all tokens before it. For the one after that, it reads them *again*. But keys and values of a token never change in a causal model. Lesson 11 stored them in a **KV cache** in fifteen lines. Without it, $n$ tokens need $1 + 2 + \dots + n$ token passes, with it $n$: on paper $(n + 1) / 2$ times as many passes through the blocks.

# %%
course.predict(
    "13.6",
    "At the longest text below: how much faster is generation with a cache, compared "
    "with (n + 1) / 2?",
    ["less than that", "about that (within a tenth)", "more than that"],
)

# %%
from tinytx.generate import Sampling, continue_rows

ns = (4, 8) if smoke else (16, 32, 64)
tokens = {}


def generate(n, cached):
    sampling = Sampling(max_new_tokens=n, top_k=1)
    tokens[n, cached] = continue_rows(model, [[2]], sampling, cached=cached, eos_id=-1)


keys = [(n, cached) for n in ns for cached in (True, False)]
times = take_turns({key: lambda key=key: generate(*key) for key in keys}, n_rounds=3)
for n in ns:
    assert tokens[n, True] == tokens[n, False]
    gain, text = ratio(times[n, False], times[n, True])
    print(
        f"{n:>4} tokens: (n + 1) / 2 is {(n + 1) / 2:4.1f}, measured {text} times "
        "as fast"
    )
relative = gain / ((ns[-1] + 1) / 2)
lines = [
    Curve(name, ns, [1e3 * median(times[n, cached]) for n in ns])
    for name, cached in (("without cache", False), ("with cache", True))
]
fig, ax = course.plots.curves(
    lines,
    x_log=True,
    y_log=True,
    xlabel="tokens generated (log scale)",
    ylabel="milliseconds (log scale)",
    title="Keys and values: stored or computed again",
)
ax.set_xticks(ns, [str(n) for n in ns])
ax.set_xticks([], minor=True)
course.plots.show(fig, "13_cache")
answer = "about that (within a tenth)"
if not 0.9 <= relative <= 1.1:
    answer = "less than that" if relative < 1 else "more than that"
course.resolve(
    "13.6",
    answer,
    f"Same tokens; the gain at n = {ns[-1]} is {relative:.0%} of (n + 1) / 2. By the "
    "roofline an operation of "
    f"intensity 0.5 may take {speed / (0.5 * bandwidth):.0f} times as long as one of a "
    "large product.",
)

# %% [markdown]
# The roofline names one cause of the gap between paper and clock: a single token has an intensity of one half, many tokens at once have a far better speed. The output layer, which runs once a token in both ways, and the start of many small operations are others; we did not separate them. The cache does much *less* work at a *worse* speed. It also costs memory. Many texts generated together use each weight many times, and fill the memory with keys and values:

# %%
for n_texts in (1, 32):
    table = tx.cost_table(config, batch_size=n_texts, seq_len=128)
    cache, weights = table.bytes_kv_cache / 1e6, table.bytes_parameters / 1e6
    print(f"{n_texts:>3} texts: cache {cache:5.1f} MB, weights {weights:.1f} MB")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Compile: fewer journeys through memory
#
# Here is a norm and a GELU, as one would write them on paper. Each line reads whole tensors and writes whole tensors. A compiler can **fuse** the lines: read a number once, do everything to it, write it once. `torch.compile` writes such a function in C++ or for a GPU. It was started at the beginning of this lesson.

# %%
import inspect

print(inspect.getsource(lesson_13.norm_and_gelu))
course.predict(
    "13.7",
    "How many times as fast is the compiled function?",
    [
        "less than 2 times",
        "2 to 5 times",
        "more than 5 times",
        "it cannot be compiled here",
    ],
)

# %%
try:
    if trial is None:
        raise lesson_13.NotCompiledError("left out in the budget smoke")
    compiled = trial.result(limit=900)
    gain, text = ratio(compiled.plain, compiled.compiled)
    answer = (
        "2 to 5 times"
        if 2 <= gain <= 5
        else "less than 2 times"
        if gain < 2
        else "more than 5 times"
    )
    sentence = (
        f"{text} times as fast; compiling took {compiled.seconds_to_compile:.0f} s, "
        f"repaid after {compiled.calls_to_repay:,.0f} calls. Results differ by at most "
        f"{compiled.difference:.0e}."
    )
except lesson_13.NotCompiledError as problem:
    answer, sentence = "it cannot be compiled here", f"Not compiled: {problem}."
course.resolve("13.7", answer, sentence)

# %% [markdown]
# In a model most of this is done already: `layer_norm` and `gelu` of PyTorch are fused functions written by hand. Products stay what they are. So compile what is made of many small operations and runs for long, and put it into Amdahl's law first.
#
# ## Larger: a batch in parts
#
# A batch may be too large for the memory. **Gradient accumulation** cuts it into **micro-batches**, runs the backward pass on each, and lets the gradients add up before one update. Each micro-batch counts by its share of the tokens. A common mistake is a plain mean, which is wrong for parts of different size. Here one row is the first part, and all other rows are the second.


# %%
def gradients(parts, weights):
    model.zero_grad()
    for rows, weight in zip(parts, weights, strict=True):
        (weight * model.loss(inputs[rows], targets[rows])).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


n_rows = len(inputs)
at_once = gradients([slice(0, None)], [1])
parts = [slice(0, 1), slice(1, None)]  # one row, and all others
by_share = gradients(parts, [1 / n_rows, (n_rows - 1) / n_rows])
torch.testing.assert_close(by_share, at_once, rtol=1e-3, atol=1e-6)
plain = gradients(parts, [1 / 2, 1 / 2])
print(f"by share: largest difference {(by_share - at_once).abs().max():.0e}", end="")
print(f"; plain mean: {(plain - at_once).abs().max():.0e}")

# %% [markdown]
# This is also how several processes share a batch: each takes a part, and the gradients are added up *between* processes. All make the same update, so they stay copies of each other. This is **distributed training**. The command is `torchrun --nproc-per-node=2 -m tinytx_run.cli pretrain ...`. Two processes with one thread each against one: ideal is twice as fast.

# %%
small = (
    {"d_model": 32, "n_layers": 1, "tokens_per_batch": 256}
    if smoke
    else {"tokens_per_batch": 1024}
)
rounds = 1 if smoke else 3
workload = lesson_13.Workload(
    device="cpu", seq_len=64, n_rounds=rounds, n_steps=1 if smoke else 2, **small
)  # fmt: skip
speeds = lesson_13.scaling(2, workload, report=lambda line: None)
single = next(each for each in speeds if each.n_processes * each.n_threads == 1)
for each in speeds:
    gain, text = ratio(each.tokens_per_second, single.tokens_per_second)
    print(f"processes: {each.n_processes}, threads each: {each.n_threads}:", end=" ")
    print(f"{each.median:,.0f} tokens a second, {text} times one")

# %% [markdown]
# Read the range before the median: other programs need the second core, too. What can keep two processes from being twice as fast? Summing gradients and updating weights are not shared, both read from the same memory, and the slower one keeps the other waiting. We did not separate these causes.
#
# ### Longer: stop and resume
#
# A training of days will be interrupted. A run that **resumes** must lead to the *same* model, so a **checkpoint** holds more than weights: both averages of the optimizer, the number of steps, the position in the data, the random state. It is an **atomic write**: the files are written under another name and the folder is renamed at the end, so that a half-written checkpoint is never read. A **checksum** of each file, a number computed from its bytes, shows whether it was damaged later. A training that gives the same bits each time is **deterministic**. (A result is **reproducible** if others who repeat it get the same.) We interrupt a run with dropout at step 7; its last checkpoint is from step 5.

# %%
from tinytx.loop import train
from tinytx.objectives import CausalObjective
from tinytx.settings import TrainingSettings
from tinytx_run.pretrain import new_language_model
from tinytx_run.runs import open_run

tiny = config.replace(
    vocab_size=1_000, d_model=64, n_heads=2, n_layers=2, d_ff=128, dropout=0.1
)
marks = {
    "bos_id": tokenizer.bos_id,
    "eos_id": tokenizer.eos_id,
    "pad_id": tokenizer.pad_id,
}
objective = CausalObjective(reviews, max_len=128, **marks)
settings = TrainingSettings(n_steps=12, checkpoint_every=5, tokens_per_batch=512)


def train_tiny(folder, cut_at=None):
    def power(step, model):
        if step == cut_at:
            raise SystemError("no power")

    learner = new_language_model(tiny, seed=0).to(device)
    with open_run(folder, plan={}) as checkpoints:
        train(
            learner,
            objective,
            settings,
            checkpoints=checkpoints,
            on_step=power,
            progress=False,
        )
    return list(learner.parameters())


with tempfile.TemporaryDirectory() as folder:
    whole = train_tiny(f"{folder}/whole")
    try:
        train_tiny(f"{folder}/cut", cut_at=7)
    except SystemError as error:
        print(f"{error} at step 7; the same call again resumes from step 5")
    resumed = train_tiny(f"{folder}/cut")
same = [torch.equal(a, b) for a, b in zip(whole, resumed, strict=True)]
print(f"{sum(same)} of {len(same)} tensors equal, bit for bit")
assert device.type == "cuda" or all(same)

# %% [markdown]
# ## Use it: everything together
#
# One real training, twice. The **baseline** is the loop that one writes first: reviews as they come, all logits, float32. Against it `train` of the package: batches by length, logits in chunks, bfloat16 where the processor has instructions for it. Same starting weights, same number of steps, learning rates and no weight decay, on 512 reviews, three seeds. Both are warmed up, then loop and package take turns. Faster is worth nothing if the model is worse, so we also measure
# the loss on 64 held-out reviews.

# %%
n_seeds, n_texts, per_batch = (1, 64, 16) if smoke else (3, 512, 16)
texts = [tokenizer.encode(text) for text in corpus.train.texts[: n_texts + 64]]
seen = CausalObjective(texts[:n_texts], max_len=128, **marks)
held_out = CausalObjective(texts[n_texts:], max_len=128, **marks)
n_steps = n_texts // per_batch
recipe = TrainingSettings(
    n_steps=n_steps, lr=3e-3, warmup_steps=4, weight_decay=0.0,
    tokens_per_batch=seen.n_tokens // n_steps,
)  # fmt: skip


def first_loop(learner):
    adamw = torch.optim.AdamW(
        learner.parameters(), betas=recipe.betas, weight_decay=0.0
    )
    for number in range(n_steps):
        adamw.param_groups[0]["lr"] = recipe.lr_at(number + 1)
        rows, wanted = seen.batch(range(number * per_batch, (number + 1) * per_batch))
        logits = learner(rows.to(device))
        loss = F.cross_entropy(
            logits.flatten(0, 1), wanted.to(device).flatten(), ignore_index=0
        )
        adamw.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learner.parameters(), recipe.clip_norm)
        adamw.step()


# %%
course.predict(
    "13.8",
    "Equal numbers of steps: how does the held-out loss of the package compare with "
    "that of the loop?",
    [
        "better with every seed",
        "sometimes better, sometimes worse",
        "worse with every seed",
    ],
)


# %%
def run(seed, packaged):
    learner = new_language_model(tiny.replace(dropout=0.0), seed=seed).to(device)
    if packaged:
        taken = seconds_of(
            lambda: train(learner, seen, recipe.replace(seed=seed), progress=False)
        )
    else:
        taken = seconds_of(lambda: first_loop(learner))
    with torch.inference_mode():
        return taken, held_out.loss(learner.eval(), list(range(64))).item()


results = {"loop": [], "package": []}
for turn in range(-1, n_seeds):
    for way in results:  # in turns: loop, package, loop, package
        result = run(max(turn, 0), way == "package")
        if turn >= 0:  # turn -1 is the warm-up of both
            results[way].append(result)
print("seed    first loop           package")
for seed, (loop, package) in enumerate(
    zip(results["loop"], results["package"], strict=True)
):
    print(
        f"{seed:>4}{loop[0]:>7.2f} s{loop[1]:>7.3f} nats{package[0]:>7.2f} "
        f"s{package[1]:>7.3f} nats"
    )
faster = ratio([s for s, _ in results["loop"]], [s for s, _ in results["package"]])[1]
gaps = [b[1] - a[1] for a, b in zip(results["loop"], results["package"], strict=True)]
answer = "sometimes better, sometimes worse"
if min(gaps) > 0 or max(gaps) < 0:
    answer = f"{'worse' if min(gaps) > 0 else 'better'} with every seed"
course.resolve(
    "13.8",
    answer,
    f"The package is {faster} times as fast. Its loss minus that of the loop, paired "
    "by seed: mean "
    f"{sum(gaps) / len(gaps):+.3f} nats (range {min(gaps):+.3f} to {max(gaps):+.3f}, n "
    f"= {len(gaps)}).",
)

# %% [markdown]
# Read both: seconds *and* nats. The two ways differ in more than speed. Batches by length hold other reviews, and not the same number of them, so the order of the data changes; the precision may change, too. If the range of the ratios holds 1, these rounds do not show that the package is faster. If its loss is worse with every seed, it is not as good after the same number of steps; three seeds are too few to say by how much. The fair question is then: which is better after the same *time*?
#
# ## What this does not show
#
# Two lines are a coarse picture of a memory with several caches, and "bytes that must be moved" is the best case. Times of one machine say little about another: on a GPU the ridge lies far to the right, and starting a kernel costs more than many of our layers. We measured small models; in large ones products take more of the time. A model that does not fit on one device must itself be cut
# (`shard`); **gradient checkpointing**, quantisation and FlashAttention are further ways to move or store less.
#
# ## Take-home: timing fairly
#
# The whole idea on one screen: warm up, take turns, synchronise, compare round by round, report the range. Then ask Amdahl what was possible.


# %%
def fair_ratio(slow, fast, n_rounds=5, clock=process_time):
    """How many times as long `slow` takes as `fast`: median and range over rounds."""
    slow(), fast()  # warm up: not measured
    ratios = []
    for _ in range(n_rounds):  # take turns: a slow moment meets both
        times = []
        for task in (slow, fast):
            start = clock()
            task()
            if torch.cuda.is_available():
                torch.cuda.synchronize()  # then use perf_counter
            times.append(clock() - start)
        ratios.append(times[0] / max(times[1], 1e-9))
    ratios.sort()
    return ratios[n_rounds // 2], (ratios[0], ratios[-1])


x = torch.randn(600, 600)
middle, (low, high) = fair_ratio(lambda: x @ x, lambda: x + x)
print(
    f"a product takes {middle:.0f} times as long as a sum (range {low:.0f} to "
    f"{high:.0f})"
)

# %% [markdown]
# ## Questions
#
# Pick an answer and read its comment. Common mistakes are among the choices.

# %%
course.quiz("faster_and_larger")

# %% [markdown]
# ## Exercises
#
# Fill in the dots, and run the cell below them. It checks what you wrote and names the mistake if it knows it.
#
# [exercise: padded_cost]


# %%
def padded_cost(lengths, batch_size):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("padded_cost", padded_cost)

# %% [markdown]
# [exercise: accumulate]


# %%
def accumulate(gradients, n_tokens):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("accumulate", accumulate)

# %% [markdown]
# ### Try it yourself
#
# **1.** A feed-forward matrix from $D$ to $4D$ meets $N$ tokens at once. From which $N$ on does it do more than $i$ operations for each byte, if $D$ is large? And what does that say about generating 32 texts together?
#
# <details><summary>Answer</summary>
#
# $2 N D \cdot 4D$ operations; for large $D$ the matrix is nearly all that moves, $4 \cdot 4 D^2$ bytes. So $i \approx N / 2$. Generated together, 32 texts have an intensity of 16 instead of one half, at nearly the same time a step if that lies left of the ridge: then up to 32 times as many tokens a second. With a ridge at $r$ this ends at about $2r$ texts; yours is printed above.
#
# </details>
#
# **2.** A common mistake is the sentence "attention is quadratic, so it takes the time." What would you measure to check it?
#
# <details><summary>Answer</summary>
#
# The share of attention at several lengths. Per token, scores and weighted sums take $4 T D$ operations, and the linear layers of a block $8 D^2 + 4 D F$; with $F = 4 D$ they meet at $T = 6 D$. At a width of 256 that is a text of 1,536 tokens. Below it the linear layers take more.
#
# </details>
#
# **3.** A change makes the products twice as fast, and the whole step 1.1 times. Which share of the time did the products have, if Amdahl is right?
#
# <details><summary>Answer</summary>
#
# $1 / 1.1 = 1 - p / 2$, so $p \approx 0.18$. Whoever expected a factor of two had not looked at a profile.
#
# </details>
#
# ## Summary
#
# 1. A fair comparison warms up, takes turns and reports a range. A ratio without its range is an anecdote, however many digits it has.
# 2. Arithmetic intensity is operations for each byte moved: one twelfth for a sum, one half for a linear layer that meets one token. Left of the ridge memory limits, right of it arithmetic.
# 3. Profile first, then Amdahl, then the change, then the clock. The clock may disagree with the promise.
# 4. Chunked logits, less padding, the KV cache and fused functions do less work or move less. Each was checked to give the same answers, up to rounding. Lower precision and batches by length change the training: there the held-out loss decides.
# 5. Gradients of micro-batches add up, weighted by tokens, to the gradient of the batch; that is accumulation, and it is training with several processes. A complete checkpoint resumes to the same bits.
#
# *References:* roofline: Williams, Waterman and Patterson, *Communications of the ACM* 52(4), 2009. Training in 16 bits: Micikevicius et al., [arXiv:1710.03740](https://arxiv.org/abs/1710.03740), section 3.1 (weights in float32). bfloat16: Kalamkar et al., [arXiv:1905.12322](https://arxiv.org/abs/1905.12322).
# Moving less in attention: Dao et al., [arXiv:2205.14135](https://arxiv.org/abs/2205.14135), section 3. Generation with large models: Pope et al., [arXiv:2211.05102](https://arxiv.org/abs/2211.05102), section 2. Copies that share a batch: Li et al., [arXiv:2006.15704](https://arxiv.org/abs/2006.15704). Cutting the model too: Zhao et al., [arXiv:2304.11277](https://arxiv.org/abs/2304.11277).
#
# *What comes next:* what has changed in the transformer since 2017, and which change matters? That is [lesson 14](14_since_2017.ipynb).
