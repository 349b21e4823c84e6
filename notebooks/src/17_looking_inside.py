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
# After this lesson you can
#
# 1. fit a probe to hidden states, score it in nats against the exact posterior, and name the two controls without which its score means nothing;
# 2. ablate a head with a hook of ten lines, and say what an ablation shows and what it hides;
# 3. patch activations between two texts that differ in one word, and find the head that carries the difference;
# 4. say why an attention map is no explanation by itself, with a head of your own model as the example;
# 5. find induction by its score and destroy it by ablation, with a control head and a control model.
#
# *You need:* lesson 04 (heads), lesson 08 (pretraining), the linear probe of lesson 09.
# *It takes:* an hour and a half to read and do; a minute or two to run on two cores.

# %% [markdown]
# ## Set-up
#
# One model of the world is trained here, for two fifths of the steps of lesson 08, and then opened. Everything below asks about *this* model; the last part repeats the measurements on fully trained ones, from the folder `results/`. With the budget `smoke` everything runs, but nothing is learned.

# %%
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_course.labs import lesson_17 as lab
from tinytx_course.labs import one_word
from tinytx_run.intervals import paired_interval
from tinytx_run.recipes import default_budget, plan

smoke = default_budget() == "smoke"
N_FIT, N_ASKED, N_PAIRS, N_TEXTS = (40, 20, 60, 20) if smoke else (200, 150, 250, 80)

# %% [markdown]
# Two questions from earlier lessons first.

# %%
course.recall("17")

# %% [markdown]
# ## Why: a picture is quickly explained
#
# A small model predicts French book reviews nearly as well as anybody can. So it seems to know something: whether the book is praised, what kind of book it is, whether the next adjective must be feminine. Does it? And where? First the model.

# %%
shorter = {"n_steps": plan("world").settings.n_steps * 2 // 5}
how = lab.as_large() | {"options": tx.RunOptions(progress=False)}
trained = tx.pretrain("world", training_changes=shorter, **how)
model, tokenizer = trained.model.cpu(), trained.tokenizer
n_layers, n_heads = model.config.n_layers, model.config.n_heads
trained

# %% [markdown]
# ### The tempting wrong way
#
# Open the attention maps, find a head that looks sensible, and tell its story: "this one links the adjective to its noun." Try it. The explorer shows all heads of the model on one review; pick a word and see which earlier words it attends to. Write your story down. Later sections show how to test it.

# %%
shown = tx.World().reviews(3, seed=5)[0]
token_ids = [tokenizer.bos_id, *tokenizer.encode(" ".join(shown.words))]
tokens = [tokenizer.piece(token).replace("▁", "") or "▁" for token in token_ids]
course.widgets.attention(model, tokens, token_ids=token_ids, layer=n_layers - 1,
                         query=len(tokens) - 2, untrained=True)

# %% [markdown]
# *Untrained* shows the same layers with new random weights: a story that fits them, too, is about attention and not about what was learned.
#
# What is wrong with a story? It was chosen after looking, and nothing could have refuted it. So we ask every claim for its **control**: a measurement that would come out the same if the claim were false. There are three kinds of claims, and each needs another experiment. *The information is there* (a **probe**). *The model needs this part* (an **ablation**). *This part carries the difference* (a **patch**).

# %%
plots.diagram("probe-ablate-patch")

# %% [markdown]
# ## What could it know?
#
# A review has hidden variables: its polarity and its book were drawn first, and the words follow from them. On real text nobody knows what a reader of the first words could know of them. Here the grammar is a weighted automaton. Its forward pass gives $P(\text{hidden} \mid \text{words so far})$ exactly; a sum over the other variables leaves the one that we ask for. The map shows this **exact posterior** word by word: what a perfect reader believes. Which words will move the row of praise, and which a genre? The assertions check that the genres sum to one, and that the last value of praise is the posterior of the whole review, as lesson 09 used it.

# %%
world = tx.World()
states = world.automaton.prefixes(shown.words)[1:]  # after each word
hidden = np.stack([state.hidden for state in states])  # (W, 2, sentences, books)
praise = hidden.sum(axis=(2, 3))[:, 1]  # P(praise | words so far)
books = hidden.sum(axis=(1, 2))  # (W, books)
genres = list(dict.fromkeys(book.genre for book in world.books))
genre = np.stack([books[:, [book.genre == name for book in world.books]].sum(axis=1)
                  for name in genres])  # fmt: skip
np.testing.assert_allclose(genre.sum(axis=0), 1.0)
np.testing.assert_allclose(praise[-1], world.label_posterior(shown.words))
fig, ax = plots.figure(width=10.5, height=3.4)
plots.heatmap(
    np.vstack([praise, genre]), row_labels=["praise", *genres], col_labels=shown.words,
    low=0, high=1, bar_label="probability", ax=ax,
    title="What a perfect reader believes after each word",
)  # fmt: skip
plots.show(fig, name="17_exact_posterior")
print(f"at the end: praise {praise[-1]:.3f},", end=" ")
print(f"{genres[genre[:, -1].argmax()]} {genre[:, -1].max():.3f};", end=" ")
print(f"the truth: {shown.genre}, {'praise' if shown.label else 'blame'}")

# %% [markdown]
# Two more variables are local: the **gender awaited** and the **number awaited**. After *La fin est très* a feminine form must follow, after *Le début est très* a masculine one, and the word *très* says nothing about it. We take positions where the exact next-word distribution puts at least half its probability on adjectives and participles that show their gender. For the number, verbs of the third person count as well: after *Le roman que j'ai lu* a singular must follow, *est*, and after *Les romans que j'ai lus* a plural, *sont*. Here are all four for many fresh reviews, split into those that fit a probe, which are counted below, and those that score it.

# %%
forms = lab.WordForms(world)
fitted, asked = world.reviews(N_FIT, seed=101), world.reviews(N_ASKED, seed=102)
train, test = (
    lab.exact_variables(world, forms, reviews) for reviews in (fitted, asked)
)
for name, exact in train.items():
    np.testing.assert_allclose(exact.posterior.sum(axis=1), 1.0)
    entropy = -(exact.posterior * np.log(np.maximum(exact.posterior, 1e-12))).sum(
        axis=1
    )
    print(
        f"{name:<9}{len(exact.drawn):>6,} positions, {len(exact.classes)} classes,",
        end=" ",
    )
    print(f"entropy of the exact posterior {entropy.mean():.3f} nats")

# %% [markdown]
# The entropy is what even a perfect reader does not know. For gender and number it is zero: the words decide them. And often the last word alone decides the number, as *est* and *sont* do. A probe of the number has an easy task there, so its score will mean little without its controls.
#
# ## A probe, and its score
#
# A **probe** is a small classifier trained on the hidden states of a frozen model (Alain and Bengio 2016). Ours is linear: $q = \mathrm{softmax}(xW + b)$. It learns from *drawn* labels, not from the posterior, which nobody knows on real text. Here is one in full, for the polarity at the last level, on standardised features, fitted by L-BFGS.

# %%
levels = lab.hidden_after_words(model, tokenizer, fitted)  # one row a word
assert len(levels[-1]) == len(train["polarity"].drawn)
x, labels = levels[-1], torch.as_tensor(train["polarity"].drawn)  # (N, D), (N,)
z = (x - x.mean(dim=0)) / (x.var(dim=0, correction=0) + 1e-5).sqrt()
weight = torch.zeros(x.shape[1] + 1, 2, requires_grad=True)  # the last row is b
optimizer = torch.optim.LBFGS([weight], max_iter=40, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = F.cross_entropy(z @ weight[:-1] + weight[-1], labels)
    (loss + 1e-3 * weight[:-1].square().sum()).backward()
    return loss + 1e-3 * weight[:-1].square().sum()


optimizer.step(closure)
by_hand = (z @ weight[:-1] + weight[-1]).log_softmax(dim=1).detach()
probe = lab.fit_probe(x, labels, n_classes=2)
torch.testing.assert_close(
    by_hand, probe(x).log_softmax(dim=1).detach(), atol=0.05, rtol=0
)
print(
    f"{len(levels)} levels of {tuple(x.shape)}; loss of the probe "
    f"{F.nll_loss(by_hand, labels):.3f} nats"
)

# %% [markdown]
# Is that loss good? Accuracy or loss alone cannot say, for the label itself is uncertain. What counts is the loss *above* that of the perfect reader. In expectation the difference of the two cross-entropies is the **KL divergence** of the probe from the posterior, and we know the posterior, so no luck of the labels is left in it. On one position, by hand:

# %%
p, q = np.array([0.9, 0.1]), np.array([0.7, 0.3])  # exact posterior, probe
cross_entropy, entropy = -(p * np.log(q)).sum(), -(p * np.log(p)).sum()
by_hand = cross_entropy - entropy
np.testing.assert_allclose(lab.divergence(p[None], np.log(q)[None])[0], by_hand)
print(
    f"{cross_entropy:.3f} - {entropy:.3f} = {by_hand:.3f} nats above the exact "
    "posterior"
)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### Two controls, always
#
# A probe is a model that learns, too. It could learn the task by itself from any vectors that tell the words apart. So the same probe is fitted to a model of the same shape with **random weights**: what it reaches there was not learned by the model. And it is fitted to **shuffled labels**: there is nothing to learn then, and a score better than the prior's would mean that the test is leaking. The **prior** guesses the frequencies and reads nothing. **Predict 17.1.**

# %%
variables = list(train)
course.predict(
    "17.1",
    "At the last level, for which variable is the probe's gain over random weights "
    "largest?",
    variables,
)

# %%
_ = torch.manual_seed(0)
random_model = tx.LanguageModel(model.config)
rng = np.random.default_rng(0)


def read_by(reader):
    both = (
        lab.hidden_after_words(reader, tokenizer, reviews)
        for reviews in (fitted, asked)
    )
    return list(zip(*both, strict=True))  # by level: what fits, what scores


def missed(level, name, labels=None):
    known, wanted = (
        (x[exact[name].row], exact[name])
        for x, exact in zip(level, (train, test), strict=True)
    )
    return lab.probe_excess(known, wanted, labels=labels)


own, other, excess, gains = read_by(model), read_by(random_model), {}, {}
for name in variables:
    shuffled = rng.permutation(train[name].drawn)
    excess[name, "trained"] = [missed(level, name) for level in own]
    excess[name, "shuffled"] = [missed(level, name, shuffled) for level in own]
    excess[name, "random"] = [missed(level, name) for level in other]
    gain = paired_interval(excess[name, "random"][-1] - excess[name, "trained"][-1])
    gains[name], prior = gain, lab.prior_excess(train[name], test[name]).mean()
    trained_excess = excess[name, "trained"][-1].mean()
    print(
        f"{name:<9} prior {prior:.3f}, trained {trained_excess:.3f}, shuffled", end=" "
    )
    print(f"{excess[name, 'shuffled'][-1].mean():.3f}; random minus trained", end=" ")
    print(f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]")
best = max(gains, key=lambda name: gains[name].mean)
course.resolve(
    "17.1",
    best,
    f"It misses {gains[best].mean:.3f} nats less than with random weights.",
)

# %% [markdown]
# The map has all levels. Level 0 is the embedding of the word itself, the next levels follow the blocks. A zero would be a perfect reader. Compare each row of the trained model with its controls: only what is *lower* was learned. And compare the levels: where a number falls, the block has moved information from other words to this position, or has made it easier to read linearly.

# %% tags=["folded"]
rows = [
    (name, kind) for name in variables for kind in ("trained", "shuffled", "random")
]
table = np.array([[level.mean() for level in excess[row]] for row in rows])
fig, ax = plots.figure(width=7.5, height=5.8)
plots.heatmap(
    table,
    row_labels=[f"{name}, {kind}" for name, kind in rows],
    col_labels=["embedding", *(f"block {n}" for n in range(n_layers))],
    low=0,
    numbers=".3f",
    bar_label="nats above the exact posterior",
    title="What linear probes miss",
    ax=ax,
)
plots.show(fig, name="17_probes")
for name in variables:
    fall = [level.mean() for level in excess[name, "trained"]]
    falls = -np.diff(fall)
    print(
        f"{name}: the largest fall, {falls.max():.3f} nats, is in block "
        f"{falls.argmax()}"
    )

# %% [markdown]
# A probe says that the information *is there* for a linear reader, at this position. It does not say that the model uses it. For that we must interfere. Nor does a miss say that the model does not know: what is not here may be fetched from another position when it is needed.
#
# ## Take a head away
#
# To **ablate** a head means to run the model without it. The heads meet in `out_proj`, whose input holds their outputs one after the other, $K$ columns each. A hook that runs before this layer can set the columns of one head to zero. Ten lines:

# %%
@contextmanager
def without_head(model, layer, head):
    out_proj = model.body.blocks[layer].attn.out_proj
    width = model.config.d_model // model.config.n_heads

    def hook(module, inputs):
        context = inputs[0].clone()  # (B, T, D), the heads side by side
        context[..., head * width : (head + 1) * width] = 0.0
        return (context,)

    with out_proj.register_forward_pre_hook(hook):  # removed at the end of the block
        yield


row = torch.tensor([token_ids])
with torch.no_grad(), without_head(model, 0, 1):
    ablated = model(row)
with torch.no_grad(), lab.heads_replaced(model.body, {(0, 1): 0.0}):
    torch.testing.assert_close(model(row), ablated)
with torch.no_grad():
    print(
        f"the logits move by up to {(model(row) - ablated).abs().max():.2f}; the hook "
        "is gone again"
    )

# %% [markdown]
# `lab.heads_replaced` does the same for several heads at once, with any value in place of zero. A check that the tool does what it says: without *all* heads of a layer, its attention must add nothing to the residual stream (these models have no biases). Then each head in turn: how many nats per token does the loss on fresh reviews rise?

# %%
from tinytx_run.evaluate import text_nats

attn = model.body.blocks[0].attn
with (
    torch.no_grad(),
    lab.heads_replaced(model.body, {(0, h): 0.0 for h in range(n_heads)}),
):
    outputs = []
    with attn.register_forward_hook(
        lambda module, args, output: outputs.append(output)
    ):
        model(row)
assert outputs[0].abs().max() == 0
texts = [" ".join(review.words) for review in world.reviews(N_TEXTS, seed=104)]
n_tokens = np.array([len(ids) + 1 for ids in tokenizer.encode_batch(texts)])
whole = text_nats(model, tokenizer, texts)


def rise(heads):
    with lab.heads_replaced(model.body, dict.fromkeys(heads, 0.0)):
        return (text_nats(model, tokenizer, texts) - whole) / n_tokens.mean()


every = [[(layer, head) for head in range(n_heads)] for layer in range(n_layers)]
rises = {at: paired_interval(rise([at])) for layer in every for at in layer}
for layer in range(n_layers):
    together, alone = (
        rise(every[layer]).mean(),
        sum(rises[at].mean for at in every[layer]),
    )
    print(
        f"layer {layer}: all heads away {together:.3f} nats per token, sum of single "
        f"ones {alone:.3f}"
    )

# %% tags=["folded"]
fig, ax = plots.figure(width=8.5, height=2.9)
plots.heatmap(
    [[rises[at].mean for at in layer] for layer in every],
    numbers=".3f",
    xlabel="head",
    ylabel="layer",
    bar_label="nats per token",
    title="How much the loss rises without a head",
    ax=ax,
)
plots.show(fig, name="17_ablations")
idle = [at for at, interval in rises.items() if interval.mean < 0.005]
print(f"{len(idle)} of {len(rises)} heads cost less than 0.005 nats per token:", *idle)

# %% [markdown]
# Some heads cost next to nothing. Does the model not need them? Careful. The loss is a mean over all tokens, and a head that matters at one word in forty hardly moves it. Another head may also step in: where all heads of a layer together cost more than the sum of single ones, that is a sign that they do some work twice. And zero is a value that the model never met: a fairer choice may be the head's mean output (**mean ablation**), which the stored runs at the end compare. So a large cost shows a need if the mean output costs as much; a small cost shows little.
#
# ## Two reviews that differ in one word
#
# A sharper question: *what carries this one difference?* We take the beginning of a review, exchange one word, and stop where that word matters. For the **polarity**, an adjective of the first sentence changes from praise to blame, and the two beginnings end before an adjective of a *later* sentence. For the **gender**, a noun changes, and both end before a form that agrees with it. The effect is measured in nats of log-odds: $\ln P(\text{words of one group}) - \ln P(\text{the other})$.

# %%
reviews, pairs, runs = world.reviews(N_PAIRS, seed=103), {}, {}
for kind in ("polarity", "gender"):
    pairs[kind] = one_word.one_word_pairs(world, forms, tokenizer, reviews, kind)
    groups = one_word.group_tokens(world, tokenizer, getattr(forms, kind))
    runs[kind] = one_word.PairRuns(model, tokenizer, pairs[kind], groups)
    one = pairs[kind][0]
    print(f"{kind}, {len(pairs[kind])} pairs, the first: {' '.join(one.first)} ...")
    print(f"   {one.first[one.changed]} or {one.second[one.changed]};", end=" ")
    print(f"exact log-odds {one.exact[0]:+.2f} or {one.exact[1]:+.2f}")
    effect = paired_interval(runs[kind].whole)
    print(
        f"   the word moves the model by {effect.mean:.2f} nats [{effect.low:.2f}, "
        f"{effect.high:.2f}]"
    )
exact_effect = np.mean([pair.exact[0] - pair.exact[1] for pair in pairs["polarity"]])
print(
    f"exact: polarity {exact_effect:.2f} nats; of the gender the language is "
    "certain, inf"
)

# %% [markdown]
# Compare the effect of the polarity on the model with the exact one. Only in this world do we know how far the odds *should* move. The model may fall short, and then no part of it can carry what the whole lacks.
#
# ### Patch the hidden states
#
# Run the first review and store its hidden states. Run the second one, but **patch** some of them: put the stored ones in their place. How much of the effect comes back? By hand, for one pair, at one level and all positions. Then everything downstream is that of the first run, so the effect must come back whole.

# %%
from tinytx.transformer import record_hidden_states

first, second = (
    [tokenizer.bos_id, *tokenizer.encode(" ".join(words))]
    for words in (pairs["gender"][0].first, pairs["gender"][0].second)
)
first, second = torch.tensor([first]), torch.tensor([second])  # (1, T) each
with torch.no_grad():
    with record_hidden_states(model.body) as stored:
        wanted = model(first)
    with model.body.blocks[0].register_forward_hook(
        lambda module, args, output: stored[1]
    ):
        patched = model(second)
    assert not torch.equal(model(second), wanted)
torch.testing.assert_close(patched, wanted)
print("patched after block 0, at all positions: the second run has become the first")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Now only *some* positions: the changed word itself, the rest of its sentence, the later sentences, the last position, where the next word is predicted. At the embedding all of the effect is at the changed word. At the last level all of it is at the last position, for only that one is read. In between we see the route. **Predict 17.2.**

# %%
course.predict(
    "17.2", "Polarity: after block 0, which positions carry most of the effect?",
    ["changed word", "rest of its sentence", "later sentences", "last word"],
)  # fmt: skip

# %%
shares = {}
for kind, run in runs.items():
    moved = np.array(
        [
            [run.patch_hidden(level, where).mean() for level in range(n_layers + 1)]
            for where in run.roles.values()
        ]
    )
    whole_effect = run.whole.mean()
    np.testing.assert_allclose([moved[0, 0], moved[3, -1]], whole_effect, atol=1e-3)
    shares[kind] = moved / whole_effect
fig, axes = plots.figure(1, 2, width=10.5, height=3.4)
for ax, (kind, table) in zip(axes, shares.items(), strict=True):
    plots.heatmap(
        table.round(2) + 0.0,
        row_labels=list(runs[kind].roles) if kind == "polarity" else [""] * 4,
        numbers=".2f",
        col_labels=["embedding", *(f"block {n}" for n in range(n_layers))],
        title=kind,
        ax=ax,
    )
plots.show(fig, name="17_patched_positions")
roles = list(runs["polarity"].roles)
most = {kind: roles[table[:, 1].argmax()] for kind, table in shares.items()}
largest = {
    kind: f"{most[kind]} {table[:, 1].max():.0%}" for kind, table in shares.items()
}
finding = ", ".join(f"{kind}: {share}" for kind, share in largest.items())
course.resolve("17.2", most["polarity"], f"Shares of the effect: {finding}.")

# %% [markdown]
# ### Patch one head
#
# The same with the output of a single head, at all positions. To name the head that carries most, we choose it on every second pair, and report its effect on the *other* pairs: the best of sixteen noisy numbers flatters, as lesson 09 showed. The **control** is the other kind of pair. If a head simply matters for everything, it will carry both. **Predict 17.3.**

# %%
effects = {kind: run.effects() for kind, run in runs.items()}  # (L, H, pairs)
chosen = {}
for kind, table in effects.items():
    even = table[:, :, ::2].mean(axis=2)
    chosen[kind] = tuple(int(n) for n in np.unravel_index(even.argmax(), even.shape))
course.predict(
    "17.3",
    "How much of the gender effect does the head chosen for the polarity carry?",
    ["less than a tenth", "a tenth to a half", "more than half"],
)

# %%
fig, axes = plots.figure(1, 2, width=11, height=2.8)
for ax, (kind, table) in zip(axes, effects.items(), strict=True):
    plots.heatmap(
        table.mean(axis=2), numbers=".2f", xlabel="head", ylabel="layer",
        title=f"{kind}, nats", ax=ax,
    )  # fmt: skip
plots.show(fig, name="17_patched_heads")


def share(kind, head, pairs=slice(1, None, 2)):  # of the pairs that did not choose
    whole = runs[kind].whole[pairs]
    return paired_interval(effects[kind][head][pairs] / whole.mean())


for kind, head in chosen.items():
    for of in runs:
        part = share(of, head)
        print(
            f"head {head}, chosen for {kind}, carries {part.mean:.1%} of the effect",
            end=" ",
        )
        print(
            f"of {of} [{part.low:.1%}, "
            f"{part.high:.1%}]{'' if of == kind else '   control'}"
        )
    cost = rises[head]
    print(
        f"   without it the loss rises by {cost.mean:.3f} [{cost.low:.3f}, "
        f"{cost.high:.3f}]"
    )
crossed = share("gender", chosen["polarity"])
answer = ("less than a tenth" if crossed.mean < 0.1 else "a tenth to a half"
          if crossed.mean < 0.5 else "more than half")  # fmt: skip
course.resolve(
    "17.3", answer, f"{crossed.mean:.1%} [{crossed.low:.1%}, {crossed.high:.1%}]."
)

# %% [markdown]
# When each head carries its own difference and not the other, that is a **double dissociation**: neither "this head matters for everything" nor "this test moves everything" explains it. Compare the shares with the last line under each head, its cost in the ablation: a mean over all tokens dilutes what a head does at the few tokens where it works.
#
# ## Attention against effect
#
# Back to the maps. A story about a map would say: the head that attends most to the changed word carries its effect. Each point is a head: across, the attention of the last position to the changed word; up, what patching the head moves. Where do you expect the points, if the story is right?

# %% tags=["folded"]
attention = {kind: run.attention_to_change().mean(axis=2) for kind, run in runs.items()}
fig, ax = plots.scatter(
    [
        plots.Points(kind, attention[kind].ravel(), effects[kind].mean(axis=2).ravel())
        for kind in runs
    ],
    xlabel="attention to the changed word",
    ylabel="effect of the head (nats)",
    size=70,
    title="One point a head",
)
plots.show(fig, name="17_attention_against_effect")
for kind, run in runs.items():
    looks, moves = attention[kind], effects[kind].mean(axis=2)
    correlation = np.corrcoef(looks.ravel(), np.abs(moves).ravel())[0, 1]
    print(
        f"{kind}: correlation {correlation:+.2f}, effect of the word "
        f"{run.whole.mean():.2f} nats"
    )
    for at in (divmod(int(n), n_heads) for n in np.argsort(-looks, axis=None)[:3]):
        print(f"   head {at}: attention {looks[at]:.2f}, effect {moves[at]:+.2f} nats")

# %% [markdown]
# The lists show the three most attentive heads of each kind. Does a head come second in attention whose effect is far from second? Attention says *where* a head reads. What it does also depends on *what* is read there (the values), and on whether later layers use it. Jain and Wallace (2019) argued from such cases that attention is not explanation: very different maps can give the same prediction. Wiegreffe and Pinter (2019) replied that this depends on what one calls an explanation, and that a map can be tested, for instance by freezing it. In practice, a map is a hypothesis. The test is an intervention.
#
# ## Induction: a mechanism in full
#
# One mechanism is understood end to end (Olsson et al. 2022). In *A B ... A* an **induction head** attends from the second *A* to what followed the first, and copies it: *B*. It needs two layers. One head writes into each position which token came before; a later head looks for "the position whose predecessor is my token". Our world hardly asks for it, so we train a second, tiny model where it is needed: rows of a random block of different tokens, repeated with a period that changes from row to row.
#
# Three models are compared: two layers, the control with **one layer**, and the control with **random weights**. The test uses a period that no training row had. In the first copy nothing can be known, except that tokens do not recur within it. In the second copy each token is certain, from the second token on: the exact loss is zero.

# %%
rng = torch.Generator().manual_seed(0)
rows, periods = lab.repeated_rows(3, 24, 16, lab.PERIODS, rng)
for row_ids, period in zip(rows.tolist(), periods.tolist(), strict=True):
    print(" ".join(f"{token:>2}" for token in row_ids), f"   period {period}")
n_steps = 20 if smoke else 400
copier = lab.train_on_repeats(lab.repeats_config(), n_steps)
shallow = lab.train_on_repeats(lab.repeats_config(n_layers=1), n_steps)
fresh = lab.train_on_repeats(lab.repeats_config(), 0)
copiers = {"two layers": copier, "one layer": shallow, "random weights": fresh}
for name, one in copiers.items():
    both = [paired_interval(nats) for nats in lab.copy_nats(one, lab.UNSEEN_PERIOD)]
    print(
        f"{name:<15} first copy {both[0].mean:.2f}, second copy {both[1].mean:.2f}",
        end=" ",
    )
    print(f"nats per token [{both[1].low:.2f}, {both[1].high:.2f}]")
print(f"a uniform guess: {np.log(16):.2f}")

# %% [markdown]
# ### The induction score
#
# For a row of two copies with period $p$, the **induction score** of a head is the mean attention from each query $t$ of the second copy to the key $t - p + 1$: the token *after* the earlier copy of $t$. As loops over one row, and then for all heads and many rows.

# %%
p = lab.UNSEEN_PERIOD
two_copies, _ = lab.repeated_rows(
    1, 2 * p, 16, (p, p), torch.Generator().manual_seed(1)
)
with torch.no_grad(), tx.record_attention(copier) as recorded:
    copier(two_copies)
by_loop = [
    [
        sum(weights[0, head, t, t - p + 1].item() for t in range(p, 2 * p)) / p
        for head in range(4)
    ]
    for weights in recorded.values()
]
torch.testing.assert_close(
    torch.tensor(by_loop), lab.induction_scores(copier, p, n_rows=1)
)
scores = {name: lab.induction_scores(one, p) for name, one in copiers.items()}
fig, axes = plots.figure(1, 2, width=9.5, height=3.9)
plots.heatmap(
    scores["two layers"], low=0, high=1, numbers=".2f", xlabel="head", ylabel="layer",
    title="Induction score", ax=axes[0],
)  # fmt: skip
layer, head = divmod(int(scores["two layers"].argmax()), 4)
best_map = list(recorded.values())[layer][0, head]
plots.heatmap(
    best_map,
    allowed=tx.causal_mask(2 * p),
    low=0,
    high=1,
    xlabel="key",
    ylabel="query",
    title=f"Head {(layer, head)} on a row of two copies",
    ax=axes[1],
    row_labels=["" if t % 6 else str(t) for t in range(2 * p)],
    col_labels=["" if t % 6 else str(t) for t in range(2 * p)],
)
plots.show(fig, name="17_induction")
print(
    "highest score:",
    ", ".join(f"{name} {score.max():.2f}" for name, score in scores.items()),
)

# %% [markdown]
# A score is again only a map. Does the copying *need* these heads? Four runs: with all heads, without the best head, without all whose score exceeds half of the best, and, as the control, without the head of the same layer with the lowest score. **Predict 17.4.**

# %%
course.predict(
    "17.4", "Without the single best induction head, the second copy costs ...",
    ["hardly more than before", "clearly more, but less than without all of them",
     "as much as without all of them"],
)  # fmt: skip

# %%
ranked = [
    divmod(int(n), 4) for n in scores["two layers"].flatten().argsort(descending=True)
]
inducing = [
    at for at in ranked if scores["two layers"][at] > scores["two layers"].max() / 2
]
control = [at for at in ranked if at[0] == ranked[0][0]][-1]
costs = {}
without = {
    "nothing": [],
    "best head": ranked[:1],
    "all induction heads": inducing,
    "control": [control],
}
for name, heads in without.items():
    with lab.heads_replaced(copier.body, dict.fromkeys(heads, 0.0)):
        costs[name] = paired_interval(lab.copy_nats(copier, p)[1])
    print(f"without {name:<20}{costs[name].mean:6.2f} nats", end=" ")
    print(f"[{costs[name].low:.2f}, {costs[name].high:.2f}]   {heads}")
lost = {name: cost.mean - costs["nothing"].mean for name, cost in costs.items()}
part = lost["best head"] / lost["all induction heads"]
answer = (
    "hardly more than before"
    if part < 0.2
    else "clearly more, but less than without all of them"
    if part < 0.8
    else "as much as without all of them"
)
finding = ", ".join(f"{name} {nats:+.2f}" for name, nats in list(lost.items())[1:])
course.resolve("17.4", answer, f"Nats more than with nothing ablated: {finding}.")

# %% [markdown]
# Compare the lists of ablated heads. If only one head passes half of the best score, the second run and the third are the same. The stored runs below show other seeds.
#
# And the model of the world? It can be asked, too: random tokens of its vocabulary, repeated. The control is the same model with random weights, and chance is one key in about twenty.

# %%
for name, one in {
    "trained on the world": model,
    "random weights": random_model,
}.items():
    world_scores = lab.induction_scores(one, p, n_rows=50)
    first_copy, second_copy = lab.copy_nats(one, p, n_rows=50)
    nats = paired_interval(second_copy - first_copy)
    print(
        f"{name:<21} highest score {world_scores.max():.2f}; second copy minus first",
        end=" ",
    )
    print(f"{nats.mean:+.2f} nats [{nats.low:+.2f}, {nats.high:+.2f}]")

# %% [markdown]
# ## More seeds, and when it is learned
#
# One model is an anecdote. `python -m experiments looking-inside` trained several, for all the steps of lesson 08, and repeated everything. Heads have other numbers in each, so only roles can be averaged. During the training it also probed the last level ten times. In which order will the variables be learned?

# %%
from tinytx_course.results import read_results

stored = read_results("looking-inside")
records = [one for key, one in stored.data.items() if key.startswith("laptop/")]
worlds = [one for one in records if one["measure"] == "world"]
print(f"{len(worlds)} models, {stored.source_line()}")
steps = worlds[0]["moments"]["step"]
relative = {
    name: np.array(
        [
            np.array(one["moments"][name]) / one["probes"][name]["prior"]
            for one in worlds
        ]
    )
    for name in worlds[0]["probes"]
}
fig, ax = plots.curves(
    [
        plots.Curve(name, steps, table.mean(0), low=table.min(0), high=table.max(0))
        for name, table in relative.items()
    ],
    xlabel="training step",
    ylabel="missing, as a share of the prior's",
    y_range=(0, 1.15),
    references={"the prior, which reads nothing": 1.0},
    title="What the last level does not know yet",
)
plots.show(fig, name="17_learned_when")
for name, table in relative.items():
    falls = -np.diff([1.0, *table.mean(axis=0)])  # from the prior on
    step = steps[falls.argmax()]
    print(
        f"{name}: the largest fall ends at step {step}; at the end "
        f"{table[:, -1].mean():.2f} is missing"
    )

# %% [markdown]
# The bands reach from the lowest to the highest seed. What still is missing at the end need not be unknown to the model: the probe reads one position only. Now the claims of this lesson in one table: the measurement, its control, which could have refuted it, and whether the interval of their difference over the seeds excludes zero. With few seeds an interval is wide, and "not apart" means only that these runs cannot tell. Below it are the maps: how well attention predicts effect, how much of the effect the *most attentive* head carries, and how much of the difference is still at the changed word after block 0, for a head of the next block to fetch. Then the second copy without the best induction head and without all of them, a number for each seed. Which single head costs copying most? It need not have a high score: a head of the first layer may do the part of the work that the induction head builds on. So a low score is a control only within one layer. The last line compares the two ways to ablate, zero and the mean output, each at its costliest head.

# %%
def over_seeds(values):
    interval = paired_interval(values)
    return f"{interval.mean:5.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def claim(text, ours, control):
    apart = paired_interval(np.array(ours) - np.array(control)).excludes_zero
    held = "apart" if apart else "not apart"
    print(f"{text:<51}{over_seeds(ours):<20} control {over_seeds(control):<20} {held}")


copies = [one["nats"] for one in records if one["measure"] == "repeats"]
for name in relative:
    ours = [one["probes"][name]["trained"][-1] for one in worlds]
    for kind in ("random", "shuffled"):
        control = [one["probes"][name][kind][-1] for one in worlds]
        claim(f"{name}, nats missing; control: {kind}", ours, control)
for kind in ("polarity", "gender"):
    found = [one["pairs"][kind] for one in worlds]
    ours, control = ([f[key] for f in found] for key in ("share", "share_of_other"))
    claim(f"{kind}, share carried; control: the other's head", ours, control)
claim(
    "copy without best head; control: lowest in layer",
    [nats["the best head"] for nats in copies],
    [nats["control"] for nats in copies],
)
claim(
    "copy by one layer; control: by two",
    [nats["one layer"] for nats in copies],
    [nats["nothing"] for nats in copies],
)
for kind in ("polarity", "gender"):
    found = [one["pairs"][kind] for one in worlds]
    alike = sum(np.argmax(f["attention"]) == np.argmax(f["heads"]) for f in found)
    shares_of_most = " ".join(f"{f['share_of_most_attentive']:.2f}" for f in found)
    print(
        f"{kind}: correlation {over_seeds([f['correlation'] for f in found])};", end=" "
    )
    print(f"most attentive = largest effect in {alike} of {len(found)} models")
    print(
        f"   share of the effect that the most attentive head carries: {shares_of_most}"
    )
    after = [
        np.array(f["patch"]["changed word"])[1] / f["patch"]["changed word"][0]
        for f in found
    ]
    print(
        "   after block 0 the changed word still holds, as a share: "
        f"{over_seeds(after)}"
    )
for name in ("the best head", "induction heads"):
    print(f"copy without {name:<15}", *(f"{nats[name]:.2f}" for nats in copies), "nats")
print("the head whose loss costs copying most, and its score:")
for one in (one for one in records if one["measure"] == "repeats"):
    costs = np.array(one["each_head"])
    layer, head = np.unravel_index(costs.argmax(), costs.shape)
    cost, score = costs[layer, head], one["scores"][layer][head]
    print(f"   layer {layer}, head {head}: {cost:.2f} nats, score {score:.2f}")
zero, mean = (
    [np.max(one["ablation"][how]) for one in worlds] for how in ("zero", "mean")
)
print(
    f"costliest head, nats per token: zero {over_seeds(zero)}, mean {over_seeds(mean)}"
)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## What this does not show
#
# - A linear probe finds what is linear, and only at the position where it reads. What it misses may be there in another form, or at another word from which attention can fetch it when it is needed. And what it finds may be unused.
# - A patch that restores the effect shows that this part *can* carry it, in these texts. Another part may carry the same, so the shares of several parts need not add up to 100 %.
# - Heads are not the only parts. Feed-forward layers and single neurons can be patched in the same way; we did not.
# - Two layers, fewer than a million numbers and a small grammar. In larger models one head often has many roles, and the same tools say less.
#
# ## Take-home
#
# A probe with both controls on one screen. Publish its number with theirs.

# %%
def probe_loss(hidden, labels, asked, wanted, n_classes, n_steps=300):
    mean, std = hidden.mean(dim=0), hidden.std(dim=0) + 1e-5
    layer = torch.nn.Linear(hidden.shape[1], n_classes)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-2, weight_decay=0.1)
    for _ in range(n_steps):
        loss = F.cross_entropy(layer((hidden - mean) / std), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return F.cross_entropy(layer((asked - mean) / std), wanted).item()


_ = torch.manual_seed(0)
labels, wanted = (torch.as_tensor(exact["gender"].drawn) for exact in (train, test))
for name, levels in {"control: random weights": other, "trained": own}.items():
    hidden, later = (
        x[exact["gender"].row]
        for x, exact in zip(levels[-1], (train, test), strict=True)
    )
    print(f"{name:<25}{probe_loss(hidden, labels, later, wanted, 2):.3f} nats")
print(f"{'control: shuffled labels':<25}", end="")
shuffled = labels[torch.randperm(len(labels))]
print(f"{probe_loss(hidden, shuffled, later, wanted, 2):.3f} nats")

# %% [markdown]
# ## Questions
#
# Pick an answer and read what it says; the wrong answers are common mistakes.

# %%
course.quiz("looking_inside")

# %% [markdown]
# ## Exercises
#
# The two small functions on which the lesson rests. Below each cell to fill in is its check, which says where your answer differs, on the smallest input it could find, and, if it knows the mistake, what it is. While there are only dots, it says "not attempted yet".
#
# [exercise: ablate_head]


# %%
def ablate_head(context, n_heads, head):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("ablate_head", ablate_head)

# %% [markdown]
# [exercise: induction_score]


# %%
def induction_score(weights, period):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("induction_score", induction_score)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** Patch the two best heads of the gender pairs at once, with `lab.heads_replaced`. Do their shares add up?
#
# <details><summary>Answer</summary>
#
# Not in general. The last level ends in a norm and the effect in a log of sums, so effects of parts do not add. If the later head reads what the earlier one writes, or both write the same information, the second patch brings little that is new.
#
# </details>
#
# **2.** Somebody reports: "A probe on layer 6 finds the author's age with 71 % accuracy, so the model computes the age." Which two numbers do you ask for, and what would they still not show?
#
# <details><summary>Answer</summary>
#
# The accuracy of the same probe on a model with random weights, and on labels shuffled between authors (with the share of the majority). If both are far below 71 %, the information is in layer 6. That the model uses it, or has computed it for a purpose, only an intervention can show.
#
# </details>
#
# ## Summary
#
# | claim | shown by | the control that could have refuted it |
# |---|---|---|
# | the information is there, for a linear reader | a probe near the exact posterior | the same probe on random weights, on shuffled labels, and the prior |
# | the model needs this head | the loss rises without it | another head of the same layer; the mean in place of zero |
# | this head carries the difference | a patch brings the effect back, on pairs that did not choose it | the other kind of pair |
# | the tool does what it says | all positions patched = the other run; all heads ablated = no attention | the plain run, which differs |
# | the map explains the prediction | the most attentive head has the largest effect | patches of all heads; some attend and carry little |
# | two layers copy by induction | score, and ablation | one layer, random weights, a head of the same layer with a low score, a period never seen |
#
# 1. Score a probe against what can be known: here in nats above the exact posterior, elsewhere at least against its controls.
# 2. Ablation shows need, on the texts and the measure that you chose. A small rise shows little.
# 3. Pairs that differ in one word give a clean question. Choose on one half, report on the other.
# 4. Attention maps are hypotheses. Interventions test them.
# 5. Induction needs two layers and can be found by a score. One ablated head is not the mechanism where several share the work.
#
# *Where this comes from:* probes: Alain and Bengio, [arXiv:1610.01644](https://arxiv.org/abs/1610.01644); control tasks: Hewitt and Liang, [arXiv:1909.03368](https://arxiv.org/abs/1909.03368). Ablated heads: Michel et al., [arXiv:1905.10650](https://arxiv.org/abs/1905.10650); Voita et al., [arXiv:1905.09418](https://arxiv.org/abs/1905.09418). Patching: Vig et al., [arXiv:2004.12265](https://arxiv.org/abs/2004.12265); Meng et al., [arXiv:2202.05262](https://arxiv.org/abs/2202.05262), section 2. Attention and explanation: Jain and Wallace, [arXiv:1902.10186](https://arxiv.org/abs/1902.10186); Wiegreffe and Pinter, [arXiv:1908.04626](https://arxiv.org/abs/1908.04626). Induction: Olsson et al., [arXiv:2209.11895](https://arxiv.org/abs/2209.11895).
#
# *What comes next:* [lesson 18](18_bug_museum.ipynb) looks at models that are ill.
