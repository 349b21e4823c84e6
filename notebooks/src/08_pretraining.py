# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 08 · Pretraining
#
# **What does predicting the next token teach?**
#
# After this lesson you can
#
# 1. turn any text into inputs and targets for a language model, and say why the targets are shifted by one;
# 2. compute loss and perplexity by hand, and say what they must be before training;
# 3. write the training loop, and place a loss between a model that only counts and the best that any model could reach;
# 4. compare a model's distribution of the next word with the true one, and measure where they differ most;
# 5. sample text with temperature, top-k and top-p, and check what was written.
#
# *You need:* the causal mask from [lesson 02](02_attention_and_masks.ipynb), and natural logarithms.
# *It takes:* an hour and three quarters to read and do; a minute and a half to run on a laptop, less with a GPU.

# %% [markdown]
# ## Set-up
#
# The lesson trains one model in front of you, and more than a dozen tiny ones. How long that takes is decided by the budget ([lesson 00](00_start_here.ipynb) explains it). With the budget `smoke` everything runs, but little is learned, and the sentences below about learning do not fit.

# %%
import math

import numpy as np
import torch
import torch.nn.functional as F
from IPython.display import Markdown
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_run.recipes import default_budget, plan

smoke = default_budget() == "smoke"

# %% [markdown]
# Two questions from earlier lessons first.

# %%
course.recall("08")

# %% [markdown]
# The text is that of the whole course: French reviews of books, drawn from a grammar whose every probability can be computed. All marks are set apart by spaces, so a unit of the grammar is what lies between two spaces. Each review is about one book, and its writer liked it or did not. A good guess of the next word would use that.
#
# A model reads *tokens*, which it gets from a tokenizer ([lesson 01](01_tokens.ipynb)): `▁` marks the space before a word. Each token has a number, its *id*. $V$ is the size of the vocabulary. Here it is large enough for nearly every word of this small language to be one token.

# %%
from tinytx_run.pretrain import train_tokenizer

corpus, world, recipe = tx.load_corpus("world"), tx.World(), plan("world")
tokenizer = train_tokenizer(
    corpus.train.texts, recipe.vocab_size, exact=False, kind="world"
)
V, pad_id = tokenizer.vocab_size, tokenizer.pad_id
print(
    f"{len(corpus.train.texts):,} reviews to learn from, in a language of "
    f"{len(world.vocabulary):,} words"
)
print(f"{V:,} tokens; here is a review in tokens, and three as they are:")
print(" ".join(tokenizer.pieces(corpus.train.texts[0])))
Markdown("\n".join(f"- {text}" for text in corpus.train.texts[:3]))

# %% [markdown]
# ## Why: the text is its own teacher
#
# No one wrote answers next to these reviews. They are in the text. Hide what follows *Le roman est*, and the next word is the answer. This is **next-token prediction**; a model that predicts each token from those before it is called **autoregressive**. One sentence of six tokens asks six questions, and a seventh: is this the end? To ask them all at once, the text is written down twice, shifted by one position. A special token opens the first copy, another one closes the second.

# %%
words = ["Le", "roman", "est", "vraiment", "beau", "."]
inputs, targets = ["<bos>", *words], [*words, "<eos>"]
for number, answer in enumerate(targets, start=1):
    print(f"{' '.join(inputs[:number]):<38} →  {answer}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Thanks to the causal mask, position $t$ sees the inputs up to $t$ and nothing after. So a *single* pass through the model answers all seven questions, with one distribution over the whole vocabulary at every position. At each position the model is given the *true* tokens so far, not its own guesses: this is called **teacher forcing**.
#
# [Lesson 07](07_your_own_gpt.ipynb) built the whole way from ids to logits. An untrained model already gives answers of the right shape: batch, positions, vocabulary. It is a relative of the model counted in [lesson 06](06_counting_parameters.ipynb). Nothing in it has a bias, a norm has a scale and no shift, and one more norm follows the last block. The sum below is asserted.

# %%
from tinytx.batching import pad_batch
from tinytx.objectives import causal_batch
from tinytx_run.pretrain import new_language_model


def framed(texts):
    rows = [[tokenizer.bos_id, *ids, tokenizer.eos_id] for ids in texts]
    return pad_batch(rows, pad_id)  # (B, T + 1)


config = recipe.config.replace(vocab_size=V)
untrained = new_language_model(config, seed=1)
ids, next_ids = causal_batch(framed([tokenizer.encode(" ".join(words))]))
probabilities = untrained(ids).softmax(dim=-1)  # (B, T, V)
print(
    "inputs", *ids.shape, " targets", *next_ids.shape, " answers", *probabilities.shape
)
assert torch.equal(ids[:, 1:], next_ids[:, :-1])
D, n_params = config.d_model, sum(weights.numel() for weights in untrained.parameters())
of_block = 4 * D * D + 2 * D * config.d_ff + 2 * D  # attention, feed-forward, two norms
# embedding and output layer; final norm
assert n_params == 2 * V * D + config.n_layers * of_block + D
print(f"{n_params:,} parameters")

# %% [markdown]
# ## By hand: nats and perplexity
#
# Suppose that a model gave the three tokens that really came the probabilities $\frac12$, $\frac14$ and $\frac18$. Its **surprise** at each is $-\ln p$, measured in **nats**. The **loss** (cross-entropy) is the mean surprise. On paper: $\ln 2$, $2 \ln 2$ and $3 \ln 2$, so the mean is $2 \ln 2$. The **perplexity** is $e$ to the loss. Here it is 4: as uncertain, on average, as a fair choice among four.

# %%
given = [1 / 2, 1 / 4, 1 / 8]
surprises = [-math.log(p) for p in given]
loss = sum(surprises) / len(surprises)
print("surprises ", " ".join(f"{nats:.4f}" for nats in surprises))
print(f"loss       {loss:.4f} nats per token")
print(f"perplexity {math.exp(loss):.4f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### All positions at once
#
# A model gives **logits**, and the softmax turns them into probabilities. In matrix form: take the logarithm of the softmax along the vocabulary, pick at each position the entry of the token that came, and average. Padding is not part of the text, so it does not count. The loop, the matrix form, PyTorch and the package must agree.

# %%
from tinytx.fast import output_loss

_ = torch.manual_seed(0)
logits = torch.randn(5, 7)  # (T, V)
came = torch.tensor([3, 6, 1, 4, 0])  # the last one is padding: id 0
by_loop = sum(-math.log(logits[t].softmax(dim=-1)[came[t]]) for t in range(4)) / 4
log_probs = logits.log_softmax(dim=-1).gather(-1, came[:, None])[:, 0]  # (T,)
at_once = -log_probs[came != 0].mean()
torch.testing.assert_close(at_once, torch.tensor(by_loop))
torch.testing.assert_close(at_once, F.cross_entropy(logits, came, ignore_index=0))
# the package multiplies hidden states by the output layer's matrix itself: here by 1
by_package = output_loss(logits, torch.eye(7), came, ignore_id=0)
torch.testing.assert_close(at_once, by_package)
print("the loop, the matrix form, PyTorch and the package agree")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### Before training: $\ln V$
#
# A new model has no opinion. It spreads its probability almost evenly over the $V$ tokens, so its surprise is close to $-\ln \frac1V = \ln V$. Know this number before you start any training. A first loss far above it means that the model is confidently wrong from the start; one far below it means that an answer leaks. We measure on eighty **held-out** reviews, on which nothing is trained.
#
# There is a second number to know, and it is the great help of this course. We know the grammar, so we can compute the probability of any held-out text *exactly*. The mean of $-\ln P$ over its tokens is the **entropy bound**: no model, of any size, can *expect* a lower loss on new text from this language.

# %%
from tinytx_run.evaluate import evaluate_language_model, exact_nats

held_out = corpus.valid.texts[:80]
held_ids = tokenizer.encode_batch(held_out)
n_tokens = sum(len(row) + 1 for row in held_ids)  # the end is predicted too
bound = exact_nats(corpus, held_out).sum() / n_tokens
first = evaluate_language_model(untrained, tokenizer, held_out)
print(
    f"untrained {first.nats_per_token:.3f} nats per token, perplexity "
    f"{first.perplexity:.0f}"
)
print(f"ln V = ln {V} = {math.log(V):.3f}")
print(f"{n_tokens:,} tokens; entropy bound {bound:.3f} nats per token")
assert abs(first.nats_per_token - math.log(V)) < 0.2

# %% [markdown]
# ## The training loop in under 20 lines
#
# All of pretraining is this: take a batch, compute the loss, let `backward` find the gradient of the loss by each parameter, clip it, make a step against it. The **learning rate** says how large the step is. It rises in a straight line during the **warm-up** and then falls to zero. **Clipping** shrinks a gradient whose norm is above a limit, so one odd batch cannot throw the model off. Gradients add up in `.grad`, so they are cleared before each `backward`. `model.loss` is the mean surprise of above, of the logits `model(inputs)`.

# %%
def next_token_loss(model, inputs, targets):
    return model.loss(inputs, targets, ignore_id=pad_id)  # (B, T) -> one number


def learn(model, batches, settings, loss_of=next_token_loss):
    params = list(model.parameters())
    optimizer = torch.optim.AdamW(params, betas=settings.betas, weight_decay=0.0)
    n_steps, warmup_steps = settings.n_steps, settings.warmup_steps
    losses = []
    model.train()
    for step, (inputs, targets) in enumerate(batches, start=1):
        rising = step / warmup_steps
        falling = (n_steps - step) / (n_steps - warmup_steps)
        optimizer.param_groups[0]["lr"] = settings.lr * min(rising, falling)
        loss = loss_of(model, inputs, targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, settings.clip_norm)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


# %% [markdown]
# We try it on a small model: one layer, width 64, eighty batches of about five hundred tokens. The package's `train` does the same. It takes an *objective*, which makes batches of reviews of similar length, and adds what a long run needs: checkpoints, a progress bar, several processes. Same first weights, same batches: are the eighty losses the same?

# %%
from tinytx.loop import train
from tinytx.settings import TrainingSettings
from tinytx_run.pretrain import causal_objective

small = config.replace(d_model=64, n_heads=2, n_layers=1, d_ff=128)
brief = TrainingSettings(
    n_steps=80,
    lr=5e-3,
    warmup_steps=10,
    decay="linear",
    final_lr_fraction=0.0,
    weight_decay=0.0,
    tokens_per_batch=512,
    precision="fp32",
    log_every=1,
)
objective = causal_objective(tokenizer, corpus.train.texts[:3000], small.max_len)
order = objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=512)[: brief.n_steps]
batches = [objective.batch(rows) for rows in order]
right = new_language_model(small, seed=0)
right_losses = learn(right, batches, brief)
history = train(new_language_model(small, seed=0), objective, brief, progress=False)
torch.testing.assert_close(right_losses, history.loss, rtol=1e-3, atol=1e-3)
print(
    f"80 equal losses: {right_losses[0]:.3f} at the first step, {right_losses[-1]:.3f} "
    "at the last"
)

# %% [markdown]
# ### The tempting wrong way: the answer is the token itself
#
# It is easy to forget the shift: text in, text out, and compare. Nothing complains, the shapes fit. Let us do exactly that, with the same model, batches and rate. How would you notice?
#
# **Predict 08.1.** The targets are now the inputs themselves. Think of what the model needs to learn for that.

# %%
course.predict(
    "08.1",
    "Where does the training loss without the shift end, after 80 steps?",
    [
        "above the loss with the shift",
        "between that and the entropy bound",
        "below the entropy bound",
    ],
)

# %% tags=["folded"]
unshifted = new_language_model(small, seed=0)
unshifted_losses = learn(unshifted, [(inputs, inputs) for inputs, _ in batches], brief)
steps = range(1, len(batches) + 1)
fig, ax = plots.curves(
    [
        plots.Curve("the token after", steps, right_losses),
        plots.Curve("the token itself", steps, unshifted_losses),
    ],
    references={"entropy bound": bound},
    y_range=(0, 8),
    title="With and without the shift",
    xlabel="step",
    ylabel="training loss (nats per token)",
)
plots.show(fig, name="08_forgotten_shift")
with_shift, without = right_losses[-1], unshifted_losses[-1]
answer = (
    "below the entropy bound"
    if without < bound
    else "between that and the entropy bound"
)
answer = "above the loss with the shift" if without > with_shift else answer
course.resolve(
    "08.1",
    answer,
    f"It ends at {without:.2f}, with the shift at {with_shift:.2f}; the bound is "
    f"{bound:.2f}.",
)

# %% [markdown]
# A loss below the entropy bound is an alarm. On text that the model has not read before, as here, it must be looking at the answer. (On text that it has read many times there is another cause; see below.) This model has learned to *copy*. Asked the real question it is worse than a uniform guess, which would cost $\ln V$: it is sure that each token comes twice. On text without a known bound, a loss that falls so far in a few steps is the same alarm.

# %%
for name, model in {"the token after": right, "the token itself": unshifted}.items():
    copied = model(ids).argmax(dim=-1).eq(ids).float().mean()
    nats = evaluate_language_model(model, tokenizer, held_out).nats_per_token
    print(f"{name:<17} held-out loss {nats:6.2f}   repeats its input: {copied:4.0%}")
print(f"{'a uniform guess':<17} held-out loss {math.log(V):6.2f}")
assert nats > math.log(V) and unshifted_losses[-1] < bound < right_losses[-1]

# %% [markdown]
# ### A baseline: a model that only counts
#
# An **n-gram model** looks up which tokens followed the last $n - 1$ in the training text, and how often ([lesson 01](01_tokens.ipynb)). It always mixes in the shorter histories, the more so the less it has seen. No gradients, no layers; for decades this was how language models were made. We take the best of $n = 1$ to $5$ as our baseline.
#
# A fair baseline reads no less than the model that it is compared with. The transformer below starts with our 30,000 reviews. In each further pass it reads 30,000 new ones, `corpus.draw(1)`, `corpus.draw(2)` and so on. The n-gram model gets the first three of these sets. The last line compares how many tokens the two read.

# %%
from tinytx.ngrams import NGramModel

further = [] if smoke else [*corpus.draw(1), *corpus.draw(2)]
train_ids = tokenizer.encode_batch([*corpus.train.texts, *further])
counting = NGramModel(order=5, vocab_size=V).fit(train_ids)
by_order = {n: counting.nats_per_token(held_ids, order=n) for n in (1, 2, 3, 4, 5)}
best_n = min(by_order, key=by_order.get)
for n, nats in by_order.items():
    print(
        f"{n}-gram {nats:.3f} nats per token{'   <- the best' if n == best_n else ''}"
    )
n_read = sum(len(row) + 1 for row in train_ids)
at_most = recipe.settings.n_steps * recipe.settings.tokens_per_batch
print(f"read: {n_read:,} tokens; the transformer will read at most {at_most:,}")

# %% [markdown]
# ## How far from the truth? Kullback and Leibler
#
# The loss compares the model with *the token that came*. We can do better and compare it with *everything that could have come*. Let $p$ be the true distribution and $q$ the model's. The **Kullback-Leibler divergence** $\sum_w p(w) \ln \frac{p(w)}{q(w)}$ is the surprise that $q$ costs in excess of $p$ itself. On paper, with the numbers below: $\frac12 \ln 2 + 0 + \frac14 \ln \frac12 = \frac14 \ln 2$.

# %%
p, q = torch.tensor([[0.50, 0.25, 0.25], [0.25, 0.25, 0.50]])
divergence = (p * (p / q).log()).sum()
entropy, loss = -(p * p.log()).sum(), -(p * q.log()).sum()
torch.testing.assert_close(loss, entropy + divergence)
torch.testing.assert_close(divergence, F.kl_div(q.log(), p, reduction="sum"))
print(f"expected loss {loss:.4f} = entropy {entropy:.4f} + divergence {divergence:.4f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# That last line is the heart of the matter: **expected loss = entropy of the language + divergence of the model from it**. The first part is the entropy bound, which no model can change. All that training can do is to make the second part small. So we ask the grammar for the exact distribution of the next token at every position of the held-out reviews, and write a function that compares a model with it.

# %%
exact_model = world.through(tokenizer)  # the grammar, read token by token
prefixes = [row[:t] for row in held_ids for t in range(len(row) + 1)]
exact = torch.tensor(
    np.array([exact_model.next_token(prefix) for prefix in prefixes])
).float()  # (N, V)
inputs, targets = causal_batch(framed(held_ids))
real = targets != pad_id


@torch.no_grad()
def compare(model):
    logits = model(inputs.to(next(model.parameters()).device)).cpu()[real]
    log_q = logits.float().log_softmax(dim=-1)  # (N, V): N real positions
    divergences = F.kl_div(log_q, exact, reduction="none").sum(dim=-1)  # (N,)
    return F.nll_loss(log_q, targets[real]).item(), divergences

# %% [markdown]
# ## The package: pretraining
#
# We also want to *read* what the model would write while it learns. Writing is three steps, again and again: ask for the logits of the next token, draw one, append it. Here is that loop.

# %%
@torch.no_grad()
def write(model, start="", temperature=1.0, seed=0, longest=60):
    torch.manual_seed(seed)
    device = next(model.parameters()).device
    written = [tokenizer.bos_id, *tokenizer.encode(start)]
    while len(written) < longest and written[-1] != tokenizer.eos_id:
        logits = model(torch.tensor([written], device=device))[0, -1]  # (V,): ask
        probs = (logits / temperature).softmax(dim=-1)
        # draw and append
        written.append(torch.multinomial(probs, num_samples=1).item())
    return tokenizer.decode(written)

# %% [markdown]
# `tx.pretrain` trains tokenizer and model with the recipe of the budget, and measures the held-out text at the end. Compared with our small run the model and the batches are larger, there are more steps, and the optimizer is Muon ([lesson 14](14_since_2017.ipynb)). Where the processor has instructions for it, the numbers are bfloat16 (bf16). After each step it calls `on_step`: we look in at steps 1, 2, 4, 8, …, when the model also writes, and every two hundred. This cell takes most of the lesson's running time.

# %%
samples = {}


def watch(step, model):
    doubled = step in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    if doubled:
        samples[step] = write(model, "Le roman")
    if doubled or step % 200 == 0:
        loss, divergences = compare(model)
        return {"loss": loss, "divergence": divergences.mean().item()}


result = tx.pretrain(corpus, options=tx.RunOptions(on_step=watch, progress=False))
model = result.model
assert result.tokenizer.to_bytes() == tokenizer.to_bytes()
assert abs(result.history.loss[0] - math.log(V)) < 0.2

# %% [markdown]
# ## Look: from gibberish to French
#
# The same beginning, the same random numbers, at every doubling of steps. Watch for the first word that fits the one before it, and the first full sentence. The second column is counted by the grammar: how many words the sample has before the first impossible one. Neighbouring samples may be equal, although the loss falls. With the same random numbers, a small change of the probabilities seldom changes what is drawn.

# %%
def first_impossible(words):
    return next(
        (t for t, word in enumerate(words) if word not in world.next_word(words[:t])),
        len(words),
    )


print(" step  possible")
for step, text in samples.items():
    print(
        f"{step:>5}{first_impossible(text.split(' ')):>10}  "
        f"{text[:64]}{' …' if len(text) > 64 else ''}"
    )

# %% [markdown]
# Now the numbers. The curve will have two reference lines: the best n-gram model and the entropy bound. Note that the steps are on a logarithmic axis, so the first ones can be seen. **Predict 08.2.**

# %%
course.predict(
    "08.2",
    "The n-gram model has read 90,000 reviews. When does the transformer first "
    "beat it?",
    [
        "by step 128",
        "between steps 129 and 512",
        "later than step 512",
        "not within this run",
    ],
)

# %% tags=["folded"]
seen = result.history.evaluations
steps, losses = [row["step"] for row in seen], [row["loss"] for row in seen]
fig, ax = plots.curves(
    [plots.Curve("transformer", steps, losses)],
    x_log=True,
    y_range=(0, 8),
    references={f"{best_n}-gram": by_order[best_n], "entropy bound": bound},
    xlabel="step (logarithmic)",
    ylabel="held-out loss (nats per token)",
    title="Loss on held-out reviews",
)
plots.show(fig, name="08_loss_and_bound")
ahead = next(
    (s for s, nats in zip(steps, losses, strict=True) if nats < by_order[best_n]), None
)
answer = "by step 128" if ahead and ahead <= 128 else "between steps 129 and 512"
answer = (
    "not within this run"
    if ahead is None
    else answer
    if ahead <= 512
    else "later than step 512"
)
course.resolve(
    "08.2",
    answer,
    f"First step measured with a lower loss than the {best_n}-gram model: {ahead}.",
)

# %% [markdown]
# How much of the way from one line to the other did the model go? With $N$ for the n-gram model, $L$ for ours and $E$ for the entropy bound, that is $(N - L) / (N - E)$: 0 at the baseline, 1 at the bound. Eighty reviews are good for a curve; for the verdict we take the whole held-out text.

# %%
valid_ids = tokenizer.encode_batch(corpus.valid.texts)
score, E = result.evaluation.score, result.evaluation.entropy_bound
L, N = score.nats_per_token, counting.nats_per_token(valid_ids, order=best_n)
for name, nats in {"n-gram N": N, "transformer L": L, "entropy bound E": E}.items():
    print(f"{name:>15} = {nats:.4f} nats per token, perplexity {math.exp(nats):5.2f}")
print(
    f"\nL is {L / E - 1:.1%} above the bound, after {(N - L) / (N - E):.1%} of the way "
    "from N"
)
assert E < L < (math.inf if smoke else N)

# %% [markdown]
# One run with one seed is an anecdote. [Lesson 12](12_the_price_of_attention.ipynb) compares five kinds of model on this very text, each network with several seeds. `python -m experiments world-minute` measures what each part of the recipe contributes.
#
# ### The divergence falls with it
#
# Now the same run seen from the other side: the mean divergence from the truth, and the gap $L - E$ on the same eighty reviews. By the equation above both have the same expectation. Will they agree at each step? One of them uses only the tokens that happened to come.

# %% tags=["folded"]
gaps, apart = [nats - bound for nats in losses], [row["divergence"] for row in seen]
fig, ax = plots.curves(
    [
        plots.Curve("divergence", steps, apart),
        plots.Curve("loss - bound", steps, gaps, dashed=True),
    ],
    title="Two measures of one run",
    x_log=True,
    y_log=True,
    xlabel="step (logarithmic)",
    ylabel="nats per token (logarithmic)",
)
plots.show(fig, name="08_divergence")
largest = max(abs(gap - mean) for gap, mean in zip(gaps, apart, strict=True))
print(f"largest difference of the two at any step: {largest:.3f} nats")

# %% [markdown]
# They run together; where they part, chance in eighty reviews is the reason. The divergence has less of it, since it weighs all that could have come.
#
# ### Choose a beginning yourself
#
# Change the line marked `<- change me`, in your own copy, and run the cell again. Write as people write; `world.split` cuts it into words, and a word that cannot follow there is named in the error. A rare word has several tokens; `next_word_probs` multiplies their probabilities, so we can compare whole words. The bars show the eight most probable next words. Before you run the cell: which words would *you* expect? The last line printed is about gender, which *roman* has: it is masculine.

# %%
from tinytx_course.labs.lesson_08 import next_word_probs

beginning = "Bonjour les amis, le roman est"  # <- change me
prefix = world.split(beginning)
truth = world.next_word(prefix)
chances = next_word_probs(model, tokenizer, prefix, world.vocabulary)
guess = dict(zip([*world.vocabulary, None], chances, strict=True))
off = sum(chance * math.log(chance / guess[word]) for word, chance in truth.items())
print(f"{len(truth)} words may follow; divergence from the truth {off:.4f} nats")
print(f"the model gives these words {sum(guess[word] for word in truth):.1%}")
adjectives = [
    row
    for row in world.grammar.lexicon.adjectives
    if row["masculine"] != row["feminine"]
]
by_gender = [
    sum(guess.get(row[gender], 0.0) for row in adjectives)
    for gender in ("masculine", "feminine")
]
print(
    "of adjectives with two forms it gives the masculine "
    f"{by_gender[0] / sum(by_gender):.1%}"
)
named = {word or "(the end)": word for word in list(truth)[:8]}
fig, ax = plots.grouped_bars(
    {
        "model": {name: guess[word] for name, word in named.items()},
        "truth": {name: truth[word] for name, word in named.items()},
    },
    numbers=".3f",
    xlabel="probability of being the next word",
    title=f"{beginning} …",
)
plots.show(fig, name="08_next_word")

# %% [markdown]
# No label ever named an adjective, or the gender of a noun. But a model that gives most of its probability to possible words, and prefers one form of the adjectives, must in some way use such classes. What it uses them *for* is only this: to say what comes next.
#
# Here you can walk through the language word by word, with the model that ships with the course: nearly the same recipe, trained for longer, with one matrix for embedding and output layer. It runs in the page. Write any beginning, look at both distributions, and press a word to append it. Follow what the model likes best for two sentences; then go back and take the rarest word each time. Where do the two sums of surprise part? Then write something that the language never says.

# %%
course.widgets.next_word("Bonjour les amis, le roman est")

# %% [markdown]
# ### Where is the gap?
#
# What has it *not* learned yet? We sort the divergences at all held-out positions by the kind of word that comes there, and by the sentence of the review. After a full stop a sentence or the end may follow; this is a kind of its own. The tables of the grammar say what is a noun or an adjective. (A word of several tokens has several positions.)
#
# **Predict 08.3.** Which kinds of word ask the model to remember something from earlier sentences? Which are many?

# %%
kinds = ("start or end", "other word", "noun", "adjective", "mark")
course.predict("08.3", "Which kind holds the largest share of the gap?", kinds)

# %%
from tinytx_course.labs.lesson_08 import kinds_of_positions
from tinyworld.checker import FrenchForms

forms = FrenchForms(world.grammar.lexicon)
labelled = [
    position
    for text in held_out
    for position in kinds_of_positions(text, tokenizer, forms)
]
_, divergences = compare(model)


def mean_at(kind, k):
    return divergences[[one == (kind, k) for one in labelled]].mean()


n_positions = [sum(one == k for _, one in labelled) for k in range(1, 7)]
fig, ax = plots.heatmap(
    [[mean_at(kind, k) for k in range(1, 7)] for kind in kinds], numbers=".3f", low=0,
    row_labels=kinds, col_labels=[f"{k}\n({n})" for k, n in enumerate(n_positions, 1)],
    bar_label="mean divergence (nats)", title="Divergence by kind of word and sentence",
    xlabel="sentence of the review (number of positions)", ylabel="what comes there",
)  # fmt: skip
plots.show(fig, name="08_where_the_gap_is")
shares = {}
for kind in kinds:
    mine = divergences[[one == kind for one, _ in labelled]]
    shares[kind] = (mine.sum() / divergences.sum()).item()
    print(
        f"{kind:<13}{len(mine):>6} positions, mean {mine.mean():.4f}, "
        f"{shares[kind]:4.0%} of the gap"
    )
widest = max(shares, key=shares.get)
course.resolve(
    "08.3",
    widest,
    f"It holds {shares[widest]:.0%} of the summed divergence, more than any "
    "other kind.",
)

# %% [markdown]
# (In brackets: how many positions each column averages. Few positions mean a noisy cell. The end after a sixth sentence is in no column.) A share is a mean times a count: a kind may be easy at each position and still hold much of the gap, because it is everywhere. No kind is free of it, and the first sentence, where nothing lies far back, has its part too.
#
# ### Three sentences ago
#
# Does the model use sentences further back? We can ask directly. A review praises or blames, with an exception in one sentence of twenty. Take beginnings that differ only in judgements, append *Le roman est*, and add up the probabilities of all words of praise: their share of praise and blame together.

# %%
judged = ["L'intrigue est {}.", "Le style est {}.", "La fin est {}."]
saying = {"+": "magnifique", "-": "médiocre"}
table = world.grammar.lexicon.adjectives
good, bad = (
    [row["masculine"] for row in table if row["polarity"] == sign] for sign in "+-"
)


def share_of_praise(pattern, ending="Le roman est"):
    sentences = [
        text.format(saying[sign]) for text, sign in zip(judged, pattern, strict=False)
    ]
    prefix = world.split(" ".join([*sentences, ending]))
    true = np.array([world.next_word(prefix).get(word, 0.0) for word in good + bad])
    believed = next_word_probs(model, tokenizer, prefix, good + bad)[:-1]
    return [chances[: len(good)].sum() / chances.sum() for chances in (believed, true)]

# %% [markdown]
# **Predict 08.4.** `+ + -` means praise, praise, blame. In `+ + -` and `- + -` the two sentences just before are the same; only the one three sentences ago differs. How far are the two shares of praise apart, compared with the truth?

# %%
course.predict(
    "08.4",
    "The model's difference between `+ + -` and `- + -`, as a share of the true "
    "difference?",
    ["less than a quarter", "a quarter to three quarters", "more than three quarters"],
)

# %% tags=["folded"]
patterns = ["+", "-", "+-", "-+", "++-", "-+-"]
praised = {" ".join(pattern): share_of_praise(pattern) for pattern in patterns}
fig, ax = plots.grouped_bars(
    {"model": {pattern: pair[0] for pattern, pair in praised.items()},
     "truth": {pattern: pair[1] for pattern, pair in praised.items()}}, numbers=".2f",
    xlabel="share of praise", ylabel="sentences before", title="Le roman est …",
)  # fmt: skip
plots.show(fig, name="08_three_sentences_ago")
(model_up, true_up), (model_down, true_down) = praised["+ + -"], praised["- + -"]
reach = (model_up - model_down) / (true_up - true_down)
answer = "a quarter to three quarters" if reach >= 0.25 else "less than a quarter"
course.resolve(
    "08.4",
    "more than three quarters" if reach > 0.75 else answer,
    f"In truth the share falls from {true_up:.2f} to {true_down:.2f}, in the model "
    f"from {model_up:.2f} "
    f"to {model_down:.2f}: {reach:.0%} of the true difference.",
)

# %% [markdown]
# A loss near the bound says little about this. Adjectives are few among all positions, as the counts above show. So a model may come close to the bound and still look back less than the truth does. (The share above is that of one run.) One puzzle is left in the figure: with one exception in twenty, should `+ -` not be even? No: a change of opinion is usually announced, by *En revanche* for example. A plain *Le roman est* hints that the last opinion still holds. The exact probabilities agree:

# %%
plain, announced = (
    share_of_praise("+-")[1],
    share_of_praise("+-", "En revanche, le roman est")[1],
)
print(
    f"after + -: true share of praise {plain:.2f}, after 'En revanche,' {announced:.2f}"
)
assert announced > plain
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### Training loss and held-out loss
#
# Until now no model has read its training set twice, so none could learn reviews by heart. Real projects often have too little text for that. We give the small model just 40 reviews, again and again, and for comparison 2,000, with the same number of steps. A model that does better on what it has read than on new text of the same kind **overfits**. **Predict 08.5.**

# %%
course.predict(
    "08.5",
    "The loss on the 40 reviews falls to the end. What does the loss on held-out "
    "reviews do?",
    ["it falls to the end too", "it falls and stays level", "it falls, then rises"],
)

# %% tags=["folded"]
n_steps = 40 if smoke else 120
long = brief.replace(n_steps=n_steps, warmup_steps=10, log_every=8)
curves, ends = [], {}
for n in (40, 2000):
    def check(step, model):
        return {"loss": compare(model)[0]} if step == 1 or step % 20 == 0 else None

    texts = causal_objective(tokenizer, corpus.train.texts[:n], small.max_len)
    past = train(
        new_language_model(small, 0), texts, long, on_step=check, progress=False
    )
    ends[n] = [row["loss"] for row in past.evaluations]
    curves.append(
        plots.Curve(
            f"{n:,} reviews, held out",
            [row["step"] for row in past.evaluations],
            ends[n],
        )
    )
    if n == 40:
        curves.append(
            plots.Curve("40 reviews, training", past.step, past.loss, dashed=True)
        )
fig, ax = plots.curves(
    curves,
    references={"entropy bound": bound},
    y_range=(0, 8),
    title="Few reviews and many",
    xlabel="step",
    ylabel="loss (nats per token)",
)
plots.show(fig, name="08_overfitting")
lowest, last = min(ends[40]), ends[40][-1]
answer = "it falls, then rises" if last > lowest + 0.1 else "it falls and stays level"
answer = "it falls to the end too" if last == lowest else answer
course.resolve(
    "08.5",
    answer,
    f"With 40 reviews it ends at {last:.2f} (lowest {lowest:.2f}), with 2,000 at "
    f"{ends[2000][-1]:.2f}.",
)

# %% [markdown]
# Held-out loss is the one to watch: training loss can fall below the entropy bound when texts are known by heart, with no bug anywhere. The remedy is more text, or to stop early.
#
# ### Learning rate and size
#
# A **hyperparameter** is a number that is chosen, not learned. Here are two: the learning rate, and the width of the model. Which width should we take, 16 or 64? We train both with four rates, on the eighty batches of above, one seed each. **Predict 08.6.**

# %%
course.predict(
    "08.6",
    "Which width has the lower held-out loss, if both are trained with the same "
    "learning rate?",
    ["64, at all four rates", "16, at all four rates", "it depends on the rate"],
)

# %%
rates, widths = (1e-3, 1e-2, 5e-2, 3e-1), (16, 64)
sweep = torch.zeros(len(widths), len(rates))
for i, width in enumerate(widths):
    for j, lr in enumerate(rates):
        one = new_language_model(small.replace(d_model=width, d_ff=2 * width), seed=0)
        learn(one, batches[:10] if smoke else batches, brief.replace(lr=lr))
        sweep[i, j] = compare(one)[0]
fig, ax = plots.heatmap(
    sweep,
    numbers=".2f",
    row_labels=[str(width) for width in widths],
    col_labels=[f"{lr:g}" for lr in rates],
    bar_label="held-out loss (nats)",
    title="Held-out loss after 80 steps",
    xlabel="learning rate",
    ylabel="width",
)
plots.show(fig, name="08_sweep")
winners = [widths[i] for i in sweep.argmin(dim=0)]
answer = (
    f"{winners[0]}, at all four rates"
    if len(set(winners)) == 1
    else "it depends on the rate"
)
narrow, wide = sweep.amin(dim=1)
course.resolve(
    "08.6",
    answer,
    f"The lower loss, rate by rate, has width {', '.join(map(str, winners))}. "
    f"Each at its own best rate: {narrow:.2f} with width 16, {wide:.2f} with width 64.",
)

# %% [markdown]
# A comparison at one shared rate also measures which width that rate suits. So tune the rate for each size, and then compare the sizes at their best rates. This is one seed and a very short run; a longer run may have other best rates. Whatever you tune, tune it on held-out text, and report on yet another part.
#
# ## Break it: a softmax too many
#
# PyTorch's `cross_entropy` takes *logits*, and does the softmax itself. Give it probabilities, and again nothing complains. But even a perfect model, with a 1 for the right token and a 0 for all others, is now charged as if it had given $e / (e + V - 1)$. So this loss begins at $\ln V$, as it should, and can never fall by more than 1. We train the small model once more, with one softmax too many.

# %%
def softmax_twice(model, inputs, targets):
    probabilities = model(inputs).softmax(dim=-1).flatten(0, 1)  # (B T, V)
    return F.cross_entropy(probabilities, targets.flatten(), ignore_index=pad_id)


stuck = learn(new_language_model(small, seed=0), batches, brief, loss_of=softmax_twice)
lowest = math.log(V - 1 + math.e) - 1
print(f"ln V = {math.log(V):.3f}, lowest possible loss with two softmaxes {lowest:.3f}")
print(
    f"after 80 steps: one softmax {right_losses[-1]:.3f}, two softmaxes {stuck[-1]:.3f}"
)
assert lowest < stuck[-1] and right_losses[-1] < lowest

# %% [markdown]
# Same first weights, same batches, same rate. No error, no warning, and a loss that can never fall by more than 1. The cure is to know two numbers in advance, $\ln V$ at the start and an n-gram model's loss to beat.
#
# ## Use it: let it write
#
# How to draw the next token is a choice, as in [lesson 07](07_your_own_gpt.ipynb). **Temperature** $\tau$ divides the logits, which raises probabilities to the power $1/\tau$. **Top-k** keeps the $k$ most probable tokens, **top-p** the fewest that reach $p$ together; the rest is cut, and what is left is made to sum to one. On paper, for $\tau = \frac12$: the squares 0.16, 0.09, 0.04, 0.01, divided by 0.3.

# %%
from tinytx.generate import next_token_probs

start = [0.4, 0.3, 0.2, 0.1]
by_hand = {
    "temperature": [p**2 / 0.3 for p in start],
    "top_k": [0.4 / 0.7, 0.3 / 0.7, 0.0, 0.0],
    "top_p": [
        0.4 / 0.9,
        0.3 / 0.9,
        0.2 / 0.9,
        0.0,
    ],  # 0.7 is not enough: the third stays
}
for (name, expected), value in zip(by_hand.items(), (0.5, 2, 0.8), strict=True):
    probs = next_token_probs(torch.tensor(start).log(), **{name: value})
    torch.testing.assert_close(probs, torch.tensor(expected))
    print(f"{name} = {value}".ljust(18), " ".join(f"{p:.3f}" for p in expected))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The same on the distribution of the model that ships with the course, stage by stage: first the temperature, then top-k, then top-p. The orange lines are the true distribution. Find settings that come nearer to the truth than the plain model, if you can; and find two beginnings for which the same $p$ keeps very different numbers of tokens (try *Le livre* and *Le roman est*). Then let it write at three temperatures.

# %%
course.widgets.sampling("Le livre")

# %% [markdown]
# Does a sample *look* good? Here we need not judge by eye: the grammar computes the exact probability of any review, and says whether it belongs to the language at all. So the model writes a hundred reviews at each of three temperatures. The n-gram model writes some as a baseline. `generate_many` is our loop `write` for many rows at once.

# %%
from tinytx.generate import Sampling, generate_many


def counting_review(draw):
    written = []
    while len(written) < 120 and tokenizer.eos_id not in written:
        written.append(
            int(draw.choice(V, p=counting.next_probs(written, order=best_n)))
        )
    return tokenizer.decode(written)


draw = np.random.default_rng(0)
reviews = {f"{best_n}-gram, temperature 1": [counting_review(draw) for _ in range(100)]}
for temperature in (0.5, 1.0, 1.5):
    sampling = Sampling(temperature=temperature, max_new_tokens=120, seed=1)
    written = generate_many(model, tokenizer, sampling=sampling, n=100)
    reviews[f"model, temperature {temperature}"] = [str(text) for text in written]
reviews["the language itself"] = [
    " ".join(review.words) for review in world.reviews(100, seed=7)
]

# %% [markdown]
# For each writer we count the reviews that belong to the language, and the different words. The last columns are about those reviews that belong to the language: their mean length, and their exact $\ln P$ per word. **Predict 08.7.**

# %%
course.predict(
    "08.7",
    "From temperature 1 to 0.5: which two change, and how?",
    [
        "more reviews in the language, fewer different words",
        "more reviews in the language, more different words",
        "fewer reviews in the language",
    ],
)

# %%
print(f"{'who writes':<25}in the language  different words  length  ln P per word")
fine, variety = {}, {}
for who, texts in reviews.items():
    split = [text.split(" ") for text in texts]
    used = {word for words in split for word in words} & set(world.vocabulary)
    logs = world.batch_log_prob(split)
    inside = np.isfinite(logs)
    fine[who], variety[who] = inside.mean(), len(used)
    line = f"{who:<25}{inside.mean():15.0%}{len(used):17}"
    if n_words := sum(
        len(words) + 1 for words, ok in zip(split, inside, strict=True) if ok
    ):
        line += f"{n_words / inside.sum():8.0f}{logs[inside].sum() / n_words:15.2f}"
    print(line)
cold, warm = "model, temperature 0.5", "model, temperature 1.0"
words_too = (
    "fewer different words"
    if variety[cold] <= variety[warm]
    else "more different words"
)
more = fine[cold] >= fine[warm]
course.resolve(
    "08.7",
    f"more reviews in the language, {words_too}"
    if more
    else "fewer reviews in the language",
    f"In the language: {fine[warm]:.0%}, then {fine[cold]:.0%}. Words: "
    f"{variety[warm]}, then {variety[cold]}.",
)

# %% [markdown]
# Repeating a few safe phrases is an easy way to be correct, so the share in the language is read together with the number of different words.
#
# What is wrong with the reviews that are outside the language? The grammar can say exactly: the first word that has probability 0, given those before it. (An impossible word is often good French. It may be a seventh sentence, or praise and blame joined by *et*, which this grammar never writes.)

# %%
outside = [
    text.split(" ")
    for who in list(reviews)[:-1]
    for text in reviews[who]
    if who.endswith(("1.0", "1.5")) and world.log_prob(text.split(" ")) == -math.inf
]
for words in outside[:5]:
    at = first_impossible(words)
    impossible = words[at] if at < len(words) else "(the end)"
    print(f"… {' '.join(words[max(0, at - 9) : at])} [{impossible}]")
print(
    f"{len(outside)} of 200 reviews at temperatures 1 and 1.5 are outside the language"
)

# %% [markdown]
# One slip among thirty tokens is enough. A small divergence at each token adds up.
#
# ## Play: a model learns in the page
#
# The explorer below trains a smaller model in the page, without Python. Its tokens are words, it reads each review once, and Muon takes the place of AdamW for the matrices of its blocks. Press Play, and watch the held-out loss come down towards the entropy bound while noise turns into French. Then say what the loss will do if the mask is switched off, and try it. What does such a model write?

# %%
course.widgets.playground()

# %% [markdown]
# ## What this does not show
#
# - Our language has about a thousand words and few hidden facts per review, and is written by rules. Real text has no known entropy bound: the loss of a real model can only be compared with other models.
# - One seed, one size for the long run. Lesson 12 has several seeds, lesson 14 several sizes.
# - A low loss says nothing yet about usefulness for *other* tasks. Whether what was learned here helps to tell praise from blame with few labels is the question of lesson 09.
#
# ## Take-home
#
# The whole lesson on one screen: text in, shift, loss, step, repeat.

# %%
_ = torch.manual_seed(0)
model = tx.LanguageModel(small)
optimizer = torch.optim.AdamW(model.parameters())
n_steps = 60
for step in range(1, n_steps + 1):
    rows = [train_ids[i] for i in torch.randint(len(train_ids), (16,))]
    longest = 1 + max(len(row) for row in rows)
    padded = torch.full((16, longest + 1), pad_id)
    for i, row in enumerate(rows):
        padded[i, : len(row) + 2] = torch.tensor(
            [tokenizer.bos_id, *row, tokenizer.eos_id]
        )
    inputs, targets = padded[:, :-1], padded[:, 1:]  # the shift: (B, T) each
    logits = model(inputs)  # (B, T, V)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id)
    optimizer.param_groups[0]["lr"] = 5e-3 * min(
        step / 10, (n_steps - step) / (n_steps - 10)
    )
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step in (1, n_steps):
        print(
            f"step {step}: loss {loss.item():.2f}, perplexity {loss.exp().item():.0f}, "
            f"ln V {math.log(V):.2f}"
        )

# %% [markdown]
# Now put the lines of one step in order. Of each pair, one line is right and the other is a common mistake.

# %%
course.parsons("training_step")

# %% [markdown]
# ## Questions
#
# Pick an answer and read what it says; the wrong answers are common mistakes.

# %%
course.quiz("pretraining")

# %% [markdown]
# ## Exercises
#
# Four short functions, which together are nearly all of a language model's training but for the model itself. Each has a cell with dots and a cell that checks what you wrote: it says where your answer differs, on the smallest input it could find, and, if it knows the mistake, what it is. While there are only dots, it says "not attempted yet".
#
# [exercise: shift_targets]


# %%
def shift_targets(token_ids):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("shift_targets", shift_targets)

# %% [markdown]
# [exercise: language_model_loss]


# %%
def language_model_loss(logits, targets, pad_id):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("language_model_loss", language_model_loss)

# %% [markdown]
# [exercise: perplexity]


# %%
def perplexity(total_nats, n_tokens):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("perplexity", perplexity)

# %% [markdown]
# [exercise: training_step]


# %%
def training_step(model, optimizer, inputs, targets, max_norm):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("training_step", training_step)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** A friend says: "a language model that reads from left to right uses the context on the right, since the next word is there." What is wrong?
#
# <details><summary>Answer</summary>
#
# The next word is the *target*, not context. When position $t$ answers, it has read the tokens up to $t$ and nothing to the right of them: the causal mask sees to that. Context from the right is what a masked model has (lesson 10). If a left-to-right model could see to the right, its loss could fall below the entropy bound, as it did without the shift: in both cases the input holds the answer.
#
# </details>
#
# **2.** Set `beginning` to `J'ai adoré cette saga. La fin est belle. La` and look for *saga* among the bars. Then let the first sentence be about `ce livre`. What does the truth do, and does the model follow?
#
# <details><summary>What to look for</summary>
#
# A review names its book by one noun, here *saga*, and now and then by a general one such as *roman*. So in truth *saga* is probable once it has been named, two sentences ago, and improbable otherwise. How far the model's bar follows shows whether it has learned to look back for the name, as it has to look back for praise and blame.
#
# </details>
#
# **3.** A colleague's loss on a vocabulary of 32,000 tokens starts at 31. What do you suspect? And if it starts at 3?
#
# <details><summary>Answer</summary>
#
# $\ln 32{,}000 \approx 10.4$. At 31 the untrained model is confidently wrong: its first logits are far too large, so look at the initialisation, or at a missing scale. At 3 it already knows something that it cannot know: an answer leaks, or the weights are not new.
#
# </details>
#
# ## Summary
#
# 1. A text of $T$ tokens gives $T + 1$ questions; the targets are the inputs shifted by one. Without the shift the loss falls below the entropy bound, and the model has learned to copy.
# 2. Loss is the mean of $-\ln p$ in nats, perplexity its exponential; before training they are about $\ln V$ and $V$.
# 3. Batch, logits, loss, gradient, clip, step: the training loop. With both lines drawn, n-gram model and entropy bound, a loss has a meaning. Watch the held-out loss.
# 4. Expected loss is the entropy of the language plus the divergence of the model. The divergence can be sorted by position, and a low loss does not show how far back a model looks.
# 5. Temperature, top-k and top-p trade variety for safety, and here each text can be checked exactly.
#
# *Where this comes from:* Shannon, *Prediction and Entropy of Printed English*, Bell System Technical Journal 30 (1951), for guessing the next letter as a measure of a language.
# Bengio et al., *A Neural Probabilistic Language Model*, JMLR 3 (2003), section 2. Radford et al., *Improving Language Understanding by Generative Pre-Training* (2018), section 3.1, for pretraining with this
# objective. Pascanu et al., [arXiv:1211.5063](https://arxiv.org/abs/1211.5063), section 3.2, for clipping. Holtzman et al., *The Curious Case of Neural Text Degeneration*, [arXiv:1904.09751](https://arxiv.org/abs/1904.09751), section 3.1, for top-p. Witten and Bell, *The Zero-Frequency Problem*, IEEE Transactions on
# Information Theory 37 (1991), method C, for the n-gram model.
#
# *Next:* [lesson 09](09_transfer.ipynb) takes the body of such a model, puts another head on it, and asks what the pretraining was worth.
