# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 15 · Real text
#
# **Does it pay outside?**
#
# After this lesson you can
#
# 1. find texts that are in train and in test although no comparison of strings shows it, and groups that a split must not divide;
# 2. compute TF-IDF by hand, and say what a bag of words knows of a text and what it does not;
# 3. read a curve of dose and response with its controls: where pretraining passes the bag of words, and which control rules out which explanation;
# 4. choose between a bag of words, a frozen probe and fine-tuning by measured numbers, and say which published figures must not be compared.
#
# *You need:* lessons 08 and 09. *It takes:* an hour to read; a minute to run on two cores. Nothing is downloaded.

# %% [markdown]
# ## Set-up
#
# `scikit-learn` makes the bags of words. (It comes with `make course`.) With the budget `smoke` everything runs, and little is learned.

# %%
import contextlib
import math
import re
import tempfile
import textwrap
import unicodedata
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown

import tinytx as tx
import tinytx_course as course
from tinytx.batching import pad_batch
from tinytx_course import plots
from tinytx_course.results import read_results
from tinytx_run.corpora import Split, label_subset
from tinytx_run.intervals import paired_interval, wilson_interval
from tinytx_run.recipes import default_budget

smoke = default_budget() == "smoke"
folder = Path(tempfile.mkdtemp())  # for the files that this lesson writes

# %% [markdown]
# Two questions from earlier lessons first.

# %%
course.recall("15")

# %% [markdown]
# ## Why: the number from home
#
# All lessons so far used a language that we made ourselves. There we know every truth, and pretraining pays. Here is the stored result of lesson 09: the gain with fifty labels, in points of accuracy, with its interval over seeds.

# %%
records = read_results("transfer").data.values()
home = [record for record in records if record["n_labels"] == 50]
ends = {"pretrained": {}, "scratch": {}, "frozen": {}}
for record in home:
    run = record["origin"]["budget"], record["seed"]
    ends[record["start"]][run] = 100 * record["accuracy"]
gains = [ends["pretrained"][run] - ends["scratch"][run] for run in ends["scratch"]]
at_home = paired_interval(gains)
print(f"our own language, 50 labels: {at_home.mean:+.1f} points", end=" ")
print(f"[{at_home.low:+.1f}, {at_home.high:+.1f}], {len(gains)} seeds")

# %% [markdown]
# The tempting next step is "it will bring as much for real reviews". Write down two guesses of your own before you go on. How many points does pretraining bring for English film reviews, with 200 labels and a small model? And how far above or below that model is a simple bag of words, on the same reviews?
#
# The answer comes in the second half of this page. First we need to know what is different outside, and how a measurement there can deceive us.
#
# ## Real text on this machine
#
# The package brings a small corpus of real prose: passages from novels by six French authors who died more than a century ago. Names of people and places are replaced by X. The label of a passage is its **author**, and its **group** is the novel that it comes from.

# %%
novels = tx.load_corpus("novels")
for name, split in novels.splits.items():
    n_words = sum(len(text.split()) for text in split.texts)
    n_novels = len(set(split.groups))
    print(f"{name:<6}{len(split):>6,} passages{n_words:>8,} words, {n_novels} novels")
print("authors:", ", ".join(novels.label_names))
for i in (0, 500):
    author = novels.label_names[novels.train.labels[i]]
    passage = textwrap.shorten(novels.train.texts[i], 220)
    print(textwrap.fill(f"{author}: {passage}", 88, subsequent_indent="  "))

# %% [markdown]
# ### Rare words
#
# How is this text different from our reviews? Take equally many words of both. Sort the different words by how often they occur, and draw frequency against rank, both on logarithmic axes. For a real language George Zipf found roughly a straight line: the tenth word a tenth as often as the first. Our world has a vocabulary of about a thousand words. What will its curve do that the other does not?

# %%
def words_of(texts):
    return [word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())]


world = tx.load_corpus("world")
read = {"world": words_of(world.train.texts), "novels": words_of(novels.train.texts)}
held_out = {"world": words_of(world.test.texts), "novels": words_of(novels.valid.texts)}
n_read = min(map(len, read.values()))
read = {name: words[:n_read] for name, words in read.items()}
lines = []
new = {}
for name, words in read.items():
    new[name] = np.mean(~np.isin(held_out[name], list(set(words))))
    print(f"{name:<8}{n_read:,} words, {len(set(words)):>6,} different;", end=" ")
    print(f"{new[name]:.1%} of the held-out words are new")
    frequency = np.array([count for _, count in Counter(words).most_common()]) / n_read
    ranks = np.unique(np.geomspace(1, len(frequency), 80).astype(int))
    lines.append(plots.Curve(name, ranks, 1e6 * frequency[ranks - 1]))
zipf = 1e6 * frequency[0] / ranks
lines.append(plots.Curve("Zipf: first / rank", ranks, zipf, dashed=True))
fig, ax = plots.curves(
    lines, xlabel="rank of the word", ylabel="times in a million words",
    x_log=True, y_log=True, title="Real text has a long tail",
)  # fmt: skip
plots.show(fig, "15_zipf")
assert new["world"] < 0.01 < 0.05 < new["novels"]

# %% [markdown]
# Our world simply ends; the novels go on. A model meets a frequent word thousands of times and a rare one once. The printed lines say how much of the *held-out* text consists of words that it has never met at all: next to nothing in our world, and still a good share in novels that it has not read. This is one reason why real models read subwords instead of words (lesson 01).
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
# Two bad ways to deal with it are common. One is to stop at the first broken line with a message about line 1 of something deep inside a library. The other, worse, is to drop what does not fit without a word: then no one notices when half the file is gone. What would you want the message to say?

# %%
with contextlib.chdir(folder):
    try:
        tx.load_corpus("dirty.tsv")
    except ValueError as problem:
        print(textwrap.fill(str(problem), 88))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The message names the first bad line and what is wrong there. Then it counts the bad rows, and names every other kind of mistake with the line of its first row. If you decide to leave such rows out, you ask for it, `skip_bad_rows=True`, and the warning adds how many rows are left.


# %%
def with_warnings(load):
    with contextlib.chdir(folder), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = load()
    for warning in caught:
        print(textwrap.fill(str(warning.message), 88))
    return result


corpus = with_warnings(lambda: tx.load_corpus("dirty.tsv", skip_bad_rows=True))
print({name: len(split) for name, split in corpus.splits.items()})
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### The same letter, three ways
#
# Line 6 was written in another *encoding*. Bytes do not say which letters they mean. Read UTF-8 as Latin-1, and each accent becomes two strange signs; both look like text, so no program complains. And even within one encoding *é* can be one sign, or an *e* followed by an accent that is drawn above it. Will two words that look the same be equal?

# %%
print("été read wrongly:", "été".encode().decode("latin-1"))
one_sign, two_signs = (unicodedata.normalize(form, "été") for form in ("NFC", "NFD"))
print(one_sign, two_signs, "equal:", one_sign == two_signs)
print("lengths", len(one_sign), len(two_signs))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# To a tokenizer these are different texts, made of tokens that it has hardly ever seen. Bring texts into one form, once, when they are read.
#
# ## Leaks
#
# The most expensive dirt is a text that is in train *and* in test: a **leak**. A model that learns it by heart knows the answer, without having understood anything. Here is a folder of the reader's own, with a file for each part. How many of the four test reviews are leaked?

# %%
own = folder / "own"
own.mkdir()
learned = ["L'histoire est belle !", "Quel ennui.", "Un livre à relire."]
learned += ["Rien à sauver."]
ends = "je recommande", "décevant"
learned += [f"Tome {i} : {end}." for i in range(1, 6) for end in ends]
asked = ["Un livre à relire.", "l’histoire est belle", "RIEN, à sauver..."]
asked += ["Une belle fin."]
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
# ### The leak that no comparison of texts finds
#
# Our novels have no repeated passages. Let us cut all of them into train and test in two ways: at random, and by novel, as the package does. A softer test for copies is the share of test passages with eight words in a row that also occur in train. It is next to nothing in both.


# %%
def runs_of_eight(text):
    words = words_of([text])
    return {tuple(words[i : i + 8]) for i in range(len(words) - 7)}


n_train = len(novels.train)
pooled = [getattr(novels.train, field) + getattr(novels.valid, field)
          for field in ("texts", "labels", "groups")]  # fmt: skip
passages = Split(*pooled)
order = np.random.default_rng(0).permutation(len(passages)).tolist()
cuts = {
    "at random": (passages.take(order[:n_train]), passages.take(order[n_train:])),
    "by novel": (novels.train, novels.valid),
}
for name, (train, test) in cuts.items():
    in_train = set().union(*map(runs_of_eight, train.texts))
    n_shared = sum(bool(runs_of_eight(text) & in_train) for text in test.texts)
    print(f"{name:<11}{len(train):,} and {len(test)} passages,", end=" ")
    print(f"{n_shared / len(test):.1%} share eight words")
    assert n_shared < 0.05 * len(test)

# %% [markdown]
# Now a simple model shall name the author of each test passage. It counts words and gives rare ones more weight; we open it in the next section. Both cuts have equally many passages to learn from, of the same six authors. **Predict 15.1.**

# %%
course.predict(
    "15.1",
    "How much lower is the accuracy when whole novels are held out?",
    ["less than 5 points", "5 to 25 points", "more than 25 points"],
)

# %%
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline


def bag_of_words(train):
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    reader = make_pipeline(vectorizer, LogisticRegression(C=100.0))
    return reader.fit(train.texts, train.labels)


bags = {name: bag_of_words(train) for name, (train, _) in cuts.items()}
accuracy, ends = {}, {}
for name, (_, test) in cuts.items():
    share = bags[name].score(test.texts, test.labels)
    low, high = wilson_interval(round(share * len(test)), len(test))
    accuracy[name], ends[name] = 100 * share, (100 * low, 100 * high)
fig, ax = plots.bars(
    accuracy, intervals=ends,
    xlabel="passages with the right author, percent", references={"a guess": 100 / 6},
    numbers=".0f", title="The same passages, cut in two ways",
)  # fmt: skip
plots.show(fig, "15_cuts")

# %% tags=["folded"]
lost = accuracy["at random"] - accuracy["by novel"]
assert ends["at random"][0] > ends["by novel"][1]
answer = "less than 5 points" if lost < 5 else "5 to 25 points"
course.resolve(
    "15.1",
    "more than 25 points" if lost > 25 else answer,
    f"{accuracy['at random']:.0f} percent at random, "
    f"{accuracy['by novel']:.0f} by novel: {lost:.0f} points "
    "of the first figure are no knowledge of authors.",
)

# %% [markdown]
# Which words does each model go by? For two authors, here are the words with the largest weights. Ask of each word whether it belongs to an author or to a plot.

# %%
for name, reader in bags.items():
    words = reader[0].get_feature_names_out()
    for label in (1, 5):
        heaviest = words[np.argsort(-reader[1].coef_[label])[:8]]
        print(f"{name:<11}{novels.label_names[label]:<9}", *heaviest)

# %% [markdown]
# Most are words of a plot: a captain, a prince, a palace. They name the author as long as train and test are passages of the same novels. In another novel by the same author the captain is gone. No passage is repeated, so no check of texts can complain, and yet nobody would see the first figure on a new book. **A split must not divide a group**: passages of a novel, reviews of a film, images of a patient, functions of a file. That is a **grouped split**.
#
# ## TF-IDF: what a bag of words weighs
#
# The bag of words is the **baseline** of this lesson, so let us open it. It forgets the order of words and counts them. Frequent words such as *the* say little. Hence each count is multiplied by the **inverse document frequency**, $\log(D / \mathrm{df})$: of $D$ training texts, $\mathrm{df}$ hold the word. A word of all texts gets weight 0. Then each row is divided by its length. By hand, for three short reviews:

# %%
train = ["a moving film", "a dull film", "a moving and honest story"]
bags_of = [text.split() for text in train]
vocabulary = sorted({word for bag in bags_of for word in bag})
idf, rows = {}, []
for word in vocabulary:
    df = sum(word in bag for bag in bags_of)
    idf[word] = math.log(len(train) / df)
for bag in bags_of:
    weights = [bag.count(word) * idf[word] for word in vocabulary]
    length = math.sqrt(sum(weight**2 for weight in weights))
    rows.append([weight / length for weight in weights])
pd.DataFrame(rows, columns=vocabulary, index=train).round(2)

# %% [markdown]
# *Dull* weighs most in its review: no other text has it. The word *a* weighs nothing. The base of the logarithm makes no difference, since it multiplies a whole row, which is then scaled.
#
# Vectorised, the same is three lines. The class of scikit-learn that we used above adds 1 to the logarithm, so a word of all texts does not vanish. By default it also adds 1 to $D$ and to $\mathrm{df}$, and drops words of one letter; the check below switches both off. With `sublinear_tf` it also takes $1 + \log$ of the count. On top of these columns comes a logistic regression: one weight for each word and class.

# %%
counts = [[bag.count(word) for word in vocabulary] for bag in bags_of]
counts = np.array(counts)  # (N, V)
log_share = np.log(len(train) / (counts > 0).sum(axis=0))  # (V,)
weighted = counts * log_share
scaled = weighted / np.linalg.norm(weighted, axis=1, keepdims=True)  # (N, V)
np.testing.assert_allclose(scaled, rows)
plus_one = counts * (log_share + 1)
plus_one /= np.linalg.norm(plus_one, axis=1, keepdims=True)
library = TfidfVectorizer(smooth_idf=False, token_pattern=r"\w+").fit_transform(train)
np.testing.assert_allclose(library.toarray(), plus_one)
print("the loop, numpy, and scikit-learn (with 1 added to the log) agree")

# %% [markdown]
# What can such a model not know? *Not good, but moving* and *not moving, but good* are the same bag to it. A word that was in none of the labelled texts has no weight at all, however plain its meaning. That is the opening for pretraining: a model that has read a million unlabelled reviews has met *tedious* before.
#
# ## The experiment: dose and response
#
# Does pretraining pay on real text? A doctor would ask about the dose. How much text must a model read before its 200 labels are worth more than in the hands of a bag of words? And does more help more? One architecture is pretrained, and stopped after each **dose** of tokens. Everything else stays the same.

# %%
plots.diagram("dose-and-response")

# %% [markdown]
# The data are 25,000 labelled film reviews and 50,000 unlabelled ones of *other* films (Maas et al. 2011). The files cannot be shipped; `python -m experiments pretraining` measures, and this page reads what it stored. One fold after another is tested, and the others are learned from: this is **cross-validation**. Folds are divided by film: no film is in two folds, and no unlabelled review is of a tested film or repeats a labelled text. The next cell prints the recipe from the store.

# %%
from tinytx_course.labs.lesson_15 import display_name, measured, millions, written

stored = read_results("pretraining")
search = stored.get("imdb/study/search")["origin"]
recipe, tried = search["recipe"], search["search"]
by_labels = measured(stored.data)
N = 200
films = by_labels[N]
body = tx.TransformerConfig(
    **{name: recipe[name] for name in ("vocab_size", "d_model", "n_heads", "n_layers")},
    d_ff=4 * recipe["d_model"], positions="rotary",
)  # fmt: skip
n_params = tx.parameter_table(body, head="classifier").total
n_folds = recipe["n_folds"]
draws = Counter(len(each) // n_folds for each in films.accuracies.values())
print(f"{body.n_layers} layers of width {body.d_model}: {n_params:,} parameters")
print(f"{n_folds} folds by film, {recipe['n_test']:,} test reviews in each;", end=" ")
print(f"{N} labels are drawn in each fold:", end=" ")
print(" and ".join(f"{k}× for {n} conditions" for k, n in sorted(draws.items())))
for way, inside in tried.items():
    what = "C" if "C" in inside else "lr"
    print(f"{way:<22}{len(inside[what])} values of {what}, chosen by {inside['by']}")

# %% [markdown]
# Nothing is chosen on the test reviews. Each way of learning may choose its regularisation or its learning rate *inside* its 200 labels, the pretrained model as well as its controls. What is compared was named before anything was measured:
#
# - **TF-IDF** of words and pairs of words, and a stronger one with runs of letters too;
# - **from scratch**: the same transformer with new weights, fine-tuned with the same search;
# - **random weights, frozen**: a linear model reads the hidden states of a transformer that has learned nothing;
# - **pretrained, frozen** and **pretrained, fine-tuned**, after each dose of plain next-token prediction. The embeddings begin at random and are trained.
#
# Both linear models read the same of each text: the mean of its embeddings and the mean of its last hidden states. So their difference is what pretraining put there. **Predict 15.2.**

# %%
course.predict(
    "15.2",
    "At which dose does the fine-tuned model pass TF-IDF of words, by its mean?",
    ["at 1 million tokens or before", "at 3 or 10 million",
     "at 30 million, or at no dose that was measured"],
)  # fmt: skip

# %%
tuned, frozen = films.doses("causal", "tuned"), films.doses("causal", "probe")
lines = []
for name, doses in (("fine-tuned", tuned), ("frozen", frozen)):
    of = [films.interval(condition) for condition in doses]
    mean, low, high = ([getattr(x, end) for x in of] for end in ("mean", "low", "high"))
    tokens = [films.tokens[condition] / 1e6 for condition in doses]
    lines.append(plots.Curve(f"pretrained, {name}", tokens, mean, low=low, high=high))
reach = [min(line.x[0] for line in lines), max(line.x[-1] for line in lines)]
for condition in ("tfidf-letters", "tfidf-words", "scratch/tuned", "scratch/probe"):
    if condition in films:
        level = [films.interval(condition).mean] * 2
        lines.append(plots.Curve(display_name(condition), reach, level, dashed=True))
published = stored.get("imdb/published")["origin"]["lines"]
names = r"[A-Z]\w+ (?:et al\.|and [A-Z]\w+)"
references = {
    f"{re.findall(names, line['source'])[-1]}, {line['accuracy']:.1f}": line["accuracy"]
    for line in published
}
fig, ax = plots.figure(width=10.5, height=6.0)
plots.curves(
    lines, xlabel="million tokens read in pretraining", ylabel="accuracy in percent",
    references=references, x_log=True, title=f"Film reviews, {N} labels", ax=ax,
)  # fmt: skip
for line, color in zip(lines[:2], plots.COLORS, strict=False):
    ax.plot(line.x, line.y, "o", color=color)
ax.set_xticks(lines[1].x, [f"{x:.1f}".removesuffix(".0") for x in lines[1].x])
ax.minorticks_off()
plots.show(fig, "15_dose")

# %%
BAG, RIVAL, BEST = "tfidf-words", "tfidf-letters", tuned[-1]
PROBE = [name for name in frozen if films.tokens[name] <= films.tokens[BEST]][-1]
ahead = [name for name in tuned if films.gain(name, BAG).mean > 0]
dose = films.tokens[ahead[0]] if ahead else math.inf
answers = ["at 1 million tokens or before", "at 3 or 10 million"]
answers.append("at 30 million, or at no dose that was measured")
where = f"first at {millions(dose)} tokens" if ahead else "at no dose"
course.resolve(
    "15.2",
    answers[(dose > 2e6) + (dose > 2e7)],
    f"By its mean the fine-tuned model is above TF-IDF of words {where}, of "
    f"{len(tuned)} measured doses, the last of {millions(films.tokens[BEST])}. "
    f"At the last one the difference is {written(films.gain(BEST, BAG))} points.",
)

# %% [markdown]
# How to read the picture. The two curves with bands are the pretrained models. Coloured dashed lines are controls, which read nothing before their labels. The grey lines at the top are published accuracies with **all 25,000 labels**, on a test split that we did not use; they show how far the task can be taken. Bands are 95 % intervals over folds, corrected because the folds learn from overlapping sets of reviews (Nadeau and Bengio).
#
# The next cell turns the curve into sentences: is more text worth more, and is the curve still rising at its end?


# %%
def verdict(gain):
    return "above 0" if gain.low > 0 else "below 0" if gain.high < 0 else "includes 0"


for way, doses in (("fine-tuned", tuned), ("frozen", frozen)):
    for before in dict.fromkeys((doses[0], *doses[-2:-1])):
        more = films.gain(doses[-1], before)
        first, last = (millions(films.tokens[name]) for name in (before, doses[-1]))
        print(f"{way}, {first} to {last} tokens: {written(more)}, {verdict(more)}")
pictured = {*tuned, *frozen, BAG, RIVAL, "scratch/tuned", "scratch/probe"}
assert all(len(films.accuracies[name]) == 3 * n_folds for name in pictured)
prefix = "imdb/study/pretraining causal/"
bodies = [one for key, one in stored.data.items() if key.startswith(prefix)]
for one in sorted(bodies, key=lambda record: record["n_tokens"]):
    passes, nats = one["passes"], one["held_out_nats"]
    print(f"{millions(one['n_tokens']):>12} tokens, {passes:.2f} passes:", end=" ")
    print(f"{nats:.2f} nats a token on held-out reviews")
for line in published:
    print(f"published: {line['accuracy']} percent, {line['source']}")
print(textwrap.fill(stored.source_line(), 88))

# %% [markdown]
# ### The table
#
# Here is what the points of the picture cost. The recipe says how many values were tried inside the 200 labels. The last column compares with TF-IDF of words on the same folds. A transformer has as many parameters after every dose; a bag has one weight for each word and pair in its labelled reviews.


# %%
def row_of(name):
    way = name.split("/")[1] if "/" in name else name
    tuning = way in ("tuned", "longer")
    searched = tried["tuned"]["lr"] if tuning else tried[way]["C"]
    learner = f"logistic regression, best of {len(searched)} strengths"
    if tuning:
        n_updates = recipe["tunings"][0]["n_updates"] * (5 if way == "longer" else 1)
        learner = f"AdamW, {n_updates} updates, best of {len(searched)} rates"
    return {
        "": display_name(name),
        "tokens read": millions(films.tokens[name]) if films.tokens[name] else "none",
        "labels": N,
        "parameters": f"{n_params:,}" if "/" in name else "one a word",
        "recipe": learner,
        "accuracy": written(films.interval(name), ".1f"),
        "minus TF-IDF of words": "" if name == BAG else written(films.gain(name, BAG)),
    }


controls = [BAG, RIVAL, "scratch/tuned", "scratch/longer", "scratch/probe"]
chosen = [*controls, PROBE, *tuned[-2:]]
pd.DataFrame([row_of(name) for name in chosen if name in films]).set_index("")

# %% [markdown]
# ### What each control rules out
#
# A high accuracy of a pretrained model may have other reasons than pretraining. Each control removes one of them.
#
# - *Any transformer does it:* then new weights, fine-tuned in the same way, would be as good.
# - *It was only trained for longer:* then new weights with five times the updates would be as good.
# - *Any numbers for a text do it:* then the states of a random transformer would be as good to a linear model.
# - *Words alone do it:* then TF-IDF would be as good.
# - *Word endings and stems do it:* then TF-IDF with letters would be as good.
# - *The bag reads more:* it reads a review whole, the transformer its last 160 words, and of these at most 255 tokens (the hybrid 254). So a bag of these words alone is a control as well. (*Read to the end*, further down, is about the tokens.)
# - *Knowing which words are alike does it:* then a random transformer would be as good, if its embeddings came from counts of neighbouring words in the same unlabelled reviews.

# %%
pairs = {
    "fine-tuned − from scratch": (BEST, "scratch/tuned"),
    "fine-tuned − from scratch, longer": (BEST, "scratch/longer"),
    "frozen − random, frozen": (PROBE, "scratch/probe"),
    "fine-tuned − TF-IDF, words": (BEST, BAG),
    "fine-tuned − TF-IDF, words and letters": (BEST, RIVAL),
    "fine-tuned − the same, of the end": (BEST, f"{RIVAL}-last"),
    "frozen − TF-IDF, words": (PROBE, BAG),
    "frozen − counts, frozen": (PROBE, "counts-both/probe"),
    "fine-tuned − counts, fine-tuned": (BEST, "counts-both/tuned"),
}
gains = {name: films.gain(*pair) for name, pair in pairs.items() if pair[1] in films}


def gain_bars(gains, xlabel, title, zero):
    fig, ax = plots.bars(
        {name: gain.mean for name, gain in gains.items()},
        intervals={name: (gain.low, gain.high) for name, gain in gains.items()},
        xlabel=f"{xlabel} (95 % interval)", title=f"{title}, {N} labels",
        references={zero: 0}, numbers="+.1f",
    )  # fmt: skip
    ax.margins(x=0.15)  # room for the numbers
    return fig


title = f"Causal, {millions(films.tokens[BEST])} tokens"
fig = gain_bars(gains, "points of accuracy", title, "no difference")
plots.show(fig, "15_controls")
answers = {"above 0": "yes", "below 0": "no, it is behind", "includes 0": "open"}
print(f"does it pay, at {millions(films.tokens[BEST])} tokens and {N} labels?")
for name, gain in gains.items():
    print(f"{name:<40}{written(gain):>22}, n = {gain.n:<4}{answers[verdict(gain)]}")

# %% [markdown]
# Look at the two lines about counts: such embeddings are counted, without any training. Does pretraining bring more than they do, frozen, and fine-tuned? That is a harder question than whether it brings more than nothing.
#
# Read the intervals, not the bars. An _n_ of 6 is six folds with one draw of labels, 18 is three draws. "Open" does not say that two ways are equal; it says that their interval includes 0, so these folds cannot tell them apart. And a model that beats its own kind from scratch may still lose to counting words: these are two questions. Fine-tuning and the frozen states may also give different answers, so both are measured.
#
# ### The same dose, another question
#
# All these models were pretrained to predict the next token. BERT's way is to hide a share of the tokens, here a quarter, and to guess them from both sides (lesson 10). A hybrid does either in every other batch, in one model (GPT-BERT, arXiv 2410.24159). A review that is to be classified is there as a whole, which speaks for reading both ways. On the other hand, each token read asks the causal model one question, and the masked one only a quarter of a question. Which will classify better after the same dose, and does the order stay as the dose grows? Architecture, folds, labels and search are the same as before.

# %% tags=["folded"]
ASKED = ("causal", "masked", "hybrid")
STARTS = (*ASKED, "hybrid-seed1")
fig, axes = plots.figure(1, 2, width=12.5, height=4.6)
WAYS = {"tuned": "fine-tuned", "probe": "frozen"}
for ax, (way, name) in zip(axes, WAYS.items(), strict=True):
    lines = []
    for start in STARTS:
        doses = [d for d in films.doses(start, way) if films.tokens[d] > 9e5]
        tokens = [films.tokens[each] / 1e6 for each in doses]
        means = [films.interval(each).mean for each in doses]
        lines.append(plots.Curve(start.replace("-seed", ", seed "), tokens, means))
    plots.curves(
        lines, xlabel="million tokens read", ylabel="accuracy in percent", x_log=True,
        y_range=(58, 84), references={"bag": films.interval(BAG).mean},
        title=name, ax=ax,
    )  # fmt: skip
    for line, color in zip(lines, plots.COLORS, strict=False):
        ax.plot(line.x, line.y, "o", color=color)
    ax.set_xticks([1, 3, 10, 30, 60], ["1", "3", "10", "30", "60"])
    ax.minorticks_off()
plots.show(fig, "15_objectives")

# %%
print("minus causal at the same dose:")
for way in WAYS:
    for objective in ASKED[1:]:
        for condition in films.doses(objective, way):
            gain = films.gain(condition, condition.replace(objective, "causal"))
            print(f"{display_name(condition):<45}{written(gain)}, {verdict(gain)}")
key = "imdb/study/pretraining masked/"
passes = [stored.get(f"{key}{dose}") for dose in recipe["doses"]]
passes = ", ".join(f"{each['passes']:.2f}" for each in passes if each)
print(f"masked: {recipe['mask']:.0%} of the tokens; passes over the texts: {passes}")

# %% [markdown]
# This compares the three at an equal number of tokens *read*. It does not say why they differ: fewer questions a token, and a task that pays only after more reading, would look the same here. BERT read its text about forty times (arXiv 1810.04805, appendix A.2); the passes made here are printed above.
#
# ### A second seed, twice as much, twice as wide
#
# Was this pretraining a lucky one? Causal pretraining was repeated up to 10 million tokens, hybrid pretraining up to 30 million, both from other new weights and in another order of texts. The hybrid one then read on, to 60 million. Is the curve still rising there? And is the model too small for what there is to read? Another one, twice as wide, with twice as many heads, read the same 60 million tokens in the same order, with the same recipe.

# %%
def against(name, other, of=films):
    """Both means on the draws that both have, and the difference."""
    pairs = zip(of.accuracies[other], of.accuracies[name], strict=False)
    before, after = np.mean(list(pairs), axis=0)
    gain = of.gain(name, other)
    return f"{before:.1f} to {after:.1f}, {written(gain)}, n = {gain.n}"


again = {"causal": "10000000", "hybrid": "30000000"}
last = "hybrid-seed1/{}/60000000"
for way, name in WAYS.items():
    for start, of in again.items():
        pair = f"{start}-seed1/{way}/{of}", f"{start}/{way}/{of}"
        print(f"{start}, {millions(int(of))}, {name}: seed 0 to 1:", end=" ")
        print(against(*pair))
for way, name in WAYS.items():
    before = last.replace("60000000", "30000000").format(way)
    print(f"hybrid, 30 to 60 million, {name}: {against(last.format(way), before)}")
wide = last.replace("hybrid", "hybrid-wide", 1)
for way, name in WAYS.items():
    if (wider := wide.format(way)) in films:
        print(f"twice as wide, {name}: {against(wider, last.format(way))}")
        bag = films.gain(wider, RIVAL)
        print(f"  minus {display_name(RIVAL)}: {written(bag)}, {verdict(bag)}")
key = "imdb/study/pretraining {}/60000000"
run, wider = (stored.get(key.format(x.split("/")[0])) for x in (last, wide))
if wider:
    nats = f"{run['held_out_nats']:.2f} to {wider['held_out_nats']:.2f}"
    print(f"held-out loss, nats a predicted token: {nats}")
minutes = 100e6 / run["tokens_per_second"] / 60
print(f"the narrower one would need {minutes:.0f} minutes for 100 million tokens")

# %% [markdown]
# A difference between two seeds of pretraining is a measure of luck that no interval over folds contains. Keep it in mind for each point of the curve.
#
# ### Three additions, one at a time
#
# The curve is plain on purpose. What would each usual addition bring, alone?
#
# - *Embeddings from counts:* they start where counting ends, and are then pretrained with all the rest.
# - *Hidden states added to TF-IDF:* one linear model reads both.
# - *Stars:* thousands of French readers' reviews came with stars. The model learns good from bad there first, and then learns from its 200 labels. (This one is about French book reviews, a second task that follows below.)
#
# Each addition has a control: the same addition *without* pretraining. If the control gains as much, the addition is good for anything, and pretraining deserves no credit for it.

# %%
near = measured(stored.data, "cls-books+reader-reviews-fr")[N]
PLAIN, BOOK = "causal/tuned/10000000", "causal/tuned/3000000"
additions = {
    "counts, pretrained, fine-tuned": (films, PLAIN.replace("/", "-counts/", 1), PLAIN),
    "counts, not pretrained": (films, "counts-causal/tuned", "scratch/tuned"),
    "pretrained states to TF-IDF": (films, PROBE.replace("probe", "with-tfidf"), RIVAL),
    "random states to TF-IDF": (films, "scratch/with-tfidf", RIVAL),
    "stars, pretrained": (near, BOOK.replace("tuned", "rated"), BOOK),
    "stars, not pretrained": (near, "scratch/rated", "scratch/tuned"),
    "stars, TF-IDF": (near, f"{RIVAL}-rated", RIVAL),
}
gains = {
    name: of.gain(*pair)
    for name, (of, *pair) in additions.items()
    if all(each in of for each in pair)
}
fig = gain_bars(
    gains, "points that the addition brings", "Each addition and its control", "nothing"
)
plots.show(fig, "15_additions")
for name in gains:
    of, *pair = additions[name]
    print(f"{name:<34}{against(*pair, of)}")

# %% [markdown]
# Read each group of bars together. The first of a group says what the addition brings with pretraining, the others what it brings without. In the second group the states are added to the bag of words, so both bars begin there.
#
# ### More out of the same labels
#
# The additions changed what was read, or what was known before. What can be done with the 200 labels themselves? The body is now that of the second hybrid model, after 30 million tokens (60 million for the last idea). Seven ideas:
#
# - *Whole reviews, frozen* and *whole reviews, fine-tuned:* a review is cut into pieces of 160 words. The frozen states of all pieces are averaged; fine-tuned, each piece is learned and answered, and the answers are added up.
# - *Embeddings frozen:* fine-tuning must not move what 200 reviews say little about.
# - *Mean of five:* five fine-tunings, each with an output layer, a dropout and an order of its own, answer together.
# - *Rate by log loss:* the learning rate is chosen on a quarter of the labels. Right answers among so few come in large steps; log loss also asks how sure each answer was.
# - *Pseudo-labels:* the fine-tuned model answers 6,000 unlabelled reviews. The surest half of its answers, as many good as bad, are added to the labels, and the body is fine-tuned again (Lee 2013). The control is the bag of words that does the same.
# - *Read to the end:* where the last 160 words of a review are more tokens than fit, their first words are left out, not their last. The verdict of a review is often at its end.
#
# Each was set down before it was measured, and nothing about it was tuned. Two came late, when other test results had been seen: *rate by log loss*, so here it is measured on another body, and *read to the end*, which mends an oversight in all rows above. Which would you keep?

# %%
HYBRID = "hybrid-seed1/tuned/30000000"
ideas = {
    "whole reviews, frozen": ("hybrid-seed1/probe-whole/30000000",
                              HYBRID.replace("tuned", "probe")),
    "whole reviews, fine-tuned": (HYBRID.replace("tuned", "tuned-whole"), HYBRID),
    "embeddings frozen": (HYBRID.replace("tuned", "tuned-kept"), HYBRID),
    "mean of five": (HYBRID.replace("tuned", "tuned-seeds"), HYBRID),
    "rate by log loss": (HYBRID.replace("tuned", "tuned-by-loss"), HYBRID),
    "pseudo-labels": (HYBRID.replace("tuned", "tuned-pseudo"), HYBRID),
    "pseudo-labels, TF-IDF": (f"{RIVAL}-pseudo", RIVAL),
    "read to the end, frozen": (last.format("probe-end"), last.format("probe")),
    "read to the end, fine-tuned": (last.format("tuned-end"), last.format("tuned")),
}  # fmt: skip
ideas = {name: pair for name, pair in ideas.items() if all(x in films for x in pair)}
gains = {name: films.gain(*pair) for name, pair in ideas.items()}
fig = gain_bars(
    gains, "points that the idea brings", "More out of the same labels", "nothing"
)
plots.show(fig, "15_ideas")
for name, pair in ideas.items():
    print(f"{name:<28}{against(*pair)}, {verdict(gains[name])}")
cells = [one for one in stored.data.values() if "n_shortened" in one]
too_long = sum(one["n_shortened"] for one in cells) / sum(one["n"] for one in cells)
print(f"reviews whose last {recipe['n_words']} words do not fit: {too_long:.1%}")

# %% [markdown]
# An interval that includes 0 says that the idea has not shown that it pays, on these folds. Compare the two bars of pseudo-labels as well: a model's surest answers may be right more often than its others, but they also repeat its own mistakes.
#
# ### With fewer labels, and with more
#
# All of this was with 200 labels. A bag of words has to meet a word in a labelled review before it can weigh it. The pretrained model has met most words already. What does that say about 50 labels, and about 800? The folds, the searches and the comparisons are the same. **Predict 15.3.**

# %%
course.predict(
    "15.3",
    "With how many labels is the fine-tuned model furthest ahead of TF-IDF of words "
    "and letters?",
    ["with 50", "with 200", "with 800"],
)

# %%
lines = []
FURTHEST = last.format("tuned")
for condition in (BEST, PROBE, RIVAL, BAG, "scratch/tuned", FURTHEST):
    at = [n for n, one in by_labels.items() if condition in one]
    of = [by_labels[n].interval(condition) for n in at]
    mean, low, high = ([getattr(x, end) for x in of] for end in ("mean", "low", "high"))
    band = {"low": low, "high": high} if condition in (BEST, RIVAL) else {}
    dashed = condition not in (FURTHEST, BEST, PROBE)
    name = display_name(condition)
    name = "hybrid on 60 million, fine-tuned" if condition == FURTHEST else name
    lines.append(plots.Curve(name, at, mean, **band, dashed=dashed))
fig, ax = plots.figure(width=10.5, height=5.0)
plots.curves(
    lines, xlabel="labelled reviews", ylabel="accuracy in percent",
    x_log=True, title="Film reviews, by number of labels", ax=ax,
)  # fmt: skip
ax.set_xticks(list(by_labels), [str(n) for n in by_labels])
ax.minorticks_off()
plots.show(fig, "15_labels")

# %% tags=["folded"]
leads = {n: one.gain(BEST, RIVAL) for n, one in by_labels.items() if BEST in one}
furthest = max(leads, key=lambda n: leads[n].mean)
course.resolve(
    "15.3",
    f"with {furthest}",
    "Fine-tuned minus TF-IDF of words and letters, with its interval: "
    + "; ".join(
        f"{n} labels {written(gain)}, {verdict(gain)}" for n, gain in leads.items()
    ),
)

# %%
print("hybrid on 60 million, minus TF-IDF of words and letters:")
for way, name in {**WAYS, "with-tfidf": "frozen, with TF-IDF"}.items():
    for n, one in by_labels.items():
        if (hybrid := last.format(way)) in one:
            gain, mean = one.gain(hybrid, RIVAL), one.interval(hybrid).mean
            print(f"{name:<20}{n:>4} labels: {mean:.1f}, {written(gain)}", end=" ")
            print(verdict(gain))

# %% [markdown]
# The last lines are the second addition from above, with the states of the furthest model: they and the bag are read by one linear model. Which of the three ways would you take with 50 labels, and would you take any of them with 800?
#
# This is what a single number of labels cannot show. Ask of each pair of lines how their distance changes from left to right. Where two lines come close, labels have replaced what reading had given.
#
# ### Other text to read: near and little, or far and much
#
# The film reviews came with 50,000 unlabelled ones of other films. Such luck is rare. Here is a second task: 2,000 French book reviews by customers of a shop. What could a model read first? *Near* is what readers wrote about French books on two other sites: less than half a million words. *Far* is French novels from 1840 to 1920: eight million words. Architecture, recipe and search are those of the films, with 200 labels again. Before you run the cell: which text do you take, and do you expect to pass the bag of words with it?

# %%
READ = {"near": "reader-reviews-fr", "far": "eltec-fra"}
books = {
    kind: measured(stored.data, f"cls-books+{name}")[N] for kind, name in READ.items()
}


def book_row(kind, name):
    one, by = books[kind], f"cls-books+{READ[kind]}/study/pretraining"
    parts = name.split("/")
    start, dose = parts[0], parts[-1]
    read = stored.get(f"{by} {start}/{dose}") if dose.isdigit() else None
    gain = written(one.gain(name, RIVAL))
    return {
        "": display_name(name),
        "read before": f"{kind}, {read['passes']:.1f} passes" if read else "nothing",
        "held-out loss": f"{read['held_out_nats']:.2f} nats a token" if read else "",
        "labels": N,
        "accuracy": written(one.interval(name), ".1f"),
        "minus TF-IDF, letters": "" if name == RIVAL else gain,
    }


kept = [("near", name) for name in (RIVAL, "scratch/tuned") if name in books["near"]]
for kind, one in books.items():
    for start, way in (("causal", "probe"), ("causal", "tuned"), ("hybrid", "tuned")):
        kept += [(kind, name) for name in one.doses(start, way)[-1:]]
pd.DataFrame([book_row(*one) for one in kept]).set_index("")

# %%
print("what was read, frozen, near minus far:")
for name in books["near"].doses("causal", "probe"):
    if name in books["far"]:
        pair = zip(*(books[kind].accuracies[name] for kind in READ), strict=True)
        share = books["near"].test_share
        gain = paired_interval([a - b for a, b in pair], test_share=share)
        print(f"  {display_name(name)}: {written(gain)}, {verdict(gain)}")
for kind, one in books.items():
    names = [name for start in STARTS for way in WAYS for name in one.doses(start, way)]
    best = max(names, key=lambda name: one.interval(name).mean)
    gain = one.gain(best, RIVAL)
    print(f"best after {kind} text: {display_name(best)}")
    print(f"  minus {display_name(RIVAL)}: {written(gain)}, {verdict(gain)}")

# %% [markdown]
# Look at the held-out loss first. Within one kind of text it says whether more reading still helps (kinds cannot be compared, as each has texts and tokens of its own, nor can causal and hybrid, as they predict other things). Text that is read many times is learned by heart at some point; then the loss on other texts of its kind rises, although the model reads on.
#
# Near and far were measured on the same folds, after an equal number of tokens *read*: the near text was read several times for it, the far text only in part. The tokenizer, too, was learned from what was read. So a difference between them is not one of dose. It says what kind of text was read, and the lines above say how much that is worth next to counting words. These reviews name no title, so folds divide them by review; two reviews of one book may stand on both sides, for every row alike.
#
# ## One ablation here, in a minute
#
# Let us do the same on this machine, with the novels, in small. A transformer reads the training novels without their labels. How much is that? Less than the *smallest* dose above. So expect little. The point is the design, which is the same: pretrained against new weights, fine-tuned and frozen, and the bag of words against both.

# %%
fast = {"optimizer": "muon", "lr": 1e-2, "decay": "linear", "final_lr_fraction": 0.0}
steps = {} if smoke else {"n_steps": 80, "tokens_per_batch": 2_048}
pretrained = tx.pretrain(
    novels, vocab_size=600 if smoke else 2_000, model_changes={"max_len": 128},
    training_changes=fast | steps, options=tx.RunOptions(progress=False),
)  # fmt: skip
tokenizer = pretrained.tokenizer
n_distinct = sum(len(ids) for ids in tokenizer.encode_batch(novels.train.texts))
settings = pretrained.recipe.settings
passes = settings.n_steps * settings.tokens_per_batch / n_distinct
assert n_distinct < 300_000
print(f"{n_distinct:,} distinct tokens, up to {passes:.1f} passes")
pretrained

# %% [markdown]
# For the frozen probe we need the mean hidden state of each passage, once for the pretrained body and once for a random one of the same shape. A logistic regression then learns from 60 labelled passages, ten of each author, and is tested on the six novels that nobody read. The same 60 passages go to the bag of words. Eight draws of labels give eight pairs. **Predict 15.4.**


# %%
@torch.no_grad()
def states_of(body, texts):
    body.eval()
    means = []
    for start in range(0, len(texts), 32):
        ids = tokenizer.encode_batch(texts[start : start + 32])
        rows = [[tokenizer.bos_id, *row[:127]] for row in ids]
        token_ids = pad_batch(rows, tokenizer.pad_id)
        real = (token_ids != tokenizer.pad_id)[:, :, None]  # (B, T, 1)
        means.append((body(token_ids) * real).sum(dim=1) / real.sum(dim=1))  # (B, D)
    return torch.cat(means).numpy()


_ = torch.manual_seed(0)
bodies = {
    "pretrained, frozen": pretrained.model.cpu().body,
    "random, frozen": tx.LanguageModel(pretrained.model.config).body,
}
some = label_subset(novels.train, 300, seed=0)  # labels are drawn from these
states = {name: (states_of(body, some.texts), states_of(body, novels.valid.texts))
          for name, body in bodies.items()}  # fmt: skip
course.predict(
    "15.4",
    "Which names the most authors with 60 labels, by its mean over eight draws?",
    ["the frozen pretrained body", "the frozen random body", "the bag of words"],
)

# %%
right = np.array(novels.valid.labels)
place = {text: i for i, text in enumerate(some.texts)}
live = {name: [] for name in (*states, "bag of words")}
for draw in range(8):
    few = label_subset(some, 60, seed=draw)
    bag = bag_of_words(few)
    live["bag of words"].append(100 * bag.score(novels.valid.texts, right))
    for name, (own, tested) in states.items():
        own = own[[place[text] for text in few.texts]]
        centre, spread = own.mean(axis=0), own.std(axis=0) + 1e-6
        probe = LogisticRegression(C=0.1, max_iter=500)
        probe.fit((own - centre) / spread, few.labels)
        live[name].append(100 * probe.score((tested - centre) / spread, right))
for name, values in live.items():
    print(f"{name:<20}{np.mean(values):5.1f} percent")

# %%
best = max(live, key=lambda name: np.mean(live[name]))
shown = {
    "pretrained, frozen": "the frozen pretrained body",
    "random, frozen": "the frozen random body",
    "bag of words": "the bag of words",
}
minus = {}
for other in ("random, frozen", "bag of words"):
    differences = np.subtract(live["pretrained, frozen"], live[other])
    gain = paired_interval(differences.tolist())
    minus[other] = f"{written(gain)} points, {verdict(gain)}"
course.resolve(
    "15.4",
    shown[best],
    f"Pretrained minus random: {minus['random, frozen']}; "
    f"pretrained minus bag: {minus['bag of words']}.",
)

# %% [markdown]
# These intervals are about the luck of drawing labels. All draws share one pretraining and six test novels, so another six novels could move everything together.
#
# And fine-tuned? Three seeds, each with the same labels and the same recipe for both; the rate is tuned for neither.

# %%
short = {} if smoke else {"tokens_per_batch": 768, "lr": 2e-3}


def fine_tuned(seed, fresh):
    run = tx.finetune(
        pretrained, novels, body="fresh" if fresh else "pretrained", seed=seed,
        n_labels=60, n_epochs=None if smoke else 4, training_changes=short, n_scored=20,
        options=tx.RunOptions(progress=False, report=lambda line: None),
    )  # fmt: skip
    return 100 * run.evaluation.score.accuracy


seeds = range(2 if smoke else 3)
ends = {fresh: [fine_tuned(seed, fresh) for seed in seeds] for fresh in (False, True)}
gain = paired_interval(np.subtract(ends[False], ends[True]).tolist())
for fresh, name in ((False, "pretrained, fine-tuned"), (True, "from scratch")):
    each = ", ".join(f"{value:.1f}" for value in ends[fresh])
    print(f"{name:<24}{np.mean(ends[fresh]):5.1f} percent ({each})")
print(f"difference {written(gain)} points, {verdict(gain)}")

# %% [markdown]
# Compare the live result with the left end of the curve above. Where an interval includes 0, the honest sentence is "no difference that we can see, at this dose", and the curve says what would have to change: not the recipe first, but the amount of text.
#
# ## A practical rule
#
# When do you take a bag of words, when a frozen probe, when fine-tuning, when frozen states next to the bag? The next cell reads the rule out of the stored table: for each number of labels and each dose it compares the transformers that were measured, of any objective, with the stronger bag. Only a difference with an interval above 0 counts. In brackets is the best of those, or of all where there is none.

# %%
DO = {"tuned": "fine-tune", "probe": "probe", "with-tfidf": "add its states to the bag"}


def rule(one, dose):
    starts = (*STARTS, wide.split("/")[0])
    names = [f"{start}/{way}/{dose}" for start in starts for way in DO]
    gains = {name: one.gain(name, RIVAL) for name in names if name in one}
    clear = [name for name, gain in gains.items() if gain.low > 0]
    best = max(clear or gains, key=lambda name: gains[name].mean)
    if clear:
        choice = DO[best.split("/")[1]]
    elif all(gain.high < 0 for gain in gains.values()):
        choice = "take the bag"
    else:
        choice = "open: take the bag, it is cheaper"
    return choice, best, gains[best]


for n_labels, one in by_labels.items():
    names = [name for start in STARTS for way in DO for name in one.doses(start, way)]
    doses = {name.split("/")[2] for name in names}
    for dose in sorted(map(int, doses)):
        choice, best, gain = rule(one, dose)
        print(f"{n_labels:>4} labels, {millions(dose):>11} tokens: {choice}", end=" ")
        print(f"({display_name(best)}, {gain.mean:+.1f})")

# %% [markdown]
# The cost belongs to the rule. A bag of words takes seconds and no unlabelled text. A probe needs a pretrained body and one pass over your texts. Fine-tuning needs that body, minutes for each set of labels, and a choice of learning rate. So start with the bag, always; it is also the bar that all others have to pass. Take a transformer when text of the *same kind* is plentiful, or when somebody else has already read for you: BERT has read more than a thousand times our largest dose (a million batches of 256 texts, arXiv 1810.04805, appendix A.2), and lesson 16 opens it.
#
# ### Figures that must not be compared
#
# Here are ten accuracies, two from each of five public solutions of one university exercise. The task: French book reviews, 1,600 labels, 2,000 test reviews, one transformer from scratch and one from a checkpoint of twelve hours on a GPU. Each figure is one seed, at the best of its epochs, chosen on the test reviews. We did not repeat these runs. Why may the difference not be compared with ours, although both are "pretrained minus scratch"? Name three reasons before you read on.

# %%
elsewhere = {
    "from scratch": [75.3, 78.5, 76.4, 75.1, 76.7],
    "pretrained": [80.7, 80.0, 81.0, 79.4, 80.9],
}
for name, values in elsewhere.items():
    low, high = wilson_interval(round(20 * np.mean(values)), 2_000)
    print(f"French books: {name:<13}{min(values)} to {max(values)};", end=" ")
    print(f"2,000 test reviews alone make ±{50 * (high - low):.1f}")
assert min(elsewhere["pretrained"]) > max(elsewhere["from scratch"])
there = np.mean(elsewhere["pretrained"]) - np.mean(elsewhere["from scratch"])
here = films.gain(BEST, "scratch/tuned") if "scratch/tuned" in films else None
print(f"there {there:+.1f} points; here", written(here) if here else "not measured yet")

# %% [markdown]
# One: other texts in another language, and eight times as many labels. Two: choosing the epoch on the test reviews flatters both columns, by an unknown amount. Three: five runs with one seed each give no interval for a *paired* difference. What those figures do say: every pretrained run is above every run from scratch. What they leave out is a bag of words: without that row nobody can say whether a transformer was worth it.
#
# ## "Bonjour les"
#
# A classic last test is to let a model complete _Bonjour les_. Here is one that read real French: novels, sentences that people wrote for translation, readers' reviews. `python -m experiments completions` trained it and stored its completions. Will it greet anybody? Will the sentences be French? Will they mean anything?

# %%
french = read_results("completions")
completed = min(french.data.values(), key=lambda record: record["bits_per_character"])
best_count = min(completed["counts"].values())
print(textwrap.fill(f"{completed['model']}; learned from {completed['train']}", 88))
nats = completed["nats_per_token"]
print(f"{nats:.3f} nats a token on novels by others, the best count {best_count:.3f}")
lines = ["| | |", "|---|---|"]
for one in completed["completions"][:4]:
    rest = one["text"].removeprefix(one["prompt"]).replace("*", "\\*")
    end = "" if one["finished"] else " …"
    lines.append(f"| {one['way']} | **{one['prompt']}**{rest}{end} |")
Markdown("\n".join(lines))

# %% [markdown]
# *Greedy* takes the most probable token each time; the draws take one of the likelier ones by chance (lesson 08). Look at agreement (article, noun, verb) within three or four words, then at the sense over a whole line. Both are judged by the same loss.
#
# ## What this does not show
#
# - One architecture of about a million parameters, one wider model at one dose, and two tasks. A larger model may read more out of the same text.
# - One pretraining for each dose, on one path: the doses share their beginning. Two doses have a second seed, and they say how far luck can move a point.
# - The transformer reads the last 160 words of a review, the bag of words all of it. How much this helps the bag is one of the controls; how a transformer of longer context would do was not measured. Where these words are more tokens than it reads, it even loses the last of them, except in *read to the end*.
# - Six folds make wide intervals. Most conditions have three draws of labels, many of the additions and ideas one; _n_ counts folds and draws behind a difference, which uses the draws that both conditions have. What includes 0 today may not with more of them. Doses and numbers of labels that are missing in the picture have not been measured.
# - Nothing here was searched as hard as it could be. Where a model does not pass the bag, this says something about our search, not about all transformers. The published lines show how far the task can be taken with 25,000 labels; none of them is a transformer, and one is a bag of words itself.
#
# ## Take-home
#
# A fair experiment on one screen. The question here is small enough to run: does the *inverse document frequency* pay, or would counts do? Folds hold out whole novels, both ways get the same labels, and the answer is a paired difference with an interval.

# %%
groups = np.array(passages.groups)
authors = np.array(passages.labels)
by_author = [np.unique(groups[authors == label]) for label in range(6)]
ways = {"with idf": True, "without": False}
results = {name: [] for name in ways}
for fold in range(6):
    drawn = np.random.default_rng(fold)
    held = [drawn.choice(theirs) for theirs in by_author]  # a novel of each author
    train = passages.take(np.flatnonzero(~np.isin(groups, held)).tolist())
    test = passages.take(np.flatnonzero(np.isin(groups, held)).tolist())
    few = label_subset(train, 120, seed=fold)  # the same labels for both ways
    for name, use_idf in ways.items():
        vectorizer = TfidfVectorizer(use_idf=use_idf, sublinear_tf=True)
        model = make_pipeline(vectorizer, LogisticRegression(C=100.0))
        model.fit(few.texts, few.labels)
        results[name].append(100 * model.score(test.texts, test.labels))
differences = np.subtract(*results.values()).tolist()
gain = paired_interval(differences, test_share=len(test) / len(train))
for name, values in results.items():
    print(f"{name:<10}{np.mean(values):5.1f} percent")
print(f"idf brings {written(gain)} points: {verdict(gain)}")

# %% [markdown]
# ## Questions
#
# Before the code, a few questions. Pick an answer, and read what it gets back.

# %%
course.quiz("real_text")

# %% [markdown]
# ## Exercises
#
# Two small tools that you will need outside. Below each cell to fill in is its check, which says where your answer differs and, if it knows the mistake, what it is. While there are only dots, it says "not attempted yet".
#
# [exercise: repeated_texts]


# %%
def repeated_texts(train, test):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("repeated_texts", repeated_texts)

# %% [markdown]
# [exercise: tfidf]


# %%
def tfidf(train, texts):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("tfidf", tfidf)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** Give `load_corpus` a file of your own: a `.txt` with a document a line, or a `.csv` with `text_column=` and `label_column=`. How does its share of new words compare with that of the novels, at equal numbers of words read?
#
# <details><summary>What to look for</summary>
#
# A small file has a high share of new words whatever its language, since little of its vocabulary was seen. Compare at equal numbers of words read, as the cell on new words does.
#
# </details>
#
# **2.** A friend measures 82.1 with a bag of words on a random split of film reviews, and 81.0 for a published transformer, and concludes that pretraining is useless. What would you ask?
#
# <details><summary>Answer</summary>
#
# Was the split by film? Were repeats taken out before it? Are both figures about the same test texts, with as many labels, and chosen without the test set? With how many seeds? And useless for whom: with 25,000 labels, or with 50?
#
# </details>
#
# **3.** A frozen pretrained body reaches 64 percent, and a colleague writes: "pretraining has taught it sentiment". Which row of the table do you ask for?
#
# <details><summary>Answer</summary>
#
# The frozen *random* body. Random hidden states still say which words a text holds, and a linear model can read that. Only the difference between the two rows was learned in pretraining.
#
# </details>
#
# ## Summary
#
# 1. Real text has a long tail of rare words, broken rows, and repeats. Count and name bad rows; look for repeats on *words*, not on strings.
# 2. A split must not divide a group. The same bag of words named far more authors when passages of one novel were in train and in test.
# 3. TF-IDF is counts times $\log(D / \mathrm{df})$, scaled: no order, no meaning of unseen words, a few seconds. It is the bar for everything else.
# 4. Ask for the dose: how many tokens were read, with how many labels, against which controls. A random body, frozen, and new weights, fine-tuned, show what pretraining adds; the bag shows whether a transformer is worth it at all.
# 5. Compare on the same folds, with intervals for differences. Figures from other splits, label counts, choices and seeds cannot be compared.
#
# *Where this comes from:* Zipf, *Human Behavior and the Principle of Least Effort*, 1949. Inverse document frequency: Spärck Jones, *Journal of Documentation* 28, 1972. Film reviews: Maas et al., *Learning Word Vectors for Sentiment Analysis*, ACL 2011. Strong linear baselines: Wang and Manning, *Baselines and Bigrams*, ACL 2012. Pretraining on the same reviews: Dai and Le, [arXiv:1511.01432](https://arxiv.org/abs/1511.01432); Howard and Ruder (ULMFiT), [arXiv:1801.06146](https://arxiv.org/abs/1801.06146). Pseudo-labels: D.-H. Lee, workshop at ICML 2013. Intervals over folds that overlap: Nadeau and Bengio, *Machine Learning* 52, 2003. Overlap of test and training text: Brown et al., [arXiv:2005.14165](https://arxiv.org/abs/2005.14165), section 4. French book reviews: Prettenhofer and Stein, ACL 2010.
#
# *What comes next:* [lesson 16](16_real_models.ipynb) opens models that others have pretrained.
