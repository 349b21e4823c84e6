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
# 1. turn a language model into a classifier: say what stays, what is new, and which vector the new head reads;
# 2. write the fine-tuning loop, freeze a body, and recognise five mistakes of fine-tuning by their symptoms, among them a loss that cannot fall below 0.313;
# 3. compare two ways of training fairly: same labels, same order, several seeds, an interval for the difference;
# 4. compare a result with its yardsticks: the majority, a bag of words, a frozen probe and its random control, and the best that anybody could reach;
# 5. look at what a classifier still gets wrong, and say whether its probabilities deserve trust.
#
# *You need:* lesson 08 (a language model learns to predict the next token) and what a causal mask is (lesson 02).
# *It takes:* an hour and a half to read and do; a minute or two to run on two cores, less with a GPU.

# %% [markdown]
# ## Set-up
#
# The body is pretrained here, on reviews without their labels, for half the steps of lesson 08. Then small classifiers are trained with few labels. Longer runs with more seeds come from the folder `results/`, where a command has stored them. With the budget `smoke` everything runs, but little is learned.

# %%
import math
import textwrap

import numpy as np
import torch
import torch.nn.functional as F

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_run.recipes import default_budget, plan

smoke = default_budget() == "smoke"

# %% [markdown]
# Two questions from earlier lessons first.

# %%
course.recall("09")

# %% [markdown]
# ## Why: labels are expensive, text is cheap
#
# A label costs work: a person has to read the review and say whether it praises the book. Reviews without such a label are plentiful. The promise of **transfer** is: let a model learn the language from plain text (**pretraining**), then teach it the question with the few labels you can pay for (**fine-tuning**). Here are three of our reviews; 1 means that the book is praised.

# %%
corpus = tx.load_corpus("world")
for label, text in zip(corpus.test.labels[:3], corpus.test.texts[:3], strict=True):
    print(textwrap.fill(f"{label}   {text}", 88, subsequent_indent="    "))

# %% [markdown]
# Accuracy alone says little, so we set two yardsticks before anything is trained. The lower one is the **majority**: always give the more frequent label. The upper one exists only because we know the grammar: the exact probability that a review praises, given all its words. A reader who answers by it is right as often as *anyone* can be on these texts. Some reviews say two things for the book and two against it. There the posterior is one half, nobody can know, and we count half a right answer.

# %%
world = tx.World()


def exact_reader(texts, labels):
    posterior = np.array([world.label_posterior(text.split(" ")) for text in texts])
    tie = np.abs(posterior - 0.5) < 1e-6
    return posterior, tie, np.where(tie, 0.5, (posterior > 0.5) == labels)


labels = np.array(corpus.test.labels)
posterior, tie, reachable = exact_reader(corpus.test.texts, labels)
best = reachable.mean()
majority = max(labels.mean(), 1 - labels.mean())
print(f"{len(labels):,} test reviews, {tie.sum()} of them ties:", end=" ")
print(f"majority {majority:.3f}, best reachable {best:.3f}")

# %% [markdown]
# ### The tempting wrong way
#
# A common way to answer our question: fine-tune the pretrained model and a fresh one, once each; draw accuracy on the *test* set after each of 15 epochs; report the highest point of each curve; the higher one wins. Four steps, and each can fool you. Before we do better, we need the classifier.
#
# ## Swapping the head
#
# A transformer here is a **body** (also called backbone), which turns tokens into vectors, and a **head**, which reads them. The language model's head gives a distribution over the vocabulary at *every* position. The classifier's gives *one* answer for the whole sequence.

# %%
plots.diagram("swap-the-head")

# %% [markdown]
# What will the two shapes be, for two rows of four tokens, nine tokens in the vocabulary and two classes? Nearly everything stays: the last lines take the small model of lesson 06 and count how many of the classifier's parameters begin at random.

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
small = tx.PRESETS["seed-lab"]
body = tx.parameter_table(small, head=None).total
for head in ("lm", "classifier"):
    total = tx.parameter_table(small, head=head).total
    print(f"{head:<11} body {body:,} + head {total - body:>6,} = {total:>9,}")
print(f"new in the classifier: {1 - body / total:.2%}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### By hand: which vector does the head read?
#
# The body returns a vector for each token, the head wants one for the row. So we have to choose, and this is called **pooling**. Ours takes the mean over the **real** tokens: add them
# up, divide by how many there are, and leave the padding out. As a loop:

# %%
hidden = classifier.body(token_ids, real)  # (B, T, D)
pooled = []
for vectors, is_real in zip(hidden, real, strict=True):
    chosen = [vector for vector, yes in zip(vectors, is_real, strict=True) if yes]
    pooled.append(sum(chosen) / len(chosen))
pooled = torch.stack(pooled)  # (B, D)
torch.testing.assert_close(classifier.head(pooled), classifier(token_ids, real))
print("averaged", real.sum(dim=1).tolist(), "vectors; the loop and the package agree")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The same without a loop is one masked sum. There are other choices: the *first* token, as BERT does with its `[CLS]`, or the *last*, as GPT does. In a body with a causal mask they differ greatly, since a token knows only what is to its left. Change what follows the first token: swap two words in the first row, replace one in the second. Which of the three poolings can notice?

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
# The first token of a causal body has seen nothing but itself, and a head that reads it can only guess. (BERT's first token sees everything: its body has no causal mask.) The last real token has seen all, and the mean lets every token vote.
#
# ## Pretrain once
#
# Now the real body. It reads the training reviews, not their labels, and learns to predict the next token. The line below says how well it does on reviews that it never saw, and how far that is from the exact entropy bound.

# %%
shorter = {"n_steps": plan("world").settings.n_steps // 2}
pretrained = tx.pretrain(
    corpus, training_changes=shorter, options=tx.RunOptions(progress=False)
)
tokenizer, pad_id = pretrained.tokenizer, pretrained.tokenizer.pad_id
pretrained

# %% [markdown]
# ## The fine-tuning loop
#
# It is the loop of lesson 08 with three changes: batches hold labels, the model gives one row of logits a review, and only parameters that *require a gradient* are trained. The learning rate is small, as the body should change little. A new classifier copies the pretrained body and draws a new head.

# %%
def new_classifier(seed=0, causal=True):
    torch.manual_seed(seed)
    model = tx.Classifier(pretrained.model.config.replace(causal=causal), n_classes=2)
    model.body.load_state_dict(pretrained.model.body.state_dict())
    return model


def mean_of_real(model, token_ids, real):
    return model(token_ids, real)  # pool(body(token_ids)) W: (B, C)


def fine_tune(model, batches, settings, read=mean_of_real, loss_of=F.cross_entropy,
              optimizer=torch.optim.AdamW):  # fmt: skip
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = optimizer(trained, lr=settings.lr, weight_decay=0.0)
    n_steps, warmup_steps = settings.n_steps, settings.warmup_steps
    losses = []
    model.train()
    for step, (token_ids, target) in enumerate(batches, start=1):
        rising, falling = (
            step / warmup_steps,
            (n_steps - step) / (n_steps - warmup_steps),
        )
        optimizer.param_groups[0]["lr"] = settings.lr * min(rising, falling)
        loss = loss_of(read(model, token_ids, token_ids != pad_id), target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, settings.clip_norm)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses

# %% [markdown]
# A seed draws 64 labelled reviews and their order. We go over them five times (five **epochs**), sixteen at a time. The package's `train` with the same batches must give the same losses. It wants an objective, so we hand it one that does no more than look up our batches.

# %%
from tinytx.batching import pad_batch
from tinytx.loop import train
from tinytx.objectives import ClassificationObjective
from tinytx.settings import TrainingSettings
from tinytx_run.classify import classifier_inputs
from tinytx_run.corpora import label_subset


class InOurOrder(ClassificationObjective):
    def epoch_batches(self, *, seed, epoch, tokens_per_batch):
        generator = torch.Generator().manual_seed(100 * seed + epoch)
        return torch.randperm(64, generator=generator).view(4, 16).tolist()


def labelled(seed):
    few = label_subset(corpus.train, 64, seed=seed)
    rows, _ = classifier_inputs(tokenizer, few.texts, pretrained.model.config.max_len)
    objective = InOurOrder(rows, few.labels, pad_id=pad_id)
    order = [
        batch
        for epoch in range(5)
        for batch in objective.epoch_batches(seed=seed, epoch=epoch, tokens_per_batch=0)
    ]
    batches = [
        (pad_batch([rows[i] for i in batch], pad_id), objective.labels[batch])
        for batch in order
    ]
    return rows, objective, batches


rows, objective, batches = labelled(seed=0)
settings = TrainingSettings(
    n_steps=20,
    lr=1e-3,
    warmup_steps=2,
    decay="linear",
    final_lr_fraction=0.0,
    weight_decay=0.0,
    betas=(0.9, 0.999),
    precision="fp32",
    log_every=1,
)
losses = fine_tune(new_classifier(), batches, settings)
history = train(new_classifier(), objective, settings, progress=False)
torch.testing.assert_close(losses, history.loss, rtol=1e-3, atol=1e-3)
print("20 equal losses:", " ".join(f"{loss:.2f}" for loss in losses))

# %% [markdown]
# ## Freeze the body: a linear probe
#
# The other way to use a body: leave it as it is, and train the new head alone. Parameters are **frozen** by `requires_grad_(False)`: they get no gradient. What is left is a linear classifier on fixed vectors, a **linear probe**. It asks what the vectors already know. Its few weights start at random, so it gets a ten times larger rate.
#
# A probe needs a **control**: the same with a body of *random* weights. Random vectors might know something too, as each token has its own. Only what the pretrained probe reaches above this control was learned in pretraining.

# %%
@torch.no_grad()
def n_right(model, read=mean_of_real, n=320):
    answers = []
    for start in range(0, n, 16):
        ids, _ = classifier_inputs(
            tokenizer, corpus.test.texts[start : start + 16], model.config.max_len
        )
        token_ids = pad_batch(ids, pad_id)
        answers.append(read(model, token_ids, token_ids != pad_id).argmax(dim=1))
    return int((torch.cat(answers).numpy() == labels[:n]).sum())


probe, control = new_classifier(), tx.Classifier(pretrained.model.config, n_classes=2)
before = {name: weight.clone() for name, weight in probe.state_dict().items()}
for model in (probe, control):
    model.body.requires_grad_(False)
    fine_tune(model, batches, settings.replace(lr=1e-2))
moved = [
    name
    for name, weight in probe.state_dict().items()
    if not torch.equal(weight, before[name])
]
print(
    f"trained: {moved}; right of 320: pretrained body {n_right(probe)}, random body "
    f"{n_right(control)},",
    end=" ",
)
print(f"the majority of all test reviews {320 * majority:.0f}")
assert all(name.startswith("head.") for name in moved)

# %% [markdown]
# ## Five mistakes, measured
#
# All of them are common, and none raises an error. Some ruin a run. Others may cost no accuracy at all, and can still be recognised.
#
# ### Reading the padding
#
# `output[-1]`, or here `hidden[:, -1]`, looks like "the last token". Take sixteen reviews as they come, padded on the right to the longest. What is in the last column? In the picture each row is a review, dark where there is a token, hatched where there is padding. How many rows do you expect to reach the right edge?

# %% tags=["folded"]
sixteen = pad_batch(rows[:16], pad_id)  # (B, T)
real16 = sixteen != pad_id
ticks = ["" if t % 10 else str(t) for t in range(real16.shape[1])]
fig, ax = plots.figure(width=8.5, height=3.6)
plots.heatmap(
    real16.float(), allowed=real16, low=0, high=1.4, col_labels=ticks, ax=ax,
    xlabel="position", ylabel="review", title="Sixteen reviews, padded to the longest",
)  # fmt: skip
fig.legends[0].get_texts()[0].set_text("padding")
plots.show(fig, name="09_padding_in_a_batch")
print(f"{(~real16[:, -1]).sum()} of 16 rows end in padding;", end=" ")
print(f"{(~real16).float().mean():.0%} of the batch is padding")
assert (~real16[:, -1]).sum() > 8

# %% [markdown]
# One column that seldom holds a word. A causal body softens the blow, for a padding token sees all words before it, so *something* arrives. But it breaks a promise: the answer to a review now depends on who else is in the batch, since its neighbours decide how much padding it gets. Here is the short row of our toy batch, with its neighbour and alone.

# %%
alone, real_alone = token_ids[1:, :2], real[1:, :2]
reader = tx.Classifier.from_body(language_model.body, pooling="last")
for name, masks in {
    "last column": (None, None),
    "last real token": (real, real_alone),
}.items():
    in_company, by_itself = reader(token_ids, masks[0])[1], reader(alone, masks[1])[0]
    same = torch.allclose(in_company, by_itself, atol=1e-6)
    print(f"{name:<16} same answer alone and in company: {same}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### Softmax before the loss
#
# Torch's `cross_entropy` takes *logits* and applies softmax itself. Apply it before as well, and nothing complains. But now the "logits" are numbers between 0 and 1. The best that a model can then give is (1, 0), and softmax of that is not certain at all: $e/(e+1) \approx 0.73$. So the loss cannot fall below
#
# $$-\ln\frac{e^1}{e^1 + e^0} = -\ln\frac{e}{e + 1},$$
#
# and with $C$ classes not below $-\ln\,(e / (e + C - 1))$. Compare with $\ln C$, the loss of a uniform guess:

# %%
perfect = F.one_hot(torch.tensor([0]), 2).float()  # what softmax gives at its very best
lowest = F.cross_entropy(perfect, torch.tensor([0])).item()
assert math.isclose(lowest, -math.log(math.e / (math.e + 1)), rel_tol=1e-6)
print("classes   lowest    a guess")
for n_classes in (2, 100, 50_001):
    print(
        f"{n_classes:>7,}{math.log(math.e + n_classes - 1) - 1:9.3f}"
        f"{math.log(n_classes):11.3f}"
    )
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Worse than the limit is the slope, for the slope is what a model learns from. In the picture, the **margin** is the right class's logit minus the other's: to the left the model is sure and wrong, to the right sure and right. Where should a loss be steep, and what should it approach on the right?

# %%
margins = torch.linspace(-8, 8, 81)
# (81, 2), class 0 is right
pairs = torch.stack([margins, torch.zeros_like(margins)], dim=1)
target = torch.zeros(81, dtype=torch.long)
given = {"one softmax": pairs, "two softmaxes": pairs.softmax(dim=-1)}
fig, ax = plots.curves(
    [plots.Curve(name, margins, F.cross_entropy(logits, target, reduction="none"))
     for name, logits in given.items()],
    xlabel="margin of the right class (logits)", ylabel="loss (nats)", y_range=(0, 4),
    references={f"lowest {lowest:.3f}": lowest}, title="The loss of one answer",
)  # fmt: skip
plots.show(fig, name="09_softmax_twice")

# %% [markdown]
# Flat on the left: a sure mistake is hardly repaired. Flat on the right at 0.313: the loss does not distinguish a good model from an excellent one.
#
# ### All of them in small runs
#
# Now our loop with each mistake in turn: 64 labels, five epochs, three seeds. `read` says which vector the head gets, `read_later` which one the models of the row above get when they are tested once more. The last row lets the pretrained body look both ways, which it has never done before. Padding is masked there, so this is one mistake and not two. The first two rows are sound, the others are mistakes. **Predict 09.1.**

# %%
from tinytx.classifier import pool
from tinytx_run.intervals import paired_interval, wilson_interval


def last_real(model, token_ids, real):
    return model.head(pool(model.body(token_ids), real, "last"))


def last_column(model, token_ids, real):
    return model.head(model.body(token_ids)[:, -1])


def softmax_first(logits, target):
    return F.cross_entropy(logits.softmax(dim=-1), target)


ways = {
    "mean of the real tokens": {},
    "last real token": {"read": last_real},
    "trained on the token, tested on the column": {"read_later": last_column},
    "last column, mostly padding": {"read": last_column},
    "softmax before the loss": {"loss_of": softmax_first},
    "SGD with Adam's rate": {"optimizer": torch.optim.SGD},
    "causal mask taken away": {"causal": False},
}
course.predict(
    "09.1",
    "Which row has the highest mean training loss in the last epoch?",
    list(ways),
)

# %%
SEEDS = (0, 1, 2)
n_tested, final, counted = 320, {}, {}
drawn = [labelled(seed)[2] for seed in SEEDS]
table = [f"{'':<44}loss   right of {n_tested}, seed by seed"]
for name, way in ways.items():
    if "read_later" not in way:
        models = [
            new_classifier(seed, causal=way.get("causal", True)) for seed in SEEDS
        ]
        how = {key: value for key, value in way.items() if key != "causal"}
        tails = [
            fine_tune(model, drawn[seed], settings, **how)[-4:]
            for seed, model in enumerate(models)
        ]
    read = way.get("read_later") or way.get("read", mean_of_real)
    final[name], counted[name] = (
        np.mean(tails),
        [n_right(model, read, n_tested) for model in models],
    )
    row = "  ".join(map(str, counted[name]))
    table.append(
        f"{name:<44}{final[name]:.3f}  {row}   mean "
        f"{np.mean(counted[name]) / n_tested:.3f}"
    )
print("\n".join(table))
first = np.array(counted["mean of the real tokens"])
below = [name for name in ways if (np.array(counted[name]) < first).all()]
print(
    "\nfewer right than the first row with every seed:",
    *(below or ["none"]),
    sep="\n  ",
)
highest = max(final, key=final.get)
assert final["softmax before the loss"] > lowest
course.resolve(
    "09.1",
    highest,
    f"{final[highest]:.3f}; a uniform guess has ln 2 = {math.log(2):.3f}.",
)

# %% [markdown]
# Read the loss column first. Adam divides each step by the size of the gradient, plain SGD does not, so it needs a rate that is many times larger. The row with a second softmax cannot go below 0.313, however well it does.
#
# Then the counts. Where a mistake is in the printed list, it was behind with every seed and probably cost something. Where it is not, at least one seed shows no loss, though the mean may still be lower. A mistake that cost nothing is a mistake for another reason: the answers of the last column depend on the batch, the second softmax flattens the slope, and a body without its mask is no longer the one that was pretrained. A sound choice can be in the list, too: sound means that the answer depends on the review alone, not that 20 steps are enough to learn it. And how exact is a count of 320?
#
# ### The Wilson interval, by hand
#
# If $k$ of $n$ answers are right, the true rate is near $k/n$, but how near? The schoolbook answer, $k/n \pm 1.96\sqrt{p(1-p)/n}$, puts the *estimate* in place of the unknown $p$. With ten of ten right it claims "100 %, give or take nothing". Wilson asks the other way round: for which rates $p$ would $k/n$ lie within 1.96 standard errors, computed with that very $p$? We can simply try them all.

# %%
print("right   schoolbook        Wilson, all p tried")
p = np.linspace(0, 1, 100_001)
for k, n in ((10, 10), (240, 320)):
    half = 1.96 * math.sqrt(k / n * (1 - k / n) / n)
    fits = p[np.abs(k / n - p) <= 1.96 * np.sqrt(p * (1 - p) / n)]
    np.testing.assert_allclose(fits[[0, -1]], wilson_interval(k, n), atol=1e-4)
    print(
        f"{k:>3}/{n:<4}[{k / n - half:.3f}, {k / n + half:.3f}]    [{fits[0]:.3f}, "
        f"{fits[-1]:.3f}]"
    )
print(f"ten of ten: the rate is above {wilson_interval(10, 10)[0]:.0%}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Ten of ten is good news about the rate, not proof of perfection. For hundreds of reviews the two nearly agree. The interval speaks of *other test reviews* only. Another draw of labels, another order, another start: of these it knows nothing. For them we need seeds.
#
# ## Doing it properly
#
# Each seed draws 50 labelled reviews, their order and the first weights of the head. Then we train from the pretrained body, from a fresh one (**from scratch**), as a frozen probe, and as a probe of a random body: with the **same** labels in the **same** order. The number of epochs is fixed beforehand, the last epoch counts, and the test set chooses nothing. `tx.finetune` runs the loop above, with dropout, and again three seeds. To save time, 500 test reviews are counted. **Predict 09.2.**

# %%
starts = {
    "pretrained": {},
    "scratch": {"body": "fresh"},
    "frozen probe": {"body": "frozen"},
    "random probe": {"body": "random"},
}
course.predict(
    "09.2",
    "Which has the highest mean accuracy over three seeds, with 50 labels?",
    list(starts),
)

# %%
from dataclasses import replace

N_LABELS, N_TESTED, N_SCORED = 50, 500, 100
fewer = replace(corpus, test=label_subset(corpus.test, N_TESTED, seed=0))


def fine_tuned(seed, **how):
    return tx.finetune(
        pretrained,
        fewer,
        seed=seed,
        n_labels=N_LABELS,
        n_scored=N_SCORED,
        options=tx.RunOptions(progress=False, report=lambda line: None),
        **how,
    )


runs = {
    name: [fine_tuned(seed, **how) for seed in SEEDS] for name, how in starts.items()
}
ends = {
    name: np.array([run.evaluation.score.accuracy for run in three])
    for name, three in runs.items()
}
for name, values in ends.items():
    row = "   ".join(f"{value:.3f}" for value in values)
    print(f"{name:<14}{row}     mean {values.mean():.3f}")
winner = max(ends, key=lambda name: ends[name].mean())
course.resolve(
    "09.2",
    winner,
    f"Its mean is {ends[winner].mean():.3f}; from scratch it is "
    f"{ends['scratch'].mean():.3f}.",
)

# %% [markdown]
# The table counts 500 test reviews after the last epoch; the curves look at 100 of them after each. Lines are means over the seeds, bands reach from the worst seed to the best. Before you look: which line is highest after the *first* epoch, and which band is widest at any epoch?

# %%
scored = label_subset(fewer.test, N_SCORED, seed=0)  # as the curves draw them
best_scored = exact_reader(scored.texts, np.array(scored.labels))[2].mean()
by_epoch = {name: np.array([run.accuracy_by_epoch for run in three])  # (seeds, epochs)
            for name, three in runs.items()}  # fmt: skip
epochs = range(1, by_epoch["pretrained"].shape[1] + 1)
fig, ax = plots.curves(
    [
        plots.Curve(name, epochs, table.mean(0), low=table.min(0), high=table.max(0))
        for name, table in by_epoch.items()
    ],
    xlabel="epoch",
    ylabel="accuracy on test reviews",
    y_range=(0.35, 1.05),
    references={"best reachable": best_scored},
    title=f"{N_LABELS} labels, {len(SEEDS)} seeds",
)
plots.show(fig, name="09_accuracy_by_epoch")
early = max(by_epoch, key=lambda name: by_epoch[name][:, 0].mean())
width = {name: np.ptp(table, axis=0) for name, table in by_epoch.items()}
widest = max(width, key=lambda name: width[name].max())
print(f"highest after the first epoch: {early}, {by_epoch[early][:, 0].mean():.2f}")
print(
    f"widest band: {widest}, {width[widest].max():.2f} after epoch "
    f"{width[widest].argmax() + 1}"
)

# %% [markdown]
# The gap between a curve and the dashed line is what there is to gain, and *only* the world can show us that. On real reviews the line is unknown.
#
# ### Was scratch trained enough?
#
# Same labels and same epochs are not the same as "equally well trained". So one more control: from scratch with three times the epochs, seed 0. If it already answers all training reviews right, more steps are hardly what it lacks.

# %%
from tinytx_run.classify import class_probabilities

n_epochs = len(runs["scratch"][0].accuracy_by_epoch)
longer = fine_tuned(0, body="fresh", n_epochs=3 * n_epochs)
learned = label_subset(corpus.train, N_LABELS, seed=0)
for name, run in {
    f"{n_epochs} epochs": runs["scratch"][0],
    f"{3 * n_epochs} epochs": longer,
}.items():
    known = (
        class_probabilities(run.model, tokenizer, learned.texts).argmax(axis=1)
        == learned.labels
    )
    print(
        f"scratch, {name:<10}: training reviews {known.mean():.2f}, test "
        f"{run.evaluation.score.accuracy:.3f}"
    )
print(f"pretrained, {n_epochs} epochs: test {ends['pretrained'][0]:.3f}")

# %% [markdown]
# ### The interval of a paired difference
#
# Is the gain real? Labels and order were shared, so each seed gives one *difference*. Student's interval is mean $\pm\, t \cdot s/\sqrt{n}$. With many numbers $t$ is 1.96. With three, $s$ itself is a rough guess, so $t$ has to be larger: 4.303. By hand, on three numbers that can be checked on paper:

# %%
gains = [0.10, 0.14, 0.06]
mean = sum(gains) / 3
s = math.sqrt(sum((gain - mean) ** 2 for gain in gains) / 2)  # n - 1
half = 4.303 * s / math.sqrt(3)  # 4.303: Student's t for 95 % and n - 1 = 2
interval = paired_interval(gains)
np.testing.assert_allclose(
    (mean - half, mean + half), (interval.low, interval.high), atol=1e-4
)
print(f"mean {mean:.2f}, s {s:.2f}: from {interval.low:+.3f} to {interval.high:+.3f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Three gains that are all clearly positive, and the interval still reaches down to nearly nothing. Now for ours.

# %%
for name in ("scratch", "frozen probe"):
    gain = paired_interval(ends["pretrained"] - ends[name])
    verdict = "excludes zero" if gain.excludes_zero else "does not exclude zero"
    interval = f"[{gain.low:+.3f}, {gain.high:+.3f}]"
    print(f"pretrained minus {name:<13}{gain.mean:+.3f}  {interval}  {verdict}")

# %% [markdown]
# ## More seeds, more labels
#
# For a verdict we want more of both. `python -m experiments transfer --corpus world` has measured many cells (a number of labels, a seed, a start), and stored each. Here is where and when. The stored runs have the package's full recipe, so their body read more than the one of this page: compare within a table, not between the two. **Predict 09.3.** The smallest number of labels is 20. Fine-tuning may then change every parameter of the body, the probe only those of a linear head.

# %%
from collections import Counter

from tinytx_course.results import read_results
from tinytx_run.training import fingerprint

stored = read_results("transfer")
records = [record for record in stored.data.values() if record["corpus"] == "world"]
((budget, _),) = Counter(record["origin"]["budget"] for record in records).most_common(
    1
)
records = [record for record in records if record["origin"]["budget"] == budget]
records.sort(key=lambda record: record["seed"])
counts = sorted({record["n_labels"] for record in records})
same = {record["origin"]["texts"] for record in records} == {fingerprint(corpus)}
print(
    textwrap.fill(
        f"budget {budget}, {stored.source_line()}; on these very texts: {same}", 88
    )
)
course.predict(
    "09.3", "With 20 labels, which has the higher mean accuracy over the stored seeds?",
    ["fine-tuning the pretrained body", "the frozen probe"],
)  # fmt: skip

# %%
def measured(n_labels, start, field="accuracy"):
    chosen = [r for r in records if (r["n_labels"], r["start"]) == (n_labels, start)]
    return np.array([record[field] for record in chosen])  # one a seed


print("labels  seeds  pretrained  scratch  frozen   gain  95 % interval")
for n in counts:
    tuned, scratch, frozen = (
        measured(n, start) for start in ("pretrained", "scratch", "frozen")
    )
    gain = paired_interval(tuned - scratch)
    means = f"{tuned.mean():10.3f}{scratch.mean():9.3f}{frozen.mean():8.3f}"
    print(
        f"{n:>6,}{len(tuned):>7}{means} {gain.mean:+.3f}  [{gain.low:+.3f}, "
        f"{gain.high:+.3f}]"
    )
tuned, frozen = (measured(counts[0], start) for start in ("pretrained", "frozen"))
lead = paired_interval(frozen - tuned)
course.resolve(
    "09.3",
    "the frozen probe" if lead.mean > 0 else "fine-tuning the pretrained body",
    f"{counts[0]} labels: probe {frozen.mean():.3f}, fine-tuning {tuned.mean():.3f}, "
    f"worst seed {tuned.min():.3f}; "
    f"difference {lead.mean:+.3f} [{lead.low:+.3f}, {lead.high:+.3f}].",
)

# %% [markdown]
# A common rule says: probe when labels are scarce, fine-tune when there are more, since few labels determine a linear head, but not a whole body. Does it hold here? The next cell compares the two at each number of labels: fine-tuning minus probe, with its interval, and the spread of either over the seeds. The answer belongs to this body and this recipe. Another body may give another one. The last lines try the question of the title: what do 50 labels after pretraining give, compared with the most labels of the table without it?

# %%
print("labels  tuned minus probe  95 % interval      spread of tuned, probe")
for n in counts:
    tuned, frozen = measured(n, "pretrained"), measured(n, "frozen")
    gain = paired_interval(tuned - frozen)
    print(f"{n:>6,}{gain.mean:>+19.3f}  [{gain.low:+.3f}, {gain.high:+.3f}]", end="")
    print(
        f"{tuned.std(ddof=1):>13.3f}, "
        f"{frozen.std(ddof=1):.3f}"
        f"{'' if gain.excludes_zero else '   too close to call'}"
    )
few_labels, many = N_LABELS, counts[-1]
without = measured(many, "scratch")
print(f"\nfrom scratch with {many} labels: {without.mean():.3f}")
for start, name in {"pretrained": "fine-tuning", "frozen": "probe"}.items():
    gain = paired_interval(measured(few_labels, start) - without)
    verdict = (
        ("more" if gain.mean > 0 else "less")
        if gain.excludes_zero
        else "too close to call"
    )
    print(
        f"{name:<11} with {few_labels}: {gain.mean:+.3f}  [{gain.low:+.3f}, "
        f"{gain.high:+.3f}]  {verdict}"
    )

# %% [markdown]
# "More" in the last lines means that here pretraining is worth more than ten times the labels, for this way to use it.
#
# ### One seed would have said
#
# Suppose you had run one seed only. Each bar below is what *that* seed would have reported as the gain of pretraining, with equal right. The last bar is the mean, with its interval.
#
# Why pairs? Both starts share the labels, so the comparison is like for like by design. Whether pairing also makes the interval *shorter* depends: it helps only if seeds that are good for one are good for the other. The last line measures that correlation.

# %%
ours, theirs = measured(few_labels, "pretrained"), measured(few_labels, "scratch")
gain = paired_interval(ours - theirs)
bars = {f"seed {seed}": value for seed, value in enumerate(ours - theirs)} | {
    "mean": gain.mean
}
fig, ax = plots.bars(
    bars,
    intervals={"mean": (gain.low, gain.high)},
    numbers="+.3f",
    xlabel="accuracy gained by pretraining",
    title=f"{few_labels} labels, one bar a seed",
)
plots.show(fig, name="09_gain_by_seed")
paired = np.std(ours - theirs, ddof=1) / math.sqrt(len(ours))
unpaired = math.sqrt((np.var(ours, ddof=1) + np.var(theirs, ddof=1)) / len(ours))
correlation = np.corrcoef(ours, theirs)[0, 1]
shorter = "shorter" if paired < unpaired else "longer"
print(
    f"standard error of the mean gain: paired {paired:.4f}, as if unpaired "
    f"{unpaired:.4f}"
)
print(
    f"correlation over {len(ours)} seeds {correlation:+.2f}: pairing makes this "
    f"interval {shorter}"
)
assert (paired < unpaired) == (correlation > 0)

# %% [markdown]
# ## A baseline that cannot read
#
# Before we praise a transformer, let something simple compete. **Naive Bayes** counts words in each class and forgets their order: a **bag of words**. The score of a review is the sum, over its words, of $\ln P(\text{word} \mid 1) - \ln P(\text{word} \mid 0)$, each estimated as a share of counts with one added, so no share is zero. First on two tiny reviews, *beau beau livre* (praise) and *livre fade* (blame):

# %%
def word_counts(texts, columns):
    table = np.zeros((len(texts), len(columns)))
    for row, text in enumerate(texts):
        for word in text.split(" "):
            if word in columns:
                table[row, columns[word]] += 1
    return table


def word_weights(table, is_praise):
    blame, praise = (table[is_praise == label].sum(axis=0) + 1 for label in (0, 1))
    return np.log(praise / praise.sum()) - np.log(blame / blame.sum())


toy_columns = {"beau": 0, "livre": 1, "fade": 2}
toy = word_counts(["beau beau livre", "livre fade"], toy_columns)
for word, weight in zip(toy_columns, word_weights(toy, np.array([1, 0])), strict=True):
    print(f"{word:<6}{weight:+.3f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# *beau* has 3 of 6 in praise (two counts and the one added) against 1 of 5 in blame: $\ln(0.5/0.2) = 0.916$. *livre* comes out slightly negative by pure accident. With two reviews, noise looks like evidence. Now the same on the labels that the transformers had, seed by seed.

# %%
known = sorted({word for text in corpus.train.texts for word in text.split(" ")})
columns = {word: column for column, word in enumerate(known)}
test_counts = {
    split: word_counts(split.texts, columns) for split in (corpus.test, fewer.test)
}


def bag_of_words(n_labels, seed, test=corpus.test):
    learned = label_subset(corpus.train, n_labels, seed)
    weights = word_weights(
        word_counts(learned.texts, columns), np.array(learned.labels)
    )
    return np.mean((test_counts[test] @ weights > 0) == np.array(test.labels))


seeds = sorted({record["seed"] for record in records})
bags = {n: np.array([bag_of_words(n, seed) for seed in seeds]) for n in counts}
live = np.array([bag_of_words(N_LABELS, seed, fewer.test) for seed in SEEDS])
print(f"{N_LABELS} labels, our three seeds: bag of words {live.mean():.3f},", end=" ")
print(
    f"pretrained {ends['pretrained'].mean():.3f}, scratch {ends['scratch'].mean():.3f}"
)

# %% [markdown]
# Here are four methods, with accuracy against the number of labels: a **label-efficiency curve**. Bands are 95 % intervals of the mean over seeds. How many labels does each method need to reach the height that pretraining has at the left? The lines below the figure put it into numbers: for both transformers, the difference from the bag of words, with its interval over the same seeds.

# %%
def efficiency(name, table, **look):
    intervals = [paired_interval(values) for values in table]  # of the mean over seeds
    mean, low, high = (
        [getattr(one, end) for one in intervals] for end in ("mean", "low", "high")
    )
    return plots.Curve(name, counts, mean, low=low, high=high, **look)


named = {"pretrained": "pretrained", "scratch": "scratch", "frozen": "frozen probe"}
lines = [
    efficiency(name, [measured(n, start) for n in counts])
    for start, name in named.items()
]
lines.append(efficiency("bag of words", list(bags.values()), dashed=True))
fig, ax = plots.curves(
    lines, xlabel="labelled reviews", ylabel="accuracy on the test reviews",
    x_log=True, y_range=(0.45, 1.02), title="What a label buys",
    references={"best reachable": best, "majority": majority},
)  # fmt: skip
ax.set_xticks(counts, [f"{n:,}" for n in counts])
ax.minorticks_off()
plots.show(fig, name="09_label_efficiency")
for start in ("pretrained", "scratch"):
    for n in counts:
        gain = paired_interval(measured(n, start) - bags[n])
        verdict = "too close to call"
        if gain.excludes_zero:
            verdict = f"{start} wins" if gain.mean > 0 else "the bag of words wins"
        print(
            f"{start:<11}{n:>4} labels: {gain.mean:+.3f}  [{gain.low:+.3f}, "
            f"{gain.high:+.3f}]  {verdict}"
        )

# %% [markdown]
# Take such a baseline seriously. A bag of words needs no pretraining and takes a moment. Any transformer has to beat it first, at the number of labels there really are.
#
# ## Choosing on the test set
#
# "We report the best epoch." Best *on the test set*? Then the test set has become part of training. How much does that flatter? Simulate it, where the truth is known: 15 epochs whose models are all right with probability 0.75, exactly. Seven answers in ten are the same in all epochs, the other three are drawn anew in each. **Predict 09.4.**

# %%
course.predict(
    "09.4",
    "The best of 15 looks too good by some points with 100 test reviews. With 400 "
    "it is …",
    ["the same", "about half of that", "about a quarter of that"],
)

# %%
def best_of(n_epochs, n_test, drawn_anew=0.3, p=0.75, n_repeats=20_000):
    rng = np.random.default_rng(0)
    n_new = int(n_test * drawn_anew)
    # the same in all epochs
    steady = rng.binomial(n_test - n_new, p, size=(n_repeats, 1))
    changing = rng.binomial(n_new, p, size=(n_repeats, n_epochs))
    return ((steady + changing) / n_test).max(axis=1) - p


flattery = {n_test: 100 * best_of(15, n_test).mean() for n_test in (100, 400, 2000)}
print("the best of 15 epochs is too high by")
print(
    "\n".join(
        f"{points:.1f} points with {n:,} test reviews" for n, points in flattery.items()
    )
)
ratio = flattery[400] / flattery[100]
answers = {1.0: "the same", 0.5: "about half of that", 0.25: "about a quarter of that"}
nearest = min(answers, key=lambda factor: abs(factor - ratio))
course.resolve(
    "09.4",
    answers[nearest],
    f"The ratio is {ratio:.2f}: it falls with the square root of the test set.",
)

# %% [markdown]
# Nothing was learned from epoch to epoch, and yet the best one looks better: the maximum of noisy numbers lies above their mean. Does it level off with more epochs?

# %% tags=["folded"]
looks = (1, 2, 3, 5, 8, 12, 15, 20, 30)
lines = []
for n_test in (100, 400, 2000):
    # (looks, repeats)
    flattered = np.array([100 * best_of(n, n_test, n_repeats=4000) for n in looks])
    low, high = np.quantile(flattered, (0.25, 0.75), axis=1)
    lines.append(
        plots.Curve(
            f"{n_test:,} test reviews",
            looks,
            flattered.mean(axis=1),
            low=low,
            high=high,
        )
    )
fig, ax = plots.curves(
    lines,
    xlabel="epochs among which the best is chosen",
    ylabel="points above the truth",
    references={"chosen elsewhere": 0.0},
    title="The best epoch, chosen on the test set",
)
plots.show(fig, name="09_best_epoch_flatters")
for start in ("pretrained", "scratch"):
    table = measured(few_labels, start, "accuracy_by_epoch")  # (seeds, epochs)
    added = 100 * (table.max(axis=1) - table[:, -1]).mean()
    print(
        f"stored runs, {start:<11}{few_labels} labels: best epoch minus last epoch, "
        f"mean {added:.1f} points"
    )

# %% [markdown]
# It rises quickly, then slowly. Choose the epoch on *other* reviews, such as a validation set, and the mean flattery on the test set is zero: the dashed line. Real curves also rise and fall for real, so "best minus last" in the printed lines holds both.
#
# ## What was forgotten?
#
# Fine-tuning moved the body. Is it still a language model? We put the *old* head back on the fine-tuned body and measure the next-token loss on held-out reviews. When new training spoils what was learned before, this is called **catastrophic forgetting**. **Predict 09.5.**

# %%
course.predict(
    "09.5",
    "Fine-tuning on 50 labels raises the next-token loss, in nats per token, by …",
    ["less than 0.1", "0.1 to 1", "more than 1"],
)

# %%
from tinytx_run.evaluate import evaluate_language_model, exact_nats

held_out = corpus.valid.texts[:200]
nats = {}
for name in ("pretrained", "frozen probe"):
    again = tx.LanguageModel(pretrained.model.config)
    again.load_state_dict(pretrained.model.state_dict())
    again.body.load_state_dict(runs[name][0].model.body.state_dict())
    nats[name] = evaluate_language_model(again, tokenizer, held_out).nats_per_token
score = evaluate_language_model(pretrained.model, tokenizer, held_out)
bound = exact_nats(corpus, held_out).sum() / score.n_tokens
print(
    f"bound {bound:.3f}, before {score.nats_per_token:.3f}, fine-tuned "
    f"{nats['pretrained']:.3f}",
    end=", ",
)
print(f"probe {nats['frozen probe']:.3f} nats per token")
rise = nats["pretrained"] - score.nats_per_token
assert math.isclose(nats["frozen probe"], score.nats_per_token, rel_tol=1e-5)
answer = "less than 0.1" if rise < 0.1 else "0.1 to 1" if rise <= 1 else "more than 1"
course.resolve(
    "09.5", answer, f"It rises by {rise:.3f}. A frozen body forgets nothing."
)

# %% [markdown]
# ## What is still wrong?
#
# Take the pretrained model of seed 0, fixed before we looked, and ask for its probability of praise on all test reviews. We also have the exact one. Three kinds of reviews: the model is right; it is wrong where the exact posterior is right, so a better reader was possible; it is wrong, and no reader could know, since the words are a tie or mislead everybody. Below the shares are three reviews that it misses most confidently although the words leave no doubt. What do they have in common, and what might a reader of *words* trip over?

# %%
chosen = runs["pretrained"][0]
praise = class_probabilities(chosen.model, tokenizer, corpus.test.texts)[:, 1]
right = (praise > 0.5) == labels
missed = ~right & (reachable == 1)
kinds = {
    "right": right,
    "misses what can be known": missed,
    "wrong, nobody could know": ~right & ~missed,
}
print(
    "\n".join(f"{name:<26}{members.mean():.3f}" for name, members in kinds.items()),
    end="\n\n",
)
clear = np.flatnonzero(missed & (np.abs(posterior - 0.5) > 0.49))
for i in sorted(clear, key=lambda i: -abs(praise[i] - labels[i]))[:3]:
    print(f"praise? exact {posterior[i]:.3f}, model {praise[i]:.3f}, label {labels[i]}")
    print(
        textwrap.fill(
            corpus.test.texts[i], 88, initial_indent="  ", subsequent_indent="  "
        )
    )

# %% [markdown]
# Three examples suggest, they do not prove. So we count. Guess first: is a longer review harder, as there is more to read, or easier, as there is more evidence? What do negation (*n'*, *ne*) and *mais* ("but") do to a model that has seen only fifty labels? In brackets is the number of reviews. Each group has its own limit: with two sentences, one for and one against, the words cannot decide.

# %%
texts = [text.lower().split(" ") for text in corpus.test.texts]
n_sentences = np.array(
    [sum(word in (".", "!", "?") for word in words) for words in texts]
)
negated = np.array([not {"n'", "ne"}.isdisjoint(words) for words in texts])
but = np.array(["mais" in words for words in texts])
groups = {f"{n} sentences": n_sentences == n for n in sorted(set(n_sentences))}
groups |= {
    "with negation": negated,
    "without negation": ~negated,
    'with "mais"': but,
    'without "mais"': ~but,
}
groups = {f"{name} ({members.sum():,})": members for name, members in groups.items()}
fig, ax = plots.grouped_bars(
    {
        "model": {name: right[members].mean() for name, members in groups.items()},
        "best reachable": {
            name: reachable[members].mean() for name, members in groups.items()
        },
    },
    numbers=".2f",
    xlabel="share of right answers",
    title="Right answers by group",
)
ax.set(xlim=(0, 1.7), xticks=(0, 0.25, 0.5, 0.75, 1))  # room for the legend
plots.show(fig, name="09_errors_by_group")
gaps = {
    name: reachable[members].mean() - right[members].mean()
    for name, members in groups.items()
}
worst = max(gaps, key=gaps.get)
low, high = wilson_interval(int(right[groups[worst]].sum()), int(groups[worst].sum()))
print(
    f"largest gap {gaps[worst]:.2f}: {worst}; the model's interval there [{low:.2f}, "
    f"{high:.2f}]"
)
few_sentences, many_sentences = (
    right[n_sentences == n].mean() for n in (min(n_sentences), max(n_sentences))
)
print(
    f"{min(n_sentences)} sentences {few_sentences:.2f}, {max(n_sentences)} sentences "
    f"{many_sentences:.2f};",
    end=" ",
)
print(
    f"negation {right[negated].mean():.2f}, without {right[~negated].mean():.2f};",
    end=" ",
)
print(f"mais {right[but].mean():.2f}, without {right[~but].mean():.2f}")

# %% [markdown]
# ### Does it know what it knows?
#
# A classifier also says *how sure* it is. On real data one can only check that on average. Here each answer has a right value. The scale is that of **log-odds**, $\ln\,(p / (1-p))$, in which evidence adds up. On the diagonal the model is exactly as sure as it should be. At zero the words are a tie: there the exact reader can only toss a coin. What would a point in the upper left corner mean?

# %%
def log_odds(p, most=9.0):
    p = np.clip(np.asarray(p, dtype=float), 1e-12, 1 - 1e-12)
    return np.clip(np.log(p / (1 - p)), -most, most)


fig, ax = plots.scatter(
    [
        plots.Points(name, log_odds(posterior[k]), log_odds(praise[k]))
        for name, k in kinds.items()
    ],
    xlabel="exact log-odds of praise, cut at 9",
    ylabel="the classifier's log-odds, cut at 9",
    x_range=(-9.5, 9.5),
    y_range=(-9.5, 9.5),
    diagonal="as sure as it should be",
    title="Probabilities against the truth",
)
plots.show(fig, name="09_probabilities_against_the_truth")
print(
    "log-odds of",
    ", ".join(f"{p:.1%}: {math.log(p / (1 - p)):.1f}" for p in (0.5, 0.95, 0.9975)),
)

# %% [markdown]
# The exact values form columns. Each sentence agrees with its review 95 times in 100, so one more sentence of praise adds $\ln(0.95/0.05) \approx 2.9$. The upper left corner is "sure of praise where the words say blame". Points between the axis and the diagonal: too cautious. Points beyond it: too confident. The usual check without the truth groups answers by confidence:

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
excess = confidence.mean() - right.mean()
verdict = (
    "too sure"
    if excess > 0.01
    else "too cautious"
    if excess < -0.01
    else "about as sure as it should be"
)
print(
    f"all reviews: it says {confidence.mean():.3f}, is right {right.mean():.3f}: on "
    f"average {verdict}"
)

# %% [markdown]
# In a **reliable** (well calibrated) classifier the columns "it says" and "is right" agree, and its probabilities deserve trust. The last line sums it up for ours. The columns "is right" and "exact" must agree up to chance, whatever the model does: both are the share of right answers in the group, once counted and once computed. That is a check of the world, not of the model.
#
# How does certainty grow, word by word? The explorer reveals a review and shows the exact posterior next to our classifier, which was trained on whole reviews only. Find a word that moves the one and not the other.

# %%
shown = world.reviews(4, seed=1)
sure_of = []
for review in shown:
    beginnings = [" ".join(review.words[:n]) for n in range(1, len(review.words) + 1)]
    sure_of.append(class_probabilities(chosen.model, tokenizer, beginnings)[:, 1])
course.widgets.how_sure(shown, sure_of, world=world)

# %% [markdown]
# ## What this does not show
#
# - Our reviews are far simpler than real ones, and the pretraining text is exactly like the labelled text. When they differ, or when little text is read, pretraining can gain nothing. Lesson 15 is about real text.
# - Only the seeds of fine-tuning vary; the body was pretrained once. Another pretraining would move all of its results together. Another recipe of pretraining moves them too: the stored runs and those of this page differ.
# - We compare equal *labels*, not equal *time*: scratch spent nothing on pretraining. With one task this may matter; with ten, the body is paid for once.
# - "Both curves will meet in the end" is often written under such a figure. It is a guess unless the figure shows it: follow the label-efficiency curve as far as it reaches, and claim nothing beyond.
# - A frozen probe shows what a *linear* head can find in the vectors, not all that is in them.
#
# ## Take-home
#
# A probe on one screen: a body, a new head, and a choice of what is trained. Set `frozen = False` and it is fine-tuning.

# %%
_ = torch.manual_seed(0)
body = tx.Transformer(pretrained.model.config)
# what was learned without labels
body.load_state_dict(pretrained.model.body.state_dict())
head = torch.nn.Linear(body.config.d_model, 2, bias=False)  # what is new
frozen = True
body.requires_grad_(not frozen)
trained = [p for p in [*body.parameters(), *head.parameters()] if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-2 if frozen else 1e-3)
for token_ids, target in batches:
    real = (token_ids != pad_id)[:, :, None]  # (B, T, 1)
    hidden = body(token_ids)  # (B, T, D); causal, so padding on the right is not seen
    pooled = (hidden * real).sum(dim=1) / real.sum(dim=1)  # (B, D)
    loss = F.cross_entropy(head(pooled), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(
    f"{sum(p.numel() for p in trained)} parameters trained, loss of the last batch "
    f"{loss.item():.2f}"
)

# %% [markdown]
# ## Questions
#
# Pick an answer and read what it says; the wrong answers are common mistakes.

# %%
course.quiz("transfer")

# %% [markdown]
# ## Exercises
#
# Two ways to turn a row of vectors into one, the switch between fine-tuning and a probe, and the interval of a gain. Padding is on the right, and rows are of any length, but each holds at least one real token. Below each cell to fill in is its check, which says where your answer differs, on the smallest input it could find, and, if it knows the mistake, what it is. While there are only dots, it says "not attempted yet".
#
# [exercise: mean_pool]


# %%
def mean_pool(hidden, mask):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("mean_pool", mean_pool)

# %% [markdown]
# [exercise: last_token]


# %%
def last_token(hidden, mask):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("last_token", last_token)

# %% [markdown]
# [exercise: freeze]


# %%
def freeze(model):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("freeze", freeze)

# %% [markdown]
# [exercise: gain_interval]


# %%
def gain_interval(ours, theirs, t):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("gain_interval", gain_interval)

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
# **2.** A friend's classifier has a training loss of 0.32 that does not move, and an accuracy on the *training* reviews of 100 %. They want to train longer. What do you look for?
#
# <details><summary>Answer</summary>
#
# A softmax before the loss: 0.313 is the lowest possible loss for two classes, $-\ln\frac{e}{e+1}$. Training longer hardly helps, for there is almost no slope left. Remove the softmax; it belongs after the model, when probabilities are wanted.
#
# </details>
#
# **3.** You read: "Pretrained 1,614 of 2,000 test reviews right, scratch 1,570. By `training.wilson_interval` the two intervals overlap, so the difference is luck." What does the overlap show, and what should have been counted instead?
#
# <details><summary>Answer</summary>
#
# Little. Each interval says how far *that* model might be from its accuracy on other reviews of the kind. But both read the **same** 2,000, and reviews that are hard for one are mostly hard for the other, so this part of the luck is shared. Count the reviews that only one of
# them gets right, and compare those two numbers. And then train both again, with other seeds: that luck is in neither count.
#
# </details>
#
# ## Summary
#
# 1. A classifier has the body of the language model and a new head: instead of a distribution at every position, one answer for the sequence. The head reads the mean of the real tokens, or the last one; in a causal body not the first, which has seen nothing, and not the last *column*, whose answers depend on the batch.
# 2. Fine-tuning is the training loop with labels; freezing is one flag. A second softmax stops the loss at $-\ln\,(e / (e+1)) = 0.313$; SGD hardly moves with Adam's rate; a head that reads padding gives answers that depend on the batch.
# 3. Share labels and order, fix the epochs, report an interval: Wilson for one model on other reviews, Student for the difference over seeds. One seed is an anecdote; choosing on the test set flatters.
# 4. Compare with majority, bag of words, probe and random probe below, and the exact posterior above. Which of probe and fine-tuning is ahead depends on the body and on the number of labels: measure it. Say who wins, also when it is the bag.
# 5. Errors that the exact posterior would not make are what is left to learn. Confidence can be compared with the truth here, and with frequencies elsewhere.
#
# *Where this comes from:* pretrain, then fine-tune with a new head on the last token: Radford et al., *Improving Language Understanding by Generative Pre-Training*, 2018, section 3.2. The first token as summary of a body that reads both ways: Devlin et
# al., [arXiv:1810.04805](https://arxiv.org/abs/1810.04805), section 3. Spread over seeds when fine-tuning: Dodge et al., [arXiv:2002.06305](https://arxiv.org/abs/2002.06305). Linear probes: Alain and Bengio,
# [arXiv:1610.01644](https://arxiv.org/abs/1610.01644). The interval: Wilson, *Journal of the American Statistical Association* 22, 1927, 209-212. Reliability: Guo et al.,
# [arXiv:1706.04599](https://arxiv.org/abs/1706.04599), section 2. Forgetting: McCloskey and Cohen, *Psychology of Learning and Motivation* 24, 1989, 109-165.
#
# *What comes next:* [lesson 10](10_masked_or_causal.ipynb) asks what a model gains that may look both ways.
