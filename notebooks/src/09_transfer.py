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
# 1. turn a language model into a classifier: say what is kept, what is new, and which vector the new head reads;
# 2. recognise five mistakes of fine-tuning by their symptoms, among them a loss that cannot fall below 0.313;
# 3. compare two ways of training fairly: same labels, same order, several seeds, an interval for the difference;
# 4. place a result between its yardsticks: the majority, a bag of words, a frozen probe, and the best that anybody could reach;
# 5. look at what a classifier still gets wrong, and say whether its probabilities deserve trust.
#
# *You need:* lesson 08 (a language model learns to predict the next word) and what a causal mask is (lesson 02).
# *It takes:* an hour to read; a minute and a half to run on two cores, less with a GPU.

# %% [markdown]
# ## Set-up
#
# The body is pretrained here, on reviews without their labels, for two thirds of the steps of lesson 08. Then small classifiers are trained with few labels. Longer runs with many
# seeds come from the folder `results/`, where a command has kept them.

# %%
import math
import textwrap
from collections import Counter

import numpy as np
import torch
import torch.nn.functional as F

import tinytx as tx
import tinytx_course as course
from tinytx.model.transformer import pool
from tinytx.text.batching import pad_batch
from tinytx.text.corpora import label_subset
from tinytx.training.evaluate import class_probabilities, classifier_inputs
from tinytx.training.fit import fit
from tinytx.training.intervals import paired_interval, wilson_interval
from tinytx.training.recipes import plan
from tinytx.training.tasks import fingerprint
from tinytx_course import plots
from tinytx_course.results import read_results

# %% [markdown]
# ## Why: labels are dear, text is cheap
#
# Somebody has to read a review to say whether it praises the book. Reviews without such a label lie about in heaps. The promise of *transfer* is: let a model learn the language
# from the heap, then teach it the question with the few labels you can pay for. Here are three of our reviews; 1 means that the book is praised.

# %%
corpus = tx.load_corpus("world")
for label, text in zip(corpus.test.labels[:3], corpus.test.texts[:3], strict=True):
    print(textwrap.fill(f"{label}   {text}", 88, subsequent_indent="    "))

# %% [markdown]
# Accuracy alone says little, so we put two yardsticks down before anything is trained. The lower one is the **majority**: always give the commoner label. The upper one exists only because we know the
# grammar: the exact probability that a review praises, given all its words. Who answers by it is right as often as *anyone* can be on these texts. Some reviews say two things for the
# book and two against it; nobody can know those.

# %%
world = tx.World()
labels = np.array(corpus.test.labels)
posterior = np.array([world.label_posterior(text.split(" ")) for text in corpus.test.texts])
best = np.mean((posterior > 0.5) == labels)
majority = max(labels.mean(), 1 - labels.mean())
print(f"{len(labels):,} test reviews: majority {majority:.3f}, best reachable {best:.3f}")

# %% [markdown]
# ### The tempting wrong way
#
# The lab that this course grew out of asks the same question, and many reports answer it like this: fine-tune the pretrained model and a fresh one, once each; draw accuracy on the *test* set after each of 15
# epochs; report the highest point of each curve; the higher one wins. Four steps, and each can fool you. Before we do better, we need the classifier.
#
# ## Swapping the head
#
# A transformer here is a **body**, which turns tokens into vectors, and a **head**, which reads them. The language model's head gives a distribution over the vocabulary at *every* position. The classifier's
# gives *one* answer for the whole sequence. What will the two shapes be, for two rows of four tokens, nine pieces and two classes?

# %%
_ = torch.manual_seed(0)
config = tx.TransformerConfig(vocab_size=9, d_model=6, n_heads=2, n_layers=1, d_ff=8)
language_model = tx.LanguageModel(config)
classifier = tx.Classifier.from_body(language_model.body, n_classes=2)
token_ids = torch.tensor([[2, 5, 8, 7], [2, 6, 0, 0]])  # (B, T); 0 is padding
real = tx.padding_mask(token_ids, pad_id=0)
print("language model:", tuple(language_model(token_ids).shape), "for each position")
print("classifier:    ", tuple(classifier(token_ids, real).shape), "for each row")
print("the same body: ", classifier.body is language_model.body)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# What is kept is nearly everything. Lesson 06 counted the lab's model: a vocabulary of 100, four layers of width 200. Take away the old head, put the new one on, and see how many of the
# classifier's numbers begin at random.

# %%
lab = tx.PRESETS["seed-lab"]
body = tx.parameter_table(lab, head=None).total
for head in ("lm", "classifier"):
    total = tx.parameter_table(lab, head=head).total
    print(f"{head:<11} body {body:,} + head {total - body:>6,} = {total:>9,}")
print(f"new in the classifier: {1 - body / total:.2%}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### By hand: which vector does the head read?
#
# The body returns a vector for each token, the head wants one for the row. So we have to choose, and this is called *pooling*. Ours takes the mean over the **real** tokens: add them
# up, divide by how many there are, and leave the padding out. As a loop:

# %%
hidden = classifier.body(token_ids, real)  # (B, T, D)
pooled = []
for vectors, is_real in zip(hidden, real, strict=True):
    kept = [vector for vector, yes in zip(vectors, is_real, strict=True) if yes]
    pooled.append(sum(kept) / len(kept))
pooled = torch.stack(pooled)  # (B, D)
torch.testing.assert_close(classifier.head(pooled), classifier(token_ids, real))
print("averaged", real.sum(dim=1).tolist(), "vectors; the loop and the package agree")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The same without a loop is one masked sum. There are other choices: the *first* token, as BERT does with its `[CLS]`, or the *last*, as GPT does. In a body with a causal mask they differ
# greatly, since a token knows only what stands to its left. Exchange the words behind the first token: which answers can move at all?

# %%
summed = (hidden * real[:, :, None]).sum(dim=1)  # (B, D)
torch.testing.assert_close(summed / real.sum(dim=1, keepdim=True), pooled)
other = torch.tensor([[2, 8, 5, 7], [2, 7, 0, 0]])
for pooling in ("first", "last", "mean"):
    reader = tx.Classifier.from_body(language_model.body, pooling=pooling)
    moved = (reader(token_ids, real) != reader(other, real)).any(dim=1)
    print(f"{pooling:<6} the answer depends on the words: {moved.tolist()}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The first token of a causal body has seen nothing but itself, and a head that reads it can only guess. (BERT's first token sees everything: its body has no causal mask.) The last real token has seen all, and the mean lets
# every token vote.
#
# ## Pretrain once
#
# Now the real body. It reads the training reviews, not their labels, and learns to predict the next piece; the shorter run, at a slightly higher rate, leaves time for what follows. The line below says how well it does on reviews it never saw, and how far
# that is from the exact floor.

# %%
shorter = {"n_steps": plan("world").settings.n_steps * 2 // 3, "lr": 1e-2}
pretrained = fit(corpus, training_changes=shorter, progress=False)
tokenizer, max_len = pretrained.tokenizer, pretrained.model.config.max_len
pretrained

# %% [markdown]
# ## Five mistakes, measured
#
# Each of them stood in code that people handed in for the lab. They raise no error; the curves just end lower than they should, or look different from day to day.
#
# ### Reading the padding
#
# `output[-1]`, or here `hidden[:, -1]`, looks like "the last token". Take sixteen reviews as they come, padded on the right to the longest. What stands in the last column?
# In the picture each row is a review, dark where there is a token, hatched (*masked*) where there is padding. A row that ends in a token is dark up to the right edge: how many do you expect?

# %%
small = label_subset(corpus.train, 64, seed=0)


def as_batch(texts):
    ids, _ = classifier_inputs(tokenizer, texts, max_len)
    token_ids = pad_batch(ids, tokenizer.pad_id)  # (B, T)
    return token_ids, tx.padding_mask(token_ids, tokenizer.pad_id)


sixteen, real16 = as_batch(small.texts[:16])
positions = ["" if place % 10 else str(place) for place in range(real16.shape[1])]
fig, ax = plots.figure(width=8.5, height=3.6)
plots.heatmap(
    real16.float(), allowed=real16, low=0, high=1.4, col_labels=positions, ax=ax,
    xlabel="position", ylabel="review", title="Sixteen reviews, padded to the longest",
)  # fmt: skip
plots.show(fig, name="09_padding_in_a_batch", alt="""
    A batch of sixteen reviews as a map. Tokens fill each row from the left to different
    lengths, the rest is hatched as padding. Only the longest reviews reach the right edge; in
    all other rows the last column is padding.""")
print(f"{(~real16[:, -1]).sum()} of 16 rows end in padding;", end=" ")
print(f"{(~real16).float().mean():.0%} of the batch is padding")

# %% [markdown]
# One column that nearly never holds a word. A causal body softens the blow, for a padding token sees all words before it, so *something* arrives. But it breaks a promise: the answer to a review now
# depends on who else is in the batch, since its neighbours decide how much padding it gets. Here is the short row of our toy batch, with its neighbour and alone.

# %%
alone, real_alone = token_ids[1:, :2], real[1:, :2]
for name in ("last column", "last real token"):
    reader = tx.Classifier.from_body(language_model.body, pooling="last")
    given = (None, None) if name == "last column" else (real, real_alone)
    in_company, by_itself = reader(token_ids, given[0])[1], reader(alone, given[1])[0]
    same = torch.allclose(in_company, by_itself, atol=1e-6)
    print(f"{name:<16} same answer alone and in company: {same}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### Softmax before the loss
#
# Torch's `cross_entropy` takes *logits* and applies softmax itself. Apply it before as well, and nothing complains. But now the "logits" are numbers between 0 and 1. The best that a model can then say is
# (1, 0), and softmax of that is not certain at all: $e/(e+1) \approx 0.73$. So the loss ends at a floor,
#
# $$-\ln\frac{e^1}{e^1 + e^0} = -\ln\frac{e}{e + 1},$$
#
# and with $C$ classes at $-\ln\,(e / (e + C - 1))$. Compare with $\ln C$, where a pure guess stands:

# %%
perfect = F.one_hot(torch.tensor([0]), 2).float()  # what softmax gives at its very best
floor = F.cross_entropy(perfect, torch.tensor([0])).item()
assert math.isclose(floor, -math.log(math.e / (math.e + 1)), rel_tol=1e-6)
print("classes    floor    a guess")
for n_classes in (2, 100, 50_001):
    lowest = math.log(math.e + n_classes - 1) - 1
    print(f"{n_classes:>7,}{lowest:9.3f}{math.log(n_classes):11.3f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# With a vocabulary of 50,001, as in the lab, the loss of a language model stays between two numbers that lie one nat apart: whoever sees a loss that "hardly moves" near $\ln V$ should look
# for a second softmax. Worse than the floor is the slope, for the slope is what a model learns from.
#
# In the picture, the margin is the right class's logit minus the other's: to the left the model is sure and wrong, to the right sure and right. Where should a loss be steep, and what should it approach on the
# right?

# %%
margins = torch.linspace(-8, 8, 81)
pairs = torch.stack([margins, torch.zeros_like(margins)], dim=1)  # (81, 2), class 0 is right
target = torch.zeros(81, dtype=torch.long)
given = {"as it should be": pairs, "softmax before": pairs.softmax(dim=-1)}
losses = {name: F.cross_entropy(one, target, reduction="none") for name, one in given.items()}
fig, ax = plots.curves(
    [plots.Curve(name, margins, loss) for name, loss in losses.items()],
    xlabel="margin of the right class (logits)", ylabel="loss (nats)", y_range=(0, 4),
    references={f"floor {floor:.3f}": floor}, title="A second softmax flattens the loss",
)  # fmt: skip
plots.show(fig, name="09_softmax_twice", alt="""
    Loss against the margin of the right class. The proper loss falls steeply on the left and
    approaches zero on the right. With a second softmax the curve is flat at about 1.3 on the
    left, flat at 0.313 on the right, and has a slope only in the middle.""")

# %% [markdown]
# Flat on the left: a sure mistake is never repaired. Flat on the right at 0.313: the loss does not tell a good model from an excellent one.
#
# ### All of them in one small run
#
# The loop below is as short as those that were handed in: 64 labelled reviews, batches of sixteen in random order, a body copied from the pretrained one, a new head. Everything that can be done wrong is an
# argument: `read` says which vector the head gets, `read_later` which one when the model is tested, if that is another. Two further arguments are the loss and the optimizer, and `causal=False` takes away the
# mask that the body was pretrained with.


# %%
def vectors_for_head(hidden, real, read):
    return hidden[:, -1] if read == "column" else pool(hidden, real, read)


def handed_in(
    read="mean", read_later=None, loss=F.cross_entropy, optimizer=torch.optim.AdamW, causal=True
):
    torch.manual_seed(0)
    model = tx.Classifier(pretrained.model.config.replace(causal=causal, dropout=0.0))
    model.body.load_state_dict(pretrained.model.body.state_dict())
    steps = optimizer(model.parameters(), lr=1e-3)  # Adam's rate, whoever uses it
    losses = []
    for order in torch.cat([torch.randperm(64) for _ in range(5)]).view(-1, 16):  # five epochs
        token_ids, real = as_batch([small.texts[i] for i in order])
        logits = model.head(vectors_for_head(model.body(token_ids), real, read))
        value = loss(logits, torch.tensor(small.labels)[order])
        value.backward()
        steps.step()
        steps.zero_grad()
        losses.append(value.item())
    return np.mean(losses[-4:]), tested(model, read_later or read)


# %% [markdown]
# Tested on 320 reviews, twenty batches of sixteen as they come. We look at two numbers: the loss on the training reviews in the last epoch, and the accuracy on the test reviews. A loss that stays near $\ln 2
# = 0.693$ says that nothing was learned, whatever the accuracy.


# %%
@torch.no_grad()
def tested(model, read, n=320):
    answers = []
    for start in range(0, n, 16):
        token_ids, real = as_batch(corpus.test.texts[start : start + 16])
        logits = model.head(vectors_for_head(model.body(token_ids), real, read))
        answers.append(logits.argmax(dim=1))
    return int((torch.cat(answers).numpy() == labels[:n]).sum())


def softmax_first(logits, target):
    return F.cross_entropy(logits.softmax(dim=-1), target)


# %% [markdown]
# Seven rows, each trained from the same body with the same labels in the same order. The first two are sound, the others are mistakes; the last one lets the pretrained body look both ways, which it has
# never done before. Which loss will stay near 0.693, and which cannot go below 0.313?

# %%
ways = {
    "mean of the real tokens": {},
    "last real token": {"read": "last"},
    "last column, mostly padding": {"read": "column"},
    "taught at the token, read at the column": {"read": "last", "read_later": "column"},
    "softmax before the loss": {"loss": softmax_first},
    "SGD with Adam's rate": {"optimizer": torch.optim.SGD},
    "causal mask taken away": {"causal": False},
}
table = [f"{'':<41}loss    right of 320, 95 % interval"]
for name, way in ways.items():
    loss, n_right = handed_in(**way)
    low, high = wilson_interval(n_right, 320)
    table.append(f"{name:<41}{loss:.3f}   {n_right} = {n_right / 320:.2f}  [{low:.2f}, {high:.2f}]")
print("\n".join(table))

# %% [markdown]
# Read the loss column first. SGD has hardly left $\ln 2$: Adam divides each step by the size of the gradient, plain SGD does not, so it needs a rate that is many times larger. The row with a second softmax cannot
# go below its floor, however well it does. Then the accuracies, with caution: the intervals are wide, and this is *one* seed. A mistake may cost little today and much tomorrow. That is no licence to make it; it is the
# reason why one run proves so little. And what is that interval?

# %% [markdown]
# ### The Wilson interval, by hand
#
# If $k$ of $n$ answers are right, the true rate is near $k/n$, but how near? The schoolbook answer, $k/n \pm 1.96\sqrt{p(1-p)/n}$, puts the *estimate* in place of the unknown $p$. With ten of ten right it
# claims "100 %, give or take nothing". Wilson asks the other way round: for which rates $p$ would $k/n$ lie within 1.96 standard errors, computed with that very $p$? We can simply try them all.

# %%
print("right   schoolbook        Wilson, all p tried")
p = np.linspace(0, 1, 100_001)
for k, n in ((10, 10), (240, 320)):
    half = 1.96 * math.sqrt(k / n * (1 - k / n) / n)
    fits = p[np.abs(k / n - p) <= 1.96 * np.sqrt(p * (1 - p) / n)]
    np.testing.assert_allclose(fits[[0, -1]], wilson_interval(k, n), atol=1e-4)
    print(f"{k:>3}/{n:<4}[{k / n - half:.3f}, {k / n + half:.3f}]    [{fits[0]:.3f}, {fits[-1]:.3f}]")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Ten of ten is good news about a rate above 72 %, not proof of perfection. For hundreds of reviews the two nearly agree. The interval speaks of *other test reviews* only. Another draw of labels, another order, another
# start: of these it knows nothing. For them we need seeds.
#
# ## Doing it properly
#
# Each seed draws 50 labelled reviews, their order and the first weights of the head. Then we train twice: once from the pretrained body, once from a fresh one with the **same** labels in the **same**
# order. The number of epochs is fixed beforehand, the last epoch counts, and the test set chooses nothing. Three seeds here, since you are watching.
#
# A third way is cheap and tells a lot: leave the body as it is and train the new head alone. Such a **frozen probe** asks what the pretrained vectors already know. Its head has few
# numbers to learn, so the package gives it a ten times larger rate.

# %%
N_LABELS, SEEDS, N_SCORED = 50, (0, 1, 2), 200


def fine_tuned(seed, **how):
    return fit(
        corpus, objective="classification", start=pretrained, seed=seed, n_labels=N_LABELS, n_scored=N_SCORED,
        progress=False, report=lambda line: None, **how,
    )  # fmt: skip


runs = {"pretrained": [fine_tuned(seed) for seed in SEEDS]}
runs["scratch"] = [fine_tuned(seed, fresh=True) for seed in SEEDS]
runs["frozen probe"] = [fine_tuned(seed, frozen=True) for seed in SEEDS]
ends = {name: np.array([run.evaluation.score.accuracy for run in some]) for name, some in runs.items()}
for name, values in ends.items():
    row = "   ".join(f"{value:.3f}" for value in values)
    print(f"{name:<14}{row}     mean {values.mean():.3f}")

# %% [markdown]
# The curves look at 200 of the test reviews after each epoch; the table above counts all 2,000 after the last one. Lines are means over the seeds, bands reach from the worst seed to the best. Before you look: where do the
# two starts stand after the *first* epoch, and which of the bands is wider?

# %%
scored = label_subset(corpus.test, N_SCORED, seed=0)  # as the curves draw them
sure = np.array([world.label_posterior(text.split(" ")) for text in scored.texts])
best_scored = np.mean((sure > 0.5) == np.array(scored.labels))


def curve_of(name, some):
    table = np.array([run.accuracy_by_epoch for run in some])  # (seeds, epochs)
    epochs = range(1, table.shape[1] + 1)
    return plots.Curve(name, epochs, table.mean(0), low=table.min(0), high=table.max(0))


fig, ax = plots.curves(
    [curve_of(name, some) for name, some in runs.items()],
    xlabel="epoch", ylabel="accuracy on test reviews", y_range=(0.4, 1),
    references={"best reachable": best_scored, "a coin": 0.5},
    title=f"{N_LABELS} labels, {len(SEEDS)} seeds",
)  # fmt: skip
plots.show(fig, name="09_accuracy_by_epoch", alt="""
    Accuracy on test reviews after each epoch for three ways to train with fifty labels: from a
    pretrained body, from scratch, and with the pretrained body frozen. Bands show the spread of
    three seeds. Dashed lines mark the best reachable accuracy near the top and a coin at one
    half.""")

# %% [markdown]
# No line can cross the upper dashed one for long: it is what perfect knowledge of the language reaches on these very reviews. The gap between a curve and that line is what there is to gain, and *only* the world can
# tell us that. On real reviews nobody knows where the line lies.
#
# ### The interval of a paired difference
#
# Is the gain real? Labels and order were shared, so each seed gives one *difference*, and luck with the labels mostly drops out of it. Student's interval is mean $\pm\, t \cdot s/\sqrt{n}$. By hand, on three numbers
# that can be checked on paper:

# %%
gains = [0.10, 0.14, 0.06]
mean = sum(gains) / 3
s = math.sqrt(sum((gain - mean) ** 2 for gain in gains) / 2)  # n - 1
half = 4.303 * s / math.sqrt(3)  # 4.303: Student's t for 95 % and n - 1 = 2
found = paired_interval(gains)
np.testing.assert_allclose((mean - half, mean + half), (found.low, found.high), atol=1e-4)
print(f"mean {mean:.2f}, s {s:.2f}: from {found.low:+.3f} to {found.high:+.3f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Three gains that are all clearly positive, and the interval still reaches down to nearly nothing: with three seeds, $t$ is above four. Now for ours.

# %%
for name in ("scratch", "frozen probe"):
    gain = paired_interval(ends["pretrained"] - ends[name])
    verdict = "excludes zero" if gain.excludes_zero else "does not exclude zero"
    interval = f"[{gain.low:+.3f}, {gain.high:+.3f}]"
    print(f"pretrained minus {name:<13}{gain.mean:+.3f}  {interval}  {verdict}")

# %% [markdown]
# ## More seeds, more labels
#
# For a verdict we want more of both. `python -m experiments transfer --corpus world` has measured many cells (a number of labels, a seed, a start), each kept as soon as it was done. Here is where and when, and
# what it found. `gain` is pretrained minus scratch, over the same seeds.

# %%
kept = read_results("transfer")
records = [record for record in kept.data.values() if record["corpus"] == "world"]
((budget, _),) = Counter(record["origin"]["budget"] for record in records).most_common(1)
records = [record for record in records if record["origin"]["budget"] == budget]
records.sort(key=lambda record: record["seed"])
counts = sorted({record["n_labels"] for record in records})
few = N_LABELS if N_LABELS in counts else counts[0]
same = {record["origin"]["texts"] for record in records} == {fingerprint(corpus)}
print(textwrap.fill(f"budget {budget}, {kept.source_line()}; on these very texts: {same}", 88))


# %% [markdown]
# One line for each number of labels: the mean over the seeds of each start, the gain, and its interval. Compare the width of the interval with that of our three seeds.


# %%
def measured(n_labels, start, field="accuracy"):
    chosen = [r for r in records if (r["n_labels"], r["start"]) == (n_labels, start)]
    return np.array([record[field] for record in chosen])  # one a seed


print("labels  seeds  pretrained  scratch  frozen    gain  95 % interval")
for n in counts:
    starts = [measured(n, start) for start in ("pretrained", "scratch", "frozen")]
    gain = paired_interval(starts[0] - starts[1])
    row = "  ".join(f"{values.mean():8.3f}" for values in starts)
    interval = f"[{gain.low:+.3f}, {gain.high:+.3f}]"
    print(f"{n:>6,}{len(starts[0]):>7}  {row}  {gain.mean:+.3f}  {interval}")

# %% [markdown]
# ### One seed would have said
#
# Suppose you had run one seed only. Each bar below is what *that* seed would have reported as the gain of pretraining, with equal right. The last bar is the mean, with its interval. How far apart do you expect the
# luckiest and the unluckiest report to be?

# %%
differences = measured(few, "pretrained") - measured(few, "scratch")
gain = paired_interval(differences)
bars = {f"seed {seed}": value for seed, value in enumerate(differences)} | {"mean": gain.mean}
fig, ax = plots.bars(
    bars, intervals={"mean": (gain.low, gain.high)}, numbers="+.3f",
    xlabel="accuracy gained by pretraining", title=f"{few} labels: every seed tells another story",
)  # fmt: skip
plots.show(fig, name="09_gain_by_seed", alt="""
    One bar for each seed: the accuracy of the pretrained model minus that of the model from
    scratch, with few labels. The bars differ in length from seed to seed. A last bar shows their
    mean, with its interval.""")

# %% [markdown]
# Why pairs? Because a lucky draw of labels helps both models. If we forgot which seed goes with which, the two spreads would add up. The cell compares the uncertainty of the mean difference with and without the
# pairing; it gains just as far as the two go up and down together, which the last line measures.

# %%
ours, theirs = measured(few, "pretrained"), measured(few, "scratch")
paired = np.std(ours - theirs, ddof=1) / math.sqrt(len(ours))
unpaired = math.sqrt((np.var(ours, ddof=1) + np.var(theirs, ddof=1)) / len(ours))
print(f"from {differences.min():+.3f} to {differences.max():+.3f} over {len(ours)} seeds")
print(f"standard error of the mean gain: paired {paired:.4f}, as if unpaired {unpaired:.4f}")
print(f"correlation of the two over seeds: {np.corrcoef(ours, theirs)[0, 1]:+.2f}")

# %% [markdown]
# ## A baseline that cannot read
#
# Before we praise a transformer, let something simple compete. **Naive Bayes** counts words in each class and forgets their order: a *bag of words*. The score of a review is the sum, over its words, of
# $\ln P(\text{word} \mid 1) - \ln P(\text{word} \mid 0)$, each estimated as a share of counts with one added, so that no share is zero. First on two tiny reviews, *beau beau livre* (praise) and
# *livre fade* (blame):


# %%
def word_counts(texts, place):
    table = np.zeros((len(texts), len(place)))
    for row, text in enumerate(texts):
        for word in text.split(" "):
            if word in place:
                table[row, place[word]] += 1
    return table


def word_weights(table, is_praise):
    blame, praise = (table[is_praise == label].sum(axis=0) + 1 for label in (0, 1))
    return np.log(praise / praise.sum()) - np.log(blame / blame.sum())


toy_place = {"beau": 0, "livre": 1, "fade": 2}
toy = word_counts(["beau beau livre", "livre fade"], toy_place)
for word, weight in zip(toy_place, word_weights(toy, np.array([1, 0])), strict=True):
    print(f"{word:<6}{weight:+.3f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# *beau* has 3 of 6 in praise (two counts and the one added) against 1 of 5 in blame: $\ln(0.5/0.2) = 0.916$. *livre* has 2 of 6 against 2 of 5, a little negative for no good reason: that is what few labels do. Now the same on the
# labels that the transformers had, seed by seed.

# %%
known = sorted({word for text in corpus.train.texts for word in text.split(" ")})
place = {word: column for column, word in enumerate(known)}
test_counts = word_counts(corpus.test.texts, place)


def bag_of_words(n_labels, seed):
    learned = label_subset(corpus.train, n_labels, seed)
    weights = word_weights(word_counts(learned.texts, place), np.array(learned.labels))
    return np.mean((test_counts @ weights > 0) == labels)


seeds = sorted({record["seed"] for record in records})
bags = {n: np.array([bag_of_words(n, seed) for seed in seeds]) for n in counts}
live = np.array([bag_of_words(N_LABELS, seed) for seed in SEEDS])
print(f"{N_LABELS} labels, our three seeds: bag of words {live.mean():.3f},", end=" ")
print(f"pretrained {ends['pretrained'].mean():.3f}, scratch {ends['scratch'].mean():.3f}")

# %% [markdown]
# Here is the whole field, with accuracy against the number of labels: a **label-efficiency curve**. Bands are 95 % intervals of the mean over seeds. Ask of it: how many labels does each method need to reach the
# height that pretraining has at the left? Where, if anywhere, does the bag of words win?


# %%
def efficiency(name, table, **look):
    found = [paired_interval(values) for values in table]  # of the mean over seeds
    mean, low, high = ([getattr(one, end) for one in found] for end in ("mean", "low", "high"))
    return plots.Curve(name, counts, mean, low=low, high=high, **look)


starts = {"pretrained": "pretrained", "scratch": "scratch", "frozen": "frozen probe"}
lines = [efficiency(name, [measured(n, start) for n in counts]) for start, name in starts.items()]
lines.append(efficiency("bag of words", list(bags.values()), dashed=True))
fig, ax = plots.curves(
    lines, xlabel="labelled reviews", ylabel="accuracy on the test reviews",
    x_log=True, y_range=(0.45, 1), title="What a label buys",
    references={"best reachable": best, "majority": majority},
)  # fmt: skip
ax.set_xticks(counts, [f"{n:,}" for n in counts])
ax.minorticks_off()
plots.show(fig, name="09_label_efficiency", alt="""
    Accuracy against the number of labelled reviews, on a logarithmic axis, for a pretrained
    model, a model from scratch, a frozen probe and a bag of words. Dashed level lines mark the
    best reachable accuracy and the majority. The distance between the curves shows what
    pretraining is worth.""")

# %% [markdown]
# The picture may flatter or shame the transformer, so we let a cell say who wins, pair by pair: at each number of labels the pretrained model minus the bag of words, with its interval over the same seeds.

# %%
for n in counts:
    gain = paired_interval(measured(n, "pretrained") - bags[n])
    winner = "too close to call"
    if gain.excludes_zero:
        winner = "pretrained wins" if gain.mean > 0 else "the bag of words wins"
    interval = f"[{gain.low:+.3f}, {gain.high:+.3f}]"
    print(f"{n:>6,} labels: {gain.mean:+.3f}  {interval}  {winner}")

# %% [markdown]
# Take such a baseline seriously. On the real book reviews of the lab, a linear model on word counts is *better* than every transformer in the public solutions that we know of, and no report says so. A bag
# of words needs no pretraining and takes a moment; whoever wants to sell a transformer has to beat it first, at the number of labels there really are.
#
# ## Choosing on the test set
#
# "We report the best epoch." Best *on the test set*? Then the test set has become part of training. How much does that flatter? Simulate it, where the truth is known: 15 epochs whose models are all right with
# probability 0.75, exactly. From one epoch to the next, three answers in ten are drawn anew. What does the best of 15 report?


# %%
def best_of(n_epochs, n_test, drawn_anew=0.3, p=0.75, n_labs=20_000):
    rng = np.random.default_rng(0)
    n_new = int(n_test * drawn_anew)
    steady = rng.binomial(n_test - n_new, p, size=(n_labs, 1))  # the same in all epochs
    changing = rng.binomial(n_new, p, size=(n_labs, n_epochs))
    return ((steady + changing) / n_test).max(axis=1) - p


flattery = {n_test: 100 * best_of(15, n_test).mean() for n_test in (100, 400, 2000)}
print("the best of 15 epochs flatters by")
print("\n".join(f"{points:.1f} points with {n:,} test reviews" for n, points in flattery.items()))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Nothing was learned from epoch to epoch, and yet the best one looks better: the maximum of noisy numbers lies above their mean. Predict the picture: does the flattery level off with more epochs? And how does it
# fall with more test reviews?

# %%
looks = (1, 2, 3, 5, 8, 12, 15, 20, 30)
lines = []
for n_test in (100, 400, 2000):
    flattered = np.array([100 * best_of(n, n_test, n_labs=4000) for n in looks])  # (looks, labs)
    low, high = np.quantile(flattered, (0.25, 0.75), axis=1)
    name = f"{n_test:,} test reviews"
    lines.append(plots.Curve(name, looks, flattered.mean(axis=1), low=low, high=high))
fig, ax = plots.curves(
    lines, xlabel="epochs among which the best is chosen", ylabel="points above the truth",
    references={"chosen elsewhere": 0.0}, title="The best epoch on the test set flatters",
)  # fmt: skip
plots.show(fig, name="09_best_epoch_flatters", alt="""
    Points by which the best epoch, chosen on the test set, lies above the true accuracy, against
    the number of epochs. All curves start at zero for one epoch and rise, quickly at first. With
    a hundred test reviews the flattery is largest, with two thousand it is small. Bands show the
    middle half of all simulated labs.""")

# %% [markdown]
# It rises quickly, then slowly, and shrinks with the square root of the test set. Choose the epoch on *other* reviews, such as a validation set, and the mean flattery on the test set is zero: the dashed line. Real curves also rise
# and fall for real, so that "best minus last" is larger still. In the kept runs, which report the last epoch, it would have been:

# %%
for start in ("pretrained", "scratch"):
    table = measured(few, start, "accuracy_by_epoch")  # (seeds, epochs)
    added = 100 * (table.max(axis=1) - table[:, -1]).mean()
    print(f"{start:<12}{few} labels: best epoch minus last epoch, mean {added:.1f} points")

# %% [markdown]
# ## What is still wrong?
#
# Take the pretrained model of seed 0, fixed before we looked, and ask for its probability of praise on all test reviews. Beside it we have the exact one. Three kinds of reviews: the model is right; the model is wrong where the
# exact posterior is right, so a better reader was possible; both are wrong, so that on these words nobody does better.

# %%
chosen = runs["pretrained"][0]
praise = class_probabilities(chosen.model, tokenizer, corpus.test.texts)[:, 1]
right = (praise > 0.5) == labels
knowable = (posterior > 0.5) == labels
missed, unknowable = ~right & knowable, ~right & ~knowable
print(f"the model is right:             {right.mean():.3f}")
print(f"it misses what can be known:    {missed.mean():.3f}")
print(f"wrong, as the best reader is:   {unknowable.mean():.3f}")

# %% [markdown]
# Here are three that it misses most confidently although the words leave no doubt. Read them: what do they have in common, and what might a reader of *words* trip over?

# %%
clear = np.flatnonzero(missed & (np.abs(posterior - 0.5) > 0.49))
for i in sorted(clear, key=lambda i: -abs(praise[i] - labels[i]))[:3]:
    print(f"praise? exact {posterior[i]:.3f}, model {praise[i]:.3f}, label {labels[i]}")
    print(textwrap.fill(corpus.test.texts[i], 88, initial_indent="  ", subsequent_indent="  "))

# %% [markdown]
# Three examples suggest, they do not prove. So we count. Guess first: is a longer review harder, as there is more to read, or easier, as there is more evidence? And what do negation (*n'*, *ne*) and *mais* ("but") do to
# a model that has seen only fifty labels? The bars carry Wilson intervals: the fewer reviews in a group, the wider. Do not call two groups different whose intervals overlap widely.

# %%
texts = [text.lower().split(" ") for text in corpus.test.texts]
n_sentences = np.array([sum(word in (".", "!", "?") for word in words) for words in texts])
negated = np.array([not {"n'", "ne"}.isdisjoint(words) for words in texts])
but = np.array(["mais" in words for words in texts])
groups = {f"{n} sentences": n_sentences == n for n in sorted(set(n_sentences))}
groups |= {"with negation": negated, "without negation": ~negated}
groups |= {'with "mais"': but, 'without "mais"': ~but}
hits = {name: right[members] for name, members in groups.items()}
fig, ax = plots.bars(
    {f"{name} ({len(hit):,})": hit.mean() for name, hit in hits.items()},
    intervals={
        f"{name} ({len(hit):,})": wilson_interval(int(hit.sum()), len(hit))
        for name, hit in hits.items()
    },
    xlabel="share of right answers", numbers=".2f", references={"best reachable": best},
    title="Where the classifier errs",
)  # fmt: skip
plots.show(fig, name="09_errors_by_group", alt="""
    Share of right answers of the fine-tuned classifier in groups of test reviews: by number of
    sentences, with and without negation, with and without the word mais. Each bar carries its
    Wilson interval, wider for smaller groups; a dashed line marks the best reachable accuracy
    over all reviews.""")

# %% [markdown]
# In brackets stands the number of reviews. Short reviews have a limit of their own: with two sentences, one for and one against, nobody can know.
#
# ### Does it know what it knows?
#
# A classifier also says *how sure* it is. On real data one can only check that on average. Here each answer has a right value. The scale is that of log-odds, $\ln\,(p / (1-p))$: 0 is "no idea", 3 is 95 %, 6
# is 99.8 %. On the diagonal the model is exactly as sure as it should be. What would a point in the upper left corner mean?


# %%
def log_odds(p, most=9.0):
    p = np.clip(np.asarray(p, dtype=float), 1e-12, 1 - 1e-12)
    return np.clip(np.log(p / (1 - p)), -most, most)


kinds = {"right": right, "misses what can be known": missed, "wrong, as the best reader": unknowable}
fig, ax = plots.scatter(
    [plots.Points(name, log_odds(posterior[k]), log_odds(praise[k])) for name, k in kinds.items()],
    xlabel="exact log-odds of praise, cut at 9", ylabel="the classifier's log-odds",
    x_range=(-9.5, 9.5), y_range=(-9.5, 9.5), diagonal="as sure as it should be",
    title="Probabilities against the truth",
)  # fmt: skip
plots.show(fig, name="09_probabilities_against_the_truth", alt="""
    Each test review as a point: the exact log-odds of praise across, the classifier's log-odds
    upwards. The exact values stand in columns, one for each surplus of praising over blaming
    sentences. Points in the lower left and upper right are right as a rule, those in the other
    two corners are missed. A dashed diagonal marks perfect confidence.""")

# %% [markdown]
# The exact values stand in columns. Each sentence agrees with its review 95 times in 100, so one more sentence of praise adds $\ln(0.95/0.05) \approx 2.9$. The upper left corner is "sure of praise where the words say blame". If the
# cloud is flatter than the diagonal, the model is *less* sure than the evidence allows; if it is steeper where it errs, it is too sure. The usual check without the truth groups answers by confidence:

# %%
confidence = np.maximum(praise, 1 - praise)
exact_of_answer = np.where(praise > 0.5, posterior, 1 - posterior)
columns = (confidence, right, exact_of_answer)
print("confidence   reviews   it says  is right     exact")
for low in (0.5, 0.6, 0.7, 0.8, 0.9):
    inside = (confidence >= low) & (confidence < (low + 0.1 if low < 0.9 else 2))
    if inside.any():
        means = "".join(f"{column[inside].mean():10.3f}" for column in columns)
        print(f"{low:.1f} to {low + 0.1:.1f}{inside.sum():>10,}{means}")

# %% [markdown]
# In a **reliable** classifier the columns "it says" and "is right" agree. The columns "is right" and "exact" must agree up to chance, whatever the model does: both are the share of right answers in the group, once counted
# and once computed. That is a check of the world, not of the model.
#
# ## What this does not show
#
# - Our reviews are far simpler than real ones, and the pretraining text is exactly like the labelled text. When they differ, as old novels differ from book reviews, pretraining can gain nothing or harm. Lesson 15 is about that.
# - Only the seeds of fine-tuning vary; the body was pretrained once. Another pretraining would move all of its results together.
# - We compare equal *labels*, not equal *time*: scratch spent nothing on pretraining. Who fine-tunes once may care; who has ten questions pays for the body once.
# - "Both curves will meet in the end" is often written under such a figure. It is a guess unless the figure shows it: follow the label-efficiency curve as far as it goes, and say nothing beyond.
# - A frozen probe says what a *linear* head can find in the vectors, not all that is in them.

# %% [markdown]
# ## Questions
#
# Before the code, a few questions. Pick an answer, and read what it gets back; a slip from a report is among the choices. In your own copy there are buttons to press; on a page without a kernel each answer opens on a click.

# %%
course.quiz("transfer")

# %% [markdown]
# ## Exercises
#
# Two ways to turn a row of vectors into one, written by you. Padding stands on the right, and rows are of any length, but each holds at least one real token. Below each cell to fill in stands its check, which says where your answer differs, on the smallest batch it could find,
# and, if it knows the mistake, what it is. While there are only dots, it says "not attempted yet", and nothing else waits for you.
#
# ### Exercise: the mean of the real tokens
#
# `Level 2/5 · 10 minutes · outcome 1`
#
# Write `mean_pool(hidden, mask)`. `hidden` has shape (B, T, D); `mask` has shape (B, T) and is boolean, `True` where a real token stands. The result has shape (B, D): for each row the mean of the vectors of its real tokens. What the padding holds
# must not change it. *It trains* masked sums, where both the sum and what it is divided by need the mask.
#
# <details><summary>Hint</summary>
#
# The mask needs a third axis of length 1 before it can be multiplied with `hidden`. Then the sum over the tokens; and each row is divided by its *own* number of real tokens. A loop over the rows, with `hidden[b, mask[b]]`, is just as right.
#
# </details>


# %%
def mean_pool(hidden, mask):
    ### BEGIN SOLUTION
    summed = (hidden * mask[:, :, None]).sum(dim=1)  # (B, T, D) * (B, T, 1) -> (B, D)
    return summed / mask.sum(dim=1, keepdim=True)  # (B, D) / (B, 1)
    ### END SOLUTION


# %%
course.check("mean_pool", mean_pool)

# %% [markdown]
# ### Exercise: the last real token
#
# `Level 2/5 · 10 minutes · outcome 1`
#
# Write `last_token(hidden, mask)`, with `hidden` of shape (B, T, D) and the boolean `mask` of shape (B, T), `True` where a real token stands, as before. The result has shape (B, D): for each row the vector of its last *real* token, which is rarely the last
# column. *It trains* indexing with one index per row, and an off-by-one that is easily made.
#
# <details><summary>Hint</summary>
#
# With padding on the right, $n$ real tokens stand at places 0 to $n - 1$. The mask knows $n$ for each row. To take one vector from each row, give `hidden` two lists of indices of length B: which row, and which place.
#
# </details>


# %%
def last_token(hidden, mask):
    ### BEGIN SOLUTION
    rows = torch.arange(len(hidden))  # (B,)
    places = mask.sum(dim=1) - 1  # (B,)
    return hidden[rows, places]  # (B, D)
    ### END SOLUTION


# %%
course.check("last_token", last_token)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** Fine-tune with `pooling="first"`: `fine_tuned(0, pooling="first")`. What accuracy will the pretrained body reach, and why can no number of labels help?
#
# <details><summary>Answer</summary>
#
# That of the majority, or of a coin. The body is causal: the first token (the mark of the beginning, in every review the same) has seen nothing but itself, so the head gets the same vector
# for all reviews. Take `"last"` or `"mean"`. For a body that reads both ways, as in lesson 10, the first token would do.
#
# </details>
#
# **2.** A friend's classifier has a training loss of 0.32 that does not move, and an accuracy on the *training* reviews of 100 %. He wants to train longer. What do you look for?
#
# <details><summary>Answer</summary>
#
# A softmax before the loss: 0.313 is the floor for two classes, $-\ln\frac{e}{e+1}$. Training longer cannot help, for there is no slope left. Remove the softmax; it belongs after the model, when probabilities are wanted.
#
# </details>
#
# **3.** Somebody writes: "Pretrained 1,614 of 2,000 test reviews right, scratch 1,570. By `training.wilson_interval` the two intervals overlap, so the difference is luck." What does the overlap show, and what should he have counted instead?
#
# <details><summary>Answer</summary>
#
# Little. Each interval says how far *that* model might be from its accuracy on other reviews of the kind. But both read the **same** 2,000, and reviews that are hard for one are mostly hard for the other, so this part of the luck is shared. He should count the reviews that only one of
# them gets right, and compare those two numbers. And then train both again, with other seeds: that luck is in neither count.
#
# </details>
#
# ## Summary
#
# 1. A classifier keeps the body and swaps the head: instead of a distribution at every position, one answer for the sequence. The head reads the mean of the real tokens, or the last one; in a causal body never the
#    first, and never the last *column*.
# 2. A second softmax stops the loss at $-\ln\,(e / (e+1)) = 0.313$; SGD with Adam's rate stands still; who reads padding gives answers that depend on the batch; who chooses on the test set flatters himself; one seed is an anecdote.
# 3. Pair the seeds, fix the epochs, report an interval: Wilson for one model on other reviews, Student for the difference over seeds.
# 4. Majority, bag of words and frozen probe stand below or beside the model, the exact posterior above it. Say who wins, also when it is the bag.
# 5. Errors that the exact posterior would not make are what is left to learn. Confidence can be compared with the truth here, and with frequencies elsewhere.
#
# *Where this comes from:* pretrain, then fine-tune with a new head on the last token: Radford et al., *Improving Language Understanding by Generative Pre-Training*, 2018, section 3.2. The first token as summary of a body that reads both ways: Devlin et
# al., [arXiv:1810.04805](https://arxiv.org/abs/1810.04805), section 3. Spread over seeds when fine-tuning: Dodge et al., [arXiv:2002.06305](https://arxiv.org/abs/2002.06305). Linear probes: Alain and Bengio,
# [arXiv:1610.01644](https://arxiv.org/abs/1610.01644). The interval: Wilson, *Journal of the American Statistical Association* 22, 1927, 209-212. Reliability: Guo et al.,
# [arXiv:1706.04599](https://arxiv.org/abs/1706.04599), section 2.
#
# *What comes next:* lesson 10 asks what a model gains that may look both ways.
