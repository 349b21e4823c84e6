# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 15 · Real text and real models
#
# **Does it hold outside?**
#
# After this lesson you can
#
# 1. say in numbers how real text differs from ours: rare words, words never met before, broken rows, repeated texts;
# 2. find texts that are in train and in test, although no comparison of strings shows it;
# 3. answer "is pretraining worth it?" from stored results, with baselines and paired intervals, and say which figures must not be compared;
# 4. count the parameters of CamemBERT and its relatives, and name what is different from our own model: sizes, norms and positions;
# 5. carry weights from a published model into ours and back, and prove that nothing was lost on the way.
#
# *You need:* lessons 08 and 09; lesson 06 for the counts. *It takes:* an hour to read; a minute to run on two cores. Nothing is downloaded.

# %% [markdown]
# ## Set-up
#
# The last part compares with the models of the package `transformers`, if only with small or empty ones. Its progress bars and hints are switched off, so that they do not fill the page. `scikit-learn` makes the bag of words. (Both come with `make course`.)

# %%
import contextlib
import dataclasses
import math
import re
import tempfile
import textwrap
import unicodedata
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch
import transformers
from IPython.display import Markdown

import tinytx as tx
import tinytx_course as course
from tinytx.text.corpora import label_subset
from tinytx.training.evaluate import evaluate_language_model
from tinytx.training.fit import fit
from tinytx.training.generate import generate, generate_ids
from tinytx.training.intervals import paired_interval, wilson_interval
from tinytx.training.recipes import default_budget
from tinytx_course import plots
from tinytx_course.results import read_results

_ = torch.manual_seed(0)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
folder = Path(tempfile.mkdtemp())  # for the files that this lesson writes

# %% [markdown]
# Two questions from earlier lessons first.

# %%
course.recall("15")

# %% [markdown]
# ## Why: the number from home
#
# All lessons so far spoke of a language that we made ourselves. There we know every truth, and pretraining pays. Here is the stored result of lesson 09: the gain with fifty labels, in points of accuracy, as an interval over seeds.

# %%
home = [one for one in read_results("transfer").data.values() if one["n_labels"] == 50]
ends = {"pretrained": {}, "scratch": {}, "frozen": {}}
for one in home:
    ends[one["start"]][one["origin"]["budget"], one["seed"]] = 100 * one["accuracy"]
gains = [ends["pretrained"][run] - ends["scratch"][run] for run in ends["scratch"]]
at_home = paired_interval(gains)
print(f"in our own language, 50 labels: pretraining brings {at_home.mean:+.1f} points", end=" ")
print(f"[{at_home.low:+.1f}, {at_home.high:+.1f}], {len(gains)} seeds")

# %% [markdown]
# The tempting next step: "so it will bring as much for real book reviews". Write down your own guess now, a number of points, for French customer reviews with 200 labels, and another one for how a simple bag of words will do on the same texts. The answer
# is half-way down this page. The measurement is too long for this page; we read its stored results.
#
# First we need to know what "outside" is like.
#
# ## Text that lies on every machine
#
# Real prose need not be downloaded. Every Python comes with its own documentation, and so does every package: the *docstrings* in their source. The corpus `docstrings` parses those files (it runs none of them), keeps the sentences, and
# leaves out code blocks, tables of parameters and what was said before. What you get depends on what you have installed: the figures on this page are those of one machine.

# %%
from tinytx_course.labs.lesson_15 import docstrings_corpus, gathered, installed, packages_corpus

docs = docstrings_corpus()
for name, split in docs.splits.items():
    n_words = sum(len(text.split()) for text in split.texts)
    print(f"{name:<6}{len(split):>8,} documents{n_words:>10,} words")
for text in docs.test.texts[:3]:
    print(textwrap.fill("- " + textwrap.shorten(text, 230), 88, subsequent_indent="  "))

# %% [markdown]
# A document is the prose of one docstring. All docstrings of a file are put into the same part of the corpus, for a file repeats itself: random documents of it would turn up in train *and* test.
#
# Which package talks most? Guess the first three before you look.

# %%
counts = sorted(gathered(installed()).counts, key=lambda one: -one.n_words)
fig, ax = plots.bars(
    {f"{one.package} {one.version}": one.n_words / 1000 for one in counts},
    xlabel="thousand words of prose", numbers=",.0f",
    title="What the packages of this machine say",
)  # fmt: skip
plots.show(fig, "15_packages")

# %% [markdown]
# ### Rare words
#
# How is this text different from our reviews? Take equally many words of both. Sort the different words by how often they occur, and draw frequency against rank, both on logarithmic axes, as in lesson 01. For a real language George Zipf found roughly a straight line: the tenth word a tenth as
# often as the first. Our world has a vocabulary of about a thousand words. What will its curve do that the other does not?

# %%
def words_of(texts):
    return [word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())]


rng = np.random.default_rng(0)
world = tx.load_corpus("world")
mixed = docs.train.take(rng.permutation(len(docs.train)).tolist())  # of all packages
read = {"world": words_of(world.train.texts), "docstrings": words_of(mixed.texts)}
n_read = min(map(len, read.values()))
read = {name: words[:n_read] for name, words in read.items()}
for name, words in read.items():
    print(f"{name:<11}{n_read:,} words, {len(set(words)):>7,} different")

# %%
lines = []
for name, words in read.items():
    often = np.array([count for _, count in Counter(words).most_common()]) / n_read
    ranks = np.unique(np.geomspace(1, len(often), 80).astype(int))
    lines.append(plots.Curve(name, ranks, 1e6 * often[ranks - 1]))
lines.append(plots.Curve("Zipf: first / rank", ranks, 1e6 * often[0] / ranks, dashed=True))
fig, ax = plots.curves(
    lines, xlabel="rank of the word", ylabel="times in a million words",
    x_log=True, y_log=True, title="Real text has a long tail",
)  # fmt: skip
plots.show(fig, "15_zipf")

# %% [markdown]
# Our world simply ends; the docstrings go on. That tail is no detail. A model meets a frequent word thousands of times and a rare one once; and many words of tomorrow's text it has never met at all. How many? Read the first $n$ words, then ask how large a part of the *held-out* text consists of words that were not among them.
# When does the world reach zero, and what about the docstrings?

# %%
held_out = {"world": words_of(world.test.texts), "docstrings": words_of(docs.test.texts)}
print("words read" + "".join(f"{name:>13}" for name in read))
for n in (1_000, 10_000, 100_000, n_read):
    shares = []
    for name, words in read.items():
        known = set(words[:n])
        shares.append(np.mean([word not in known for word in held_out[name]]))
    print(f"{n:>10,}" + "".join(f"{share:>13.2%}" for share in shares))

# %% [markdown]
# In the last row the world holds next to no surprise, and the docstrings still bring new words. This is one reason why real models read subwords instead of words (lesson 01).
#
# ## Real text is dirty
#
# Sooner or later you bring a file of your own. Here is one: a label, a tab and a review on each line, as a colleague might send it. Four lines are broken, each in another way. Find them before the program does.

# %%
good = [f"{i % 2}\t{('Raté', 'Réussi')[i % 2]}, tome {i}." for i in range(16)]
rows = [row.encode() for row in good]
rows[2] = b"Superbe, et vite lu."
rows[5] = "1\tUne histoire émouvante.".encode("latin-1")
rows[9] = "positif\tTrès bien écrit.".encode()
rows[12] = b"0\t "
(folder / "dirty.tsv").write_bytes(b"\n".join(rows))
for number, row in enumerate(rows, 1):
    print(f"{number:>2}  {row.decode('utf-8', 'replace')}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Two bad ways to deal with it are common. One is to stop at the first broken line with a message about line 1 of something deep inside a library. The other, worse, is to drop what does not fit and to say nothing: then no one notices when half the file is gone. What
# would you want the message to say?

# %%
with contextlib.chdir(folder):
    try:
        tx.load_corpus("dirty.tsv")
    except ValueError as problem:
        print(textwrap.fill(str(problem), 88))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The message names the first bad line and what is wrong there. Then it counts the bad rows, and names every other kind of mistake with the line of its first row. If you decide to leave such rows out, you say so, `skip_bad_rows=True`, and the warning adds how many rows are left.


# %%
def with_warnings(read):
    with contextlib.chdir(folder), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = read()
    for one in said:
        print(textwrap.fill(str(one.message), 88))
    return found


corpus = with_warnings(lambda: tx.load_corpus("dirty.tsv", skip_bad_rows=True))
print({name: len(split) for name, split in corpus.splits.items()})
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### The same letter, three ways
#
# Line 6 was written in another *encoding*. Bytes do not say which letters they mean. Read UTF-8 as Latin-1, and each accent becomes two strange signs; both look like text, so no program complains. And even within one encoding *é* can be one sign, or an *e* followed by an accent that is drawn above it. What will the second comparison say?

# %%
print("été read wrongly:", "été".encode().decode("latin-1"))
one_sign, two_signs = (unicodedata.normalize(form, "été") for form in ("NFC", "NFD"))
print(one_sign, two_signs, "equal:", one_sign == two_signs)
print("lengths", len(one_sign), len(two_signs))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# To a tokenizer these are different texts, made of tokens that it has hardly ever seen. So bring texts into one form, once, when they are read.
#
# ### Repeats between train and test
#
# The most expensive dirt is a text that is in train *and* in test: a **leak**. A model that learns it by heart knows the answer, without having understood anything. Here is a folder of the reader's own, with a file for each part. How many of the four test reviews are leaked?

# %%
own = folder / "own"
own.mkdir()
learned = ["L'histoire est belle !", "Quel ennui.", "Un livre à relire.", "Rien à sauver."]
learned += [f"Tome {i} : {word}." for i in range(1, 6) for word in ("je recommande", "décevant")]
asked = ["Un livre à relire.", "l’histoire est belle", "RIEN, à sauver...", "Une belle fin."]
for name, texts in (("train", learned), ("test", asked)):
    rows = [f"{1 - i % 2}\t{text}" for i, text in enumerate(texts)]
    (own / f"{name}.tsv").write_text("\n".join(rows), encoding="utf-8")
corpus = with_warnings(lambda: tx.load_corpus("own"))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# One is found, word for word.
#
# ### Repeats that no comparison of strings finds
#
# But look at the test reviews again. The second and the third are in train as well, only with another apostrophe, other capitals, other signs. For a person they are the same text. What survives all this are the *words*: runs of letters and digits, in lower case. The package has a function for it, and one of the exercises below asks you for yours.

# %%
from tinytx_course.labs.lesson_15 import same_text

seen = {same_text(text) for text in learned}
for text in asked:
    mark = "leaked" if same_text(text) in seen else "new"
    print(f"{mark:<7} {text:<22} {same_text(text)!r}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# And how clean are the docstrings? No text occurs twice; that was ensured when they were gathered. But people copy *sentences*. So we count softer: which share of the test documents has eight words in a row that also occur in train, in the same order? Guess: one in a hundred, one in ten, one in three?


# %%
def runs(text, n=8):
    words = words_of([text])
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}


in_train = set().union(*map(runs, docs.train.texts))
long_enough = [found for found in map(runs, docs.test.texts) if found]
shared = np.mean([not found.isdisjoint(in_train) for found in long_enough])
print(f"{shared:.0%} of {len(long_enough):,} test documents have such a run of eight words")
del in_train

# %% [markdown]
# Real text quotes itself. That is no mistake to be mended, but to be known: some of what looks like prediction on such a text is memory. The makers of large models report such overlaps for the same reason.
#
# ## Pretrain on it
#
# Now a model like that of lesson 08, with fewer steps, on some of the documents. The baseline is an n-gram model, which only *counts* which token followed which, in the same text with the same tokenizer. There is no exact entropy bound any more: the entropy of docstrings is not known. Which one will have the lower held-out loss, the transformer or the counts? Decide before you run it.

# %%
from tinytx.text.ngrams import NGramModel

smoke = default_budget() == "smoke"
n_read, shorter = (2_000, {}) if smoke else (10_000, {"n_steps": 200, "tokens_per_batch": 2_048})
faster = {"optimizer": "muon", "lr": 1e-2, "decay": "linear", "final_lr_fraction": 0.0}
some = docs.valid.take(rng.permutation(len(docs.valid))[:200].tolist())
studied = dataclasses.replace(docs, train=mixed.take(range(n_read)), valid=some)
weights_at = {}


def keep(step, model):
    if step & (step - 1) == 0:  # 1, 2, 4, 8, ...
        state = model.state_dict()
        weights_at[step] = {name: weight.clone() for name, weight in state.items()}


pretrained = fit(
    studied, vocab_size=600 if smoke else 2_000, model_changes={"max_len": 128},
    training_changes=shorter | faster, on_step=keep, progress=False,
)  # fmt: skip
tokenizer = pretrained.tokenizer
pretrained

# %% [markdown]
# What does it read? Of all held-out documents of eight to ten words, take the one that needs the fewest tokens for its words, one in the middle, and the one that needs the most. Which words will be cut into the smallest tokens?

# %%
short = [text for text in docs.test.texts if 8 <= len(text.split()) <= 10]
short.sort(key=lambda text: len(tokenizer.pieces(text)) / len(text.split()))
picked = {"fewest": short[0], "middle": short[len(short) // 2], "most": short[-1]}
fig, ax = plots.token_rows(
    {name: tokenizer.pieces(text) for name, text in picked.items()},
    title="Three held-out docstrings as tokens",
)  # fmt: skip
plots.show(fig, "15_pieces")

# %% [markdown]
# The loss on 200 held-out documents, for the model as it was on the way, and for n-gram models of one to four tokens. Which of the four lines will the curve cross?

# %%
train_ids, some_ids = (tokenizer.encode_batch(part.texts) for part in (studied.train, some))
counting = NGramModel(order=4, vocab_size=tokenizer.vocab_size).fit(train_ids)
by_order = {n: counting.nats_per_token(some_ids, order=n) for n in (1, 2, 3, 4)}
then = tx.LanguageModel(pretrained.model.config)
losses = {}
for step, weights in weights_at.items():
    then.load_state_dict(weights)
    losses[step] = evaluate_language_model(then, tokenizer, some.texts).nats_per_token
n_steps, last = pretrained.recipe.settings.n_steps, pretrained.evaluation.score.nats_per_token
losses[n_steps] = last
lines = {f"{n} tokens counted" if n > 1 else "1 token": nats for n, nats in by_order.items()}
fig, ax = plots.curves(
    [plots.Curve("transformer", list(losses), list(losses.values()))], references=lines,
    xlabel="step (logarithmic)", ylabel="held-out loss (nats per token)", x_log=True,
    title="Held-out loss on docstrings",
)  # fmt: skip
plots.show(fig, "15_pretraining")
best_n = min(by_order, key=by_order.get)
winner = "the transformer" if last < by_order[best_n] else "counting"
n_tokens = n_steps * pretrained.recipe.settings.tokens_per_batch
print(f"transformer {last:.3f}, best count ({best_n} tokens) {by_order[best_n]:.3f}: {winner} wins")
print(f"the transformer read up to {n_tokens / sum(map(len, train_ids)):.1f} times the training text")

# %% [markdown]
# Counting reads the training text once, and is done. What has the transformer picked up? Read the continuations for grammar, for topic, and for truth.

# %%
for seed, prompt in enumerate(("Return the", "This function", "If the array", "The user")):
    said = generate(
        pretrained.model, tokenizer, prompt,
        max_new_tokens=30, temperature=0.7, top_p=0.9, seed=seed,
    )  # fmt: skip
    print(textwrap.fill(f"{said}", 88, subsequent_indent="    "))

# %% [markdown]
# ## Does it pay? Here and now
#
# A question with labels that everybody has: *which package does this text come from?* The corpus `docstrings-packages` asks it. Sentences that name a package are taken out, and test texts come from files that the model above has not read. The baseline is a **bag of words**: how often each word and each pair of words occurs,
# rare ones weighing more (TF-IDF), and a linear model on top. Two seeds each: too few for an interval. Fine-tuning is short, to save time: 6 epochs and the rate 2e-3 were chosen on the test texts of seed 0, so its accuracies may be a little too high. Rank the three before you run it.

# %%
from tinytx_course.labs.lesson_15 import bag_of_words

packages = packages_corpus()
n_classes, n_labels = len(packages.label_names), 20 * len(packages.label_names)
right = np.array(packages.test.labels)
few_steps = {} if smoke else {"tokens_per_batch": 768, "lr": 2e-3}


def tuned(seed, fresh):
    run = fit(
        packages, objective="classification", start=pretrained, fresh=fresh, seed=seed, n_labels=n_labels,
        n_epochs=None if smoke else 6, training_changes=few_steps, n_scored=50, progress=False,
        report=lambda line: None,
    )  # fmt: skip
    return run.evaluation.score.accuracy


def counted(seed):
    labelled = label_subset(packages.train, n_labels, seed)
    return np.mean(bag_of_words(labelled, packages.test.texts, seed) == right)


seeds = (0,) if smoke else (0, 1)
live = {"pretrained": [tuned(seed, False) for seed in seeds]}
live["from scratch"] = [tuned(seed, True) for seed in seeds]
live["bag of words"] = [counted(seed) for seed in seeds]
assert np.mean(live["bag of words"]) > np.mean(live["from scratch"])
print(f"{n_classes} packages, {n_labels} labels, {len(right):,} test texts", end="; ")
print(f"chance {1 / n_classes:.3f}")
for name, found in live.items():
    print(f"{name:<14}" + "".join(f"{one:8.3f}" for one in found) + f"   mean {np.mean(found):.3f}")

# %% [markdown]
# The bag of words knows of word order only which words are neighbours, and is far ahead of the transformer from scratch. How can that be? For some packages, here are the words that are frequent in their training texts and rare in those of others.

# %%
tables = [Counter() for _ in packages.label_names]
for text, label in zip(packages.train.texts, packages.train.labels, strict=True):
    tables[label].update(set(words_of([text])))
everywhere = sum(tables, Counter())
for label in range(0, n_classes, 2):
    own_share = {w: (tables[label][w] + 1) / (everywhere[w] + n_classes) for w in everywhere}
    telling = sorted(own_share, key=lambda w: own_share[w] * math.sqrt(tables[label][w]))[-7:]
    print(f"{packages.label_names[label]:<12}", *reversed(telling))

# %% [markdown]
# *Single words* tell much. A linear model has one weight for each word and each pair (and class), and has nothing else to learn. A transformer from scratch must learn from the same few labels what a word is, how words combine, and what is asked. The pretraining above was short, and its embeddings began as random numbers. Most models of the stored results below start differently.
#
# ## Does it pay on real reviews?
#
# Now the question that this course grew out of: French book reviews by customers, praise or blame. `python -m experiments transfer --corpus cls-books` measured it. The reviews may be fetched but not passed on, so they are not in this project: `tinytx data get cls-books` brings them to your machine. Everything below reads the *stored* results. First the data:

# %%
from tinytx.text.download import dataset
from tinytx_course.labs.lesson_15 import display_name, kind_of, transfer_rows

books = dataset("cls-books")
stored = read_results("transfer-cls-books")
rows = transfer_rows(stored.data)
folds = {one["fold"]: one["n"] for one in stored.data.values() if one["repeat"] == 0}
n_left = sum(folds.values())
labelled = sum(books.layout[part][f"{part}.label"] for part in ("train", "valid"))
print(textwrap.fill(f"{books.description}. {books.citation}. Licence: {books.licence}.", 88))
print(f"{labelled:,} labelled reviews of the train part, {n_left:,} in {len(folds)} folds", end=" ")
print(f"({labelled - n_left} repeated, or labelled in two ways)")

# %% [markdown]
# ### The same folds for both
#
# How was it measured? The reviews are cut into six **folds**. Each fold is tested once, by models that learned from labels drawn out of the other five: so every review is tested, and none by a model that saw it, with its label or without. (The 2,000 reviews of the test part are not used.) All ways of learning get the *same* folds and the same labelled reviews. So, as with the seeds of lesson 09, the fold's luck drops out of the difference:
# mean of the six differences, plus and minus $t \cdot s / \sqrt{6}$. By hand, on three folds:

# %%
ours, theirs = [72.0, 78.0, 69.0], [70.0, 74.0, 69.0]
gains = [a - b for a, b in zip(ours, theirs, strict=True)]
mean = sum(gains) / 3
s = math.sqrt(sum((gain - mean) ** 2 for gain in gains) / 2)
half = 4.303 * s / math.sqrt(3)  # Student's t for 95 % and two degrees of freedom
found = paired_interval(gains)
np.testing.assert_allclose((mean - half, mean + half), (found.low, found.high), atol=1e-2)
print(f"differences {gains}: mean {mean:.1f}, from {mean - half:+.1f} to {mean + half:+.1f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The number of epochs is fixed, and the linear models are tuned *within* the labels that they have. The learning rates were chosen on the same reviews, cut into other folds; so accuracies of fine-tuned models may be a little too high. And the folds learn from overlapping reviews, so the intervals are a little too narrow.
#
# Recall your two guesses from the beginning. Here is everything we measured with 200 labels, in a table. Next to the accuracy are the paired differences, each with its interval: from a transformer with new weights (*from scratch*), from the bag of words, and from a stronger bag that holds runs of letters too, so that *admirable* and *admiré* share something. **Bold** differences lie above 0 with all of their interval, those in *italics* below.

# %%
N = 200
OTHERS = {
    "scratch": "minus *from scratch*",
    "tfidf-logistic": "minus *bag of words*",
    "tfidf-letters": "minus *bag and letters*",
}


def written(gain):
    if gain is None:
        return "–"
    mark = "**" if gain.low > 0 else "*" if gain.high < 0 else ""
    return f"{mark}{100 * gain.mean:+.1f} [{100 * gain.low:.1f}, {100 * gain.high:.1f}]{mark}"


def table_of(rows, n):
    head = f"{n} labels", "learned first", "accuracy", *OTHERS.values()
    lines = [f"| {' | '.join(head)} |", "|---|---|---:|---|---|---|"]
    for row in sorted(rows, key=lambda row: -np.mean(row.accuracies)):
        if row.n_labels == n:
            accuracy = f"{100 * np.mean(row.accuracies):.1f}"
            paired = [written(row.gains.get(against)) for against in OTHERS]
            cells = [display_name(row.condition), kind_of(row.condition), accuracy, *paired]
            lines.append(f"| {' | '.join(cells)} |")
    return Markdown("\n".join(lines))


table_of(rows, N)

# %% [markdown]
# How to read the names:
#
# - *counts*: the embeddings are **co-occurrence embeddings**. Count which tokens occur together, take positive pointwise mutual information (PPMI), and reduce it by a singular value decomposition (SVD). This trains no transformer.
# - *masked* and *causal*: masked or next-token training on top. **All of these models start from co-occurrence embeddings, counted on the text that they read first; these remain frozen in pretraining and in fine-tuning.** So the gain over *from scratch* has two sources, and *counts* is the control that separates them.
# - The word after the comma is the text. *near*: readers' reviews of other books, and the tested corpus's own training reviews without labels. *novels* are a hundred years old, *tatoeba* are short everyday sentences.
# - *frozen*: a linear model reads the hidden states. *+ bag*: it reads the words too. *briefly*: fine-tuning in half the steps, at three tenths of the learning rate.
# - *stars*: up to 9,658 reviews of other books, from the sites Babelio and Critiques libres, each with a star rating by its reader. That makes thousands of further sentiment labels: a **neighbour** task, close to the task itself. *Star ratings first* is a transformer that learned to predict them from new weights; *then stars* did so after its embeddings were counted. *Predicted stars* are one more feature for a linear model: the rating that ridge regression predicts from words and letters.
#
# As a picture: points above and below the bag of words. The colour tells what was learned first.

# %%
bag, letters = "tfidf-logistic", "tfidf-letters"
few = sorted((row for row in rows if row.n_labels == N), key=lambda row: np.mean(row.accuracies))
gains_over_bag = {row.condition: row.gains[bag] for row in reversed(few) if bag in row.gains}
gains_over_bag.pop("majority", None)  # far below, and no news
assert list(gains_over_bag)[:2] == ["tfidf+linear-stars", "counts:readers+stars/tfidf+stars"]
assert all(gains_over_bag[name].low <= 0 <= gains_over_bag[name].high for name in ("stars", "counts:readers+stars"))
fig, ax = plots.figure(width=9.5, height=1.6 + 0.45 * len(gains_over_bag))
plots.bars(
    {display_name(name): 100 * gain.mean for name, gain in gains_over_bag.items()},
    intervals={display_name(n): (100 * gain.low, 100 * gain.high) for n, gain in gains_over_bag.items()},
    kinds={display_name(name): f"learned first: {kind_of(name)}" for name in gains_over_bag},
    numbers="+.1f", xlabel="points more than the bag of words (95 % interval)",
    title=f"Real reviews, {N} labels", ax=ax,
)  # fmt: skip
plots.show(fig, "15_reviews_at_200")
print(textwrap.fill(stored.source_line(), 88))

# %% [markdown]
# And with fewer or more labels? The picture follows, for each kind, the way that was best at 200 labels, of those that were measured with other numbers as well. It adds three that must be compared: the masked model, fine-tuned; its control *counts*; and the plain bag of words. Where do you expect the bag of words to overtake the others, or to be overtaken?

# %%
by_name = {}
for row in sorted(rows, key=lambda row: row.n_labels):
    by_name.setdefault(row.condition, []).append(row)
followed = {}
for row in few:  # from the worst to the best: the best of a kind stays
    if len(by_name[row.condition]) > 1:
        followed[kind_of(row.condition)] = row.condition
lines = []
for name in dict.fromkeys([*followed.values(), "masked:near", "counts:near", bag]):
    of = [paired_interval(row.accuracies) for row in by_name[name]]
    mean, low, high = ([100 * getattr(x, end) for x in of] for end in ("mean", "low", "high"))
    labels = [row.n_labels for row in by_name[name]]
    lines.append(plots.Curve(display_name(name), labels, mean, low=low, high=high))
fig, ax = plots.curves(
    lines, xlabel="labelled reviews", ylabel="accuracy in percent", x_log=True,
    references={"a coin": 50}, title="What a label buys, outside",
)  # fmt: skip
ticks = sorted({row.n_labels for row in rows})
ax.set_xticks(ticks, [f"{n:,}" for n in ticks])
ax.minorticks_off()
plots.show(fig, "15_label_efficiency")

# %% [markdown]
# The next table compares like with like, on the same folds and labels. Six rows hold the same classifier with and without pretraining; three compare two classifiers: a transformer with a bag of words. Which pair would you look at to see what masked training added? **Bold** differences are above 0 with all of their interval, those in *italics* below; a dash was not measured.

# %%
def gain_of(rows, one, other, n):
    at = {row.condition: row.accuracies for row in rows if row.n_labels == n}
    if one in at and other in at:
        return paired_interval(np.subtract(at[one], at[other]).tolist())


def like_with_like(rows, pairs):
    n_labels = sorted({row.n_labels for row in rows})
    lines = [f"| points | {' | '.join(f'{n:,}' for n in n_labels)} |"]
    lines.append("|---|" + "---|" * len(n_labels))
    for pair in pairs:
        cells = " | ".join(written(gain_of(rows, *pair, n)) for n in n_labels)
        lines.append(f"| {' *minus* '.join(map(display_name, pair))} | {cells} |")
    return Markdown("\n".join(lines))


for n in (50, 100, 200, 400):
    whole = gain_of(rows, "masked:near", "scratch", n)
    assert gain_of(rows, "counts:near", "scratch", n).mean > whole.mean / 2 and whole.low > 0
assert gain_of(rows, "masked:near", bag, 50).low > 0 > gain_of(rows, "masked:near", bag, 400).mean
assert all(gain_of(rows, "masked:near", bag, n).low < 0 < gain_of(rows, "masked:near", bag, n).mean for n in (100, 200))
assert gain_of(rows, "masked:near", letters, 50).mean > 0
alone = {row.condition for row in rows if kind_of(row.condition) == "text"}
alone = {name for name in alone if not name.endswith(("/tfidf", "/letters"))}
compared = [gain_of(rows, name, letters, n) for name in alone for n in ticks]
assert all(gain.low <= 0 for gain in compared if gain)
like_with_like(
    rows,
    [
        ("masked:near", "scratch"), ("counts:near", "scratch"), ("masked:near", "counts:near"),
        ("causal:near", "scratch-causal"), ("masked:near", bag), ("causal:near", bag),
        ("masked:near/tfidf", bag), ("masked:near/letters", letters), (letters, "scratch"),
    ],
)  # fmt: skip

# %% [markdown]
# Read it line by line. The first line is large, and the second shows that most of it comes from the co-occurrence embeddings alone. What masked training adds to them is the third line. The last three lines concern the linear models: with the letters in both classifiers, hidden states add little, and the last line is the gain of the bag with letters over a transformer from scratch, *without any pretraining*.
#
# Two cautions. With 1,600 labels the six folds share most of their training reviews, so those intervals are too narrow. And among some forty intervals of 95 percent some may exclude 0 by chance.
#
# Another way to say it: how many labels is reading worth? The line of *from scratch* tells how many labels a new transformer needs for an accuracy; so read it the other way round.

# %%
alone = by_name["scratch"]
accuracies = [np.mean(row.accuracies) for row in alone]
logs = np.log([row.n_labels for row in alone])
for row in by_name.get("masked:near", []):
    accuracy = np.mean(row.accuracies)
    if accuracy < accuracies[-1]:
        needed = math.exp(np.interp(accuracy, accuracies, logs))
        print(f"{row.n_labels:>5,} labels after reading: {100 * accuracy:.1f}", end=", ")
        print(f"as from scratch with about {needed:,.0f}: {needed / row.n_labels:.1f} times as many")

# %% [markdown]
# These numbers are means without intervals, and the co-occurrence embeddings are in them.
#
# So the honest answer has three parts. *Against learning nothing first*, text of the same kind pays with 50 to 400 labels; most of the gain is in the co-occurrence embeddings. *Against a bag of words* the fine-tuned masked model is ahead with 50 labels; with 100 and 200 the intervals include 0, and with 400 its mean is lower. No model that only read text is, alone, ahead of the bag with letters by an interval above 0, though with 50 labels the mean of *masked, near* is higher. And *predicted stars*, added to the bag of words, help most. A transformer that learned star ratings first is, alone, neither ahead of the bag of words nor behind it by an interval without 0.
#
# ### The same shape on both sides
#
# One comparison above is not fair. *From scratch* looks both ways. A causal model attends only to the left, and with new weights that may be a handicap: find *from scratch, causal* in the table (its interval includes 0). So causal models must be compared with a *causal* model with new weights, and masked ones with a bidirectional one. In both columns the gain includes the co-occurrence embeddings. (A control *counts, causal* was not measured.)

# %%
at = {row.condition: row for row in few}
TEXTS = {
    "novels": "a hundred years old",
    "tatoeba": "short everyday sentences",
    "readers": "readers' reviews of other books",
    "around": "all three",
    "reviews": "the reviews themselves, no labels",
    "near": "readers, then the reviews",
    "all": "around, then the reviews",
}


def minus(name, other):
    if not {name, other} <= at.keys():
        return None
    one, two = at[name], at[other]
    assert one.seeds == two.seeds
    return paired_interval(np.subtract(one.accuracies, two.accuracies).tolist())


for text in ("novels", "tatoeba"):
    assert minus(f"masked:{text}", "scratch").low < 0 < minus(f"masked:{text}", "scratch").high
    assert minus(f"causal:{text}", "scratch-causal").low < 0 < minus(f"causal:{text}", "scratch-causal").high
lines = ["| pretrained on | which is | masked minus *from scratch* | causal minus *from scratch, causal* |"]
lines.append("|---|---|---|---|")
for text, what in TEXTS.items():
    pairs = (f"masked:{text}", "scratch"), (f"causal:{text}", "scratch-causal")
    lines.append(f"| {text} | {what} | {' | '.join(written(minus(*pair)) for pair in pairs)} |")
Markdown("\n".join(lines))

# %% [markdown]
# An interval above 0 says that co-occurrence embeddings and this kind of pretraining *together* paid for a model of this shape. Whether such a model is then the *best* way to answer is the question of the table.
#
# All of it is French. Reviews of other books helped; of novels and everyday sentences the intervals show no gain. Reading *everything* (*around*, *all*) in equally many steps was not ahead of the near text. The texts also differ in amount and age, and the reviews themselves, of which there are few, gave less than the readers'. So this does not prove that likeness is the cause.
#
# ### Careful, and wasteful
#
# Fine-tune the very same models with care, in 50 small steps, so that they lose little of what they know. Then masked training seems to teach nothing that helps. This is the row *briefly*. What does it lose?

# %%
brief = "masked:near/brief"
pairs = (brief, "scratch"), ("masked:near", brief), ("masked:near/probe", brief)
Markdown("\n".join(f"- {display_name(a)} minus {display_name(b)}: {written(minus(a, b))}" for a, b in pairs))

# %% [markdown]
# And on the way? After each pass over the 200 labelled reviews, every run of the experiment looked at a hundred tested reviews of its fold (it looked, and chose nothing by it). The lines are means over the folds. Where is each one when it ends?

# %%
lines = []
for name in ("masked:near", brief, "scratch"):
    runs = [one for one in stored.data.values() if (one["condition"], one["n_labels"]) == (name, N)]
    looks = [{look["epoch"]: look["accuracy"] for look in one["accuracy_by_epoch"]} for one in runs]
    if looks:
        epochs = sorted(set.intersection(*map(set, looks)))
        means = [100 * np.mean([look[epoch] for look in looks]) for epoch in epochs]
        lines.append(plots.Curve(display_name(name), epochs, means))
fig, ax = plots.curves(
    lines, xlabel="passes over the labelled reviews", ylabel="accuracy in percent",
    references={"a coin": 50}, title=f"Fine-tuning on {N} real reviews",
)  # fmt: skip
plots.show(fig, "15_careful")

# %% [markdown]
# "We found no gain" is a sentence about a search, not about the world. Before you write it, check that the method was tuned, on data you do not report. The hint was the last of the three differences: compare a linear model on *frozen* hidden states with brief training of all weights. When the frozen one is ahead, look at the training. (*From scratch* has a learning rate and a number of epochs of its own. If its search was too small, its row is too low.)
#
# ### What did not beat the bag of words
#
# A table of successes teaches half of the lesson. These were measured with 200 labels, too, and are not better than a plain bag of words, as far as the intervals can tell.

# %%
idle = {name: gain for name, gain in gains_over_bag.items() if gain.low <= 0}
for name, gain in idle.items():
    how = "worse" if gain.high < 0 else "open"
    print(f"{display_name(name):<36}{100 * gain.mean:+5.1f}  {how}")
print(f"{len(idle)} of {len(gains_over_bag)} ways")

# %% [markdown]
# ### A second task
#
# One task is one task. The same harness was run on `docstrings-packages`, the question of the live experiment above, with folds and 200 labels. There is much text of the very kind: all other docstrings. Is the order of the ways the same? Below the table again like with like.

# %%
try:
    second = transfer_rows(read_results("transfer-docstrings-packages").data)
except FileNotFoundError:
    second = []
missing = "Not measured: `python -m experiments transfer --corpus docstrings-packages` does it."
shown = [row for row in second if row.n_labels == N]
table_of(second, N) if second else Markdown(missing)

# %%
masked = "masked:docstrings"
task_2 = [
    (masked, "scratch"), ("counts:docstrings", "scratch"), (masked, "counts:docstrings"),
    ("causal:docstrings", "scratch-causal"), (masked, bag), (masked, letters),
    (f"{masked}/letters", letters),
]  # fmt: skip
if second:
    added = [
        gain_of(*pair, N).mean
        for pair in ((second, masked, "counts:docstrings"), (rows, "masked:near", "counts:near"))
    ]
    assert added[0] > added[1] and gain_of(second, masked, letters, N).low > 0
like_with_like(shown, task_2) if second else Markdown(missing)

# %% [markdown]
# Here a small transformer with co-occurrence embeddings, trained for 800 steps and fine-tuned on 200 labels, is *alone* ahead of the strongest bag, by an interval above 0. On the reviews no model that only read text was. Masked training adds more to the embeddings here than on the reviews.
#
# But this figure has a **leak by module**. The live corpus above puts all docstrings of a file into one part. The stored experiment does not: its folds are random over *documents*, and pretraining read the other docstrings of the same files. Near-duplicates, such as the same method of two classes, may be read by the pretrained models only. So the gain may be too high, by an amount that we have not measured. Folds grouped by module would settle it.

# %% [markdown]
# ### Figures that must not be compared
#
# Here are ten accuracies as their authors reported them, on the 2,000 *test* reviews of the same corpus, after training with 1,600 labels: from scratch, and from a checkpoint that was pretrained for hours on a GPU. Each is the best of its run's epochs. We did not repeat these runs. It is tempting to put the figures into the table above. They do not belong there, for three reasons. Try to name them before you read on.

# %%
solutions = {
    "from scratch": [75.3, 78.5, 76.4, 75.1, 76.7],
    "pretrained": [80.7, 80.0, 81.0, 79.4, 80.9],
}
bag_there = (81.6, 84.5)  # TF-IDF with logistic regression and with naive Bayes, same split
rng = np.random.default_rng(0)
for name, best_epochs in solutions.items():
    p = np.mean(best_epochs) / 100
    steady = rng.binomial(1_400, p, size=(4_000, 1))  # answers that stay from epoch to epoch
    changing = rng.binomial(600, p, size=(4_000, 15))  # and three in ten that change
    flattery = 100 * (((steady + changing) / 2_000).max(axis=1).mean() - p)
    low, high = wilson_interval(round(2_000 * p), 2_000)
    print(f"{name:<13} {min(best_epochs)} to {max(best_epochs)}", end="; ")
    print(f"best of 15 epochs flatters by {flattery:.1f}; a test of 2,000: ±{50 * (high - low):.1f}")
print(f"{'bag of words':<13} {bag_there[0]} to {bag_there[1]}; nothing to pick")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# One: the epoch was picked *on the test set*, which lesson 09 calls flattery; the cell repeats its simulation. Two: other reviews are tested, and eight times as many labels were learned from as in our table of 200. Three: their checkpoint was trained for hours on a GPU, ours for 2,200 steps on one core. And on that same split the bag of words is above all ten. Whether pretraining was worth it *there* is still
# a fair question, for scratch and pretrained were treated alike, flattery included; whether a transformer was worth it is another one.
#
# ## "Bonjour les"
#
# A classic last test is to let the model complete *Bonjour les*. Ours of lesson 08 does so in its small language. Here is one that learned real French: novels, sentences that people wrote for translation, readers' reviews. `python -m experiments completions` trained it and stored its completions. Before you read: will it greet anyone? Will the sentences be French? Will they
# mean anything?

# %%
french = read_results("completions")
completed = min(french.data.values(), key=lambda one: one["bits_per_character"])
best_count = min(completed["counts"].values())
print(textwrap.fill(f"{completed['model']}; learned from {completed['train']}", 88))
print(f"on {completed['valid']}:")
print(f"{completed['nats_per_token']:.3f} nats per token, the best count {best_count:.3f}")
print(f"{completed['bits_per_character']:.3f} bits per character")
print(textwrap.fill(french.source_line(), 88))
lines = ["| | |", "|---|---|"]
for one in completed["completions"]:
    rest = one["text"].removeprefix(one["prompt"]).replace("|", "\\|").replace("*", "\\*")
    end = "" if one["finished"] else " …"
    lines.append(f"| {one['way']} | **{one['prompt']}**{rest}{end} |")
Markdown("\n".join(lines))

# %% [markdown]
# *Greedy* takes the most probable token each time; the draws take one of the likelier ones by chance (lesson 08). Look at agreement (article, noun, verb) within three or four words, then at the sense over a whole line. Both are judged by the same loss.
#
# ## Real models: the same house with more floors
#
# CamemBERT is the model for French that many people use. Its configuration is public: 32,005 tokens, width 768, twelve layers of twelve heads, feed-forward 3,072, 514 rows of positions (`config.json` of camembert-base; arXiv 1911.03894). Build it, *without* its weights: on the device `meta` tensors have a shape and no memory. What will our closed form of lesson 06 say, and what does PyTorch
# count?

# %%
from tinytx.hf.convert import config_from_transformers, from_transformers, to_transformers
from tinytx_course.labs.lesson_15 import PUBLISHED

camembert = transformers.CamembertConfig(**PUBLISHED["CamemBERT base"].settings)
with torch.device("meta"):
    empty = transformers.CamembertForMaskedLM(camembert)
ours = config_from_transformers(camembert)
closed_form = tx.parameter_table(ours, head="masked")
assert closed_form.total == sum(p.numel() for p in empty.parameters())
print(f"{closed_form.total:,} by both counts")
named = ("d_model", "n_heads", "n_layers", "d_ff", "norm", "causal")
print({name: getattr(ours, name) for name in named})
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Equal to the last number. `config_from_transformers` wrote CamemBERT's settings as *ours*: no new kind of layer was needed, just a larger `TransformerConfig` with the norm last and no causal mask. Now its relatives. One decoder, two encoders, two pairs; each is one of the three models that you built in this course. Which one is the largest?

# %%
def both(n_layers, n_heads, d_ff):
    sizes = {"layers": n_layers, "attention_heads": n_heads, "ffn_dim": d_ff}
    return {f"{half}_{k}": size for half in ("encoder", "decoder") for k, size in sizes.items()}


bart = {"vocab_size": 50_265, "d_model": 768, "max_position_embeddings": 1_024}
marian = {"vocab_size": 59_514, "d_model": 512, "max_position_embeddings": 512}
marian |= {"pad_token_id": 59_513, "decoder_start_token_id": 59_513}
marian |= {"activation_function": "swish"}
gpt2, bert = PUBLISHED["GPT-2 small"].settings, PUBLISHED["BERT base"].settings
relatives = {
    "GPT-2 small": ("GPT2", "LMHeadModel", gpt2, "lm"),
    "BERT base": ("Bert", "ForMaskedLM", bert, "masked"),
    "CamemBERT base": ("Camembert", "ForMaskedLM", camembert.to_dict(), "masked"),
    "BART base": ("Bart", "ForConditionalGeneration", bart | both(6, 12, 3_072), "translation"),
    "Marian en-fr": ("Marian", "MTModel", marian | both(6, 8, 2_048), "translation"),
}
KINDS = {"lm": "LanguageModel", "masked": "MaskedLanguageModel", "translation": "Translator"}
print(f"{'':<16}{'our model':<20}{'norm':<6}{'positions':<11}{'closed form':>12}{'numel':>13}")
for name, (family, kind, settings, head) in relatives.items():
    config = getattr(transformers, f"{family}Config")(**settings)
    with torch.device("meta"):
        theirs = getattr(transformers, family + kind)(config)
    learned = sum(p.numel() for p in theirs.parameters() if p.requires_grad)
    ours = config_from_transformers(config)
    total = tx.parameter_table(ours, head=head).total
    assert total == learned, name
    print(f"{name:<16}{KINDS[head]:<20}{ours.norm:<6}{ours.positions:<11}", end="")
    print(f"{total:>12,}{learned:>13,}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The sizes are those of `gpt2` (Radford et al. 2019, table 2), `bert-base-uncased`, `camembert-base`, `facebook/bart-base` and `Helsinki-NLP/opus-mt-en-fr`, as their `config.json` states them. The table shows three more differences: which model, where the norm is, and how positions are encoded. (Activation, segments, dropout and tokenizer differ too.)
#
# ### Where the names and the axes differ
#
# If the numbers are the same, weights can move. Take a tiny CamemBERT with random weights, and build ours from it. Which of our tensors is which of theirs? Do not believe names: look for equal *contents*. Here is one block.

# %%
tiny = {"vocab_size": 97, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
tiny |= {"intermediate_size": 40, "max_position_embeddings": 34, "type_vocab_size": 1}
tiny_camembert = transformers.CamembertConfig(**tiny, pad_token_id=1)
theirs = transformers.CamembertForMaskedLM(tiny_camembert).eval()
for parameter in theirs.parameters():
    torch.nn.init.normal_(parameter, std=0.2)
ours = from_transformers(theirs)
for name, weight in ours.named_parameters():
    twins = [n for n, w in theirs.named_parameters() if torch.equal(w, weight)]
    if name.startswith("body.blocks.0.") and name.endswith("weight"):
        print(f"{name.removeprefix('body.'):<31}{twins[0].removeprefix('roberta.encoder.')}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Only names. In GPT-2 it is not so simple: queries, keys and values come out of **one** matrix, `c_attn`, and it is stored (in, out), the other way round than in `nn.Linear`. On paper first, with width 2: the matrix has two rows and six columns. Which four numbers are the keys, and how are they arranged in our `k_proj.weight`?

# %%
weight = torch.tensor([[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]])  # (D, 3 D), in by out
q, k, v = (part.T for part in weight.chunk(3, dim=1))  # each (D, D), out by in
print("k_proj.weight", k.tolist())
wrong = weight.reshape(3, 2, 2)[1]
print("by reshape   ", wrong.tolist(), "fits in shape, and is nonsense")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# A square matrix fits either way round, so no shape complains when it is wrong. That is why conversion is not done until *outputs* are compared. Same ids into both models, with padding on the right; how far may they differ at real tokens, in float32?

# %%
token_ids = torch.randint(5, 97, (2, 7))
token_ids[1, 4:] = 1  # padding
real = token_ids != 1
with torch.no_grad():
    due = theirs(token_ids, attention_mask=real.long()).logits
    got = ours(token_ids, real)
    back = to_transformers(ours)(token_ids, attention_mask=real.long()).logits
torch.testing.assert_close(got[real], due[real], atol=1e-5, rtol=1e-5)
torch.testing.assert_close(back[real], due[real], atol=1e-5, rtol=1e-5)
print("theirs, ours, and back again: equal to 1e-5 at", int(real.sum()), "real tokens")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### Ours as one of theirs
#
# The way back is worth as much: a model of ours, saved in *their* form, can be read by every tool that knows `transformers`; the tokenizer stays ours. Take the one that learned docstrings a moment ago. Causal, norm first: it will be a GPT-2. What ours has and GPT-2 lacks is rewritten, such as sinusoidal positions into a table of learned ones. Then
# `AutoModelForCausalLM`, which knows nothing of this course, opens the folder and writes. Will it write the same?

# %%
from tinytx.hf.convert import save_transformers

save_transformers(pretrained.model.cpu(), folder / "docstrings-gpt2", tokenizer)
print(sorted(path.name for path in (folder / "docstrings-gpt2").iterdir()))
loaded = transformers.AutoModelForCausalLM.from_pretrained(folder / "docstrings-gpt2").eval()
prompt = [tokenizer.bos_id, *tokenizer.encode("Return the")]
ids = torch.tensor([prompt])
real = torch.ones_like(ids)
written = loaded.generate(ids, attention_mask=real, do_sample=False, max_new_tokens=20)
mine = generate_ids(
    pretrained.model, prompt, eos_id=tokenizer.eos_id, top_k=1, max_new_tokens=20
)
assert written[0, len(prompt) :].tolist() == mine
print(type(loaded).__name__, "writes:", tokenizer.decode(written[0].tolist()[1:]))

# %% [markdown]
# The same tokens, one by one. And the way back once more, from the folder into our own class. Then everything of this course works on it, such as the explorer of lesson 02. What will the two layers look at in this sentence: neighbours, the same word, the beginning? This model was trained for some hundred steps only. Click on heads and rows.

# %%
again = from_transformers(str(folder / "docstrings-gpt2"))
sentence = "Return the sum of the elements of the array over the given axis."
pieces = ["[bos]", *(piece.replace("▁", "·") for piece in tokenizer.pieces(sentence))]
read_ids = [tokenizer.bos_id, *tokenizer.encode(sentence)]
course.widgets.attention(again, pieces, token_ids=read_ids, layer=0, query=len(pieces) - 2)

# %% [markdown]
# ### With a network
#
# The same commands load published weights, which have to be fetched once. This page did not test it. On a machine with a network:
#
# ```
# tinytx finetune camembert-base --corpus cls-books --out runs/camembert
# tinytx translate Helsinki-NLP/opus-mt-en-fr < lines.txt
# tinytx generate gpt2 --prompt "Bonjour les"
# ```
#
# A folder saved with `save_pretrained` does as well as a name. In Python, `from_transformers("camembert-base")` gives a model of ours with CamemBERT's weights, fit for `course.widgets.attention`, `training.finetune` and all the rest. Without a network the message says so, and how to copy a folder from elsewhere. A path to a missing folder is not mistaken for a name, so nothing is fetched by accident:

# %%
try:
    with contextlib.chdir(folder):
        from_transformers("./camembert-base")
except ValueError as problem:
    print(textwrap.fill(str(problem), 88))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## What this does not show
#
# - The docstrings are those of one machine; with other packages the figures change, and so may an order.
# - On the reviews, one small architecture was pretrained for at most 2,200 steps. What pretraining on text brings *here* says nothing about a hundred times the steps; published figures of CamemBERT on these reviews ([arXiv:1912.05372](https://arxiv.org/abs/1912.05372)) lie far above all that we measured.
# - The method that is followed over label counts was chosen at 200 labels by the very results that are shown: its bar there is a little flattered, as each best of several is.
# - No stored accuracy belongs to a model that was pretrained on text with embeddings of its own: all of those start from co-occurrence embeddings. The short live experiment is the only one without them.
# - No published weights were loaded here: the conversions were shown on random weights and on a model of our own.
# - Logits equal to 1e-5 were shown for random weights; for the trained model, equal greedy tokens. That published files hold what their papers describe is another question.
# - Accuracy is not use. We did not ask what a wrong answer costs.

# %% [markdown]
# ## Questions
#
# Before the code, a few questions. Pick an answer, and read what it gets back. In your own copy there are buttons to press; on a page without a kernel each answer opens on a click.

# %%
course.quiz("real_text_and_real_models")

# %% [markdown]
# ## Exercises
#
# Two small tools that you will need outside. Below each cell to fill in is its check, which says where your answer differs and, if it knows the mistake, what it is. While there are only dots, it says "not attempted yet".
#
# ### Exercise: find the leak
#
# `Level 2/5 · 10 minutes · outcome 2`
#
# Write `repeated_texts(train, test)` for two lists of texts. It returns a list: the positions in `test`, counted from 0 and in order, of the texts that are in `train` too. Two texts are the same if they have the same words in the same order; words are runs of letters and digits, and case does not count. *It trains* looking for what a
# comparison of strings does not see.
#
# <details><summary>Hint</summary>
#
# Turn each text into its list of words first: bring it to lower case, replace every character for which `str.isalnum` is false by a space, and `split()`. Lists can be compared; tuples can be put in a set.
#
# </details>


# %%
def repeated_texts(train, test):
    ### BEGIN SOLUTION
    def words(text):
        return "".join(sign if sign.isalnum() else " " for sign in text.lower()).split()

    seen = [words(text) for text in train]
    return [i for i, text in enumerate(test) if words(text) in seen]
    ### END SOLUTION


# %%
course.check("repeated_texts", repeated_texts)

# %% [markdown]
# ### Exercise: three matrices out of one
#
# `Level 3/5 · 10 minutes · outcome 5`
#
# Write `split_c_attn(weight)`. It gets GPT-2's `c_attn.weight` of shape (D, 3·D), in by out, with queries, keys and values side by side, and returns a tensor of shape (3, D, D): the weights of `q_proj`, `k_proj` and `v_proj` as `nn.Linear` holds them, out by in. *It trains* keeping apart what fits in shape and what is right.
#
# <details><summary>Hint</summary>
#
# `weight.chunk(3, dim=1)` cuts the columns into thirds. Each third is (in, out): transpose it. `torch.stack` puts three matrices on a new first axis. Try it on the two rows of six from above, and compare with paper.
#
# </details>


# %%
def split_c_attn(weight):
    ### BEGIN SOLUTION
    thirds = weight.chunk(3, dim=1)  # each (D, D), in by out
    return torch.stack([third.T for third in thirds])  # (3, D, D)
    ### END SOLUTION


# %%
course.check("split_c_attn", split_c_attn)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** Give `load_corpus` a file of your own: a `.txt` with a document a line, or a `.csv` with `text_column=` and `label_column=`. Pretrain on it as above. How does its share of new words compare with that of the docstrings?
#
# <details><summary>What to look for</summary>
#
# A small file has a high share of new words whatever its language, since little of its vocabulary was seen. Compare at equal numbers of words read, as the table does.
#
# </details>
#
# **2.** A friend measures 82.1 with a bag of words on a random split of all 4,000 labelled reviews, and 81.0 for a published transformer, and concludes that pretraining is useless. What would you ask?
#
# <details><summary>Answer</summary>
#
# Were repeats taken out before the split? Are both figures about the same test texts, with as many labels, and chosen without the test set? With how many seeds? And useless for whom: with 1,600 labels, or with 50?
#
# </details>
#
# **3.** You convert weights and compare *losses* over a text: 4.3123 against 4.3187. "Close enough, that is rounding." Is it?
#
# <details><summary>Answer</summary>
#
# No. Rounding in float32 shows in the sixth digit. A difference in the third means that something small is different: a norm's epsilon, a GELU of another kind, positions shifted by one at the end of long texts. Compare logits layer by layer, on a short text.
#
# </details>
#
# ## Summary
#
# 1. Real text has a long tail of rare words and of words never met before; our world ends after about a thousand. Broken rows should be counted and named, never dropped in silence.
# 2. Repeats between train and test should be looked for on *words*, not on strings, and taken out of train.
# 3. Is pretraining worth it? Ask: of what kind, on which text, with how many labels, against which baseline. On the reviews, predicted star ratings added to a bag of words gave the most. Among methods that only read text, co-occurrence embeddings gave most of the gain; the fine-tuned masked model was ahead of the bag of words with 50 labels and not with 400. Always measure the bag, too. Figures from other splits, label counts, choices and seeds cannot be compared.
# 4. CamemBERT, BERT, GPT-2, BART and Marian are our three models with other sizes, norms and positions; the closed form counts each of them to the last parameter.
# 5. A conversion is right when the *outputs* are equal. Shapes prove nothing.
#
# *Where this comes from:* Zipf, *Human Behavior and the Principle of Least Effort*, 1949. Book reviews: Prettenhofer and Stein, *Cross-Language Text Classification using Structural Correspondence Learning*, ACL 2010. Overlap of test and training text: Brown et al., [arXiv:2005.14165](https://arxiv.org/abs/2005.14165), section 4. Linear models as baselines: Wang and
# Manning, *Baselines and Bigrams*, ACL 2012. Word vectors from counts: Levy, Goldberg and Dagan, TACL 3, 2015. Training on a neighbouring task first: Phang et al., [arXiv:1811.01088](https://arxiv.org/abs/1811.01088). CamemBERT: Martin et al., [arXiv:1911.03894](https://arxiv.org/abs/1911.03894). BART: Lewis et al.,
# [arXiv:1910.13461](https://arxiv.org/abs/1910.13461). Marian: Junczys-Dowmunt et al., [arXiv:1804.00344](https://arxiv.org/abs/1804.00344).
