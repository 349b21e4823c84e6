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
# 1. turn any text into questions and answers for a language model, and say why the answers are shifted by one;
# 2. work out loss and perplexity by hand, and say what they must be before training;
# 3. train a language model, and say how far it has come: between a model that only counts and the best that any model could do;
# 4. lay a model's expectation of the next word beside the true one, measure the difference, and find out where it is largest;
# 5. let the model write, with temperature, top-k and top-p, and check what it wrote.
#
# *You need:* the causal mask from [lesson 02](02_attention_and_masks.ipynb), and natural logarithms.
# *It takes:* forty-five minutes to read; two minutes to run on a laptop, less with a GPU.

# %% [markdown]
# ## Set-up
#
# The lesson trains one model in front of you. How long that takes is decided by the budget ([lesson 00](00_start_here.ipynb) explains it). The text and
# the language it was drawn from are those of the whole course: reviews of books, made by a grammar whose every probability can be computed.

# %%
import math

import numpy as np
import torch
import torch.nn.functional as F
from IPython.display import Markdown

import tinytx as tx
import tinytx_course as course
from tinytx.text.ngrams import NGramModel
from tinytx.training.evaluate import evaluate_language_model, exact_nats
from tinytx.training.fit import fit
from tinytx.training.generate import generate, generate_many, next_token_probs
from tinytx.training.loop import train
from tinytx.training.objectives import CausalObjective, causal_batch, language_model_loss
from tinytx.training.recipes import plan
from tinytx.training.settings import TrainingSettings
from tinytx.training.tasks import new_language_model, train_tokenizer
from tinytx.world import checker
from tinytx.world.checker import check_sentence
from tinytx_course import plots, results
from tinytx_course.labs.lesson_08 import ladder_means, next_word_probs

_ = torch.manual_seed(0)

# %% [markdown]
# Here is what will be read. Spaces stand around every mark and after every apostrophe, so that a unit of the grammar is a word between spaces. Read the
# three reviews for what holds their sentences together: each is about one book, and its writer liked it or did not. A good guess of the next word would use that.

# %%
corpus = tx.load_corpus("world")
world = tx.World()
print(f"{len(corpus.train.texts):,} reviews to learn from; here are three.")
Markdown("\n".join(f"- {text}" for text in corpus.train.texts[:3]))

# %% [markdown]
# A model reads *pieces*, which it gets from a tokenizer: frequent words are whole, rare ones in parts, and `▁` marks the
# space before a word. Each piece has a number, its *id*. How many pieces there are in all is $V$.

# %%
recipe = plan("world")
size = recipe.vocab_size
tokenizer = train_tokenizer(corpus.train.texts, size, exact=False, kind="world")
V = tokenizer.vocab_size
print(V, "pieces;", " ".join(tokenizer.pieces(corpus.train.texts[0])))

# %% [markdown]
# ## Why: the text is its own teacher
#
# Nobody has written answers beside these reviews. They are in the text: hide what follows *Le roman est*, and the next word is the answer. One sentence of
# six tokens asks six questions, and a seventh one: is this the end? To ask them all at once, the text is written down twice, one place apart. A mark opens the
# first copy, another closes the second.

# %%
words = ["Le", "roman", "est", "vraiment", "beau", "."]
inputs, targets = ["<bos>", *words], [*words, "<eos>"]
for number, answer in enumerate(targets, start=1):
    print(f"{' '.join(inputs[:number]):<38} →  {answer}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Thanks to the causal mask, position $t$ sees the inputs up to $t$ and nothing after. So a *single* pass through the model answers all seven
# questions, with one distribution over the whole vocabulary **at every position**. (A classifier would give one answer for the whole text. That is the
# other head of this body, and lesson 09's.) Look at the shapes: batch, positions, vocabulary.

# %%
config = recipe.config.replace(vocab_size=V)
untrained = new_language_model(config, seed=1)
marks = {name: getattr(tokenizer, name) for name in ("bos_id", "eos_id", "pad_id")}
ids, next_ids = causal_batch([tokenizer.encode(" ".join(words))], **marks)
probabilities = untrained(ids).softmax(dim=-1)  # (B, T, V)
print("inputs", *ids.shape, " targets", *next_ids.shape, " answers", *probabilities.shape)
assert torch.equal(ids[:, 1:], next_ids[:, :-1])

# %% [markdown]
# ### The tempting wrong way: the answer is the token itself
#
# It is easy to forget the shift: text in, text out, and compare. Nothing complains, the shapes fit. Let us do exactly that beside the right way, with a small
# model and a small part of the text. The package's objective gives inputs and targets; the wrong one hands out the inputs twice.

# %%
class ForgotTheShift(CausalObjective):
    def batch(self, indices):
        inputs, targets = super().batch(indices)
        return inputs, inputs


some = tokenizer.encode_batch(corpus.train.texts[:2000])
small = config.replace(d_model=64, n_heads=2, n_layers=1, d_ff=128)
brief = TrainingSettings(
    n_steps=80, lr=5e-3, warmup_steps=10, tokens_per_batch=1024, log_every=4
)


def learn(objective_class):
    model = new_language_model(small, seed=0)
    objective = objective_class(some, **marks, max_len=small.max_len)
    return model, train(model, objective, brief, progress=False)


right, right_history = learn(CausalObjective)
wrong, wrong_history = learn(ForgotTheShift)

# %% [markdown]
# How would you notice? Here is the great help of this course. We know the grammar, so we can compute the probability of any held-out text *exactly*. The mean of
# $-\log P$ over its tokens is the **floor**: no model, of any size, can expect a lower loss on text from this language. We take eighty reviews that nobody
# trains on, and keep them for the whole lesson.

# %%
held_out = corpus.valid.texts[:80]
held_ids = tokenizer.encode_batch(held_out)
n_tokens = sum(len(one) + 1 for one in held_ids)  # the end is predicted, too
floor = exact_nats(corpus, held_out).sum() / n_tokens
print(f"{n_tokens:,} tokens; floor {floor:.3f} nats per token")

# %% [markdown]
# Before you look: which of the two curves goes lower, and can it be trusted? Think of what the wrong model needs to learn. The answer is printed on the
# question.

# %%
fig, ax = plots.curves(
    [plots.Curve("the token after", right_history.step, right_history.loss),
     plots.Curve("the token itself", wrong_history.step, wrong_history.loss)],
    references={"exact floor": floor}, y_range=(0, 7.5), title="Too good to be true",
    xlabel="step", ylabel="training loss (nats per token)",
)  # fmt: skip
plots.show(fig, name="08_forgotten_shift", alt="""
    Training loss against steps for two small models. With shifted targets it falls slowly
    and stays above the dashed exact floor; asked for the token itself, it falls through
    the floor to nearly zero.""")

# %% [markdown]
# A loss below the floor is not a triumph, it is an alarm: the model must be looking at the answer. It has learned to *copy*. Asked the real question it
# is worse than pure guessing among all pieces, which would cost $\ln V$: it is sure that each token comes twice. On text without a known floor, a loss that falls
# to almost nothing in a few steps is the same alarm.

# %%
for name, model in {"the token after": right, "the token itself": wrong}.items():
    copied = model(ids).argmax(dim=-1).eq(ids).float().mean()
    nats = evaluate_language_model(model, tokenizer, held_out).nats_per_token
    print(f"{name:<17} held-out loss {nats:6.2f}   says its input again: {copied:4.0%}")
print(f"{'pure guessing':<17} held-out loss {math.log(V):6.2f}")
assert wrong_history.loss[-1] < floor < right_history.loss[-1]

# %% [markdown]
# ## By hand: nats and perplexity
#
# Suppose that a model gave the three tokens that really came the probabilities $\frac12$, $\frac14$ and $\frac18$. Its *surprise* at each is $-\ln p$,
# measured in nats; the loss is the mean surprise. On paper: $\ln 2$, $2 \ln 2$ and $3 \ln 2$, so the mean is $2 \ln 2$. The *perplexity* is $e$ to the
# loss. Here it is 4: as uncertain, on average, as a fair choice among four.

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
# A model gives scores (*logits*), and the softmax turns them into probabilities. In matrix form: take the logarithm of the softmax along the vocabulary, pick at each
# position the entry of the token that came, and average. Padding is not a token, so it does not count. The loop, the matrix form, PyTorch and the package must
# agree.

# %%
logits = torch.randn(5, 7)  # (T, V)
came = torch.tensor([3, 6, 1, 4, 0])  # the last one is padding: id 0
by_loop = sum(-math.log(logits[t].softmax(dim=-1)[came[t]]) for t in range(4)) / 4
log_probs = logits.log_softmax(dim=-1).gather(-1, came[:, None])[:, 0]  # (T,)
at_once = -log_probs[came != 0].mean()
torch.testing.assert_close(at_once, torch.tensor(by_loop))
torch.testing.assert_close(at_once, F.cross_entropy(logits, came, ignore_index=0))
torch.testing.assert_close(at_once, language_model_loss(logits, came, pad_id=0))
print("the loop, the matrix form, PyTorch and the package agree")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### Before training: $\ln V$
#
# A new model has no opinion. It spreads its probability almost evenly over the $V$ pieces, so its surprise is close to $-\ln \frac1V = \ln V$. Know this number
# before you start any training: a first loss far above it means that the model is confidently wrong from the start, one far below it that an answer leaks.

# %%
first = evaluate_language_model(untrained, tokenizer, held_out)
print(f"untrained {first.nats_per_token:.3f} nats per token, perplexity {first.perplexity:.0f}")
print(f"ln V = ln {V} = {math.log(V):.3f}")
assert abs(first.nats_per_token - math.log(V)) < 0.1

# %% [markdown]
# ### Somebody to beat: a model that only counts
#
# An *n-gram model* looks up which tokens followed the last $n - 1$ in the training text, and how often. Where it has seen too little, it mixes in the shorter
# histories. No gradients, no layers; for decades this was how language models were made. It reads the same text in the same pieces. We take the best
# of $n = 1$ to $4$ as our baseline.

# %%
train_ids = tokenizer.encode_batch(corpus.train.texts)
counting = NGramModel(order=4, vocab_size=V).fit(train_ids)
by_order = {n: counting.nats_per_token(held_ids, order=n) for n in (1, 2, 3, 4)}
best_n = min(by_order, key=by_order.get)
for n, nats in by_order.items():
    print(f"{n}-gram {nats:.3f} nats per token{'   <- the best' if n == best_n else ''}")

# %% [markdown]
# ## How far from the truth? Kullback and Leibler
#
# The loss compares the model with *the token that came*. We can do better and compare it with *everything that could have come*. Let $p$ be the true distribution and $q$ the
# model's. The **Kullback-Leibler divergence** $\sum_w p(w) \ln \frac{p(w)}{q(w)}$ is the surprise that $q$ costs in excess of $p$ itself. On paper, with the numbers below:
# $\frac12 \ln 2 + 0 + \frac14 \ln \frac12 = \frac14 \ln 2$.

# %%
p, q = torch.tensor([[0.50, 0.25, 0.25], [0.25, 0.25, 0.50]])
divergence = (p * (p / q).log()).sum()
entropy, loss = -(p * p.log()).sum(), -(p * q.log()).sum()
torch.testing.assert_close(loss, entropy + divergence)
torch.testing.assert_close(divergence, F.kl_div(q.log(), p, reduction="sum"))
print(f"expected loss {loss:.4f} = entropy {entropy:.4f} + divergence {divergence:.4f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# That last line is the heart of the matter: **expected loss = entropy of the language + divergence of the model from it**. The first part is the floor, and nobody can change it. All that
# training can do is to make the second part small.
#
# So we ask the grammar for the exact distribution of the next piece at every position of the held-out reviews, and write a function that holds a model
# against it.

# %%
exactly = world.through(tokenizer)
prefixes = [one[:t] for one in held_ids for t in range(len(one) + 1)]
exact = torch.tensor(np.array([exactly.next_token(one) for one in prefixes]))  # (places, V)
inputs, targets = causal_batch(held_ids, **marks)
real = targets != tokenizer.pad_id


@torch.no_grad()
def compare(model):
    logits = model(inputs.to(next(model.parameters()).device)).cpu()[real]
    log_q = logits.double().log_softmax(dim=-1)  # (places, V)
    divergences = F.kl_div(log_q, exact, reduction="none").sum(dim=-1)  # (places,)
    return F.nll_loss(log_q, targets[real]).item(), divergences

# %% [markdown]
# ## The package: pretraining
#
# One call trains a tokenizer and a model, and measures the held-out text. After each step it calls `on_step`, if we give it something to call. We look in at steps 1, 2, 4, 8, … and then
# every two hundred: often enough for a curve, rarely enough to cost little. This is the cell that takes a minute.

# %%
def watch(step, model):
    if step & (step - 1) == 0 or step % 200 == 0:
        loss, divergences = compare(model)
        return {"loss": loss, "divergence": divergences.mean().item()}


result = fit(corpus, on_step=watch)
model = result.model
assert result.tokenizer.to_bytes() == tokenizer.to_bytes()
assert abs(result.history.loss[0] - math.log(V)) < 0.1

# %% [markdown]
# ## Look: the curve between two lines
#
# Predict the picture: where does the curve start? Which of the two lines, the counting model and the floor, does it cross, and which not? The lower
# panel is the same picture with a magnifying glass on the end. Note that the steps are on a logarithmic axis, so that the first ones can be seen.

# %%
seen = result.history.evaluations
steps, losses = [one["step"] for one in seen], [one["loss"] for one in seen]
lines = {f"best count ({best_n}-gram)": by_order[best_n], "exact floor": floor}
close = (floor - 0.05, max(by_order[best_n] + 0.4, losses[-1] + 0.1))
views = {"From knowing nothing to the floor": (0, 7.5), "The last part, closer": close}
fig, axes = plots.figure(2, 1, width=7.6, height=7.0, sharex=True)
for ax, (title, view) in zip(axes, views.items(), strict=True):
    plots.curves(
        [plots.Curve("transformer", steps, losses)], references=lines, y_range=view, x_log=True,
        xlabel="step (logarithmic)", ylabel="held-out loss (nats per token)", title=title, ax=ax,
    )  # fmt: skip
plots.show(fig, name="08_loss_and_floor", alt="""
    Held-out loss against training steps, whole and magnified. The curve starts near the
    logarithm of the vocabulary size, crosses the dashed line of the best counting model,
    and stays above the exact floor.""")

# %% [markdown]
# The curve starts at $\ln V$, crosses the counting model and flattens out above the floor. How much of the way from one line to the other did it go? With $N$ for the counting model, $L$ for ours
# and $F$ for the floor, that is $(N - L) / (N - F)$: 0 at the baseline, 1 at perfection. Eighty reviews are good for a curve; for the verdict we take the whole held-out
# text.

# %%
valid_ids = tokenizer.encode_batch(corpus.valid.texts)
n_words = sum(len(text.split(" ")) + 1 for text in corpus.valid.texts)
score, bottom = result.evaluation.score, result.evaluation.entropy_bound
L, N = score.nats_per_token, counting.nats_per_token(valid_ids, order=best_n)
for name, nats in {"counting N": N, "transformer L": L, "floor F": bottom}.items():
    print(f"{name:>13} = {nats:.4f} nats per token, perplexity {math.exp(nats):5.2f}")
print(f"\ngap L - F: {(gap := L - bottom):.4f} nats per token, {gap * score.n_tokens / n_words:.4f} per word")
print(f"covered (N - L) / (N - F): {(N - L) / (N - bottom):.1%} of the way")

# %% [markdown]
# One run with one seed is an anecdote. The command `python -m experiments ladder` trains several, with longer histories for the counting models too, and keeps what it measured. Here is its
# table, read from the file. No model can be expected above a share of 1; below 0 means worse than the baseline.

# %%
ladder = results.read_results("ladder")
print(f"{'model':<22}{'':<8}{'nats per token':<17}{'share':>8}")
print(*ladder_means(ladder.data), ladder.source_line(), sep="\n")

# %% [markdown]
# ### The divergence falls with it
#
# Now the same run seen from the other side: the mean divergence from the truth, and beside it the gap $L - F$ on the same eighty reviews. By the equation above both
# have the same expectation. Will they agree at each step? One of them uses only the tokens that happened to come.

# %%
gaps, apart = [one - floor for one in losses], [one["divergence"] for one in seen]
fig, ax = plots.curves(
    [plots.Curve("divergence", steps, apart),
     plots.Curve("loss - floor", steps, gaps, dashed=True)], title="The gap is the divergence",
    x_log=True, y_log=True, xlabel="step (logarithmic)", ylabel="nats per token (logarithmic)",
)  # fmt: skip
plots.show(fig, name="08_divergence", alt="""
    Mean Kullback-Leibler divergence from the true next piece, and loss minus floor,
    against training steps, both axes logarithmic. The two curves lie almost on top of
    each other and fall together from above five nats.""")

# %% [markdown]
# They run together; where they part, chance in eighty reviews is the reason. The divergence has less of it, since it weighs all that could have come.
#
# ### Choose a beginning yourself
#
# Change the first line of the next cell, in your own copy, and run it again. Write as people write; `world.split` cuts it into words, and a word that cannot
# stand there is named in the error. The model knows pieces only; `next_word_probs` multiplies them up to whole words.

# %%
beginning = "Bonjour les amis, le roman est"  # <- change me

prefix = world.split(beginning)
truth = world.next_word(prefix)
chances = next_word_probs(model, tokenizer, prefix, world.vocabulary)
guess = dict(zip([*world.vocabulary, None], chances, strict=True))
off = sum(chance * math.log(chance / guess[word]) for word, chance in truth.items())
print(f"{len(truth)} words may follow; divergence from the truth {off:.4f} nats")
print(f"the model gives these words {sum(guess[one] for one in truth):.1%}")

# %% [markdown]
# Before you look at the bars: which words would *you* expect next? The eight that are likeliest in truth are drawn, each with the
# model's bar and the true one, and the rest of the language is left out for the sake of the eye.

# %%
named = {word or "(the end)": word for word in list(truth)[:8]}
fig, ax = plots.grouped_bars(
    {"model": {name: guess[word] for name, word in named.items()},
     "truth": {name: truth[word] for name, word in named.items()}},
    numbers=".3f", xlabel="probability of being the next word", title=f"{beginning} …")  # fmt: skip
plots.show(fig, name="08_next_word", alt="""
    For the eight likeliest words after a beginning, the probability that the model gives
    to each as one bar, and the true probability as another beside it.""")

# %% [markdown]
# Nobody told the model what an adjective is, nor that *très* may stand before one, nor that a masculine noun wants a masculine form. It was only asked, again and again, what comes next, and to answer well it had
# to find out. This is what predicting the next word teaches.
#
# Here you can walk through the language word by word. Write a beginning or take one, look at both distributions, and press one of the words to go on. Follow what the model likes best for two sentences; then go
# back and take the rarest word each time. Where do the two columns part? (In the exported page a tree of beginnings is stored, and the explorer says where it ends.)

# %%
course.widgets.next_word(model, tokenizer, ["Bonjour les", "Bonjour les amis, le roman est"], world=world)

# %% [markdown]
# ### Where is the gap?
#
# What has it *not* found out? We sort the divergences at all held-out positions by what stands there and by the sentence of the review. After a full stop a sentence or the
# end may follow; this place is a kind of its own. The grammar's tables say what is a noun or an adjective.

# %%
forms = checker.FrenchForms(world.grammar.lexicon)


def kind_of(word):
    if word in ".,!" or word in forms.nouns:
        return "mark" if word in ".,!" else "noun"
    return "adjective" if word in forms.adjectives else "other word"


def places(text):
    sentence, starts = 1, True
    for word in text.split(" "):
        kind = "start or end" if starts else kind_of(word)
        yield from [(kind, sentence)] * len(tokenizer.word_pieces(word))
        starts = word in ".!"
        sentence += starts
    yield ("start or end", sentence)


_, divergences = compare(model)
standing = [place for text in held_out for place in places(text)]
kinds = ("start or end", "other word", "noun", "adjective", "mark")
for kind in kinds:
    mine = divergences[[one == kind for one, _ in standing]]
    share = mine.sum() / divergences.sum()
    print(f"{kind:<13}{len(mine):>6} places, mean {mine.mean():.4f}, {share:4.0%} of the gap")

# %% [markdown]
# Predict: is the gap the same everywhere? Which kinds of word ask the model to remember something from earlier sentences? Do later sentences ask for more, or is the
# model helped by having read more? (Below each sentence stands how many places it has in all. Where there are few, a single surprise shows.)

# %%
def mean_at(kind, k):
    return divergences[[one == (kind, k) for one in standing]].mean()


n_places = [sum(one == k for _, one in standing) for k in range(1, 7)]
fig, ax = plots.heatmap(
    [[mean_at(kind, k) for k in range(1, 7)] for kind in kinds], numbers=".3f", low=0,
    row_labels=kinds, col_labels=[f"{k}\n({n})" for k, n in enumerate(n_places, 1)],
    bar_label="mean divergence (nats)",
    xlabel="sentence of the review (places)", ylabel="what stands there", title="Where the gap is",
)  # fmt: skip
plots.show(fig, name="08_where_the_gap_is", alt="""
    Mean divergence of the model from the truth in a table of cells: rows are kinds of
    word, columns the first to the sixth sentence of a review.""")

# %% [markdown]
# Marks and little words follow from what stands just before them. Nouns and adjectives depend on what is hidden *above* the words: which book it is, and whether the
# reviewer liked it. Only words some sentences back betray it.
#
# ### Three sentences ago
#
# We can ask directly. A review praises or blames, with an exception in one sentence of twenty. Take beginnings that differ only in
# judgements, go on with *Le roman est*, and add up the chances of all words of praise: their share of praise and blame together.

# %%
judged = ["L'intrigue est {}.", "Le style est {}.", "La fin est {}."]
saying = {"+": "magnifique", "-": "médiocre"}
table = world.grammar.lexicon.adjectives
good, bad = ([row["masculine"] for row in table if row["polarity"] == sign] for sign in "+-")


def share_of_praise(pattern):
    said = [one.format(saying[sign]) for one, sign in zip(judged, pattern, strict=False)]
    prefix = world.split(" ".join([*said, "Le roman est"]))
    true = np.array([world.next_word(prefix).get(word, 0.0) for word in good + bad])
    believed = next_word_probs(model, tokenizer, prefix, good + bad)[:-1]
    return [chances[: len(good)].sum() / chances.sum() for chances in (believed, true)]

# %% [markdown]
# `+ + -` stands for praise, praise, blame. The last two groups are the hard ones: the two sentences just before are the same, and only the one three sentences
# ago differs. A model that listens to the last sentence alone would give them equal bars, and one that listens to none would give all groups the same.

# %%
patterns = ["+", "-", "+-", "-+", "++-", "-+-"]
shares = {" ".join(one): share_of_praise(one) for one in patterns}
fig, ax = plots.grouped_bars(
    {"model": {one: pair[0] for one, pair in shares.items()},
     "truth": {one: pair[1] for one, pair in shares.items()}},
    xlabel="share of praise", ylabel="sentences before", title="Le roman est …",
)  # fmt: skip
plots.show(fig, name="08_three_sentences_ago", alt="""
    Share of praise among the next words after one to three judging sentences, the model's
    bar beside the true one. In truth the first of three sentences makes a large
    difference; how much of it has the model learned?""")

# %% [markdown]
# Compare the last two true bars, then the model's. How far its bars move with the true ones is how far it has learned to look back. To follow the last sentence is one thing, to count the votes of *all* sentences is
# another: no word near *est* can help with that, only attention across sentences. (Does a longer budget, `TINYTX_BUDGET=study`, learn more of it?)
#
# ## Break it: a softmax too many
#
# PyTorch's `cross_entropy` takes *logits*, and does the softmax itself. Give it probabilities, and again nothing complains. But even a perfect model, with a 1 for the
# right token and a 0 for all others, is now charged as if it had said $e / (e + V - 1)$. What does that cost?

# %%
for n in (1_000, 50_001):
    lowest = math.log(n - 1 + math.e) - 1
    print(f"V = {n:>6,}: ln V = {math.log(n):6.3f}, lowest possible loss = {lowest:6.3f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# So this loss begins at $\ln V$, as it should, and can fall by no more than 1, if ever. Beside the small model from the beginning of the lesson, here is the same model with
# one softmax too many. Say before you look how the two curves differ after the first few steps.

# %%
class OneSoftmaxTooMany(CausalObjective):
    def loss(self, model, indices):
        inputs, targets = self.batch(indices)
        probabilities = model(inputs).softmax(dim=-1)
        return language_model_loss(probabilities, targets, tokenizer.pad_id)


twice, twice_history = learn(OneSoftmaxTooMany)

# %% [markdown]
# Both curves were drawn from the same first weights, the same batches in the same order, and the same learning rate. One softmax is the only difference. The two dashed lines are the numbers that we just worked
# out: where such a loss starts, and the best it could ever show.

# %%
lowest = math.log(V - 1 + math.e) - 1
fig, ax = plots.curves(
    [plots.Curve("logits", right_history.step, right_history.loss),
     plots.Curve("probabilities", twice_history.step, twice_history.loss)],
    references={"ln V": math.log(V), "lowest possible": lowest}, y_range=(0, 7.5),
    xlabel="step", ylabel="training loss (nats per token)", title="Stuck, without a sound",
)  # fmt: skip
plots.show(fig, name="08_softmax_twice", alt="""
    Training loss against steps. With logits it falls steadily; with probabilities in
    place of logits it stays close to the logarithm of the vocabulary size, above the
    dashed line of the lowest loss possible there.""")

# %% [markdown]
# No error, no warning, a loss that falls a little: many a run has been left going like this for hours. The cure is to know two numbers in advance, $\ln V$ at
# the start and a counting model's loss to beat.
#
# ## Use it: let it write
#
# A model writes by drawing a token, appending it, and asking again. How to draw is a choice. **Temperature** $\tau$ divides the logits, which
# raises probabilities to the power $1/\tau$. **Top-k** keeps the $k$ likeliest, **top-p** the fewest that reach $p$ together; what is left is made to sum to one. On paper, for $\tau = \frac12$: the squares
# 0.16, 0.09, 0.04, 0.01, divided by 0.3.

# %%
start = [0.4, 0.3, 0.2, 0.1]
by_hand = {
    "temperature": [p**2 / 0.3 for p in start],
    "top_k": [0.4 / 0.7, 0.3 / 0.7, 0.0, 0.0],
    "top_p": [0.4 / 0.9, 0.3 / 0.9, 0.2 / 0.9, 0.0],  # 0.7 is not enough: the third stays
}
for (way, expected), value in zip(by_hand.items(), (0.5, 2, 0.8), strict=True):
    found = next_token_probs(torch.tensor(start).log(), **{way: value})
    torch.testing.assert_close(found, torch.tensor(expected))
    print(f"{way} = {value}".ljust(18), " ".join(f"{p:.3f}" for p in expected))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The same on a real distribution: our model's, for the piece that follows *Le livre*. Each row is one way to draw. Predict which rows will have hatched cells, that is,
# pieces that are masked and can never be drawn, and which row is the flattest.

# %%
ways = {"as it is": {}, "temperature 0.5": {"temperature": 0.5},
        "temperature 2": {"temperature": 2.0}, "top-k, k = 5": {"top_k": 5},
        "top-p, p = 0.8": {"top_p": 0.8}}  # fmt: skip
asked = torch.tensor([[tokenizer.bos_id, *tokenizer.encode("Le livre")]])
with torch.no_grad():
    scores = model(asked.to(next(model.parameters()).device))[0, -1].cpu()  # (V,)
top = scores.argsort(descending=True)[:12]
drawn = torch.stack([next_token_probs(scores, **how)[top] for how in ways.values()])
fig, ax = plots.heatmap(
    drawn, allowed=drawn > 0, numbers=".2f", low=0, bar_label="probability",
    row_labels=list(ways), col_labels=[tokenizer.piece(one) for one in top.tolist()],
    xlabel="the twelve likeliest pieces", title="Five ways to draw the piece after Le livre",
)  # fmt: skip
plots.show(fig, name="08_ways_to_draw", alt="""
    Five rows of probabilities of the twelve likeliest next pieces. A low temperature
    makes the first cells darker, a high one the row even; with top-k and top-p the cells
    on the right are hatched, as these pieces are cut away.""")

# %% [markdown]
# The same in motion, stage by stage: first the temperature, then top-k, then top-p, and last what is left is scaled to sum to one. The true distribution stands beside it. Find settings that come nearer to the truth than the
# plain model, if you can; and find two beginnings for which the same $p$ keeps very different numbers of pieces. Then draw a hundred times and compare.

# %%
course.widgets.sampling(model, tokenizer, ["Le livre", "Bonjour les", "C'est", "Le roman est"], world=world)

# %% [markdown]
# A cut helps where the model wrongly gives a little to many impossible pieces, and harms where the truth itself is wide. No single setting is right everywhere.
#
# ### "Bonjour les …"
#
# Some reviews begin with a greeting. Let the model carry one on, cold, as it is, and hot. In most courses one would now say whether it *looks* good. We can know. The grammar says
# with which probability it would itself have written this very review; $-\infty$ means that it is no review of the language at all.

# %%
hello, lines = " ".join(world.split("Bonjour les")), []
for temperature in (0.5, 1.0, 1.5):
    how = {"temperature": temperature, "max_new_tokens": 120, "seed": 3}
    text = str(generate(model, tokenizer, hello, **how))
    log_prob = world.log_prob(text.split(" "))
    lines.append(f"- **temperature {temperature}, log P = {log_prob:.1f} nats:** {text}")
Markdown("\n".join(lines))

# %% [markdown]
# Three texts are three anecdotes. So the model writes a hundred reviews at each of three temperatures, from nothing, and the grammar reads them all: how many belong to the language? With how many different
# words? The counting model, which also gives a distribution of the next piece, shall write some as a baseline.

# %%
def counting_review(draw):
    written = []
    while len(written) < 120 and tokenizer.eos_id not in written:
        written.append(int(draw.choice(V, p=counting.next_probs(written, order=best_n))))
    return tokenizer.decode(written)


draw = np.random.default_rng(0)
reviews = {f"{best_n}-gram, temperature 1": [counting_review(draw) for _ in range(100)]}
for temperature in (0.5, 1.0, 1.5):
    how = {"temperature": temperature, "max_new_tokens": 120, "seed": 1}
    written = generate_many(model, tokenizer, n=100, **how)
    reviews[f"model, temperature {temperature}"] = [str(one) for one in written]
reviews["the language itself"] = [" ".join(one.words) for one in world.reviews(100, seed=7)]

# %% [markdown]
# A writer can always be right by being dull, so the table also counts the different words of the language that were used. The last two columns look at those reviews that belong to the language: their mean length,
# and their exact $\log P$ per word. For the language itself this is about minus its entropy. Before you look: does a lower temperature give more reviews of the language, or fewer? And more words?

# %%
print(f"{'who writes':<25}in the language  different words  length  log P per word")
for who, texts in reviews.items():
    split = [text.split(" ") for text in texts]
    used = {word for words in split for word in words} & set(world.vocabulary)
    logs = world.batch_log_prob(split)
    fine = np.isfinite(logs)
    line = f"{who:<25}{fine.mean():15.0%}{len(used):17}"
    if n_words := sum(len(words) + 1 for words, ok in zip(split, fine, strict=True) if ok):
        line += f"{n_words / fine.sum():8.0f}{logs[fine].sum() / n_words:16.2f}"
    print(line)

# %% [markdown]
# Cold writing keeps to the beaten track: more of it belongs to the language, with fewer different words. Hot writing strays. And what is wrong with the reviews that stray? The package has a small checker of French grammar, which knows nothing of probabilities. It reads sentence by sentence and says what a teacher would
# mark. Here is what it finds in the reviews that the model wrote at temperature 1 and the language does not know.

# %%
def sentences_of(text):
    whole = text.replace(" .", " .|").replace(" !", " !|").split("|")
    return [sentence.split() for sentence in whole if sentence.split()]


texts = reviews["model, temperature 1.0"]
odd = [text for text in texts if world.log_prob(text.split(" ")) == -math.inf]
checked = [(words, check_sentence(words)) for text in odd for words in sentences_of(text)]
marked = [(" ".join(words), errors[0]) for words, errors in checked if errors]
print(f"{len(odd)} reviews are outside the language; of their {len(checked)} sentences")
print(f"{len(marked)} are marked, such as\n")
for sentence, error in marked[:4]:
    print(f"{sentence[:90]}\n   {error}")

# %% [markdown]
# Where the checker finds nothing, the grammar objects to something else: a seventh sentence, say, or praise and blame joined by *et*, which is correct French and yet never
# written in this language. Note that one slip among forty pieces is enough to fall out of the language. A small divergence at each piece adds up.
#
# ## What this does not show
#
# Our language has some thousand words and few hidden facts per review, and is written by rules. Real text has no known floor: the loss of a real model can only be compared with other models. A model this
# close to the truth is possible here because the truth is small. And a low loss says nothing yet about usefulness for *other* tasks. Whether the body that was trained here helps to tell
# praise from blame with few labels is the question of lesson 09.

# %% [markdown]
# ## Questions
#
# A few questions before you write code. Pick an answer, and read what it gets back: each wrong one is told what is wrong with it. In your own copy there are buttons to press; on a page without a kernel each answer opens on a click.

# %%
course.quiz("pretraining")

# %% [markdown]
# ## Exercises
#
# Four short functions, which together are nearly a language model's whole business but for the model itself. Each has a cell with dots and a cell that checks what you wrote: it says where your answer differs, on the smallest input it could find, and, if it knows the mistake,
# what it is. While there are only dots, it says "not attempted yet", and nothing else waits for you.
#
# ### Exercise: questions and answers
#
# `Level 1/5 · 5 minutes · outcome 1`
#
# Write `shift_targets(token_ids)`. `token_ids` has shape (B, T), and the marks for beginning and end are in it already. It returns the pair `(inputs, targets)`, both of shape (B, T - 1): the target at place $t$ is the token that follows the input at place $t$, in the same row. Nothing
# is invented and nothing rolled round. *It trains* the shift, which nothing complains about when it is forgotten.
#
# <details><summary>Hint</summary>
#
# Write a row of four ids on paper, and below each the one that follows. For one of them nothing follows, so it can only be an answer; another is nobody's successor, so it can only be a question.
#
# </details>


# %%
def shift_targets(token_ids):
    ### BEGIN SOLUTION
    return token_ids[:, :-1], token_ids[:, 1:]  # (B, T - 1) each
    ### END SOLUTION


# %%
course.check("shift_targets", shift_targets)

# %% [markdown]
# ### Exercise: the loss
#
# `Level 3/5 · 15 minutes · outcome 2`
#
# Write `language_model_loss(logits, targets, pad_id)`. `logits` has shape (B, T, V); `targets` has shape (B, T), is shifted already, and holds `pad_id`, an id of the vocabulary like any other, where a row is filled up. Return one number: the mean surprise, $-\ln p$ in **nats**, over
# all real targets of the batch together. Each row has at least one. *It trains* picking one entry in each distribution, and leaving the padding out of sum *and* count.
#
# <details><summary>Hint</summary>
#
# `log_softmax` along the vocabulary, then pick: `gather` wants an index with as many axes as the scores, so the targets need one more, of length 1. Select with `targets != pad_id` before you take the mean. Padding is left out as a *target* only; the softmax runs over all V.
#
# </details>


# %%
def language_model_loss(logits, targets, pad_id):
    ### BEGIN SOLUTION
    log_probs = logits.log_softmax(dim=-1)  # (B, T, V)
    surprise = -log_probs.gather(-1, targets[:, :, None])[:, :, 0]  # (B, T)
    return surprise[targets != pad_id].mean()
    ### END SOLUTION


# %%
course.check("language_model_loss", language_model_loss)

# %% [markdown]
# ### Exercise: perplexity of a text
#
# `Level 1/5 · 5 minutes · outcome 2`
#
# Write `perplexity(total_nats, n_tokens)`, which returns one number. `total_nats` is the *sum* of all surprises of a text, in nats; `n_tokens`, a whole number of at least 1, says how many tokens were predicted. Lay it beside the example by hand: three tokens with a sum of $6 \ln 2$ have the perplexity
# 4. *It trains* keeping sum, mean and exponential in their order.
#
# <details><summary>Hint</summary>
#
# Perplexity belongs to a token, not to a text: a text twice as long is not twice as surprising per token. And nats go with one particular base.
#
# </details>


# %%
def perplexity(total_nats, n_tokens):
    ### BEGIN SOLUTION
    return math.exp(total_nats / n_tokens)
    ### END SOLUTION


# %%
course.check("perplexity", perplexity)

# %% [markdown]
# ### Exercise: ways to draw
#
# `Level 4/5 · 20 minutes · outcome 5`
#
# Write `next_token_probs(logits, temperature, top_k, top_p)`: from logits of shape (V,) the probabilities, shape (V,), with which the next token is drawn. In this order: divide by the temperature (positive); keep the `top_k` largest; of these keep the smallest set of most probable tokens whose
# probability reaches `top_p`, the one that crosses included; make the rest sum to one. `None` for `top_k` or `top_p` switches that step off. There are no ties. *It trains* filtering in sorted order, and finding the way back.
#
# <details><summary>Hint</summary>
#
# Sort the probabilities, and keep the order: it is needed to put them back. For top-p ask, for each token, what all *likelier* ones hold together; it stays as long as that is below `top_p`. (That is `cumsum` without the token itself.) So the first always stays. Try 0.4, 0.3, 0.2, 0.1 with
# `top_p` = 0.8 on paper.
#
# </details>


# %%
def next_token_probs(logits, temperature, top_k, top_p):
    ### BEGIN SOLUTION
    probs, order = (logits / temperature).softmax(dim=-1).sort(descending=True)  # (V,)
    if top_k is not None:
        probs[top_k:] = 0.0
    if top_p is not None:
        likelier = probs.cumsum(dim=0) - probs  # what stands before each
        probs[likelier >= top_p] = 0.0
    put_back = torch.zeros_like(probs).scatter(0, order, probs)
    return put_back / put_back.sum()
    ### END SOLUTION


# %%
course.check("next_token_probs", next_token_probs)

# %% [markdown]
# ### Try it yourself
#
# **1.** Somebody says: "a language model that reads from left to right uses the context on the right, since the next word stands there." What is wrong?
#
# <details><summary>Answer</summary>
#
# The next word is the *target*, not context. When position $t$ answers, it has read the tokens up to $t$ and nothing to the right of them: the causal mask sees to that. Context from the right is what a
# masked model has (lesson 10). If a left-to-right model could see to the right, its loss would fall through the floor, as above.
#
# </details>
#
# **2.** Set `beginning` to `J'ai adoré cette saga. La fin est belle. La` and look for *saga* among the bars. Then let the first sentence be about `ce livre`. What does the truth do, and does the model follow?
#
# <details><summary>What you find</summary>
#
# A review calls its book by the same name again and again. So in truth *saga* is likely once it has been named, two sentences ago, and unlikely otherwise. How far the model's bar follows shows whether it has learned to look back
# for the name, as it has to look back for praise and blame.
#
# </details>
#
# **3.** A colleague's loss on a vocabulary of 32,000 pieces starts at 31. What do you suspect? And if it starts at 3?
#
# <details><summary>Answer</summary>
#
# $\ln 32{,}000 \approx 10.4$. At 31 the untrained model is confidently wrong: its first logits are far too large, so look at the initialisation, or at a missing scale. At 3 it already knows something that it cannot
# know: an answer leaks, or the weights are not new.
#
# </details>
#
# ## Summary
#
# - A text of $T$ tokens gives $T + 1$ questions; the targets are the inputs shifted by one. Without the shift the loss falls below the floor, and the model has learned to copy.
# - Loss is the mean of $-\ln p$ in nats, perplexity its exponential; before training they are $\ln V$ and $V$.
# - Expected loss is the entropy of the language plus the divergence of the model. With both lines drawn, counting model and floor, a curve has a meaning.
# - What remains to be learned sits in the words that depend on sentences far back.
# - Temperature, top-k and top-p trade variety for safety, and here each text can be checked exactly.
#
# *Where this comes from:* Shannon, *Prediction and Entropy of Printed English*, Bell System Technical Journal 30 (1951), for guessing the next letter as a measure of a language.
# Bengio et al., *A Neural Probabilistic Language Model*, JMLR 3 (2003), section 2. Radford et al., *Improving Language Understanding by Generative Pre-Training* (2018), section 3.1, for pretraining with this
# objective. Holtzman et al., *The Curious Case of Neural Text Degeneration*, [arXiv:1904.09751](https://arxiv.org/abs/1904.09751), section 3.1, for top-p. Witten and Bell, *The Zero-Frequency Problem*, IEEE Transactions on
# Information Theory 37 (1991), method C, for the counting model.
#
# *Next:* lesson 09 takes the body of such a model, puts another head on it, and asks what the pretraining was worth.
