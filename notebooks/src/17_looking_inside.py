# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 17 · Looking inside
#
# **What did it learn, and how do we know?**
#
# A small model has learned to predict book reviews. Does it know whether the book is praised? A claim needs a **control**: a second measurement. If the claim is false, both come out the same.
#
# After this lesson you can
#
# 1. score a probe of hidden states against the exact posterior, and name its two controls (*Further:* fit it);
# 2. say why an attention map is a hypothesis about a head; *Further:* what tests it;
# 3. *Further:* ablate a head, patch it between two texts, and find induction heads.
#
# *You need:* lesson 04 (heads), lesson 08 (pretraining), the linear probe of lesson 09.
# *It takes:* an hour and a half to read and do; a minute or two to run on two cores.

# %% [markdown]
# ## Set-up

# %%
from contextlib import contextmanager

import numpy as np
import pandas as pd
import torch

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_course.labs import lesson_17 as lab
from tinytx_course.labs import one_word
from tinytx_run.intervals import paired_interval
from tinytx_run.recipes import default_budget, plan

smoke = default_budget() == "smoke"
N_FIT, N_ASKED, N_PAIRS, N_TEXTS = (40, 20, 60, 20) if smoke else (200, 150, 250, 80)

# %%
course.recall("17")

# %% [markdown]
# ## Why: a picture is quickly explained
#
# The model is trained here, for fewer steps than in lesson 08.

# %%
shorter = {"n_steps": plan("world").settings.n_steps * 2 // 5}
how = lab.as_large() | {"options": tx.RunOptions(progress=False)}
trained = tx.pretrain("world", training_changes=shorter, **how)
model, tokenizer = trained.model.cpu(), trained.tokenizer
n_layers, n_heads = model.config.n_layers, model.config.n_heads

# %% [markdown]
# The tempting wrong way is to open the attention maps, find a head that looks sensible, and tell its story: "this one links the adjective to its noun." Try it, and write your story down. *Untrained* shows the same layers with random weights.

# %%
world = tx.World()
shown = world.reviews(3, seed=5)[0]
token_ids = [tokenizer.bos_id, *tokenizer.encode(" ".join(shown.words))]
tokens = [tokenizer.piece(token).replace("▁", "") or "▁" for token in token_ids]
course.widgets.attention(model, tokens, token_ids=token_ids, layer=n_layers - 1,
                         query=len(tokens) - 2, untrained=True)

# %% [markdown]
# No map can refute a story that was made up from the map. An *intervention* can: change what the head puts out, and see whether the prediction changes (*Further*). The first claim that we can test is *the information is there*. Its test is a **probe**.
#
# ## What could it know?
#
# The **polarity** of a review (praise or blame) and its book, which has a **genre**, are drawn first. The words follow from these hidden variables. The grammar of the world gives the **exact posterior** $P(\text{hidden} \mid \text{words so far})$: what a perfect reader believes after each word.
#
# Two more variables are local: the **gender** and the **number awaited**. After _La fin est très_ a feminine form must follow. One set of fresh reviews fits a probe, a second scores it. The hidden states have **levels**: level 0 is the embedding of a word, and each block adds one.

# %%
forms = lab.WordForms(world)
fitted, asked = world.reviews(N_FIT, seed=101), world.reviews(N_ASKED, seed=102)
train, test = (
    lab.exact_variables(world, forms, reviews) for reviews in (fitted, asked)
)

# %% [markdown]
# ### Further: the posterior, word by word
#
# Polarity and genre of the review above:

# %% tags=["folded"]
states = world.automaton.prefixes(shown.words)[1:]  # after each word
hidden = np.stack([state.hidden for state in states])  # (W, 2, sentences, books)
praise = hidden.sum(axis=(2, 3))[:, 1]  # P(praise | words so far)
books = hidden.sum(axis=(1, 2))  # (W, books)
genres = list(dict.fromkeys(book.genre for book in world.books))
genre = np.stack([books[:, [book.genre == name for book in world.books]].sum(axis=1)
                  for name in genres])
np.testing.assert_allclose(praise[-1], world.label_posterior(shown.words))
fig, ax = plots.figure(width=10.5, height=3.4)
plots.heatmap(
    np.vstack([praise, genre]), row_labels=["praise", *genres], col_labels=shown.words,
    low=0, high=1, bar_label="probability", ax=ax,
    title="What a perfect reader believes after each word",
)
plots.show(fig, name="17_exact_posterior")
for name in ("gender", "number"):
    p = train[name].posterior
    assert -(p * np.log(np.maximum(p, 1e-12))).sum(axis=1).mean() < 0.01

# %% [markdown]
# Gender and number are known to a perfect reader at nearly every position: the mean entropy is below 0.01 nats.
#
# ## A probe, and its score
#
# A **probe** is a small classifier trained on the hidden states of a frozen model. Ours is linear, as in lesson 09: $q = \mathrm{softmax}(xW + b)$, fitted by `lab.fit_probe`.
#
# ### Further: the probe in full
#
# For the polarity at the last level. The squares of $W$ are penalised. Later probes choose the strength of this penalty on a third of the fitting rows, each anew.

# %%
import torch.nn.functional as F

levels = lab.hidden_after_words(model, tokenizer, fitted)  # one row a word
x, labels = levels[-1], torch.as_tensor(train["polarity"].drawn)  # (N, D), (N,)
z = (x - x.mean(dim=0)) / (x.var(dim=0, correction=0) + 1e-5).sqrt()
probe = torch.nn.Linear(z.shape[1], 2)
torch.nn.init.zeros_(probe.weight)
optimizer = torch.optim.LBFGS(
    probe.parameters(), max_iter=40, line_search_fn="strong_wolfe"
)


def closure():
    optimizer.zero_grad()
    loss = F.cross_entropy(probe(z), labels) + 1e-3 * probe.weight.square().sum()
    loss.backward()
    return loss


optimizer.step(closure)
loss = F.cross_entropy(probe(z), labels)
of_lab = F.cross_entropy(lab.fit_probe(x, labels, n_classes=2, penalty=1e-3)(x), labels)
torch.testing.assert_close(loss, of_lab, atol=0.01, rtol=0)
print(f"{len(levels)} levels of {tuple(x.shape)};", end=" ")
print(f"loss of the probe {loss:.3f} nats, as `lab.fit_probe`")

# %% [markdown]
# ### How good is its loss?
#
# The label itself is uncertain, so what counts is the loss *above* that of the perfect reader: in expectation the **KL divergence** $\mathrm{KL}(p \,\|\, q)$ of the posterior $p$ and the probe $q$. By hand, on one position:

# %% tags=["nbval-check-output"]
p, q = np.array([0.9, 0.1]), np.array([0.7, 0.3])  # exact posterior, probe
cross_entropy, entropy = -(p * np.log(q)).sum(), -(p * np.log(p)).sum()
above = cross_entropy - entropy
print(f"{cross_entropy:.3f} - {entropy:.3f} = {above:.3f} nats above the posterior")

# %% [markdown]
# ### Two controls, always
#
# A probe learns, too, from any vectors that tell the words apart. So it is also fitted to a model with **random weights**: what it reaches there was not learned by the model. And it is fitted to **shuffled labels**: a score better than that of the **prior**, which guesses the frequencies and reads nothing, would mean that the test is leaking. **Predict 17.1.**

# %%
_ = torch.manual_seed(0)
random_model = tx.LanguageModel(model.config)


def read_by(reader):  # hidden states by level: those that fit, those that score
    fit, score = (
        lab.hidden_after_words(reader, tokenizer, reviews)
        for reviews in (fitted, asked)
    )
    return list(zip(fit, score, strict=True))


def missed(level, name, labels=None):  # nats above the posterior, one a review
    known, wanted = train[name], test[name]
    fit, score = (level[0][known.row], known), (level[1][wanted.row], wanted)
    return lab.probe_excess(fit, score, labels=labels)


own, other, variables = read_by(model), read_by(random_model), list(train)
KINDS = ("shuffled", "random", "trained")
question = "For which variable does training save the probe most nats?"
course.predict("17.1", f"{question} (last level, against random weights)", variables)

# %%
rng, excess, gains, at_end = np.random.default_rng(0), {}, {}, {}
for name in variables:
    shuffled = rng.permutation(train[name].drawn)
    excess[name, "shuffled"] = [missed(level, name, shuffled) for level in own]
    excess[name, "random"] = [missed(level, name) for level in other]
    excess[name, "trained"] = [missed(level, name) for level in own]
    less = excess[name, "random"][-1] - excess[name, "trained"][-1]
    gains[name] = gain = paired_interval(less)
    print(f"{name:<9}random minus trained {gain.mean:.3f} [{gain.low:.3f},", end=" ")
    print(f"{gain.high:.3f}]")
    prior = lab.prior_excess(train[name], test[name]).mean()
    ends = {kind: excess[name, kind][-1].mean() for kind in KINDS}
    at_end[name] = {"prior": prior, **ends}
    share, known = ends["trained"] / prior, name in ("gender", "number")
    assert smoke or (share < 0.1 and gain.low > 0 if known else share > 1 / 3)
    assert smoke or ends["shuffled"] > 0.9 * prior
assert smoke or all(gain.low > 0 for gain in gains.values())
print("nats that the probes of the last level miss:")
print(pd.DataFrame(at_end).round(3))
best = max(gains, key=lambda name: gains[name].mean)
others = [gains[name].high for name in variables if name != best]
finding = f"It misses {gains[best].mean:.3f} nats less than with random weights."
course.resolve("17.1", best if gains[best].low > max(others) else "open", finding)

# %% [markdown]
# **Finding:** training has made gender and number easier to read: the probe misses less than a tenth of what the prior misses. For polarity and genre it still misses about half or more, though training helps there, too. Shuffled labels end up to a tenth of a nat *above* the prior: so much a probe can lose by overfitting, and some of what is missed may be that. No probe can say whether the model *uses* what is there.
#
# ### Further: level by level
#
# Zero would be a perfect reader.

# %% tags=["folded"]
rows = [(name, kind) for name in variables for kind in KINDS]
table = np.array([[level.mean() for level in excess[row]] for row in rows])
fig, ax = plots.figure(width=7.5, height=5.8)
plots.heatmap(
    table,
    row_labels=[f"{name}, {kind}" for name, kind in rows],
    col_labels=["embedding", *(f"block {n}" for n in range(n_layers))],
    low=0, numbers=".3f", bar_label="nats above the exact posterior",
    title="What linear probes miss", ax=ax,
)
plots.show(fig, name="17_probes")

# %% [markdown]
# ## Further: take a head away
#
# The three tools, side by side:

# %%
plots.diagram("probe-ablate-patch")

# %% [markdown]
# To **ablate** a head means to run the model without it (Michel et al., [arXiv:1905.10650](https://arxiv.org/abs/1905.10650)). The input of `out_proj` holds the outputs of all heads side by side, $K$ columns each. A hook before this layer can put zeros, or anything else, into those of one head:

# %%
@contextmanager
def head_replaced(model, layer, head, value):
    out_proj = model.body.blocks[layer].attn.out_proj
    width = model.config.d_model // model.config.n_heads

    def hook(module, inputs):
        context = inputs[0].clone()  # (B, T, D), the heads side by side
        context[..., head * width : (head + 1) * width] = value
        return (context,)

    with out_proj.register_forward_pre_hook(hook):  # removed at the end of the block
        yield


row = torch.tensor([token_ids])
with torch.no_grad():
    with head_replaced(model, 0, 1, 0.0):
        ablated = model(row)
    with lab.heads_replaced(model.body, {(0, 1): 0.0}):  # the same, for several heads
        torch.testing.assert_close(model(row), ablated)
    moved = (model(row) - ablated).abs().max()
print(f"without head (0, 1) the logits move by up to {moved:.2f}")

# %% [markdown]
# Each head in turn: how many nats per token does the loss on fresh reviews rise?

# %%
from tinytx_run.evaluate import text_nats

texts = [" ".join(review.words) for review in world.reviews(N_TEXTS, seed=104)]
n_tokens = np.mean([len(ids) + 1 for ids in tokenizer.encode_batch(texts)])
whole = text_nats(model, tokenizer, texts)


def rise(heads):
    with lab.heads_replaced(model.body, dict.fromkeys(heads, 0.0)):
        return paired_interval((text_nats(model, tokenizer, texts) - whole) / n_tokens)


layers = [[(layer, head) for head in range(n_heads)] for layer in range(n_layers)]
rises = {at: rise([at]) for layer in layers for at in layer}
for number, layer in enumerate(layers):
    single, together = [rises[at].mean for at in layer], rise(layer).mean
    assert smoke or together > sum(single)
    print(f"layer {number}: single heads {min(single):.3f} to", end=" ")
    print(f"{max(single):.3f} nats per token,", end=" ")
    print(f"their sum {sum(single):.3f}, all heads at once {together:.3f}")

# %% [markdown]
# In each layer, all heads at once cost more than the sum of single ones. So the small cost of a head shows little: another head may do the same work, and a mean over all tokens hides what a head does at a few. Zero may be far from what a head puts out: its mean output (**mean ablation**) is often used instead (*more seeds* has both).
#
# ## Further: two reviews that differ in one word
#
# A sharper question: *what carries this one difference?* We take the beginning of a review, exchange one word, and stop where that word matters. **Polarity**: exchange an adjective, stop before an adjective of a *later* sentence; the groups are praising and blaming adjectives. **Gender**: exchange a noun, stop before a form that agrees; the groups are masculine and feminine forms. The effect is measured in log-odds: $\ln P(\text{one group}) - \ln P(\text{the other})$.

# %%
reviews, pairs, groups, runs = world.reviews(N_PAIRS, seed=103), {}, {}, {}
for kind in ("polarity", "gender"):
    pairs[kind] = one_word.one_word_pairs(world, forms, tokenizer, reviews, kind)
    groups[kind] = one_word.group_tokens(world, tokenizer, getattr(forms, kind))
    runs[kind] = one_word.PairRuns(model, tokenizer, pairs[kind], groups[kind])
    pair, effect = pairs[kind][0], paired_interval(runs[kind].whole)
    print(f"{kind}, {len(pairs[kind])} pairs, the first: {' '.join(pair.first)} ...")
    print(f"   {pair.first[pair.changed]} or {pair.second[pair.changed]};", end=" ")
    print(f"the word moves the model by {effect.mean:.2f} nats", end=" ")
    print(f"[{effect.low:.2f}, {effect.high:.2f}]")

# %% [markdown]
# ### Patch one head
#
# Run the first review and store the outputs of its heads. Run the second, but **patch** one head: put the stored output in its place, at all positions (Vig et al., [arXiv:2004.12265](https://arxiv.org/abs/2004.12265)). How much of the effect comes back?

# %%
def log_odds(logits):  # of the two groups of words, after the last position
    zero, one = (logits[0, -1][of].logsumexp(dim=0) for of in groups["gender"].T)
    return (one - zero).item()


first, second = (
    torch.tensor([[tokenizer.bos_id, *tokenizer.encode(" ".join(words))]])
    for words in (pairs["gender"][0].first, pairs["gender"][0].second)
)
layer, head = n_layers - 1, 1
with torch.no_grad():
    with lab.record_heads(model.body) as heads:  # a (B, T, H, K) for each layer
        odds = [log_odds(model(first)), log_odds(model(second))]
    with head_replaced(model, layer, head, heads[layer][:, :, head]):
        patched = log_odds(model(second))
effect = runs["gender"].patch_head(layer, head)[0]
np.testing.assert_allclose(patched - odds[1], effect, atol=1e-3)
print(f"first {odds[0]:+.2f}, second {odds[1]:+.2f};", end=" ")
print(f"second with head {(layer, head)} of the first {patched:+.2f}")

# %% [markdown]
# Which head carries most? We choose it on every second pair and report its effect on the *other* pairs: the best of sixteen noisy numbers flatters. The control is the other kind of pair: a head that matters for every prediction would carry both. **Predict 17.2.**

# %%
effects = {kind: run.effects() for kind, run in runs.items()}  # (L, H, pairs)
chosen = {}
for kind, table in effects.items():
    even = table[:, :, ::2].mean(axis=2)
    chosen[kind] = tuple(int(n) for n in np.unravel_index(even.argmax(), even.shape))
question = "How much of the gender effect does the head chosen for the polarity carry?"
options = ["less than a tenth", "a tenth to a half", "more than half"]
course.predict("17.2", question, options)

# %%
fig, axes = plots.figure(1, 2, width=11, height=2.8)
for ax, (kind, table) in zip(axes, effects.items(), strict=True):
    plots.heatmap(table.mean(axis=2), numbers=".2f", xlabel="head", ylabel="layer",
                  title=f"{kind}, nats", ax=ax)
plots.show(fig, name="17_patched_heads")
carried = {}
for kind, head in chosen.items():
    for of, run in runs.items():  # only pairs that did not choose
        part = paired_interval(effects[of][head][1::2] / run.whole[1::2].mean())
        carried[kind, of] = part
        control = "" if of == kind else "   control"
        print(f"head {head}, chosen for {kind}, carries {part.mean:.1%}", end=" ")
        print(f"of {of} [{part.low:.1%}, {part.high:.1%}]{control}")
    print(f"   without it the loss rises by {rises[head].mean:.3f} nats per token")
crossed, back = carried["polarity", "gender"], carried["gender", "polarity"]
both = (carried["polarity", "polarity"], crossed), (carried["gender", "gender"], back)
assert smoke or all(its.mean > other.mean for its, other in both)
double = all(its.low > other.high for its, other in both)
print(f"double dissociation: {'shown' if double else 'open, intervals overlap'}")
finding = f"{crossed.mean:.1%} [{crossed.low:.1%}, {crossed.high:.1%}]."
course.resolve("17.2", crossed.mean, finding, between=(crossed.low, crossed.high),
               thresholds=(0.1, 0.5))

# %% [markdown]
# Each head carries more of its own difference than of the other. If the intervals are apart, we have a **double dissociation**. It speaks against either of these two heads carrying both, on these texts.
#
# ## Further: attention against effect
#
# A story about a map would say: the head that attends most to the changed word carries its effect. Does it, in general? `python -m experiments looking-inside` has trained four models, for all the steps of lesson 08. Each point is a head of one of them.

# %%
from tinytx_course.results import read_results

stored_runs = read_results("looking-inside")
records = [run for key, run in stored_runs.data.items() if key.startswith("laptop/")]
worlds = [run for run in records if run["measure"] == "world"]
points = []
for kind in ("polarity", "gender"):
    attention, effect = (
        np.array([run["pairs"][kind][key] for run in worlds])  # (models, L, H)
        for key in ("attention", "heads")
    )
    points.append(plots.Points(kind, attention.ravel(), effect.ravel()))
    most, largest = (x.reshape(len(worlds), -1).argmax(1) for x in (attention, effect))
    alike = (most == largest).sum()
    shares = [run["pairs"][kind]["share_of_most_attentive"] for run in worlds]
    print(f"{kind}: most attentive = largest effect in {alike} of {len(worlds)} models")
    print("   the most attentive head carries", *(f"{share:.0%}" for share in shares))
    assert len(worlds) / 2 < alike < len(worlds)
fig, ax = plots.scatter(
    points, size=50, title="One point a head", ylabel="effect of the head (nats)",
    xlabel="attention of the last position to the changed word",
)
plots.show(fig, name="17_attention_against_effect")

# %% [markdown]
# The story is a good guess and no proof: for each kind of pair there is a model in which another head has the largest effect. Attention here is that of the last position. A head of the last layer may read *another* word, to which an earlier layer has brought the news; a head of layer 0 works at every position. (That attention is no explanation: Jain and Wallace, [arXiv:1902.10186](https://arxiv.org/abs/1902.10186); against them Wiegreffe and Pinter, [arXiv:1908.04626](https://arxiv.org/abs/1908.04626).)
#
# ## Further: induction
#
# In *A B ... A* an **induction head** attends from the second *A* to what followed the first, and copies it: *B* (Olsson et al., [arXiv:2209.11895](https://arxiv.org/abs/2209.11895)). It needs two layers: one writes into each position which token came before, a later one looks for "the position whose predecessor is my token". We train a tiny model where it is needed: rows of a random block of different tokens, repeated with a period that changes from row to row. The controls are a model with one layer, and random weights. The test uses a period that no training row had; in its second copy, from the second token on, the exact loss is zero.

# %% tags=["nbval-check-output"]
rng = torch.Generator().manual_seed(0)
rows, _ = lab.repeated_rows(2, 24, 16, lab.PERIODS, rng)
for row_ids in rows.tolist():
    print(" ".join(f"{token:>2}" for token in row_ids))

# %%
n_steps, p = 20 if smoke else 400, lab.UNSEEN_PERIOD
copier = lab.train_on_repeats(lab.repeats_config(), n_steps)
shallow = lab.train_on_repeats(lab.repeats_config(n_layers=1), n_steps)
fresh = lab.train_on_repeats(lab.repeats_config(), 0)
copiers = {"two layers": copier, "one layer": shallow, "random weights": fresh}
for name, one in copiers.items():
    nats = paired_interval(lab.copy_nats(one, p)[1])
    print(f"{name:<15} second copy {nats.mean:.2f} nats per token", end=" ")
    print(f"[{nats.low:.2f}, {nats.high:.2f}]")
guess = np.log(16)
print(f"a uniform guess: {guess:.2f}")

# %% [markdown]
# ### The induction score
#
# For a row of two copies with period $p$, the **induction score** of a head is the mean attention from each query $t$ of the second copy to the key $t - p + 1$: the token *after* the earlier copy of $t$. The **previous-token score** is the mean attention to the key $t - 1$: the first half of the mechanism. Both on many rows:

# %%
many, _ = lab.repeated_rows(200, 2 * p, 16, (p, p), torch.Generator().manual_seed(1))
with torch.no_grad(), tx.record_attention(copier) as recorded:
    copier(many)
weights = torch.stack(list(recorded.values()))  # (L, B, H, T, T)
second_copy, later = torch.arange(p, 2 * p), torch.arange(1, 2 * p)
score = weights[:, :, :, second_copy, second_copy - p + 1].mean(dim=(1, 3))  # (L, H)
previous = weights[:, :, :, later, later - 1].mean(dim=(1, 3))  # (L, H)
torch.testing.assert_close(score, lab.induction_scores(copier, p))
fig, axes = plots.figure(1, 2, width=9.5, height=2.8)
for ax, table, title in zip(axes, (score, previous), ("Induction", "Previous token"),
                            strict=True):
    plots.heatmap(table, low=0, high=1, numbers=".2f", xlabel="head", ylabel="layer",
                  title=f"{title} score", ax=ax)
plots.show(fig, name="17_induction")
controls = {name: lab.induction_scores(one, p).max() for name, one in copiers.items()}
listed = ", ".join(f"{name} {value:.2f}" for name, value in controls.items())
print("highest induction score:", listed)
highest = previous[0].max()
assert smoke or highest < 0.5
print(f"highest previous-token score of layer 0: {highest:.2f}")

# %% [markdown]
# A score is again only a map. Does the copying *need* these heads? Each head in turn is replaced by its mean output.

# %%
ranked = [divmod(int(n), 4) for n in score.flatten().argsort(descending=True)]
best = ranked[0]
with lab.record_heads(copier.body) as heads, torch.no_grad():
    copier(many)


def copying(heads_away):
    means = {(n, h): heads[n][:, :, h].mean(dim=(0, 1)) for n, h in heads_away}
    with lab.heads_replaced(copier.body, means):
        return lab.copy_nats(copier, p)[1].mean()


costs = {at: copying([at]) for at in sorted(ranked)}
most = max(costs, key=costs.get)
inducing = [at for at in ranked if score[at] > score.max() / 2]
others = [at for at in ranked if at[0] == best[0] and at not in inducing]
print(f"nothing away {copying([]):.2f} nats, best induction head {costs[best]:.2f},",
      f"all above half of its score {inducing} {copying(inducing):.2f},",
      f"control {others} {copying(others):.2f}")
print(f"head {most}: {costs[most]:.2f}, a uniform guess {guess:.2f}")
assert smoke or copying(inducing) - 0.5 > copying(others) < copying([]) + 0.1
assert smoke or (most[0] == 0 and costs[most] > guess)

# %% [markdown]
# Without its induction heads, all at once, the model copies far worse; one alone may be replaced in part. The heads of their layer with low scores do not matter. A head of layer 0 costs most, and without it the loss is *worse than a uniform guess*: the model is sure of wrong tokens. This shows that the prediction depends on the head, not by which path or with what. No head of layer 0 gives half of its attention to the previous token, either. So the second half of the mechanism is shown here, and the first half is not.
#
# ## Further: more seeds
#
# The claims of this lesson in the four stored models, each with its control: means over the seeds with 95 % intervals.

# %% tags=["nbval-check-output"]
def claim(text, ours, control):
    ours, control = np.array(ours), np.array(control)
    of = [paired_interval(values) for values in (ours, control)]
    shown = (f"{one.mean:5.2f} [{one.low:.2f}, {one.high:.2f}]" for one in of)
    apart.append(paired_interval(ours - control).excludes_zero)
    print(f"{text:<39}{'   control '.join(shown)}  {'' if apart[-1] else 'not '}apart")


apart = []
for name in variables:
    probed = [run["probes"][name] for run in worlds]
    for kind in ("random", "shuffled"):
        values = ([one[key][-1] for one in probed] for key in ("trained", kind))
        claim(f"{name} (nats missing); {kind}", *values)
for kind in ("polarity", "gender"):
    found = [run["pairs"][kind] for run in worlds]
    values = ([one[key] for one in found] for key in ("share", "share_of_other"))
    claim(f"{kind} (share); the other's head", *values)
copies = [run["nats"] for run in records if run["measure"] == "repeats"]
values = ([nats[key] for nats in copies] for key in ("the best head", "control"))
claim("copy without best head (nats); lowest", *values)
ablated = [run["ablation"] for run in worlds]
values = ([np.max(one[how]) for one in ablated] for how in ("zero", "mean"))
claim("costliest head (nats), zero; mean", *values)
assert all(apart[:-1]) and not apart[-1]

# %%
doubled = list(read_results("doubt-looking-inside").data.values())
nats = [one["nats"] for one in doubled if one["measure"] == "repeats"]
alone = [one["the best head"] - one["nothing"] for one in nats]
print("after twice the steps the best head costs", *(f"{x:.2f}" for x in alone), "nats")
for name in ("polarity", "genre"):
    ends = [one["probes"][name]["trained"][-1] for one in doubled if "probes" in one]
    print(f"and the probe of the {name} misses", *(f"{x:.2f}" for x in ends))

# %% [markdown]
# Each claim is apart from its control, each interval by itself; the two ways to ablate are not. In two other seeds, after twice the steps, the best induction head alone is nearly replaced by the others, and a probe misses more of the polarity and less of the genre.
#
# ## Questions

# %%
course.quiz("looking_inside")

# %% [markdown]
# ## Exercises
#
# [exercise: selectivity]


# %%
def selectivity(fit, hidden, labels, words, is_train, draws):
    ...


# %%
course.check("selectivity", selectivity)

# %% [markdown]
# ## Take-home
#
# | claim | experiment | control |
# |---|---|---|
# | the information is there | probe | random weights, shuffled labels |
# | the model needs this part | ablation | another part away, its mean in its place |
# | this part carries the difference | patch | texts that differ in something else |
#
# ## What this does not show
#
# - A linear probe finds what is linear, at the position where it reads.
# - One trained model and one random one were probed; the intervals are over reviews, not over models (*Further: more seeds*).
#
# ## Summary
#
# 1. Score a probe against what can be known: here in nats above the exact posterior, elsewhere at least against its controls.
# 2. *Further:* ablation shows need, on the texts and the measure that you chose. A small rise shows little.
# 3. *Further:* pairs that differ in one word give a clean question. Choose on one half, report on the other.
# 4. Attention maps are hypotheses. Interventions test them (*Further*).
#
# *Where this comes from:* probes: Alain and Bengio, [arXiv:1610.01644](https://arxiv.org/abs/1610.01644); control tasks: Hewitt and Liang, [arXiv:1909.03368](https://arxiv.org/abs/1909.03368).
#
# *What comes next:* [lesson 18](18_bug_museum.ipynb) looks at models that are ill.
