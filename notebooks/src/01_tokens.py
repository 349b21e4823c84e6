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
# 1. train a byte-pair encoding on paper, merge by merge, and get what sentencepiece gets;
# 2. train a tokenizer on any text, a file of your own included, and say how the two kinds, BPE and unigram, cut;
# 3. compare vocabularies fairly, in bits per character, and say why perplexity per piece misleads;
# 4. predict what becomes of accents, emoji and unknown scripts, and test that a text comes back as it went in;
# 5. recognise a tokenizer that was trained on other text, and put a price on a vocabulary.
#
# *You need:* lesson 00. A logarithm or two; nothing about transformers.
# *It takes:* three quarters of an hour to read; twenty-five seconds to run, with or without a GPU.

# %% [markdown]
# ## Set-up
#
# A model computes with numbers, so a text has to become a list of numbers first. Each number names a **token**; which tokens there are is the **vocabulary**; what cuts the text is a
# **tokenizer**. One core is enough for all that follows. `sentencepiece` is the library that does the real work; first we do it ourselves.

# %%
import io
import itertools
import math
import unicodedata
from collections import Counter

import sentencepiece
import torch

import tinytx as tx
import tinytx_course as course
from tinytx.text import bpe as merges
from tinytx.text.corpora import read_lines
from tinytx.text.ngrams import NGramModel
from tinytx_course import lessons, plots
from tinytx_course.labs.lesson_01 import difficult_texts

torch.set_num_threads(1)

# %% [markdown]
# The texts are those of the whole course: short reviews of books, in simple French, made by a grammar. Words and signs stand apart, joined by single spaces. From the training part we take
# 3,000 reviews to learn from; from the other two parts, 200 to choose settings by and 500 to report on.

# %%
world, corpus = tx.World(), tx.load_corpus("world")
train, valid = corpus.train.texts[:3_000], corpus.valid.texts[:200]
test = corpus.test.texts[:500]
train_words = " ".join(train).split(" ")
print(train[0])
print(train[2])
print(f"{len(train_words):,} words, {len(set(train_words)):,} different")

# %% [markdown]
# ## Why: the model that beat the best one possible
#
# The tempting way: a token for each word. But there are many words, so we keep the most frequent ones and write `<unk>`, "unknown", for all the rest. This cell makes such encoders: as a
# dictionary from words to numbers, where the first seven numbers are kept for special signs. (Number 1 is `<unk>`.)


# %%
def word_encoder(n_kept):
    frequent = Counter(train_words).most_common(n_kept)
    ids = {word: 7 + place for place, (word, _) in enumerate(frequent)}
    return lambda texts: [[ids.get(word, 1) for word in text.split(" ")] for text in texts]


# %% [markdown]
# To say how well such tokens can be predicted, we need a model. Ours *counts*: which token came how often after the last two. (It is `NGramModel`; lesson 08 says more about it.)
#
# Its loss is the mean surprise in **nats** a token. To make losses comparable we also add up the surprise over a whole text, in **bits** ($\ln 2$ nats each), and divide by the number of *characters*, which no tokenizer
# can change.


# %%
def bits_per_character(nats_per_token, sequences, texts):
    n_predicted = sum(map(len, sequences)) + len(sequences)  # each end is predicted too
    return nats_per_token * n_predicted / math.log(2) / sum(map(len, texts))


def surprise(encode, vocab_size, order=3):
    model = NGramModel(order, vocab_size).fit(encode(train))
    nats = model.nats_per_token(encode(test))
    return math.exp(nats), bits_per_character(nats, encode(test), test)


# %% [markdown]
# For this language we know the truth: the grammar gives the exact probability of every review, and so the **floor**, the lowest surprise that any model whatever could reach on these very texts. Three
# vocabularies: nearly all words, 200 words, 50 words. *Perplexity* is $e^{\text{loss}}$: 5 means "as unsure as between five equally likely tokens". Which line do you not believe?

# %%
truth = -sum(world.log_prob(text.split(" ")) for text in test) / math.log(2)
floor = truth / sum(map(len, test))
print("words kept   perplexity per token   bits per character")
for n_kept in (1_000, 200, 50):
    perplexity, bits = surprise(word_encoder(n_kept), 7 + n_kept)
    note = "" if bits > floor else "   below the floor!"
    print(f"{n_kept:>10,}{perplexity:>15.2f}{bits:>24.3f}{note}")
print(f"{'the floor':>10}{floor:>39.3f}")

# %% [markdown]
# Fewer words, better model? With 50 words it beats the best that is possible. Such a result is never luck, and the reason is found by looking at what the model was given to read. Here is one review, and another that says the opposite, as the model with 50 words reads them.

# %%
kept = [word for word, _ in Counter(train_words).most_common(50)]
for review in ("Le roman est magnifique .", "Le roman est illisible ."):
    seen = [word if word in kept else "<unk>" for word in review.split(" ")]
    print(review, " → ", *seen)

# %% [markdown]
# What is hard to predict was thrown away, and predicting `<unk>` is easy. So the first demand on a tokenizer: **same text out as went in**. Whoever loses text may win every
# comparison.
#
# A token for each *character* loses nothing, and needs few tokens. It has a price too. And words have a second one, which a reader's sentence shows (*bouquin*: a colloquial word for a book).

# %%
sentence = "Ce bouquin est génialissime"
print("unknown words  ", [word for word in sentence.split(" ") if word not in train_words])
print("unknown letters", [letter for letter in sentence if letter not in "".join(train)])
print(f"a review in words      {len(train_words) / len(train):6.1f} tokens")
print(f"a review in characters {sum(map(len, train)) / len(train):6.1f} tokens")

# %% [markdown]
# Words run out, characters run long. Attention compares every token with every other, so a text five times as long means twenty-five times as many comparisons. What we want lies between: **pieces** that are
# words where words are frequent, and letters where they are not.
#
# ## By hand: join what stands together most often
#
# **Byte-pair encoding** (BPE) begins with letters and joins. Our text: six times *le*, three times *les*, twice *elle*, once *belle*. A word begins with the sign `▁`, which stands for the space before it. Count,
# on paper, how often each two neighbours stand side by side; a word that occurs six times counts six.

# %%
words = {("▁", *"le"): 6, ("▁", *"les"): 3, ("▁", *"elle"): 2, ("▁", *"belle"): 1}


def pair_counts(words):
    pairs = Counter()
    for pieces, count in words.items():
        for left, right in itertools.pairwise(pieces):
            pairs[left, right] += count
    return pairs


ranked = pair_counts(words).most_common()
print(*(f"{left} {right}: {count}" for (left, right), count in ranked), sep="   ")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# `l e` wins: $6 + 3 + 2 + 1 = 12$. That is the first **merge**: from now on `le` is *one* piece wherever an `l` is followed by an `e`. In *elle* only the second `l` is: `▁ e l le`. The text loses one piece for each place, twelve in all: it had
# $6 \cdot 3 + 3 \cdot 4 + 2 \cdot 5 + 1 \cdot 6 = 46$ pieces. How many are left?


# %%
def join(pieces, left, right):
    joined = []
    for piece in pieces:
        if joined and joined[-1] == left and piece == right:
            joined[-1] = left + right
        else:
            joined.append(piece)
    return tuple(joined)


after_one = {join(pieces, "l", "e"): count for pieces, count in words.items()}
for pieces, count in after_one.items():
    print(count, "×", " ".join(pieces))
print(sum(len(pieces) * count for pieces, count in after_one.items()), "pieces")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Then count again, *with the new piece*, and join again. That is the whole method. Ties need a rule, or two machines would learn two vocabularies: the shorter new piece first, then the first in the order
# of characters (in which `▁` comes after all letters of ours). Do the second and the third merge on paper; at the third there is a tie.


# %%
def learn(words, n_merges):
    learned = []
    for _ in range(n_merges):
        pairs = pair_counts(words)
        left, right = min(pairs, key=lambda p: (-pairs[p], len(p[0] + p[1]), p[0] + p[1]))
        words = {join(pieces, left, right): count for pieces, count in words.items()}
        length = sum(len(pieces) * count for pieces, count in words.items())
        learned.append((left, right, pairs[left, right], length))
    return learned


by_hand = learn(words, 6)
for left, right, count, length in by_hand:
    print(f"{left:>4} + {right:<4} {count:>2} times, {length} pieces left")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# After six merges *le*, *les* and *elle* are one piece each. Notice that every line takes away exactly as many pieces as it says.
#
# To cut a *new* word, the same merges are made in the same order, as far as they fit. So a word that was never seen comes out in known parts: what do you expect for *belles*, and for *sel*?


# %%
def cut(word):
    pieces = ("▁", *word)
    for left, right, _, _ in by_hand:
        pieces = join(pieces, left, right)
    return pieces


for word in ("elle", "belle", "belles", "sel", "lessive"):
    print(f"{word:<8}", " ".join(cut(word)))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## The package, and sentencepiece
#
# `tinytx.text.bpe` is the same in a few lines more (it also passes over a piece that was made before from other parts, `ab`+`c` after `a`+`bc`). The tokenizer of the course, `tx.Tokenizer`, is built on **sentencepiece**, a library that many
# published models use. All three must agree: on our six merges, then on 300 merges of 1,500 reviews.

# %%
toy = [" ".join(["le"] * 6 + ["les"] * 3 + ["elle"] * 2 + ["belle"])]
ours = merges.learn_merges(toy, 6)
assert [(m.left, m.right, m.count, m.n_pieces) for m in ours] == by_hand

some, n_merges = train[:1_500], 300
learned = merges.learn_merges(some, n_merges)
first, n_letters = 7, len(set("".join(some)))  # after 7 special pieces; with the space
bpe = tx.Tokenizer.train(
    some, vocab_size=first + n_merges + n_letters, model_type="bpe", split_by_script=False
)
assert [bpe.piece(first + i) for i in range(n_merges)] == [m.piece for m in learned]
assert all(merges.segment(text, learned) == bpe.pieces(text) for text in test)
print("the first ten:", *[m.piece for m in learned[:10]])
print("the last ten: ", *[m.piece for m in learned[-10:]])

# %% [markdown]
# Three hundred merges, all the same in the same order, and 500 fresh reviews are cut alike. First come pairs of letters and endings, at last whole words.
#
# ### Look
#
# One sentence, after more and more merges. Before you look: which words will be the first to stand in a single box, and which will still be in parts after 300?

# %%
sentence = "La fin est inoubliable ."
stages = (0, 5, 20, 80, 300)
rows = {f"{n} merges": merges.segment(sentence, learned[:n]) for n in stages}
fig, ax = plots.token_rows(rows, title="The sequence shrinks")
plots.show(fig, name="01_merges", alt="""
    One French sentence cut into boxes, five rows for 0 to 300 merges. At first every letter
    has a box; further down boxes grow, frequent short words are whole early, the rare long
    word inoubliable stays in parts.""")

# %% [markdown]
# *La* and *est* are whole early. Being short is not enough, as *fin* shows: what counts is how often the letters stand together, in whatever word. *inoubliable*, "unforgettable", is in parts that it shares with others, such as its ending.
#
# How fast does the whole text shrink? Each merge takes away as many pieces as its count, and no count is larger than the one before. (Why? A pair with a new piece in it cannot be more frequent than that piece.) So predict the shape: steep first or steep last? The dashed line is what no number of merges can pass, since no
# piece crosses a space.

# %%
n_start = sum(map(len, some)) + len(some)  # each character, and a mark in front of each text
lengths = [n_start, *(m.n_pieces for m in learned)]
counts = [m.count for m in learned]
assert [a - b for a, b in itertools.pairwise(lengths)] == counts
assert counts == sorted(counts, reverse=True)
n_some = len(" ".join(some).split(" "))
curve = plots.Curve("BPE", range(n_merges + 1), [n / n_some for n in lengths])
fig, ax = plots.curves(
    [curve], xlabel="merges made", ylabel="pieces per word", y_range=(0, 6),
    references={"words": 1}, title="The first merges do most of the work",
)  # fmt: skip
plots.show(fig, name="01_shrinking", alt="""
    Pieces per word against the number of merges, 0 to 300. The curve falls steeply over
    the first fifty merges, then ever more slowly towards the dashed line at one.""")

# %% [markdown]
# Steep first. A vocabulary has to grow by factors, not by steps, to make texts shorter; keep this in mind for the comparison below.
#
# ## The other way: unigram
#
# BPE never takes a merge back. The **unigram** model, sentencepiece's own default, thinks from the other end: begin with far too many pieces, give each a probability, and drop those that the texts miss least. We train both live, with equally many pieces, and let them cut the same words.

# %%
kinds = {}
for kind in ("bpe", "unigram"):
    tokenizer = kinds[kind] = tx.Tokenizer.train(train, vocab_size=512, model_type=kind)
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_batch(test)] == list(test)
    n_pieces = sum(map(len, tokenizer.encode_batch(test)))
    print(f"{kind:<8} {n_pieces / len(test):.1f} pieces a review:", *tokenizer.pieces(sentence))

# %% [markdown]
# To cut a word, a unigram model weighs *all* ways. The probability of a way is the product of the probabilities of its pieces (their logarithms, `score`, are added), and the most probable way is taken. *lentement*, "slowly", has nine letters and so $2^9$ ways: few enough to try each. Does sentencepiece, which
# never lists them, find the best?

# %%
unigram, word = kinds["unigram"], "▁lentement"
ids = {unigram.piece(i): i for i in range(first, unigram.vocab_size)}
ways = []
for cuts in itertools.product((False, True), repeat=len(word) - 1):
    ends = [0, *(place for place, is_cut in enumerate(cuts, start=1) if is_cut), len(word)]
    pieces = [word[a:b] for a, b in itertools.pairwise(ends)]
    if all(piece in ids for piece in pieces):
        ways.append((sum(unigram.score(ids[piece]) for piece in pieces), pieces))
ways.sort(reverse=True)
for score, pieces in ways[:3]:
    print(f"{score:7.2f}  ", *pieces)
assert unigram.pieces("lentement") == ways[0][1]
print(f"{len(ways)} of {2 ** (len(word) - 1)} ways can be written with these pieces")

# %% [markdown]
# It does, and here the best is what a grammar would say: the adjective and the ending that makes an adverb of it. Nobody told it. (A score of $-13$ means $e^{-13}$.) Neither kind is "right": BPE is simple and greedy, unigram can say how probable each way is.
#
# ### A file of your own
#
# Put the path of a text of yours into the next cell (plain text, UTF-8). As long as you do not, it is the licence of this course, which everybody has: English, legal, and short. Every fifth line is held out, so that what is
# measured later was not learned from. If the file is missing or too small you are told, and the licence steps in.

# %%
own_file = lessons.project_root() / "LICENSE"  # ← a file of your own


def train_on(path):
    lines = [line for _, line in read_lines(path)][:20_000]
    learn_from = [line for number, line in enumerate(lines) if number % 5]
    settings = {"vocab_size": 600, "model_type": "bpe", "byte_fallback": True}
    return lines[::5], tx.Tokenizer.train(learn_from, **settings)


try:
    own_lines, own = train_on(own_file)
except ValueError as problem:
    print(f"That did not work: {problem}. The licence takes its place.")
    own_file = lessons.project_root() / "LICENSE"
    own_lines, own = train_on(own_file)
longest = sorted((own.piece(i) for i in range(first + 256, own.vocab_size)), key=len)[-5:]
print(f"{own_file.name}: its longest pieces are", *longest)

# %% [markdown]
# A vocabulary is a portrait of its text: you can tell what it was trained on without having seen it. Whoever sets a tokenizer decides, before any training, what the model finds short and easy. (`byte_fallback` is explained below.)
#
# ## A fair comparison of vocabularies
#
# How large should a vocabulary be? Train one of each size and see which model is best: but best by which number? For each vocabulary we fit a counting model on the same 3,000 reviews. How far back it looks, up to eight pieces, is chosen on the 200 reviews set aside for that; what is
# reported comes from the 500 others.


# %%
def compare(tokenizer, longest=9):
    ids, ids_valid, ids_test = map(tokenizer.encode_batch, (train, valid, test))
    model = NGramModel(longest, tokenizer.vocab_size).fit(ids)

    def bits(sequences, texts, order):
        return bits_per_character(model.nats_per_token(sequences, order), sequences, texts)

    chosen, order = min(
        (bits(ids_valid, valid, order), order) for order in range(1, longest + 1)
    )
    reviews = [model.log_prob(row, order).sum() / -math.log(2) for row in ids_test]  # bits
    return {
        "length": sum(map(len, ids_test)) / len(test), "back": order - 1, "chosen by": chosen,
        "perplexity": math.exp(model.nats_per_token(ids_test, order)),
        "two": bits(ids_test, test, 3), "best": bits(ids_test, test, order),
        "reviews": [n / len(text) for n, text in zip(reviews, test, strict=True)],
    }  # fmt: skip


# %% [markdown]
# From hardly more than letters (64 pieces) to more than there are words. In the table: pieces per review, how many pieces the model looks back, then the two numbers in question. Read the last two columns against each other: *lower is better* in both. Where do they point?

# %%
sizes = {"bpe": (64, 160, 320, 640, 1_280, 2_560), "unigram": (64, 160, 640)}
results = {}
print("kind      pieces   per review   looks back   perplexity per piece   bits per character")
for kind, size in [(name, size) for name, several in sizes.items() for size in several]:
    tokenizer = tx.Tokenizer.train(train, vocab_size=size, model_type=kind)
    row = results[kind, size] = compare(tokenizer)
    print(f"{kind:<8}{size:>8,}{row['length']:>13.1f}{row['back']:>13}", end="")
    print(f"{row['perplexity']:>23.2f}{row['best']:>21.3f}")

# %% [markdown]
# They point in opposite directions. Perplexity per piece is lowest for the smallest vocabularies; in bits per character the same models are the *worst* of all. Both come from one and the same loss. Here it is as a picture, for BPE. The dashed line on the right is the exact floor. Where does the
# curve "looks back two pieces" begin, and why so high?

# %%
bpe_rows = [results["bpe", size] for size in sizes["bpe"]]
scale = {"xlabel": "pieces in the vocabulary (log scale)", "x_log": True}
fig, axes = plots.figure(1, 2, width=9.8, height=4.0)
plots.curves(
    [plots.Curve("", sizes["bpe"], [row["perplexity"] for row in bpe_rows])],
    **scale, ylabel="perplexity per piece", y_range=(0, 10), title="This one misleads", ax=axes[0],
)  # fmt: skip
names = {"looks back two": "two", "as far as helps": "best"}  # pieces
plots.curves(
    [plots.Curve(name, sizes["bpe"], [row[key] for row in bpe_rows]) for name, key in names.items()],
    **scale, ylabel="bits per character", y_range=(0, 2), references={"exact floor": floor},
    title="This one compares", ax=axes[1],
)  # fmt: skip
for ax in axes:
    ax.set_xticks(sizes["bpe"], [f"{size:,}" for size in sizes["bpe"]])
    ax.set_xticks([], minor=True)
plots.show(fig, name="01_fair_comparison", alt="""
    Two panels over the vocabulary size, 64 to 2,560. Left, perplexity per piece rises
    several-fold. Right, bits per character: falling from far above for a model that looks
    back two pieces, nearly level for one that looks back as far as helps, both above the
    dashed exact floor.""")

# %% [markdown]
# A piece of one letter is easy to guess: after *roma* comes *n*. A piece of a whole word is hard, but there are fewer of them. Perplexity per piece counts the difficulty of a guess and forgets how many guesses there are. **Bits per character** counts both:
#
# $$\frac{\text{bits}}{\text{character}} = \frac{\log_2 \text{perplexity} \cdot \text{pieces}}{\text{characters}} ,$$
#
# where each end of a review, which is predicted too, counts as a piece.
#
# The upper curve shows what a larger vocabulary *buys*: two pieces back are two letters at the left end, and two words at the right. A transformer's window is counted in pieces as well. Given enough memory, the sizes lie close together. Is what is left a real difference? The same 500 reviews were read with each, so we compare
# review by review, with the vocabulary that did best on the other 200.

# %%
ranking = sorted(results, key=lambda name: results[name]["chosen by"])
first_choice = results[ranking[0]]["reviews"]
print(
    "chosen on the 200 reviews:",
    *ranking[0],
    "pieces; on the 500 the others need, compared with it",
)
for kind, size in ranking[1:]:
    pairs = zip(results[kind, size]["reviews"], first_choice, strict=True)
    gaps = torch.tensor([other - chosen for other, chosen in pairs], dtype=torch.float64)
    margin = 1.96 * gaps.std() / len(gaps) ** 0.5
    print(f"{kind:<8}{size:>6,}   {gaps.mean():+.3f} ± {margin:.3f} bits per character")

# %% [markdown]
# The ± is a 95 % interval over the reviews. Where it reaches zero, the two are not told apart. Small vocabularies are worse beyond doubt. From a few hundred pieces on, size decides much about how *long* the sequence is, and little about how *good* the model. And which kind is ahead? Compare `bpe` and `unigram` at 160 and at 640 pieces before you believe anybody who says that one is better.
#
# ## Zipf's law: few are many, many are few
#
# How often is each token used? Sort by frequency, number them, draw both axes by factors. *Zipf's law*, an observation on texts in many languages, says: frequency is about proportional to 1/rank, a straight line falling by a factor of ten for each factor of ten. Which tokens will follow it: characters, pieces or words?


# %%
def by_rank(label, tokens):
    counts = sorted(Counter(tokens).values(), reverse=True)
    shares = [1000 * n / sum(counts) for n in counts]
    return plots.Curve(label, range(1, 1 + len(counts)), shares)


pieces_1280 = tx.Tokenizer.train(train, vocab_size=1_280, model_type="bpe")
encoded = [i for ids in pieces_1280.encode_batch(train) for i in ids]
lines = [
    by_rank("characters", "".join(train)),
    by_rank("pieces (1,280)", encoded),
    by_rank("words", train_words),
    by_rank("words, own file", " ".join(own_lines).split()),
]
ranks = lines[2].x
law = [1000 / rank / sum(1 / r for r in ranks) for rank in ranks]
lines.append(plots.Curve("1/rank", ranks, law, color=plots.REFERENCE_COLOR, dashed=True))
fig, ax = plots.curves(
    lines, xlabel="rank (log scale)", ylabel="uses per 1,000 tokens (log scale)",
    x_log=True, y_log=True, title="Words and pieces fall like 1/rank at first",
)  # fmt: skip
plots.show(fig, name="01_zipf", alt="""
    Frequency against rank, both axes logarithmic. Words and pieces fall at first along the dashed line
    1/rank; then they drop below it. Characters are level for long and end early.""")

# %% [markdown]
# Words and pieces fall like the law over the first two decades; then our small language ends, as its grammar has no more words, while a real one would go on. Characters bend much earlier: there are only so many. (The steps at the end of a short file are the words that occur in it twice, and once.)
#
# The right end of the line has a price. Each token will have a row of numbers to be learned, and it learns only when it is read. How many pieces of our largest vocabularies are hardly ever read, or never?

# %%
print("kind      pieces   never used   used 1 to 9 times in 3,000 reviews")
leftovers = {}
for kind, size in (("bpe", 320), ("bpe", 1_280), ("bpe", 2_560), ("unigram", 640)):
    tokenizer = tx.Tokenizer.train(train, vocab_size=size, model_type=kind)
    uses = Counter(i for ids in tokenizer.encode_batch(train) for i in ids)
    leftovers[size] = [tokenizer.piece(i) for i in range(first, size) if uses[i] == 0]
    print(
        f"{kind:<8}{size:>8,}{len(leftovers[size]):>13,}{sum(n < 10 for n in uses.values()):>13,}"
    )
print("left over from bpe, 1,280:", *sorted(leftovers[1_280], key=len)[-6:])

# %% [markdown]
# How can a piece that was learned from these very texts never occur in them? It was a step on the way: once a longer piece has been made of it, it need never stand alone again. The last line shows some. BPE keeps such leftovers, and the more the larger it is; unigram drops what is not missed.
#
# ## Break it: text from outside
#
# Accents, an emoji, another alphabet: what does a tokenizer do with characters it never saw? Two tokenizers with the same training text. The second keeps 256 extra pieces, one for each *byte*, in which every character of every script can be written: that is **byte fallback**.

# %%
plain = tx.Tokenizer.train(train, vocab_size=512)
with_bytes = tx.Tokenizer.train(train, vocab_size=512 + 256, byte_fallback=True)
for text in ("l'œuvre a été relue", "bien 🙂", "βιβλίο"):
    for name, tokenizer in {"without": plain, "with bytes": with_bytes}.items():
        back = tokenizer.decode(tokenizer.encode(text))
        print(f"{name:<11}", back, "(LOST):" if back != text else ":", *tokenizer.pieces(text))
    print()

# %% [markdown]
# French accents are ordinary letters here: they stood in the training text. The emoji and the Greek (*book*) did not, and are gone without fallback: the whole Greek word is one `⁇`, and every other emoji would give the same. With fallback nothing is lost, but Greek costs two pieces a letter, and an emoji four. Why two and four? Ask Python how it stores them.

# %%
for character in "eéλ🙂":
    raw = character.encode("utf-8")
    alone = with_bytes.pieces(character)
    print(f"{character}  in bytes:", raw.hex(" ").upper(), "   in pieces:", *alone)
    assert with_bytes.decode(with_bytes.encode(character)) == character

# %% [markdown]
# ### Normalisation: what looks alike
#
# Unicode has several ways to write what readers take for the same. **NFKC** is a standard recipe that replaces look-alikes by one form, and sentencepiece applies a variant of it unless told otherwise. It makes texts more alike, which is good for learning. But look at the right column: can you get back from it what was written?

# %%
print("written      NFKC        same?")
for text in ("ﬁn", "10²", "½ page", "Ｌｅ roman", "bon…", "«\u00a0oui\u00a0»", "Ǆ"):
    simple = unicodedata.normalize("NFKC", text)
    print(f"{text:<12} {simple:<12}{simple == text}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Ten squared has become one hundred and two, and the spaces inside « oui », which keep French quotation marks from being left alone at the end of a line, have become ordinary ones. Ours is the *identity*: nothing is replaced, so that what a model writes, and what it is scored on, is the text itself. Whoever wants NFKC can apply it beforehand, in the open.
#
# The identity has its price, too. An é is either one character, or an e followed by a combining accent. On the screen you see no difference. Does the model?

# %%
composed = unicodedata.normalize("NFC", "un été à la mer")
decomposed = unicodedata.normalize("NFD", composed)
print(f"{composed} = {decomposed}?  {composed == decomposed}")
for name, tokenizer in {"without": plain, "with bytes": with_bytes}.items():
    for form, text in {"composed": composed, "decomposed": decomposed}.items():
        print(f"{name:<11}{form}, {len(text)} characters:", *tokenizer.pieces(text))

# %% [markdown]
# Trained on composed accents, it reads decomposed ones as letter, then rubble. Files from different systems come in either form, and a model would find such French harder for no reason that a reader could see. How much longer does it make the 500 reviews?

# %%
for name, form in {"composed": "NFC", "decomposed": "NFD"}.items():
    texts = [unicodedata.normalize(form, text) for text in test]
    unknown = sum(ids.count(plain.unk_id) for ids in plain.encode_batch(texts))
    n_pieces = sum(map(len, with_bytes.encode_batch(texts)))
    n_test_words = sum(len(text.split(" ")) for text in texts)
    print(f"{name:<11} without bytes: {unknown:,} unknown pieces;", end="   ")
    print(f"with bytes: {n_pieces / n_test_words:.2f} pieces per word")

# %% [markdown]
# ### Same text out, for any text
#
# Now the promise from the beginning, tested: 2,000 texts (one of them empty) of random characters from all of Unicode, mixed with everything that is dangerous: leading and double spaces, tabs, ends of lines, control characters, and `▁` itself, which sentencepiece uses as its own sign for a space (the package escapes it). Beside ours stands sentencepiece as it comes, with byte fallback too.

# %%
texts = difficult_texts(2_000, seed=0)
model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(train), model_writer=model, vocab_size=600,
    byte_fallback=True, minloglevel=2,
)  # fmt: skip
usual = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
n_usual = sum(usual.decode(usual.encode(text)) == text for text in texts)
n_ours = sum(with_bytes.decode(with_bytes.encode(text)) == text for text in texts)
n_clean = sum(usual.decode(usual.encode(text)) == text for text in test)
assert n_ours == len(texts) == 2_000
print(
    f"came back as they were: ours {n_ours:,}, as it comes {n_usual:,} of {len(texts):,} texts"
)
print(f"and of {len(test)} clean reviews, as it comes: {n_clean}")

# %% [markdown]
# All of ours come back. "As it comes" is not broken: these texts were made to be difficult, and for clean sentences, where extra spaces and look-alikes are noise, it does what it should. But you should know.
#
# One kind of string is refused: a *lone surrogate*, half of a pair of codes, which no valid text contains. It comes from broken files. The error says where it stands. Cutting it out in silence would be the same sin as `<unk>`.

# %%
try:
    with_bytes.encode("le roman\ud83d est beau")
except ValueError as problem:
    print(problem)
assert with_bytes.encode("") == [] and with_bytes.decode([]) == ""

# %% [markdown]
# ## Break it: a tokenizer trained on other text
#
# The world has an English twin: each review exists in both languages, as people write them. We train three tokenizers of the same kind and size (BPE, 600 pieces, 256 of them bytes): on French, on English, on your file. Then each reads held-out text of all three. Predict the largest and
# the smallest number in the French column.

# %%
english, french = zip(*world.pairs(3_000, seed=1), strict=True)
english_held, french_held = zip(*world.pairs(500, seed=2), strict=True)
assert not set("éC") & set("".join(english))  # of which more below
settings = {"vocab_size": 600, "model_type": "bpe", "byte_fallback": True}
tokenizers = {
    "French": tx.Tokenizer.train(french, **settings),
    "English": tx.Tokenizer.train(english, **settings),
    "own file": own,
}
held_out = {"French": french_held, "English": english_held, "own file": own_lines}


def pieces_per_word(tokenizer, texts):
    n_pieces = sum(map(len, tokenizer.encode_batch(texts)))
    return n_pieces / sum(len(text.split()) for text in texts)


table = [[pieces_per_word(t, held) for held in held_out.values()] for t in tokenizers.values()]
fig, ax = plots.heatmap(
    table, row_labels=list(tokenizers), col_labels=list(held_out), numbers=".2f", low=1,
    xlabel="text that is read", ylabel="tokenizer trained on", bar_label="pieces per word",
    title="At home and abroad",
)  # fmt: skip
plots.show(fig, name="01_other_text", alt="""
    Pieces per word as a three by three table: tokenizers trained on French, on English and
    on the own file, each reading all three. Each column is palest where the tokenizer was
    trained on such text.""")

# %% [markdown]
# Each text is shortest with the tokenizer that was trained on it. Read a *column*, not a row: the same text cut by three. (Rows compare different texts, and legal words are longer.)
#
# Where do the extra pieces come from? Look for accents and capital letters before you read on: English reviews of this world hold neither é nor a capital C.

# %%
sentence = "Cette héroïne."
rows = {name: tokenizer.pieces(sentence) for name, tokenizer in tokenizers.items()}
fig, ax = plots.token_rows(rows, ylabel="trained on", title="Two words, three tokenizers")
plots.show(fig, name="01_two_words_three_tokenizers", alt="""
    The words Cette héroïne cut by three tokenizers. Trained on French there
    are few, long pieces; trained on English or the own file, short ones, single letters,
    and two byte pieces for each accent.""")

# %% [markdown]
# Letters where there were words, and two bytes for each accent. That is paid three times: longer sequences, so more computation; less text in a window of a given number of pieces; and parts that mean nothing by themselves.
#
# Is the *model* worse, too? All three tokenizers lose nothing, so bits per character may be compared: a counting model trained and measured on French, once with each. It looks back one piece, two, and so on.

# %%
print("bits per character of French, looking back   1       2       3       4       5 pieces")
for name, tokenizer in tokenizers.items():
    ids, ids_held = tokenizer.encode_batch(french), tokenizer.encode_batch(french_held)
    counting = NGramModel(6, tokenizer.vocab_size).fit(ids)
    losses = [counting.nats_per_token(ids_held, order) for order in range(2, 7)]
    each = [bits_per_character(loss, ids_held, french_held) for loss in losses]
    print(f"   tokenizer trained on {name:<18}" + "".join(f"{value:8.3f}" for value in each))

# %% [markdown]
# With a short memory the wrong tokenizer is a catastrophe; with a longer one the gap closes for the greater part. It has to learn from letters what the other was given. A model that is large enough can do that, but it spends memory and computation on it. Real tokenizers make many languages pay in this way: for the same content, some
# need several times as many pieces as English (Petrov et al., 2023).
#
# ## From numbers to vectors: what a vocabulary costs
#
# What does a model *do* with the number of a piece? It looks up a row in a table, the **embedding matrix**: one row for each of $V$ pieces, $D$ numbers in each. That is the same as multiplying a vector that is 1 at the piece and 0 elsewhere by the matrix, only faster.

# %%
torch.manual_seed(0)
embed = torch.nn.Embedding(plain.vocab_size, 8)  # V = 512, D = 8
token_ids = torch.tensor(plain.encode("le roman est beau"))
looked_up = embed(token_ids)  # (T, D)
one_hot = torch.nn.functional.one_hot(token_ids, plain.vocab_size).float()  # (T, V)
torch.testing.assert_close(one_hot @ embed.weight, looked_up)
assert embed.weight.numel() == plain.vocab_size * 8
print([plain.piece(i) for i in token_ids.tolist()], "→", tuple(looked_up.shape))

# %% [markdown]
# So each piece costs $D$ learned numbers, and as many again at the end of a language model, which must give each piece a score. Take the model of a university lab (four layers, $D = 200$; lesson 06 counts it term by term). Its vocabulary held 50,001 pieces. Which share of the
# model was that? Guess before you read the last line.

# %%
print("pieces    embedding        whole model    embedding and output, share")
for vocab_size in (64, 1_280, 8_000, 50_001):
    table = tx.parameter_table(tx.PRESETS["seed-lab"].replace(vocab_size=vocab_size))
    output = 200 * vocab_size + vocab_size  # a weight for each number, and a bias
    share = (200 * vocab_size + output) / table.total
    print(f"{vocab_size:>6,}{200 * vocab_size:>13,}{table.total:>19,}{share:>20.0%}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# That lab trained a dictionary with a small transformer in the middle. This is the trade: a large vocabulary makes sequences short and tables large, most of whose rows are rarely read (Zipf); a small one makes tables small and sequences long. No size is right for all. Published models stand between BERT's 30,522 pieces and mBART's 250,027 (lesson 06 counts both): they read far more text, the larger ones in many
# languages, and have more layers above the table.
#
# ## What this does not show
#
# - Our language has about a thousand words, no names, no numbers and no slips of the pen. So the gain by pieces ends early, and tokens for whole words look better than they would in real text, where new words never end. Do not take 1,280 pieces for advice.
# - The comparison was made with counting models. A transformer looks further back and shares what it learns among similar pieces; its best size may be another one. What carries over is the *measure*.
# - Bits per character were computed along the one way in which the tokenizer cuts. A text can be spelled by other pieces too, and the model gives those ways some probability. The true figure is the sum over all, so ours is an upper bound (Cao and Rimell, 2021).
# - The texts of the fair comparison have spaces around signs. Text as people write it is a little harder to cut.
# - Both kinds here stop at spaces. Chinese or Thai have none between words, and other tokenizers (byte-level BPE in GPT-2, for one) cut differently.

# %% [markdown]
# ## Questions
#
# A few questions to see what has stayed. Pick an answer, and read what it gets back: none of the wrong ones is foolish, and each is told what is wrong with it. In your own copy there are buttons to press; on a page
# without a kernel each answer opens on a click.

# %%
course.quiz("tokens")

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** A report gives a perplexity of 211 per piece, for a language model with 50,001 pieces. A friend's model has 8,000 pieces and a perplexity of 100. Whose is better? What would you ask for?
#
# <details><summary>Answer</summary>
#
# Nobody can tell. Ask how many characters a piece has on average, in the same test text. With 4.8 characters a piece the first has $\log_2 211 / 4.8 = 1.61$ bits per character; with 3.9 the second has $\log_2 100 / 3.9 = 1.70$. Then the model with the *higher*
# perplexity would be the better one. (The lengths are made up. And ask whether `<unk>` was among the pieces.)
#
# </details>
#
# **2.** A model that has learned nothing gives all $V$ pieces the same probability. What is its loss in nats, for $V = 50{,}001$ and for 64 characters? Does the second begin better?
#
# <details><summary>Answer</summary>
#
# $\ln 50{,}001 = 10.82$ and $\ln 64 = 4.16$. Per token the second is lower, but there are more tokens: with about five characters a word, it pays 4.16 nats five times over where the first pays 10.82 once. The first loss of any training should be near
# $\ln V$. If it is not, something is wrong before training has begun.
#
# </details>
#
# **3.** By hand: add *sel*, five times, to the four words. Which merges come first, second and third?
#
# <details><summary>Answer</summary>
#
# `l e` still stands together 12 times (in *sel* the `l` comes last), and `▁ le` then 9. But `e l` now has $3 + 5 = 8$, so it comes third, and there is no tie any more. Change the dictionary `words` and run.
#
# </details>
#
# ## Summary
#
# 1. BPE joins the most frequent neighbours, again and again; new words are cut by the same merges in the same order. By hand, in the package and in sentencepiece: the same pieces.
# 2. A unigram model weighs all ways to cut and takes the most probable. Either kind can be trained on any file in a moment, and portrays it.
# 3. Perplexity per piece depends on the pieces. Bits per character do not, if no text is lost; a model below the exact floor has lost some.
# 4. What a tokenizer never saw becomes `⁇`, or bytes. Normalisation changes texts, its absence keeps look-alikes apart. Same text in, same text out is a promise that can be tested.
# 5. Other text costs more pieces a word. A vocabulary costs $V \times D$ numbers, and as many again at the output; few pieces are read often.
#
# *Where this comes from:* BPE for words: Sennrich, Haddow and Birch, [arXiv:1508.07909](https://arxiv.org/abs/1508.07909), section 3.2. Unigram: Kudo, [arXiv:1804.10959](https://arxiv.org/abs/1804.10959), section 3.2. sentencepiece: Kudo and Richardson,
# [arXiv:1808.06226](https://arxiv.org/abs/1808.06226), section 3. All ways to cut: Cao and Rimell, [arXiv:2109.02550](https://arxiv.org/abs/2109.02550). The price other languages pay: Petrov et al., [arXiv:2305.15425](https://arxiv.org/abs/2305.15425). NFKC: Unicode Standard Annex 15.
#
# *What comes next:* the pieces are vectors now. Lesson 02 lets them look at each other.
