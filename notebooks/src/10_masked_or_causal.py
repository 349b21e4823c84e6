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
# 1. draw what a causal and a masked model may use for a prediction, and tell the two meanings of the word *mask* apart;
# 2. compute, in bits, how uncertain a hidden word is given its left side and given both sides;
# 3. say why surprises from the left add up to the probability of a text, and why those from both sides do not;
# 4. write the masked loss, hide tokens as BERT does, and train a model with both;
# 5. compare a causal, a masked and a hybrid model like for like, each with its own exact value, and read BERT's own comparison.
#
# *You need:* [lesson 02](02_attention_and_masks.ipynb) for the causal mask, [lesson 08](08_pretraining.ipynb) for surprise, nats and the entropy bound; [lesson 03](03_positions.ipynb) for ALiBi and rotary positions and [lesson 09](09_transfer.ipynb) for intervals, where they occur.
# *It takes:* three quarters of an hour to read; about a minute to run on two processor cores.

# %% [markdown]
# ## Set-up
#
# The first half is exact: it is computed from the grammar of our small language, not learned. Then three small models are trained: a causal one, a masked one, and one that learns both questions. Logarithms to the base 2 give **bits**: one bit is the answer to one fair yes-or-no question. The budget `smoke` trains too briefly for the sentences about
# trained models.

# %%
import copy
import math
import random
from contextlib import nullcontext

import numpy as np
import torch
import torch.nn.functional as F

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinyworld.world import entropy, mean_per_word

# %% [markdown]
# Two questions from earlier lessons first.

# %%
course.recall("10")

# %% [markdown]
# ## Why: which reader is better?
#
# Take two readers of the same review. One goes **left to right** and predicts each word from the words before it. The other gets the review with one word **hidden**, and predicts it from all the others, before and after; then the next word is hidden, and so on. Both know our language perfectly: the world computes the exact
# probabilities for each of them.

# %%
world = tx.World()
written = (
    "La fin est belle. C'est un bel ouvrage. Le style est lent, mais il me touche."
)
review = world.split(written)
from_left = [world.next_word(review[:t])[review[t]] for t in range(len(review))]
from_left.append(world.next_word(review)[None])  # this reader must also predict the end
from_both = [world.fill(review, t)[review[t]] for t in range(len(review))]
print(
    f"{review[3]!r}: {from_left[3]:.3f} from the left, {from_both[3]:.3f} from "
    "both sides"
)

# %% [markdown]
# Now score the readers as in lesson 08. Each pays $-\log_2 p$ bits, the **surprise**, for a word to which it gave the probability $p$. It is tempting to put the two sums in one table, and to call the reader with fewer bits the better language model. As a reference take $-\log_2 P(\text{review})$: no language model can be expected to pay
# less on average. **Predict 10.1.**

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
print(f"left to right {bits_left:.2f} bits, one word hidden {bits_both:.2f} bits")
answer = "below it" if bits_both < exact else "above −log₂ P(review)"
course.resolve("10.1", answer, f"{bits_both:.2f} against {exact:.2f} bits.")

# %% [markdown]
# The first reader reaches the bound exactly. The second is far below it, where no language model can be on average. Nothing is wrong with its predictions: they are the best there are. What is wrong is the comparison. So this lesson first looks at what each reader may see. Then it does the sums by hand on a language of four sentences, and measures what the right side is worth.
#
# ## Who sees what
#
# Two models, one sentence. A **causal model** reads the words, and at each position it predicts the next one. Its attention mask blocks everything to the right. A **masked model** reads the sentence with some words replaced by a special token `[MASK]`. Its attention may use all positions. It is asked for a prediction only at the chosen ones. Count the predictions in each panel.

# %%
plots.diagram("who-sees-what")

# %% [markdown]
# One warning about words. An attention **mask** is a table that says which position may attend to which; `[MASK]` is a token in the text that says *a word is missing here*. A masked language model has the second, and no causal mask: its attention mask hides padding only.
#
# In the causal panel the first prediction uses one word, the last one all of them. As a table, with a row for each prediction and a column for each word, the upper **triangle** is blocked. In the masked panel no position is blocked, but the hidden words are missing from what is read. The causal model learns from every position, the masked one from a few. It pays for its wider view with fewer questions per text.
#
# ## By hand: four sentences
#
# A language of four sentences, each as probable as the others. *Le* goes with *roman*, *la* with *fin*, and the adjective agrees. How surprising is a word? Collect the sentences that agree with what may be seen, and take the share of them that has this word. The surprise is $-\log_2$ of that share.
#
# Do it on paper for *la fin est triste* first. From the left: *la* or *le*, one bit; after *la* only *fin* can follow, then only *est*, and then one of two adjectives: one bit more. From both sides: with *fin* in view there is no question about *la*, and with *la* in view none about *fin*. And the adjective?

# %%
novel = ["le roman est beau", "le roman est triste"]
ending = ["la fin est belle", "la fin est triste"]
language = dict.fromkeys(novel + ending, 1 / 4)


def surprise(sentence, t, sides):
    words, total, fits = sentence.split(), 0.0, 0.0
    for other, prob in language.items():
        candidate = other.split()
        same_right = sides == "left" or candidate[t + 1 :] == words[t + 1 :]
        if candidate[:t] == words[:t] and same_right:
            total += prob
            fits += prob * (candidate[t] == words[t])
    return math.log2(total / fits)


for sides in ("left", "both"):
    bits = [surprise("la fin est triste", t, sides) for t in range(4)]
    print(f"{sides:<6}", bits, "sum", sum(bits))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The sentence has the probability $\tfrac14 = 2^{-2}$, and the surprises from the left sum to 2 bits. That is no accident but the **chain rule**: write each probability as a fraction, and every denominator cancels against the numerator before it,
#
# $$P(x_1) \cdot \frac{P(x_1 x_2)}{P(x_1)} \cdot \frac{P(x_1 x_2 x_3)}{P(x_1 x_2)} \cdots = P(x_1 \dots x_T).$$
#
# From both sides nothing cancels. *La* and *fin* say the same thing, that we speak of the ending and not of the novel. Read from the left, this information is paid for once, at *la*. With both sides visible each word reveals the other, so the reader never pays for it. What do the four scores $2^{-\text{sum}}$ add up to?

# %%
for sides in ("left", "both"):
    scores = [2 ** -sum(surprise(s, t, sides) for t in range(4)) for s in language]
    print(f"{sides:<6}", scores, "sum", sum(scores))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The scores from the left are probabilities and sum to one. Those from both sides sum to two, so they are no probabilities. The logarithm of such a score is called the **pseudo-log-likelihood**. It *is* useful, for instance to say which of two versions of a sentence reads better. It is *not* a log-probability, and must not be compared with one, with a perplexity, or
# with our entropy bound.
#
# ### Vectorised
#
# The same with tensors: compare every sentence $i$ with every sentence $j$ at every position. Products of these comparisons along the sentence say "all equal up to here" and "all equal from here on". All surprises follow without a loop, equal to those by hand.

# %%
known = sorted({word for s in language for word in s.split()})
# (N, T)
texts = torch.tensor([[known.index(word) for word in s.split()] for s in language])
probs = torch.tensor(list(language.values()))
same = (texts[:, None] == texts).double()  # (N, N, T)
first = torch.ones_like(same[..., :1])
left_equal = torch.cat([first, same.cumprod(-1)[..., :-1]], dim=-1)  # all before t
# all after
right_equal = torch.cat([first, same.flip(-1).cumprod(-1)[..., :-1]], dim=-1).flip(-1)
for sides, seen in {"left": left_equal, "both": left_equal * right_equal}.items():
    weight = probs[None, :, None] * seen
    table = (weight.sum(dim=1) / (weight * same).sum(dim=1)).log2()  # (N, T)
    looped = [[surprise(s, t, sides) for t in range(4)] for s in language]
    torch.testing.assert_close(table, torch.tensor(looped, dtype=torch.float64))

# %% [markdown]
# ### The package
#
# Our world has no list of its sentences; there are far too many. It has an automaton that sums over all of them, and `world.fill` asks it for a hidden word. Its *meaning* is still the definition by hand: put each candidate in the gap, take the probability of the whole review, and divide by the total. Here that is done the slow way,
# and compared.

# %%
gap, text = 2, world.split("J'aime la fin. C'est beau.")
before, after = text[:gap], text[gap + 1 :]
candidates = [word for word in world.next_word(before) if word is not None]
log_probs = torch.tensor(
    [world.log_prob([*before, word, *after]) for word in candidates]
)
filled = torch.tensor([world.fill(text, gap).get(word, 0.0) for word in candidates])
torch.testing.assert_close(log_probs.softmax(dim=0), filled, rtol=1e-6, atol=1e-6)
print({word: round(p, 3) for word, p in zip(candidates, filled.tolist(), strict=True)})

# %% [markdown]
# ## Look: where is the uncertainty?
#
# The **entropy** of a word is its expected surprise, before it is seen. `world.entropies` computes it at every position of our review, given the left and given both sides. Before you look: which cells of the upper strip will be dark, and which of these stay dark in the lower one?

# %% tags=["folded"]
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
# Upper strip: each sentence begins with high entropy, as it could say anything. The peaks are *fin*, *style* and the adjectives; *est* is dark as well, twice. *Ouvrage* is certain after *un bel*. Lower strip: the grammar has gone white. Articles, *est*, *mais*, commas and full stops are settled by their neighbours. What stays is *meaning*: *fin*, *belle*, *style*, *lent*,
# *touche*, and a little at *bel*, could each be exchanged for another word of their kind, and no neighbour objects.
#
# ### Which side decides
#
# The same for gaps of every kind. The first group agrees with something that comes *later*: articles, elisions, *quelle*. There the left side is not enough, and the right side has to be added. The second group is settled by what came *before*. In the third both sides together are not enough. The cell asserts each row's group.

# %%
gaps = """la      | J' aime _ fin .                       | right
n'      | Je _ aime pas la fin .                | right
Quelle  | _ réussite !                          | right
me      | Le style est lent , mais il _ touche .| right
ni      | Le roman n' est ni plat _ vide .      | left
ai      | Le roman que j' _ lu est beau .       | left
tous    | Bonjour à _ , le roman est beau .     | left
beau    | Le roman est _ .                      | neither"""
for line in gaps.splitlines():
    answer, shown, decides = (part.strip() for part in line.split("|"))
    words, t = shown.replace("_", answer).split(), shown.split().index("_")
    pair = world.entropies([*words, "C'", "est", "beau", "."])
    left, both = abs(pair.left[t]) / math.log(2), abs(pair.both[t]) / math.log(2)
    found = "left" if left < 0.01 else "right" if both < 0.01 else "neither"
    assert found == decides
    print(
        f"{decides:<8} left {left:4.2f}  both {both:4.2f} bits   {shown:<38} {answer}"
    )
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# In the first group the bits fall to zero as soon as the right side is seen; in the second they were zero already. *Ni … ni* is the clearest case: the first *ni* promises the second, whichever word comes between. A common mistake is to say that a left-to-right model uses "context from the right". For the first group that would help, and it cannot.
#
# ### How much is it worth on average?
#
# Examples can be picked. So we draw 200 reviews and average over all of their words. Each value is exact; only *which* reviews were drawn is random, and the **standard error** says how much that matters. For the gain we average the differences word by word, so that ups and downs which both readers share drop out.

# %%
drawn = world.reviews(200, seed=0)
found = [world.entropies(one.words) for one in drawn]
ends = [world.next_words(one.words)[:-1, -1] for one in drawn]  # probability of the end
measured = {
    "given the left": [pair.left / math.log(2) for pair in found],
    "given both sides": [pair.both / math.log(2) for pair in found],
    "gain": [(pair.left - pair.both) / math.log(2) for pair in found],
    "  of it: the end": [
        entropy(np.stack([p, 1 - p], axis=-1)) / math.log(2) for p in ends
    ],
}
means = {name: mean_per_word(values) for name, values in measured.items()}
for name, bits in means.items():
    print(f"{name:<18} {bits.mean:.3f} ± {bits.standard_error:.3f} bits per word")
share = means["gain"].mean / means["given the left"].mean
print(f"gain: {share:.0%} of the entropy given the left")

# %% [markdown]
# The last share is the answer to our title for a perfect reader of this language. The row before it is a small unfairness: after a full stop the reader from the left does not know whether the review goes on at all, while the other one sees that it does.
#
# ### Which words gain?
#
# Now sort the words by kind, with the tables of the grammar. Forms of *être* and *avoir* get a row of their own, since there are so many of them. So does the **first word of a sentence**, whatever its kind: there the reader from the left has to predict how the next sentence will begin, which is another question.

# %%
from tinyworld.checker import DETERMINERS, FrenchForms

forms = FrenchForms(world.grammar.lexicon)
kinds = {
    "punctuation": {",", ".", "!"}, "article": DETERMINERS,
    "est, sont, ai": {"est", "sont", "ai"}, "verb": {*forms.verbs, *forms.participles},
    "noun": forms.nouns, "adjective": forms.adjectives,
}  # fmt: skip


def kind_of(before, word, after):
    if before in (None, ".", "!"):
        return "first word"
    if word in ("l'", "les") and after == "ai":  # je l'ai lu: a pronoun
        return "other"
    return next((kind for kind, words in kinds.items() if word in words), "other")


def kinds_in(words):
    neighbours = zip((None, *words[:-1]), words, (*words[1:], None), strict=True)
    return np.array([kind_of(*three) for three in neighbours])


# %% [markdown]
# Leave the first words aside, and all the pronouns, adverbs and little words. **Predict 10.2.** The strips and the gaps above may help. A hint: it need not be the words that are hardest to guess.

# %%
course.predict(
    "10.2",
    "Which kind of word gains most bits from the right side?",
    ["article", "noun", "adjective", "verb", "punctuation", "est, sont, ai"],
)

# %% [markdown]
# All kinds in one picture. The bars are the mean gains, the thin lines 95 % intervals (1.96 standard errors to each side). After each name comes the share of its entropy that the right side takes away.

# %%
labels = [kinds_in(one.words) for one in drawn]


def mean_of_kind(name, kind):
    pairs = zip(measured[name], labels, strict=True)
    return mean_per_word([bits[own == kind] for bits, own in pairs])


gain = {kind: mean_of_kind("gain", kind) for kind in ["first word", *kinds, "other"]}
gain = dict(sorted(gain.items(), key=lambda item: -item[1].mean))
shares = {
    kind: b.mean / mean_of_kind("given the left", kind).mean for kind, b in gain.items()
}
best = max(kinds, key=lambda kind: gain[kind].mean)

named = {f"{kind} ({shares[kind]:.0%})": bits for kind, bits in gain.items()}
errors = {name: 1.96 * bits.standard_error for name, bits in named.items()}
fig, ax = plots.bars(
    {name: bits.mean for name, bits in named.items()},
    numbers=".2f",
    intervals={
        name: (b.mean - errors[name], b.mean + errors[name])
        for name, b in named.items()
    },
    xlabel="mean gain from the right side (bits per word)",
    title="Which words gain most?",
)
plots.show(fig, "10_gain_by_kind")
assert min(shares["first word"], shares["article"]) > 0.75
assert max(shares["noun"], shares["adjective"]) < 0.5
text_of_best = f"{gain[best].mean:.2f} bits a word, {shares[best]:.0%} of its entropy."
course.resolve("10.2", best, text_of_best)

# %% [markdown]
# The first word of a sentence and the article say little by themselves. But from the left they are bets on everything that follows: which pattern, which noun, which gender, which number. Once the noun is seen, the bet is over. Nouns and adjectives keep most of their bits on both sides: the words around them do not reveal their meaning. Looking both ways buys grammar first.
#
# ## Break it: hide more than one word
#
# So far one word was hidden and *all* others were seen. A masked model is trained with many words hidden at once, and a hidden word is no help to its neighbour. We shuffle the positions of a short review, deal them into $n$ groups like cards, and hide one group at a time. So each word is predicted once, with a share of $1/n$ hidden. The dashed line is the reader from the left
# on the same reviews, who sees all words to the left: half of the review, averaged over the positions. The first point has one hidden word a review. The band is the mean plus and minus 1.96 standard errors over the twelve reviews. Will the curve cross the line, and where?

# %%
few = [one.words for one in world.reviews(120, seed=7) if len(one.words) <= 24][:12]
dice, group_counts = random.Random(0), (7, 4, 2)


def bits_with_a_group_hidden(words, n):
    positions = dice.sample(range(len(words)), len(words))
    answers = [a for first in range(n) for a in world.fill(words, positions[first::n])]
    return np.array([entropy(np.array([*a.values()])) for a in answers]) / math.log(2)


exact_pairs = [world.entropies(words) for words in few]
from_left = mean_per_word([pair.left / math.log(2) for pair in exact_pairs])
curve = [mean_per_word([pair.both / math.log(2) for pair in exact_pairs])]
for n in group_counts:
    curve.append(mean_per_word([bits_with_a_group_hidden(words, n) for words in few]))

bits = np.array([point.mean for point in curve])
errors = 1.96 * np.array([point.standard_error for point in curve])
one_word = 100 * len(few) / sum(map(len, few))  # its share of a review
hidden_shares = [one_word, *(100 / n for n in group_counts)]
fig, ax = plots.curves(
    [
        plots.Curve(
            "both sides", hidden_shares, bits, low=bits - errors, high=bits + errors
        )
    ],
    references={"left side, all of it": from_left.mean},
    y_range=(0, 3.5),
    xlabel="share of words hidden (%)",
    ylabel="entropy of a hidden word (bits)",
    title="Several words hidden at once",
)
plots.show(fig, "10_share_hidden")
# it climbs, and does not cross
assert all(np.diff(bits) > 0) and bits[-1] < from_left.mean
# most of the gain is left at 1 / 7
assert from_left.mean - bits[1] > (from_left.mean - bits[0]) / 2

# %% [markdown]
# The curve climbs, gently at first: near fifteen percent, BERT's share, most of the gain is still there. Even with half of the words hidden it stays below the dashed line. Both readers then see half of the review, but one of them has neighbours on two sides, and an article needs only the next word. So the share to hide is a trade: more hidden words are more questions per text, and harder ones.
#
# Something else breaks. Hide two words that depend on each other, and fill both gaps **at once**, each from its own distribution. Then fill the first, **look again**, and fill the second. How often is the result no French?

# %%
text, at_once, in_turn = world.split("J'aime la fin. C'est beau."), 0.0, 0.0
article, noun = world.fill(text, [2, 3])
for a, p in article.items():
    wrong = [
        n for n in noun if world.log_prob([*text[:2], a, n, *text[4:]]) == -math.inf
    ]
    at_once += p * sum(noun[n] for n in wrong)
    in_turn += p * sum(
        world.fill([*text[:2], a, *text[3:]], 3).get(n, 0.0) for n in wrong
    )
print(
    f"pairs as 'le fin', no French: at once {at_once:.0%}, one after the other "
    f"{in_turn:.0%}"
)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The two distributions are separate, and nothing ties them together: *le* is likely, *fin* is likely, *le fin* is impossible. One after the other works, but that is the chain rule again, in an order of our choosing. So it is awkward to write text with a masked model. It is one reason why most models that write are causal.
#
# ## How BERT is trained
#
# BERT (2018) made this idea famous. It chooses **15 %** of all positions for prediction. Of these, 80 % are replaced by `[MASK]`, 10 % by a word drawn at random (rarely the same one), and 10 % are left as they are. Why not always `[MASK]`? That token does not occur when the model is later *fine-tuned*, for example as a classifier. And because a visible word may have been swapped, the model must check every position, not only the
# `[MASK]`s. RoBERTa, BERT's follow-up, draws anew each time a text is read.
#
# The cell prints one reading of our review, and draws six. How many coloured cells do you expect in a row, and is there one in every column?


# %%
def hide(words, dice):
    """Choose 15 % of the positions; return what is read, and what happened where."""
    read, fate = list(words), [0] * len(words)
    for t in dice.sample(range(len(words)), max(1, round(0.15 * len(words)))):
        roll = dice.random()
        fate[t] = 1 if roll < 0.8 else 2 if roll < 0.9 else 3
        read[t] = {1: "[MASK]", 2: dice.choice(world.vocabulary), 3: words[t]}[fate[t]]
    return read, fate


dice = random.Random(6)
draws = [hide(review, dice) for _ in range(6)]
print(" ".join(draws[0][0]))
fig, ax = plots.categorical_map(
    [fate for _, fate in draws],
    ["only read", "chosen: [MASK]", "chosen: a random word", "chosen: left as it is"],
    row_labels=range(1, 7), col_labels=review, xlabel="word", ylabel="reading",
)  # fmt: skip
ax.set_title("Six readings of one review")
plots.show(fig, "10_bert_masking")
n_chosen = [sum(f > 0 for f in fate) for _, fate in draws]
n_unasked = sum(
    not any(column) for column in zip(*(fate for _, fate in draws), strict=True)
)
print(f"{n_chosen[0]} questions a reading, a causal model has {len(review) + 1}")
print(f"not asked in any of the six readings: {n_unasked} of {len(review)} words")

# %% [markdown]
# BERT reads two pieces of text at once, $x$ and $y$, as `[CLS] x [SEP] y [SEP]`; a classifier reads at `[CLS]`. At each position three learned vectors are **added**: one for the token, one for the position, one for the **segment**, $x$ or $y$. A second task, **next-sentence prediction**, asks at `[CLS]` whether $y$ follows $x$ or comes from another text. Comparing topics may be enough to answer,
# and RoBERTa, trained otherwise, dropped the task and found no loss. (BERT's own table, below, shows one on QNLI.) So we leave it, and segments, out.
#
# [exercise: mask_tokens]


# %%
def mask_tokens(token_ids, mask_id, special_ids, vocab_size, p, generator):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
verdict = course.check("mask_tokens", mask_tokens)
verdict

# %% [markdown]
# ### The masked loss
#
# The **masked loss** is the mean of $-\ln p$ over the chosen positions, in nats. All others have the label **-100**, a number that is no id, and are skipped: `cross_entropy` leaves out -100 unless told otherwise. By hand, for four positions of which two are chosen, with a vocabulary of three. The last line prints how much gradient reaches the logits of each position.

# %%
labels = torch.tensor([[-100, 2, -100, 0]])  # (B, T)
logits = torch.tensor(
    [[[9.0, 0, 0], [0, 0, 1], [0, 5, 0], [2, 1, 0]]], requires_grad=True
)
nats = []
for scores, label in zip(logits[0].tolist(), labels[0].tolist(), strict=True):
    if label != -100:
        nats.append(math.log(sum(map(math.exp, scores))) - scores[label])
# (B * T, V) and (B * T,)
loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
assert math.isclose(loss.item(), sum(nats) / len(nats), rel_tol=1e-6)
loss.backward()
print(
    f"{loss.item():.3f} nats; gradient",
    *(f"{g:.2f}" for g in logits.grad[0].norm(dim=-1)),
)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# No gradient where the label is -100. So a masked model learns from about fifteen positions of a hundred, a causal one from all.
#
# ## Use it: train both, like for like
#
# Now two models that differ only in the attention mask and in the question. The texts, the tokenizer, the backbone, its first weights, its rotary positions (by ALiBi a model that attends to both sides cannot tell left from right: lesson 03), optimizer, learning rate, number of steps, and the reviews of each batch are alike. So the causal model reads `[bos] x` and predicts `x [eos]`, the masked one reads `[cls] x [sep]` with tokens hidden and predicts these.

# %%
from tinytx.batching import pad_batch
from tinytx_run.pretrain import train_tokenizer
from tinytx_run.recipes import plan

recipe, corpus = plan("world", "masked"), tx.load_corpus("world")
tokenizer = train_tokenizer(
    corpus.train.texts, recipe.vocab_size, exact=False, kind="world"
)
config = recipe.config.replace(vocab_size=tokenizer.vocab_size)
torch.manual_seed(0)
causal = tx.LanguageModel(config.replace(causal=True))
masked = tx.MaskedLanguageModel(config, transform=False)
hybrid = copy.deepcopy(causal)  # for later
masked.body.load_state_dict(causal.body.state_dict())  # the same first weights
print(config)
assert tx.count_parameters(causal) == tx.count_parameters(masked)

# %% [markdown]
# The two questions as tensors. The masked side calls `mask_tokens`: yours if it passed its check, else the package's, which does the same. Each is shown for one short review of five tokens. With $p = 0.15$ no token is drawn in 44 % of readings, as $0.85^5 = 0.44$; the cell reads again until one is. The third value says whether a batch is read both ways; the training loop asks for it.

# %%
SPECIAL = [
    getattr(tokenizer, f"{name}_id")
    for name in ("pad", "unk", "bos", "eos", "cls", "sep")
]
hiding = mask_tokens
if not verdict.passed:
    from tinytx.masking import mask_tokens as hiding


def next_token_batch(rows, generator):
    ids = pad_batch(
        [[tokenizer.bos_id, *row, tokenizer.eos_id] for row in rows], tokenizer.pad_id
    )
    labels = ids[:, 1:].masked_fill(ids[:, 1:] == tokenizer.pad_id, -100)
    return ids[:, :-1], labels, False  # (B, T), (B, T)


def masked_batch(rows, generator):
    ids = pad_batch(
        [[tokenizer.cls_id, *row, tokenizer.sep_id] for row in rows], tokenizer.pad_id
    )
    choices = {"mask_id": tokenizer.mask_id, "special_ids": SPECIAL, "p": 0.15}
    choices["vocab_size"] = tokenizer.vocab_size
    return *hiding(ids, **choices, generator=generator), True


dice = torch.Generator().manual_seed(7)
for make_batch in (next_token_batch, masked_batch):
    inputs, labels, _ = make_batch([tokenizer.encode("Le style est lent .")], dice)
    while (labels == -100).all():  # nothing was drawn
        inputs, labels, _ = make_batch([tokenizer.encode("Le style est lent .")], dice)
    print(f"{make_batch.__name__:<17}reads {inputs.tolist()}, labels {labels.tolist()}")

# %% [markdown]
# One training loop for both, as in lesson 08. Reviews are sorted by length, so a batch is a run of neighbours with little padding. Two things save time. The output layer is computed only where there is a label: the loss is the same. And **autocast** computes matrix products in bfloat16 where the processor has instructions for it, as `tx.pretrain` does. The optimizer, its learning rate and its schedule are those of the package's recipe for masked models, for both. `reading` drops the causal mask for batches that are read both ways. (The masked model has none, so there it changes nothing.) Ten times on the way, `blank_nats` measures the model; the next cell defines it.


# %%
from tinytx.optim import make_optimizer
from tinytx.settings import choose_precision
from tinytx.transformer import bidirectional
from tinytx_run.recipes import resize

settings = resize(recipe.settings, max(30, recipe.settings.n_steps // 5))
in_bf16 = choose_precision(settings.precision, torch.device("cpu")) == "bf16"
train_rows = sorted(tokenizer.encode_batch(corpus.train.texts), key=len)


def reading(model, both_ways):
    return bidirectional(model.body) if both_ways else nullcontext()


def train(model, make_batch, both_sides):
    nats = {0: blank_nats(model, both_sides).mean()}
    optimizer, dice = make_optimizer(model, settings), random.Random(0)
    generator = torch.Generator().manual_seed(0)
    for step in range(1, settings.n_steps + 1):
        start = dice.randrange(len(train_rows))
        rows = train_rows[
            start : start + settings.tokens_per_batch // len(train_rows[start])
        ]
        inputs, labels, both_ways = make_batch(rows, generator)
        asked = labels != -100  # (B, T), N of them
        bf16 = torch.autocast("cpu", dtype=torch.bfloat16, enabled=in_bf16)
        with bf16, reading(model, both_ways):
            hidden = model.body(inputs, inputs != tokenizer.pad_id)  # (B, T, D)
            # (N, V), (N,)
            loss = F.cross_entropy(model.head(hidden[asked]), labels[asked])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        for group in optimizer.param_groups:
            group["lr"] = settings.lr_at(step)
        optimizer.step()
        optimizer.zero_grad()
        if step % (settings.n_steps // 10) == 0:
            nats[step] = blank_nats(model, both_sides).mean()
    return nats


# %% [markdown]
# The two training losses answer different questions, so they must not be compared. What can be compared is one and the same blank: one token, drawn at random, in each of 150 new reviews. The world gives *two* exact values for it. One is for the left side, the best that the causal model could do; the other is for both sides.

# %%
blank_rows, dice = tokenizer.encode_batch(corpus.valid.texts[:150]), random.Random(3)
blanks = [(ids, dice.randrange(len(ids))) for ids in blank_rows]
through = world.through(tokenizer)
exact_left = np.array(
    [-np.log(through.next_token(ids[:t])[ids[t]]) for ids, t in blanks]
)
exact_both = np.array(
    [-np.log(through.fill_token(ids, t)[ids[t]]) for ids, t in blanks]
)


@torch.no_grad()
def blank_nats(model, both_sides):
    """Nats of the hidden token of each blank, given its left side or both sides."""
    first = tokenizer.cls_id if both_sides else tokenizer.bos_id
    rows, at = torch.arange(len(blanks)), torch.tensor([t for _, t in blanks])
    ids = pad_batch(
        [[first, *row, tokenizer.sep_id] for row in blank_rows], tokenizer.pad_id
    )
    truth = ids[rows, at + 1]
    if both_sides:
        ids[rows, at + 1] = tokenizer.mask_id
    # it predicts at the blank itself, others one position earlier
    at = at + (model is masked)
    with reading(model, both_sides):
        # (N, D), at the blanks alone
        hidden = model.body(ids, ids != tokenizer.pad_id)[rows, at]
    return F.cross_entropy(model.head(hidden), truth, reduction="none").double().numpy()


# %% [markdown]
# Each model will be some way above its own exact value: its **excess**, in nats a token. Both train equally long on the same reviews. The figure then shows both over the steps, on the scale that they share: nats for the hidden token. **Predict 10.3.**

# %%
course.predict(
    "10.3",
    "After equal training, which model is nearer to its own exact value?",
    ["the causal model", "the masked model"],
)

# %% tags=["folded"]
history, final, excess = {}, {}, {}
for name, model, make_batch, exact in (
    ("causal", causal, next_token_batch, exact_left),
    ("masked", masked, masked_batch, exact_both),
):
    history[name] = train(model, make_batch, exact is exact_both)
    final[name] = blank_nats(model, exact is exact_both)
    excess[name] = mean_per_word((final[name] - exact)[:, None])
    print(
        name, f"{excess[name].mean:.3f} ± {excess[name].standard_error:.3f} nats above"
    )
fig, ax = plots.curves(
    [
        plots.Curve(f"{name} model", [*nats], [*nats.values()])
        for name, nats in history.items()
    ],
    references={
        "exact, left": exact_left.mean(),
        "exact, both sides": exact_both.mean(),
    },
    xlabel="training step",
    ylabel="nats for one hidden token",
    y_range=(0, 4),
    title="Learning to fill one blank",
)
plots.show(fig, "10_learning_to_fill")
nearer = min(excess, key=lambda name: excess[name].mean)
cheaper = final["causal"].mean() - final["masked"].mean()
course.resolve(
    "10.3",
    f"the {nearer} model",
    f"{settings.n_steps} steps, {len(blanks)} blanks. In nats "
    f"a blank costs the masked model {abs(cheaper):.2f} "
    f"{'less' if cheaper > 0 else 'more'}.",
)

# %% [markdown]
# Read each curve against its *own* dashed line: the upper one is the exact value given the left, the lower one that given both sides. The causal model cannot pass the upper one, on average, however long it trains. The masked model may, since it has more to see. How the two compare depends on how long they train, so one such picture decides nothing.
#
# ### Fill the blank with a causal model
#
# A causal model *can* use the right side, at a price. The cheap way uses only the left context. The expensive way inserts every candidate and scores the whole review: by the definition above, that uses both sides. The masked model needs one reading for all candidates.


# %%
from tinytx_run.evaluate import fill_probs, text_nats


def answers(words, t, candidates):
    left, both = world.next_word(words[:t]), world.fill(words, t)
    ids = tokenizer.encode(" ".join(words))
    at = len(tokenizer.encode(" ".join(words[:t])))
    numbers = [piece[word] for word in candidates]
    whole = [" ".join([*words[:t], word, *words[t + 1 :]]) for word in candidates]
    return {
        "exact, left": [left.get(word, 0.0) for word in candidates],
        "causal model, left": fill_probs(causal, tokenizer, ids, at, sides="left")[
            numbers
        ],
        "causal model, whole review": -text_nats(causal, tokenizer, whole),
        "masked model": fill_probs(masked, tokenizer, ids, at)[numbers],
        "exact, both sides": [both.get(word, 0.0) for word in candidates],
    }


pieces = {word: tokenizer.word_pieces(word) for word in sorted(DETERMINERS)}
# articles of one token
piece = {word: ids[0] for word, ids in pieces.items() if len(ids) == 1}
candidates = list(piece)

# %% [markdown]
# One hidden article in each of 120 new reviews. The baseline always answers with the most frequent one. The bars are shares of right answers, with Wilson intervals at 95 % (lesson 09). **Predict 10.4.**

# %%
course.predict(
    "10.4",
    "The causal model scores whole reviews. How many articles are right, compared with "
    "its left side?",
    [
        "more, intervals apart",
        "about as many, intervals overlap",
        "fewer, intervals apart",
    ],
)

# %%
from tinytx_run.intervals import wilson_interval

dice, gaps = random.Random(1), []
for words in [one.words for one in world.reviews(500, seed=90) if len(one.words) <= 40]:
    pairs = enumerate(zip(words, [*words[1:], "."], strict=True))
    if spots := [t for t, (word, after) in pairs if word in piece and after != "ai"]:
        gaps.append((words, dice.choice(spots)))
gaps = gaps[:120]
truths = [words[t] for words, t in gaps]
commonest = max(candidates, key=truths.count)
correct = {f"always {commonest}": truths.count(commonest)}
for (words, t), truth in zip(gaps, truths, strict=True):
    for name, scores in answers(words, t, candidates).items():
        correct[name] = correct.get(name, 0) + (
            candidates[int(np.argmax(scores))] == truth
        )
spans = {name: wilson_interval(n, len(gaps)) for name, n in correct.items()}
one_side, whole = spans["causal model, left"], spans["causal model, whole review"]
answer = "about as many, intervals overlap"
if whole[0] > one_side[1] or whole[1] < one_side[0]:
    answer = f"{'more' if whole[0] > one_side[1] else 'fewer'}, intervals apart"
fig, ax = plots.bars(
    {name: n / len(gaps) for name, n in correct.items()},
    intervals=spans,
    numbers=".2f",
    xlabel="share of blanks filled rightly",
    title=f"One hidden article in each of {len(gaps)} reviews",
)
plots.show(fig, "10_hidden_articles")
print(f"readings of a review a blank: {len(candidates)} for the whole review, 1 masked")
both = [f"J' aime {word} fin . C' est beau ." for word in ("la", "le")]
print(
    "with la and le fin: {:.1f} and {:.1f} nats".format(
        *text_nats(causal, tokenizer, both)
    )
)
found = "{:.2f} to {:.2f} against {:.2f} to {:.2f}.".format(*whole, *one_side)
course.resolve("10.4", answer, found)

# %% [markdown]
# What may be seen matters, for the exact reader and for the causal model alike. The causal model *knows* that it is *la fin*: by the last line, the review with *le fin* surprises it more. It cannot say so at the gap, before it has seen the noun. What masked training buys is one reading where the causal model needs one per candidate, not a secret source of knowledge.
#
# Try any blank yourself: the exact answer from both sides, from the left, and the masked model's.

# %%
course.widgets.fill_blank(masked, tokenizer)

# %% [markdown]
# ### Write with a model that fills blanks
#
# Let it write all the same. It needs to know beforehand *how many* tokens are to come: so many `[MASK]` tokens follow a beginning. They are filled from left to right. Then each is hidden again and drawn anew, in random order, sweep after sweep: **Gibbs sampling**.


# %%
@torch.no_grad()
def write(start, n_new, n_sweeps, seed=1):
    generator, first = torch.Generator().manual_seed(seed), 1 + len(start)
    ids = torch.tensor(
        [[tokenizer.cls_id, *start, *[tokenizer.mask_id] * n_new, tokenizer.sep_id]]
    )
    for sweep in range(1 + n_sweeps):
        order = (
            torch.arange(n_new)
            if sweep == 0
            else torch.randperm(n_new, generator=generator)
        )
        for t in (order + first).tolist():
            ids[0, t] = tokenizer.mask_id
            logits = masked(ids)[0, t]
            logits[[*SPECIAL, tokenizer.mask_id]] = -math.inf
            ids[0, t] = torch.multinomial(logits.softmax(-1), 1, generator=generator)[0]
    return tokenizer.decode(ids[0, 1:-1].tolist())


start = "Bonjour à tous , j' ai"
sampling = tx.Sampling(max_new_tokens=12, seed=1)
print("causal   ", tx.generate(causal, tokenizer, start, sampling))
for n_sweeps in (0, 1, 4):
    print(f"{n_sweeps} sweeps ", write(tokenizer.encode(start), 12, n_sweeps))

# %% [markdown]
# It is awkward in three ways. The length must be known before the text. Each token costs a reading of everything. And the answers at different positions need not fit one common distribution, so more sweeps need not make it better. These samples have simpler troubles as well: a short training, and twelve masks in a row, which training hardly ever showed. A causal model can end by itself, with `<eos>`; here
# the limit of 12 tokens may cut it off.
#
# ## Both in one model
#
# Must we choose? GPT-BERT (2024) does not: *one* model learns to predict the next token in some batches, and masked tokens in the others. We call it a **hybrid model**. Two observations make it simple. The causal mask is only an argument of attention, so the same weights can read one way or both ways. And a masked token can be predicted at the position *before* it, where a causal model predicts its next token. Then both questions have one form, and share one output layer. The cell prints one batch of each, and asserts that only the mask decides what the first position can notice.

# %%
turns = random.Random(1)


def hybrid_batch(rows, generator):
    if turns.random() < 0.5:
        return next_token_batch(rows, generator)
    inputs, labels, _ = masked_batch(rows, generator)
    return inputs[:, :-1], labels[:, 1:], True  # predicted one position earlier


dice, shown = torch.Generator().manual_seed(4), {}
while len(shown) < 2:  # one of each kind, with something to predict
    inputs, labels, both_ways = hybrid_batch(
        [tokenizer.encode("Le style est lent .")], dice
    )
    if (labels != -100).any():
        shown[both_ways] = f"reads {inputs.tolist()}, labels {labels.tolist()}"
print("one way  ", shown[False], "\nboth ways", shown[True])
ids = torch.tensor([tokenizer.encode("Le style est lent .")])  # (1, T)
other = ids.clone()
other[0, -1] = tokenizer.mask_id  # does the first position notice another last token?
for both_ways in (False, True):
    with torch.no_grad(), reading(hybrid, both_ways):
        first, second = (hybrid.body(one)[0, 0] for one in (ids, other))
    assert torch.equal(first, second) != both_ways

# %% [markdown]
# It is trained like the other two: the same first weights, learning rate, steps and reviews, so it reads no more text. But only half of its batches are masked, and only half are causal. What does that cost at the blank? **Predict 10.5.**

# %%
course.predict(
    "10.5",
    "Given both sides, which model fills the blanks better after the same number of "
    "steps?",
    ["the masked model", "the hybrid model", "no difference that 150 blanks show"],
)

# %%
history["hybrid"] = train(hybrid, hybrid_batch, both_sides=True)
final["hybrid"], given_left = blank_nats(hybrid, True), blank_nats(hybrid, False)
bars = {
    "left side, causal": final["causal"] - exact_left,
    "left side, hybrid": given_left - exact_left,
    "both sides, masked": final["masked"] - exact_both,
    "both sides, hybrid": final["hybrid"] - exact_both,
}
spans = {name: mean_per_word(nats[:, None]) for name, nats in bars.items()}
fig, ax = plots.bars(
    {name: one.mean for name, one in spans.items()},
    numbers=".2f",
    intervals={
        name: (
            one.mean - 1.96 * one.standard_error,
            one.mean + 1.96 * one.standard_error,
        )
        for name, one in spans.items()
    },
    xlabel="nats above the exact value",
    title="One blank, three models",
)
plots.show(fig, "10_three_models")
ahead = {}
for side, (specialist, ours) in {
    "left side": (final["causal"], given_left),
    "both sides": (final["masked"], final["hybrid"]),
}.items():
    gain = mean_per_word((specialist - ours)[:, None])
    low, high = (gain.mean + sign * 1.96 * gain.standard_error for sign in (-1, 1))
    ahead[side] = "hybrid" if low > 0 else "masked" if high < 0 else None
    print(
        f"{side:<10} specialist minus hybrid: {gain.mean:+.2f} nats [{low:+.2f}, "
        f"{high:+.2f}]"
    )
winner = ahead["both sides"]
answer = f"the {winner} model" if winner else "no difference that 150 blanks show"
course.resolve("10.5", answer, f"{settings.n_steps} steps of each, one run of each.")

# %% [markdown]
# The hybrid model is measured twice: from the left, as a causal model, and from both sides, as a masked one. A single model now writes *and* fills in one reading. Its price or its gain in either role is the printed difference, for one run of each and this short training. Charpentier and Samuel ([arXiv:2410.24159](https://arxiv.org/abs/2410.24159)) report that hybrid pretraining outperforms both specialists, on English text and with far more training.
#
# ## With care: several seeds
#
# One run is an anecdote. `python -m experiments objectives` trains causal, masked and hybrid models with several seeds, and a masked one with next-sentence prediction. All have one body, and read the same number of tokens of the same text in as many steps. Each objective has its own learning rate, the best of three in shorter runs with another seed, scored on the validation texts. The cell reads the stored records, and prints what the recipes share and where they differ, in the order of the names. A masked step is cheaper, since only the masked positions need the output layer; the last line says by how much.

# %%
import pandas as pd

from tinytx_course.labs.lesson_10 import objective_rows
from tinytx_course.results import read_results
from tinytx_run.intervals import paired_interval

stored, names = read_results("objectives"), ("causal", "masked", "hybrid")
(budget,) = {key.split("/")[0] for key in stored.data}
rows = objective_rows(stored.data, budget)
by_name = {(row.measure, row.contestant): row for row in rows}
first_of = [stored.data[f"{budget}/seed 0/{name}/pretraining"] for name in names]
recipes = [record["origin"]["recipe"] for record in first_of]
for part in ("config", "settings"):
    values = {
        key: [recipe[part][key] for recipe in recipes] for key in recipes[0][part]
    }
    alike = {
        key: value[0] for key, value in values.items() if value.count(value[0]) == 3
    }
    print(f"{part}, alike: {alike}")
    print(
        f"{part}, different: "
        f"{ ({key: values[key] for key in values.keys() - alike.keys()}) }"
    )
cost = [record["flops_per_id"] / first_of[0]["flops_per_id"] for record in first_of]
print(f"{len(rows[0].values)} seeds; {stored.source_line()}")
print(
    "operations a token:",
    ", ".join(f"{n} {c:.2f}" for n, c in zip(names, cost, strict=True)),
)

# %% [markdown]
# The blank again, given *both* sides: a token of a test review. The masked and the hybrid model answer in one reading. The causal model scores the review once with every token of the vocabulary, some two thousand readings. The score is the **excess**: the mean KL divergence of the answer from the exact distribution, in nats. **Predict 10.6.**

# %%
course.predict(
    "10.6",
    "After the same number of tokens, which model fills the blank best (lowest "
    "excess)?",
    ["causal, scoring every token", "masked, one reading", "hybrid, one reading"],
)

# %%
ways = dict(
    zip(names, ("scoring every token", "one reading", "one reading"), strict=True)
)
excess = {name: by_name["fill: excess", name].interval for name in names}
fig, ax = plots.bars(
    {f"{name}, {ways[name]}": found.mean for name, found in excess.items()},
    numbers=".3f",
    intervals={
        f"{name}, {ways[name]}": (max(found.low, 0.0), found.high)
        for name, found in excess.items()
    },
    xlabel="excess over the exact answer (nats), intervals cut at 0",
    title="One blank, both sides given",
)
plots.show(fig, "10_three_objectives")
best = min(excess, key=lambda name: excess[name].mean)
found = ", ".join(f"{name} {value.mean:.3f}" for name, value in excess.items())
course.resolve("10.6", f"{best}, {ways[best]}", f"Nats: {found}.")

# %% [markdown]
# Now all measures, each a mean over seeds with its 95 % interval. *Fill, left* is the blank given its left side only. *Complete* is the share of reviews that the grammar can write at all, when the model continues the first half by sampling: the causal and the hybrid model write from left to right, the masked one is given the true number of tokens and four Gibbs sweeps. Then the polarity of a review from a hundred labels, by a **linear probe** (a classifier on frozen hidden states) and by fine-tuning; here the hybrid model reads both ways. The last column is the exact value, where it is known. Lower is better for nats and excess, higher for the rest.

# %%
labelled = sorted({row.measure for row in rows if row.measure.endswith("labels")})
measures = [
    "fill: nats",
    "fill: excess",
    "fill: accuracy",
    "fill, left: nats",
    "fill, left: accuracy",
    "complete: possible",
    *labelled,
]
cells = {name: {} for name in (*names, "exact")}
for (measure, name), row in by_name.items():
    if measure in measures and name in names:
        mean, low, high = row.interval.mean, row.interval.low, row.interval.high
        cells[name][measure] = f"{mean:.2f} [{low:.2f}, {high:.2f}]"
        if row.exact is not None:
            cells["exact"][measure] = f"{row.exact:.2f}"
pd.DataFrame(cells).reindex(measures).fillna("–")

# %% [markdown]
# What does the hybrid model gain or lose against each specialist? The differences are paired by seed, written so that a *plus* means that the hybrid is better.

# %%
verdicts = {}
for measure in measures:
    sign = -1 if measure.endswith(("nats", "excess")) else 1
    for name in ("causal", "masked"):
        if (measure, name) in by_name:
            pair = [np.array(by_name[measure, one].values) for one in ("hybrid", name)]
            gain = paired_interval(sign * (pair[0] - pair[1]))
            word = (
                ("better" if gain.mean > 0 else "worse")
                if gain.excludes_zero
                else "not apart"
            )
            verdicts[measure, name] = word
            print(f"{measure:<22} hybrid against {name:<7} {gain.mean:+.3f}", end=" ")
            print(f"[{gain.low:+.3f}, {gain.high:+.3f}]  {word}")
nsp = [
    by_name[f"next: {who}", "masked+nsp"].interval.mean
    for who in ("model", "associations")
]
print("next sentence: share right, model {:.2f}, counts of words {:.2f}".format(*nsp))
tried = {}
for record in stored.data.values():
    if record["measure"] == "tuning":
        lr = record["origin"]["recipe"]["settings"]["lr"]
        tried.setdefault(record["contestant"], []).append((record["excess"], lr))
for name, rates in tried.items():
    print(f"{name}: learning rate {min(rates)[1]} of", sorted(lr for _, lr in rates))
    assert min(rates)[1] in (min(lr for _, lr in rates), max(lr for _, lr in rates))
left = by_name["fill, left: nats", "causal"].interval
# both sides are worth it
assert left.low > by_name["fill: nats", "masked"].interval.high

# %% [markdown]
# **What it shows.** Read the words at the ends of the lines. *Better* and *worse* mean that the interval over the seeds excludes zero; *not apart* means that these runs cannot tell. From its left side alone a blank costs the causal model more nats than it costs the masked model from both sides, with intervals apart: the cell asserts it. One likely reason for differences between the objectives is the number of positions at which they predict; these records do not test that. The line *next sentence* is about next-sentence prediction. Half of the pairs are exchanged, so a coin is right for half of them. *Counts of words* is a baseline without a network: how often a word of the first sentence and one of the second occur in the same training pair.
#
# **What it does not show.** That one of the objectives is the better idea. This is one small language, one size, one share of masked tokens, one short training; BERT read its text some forty times over (arXiv 1810.04805, appendix A.2). The order may turn with more training, and on other text. Only three learning rates were tried for each, in shorter runs with another seed, and each has its best one at an end of the three (the assertion in the cell): a better rate may lie outside.
#
# ## What was published
#
# BERT's authors compared the two ways themselves, on five English tasks. The figures are theirs: accuracy in percent, F1 for SQuAD, on development sets (arXiv 1810.04805, section 5.1, table 5). No interval is given. For two of the tasks we can supply one, that of a share of right answers, since their development sets hold 408 (MRPC) and 872 (SST-2) examples.

# %%
tasks = ["MNLI-m", "QNLI", "MRPC", "SST-2", "SQuAD"]
published = {
    "BERT base: masked, next sentence": [84.4, 88.4, 86.7, 92.7, 88.5],
    "masked, no next sentence": [83.9, 84.9, 86.5, 92.6, 87.9],
    "left to right, no next sentence": [82.1, 84.3, 77.5, 92.1, 77.8],
    "the same, with a BiLSTM on top": [82.1, 84.1, 75.7, 91.6, 84.9],
}
for task, n in {"MRPC": 408, "SST-2": 872}.items():
    for name in list(published)[1:3]:
        value = published[name][tasks.index(task)]
        low, high = wilson_interval(round(value / 100 * n), n)
        print(f"{task:<6} {name:<32} {value}   {100 * low:.1f} to {100 * high:.1f}")
pd.DataFrame(published, index=tasks).T

# %% [markdown]
# The first row differs from the third in *two* things. The fair pair are the **second and the third row**: no next-sentence task in either.
#
# **What it shows.** Where an answer has to be found *inside* a text (SQuAD), the left-to-right model loses most; a BiLSTM on top, which may use both sides while fine-tuning, brings back much of it. On MRPC, two sentences to be compared, the gap is large as well.
#
# **What it does not show.** On SST-2, the polarity of single sentences and so the task nearest to our reviews, the two differ by half a point, well within the intervals. No spread over pretraining runs is given, all models are of one size, and none had to *write*. "Masked is better" is too short: better for understanding a given text, at this size, on some tasks.
#
# **CamemBERT** is a descendant for French, trained on hidden words alone, in the manner of RoBERTa. **BARThez** is often listed next to CamemBERT, but it is a different kind of model. It follows BART, an encoder *and* a decoder: the encoder reads a damaged text both ways, the decoder writes the whole text left to right. Lesson 11 builds such a pair.
#
# ## Limits
#
# - In the first half the masked reader was **perfect**: computed, not trained. What a masked model of our size makes of it holds for its short training.
# - The live models are one of each; their intervals are about the blanks. Only the stored tables have several trainings behind them.
# - The *number* of bits belongs to this small language.
#
# ## Take-home
#
# Two questions, one transformer. What differs is the attention mask, what is read, and where the labels are. The two numbers below answer different questions, so they must not be compared.

# %%
def causal_question(x, bos, eos):
    return [bos, *x], [*x, eos]  # reads, labels: the next token, everywhere


def masked_question(x, chosen, mask):
    reads = [mask if t in chosen else token for t, token in enumerate(x)]
    return reads, [token if t in chosen else -100 for t, token in enumerate(x)]


def loss_of(model, reads, labels):  # the same for both
    # (1, T, V); a causal model has its mask inside
    logits = model(torch.tensor([reads]))
    return F.cross_entropy(logits[0], torch.tensor(labels))  # -100 is skipped


x = tokenizer.encode("Le style est lent .")
nats = loss_of(causal, *causal_question(x, tokenizer.bos_id, tokenizer.eos_id))
print(f"causal, six predictions: {nats:.2f} nats a token")
x = [tokenizer.cls_id, *x, tokenizer.sep_id]  # as the masked model was trained
reads, labels = masked_question(x, {2}, tokenizer.mask_id)
own = loss_of(masked, reads, labels)
print(f"masked, one prediction: {own:.2f} nats")
torch.testing.assert_close(
    own, masked.loss(torch.tensor([reads]), torch.tensor([labels]))
)

# %% [markdown]
# ## Questions
#
# Pick an answer, and read what it gets back: common mistakes are among the choices.

# %%
course.quiz("masked_or_causal")

# %% [markdown]
# ## Exercises
#
# You have met the first one above: `mask_tokens`. Now its other half, first as a puzzle: put the lines in order; some come in pairs, and one of each pair is wrong.

# %%
course.parsons("masked_loss")

# %% [markdown]
# [exercise: masked_loss]


# %%
def masked_loss(logits, labels):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("masked_loss", masked_loss)

# %% [markdown]
# ### Try it yourself
#
# **1.** "A causal model sees the left, and through deeper layers a little of the right." Right or wrong?
#
# <details><summary>Answer</summary>
#
# Wrong. In every layer a position may attend only to itself and to what comes before it, so no detour through other positions leads to the right: they have not seen it either. The leak test of lesson 02 measures exactly zero, at any depth.
#
# </details>
#
# **2.** Two masked models give a text the pseudo-log-likelihoods −40 and −52 bits. A causal one gives it the log-probability −90 bits. Which comparisons are allowed?
#
# <details><summary>Answer</summary>
#
# The two masked ones with each other, with care: same tokens, same rule of hiding one at a time. Neither with the causal one, as its number is the logarithm of a probability and theirs are not. The perfect masked reader, too, lies far below the entropy bound.
#
# </details>
#
# **3.** In your copy, let the explorer hide a *noun*. Does the right side help? And in the cell with *le fin*: which word is settled once the other one is seen?
#
# <details><summary>What happens</summary>
#
# The noun mostly stays open: its article gives the gender, and a full stop on the right says nothing about it. The article is settled as soon as the noun is seen.
#
# </details>
#
# ## Summary
#
# 1. A causal model attends to the left and predicts at every position. A masked one attends to all positions, but the hidden words are not in its input; it predicts only at the chosen positions.
# 2. Given both sides, first words and articles lose most of their uncertainty in our language; nouns and adjectives keep most of theirs.
# 3. Surprises from the left add up to $-\log P$, by the chain rule. From both sides, shared information is never paid for: a pseudo-log-likelihood is no log-probability.
# 4. BERT chooses 15 % of the positions, treats them 80/10/10, and takes the loss there alone: the other labels are -100.
# 5. Compare each model with the exact value of *its* side, and both on one blank. A masked model learns from fewer positions of a text; BERT's published comparison favours it where a text must be understood in detail, and shows next to nothing for the polarity of a sentence. One model can learn both: predict a masked token at the position before it.
#
# *Where this comes from:* Devlin et al., *BERT*, [arXiv:1810.04805](https://arxiv.org/abs/1810.04805), sections 3.1 and 5.1, table 5, appendix A.1.
# Liu et al., *RoBERTa*, [arXiv:1907.11692](https://arxiv.org/abs/1907.11692), sections 4.1 and 4.2.
# Salazar et al., *Masked Language Model Scoring*, [arXiv:1910.14659](https://arxiv.org/abs/1910.14659), section 2 (pseudo-log-likelihood).
# Wang and Cho, *BERT has a Mouth, and It Must Speak*, [arXiv:1902.04094](https://arxiv.org/abs/1902.04094), section 3.
# Charpentier and Samuel, *GPT or BERT: why not both?*, [arXiv:2410.24159](https://arxiv.org/abs/2410.24159), section 2 (the hybrid).
# Martin et al., *CamemBERT*, [arXiv:1911.03894](https://arxiv.org/abs/1911.03894). Kamal Eddine et al., *BARThez*, [arXiv:2010.12321](https://arxiv.org/abs/2010.12321).
# Wang et al., *GLUE*, [arXiv:1804.07461](https://arxiv.org/abs/1804.07461) (MRPC, SST-2, MNLI, QNLI).
#
# *What comes next:* lesson 11 joins a model that uses both sides with one that uses only the left, and lets them translate.
