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
# 3. say what a change can gain at most (Amdahl's law) before you make it;
# 4. *Further:* save work with less padding and a KV cache;
# 5. *Further:* cut a batch into micro-batches without changing its gradient.
#
# *You need:* lesson 12 (what a layer costs), lesson 08 (training), lesson 11 (KV cache). *It takes:* an hour; half a minute to run on two quiet cores.

# %% [markdown]
# ## Set-up
#
# We compute on **one** core, so that times depend less on what else runs.

# %%
import math  # noqa: F401 - an exercise may need it

import torch
import torch.nn.functional as F

import tinytx as tx
import tinytx_course as course
from tinytx_course.labs import lesson_13
from tinytx_course.labs.lesson_13 import ratio, said
from tinytx_run.recipes import default_budget

torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
smoke = default_budget() == "smoke"

# %%
course.recall("13")

# %% [markdown]
# ## Why: the tempting calculation
#
# How long does a training step take? Lesson 12 counted operations, and a large product of matrices tells how many a second the machine can do. Divide one by the other.

# %%
config = tx.TransformerConfig(
    vocab_size=8_000, d_model=256, n_heads=4, n_layers=2, d_ff=1024, max_len=128
)
torch.manual_seed(0)
batch_size, seq_len = (2, 16) if smoke else (4, 128)
model = tx.LanguageModel(config).to(device)
token_ids = torch.randint(6, 8_000, (batch_size, seq_len + 1), device=device)
inputs, targets = token_ids[:, :-1], token_ids[:, 1:]
costs = tx.cost_table(config, batch_size=batch_size, seq_len=seq_len)

# %% [markdown]
# A fair stopwatch **warms up** (the first call fetches memory), **takes turns**, A B, A B, so a slow moment meets both, and reads **the right clock**: processor time, which does not pass while other programs have the core. We report the median of the ratios, round by round, with their smallest and largest value: a **range**, not a **confidence interval**.

# %%
from statistics import median
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
# **Predict 13.1.** Now a training step in float32 and, in turns, a product of two square matrices of width 1,024.

# %%
course.predict(
    "13.1",
    "How long does the step take, compared with operations divided by the speed of "
    "the product?",
    ["less than 0.9 times as long", "0.9 to 1.1 times as long",
     "more than 1.1 times as long"],
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
n_operations = 2 * width**3
calculated = [costs.flops_training / n_operations * t for t in times["product"]]
factor, ends = ratio(times["step"], calculated)
# A roof is the best that was reached, not the usual.
speed = n_operations / min(times["product"])  # operations a second
course.resolve(
    "13.1", factor,
    f"The step takes {1e3 * median(times['step']):,.0f} ms, {said(factor, ends)} times "
    "as long as calculated.",
    between=ends, thresholds=(0.9, 1.1),
)

# %% [markdown]
# **Finding:** where the range lies above 1, the calculation leaves something out. Possible reasons, not separated here: the products of a step are smaller than the one that was timed; what is no product takes time, too; numbers must be read from memory.
#
# ## By hand: operations and bytes
#
# Multiply a $3 \times 5$ matrix by a $5 \times 4$ matrix. Each of the $3 \cdot 4$ sums takes 5 multiplications and 5 additions: 120 operations. Each number is read or written once, at 4 bytes: $4\,(15 + 20 + 12) = 188$ bytes. So there are 0.64 operations for each byte moved: the **arithmetic intensity**. Two square matrices give $n/6$ a byte: $2n^3$ operations on $3n^2$ numbers.
#
# A machine has two speeds: at most $P$ operations and at most $M$ bytes a second. With intensity $i$ the speed is at most $\min(P,\ i M)$: a line that rises with $i$, up to a flat top, the **roofline**. They meet at $i = P / M$, the **ridge**. Left of it work is **memory-bound**, right of it **compute-bound**.
#
# ### Further: the same in a loop

# %% tags=["nbval-check-output"]
rows, inner, columns = 3, 5, 4
operations = 0
for _row in range(rows):
    for _column in range(columns):
        for _term in range(inner):
            operations += 2  # multiply, and add
n_bytes = 4 * (rows * inner + inner * columns + rows * columns)
print(f"{operations} operations, {n_bytes} bytes:", end=" ")
print(f"{operations / n_bytes:.2f} for each byte")

# %% [markdown]
# ## Look: the roofline of this machine
#
# Here are the layers of our model in training and in generation. In training each weight is read once for all tokens of a batch. In generation with a **KV cache**, which stores the keys and values of earlier tokens, it is read for one token. A large product gives the top of the roofline, a large copy the slope.

# %% tags=["nbval-check-output"]
layers = {
    f"{name}, {kind}": layer
    for kind, n_rows, n_queries in (("training", 4, 128), ("generation", 1, 1))
    for name, layer in lesson_13.layers_of(
        config, batch_size=n_rows, n_queries=n_queries, n_keys=128, device=device
    ).items()
}
for name in ("output layer, training", "output layer, generation"):
    print(f"{name}: {layers[name].intensity:.1f} operations for each byte")

# %%
copied = torch.ones(2**15 if smoke else 2**24, device=device)  # 64 MB
target = torch.empty_like(copied)
copying = {"copy": lambda: target.copy_(copied)}  # first: drives weights out of caches
with torch.inference_mode():
    timed = take_turns(copying | {name: layer.task for name, layer in layers.items()})
bandwidth = 2 * 4 * copied.numel() / min(timed["copy"])  # bytes a second: read, written
ridge = speed / bandwidth
print(f"ridge at {ridge:.1f} operations for each byte")
for name, layer in layers.items():
    if "norm" not in name and "sum" not in name:  # a product
        assert smoke or (layer.intensity > ridge) == ("training" in name)

# %% [markdown]
# **Finding:** by their intensity the products of training are compute-bound, and those of generation memory-bound: they do two operations for each weight of four bytes. (A point far below the line is limited by neither: with one token, the call itself takes time, too.) What would a machine with twice the arithmetic, or twice the memory speed, gain at most? Guess, then choose it in the explorer.

# %%
course.widgets.roofline(
    speed, bandwidth,
    {name: (layer.flops, layer.n_bytes, median(timed[name]))
     for name, layer in layers.items()},
)

# %% [markdown]
# ## Where the time goes in a step
#
# First the work *on paper*: products and attention are counted as in lesson 12, the rest is our estimate. Then a **profile**, a clock on every operation. **Predict 13.2.**

# %%
on_paper = lesson_13.on_paper(config, batch_size=batch_size, seq_len=seq_len)
share_on_paper = on_paper[lesson_13.PRODUCTS] / sum(on_paper.values())
print(f"products are {share_on_paper:.1%} of the operations on paper")
course.predict(
    "13.2",
    "What share of the time do the products have?",
    ["less than 60 %", "60 to 90 %", "more than 90 %"],
)

# %% tags=["varies"]
def share(profile):
    return profile.by_kind()[lesson_13.PRODUCTS] / profile.total


profiles = [lesson_13.profile(step) for _ in range(1 if smoke else 3)]
shares = sorted(map(share, profiles))
kinds = sorted(profiles, key=share)[len(shares) // 2].by_kind()  # the one in the middle
fig, ax = course.plots.share_bars(
    {"operations on paper": dict.fromkeys(kinds, 0) | on_paper, "time measured": kinds},
    xlabel="share in percent",
)
course.plots.show(fig, "13_profile")
p = median(shares)
course.resolve(
    "13.2", 100 * p,
    f"{p:.0%} of the time (range {min(shares):.0%} to {max(shares):.0%}), and "
    f"{share_on_paper:.0%} of the operations.",
    between=(100 * min(shares), 100 * max(shares)), thresholds=(60, 90),
)

# %% [markdown]
# **Finding:** where the printed range leaves out the share on paper, the clock does not follow the count.
#
# If a share $p$ of the time becomes $k$ times as fast, the whole becomes $\frac{1}{(1 - p) + p / k}$ times as fast: **Amdahl's law**. Half of the time, made infinitely fast, gives a factor of two and no more. So measure *first*.
#
# ## Further: padding, work that nobody needs
#
# A batch is a rectangle, and texts are not equally long. The rest of each row is **padding**, which is multiplied like everything else. Here are 64 reviews, sixteen to a batch. `batches_by_length` sorts them by length instead, cuts into batches of at most so many positions, and shuffles the batches.

# %%
from tinytx.batching import batches_by_length

corpus = tx.load_corpus("world")
tokenizer = lesson_13.tokenizer_for(corpus, 1_000, n_texts=1_000)
lengths = [len(tokenizer.encode(text)) for text in corpus.train.texts[:64]]
totals = []
as_they_come = [list(range(start, start + 16)) for start in range(0, 64, 16)]
by_length = batches_by_length(lengths, 16 * max(lengths) // 2, seed=0, epoch=0)
assert sorted(i for batch in by_length for i in batch) == list(range(64))
for name, batches, width in (("all rows to 128", as_they_come, 128),
                             ("as they come", as_they_come, 0),
                             ("by length", by_length, 0)):
    widest = [max(width, *(lengths[i] for i in batch)) for batch in batches]
    positions = sum(len(batch) * n for batch, n in zip(batches, widest, strict=True))
    padding = 1 - sum(lengths) / positions
    totals.append(positions)
    print(f"{name:<16}{positions:>6,} positions, {padding:.0%} of them padding")
assert totals[0] > totals[1] > totals[2] and padding < 0.2

# %% [markdown]
# **Finding:** one long review makes its whole batch pay; batches by length leave little padding.
#
# ## Further: KV cache, what need not be computed again
#
# Keys and values of a token never change in a causal model. Lesson 11 stored them in a **KV cache**. Without it the blocks compute $1 + 2 + \dots + n$ tokens, with it $n$. A common mistake stops here, at $(n + 1) / 2$ times as much work. But the output layer runs once for each new token in both ways.

# %%
n = 8 if smoke else 64
D = config.d_model
blocks = config.n_layers * (8 * D**2 + 4 * D * config.d_ff)  # of a token, without pairs
output = 2 * D * config.vocab_size
counted = (n * (n + 1) // 2 * blocks + n * output) / (n * (blocks + output))
print(f"the output layer is {output / (blocks + output):.0%} of a token's operations")
print(f"{n} tokens: (n + 1) / 2 = {(n + 1) / 2}; with the output layer {counted:.1f}")
course.predict(
    "13.3",
    "How much faster is generation of these tokens with a cache, compared with the "
    "second figure?",
    ["less than half of it", "from half of it up to it", "more than it"],
)

# %% tags=["varies"]
from tinytx.generate import Sampling, continue_rows

tokens = {}


def generate(cached):
    sampling = Sampling(max_new_tokens=n, top_k=1)
    tokens[cached] = continue_rows(model, [[2]], sampling, cached=cached, eos_id=-1)


times = take_turns({c: lambda c=c: generate(c) for c in (False, True)}, n_rounds=3)
assert tokens[True] == tokens[False]
gain, ends = ratio(times[False], times[True])
course.resolve(
    "13.3", gain / counted,
    f"Same tokens, {said(gain, ends)} times as fast: {gain / counted:.0%} of the "
    f"counted {counted:.1f}.",
    between=(ends[0] / counted, ends[1] / counted), thresholds=(0.5, 1),
)

# %% [markdown]
# Where that share is below 100 %, the cache does *less* work at a *worse* speed. Possible reasons, not separated: each weight is read for one token only, and one token starts as many calls as a hundred.
#
# ## Further: half the bytes
#
# A number in float32 has 4 bytes, in **bfloat16** 2: the same range, but 8 bits for the digits instead of 24. Some processors multiply such numbers much faster. What is lost?

# %% tags=["nbval-check-output"]
coarse, fine = torch.tensor(1.0, dtype=torch.bfloat16), torch.tensor(1.0)
for step_size in (1 / 128, 1 / 512):
    print(f"1 + {step_size} = {(coarse + step_size).item()}")
for _update in range(1000):
    coarse, fine = coarse + 0.001, fine + 0.001
print(f"a thousand times 0.001 more: {coarse.item()}; in float32 {fine.item():.3f}")

# %% [markdown]
# Each small update was rounded away. So the *weights* and the optimizer stay in float32, and only the products run in bfloat16: **autocast**, or mixed precision (Micikevicius et al., [arXiv:1710.03740](https://arxiv.org/abs/1710.03740), section 3.1, there with float16). What gain to expect follows by Amdahl's law from the share of the products and from the gain of one product.


# %% tags=["varies"]
def mixed_step():
    with torch.autocast(device.type, torch.bfloat16):
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


a16, b16 = a.bfloat16(), b.bfloat16()
times = take_turns({
    "step": step, "mixed step": mixed_step,
    "product": lambda: a @ b, "product in bfloat16": lambda: a16 @ b16,
})
k, ends = ratio(times["product"], times["product in bfloat16"])
print(f"a product is {said(k, ends)} times as fast in bfloat16,")
print(f"so Amdahl expects a step to be {1 / ((1 - p) + p / k):.2f} times as fast;")
print(f"measured: {said(*ratio(times['step'], times['mixed step']))}")

# %% [markdown]
# A range that contains 1 leaves open which is faster. Amdahl's law is exact only if one product stands for all; here it is one size of many, and attention, which $p$ leaves out, runs in bfloat16, too. A possible reason for a slow-down is a processor without instructions for bfloat16. (`torch.compile` saves bytes in another way: it writes **fused** functions, which read a number once, do everything to it, and write it once: Dao et al., [arXiv:2205.14135](https://arxiv.org/abs/2205.14135), section 3, for attention.) Numbers of 8 bits and fewer, and computing again what could be stored (**gradient checkpointing**), were not tried.
#
# ## Further: larger, a batch in parts
#
# **Gradient accumulation** cuts a batch that is too large for the memory into **micro-batches** and lets their gradients add up before one update. Each counts by its share of the tokens; a plain mean is wrong for parts of different size. Here one row is the first part, and all others are the second.


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
# In **distributed training** each process takes a part, and gradients are added up *between* processes (`torchrun --nproc-per-node=2 -m tinytx_run.cli pretrain ...`). A run can **resume** if its **checkpoint** also holds the averages of the optimizer, the position in the data and the random state. An **atomic write** renames a finished folder, so no half-written checkpoint is ever read; a **checksum** shows damage. A training that gives the same bits each time is **deterministic**; a result is **reproducible** if others get it, too.
#
# ## What this does not show
#
# Times of one machine say little about another, whose ridge lies elsewhere.
#
# ## Take-home: timing fairly
#
# | habit | against |
# |---|---|
# | warm up | the first call |
# | take turns, compare round by round | a slow moment of the machine |
# | synchronise | a GPU that has not finished |
# | report the range | one lucky round |

# %% [markdown]
# ## Questions

# %%
course.quiz("faster_and_larger")

# %% [markdown]
# ## Exercises
#
# [exercise: batch_at_ridge]


# %%
def batch_at_ridge(d_in, d_out, bytes_a_number, ridge):
    ...


# %%
course.check("batch_at_ridge", batch_at_ridge)

# %% [markdown]
# For wide layers in float32, $N$ is about twice the ridge, which is printed above.
#
# ## Further: one more exercise
#
# [exercise: padded_cost]


# %%
def padded_cost(lengths, batch_size):
    ...


# %%
course.check("padded_cost", padded_cost)

# %% [markdown]
# ## Summary
#
# 1. A fair comparison warms up, takes turns and reports a range.
# 2. Arithmetic intensity is operations for each byte moved. Left of the ridge memory is the first limit, right of it arithmetic.
# 3. Profile first, then Amdahl, then the change, then the clock.
# 4. *Further:* a KV cache saves the work of the blocks, not that of the output layer: count both.
# 5. *Further:* gradients of micro-batches add up, weighted by tokens, to the gradient of the batch.
#
# *References:* roofline: Williams, Waterman and Patterson, *Communications of the ACM* 52(4), 2009.
#
# *What comes next:* what has changed in the transformer since 2017, and which change matters? That is [lesson 14](14_since_2017.ipynb).
