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
# 2. compute, in bits, how uncertain a hidden word is given its left side and given both sides, and name a sentence where only one of them matters;
# 3. say why left-to-right surprises add up to the probability of a text, and why both-sided ones do not;
# 4. prepare a text the way BERT reads it: what is hidden, what is exchanged, which embeddings are added;
# 5. read BERT's own comparison of the two, and say what it shows and what it leaves open.
#
# *You need:* lesson 02 for the causal mask, lesson 08 for "surprise", nats and the exact floor.
# *It takes:* three quarters of an hour to read; a minute or two to run on two processor cores, less with a GPU.

# %% [markdown]
# ## Set-up
#
# The first half is exact: it is computed from the grammar of our small language, not learned. Then two small models are trained, a
# causal and a masked one, for as long as your budget allows. Logarithms to the base 2 give **bits**: one bit is the answer to one fair
# yes-or-no question.

# %%
import math
import random
from collections import Counter

import numpy as np
import torch
from IPython.display import Markdown

import tinytx as tx
import tinytx_course as course
from tinytx.world.checker import DETERMINERS, FrenchForms
from tinytx.world.world import entropy, mean_per_word
from tinytx_course import plots

_ = torch.manual_seed(0)

# %% [markdown]
# ## Why: a score that is too good
#
# Take two readers of the same review. One goes **left to right** and guesses each word from the words before it. The other gets the
# review with one word **hidden**, and guesses it from all the others, before and after; then the next word is hidden, and so on. Both
# know our language perfectly: the world can tell each of them the exact chances.

# %%
world = tx.World()
written = "La fin est belle. C'est un bel ouvrage. Le style est lent, mais il me touche."
review = world.split(written)
places = range(len(review))
from_left = [world.next_word(review[:t])[review[t]] for t in places]
from_both = [world.fill(review, t)[review[t]] for t in places]
print(f"{review[3]!r}: {from_left[3]:.3f} from the left, {from_both[3]:.3f} from both sides")

# %% [markdown]
# Now score the readers as in lesson 08: each pays $-\log_2 p$ bits for a word to which it gave the chance $p$. It is tempting to put the two sums
# in one table and to call the reader with fewer bits the better language model. So let us do it, and lay the exact floor
# beside it: $-\log_2 P(\text{review})$, which, as lesson 08 said, no model can beat on average.

# %%
end = world.next_word(review)[None]  # the first reader must also see that it is over
bits_left = -sum(map(math.log2, [*from_left, end]))
bits_both = -sum(map(math.log2, from_both))
print(f"left to right     {bits_left:6.2f} bits")
print(f"one word hidden   {bits_both:6.2f} bits")
print(f"exact floor       {-world.log_prob(review) / math.log(2):6.2f} bits")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The first reader stands exactly on the floor. The second is far below it, where nobody can be. Nothing is wrong with its guesses: they are the best
# there are. What is wrong is the comparison. The lesson first looks at what each reader may see, then does the sums by hand on a
# language of four sentences, and then measures what the right side is worth.

# %% [markdown]
# ## Who sees what
#
# Two models, one sentence. The *causal* model reads a start sign and then the words; at each place it predicts the word that comes next, and
# attention is barred from looking ahead. The *masked* model reads the sentence with some words replaced by a sign `[MASK]`; attention may look
# everywhere, and only at the replaced places a prediction is asked for.

# %%
sentence = review[:5]
causal_reads, causal_predicts = ["[bos]", *sentence[:-1]], sentence
hidden = [0, 3]
masked_reads = ["[MASK]" if t in hidden else word for t, word in enumerate(sentence)]
print("causal  reads", causal_reads, " predicts", causal_predicts)
print("masked  reads", masked_reads, " predicts", [sentence[t] for t in hidden])
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# One warning about words. A **mask** is a table that says who may look at whom; `[MASK]` is a sign in the text that says *a word
# is missing here*. A masked language model has the second and not the first.
#
# Predict the picture: one of the two squares has a hatched triangle. What does the other one have instead, and
# in rows or in columns?

# %%
fig, (left_ax, right_ax) = plots.figure(1, 2, width=10.5, height=4.2)
plots.heatmap(
    np.ones((5, 5)), allowed=tx.causal_mask(5), low=0, high=1.6, ax=left_ax, title="causal",
    col_labels=causal_reads, row_labels=causal_predicts,
    xlabel="looked at", ylabel="predicts",
)  # fmt: skip
shows_a_word = np.array([[t not in hidden for t in range(5)]] * 5, dtype=float)
plots.heatmap(
    shows_a_word, low=0, high=1.6, ax=right_ax, title="masked", col_labels=masked_reads,
    row_labels=[word if t in hidden else "–" for t, word in enumerate(sentence)],
    xlabel="looked at", ylabel="predicts",
)  # fmt: skip
plots.show(fig, name="10_who_sees_what", alt="""
    Two five by five squares. Left, causal: the triangle above the diagonal is grey and
    hatched, and every row predicts a word. Right, masked: nothing is hatched, but the
    two columns of MASK signs are white because they show no word, and only two of the
    five rows predict one.""")

# %% [markdown]
# Blue is a word that is seen; hatched is what may not be looked at (*masked*, in the first sense). Left, what is missing is a **triangle**: the first prediction knows nothing, the last one knows nearly all.
# Right, what is missing is **columns**: the hidden words, for everybody, even for themselves. And count the rows that predict: the
# causal model learns from all five places, the masked one from two. It pays for its wider view with fewer questions per text.
#
# ## By hand: four sentences
#
# A language of four sentences, each as likely as the others. *Le* goes with *roman*, *la* with *fin*, and the adjective agrees.
# How surprising is a word? Collect the sentences that agree with what may be seen, and ask which share of them has this word. A surprise
# of $-\log_2$ of that share is what the reader pays.


# %%
novel = ["le roman est beau", "le roman est triste"]
ending = ["la fin est belle", "la fin est triste"]
language = dict.fromkeys(novel + ending, 1 / 4)


def surprise(sentence, place, sides):
    words, total, fits = sentence.split(), 0.0, 0.0
    for other, chance in language.items():
        there = other.split()
        same_right = sides == "left" or there[place + 1 :] == words[place + 1 :]
        if there[:place] == words[:place] and same_right:
            total += chance
            fits += chance * (there[place] == words[place])
    return math.log2(total / fits)


# %% [markdown]
# Do it on paper for *la fin est triste* first. From the left: *la* or *le*, one bit; after *la* only *fin* can follow, then only *est*, and then one
# of two adjectives: one bit more. From both sides: with *fin* in view there is no question about *la*, and with *la* in view none about
# *fin*. Only the adjective is still open.

# %%
for sides in ("left", "both"):
    bits = [surprise("la fin est triste", place, sides) for place in range(4)]
    print(f"{sides:<6}", bits, "sum", sum(bits))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The sentence has the probability $\tfrac14 = 2^{-2}$, and the surprises from the left sum to 2 bits. That is no accident but the **chain rule**: write each chance as a
# fraction, and every denominator cancels against the numerator before it,
#
# $$P(x_1) \cdot \frac{P(x_1 x_2)}{P(x_1)} \cdot \frac{P(x_1 x_2 x_3)}{P(x_1 x_2)} \cdots = P(x_1 \dots x_T).$$
#
# From both sides nothing cancels. *La* and *fin* tell the same thing, that we speak of the ending and not of the novel. Read from the left, it
# is paid for once, at *la*. With both sides in view each of the two words is given away by the other, and it is paid for **never**.

# %%
for sides in ("left", "both"):
    scores = [2 ** -sum(surprise(s, place, sides) for place in range(4)) for s in language]
    print(f"{sides:<6}", scores, "sum", sum(scores))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The scores from the left are probabilities and sum to one. Those from both sides sum to two: as if the four sentences were twice as
# likely as certain. The logarithm of such a score is known as the **pseudo-log-likelihood**. It *is* useful: to say which of two versions of a sentence reads better,
# for instance. It is *not* a log-probability, and must not be laid beside one, beside a perplexity, or beside our floor.
#
# ### All at once
#
# The same with tensors: compare every sentence $i$ with every sentence $j$ at every place, and let products of these comparisons along the
# sentence say "all equal up to here" and "all equal from here on". The table of surprises for all sentences and places follows without a loop.

# %%
known = sorted({word for s in language for word in s.split()})
texts = torch.tensor([[known.index(word) for word in s.split()] for s in language])  # (N, T)
chances = torch.tensor(list(language.values()))
same = (texts[:, None] == texts).double()  # (N, N, T)
first = torch.ones_like(same[..., :1])
left_equal = torch.cat([first, same.cumprod(-1)[..., :-1]], dim=-1)  # all before t
right_equal = torch.cat([first, same.flip(-1).cumprod(-1)[..., :-1]], dim=-1).flip(-1)  # all after
for sides, seen in {"left": left_equal, "both": left_equal * right_equal}.items():
    weight = chances[None, :, None] * seen
    table = (weight.sum(dim=1) / (weight * same).sum(dim=1)).log2()  # (N, T)
    looped = [[surprise(s, t, sides) for t in range(4)] for s in language]
    torch.testing.assert_close(table, torch.tensor(looped, dtype=torch.float64))

# %% [markdown]
# ### The package
#
# Our world has no list of its sentences; there are far too many. It has an automaton that sums over all of them, and `world.fill` asks it for a
# hidden word. What that *means* is still the definition by hand: put each candidate in the gap, take the probability of the whole review, and divide by the
# total. Here that is done the slow way, and compared.

# %%
gap, text = 2, world.split("J'aime la fin. C'est beau.")
before, after = text[:gap], text[gap + 1 :]
candidates = [word for word in world.next_word(before) if word is not None]
whole = torch.tensor([world.log_prob([*before, word, *after]) for word in candidates])
filled = torch.tensor([world.fill(text, gap).get(word, 0.0) for word in candidates])
torch.testing.assert_close(whole.softmax(dim=0), filled, rtol=1e-6, atol=1e-6)
print({word: round(chance, 3) for word, chance in zip(candidates, filled.tolist(), strict=True)})

# %% [markdown]
# And the chain rule, on reviews drawn from the world: the surprises from the left, the end of the review among them, must add up to
# $-\log_2 P$ to the last digit. The sum from both sides must not, and it should come out lower nearly always: in a real language, too, much is said
# more than once.

# %%
for words in [one.words for one in world.reviews(4, seed=5)]:
    columns = [*map(world.vocabulary.index, words), -1]  # the end stands in the last column
    left = -np.log2(world.next_words(words)[range(len(columns)), columns]).sum()
    assert math.isclose(left, -world.log_prob(words) / math.log(2), rel_tol=1e-9)
    both = -sum(math.log2(world.fill(words, t)[word]) for t, word in enumerate(words))
    print(f"{len(words)} words, {left:6.1f} bits from the left, {both:5.1f} bits from both sides")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Look: where is a review uncertain?
#
# A surprise depends on which word happened to stand there. The **entropy** is its average over all words that might: how uncertain a place
# is, before the word is shown. `world.entropies` gives it for every place of a review, from the left and from both sides.
#
# Predict the two strips. At the end of a sentence the next word could be almost anything: what does the right side do to these dark places? And where
# will *both* strips stay dark?

# %%
exact = world.entropies(review)
strips = np.stack([exact.left, exact.both]).clip(min=0) / math.log(2)
fig, ax = plots.heatmap(
    strips, row_labels=["left", "both sides"], col_labels=review, low=0, numbers=".1f",
    xlabel="word", ylabel="given", bar_label="bits", title="How uncertain is each word?",
)  # fmt: skip
plots.show(fig, name="10_entropy_strips", alt="""
    Two heat strips over the twenty-one words of a review. Given the left, the first
    words of sentences, nouns, adjectives and articles are dark. Given both sides only
    the nouns, the adjectives and the last verb keep some colour; articles, verb forms
    and punctuation are white.""")

# %% [markdown]
# Upper strip: each sentence begins in the dark (nobody knows how it will go on), and a few words later it gets dark again, at the noun and
# at the adjective. Lower strip: the grammar has gone white. Articles, *est*, *mais*, commas and full stops are settled by their
# neighbours. What stays is *meaning*: *fin*, *belle*, *style*, *lent*, *touche* could each be exchanged for another word of its kind, and
# no neighbour objects.
#
# ### Your turn
#
# Change `text` and `gap` in your own copy: any review of the world will do, as people write it. The bars are the best guesses of the two readers.
#
# Before you look: after *C'est un* a French reader expects a noun, or one of the adjectives that may stand before a noun. How sure can the left side
# be? And which *forms* of *beau* remain possible when *ouvrage*, masculine and beginning with a vowel, is seen on the right?

# %%
text = world.split(written)  # or: world.split("C'est un livre captivant. Le style me touche.")
gap = 8  # which word is hidden; the first one has the number 0
print(*["_____" if t == gap else word for t, word in enumerate(text)])
left, both = world.next_word(text[:gap]), world.fill(text, gap)
fig, axes = plots.figure(1, 2, width=10.5, height=3.8)
for ax, name, found in zip(axes, ("from the left", "from both sides"), (left, both), strict=True):
    best = {word or "(end)": chance for word, chance in list(found.items())[:6]}
    title = f"{name}: {len(found)} possible"
    plots.bars(best, xlabel="probability", title=title, numbers=".2f", ax=ax)
plots.show(fig, name="10_one_hidden_word", alt="""
    Bars for the six most likely words at the gap in "C'est un ... ouvrage". From the
    left many nouns are possible, each unlikely. From both sides few words remain, all
    of them adjectives, with bel in front.""")

# %% [markdown]
# From the left the first guesses are nouns, and all of them are weak. From both sides only adjectives are left, in the only form that can stand before
# *ouvrage*: *bel*, not *beau* and not *belle*.
#
# ## When only the right side decides
#
# The same for gaps of every kind. The first group are words that agree with something that comes *later*: articles, elisions, *quelle*. The second group is settled by
# what came *before*. In the third neither side is enough. Which of them would you have put elsewhere?

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
    words, place = shown.replace("_", answer).split(), shown.split().index("_")
    pair = world.entropies([*words, "C'", "est", "beau", "."])
    left, both = abs(pair.left[place]) / math.log(2), abs(pair.both[place]) / math.log(2)
    print(f"{decides:<8} left {left:4.2f}  both {both:4.2f} bits   {shown:<38} {answer}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# In the first group the bits fall to zero as soon as the right side is seen; in the second they were zero already. *Ni … ni* is the clearest case: the first *ni*
# promises the second, whichever word stands between.
#
# A slip that is often written: that a left-to-right model takes "context from the right". It cannot, and here is the test. Two reviews share their left
# side and differ on the right. The reader from the left gives both gaps the same chances; the other one does not.

# %%
for noun in ("fin", "style"):
    words = world.split(f"J'aime _ {noun}. C'est beau.")
    for chances in (world.next_word(words[:2]), world.fill(words, 2)):
        print(*words[:5], {word: round(chance, 2) for word, chance in chances.items()})
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## How much is it worth on average?
#
# Examples can be picked. So we draw 200 reviews and average over all of their words. Each value is exact; only *which* reviews were drawn is
# chance, and the **standard error** says how much that matters. For the gain we average the differences word by word, so that the ups
# and downs which both readers share drop out. (The package gives such a mean in one call, as the last lines check on another twenty.)

# %%
drawn = world.reviews(200, seed=0)
found = [world.entropies(one.words) for one in drawn]
ends = [world.next_words(one.words)[:-1, -1] for one in drawn]  # chance of an end
measured = {
    "given the left": [pair.left / math.log(2) for pair in found],
    "given both sides": [pair.both / math.log(2) for pair in found],
    "gain": [(pair.left - pair.both) / math.log(2) for pair in found],
    "  of it: the end": [entropy(np.stack([p, 1 - p], axis=-1)) / math.log(2) for p in ends],
}
for name, values in measured.items():
    bits = mean_per_word(values)
    print(f"{name:<18} {bits.mean:.3f} ± {bits.standard_error:.3f} bits per word")
again = mean_per_word([world.entropies(one.words).both for one in world.reviews(20, seed=1)])
assert math.isclose(world.mean_conditional_entropy("both", n=20, seed=1).mean, again.mean)

# %% [markdown]
# About half of the uncertainty goes away. The last line is a small unfairness in that: after a full stop the reader from the left does not know whether the review goes on at all,
# while the other one sees that it does.
#
# Can the right side make a place *more* uncertain? On average over the language never: to know more does not hurt. At a single place it can, when it rules out the few
# answers that the left side counted on, and leaves many others. Here is the worst place of these reviews.

# %%
worst = min(range(len(drawn)), key=lambda number: measured["gain"][number].min())
t, words = int(measured["gain"][worst].argmin()), drawn[worst].words
for sides in ("given the left", "given both sides"):
    print(f"{sides:<18} {measured[sides][worst][t]:.2f} bits")
print(*words[max(0, t - 5) : t], f"[{words[t]}]", *words[t + 1 : t + 6])

# %% [markdown]
# ### Which words gain?
#
# Now sort the words by kind, with the help of the tables of the grammar. Forms of *être* and *avoir* get a row of their own, since there are so many of them, and so does the **first word of a
# sentence**, whatever its kind: there the reader from the left is asked how the next sentence will begin, which is another question.

# %%
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


kind_of(".", "Les", "romans"), kind_of("est", "belle", "."), kind_of("je", "les", "ai")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Put them in order before you look: first words, articles, nouns, adjectives, verbs, punctuation, *est/sont/ai*, and the rest (pronouns, adverbs, little words). Which gain most from
# the right side? A hint: it is not the words that are hardest to guess. Behind each name stands the share of its uncertainty that goes away.


# %%
def kinds_in(words):
    neighbours = zip((None, *words[:-1]), words, (*words[1:], None), strict=True)
    return np.array([kind_of(*three) for three in neighbours])


def mean_of_kind(name, kind):
    pairs = zip(measured[name], (kinds_in(one.words) for one in drawn), strict=True)
    return mean_per_word([bits[mine == kind] for bits, mine in pairs])


gain = {}
for kind in ["first word", *kinds, "other"]:
    mean = mean_of_kind("gain", kind)
    gain[f"{kind} ({mean.mean / mean_of_kind('given the left', kind).mean:.0%})"] = mean
gain = dict(sorted(gain.items(), key=lambda item: -item[1].mean))
widths = {name: 1.96 * bits.standard_error for name, bits in gain.items()}

# %% [markdown]
# The bars are the mean gains, the thin lines their intervals (1.96 standard errors to each side). Which bar surprises you?

# %%
fig, ax = plots.bars(
    {name: bits.mean for name, bits in gain.items()}, numbers=".2f",
    intervals={name: (b.mean - widths[name], b.mean + widths[name]) for name, b in gain.items()},
    xlabel="mean gain from the right side (bits per word)", title="Which words gain most?",
)  # fmt: skip
plots.show(fig, name="10_gain_by_kind", alt="""
    Bars of the mean gain in bits for eight kinds of words: most for first words of sentences
    and articles, who lose nearly all their uncertainty; little for nouns, adjectives, verbs.""")


# %% [markdown]
# The first word of a sentence and the article say little by themselves, but from the left they are bets on everything that follows: which pattern, which noun, which gender, which number. Once the noun is seen, the bet is over, and
# nearly all of the uncertainty with it. Nouns, adjectives and verbs are the hardest words, and they keep most of their bits on both sides: what they mean is not told by the words around them. Looking both ways buys grammar first.

# %% [markdown]
# ## Break it: hide more than one word
#
# In the strips one word was hidden and *all* others were seen. A masked model is trained with many words hidden at once, and a hidden word is no help to its neighbour.
# How fast does the gain melt? We shuffle the places of a short review, deal them into $n$ hands like cards, and hide one hand at a time. So each word is asked for once, with a share
# of $1/n$ hidden. The first point of the curve is the one we know: a single hidden word.

# %%
few = [one.words for one in world.reviews(120, seed=7) if len(one.words) <= 24][:12]
dice, hands = random.Random(0), (7, 4, 2)


def bits_with_a_hand_hidden(words, n):
    places = dice.sample(range(len(words)), len(words))
    answers = [a for first in range(n) for a in world.fill(words, places[first::n])]
    return np.array([entropy(np.array([*a.values()])) for a in answers]) / math.log(2)


curve = [mean_per_word([world.entropies(words).both / math.log(2) for words in few])]
curve += [mean_per_word([bits_with_a_hand_hidden(words, n) for words in few]) for n in hands]

# %% [markdown]
# The dashed line is the reader from the left on the same reviews. That reader sees *all* words to the left, which is, averaged over the places, half of the review.
# Where will the curve cross the dashed line? The band is the mean plus and minus 1.96 standard errors.

# %%
from_left = mean_per_word([world.entropies(words).left / math.log(2) for words in few])
means = np.array([point.mean for point in curve])
errors = 1.96 * np.array([point.standard_error for point in curve])
hidden_shares = [0, *(100 / n for n in hands)]
fig, ax = plots.curves(
    [plots.Curve("both sides", hidden_shares, means, low=means - errors, high=means + errors)],
    references={"left side, all of it": from_left.mean}, y_range=(0, 3.5),
    xlabel="share of words hidden (%)", ylabel="entropy of a hidden word (bits)",
    title="The more is hidden, the less a neighbour helps",
)  # fmt: skip
plots.show(fig, name="10_share_hidden", alt="""
    Mean entropy of a hidden word against the share of words that are hidden. The curve
    starts at about half the height of the dashed line of the left-to-right reader and
    climbs steadily; with half of the words hidden it is still below that line.""")

# %% [markdown]
# The curve climbs, gently at first: at fifteen percent, BERT's share, most of the gain is still there. Even with half of the words hidden it stays below the dashed line. Both readers then see half of
# the review, but one of them has neighbours on two sides, and an article needs only the next word. So the share to hide is a trade: more hidden words are more questions per text, and harder ones.
#
# Something else breaks. Hide two words that depend on each other, and fill both gaps **at once**, each by its own chances. Each answer is right. Are they right together? And what if we fill the first, **look again**, then
# fill the second?

# %%
text, at_once, in_turn = world.split("J'aime la fin. C'est beau."), 0.0, 0.0
article, noun = world.fill(text, [2, 3])
for a, p in article.items():
    wrong = [n for n in noun if world.log_prob([*text[:2], a, n, *text[4:]]) == -math.inf]
    at_once += p * sum(noun[n] for n in wrong)
    in_turn += p * sum(world.fill([*text[:2], a, *text[3:]], 3).get(n, 0.0) for n in wrong)
print(f"pairs as 'le fin', no French: at once {at_once:.0%}, one after the other {in_turn:.0%}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The answers at two hidden places are two separate distributions, and nothing ties them together: *le* is likely, *fin* is likely, *le fin* is impossible. One after the other works, but that is the chain rule
# again, in an order of our choosing. This is why it is awkward to write text with a masked model, and why most models that write are causal.

# %% [markdown]
# ## How BERT is trained
#
# BERT (2018) made this idea famous. Of all places it picks **15 %** to be asked about. Of these, 80 % are replaced by `[MASK]`, 10 % by some other word, drawn at random, and 10 % are left as
# they are. The loss is taken at the picked places only. Why not always `[MASK]`? Because that sign never occurs when the trained model is *used*. With the other two
# cases a word that stands there may be right or wrong, and the model has to have an opinion about every place.


# %%
def hide(words, dice):
    """Pick 15 % of the places; return what is read, and what happened at each place."""
    read, what = list(words), [0] * len(words)
    for place in dice.sample(range(len(words)), max(1, round(0.15 * len(words)))):
        fate = dice.random()
        what[place] = 1 if fate < 0.8 else 2 if fate < 0.9 else 3
        other = dice.choice(world.vocabulary)
        read[place] = {1: "[MASK]", 2: other, 3: words[place]}[what[place]]
    return read, what


dice = random.Random(6)
draws = [hide(review, dice) for _ in range(6)]
print(" ".join(draws[0][0]))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Each time a text is read, the dice are thrown anew (BERT itself threw them ten times for its data and repeated; its follow-up RoBERTa throws them each time). Here are six
# readings of our review. How many coloured cells do you expect in a row, and is there one in every column?

# %%
fig, ax = plots.categorical_map(
    [what for _, what in draws],
    ["only read", "asked, hidden as [MASK]", "asked, exchanged", "asked, left as it is"],
    row_labels=range(1, 7), col_labels=review, xlabel="word", ylabel="reading",
)  # fmt: skip
plots.show(fig, name="10_bert_masking", alt="""
    Six readings of a review, one a row: three of twenty-one words are coloured, others each
    time, most of them hidden as MASK, a few exchanged or left as they are.""")


# %% [markdown]
# Three questions a reading, out of twenty-one words; the causal model would have been asked twenty-two times. After many readings every word has had its turn.
#
# ### What goes in
#
# BERT reads two pieces of text at once, $x$ and $y$, as `[CLS] x [SEP] y [SEP]`. `[CLS]` stands for the whole: a classifier reads there. Each place has three numbers: which *token* it is, at which *position* it
# stands, and to which *segment*, $x$ or $y$, it belongs. Each number picks a learned vector.

# %%
x, y = review[:5], ["C'", "est", "beau", "."]
tokens = ["[CLS]", *x, "[SEP]", *y, "[SEP]"]
segments = [0] * (len(x) + 2) + [1] * (len(y) + 1)
positions = range(len(tokens))
for name, row in {"token": tokens, "position": positions, "segment": segments}.items():
    print(f"{name:<9}" + "".join(f"{item!s:>6}" for item in row))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The three vectors are **added**. Attention by itself knows no order, so the position has to be told; and the segment says at every place which text it is part of, which otherwise only
# `[SEP]`, somewhere else in the row, could tell. Below, one place by hand, then all at once. (BERT normalises the sum and applies dropout; we leave that out.)

# %%
names = sorted(set(tokens))
token_embed = torch.nn.Embedding(len(names), 8)
pos_embed, segment_embed = torch.nn.Embedding(16, 8), torch.nn.Embedding(2, 8)
ids = [names.index(token) for token in tokens]
by_hand = token_embed.weight[ids[9]] + pos_embed.weight[9] + segment_embed.weight[segments[9]]
token_ids, segment_ids = torch.tensor([ids]), torch.tensor([segments])  # (B, T)
embedded = token_embed(token_ids) + pos_embed(torch.arange(12)) + segment_embed(segment_ids)
torch.testing.assert_close(embedded[0, 9], by_hand)  # embedded: (B, T, D)

# %% [markdown]
# ### Does y follow x?
#
# The second task of BERT is **next-sentence prediction**: in half of the examples $y$ really comes after $x$, in the other half it is taken from some other text, and a classifier on `[CLS]` has to say which. It was meant to
# teach how sentences hang together. Here is one example of each kind, from the world.

# %%
def sentences(words):
    ends = [t + 1 for t, word in enumerate(words) if word in (".", "!")]
    return [" ".join(words[a:b]) for a, b in zip([0, *ends], ends, strict=False)]


here, elsewhere = (sentences(one.words) for one in world.reviews(2, seed=3))
print("follows:        [CLS]", here[-2], "[SEP]\n               ", here[-1], "[SEP]")
print("does not follow:[CLS]", here[-2], "[SEP]\n               ", elsewhere[-1], "[SEP]")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# There is a shortcut. A sentence from another text mostly speaks of *something else* (another book, in our reviews), so comparing topics may be enough, and nothing about order has to be
# learned. RoBERTa dropped the task and lost nothing by it.
#
# ## Use it: fill the blank with a causal model
#
# Back to our question, with a model that has learned. We train the causal model of lesson 08, for a quarter of its steps. It can fill a blank in two ways. The plain one uses its
# left side only. The dear one tries **every candidate** and scores the *whole* review: by the definition above, that uses the right side as well.

# %%
from tinytx.text.corpora import Corpus, Split
from tinytx.training.fit import fit
from tinytx.training.recipes import plan

whole = tx.load_corpus("world")
corpus = Corpus("world", whole.train, Split(whole.valid.texts[:300]))
n_steps = max(30, plan("world").settings.n_steps // 4)
trained = fit(corpus, training_changes={"n_steps": n_steps}, progress=False)
model, tokenizer = trained.model.cpu(), trained.tokenizer
print(trained)

# %% [markdown]
# Two functions, one for each way. The first sums the log-probabilities of a candidate's own pieces, after the left side. The second takes $\log P$ of the whole review with
# the candidate in the gap, every word to the right included.

# %%
from tinytx.text.batching import pad_batch
from tinytx.training.evaluate import text_nats


@torch.no_grad()
def score_from_left(words, place, candidates):
    start = [tokenizer.bos_id, *tokenizer.encode(" ".join(words[:place]))]
    rows = [[*start, *tokenizer.word_pieces(word)] for word in candidates]
    ids = pad_batch(rows, tokenizer.pad_id)  # (B, T)
    log_probs = model(ids[:, :-1]).log_softmax(dim=-1)  # (B, T - 1, V)
    taken = log_probs.gather(-1, ids[:, 1:, None])[..., 0] * (ids[:, 1:] != tokenizer.pad_id)
    return taken[:, len(start) - 1 :].sum(dim=1)


def score_whole(words, place, candidates):
    texts = [" ".join([*words[:place], word, *words[place + 1 :]]) for word in candidates]
    return -torch.tensor(text_nats(model, tokenizer, texts))


# %% [markdown]
# First one blank, *J'aime … fin*. Four rows: the exact answer from the left, the model's from the left, the model's when it scores whole reviews, and the exact answer from
# both sides. Which rows should be alike, if the model is good?

# %%
candidates = ["le", "la", "l'", "les", "ce", "cette"]
rows = {
    "exact, left": [world.next_word(text[:2]).get(word, 0.0) for word in candidates],
    "model, left": score_from_left(text, 2, candidates).exp().tolist(),
    "model, whole review": score_whole(text, 2, candidates).softmax(dim=0).tolist(),
    "exact, both sides": [world.fill(text, 2).get(word, 0.0) for word in candidates],
}
print(f"{'J aime ... fin.':<20}" + "".join(f"{word:>8}" for word in candidates))
for name, row in rows.items():
    print(f"{name:<20}" + "".join(f"{chance:8.3f}" for chance in row))

# %% [markdown]
# The upper two rows spread their chance over four articles, the lower two put nearly all of it on *la*. The causal model *knows* that it is *la fin*: it would have been surprised by *fin* after *le*. What it cannot do is say so at the gap, before
# it has seen the noun.
#
# Now many blanks: one hidden article in each of some 150 new reviews, all articles and other determiners allowed as answers. There are five readers: a baseline that always answers with the commonest article, the model and the exact chances, each once from the left and once with everything in view.

# %%
articles, dice, blanks = sorted(DETERMINERS), random.Random(1), []
for words in [one.words for one in world.reviews(500, seed=90) if len(one.words) <= 40][:150]:
    pairs = enumerate(zip(words, words[1:], strict=False))
    if places := [t for t, (word, after) in pairs if word in DETERMINERS and after != "ai"]:
        blanks.append((words, dice.choice(places)))
commonest = Counter(words[t] for words, t in blanks).most_common(1)[0][0]


def answers(words, t):
    left, both = world.next_word(words[:t]), world.fill(words, t)
    yield f"always {commonest}", commonest
    yield "model, left", articles[score_from_left(words, t, articles).argmax()]
    yield "exact, left", max(articles, key=lambda word: left.get(word, 0))
    yield "model, whole review", articles[score_whole(words, t, articles).argmax()]
    yield "exact, both sides", max(articles, key=lambda word: both.get(word, 0))


# %% [markdown]
# Ask all five readers about all blanks, and count. The bars are shares of right answers, with their Wilson intervals at 95 %. Before you look: how close will the model come to the exact reader, once with the left side, once with both? And will the
# exact reader with both sides be right *always*?

# %%
from tinytx.training.intervals import wilson_interval

correct = Counter()
for words, t in blanks:
    correct.update({name: answer == words[t] for name, answer in answers(words, t)})
fig, ax = plots.bars(
    {name: n / len(blanks) for name, n in correct.items()},
    intervals={name: wilson_interval(n, len(blanks)) for name, n in correct.items()},
    xlabel="share of blanks filled rightly", numbers=".2f",
    title=f"One hidden article in each of {len(blanks)} reviews",
)  # fmt: skip
plots.show(fig, name="10_hidden_articles", alt="""
    Share of right answers with intervals for five ways to fill in a hidden article. The
    baseline is lowest, model and exact reader with the left side only lie in the
    middle, and the model that scores whole reviews is close to the exact reader with
    both sides at the top.""")

# %% [markdown]
# The large step lies between *left* and *both sides*, for the exact reader and for the model alike; it is a matter of what may be seen. That the exact reader with both sides makes next to no mistake is a trait of our simple grammar, where a sentence pattern has one kind of article in one place. In real French *ce roman* would often do as well as *le roman*.
#
# And the price: for one blank the causal model read the whole review once **per candidate**. A masked model answers for all words of its vocabulary in a single reading. That, and not a secret source of knowledge, is what
# training with hidden words buys.
#
# ## The contest: what does a *trained* masked model know?
#
# So far the masked reader was perfect, since the world computed its answers. Now we train one: the same body as the causal model's with no triangle, the same texts and pieces. At each step 15 % of
# the places are drawn anew and treated as BERT treats them, and only these places reach the output layer. It gets the same number of steps.
#
# Predict the curve of its loss (in nats per hidden piece; a dashed line marks the exact floor). Will it fall like the causal one, at once and then ever more slowly?

# %%
settings = {"training_changes": {"n_steps": n_steps}, "progress": False}
filler = fit(corpus, objective="masked", **settings)
print(filler)
fig, ax = plots.curves(
    [plots.Curve("masked", filler.history.step, filler.history.loss)],
    references={"exact floor": filler.evaluation.entropy_bound},
    xlabel="step", ylabel="training loss (nats per hidden piece)", title="Learning to fill blanks",
)  # fmt: skip
plots.show(fig, name="10_masked_training", alt="""
    Training loss of a masked model against steps. It falls at first, lingers on a plateau
    while the model only counts pieces, then falls again, and ends far above the dashed floor.""")

# %% [markdown]
# First it learns which pieces are common, and for a while nothing else: the loss lingers. Only when attention has found the neighbours does it fall again. A masked model is asked about few places per text, so it takes longer to get there; with the usual optimizer, AdamW, much
# longer still (ours is Muon, which treats rare directions like common ones).
#
# Now the blank it was made for. One piece is hidden in each of 150 new reviews, whatever it is. Four readers: the causal model, which sees the left; the masked model; and the exact answers from the left and from both sides. Where will the masked model stand?

# %%
from tinytx.training.evaluate import fill_probs

through, dice, hits = world.through(tokenizer), np.random.default_rng(3), Counter()
new = tokenizer.encode_batch(whole.valid.texts[300:450])
for ids in new:
    place = int(dice.integers(len(ids)))
    guesses = {
        "causal model, left": fill_probs(model, tokenizer, ids, place, sides="left"),
        "masked model, both sides": fill_probs(filler.model, filler.tokenizer, ids, place),
        "exact, left": through.next_token(ids[:place]),
        "exact, both sides": through.fill_token(ids, place),
    }
    hits.update({name: int(chances.argmax()) == ids[place] for name, chances in guesses.items()})
fig, ax = plots.bars(
    {name: n / len(new) for name, n in hits.items()},
    intervals={name: wilson_interval(n, len(new)) for name, n in hits.items()},
    xlabel="share of blanks filled rightly", numbers=".2f", title="One hidden piece in each of 150 reviews",
)  # fmt: skip
plots.show(fig, name="10_hidden_pieces", alt="""
    Share of hidden pieces filled rightly with intervals, for a causal model and the exact
    reader with the left side, and for a masked model and the exact reader with both sides.""")

# %% [markdown]
# The causal model is already close to what the left side allows, and can go no further. The masked model has more to win and is further from it: there is much that it has not learned yet. How the two compare depends on how long they learn, which is why one such picture decides nothing.
#
# ### Writing with a model that fills blanks
#
# Let it write all the same. It must be told beforehand *how many* pieces are to come: so many `[MASK]` signs stand behind a beginning. They are filled from left to right; then, to mend what does not fit, each is hidden again and filled anew, in random order, sweep after sweep.

# %%
from tinytx.training.generate import generate
from tinytx_course.labs.lesson_10 import complete_masked

start = tokenizer.encode("Bonjour à tous , j' ai")
print("causal       ", generate(model, tokenizer, "Bonjour à tous , j' ai", max_new_tokens=12, seed=1))
for n_sweeps in (0, 1, 4):
    (written,) = complete_masked(filler.model, filler.tokenizer, [start], [12], n_sweeps=n_sweeps, seed=1)
    print(f"{n_sweeps} sweeps     ", tokenizer.decode([*start, *written]))

# %% [markdown]
# It is awkward in three ways. The length must be known before the text; each piece costs a reading of everything; and the answers at different places fit no common distribution, so more sweeps need not make it better. The causal model just goes on, and stops when it is done.
#
# ### Does y follow x? Counting is enough
#
# Of the next-sentence task we said that topics may give it away. Here is that shortcut as a number. Half of the pairs are two parts of one review, half are from two; the guess "they follow" is made from words alone: once by how many the two parts *share*, once by which words were
# found together in true pairs. No order, no grammar, no network. Chance is one half.

# %%
from tinytx.training.masking import draw_pairs, make_passages
from tinytx_course.labs.lesson_10 import TopicOverlap

drawn = [
    draw_pairs(make_passages(tokenizer, texts, 100), 100, np.random.default_rng(seed))
    for seed, texts in enumerate((whole.train.texts, whole.valid.texts[:1000]))
]
for name, associations in {"shared words": False, "words that go together": True}.items():
    baseline = TopicOverlap(tokenizer.vocab_size, associations=associations)
    baseline.fit(drawn[0].firsts, drawn[0].seconds, drawn[0].labels)
    right = (baseline.predict(drawn[1].firsts, drawn[1].seconds) == drawn[1].labels).sum()
    low, high = wilson_interval(int(right), len(drawn[1].labels))
    print(f"{name:<24} {right / len(drawn[1].labels):.3f}  [{low:.3f}, {high:.3f}]")

# %% [markdown]
# In our reviews, which are all about books, shared words say next to nothing; words that go together say something. Where the two texts are about *different things* topics give away much more: that is why ALBERT (arXiv 1909.11942, section 3.1) asks for the *order* of two sentences of one text
# instead.
#
# ### With care: several seeds, equal work
#
# One run is an anecdote. `python -m experiments objectives` trains the models of the contest with several seeds and the whole budget: same texts, same pieces, same body. Since a masked model pays for the output layer at few places only, it may take more steps for the same number of floating-point
# operations: *equal compute*; beside it the same *with equal tokens*. All are judged by one blank, by carrying on half a review, by a **linear probe** (a classifier on frozen states), and by fine-tuning with few labels. What is kept is read here.

# %%
from tinytx_course.labs.lesson_10 import objective_rows
from tinytx_course.results import read_results

kept = read_results("objectives")
((kept_budget, _),) = Counter(key.split("/")[0] for key in kept.data).most_common(1)
found = objective_rows(kept.data, kept_budget)
print(f"budget {kept_budget}, {len(found[0].values)} seeds")
print(kept.source_line())

# %% [markdown]
# Each cell is a mean over seeds, with its 95 % interval where there are several. The last column is what the *exact* language reaches, the best that anyone could. Before you look: which row will the causal model win, and which the masked one? And what do fifty labels say?

# %%
def cell(row):
    span = "" if row.interval is None else f" [{row.interval.low:.2f}, {row.interval.high:.2f}]"
    return f"{np.mean(row.values):.2f}{span}"


def table_of(names):
    lines = [f"| | {' | '.join(names)} | exact |", "|---" + "|---:" * (len(names) + 1) + "|"]
    for measure in dict.fromkeys(row.measure for row in found):
        rows = [by_name.get((measure, name)) for name in names]
        exact = next((row.exact for row in rows if row and row.exact is not None), None)
        cells = [cell(row) if row else "–" for row in rows]
        cells.append("–" if exact is None else f"{exact:.2f}")
        lines.append(f"| {measure} | {' | '.join(cells)} |")
    return Markdown("\n".join(lines))


by_name = {(row.measure, row.contestant): row for row in found}
table_of(["causal", "masked", "masked+nsp"])

# %% [markdown]
# Those had equal compute. With equal *tokens* the masked models make as many steps as the causal one, and so do less work:

# %%
table_of(["masked, same tokens", "masked+nsp, same tokens"])

# %% [markdown]
# **What it shows.** With so short a training the causal model is ahead nearly everywhere, even at the blank; there it reads the text once per candidate, the masked model once. It is asked about *every* place of every text, the masked one about fifteen in a hundred, so the same text teaches it more.
# Equal work, a quarter more steps, does not make up for that. The next-sentence task adds nothing that these intervals can see, and its own row tells why: the model answers it like a coin, worse than counting does.
#
# **What it does not show.** That masking is the worse idea. The exact column says that the masked model has most left to win, and its curve was still falling when the budget ended; BERT read its text some forty times over (arXiv 1810.04805, appendix A.2). Here are one small language, one size, one share of hidden
# places, and one fine-tuning recipe for all. The same contest on real reviews is a matter for lesson 15.
#
# ## What was published
#
# BERT's authors compared the two ways themselves, on five English tasks. The figures are theirs: accuracy in percent, F1 for SQuAD, all on development sets (arXiv 1810.04805, section 5.1, table 5).

# %%
tasks = ["MNLI-m", "QNLI", "MRPC", "SST-2", "SQuAD"]
published = {
    "BERT base: masked, next sentence": [84.4, 88.4, 86.7, 92.7, 88.5],
    "masked, no next sentence": [83.9, 84.9, 86.5, 92.6, 87.9],
    "left to right, no next sentence": [82.1, 84.3, 77.5, 92.1, 77.8],
    "the same, with a BiLSTM on top": [82.1, 84.1, 75.7, 91.6, 84.9],
}
table = [f"| | {' | '.join(tasks)} |", "|---" + "|---:" * len(tasks) + "|"]
table += [f"| {name} | {' | '.join(map(str, row))} |" for name, row in published.items()]
Markdown("\n".join(table))

# %% [markdown]
# Read it slowly. The first row differs from the third in *two* things, so it cannot answer our question. The fair pair are the **second and the third row**: no next-sentence task in either. And no interval is given. For two of the tasks we can
# supply one, that of a share of right answers, since their development sets are known to hold 408 (MRPC) and 872 (SST-2) examples.

# %%
_, masked, left_to_right, _ = published.values()
for task, m, c, n in zip(tasks, masked, left_to_right, (0, 0, 408, 872, 0), strict=True):
    line = f"{task:<7} masked {m}  left to right {c}  difference {m - c:5.1f}"
    if n:
        spans = [wilson_interval(round(value / 100 * n), n) for value in (m, c)]
        line += "".join(f"   {100 * low:.1f} to {100 * high:.1f}" for low, high in spans)
    print(line)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The first two rows differ in the next-sentence task alone, which helps them on QNLI most; RoBERTa, trained longer and on more text, could not confirm that.
#
# **What it shows.** Where an answer has to be found *inside* a text (SQuAD), the left-to-right model loses most; there every word needs to know what comes after it. A BiLSTM on top, which may look both ways while fine-tuning, brings back much of it. On MRPC, two
# sentences to be compared, the gap is large as well.
#
# **What it does not show.** On SST-2, the praise or blame of single sentences and so the task nearest to our reviews, the two differ by half a point: well within the intervals. No spread over several pretraining runs is given. The left-to-right model had to stay left-to-right in fine-tuning too. All
# models are of one size, and none had to *write*. "Masked is better" is too short a summary: better for understanding a given text, at this size, on some tasks.
#
# ## The family
#
# **CamemBERT** is a descendant for French, trained on hidden words alone (whole words at a time, no next-sentence task), in the manner of RoBERTa. **BARThez** is French too and is often filed beside it. That is a slip: it follows BART, an encoder *and* a decoder. Its text is
# damaged, the encoder reads the damaged text both ways, and the decoder writes the whole one left to right. It looks both ways where it reads, and only back where it writes. Lesson 11 builds such a pair.

# %% [markdown]
# ## What this does not show
#
# - In the first half the masked reader was **perfect**: computed, not trained. What a masked model of our size makes of it in a given time is the question of the contest, and its answer holds for that time.
# - The live models are one of each, trained for a short while; their intervals are about the blanks. Only the table of the contest has several trainings behind it.
# - Our grammar has few long ties and a small vocabulary. The *number* of bits belongs to this language; that articles gain most and content words keep most of theirs is what to take along, and worth checking elsewhere.
# - What is best for filling a blank need not be best for classifying. That was the point of the published table.

# %% [markdown]
# ## Questions
#
# A few questions first. Pick an answer, and read what it gets back; a slip from a report is among the choices. In your own copy there are buttons to press; on a page without a kernel each answer opens on a click.

# %%
course.quiz("masked_or_causal")

# %% [markdown]
# ## Exercises
#
# One exercise, but a rich one: BERT's own preparation of a text, as tensors. Fill in the dots and run the cell below them. Since chance is at work, the check looks at what must always hold and, on a large batch, at the shares; and it asks twice, with the generator in the same
# state. While there are only dots, it says "not attempted yet", and nothing else waits for you.
#
# ### Exercise: hide, exchange, leave
#
# `Level 4/5 · 25 minutes · outcome 4`
#
# Write `mask_tokens(token_ids, mask_id, special_ids, vocab_size, p, generator)`. It returns `(inputs, labels)`, both of shape (B, T) like `token_ids`, which itself stays as it is. Each token that is not in the list `special_ids` is drawn
# with probability `p`, by itself. Of the drawn ones 80 % become `mask_id`, 10 % a random id, neither special nor `mask_id`, 10 % stay. `labels` hold the original id where a token was drawn and -100, which losses skip, elsewhere. Take all chance from
# `generator`. *It trains* keeping three fates and two results apart.
#
# <details><summary>Hint</summary>
#
# Draw twice, each time one number between 0 and 1 for every place, with `torch.rand(token_ids.shape, generator=generator)`: the first says whether, the second, cut at 0.8 and 0.9, says what. The labels follow from the first alone. For random ids,
# make a list of those allowed, and draw places in that list. `torch.where` puts things together without touching the input.
#
# </details>


# %%
def mask_tokens(token_ids, mask_id, special_ids, vocab_size, p, generator):
    ### BEGIN SOLUTION
    special = torch.isin(token_ids, torch.tensor(special_ids))  # (B, T)
    drawn = (torch.rand(token_ids.shape, generator=generator) < p) & ~special
    labels = torch.where(drawn, token_ids, -100)

    allowed = [i for i in range(vocab_size) if i not in special_ids and i != mask_id]
    places = torch.randint(len(allowed), token_ids.shape, generator=generator)
    others = torch.tensor(allowed)[places]  # (B, T), an id for each place, needed or not

    fate = torch.rand(token_ids.shape, generator=generator)
    inputs = torch.where(drawn & (fate < 0.8), mask_id, token_ids)
    inputs = torch.where(drawn & (fate >= 0.8) & (fate < 0.9), others, inputs)
    return inputs, labels
    ### END SOLUTION


# %%
course.check("mask_tokens", mask_tokens)

# %% [markdown]
# ### Try it yourself
#
# **1.** "A causal model sees the left, and through deeper layers a little of the right." Right or wrong?
#
# <details><summary>Answer</summary>
#
# Wrong. In every layer a place may look only at itself and at what stands before it, so no detour through other places leads to the right: they have not seen it either. The leak test of lesson 02 measures exactly zero, at any depth.
#
# </details>
#
# **2.** Two masked models give a text the pseudo-log-likelihoods −40 and −52 bits. A causal one gives it the log-probability −90 bits. Which comparisons are allowed?
#
# <details><summary>Answer</summary>
#
# The two masked ones with each other, with care: same tokens, same rule of hiding one at a time. Neither with the causal one, as its number is the logarithm of a probability and theirs are not. The perfect masked reader, too, lies far below the floor.
#
# </details>
#
# **3.** In your copy, hide the *noun* in "J'aime la fin". Does the right side help? And the article once more, with the noun hidden as well?
#
# <details><summary>What happens</summary>
#
# The noun stays open: *la* gives its gender, and a full stop on the right says nothing about it. With the noun hidden too the article is open again, since what had settled it is gone.
#
# </details>
#
# ## Summary
#
# - A causal model may use a triangle and answers at every place; a masked one may use everything but the `[MASK]` columns and answers only there.
# - In our language the right side takes away about half of the uncertainty; first words and articles gain most, words of meaning keep most of their uncertainty.
# - Surprises from the left add up to $-\log P$, by the chain rule. From both sides what is said twice is paid for never: a pseudo-log-likelihood is no probability.
# - BERT picks 15 % of the places, treats them 80/10/10, and adds token, position and segment embeddings of `[CLS] x [SEP] y [SEP]`.
# - A masked model is asked about few places of a text and learns more slowly: with our small budget the causal one wins the contest. It can be made to write, but its length must be fixed beforehand.
# - BERT's published comparison favours masking where a text must be understood in detail, and shows next to nothing for the polarity of a sentence.
#
# *Where this comes from:* Devlin et al., *BERT*, [arXiv:1810.04805](https://arxiv.org/abs/1810.04805), sections 3.1 and 5.1, table 5, appendix A.1.
# Liu et al., *RoBERTa*, [arXiv:1907.11692](https://arxiv.org/abs/1907.11692), sections 4.1 and 4.2.
# Salazar et al., *Masked Language Model Scoring*, [arXiv:1910.14659](https://arxiv.org/abs/1910.14659), section 2 (pseudo-log-likelihood).
# Wang and Cho, *BERT has a Mouth, and It Must Speak*, [arXiv:1902.04094](https://arxiv.org/abs/1902.04094), section 3. Lan et al., *ALBERT*, [arXiv:1909.11942](https://arxiv.org/abs/1909.11942), section 3.1.
# Martin et al., *CamemBERT*, [arXiv:1911.03894](https://arxiv.org/abs/1911.03894). Kamal Eddine et al., *BARThez*, [arXiv:2010.12321](https://arxiv.org/abs/2010.12321).
# Wang et al., *GLUE*, [arXiv:1804.07461](https://arxiv.org/abs/1804.07461) (MRPC, SST-2, MNLI, QNLI).
#
# *What comes next:* lesson 11 puts a model that looks both ways beside one that looks only back, and lets them translate.
