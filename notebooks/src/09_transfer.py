# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 09 · Transfer
#
# **Is pretraining worth it?**
#
# After this lesson you can
#
# 1. turn a language model into a classifier, and say what the new head reads;
# 2. write the fine-tuning loop, and freeze a body;
# 3. compare two ways of training fairly, with an interval on the gain;
# 4. *Further:* recognise three mistakes by their symptoms, and compare with a bag of words.
#
# *You need:* lesson 08, and the causal mask of lesson 02.
# *It takes:* an hour and a half to read and do; two minutes to run on two cores, less with a GPU.

# %% [markdown]
# ## Set-up

# %%
import math

import numpy as np
import torch
import torch.nn.functional as F

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_run.recipes import default_budget, plan

smoke = default_budget() == "smoke"

# %%
course.recall("09")

# %% [markdown]
# ## Why: labels are expensive, text is cheap
#
# A label costs work. **Transfer** needs few: a model learns the language from plain text (**pretraining**), then the question from labels (**fine-tuning**). The lowest yardstick is the **majority**, the share of the more frequent label. Two of our reviews; 1 is praise:

# %%
corpus = tx.load_corpus("world")
world = tx.World()
for label, text in zip(corpus.test.labels[:2], corpus.test.texts[:2], strict=True):
    print(label, text)
labels = np.array(corpus.test.labels)
share = labels[:500].mean()
print(f"majority of the 500 test labels used here: {max(share, 1 - share):.3f}")
assert not {*corpus.test.texts} & {*corpus.train.texts}

# %% [markdown]
# ## Swapping the head
#
# A transformer here is a **body** (also called backbone), which turns tokens into vectors, and a **head**, which reads them. The language model's head answers at *every* position. The classifier's answers *once*: it reads the mean of the vectors of the **real** tokens, without padding. Making one vector out of many is called **pooling**.

# %%
plots.diagram("swap-the-head")

# %% [markdown]
# ### Further: the swap and the mean by hand
#
# The body stays, the new head begins at random, and it reads the mean of the real vectors:

# %% tags=["nbval-check-output"]
_ = torch.manual_seed(0)
config = tx.TransformerConfig(vocab_size=9, d_model=6, n_heads=2, n_layers=1, d_ff=8)
language_model = tx.LanguageModel(config)
classifier = tx.Classifier.from_body(language_model.body, n_classes=2)
token_ids = torch.tensor([[2, 5, 8, 7], [2, 6, 0, 0]])  # (B, T); 0 is padding
real = tx.padding_mask(token_ids, pad_id=0)
assert classifier.body is language_model.body
shapes = *language_model(token_ids).shape, *classifier(token_ids, real).shape
print("language model ({}, {}, {}), classifier ({}, {})".format(*shapes))

hidden = classifier.body(token_ids, real)  # (B, T, D)
pooled = []
for vectors, is_real in zip(hidden, real, strict=True):
    chosen = [vector for vector, yes in zip(vectors, is_real, strict=True) if yes]
    pooled.append(sum(chosen) / len(chosen))
pooled = torch.stack(pooled)  # (B, D)
torch.testing.assert_close(classifier.head(pooled), classifier(token_ids, real))
print("averaged", real.sum(dim=1).tolist(), "vectors: by hand and by the package")

# %% [markdown]
# GPT reads the *last* real token, BERT the *first* (Devlin et al., [arXiv:1810.04805](https://arxiv.org/abs/1810.04805)). In a causal body the first token attends to itself alone, so it cannot serve.
#
# ## Pretrain once
#
# The body reads the training reviews, not their labels, for half the steps of lesson 08.

# %%
shorter = {"n_steps": plan("world").settings.n_steps // 2}
pretrained = tx.pretrain(
    corpus, training_changes=shorter, options=tx.RunOptions(progress=False)
)
tokenizer, pad_id = pretrained.tokenizer, pretrained.tokenizer.pad_id

# %% [markdown]
# ## The fine-tuning loop
#
# The loop of lesson 08, with labels for targets (`tx.finetune` in the package). It trains only the parameters that *require a gradient*.

# %%
def mean_of_real(model, token_ids, real):
    return model(token_ids, real)  # pool(body(token_ids)) W: (B, C)


def fine_tune(model, batches, lr=1e-3, read=mean_of_real, loss_of=F.cross_entropy,
              optimizer=torch.optim.AdamW):
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = optimizer(trained, lr=lr, weight_decay=0.0)
    n_steps, losses = len(batches), []
    model.train()
    for step, (token_ids, target) in enumerate(batches, start=1):
        rate = min(step / 6, (n_steps - step) / (n_steps - 6))  # 6 steps of warm-up
        optimizer.param_groups[0]["lr"] = lr * rate
        loss = loss_of(read(model, token_ids, token_ids != pad_id), target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% [markdown]
# A seed draws 50 labelled reviews and their order. The model reads all of them twelve times, in twelve **epochs**, ten reviews at a time.

# %%
from tinytx.batching import pad_batch
from tinytx_run.classify import class_probabilities, classifier_inputs
from tinytx_run.corpora import label_subset

N_LABELS, N_TESTED, SEEDS = 50, 500, (0, 1, 2)
max_len = pretrained.model.config.max_len
test_ids, _ = classifier_inputs(tokenizer, corpus.test.texts[:N_TESTED], max_len)


def labelled(seed, n_epochs=12):
    few = label_subset(corpus.train, N_LABELS, seed=seed)
    rows, _ = classifier_inputs(tokenizer, few.texts, max_len)
    rng = torch.Generator().manual_seed(seed)
    orders = [torch.randperm(N_LABELS, generator=rng) for _ in range(n_epochs)]
    return [
        (pad_batch([rows[i] for i in ten], pad_id), torch.tensor(few.labels)[ten])
        for ten in torch.cat(orders).split(10)
    ]


drawn = [labelled(seed) for seed in SEEDS]

# %% [markdown]
# A new classifier copies the pretrained body, or keeps its random one; its head is new.

# %%
def new_classifier(seed=0, fresh=False):
    torch.manual_seed(seed)
    model = tx.Classifier(pretrained.model.config, n_classes=2)
    if not fresh:
        model.body.load_state_dict(pretrained.model.body.state_dict())
    return model


@torch.no_grad()
def answers(model, read=mean_of_real):
    model.eval()
    batches = [pad_batch(test_ids[i : i + 20], pad_id) for i in range(0, N_TESTED, 20)]
    chosen = [read(model, ids, ids != pad_id).argmax(dim=1) for ids in batches]
    return torch.cat(chosen).numpy()


tuned = new_classifier()
losses = fine_tune(tuned, drawn[0])
print(f"loss {losses[0]:.2f} to {losses[-1]:.2f}")

# %% [markdown]
# ## Freeze the body: a linear probe
#
# The other way: **freeze** the body by `requires_grad_(False)`, and train the new head alone, a **linear probe**. Its **control** is a probe on a body of *random* weights. What the probe gains over this control, with the same labels and rate, is evidence for pretraining.
#
# ### Further: three mistakes
#
# None raises an error. `hidden[:, -1]` looks like "the last token": in a batch that is padded on the right it is the last *column*, often padding, so the answer depends on the neighbours. A **softmax before the loss** ([lesson 08](08_pretraining.ipynb)): the best "logits" are (1, 0), and the loss cannot fall below $-\ln\frac{e}{e + 1} = 0.313$. **SGD with Adam's rate**: Adam divides each step by the size of the gradient, SGD does not.

# %%
from tinytx.classifier import pool


def accuracy(model, read=mean_of_real):
    return (answers(model, read) == labels[:N_TESTED]).mean()


def last_real(model, token_ids, real):
    return model.head(pool(model.body(token_ids), real, "last"))


def last_column(model, token_ids, real):
    return model.head(model.body(token_ids)[:, -1])


def softmax_first(logits, target):
    return F.cross_entropy(logits.softmax(dim=-1), target)


ways = {
    "mean of the real tokens": {},
    "last real token": {"read": last_real},
    "softmax before the loss": {"loss_of": softmax_first},
    "SGD with Adam's rate": {"optimizer": torch.optim.SGD},
}

# %% [markdown]
# Three seeds each: the loss of the last epoch, and the share of right answers.

# %%
final, right = {}, {}
for name, how in ways.items():
    models = [new_classifier(seed) for seed in SEEDS]
    losses = [fine_tune(m, drawn[i], **how)[-5:] for i, m in enumerate(models)]
    final[name], read = np.mean(losses), how.get("read", mean_of_real)
    right[name] = np.array([accuracy(model, read) for model in models])
    shares = " ".join(f"{share:.3f}" for share in right[name])
    print(f"{name:<25}loss {final[name]:.3f}, right {shares}")
    if read is last_real:
        swayed = [(answers(m, last_column) != answers(m, last_real)) for m in models]
swayed = np.mean(swayed, axis=1)
print("tested on the last column, answers that change:", *(f"{x:.0%}" for x in swayed))
sound, doubled, stuck = ([*final.values()][i] for i in (0, 2, 3))
assert smoke or swayed.min() > 0.02 and sound < 0.05 and stuck > 0.5
assert smoke or 0 < doubled + math.log(math.e / (math.e + 1)) < 0.02
gap = right["softmax before the loss"] - right["mean of the real tokens"]
assert smoke or abs(gap.mean()) < 0.03

# %% [markdown]
# A second softmax shows by a loss that stops at the limit, at hardly any cost in accuracy here; SGD by a loss above one half. On the last column every model changes some of its answers.
#
# ## Doing it properly
#
# The tempting way: train both once, and report the best epoch on the *test* set, whose luck is then chosen, too. We train from the pretrained body, from a fresh one (**from scratch**), and both as probes, with the **same** labels in the **same** order, for three seeds and a fixed number of epochs. (Probes take ten times the rate; no rate was searched for.) **Predict 09.1.**

# %%
course.predict(
    "09.1",
    "With 50 labels, how far is the pretrained body above the fresh one, on average?",
    ["less than 5 points", "5 to 15 points", "more than 15 points"],
)

# %%
starts = {"pretrained": (False, False), "scratch": (True, False),
          "frozen probe": (False, True), "random probe": (True, True)}
right, ends = {}, {}
for name, (fresh, frozen) in starts.items():
    models = [new_classifier(seed, fresh) for seed in SEEDS]
    for model, batches in zip(models, drawn, strict=True):
        model.body.requires_grad_(not frozen)
        fine_tune(model, batches, lr=1e-2 if frozen else 1e-3)
    right[name] = np.array([answers(model) == labels[:N_TESTED] for model in models])
    ends[name] = right[name].mean(axis=1)
    row = "   ".join(f"{value:.3f}" for value in ends[name])
    print(f"{name:<14}{row}     mean {ends[name].mean():.3f}")
points = 100 * (ends["pretrained"] - ends["scratch"])
course.resolve(
    "09.1",
    points.mean(),
    f"It is {points.mean():.0f} points, {points.min():.0f} to {points.max():.0f} by "
    "seed.",
    between=(points.min(), points.max()),
    thresholds=(5, 15),
)

# %% [markdown]
# The pretrained body is far ahead of a fresh one, trained in the same way, with each draw of labels, fine-tuned or frozen; the random probe is no better than the majority.
#
# Is a gain more than the luck of a few seeds? Each seed gives one **paired difference**, ours minus theirs. **Student's 95 % interval** is their mean $\pm\, t \cdot s/\sqrt{n}$, where $s$ is their standard deviation. Of a hundred such intervals about 95 hold the mean over all seeds; where all of it is above zero, there is a gain, or luck. On paper: 0.10, 0.14 and 0.06 have the mean 0.10 and $s = 0.04$; with $t = 4.303$ for three seeds the interval is 0.10 $\pm$ 0.0994, just above zero.

# %%
from tinytx_run.intervals import paired_interval

gain = paired_interval(ends["pretrained"] - ends["scratch"])
print(f"pretrained minus scratch {gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]")

# %% [markdown]
# ### Further: chosen on the test set
#
# And if the best run is chosen on the test set? We choose one of the three on 100 test reviews, drawn at random, and look at it on all 500.

# %%
rng, chosen = np.random.default_rng(0), []
for order in [rng.permutation(N_TESTED) for _ in range(2000)]:
    on_these, on_all = right["scratch"][:, order[:100]].mean(axis=1), ends["scratch"]
    chosen.append((on_these.max(), on_all[on_these.argmax()]))
on_these, on_all = np.mean(chosen, axis=0)
print(f"the best of three runs: {on_these:.3f} on the reviews that chose it,", end=" ")
print(f"{on_all:.3f} on all; mean of all runs {ends['scratch'].mean():.3f}")
assert on_these > on_all
near = ends["pretrained"].min(), ends["frozen probe"].min()
assert smoke or min(near) > ends["scratch"].max() + 0.1
assert smoke or near[1] > ends["random probe"].max() + 0.1

# %% [markdown]
# Choosing on the test set flatters.
#
# ## Further: more seeds, more labels
#
# `python -m experiments transfer --corpus world` has fine-tuned from 20 to 500 labels with five seeds: a small lead takes more than three (Dodge et al., [arXiv:2002.06305](https://arxiv.org/abs/2002.06305)). Its body was pretrained with the full recipe. A common rule says: probe when labels are scarce. (Lesson 14 shows why five intervals at once must each be wider.) **Predict 09.2.**

# %%
import textwrap

from tinytx_course.results import read_results
from tinytx_run.training import fingerprint

stored = read_results("transfer")
records = [record for record in stored.data.values() if record["corpus"] == "world"]
assert {record["origin"]["texts"] for record in records} == {fingerprint(corpus)}
records.sort(key=lambda record: record["seed"])
counts = sorted({record["n_labels"] for record in records})
print(textwrap.fill(f"on these very texts, {stored.source_line()}", 88))
course.predict(
    "09.2", "Where is fine-tuning ahead of the frozen probe?",
    ["nowhere", "from 200 labels on", "at all five numbers of labels"],
)

# %%
def measured(n_labels, start):
    chosen = [r for r in records if (r["n_labels"], r["start"]) == (n_labels, start)]
    return np.array([record["accuracy"] for record in chosen])  # one a seed


print("labels    tuned    probe  scratch    tuned minus probe")
leads = {}
for n in counts:
    three = [measured(n, start) for start in ("pretrained", "frozen", "scratch")]
    leads[n] = lead = paired_interval(three[0] - three[1], len(counts))
    row = "".join(f"{values.mean():9.3f}" for values in three)
    print(f"{n:>6,}{row}{lead.mean:+15.3f}  [{lead.low:+.3f}, {lead.high:+.3f}]")
ahead = [n for n in counts if leads[n].low > 0]
assert ahead == counts
here = paired_interval(ends["pretrained"] - ends["frozen probe"])
print(f"in this lesson, 50 labels {here.mean:+.3f} [{here.low:+.3f}, {here.high:+.3f}]")
means = sorted(lead.mean for lead in leads.values())
course.resolve(
    "09.2",
    "at all five numbers of labels",
    f"It leads by {means[0]:+.3f} to {means[-1]:+.3f}, and no interval contains zero.",
)

# %% [markdown]
# The rule does not hold in the stored runs, with their body and one rate for the probe, which was not searched. (This lesson's own run shows no such lead, with another body and recipe.) And after twice the pretraining and epochs? And what is pretraining worth? We compare 50 labels with ten times as many.

# %% tags=["nbval-check-output"]
longer = {n: {"pretrained": [], "frozen": [], "scratch": []} for n in counts}
for one in read_results("doubt-transfer").data.values():
    longer[one["n_labels"]][one["start"]].append(one["accuracy"])
gaps = [np.subtract(one["pretrained"], one["frozen"]).mean() for one in longer.values()]
print(f"twice, two seeds: tuned minus probe {min(gaps):+.3f} to {max(gaps):+.3f}")
assert min(gaps) > 0 and max(gaps) < means[0]
worth = paired_interval(measured(50, "pretrained") - measured(500, "scratch"))
print(f"50 labels after pretraining minus 500 from scratch: {worth.mean:+.3f}", end=" ")
print(f"[{worth.low:+.3f}, {worth.high:+.3f}]")
assert worth.low > 0
tried = {
    one["lr"]: one["accuracy"] for name, one in read_results("objectives").data.items()
    if "tuning/from scratch, one way" in name
}
assert round(max(tried.values()) - tried[0.001], 2) == 0.09

# %% [markdown]
# After twice the training the lead is smaller, and two seeds give too wide an interval to say more. Here 50 labels after pretraining beat 500 from scratch, both at the rate 1e-3. In the experiment of lesson 10 the best of six rates brought scratch 9 points with 100 labels, on the seed that chose it. The next section has a stronger rival.
#
# ## Further: a baseline that cannot read
#
# **Naive Bayes** forgets the order of words: a **bag of words**. The score of a review is the sum, over its words, of $\ln P(\text{word} \mid 1) - \ln P(\text{word} \mid 0)$, each a share of counts with one added. It gets the labels of the stored runs, seed by seed.

# %% tags=["nbval-check-output"]
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

words = CountVectorizer(analyzer=str.split).fit(corpus.train.texts)
test_counts = words.transform(corpus.test.texts)


def bag_of_words(n_labels, seed):
    few = label_subset(corpus.train, n_labels, seed)
    reader = MultinomialNB(fit_prior=False)  # adds one to each count
    return reader.fit(words.transform(few.texts), few.labels).score(test_counts, labels)


seeds = sorted({record["seed"] for record in records})
bags = {n: np.array([bag_of_words(n, seed) for seed in seeds]) for n in counts}
behind = []
print("pretrained, and scratch, each minus the bag; ten comparisons")
for n in counts:
    both = (measured(n, "pretrained"), measured(n, "scratch"))
    gains = [paired_interval(accuracies - bags[n], 10) for accuracies in both]
    row = (f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]" for gain in gains)
    print(f"{n:>3} labels  ", "   ".join(row))
    assert gains[0].low > 0 > gains[1].mean
    behind += [n] * (gains[1].high < 0)
assert behind == [50, 200, 500]

# %% [markdown]
# The pretrained model beats the bag of words at all five numbers of labels. From scratch, at this one rate, it is behind the bag with 50, 200 and 500 labels (a better rate may close the gap, see above); with 20 and 100 the difference is open.
#
# ### Label-efficiency curves
#
# No reader can expect to be right more often than by the exact **posterior**, the probability that a review praises, given all its words.

# %%
posterior = np.array([world.label_posterior(t.split(" ")) for t in corpus.test.texts])
tie = np.abs(posterior - 0.5) < 1e-6
best = np.where(tie, 0.5, (posterior > 0.5) == labels).mean()
majority = max(labels.mean(), 1 - labels.mean())
named = {"pretrained": "pretrained", "scratch": "scratch", "frozen": "frozen probe"}
rows = {name: [measured(n, start) for n in counts] for start, name in named.items()}
lines = []
for name, row in {**rows, "bag of words": bags.values()}.items():
    spans = [paired_interval(values) for values in row]
    mean, low, high = ([getattr(s, e) for s in spans] for e in ("mean", "low", "high"))
    lines.append(plots.Curve(name, counts, mean, low=low, high=high))
fig, ax = plots.curves(
    lines, xlabel="labelled reviews", ylabel="accuracy on the test reviews",
    x_log=True, y_range=(0.45, 1.02), title="What a label buys",
    references={"best reachable": best, "majority": majority},
)
ax.set_xticks(counts, [f"{n:,}" for n in counts])
ax.minorticks_off()
plots.show(fig, name="09_label_efficiency")

# %% [markdown]
# ## Your own sentence
#
# Write a review in French. The model answers whatever you write; the exact **posterior**, the probability of praise given the words, is known only for texts that the grammar can write. Our sentence praises twice, once by a negation, and the model may be badly wrong about it. Replace *n'est pas ennuyeux* by *est ennuyeux*: does the model notice the negation?

# %%
sentence = "Le roman n'est pas ennuyeux. La fin est magnifique."  # <- change me
words = world.split(sentence)
praise = class_probabilities(tuned, tokenizer, [" ".join(words)])[0, 1]
print(f"model: it praises the book with probability {praise:.3f}")
try:
    print(f"exact: {world.label_posterior(words):.3f}")
except ValueError as error:
    print(f"exact: none, for {error}")

# %% [markdown]
# How sure can *any* reader be? Find the word that decides.

# %%
course.widgets.how_sure(world=world)

# %% [markdown]
# ## What this does not show
#
# The labelled reviews are among the texts of the pretraining, the test reviews are not ([lesson 15](15_real_text.ipynb) has the other case). One pretraining: in [lesson 10](10_masked_or_causal.ipynb), by another recipe, one causal body of five did not fit its 100 labels. Equal *labels*, not equal *time*.
#
# ## Take-home
#
# | | body begins | trained |
# |---|---|---|
# | fine-tuning | pretrained | body and head |
# | probe | pretrained | the head alone |
# | from scratch | random | body and head |
# | the probe's control | random | the head alone |

# %% [markdown]
# ## Questions

# %%
course.quiz("transfer")

# %% [markdown]
# ## Exercises
#
# [exercise: gain_interval]


# %%
def gain_interval(ours, theirs, t):
    ...


# %%
course.check("gain_interval", gain_interval)

# %% [markdown]
# ## Further: three more exercises

# %% [markdown]
# [exercise: mean_pool]


# %%
def mean_pool(hidden, mask):
    ...


# %%
course.check("mean_pool", mean_pool)

# %% [markdown]
# [exercise: freeze]


# %%
def freeze(model):
    ...


# %%
course.check("freeze", freeze)

# %% [markdown]
# [exercise: last_token]


# %%
def last_token(hidden, mask):
    ...


# %%
course.check("last_token", last_token)

# %% [markdown]
# ### Try it yourself
#
# **1.** Between a probe and fine-tuning: freeze the body, then set its last block free with `model.body.blocks[-1].requires_grad_(True)`. Train it with `fine_tune`. How many parameters are trained? Does it beat the probe?
#
# <details><summary>Answer</summary>
#
# One block and the head, 196,864 and 256 parameters with the budget of a laptop. Train the block at 1e-3 and the probe at 1e-2, as above, for three seeds with the same batches, and take the interval of the paired differences. If it contains zero, three seeds cannot say.
#
# </details>
#
# ## Summary
#
# 1. A classifier has the body of the language model and a new head, which reads the mean of the real tokens.
# 2. With the same 50 labels the pretrained body is far ahead of a fresh one.
# 3. *Further:* in the stored runs fine-tuning beats the probe (by less after twice the training), and a transformer from scratch is nowhere shown to be ahead of a bag of words.
#
# *Where this comes from:* Radford et al., *Improving Language Understanding by Generative Pre-Training*, 2018, section 3.2. Alain and Bengio, [arXiv:1610.01644](https://arxiv.org/abs/1610.01644), for probes.
#
# *What comes next:* [lesson 10](10_masked_or_causal.ipynb) asks what a model gains that may look both ways.
