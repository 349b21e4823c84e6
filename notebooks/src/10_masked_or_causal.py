# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 10 · Masked or causal
#
# **What does looking both ways buy?**
#
# After this lesson you can
#
# 1. draw what a causal and a masked model may use for a prediction;
# 2. say why surprises from the left add up to $-\log P$ of a text, and those from both sides do not;
# 3. write the masked loss, and hide tokens as BERT does;
# 4. compare the two, each with its own exact value, and read BERT's own comparison.
#
# *You need:* lessons [02](02_attention_and_masks.ipynb) (the causal mask), [08](08_pretraining.ipynb) (surprise and the entropy bound) and [09](09_transfer.ipynb) (intervals).
# *It takes:* three quarters of an hour, about twice that with everything; about a minute to run on two cores.

# %% [markdown]
# ## Set-up

# %%
import copy
import math

import torch

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_course.labs import lesson_10 as lab
from tinyworld.world import mean_per_word

torch.set_num_threads(1)

# %%
course.recall("10")

# %% [markdown]
# ## Why: which reader is better?
#
# One reader predicts each word of a review from the words before it. The other predicts each word, **hidden** for a moment, from all the others. Both use the exact probabilities of our language.
#
# Each pays $-\log_2 p$ bits, the **surprise**, for a word of probability $p$. It is tempting to call the reader with fewer bits the better language model.

# %%
world = tx.World()
review = world.split(
    "La fin est belle. C'est un bel ouvrage. Le style est lent, mais il me touche."
)
from_left = [world.next_word(review[:t])[review[t]] for t in range(len(review))]
from_left.append(world.next_word(review)[None])  # this reader must also predict the end
from_both = [world.fill(review, t)[review[t]] for t in range(len(review))]
print(f"p({review[0]!r}): {from_left[0]:.3f} from the left,", end=" ")
print(f"{from_both[0]:.3f} from both")

# %% [markdown]
# **Predict 10.1.** Now over the whole review.

# %%
course.predict(
    "10.1",
    "The bits of the reader with both sides are added up. Where is the sum?",
    ["above −log₂ P(review)", "equal to it", "below it"],
)

# %%
exact = -world.log_prob(review) / math.log(2)
bits_left, bits_both = (-sum(map(math.log2, probs)) for probs in (from_left, from_both))
assert math.isclose(bits_left, exact)
assert bits_both < exact + math.log2(from_left[-1])  # the end of the text left out
course.resolve("10.1", "below it", f"{bits_both:.2f} against {exact:.2f} bits.")

# %% [markdown]
# The first sum is exactly $-\log_2 P$, by the **chain rule**: $P(x_1) \cdot P(x_2 \mid x_1) \cdots = P(x_1 \dots x_T)$. The second is far below it: _fin_ reveals _La_, so with both sides visible the article costs nothing. Minus this sum is called **pseudo-log-likelihood**. It must not be compared with a log-probability, nor its mean with our entropy bound.
#
# ### Further: four sentences by hand
#
# A language of four sentences, each as probable as the others. Of the sentences that agree with what may be seen, take the share that has the word; its surprise is $-\log_2$ of that share. Do it on paper for _la fin est triste_.

# %% tags=["nbval-check-output"]
language = ["le roman est beau", "le roman est triste"]
language += ["la fin est belle", "la fin est triste"]


def surprise(sentence, t, sides):
    words, n_agree, n_fit = sentence.split(), 0, 0
    for other in map(str.split, language):
        same_right = sides == "left" or other[t + 1 :] == words[t + 1 :]
        if other[:t] == words[:t] and same_right:
            n_agree += 1
            n_fit += other[t] == words[t]
    return math.log2(n_agree / n_fit)


for sides in ("left", "both"):
    bits = [surprise("la fin est triste", t, sides) for t in range(4)]
    scores = [2 ** -sum(surprise(s, t, sides) for t in range(4)) for s in language]
    print(f"{sides:<6}", bits, "sum", sum(bits), " scores", scores, "sum", sum(scores))

# %% [markdown]
# From the left the surprises sum to the 2 bits of probability $\tfrac14$: every denominator cancels against the numerator before it. From both sides nothing cancels: the scores $2^{-\text{sum}}$ sum to two, they are no probabilities.
#
# ## Who sees what
#
# A **causal model** predicts the next word at each position, from its left. A **masked model** (masked language model) reads the sentence with some words replaced by the **mask token** `[MASK]`, and predicts these from both sides: it is **bidirectional**, its attention mask hides padding only.

# %%
plots.diagram("who-sees-what")

# %% [markdown]
# ## Further: where is the uncertainty?
#
# The **entropy** of a word is its expected surprise, before it is seen:

# %% tags=["folded"]
import numpy as np

found = world.entropies(review)
strips = np.stack([found.left, found.both]).clip(min=0) / math.log(2)
fig, ax = plots.heatmap(
    strips,
    row_labels=["left", "both sides"],
    col_labels=review,
    low=0,
    numbers=".1f",
    xlabel="word",
    ylabel="given",
    bar_label="bits",
    title="How uncertain is each word?",
)
plots.show(fig, "10_entropy_strips")

# %% [markdown]
# Given both sides, all but some nouns, adjectives and the verb go white in this review; _ouvrage_, _mais_, one _est_ and two full stops were white from the left already.
#
# ### Which words gain?
#
# We draw 200 reviews, and average over their words, with the **standard error** over reviews.

# %%
drawn = world.reviews(200, seed=0)
found = [world.entropies(one.words) for one in drawn]
measured = {
    "given the left": [pair.left / math.log(2) for pair in found],
    "given both sides": [pair.both / math.log(2) for pair in found],
    "gain": [(pair.left - pair.both) / math.log(2) for pair in found],
}
means = {name: mean_per_word(values) for name, values in measured.items()}
for name, bits in means.items():
    print(f"{name:<18} {bits.mean:.3f} ± {bits.standard_error:.3f} bits per word")

# %% [markdown]
# **Predict 10.2.** Now by kind of word; the **first word of a sentence** is a kind of its own.

# %%
course.predict(
    "10.2",
    "Leave first words aside. Which kind of word gains most bits from the right side?",
    ["article", "noun", "adjective", "verb", "punctuation", "est, sont, ai"],
)

# %% [markdown]
# The mean gain of each kind, with its interval:

# %%
kinds = [lab.kinds_in(world, one.words) for one in drawn]
gain = lab.by_kind(measured["gain"], kinds)
left = lab.by_kind(measured["given the left"], kinds)
share = {kind: bits.mean / left[kind].mean for kind, bits in gain.items()}
named = {f"{kind} ({share[kind]:.0%})": bits for kind, bits in gain.items()}
error = {name: 1.96 * bits.standard_error for name, bits in named.items()}
fig, ax = plots.bars(
    {name: bits.mean for name, bits in named.items()},
    numbers=".2f",
    intervals={n: (b.mean - error[n], b.mean + error[n]) for n, b in named.items()},
    xlabel="mean gain (bits per word; in brackets its share of the entropy)",
    title="Which words gain most from the right side?",
)
plots.show(fig, "10_gain_by_kind")
best = next(kind for kind in gain if kind not in ("first word", "other"))
finding = f"{gain[best].mean:.2f} bits a word, {share[best]:.0%} of its entropy."
settled, kept = ("article", "first word"), ("noun", "adjective")
assert min(share[kind] for kind in settled) > 0.5 > max(share[kind] for kind in kept)
course.resolve("10.2", best, finding)

# %% [markdown]
# Only nouns, adjectives and verbs keep most of their bits.
#
# ## Further: hide more than one word
#
# Hide two words that depend on each other, and fill both gaps **at once**, each from its own distribution. Then fill the first, **look again**, and fill the second. How often is the result no French?

# %% tags=["nbval-check-output"]
text, at_once, in_turn = world.split("J'aime la fin. C'est beau."), 0.0, 0.0
article, noun = world.fill(text, [2, 3])
for a, p in article.items():
    second = world.fill([*text[:2], a, *text[3:]], 3)
    for n, q in noun.items():
        if world.log_prob([*text[:2], a, n, *text[4:]]) == -math.inf:  # no French
            at_once += p * q
            in_turn += p * second.get(n, 0.0)
print(f"like 'le fin': at once {at_once:.0%}, one after the other {in_turn:.0%}")

# %% [markdown]
# _Le_ is likely, _fin_ is likely, _le fin_ is impossible: nothing ties the two distributions together. With exact distributions one after the other works, by the chain rule in an order of our choosing. A masked model that fills all gaps at once has no such guarantee.
#
# ## How BERT is trained
#
# BERT (2018) chooses **15 %** of all positions for prediction. Of these, 80 % are replaced by `[MASK]`, 10 % by a word drawn at random, and 10 % are left as they are. The authors' reasons: `[MASK]` does not occur in fine-tuning, and as any visible word may have been swapped, the model must check every position.
#
# ### The masked loss
#
# The **masked loss** is the mean of $-\ln p$ over the chosen positions, in nats. All others have the label **-100**, which is no id: `cross_entropy` leaves it out.
#
# ## Use it: train both, like for like
#
# A masked model learns from few positions, a causal one from all. So we train a **control** too: a causal one whose loss counts at a random 15 % of its positions. Texts, first weights of the body, optimizer, learning rate and steps are alike.

# %%
from tinytx import masking
from tinytx.batching import pad_batch
from tinytx_run.pretrain import train_tokenizer
from tinytx_run.recipes import plan, resize

recipe, corpus = plan("world", "masked"), tx.load_corpus("world")
texts = corpus.train.texts
tokenizer = train_tokenizer(texts, recipe.vocab_size, exact=False, kind="world")
config = recipe.config.replace(vocab_size=tokenizer.vocab_size)
_ = torch.manual_seed(0)
causal = tx.LanguageModel(config.replace(causal=True))
control = copy.deepcopy(causal)
masked = tx.MaskedLanguageModel(config, transform=False)  # one layer less than BERT's
masked.body.load_state_dict(causal.body.state_dict())  # the same first weights
assert tx.count_parameters(causal) == tx.count_parameters(masked)

# %% [markdown]
# A masked batch and its labels.

# %%
MARKS = ("pad", "unk", "bos", "eos", "cls", "sep")
pad, _, _, _, cls, sep = SPECIAL = [getattr(tokenizer, f"{m}_id") for m in MARKS]


def masked_batch(rows, generator):  # 80/10/10
    ids = pad_batch([[cls, *row, sep] for row in rows], pad)
    marks = {"mask_id": tokenizer.mask_id, "special_ids": SPECIAL, "p": 0.15}
    size = tokenizer.vocab_size
    return masking.mask_tokens(ids, **marks, vocab_size=size, generator=generator)


dice = torch.Generator().manual_seed(8)
inputs, labels = masked_batch([tokenizer.encode(" ".join(review[:8]))], dice)
print(f"read ({tokenizer.mask_id} is [MASK]):", inputs[0].tolist())
print("labels:", labels[0].tolist())
blanks = lab.Blanks.drawn(tokenizer, corpus.valid.texts[:150], seed=3)
exact_left, exact_both = blanks.exact(world, "left"), blanks.exact(world, "both")
settings = resize(recipe.settings, max(30, recipe.settings.n_steps // 5))

# %% [markdown]
# We compare one blank, drawn at random, in each of 150 new reviews. The world gives *two* exact values for it, given the left and given both sides. A model's distance from the exact value of *its* side is its **excess**. `lab.train` is the loop of lesson 08, with a fifth of the recipe's steps. **Predict 10.3.**

# %%
course.predict(
    "10.3",
    "Which model is nearer to its own exact value?",
    ["the causal model", "the masked model"],
)

# %%
arms = {
    "causal": (causal, lab.causal_batches(tokenizer), exact_left),
    "causal, few positions": (
        control, lab.causal_batches(tokenizer, share=0.15), exact_left),
    "masked": (masked, masked_batch, exact_both),
}
history, above = {}, {}
for name, (model, make_batch, exact) in arms.items():
    history[name] = lab.train(model, make_batch, texts, settings, blanks)
    above[name] = blanks.nats(model) - exact
    mean = mean_per_word(above[name][:, None])
    print(f"{name:<22}{mean.mean:.3f} ± {mean.standard_error:.3f} nats above its own")
nearer = min(("causal", "masked"), key=lambda name: above[name].mean())
means = [above[name].mean() for name in ("causal", "masked")]
finding = "{:.2f} against {:.2f} nats above it.".format(*means)
course.resolve("10.3", f"the {nearer} model", finding)

# %% [markdown]
# (One run of each, ended early; ± is the standard error over the blanks.) An excess tells how far a model is from its own best, not which one knows more.
#
# Now a blank for you. Guess first:

# %%
course.widgets.fill_blank(masked, tokenizer)

# %% [markdown]
# ### Further: a blank of your own
#
# Ask the models yourself: change the marked line, with one `_` for the hidden word.

# %%
from tinytx_run.evaluate import fill_probs

mine = "J' aime _ fin . C' est beau ."  # <- change me
before, after = (tokenizer.encode(part) for part in mine.split(" _ "))
ids, t = [*before, tokenizer.mask_id, *after], len(before)
for name, probs in {
    "causal, left": fill_probs(causal, tokenizer, ids, t, sides="left"),
    "masked": fill_probs(masked, tokenizer, ids, t),
}.items():
    best = [int(i) for i in probs.argsort()[::-1][:3]]
    print(f"{name:<14}", *(f"{tokenizer.decode([i])} {probs[i]:.2f} " for i in best))

# %% [markdown]
# ## With care: several seeds
#
# `python -m experiments objectives` trained each with several seeds, in full and at its own learning rate. Differences are paired by seed. Their intervals [low, high] are widened, so all may be read at once (lesson 14); where one contains zero, the question is **open**. The excess is the *expected* one. All seeds share the same 60 blanks: the intervals show how much the seeds matter, not the blanks.

# %% tags=["nbval-check-output"]
from tinytx_course.results import read_results

stored = read_results("objectives")
assert not lab.best_at_an_end(stored.data)
rows = lab.objective_rows(stored.data, "laptop")
found = lab.findings(rows)
print("\n".join(found[:5]))
assert "? open" in found[2]
assert all("? yes" in found[i] for i in (0, 1, 3, 4))

# %% [markdown]
# **After these steps few positions cost much, and with as few the two are too close to call (in the short run above the causal model is still ahead). Seeing the right side fills a blank better, but it need not be a masked model that sees it**: a causal one that scores the review with each of the $V$ tokens in the blank does better still, at $V$ times the passes. (It learned from all positions; with as few this was not measured. And the masked model is tested on cleaner text than it has learned from.)
#
# ### Further: fine-tuning on 100 labels
#
# The share of right polarities after fine-tuning; the controls are the same networks from scratch, and a bag of words.

# %%
import itertools

print(f"means of {len(rows[0].values)} seeds; {stored.source_line()}")
print("\n".join(found[5:]))
tuned = {k: one for k, one in stored.data.items() if k.endswith("/finetune 100")}
for seed, rival in itertools.product(range(4), ("masked", "from scratch, one way")):
    both = (f"laptop/seed {seed}/{name}/finetune 100" for name in ("causal", rival))
    causal_right, rival_right = (tuned[key]["accuracy"] for key in both)
    assert causal_right > rival_right + 0.11
unfitted = [key for key, one in tuned.items() if one.get("last_loss", 0) > 0.1]
assert unfitted == ["laptop/seed 4/causal/finetune 100"]
assert all("? open" in line for line in found[5:])

# %%
def of_seeds(name, value):
    return [stored.data[f"laptop/seed {seed}/{name}"][value] for seed in range(5)]


fills = {name: of_seeds(f"{name}/fill", "nats") for name in ("hybrid", "masked")}
assert all(both < one for both, one in zip(*fills.values(), strict=True))
for name, nats in fills.items():
    print(f"fill, one pass, {name}: {sum(nats) / 5:.2f}")

# %% [markdown]
# In these runs both gains that were tested, causal and masked over new weights, are open with 100 labels. One causal run did not even fit its labels, and makes the interval wide: in the other four the causal model is ahead of masked and of new weights by more than 0.11. Lesson 09 found a clear gain with another recipe: so this says more about these runs than about pretraining. One model can also learn both: a **hybrid model** predicts the next token in some batches and masked tokens in the others (GPT-BERT, [arXiv:2410.24159](https://arxiv.org/abs/2410.24159)). With each seed it fills a blank better than the masked model, in one pass.
#
# ## What was published
#
# BERT's authors compared the two ways on five English tasks (table 5 of the paper): accuracy in percent, and for SQuAD F1, the overlap with the words that answer a question. BERT's second task in training was **next-sentence prediction**: does one passage follow another?
#
# | | MNLI-m | QNLI | MRPC | SST-2 | SQuAD |
# |---|---|---|---|---|---|
# | BERT base: masked, next sentence | 84.4 | 88.4 | 86.7 | 92.7 | 88.5 |
# | masked, no next sentence | 83.9 | 84.9 | 86.5 | 92.6 | 87.9 |
# | left to right, no next sentence | 82.1 | 84.3 | 77.5 | 92.1 | 77.8 |
#
# The nearest pair are the **second and the third row**. Between them the direction differs, in fine-tuning too, and so do what is predicted and at how many positions. The left-to-right model loses 10.1 points on SQuAD, 9.0 on MRPC (408 pairs only), and at most 1.8 on the others.
#
# ### Further: a network in both directions on top
#
# With a BiLSTM on top, a network that reads word by word in both directions, the left-to-right model has 82.1, 84.1, 75.7, 91.6 and 84.9. It regains 7.1 points on SQuAD and none on MRPC. So a part of the loss on SQuAD may be the missing right side (the BiLSTM adds layers, too).
#
# ## Questions

# %%
course.quiz("masked_or_causal")

# %% [markdown]
# ## Exercises
#
# [exercise: mask_words]


# %%
def mask_words(tokens, chosen):
    ...


# %%
course.check("mask_words", mask_words)

# %% [markdown]
# ## Further: two more exercises

# %% [markdown]
# [exercise: masked_loss]


# %%
def masked_loss(logits, labels):
    ...


# %%
course.check("masked_loss", masked_loss)

# %% [markdown]
# [exercise: mask_tokens]


# %%
def mask_tokens(token_ids, mask_id, special_ids, vocab_size, p, generator):
    ...


# %%
course.check("mask_tokens", mask_tokens)

# %% [markdown]
# ## Take-home
#
# | model | attends to | reads | labels |
# |---|---|---|---|
# | causal | itself and the left | `<bos> x` | `x <eos>`: everywhere |
# | masked | both sides | `x` with some tokens hidden | these tokens; elsewhere -100 |
#
# ## Summary
#
# 1. Surprises from the left add up to $-\log P$; those from both sides do not.
# 2. *Further:* in these reviews the right side settles most of everything but nouns, adjectives and verbs.
# 3. Compare each model with the exact value of *its* side, and with as many positions: few positions cost a causal model much, and with as few causal against masked is open here. In BERT's own comparison the masked model is ahead on all five tasks.
#
# *Where this comes from:* Devlin et al., [arXiv:1810.04805](https://arxiv.org/abs/1810.04805). Pseudo-log-likelihood: [arXiv:1910.14659](https://arxiv.org/abs/1910.14659), section 2.
#
# *What comes next:* [lesson 11](11_translation.ipynb) joins a model that uses both sides with one that uses only the left: they translate.
