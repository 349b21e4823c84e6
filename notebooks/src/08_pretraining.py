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
# 1. turn any text into inputs and targets, and say why the targets are shifted;
# 2. compute loss and perplexity by hand, and say what they must be before training;
# 3. read the training loop line by line, and compare a loss with the best that is possible;
# 4. *Further:* beat a model that only counts.
#
# *You need:* the causal mask from [lesson 02](02_attention_and_masks.ipynb), the sampling loop from [lesson 07](07_your_own_gpt.ipynb), natural logarithms.
# *It takes:* an hour and a half to read and do; a minute and a half to run on a laptop, less with a GPU.

# %% [markdown]
# ## Set-up

# %%
import math

import numpy as np
import torch
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx_run.recipes import default_budget, plan

smoke = default_budget() == "smoke"

# %%
course.recall("08")

# %% [markdown]
# The text: French reviews of books, drawn from a grammar whose every probability can be computed. A frequent word is one *token* ([lesson 01](01_tokens.ipynb)) of a vocabulary of $V$.

# %%
from tinytx_run.pretrain import train_tokenizer

corpus, world, recipe = tx.load_corpus("world"), tx.World(), plan("world")
tokenizer = train_tokenizer(
    corpus.train.texts, recipe.vocab_size, exact=False, kind="world"
)
V, pad_id = tokenizer.vocab_size, tokenizer.pad_id

# %% [markdown]
# ## Why: the text is its own teacher
#
# The answers are in the text: hide what follows _Le roman est_, and the next word is the answer. This is **next-token prediction**; a model that predicts each token from those before it is **autoregressive**. Six tokens ask seven questions, the last of them whether the text ends.

# %% tags=["nbval-check-output"]
words = ["Le", "roman", "est", "vraiment", "beau", "."]
inputs, targets = ["<bos>", *words], [*words, "<eos>"]
for number, answer in enumerate(targets, start=1):
    print(f"{' '.join(inputs[:number]):<38} →  {answer}")

# %% [markdown]
# The **target** of each position is the token one further on. Thanks to the causal mask a *single* pass answers all seven questions. Each answer is given from the true tokens so far, not from the model's own: this is **teacher forcing**.

# %%
from tinytx.objectives import causal_batch
from tinytx_run.pretrain import new_language_model

config = recipe.config.replace(vocab_size=V)
row = [tokenizer.bos_id, *tokenizer.encode(" ".join(words)), tokenizer.eos_id]
ids, next_ids = causal_batch(torch.tensor([row]))
assert torch.equal(ids[:, 1:], next_ids[:, :-1])
print("(B, T) =", tuple(ids.shape))

# %% [markdown]
# ## By hand: nats and perplexity
#
# Suppose that a model gave the three tokens that came the probabilities $\frac12$, $\frac14$ and $\frac18$. Its **surprise** at each is $-\ln p$, in **nats**: $\ln 2$, $2 \ln 2$ and $3 \ln 2$. The **loss** (cross-entropy) is the mean surprise, $2 \ln 2 = 1.386$ nats per token. The **perplexity** is $e$ to the loss, here 4: as uncertain as a fair choice among four.
#
# ### Further: all positions at once
#
# A model gives **logits**: take the logarithm of their softmax, pick at each position the entry of the token that came, and average. Padding does not count.

# %% tags=["nbval-check-output"]
import torch.nn.functional as F

_ = torch.manual_seed(0)
logits = torch.randn(5, 7)  # (T, V)
came = torch.tensor([3, 6, 1, 4, 0])  # the last one is padding: id 0
log_probs = logits.log_softmax(dim=-1).gather(-1, came[:, None])[:, 0]  # (T,)
at_once = -log_probs[came != 0].mean()
torch.testing.assert_close(at_once, F.cross_entropy(logits, came, ignore_index=0))
print(f"the matrix form = cross_entropy: {at_once:.4f}")

# %% [markdown]
# ### Two numbers to know before training
#
# A new model whose logits are small spreads its probability almost evenly over the $V$ tokens, so its loss is close to $\ln V$.
#
# The grammar gives the probability of any text *exactly*. Divide $-\ln P$ of all texts by the number of their tokens: that is the **entropy bound**. No model can *expect* a lower loss on new text. We estimate it on eighty **held-out** reviews, on which nothing is trained.

# %%
from tinytx_run.evaluate import evaluate_language_model, exact_nats

held_out = corpus.valid.texts[:80]
held_ids = tokenizer.encode_batch(held_out)
n_tokens = sum(len(row) + 1 for row in held_ids)  # the end is predicted too
bound = exact_nats(corpus, held_out).sum() / n_tokens
print(f"ln {V} = {math.log(V):.3f}, entropy bound {bound:.3f}")

# %% [markdown]
# ## The training loop in under 20 lines
#
# Take a batch, compute the loss, let `backward` find its **gradient**, clip it, make a **step**. The **learning rate**, the size of a step, is a **hyperparameter**: chosen, not learned. It rises during the **warm-up**, then falls to zero. **Clipping** shrinks a gradient whose norm is above a limit. Gradients add up, so they are cleared before each `backward`.

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
# A small model learns from eighty batches.

# %%
from tinytx.settings import TrainingSettings
from tinytx_run.pretrain import causal_objective

small = config.replace(d_model=64, n_heads=2, n_layers=1, d_ff=128)
brief = TrainingSettings(
    n_steps=80, lr=5e-3, warmup_steps=10, decay="linear", final_lr_fraction=0.0,
    weight_decay=0.0, tokens_per_batch=512, precision="fp32", log_every=1,
)
objective = causal_objective(tokenizer, corpus.train.texts[:3000], small.max_len)
order = objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=512)[: brief.n_steps]
batches = [objective.batch(rows) for rows in order]
right = new_language_model(small, seed=0)
right_losses = learn(right, batches, brief)
print(f"first loss {right_losses[0]:.3f}, last {right_losses[-1]:.3f}")
assert abs(right_losses[0] - math.log(V)) < 0.2

# %% [markdown]
# ### The tempting wrong way: the answer is the token itself
#
# Forget the shift, and the shapes still fit. **Predict 08.1.**

# %%
course.predict(
    "08.1",
    "Where does the training loss without the shift end, after 80 steps?",
    [
        "below the entropy bound",
        "between the bound and the loss with the shift",
        "above the loss with the shift",
    ],
)

# %%
unshifted = new_language_model(small, seed=0)
unshifted_losses = learn(unshifted, [(inputs, inputs) for inputs, _ in batches], brief)
with_shift, without = right_losses[-1], unshifted_losses[-1]
assert without < bound < with_shift
course.resolve(
    "08.1",
    without,
    f"It ends at {without:.2f}, with the shift at {with_shift:.2f}; the bound is "
    f"{bound:.2f}.",
    thresholds=(bound, with_shift),
)

# %% [markdown]
# This is not **overfitting**, learning texts by heart: each review was read once. A loss far below the entropy bound, on new text, is an alarm: the model sees the answer, or the sum is wrong.
#
# ### Further: what it has learned
#
# Asked the real question, it is worse than a uniform guess:

# %%
for name, model in {"the token after": right, "the token itself": unshifted}.items():
    copied = model(ids).argmax(dim=-1).eq(ids).float().mean()
    nats = evaluate_language_model(model, tokenizer, held_out).nats_per_token
    print(f"{name:<17} held-out loss {nats:6.2f}   repeats its input: {copied:4.0%}")
print(f"{'a uniform guess':<17} held-out loss {math.log(V):6.2f}")
assert nats > math.log(V) and (smoke or copied == 1)

# %% [markdown]
# On these tokens it *copies* each one.
#
# ## Further: a model that only counts
#
# An **n-gram model** looks up which tokens followed the last $n - 1$ in the training text, and how often, and mixes in the shorter histories (Witten and Bell, *The Zero-Frequency Problem*, 1991). The best of $n = 1$ to $5$ is our baseline. It reads 90,000 reviews, the transformer fewer.

# %%
from tinytx.ngrams import NGramModel

further = [] if smoke else [*corpus.draw(1), *corpus.draw(2)]
train_ids = tokenizer.encode_batch([*corpus.train.texts, *further])
counting = NGramModel(order=5, vocab_size=V).fit(train_ids)
by_order = {n: counting.nats_per_token(held_ids, order=n) for n in (1, 2, 3, 4, 5)}
best_n = min(by_order, key=by_order.get)
for n, nats in by_order.items():
    mark = "   <- the best" if n == best_n else ""
    print(f"{n}-gram {nats:.3f} nats per token{mark}")
to_read = recipe.settings.n_steps * recipe.settings.tokens_per_batch  # at most
assert smoke or sum(map(len, train_ids)) > to_read

# %% [markdown]
# ## Further: how far from the truth?
#
# Let $p$ be the true distribution and $q$ the model's. The **Kullback-Leibler divergence** $\sum_w p(w) \ln \frac{p(w)}{q(w)}$ is the surprise that $q$ costs in excess of the **entropy** of $p$, the expected surprise under $p$ itself. With $p = (\frac12, \frac14, \frac14)$ and $q = (\frac14, \frac14, \frac12)$ it is $\frac12 \ln 2 + 0 + \frac14 \ln \frac12 = \frac14 \ln 2$.

# %% tags=["nbval-check-output"]
p, q = torch.tensor([[0.50, 0.25, 0.25], [0.25, 0.25, 0.50]])
divergence = (p * (p / q).log()).sum()
entropy, loss = -(p * p.log()).sum(), -(p * q.log()).sum()
torch.testing.assert_close(loss, entropy + divergence)
torch.testing.assert_close(divergence, F.kl_div(q.log(), p, reduction="sum"))
print(f"expected loss {loss:.4f} = entropy {entropy:.4f} + divergence {divergence:.4f}")

# %% [markdown]
# So **expected loss = entropy of the language + divergence of the model from it**. The first part no model can change; our entropy bound estimates it on eighty reviews. Training makes the second one small.
#
# ## The package: pretraining
#
# `tx.pretrain` does the same with a larger model, more steps, another optimizer (Muon, [lesson 14](14_since_2017.ipynb)) and a **checkpoint**, the model saved now and then.

# %%
from tinytx.generate import Sampling, generate, generate_many

samples, n_steps = {}, recipe.settings.n_steps


def watch(step, model):
    doubled = step & (step - 1) == 0 or step == n_steps
    if doubled:
        sampling = Sampling(max_new_tokens=60, seed=0)
        samples[step] = str(generate(model, tokenizer, "Le roman", sampling))
    if doubled or step % 200 == 0:
        score = evaluate_language_model(model, tokenizer, held_out)
        return {"loss": score.nats_per_token}


result = tx.pretrain(corpus, options=tx.RunOptions(on_step=watch, progress=False))
model = result.model
last = result.history.evaluations[-1]["loss"]
print("At the end it writes:", samples[n_steps][:50], "…")
print(f"{last:.3f} nats per token, {last / bound - 1:.0%} above the entropy bound")
assert smoke or bound < last < 1.1 * bound

# %% [markdown]
# ### Further: from a uniform guess towards the bound

# %% tags=["folded"]
from tinytx_course import plots

by_step = {row["step"]: row["loss"] for row in result.history.evaluations}
fig, ax = plots.curves(
    [plots.Curve("transformer", [*by_step], [*by_step.values()])], x_log=True,
    references={"uniform guess, ln V": math.log(V), "entropy bound": bound},
    y_range=(0, 8.5), xlabel="step (logarithmic)",
    ylabel="held-out loss (nats per token)", title="Loss on held-out reviews",
)
plots.show(fig, name="08_loss_and_bound")

# %% [markdown]
# ### Further: from gibberish to French
#
# The second column is counted by the grammar: how many words the sample has, the two given ones included, before the first impossible one.

# %%
def first_impossible(words):
    return next(
        (t for t, word in enumerate(words) if word not in world.next_word(words[:t])),
        len(words),
    )


print(" step  possible")
for step in sorted({*[*samples][::3], n_steps}):
    text = samples[step]
    words = text.split(" ")
    shown = f"{text[:64]}{' …' if len(text) > 64 else ''}"
    print(f"{step:>5}{first_impossible(words):>6} of {len(words):<3} {shown}")

# %% [markdown]
# And against the n-gram model? **Predict 08.2.**

# %%
course.predict(
    "08.2",
    "The n-gram model has read 90,000 reviews. When does the transformer first "
    "beat it?",
    ["by step 64", "between steps 65 and 512", "later, or not at all"],
)

# %%
seen = result.history.evaluations
steps, losses = [row["step"] for row in seen], [row["loss"] for row in seen]
pairs = zip(steps, losses, strict=True)
ahead = next((step for step, nats in pairs if nats < by_order[best_n]), math.inf)
assert smoke or last < by_order[best_n]
course.resolve(
    "08.2",
    ahead,
    f"Its loss was first measured below that of the {best_n}-gram model at step "
    f"{ahead}; the step before is {max((s for s in steps if s < ahead), default=0)}.",
    thresholds=(64.5, 512.5),
)

# %% [markdown]
# ### Further: does it look further back?
#
# _Roman_ is masculine, and so is the adjective that follows _Le roman est_. Does the model look that far back, or only at the last few tokens? A harder test puts the noun out of reach of the n-gram model: in _Le roman n'est ni magnifique ni …_ the last five tokens are the same for all nouns.

# %%
adjectives = [
    (tokenizer.word_pieces(row["masculine"]), tokenizer.word_pieces(row["feminine"]))
    for row in world.grammar.lexicon.adjectives
    if row["masculine"] != row["feminine"]
]
forms = [(m[0], f[0]) for m, f in adjectives if len(m) == len(f) == 1]
forms = torch.tensor(forms).T  # (2, n): masculine, feminine, one token each
nouns = {0: "Le roman, Le livre, Le style", 1: "La saga, La fin, La chronique"}


@torch.no_grad()
def right_gender(probs_of, ending):
    """Mean share of the right gender among adjectives with two forms, by gender."""
    shares = []
    for gender, names in nouns.items():
        texts = [" ".join(world.split(f"{n} {ending}")) for n in names.split(", ")]
        probs = torch.stack([probs_of(tokenizer.encode(text)) for text in texts])
        both = probs[:, forms].sum(dim=-1)  # (nouns, 2)
        shares.append((both[:, gender] / both.sum(dim=1)).mean().item())
    return shares


# %%
def by_model(ids):
    device = next(model.parameters()).device
    inputs = torch.tensor([[tokenizer.bos_id, *ids]], device=device)
    return model(inputs)[0, -1].softmax(dim=-1).cpu()


def by_counting(ids):
    return torch.tensor(counting.next_probs(ids, order=best_n))


readers = {"transformer": by_model, f"{best_n}-gram": by_counting}
worst = {}
print("share of the right gender after each noun and")
for ending in ("est", "n'est ni magnifique ni"):
    print(f"{ending} …")
    for name, probs_of in readers.items():
        shares = right_gender(probs_of, ending)
        worst[ending, name] = min(shares)
        print(f"   {name:<12}masculine {shares[0]:.1%}, feminine {shares[1]:.1%}")
assert smoke or max(shares) < 0.6  # of the n-gram model
assert smoke or min(worst["est", f"{best_n}-gram"], worst["est", "transformer"]) > 0.9
assert smoke or worst[ending, "transformer"] > 0.9

# %%
from tinytx_course.results import read_results

stored = [read_results(name).data for name in ("agreement", "doubt-agreement")]
far = min(stored[0]["7-gram"]["far"])
seeds = [min(one["far"]) for data in stored for one in data.values() if one["seed"]]
print(f"stored: a 7-gram {far:.0%} and more, {len(seeds)} networks {min(seeds):.0%}")
assert 0.7 < far < 0.85 and min(seeds) > 0.98
for noun in (name for names in nouns.values() for name in names.split(", ")):
    frame = f"{noun} n' est ni magnifique ni"
    assert any(frame in text for text in corpus.train.texts)

# %% [markdown]
# Next to the noun both choose the right gender, so that test shows nothing beyond counting. Where the noun is out of its reach the n-gram model is at one half, a coin, and the transformer still gives nearly all to the right gender: it uses the noun or its article, six and seven tokens back. Whether it has learned a class, or each noun by itself, this does not say: each of the six nouns occurs in this frame in the training text. But a 7-gram, which sees the noun, falls far behind.
#
# ## Further: a softmax too many
#
# PyTorch's `cross_entropy` takes *logits*, and does the softmax itself. Give it probabilities, and nothing complains. But even a perfect model, with a 1 for the right token and a 0 for all others, is now charged as if it had given $e / (e + V - 1)$. So this loss begins at $\ln V$, as it should, and can never fall by more than 1.

# %%
def softmax_twice(model, inputs, targets):
    probabilities = model(inputs).softmax(dim=-1).flatten(0, 1)  # (B T, V)
    return F.cross_entropy(probabilities, targets.flatten(), ignore_index=pad_id)


stuck = learn(new_language_model(small, seed=0), batches, brief, loss_of=softmax_twice)
lowest = math.log(V - 1 + math.e) - 1
print(f"ln V = {math.log(V):.3f}, lowest possible loss with two softmaxes {lowest:.3f}")
print(f"after 80 steps: one softmax {right_losses[-1]:.3f}", end=", ")
print(f"two softmaxes {stuck[-1]:.3f}")
assert lowest < stuck[-1] and right_losses[-1] < lowest
assert smoke or stuck[0] - stuck[-1] < 0.5

# %% [markdown]
# No error, a loss that creeps, and a floor below which it can never go.
#
# ## Further: let it write
#
# The grammar says whether a review belongs to the language at all. The model writes a hundred at each of three temperatures ([lesson 07](07_your_own_gpt.ipynb)), and the n-gram model as many as a baseline. **Predict 08.3.**

# %%
course.predict(
    "08.3",
    "From temperature 1 to 0.5: which two change, and how?",
    [
        "more reviews in the language, fewer different words",
        "more reviews in the language, more different words",
        "fewer reviews in the language",
    ],
)

# %%
def counting_review(draw):
    written = []
    while len(written) < 120 and tokenizer.eos_id not in written:
        probs = counting.next_probs(written, order=best_n)
        written.append(int(draw.choice(V, p=probs)))
    return tokenizer.decode(written)


draw = np.random.default_rng(0)
reviews = {f"{best_n}-gram, temperature 1": [counting_review(draw) for _ in range(100)]}
for temperature in (0.5, 1.0, 1.5):
    sampling = Sampling(temperature=temperature, max_new_tokens=120, seed=1)
    written = generate_many(model, tokenizer, sampling=sampling, n=100)
    reviews[f"model, temperature {temperature}"] = [str(text) for text in written]
drawn = world.reviews(100, seed=7)
reviews["the language itself"] = [" ".join(review.words) for review in drawn]

# %% tags=["folded"]
print(f"{'who writes':<25}in the language  different words")
fine, variety = {}, {}
for who, texts in reviews.items():
    split = [text.split(" ") for text in texts]
    used = {word for words in split for word in words} & set(world.vocabulary)
    inside = np.isfinite(world.batch_log_prob(split))
    fine[who], variety[who] = inside.mean(), len(used)
    print(f"{who:<25}{fine[who]:15.0%}{variety[who]:17}")
cold, warm = "model, temperature 0.5", "model, temperature 1.0"
assert smoke or (fine[cold] >= fine[warm] and variety[cold] < variety[warm])
fewer = "fewer" if variety[cold] <= variety[warm] else "more"
answer = f"more reviews in the language, {fewer} different words"
course.resolve(
    "08.3",
    answer if fine[cold] >= fine[warm] else "fewer reviews in the language",
    f"In the language: {fine[warm]:.0%}, then {fine[cold]:.0%}. Words: "
    f"{variety[warm]}, then {variety[cold]}.",
)

# %% [markdown]
# Repeating a few safe phrases is an easy way to be correct, so the two columns are read together. One slip among thirty tokens puts a review outside the language.
#
# ## Play: a model learns in the page
#
# Press Play, and watch the held-out loss and what it writes. (The bound is that of its own held-out reviews, in nats a word.) Then switch the mask off: the answer is in the input. Does the loss stop at the bound?

# %%
course.widgets.playground()

# %% [markdown]
# ## Further: cut the distribution
#
# The distribution of the model that ships with the course, stage by stage: temperature, top-k, top-p. The line across each bar is the true share. Find two beginnings for which the same $p$ keeps very different numbers of tokens.

# %%
course.widgets.sampling("Le livre")

# %% [markdown]
# ## What this does not show
#
# Real text has no known entropy bound. And the loss and the samples are those of one run.
#
# ## Take-home
#
# | | a text of three tokens |
# |---|---|
# | read | `<bos> a b c` |
# | to predict | `a b c <eos>` |
# | each step | batch, loss, clear the gradients, `backward`, clip, step |

# %% [markdown]
# ## Questions

# %%
course.quiz("pretraining")

# %% [markdown]
# ## Exercises
#
# [exercise: answer_loss]


# %%
def answer_loss(logits, token_ids, prompt_lens, pad_id):
    ...


# %%
course.check("answer_loss", answer_loss)

# %% [markdown]
# ## Further: three more exercises
#
# [exercise: shift_targets]


# %%
def shift_targets(token_ids):
    ...


# %%
course.check("shift_targets", shift_targets)

# %% [markdown]
# [exercise: language_model_loss]


# %%
def language_model_loss(logits, targets, pad_id):
    ...


# %%
course.check("language_model_loss", language_model_loss)

# %% [markdown]
# [exercise: perplexity]


# %%
def perplexity(total_nats, n_tokens):
    ...


# %%
course.check("perplexity", perplexity)

# %% [markdown]
# ## Summary
#
# 1. A text of $T$ tokens gives $T + 1$ questions; the targets are the inputs shifted by one. A loss far below the entropy bound on new text is an alarm.
# 2. Loss is the mean of $-\ln p$ in nats, perplexity its exponential; before training they are about $\ln V$ and $V$.
# 3. The transformer ended just above the entropy bound.
# 4. *Further:* the transformer beat an n-gram model that had read more. At a distance it makes an adjective agree with its noun; the n-gram model, which does not see so far, cannot. A lower temperature trades variety for safety.
#
# *Where this comes from:* Shannon, *Prediction and Entropy of Printed English* (1951). Radford et al., *Improving Language Understanding by Generative Pre-Training* (2018), section 3.1. Pascanu et al., [arXiv:1211.5063](https://arxiv.org/abs/1211.5063), section 3.2, for clipping.
#
# *Next:* [lesson 09](09_transfer.ipynb) puts another head on such a model, and asks what the pretraining was worth.
