# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 01 · Tokens
#
# **What does a model read?**
#
# After this lesson you can
#
# 1. train a byte-pair encoding on paper, merge by merge, write it in Python, and get what sentencepiece gets;
# 2. train a tokenizer on any text, and say how the two kinds, BPE and unigram, segment a word;
# 3. compare vocabularies fairly, and say by which number;
# 4. say what a model cannot see of a word, and why it miscounts letters;
# 5. recognise a tokenizer that was trained on other text, and put a price on a vocabulary.
#
# *You need:* lesson 00. A logarithm or two; nothing about transformers.
# *It takes:* an hour and a half with the exercises; twenty-five seconds to run, with or without a GPU.

# %% [markdown]
# ## Set-up
#
# A model computes with numbers, so a text has to become a list of numbers first. Each number names a **token**. All tokens together are the **vocabulary**. What turns a text into
# tokens is a **tokenizer**. `sentencepiece` is the library that many published models use; first we do it ourselves.

# %%
import itertools
import math
import re
import unicodedata
from collections import Counter, defaultdict

import torch

import tinytx as tx
import tinytx_course as course
from tinytx import bpe as subwords
from tinytx.ngrams import NGramModel
from tinytx_course import lessons, plots
from tinytx_course.labs.lesson_01 import difficult_texts
from tinytx_run.tables import read_lines

# %%
course.recall("01")

# %% [markdown]
# The texts are those of the whole course: short reviews of books in simple French, made by a grammar. Words and punctuation marks are separated by single spaces. We take 3,000 reviews
# from the training split to learn from. From the other two splits come 200 to choose settings by, and 500 to report on.

# %%
torch.set_num_threads(1)
world, corpus = tx.World(), tx.load_corpus("world")
train, valid = corpus.train.texts[:3_000], corpus.valid.texts[:200]
test = corpus.test.texts[:500]
train_words = " ".join(train).split(" ")
print(train[0])
print(f"{len(train_words):,} words, {len(set(train_words)):,} different")

# %% [markdown]
# ## Why: a token for each word
#
# The tempting way is one token for each word. Is it a good one? To judge tokens, we need a model that reads them. The simplest one counts which word follows which: a **bigram** is two
# neighbours. Here are four tiny texts. After *est* come *beau* twice and *long* twice, so each gets the probability 1/2.
#
# The **loss** of a model is its mean surprise, $-\ln P$ of what really came, in **nats**. **Perplexity** is $e^{\text{loss}}$: 2 means "as unsure as between two equally likely tokens".

# %% tags=["nbval-check-output"]
follows = defaultdict(Counter)
for text in (
    "le roman est beau",
    "le livre est long",
    "le conte est long",
    "le texte est beau",
):
    for left, right in itertools.pairwise(text.split(" ")):
        follows[left][right] += 1
surprises = []
for left, right in itertools.pairwise(["le", "livre", "est", "beau"]):
    probability = follows[left][right] / follows[left].total()
    surprises.append(math.log(1 / probability))
    print(f"P({right} | {left}) = {probability:.2f}, surprise {surprises[-1]:.2f} nats")
loss = sum(surprises) / len(surprises)
print(f"loss {loss:.2f} nats a word, perplexity {math.exp(loss):.2f}")

# %% [markdown]
# A pair that was never seen would have the probability 0 and an infinite surprise. So real n-gram models **smooth**: they mix in how frequent the token is by itself. With $c$ uses of the
# left token and $t$ different followers, the mixture is $(n + t \cdot P(\text{right})) / (c + t)$, where $n$ counts the pair. `NGramModel` does this for longer histories too. On 100
# reviews, in word ids, both must agree on every word after *est*.

# %%
# 0 to 6: special
vocabulary = {word: i for i, word in enumerate(sorted(set(train_words)), start=7)}
ids = [[vocabulary[word] for word in text.split(" ")] for text in train[:100]]
V, BOS, EOS = 7 + len(vocabulary), 2, 3  # size; begin and end of a text
targets = Counter(i for row in ids for i in (*row, EOS))
est = vocabulary["est"]
pairs = [pair for row in ids for pair in itertools.pairwise((*row, EOS))]
followers = Counter(right for left, right in pairs if left == est)
c, t = followers.total(), len(followers)


def smoothed(right):
    alone = (targets[right] + len(targets) / V) / (targets.total() + len(targets))
    return (followers[right] + t * alone) / (c + t)


package = NGramModel(2, V).fit(ids).next_probs([est])
by_formula = torch.tensor([smoothed(i) for i in range(V)], dtype=torch.float64)
torch.testing.assert_close(by_formula, torch.tensor(package))

# %% [markdown]
# ### Unknown words
#
# There are many words, so people keep the most frequent ones and write `<unk>`, "unknown", for all the rest. We try three sizes. To make losses comparable, we add up the surprise over a
# whole text, in **bits** ($\ln 2$ nats each), and divide by the number of *characters*, which no tokenizer can change.
#
# For this language we know the truth: the grammar gives the exact probability of every review, and with it the **entropy bound**. No model can be *expected* to do better on fresh
# text.

# %%
course.predict(
    "01.1",
    "A model that looks back two words is trained with 1,000, 200 or 50 known words. "
    "Which comes out with the fewest bits per character?",
    ["1,000 words", "200 words", "50 words"],
)


# %%
def word_encoder(n_known):
    frequent = Counter(train_words).most_common(n_known)
    ids = {word: 7 + rank for rank, (word, _) in enumerate(frequent)}
    return lambda texts: [
        [ids.get(word, 1) for word in text.split(" ")] for text in texts
    ]  # 1: <unk>


n_characters = sum(map(len, test))
truth = torch.tensor([-world.log_prob(text.split(" ")) / math.log(2) for text in test])
bound = truth.sum().item() / n_characters
bits, below = {}, {}
print("known words   bits per character   minus the bound, standard error")
for n_known in (1_000, 200, 50):
    encode = word_encoder(n_known)
    model = NGramModel(3, 7 + n_known).fit(encode(train))
    reviews = torch.tensor(
        [-model.log_prob(row).sum() / math.log(2) for row in encode(test)]
    )
    bits[n_known] = reviews.sum().item() / n_characters
    gap = (reviews - truth) * len(test) / n_characters
    below[n_known] = gap.mean() < -3 * gap.std() / len(test) ** 0.5
    print(
        f"{n_known:>11,}{bits[n_known]:>21.3f}{gap.mean():>+18.3f} ± "
        f"{gap.std() / len(test) ** 0.5:.3f}"
    )
print(f"{'the bound':>11}{bound:>21.3f}")
best = min(bits, key=bits.get)
assert below[best]
course.resolve(
    "01.1",
    f"{best:,} words",
    f"{bits[best]:.3f} bits per character with {best} words, below the entropy "
    "bound of "
    f"{bound:.3f}: too good to be true.",
)

# %% [markdown]
# The winner beats the best model possible, by far more than chance allows. Such a result calls for a look at what the model was given to read. Here is one review, and
# another that says the opposite, as the model with 50 words reads them.

# %%
known = [word for word, _ in Counter(train_words).most_common(50)]
read = []
for review in ("Le roman est magnifique .", "Le roman est illisible ."):
    read.append([word if word in known else "<unk>" for word in review.split(" ")])
    print(review, " → ", *read[-1])
assert read[0] == read[1]

# %% [markdown]
# What is hard to predict was thrown away, and predicting `<unk>` is easy. So the first demand on a tokenizer: **same text out as went in**. Whoever loses text may win every
# comparison.
#
# One token per *character* loses nothing and needs only a tiny vocabulary. The price is length. Whole words have the opposite problem: a new word has no token at all, as this
# sentence shows (*bouquin*: a colloquial word for a book).

# %%
sentence = "Ce bouquin est génialissime"
print(
    "unknown words  ", [word for word in sentence.split(" ") if word not in train_words]
)
print(
    "unknown letters", [letter for letter in sentence if letter not in "".join(train)]
)
print(f"a review in words      {len(train_words) / len(train):6.1f} tokens")
print(f"a review in characters {sum(map(len, train)) / len(train):6.1f} tokens")

# %% [markdown]
# Attention compares every token with every other, so a text five times as long means twenty-five times as many comparisons. What we want lies between: **subwords**, tokens that are
# words where words are frequent, and letters where they are not.
#
# ## By hand: merge what occurs together most often
#
# **Byte-pair encoding** (BPE) begins with letters and merges. Our text: six times *le*, three times *les*, twice *elle*, once *belle*. A word begins with the sign `▁`, which stands for
# the space before it. Count on paper how often each two neighbours occur; a word that occurs six times counts six.

# %% tags=["nbval-check-output"]
words = {("▁", *"le"): 6, ("▁", *"les"): 3, ("▁", *"elle"): 2, ("▁", *"belle"): 1}


def pair_counts(words):
    pairs = Counter()
    for tokens, count in words.items():
        for left, right in itertools.pairwise(tokens):
            pairs[left, right] += count
    return pairs


ranked = pair_counts(words).most_common()
print(*(f"{left} {right}: {count}" for (left, right), count in ranked), sep="   ")

# %% [markdown]
# `l e` wins: $6 + 3 + 2 + 1 = 12$. That is the first **merge**: from now on `le` is *one* token wherever an `l` is followed by an `e`. In *elle* only the second `l` is: `▁ e l le`.
# Each occurrence makes the text one token shorter. It had $6 \cdot 3 + 3 \cdot 4 + 2 \cdot 5 + 1 \cdot 6 = 46$ tokens. How many are left?


# %% tags=["nbval-check-output"]
def join(tokens, left, right):
    joined = []
    for token in tokens:
        if joined and joined[-1] == left and token == right:
            joined[-1] = left + right
        else:
            joined.append(token)
    return tuple(joined)


after_one = {join(tokens, "l", "e"): count for tokens, count in words.items()}
for tokens, count in after_one.items():
    print(count, "×", " ".join(tokens))
print(sum(len(tokens) * count for tokens, count in after_one.items()), "tokens")

# %% [markdown]
# Then count again, *with the new token*, and merge again. That is the whole method. Ties need a rule, or two machines would learn two vocabularies: the shorter new token first, then the
# first in the order of characters (in which `▁` comes after all letters of ours). Do the second and the third merge on paper; at the third there is a tie.


# %% tags=["nbval-check-output"]
def learn(words, n_merges):
    learned = []
    for _ in range(n_merges):
        pairs = pair_counts(words)
        left, right = min(
            pairs, key=lambda p: (-pairs[p], len(p[0] + p[1]), p[0] + p[1])
        )
        words = {join(tokens, left, right): count for tokens, count in words.items()}
        length = sum(len(tokens) * count for tokens, count in words.items())
        learned.append((left, right, pairs[left, right], length))
    return learned


by_hand = learn(words, 6)
for left, right, count, length in by_hand:
    print(f"{left:>4} + {right:<4} {count:>2} times, {length} tokens left")

# %% [markdown]
# After six merges *le*, *les* and *elle* are one token each. Each line shortens the text by exactly as many tokens as it says.
#
# ## Encode a new word
#
# To **encode** a *new* word, the same merges are made in the same order, wherever they fit. So a word that was never seen comes out in known parts.
#
# **Predict 01.2.** *belles* is not among the four words that we merged. Make the six merges on paper.

# %%
course.predict(
    "01.2",
    "How many tokens does `▁belles` have after the six merges?",
    ["2", "3", "4", "5"],
)


# %%
def cut(word):
    tokens = ("▁", *word)
    for left, right, _, _ in by_hand:
        tokens = join(tokens, left, right)
    return tokens


for word in ("elle", "belle", "belles", "sel", "lessive"):
    print(f"{word:<8}", " ".join(cut(word)))
course.resolve(
    "01.2", str(len(cut("belles"))), f"belles is {' + '.join(cut('belles'))}."
)

# %% [markdown]
# ## The package, and sentencepiece
#
# `tinytx.bpe` is the same in a few lines more (it also skips a token that was made before from other parts, `ab`+`c` after `a`+`bc`). `tx.Tokenizer`, the tokenizer of the course, is
# built on **sentencepiece**. The package must agree with our code on the six merges, and with sentencepiece on 300 merges of 1,500 reviews and on 500 fresh reviews.

# %%
toy = [" ".join(["le"] * 6 + ["les"] * 3 + ["elle"] * 2 + ["belle"])]
ours = subwords.learn_merges(toy, 6)
assert [(m.left, m.right, m.count, m.n_pieces) for m in ours] == by_hand

some, n_merges = train[:1_500], 300
learned = subwords.learn_merges(some, n_merges)
first, n_letters = 7, len(set("".join(some)))  # after 7 special tokens; with the space
bpe = tx.Tokenizer.train(
    some,
    vocab_size=first + n_merges + n_letters,
    model_type="bpe",
    split_by_script=False,
)
assert [bpe.piece(first + i) for i in range(n_merges)] == [m.piece for m in learned]
assert all(subwords.segment(text, learned) == bpe.pieces(text) for text in test)
print(
    f"package and sentencepiece: the same {n_merges} merges, and {len(test)} reviews "
    "segmented alike"
)

# %% [markdown]
# (sentencepiece calls a token a *piece*, which is why the methods are named so.)
#
# ### Look
#
# **Predict 01.3.** *La fin est inoubliable .* means "the end is unforgettable". We make more and more merges.

# %%
course.predict(
    "01.3",
    "Which of the four words is the first to be a single token?",
    ["La", "fin", "est", "inoubliable"],
)

# %% tags=["folded"]
sentence = "La fin est inoubliable ."
stages = (0, 5, 20, 80, 300)
rows = {f"{n} merges": subwords.segment(sentence, learned[:n]) for n in stages}
fig, ax = plots.token_rows(rows, title="One sentence, more and more merges")
plots.show(fig, name="01_merges")
made = [merge.piece for merge in learned]
whole = {w: made.index("▁" + w) + 1 for w in sentence.split(" ")[:4] if "▁" + w in made}
parts = [w for w in sentence.split(" ")[:4] if w not in whole]
uses = Counter(word for text in some for word in text.split(" "))
print(
    "uses of each word:",
    *(f"{word} {uses[word]:,}" for word in sentence.split(" ")[:4]),
    sep="   ",
)
print("the first ten merges:", *made[:10])
print("the last ten merges: ", *made[-10:])
course.resolve(
    "01.3",
    min(whole, key=whole.get),
    "; ".join(
        f"{w} is whole after {whole[w]} merges" for w in sorted(whole, key=whole.get)
    )
    + f"; after {n_merges} these are still in parts: {', '.join(parts) or 'none'}.",
)

# %% [markdown]
# Being short is not enough. What counts is how often the letters occur together, in whatever word. A capital letter is another letter, so *La* is learned separately from *la*. The long word
# is rare, and its ending *able* is a token because other words have it too. Frequent short words and signs come early, mixed with pairs of letters. Late merges are rarer words, and parts of
# them.
#
# ## Where no merge may cross
#
# Our words end at spaces, so no token crosses one. That is **pre-tokenization**: before any merge, a rule splits the text. GPT-2 uses a regular expression that separates letters, digits and
# signs, with the space in front. The same idea in one line of Python:

# %%
pattern = re.compile(r" ?[^\W\d_]+| ?\d+| ?[^\s\w]+|\s+")
print(pattern.findall("Le roman coûte 1250 € : wow, l'été !"))

unsplit = {tuple(f"▁{text}".replace(" ", "▁")): 1 for text in train[:150]}
crossing = [
    "".join(pair) for *pair, _, _ in learn(unsplit, 80) if "▁" in "".join(pair)[1:-1]
]
print(
    f"without it, {len(crossing)} of 80 merges reach over a space:",
    *crossing,
    sep="   ",
)
assert crossing and not any("▁" in merge.piece[1:] for merge in learned)

# %% [markdown]
# Without the rule, BPE glues the end of one word to the beginning of the next: a full stop to the capital letter after it, or *e* to *est*. None of these tokens is a part of a word. Splitting at
# spaces is a choice, though: Chinese and Thai write none between words, and sentencepiece can be trained without it.
#
# ## The other way: unigram
#
# BPE never takes a merge back. The **unigram** model, the default of sentencepiece, starts from the other end: with far too many subwords, each with a probability. It then
# drops, step by step, the subwords whose removal lowers the probability of the training text least. We train both, with equally many tokens.

# %%
kinds = {}
for kind in ("bpe", "unigram"):
    tokenizer = kinds[kind] = tx.Tokenizer.train(train, vocab_size=512, model_type=kind)
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_batch(test)] == list(test)
    n_tokens = sum(map(len, tokenizer.encode_batch(test)))
    print(
        f"{kind:<8} {n_tokens / len(test):.1f} tokens a review:",
        *tokenizer.pieces(sentence),
    )

# %% [markdown]
# To segment a word, a unigram model compares *all* ways. The probability of a way is the product of the probabilities of its tokens, so their logarithms, `score`, are added. The most probable way
# wins. *lentement*, "slowly", has nine letters and a `▁` in front, so nine gaps and $2^9$ ways: few enough to try each. Does sentencepiece, which never lists them, find the best?


# %%
def segmentations(word, known):
    if not word:
        return [[]]
    beginnings = [word[:n] for n in range(1, len(word) + 1) if word[:n] in known]
    return [
        [b, *rest] for b in beginnings for rest in segmentations(word[len(b) :], known)
    ]


unigram, word = kinds["unigram"], "▁lentement"
score = {unigram.piece(i): unigram.score(i) for i in range(first, unigram.vocab_size)}
ways = segmentations(word, score)
ways.sort(key=lambda tokens: sum(score[token] for token in tokens), reverse=True)
for tokens in ways[:3]:
    print(f"{sum(score[token] for token in tokens):7.2f}  ", *tokens)
assert unigram.pieces("lentement") == ways[0]
print(f"{len(ways)} of {2 ** (len(word) - 1)} ways can be written with these tokens")

# %% [markdown]
# It does. (A score of $-13$ means a probability of $e^{-13}$.) Neither kind is "right": BPE is simple and greedy, unigram can say how probable each way is. Type a text of your own, and see it
# as characters, as subwords and as words, with the number of merges under your control.

# %%
course.widgets.tokenizer()

# %% [markdown]
# ## What a model cannot see
#
# Ask a language model how often the letter *e* occurs in a word, and it may be wrong. Here is why. A model reads **ids**, the numbers of tokens. The letters inside a token are
# hidden from it. It can only have *learned* them, from texts that spell words out. Try it: from the ids alone, how many *e* has each word?

# %%
for word in ("lentement", "ennuyeuse", "merveille"):
    print(kinds["bpe"].encode(word))
print()
for word in ("lentement", "ennuyeuse", "merveille"):
    print(f"{word}: {word.count('e')} times e,", *kinds["bpe"].pieces(word))

# %% [markdown]
# Counting by characters is trivial; by ids it is a question of memory. The same holds for spelling backwards and for rhymes. The letters are simply missing from the input.
#
# ## A file of your own
#
# Put the path of a text of yours into the next cell (plain text, UTF-8). Until you do, it is the licence of this course: English, legal, and short. Every fifth line is held out. If
# the file is missing or too small, the cell says so and takes the licence. (`byte_fallback` is explained in the appendix.)

# %%
own_file = lessons.course_file("LICENSE")  # ← a file of your own
settings = {"vocab_size": 600, "model_type": "bpe", "byte_fallback": True}


def train_on(path):
    lines = [line for _, line in read_lines(path)][:20_000]
    learn_from = [line for number, line in enumerate(lines) if number % 5]
    return lines[::5], tx.Tokenizer.train(learn_from, **settings)


try:
    own_lines, own = train_on(own_file)
except ValueError as problem:
    print(f"That did not work: {problem}. The licence takes its turn.")
    own_file = lessons.course_file("LICENSE")
    own_lines, own = train_on(own_file)
longest = sorted((own.piece(i) for i in range(first + 256, own.vocab_size)), key=len)[
    -5:
]
print(f"{own_file.name}: its longest tokens are", *longest)

# %% [markdown]
# A vocabulary is a portrait of its text: you can tell what it was trained on without having seen it. Whoever trains a tokenizer decides, before any training of the model, what will be short
# and easy for it.
#
# ## A fair comparison of vocabularies
#
# How large should a vocabulary be? Train one of each size and see which model is best: but best by which number? For each we fit an n-gram model on the same 3,000 reviews. How far
# back it looks, up to eight tokens, is chosen on the 200 reviews set aside for that. What is reported comes from the 500 others.
#
# **Predict 01.4.** Lower is better for both numbers.

# %%
course.predict(
    "01.4",
    "Perplexity per token and bits per character both come from the same loss. "
    "Does the same vocabulary size win by both?",
    ["the same size", "a larger one by perplexity", "a smaller one by perplexity"],
)


# %%
def bits_per_character(nats_per_token, sequences, texts):
    n_predicted = sum(map(len, sequences)) + len(sequences)  # each end is predicted too
    return nats_per_token * n_predicted / math.log(2) / sum(map(len, texts))


def compare(tokenizer, longest=9):
    ids, ids_valid, ids_test = map(tokenizer.encode_batch, (train, valid, test))
    model = NGramModel(longest, tokenizer.vocab_size).fit(ids)
    on_valid = {n: model.nats_per_token(ids_valid, n) for n in range(1, longest + 1)}
    order = min(on_valid, key=on_valid.get)
    nats = {n: model.nats_per_token(ids_test, n) for n in (3, order)}
    # bits
    reviews = [model.log_prob(row, order).sum() / -math.log(2) for row in ids_test]
    return {
        "back": order - 1,
        "perplexity": math.exp(nats[order]),
        "chosen by": bits_per_character(on_valid[order], ids_valid, valid),
        "two": bits_per_character(nats[3], ids_test, test),
        "best": bits_per_character(nats[order], ids_test, test),
        "reviews": torch.tensor(
            [n / len(text) for n, text in zip(reviews, test, strict=True)]
        ),
    }


sizes = {"bpe": (64, 160, 320, 640, 1_280, 2_560), "unigram": (64, 160, 640)}
results = {}
print("kind      tokens   looks back   perplexity per token   bits per character")
for kind, size in [(name, size) for name, several in sizes.items() for size in several]:
    row = results[kind, size] = compare(
        tx.Tokenizer.train(train, vocab_size=size, model_type=kind)
    )
    print(
        f"{kind:<8}{size:>8,}{row['back']:>13}{row['perplexity']:>23.2f}"
        f"{row['best']:>21.3f}"
    )
by_perplexity = min(sizes["bpe"], key=lambda size: results["bpe", size]["perplexity"])
by_bits = min(sizes["bpe"], key=lambda size: results["bpe", size]["best"])
which = "smaller" if by_perplexity < by_bits else "larger"
course.resolve(
    "01.4",
    "the same size" if by_perplexity == by_bits else f"a {which} one by perplexity",
    f"Of the BPE sizes, {by_perplexity:,} tokens have the lowest perplexity and "
    f"{by_bits:,} the "
    "fewest bits per character.",
)

# %% [markdown]
# A token of one letter is easy to guess: after *roma* comes *n*. A token of a whole word is hard, but there are fewer of them. Perplexity per token counts the difficulty of a guess and
# forgets how many guesses there are. **Bits per character** counts both:
#
# $$\frac{\text{bits}}{\text{character}} = \frac{\log_2 \text{perplexity} \cdot \text{tokens}}{\text{characters}} ,$$
#
# where each end of a review, which is predicted too, counts as a token. In the picture, for BPE, points mark the measured sizes.

# %% tags=["folded"]
bpe_rows = [results["bpe", size] for size in sizes["bpe"]]
scale = {"xlabel": "tokens in the vocabulary (log scale)", "x_log": True}
fig, axes = plots.figure(1, 2, width=9.8, height=4.0)
plots.curves(
    [plots.Curve("", sizes["bpe"], [row["perplexity"] for row in bpe_rows])],
    **scale,
    ylabel="perplexity per token",
    y_range=(0, 10),
    title="Per token",
    ax=axes[0],
)
names = {"looks back two": "two", "as far as helps": "best"}
plots.curves(
    [
        plots.Curve(name, sizes["bpe"], [row[key] for row in bpe_rows])
        for name, key in names.items()
    ],
    **scale,
    ylabel="bits per character",
    y_range=(0, 2),
    references={"entropy bound": bound},
    title="Per character",
    ax=axes[1],
)
for ax in axes:
    for line in ax.get_lines():
        line.set_marker("o" if len(line.get_xdata()) == len(sizes["bpe"]) else "")
    ax.set_xticks(sizes["bpe"], [f"{size:,}" for size in sizes["bpe"]])
    ax.set_xticks([], minor=True)
assert min(row["best"] for row in bpe_rows) > bound
plots.show(fig, name="01_fair_comparison")

# %% [markdown]
# The upper curve on the right shows what a larger vocabulary *buys*: two tokens back are two letters at the left end, and two words at the right. A transformer's window is counted in
# tokens as well. If each model may look back as far as it helps, the sizes lie close together. Is what is left a real difference? The same 500 reviews were read with each, so we compare review by review, with
# the vocabulary that did best on the other 200.

# %%
ranking = sorted(results, key=lambda name: results[name]["chosen by"])
print(
    "chosen on the 200 reviews:",
    *ranking[0],
    "tokens; the others on the 500, compared with it:",
)
open_cases = []
for kind, size in ranking[1:]:
    gaps = results[kind, size]["reviews"] - results[ranking[0]]["reviews"]
    margin = 1.96 * gaps.std() / len(gaps) ** 0.5
    print(f"{kind:<8}{size:>6,}   {gaps.mean():+.3f} ± {margin:.3f} bits per character")
    if abs(gaps.mean()) <= margin:
        open_cases.append(f"{kind} {size:,}")
print("intervals that contain zero:", ", ".join(open_cases) or "none")

# %% [markdown]
# The ± is a 95 % **confidence interval** over the reviews. If it contains zero, we cannot tell the two apart; the last line says for how many that is so. A difference can be clear and still be
# tiny. Compare `bpe` and `unigram` at 160 and at 640 tokens before you believe anybody who says that one is better.
#
# ## Break it: a tokenizer trained on other text
#
# The world has an English twin: each review exists in both languages, as people write them. We train three tokenizers of the same kind and size (BPE, 600 tokens, 256 of them bytes): on
# French, on English, on your file. Then each reads held-out text of all three.

# %%
english, french = zip(*world.pairs(3_000, seed=1), strict=True)
english_held, french_held = zip(*world.pairs(500, seed=2), strict=True)
tokenizers = {
    "French": tx.Tokenizer.train(french, **settings),
    "English": tx.Tokenizer.train(english, **settings),
    "own file": own,
}
held_out = {"French": french_held, "English": english_held, "own file": own_lines}


def tokens_per_word(tokenizer, texts):
    n_tokens = sum(map(len, tokenizer.encode_batch(texts)))
    return n_tokens / sum(len(text.split()) for text in texts)


table = [
    [tokens_per_word(t, held) for held in held_out.values()]
    for t in tokenizers.values()
]
fig, ax = plots.heatmap(
    table,
    row_labels=list(tokenizers),
    col_labels=list(held_out),
    numbers=".2f",
    low=1,
    xlabel="text that is read",
    ylabel="tokenizer trained on",
    bar_label="tokens per word",
    title="Three tokenizers on three texts",
)
for tick in ax.get_xticklabels():
    tick.set(rotation=0, ha="center")
plots.show(fig, name="01_other_text")
assert torch.tensor(table).argmin(dim=0).tolist() == [0, 1, 2]

# %% [markdown]
# Each text is shortest with the tokenizer that was trained on it. Read a *column*, not a row: the same text, segmented by three. (Rows compare different texts, whose words differ in length.)
#
# Where do the extra tokens come from? Look for accents and capital letters: English reviews of this world hold neither é nor a capital C.

# %%
assert not set("éC") & set("".join(english))
rows = {
    name: tokenizer.pieces("Cette héroïne.") for name, tokenizer in tokenizers.items()
}
fig, ax = plots.token_rows(
    rows, ylabel="trained on", title="Two words, three tokenizers"
)
plots.show(fig, name="01_two_words_three_tokenizers")
assert len(rows["French"]) < min(len(rows["English"]), len(rows["own file"]))

# %% [markdown]
# Letters where there were words, and two bytes for each accent. That is paid three times: longer sequences, so more computation; less text in a window of a given number of tokens; and parts
# that mean nothing by themselves. Real tokenizers make many languages pay in this way: for the same content, some need several times as many tokens as English (Petrov et al., 2023).
#
# ## From ids to vectors: what a vocabulary costs
#
# What does a model *do* with an id? It looks up a row in a table, the **embedding matrix**: one row for each of $V$ tokens, $D$ numbers in each.

# %%
plots.diagram("text-to-vectors")

# %% [markdown]
# A lookup is the same as multiplying a vector that is 1 at the token and 0 elsewhere (**one-hot**) by the matrix, only faster.

# %%
torch.manual_seed(0)
tokenizer = kinds["unigram"]
embed = torch.nn.Embedding(tokenizer.vocab_size, 8)  # V = 512, D = 8
token_ids = torch.tensor(tokenizer.encode("le roman est beau"))
looked_up = embed(token_ids)  # (T, D)
one_hot = torch.nn.functional.one_hot(token_ids, tokenizer.vocab_size).float()  # (T, V)
torch.testing.assert_close(one_hot @ embed.weight, looked_up)
print([tokenizer.piece(i) for i in token_ids.tolist()], "→", tuple(looked_up.shape))

# %% [markdown]
# So each token costs $D$ learned numbers. A language model must also give each token a score at its end. If that output layer has a matrix of its own, it costs about as many again. Take a model with four layers and $D = 200$ (`seed-lab`; lesson 06
# counts it term by term). One university course trained it with a vocabulary of 50,001 tokens. Which share of the model was that? Guess before you read the last line.

# %% tags=["nbval-check-output"]
print("tokens    embedding        whole model    embedding and output, share")
for vocab_size in (64, 1_280, 8_000, 50_001):
    table = tx.parameter_table(tx.PRESETS["seed-lab"].replace(vocab_size=vocab_size))
    output = 200 * vocab_size + vocab_size  # a weight for each number, and a bias
    share = (200 * vocab_size + output) / table.total
    print(f"{vocab_size:>6,}{200 * vocab_size:>13,}{table.total:>19,}{share:>20.0%}")
assert share > 0.9

# %% [markdown]
# With 50,001 tokens it is a dictionary with a small transformer in the middle. A large vocabulary makes sequences short and tables large, most of whose rows are rarely read. A
# small one makes tables small and sequences long. No size is right for all. The published models that lesson 06 counts have more layers above the table, and far more text.
#
# ## What this does not show
#
# - Our language has about a thousand words, no names, no numbers and no typing errors. So tokens for whole words look better than they would in real text, where new words never end. Do
#   not take 1,280 tokens for advice.
# - The comparison was made with n-gram models. A transformer looks further back and shares what it learns among similar tokens; its best size may be another one. What carries over is the
#   *measure*.
# - Bits per character were computed along the one segmentation that the tokenizer chooses. A text can be spelled by other tokens too, and the model gives those ways some probability. So ours is an upper
#   bound of the true figure (Cao and Rimell, 2021).
#
# ## Take-home: train and apply BPE


# %%
def merge_everywhere(tokens, pair):
    i, merged = 0, []
    while i < len(tokens):
        n = 2 if tuple(tokens[i : i + 2]) == pair else 1
        merged.append("".join(tokens[i : i + n]))
        i += n
    return merged


def train_bpe(text, n_merges):
    words = Counter(tuple("▁" + word) for word in text.split())
    merges = []
    for _ in range(n_merges):
        pairs = Counter()
        for word, count in words.items():
            for pair in itertools.pairwise(word):
                pairs[pair] += count
        merges.append(
            min(pairs, key=lambda p: (-pairs[p], len("".join(p)), "".join(p)))
        )
        words = Counter(
            {tuple(merge_everywhere(word, merges[-1])): n for word, n in words.items()}
        )
    return merges


def apply_bpe(word, merges):
    tokens = list("▁" + word)
    for pair in merges:
        tokens = merge_everywhere(tokens, pair)
    return tokens


assert train_bpe(toy[0], 6) == [(left, right) for left, right, _, _ in by_hand]
assert apply_bpe("belles", train_bpe(toy[0], 6)) == list(cut("belles"))

# %% [markdown]
# ## Questions
#
# Pick an answer and read the reply: every wrong answer is explained.

# %%
course.quiz("tokens")

# %% [markdown]
# ## Exercises
#
# First put the lines of one merge into order. Of each pair of similar lines only one is right.

# %%
course.parsons("merge_pair")

# %% [markdown]
# [exercise: merge_pair]


# %%
def merge_pair(tokens, left, right):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("merge_pair", merge_pair)

# %% [markdown]
# [exercise: learn_merges]


# %%
def learn_merges(words, n_merges):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("learn_merges", learn_merges)

# %% [markdown]
# [exercise: encode_bpe]


# %%
def encode_bpe(word, merges):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("encode_bpe", encode_bpe)

# %% [markdown]
# ### Try it yourself
#
# **1.** A language model with 50,001 tokens has a perplexity of 211 per token. Another has 8,000 tokens and a perplexity of 100. Which is better? What would you ask for?
#
# <details><summary>Answer</summary>
#
# It cannot be said. Ask how many characters a token has on average, in the same test text. With 4.8 characters a token the first has $\log_2 211 / 4.8 = 1.61$ bits per character; with 3.9 the second
# has $\log_2 100 / 3.9 = 1.70$. Then the model with the *higher* perplexity would be the better one. (The lengths are made up. And ask whether `<unk>` was among the tokens.)
#
# </details>
#
# **2.** A model that has learned nothing gives all $V$ tokens the same probability. What is its loss in nats, for $V = 50{,}001$ and for 64 characters?
#
# <details><summary>Answer</summary>
#
# $\ln 50{,}001 = 10.82$ and $\ln 64 = 4.16$. Per token the second is lower, but there are more tokens. The first loss of a language model with random weights should be near $\ln V$. If it is not, something is wrong
# before training has begun.
#
# </details>
#
# ## Appendix: any text comes back
#
# What does a tokenizer do with characters it never saw? Two tokenizers with the same training text. The second has 256 extra tokens, one for each *byte*, in which every character of every
# script can be written: that is **byte fallback**.

# %%
plain = tx.Tokenizer.train(train, vocab_size=512)
with_bytes = tx.Tokenizer.train(train, vocab_size=512 + 256, byte_fallback=True)
for text in ("l'œuvre a été relue", "bien 🙂", "βιβλίο"):
    for name, tokenizer in {"without": plain, "with bytes": with_bytes}.items():
        back = tokenizer.decode(tokenizer.encode(text))
        print(
            f"{name:<11}",
            back,
            "(LOST):" if back != text else ":",
            *tokenizer.pieces(text),
        )
print(*(f"{c} is {c.encode('utf-8').hex(' ').upper()}" for c in "eéλ🙂"), sep=";   ")

# %% [markdown]
# French accents are ordinary letters here: the training text has them. The emoji and the Greek (*book*) are lost without fallback. With it nothing is lost, but each costs as many tokens as
# UTF-8 needs bytes, which the last line shows.
#
# Unicode also has several ways to write what looks the same. **NFKC** replaces look-alikes by one form; sentencepiece applies a variant of it by default. Can you get back from the middle
# column what was written? And an é is either one character, or an e with a combining accent.

# %%
for text in ("ﬁn", "10²", "½ page", "Ｌｅ roman", "bon…"):
    simple = unicodedata.normalize("NFKC", text)
    print(f"{text:<12} {simple:<12}{'unchanged' if simple == text else 'changed'}")
for form in ("NFC", "NFD"):
    text = unicodedata.normalize(form, "un été")
    print(f"{form}, {len(text)} characters:", *with_bytes.pieces(text))

# %% [markdown]
# Normalising changes the text; not normalising leaves look-alike spellings different. Ours does nothing to a text, so that what a model writes, and what it is scored on, is the text itself. The
# promise "same text out as went in" can be tested: 2,000 texts of random characters from all of Unicode, mixed with everything that is dangerous, such as leading spaces, tabs, control characters and
# `▁` itself. One kind of string is refused with an error: half of a pair of codes, which no valid text contains.

# %%
texts = difficult_texts(2_000, seed=0)
n_back = sum(with_bytes.decode(with_bytes.encode(text)) == text for text in texts)
assert n_back == len(texts)
print(f"{n_back:,} of {len(texts):,} texts came back as they were")
try:
    with_bytes.encode("le roman\ud83d est beau")
except ValueError as problem:
    print(problem)

# %% [markdown]
# ## Summary
#
# 1. BPE merges the most frequent neighbours, again and again; new words are encoded by the same merges in the same order. The package agrees with our code and with sentencepiece.
# 2. A unigram model compares all segmentations and takes the most probable. A tokenizer can be trained on any text file, and its vocabulary shows what the text was about.
# 3. Perplexities per token cannot be compared across tokenizers. Bits per character can, if no text is lost. If a model is far below the entropy bound, something is wrong. Here text was lost.
# 4. A model reads ids, not letters. A new word becomes shorter known tokens. A new character becomes `⁇`, or bytes.
# 5. Other text costs more tokens a word. A vocabulary costs $V \times D$ numbers, and about as many again if the output layer has its own matrix.
#
# *Where this comes from:* BPE for words: Sennrich, Haddow and Birch, [arXiv:1508.07909](https://arxiv.org/abs/1508.07909), section 3.2. Unigram: Kudo, [arXiv:1804.10959](https://arxiv.org/abs/1804.10959),
# section 3.2. sentencepiece: Kudo and Richardson, [arXiv:1808.06226](https://arxiv.org/abs/1808.06226), section 3. All segmentations: Cao and Rimell,
# [arXiv:2109.02550](https://arxiv.org/abs/2109.02550). The price other languages pay: Petrov et al., [arXiv:2305.15425](https://arxiv.org/abs/2305.15425). Smoothing: Witten and Bell, IEEE Transactions on
# Information Theory 37(4), 1991, method C. NFKC: Unicode Standard Annex 15.
#
# *What comes next:* the tokens are vectors now. [Lesson 02](02_attention_and_masks.ipynb) lets them attend to each other.
